//! Requests: version, id, operation, processor and the operation's arguments by name.

use mangrove_graph::{Error, Result, Value};
use uuid::Uuid;

use super::reader::Reader;
use super::{MIME_TYPE, code, writer};
use crate::bytecode::Argument;
use crate::message::Request;
use crate::terms::ElementReading;

/// The version of GraphBinary, with the bit that marks it as such.
pub(super) const VERSION: u8 = 0x81;

/// The request in a message without its media type. Positions in errors count from the version byte.
pub fn decode_request(message: &[u8]) -> Result<Request> {
    let mut reader = Reader::new(message, ElementReading::References).collecting_bindings();
    let version = reader.byte()?;
    if version != VERSION {
        return Err(Error::unsupported(format!("the request has version {version:#04x} of GraphBinary; 0x81 is read")));
    }
    let id = Uuid::from_bytes(reader.array()?);
    let (op, processor) = (reader.string()?, reader.string()?);
    let mut arguments = Vec::new();
    for (name, argument) in reader.map()? {
        match name {
            Argument::Value(Value::String(name)) => arguments.push((name, argument)),
            _ => return Err(reader.malformed("an argument of the request whose name is no string")),
        }
    }
    reader.finish()?;
    Ok(Request { id, op, processor, arguments, bytecode_bindings: reader.take_bindings() })
}

/// Appends the frame of a request, media type and all, as a client sends it. Parameters must be bound; their
/// values may also come as the argument `bindings`.
pub fn encode_request(request: &Request, out: &mut Vec<u8>) -> Result<()> {
    out.push(MIME_TYPE.len() as u8);
    out.extend_from_slice(MIME_TYPE.as_bytes());
    out.push(VERSION);
    out.extend_from_slice(request.id.as_bytes());
    writer::string(out, &request.op)?;
    writer::string(out, &request.processor)?;
    writer::length(out, request.arguments.len())?;
    for (name, argument) in &request.arguments {
        writer::head(out, code::STRING);
        writer::string(out, name)?;
        writer::argument(out, argument)?;
    }
    Ok(())
}
