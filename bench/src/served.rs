//! A database behind a server of its own, on the loopback interface.

use std::net::SocketAddr;
use std::sync::Arc;

use mangrove::{Database, Result};
use mangrove_server::{Config, DatabaseEngine, Server};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// What a query may hold; generous, for nothing here is meant to be refused.
const QUERY_MEMORY_BYTES: u64 = 4 << 30;

/// A running server. Dropping it stops it.
pub struct Served {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    serving: Option<JoinHandle<Result<()>>>,
    runtime: Runtime,
}

impl Served {
    /// Serves the database as `g` on a free port.
    pub fn start(database: &Database) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let engine = Arc::new(DatabaseEngine::new(QUERY_MEMORY_BYTES).source("g", database.clone()));
        let config = Config::new(SocketAddr::from(([127, 0, 0, 1], 0)));
        let server = runtime.block_on(Server::bind(config, engine))?;
        let address = server.local_address()?;
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = runtime.spawn(server.serve(async move { stopped.await.unwrap_or(()) }));
        Ok(Served { address, stop: Some(stop), serving: Some(serving), runtime })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(serving) = self.serving.take() {
            // What could go wrong at the end of a server has no bearing on what was measured before.
            drop(self.runtime.block_on(serving));
        }
    }
}
