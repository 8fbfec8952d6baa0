//! The garbage of a store: unlinked memory and records that wait in a limbo for their grace period.
//!
//! `mangrove_reclaim` decides when the grace period is over (RECLAIM-3). `garbage` gives back what leaves the limbo.

use mangrove_graph::ElementId;
use mangrove_reclaim::{Retired, Unlinked};

use crate::memory::{Memory, Write};

/// Unlinked memory, or an unlinked record. `record`, `start` and `len` are numbers in the pools of the tablet.
#[derive(Debug)]
pub(crate) enum Garbage {
    /// Memory to be freed.
    Box(Retired),
    /// An undo record.
    Undo { tablet: u16, record: u64 },
    /// A record of the value region that no cell names. After the grace period, readers are refused its content.
    Value { tablet: u16, record: u64 },
    /// A record of the value region whose content is refused. After the grace period it is cleared.
    DyingValue { tablet: u16, record: u64 },
    /// A header of an adjacency list, and whether it has a block to itself.
    Header { tablet: u16, record: u64, has_block: bool },
    /// A row of a tail.
    Row { tablet: u16, start: u64, len: u64 },
    /// The slot of an element that nothing names.
    Slot(ElementId),
    /// The log of a transaction that was rolled back. Its undo records stay linked for a grace period (STORE-6).
    Aborted(Vec<Write>),
}

impl From<Retired> for Garbage {
    fn from(memory: Retired) -> Self {
        Garbage::Box(memory)
    }
}

impl Unlinked for Garbage {
    #[inline]
    fn into_memory(self) -> Result<Retired, Self> {
        match self {
            Garbage::Box(memory) => Ok(memory),
            name => Err(name),
        }
    }
}

/// The limbo of a store.
pub(crate) type Limbo = mangrove_reclaim::Limbo<Garbage>;

/// The accounts that a structure needs to grow while readers use it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Space<'a> {
    /// Counts the bytes of the structure.
    pub(crate) memory: &'a Memory,
    /// Takes the memory that the structure has outgrown, until no reader uses it.
    pub(crate) limbo: &'a Limbo,
}

#[cfg(all(test, not(feature = "model")))]
pub(crate) fn release_boxes(limbo: &Limbo) {
    limbo.release(usize::MAX, |garbage| unreachable!("{garbage:?} is no memory"));
}
