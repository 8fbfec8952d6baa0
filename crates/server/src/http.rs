//! The HTTP side of the port: the WebSocket upgrade, `/health`, `/metrics`, and who may come in.
//!
//! Who asks is in the extensions of every request ([`Caller`]), by HTTP Basic where the server wants to know.
//!
//! A server may ask nobody who they are, and browsers let any page open a WebSocket to this machine. So an upgrade
//! that carries an `Origin` (only browsers send one) is accepted only from a page of this very server, and
//! a server on a loopback address serves only requests that name a loopback host, which a foreign name
//! that was pointed at this machine (DNS rebinding) does not.

use std::sync::Arc;

use axum::Extension;
use axum::Json;
use axum::Router;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, CONNECTION, HOST, ORIGIN, UPGRADE, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde_json::json;
use smol_str::SmolStr;

use crate::accept::Peer;
use crate::access::Caller;
use crate::auth::Login;
use crate::connection;
use crate::http_query;
use crate::server::Shared;

/// The routes of the server.
pub fn router(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/gremlin", get(upgrade).layer(middleware::from_fn_with_state(Arc::clone(&shared), http_query::serve)))
        .route("/health", get(health))
        .route("/metrics", get(metrics))
        .fallback(async || {
            problem(
                StatusCode::NOT_FOUND,
                "there is nothing here; see /gremlin (WebSocket, POST and GET), /health and /metrics",
            )
        })
        .layer(middleware::from_fn_with_state(Arc::clone(&shared), guard))
        .with_state(shared)
}

/// An error as JSON.
fn problem(status: StatusCode, message: impl Into<String>) -> Response {
    (status, Json(json!({ "message": message.into() }))).into_response()
}

/// Refuses requests from pages of other sites, all but `/health` and `/metrics` where there is no place for the
/// connection, and wrong passwords. Others go on with who asks in their extensions, as far as that is known: [`Caller`]
/// and [`Login`]. Only `/health` and WebSockets, which may prove it later, go on without.
async fn guard(State(shared): State<Arc<Shared>>, mut request: Request, next: Next) -> Response {
    if let Err(message) = check_caller(request.headers(), shared.is_loopback) {
        return problem(StatusCode::FORBIDDEN, message);
    }
    let path = request.uri().path();
    let (is_health, is_metrics, is_gremlin) = (path == "/health", path == "/metrics", path == "/gremlin");
    let peer = request.extensions().get::<Peer>().cloned();
    let address = peer.as_ref().map_or_else(SmolStr::default, |peer| peer.address.clone());
    if peer.is_some_and(|peer| peer.place.is_none()) && !is_health && !is_metrics {
        return full(&shared);
    }
    let is_upgrade = is_gremlin && request.headers().contains_key(UPGRADE);
    match (log_in(&shared, request.headers(), &address).await, is_health || is_upgrade) {
        (Ok(Some(mut login)), _) => match login.caller() {
            Ok(caller) => {
                request.extensions_mut().insert(caller);
                request.extensions_mut().insert(login);
            }
            Err(error) => return unauthorized(error.message()),
        },
        (Ok(None), true) => {}
        (Ok(None), false) => {
            return unauthorized("this server asks who you are: send a name and password (HTTP Basic)");
        }
        (Err(error), _) => return unauthorized(error.message()),
    }
    next.run(request).await
}

/// Who asks: anybody where the server does not ask; `None` where nothing says who it is.
async fn log_in(shared: &Shared, headers: &HeaderMap, peer: &str) -> mangrove_graph::Result<Option<Login>> {
    let Some(authenticator) = &shared.authenticator else { return Ok(Some(Login::anybody(peer))) };
    let Some(header) = headers.get(AUTHORIZATION) else { return Ok(None) };
    authenticator.log_in_basic(header.to_str().unwrap_or_default(), peer).await.map(Some)
}

fn unauthorized(message: &str) -> Response {
    let challenge = [(WWW_AUTHENTICATE, "Basic realm=\"mangrove\", charset=\"UTF-8\"")];
    (challenge, problem(StatusCode::UNAUTHORIZED, message)).into_response()
}

