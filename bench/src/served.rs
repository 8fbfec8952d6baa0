//! A database with a server on the loopback interface.

use std::net::SocketAddr;
use std::sync::Arc;

use mangrove::{Database, Isolation, Result};
use mangrove_server::{Config, DatabaseEngine, Server};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// The memory limit of a query, large enough that no query of a benchmark is refused.
const QUERY_MEMORY_BYTES: u64 = 4 << 30;

/// The traversal source with this isolation level; `mangrove serve` uses the same names.
pub fn source(isolation: Isolation) -> &'static str {
    if isolation == Isolation::Snapshot { "gsi" } else { "g" }
}

/// A running server. Dropping it stops it.
pub struct Served {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    serving: Option<JoinHandle<Result<()>>>,
    runtime: Runtime,
}

impl Served {
    /// Serves the database on a free port, with the traversal sources of [`source`].
    pub fn start(database: &Database) -> Result<Self> {
        Self::start_with(database, |_| {})
    }

    /// As [`Served::start`], with a change of the configuration of the server.
    pub fn start_with(database: &Database, change: impl FnOnce(&mut Config)) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let engine = [Isolation::Serializable, Isolation::Snapshot]
            .into_iter()
            .fold(DatabaseEngine::new(QUERY_MEMORY_BYTES), |engine, isolation| {
                engine.source_with(source(isolation), database.clone(), isolation)
            });
        let engine = Arc::new(engine);
        let mut config = Config::new(SocketAddr::from(([127, 0, 0, 1], 0)));
        change(&mut config);
        let server = runtime.block_on(Server::bind(config, engine))?;
        let address = server.local_address()?;
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = runtime.spawn(server.serve(async move { stopped.await.unwrap_or(()) }));
        Ok(Served { address, stop: Some(stop), serving: Some(serving), runtime })
    }

    /// The address on which it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(serving) = self.serving.take() {
            // An error at the shutdown of the server does not affect what was measured before.
            drop(self.runtime.block_on(serving));
        }
    }
}
