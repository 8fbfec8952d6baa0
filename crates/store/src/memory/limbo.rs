//! What of a store waits in a limbo, and the two things a structure needs that grows while readers use it.
//!
//! `mangrove_reclaim` says when unlinked things may be used again; here is which things a store unlinks.

use mangrove_graph::ElementId;
use mangrove_reclaim::{Retired, Unlinked};

use crate::memory::{Memory, Write};

/// Something unlinked. Numbers are those of the tablet's pools.
#[derive(Debug)]
pub(crate) enum Garbage {
    /// Memory to be freed.
    Box(Retired),
    /// An undo record.
    Undo { tablet: u16, record: u64 },
    /// A record of the value region that no cell names any more: its content is refused to readers next.
    Value { tablet: u16, record: u64 },
    /// A record of the value region whose content is refused: it is cleared next.
    DyingValue { tablet: u16, record: u64 },
    /// A header of an adjacency list.
    Header { tablet: u16, record: u64 },
    /// A row of a tail.
    Row { tablet: u16, start: u64, len: u64 },
    /// The slot of an element that left no trace.
    Slot(ElementId),
    /// The log of a transaction that was rolled back: while readers of the rollback may be there, a cell must not look as
    /// if it had never been written (`cell::column`).
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

/// What a structure needs that outgrows its memory while readers use it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Space<'a> {
    /// Counts its bytes.
    pub(crate) memory: &'a Memory,
    /// Holds the memory that it has outgrown until no reader uses it.
    pub(crate) limbo: &'a Limbo,
}

#[cfg(all(test, not(feature = "model")))]
pub(crate) fn release_boxes(limbo: &Limbo) {
    limbo.release(usize::MAX, |garbage| unreachable!("{garbage:?} is no memory"));
}
