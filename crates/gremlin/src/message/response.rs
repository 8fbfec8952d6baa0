//! Responses: what the server sends back, one message for each batch of results.
//!
//! A message has the request's id, a status with its attributes, attributes of the result (none
//! are in use), and the result itself. Scripts are answered with plain values, bytecode with traversers,
//! whose bulk the client expands.

use mangrove_graph::Value;
use smol_str::SmolStr;
use uuid::Uuid;

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

impl ResponseData<'_> {
    /// How many results there are, each traverser counted once.
    pub fn len(self) -> usize {
        match self {
            ResponseData::Empty => 0,
            ResponseData::Values(values) => values.len(),
            ResponseData::Traversers(traversers) => traversers.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }
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
