//! The options of queries, as Python gives them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use mangrove::{Isolation, QueryLimits, QueryOptions};
use mangrove_graph::{ErrorKind, Result};
use parking_lot::Mutex;
use pyo3::prelude::*;

use crate::errors::{closed, wrong};
use crate::process::interrupt;

/// Queries that end together: those of a database, or those of a canceller.
#[derive(Default)]
pub(crate) struct Queries(Mutex<Flags>);

/// A flag for each query that may be running.
#[derive(Default)]
struct Flags {
    running: Vec<Weak<AtomicBool>>,
    /// The length of the list at which the flags of queries that are over are removed.
    sweep_at: usize,
    has_ended: bool,
}

impl Queries {
    /// Adds the query that this flag ends. If the queries have ended, this one ends at once.
    fn add(&self, flag: &Arc<AtomicBool>) {
        let mut flags = self.0.lock();
        if flags.has_ended {
            flag.store(true, Ordering::Relaxed);
            return;
        }
        if flags.running.len() >= flags.sweep_at {
            flags.running.retain(|flag| flag.strong_count() > 0);
            flags.sweep_at = 64 + 2 * flags.running.len();
        }
        flags.running.push(Arc::downgrade(flag));
    }

    /// Ends the queries, those that are added later, too.
    pub(crate) fn end(&self) {
        let mut flags = self.0.lock();
        flags.has_ended = true;
        for flag in flags.running.drain(..).filter_map(|flag| flag.upgrade()) {
            flag.store(true, Ordering::Relaxed);
        }
    }

    /// The outcome of a query of a database. If it was cancelled because the database was closed, its error says so.
    pub(crate) fn explained<T>(&self, outcome: Result<T>) -> Result<T> {
        outcome.map_err(|error| match error.kind() {
            ErrorKind::Cancelled if self.0.lock().has_ended => closed(),
            _ => error,
        })
    }
}

/// Ends the queries of the handles that were made with it.
#[pyclass(name = "Canceller", module = "mangrove._mangrove", frozen)]
pub(crate) struct PyCanceller(Arc<Queries>);

#[pymethods]
impl PyCanceller {
    #[new]
    fn new() -> Self {
        PyCanceller(Arc::default())
    }

    /// Ends the queries, from any thread. Later ones end at once, too.
    fn cancel(&self) {
        self.0.end();
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
    /// The queries that end when the database is closed.
    pub of_database: Arc<Queries>,
    /// The queries that a canceller ends.
    pub of_canceller: Option<Arc<Queries>>,
}

impl RunOptions {
    /// The options of a query that the calling thread begins. Their flag `cancel` is that query's own.
    pub(crate) fn begin(&self, py: Python<'_>) -> QueryOptions {
        let cancel = Arc::default();
        self.of_database.add(&cancel);
        if let Some(queries) = &self.of_canceller {
            queries.add(&cancel);
        }
        let defaults = QueryOptions::default();
        QueryOptions {
            limits: QueryLimits {
                time_nanos: self.time_nanos,
                memory_bytes: self.memory_bytes.unwrap_or(defaults.limits.memory_bytes),
            },
            cancel,
            interrupt: interrupt(py),
            workers_max: self.threads,
            isolation: self.isolation,
            retries: self.retries.unwrap_or(defaults.retries),
            ..defaults
        }
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
        self.of_canceller = canceller.map(|canceller| canceller.0.clone()).or(self.of_canceller);
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
