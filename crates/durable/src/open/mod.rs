//! Open forms: what a checkpoint has for programs other than this one. They are made from the graph and can be made again;
//! recovery never reads them.
//!
//! | module | what it holds |
//! |---|---|
//! | `topology` | the lists of a page of vertices as a block of a pack |
//!
//! - **LOG-100.** Open forms are of the snapshot of a checkpoint. The manifest says of which one. A manifest without that
//!   has no open forms: blocks that are still in its packs do not count.
//! - **LOG-101.** In a graph with topology blocks, the directories of their packs, and the catalog that the manifest names, are
//!   not compressed. So a reader needs nothing but the description of the format.
//!
//! `docs/design/open-formats.md` describes the formats for readers.

pub(crate) mod topology;

pub(crate) use topology::{TopologyBlock, put_topology, read_topology, tablet_bits};
