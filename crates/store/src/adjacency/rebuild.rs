//! Replacing lists: the operations of a table for compaction. `garbage::compaction` says when and why.
//!
//! A list is replaced by a compare-and-swap of its descriptor, which fails if a writer came in between (STORE-14,
//! STORE-16). Then the writer's change is taken over and the exchange tried again. So every compaction moves every list
//! that it has looked at into the new block, and blocks without lists can be given up. Otherwise a table that is never
//! left alone would run out of entries for blocks.

use std::ops::Range;
use std::sync::atomic::{Ordering, fence};

use mangrove_graph::{EdgeId, VertexId};
use mangrove_locks::rank;
use mangrove_reclaim::Pin;
use mangrove_reclaim::sync::{AtomicU64, Mutex};

use super::descriptor::{
    BARE, COMPACTING, DIRTY, HEADER, LAYOUT_VERSIONS, is_clean_run, packed_layout, packed_run, packed_word,
};
use super::{AdjacencyTable, BLOCKS, Block, EndedCell, EndedEdges, ListStorage};
use crate::memory::{Garbage, Memory, RecordKind, Space};

/// The lists that a compaction replaced, as they were, for cursors that are inside one of them (STORE-17).
#[derive(Debug)]
pub(crate) struct Layout {
    /// The slots of the lists, ascending.
    slots: Box<[u16]>,
    /// Their old descriptors, with a note if there is nothing but a header ([`BARE`]); 0 before the list was replaced.
    pub(crate) descriptors: Box<[AtomicU64]>,
    /// Edges whose cells are in this layout and not in the table.
    pub(crate) dropped: Mutex<Vec<EdgeId>, rank::ReplacedLayout>,
}

impl Layout {
    /// A layout of lists that are about to be replaced, in the order of their slots.
    pub(crate) fn new(slots: impl Iterator<Item = usize>) -> Self {
        let slots: Box<[u16]> = slots.map(|slot| slot as u16).collect();
        Layout { descriptors: slots.iter().map(|_| AtomicU64::new(0)).collect(), slots, dropped: Mutex::default() }
    }

    /// The old descriptor of a slot; `None` if the list was not replaced.
    pub(super) fn descriptor(&self, at: usize) -> Option<&AtomicU64> {
        let position = self.slots.binary_search(&u16::try_from(at).ok()?).ok()?;
        self.descriptors.get(position)
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.slots) + size_of_val(&*self.descriptors)
    }
}

/// A list to be made by [`AdjacencyTable::make_list`].
#[derive(Debug)]
pub(crate) struct NewList<'a> {
    /// The layout version of the compaction. The run lies in its block unless the list has one to itself.
    pub(crate) layout_version: u32,
    /// Where the run lies in its block.
    pub(crate) run: Range<usize>,
    /// The block that the list has to itself.
    pub(crate) own: Option<Block>,
    pub(crate) tail: &'a [(VertexId, EdgeId)],
}

/// A list as a compaction saw it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    /// The slot of the list.
    pub(crate) at: usize,
    pub(crate) descriptor: u64,
    /// How many cells the tail had.
    pub(crate) tail_len: u64,
    /// The layout version of the list that replaces it.
    pub(crate) new_layout: u32,
}

/// The figures of a list with a header, which say whether it is worth packing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListFigures {
    pub(crate) layout_version: u32,
    /// The edges of the run.
    pub(crate) packed: u64,
    /// True if the run has a block to itself.
    pub(crate) is_apart: bool,
    /// The cells of the tail.
    pub(crate) tail: u64,
    /// About how many packed edges ended.
    pub(crate) ended: u64,
    pub(crate) is_dirty: bool,
}

impl AdjacencyTable {
    /// Notes that a compaction is going to look at a list that is no clean run. Returns the descriptor after that. The
    /// descriptor of a clean run, or of an empty list, is returned as it is.
    pub(crate) fn begin_compaction(&self, at: usize, space: Space<'_>, pin: &Pin) -> u64 {
        let mut descriptor = self.descriptors.load(at, pin);
        while !is_clean_run(descriptor) {
            let marked = descriptor | COMPACTING;
            match self.descriptors.exchange(at, descriptor, marked, space, pin) {
                Ok(()) => {
                    // Pairs with the fence in `mark`: either the writer sees the bit, or this thread sees the writer's
                    // claim and the name (STORE-14, STORE-15).
                    fence(Ordering::SeqCst);
                    return marked;
                }
                Err(current) => descriptor = current,
            }
        }
        descriptor
    }

