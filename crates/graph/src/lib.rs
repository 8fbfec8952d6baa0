//! The vocabulary every room of the house shares: ids, values, the catalog of names, errors, and the
//! read interface ([`GraphView`]) behind which a graph lives in memory today and on a disk or on object
//! storage later.
//!
//! Nothing here knows how a graph is stored, what a traversal is, or what a transaction does. This crate
//! imports no other crate of the workspace.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod adjacency;
pub mod budget;
pub mod catalog;
pub mod codec;
pub mod columns;
pub mod compare;
pub mod datetime;
pub mod error;
pub mod ids;
pub mod numbers;
pub mod numeric;
pub mod pieces;
pub mod property_id;
pub mod structure;
pub mod value;
pub mod view;

pub use adjacency::{AdjacencyRequest, AdjacencyRuns};
pub use budget::{Draw, MemoryBudget, Purpose};
pub use catalog::Catalog;
pub use columns::{RowValues, ValueColumns};
pub use datetime::{DateTime, Duration};
pub use error::{Error, ErrorKind, Remedy, Result};
pub use ids::{
    EdgeId, ElementId, ElementKind, IdRule, IndexId, KeyId, LabelId, LabelSetId, TabletId, UserId, VertexId,
};
pub use numbers::{NumberType, Numbers};
pub use structure::{GraphValue, Tree};
pub use value::{
    Detached, DetachedVertexProperty, Direction, PathValue, PropertyOwner, PropertyValue, Token, Value,
    VertexPropertyValue,
};
pub use view::{
    ExpandCursor, ExpandRequest, Expansion, GraphView, IndexInfo, IndexRange, LabelFilter, PropertyRow, ScanCursor,
    Share, Statistics, ValueRows,
};
