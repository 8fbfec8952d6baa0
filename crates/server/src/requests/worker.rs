//! Worker threads: engine work on blocking threads, bounded in number and watched from outside.
//!
//! The engine is synchronous, so its work runs on tokio's blocking threads. A semaphore bounds their number for the
//! whole server. A request waits for a permit in order of arrival, and the wait counts towards its time limit. If the
//! deadline passes or the connection is lost, the watching task fires the [`Cancellation`] and goes on waiting for the
//! engine.
//!
//! - **SERVER-8.** A worker's permit stands for a thread in use: it is released when the work has returned, never
//!   before.
//!
//! A panic in the engine ends one request with [`ErrorKind::Bug`](mangrove_graph::ErrorKind::Bug). The unwinding drops
//! the transaction, which rolls it back. Log lines of the engine are inside the span of the request.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use mangrove_graph::{Error, Result};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinError;
use tokio::time::{Instant, sleep_until};
use tracing::Span;

use crate::access::auth::HASHING_COUNT_MAX;
use crate::engine::cancel::{CancelReason, Cancellation};
use crate::limits::Limits;
use crate::shutdown::{Shutdown, ShutdownPhase};
use crate::status::Failure;

/// Messages up to this size are decoded on the thread that has read them, because waking another takes longer.
const DECODED_HERE_BYTES_MAX: usize = 16 << 10;

/// The number of blocking threads that a runtime needs for a server with these limits.
///
/// A thread stays busy for a short time after it has released its permit, and meanwhile the runtime may start another
/// for the next request. Without this bound a runtime grows to hundreds of threads, each with memory that the allocator
/// keeps for it.
pub fn blocking_thread_count(limits: &Limits) -> usize {
    limits.worker_count_max.min(Semaphore::MAX_PERMITS) + decoder_count() + HASHING_COUNT_MAX
}

/// Long messages that are decoded at once: one for each core.
fn decoder_count() -> usize {
    std::thread::available_parallelism().map_or(1, |count| count.get())
}

/// The bounded pool of worker threads. Cloning is cheap.
#[derive(Clone, Debug)]
pub struct Workers {
    permits: Arc<Semaphore>,
    count: usize,
    decoders: Arc<Semaphore>,
}

/// Watches one request, and cancels it at its deadline, with its connection, or at shutdown.
#[derive(Clone, Debug)]
pub struct RequestWatch {
    /// Fired when one of them happens.
    pub cancellation: Cancellation,
    /// The deadline, and the limit that it comes from, counted from the request's arrival.
    deadline: Option<(Instant, Duration)>,
    /// Becomes true when the connection is lost.
    gone: watch::Receiver<bool>,
    shutdown: Shutdown,
}

impl RequestWatch {
    /// Starts a watch, with the time limit counted from now.
    pub fn start(timeout: Option<Duration>, gone: watch::Receiver<bool>, shutdown: Shutdown) -> Self {
        let deadline = timeout.and_then(|limit| Some((Instant::now().checked_add(limit)?, limit)));
        RequestWatch { cancellation: Cancellation::new(), deadline, gone, shutdown }
    }

    /// Fires the cancellation if the watching task is dropped.
    fn guard(&self) -> FireOnDrop {
        FireOnDrop(self.cancellation.clone())
    }

    /// Waits for the deadline, the loss of the connection, or the phase `Cancelling`, whichever comes first, and fires
    /// the cancellation.
    async fn fire(&mut self) -> CancelReason {
        let reason = tokio::select! {
            limit = passed(self.deadline) => CancelReason::Timeout(limit),
            // The sender is dropped when the connection's task ends, which means the same.
            _ = self.gone.wait_for(|gone| *gone) => CancelReason::Gone,
            () = self.shutdown.reached(ShutdownPhase::Cancelling) => CancelReason::Stopped,
        };
        self.cancellation.fire(reason);
        reason
    }
}

/// Fires when it is dropped: the watching task is dropped when the runtime ends.
struct FireOnDrop(Cancellation);

impl Drop for FireOnDrop {
    fn drop(&mut self) {
        self.0.fire(CancelReason::Gone);
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
    /// A pool of `count` threads.
    pub fn new(count: usize) -> Self {
        let count = count.min(Semaphore::MAX_PERMITS);
        Workers { permits: Arc::new(Semaphore::new(count)), count, decoders: Arc::new(Semaphore::new(decoder_count())) }
    }

    /// The number of workers.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Decodes a message of this size: a short one on this thread, a long one on a blocking thread. Decoders have
    /// permits of their own, one for each core, so that queries do not delay them.
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

    /// The number of workers in use.
    pub fn busy_count(&self) -> usize {
        self.count - self.permits.available_permits()
    }

    /// Runs `work` when a worker is free. If the cancellation of `watch` fires before that, the work does not begin.
    pub async fn run<T: Send + 'static>(
        &self,
        watch: &mut RequestWatch,
        work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let permit = tokio::select! {
            // Biased: work that is already cancelled must not begin.
            biased;
            reason = watch.fire() => return Err(reason.error().into()),
            permit = Arc::clone(&self.permits).acquire_owned() => permit.expect("the semaphore is never closed"),
        };
        let span = Span::current();
        let mut running = tokio::task::spawn_blocking(move || {
            let outcome = span.in_scope(work);
            // SERVER-8: the thread is free for other work now.
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

    /// Runs `work` when a worker is free, without a watch: for work that must be done, such as rolling a transaction
    /// back.
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

/// The error for work that panicked.
fn bug(error: JoinError) -> Error {
    let words = match error.try_into_panic() {
        Ok(payload) => panic_message(payload.as_ref()),
        Err(_) => "its thread was stopped".to_owned(),
    };
    tracing::error!(panic = %words, "a query panicked; the server goes on");
    Error::bug(format!(
        "the query met a bug in the database and was undone ({words}); please report it with the query. The server \
         goes on."
    ))
}

fn panic_message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message").to_owned()
}
