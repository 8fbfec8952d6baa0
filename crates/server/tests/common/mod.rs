//! A small engine whose behavior requests choose, and a client that speaks the wire protocol by hand.

#![allow(dead_code, reason = "each test program uses its part")]

pub mod client;
pub mod engine;
pub mod users_server;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use mangrove_graph::Result;
use mangrove_server::{Config, Limits, Server};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use self::client::Client;
use self::engine::FakeEngine;

/// A running server.
pub struct Running {
    pub address: SocketAddr,
    pub engine: Arc<FakeEngine>,
    stop: oneshot::Sender<()>,
    served: JoinHandle<Result<()>>,
}

impl Running {
    /// Starts a server on a free port.
    pub async fn start(change: impl FnOnce(&mut Limits)) -> Running {
        Running::configured(|config| change(&mut config.limits)).await
    }

    /// Starts a server with these limits on a free port.
    pub async fn configured(change: impl FnOnce(&mut Config)) -> Running {
        let mut config = Config::new("127.0.0.1:0".parse().unwrap());
        change(&mut config);
        let engine = Arc::new(FakeEngine::default());
        let server = Server::bind(config, engine.clone()).await.unwrap();
        let address = server.local_address().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let served = tokio::spawn(server.serve(async {
            let _ = stopped.await;
        }));
        Running { address, engine, stop, served }
    }

    /// A new connection.
    pub async fn connect(&self) -> Client {
        Client::connect(self.address).await
    }

    /// Shuts the server down in order.
    pub async fn stop(self) -> Result<()> {
        self.stop.send(()).unwrap();
        self.served.await.unwrap()
    }
}

/// A time longer than anything takes on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until a condition holds.
pub async fn eventually(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..PATIENCE.as_millis() / 10 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("never came true: {what}");
}

/// The answer to a request in plain HTTP: the whole answer if the connection is ended, otherwise the part that has come
/// a second after its first byte.
pub async fn http(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let first = tokio::time::timeout(PATIENCE, stream.read_buf(&mut answer)).await;
    assert!(first.is_ok(), "no answer within {PATIENCE:?} to {request}");
    let _ = tokio::time::timeout(Duration::from_secs(1), stream.read_to_end(&mut answer)).await;
    String::from_utf8_lossy(&answer).into_owned()
}
