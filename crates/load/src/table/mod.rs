//! Rows of tables into vertices, edges and values, as the plan of the table says.
//!
//! `text` and `parquet` read rows on several threads, `source` takes those of a program; `row` is what a row says by itself; `elements` takes the rows in
//! their order on the thread of the load.

mod elements;
#[cfg(feature = "parquet")]
mod parquet;
mod row;
mod source;
mod stored;
mod text;

pub(crate) use elements::{each_label, infer_types, load, reject_ownerless};
