//! Queries over HTTP: `POST /gremlin` and `GET /gremlin?gremlin=…`. Each is a request outside a session.
//!
//! The body of a `POST` is a request as WebSockets have it (GraphBinary or GraphSON, without a media type before it),
//! or only its arguments as a JSON object: `{"gremlin": "g.V(x)", "bindings": {"x": 1}, "evaluationTimeout": 500}`. In
//! a `GET` the arguments are parameters. `bindings.x` and `aliases.g` name one binding or alias; a value that reads as
//! a JSON number or boolean is one, and any other is text. A `GET` may only read, because any web page can make a
//! browser send one.
//!
//! The answer has the encoding that `Accept` prefers, and typed GraphSON 3 without a preference. GraphSON streams:
//! pieces are sent as results come, and a slow client holds the query back. A failure after the first piece can no
//! longer change the status, so the body then ends early. The client sees a broken transfer, never a complete answer.
//! GraphBinary begins with its count of results and is held back, up to [`Limits::held_result_count_max`].
//!
//! Errors are JSON as TinkerPop's server writes it: 400 for a bad request, 500 for a failed query, with `message`, the
//! kinds of the error, and the protocol's own status as `code`.

use std::sync::Arc;

use axum::Json;
use axum::body::{Body, Bytes, HttpBody as _};
use axum::extract::{Request, State};
use axum::http::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE, UPGRADE};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::{StreamExt, stream};
use mangrove_graph::{Draw, Error, Purpose, Result, Value};
use mangrove_gremlin::message;
use mangrove_gremlin::{Argument, Encoding, graphson};
use serde_json::json;
use smol_str::SmolStr;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, timeout};
use tracing::{Instrument, Span};
use uuid::Uuid;

use crate::access::caller::Caller;
use crate::answers::carrier::Carrier;
use crate::answers::http_body::{BodyPiece, HttpAnswer};
use crate::answers::result_max::ResultMax;
use crate::answers::sink::ChannelSink;
use crate::answers::wire::MessageFormat;
use crate::edge;
use crate::limits::Limits;
use crate::memory::budget;
use crate::requests::call::{DecodedRequest, RequestWork};
use crate::requests::protocol;
use crate::requests::worker::RequestWatch;
use crate::shared::Shared;
use crate::status::{Failure, Status};
use crate::trace;

/// The argument with the script.
const GREMLIN: &str = "gremlin";

/// Answers queries, and passes other requests on.
pub async fn serve(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    let is_query = match *request.method() {
        Method::POST => true,
        Method::GET => !request.headers().contains_key(UPGRADE) && request.uri().query().is_some(),
        _ => false,
    };
    let caller = request.extensions().get::<Caller>().cloned();
    match caller {
        Some(caller) if is_query => {
            let meters = Arc::clone(&shared.meters);
            answer(shared, caller, request).await.unwrap_or_else(|(status, failure)| {
                meters.malformed(failure.status.code());
                problem(status, &failure)
            })
        }
        _ => next.run(request).await,
    }
}

/// A failure before the query has begun, with its HTTP status.
pub type HttpResult<T> = Result<T, (StatusCode, Failure)>;

async fn answer(shared: Arc<Shared>, caller: Caller, request: Request) -> HttpResult<Response> {
    let encoding = accepted(request.headers()).map_err(bad)?;
    let parent = trace::parent(request.headers());
    let is_get = request.method() == Method::GET;
    let mut held = shared.budget.account(Purpose::Messages);
    let format = MessageFormat { encoding, is_text: false };
    let call = match is_get {
        true => from_parameters(request.uri().query().unwrap_or_default())
            .and_then(|message| protocol::call(&message, format, &shared.limits.get()))
            .map_err(bad)?,
        false => from_body(request, format, &shared, &mut held).await?,
    };
    if call.session.is_some() {
        return Err(bad(Failure::invalid(
            "a session needs a WebSocket: over HTTP every request is a transaction of its own",
        )));
    }
    let span = trace::request(call.request, "http", &caller);
    if let Some(parent) = parent {
        trace::join(&span, &parent);
    }
    let caller = if is_get { caller.reading() } else { caller };
    Ok(run(shared, caller, call, span, held).await)
}

/// A failure with status 400.
pub fn bad(failure: Failure) -> (StatusCode, Failure) {
    (StatusCode::BAD_REQUEST, failure)
}

