//! Requests: version, id, operation, processor and the operation's arguments by name. The server reads them; only
//! clients in this workspace write them.

use mangrove_graph::{Error, Result, Value};
use uuid::Uuid;

use super::reader::Reader;
use super::{MIME_TYPE, code, writer};
use crate::bytecode::Argument;
use crate::message::Request;
use crate::terms::ElementReading;

/// GraphBinary 1: the version, with the highest bit set as the format requires.
pub(super) const VERSION: u8 = 0x81;

/// Reads a request from a message whose media type has been cut off. Positions in errors count from the version byte.
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

/// Appends the frame of a request, with its media type, as a client sends it. Fails if bytecode has a parameter, for
/// which the format has no form: [`bind`](crate::bind) replaces it by its value. A script may have parameters; their
/// values are the argument `bindings`.
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
