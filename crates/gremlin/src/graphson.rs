//! GraphSON 2 and 3, the JSON formats of TinkerPop 3's drivers: reading and writing.
//!
//! | dialect | numbers and other scalars | collections |
//! |---|---|---|
//! | GraphSON 3 | `{"@type": "g:Int32", "@value": 1}`; strings, booleans and null are JSON's own | with types: sets differ from lists, and map keys may be any values |
//! | GraphSON 2 | as GraphSON 3 | JSON arrays and objects |
//! | untyped | plain JSON, for people, `curl` and `jq`; types cannot be told from it | JSON arrays and objects |
//!
//! Requests are read alike in every dialect. A value with a type has it; for one without, JSON decides: an object is a
//! map, `1` is an int, a long or a big integer by its size, and `1.5` is a double.
//!
//! The reader keeps WIRE-1, WIRE-2 (its JSON nests a fixed multiple of the limit) and WIRE-3. Its errors say at which
//! byte.
//!
//! Not all values come back as they were: a packed array of floats (a list, as in GraphBinary); in GraphSON 2, sets,
//! multisets and maps with keys that are no strings; and everything untyped. The answer to `profile()` is only
//! written.

mod json;
mod moment;
mod reader;
mod reader_scalars;
mod request;
mod response;
#[cfg(test)]
mod tests;
mod writer;

use mangrove_graph::{Result, Value};

pub use self::request::{decode_body, decode_request, request_id};
pub use self::response::{close_response, encode_response, open_response, write_items};
use crate::bytecode::Argument;

/// The versions of GraphSON that are read and written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// GraphSON 2.
    V2,
    /// GraphSON 3.
    V3,
}

/// How values are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dialect {
    /// The version.
    pub version: Version,
    /// True if values have their types.
    pub typed: bool,
}

/// Appends a value. Fails if the format cannot hold it: an element that is not detached from its snapshot.
pub fn encode_value(dialect: Dialect, value: &Value, out: &mut Vec<u8>) -> Result<()> {
    writer::Writer::new(dialect, out).value(value)
}

/// Appends an argument of a traversal.
pub fn encode_argument(dialect: Dialect, argument: &Argument, out: &mut Vec<u8>) -> Result<()> {
    writer::Writer::new(dialect, out).argument(argument)
}

/// The single value in a text. Elements are detached.
pub fn decode_value(text: &[u8]) -> Result<Value> {
    let json = json::parse(text)?;
    reader::Reader::new(crate::terms::ElementReading::Detached).value(&json)
}

/// The single argument in a text. Elements are references, and bindings are replaced by their values.
pub fn decode_argument(text: &[u8]) -> Result<Argument> {
    let json = json::parse(text)?;
    reader::Reader::new(crate::terms::ElementReading::References).argument(&json)
}
