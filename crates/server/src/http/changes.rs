//! `GET /changes`: the change feed of a graph as server-sent events.
//!
//! | parameter | meaning |
//! |---|---|
//! | `from` | the position after which the feed begins; the header `Last-Event-ID` goes before it. Without one: the oldest position of the log |
//! | `aliases.g` | the traversal source of the graph, as for `/gremlin`; without one, `g` |
//! | `types` | `false`: values without their types |
//! | `follow` | `false`: the answer ends when it has everything that is durable |
//!
//! Each event has its position as `id` and a line of JSON as `data` ([`mangrove::Changes`]). A comment is sent while
//! nothing happens, so that both sides notice a lost connection. An `error` event ends an answer that cannot go on.
//!
//! A feed is a place in the log. Nothing waits in memory for its client but one portion of lines, and no part of the log
//! is kept for it. A client that takes nothing for [`Limits::write_stall_max`](crate::limits::Limits::write_stall_max)
//! is given up; with `Last-Event-ID` it goes on where it was. The feed ends when the shutdown takes no more requests,
//! when its user loses the right to read, and when its graph is dropped.

use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use mangrove::{ChangeLine, FeedPosition};
use mangrove_graph::{Error, ErrorKind};
use serde_json::json;
use smol_str::SmolStr;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};

use crate::access::caller::Caller;
use crate::engine::contract::{ChangeReader, ChangesRequest};
use crate::http::query::{HttpResult, bad, pairs, problem};
use crate::shared::Shared;
use crate::shutdown::ShutdownPhase;
use crate::status::Failure;

/// How long a feed waits before it looks for new commits again.
const PAUSE: Duration = Duration::from_millis(50);
/// How long a feed may send nothing.
const SILENCE_MAX: Duration = Duration::from_secs(15);
/// The header with the position of the last event that the client has.
const LAST_EVENT_ID: &str = "last-event-id";
/// The traversal source of a request that names none.
const SOURCE_DEFAULT: &str = "g";

/// Answers a request.
pub async fn serve(
    State(shared): State<Arc<Shared>>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Response {
    let answer = answer(shared, caller.reading(), request.uri().query().unwrap_or_default(), request.headers()).await;
    answer.unwrap_or_else(|(status, failure)| problem(status, &failure))
}

async fn answer(shared: Arc<Shared>, caller: Caller, query: &str, headers: &HeaderMap) -> HttpResult<Response> {
    let (mut request, follows) = parameters(query)?;
    if let Some(last) = headers.get(LAST_EVENT_ID) {
        let text = last.to_str().unwrap_or_default();
        request.from = Some(text.parse().map_err(|error: Error| bad(error.into()))?);
    }
    let engine = Arc::clone(&shared.engine);
    let opened = shared.workers.finish(move || engine.changes(request, &caller)).await;
    let reader = opened.and_then(|opened| opened).map_err(|error| (status_of(&error), error.into()))?;
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(send(shared, reader, follows, sender));
    let body = Body::from_stream(stream::unfold(receiver, async |mut receiver: mpsc::Receiver<Bytes>| {
        receiver.recv().await.map(|piece| (Ok::<_, std::io::Error>(piece), receiver))
    }));
    let head = [(CONTENT_TYPE, "text/event-stream"), (CACHE_CONTROL, "no-store")];
    Ok((head, body).into_response())
}

/// What is asked for, and whether the feed goes on after what is durable at the moment.
fn parameters(query: &str) -> HttpResult<(ChangesRequest, bool)> {
    let mut request = ChangesRequest { source: SmolStr::new_static(SOURCE_DEFAULT), from: None, plain: false };
    let mut follows = true;
    let flag = |name: &str, value: &str| match value {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(bad(Failure::invalid(format!("the parameter `{name}` is true or false, and not `{value}`")))),
    };
    for (name, value) in pairs(query).map_err(bad)? {
        match name.as_str() {
            "from" => request.from = Some(value.parse::<FeedPosition>().map_err(|error| bad(error.into()))?),
            "aliases.g" => request.source = value.into(),
            "types" => request.plain = !flag(&name, &value)?,
            "follow" => follows = flag(&name, &value)?,
            _ => {
                let message = format!("there is no parameter `{name}` here: from, aliases.g, types and follow are");
                return Err(bad(Failure::invalid(message)));
            }
        }
    }
    Ok((request, follows))
}

/// The status of a feed that cannot begin.
fn status_of(error: &Error) -> StatusCode {
    match error.kind() {
        // The position is not in the log any more.
        ErrorKind::NotFound => StatusCode::GONE,
        ErrorKind::InvalidArgument | ErrorKind::Unsupported => StatusCode::BAD_REQUEST,
        ErrorKind::Forbidden => StatusCode::FORBIDDEN,
        ErrorKind::Io | ErrorKind::MemoryLimit | ErrorKind::Closed => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// Sends portion after portion, until the feed or its client ends.
async fn send(shared: Arc<Shared>, mut reader: ChangeReader, follows: bool, sender: mpsc::Sender<Bytes>) {
    // Without it the shutdown is over.
    let Some(_alive) = shared.alive() else { return };
    let mut shutdown = shared.shutdown();
    let mut sent = Instant::now();
    loop {
        let read = shared.workers.finish(move || {
            let lines = reader();
            (reader, lines)
        });
        let (piece, is_over) = match read.await {
            Ok((again, Ok(lines))) => {
                reader = again;
                let is_over = lines.is_empty() && !follows;
                (events(&lines), is_over)
            }
            Ok((_, Err(error))) | Err(error) => {
                // Nothing can be read after an error.
                let _ = timeout(shared.limits.get().write_stall_max, sender.send(failed(&error))).await;
                return;
            }
        };
        if is_over {
            return;
        }
        let piece = match piece.is_empty() {
            false => piece,
            true if sent.elapsed() >= SILENCE_MAX => Bytes::from_static(b":\n\n"),
            true => {
                tokio::select! {
                    () = shutdown.reached(ShutdownPhase::Draining) => return,
                    () = sender.closed() => return,
                    () = sleep(PAUSE) => continue,
                }
            }
        };
        let stall_max = shared.limits.get().write_stall_max;
        tokio::select! {
            () = shutdown.reached(ShutdownPhase::Draining) => return,
            taken = timeout(stall_max, sender.send(piece)) => match taken {
                Ok(Ok(())) => sent = Instant::now(),
                Ok(Err(_)) => return,
                Err(_) => {
                    tracing::warn!("a client took nothing of a change feed for {stall_max:?}; it is given up");
                    return;
                }
            },
        }
    }
}

/// Lines as events.
fn events(lines: &[ChangeLine]) -> Bytes {
    let mut text = String::new();
    for ChangeLine { at, json } in lines {
        text.push_str(&format!("id: {at}\ndata: {json}\n\n"));
    }
    text.into()
}

/// The event that ends a feed.
fn failed(error: &Error) -> Bytes {
    format!("event: error\ndata: {}\n\n", json!({ "message": error.message() })).into()
}
