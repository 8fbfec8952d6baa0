//! The paths of the port: the WebSocket upgrade, `/gremlin`, `/gremlin/status`, `/changes`, `/health`, `/metrics`, and
//! the checks before them.
//!
//! Every request passes, from the outside in: the count of requests, the check of its page and host (`access::origin`),
//! the permit of its connection, and authentication by HTTP Basic. The [`Caller`] goes on in the extensions of the
//! request.

use std::sync::Arc;

use axum::Extension;
use axum::Json;
use axum::Router;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, RETRY_AFTER, UPGRADE, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use mangrove::{FollowState, FollowStatus};
use serde_json::json;
use smol_str::SmolStr;

use crate::access::auth::LoginDenied;
use crate::access::caller::Caller;
use crate::access::lockout::LockedOut;
use crate::connections::peer::{Admission, Peer};
use crate::http::changes;
use crate::http::query;
use crate::http::query_status;
use crate::metrics::memory;
use crate::metrics::process;
use crate::shared::Shared;
use crate::shutdown::ShutdownPhase;
use crate::websocket::connection;

/// Bytes of a WebSocket's read buffer. Each connection has one from its beginning, and most are idle: with the
/// library's 128 KiB, the buffer would be most of its cost.
const READ_BUFFER_BYTES: usize = 16 << 10;

/// The path of the health report.
pub const HEALTH: &str = "/health";

/// The path of the metrics.
const METRICS: &str = "/metrics";

/// Returns true if a path is for monitoring: its requests need no connection permit.
pub fn is_for_watching(path: &str) -> bool {
    matches!(path, HEALTH | METRICS)
}

/// The routes of the server.
pub fn router(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/gremlin", get(upgrade).layer(middleware::from_fn_with_state(Arc::clone(&shared), query::serve)))
        .route("/gremlin/status", get(query_status::serve).post(query_status::serve))
        .route("/changes", get(changes::serve))
        .route(HEALTH, get(health))
        .route(METRICS, get(metrics))
        .fallback(async || {
            problem(
                StatusCode::NOT_FOUND,
                "there is nothing here; see /gremlin (WebSocket, POST and GET), /gremlin/status, /changes, /health and /metrics",
            )
        })
        .layer(middleware::from_fn_with_state(Arc::clone(&shared), guard))
        .layer(middleware::from_fn_with_state(Arc::clone(&shared), browse))
        .layer(middleware::from_fn_with_state(Arc::clone(&shared), count))
        .with_state(shared)
}

/// Counts requests with their final status.
async fn count(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let response = next.run(request).await;
    shared.meters.http(&path, method.as_str(), response.status().as_u16());
    response
}

/// Refuses requests from pages that are not allowed, answers preflights, and adds the headers that let allowed pages
/// read the answer.
async fn browse(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    let page = match shared.browsers.page(request.headers(), shared.is_loopback) {
        Ok(page) => page,
        Err(message) => {
            shared.meters.page_refused();
            return problem(StatusCode::FORBIDDEN, message);
        }
    };
    let mut response = if page.is_preflight(request.method(), request.headers()) {
        let mut permission = StatusCode::NO_CONTENT.into_response();
        page.permit(request.headers(), permission.headers_mut());
        permission
    } else {
        next.run(request).await
    };
    page.mark(response.headers_mut());
    response
}

/// An error as JSON.
fn problem(status: StatusCode, message: impl Into<String>) -> Response {
    (status, Json(json!({ "message": message.into() }))).into_response()
}

/// Refuses requests of connections without a permit, and wrong passwords. Other requests go on with their [`Caller`] in
/// the extensions. Only `/health`, and WebSockets, which may log in later, go on without one.
async fn guard(State(shared): State<Arc<Shared>>, mut request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let (is_health, is_gremlin) = (path == HEALTH, path == "/gremlin");
    let peer = request.extensions().get::<Peer>().cloned();
    let address = peer.as_ref().map_or_else(SmolStr::default, |peer| peer.address.clone());
    if let Some(Peer { admission: Admission::Full(error), .. }) = &peer {
        return problem(StatusCode::SERVICE_UNAVAILABLE, error.message());
    }
    let is_upgrade = is_gremlin && request.headers().contains_key(UPGRADE);
    match (log_in(&shared, request.headers(), &address).await, is_health || is_upgrade) {
        (Ok(Some(caller)), _) => drop(request.extensions_mut().insert(caller)),
        (Ok(None), true) => {}
        (Ok(None), false) => {
            return unauthorized("this server asks who you are: send a name and password (HTTP Basic)");
        }
        (Err(LoginDenied::Refused(refused)), _) => return too_many(refused),
        (Err(LoginDenied::Wrong(error)), _) => return unauthorized(error.message()),
    }
    next.run(request).await
}

/// The caller of a request; `None` if the server has users and the request has no password.
async fn log_in(shared: &Shared, headers: &HeaderMap, peer: &str) -> Result<Option<Caller>, LoginDenied> {
    let Some(authenticator) = &shared.authenticator else { return Ok(Some(Caller::anybody(peer))) };
    let Some(header) = headers.get(AUTHORIZATION) else { return Ok(None) };
    authenticator.log_in_basic(header.to_str().unwrap_or_default(), peer).await.map(Some)
}