    /// Starts loading the bits of the cells that are named, in the blocks that all lists share.
    pub(crate) fn prefetch_names(&self, pin: &Pin) {
        self.blocks.iter().filter_map(|block| block.get(pin)).for_each(|block| block.ended.prefetch());
    }

    /// Replaces a list that a compaction has looked at. Returns true if the new list is as it was built. Changes that
    /// writers made in the meantime go over to it: cells that were appended go into its tail, and edges that ended are
    /// named in its run (STORE-15). So every list leaves its old block, however busy it is.
    ///
    /// `remembered` is where the old list stays readable for cursors that are inside it.
    pub(crate) fn replace(
        &self,
        seen: &Seen,
        new: u64,
        remembered: &AtomicU64,
        storage: &ListStorage,
        space: Space<'_>,
        pin: &Pin,
    ) -> bool {
        let mut current = seen.descriptor;
        assert_ne!(
            self.layout_of(current, storage, pin),
            seen.new_layout,
            "a cursor tells the new list from the old one"
        );
        let exchange = |current: u64, new: u64, note: u64| {
            // Before the replacement: a cursor that meets the new list finds the old one (STORE-17). The dirty bit goes
            // along, since a packed edge may have ended for the cursor.
            remembered.store(current | note, Ordering::Release);
            self.descriptors.exchange(seen.at, current, new, space, pin)
        };
        let mut is_dirty = false;
        if is_clean_run(current) {
            if exchange(current, new, 0).is_ok() {
                return true;
            }
            // A writer has marked the run, or given it a header. From here on, writers give late names.
            current = self.begin_compaction(seen.at, space, pin);
            let old = self.list_of(current, storage, pin);
            old.suspects.each(|at| {
                let place = (((at as u64) << 32) / old.neighbors.len() as u64) as u32;
                let ended = EndedEdges::One(EndedCell { neighbor: old.neighbors[at], edge: old.edges[at], place });
                is_dirty |= self.name(new, ended, storage, pin);
            });
        }
        let mut exchange_named = |current: u64, new: u64, note: u64| {
            // Held until the list is replaced: a writer that gets the lock afterwards meets the new list.
            let mut names = storage.late_names.lock();
            let of_list = names.extract_if(.., |name| name.at == seen.at);
            of_list.for_each(|name| is_dirty |= self.name(new, name.ended, storage, pin));
            exchange(current, if is_dirty { new | DIRTY } else { new }, note).map(|()| !is_dirty)
        };
        while current & HEADER == 0 {
            match exchange_named(current, new, 0) {
                Ok(is_clean) => return is_clean,
                // A writer has marked the run, or given it a header, which names it until it is replaced.
                Err(found) => current = found,
            }
        }
        let header = storage.header(current, pin);
        let _appending = header.latch.lock();
        let is_longer = header.count() > seen.tail_len;
        let new = if is_longer { self.carry_over(current, seen, new, storage, space.memory, pin) } else { new };
        // The header stays as it is from here on. With the note, it is given up without another look at it.
        let note = if header.is_bare(pin) { BARE } else { 0 };
        loop {
            match exchange_named(current, new, note) {
                Ok(is_clean) => return is_clean && !is_longer,
                Err(found) => current = found,
            }
        }
    }

    /// The descriptor of `new` with a header. Its tail gets the cells that came to the old list after it was looked at.
    /// The caller has the old list's latch.
    fn carry_over(&self, old: u64, seen: &Seen, new: u64, storage: &ListStorage, memory: &Memory, pin: &Pin) -> u64 {
        let new = match new & HEADER {
            0 => {
                let (index, header) = storage.new_header(memory, pin);
                header.set_packed(packed_run(new), seen.new_layout);
                HEADER | index
            }
            _ => new,
        };
        let header = storage.header(new, pin);
        // Not waited for, since the old header's latch is held: no descriptor names this one yet.
        let mut appending = header.latch.try_lock().expect("a list that is not published is not contended");
        for (_, neighbor, edge) in self.list_of(old, storage, pin).tail(seen.tail_len) {
            header.push(&mut appending, (neighbor, edge), &storage.tails, memory, pin);
        }
        new
    }

