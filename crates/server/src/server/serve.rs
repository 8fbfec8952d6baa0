//! The running server: it serves until it is told to stop, and ends in the order of `shutdown`.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use mangrove_graph::{Error, ErrorKind, Result};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::access::auth::Authenticator;
use crate::config::Config;
use crate::connections::permits::ConnectionPermits;
use crate::connections::tls::Tls;
use crate::engine::contract::Engine;
use crate::limits::Limits;
use crate::metrics::meters::Meters;
use crate::reloadable::Reloadable;
use crate::requests::sessions::Sessions;
use crate::requests::worker::Workers;
use crate::server::accept::accept;
use crate::server::read_only;
use crate::shared::Shared;
use crate::shutdown::{Shutdown, ShutdownPhase};

/// The limits of a running server.
#[derive(Clone)]
pub struct ReloadableLimits(Arc<Shared>);

impl ReloadableLimits {
    /// Replaces the limits for requests, sessions and connections that begin later. The limits on their numbers stay as
    /// they are.
    pub fn set(&self, limits: Limits) {
        self.0.limits.set(limits);
    }
}

/// A server that has its port and its graphs.
pub struct Server {
    listener: TcpListener,
    tls: Option<Tls>,
    shared: Arc<Shared>,
    stop: watch::Sender<ShutdownPhase>,
    alive: mpsc::Sender<()>,
    ended: mpsc::Receiver<()>,
}

impl Server {
    /// Makes a server of its parts.
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
                "allowed_origins is `*` and there is no authentication: any page in a browser that reaches this \
                 server may \
                 read and change everything; set users_file, or list the allowed origins"
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
            permits: ConnectionPermits::new(&limits),
            connection_count: AtomicU64::new(0),
            shutdown,
            alive: alive.downgrade(),
            limits: Reloadable::new(limits),
        });
        Server { listener, tls, shared, stop, alive, ended }
    }

    /// The address on which the server listens, with the actual port.
    pub fn local_address(&self) -> Result<SocketAddr> {
        Ok(self.listener.local_addr()?)
    }

    /// The limits, to be replaced.
    pub fn limits(&self) -> ReloadableLimits {
        ReloadableLimits(Arc::clone(&self.shared))
    }

    /// Serves until `shutdown` completes, and for [`Limits::closing_min`] after that. Then the server reads no more
    /// requests, and new connections only get `/health`. Running requests get [`Limits::drain_max`] to finish. The
    /// remaining ones are cancelled and answered, open transactions are rolled back, and connections are closed. An
    /// error means that requests did not notice their cancellation within [`Limits::shutdown_grace`], and were left
    /// running.
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
        stop.send_replace(ShutdownPhase::Closing);
        tokio::time::sleep(closing_min).await;
        stop.send_replace(ShutdownPhase::Draining);
        // Dropped only here, so that tasks that began before this phase could still clone it.
        drop(alive);
        let mut waited = Duration::ZERO;
        for (next, length) in [(ShutdownPhase::Cancelling, drain_max), (ShutdownPhase::Cutting, farewell_max)] {
            if timeout(length, ended.recv()).await.is_ok() {
                return end(tasks).await;
            }
            if next == ShutdownPhase::Cancelling {
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

/// Ends the background tasks and the accept loop.
async fn end(mut tasks: JoinSet<()>) -> Result<()> {
    tasks.shutdown().await;
    Ok(())
}