fn unauthorized(message: &str) -> Response {
    let challenge = [(WWW_AUTHENTICATE, "Basic realm=\"mangrove\", charset=\"UTF-8\"")];
    (challenge, problem(StatusCode::UNAUTHORIZED, message)).into_response()
}

/// The answer to a login that is refused without a check.
fn too_many(refused: LockedOut) -> Response {
    let retry = [(RETRY_AFTER, refused.seconds().to_string())];
    (retry, problem(StatusCode::TOO_MANY_REQUESTS, refused.error().message())).into_response()
}

async fn upgrade(
    State(shared): State<Arc<Shared>>,
    Extension(peer): Extension<Peer>,
    caller: Option<Extension<Caller>>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Response {
    let upgrade = match upgrade {
        Ok(upgrade) => upgrade,
        Err(rejection) => {
            let message = format!(
                "/gremlin takes WebSocket connections, POST, and GET with the parameter gremlin: {}",
                rejection.body_text()
            );
            return problem(StatusCode::UPGRADE_REQUIRED, message);
        }
    };
    let caller = caller.map(|Extension(caller)| caller);
    let share = caller.as_ref().filter(|caller| caller.is_authenticated());
    let share = match share.map(|caller| shared.permits.of_user(caller.name())).transpose() {
        Ok(share) => share,
        Err(error) => return problem(StatusCode::SERVICE_UNAVAILABLE, error.message()),
    };
    let size = shared.limits.get().frame_bytes_max();
    upgrade.read_buffer_size(READ_BUFFER_BYTES).max_message_size(size).max_frame_size(size).on_upgrade(
        async move |socket| connection::serve(socket, shared, peer, caller.map(|caller| (caller, share))).await,
    )
}

/// Reading the counters takes microseconds, so it needs no worker. A user without a right on any graph is refused.
async fn metrics(State(shared): State<Arc<Shared>>, Extension(caller): Extension<Caller>) -> Response {
    if !caller.has_any_access() {
        let message = format!(
            "the user `{}` has no role on any graph; an administrator gives roles (`mangrove user grant`)",
            caller.name()
        );
        return problem(StatusCode::FORBIDDEN, message);
    }
    let kind = [(axum::http::header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    let text = shared.meters.exposition(shared.now())
        + &shared.engine.metrics(&caller)
        + &memory::exposition(&shared.budget)
        + &process::exposition();
    (kind, text).into_response()
}

/// The health of the server, one of:
///
/// - `ok`;
/// - `following`, with status 200, if the owner of a graph is another process, which this one follows;
/// - `stopped`, with the reason and with status 200, if it follows that process no more: reads are answered, and see no
///   new commits;
/// - `read-only`, with the reasons for the graphs that the caller may read, and with status 200 since queries are
///   answered;
/// - `closing`, with status 503, so that a load balancer sends no more clients here.
///
/// A client that has not logged in is told no reasons.
async fn health(State(shared): State<Arc<Shared>>, caller: Option<Extension<Caller>>) -> Response {
    // Every client may know that some graph takes no writes; which one, and why, only its readers may (SERVER-3).
    let is_writable = shared.engine.read_only(&Caller::anybody("")).is_empty();
    let followed_graphs = shared.engine.following(&Caller::anybody(""));
    let has_stopped = followed_graphs.iter().any(|(_, status)| matches!(status.state, FollowState::Stopped { .. }));
    let (code, status) = match shared.shutdown().phase() > ShutdownPhase::Serving {
        true => (StatusCode::SERVICE_UNAVAILABLE, "closing"),
        false if has_stopped => (StatusCode::OK, "stopped"),
        false if !is_writable => (StatusCode::OK, "read-only"),
        false if !followed_graphs.is_empty() => (StatusCode::OK, "following"),
        false => (StatusCode::OK, "ok"),
    };
    let Some(Extension(caller)) = caller else { return (code, Json(json!({ "status": status }))).into_response() };
    let causes: serde_json::Map<_, _> =
        shared.engine.read_only(&caller).into_iter().map(|(graph, cause)| (graph.to_string(), cause.into())).collect();
    let following: serde_json::Map<_, _> = shared
        .engine
        .following(&caller)
        .into_iter()
        .map(|(graph, status)| (graph.to_string(), followed(&status)))
        .collect();
    let body = json!({
        "status": status,
        "read_only": causes,
        "following": following,
        "version": env!("CARGO_PKG_VERSION"),
        "graphs": shared.engine.sources(&caller).iter().map(|source| source.as_str()).collect::<Vec<_>>(),
        "sessions": shared.sessions.open_count(),
    });
    (code, Json(body)).into_response()
}

/// A graph whose owner is another process.
fn followed(status: &FollowStatus) -> serde_json::Value {
    let stopped = match &status.state {
        FollowState::Stopped { error } => Some(error.message()),
        FollowState::Following | FollowState::OwnerClosed => None,
    };
    json!({
        "stopped": stopped,
        "pin": status.pin.to_string(),
        "owner": status.incarnation,
        "behind_ms": status.since_current.as_millis() as u64,
        "delay_ms": status.delay.map(|delay| delay.as_millis() as u64),
        "trouble": status.trouble.as_ref().map(|trouble| trouble.error.message()),
    })
}
