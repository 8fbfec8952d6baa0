//! Loading of Arrow: tables of record batches become vertices and edges.
//!
//! `decode` turns arrays into values, `table` names what columns are for. The load itself is that of files (`mangrove_load`): the
//! same ids, upserts, rejects and progress.

mod decode;
mod table;

pub use decode::{check_type, values};
pub use table::{ArrowElements, ArrowLabel, ArrowTable};
