//! The phases of the server's end.
//!
//! ```text
//! Serving ──► Closing ──► Draining ──► Cancelling ──► Cutting
//! ```
//!
//! Only `server::serve` moves to the next phase; requests and connections watch. From `Closing` on `/health` says
//! `closing`. It answers until the last phase, since the server accepts connections until it has ended.

use tokio::sync::watch;

/// A phase of the server's end. Phases are ordered and only advance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ShutdownPhase {
    /// The server takes requests.
    Serving,
    /// The server still takes requests, and `/health` announces the end (`Limits::closing_min`).
    Closing,
    /// The server takes no new requests. Running ones may finish (`Limits::drain_max`).
    Draining,
    /// Requests that still run are cancelled (`Limits::farewell_max` for their answers).
    Cancelling,
    /// Connections whose clients have not read their answers are cut off.
    Cutting,
}

/// A view of the current phase, for tasks that wait for it. Cloning is cheap.
#[derive(Clone, Debug)]
pub struct Shutdown(watch::Receiver<ShutdownPhase>);

impl Shutdown {
    /// Phase `Serving`, and the sender that advances it.
    pub fn new() -> (watch::Sender<ShutdownPhase>, Shutdown) {
        let (sender, receiver) = watch::channel(ShutdownPhase::Serving);
        (sender, Shutdown(receiver))
    }

    /// The current phase.
    pub fn phase(&self) -> ShutdownPhase {
        *self.0.borrow()
    }

    /// Waits for this phase or a later one.
    pub async fn reached(&mut self, phase: ShutdownPhase) {
        // The sender is dropped with the server, which is an end as well.
        let _ = self.0.wait_for(|now| *now >= phase).await;
    }
}
