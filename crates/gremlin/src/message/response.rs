//! Responses: the messages that the server sends back, one for each batch of results.
//!
//! A message has the id of the request, a status with attributes, the results, and attributes of the results, which are
//! always empty here. A script is answered with plain values, bytecode with traversers, whose bulk the client expands.

use mangrove_graph::Value;
use smol_str::SmolStr;
use uuid::Uuid;

/// A response without its results.
#[derive(Clone, Copy, Debug)]
pub struct ResponseHead<'a> {
    /// The id of the request; `None` if it could not be read.
    pub request_id: Option<Uuid>,
    /// The status: 200, 204, 206, or that of an error.
    pub code: u16,
    /// What went wrong; empty if nothing did.
    pub message: &'a str,
    /// Attributes of the status: exceptions, warnings, the address of the client.
    pub attributes: &'a [(SmolStr, Value)],
}

/// The results in a response.
#[derive(Clone, Copy, Debug)]
pub enum ResponseData<'a> {
    /// No results: an error, or a status without content.
    Empty,
    /// Values, as scripts are answered.
    Values(&'a [Value]),
    /// Values, each with the number of times it occurs, as bytecode is answered.
    Traversers(&'a [(u64, Value)]),
}

impl ResponseData<'_> {
    /// The number of results. A traverser counts once.
    pub fn len(self) -> usize {
        match self {
            ResponseData::Empty => 0,
            ResponseData::Values(values) => values.len(),
            ResponseData::Traversers(traversers) => traversers.len(),
        }
    }

    /// Returns true if there are no results.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }
}

/// A response as a client reads it.
#[derive(Clone, Debug, PartialEq)]
pub struct Response {
    /// The id of the request; `None` if the server could not read it.
    pub request_id: Option<Uuid>,
    /// The status.
    pub code: u16,
    /// What went wrong; empty if nothing did.
    pub message: SmolStr,
    /// Attributes of the status.
    pub attributes: Vec<(SmolStr, Value)>,
    /// The results, each with the number of times it occurs; 1 for plain values.
    pub data: Vec<(u64, Value)>,
}
