//! Loads files of vertices and edges into a graph, or tables of a program, and writes a graph to files.
//!
//! [`load`](fn@load) reads tables (CSV and similar formats, with typed headers or a [`Mapping`]; Parquet), GraphSON,
//! JSON lines and GraphML, compressed or not. It hands batches of elements to a [`LoadSink`]. [`export`](mod@export)
//! writes what a `GraphView` shows. The crate knows nothing of stores and transactions: the embedded database
//! implements the sink with its bulk loader or with transactions.
//!
//! ```text
//! files ─ input ─ bytes, rows ─┬─ plan ── what each column is for ──┐
//!                              └─ table, document ── elements ── state ── batches ─ sink
//! ```
//!
//! | room | what is in it | may use |
//! |---|---|---|
//! | `input` | files as bytes; text cut into rows and fields | – |
//! | `values` | ids, types of columns, dates, typed JSON | – |
//! | `sink` | the trait of the receiving side, batches, and how elements are recognized | – |
//! | `source` | tables that a program hands over instead of files | – |
//! | `mapping`, `options`, `progress` | what the caller says, and what the caller is told | the above |
//! | `parquet` | columns of Parquet files, decoded within bounds | `input`, `values` |
//! | `plan` | the files of a load and what each column is for; made before a row is read | the above |
//! | `state` | what one running load holds: ids, open batches, rejects, counts | `plan`, `sink` |
//! | `table`, `document` | rows of tables, and elements of documents, into batches | `state`, `parallel` |
//! | `load` | the order of all this; dry runs | all |
//! | [`mod@export`] | the way out | `input`, `values`, `plan` |
//!
//! The invariants `LOAD-n` stand in the headers of the modules that own them: LOAD-1 and LOAD-2 in `state`, LOAD-3 in
//! `load::order`, LOAD-4 in `parallel`, LOAD-5 in [`mod@export`], LOAD-6 in `values::file_id`, LOAD-7 in
//! `plan::identities`.
//!
//! [`load_tables`] loads rows that a program has in memory, or makes.
//!
//! Not here: finding elements that are in the graph already, which the sink does; Arrow. Parquet is the feature
//! `parquet`.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod document;
pub mod export;
mod input;
mod load;
mod mapping;
mod options;
mod parallel;
#[cfg(feature = "parquet")]
mod parquet;
mod plan;
mod progress;
mod sink;
mod source;
mod state;
mod table;
mod values;

pub use input::ELEMENT_BYTES_MAX_DEFAULT;
pub use load::{ColumnReport, DryRun, TableReport, dry_run, load, load_tables};
pub use mapping::Mapping;
pub use options::{FileGroup, LoadFormat, LoadOptions, MAX_REJECTS_DEFAULT};
pub use progress::{FileReport, LoadProgress, LoadReport, REJECTS_REPORTED_MAX, RejectedRow, TextColumn, UpsertCounts};
pub use sink::{
    Cardinality, EdgeBatch, EdgeIdentity, ElementKey, LoadSink, MultiPropertyRow, PropertyColumn, UpsertKeys, Upserted,
    ValueWithMeta, VertexBatch, VertexIdentity, rows,
};
pub use source::{RowSource, SourceBatch, SourceBlock, SourceElements, SourceLabel, SourceProperty, SourceTable};
