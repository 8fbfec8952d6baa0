//! Files of vertices and edges into a graph, and a graph into files.
//!
//! [`load`] reads tables (CSV and its kin, with typed headers or a [`Mapping`]; Parquet), GraphSON, JSON lines and GraphML, compressed or
//! not, and hands batches to a [`Sink`]. [`export`](mod@export) writes what a `GraphView` shows. This crate knows nothing of stores and transactions; the
//! embedded database puts a bulk loader, or transactions, behind the sink.
//!
//! Invariants:
//!
//! 1. All vertices come before the first edge, whatever the order of the files, so an edge may refer to a
//!    vertex of any file. A document that holds both is read twice.
//! 2. Memory is bounded by the map from file ids to vertices (16 to 40 bytes a vertex, kept for the length of
//!    the load; the sink hears of it), the ids of edges where the files choose them, keys, files of values (`owned`), one batch a label, and a few parts of a file
//!    (half a megabyte, or some thousand rows) for each thread: never by the size of a file, nor by what a compressed one unpacks to.
//! 3. A row is loaded whole or not at all. A bad row becomes a reject (`reject`) and never stops the load
//!    unless there are too many; a file that is not what it claims to be stops it, with its name and line.
//! 4. The same files give the same batches in the same order, on any number of threads: they parse (`parallel`), one of them
//!    hands over.
//! 5. What is exported loads as an equal graph, but for what the format has no place for, which is counted.
//!
//! 6. A plain load and an upsert into an empty graph make the same graph: what identifies an element is unique in a load (`identity`).
//!
//! Not here: finding what is in the graph already, which is the sink's matter; Arrow. Parquet is the feature `parquet`.
//!
//! Read `load` for the order of things, `header` and `mapping` for what columns mean, `row` for what a row says, `table` for what
//! becomes of it, [`rows`] for batches that travel to a sink elsewhere, [`mod@export`] for the way out.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod batch;
mod column_type;
mod context;
mod draft;
mod dry_run;
pub mod export;
mod graphml;
mod graphson;
mod header;
mod id_map;
mod identity;
mod inference;
mod input;
mod labels;
mod layout;
mod load;
mod mapping;
mod owned;
mod parallel;
#[cfg(feature = "parquet")]
mod parquet;
mod plan;
mod progress;
mod record;
mod reject;
mod row;
pub mod rows;
mod sink;
mod table;
mod temporal;
mod text_rows;
mod typed_json;

pub use dry_run::{ColumnReport, DryRun, TableReport, dry_run};
pub use identity::{EdgeIdentity, ElementKey, UpsertKeys, VertexIdentity};
pub use load::{ELEMENT_BYTES_MAX_DEFAULT, FileGroup, Format, LoadOptions, MAX_REJECTS_DEFAULT, load};
pub use mapping::Mapping;
pub use progress::{FileReport, LoadReport, Progress, TextColumn, UpsertCounts};
pub use sink::{Cardinality, Column, EdgeBatch, MultiProperty, MultiValue, Sink, Upserted, VertexBatch};
