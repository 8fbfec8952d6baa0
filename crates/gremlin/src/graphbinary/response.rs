//! Responses: what the server sends back, one message for each batch of results.
//!
//! A message has a version, the request's id, a status with its attributes, attributes of the result (none
//! are in use), and the result itself. Scripts are answered with plain values, bytecode with traversers,
//! whose bulk the client expands.

use mangrove_graph::{Result, Value};
use smol_str::SmolStr;
use uuid::Uuid;

use super::reader::{Elements, Reader};
use super::request::VERSION;
use super::{code, writer};
use crate::bytecode::Argument;

/// Everything of a response but its results.
#[derive(Clone, Copy, Debug)]
pub struct ResponseHead<'a> {
    /// The request this answers; `None` if it could not be read.
    pub request_id: Option<Uuid>,
    /// The status: 200, 204, 206, or an error's.
    pub code: u16,
    /// What went wrong; empty if nothing did.
    pub message: &'a str,
    /// Attributes of the status: exceptions, warnings, the address of the client.
    pub attributes: &'a [(SmolStr, Value)],
}

/// The results in a response.
#[derive(Clone, Copy, Debug)]
pub enum ResponseData<'a> {
    /// None: an error, or a status without content.
    Empty,
    /// Values, as scripts are answered.
    Values(&'a [Value]),
    /// Values with how many times each occurs, as bytecode is answered.
    Traversers(&'a [(u64, Value)]),
}

/// Appends a response. On an error (a value the format cannot hold) the buffer is as it was.
pub fn encode_response(head: ResponseHead<'_>, data: ResponseData<'_>, out: &mut Vec<u8>) -> Result<()> {
    let start = out.len();
    write(head, data, out).inspect_err(|_| out.truncate(start))
}

fn write(head: ResponseHead<'_>, data: ResponseData<'_>, out: &mut Vec<u8>) -> Result<()> {
    out.push(VERSION);
    match head.request_id {
        Some(id) => {
            out.push(code::PRESENT);
            out.extend_from_slice(id.as_bytes());
        }
        None => out.push(code::ABSENT),
    }
    out.extend(i32::from(head.code).to_be_bytes());
    out.push(code::PRESENT);
    writer::string(out, head.message)?;
    writer::length(out, head.attributes.len())?;
    for (name, attribute) in head.attributes {
        writer::head(out, code::STRING);
        writer::string(out, name)?;
        writer::value(out, attribute)?;
    }
    writer::length(out, 0)?; // attributes of the result
    match data {
        ResponseData::Empty => writer::null(out),
        ResponseData::Values(values) => writer::values(out, code::LIST, values)?,
        ResponseData::Traversers(traversers) => {
            writer::head(out, code::LIST);
            writer::length(out, traversers.len())?;
            traversers.iter().try_for_each(|(bulk, value)| writer::traverser(out, *bulk, value))?;
        }
    }
    Ok(())
}

/// A response as a client reads it.
#[derive(Clone, Debug, PartialEq)]
pub struct Response {
    /// The request this answers.
    pub request_id: Option<Uuid>,
    /// The status.
    pub code: u16,
    /// What went wrong; empty if nothing did.
    pub message: SmolStr,
    /// Attributes of the status.
    pub attributes: Vec<(SmolStr, Value)>,
    /// The results with how many times each occurs; 1 for plain values.
    pub data: Vec<(u64, Value)>,
}

/// The response in a message; elements come with their properties.
pub fn decode_response(message: &[u8]) -> Result<Response> {
    let mut reader = Reader::new(message, Elements::Detached);
    let version = reader.byte()?;
    if version != VERSION {
        return Err(reader.malformed(&format!("version {version:#04x} of GraphBinary; 0x81 is read")));
    }
    let request_id = match reader.byte()? {
        code::PRESENT => Some(Uuid::from_bytes(reader.array()?)),
        _ => None,
    };
    let status = reader.int()?;
    let code = u16::try_from(status).map_err(|_| reader.malformed(&format!("the status {status}")))?;
    let message = match reader.byte()? {
        code::PRESENT => reader.string()?,
        _ => SmolStr::default(),
    };
    let attributes = attributes(&mut reader)?;
    reader.map()?; // attributes of the result
    let data = reader.results()?;
    reader.finish()?;
    Ok(Response { request_id, code, message, attributes, data })
}

fn attributes(reader: &mut Reader<'_>) -> Result<Vec<(SmolStr, Value)>> {
    let entries = reader.map()?;
    let attribute = |entry| match entry {
        (Argument::Value(Value::String(name)), Argument::Value(value)) => Ok((name, value)),
        _ => Err(reader.malformed("an attribute that is no value with a name")),
    };
    entries.into_iter().map(attribute).collect()
}
