//! The results of one response message, before they are encoded.

use mangrove_graph::Value;
use mangrove_gremlin::message::ResponseData;

use crate::memory::weight::weight;

/// The form of results: scripts are answered with values, bytecode with traversers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultForm {
    /// Plain values, repeated as often as they occur.
    Values,
    /// Values with their bulk, the number of times that each occurs.
    Traversers,
}

/// The results of one response message.
#[derive(Debug)]
pub enum ResultBatch {
    /// Results of a script.
    Values(Vec<Value>),
    /// Results of bytecode, each with its bulk.
    Traversers(Vec<(u64, Value)>),
}

impl ResultBatch {
    /// An empty batch.
    pub fn new(form: ResultForm) -> Self {
        match form {
            ResultForm::Values => ResultBatch::Values(Vec::new()),
            ResultForm::Traversers => ResultBatch::Traversers(Vec::new()),
        }
    }

    /// The number of results, bulk not counted.
    pub fn len(&self) -> usize {
        match self {
            ResultBatch::Values(values) => values.len(),
            ResultBatch::Traversers(traversers) => traversers.len(),
        }
    }

    /// Returns true if results carry their bulk.
    pub fn has_bulk(&self) -> bool {
        matches!(self, ResultBatch::Traversers(_))
    }

    /// Adds a result. A batch without bulk ignores the second argument.
    pub fn push(&mut self, value: Value, bulk: u64) {
        match self {
            ResultBatch::Values(values) => values.push(value),
            ResultBatch::Traversers(traversers) => traversers.push((bulk, value)),
        }
    }

    /// The weight of the results, in bytes.
    pub fn weight(&self) -> u64 {
        match self {
            ResultBatch::Values(values) => values.iter().map(weight).fold(0, u64::saturating_add),
            ResultBatch::Traversers(traversers) => {
                traversers.iter().map(|(_, value)| weight(value)).fold(0, u64::saturating_add)
            }
        }
    }

    /// Removes all results.
    pub fn clear(&mut self) {
        match self {
            ResultBatch::Values(values) => values.clear(),
            ResultBatch::Traversers(traversers) => traversers.clear(),
        }
    }

    /// The results as the encodings take them.
    pub fn data(&self) -> ResponseData<'_> {
        match self {
            ResultBatch::Values(values) => ResponseData::Values(values),
            ResultBatch::Traversers(traversers) => ResponseData::Traversers(traversers),
        }
    }
}

/// The size at which a batch is sent.
#[derive(Clone, Copy, Debug)]
pub struct BatchSize {
    /// The most results.
    pub count: usize,
    /// About the most bytes, unless one result alone has more.
    pub bytes: u64,
}
