//! The end of a server, in steps.
//!
//! ```text
//! Serving ──► Closing ──► Draining ──► Cancelling ──► Cutting
//! ```
//!
//! The server alone goes on to the next step ([`crate::server`]); requests and connections watch. From the second step
//! on `/health` says `closing`. It does so to the last, since the server accepts connections until it has ended.

use tokio::sync::watch;

/// How far the end of the server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// The server takes requests.
    Serving,
    /// It still does, and says that it will not for long ([`crate::Limits::closing_min`]).
    Closing,
    /// It takes no new requests. Those that run may finish ([`crate::Limits::drain_max`]).
    Draining,
    /// Requests that still run are cancelled.
    Cancelling,
    /// Connections whose clients have not taken their answers are cut off.
    Cutting,
}

/// The side that watches. Cloning is cheap.
#[derive(Clone, Debug)]
pub struct Shutdown(watch::Receiver<Phase>);

impl Shutdown {
    /// A server that takes requests, and the means to end it.
    pub fn new() -> (watch::Sender<Phase>, Shutdown) {
        let (sender, receiver) = watch::channel(Phase::Serving);
        (sender, Shutdown(receiver))
    }

    /// How far it is.
    pub fn phase(&self) -> Phase {
        *self.0.borrow()
    }

    /// Waits until it is as far as this.
    pub async fn reached(&mut self, phase: Phase) {
        // The sender is dropped when the server is: that is its end, too.
        let _ = self.0.wait_for(|now| *now >= phase).await;
    }
}
