//! Decoding of messages into requests.
//!
//! | op | processor | asks for |
//! |---|---|---|
//! | `eval` | empty, `session` | a script |
//! | `bytecode` | `traversal`, `session` | a traversal, or `tx commit` and `tx rollback` in a session |
//! | `close` | `session` | the end of a session |
//! | `authentication` | any | a login, with a message of SASL PLAIN |
//!
//! Other combinations, and messages that do not decode, are malformed (498). Missing arguments and those of a wrong
//! type are invalid (499).

use axum::body::Bytes;
use mangrove_graph::{Error, Value};
use mangrove_gremlin::message::{self, MaterializeProperties, Request};
use mangrove_gremlin::{Argument, Encoding, split_frame};
use smol_str::SmolStr;
use uuid::Uuid;

use crate::access::auth::decode_sasl;
use crate::answers::batch::{BatchSize, ResultForm};
use crate::answers::wire::MessageFormat;
use crate::engine::request::Materialize;
use crate::limits::Limits;
use crate::requests::call::{DecodedRequest, RequestWork};
use crate::requests::program::{Evaluation, WireQuery};
use crate::status::{Failure, Status};

/// Languages whose scripts are parsed by the gremlin-lang grammar. Drivers name Groovy by default. The parser refuses
/// Groovy that is no gremlin-lang.
const LANGUAGES: [&str; 2] = ["gremlin-lang", "gremlin-groovy"];

/// The refusal of a message, with the format of its answer.
#[derive(Debug)]
pub struct MessageRefusal {
    /// The id of the request, if it can be read.
    pub request: Option<Uuid>,
    /// The format of the answer: that of the request, if it is known.
    pub format: MessageFormat,
    /// The failure.
    pub failure: Failure,
}

/// A message of a WebSocket, not decoded.
#[derive(Clone, Debug)]
pub struct RawMessage {
    /// The content of the message.
    pub bytes: Bytes,
    /// True for a text message.
    pub is_text: bool,
}

/// Makes the refusal of a message that is not decoded.
pub fn refuse(message: &RawMessage, error: Error) -> MessageRefusal {
    let frame = if message.is_text { None } else { split_frame(&message.bytes).ok() };
    let (format, body) = match frame {
        Some((encoding, body)) => (MessageFormat { encoding, is_text: false }, body),
        None if message.is_text => (MessageFormat::TEXT, &message.bytes[..]),
        None => (MessageFormat::BINARY, &[][..]),
    };
    MessageRefusal { request: format.encoding.request_id(body), format, failure: error.into() }
}

/// Decodes a WebSocket message. A text message is JSON; a binary one begins with its media type.
pub fn decode(message: &RawMessage, limits: &Limits) -> Result<DecodedRequest, MessageRefusal> {
    let RawMessage { bytes: message, is_text } = message;
    let (format, body) = match is_text {
        true => (MessageFormat::TEXT, &message[..]),
        false => {
            let (encoding, body) = split_frame(message).map_err(|error| MessageRefusal {
                request: None,
                format: MessageFormat::BINARY,
                failure: Failure { status: Status::MALFORMED_REQUEST, error },
            })?;
            (MessageFormat { encoding, is_text: false }, body)
        }
    };
    let refusal = |request, failure| MessageRefusal { request, format, failure };
    if message.len() > limits.message_bytes_max {
        return Err(refusal(format.encoding.request_id(body), too_long(message.len(), limits)));
    }
    let request = format.encoding.decode_request(body).map_err(|error| {
        refusal(format.encoding.request_id(body), Failure { status: Status::MALFORMED_REQUEST, error })
    })?;
    call(&request, format, limits).map_err(|failure| refusal(Some(request.id), failure))
}

/// The failure of a request that has too many bytes.
pub fn too_long(length: usize, limits: &Limits) -> Failure {
    Failure::malformed(format!(
        "the message has {length} bytes, more than the limit of {}; send less at once, or raise the limit \
         message_bytes_max",
        limits.message_bytes_max
    ))
}

/// Interprets a request that came in this format. The answer has the same format unless the request names another.
pub fn call(request: &Request, format: MessageFormat, limits: &Limits) -> Result<DecodedRequest, Failure> {
    let (form, closes) = match (request.op.as_str(), request.processor.as_str()) {
        ("eval", "" | "session") => (ResultForm::Values, false),
        ("bytecode", "traversal" | "session") => (ResultForm::Traversers, false),
        ("close", "session") => (ResultForm::Values, true),
        ("authentication", _) => {
            let (work, form) = (RequestWork::Authenticate(sasl(request)), ResultForm::Values);
            return Ok(DecodedRequest {
                request: request.id,
                session: None,
                format,
                form,
                batch_size: BatchSize { count: 1, bytes: 1 },
                work,
            });
        }
        (op, processor) => {
            return Err(Failure::malformed(format!(
                "there is no operation `{op}` of the processor `{processor}`; this server has eval (processor empty \
                 or session), bytecode (traversal or session) and close (session)"
            )));
        }
    };
    let work = if closes { RequestWork::Close } else { RequestWork::Evaluate(evaluation(request, limits)?) };
    let batch_size = batch_size(request, limits)?;
    let format = accepted(request, format)?;
    Ok(DecodedRequest { request: request.id, session: session(request)?, format, form, batch_size, work })
}

