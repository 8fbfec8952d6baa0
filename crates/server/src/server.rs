//! The server: binds its port, serves until told to stop, and ends in order.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use mangrove_graph::{Error, ErrorKind, MemoryBudget, Result};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::accept::accept;
use crate::admission::Capacity;
use crate::auth::Authenticator;
use crate::config::{Config, Limits};
use crate::engine::Engine;
use crate::live::Live;
use crate::meters::{Meters, Now};
use crate::origin::Browsers;
use crate::read_only;
use crate::session::{ConnectionId, Sessions};
use crate::shutdown::{Phase, Shutdown};
use crate::starting::Starting;
use crate::tls::Tls;
use crate::worker::Workers;

/// What all connections of a server share.
pub struct Shared {
    /// The graph engine.
    pub engine: Arc<dyn Engine>,
    /// The memory budget of the process.
    pub budget: MemoryBudget,
    /// The limits.
    pub limits: Live<Limits>,
    /// Whether the server listens on a loopback address.
    pub is_loopback: bool,
    /// Which pages and names browsers may use it by.
    pub browsers: Browsers,
    /// The threads the engine runs on.
    pub workers: Workers,
    /// The open sessions.
    pub sessions: Sessions,
    /// Who may come in, where the server asks.
    pub authenticator: Option<Arc<Authenticator>>,
    /// What the server counts of itself.
    pub meters: Arc<Meters>,
    /// Places for connections.
    pub capacity: Capacity,
    connection_count: AtomicU64,
    shutdown: Shutdown,
    /// Held, in copies, by the tasks a shutdown waits for. Weak here, so that the last of them ends the wait.
    alive: mpsc::WeakSender<()>,
}

impl Shared {
    /// How things stand, for gauges.
    pub fn now(&self) -> Now {
        Now {
            connections: self.capacity.taken_count(),
            sessions: self.sessions.open_count(),
            workers: self.workers.busy_count(),
            workers_max: self.workers.count(),
            connections_max: self.capacity.count(),
            lockouts: self.authenticator.as_ref().map_or((0, 0), |authenticator| authenticator.refused_counts()),
        }
    }

    /// A number no other connection has.
    pub fn next_connection_id(&self) -> ConnectionId {
        self.connection_count.fetch_add(1, Ordering::Relaxed)
    }

    /// How far the end of the server is.
    pub fn shutdown(&self) -> Shutdown {
        self.shutdown.clone()
    }

    /// To be held by a task that a shutdown waits for; `None` once the wait is over.
    pub fn alive(&self) -> Option<mpsc::Sender<()>> {
        self.alive.upgrade()
    }
}

/// The limits of a server that runs.
#[derive(Clone)]
pub struct LiveLimits(Arc<Shared>);

impl LiveLimits {
    /// Changes them for requests, sessions and connections that begin after that. How many there may be at once stays as it is.
    pub fn set(&self, limits: Limits) {
        self.0.limits.set(limits);
    }
}

/// A server that listens.
pub struct Server {
    listener: TcpListener,
    tls: Option<Tls>,
    shared: Arc<Shared>,
    stop: watch::Sender<Phase>,
    alive: mpsc::Sender<()>,
    ended: mpsc::Receiver<()>,
}

impl Server {
    /// Checks the configuration and takes the port. Connections wait until [`serve`](Self::serve).
    pub async fn bind(config: Config, engine: Arc<dyn Engine>) -> Result<Server> {
        Starting::listen(config).await?.ready(engine).await
    }

    /// A server of a port that was taken.
    pub(crate) fn new(
        config: Config,
        tls: Option<Tls>,
        authenticator: Option<Authenticator>,
        meters: Arc<Meters>,
        listener: TcpListener,
        engine: Arc<dyn Engine>,
    ) -> Server {
        if let Some(risk) = config.risk() {
            tracing::warn!("{} can be reached from other machines and {risk}", config.listen);
        }
        if config.browsers.allows_any() && config.users.is_none() {
            tracing::warn!(
                "allowed_origins is `*` and nobody is asked who they are: any page that a browser near here shows may read \
                 and change everything"
            );
        }
        let (stop, shutdown) = Shutdown::new();
        let (alive, ended) = mpsc::channel(1);
        let limits = config.limits;
        let shared = Arc::new(Shared {
            budget: engine.memory_budget(),
            engine,
            authenticator: authenticator.map(Arc::new),
            meters,
            is_loopback: config.listen.ip().is_loopback(),
            browsers: config.browsers,
            workers: Workers::new(limits.worker_count_max),
            sessions: Sessions::new(&limits),
            capacity: Capacity::new(&limits),
            connection_count: AtomicU64::new(0),
            shutdown,
            alive: alive.downgrade(),
            limits: Live::new(limits),
        });
        Server { listener, tls, shared, stop, alive, ended }
    }

    /// Where it listens, the port included that was free.
    pub fn local_address(&self) -> Result<SocketAddr> {
        Ok(self.listener.local_addr()?)
    }

    /// Its limits.
    pub fn limits(&self) -> LiveLimits {
        LiveLimits(Arc::clone(&self.shared))
    }

    /// Serves until `shutdown` completes, and for [`Limits::closing_min`] after that. Then no request is read anymore, new
    /// connections are told how the server is and refused everything else, and requests that run are given
    /// [`Limits::drain_max`] to finish. Those that remain are cancelled and answered, open transactions rolled back, and
    /// connections closed. An error says that requests did not notice that within [`Limits::shutdown_grace`], and were left
    /// behind.
    pub async fn serve(self, shutdown: impl Future<Output = ()> + Send + 'static) -> Result<()> {
        let Server { listener, tls, shared, stop, alive, mut ended } = self;
        let mut tasks = JoinSet::new();
        if let Some(tls) = tls.clone() {
            tasks.spawn(tls.watch());
        }
        if let Some(authenticator) = shared.authenticator.clone() {
            tasks.spawn(authenticator.watch());
        }
        tasks.spawn(read_only::watch(Arc::clone(&shared.engine)));
        tasks.spawn(accept(listener, Arc::clone(&shared), tls));
        shutdown.await;
        let Limits { closing_min, drain_max, farewell_max, shutdown_grace, .. } = *shared.limits.get();
        stop.send_replace(Phase::Closing);
        tokio::time::sleep(closing_min).await;
        stop.send_replace(Phase::Draining);
        // Held until here, so that a task that begins any time before can hold it too.
        drop(alive);
        let mut waited = Duration::ZERO;
        for (next, length) in [(Phase::Cancelling, drain_max), (Phase::Cutting, farewell_max)] {
            if timeout(length, ended.recv()).await.is_ok() {
                return end(tasks).await;
            }
            if next == Phase::Cancelling {
                let running = shared.workers.busy_count();
                tracing::warn!(running, "requests still run after {drain_max:?} (drain_seconds); they are cancelled");
            }
            stop.send_replace(next);
            waited += length;
        }
        let is_over = timeout(shutdown_grace, ended.recv()).await.is_ok();
        waited += shutdown_grace;
        end(tasks).await?;
        match is_over {
            true => Ok(()),
            false => Err(Error::new(
                ErrorKind::Io,
                format!(
                    "requests still ran {} s after the server was stopped; they were left behind",
                    waited.as_secs_f32()
                ),
            )),
        }
    }
}

/// Ends what goes on beside the connections; then nothing listens anymore.
async fn end(mut tasks: JoinSet<()>) -> Result<()> {
    tasks.shutdown().await;
    Ok(())
}
