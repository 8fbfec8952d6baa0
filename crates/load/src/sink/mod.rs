//! The receiving side of a load: the trait, the batches, and how elements are recognized.
//!
//! Nothing here reads a file. `rows` is the form in which batches travel to a sink in another process.

mod batches;
mod identity;
pub mod rows;

pub use batches::{
    Cardinality, EdgeBatch, LoadSink, MultiPropertyRow, PropertyColumn, Upserted, ValueWithMeta, VertexBatch,
};
pub(crate) use identity::key_of;
pub use identity::{EdgeIdentity, ElementKey, UpsertKeys, VertexIdentity};
