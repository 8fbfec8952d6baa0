//! Connections from their first byte to the end of their last HTTP request.
//!
//! A connection begins in the lobby ([`crate::admission`]), and takes one of [`Limits::connection_count_max`] places with its
//! first request, unless that only watches over the server (`/health`, `/metrics`). When no place is left, the client is
//! told so. A connection without a place is closed after its answer.
//!
//! The TLS handshake and the head of each request have time limits ([`Limits::handshake_timeout`],
//! [`Limits::header_timeout`]): a client that connects and says nothing, or a byte a minute, is dropped.
//!
//! A place is given back when the connection is over, be it HTTP or the WebSocket it became: it goes with every request
//! as [`Peer`].

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::header::CONNECTION;
use axum::http::{HeaderValue, Request};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use mangrove_graph::{Error, ErrorKind};
use parking_lot::Mutex;
use smol_str::{SmolStr, format_smolstr};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tower_service::Service;

use crate::admission::{Lobby, Place, Seat};
use crate::allowance::{Allowance, Allowed};
use crate::http;
use crate::server::Shared;
use crate::shutdown::Phase;
use crate::stall::Stalling;
use crate::tls::Tls;

/// Connections that have not asked for anything yet, beside those that have a place.
const LOBBY_COUNT_MAX: usize = 256;

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
    /// Whether its request is served.
    pub admission: Admission,
    /// How much it may send.
    pub allowance: Arc<Allowance>,
}

/// Whether a request is served.
#[derive(Clone)]
pub enum Admission {
    /// It only watches over the server.
    Watching,
    /// The connection has this place; a clone keeps it.
    Place(#[expect(dead_code, reason = "it is kept, not looked at")] Arc<Place>),
    /// There is no place for the connection, because of this.
    Full(Error),
}

/// Accepts connections for as long as it is polled. Those that come when the server takes no more requests may ask how it
/// is, are refused everything else, and end with this. The others end by themselves.
pub async fn accept(listener: TcpListener, shared: Arc<Shared>, tls: Option<Tls>) {
    let router = http::router(Arc::clone(&shared));
    let lobby = Arc::new(Lobby::new(LOBBY_COUNT_MAX));
    let mut late = JoinSet::new();
    loop {
        let accepted = listener.accept().await;
        while late.try_join_next().is_some() {}
        let (stream, address) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!("a connection could not be accepted: {error}");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        shared.meters.accepted();
        let peer = format_smolstr!("{address}");
        let (seat, is_other_dismissed) = lobby.enter(&peer);
        if is_other_dismissed {
            shared.meters.dropped_unheard();
        }
        let is_late = shared.shutdown().phase() >= Phase::Draining;
        // The end of the server waits for connections, but not for late ones.
        let alive = if is_late { None } else { shared.alive() };
        let entrance = Arc::new(Entrance { shared: Arc::clone(&shared), peer, seat, is_late, place: Mutex::default() });
        let (router, tls) = (router.clone(), tls.clone());
        let serving = async move {
            let _alive = alive;
            connection(stream, address, &entrance, router, tls).await;
        };
        match is_late {
            true => drop(late.spawn(serving)),
            false => drop(tokio::spawn(serving)),
        }
    }
}

/// Where a connection stands on its way in.
struct Entrance {
    shared: Arc<Shared>,
    peer: SmolStr,
    /// Its seat in the lobby, until it has a place.
    seat: Seat,
    /// Whether it came when the server took no more requests.
    is_late: bool,
    place: Mutex<Option<Arc<Place>>>,
}

impl Entrance {
    /// Whether a request is served. The first that needs a place takes it for the connection.
    fn admit(&self, path: &str) -> Admission {
        let mut place = self.place.lock();
        if let Some(place) = &*place {
            return Admission::Place(Arc::clone(place));
        }
        if http::is_for_watching(path) {
            return Admission::Watching;
        }
        if self.is_late {
            return Admission::Full(Error::new(ErrorKind::Closed, "the server shuts down"));
        }
        match self.shared.capacity.take(&self.peer) {
            Ok(taken) => {
                self.seat.leave();
                Admission::Place(Arc::clone(place.insert(Arc::new(taken))))
            }
            Err(error) => Admission::Full(error),
        }
    }
}

async fn connection(
    mut stream: TcpStream,
    address: SocketAddr,
    entrance: &Arc<Entrance>,
    router: Router,
    tls: Option<Tls>,
) {
    let shared = &entrance.shared;
    // A response of several messages must not wait for the client's acknowledgment of the first.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!("TCP_NODELAY could not be set: {error}");
    }
    let Some(tls) = tls else { return http1(stream, entrance, router).await };
    let handshake = async {
        match Tls::has_refused_plain(&mut stream).await? {
            true => Err(std::io::Error::other("the client speaks HTTP without TLS")),
            false => tls.accept(stream).await,
        }
    };
    let handshake = tokio::select! {
        handshake = timeout(shared.limits.get().handshake_timeout, handshake) => handshake,
        () = entrance.seat.dismissed() => return,
    };
    match handshake {
        Ok(Ok(stream)) => {
            shared.meters.handshake(true);
            http1(stream, entrance, router).await;
        }
        Ok(Err(error)) => {
            shared.meters.handshake(false);
            tracing::debug!(%address, "no TLS handshake: {error}");
        }
        Err(_) => {
            shared.meters.handshake(false);
            tracing::debug!(%address, "no TLS handshake within {:?} (handshake_timeout)", shared.limits.get().handshake_timeout);
        }
    }
}

/// Serves HTTP/1 until either side ends it, it becomes a WebSocket, or it has to leave the lobby.
async fn http1(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, entrance: &Arc<Entrance>, router: Router) {
    let shared = &entrance.shared;
    let allowance = Arc::new(Allowance::default());
    let stream = Allowed::new(Stalling::new(stream, shared.limits.get().write_stall_max), Arc::clone(&allowance));
    let asked = Arc::clone(entrance);
    let service = service_fn(move |mut request: Request<Incoming>| {
        let admission = asked.admit(request.uri().path());
        let is_last = !matches!(admission, Admission::Place(_));
        let peer = Peer { address: asked.peer.clone(), admission, allowance: Arc::clone(&allowance) };
        request.extensions_mut().insert(peer);
        let mut router = router.clone();
        async move {
            let mut response = router.call(request.map(Body::new)).await.unwrap_or_else(|never| match never {});
            if is_last {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            Ok::<_, Infallible>(response)
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(shared.limits.get().header_timeout)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    tokio::pin!(connection);
    let mut shutdown = shared.shutdown();
    let is_late = entrance.is_late;
    let is_stopping = async {
        match is_late {
            true => std::future::pending().await,
            false => shutdown.reached(Phase::Draining).await,
        }
    };
    let ended = tokio::select! {
        ended = connection.as_mut() => Some(ended),
        () = entrance.seat.dismissed() => return,
        () = is_stopping => None,
    };
    let ended = match ended {
        Some(ended) => ended,
        None => {
            connection.as_mut().graceful_shutdown();
            let mut shutdown = shared.shutdown();
            tokio::select! {
                ended = connection => ended,
                () = shutdown.reached(Phase::Cutting) => return,
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!("an HTTP connection ended: {error}");
    }
}
