//! The vocabulary that all crates share: ids, values and how they compare, the catalog of names, errors, the memory
//! budget, and [`GraphView`], the read interface of a graph.
//!
//! | to understand | read |
//! |---|---|
//! | how a graph is read, and the laws that every implementation keeps | [`view`] |
//! | the values that properties hold and traversals carry | `value`, [`compare`], [`numeric`] |
//! | how elements are named inside the engine | `ids` |
//!
//! This crate does not know how a graph is stored, what a traversal is, or what a transaction does. It imports no other
//! crate of the workspace.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod budget;
mod catalog;
pub mod codec;
pub mod compare;
pub mod connections;
mod error;
mod hash;
mod ids;
mod interrupt;
pub mod numeric;
pub mod pieces;
pub mod statistics;
mod user_id;
mod value;
pub mod view;

pub use budget::{Draw, MemoryBudget, Purpose, SpareMemory};
pub use catalog::{Catalog, LABEL_SEPARATOR};
pub use error::{Error, ErrorKind, Remedy, Result};
pub use hash::{FastMap, FastSet};
pub use ids::{
    EdgeId, ElementId, ElementKind, GENERATION_MAX, GENERATION_SHIFT, IndexId, KeyId, LabelId, LabelSetId, PAGE_SLOTS,
    TabletId, VertexId,
};
pub use interrupt::Interrupt;
pub use user_id::{IdRule, IntId, UserId};
pub use value::{
    DateTime, Detached, DetachedVertexProperty, Direction, Duration, GraphValue, OperatorMetrics, PathValue,
    PropertyOwner, PropertyValue, Token, TraversalMetrics, Tree, Value, VertexPropertyValue, vertex_property_id,
};
pub use view::{
    AdjacencyRequest, AdjacencyRuns, Completions, EdgeChange, EdgeChangeKind, Elements, ExpandCursor, ExpandRequest,
    Expansion, GraphChanges, GraphView, Hold, IndexInfo, IndexLookup, IndexRange, LabelFilter, LateReads, LiveCounts,
    Need, NumberType, Numbers, PropertyRow, RowValues, ScanCursor, Share, Ticket, ValueColumns, ValueRows, VertexPage,
    Want, check_value_outputs, edge_columns_of_rows, look_up_in_steps, vertex_columns_of_rows,
};
