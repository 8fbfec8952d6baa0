//! Responses: version, the request's id, the status with its attributes, attributes of the result, the results.

use mangrove_graph::{Result, Value};
use smol_str::SmolStr;
use uuid::Uuid;

use super::reader::Reader;
use super::request::VERSION;
use super::{code, writer};
use crate::bytecode::Argument;
use crate::message::{Response, ResponseData, ResponseHead};
use crate::terms::ElementReading;

/// Appends a response. An error leaves the buffer as it was (WIRE-5).
pub fn encode_response(head: ResponseHead<'_>, data: ResponseData<'_>, out: &mut Vec<u8>) -> Result<()> {
    let start = out.len();
    let mut write = || match data {
        ResponseData::Empty => {
            write_head(head, out)?;
            writer::null(out);
            Ok(())
        }
        ResponseData::Values(_) | ResponseData::Traversers(_) => {
            open_response(head, data.len(), out)?;
            write_items(data, out)
        }
    };
    write().inspect_err(|_| out.truncate(start))
}

/// Appends a response up to its first result. The format has the number of results before them, so this writes it last.
/// Nothing follows the last result.
pub fn open_response(head: ResponseHead<'_>, count: usize, out: &mut Vec<u8>) -> Result<()> {
    write_head(head, out)?;
    writer::head(out, code::LIST);
    writer::length(out, count)
}

/// Sets the number of results of a response that [`open_response`] began. `first` is the offset of its first result.
pub fn set_result_count(response: &mut [u8], first_result: usize, count: usize) -> Result<()> {
    let mut written = Vec::with_capacity(size_of::<i32>());
    writer::length(&mut written, count)?;
    response[first_result - written.len()..first_result].copy_from_slice(&written);
    Ok(())
}

/// Appends some results. An error leaves the buffer as it was (WIRE-5).
pub fn write_items(data: ResponseData<'_>, out: &mut Vec<u8>) -> Result<()> {
    let start = out.len();
    let written = match data {
        ResponseData::Empty => Ok(()),
        ResponseData::Values(values) => values.iter().try_for_each(|value| writer::value(out, value)),
        ResponseData::Traversers(traversers) => {
            traversers.iter().try_for_each(|(bulk, value)| writer::traverser(out, *bulk, value))
        }
    };
    written.inspect_err(|_| out.truncate(start))
}

fn write_head(head: ResponseHead<'_>, out: &mut Vec<u8>) -> Result<()> {
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
    writer::length(out, 0) // attributes of the result
}

/// The response in a message. Elements have their properties.
pub fn decode_response(message: &[u8]) -> Result<Response> {
    let mut reader = Reader::new(message, ElementReading::Detached);
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
