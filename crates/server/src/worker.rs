//! Engine work on blocking threads, bounded in number and watched over.
//!
//! The engine is synchronous, so everything that touches it runs on one of tokio's blocking threads. A
//! semaphore bounds how many do at once on the whole server; a request waits for its turn in order of
//! arrival, and the wait counts towards its time limit. The watching task never abandons a thread: when
//! the deadline passes or the connection is lost it fires the [`Cancellation`] and goes on waiting until
//! the engine has noticed, so a permit always stands for a thread that is really in use.
//!
//! What the engine logs on its thread is inside the span of the request that asked ([`crate::trace`]).
//!
//! A panic in the engine ends the one request with [`ErrorKind::Bug`](mangrove_graph::ErrorKind::Bug):
//! the unwinding drops the transaction it was in, which rolls it back.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use mangrove_graph::{Error, Result};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinError;
use tokio::time::{Instant, sleep_until};
use tracing::Span;

use crate::auth::HASHING_COUNT_MAX;
use crate::cancel::{Cancellation, Reason};
use crate::config::Limits;
use crate::shutdown::{Phase, Shutdown};
use crate::status::Failure;

/// Messages up to this size are decoded on the thread that has read them: that takes less time than to wake another.
const DECODED_HERE_BYTES_MAX: usize = 16 << 10;

/// How many blocking threads a runtime needs for a server with these limits.
///
/// A thread is busy a moment longer than it has its permit, and meanwhile the runtime starts another for the next request. A
/// runtime without this as its bound comes to hundreds of threads, and to what the allocator keeps for each.
pub fn blocking_thread_count(limits: &Limits) -> usize {
    limits.worker_count_max.min(Semaphore::MAX_PERMITS) + decoder_count() + HASHING_COUNT_MAX
}

/// As many long messages as this are decoded at once: as there are cores.
fn decoder_count() -> usize {
    std::thread::available_parallelism().map_or(1, |count| count.get())
}

/// The bounded pool of threads.
#[derive(Clone, Debug)]
pub struct Workers {
    permits: Arc<Semaphore>,
    count: usize,
    decoders: Arc<Semaphore>,
}

/// What ends one request early.
#[derive(Clone, Debug)]
pub struct Watch {
    /// Fired when something does.
    pub cancellation: Cancellation,
    /// When, and which limit that is; counted from the request's arrival.
    deadline: Option<(Instant, Duration)>,
    /// Becomes true when the connection is lost.
    gone: watch::Receiver<bool>,
    shutdown: Shutdown,
}

impl Watch {
    /// A watch that starts now.
    pub fn start(timeout: Option<Duration>, gone: watch::Receiver<bool>, shutdown: Shutdown) -> Self {
        let deadline = timeout.and_then(|limit| Some((Instant::now().checked_add(limit)?, limit)));
        Watch { cancellation: Cancellation::new(), deadline, gone, shutdown }
    }

    /// Fires when it is dropped: a task that is not there anymore cannot watch.
    fn guard(&self) -> FireOnDrop {
        FireOnDrop(self.cancellation.clone())
    }

    /// Fires the cancellation at the deadline, when the connection is lost or when the server cancels what runs, whichever
    /// comes first.
    async fn fire(&mut self) -> Reason {
        let reason = tokio::select! {
            limit = passed(self.deadline) => Reason::Timeout(limit),
            // The sender is dropped when the connection's task ends: that, too, means gone.
            _ = self.gone.wait_for(|gone| *gone) => Reason::Gone,
            () = self.shutdown.reached(Phase::Cancelling) => Reason::Stopped,
        };
        self.cancellation.fire(reason);
        reason
    }
}

/// Stops the query when the task that watched over it is dropped, as it is when the runtime ends.
struct FireOnDrop(Cancellation);

impl Drop for FireOnDrop {
    fn drop(&mut self) {
        self.0.fire(Reason::Gone);
    }
}

async fn passed(deadline: Option<(Instant, Duration)>) -> Duration {
    match deadline {
        Some((at, limit)) => {
            sleep_until(at).await;
            limit
        }
        None => std::future::pending().await,
    }
}

impl Workers {
    /// A pool of so many.
    pub fn new(count: usize) -> Self {
        let count = count.min(Semaphore::MAX_PERMITS);
        Workers { permits: Arc::new(Semaphore::new(count)), count, decoders: Arc::new(Semaphore::new(decoder_count())) }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Decodes a message of so many bytes: a short one here, a long one on a thread of its own kind, as many of which run at
    /// once as there are cores. Queries do not hold them up.
    pub async fn decode<T: Send + 'static>(
        &self,
        bytes: usize,
        decode: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T> {
        if bytes <= DECODED_HERE_BYTES_MAX {
            return Ok(decode());
        }
        let permit = Arc::clone(&self.decoders).acquire_owned().await.expect("the semaphore is never closed");
        let decoding = tokio::task::spawn_blocking(move || {
            let decoded = decode();
            drop(permit);
            decoded
        });
        decoding.await.map_err(bug)
    }

    /// How many are in use.
    pub fn busy_count(&self) -> usize {
        self.count - self.permits.available_permits()
    }

    /// Runs `work` when a thread is free. The cancellation of `watch` may fire while it runs; when it
    /// fires before, the work is not begun.
    pub async fn run<T: Send + 'static>(
        &self,
        watch: &mut Watch,
        work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let permit = tokio::select! {
            // Biased: what is already cancelled must not begin.
            biased;
            reason = watch.fire() => return Err(reason.error().into()),
            permit = Arc::clone(&self.permits).acquire_owned() => permit.expect("the semaphore is never closed"),
        };
        let span = Span::current();
        let mut running = tokio::task::spawn_blocking(move || {
            let outcome = span.in_scope(work);
            drop(permit);
            outcome
        });
        let guard = watch.guard();
        let joined = tokio::select! {
            joined = &mut running => joined,
            _ = watch.fire() => running.await,
        };
        let explained = |failure| guard.0.explain(failure);
        match joined {
            Ok(outcome) => outcome.map_err(explained),
            Err(e) => Err(bug(e).into()),
        }
    }

    /// Runs `work` when a thread is free, whatever happens meanwhile: for what must be done, like undoing a
    /// transaction.
    pub async fn finish<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
        let permit = Arc::clone(&self.permits).acquire_owned().await.expect("the semaphore is never closed");
        let span = Span::current();
        let running = tokio::task::spawn_blocking(move || {
            let outcome = span.in_scope(work);
            drop(permit);
            outcome
        });
        running.await.map_err(bug)
    }
}

/// The error for work that did not return.
fn bug(error: JoinError) -> Error {
    let words = match error.try_into_panic() {
        Ok(payload) => panic_message(payload.as_ref()),
        Err(_) => "its thread was stopped".to_owned(),
    };
    tracing::error!(panic = %words, "a query panicked; the server goes on");
    Error::bug(format!(
        "the query met a bug in the database and was undone ({words}); please report it with the query. The server goes on."
    ))
}

fn panic_message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message").to_owned()
}
