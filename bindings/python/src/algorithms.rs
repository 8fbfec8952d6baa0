//! Graph algorithms, with progress for Python.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use mangrove::registry::{self, ALGORITHMS, AlgorithmInfo};
use mangrove::{Interrupt, QueryGauges};
use mangrove_graph::Value;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::from_python::value;

/// How long an algorithm works between two reports of its progress.
const REPORT_INTERVAL: Duration = Duration::from_millis(100);

/// The options of a run, as the registry takes them. Those that are ``None`` are not given.
pub(crate) fn given(options: &Bound<'_, PyDict>) -> PyResult<Vec<(String, Value)>> {
    let mut given = Vec::with_capacity(options.len());
    for (name, object) in options.iter() {
        if !object.is_none() {
            given.push((name.extract()?, value(&object)?));
        }
    }
    Ok(given)
}

/// An interrupt that besides tells a Python function how far the algorithm has come: the phase, the unit, how many are done, and
/// how many there are. If the function raises something, that ends the algorithm.
#[expect(clippy::disallowed_methods, reason = "this is the edge: progress is shown in the time of the outside world")]
pub(crate) fn reporting(inner: Option<Interrupt>, gauges: Arc<QueryGauges>, report: Py<PyAny>) -> Interrupt {
    let (thread, begun, next) = (std::thread::current().id(), Instant::now(), AtomicU64::new(0));
    Interrupt::new(move || {
        if inner.as_ref().is_some_and(Interrupt::is_raised) {
            return true;
        }
        if std::thread::current().id() != thread {
            return false;
        }
        let now = begun.elapsed();
        if (now.as_nanos() as u64) < next.load(Ordering::Relaxed) {
            return false;
        }
        next.store((now + REPORT_INTERVAL).as_nanos() as u64, Ordering::Relaxed);
        let Some(progress) = gauges.read().progress else { return false };
        Python::attach(|py| {
            let called = report.call1(py, (progress.phase, progress.unit, progress.done, progress.all));
            called.is_err_and(crate::process::keep_raised)
        })
    })
}

/// What the registry says about an algorithm: its name, what it computes, its options and its columns.
fn described<'py>(py: Python<'py>, algorithm: &AlgorithmInfo) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("name", algorithm.name)?;
    dict.set_item("summary", algorithm.summary)?;
    let option = |option: &registry::OptionInfo| (option.name, option.allowed, option.default, option.meaning);
    dict.set_item("options", algorithm.all_options().map(option).collect::<Vec<_>>())?;
    dict.set_item("columns", algorithm.columns.iter().map(|column| column.name).collect::<Vec<_>>())?;
    Ok(dict)
}

/// All algorithms: for each a dictionary with its name, a summary, its options (name, what is allowed, default, meaning) and its
/// columns.
#[pyfunction]
#[pyo3(name = "_algorithms")]
pub(crate) fn algorithms(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    ALGORITHMS.iter().map(|algorithm| described(py, algorithm)).collect()
}
