//! What an interpreter does to its process: it forks, and it keeps signals until its main thread looks.
//!
//! **Forks.** A child that is forked has one thread of its parent, and a copy of everything else: the executors of the database are
//! missing, and a lock that another thread held stays locked. So a child must not touch a database of its parent, not even to close it:
//! its log is the parent's. All handles check that before they do anything else, and leave what they hold alone.
//!
//! **Signals.** The interpreter notes a signal and calls its handler when its main thread looks, which it does not while a query runs.
//! So a query of the main thread looks by itself, some times a second.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use mangrove::Interrupt;
use mangrove_graph::{Error, ErrorKind, Result};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::raised;

/// How long a query works between two looks for a signal.
const LOOK_INTERVAL: Duration = Duration::from_millis(25);

/// How many forks lie between the first process and this one.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// Registers [`after_fork_in_child`].
pub(crate) fn watch_forks(py: Python<'_>) -> PyResult<()> {
    let os = py.import("os")?;
    if !os.hasattr("register_at_fork")? {
        return Ok(());
    }
    let named = PyDict::new(py);
    named.set_item("after_in_child", pyo3::wrap_pyfunction!(after_fork_in_child, py)?)?;
    os.getattr("register_at_fork")?.call((), Some(&named)).map(drop)
}

/// Counts a fork, in the child.
#[pyfunction]
#[pyo3(name = "_after_fork_in_child")]
pub(crate) fn after_fork_in_child() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// Something that only the process that made it touches. A child that was forked leaves it alone, also when it drops it.
pub(crate) struct OfProcess<T> {
    content: Option<T>,
    forks: u32,
}

impl<T> OfProcess<T> {
    pub(crate) fn new(content: T) -> Self {
        OfProcess { content: Some(content), forks: FORKS.load(Ordering::Relaxed) }
    }

    fn is_own(&self) -> bool {
        self.forks == FORKS.load(Ordering::Relaxed)
    }

    /// The content, in the process that made it.
    pub(crate) fn get(&self) -> Result<&T> {
        match &self.content {
            Some(content) if self.is_own() => Ok(content),
            _ => Err(Error::new(
                ErrorKind::Closed,
                "this process was forked from the one that opened the database, and cannot use its handles: open the \
                 database after the fork, start processes with the method 'spawn', or let the parent serve it (mangrove.serve)",
            )),
        }
    }
}

impl<T> Drop for OfProcess<T> {
    fn drop(&mut self) {
        if !self.is_own() {
            std::mem::forget(self.content.take());
        }
    }
}

thread_local! {
    /// What a handler of a signal has raised while a query of this thread ran.
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
    /// Whether the thread is the main one of the interpreter, and the forks when that was found.
    static IS_MAIN: Cell<Option<(bool, u32)>> = const { Cell::new(None) };
}

/// Keeps an exception that the call that is under way on this thread raises when its work has ended. Returns true.
pub(crate) fn keep_raised(error: PyErr) -> bool {
    RAISED.with(|raised| *raised.borrow_mut() = Some(error));
    true
}

/// Works without the interpreter's lock. If a handler of a signal raises an exception meanwhile, the call raises that exception, also
/// if the work has succeeded.
pub(crate) fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> Result<T> + Send) -> PyResult<T> {
    let outcome = py.detach(work);
    match RAISED.with(|raised| raised.borrow_mut().take()) {
        Some(raised) => Err(raised),
        None => outcome.map_err(|error| raised(py, &error)),
    }
}

/// Returns true on the thread that calls the handlers of signals.
fn is_main_thread(py: Python<'_>) -> bool {
    let forks = FORKS.load(Ordering::Relaxed);
    if let Some((is_main, at)) = IS_MAIN.get()
        && at == forks
    {
        return is_main;
    }
    let compared = || -> PyResult<bool> {
        let threading = py.import("threading")?;
        threading.call_method0("main_thread")?.getattr("ident")?.eq(threading.call_method0("get_ident")?)
    };
    let is_main = compared().unwrap_or(false);
    IS_MAIN.set(Some((is_main, forks)));
    is_main
}

/// The interrupt of the queries that the calling thread runs: signals of the interpreter. `None` if the thread gets none.
pub(crate) fn interrupt(py: Python<'_>) -> Option<Interrupt> {
    is_main_thread(py).then(signals_of_this_thread)
}

#[expect(clippy::disallowed_methods, reason = "this is the edge: signals come at times of the outside world")]
fn signals_of_this_thread() -> Interrupt {
    let (thread, begun) = (std::thread::current().id(), Instant::now());
    let next = AtomicU64::new(LOOK_INTERVAL.as_nanos() as u64);
    Interrupt::new(move || {
        // Only the main thread calls handlers. Helpers of the query see its flag.
        if std::thread::current().id() != thread {
            return false;
        }
        let now = begun.elapsed();
        if (now.as_nanos() as u64) < next.load(Ordering::Relaxed) {
            return false;
        }
        next.store((now + LOOK_INTERVAL).as_nanos() as u64, Ordering::Relaxed);
        Python::attach(|py| py.check_signals().is_err_and(keep_raised))
    })
}
