//! GraphSON 2 and 3, the JSON formats of TinkerPop 3's drivers, both ways.
//!
//! A *typed* value says its type: `{"@type": "g:Int32", "@value": 1}`. Strings, booleans and null are JSON's
//! own. GraphSON 3 types collections, too, so that sets are told from lists and maps may have any keys; in
//! GraphSON 2 both are JSON arrays and objects. *Untyped*, a response has plain JSON, from which the types
//! cannot be told back: for people, `curl` and `jq`.
//!
//! Requests are read alike in every dialect: a value with a type has it, one without is what JSON makes of it
//! (an object a map, `1` an int, a long or a big integer by its size, `1.5` a double).
//!
//! What the reader promises, whatever the bytes are: no panic, no recursion deeper than
//! [`NESTING_MAX`](crate::limits::NESTING_MAX) values (and a fixed multiple of it in JSON), memory in
//! proportion to the message, and errors that say at which byte. What it does not do: run or load anything a
//! client names.
//!
//! What does not come back the same: a packed array of floats (a list, as in GraphBinary), in GraphSON 2 sets,
//! multisets and maps whose keys are no strings, and everything untyped.

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

/// The versions of GraphSON there are here.
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
    /// Whether values say their types.
    pub typed: bool,
}

/// Appends a value. An error if the format cannot hold it: an element that was not detached from its snapshot.
pub fn encode_value(dialect: Dialect, value: &Value, out: &mut Vec<u8>) -> Result<()> {
    writer::Writer::new(dialect, out).value(value)
}

/// Appends an argument of a traversal.
pub fn encode_argument(dialect: Dialect, argument: &Argument, out: &mut Vec<u8>) -> Result<()> {
    writer::Writer::new(dialect, out).argument(argument)
}

/// The one value in this text; elements are detached.
pub fn decode_value(text: &[u8]) -> Result<Value> {
    let json = json::parse(text)?;
    reader::Reader::new(reader::Elements::Detached).value(&json)
}

/// The one argument in this text; elements are references, and bindings are replaced by their values.
pub fn decode_argument(text: &[u8]) -> Result<Argument> {
    let json = json::parse(text)?;
    reader::Reader::new(reader::Elements::References).argument(&json)
}
