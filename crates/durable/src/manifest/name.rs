//! Names of packs, and the numbers of kinds of blocks.
//!
//! ```text
//! pack/HHHHHHHH-INC-C                       the pack with counter C of incarnation INC
//! segment/HHHHHHHH-TTTTT-VVVVVVVVVVVVVVVV   format 1: images of tablet T, written for manifest V
//! segment/HHHHHHHH-names-VVVVVVVVVVVVVVVV   format 1: names
//! ```
//!
//! `INC`, `C` and `V` have 16 hexadecimal digits, `T` has five decimal ones. `HHHHHHHH` is the CRC32C of the rest of the
//! name, so that object stores spread the packs.

use mangrove_graph::TabletId;

/// The directory of packs.
pub const CHECKPOINT_DIR: &str = "pack";
/// The directory of checkpoint files of format 1.
pub const FIRST_CHECKPOINT_DIR: &str = "segment";

/// The kind of the image of a page of vertices.
pub(crate) const KIND_VERTICES: u8 = 0;
/// The kind of the image of a page of edges.
pub(crate) const KIND_EDGES: u8 = 1;
/// The kind of the block with names, indexes and rules.
pub(crate) const KIND_CATALOG: u8 = 2;
/// The kind of the topology of a page of vertices.
pub(crate) const KIND_TOPOLOGY: u8 = 3;
/// The kind of what has changed in the topology of a page since its block.
pub(crate) const KIND_TOPOLOGY_DELTA: u8 = 4;
/// The kind of the block with the counts of the graph.
pub(crate) const KIND_STATISTICS: u8 = 5;

/// The name of a pack, or of a checkpoint file of format 1.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum PackName {
    /// A pack. No other one has the same numbers (LOG-28).
    Pack { incarnation: u64, counter: u64 },
    /// A file of format 1: its tablet, or none for names; and the version of the manifest that it was written for.
    First { tablet: Option<TabletId>, version: u64 },
}

impl PackName {
    /// The path.
    pub(crate) fn path(self) -> String {
        let (directory, rest) = match self {
            PackName::Pack { incarnation, counter } => (CHECKPOINT_DIR, format!("{incarnation:016x}-{counter:016x}")),
            PackName::First { tablet: Some(TabletId(tablet)), version } => {
                (FIRST_CHECKPOINT_DIR, format!("{tablet:05}-{version:016x}"))
            }
            PackName::First { tablet: None, version } => (FIRST_CHECKPOINT_DIR, format!("names-{version:016x}")),
        };
        format!("{directory}/{:08x}-{rest}", crc32c::crc32c(rest.as_bytes()))
    }

    /// The name with this path; `None` if there is no such name.
    pub(crate) fn of_path(path: &str) -> Option<Self> {
        let (directory, name) = path.split_once('/')?;
        let (first, last) = name.split_once('-')?.1.split_once('-')?;
        let number = |text: &str| u64::from_str_radix(text, 16).ok();
        let found = match (directory, first) {
            (CHECKPOINT_DIR, incarnation) => {
                PackName::Pack { incarnation: number(incarnation)?, counter: number(last)? }
            }
            (_, "names") => PackName::First { tablet: None, version: number(last)? },
            (_, tablet) => PackName::First { tablet: Some(TabletId(tablet.parse().ok()?)), version: number(last)? },
        };
        (found.path() == path).then_some(found)
    }
}
