//! GraphBinary 1, the binary format of TinkerPop 3's drivers: reading and writing.
//!
//! A *fully-qualified* value is a type code, a byte that says whether the value is null, and the value. Numbers are
//! big-endian. Strings and collections begin with a length of 32 bits.
//!
//! The reader keeps WIRE-1, WIRE-2 and WIRE-3.
//!
//! - **WIRE-5.** Writing a response, or some results, fails only for a value that the format cannot hold, and then
//!   leaves the buffer as it was. The functions that write single values leave their bytes; their caller truncates the
//!   buffer.
//!
//! Elements are read in two ways. As arguments of a traversal they are references ([`Argument::Vertex`]). As values
//! they are [`Detached`](mangrove_graph::Detached) with their properties.

mod code;
mod reader;
mod request;
mod response;
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

/// Appends a value, fully qualified. Fails if the format cannot hold it: an element that is not detached from its
/// snapshot, a length of more than 32 bits.
pub fn encode_value(value: &Value, out: &mut Vec<u8>) -> Result<()> {
    writer::value(out, value)
}

/// Appends an argument of a traversal, fully qualified.
pub fn encode_argument(argument: &Argument, out: &mut Vec<u8>) -> Result<()> {
    writer::argument(out, argument)
}

/// The single fully-qualified value in some bytes. Elements are detached.
pub fn decode_value(bytes: &[u8]) -> Result<Value> {
    let mut reader = reader::Reader::new(bytes, crate::terms::ElementReading::Detached);
    let value = reader.value()?;
    reader.finish()?;
    Ok(value)
}

/// The single fully-qualified argument in some bytes. Elements are references, and bindings are replaced by their
/// values.
pub fn decode_argument(bytes: &[u8]) -> Result<Argument> {
    let mut reader = reader::Reader::new(bytes, crate::terms::ElementReading::References);
    let argument = reader.argument()?;
    reader.finish()?;
    Ok(argument)
}
