//! Errors of the database as exceptions.
//!
//! The classes are written in Python (`mangrove/_errors.py`), one for each [`Remedy`]: a program catches by what it can do.

use mangrove_graph::{Error, ErrorKind, Remedy};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

/// The module of the exceptions.
const MODULE: &str = "mangrove._errors";

/// The class for a remedy.
fn class_name(remedy: Remedy) -> &'static str {
    match remedy {
        Remedy::RetryTransaction => "ConflictError",
        Remedy::RetryLater => "RetryLaterError",
        Remedy::FixRequest => "RequestError",
        Remedy::Reopen => "ClosedError",
        Remedy::CheckOutcome => "OutcomeUnknownError",
        Remedy::DoNotRepeat => "CommittedError",
        Remedy::RestoreData => "DamagedError",
        _ => "InternalError",
    }
}

fn class<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    static ERRORS: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let module = ERRORS.get_or_try_init(py, || py.import(MODULE).map(Bound::unbind))?;
    module.bind(py).getattr(name)
}

/// An exception of a class with its cause as `kind` and `reason`.
fn exception(py: Python<'_>, name: &str, message: &str, kind: &str, reason: Option<&str>) -> PyErr {
    let made = class(py, name).and_then(|class| {
        let named = PyDict::new(py);
        named.set_item("kind", kind)?;
        named.set_item("reason", reason)?;
        class.call((message,), Some(&named))
    });
    made.map_or_else(|error| error, PyErr::from_value)
}

/// The exception that stands for an error of the database.
pub(crate) fn raised(py: Python<'_>, error: &Error) -> PyErr {
    exception(py, class_name(error.remedy()), error.message(), &format!("{:?}", error.kind()), error.reason())
}

/// The exception for a wrong argument.
pub(crate) fn wrong(py: Python<'_>, message: impl Into<String>) -> PyErr {
    raised(py, &Error::invalid(message))
}

/// The error of everything that needs the database after it was closed.
pub(crate) fn closed() -> Error {
    Error::new(ErrorKind::Closed, "the database is closed; open it again with mangrove.open")
}
