//! Arrow both ways: results, properties and topology as record batches, and record batches as vertices and edges to load.
//!
//! ```text
//! values, ids ─ table ─ column ─ build ─▶ record batches         record batches ─ load ─▶ mangrove_load
//! ```
//!
//! | module | content |
//! |---|---|
//! | `options` | what callers choose |
//! | `kind`, `text` | the type that holds the values of a column; values as text |
//! | `build` | values as an array of a given type |
//! | `column` | a column while its values are read |
//! | `table` | results as columns |
//! | `result` | results whole, or as a stream |
//! | `ids` | ids of elements as arrays |
//! | `properties`, `csr`, `algorithm` | tables of elements; compressed rows; results of algorithms |
//! | `load` | record batches as tables to load |
//!
//! `docs/arrow.md` has the types both ways and the shapes.
//!
//! Not here: running queries (`mangrove`), and writing what is loaded (the sinks of `mangrove`).

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod algorithm;
mod build;
mod column;
mod csr;
mod ids;
mod kind;
mod load;
mod options;
mod properties;
mod result;
mod table;
mod text;

pub use arrow_array;
pub use arrow_schema;

pub use algorithm::algorithm_batch;
pub use arrow_array::{RecordBatch, RecordBatchReader};
pub use arrow_schema::SchemaRef;
pub use csr::{Csr, csr};
pub use load::{ArrowElements, ArrowLabel, ArrowTable, check_type, values};
pub use options::{ArrowOptions, Layout, Mixed};
pub use properties::{ElementColumns, edge_table, labels, vertex_table};
pub use result::{ArrowStream, Collected, ResultSource, Results, collect};