/// The session's name, which only the processor `session` has.
fn session(request: &Request) -> Result<Option<SmolStr>, Failure> {
    if request.processor != "session" {
        return Ok(None);
    }
    match request.session().map_err(invalid)? {
        Some(name) if !name.is_empty() => Ok(Some(name)),
        _ => Err(Failure::invalid("the processor `session` needs the argument `session`: the session's name")),
    }
}

/// The format of the answer: that of the request, unless the argument `accepts` names another.
fn accepted(request: &Request, format: MessageFormat) -> Result<MessageFormat, Failure> {
    let Some(media_type) = request.accepts().map_err(invalid)? else { return Ok(format) };
    match Encoding::from_media_type(media_type) {
        Some(encoding) => Ok(MessageFormat { is_text: format.is_text && encoding.is_json(), encoding }),
        None => Err(Failure::invalid(format!(
            "the request's `accepts` is `{media_type}`; answers are written in {}",
            Encoding::media_types()
        ))),
    }
}

fn evaluation(request: &Request, limits: &Limits) -> Result<Evaluation, Failure> {
    if let Some(language) = request.language().map_err(invalid)?
        && !LANGUAGES.contains(&language)
    {
        return Err(Failure::invalid(format!(
            "there is no language `{language}` on this server; it reads gremlin-lang"
        )));
    }
    let gremlin = match (request.gremlin().map_err(invalid)?, request.op.as_str()) {
        (message::Gremlin::Text(text), "eval") => WireQuery::Script(text.to_owned()),
        (message::Gremlin::Bytecode(bytecode), "bytecode") => WireQuery::Bytecode(bytecode.clone()),
        (message::Gremlin::Text(_), _) => {
            return Err(Failure::invalid("the argument `gremlin` is a script; the operation for scripts is eval"));
        }
        (message::Gremlin::Bytecode(_), _) => {
            return Err(Failure::invalid("the argument `gremlin` is bytecode; the operation for it is bytecode"));
        }
    };
    let commits = request.processor == "session" && request.manages_transaction().map_err(invalid)?;
    let timeout = limits.time_limit(request.evaluation_timeout_ms().map_err(invalid)?);
    let materialize = match request.materialize_properties().map_err(invalid)? {
        MaterializeProperties::All => Materialize::All,
        MaterializeProperties::Tokens => Materialize::Tokens,
    };
    let aliases = request.aliases().map_err(invalid)?;
    let parameters = request.bindings().map_err(invalid)?;
    Ok(Evaluation { gremlin, aliases, parameters, timeout, materialize, commits })
}

fn batch_size(request: &Request, limits: &Limits) -> Result<BatchSize, Failure> {
    let count = match request.batch_size().map_err(invalid)? {
        None => limits.batch_size,
        Some(0) => {
            let message = "the request's `batchSize` is 0: no result would ever be sent; use 1 or more";
            return Err(Failure::invalid(message));
        }
        Some(size) => usize::try_from(size).unwrap_or(usize::MAX).min(limits.batch_size_max),
    };
    Ok(BatchSize { count, bytes: limits.batch_bytes_max as u64 })
}

/// The message of SASL: base64 text as the drivers send it, or bytes.
fn sasl(request: &Request) -> Result<Vec<u8>, Failure> {
    let argument = |name: &str| match request.arguments.iter().find(|(known, _)| known == name) {
        Some((_, Argument::Value(value))) => Some(value),
        _ => None,
    };
    match argument("saslMechanism") {
        None | Some(Value::Null) => {}
        Some(Value::String(mechanism)) if matches!(mechanism.as_str(), "" | "PLAIN") => {}
        Some(_) => return Err(Failure::invalid("this server knows the SASL mechanism PLAIN and no other")),
    }
    match argument("sasl") {
        Some(Value::String(text)) => decode_sasl(text).map_err(invalid),
        Some(Value::Bytes(bytes)) => Ok(bytes.to_vec()),
        _ => Err(Failure::invalid("authentication needs the argument `sasl`: base64 of NUL user NUL password")),
    }
}

/// An error of a request's accessors means an invalid argument (499), whatever its kind would mean in a query.
fn invalid(error: Error) -> Failure {
    Failure { status: Status::INVALID_ARGUMENTS, error }
}
