//! Replacing lists: what compaction needs of a table (`compaction` says when and why).
//!
//! A list is replaced by a compare-and-swap of its descriptor that fails when a writer came in between (the parent
//! module's invariants 3 and 4); blocks that no list is in any more are given up.

use std::ops::Range;
use std::sync::atomic::{Ordering, fence};

use mangrove_graph::{EdgeId, VertexId};

use super::descriptor::{BLOCK_NUMBERS, COMPACTING, DIRTY, HEADER, LENGTH_MAX, packed_word};
use super::{AdjacencyTable, BLOCKS, Block, ListStorage};
use crate::epoch::{self, Pin};
use crate::limbo::Garbage;
use crate::memory::{Memory, RecordKind};
use crate::sync::{AtomicU64, Mutex};

/// The lists that a compaction replaced, as they were: for cursors that are inside one of them.
#[derive(Debug)]
pub(crate) struct Layout {
    /// The old descriptors; 0 where the list was not replaced.
    pub(crate) descriptors: Box<[AtomicU64]>,
    /// Edges whose cells are in here and no more in the table.
    pub(crate) dropped: Mutex<Vec<EdgeId>>,
}

impl Layout {
    pub(crate) fn new(capacity: usize) -> Self {
        Layout { descriptors: (0..capacity).map(|_| AtomicU64::new(0)).collect(), dropped: Mutex::default() }
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.descriptors)
    }
}

/// See [`AdjacencyTable::make_list`].
#[derive(Debug, Default)]
pub(crate) struct NewList {
    /// The list's stamp, and its block where it has none to itself.
    pub(crate) number: u32,
    /// Where the run lies in its block.
    pub(crate) run: Range<usize>,
    pub(crate) own: Option<Block>,
    pub(crate) tail: Vec<(VertexId, EdgeId)>,
}

/// See [`AdjacencyTable::weigh`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Weight {
    pub(crate) packed: u64,
    pub(crate) is_apart: bool,
    pub(crate) tail: u64,
    pub(crate) ended: u64,
    pub(crate) is_dirty: bool,
}

impl AdjacencyTable {
    /// Says that a compaction is going to look at a list with a header; the descriptor then. `None` if there is no
    /// header any more.
    pub(crate) fn begin_compaction(&self, at: usize) -> Option<u64> {
        let mut descriptor = self.descriptors[at].load(Ordering::Acquire);
        while descriptor & HEADER != 0 {
            let marked = descriptor | COMPACTING;
            match self.descriptors[at].compare_exchange(descriptor, marked, Ordering::SeqCst, Ordering::Acquire) {
                Ok(_) => {
                    // Pairs with the fence in `mark_ended`: either it sees the bit, or we see its claim.
                    fence(Ordering::SeqCst);
                    return Some(marked);
                }
                Err(current) => descriptor = current,
            }
        }
        None
    }

    /// Puts a new descriptor in place of one that a compaction has looked at, if nothing was added to or dirtied in
    /// the list since, and returns whether it did. `seen` is how many cells the tail had.
    pub(crate) fn replace(&self, at: usize, old: u64, new: u64, seen: u64, storage: &ListStorage) -> bool {
        let exchange = || self.descriptors[at].compare_exchange(old, new, Ordering::SeqCst, Ordering::Relaxed).is_ok();
        if old & HEADER == 0 {
            return exchange();
        }
        let header = storage.header(old);
        let _end = header.latch.lock();
        header.count.load(Ordering::Relaxed) == seen && exchange()
    }

    /// A number for another block, with a free place for it.
    pub(crate) fn next_block(&self, pin: &Pin) -> Option<u32> {
        let newest = self.newest_block.load(Ordering::Relaxed);
        // 0 is the block of a bulk load, and the stamp of lists without a run.
        let numbers = (newest + 1..).map(|number| number % BLOCK_NUMBERS).filter(|&number| number != 0);
        numbers.take(BLOCKS).find(|&number| self.block(number, pin).is_none())
    }

    /// Adds a block under a number of [`AdjacencyTable::next_block`].
    pub(crate) fn add_block(&self, number: u32, block: Block, memory: &Memory) {
        memory.add(RecordKind::Block, block.bytes());
        self.newest_block.store(number, Ordering::Relaxed);
        assert!(self.blocks[number as usize % BLOCKS].swap(Some(block)).is_none(), "the place of a new block is free");
    }

    /// Gives up the blocks that no list is in any more.
    pub(crate) fn retire_blocks(&self, storage: &ListStorage, garbage: &mut Vec<Garbage>, memory: &Memory) {
        let pin = epoch::pin();
        let mut needed = [false; BLOCKS];
        for at in 0..self.descriptors.len() {
            let descriptor = self.descriptor(at);
            if descriptor & HEADER != 0 && storage.header(descriptor).own.get(&pin).is_some() {
                continue;
            }
            let list = self.list_of(descriptor, storage, &pin);
            if !list.neighbors.is_empty() {
                needed[list.stamp as usize % BLOCKS] = true;
            }
        }
        for (cell, _) in self.blocks.iter().zip(needed).filter(|(_, needed)| !needed) {
            if let Some(block) = cell.get(&pin) {
                memory.remove(RecordKind::Block, block.bytes());
            }
            garbage.extend(cell.swap(None).map(Garbage::Box));
        }
    }

    /// The descriptor of a new list: a run of the table's block `number` or of a block of its own, and a tail.
    pub(crate) fn make_list(&self, list: NewList, storage: &ListStorage, memory: &Memory) -> u64 {
        let NewList { number, run, own, tail } = list;
        let len = run.len() as u64;
        if tail.is_empty() && own.is_none() && len <= LENGTH_MAX {
            return if len == 0 { 0 } else { packed_word(number, run.start as u64, len) };
        }
        let (index, header) = storage.new_header(memory);
        header.packed.store(((run.start as u64) << 32) | len, Ordering::Relaxed);
        header.block.store(number, Ordering::Relaxed);
        if let Some(own) = own {
            memory.add(RecordKind::Block, own.bytes());
            assert!(header.own.swap(Some(own)).is_none(), "a blank header has no block");
        }
        let mut end = header.latch.lock();
        for (neighbor, edge) in tail {
            header.push(&mut end, neighbor, edge, &storage.tails, memory);
        }
        HEADER | index
    }

    /// What is known of a list with a header at no cost: length of the run, whether it has a block to itself, cells
    /// of the tail, packed edges that ended (about), and whether there are such.
    pub(crate) fn weigh(&self, descriptor: u64, storage: &ListStorage, pin: &Pin) -> Weight {
        let header = storage.header(descriptor);
        Weight {
            packed: header.run().len() as u64,
            is_apart: header.own.get(pin).is_some(),
            tail: header.count.load(Ordering::Acquire),
            ended: u64::from(header.ended.load(Ordering::Relaxed)),
            is_dirty: descriptor & DIRTY != 0,
        }
    }
}
