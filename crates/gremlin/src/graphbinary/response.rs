//! Responses: version, the request's id, the status with its attributes, attributes of the result, the results.

use mangrove_graph::{Result, Value};
use smol_str::SmolStr;
use uuid::Uuid;

use super::reader::{Elements, Reader};
use super::request::VERSION;
use super::{code, writer};
use crate::bytecode::Argument;
use crate::message::{Response, ResponseData, ResponseHead};

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