/// Runs a query, with its draw on the memory budget. The response begins with the first piece of the answer.
async fn run(shared: Arc<Shared>, caller: Caller, call: DecodedRequest, span: Span, held: Draw) -> Response {
    let RequestWork::Evaluate(evaluation) = call.work else {
        let message = "over HTTP there are no sessions to close, and a name and password come by HTTP Basic";
        return problem(StatusCode::BAD_REQUEST, &Failure::invalid(message));
    };
    let encoding = call.format.encoding;
    let (sender, mut pieces) = mpsc::channel(shared.limits.get().outgoing_count_max);
    // Dropped with the response, or with this future if the client goes away before there is a response.
    let (here, gone) = watch::channel(false);
    let mut watch = RequestWatch::start(evaluation.timeout, gone, shared.shutdown());
    let budget = shared.budget.clone();
    let answer = HttpAnswer::new(call.request, encoding, sender.clone(), &shared.limits.get(), &budget);
    let carrier = Carrier::Http(Box::new(answer));
    let result_max = ResultMax::of(&shared.limits.get());
    let cancellation = watch.cancellation.clone();
    let sink =
        ChannelSink::new(carrier, call.form, call.batch_size, result_max, budget, cancellation, Handle::current());
    tokio::spawn(async move {
        let (_alive, _held) = (shared.alive(), held);
        // Declared after `_alive` and so dropped before it: the span is closed, and can be delivered, before the
        // shutdown goes on.
        let span = span;
        let since = Instant::now();
        let outcome = shared.run(caller, evaluation, &mut watch, sink).instrument(span.clone()).await;
        trace::ended(&span, Failure::code_of(&outcome));
        shared.meters.request("http", Failure::code_of(&outcome), since.elapsed());
        if let Err(failure) = outcome {
            // An error means that the client is gone.
            let _ = sender.send(BodyPiece::Failed(failure)).await;
        }
    });
    let content_type = [(CONTENT_TYPE, encoding.media_type())];
    match pieces.recv().await {
        Some(BodyPiece::Last(bytes)) => (content_type, bytes).into_response(),
        Some(BodyPiece::Failed(failure)) => problem(status_of(failure.status), &failure),
        Some(BodyPiece::More(bytes)) => (content_type, streamed(bytes, pieces, here)).into_response(),
        None => problem(StatusCode::INTERNAL_SERVER_ERROR, &Error::bug("a query ended without an answer").into()),
    }
}

/// A response body of this piece and those that follow.
fn streamed(first: Bytes, pieces: mpsc::Receiver<BodyPiece>, here: watch::Sender<bool>) -> Body {
    let state = Some((Some(BodyPiece::More(first)), pieces, here));
    Body::from_stream(stream::unfold(state, async |state| {
        let (first, mut pieces, here) = state?;
        let piece = match first {
            Some(piece) => Some(piece),
            None => pieces.recv().await,
        };
        Some(match piece {
            Some(BodyPiece::More(bytes)) => (Ok(bytes), Some((None, pieces, here))),
            Some(BodyPiece::Last(bytes)) => (Ok(bytes), None),
            Some(BodyPiece::Failed(failure)) => {
                tracing::info!(
                    "a query failed after its first results were sent, so the response is cut off: {}",
                    failure.error
                );
                (Err(std::io::Error::other(failure.error.message().to_owned())), None)
            }
            None => (Err(std::io::Error::other("the query was given up")), None),
        })
    }))
}

/// The encoding of the answer: the known media type in `Accept` with the highest weight, the first among equals.
pub fn accepted(headers: &HeaderMap) -> Result<Encoding, Failure> {
    let header = headers.get_all(ACCEPT).iter().map(|value| value.to_str().unwrap_or_default());
    let header = header.collect::<Vec<_>>().join(",");
    if header.trim().is_empty() {
        return Ok(Encoding::JSON);
    }
    let mut ranges: Vec<(f32, &str)> = header.split(',').map(|range| (weight(range), range.trim())).collect();
    ranges.retain(|(weight, _)| *weight > 0.0);
    // Stable: among equals the first.
    ranges.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let known = ranges.iter().find_map(|(_, range)| match range.split(';').next().map(str::trim) {
        Some("*/*" | "application/*") => Some(Encoding::JSON),
        _ => Encoding::from_media_type(range),
    });
    known.ok_or_else(|| {
        Failure::invalid(format!(
            "no serializer for requested Accept header: {header}; there are {}",
            Encoding::media_types()
        ))
    })
}

/// The `q` of a media range; 1 if it has none.
fn weight(range: &str) -> f32 {
    let parameters = range.split(';').skip(1);
    let mut weights = parameters.filter_map(|parameter| parameter.trim().strip_prefix("q=")?.parse().ok());
    weights.next().unwrap_or(1.0)
}

