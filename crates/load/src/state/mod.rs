//! The state of a running load: ids, open batches, rejects, counts, and the sink.
//!
//! All of it belongs to the thread that called `load`. Parser threads touch nothing here but the map of ids, in which they look the ends
//! of edges up.
//!
//! - **LOAD-1.** Memory is never bounded by the size of a file, nor by what a compressed one unpacks to. It is bounded
//!   by: the map from file ids to vertices (16 to 40 bytes a vertex, for the length of the load); the ids of edges that
//!   files choose, and keys; files of values (`owned`); one open batch a label, with a limit over all of them; and a
//!   few parts of a file (half a megabyte, or some thousand rows) for each thread. The sink is told how many bytes that
//!   is.
//! - **LOAD-2.** A row is loaded whole or not at all. A bad row becomes a reject and does not stop the load, unless
//!   there are too many. A file that is damaged stops the load with its name and line.

mod batch;
mod context;
mod id_map;
mod owned;
mod rejects;

pub(crate) use batch::{BatchFile, EdgeBatches, RowOrigin, VertexBatches, VertexTable};
pub(crate) use context::{LoadContext, Pass};
pub(crate) use id_map::{IdMap, SpaceId};
pub(crate) use owned::OwnedValue;
pub(crate) use rejects::Rejects;
