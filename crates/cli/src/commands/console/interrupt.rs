//! Ctrl-C while a query runs.
//!
//! A thread waits for the signal and calls the stop function of the running query. Between queries the editor reads the
//! key itself, and no signal comes. The thread ends with its [`Interrupts`].

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use mangrove::{Error, ErrorKind, Result};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;

/// The action of Ctrl-C. The argument is the number of times that it was pressed before.
pub type Stop = Box<dyn FnMut(usize) + Send>;

/// Handles Ctrl-C for running queries.
pub struct Interrupts {
    current: Arc<Mutex<Option<(Stop, usize)>>>,
    over: Arc<Notify>,
    thread: Option<JoinHandle<()>>,
}

impl Interrupts {
    /// Starts the thread.
    pub fn start() -> Result<Self> {
        let failed = |e: std::io::Error| Error::new(ErrorKind::Io, format!("Ctrl-C cannot be taken: {e}"));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let mut signals = {
            let _inside = runtime.enter();
            signal(SignalKind::interrupt()).map_err(failed)?
        };
        let current: Arc<Mutex<Option<(Stop, usize)>>> = Arc::default();
        let over = Arc::new(Notify::new());
        let (seen, ended) = (Arc::clone(&current), Arc::clone(&over));
        let wait = move || {
            loop {
                let is_over = runtime.block_on(async {
                    tokio::select! {
                        () = ended.notified() => true,
                        _ = signals.recv() => false,
                    }
                });
                if is_over {
                    return;
                }
                // Called outside the runtime, because stopping a query may take a connection of its own.
                if let Some((stop, presses)) = &mut *seen.lock().unwrap_or_else(PoisonError::into_inner) {
                    stop(*presses);
                    *presses += 1;
                }
            }
        };
        let thread = std::thread::Builder::new().name("interrupts".to_owned()).spawn(wait).map_err(failed)?;
        Ok(Interrupts { current, over, thread: Some(thread) })
    }

    /// Runs `work`, which Ctrl-C stops.
    pub fn during<T>(&self, stop: Stop, work: impl FnOnce() -> T) -> T {
        self.set(Some((stop, 0)));
        let done = work();
        self.set(None);
        done
    }

    fn set(&self, stop: Option<(Stop, usize)>) {
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = stop;
    }
}

impl Drop for Interrupts {
    fn drop(&mut self) {
        self.over.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
