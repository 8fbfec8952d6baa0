//! The server: binds its port, serves until told to stop, and ends in order.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use mangrove_graph::{Error, ErrorKind, Result};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::accept::accept;
use crate::admission::Capacity;
use crate::auth::Authenticator;
use crate::config::{Config, Limits};
use crate::engine::Engine;
use crate::meters::{Meters, Now};
use crate::origin::Browsers;
use crate::session::{ConnectionId, Sessions};
use crate::tls::Tls;
use crate::worker::Workers;

/// What all connections of a server share.
pub struct Shared {
    /// The graph engine.
    pub engine: Arc<dyn Engine>,
    /// The limits.
    pub limits: Limits,
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
    shutdown: watch::Receiver<bool>,
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

    /// Becomes true when the server is to stop.
    pub fn shutdown(&self) -> watch::Receiver<bool> {
        self.shutdown.clone()
    }

    /// To be held by a task that a shutdown waits for; `None` once the wait is over.
    pub fn alive(&self) -> Option<mpsc::Sender<()>> {
        self.alive.upgrade()
    }
}

/// A server that listens.
pub struct Server {
    listener: TcpListener,
    tls: Option<Tls>,
    shared: Arc<Shared>,
    stop: watch::Sender<bool>,
    alive: mpsc::Sender<()>,
    ended: mpsc::Receiver<()>,
}

impl Server {
    /// Checks the configuration and takes the port. Connections wait until [`serve`](Self::serve).
    pub async fn bind(config: Config, engine: Arc<dyn Engine>) -> Result<Server> {
        config.check()?;
        if let Some(risk) = config.risk() {
            tracing::warn!("{} can be reached from other machines and {risk}", config.listen);
        }
        let tls = config.tls.map(Tls::read).transpose()?;
        let meters = Arc::new(Meters::new());
        if config.browsers.allows_any() && config.users.is_none() {
            tracing::warn!(
                "allowed_origins is `*` and nobody is asked who they are: any page that a browser near here shows may read \
                 and change everything"
            );
        }
        let authenticator = config.users.map(|users| Authenticator::new(users, config.lockout, Arc::clone(&meters)));
        let authenticator = authenticator.transpose()?;
        let listener = TcpListener::bind(config.listen).await.map_err(|e| {
            Error::new(
                ErrorKind::Io,
                format!(
                    "cannot listen on {}: {e}; choose another address or port, or stop what uses it",
                    config.listen
                ),
            )
        })?;
        let (stop, shutdown) = watch::channel(false);
        let (alive, ended) = mpsc::channel(1);
        let limits = config.limits;
        let shared = Arc::new(Shared {
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
            limits,
        });
        Ok(Server { listener, tls, shared, stop, alive, ended })
    }

    /// Where it listens, the port included that was free.
    pub fn local_address(&self) -> Result<SocketAddr> {
        Ok(self.listener.local_addr()?)
    }

    /// Serves until `shutdown` completes. Then no connection is accepted and no request read anymore, running queries
    /// are given [`Limits::drain_max`] to finish and then cancelled, open transactions rolled back, and connections closed; what does not end within
    /// [`Limits::shutdown_grace`] is left behind with an error that says so.
    pub async fn serve(self, shutdown: impl Future<Output = ()> + Send + 'static) -> Result<()> {
        let Server { listener, tls, shared, stop, alive, mut ended } = self;
        let Limits { drain_max: drain, shutdown_grace: grace, .. } = shared.limits;
        let signal = async move {
            shutdown.await;
            stop.send_replace(true);
            // Held until here, so that a task that begins any time before can hold it too.
            drop(alive);
        };
        let signal = tokio::spawn(signal);
        let mut watches = JoinSet::new();
        if let Some(tls) = tls.clone() {
            watches.spawn(tls.watch());
        }
        if let Some(authenticator) = shared.authenticator.clone() {
            watches.spawn(authenticator.watch());
        }
        accept(listener, shared, tls).await;
        // It has sent the word that ended the loop; what is left of it takes no time.
        let _ = signal.await;
        timeout(drain.saturating_add(grace), ended.recv()).await.map(drop).map_err(|_| {
            Error::new(
                ErrorKind::Io,
                format!("connections were still open {} s after the server was stopped", (drain + grace).as_secs_f32()),
            )
        })
    }
}
