//! The options of queries, as Python gives them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mangrove::{Isolation, QueryLimits, QueryOptions};
use pyo3::prelude::*;

use crate::errors::wrong;
use crate::process::interrupt;

/// Ends the queries of the handles that were made with it.
#[pyclass(name = "Canceller", module = "mangrove._mangrove", frozen)]
pub(crate) struct PyCanceller(Arc<AtomicBool>);

#[pymethods]
impl PyCanceller {
    #[new]
    fn new() -> Self {
        PyCanceller(Arc::default())
    }

    /// Ends the queries, from any thread. Later ones end at once, too.
    fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The options of all queries of a handle.
#[derive(Clone, Default)]
pub(crate) struct RunOptions {
    /// The time that a query may take, in nanoseconds.
    pub time_nanos: Option<u64>,
    /// The bytes that a query may hold at a time.
    pub memory_bytes: Option<u64>,
    /// The most threads of a query; 0 means as many as there are executors.
    pub threads: usize,
    /// The isolation of a query that writes in a transaction of its own.
    pub isolation: Isolation,
    /// The retries of such a query.
    pub retries: Option<u32>,
    /// The flag that ends the queries; `None` gives each one of its own.
    pub cancel: Option<Arc<AtomicBool>>,
}

impl RunOptions {
    /// The options of a query that the calling thread begins, with a flag that ends it.
    pub(crate) fn begin(&self, py: Python<'_>) -> (QueryOptions, Arc<AtomicBool>) {
        let cancel = self.cancel.clone().unwrap_or_default();
        let defaults = QueryOptions::default();
        let options = QueryOptions {
            limits: QueryLimits {
                time_nanos: self.time_nanos,
                memory_bytes: self.memory_bytes.unwrap_or(defaults.limits.memory_bytes),
            },
            cancel: cancel.clone(),
            interrupt: interrupt(py),
            workers_max: self.threads,
            isolation: self.isolation,
            retries: self.retries.unwrap_or(defaults.retries),
            ..defaults
        };
        (options, cancel)
    }

    /// These options with the changes that are given.
    #[expect(clippy::too_many_arguments, reason = "one for each option that Python gives")]
    pub(crate) fn changed(
        mut self,
        py: Python<'_>,
        timeout: Option<f64>,
        memory_limit: Option<u64>,
        threads: Option<usize>,
        isolation_name: Option<&str>,
        retries: Option<u32>,
        canceller: Option<&PyCanceller>,
    ) -> PyResult<Self> {
        if let Some(seconds) = timeout {
            if !(seconds > 0.0 && seconds < 1e9) {
                return Err(wrong(py, format!("timeout is {seconds}; it is a number of seconds above 0")));
            }
            self.time_nanos = Some((seconds * 1e9) as u64);
        }
        self.memory_bytes = memory_limit.or(self.memory_bytes);
        self.threads = threads.unwrap_or(self.threads);
        self.isolation = isolation_name.map_or(Ok(self.isolation), |name| isolation(py, name))?;
        self.retries = retries.or(self.retries);
        self.cancel = canceller.map(|canceller| canceller.0.clone()).or(self.cancel);
        Ok(self)
    }
}

/// The isolation level of a name.
pub(crate) fn isolation(py: Python<'_>, name: &str) -> PyResult<Isolation> {
    match name {
        "serializable" => Ok(Isolation::Serializable),
        "snapshot" => Ok(Isolation::Snapshot),
        other => Err(wrong(py, format!("isolation is '{other}'; it is 'serializable' or 'snapshot'"))),
    }
}
