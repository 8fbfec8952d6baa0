//! Names of packs and of the blocks in them.
//!
//! ```text
//! pack/HHHHHHHH-INC-C                       the pack with counter C of incarnation INC
//! segment/HHHHHHHH-TTTTT-VVVVVVVVVVVVVVVV   format 1: images of tablet T, written for manifest V
//! segment/HHHHHHHH-names-VVVVVVVVVVVVVVVV   format 1: names
//! ```
//!
//! `INC`, `C` and `V` have 16 hexadecimal digits, `T` has five decimal ones. `HHHHHHHH` is the CRC32C of the rest of the
//! name, so that object stores spread the packs.

use std::fmt;

use mangrove_graph::{ElementKind, TabletId};
use mangrove_store::image::PageName;

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

/// The name of a block: its kind, and of what it is. Names are ordered as in the directory of a pack.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct BlockName {
    pub(crate) kind: u8,
    /// The tablet; 0 for blocks of the graph.
    pub(crate) tablet: u16,
    pub(crate) number: u32,
}

impl BlockName {
    /// The block with names, indexes and rules.
    pub(crate) const CATALOG: BlockName = BlockName { kind: KIND_CATALOG, tablet: 0, number: 0 };

    /// The block with the image of a page.
    pub(crate) fn of_page(page: PageName) -> Self {
        let kind = match page.kind {
            ElementKind::Vertex => KIND_VERTICES,
            ElementKind::Edge => KIND_EDGES,
        };
        BlockName { kind, tablet: page.tablet.0, number: page.number }
    }

    /// The page whose image the block is, if it is one.
    pub(crate) fn page(self) -> Option<PageName> {
        let kind = match self.kind {
            KIND_VERTICES => ElementKind::Vertex,
            KIND_EDGES => ElementKind::Edge,
            _ => return None,
        };
        Some(PageName { tablet: TabletId(self.tablet), kind, number: self.number })
    }

    /// Returns true if a reader that does not know the kind may skip the block (LOG-27).
    pub(super) fn may_be_skipped(self) -> bool {
        matches!(self.kind, 3 | 4 | 5 | 7 | 8)
    }
}

impl fmt::Display for BlockName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.page() {
            Some(page) => write!(f, "the image of {page}"),
            None if self.kind == KIND_CATALOG => f.write_str("the catalog"),
            None => write!(f, "block {} of kind {} of tablet {}", self.number, self.kind, self.tablet),
        }
    }
}
