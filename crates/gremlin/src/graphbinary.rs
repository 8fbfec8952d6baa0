//! GraphBinary 1, the binary format of TinkerPop 3's drivers, both ways.
//!
//! A *fully-qualified* value is a type code, a byte that says whether the value is null, and the value.
//! Everything is big-endian; strings and collections begin with a 32-bit length.
//!
//! What the reader promises, whatever the bytes are: no panic, no recursion deeper than
//! [`NESTING_MAX`](crate::limits::NESTING_MAX), and no allocation that the bytes still to be read do not
//! justify. What it does not do: run or load anything a client names. Lambdas are refused, classes are only
//! names.
//!
//! Elements come in two readings. As arguments of a traversal they are references
//! ([`Argument::Vertex`]); as values they are
//! [`Detached`](mangrove_graph::Detached) with their properties.

mod code;
mod reader;
mod request;
mod response;
mod structure;
#[cfg(test)]
mod tests;
mod writer;

use mangrove_graph::{Result, Value};

pub use self::request::{decode_request, encode_request};
pub use self::response::{decode_response, encode_response, open_response, set_result_count, write_items};
use crate::bytecode::Argument;
pub use crate::message::{Gremlin, MaterializeProperties, Request, Response, ResponseData, ResponseHead};

/// The media type of the format, as requests name it.
pub const MIME_TYPE: &str = "application/vnd.graphbinary-v1.0";

/// Appends a value, fully qualified. An error if the format cannot hold it: an element that was not
/// detached from its snapshot, a length beyond 32 bits.
pub fn encode_value(value: &Value, out: &mut Vec<u8>) -> Result<()> {
    writer::value(out, value)
}

/// Appends an argument of a traversal, fully qualified.
pub fn encode_argument(argument: &Argument, out: &mut Vec<u8>) -> Result<()> {
    writer::argument(out, argument)
}

/// The one fully-qualified value in these bytes; elements are detached.
pub fn decode_value(bytes: &[u8]) -> Result<Value> {
    let mut reader = reader::Reader::new(bytes, reader::Elements::Detached);
    let value = reader.value()?;
    reader.finish()?;
    Ok(value)
}

/// The one fully-qualified argument in these bytes; elements are references, and bindings are replaced by
/// their values.
pub fn decode_argument(bytes: &[u8]) -> Result<Argument> {
    let mut reader = reader::Reader::new(bytes, reader::Elements::References);
    let argument = reader.argument()?;
    reader.finish()?;
    Ok(argument)
}
