//! The port while the graphs are opened: it answers that the server is starting.
//!
//! Recovery takes as long as the log is. Monitoring sees from the beginning that the process is there, and when it
//! takes requests: `/health` answers `starting`, and everything else is refused, both with status 503.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::http::header::{CONNECTION, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use mangrove_graph::{Error, ErrorKind, Result};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::access::auth::Authenticator;
use crate::config::Config;
use crate::connections::tls::Tls;
use crate::engine::contract::Engine;
use crate::http::router::HEALTH;
use crate::metrics::meters::Meters;
use crate::server::serve::Server;

/// Connections at once; further ones wait.
const CONNECTION_COUNT_MAX: usize = 64;

/// The longest time of a connection, from its first byte to its last.
const CONNECTION_TIME_MAX: Duration = Duration::from_secs(10);

/// A server with its port and without its graphs.
pub struct Starting {
    config: Config,
    tls: Option<Tls>,
    authenticator: Option<Authenticator>,
    meters: Arc<Meters>,
    listener: Arc<TcpListener>,
    /// The task that answers; it ends when this is dropped.
    answering: JoinSet<()>,
}

impl Starting {
    /// Checks the configuration, reads certificate and users, takes the port, and begins to answer there.
    pub async fn listen(config: Config) -> Result<Starting> {
        config.check()?;
        let tls = config.tls.clone().map(Tls::read).transpose()?;
        let meters = Arc::new(Meters::new());
        let users = config.users.clone();
        let authenticator = users.map(|users| Authenticator::new(users, config.lockout, Arc::clone(&meters)));
        let authenticator = authenticator.transpose()?;
        let listener = TcpListener::bind(config.listen).await.map_err(|e| {
            let listen = config.listen;
            let message =
                format!("cannot listen on {listen}: {e}; choose another address or port, or stop what uses it");
            Error::new(ErrorKind::Io, message)
        })?;
        let listener = Arc::new(listener);
        let mut answering = JoinSet::new();
        answering.spawn(answer_all(Arc::clone(&listener), tls.clone()));
        Ok(Starting { config, tls, authenticator, meters, listener, answering })
    }

    /// The address on which the server listens, with the actual port.
    pub fn local_address(&self) -> Result<SocketAddr> {
        Ok(self.listener.local_addr()?)
    }

    /// Goes on with the opened graphs. New connections wait for [`Server::serve`].
    pub async fn ready(self, engine: Arc<dyn Engine>) -> Result<Server> {
        let Starting { config, tls, authenticator, meters, listener, mut answering } = self;
        answering.shutdown().await;
        let listener = Arc::into_inner(listener).ok_or_else(|| Error::bug("the port is still answered for"))?;
        Ok(Server::new(config, tls, authenticator, meters, listener, engine))
    }
}

impl Server {
    /// Checks the configuration and takes the port. Connections wait until [`serve`](Server::serve).
    pub async fn bind(config: Config, engine: Arc<dyn Engine>) -> Result<Server> {
        Starting::listen(config).await?.ready(engine).await
    }
}

async fn answer_all(listener: Arc<TcpListener>, tls: Option<Tls>) {
    let permits = Arc::new(Semaphore::new(CONNECTION_COUNT_MAX));
    let mut connections = JoinSet::new();
    loop {
        let permit = Arc::clone(&permits).acquire_owned().await;
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        while connections.try_join_next().is_some() {}
        let tls = tls.clone();
        connections.spawn(async move {
            let _permit = permit;
            // A client that takes longer gets no answer.
            let _ = timeout(CONNECTION_TIME_MAX, answer(stream, tls)).await;
        });
    }
}

async fn answer(mut stream: TcpStream, tls: Option<Tls>) {
    match tls {
        None => http(stream).await,
        Some(tls) => {
            if let Ok(false) = Tls::has_refused_plain(&mut stream).await
                && let Ok(stream) = tls.accept(stream).await
            {
                http(stream).await;
            }
        }
    }
}

async fn http(stream: impl AsyncRead + AsyncWrite + Unpin) {
    let service = service_fn(async |request: Request<Incoming>| {
        let body = match request.uri().path() {
            HEALTH => "{\"status\":\"starting\"}",
            _ => "{\"message\":\"the server is starting, and takes requests when its graphs are open\"}",
        };
        let mut response = Response::new(body.to_owned());
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        for (name, value) in [(CONTENT_TYPE, "application/json"), (RETRY_AFTER, "1"), (CONNECTION, "close")] {
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        Ok::<_, Infallible>(response)
    });
    let connection = http1::Builder::new().timer(TokioTimer::new()).serve_connection(TokioIo::new(stream), service);
    if let Err(error) = connection.await {
        tracing::debug!("an HTTP connection ended: {error}");
    }
}
