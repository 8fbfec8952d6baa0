//! Writing responses, whole or in pieces. Responses are for clients, so nothing here reads one.
//!
//! ```json
//! {"requestId": "…", "status": {"message": "", "code": 200, "attributes": {}}, "result": {"data": […], "meta": {}}}
//! ```
//!
//! The results come last, so that a server can send the first results before it has the last: [`open_response`], then
//! [`write_items`] for each part, then [`close_response`].

use mangrove_graph::{Result, Value};
use smol_str::SmolStr;

use super::writer::Writer;
use super::{Dialect, Version};
use crate::message::{ResponseData, ResponseHead};

/// Appends a response. An error leaves the buffer as it was (WIRE-5).
pub fn encode_response(
    dialect: Dialect,
    head: ResponseHead<'_>,
    data: ResponseData<'_>,
    out: &mut Vec<u8>,
) -> Result<()> {
    let start = out.len();
    let mut write = || {
        match data {
            ResponseData::Empty => {
                write_head(dialect, head, out)?;
                out.extend_from_slice(b"null");
                write_tail(dialect, out);
            }
            results => {
                open_response(dialect, head, out)?;
                write_items(dialect, results, true, out)?;
                close_response(dialect, out);
            }
        }
        Ok(())
    };
    write().inspect_err(|_| out.truncate(start))
}

/// Appends a response up to its first result. An error leaves bytes in the buffer.
pub fn open_response(dialect: Dialect, head: ResponseHead<'_>, out: &mut Vec<u8>) -> Result<()> {
    write_head(dialect, head, out)?;
    out.extend_from_slice(if is_typed_collection(dialect) { br#"{"@type":"g:List","@value":["# } else { b"[" });
    Ok(())
}

/// Appends some results. `first`: the response has no results yet. An error leaves the buffer as it was (WIRE-5).
pub fn write_items(dialect: Dialect, data: ResponseData<'_>, first: bool, out: &mut Vec<u8>) -> Result<()> {
    let start = out.len();
    let mut separator: &[u8] = if first { b"" } else { b"," };
    let mut write = || {
        let mut item = |write: &dyn Fn(&mut Writer<'_>) -> Result<()>| {
            out.extend_from_slice(std::mem::replace(&mut separator, b","));
            write(&mut Writer::new(dialect, out))
        };
        match data {
            ResponseData::Empty => Ok(()),
            ResponseData::Values(values) => values.iter().try_for_each(|value| item(&|writer| writer.value(value))),
            ResponseData::Traversers(traversers) => {
                traversers.iter().try_for_each(|(bulk, value)| item(&|writer| writer.traverser(*bulk, value)))
            }
        }
    };
    write().inspect_err(|_| out.truncate(start))
}

/// Appends the end of a response, after its last result.
pub fn close_response(dialect: Dialect, out: &mut Vec<u8>) {
    out.extend_from_slice(if is_typed_collection(dialect) { b"]}" } else { b"]" });
    write_tail(dialect, out);
}

/// Appends a response up to its `data`.
fn write_head(dialect: Dialect, head: ResponseHead<'_>, out: &mut Vec<u8>) -> Result<()> {
    let mut writer = Writer::new(dialect, out);
    writer.raw(br#"{"requestId":"#);
    match head.request_id {
        Some(id) => writer.string(&id.to_string()),
        None => writer.raw(b"null"),
    }
    writer.raw(br#","status":{"message":"#);
    writer.string(head.message);
    writer.raw(br#","code":"#);
    writer.raw(head.code.to_string().as_bytes());
    writer.raw(br#","attributes":"#);
    let attribute = |(name, value): &(SmolStr, Value)| (Value::String(name.clone()), value.clone());
    writer.value(&Value::map(head.attributes.iter().map(attribute).collect()))?;
    writer.raw(br#"},"result":{"data":"#);
    Ok(())
}

/// Appends the part of a response that follows its `data`.
fn write_tail(dialect: Dialect, out: &mut Vec<u8>) {
    out.extend_from_slice(br#","meta":"#);
    out.extend_from_slice(if is_typed_collection(dialect) { br#"{"@type":"g:Map","@value":[]}"# } else { b"{}" });
    out.extend_from_slice(b"}}");
}

/// Returns true if lists and maps are written with their type, which GraphSON 2 does not do.
fn is_typed_collection(dialect: Dialect) -> bool {
    dialect.typed && dialect.version == Version::V3
}
