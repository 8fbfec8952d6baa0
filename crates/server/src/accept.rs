//! Connections from their first byte to the end of their last HTTP request.
//!
//! Whoever connects takes one of [`Limits::connection_count_max`] places, and has so long for the TLS handshake and so
//! long for the head of each request ([`Limits::handshake_timeout`], [`Limits::header_timeout`]): a client that connects
//! and says nothing, or a byte a minute, is dropped. When no place is left, some more connections are taken only to be
//! told so ([`LOBBY_COUNT_MAX`]) or to ask for `/health` and `/metrics`; beyond those they are dropped unheard.
//!
//! A place is given back when the connection is over, be it HTTP or the WebSocket it became: it goes with every request
//! as [`Peer`].

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use smol_str::{SmolStr, format_smolstr};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tower_service::Service;

use crate::http;
use crate::server::Shared;
use crate::stall::Stalling;
use crate::tls::Tls;

/// Connections beyond the limit that are still told so.
const LOBBY_COUNT_MAX: usize = 64;

/// The most bytes of a request's head.
const HEAD_BYTES_MAX: usize = 64 << 10;

/// How long to wait after the system has refused a connection: it lacks file descriptors or memory, and asking again at
/// once would only burn time.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The other side of a connection, in the extensions of its requests.
#[derive(Clone)]
pub struct Peer {
    /// Its address.
    pub address: SmolStr,
    /// Its place among the server's connections; a clone keeps it. `None`: the server is full.
    pub place: Option<Arc<OwnedSemaphorePermit>>,
}

/// Accepts connections until the server is to stop. Those that are there end by themselves.
pub async fn accept(listener: TcpListener, shared: Arc<Shared>, tls: Option<Tls>) {
    let router = http::router(Arc::clone(&shared));
    let lobby = Arc::new(Semaphore::new(LOBBY_COUNT_MAX));
    let mut shutdown = shared.shutdown();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = shutdown.wait_for(|down| *down) => return,
        };
        let (stream, address) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!("a connection could not be accepted: {error}");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        shared.meters.accepted();
        let place = Arc::clone(&shared.connections).try_acquire_owned().ok();
        let seat = match place {
            Some(_) => None,
            None => match Arc::clone(&lobby).try_acquire_owned() {
                Ok(seat) => Some(seat),
                Err(_) => {
                    shared.meters.dropped_unheard();
                    continue;
                }
            },
        };
        let (shared, router, tls) = (Arc::clone(&shared), router.clone(), tls.clone());
        tokio::spawn(async move {
            let _alive = shared.alive();
            let peer = Peer { address: format_smolstr!("{address}"), place: place.map(Arc::new) };
            connection(stream, address, peer, &shared, router, tls).await;
            drop(seat);
        });
    }
}

async fn connection(
    stream: TcpStream,
    address: SocketAddr,
    peer: Peer,
    shared: &Shared,
    router: Router,
    tls: Option<Tls>,
) {
    // A response of several messages must not wait for the client's acknowledgment of the first.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!("TCP_NODELAY could not be set: {error}");
    }
    let Some(tls) = tls else { return http1(stream, peer, shared, router).await };
    match timeout(shared.limits.handshake_timeout, tls.accept(stream)).await {
        Ok(Ok(stream)) => {
            shared.meters.handshake(true);
            http1(stream, peer, shared, router).await;
        }
        Ok(Err(error)) => {
            shared.meters.handshake(false);
            tracing::debug!(%address, "no TLS handshake: {error}");
        }
        Err(_) => {
            shared.meters.handshake(false);
            tracing::debug!(%address, "no TLS handshake within {:?} (handshake_timeout)", shared.limits.handshake_timeout);
        }
    }
}

/// Serves HTTP/1 until either side ends it or it becomes a WebSocket.
async fn http1(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: Peer,
    shared: &Shared,
    router: Router,
) {
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(peer.clone());
        let mut router = router.clone();
        async move { Ok::<_, Infallible>(router.call(request.map(Body::new)).await.unwrap_or_else(|never| match never {})) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(shared.limits.header_timeout)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(Stalling::new(stream, shared.limits.write_stall_max)), service)
        .with_upgrades();
    tokio::pin!(connection);
    let mut shutdown = shared.shutdown();
    let is_stopping = async {
        let _ = shutdown.wait_for(|down| *down).await;
    };
    let ended = tokio::select! {
        ended = connection.as_mut() => Some(ended),
        () = is_stopping => None,
    };
    let ended = match ended {
        Some(ended) => ended,
        None => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!("an HTTP connection ended: {error}");
    }
}
