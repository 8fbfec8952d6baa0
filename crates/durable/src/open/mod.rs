//! Open forms: what a checkpoint has for programs other than this one. They are made from the graph and can be made again;
//! recovery never reads them.
//!
//! | module | what it holds |
//! |---|---|
//! | `delta` | what has changed in the lists of a page since its block |
//! | `lists` | lists of edges as bytes |
//! | `runs` | look-up indexes, from ids and values to elements |
//! | `statistics` | counts of the graph |
//! | `topology` | the lists of a page of vertices as a block of a pack |
//! | [`columns`] | the elements of a label set as a Parquet file |
//!
//! - **LOG-100.** Open forms are of the snapshot of a checkpoint. The manifest says of which one. A manifest without that
//!   has no open forms: blocks that are still in its packs do not count.
//! - **LOG-101.** In a graph with topology blocks, these are not compressed: the catalog that the manifest names, and the
//!   directories of its pack and of the packs with topology or look-up indexes, and of later ones. So a reader needs nothing but the description of the format.
//!
//! LOG-103, of deltas, is in the header of [`delta`], and LOG-104, of look-up indexes, in that of [`runs`]. `docs/design/open-formats.md` describes the formats for readers.

pub mod columns;
pub(crate) mod delta;
mod lists;
pub(crate) mod runs;
mod statistics;
pub(crate) mod topology;

pub(crate) use delta::{TopologyDelta, put_delta, read_delta};
pub(crate) use lists::tablet_bits;
pub(crate) use statistics::GraphCounts;
pub(crate) use topology::{TopologyBlock, layers_checksum, put_topology, read_topology};