/// The request in the body of a `POST`, to be answered in this format.
async fn from_body(
    request: Request,
    format: MessageFormat,
    shared: &Arc<Shared>,
    held: &mut Draw,
) -> HttpResult<DecodedRequest> {
    let content_type = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    // An unknown type (curl sends that of a form) means JSON.
    let encoding = content_type.and_then(Encoding::from_media_type).unwrap_or(Encoding::JSON);
    let body = body(request, &shared.limits.get(), held).await?;
    let (length, of_decoder) = (body.len(), Arc::clone(shared));
    budget::hold_decoding(held, length).map_err(no_room)?;
    let decoded = shared.workers.decode(length, move || {
        let decoded = from_bytes(encoding, &body, edge::fresh_uuid());
        let message = decoded.map_err(|error| Failure { status: Status::MALFORMED_REQUEST, error })?;
        protocol::call(&message, format, &of_decoder.limits.get())
    });
    match decoded.await {
        Ok(call) => call.inspect(|call| budget::shrink_to(held, call.work.memory_bytes(length))).map_err(bad),
        Err(error) => Err((StatusCode::INTERNAL_SERVER_ERROR, error.into())),
    }
}

/// Reads the body of a request, within the limits of size and time. A body with too large a `Content-Length` is refused
/// unread.
pub async fn body(request: Request, limits: &Limits, held: &mut Draw) -> HttpResult<Bytes> {
    if let Some(coding) = request.headers().get(CONTENT_ENCODING).filter(|coding| *coding != "identity") {
        let message =
            format!("the body has the Content-Encoding {coding:?}, which this server does not read: send it plain");
        return Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, Failure::malformed(message)));
    }
    let body = request.into_body();
    if body.size_hint().lower() > limits.body_bytes_max as u64 {
        return Err(too_long(limits));
    }
    match timeout(limits.body_timeout, collected(body, limits, held)).await {
        Ok(body) => body,
        Err(_) => {
            let message = format!(
                "the body did not arrive within {} s (the limit body_timeout)",
                limits.body_timeout.as_secs_f32()
            );
            Err((StatusCode::REQUEST_TIMEOUT, Failure::malformed(message)))
        }
    }
}

fn too_long(limits: &Limits) -> (StatusCode, Failure) {
    let message = format!(
        "the body is too long: it may have {} bytes; send less at once, or raise the limit body_bytes_max",
        limits.body_bytes_max
    );
    (StatusCode::PAYLOAD_TOO_LARGE, Failure::malformed(message))
}

/// Reads a body whole, within its limit and the memory budget.
async fn collected(body: Body, limits: &Limits, held: &mut Draw) -> HttpResult<Bytes> {
    let mut pieces = body.into_data_stream();
    let mut whole: Vec<u8> = Vec::new();
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(|error| bad(Failure::malformed(format!("the body was not read: {error}"))))?;
        if whole.len() + piece.len() > limits.body_bytes_max {
            return Err(too_long(limits));
        }
        whole.reserve(piece.len());
        budget::hold(held, whole.capacity() as u64).map_err(no_room)?;
        whole.extend_from_slice(&piece);
    }
    Ok(whole.into())
}

/// The memory budget has no room for a request.
fn no_room(error: Error) -> (StatusCode, Failure) {
    (StatusCode::SERVICE_UNAVAILABLE, error.into())
}

/// Decodes the body of a `POST`. A request without an id gets `fresh`.
pub fn from_bytes(encoding: Encoding, body: &[u8], fresh: Uuid) -> Result<message::Request> {
    match encoding.is_json() {
        true => graphson::decode_body(body, fresh).map(named_as_here),
        false => encoding.decode_request(body),
    }
}

/// Renames the argument `query`, as graph-explorer calls the script.
fn named_as_here(mut request: message::Request) -> message::Request {
    if !request.arguments.iter().any(|(name, _)| name == GREMLIN)
        && let Some((name, _)) = request.arguments.iter_mut().find(|(name, _)| name == "query")
    {
        *name = SmolStr::new_static(GREMLIN);
    }
    request
}

/// The request in the parameters of a `GET`.
pub fn from_parameters(query: &str) -> Result<message::Request, Failure> {
    let mut arguments: Vec<(SmolStr, Argument)> = Vec::new();
    let (mut bindings, mut aliases) = (Vec::new(), Vec::new());
    for (name, text) in pairs(query)? {
        if let Some(key) = name.strip_prefix("bindings.") {
            bindings.push((Value::from(key), scalar(&text)));
        } else if let Some(key) = name.strip_prefix("aliases.") {
            aliases.push((Value::from(key), Value::from(text)));
        } else {
            let value = if name == GREMLIN { Value::from(text) } else { scalar(&text) };
            arguments.push((name.into(), value.into()));
        }
    }
    for (name, entries) in [("bindings", bindings), ("aliases", aliases)] {
        if !entries.is_empty() {
            arguments.push((SmolStr::new_static(name), Value::map(entries).into()));
        }
    }
    let (op, processor) = (SmolStr::new_static("eval"), SmolStr::default());
    let id: Uuid = edge::fresh_uuid();
    Ok(message::Request { id, op, processor, arguments, bytecode_bindings: Default::default() })
}

