//! The accept loop, and each connection from its first byte to the end of its last HTTP request.
//!
//! A connection is pending until its first request ([`PendingConnections`]). The request takes a permit for it, unless
//! it only watches over the server (`/health`, `/metrics`). If no permit is free, the client gets 503. A connection
//! without a permit is closed after its answer. The permit goes with every request as [`Peer`], and is returned when
//! the connection ends, as HTTP or as a WebSocket.
//!
//! The TLS handshake and the head of each request have time limits ([`Limits::handshake_timeout`],
//! [`Limits::header_timeout`]), so that a client that sends nothing, or a byte a minute, is dropped.

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

use crate::connections::allowance::{Allowance, AllowedStream};
use crate::connections::peer::{Admission, Peer};
use crate::connections::pending::{PendingConnection, PendingConnections};
use crate::connections::permits::ConnectionPermit;
use crate::connections::stall::StallingStream;
use crate::connections::tls::Tls;
use crate::http::router;
use crate::shared::Shared;
use crate::shutdown::ShutdownPhase;

/// Pending connections, beside those with a permit.
const PENDING_COUNT_MAX: usize = 256;

/// The most bytes of a request's head.
const HEAD_BYTES_MAX: usize = 64 << 10;

/// The pause after a failed accept: the system lacks file descriptors or memory, and trying again at once would only
/// use the processor.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Accepts connections for as long as it is polled. A connection that comes during the shutdown may ask for `/health`,
/// is refused everything else, and ends with this future. The others run on as tasks of their own.
pub async fn accept(listener: TcpListener, shared: Arc<Shared>, tls: Option<Tls>) {
    let router = router::router(Arc::clone(&shared));
    let pending = Arc::new(PendingConnections::new(PENDING_COUNT_MAX));
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
        let (pending_connection, is_other_evicted) = pending.enter(&peer);
        if is_other_evicted {
            shared.meters.dropped_unheard();
        }
        let is_late = shared.shutdown().phase() >= ShutdownPhase::Draining;
        // The shutdown waits for connections, but not for late ones.
        let alive = if is_late { None } else { shared.alive() };
        let entrance = Arc::new(ConnectionEntrance {
            shared: Arc::clone(&shared),
            peer,
            pending_connection,
            is_late,
            place: Mutex::default(),
        });
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

/// The state of a connection before and at its first request.
struct ConnectionEntrance {
    shared: Arc<Shared>,
    peer: SmolStr,
    /// Its entry among the pending connections, until it has a permit.
    pending_connection: PendingConnection,
    /// True if it came during the shutdown.
    is_late: bool,
    place: Mutex<Option<Arc<ConnectionPermit>>>,
}

impl ConnectionEntrance {
    /// Decides on a request. The first that needs a permit takes it for the connection.
    fn admit(&self, path: &str) -> Admission {
        let mut place = self.place.lock();
        if let Some(place) = &*place {
            return Admission::Permitted(Arc::clone(place));
        }
        if router::is_for_watching(path) {
            return Admission::Watching;
        }
        if self.is_late {
            return Admission::Full(Error::new(ErrorKind::Closed, "the server shuts down"));
        }
        match self.shared.permits.take(&self.peer) {
            Ok(taken) => {
                self.pending_connection.leave();
                Admission::Permitted(Arc::clone(place.insert(Arc::new(taken))))
            }
            Err(error) => Admission::Full(error),
        }
    }
}

async fn connection(
    mut stream: TcpStream,
    address: SocketAddr,
    entrance: &Arc<ConnectionEntrance>,
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
        () = entrance.pending_connection.evicted() => return,
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

/// Serves HTTP/1 until either side ends it, it becomes a WebSocket, or it is evicted.
async fn http1(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    entrance: &Arc<ConnectionEntrance>,
    router: Router,
) {
    let shared = &entrance.shared;
    let allowance = Arc::new(Allowance::default());
    let stream =
        AllowedStream::new(StallingStream::new(stream, shared.limits.get().write_stall_max), Arc::clone(&allowance));
    let asked = Arc::clone(entrance);
    let service = service_fn(move |mut request: Request<Incoming>| {
        let admission = asked.admit(request.uri().path());
        let is_last = !matches!(admission, Admission::Permitted(_));
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
            false => shutdown.reached(ShutdownPhase::Draining).await,
        }
    };
    let ended = tokio::select! {
        ended = connection.as_mut() => Some(ended),
        () = entrance.pending_connection.evicted() => return,
        () = is_stopping => None,
    };
    let ended = match ended {
        Some(ended) => ended,
        None => {
            connection.as_mut().graceful_shutdown();
            let mut shutdown = shared.shutdown();
            tokio::select! {
                ended = connection => ended,
                () = shutdown.reached(ShutdownPhase::Cutting) => return,
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!("an HTTP connection ended: {error}");
    }
}
