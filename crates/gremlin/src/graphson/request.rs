//! Requests: an object with the id, the operation, the processor and the operation's arguments.

use mangrove_graph::{Error, Result, Value};
use smol_str::SmolStr;
use uuid::Uuid;

use super::json::{self, Json, JsonKind, text};
use super::reader::Reader;
use crate::bytecode::Argument;
use crate::message::Request;
use crate::terms::ElementReading;

/// The request in a message.
pub fn decode_request(message: &[u8]) -> Result<Request> {
    let json = object(message)?;
    let id = id(&json).ok_or_else(|| json.malformed("the request has no `requestId` that is a UUID"))?;
    request(&json, id)
}

/// The request in the body of an HTTP request. The body is a whole request, or only its arguments, which then ask to
/// evaluate a script or bytecode. `fresh` is the id of a request without one.
pub fn decode_body(body: &[u8], fresh: Uuid) -> Result<Request> {
    let json = object(body)?;
    let id = id(&json).unwrap_or(fresh);
    if json.member("args").is_some() {
        return request(&json, id);
    }
    let mut reader = Reader::new(ElementReading::References).collecting_bindings();
    let arguments = arguments(&mut reader, &json)?;
    let is_bytecode =
        arguments.iter().any(|(name, value)| name == "gremlin" && matches!(value, Argument::Traversal(_)));
    let (op, processor) = if is_bytecode { ("bytecode", "traversal") } else { ("eval", "") };
    let (op, processor) = (SmolStr::new_static(op), SmolStr::new_static(processor));
    Ok(Request { id, op, processor, arguments, bytecode_bindings: reader.take_bindings() })
}

fn object(message: &[u8]) -> Result<Json<'_>> {
    let json = json::parse(message)?;
    match json.kind {
        JsonKind::Object(_) => Ok(json),
        _ => Err(json.malformed(&format!("a request is an object, not {}", json.kind_name()))),
    }
}

fn request(json: &Json<'_>, id: Uuid) -> Result<Request> {
    let named = |name: &str| match json.member(name) {
        None => Ok(SmolStr::default()),
        Some(member) => text(member).map(SmolStr::new),
    };
    let (op, processor) = (named("op")?, named("processor")?);
    let mut reader = Reader::new(ElementReading::References).collecting_bindings();
    let arguments = match json.member("args") {
        None => Vec::new(),
        Some(args) => arguments(&mut reader, args)?,
    };
    Ok(Request { id, op, processor, arguments, bytecode_bindings: reader.take_bindings() })
}

/// The arguments by name: the members of an object, or a typed map.
fn arguments(reader: &mut Reader, args: &Json<'_>) -> Result<Vec<(SmolStr, Argument)>> {
    if let JsonKind::Object(members) = &args.kind
        && args.member("@type").is_none()
    {
        return members.iter().map(|(name, value)| Ok((SmolStr::new(name), reader.argument(value)?))).collect();
    }
    let unnamed = || args.malformed("the arguments of a request are a map whose keys are strings");
    let named = |(name, value)| match name {
        Argument::Value(Value::String(name)) => Ok::<_, Error>((name, value)),
        _ => Err(unnamed()),
    };
    match reader.argument(args)? {
        Argument::Map(entries) => entries.into_iter().map(named).collect(),
        Argument::Value(Value::Map(entries)) => {
            entries.iter().map(|(name, value)| named((name.clone().into(), value.clone().into()))).collect()
        }
        _ => Err(unnamed()),
    }
}

/// The id of a request that is wrong otherwise, if it is JSON at all.
pub fn request_id(message: &[u8]) -> Option<Uuid> {
    id(&json::parse(message).ok()?)
}

fn id(request: &Json<'_>) -> Option<Uuid> {
    let id = request.member("requestId")?;
    Uuid::parse_str(id.member("@value").unwrap_or(id).text()?).ok()
}