/// The names and values of a form or of a query string.
pub fn pairs(form: &str) -> Result<Vec<(String, String)>, Failure> {
    let pair = |pair: &str| {
        let (name, text) = pair.split_once('=').unwrap_or((pair, ""));
        Ok((decoded(name)?, decoded(text)?))
    };
    form.split('&').filter(|pair| !pair.is_empty()).map(pair).collect()
}

/// A JSON number or boolean if the text is one, otherwise the text itself.
fn scalar(text: &str) -> Value {
    let value = graphson::decode_value(text.as_bytes()).ok();
    value.filter(|value| value.is_number() || matches!(value, Value::Bool(_))).unwrap_or_else(|| Value::from(text))
}

/// Decodes percent signs and pluses.
fn decoded(text: &str) -> Result<String, Failure> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digit = |position: usize| after.get(position).and_then(|byte| char::from(*byte).to_digit(16));
                let (Some(high), Some(low)) = (digit(0), digit(1)) else {
                    return Err(Failure::malformed(
                        "a percent sign in the query is followed by two hexadecimal digits",
                    ));
                };
                rest = &after[2..];
                (high * 16 + low) as u8
            }
            other => *other,
        });
    }
    String::from_utf8(bytes).map_err(|_| Failure::malformed("the query is no UTF-8"))
}

/// The HTTP status for a failed query, as in TinkerPop's server.
fn status_of(status: Status) -> StatusCode {
    match status {
        Status::MALFORMED_REQUEST | Status::INVALID_ARGUMENTS => StatusCode::BAD_REQUEST,
        Status::UNAVAILABLE => StatusCode::SERVICE_UNAVAILABLE,
        Status::FORBIDDEN => StatusCode::FORBIDDEN,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// A failure as TinkerPop's server writes it, with the protocol's status code.
pub fn problem(status: StatusCode, failure: &Failure) -> Response {
    let mut body = json!({ "message": failure.error.message(), "code": failure.status.code() });
    for (name, value) in failure.attributes() {
        match value {
            Value::String(text) => body[name.as_str()] = json!(text.as_str()),
            Value::List(kinds) => {
                let kinds: Vec<&str> = kinds
                    .iter()
                    .filter_map(|kind| if let Value::String(kind) = kind { Some(kind.as_str()) } else { None })
                    .collect();
                body["Exception-Class"] = json!(kinds.first());
                body[name.as_str()] = json!(kinds);
            }
            _ => {}
        }
    }
    (status, Json(body)).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_known_media_type_is_taken() {
        let choice = |accept: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, accept.parse().unwrap());
            accepted(&headers).map(Encoding::media_type)
        };
        let json = Encoding::JSON.media_type();
        assert_eq!(choice("*/*"), Ok(json));
        assert_eq!(choice("text/html, application/*;q=0.5"), Ok(json));
        assert_eq!(
            choice("application/json;q=0.1, application/vnd.graphbinary-v1.0"),
            Ok("application/vnd.graphbinary-v1.0")
        );
        assert_eq!(choice("application/json;types=false;q=0.5"), Ok("application/vnd.gremlin-v3.0+json;types=false"));
        assert!(choice("text/html").unwrap_err().error.message().contains("text/html"));
        assert!(choice("application/json;q=0").is_err());
        assert_eq!(accepted(&HeaderMap::new()).map(Encoding::media_type), Ok(json));
    }

    #[test]
    fn parameters_are_arguments() {
        let request =
            from_parameters("gremlin=g.V%28x%29&bindings.x=1&bindings.y=a+b%C3%A9&aliases.g=gsi&batchSize=7").unwrap();
        assert_eq!(request.gremlin().unwrap(), message::Gremlin::Text("g.V(x)"));
        let bindings = request.bindings().unwrap();
        assert_eq!((&bindings["x"], &bindings["y"]), (&Value::I32(1), &Value::from("a bé")));
        assert_eq!(request.aliases().unwrap(), [("g".into(), "gsi".into())]);
        assert_eq!(request.batch_size().unwrap(), Some(7));
        for wrong in ["gremlin=%2", "gremlin=%zz", "gremlin=%ff", "gremlin=%é"] {
            assert!(from_parameters(wrong).is_err(), "{wrong}");
        }
        assert_eq!(from_parameters("gremlin=1").unwrap().gremlin().unwrap(), message::Gremlin::Text("1"));
    }
}
