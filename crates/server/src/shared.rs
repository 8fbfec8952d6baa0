//! The state that all connections and requests of a server share: engine, limits, worker threads, sessions, users and
//! metrics.
//!
//! A shutdown waits for every task that holds a sender of [`Shared::alive`]. [`Shared`] itself holds it weakly, so that
//! the last task ends the wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use mangrove_graph::MemoryBudget;
use tokio::sync::mpsc;

use crate::access::auth::Authenticator;
use crate::access::caller::Caller;
use crate::access::origin::Browsers;
use crate::answers::sink::ChannelSink;
use crate::connections::permits::ConnectionPermits;
use crate::engine::contract::Engine;
use crate::limits::Limits;
use crate::metrics::meters::{GaugeValues, Meters};
use crate::reloadable::Reloadable;
use crate::requests::program::{Evaluation, Program};
use crate::requests::sessions::{ConnectionId, Sessions};
use crate::requests::worker::{RequestWatch, Workers};
use crate::shutdown::Shutdown;
use crate::status::Failure;

/// The state that all connections of a server share.
pub struct Shared {
    /// The graph engine.
    pub engine: Arc<dyn Engine>,
    /// The memory budget of the process.
    pub budget: MemoryBudget,
    /// The limits.
    pub limits: Reloadable<Limits>,
    /// True if the server listens on a loopback address.
    pub is_loopback: bool,
    /// The web pages and host names by which browsers may use the server.
    pub browsers: Browsers,
    /// The threads the engine runs on.
    pub workers: Workers,
    /// The open sessions.
    pub sessions: Sessions,
    /// Checks logins; `None` on a server without users.
    pub authenticator: Option<Arc<Authenticator>>,
    /// The metrics of the server.
    pub meters: Arc<Meters>,
    /// The permits for connections.
    pub permits: ConnectionPermits,
    pub(crate) connection_count: AtomicU64,
    /// The phase of the shutdown.
    pub(crate) shutdown: Shutdown,
    /// The sender that tasks hold while the shutdown must wait for them.
    pub(crate) alive: mpsc::WeakSender<()>,
}

impl Shared {
    /// The current values of the gauges.
    pub fn now(&self) -> GaugeValues {
        GaugeValues {
            connections: self.permits.taken_count(),
            sessions: self.sessions.open_count(),
            workers: self.workers.busy_count(),
            workers_max: self.workers.count(),
            connections_max: self.permits.count(),
            lockouts: self.authenticator.as_ref().map_or((0, 0), |authenticator| authenticator.refused_counts()),
        }
    }

    /// A number that no other connection of this server has.
    pub fn next_connection_id(&self) -> ConnectionId {
        self.connection_count.fetch_add(1, Ordering::Relaxed)
    }

    /// The phase of the shutdown, to read or to wait for.
    pub fn shutdown(&self) -> Shutdown {
        self.shutdown.clone()
    }

    /// A sender to be held by a task that the shutdown waits for; `None` once the wait is over.
    pub fn alive(&self) -> Option<mpsc::Sender<()>> {
        self.alive.upgrade()
    }

    /// Runs a request outside a session on a worker thread. Its results go to the sink.
    pub async fn run(
        &self,
        caller: Caller,
        evaluation: Evaluation,
        watch: &mut RequestWatch,
        sink: ChannelSink,
    ) -> Result<(), Failure> {
        let engine = Arc::clone(&self.engine);
        let cancellation = watch.cancellation.clone();
        let retry_count_max = self.limits.get().conflict_retry_count_max;
        let outcome = self.workers.run(watch, move || {
            Program::compile(evaluation, &caller, engine.as_ref(), &cancellation)?.run(
                engine.as_ref(),
                retry_count_max,
                sink,
            )
        });
        outcome.await
    }
}