    /// Takes the next layout version, by a collector that has the tablet's turn. It is taken even if the compaction
    /// adds no block or replaces no list. The entry of its block is free once the previous layout is given up, since
    /// then at most one block is left.
    pub(crate) fn take_layout_version(&self, pin: &Pin) -> u32 {
        let last = self.layout_version.load(Ordering::Relaxed);
        // 0 is the version of a bulk load, and of lists that began empty.
        let versions = (last + 1..).map(|version| version % LAYOUT_VERSIONS).filter(|&version| version != 0);
        let mut free = versions.take(2 * BLOCKS).filter(|&version| self.block(version, pin).is_none());
        let version = free.next().expect("compactions leave one block, so another entry is free");
        self.layout_version.store(version, Ordering::Relaxed);
        version
    }

    /// Adds the block of a layout version that [`AdjacencyTable::take_layout_version`] gave.
    pub(crate) fn add_block(&self, layout_version: u32, block: Block, memory: &Memory) {
        memory.add(RecordKind::Block, block.bytes());
        let entry = &self.blocks[layout_version as usize % BLOCKS];
        assert!(entry.swap(Some(block)).is_none(), "the entry of a new block is free");
    }

    /// The layout version of the list that a descriptor describes.
    fn layout_of(&self, descriptor: u64, storage: &ListStorage, pin: &Pin) -> u32 {
        match descriptor & HEADER {
            0 => packed_layout(descriptor),
            _ => storage.header(descriptor, pin).layout_version(),
        }
    }

    /// Gives up the blocks that no list needs, and the descriptors if there is no list at all. By the collector that has
    /// compacted the table last, while the table has no previous layout.
    ///
    /// Every list lies in the block of the last layout version, in a block of its own, or in none: the compaction has
    /// replaced all others. So no list is looked at, which would be a cache miss for each header.
    pub(crate) fn retire_blocks(&self, storage: &ListStorage, garbage: &mut Vec<Garbage>, space: Space<'_>, pin: &Pin) {
        let newest = self.layout_version.load(Ordering::Relaxed);
        let is_empty = self.descriptors.slots(pin).all(|at| self.descriptor(at, pin) == 0);
        debug_assert!(self.are_lists_of(newest, storage, pin), "a compaction replaces every list of an older layout");
        for (entry, cell) in self.blocks.iter().enumerate() {
            if is_empty || entry != newest as usize % BLOCKS {
                if let Some(block) = cell.get(pin) {
                    space.memory.remove(RecordKind::Block, block.bytes());
                }
                garbage.extend(cell.swap(None).map(Garbage::Box));
            }
        }
        if is_empty {
            // A list that has come in the meantime keeps them.
            self.descriptors.empty(space, pin);
        }
    }

    /// Returns true if all lists with packed edges in blocks of the table are of this layout version.
    fn are_lists_of(&self, layout_version: u32, storage: &ListStorage, pin: &Pin) -> bool {
        self.descriptors.slots(pin).map(|at| self.descriptor(at, pin)).all(|descriptor| {
            let is_apart = descriptor & HEADER != 0 && storage.header(descriptor, pin).own.get(pin).is_some();
            let list = self.list_of(descriptor, storage, pin);
            is_apart || list.neighbors.is_empty() || list.layout_version == layout_version
        })
    }

    /// The descriptor of a new list: a run of the table's new block or of a block of its own, and a tail.
    pub(crate) fn make_list(&self, list: NewList<'_>, storage: &ListStorage, memory: &Memory, pin: &Pin) -> u64 {
        let NewList { layout_version, run, own, tail } = list;
        let len = run.len() as u64;
        if tail.is_empty() && own.is_none() {
            return if len == 0 { 0 } else { packed_word(layout_version, run.start as u64, len) };
        }
        let (index, header) = storage.new_header(memory, pin);
        header.set_packed(run, layout_version);
        if let Some(own) = own {
            memory.add(RecordKind::Block, own.bytes());
            assert!(header.own.swap(Some(own)).is_none(), "a blank header has no block");
        }
        let mut appending = header.latch.lock();
        for &(neighbor, edge) in tail {
            header.push(&mut appending, (neighbor, edge), &storage.tails, memory, pin);
        }
        HEADER | index
    }

    /// The figures of a list whose descriptor names a header.
    pub(crate) fn figures(&self, descriptor: u64, storage: &ListStorage, pin: &Pin) -> ListFigures {
        let header = storage.header(descriptor, pin);
        ListFigures {
            layout_version: header.layout_version(),
            packed: header.run().len() as u64,
            is_apart: header.own.get(pin).is_some(),
            tail: header.count(),
            ended: header.ended().into(),
            is_dirty: descriptor & DIRTY != 0,
        }
    }
}