fn full(shared: &Shared) -> Response {
    let message = format!(
        "the server has {} connections, as many as it may; close some, or raise the limit connection_count_max",
        shared.limits.connection_count_max
    );
    ([(CONNECTION, "close")], problem(StatusCode::SERVICE_UNAVAILABLE, message)).into_response()
}

fn check_caller(headers: &HeaderMap, is_loopback: bool) -> Result<(), String> {
    let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or("(not text)"));
    let host = text(HOST).unwrap_or_default();
    if is_loopback && !is_loopback_host(host) {
        return Err(format!("this server answers on this machine only, and the request names the host `{host}`"));
    }
    match text(ORIGIN) {
        Some(origin) if origin.split_once("://").map(|(_, authority)| authority) != Some(host) => {
            Err(format!("pages of `{origin}` may not use this server"))
        }
        _ => Ok(()),
    }
}

fn is_loopback_host(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

async fn upgrade(
    State(shared): State<Arc<Shared>>,
    Extension(peer): Extension<Peer>,
    login: Option<Extension<Login>>,
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
    let size = shared.limits.frame_bytes_max();
    upgrade.max_message_size(size).max_frame_size(size).on_upgrade(async move |socket| {
        connection::serve(socket, shared, peer.address.clone(), login.map(|Extension(login)| login)).await;
        // Its place among the connections.
        drop(peer);
    })
}

/// Reading the counters takes microseconds, so it needs no worker.
async fn metrics(State(shared): State<Arc<Shared>>) -> Response {
    let kind = [(axum::http::header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    let text = shared.meters.exposition(shared.now()) + &shared.engine.metrics();
    (kind, text).into_response()
}

/// `ok`; `read-only` with the reasons, still with status 200 since queries are answered; `closing` with 503, so that nobody
/// is sent here any more. Who is not known is told no more than that.
async fn health(State(shared): State<Arc<Shared>>, caller: Option<Extension<Caller>>) -> Response {
    let read_only = shared.engine.read_only();
    let (code, status) = match (*shared.shutdown().borrow(), read_only.is_empty()) {
        (true, _) => (StatusCode::SERVICE_UNAVAILABLE, "closing"),
        (false, false) => (StatusCode::OK, "read-only"),
        (false, true) => (StatusCode::OK, "ok"),
    };
    let Some(Extension(caller)) = caller else { return (code, Json(json!({ "status": status }))).into_response() };
    let causes: serde_json::Map<_, _> =
        read_only.into_iter().map(|(graph, cause)| (graph.to_string(), cause.into())).collect();
    let body = json!({
        "status": status,
        "read_only": causes,
        "version": env!("CARGO_PKG_VERSION"),
        "graphs": shared.engine.sources(&caller).iter().map(|source| source.as_str()).collect::<Vec<_>>(),
        "sessions": shared.sessions.open_count(),
    });
    (code, Json(body)).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(host: &str, origin: Option<&str>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, host.parse().unwrap());
        if let Some(origin) = origin {
            headers.insert(ORIGIN, origin.parse().unwrap());
        }
        headers
    }

    #[test]
    fn drivers_and_own_pages_may_come_in() {
        for host in ["localhost:8182", "127.0.0.1:8182", "[::1]:8182", "LOCALHOST"] {
            check_caller(&headers(host, None), true).unwrap();
        }
        check_caller(&headers("localhost:8182", Some("http://localhost:8182")), true).unwrap();
        check_caller(&headers("graph.example:8182", Some("https://graph.example:8182")), false).unwrap();
    }

    #[test]
    fn foreign_pages_and_rebound_names_may_not() {
        let foreign = check_caller(&headers("localhost:8182", Some("https://evil.example")), true).unwrap_err();
        assert!(foreign.contains("https://evil.example"), "{foreign}");
        let rebound = check_caller(&headers("evil.example:8182", None), true).unwrap_err();
        assert!(rebound.contains("evil.example"), "{rebound}");
        check_caller(&headers("localhost:8182", Some("null")), true).unwrap_err();
    }
}
