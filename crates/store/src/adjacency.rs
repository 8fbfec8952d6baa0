//! Adjacency lists: one word a list, packed runs, and headers for lists that are long or growing.
//!
//! An [`AdjacencyTable`] holds the lists of one page's vertices in one direction along one edge label set. A list is
//! one descriptor word, read once, so that no reader sees half of a replacement:
//!
//! ```text
//! 0                                                     no edge
//! 0dc | layout version 13 | offset 32 | length 16       a packed run in one of the table's blocks
//! 1dc | unused   | header number 48                     a list header
//!                                                       d: the packed part is dirty
//!                                                       c: a compaction is looking at the list
//! ```
//!
//! The neighbors of a run lie together, and so do its edge ids; runs are sorted by neighbor. The *tail* of a header
//! holds the edges that were added since the list was packed. A reader checks each of them against the edge's version
//! words, which alone say whether an edge is visible.
//!
//! - **STORE-13.** Every edge in a clean run was frozen when it was packed, and no transaction that has returned from
//!   claiming has claimed its end. So a reader takes a clean run without looking at versions.
//! - **STORE-14.** The dirty bit is set after a packed edge's end was claimed, and before the claiming call returns. A
//!   reader that takes the run between the two is right to see the edge: for other transactions a claim has not
//!   happened, and for the claimer's own reads its running statement has not. There is a fence between claim and look.
//!   If the claimer sees the compaction bit, it gives a late name (STORE-15): a compaction that has not seen the claim
//!   makes the new list dirty.
//! - **STORE-39.** The first change of a descriptor that a bulk load has filled is noted before it is made. So a reader that finds
//!   the block of a bulk load with the ends of all runs, and then no note, takes these runs without a look at any descriptor: each
//!   names a clean run of that block. They are as they were when the reader looked for the note.
//! - **STORE-16.** A list grows under its header's latch, and only while the descriptor names the header. The header's
//!   count, stored last, publishes the cell to readers, which take no latch.
//! - **STORE-17.** A table has at most one previous layout, and is compacted only while it has none. A previous layout
//!   stays readable until every transaction has ended that began before the layout was replaced.
//!
//! An edge whose cell is in the tail needs no dirty bit, since cells of tails are always checked. While the compaction
//! bit is off it needs no name either: a compaction that sets the bit afterwards sees the claim. A clean run without a
//! header gets no compaction bit: there the dirty bit changes the very word that compaction exchanges, and one of the
//! two fails.
//!
//! Only compaction, and the clearing of a dead vertex, replaces a header's descriptor: one thread at a time in a
//! tablet. Headers, rows and blocks that no descriptor names are used again a grace period later.
//!
//! # Layout versions
//!
//! A cursor is a position in a list, and compaction reorders lists. So every list has a *layout version* of 13 bits, in
//! its descriptor or its header, and a cursor carries the version of the list that it is in. If the list at hand has
//! another version, the cursor looks for its own list in the table's previous layout
//! (`AdjacencyTable::list_of_layout`).
//!
//! 1. Every compaction of a table takes the next version and gives it to every list that it makes, even if it adds no
//!    block. A list that is not replaced keeps its version: a packed run that gets a header, a header whose tail grows.
//! 2. A list is replaced by one of another version. Most lists are replaced in every compaction, so their version is
//!    that of the last one, or 0. A long list in a block of its own may be passed over so often that its version comes
//!    round; then compaction passes over it once more.
//! 3. While a cursor is inside a list, the list is not emptied. The cursor has taken one of its edges. As long as the
//!    cursor's transaction runs, some snapshot sees that edge or it is still claimed, so compaction keeps its cell.
//!
//! Why a cursor finds its list. Suppose that a cursor of a running transaction is inside list A. The first compaction
//! after that replaces A by a list B of another version (2), and A becomes part of the previous layout. There is no
//! second compaction while the transaction runs (STORE-17). So the cursor meets one of two lists:
//!
//! | the cursor meets | then |
//! |---|---|
//! | A | it knows A by its version and goes on |
//! | B | its version differs, and the cursor finds A in the previous layout |
//!
//! A list that began empty has version 0, which no compaction takes. It cannot be mistaken for a list of version 0 that
//! was emptied before, since no cursor is inside that one (3). No argument compares versions that are more than one
//! compaction of a list apart, so the numbers may wrap.
//!
//! | module | what it holds |
//! |---|---|
//! | this one | tables, and how lists are found, grow and become dirty |
//! | `descriptor`, `words` | the descriptor word; the descriptor words of a table |
//! | `storage`, `tail` | headers and the rows of tails |
//! | `list` | a list as a reader meets it |
//! | `changes`, `ended` | when a table is due for compaction; which packed edges may have ended |
//! | `rebuild` | what compaction needs of a table |

mod changes;
mod descriptor;
mod ended;
mod list;
mod rebuild;
mod storage;
pub(crate) mod tail;
mod words;

use std::ops::Range;
use std::sync::atomic::{Ordering, fence};

use mangrove_graph::{EdgeId, VertexId};
use mangrove_reclaim::prefetch::prefetch_range_once;
use mangrove_reclaim::sync::AtomicU32;
use mangrove_reclaim::{EpochCell, Pin, epoch};

use crate::connections::{Connecting, NotedFacts};
use crate::memory::{Garbage, Memory, RecordKind, Space};
use crate::sizes::StoreSizes;

use changes::{Change, Changes};
use descriptor::{COMPACTING, DIRTY, FLAGS, packed_layout, packed_run, packed_word, same_header, same_list};
pub(crate) use descriptor::{HEADER, clean_run_len, follow_runs, is_clean_run};
pub(crate) use ended::EndedCell;
use ended::Suspects;
use list::prefetch_run;
pub(crate) use list::{Block, List};
pub(crate) use rebuild::{Layout, ListFigures, NewList, Seen};
pub(crate) use storage::ListStorage;
use words::Descriptors;

/// How many neighbors are loaded before a reader looks at the first of them: two kilobytes.
const NEIGHBORS_AHEAD: usize = 256;
/// As [`NEIGHBORS_AHEAD`], of the ends of runs: a kilobyte.
const ENDS_AHEAD: usize = 256;

/// How many blocks one table can have: that of the newest layout and that of the one before.
const BLOCKS: usize = 2;

/// Edges of one list whose ends a transaction has claimed.
#[derive(Clone, Copy, Debug)]
enum EndedEdges {
    /// The edge of a cell.
    One(EndedCell),
    /// All edges of the list.
    All,
}

/// Edges that a transaction ends while a compaction looks at their list (STORE-15).
#[derive(Debug)]
struct LateName {
    /// The slot of the list, in the table that is being compacted.
    at: usize,
    ended: EndedEdges,
}

/// The lists of one page in one direction along one label set. Invariants: STORE-13 to STORE-17.
#[derive(Debug)]
pub(crate) struct AdjacencyTable {
    pub(crate) descriptors: Descriptors,
    /// The block of layout version `v` is at `v % BLOCKS`, if there is one.
    blocks: [EpochCell<Block>; BLOCKS],
    /// The layout version that the last compaction took; 0 before the first.
    layout_version: AtomicU32,
    /// The layout before the last compaction, while a cursor may need it (STORE-17).
    pub(crate) previous: EpochCell<Layout>,
    /// How much the lists have changed since the last compaction.
    pub(crate) changes: Changes,
    /// The facts that appends need not add (STORE-36).
    pub(crate) noted: NotedFacts,
}

impl AdjacencyTable {
    /// The lists of a page with this many slots, all empty.
    pub(crate) fn new(capacity: usize, sizes: &StoreSizes) -> Self {
        AdjacencyTable {
            descriptors: Descriptors::new(capacity),
            blocks: Default::default(),
            layout_version: AtomicU32::new(0),
            previous: EpochCell::default(),
            changes: Changes::new(sizes.changes_min),
            noted: NotedFacts::default(),
        }
    }

    /// Bytes of the descriptors and of the blocks, without the table itself.
    pub(crate) fn bytes(&self) -> (usize, usize) {
        let pin = epoch::pin();
        let blocks = self.blocks.iter().filter_map(|block| block.get(&pin)).map(Block::bytes).sum();
        let previous = self.previous.get(&pin).map_or(0, Layout::bytes);
        (self.descriptors.bytes(&pin) + previous, blocks)
    }

    /// The descriptor at an offset; that of an empty list beyond the page's capacity.
    #[inline]
    pub(crate) fn descriptor(&self, at: usize, pin: &Pin) -> u64 {
        self.descriptors.load(at, pin)
    }

    /// Returns true if no vertex has a list.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.descriptors.is_empty()
    }

    #[inline]
    fn block<'p>(&'p self, layout_version: u32, pin: &'p Pin) -> Option<&'p Block> {
        self.blocks[layout_version as usize % BLOCKS].get(pin)
    }

    /// Starts loading a descriptor.
    #[inline]
    pub(crate) fn prefetch_descriptor(&self, at: usize, pin: &Pin) {
        self.descriptors.prefetch(at, pin);
    }

    /// Starts loading the header of a list, if it has one.
    #[inline]
    pub(crate) fn prefetch_header(&self, at: usize, storage: &ListStorage, pin: &Pin) {
        storage.prefetch(self.descriptor(at, pin), pin);
    }

    /// Starts loading the part of a list in which an edge is named that is going to end.
    #[inline]
    pub(crate) fn prefetch_ended(&self, at: usize, cell: &EndedCell, storage: &ListStorage, pin: &Pin) {
        if let Some((block, run)) = self.packed_part(self.descriptor(at, pin), storage, pin) {
            cell.prefetch(&block.neighbors, run, &block.ended);
        }
    }

    /// Starts loading the list itself: of a packed run the first two lines and the last.
    #[inline]
    pub(crate) fn prefetch_list(&self, at: usize, with_edges: bool, storage: &ListStorage, pin: &Pin) {
        let descriptor = self.descriptor(at, pin);
        if descriptor == 0 {
            return;
        }
        if descriptor & HEADER != 0 {
            mangrove_reclaim::prefetch::prefetch(storage.header(descriptor, pin));
            return;
        }
        let run = packed_run(descriptor);
        let Some(block) = self.block(packed_layout(descriptor), pin) else { return };
        prefetch_run(&block.neighbors[run.clone()]);
        if with_edges {
            prefetch_run(&block.edges[run]);
        }
    }

    /// The number of edges of a list, if that needs no look at any edge.
    #[inline]
    pub(crate) fn clean_len(&self, at: usize, pin: &Pin) -> Option<usize> {
        clean_run_len(self.descriptor(at, pin))
    }

    /// Calls `each` with the position and the descriptor of every one of these offsets.
    #[inline]
    pub(crate) fn each_descriptor(
        &self,
        offsets: impl Iterator<Item = usize>,
        pin: &Pin,
        each: impl FnMut(usize, u64),
    ) {
        self.descriptors.load_each(offsets, pin, each);
    }

    /// Appends the descriptors of the first slots.
    pub(crate) fn append_words(&self, slots: usize, out: &mut Vec<u64>, pin: &Pin) {
        self.descriptors.append(slots, out, pin);
    }

    /// The block, and where the run of each slot ends in it, while the table is as a bulk load has filled it: then all lists are
    /// clean runs, one after the other (STORE-39).
    #[inline]
    pub(crate) fn filled<'p>(&'p self, pin: &'p Pin) -> Option<(&'p Block, &'p [u32])> {
        // The block first: a compaction notes that it changes the table before it replaces a list, and gives up the block after that.
        let block = self.block(0, pin).filter(|block| !block.ends.is_empty())?;
        (!self.descriptors.have_changed()).then_some((block, &*block.ends))
    }

    /// Starts loading what a reader of all lists reads first: the descriptors, or if it needs none, the neighbors.
    pub(crate) fn prefetch_first(&self, pin: &Pin) {
        match self.filled(pin) {
            Some((block, ends)) => {
                prefetch_range_once(ends, 0..ENDS_AHEAD);
                prefetch_range_once(&block.neighbors, 0..NEIGHBORS_AHEAD);
            }
            None => self.descriptors.prefetch_first(pin),
        }
    }

    /// Starts loading the neighbors in a block from the run on that a descriptor without a header names, for a reader of all
    /// of them from there on.
    pub(crate) fn prefetch_packed(&self, descriptor: u64, pin: &Pin) {
        if let Some(block) = self.block_of(descriptor, pin) {
            let begin = packed_run(descriptor).start;
            prefetch_range_once(&block.neighbors, begin..begin + NEIGHBORS_AHEAD);
        }
    }

    /// The block that a descriptor without a header names.
    #[inline]
    pub(crate) fn block_of<'p>(&'p self, descriptor: u64, pin: &'p Pin) -> Option<&'p Block> {
        self.block(packed_layout(descriptor), pin)
    }

    /// The list of the vertex at an offset.
    #[inline]
    pub(crate) fn list<'p>(&'p self, at: usize, storage: &'p ListStorage, pin: &'p Pin) -> List<'p> {
        self.list_of(self.descriptor(at, pin), storage, pin)
    }

    /// The list as it was in this layout version, for a cursor inside it. `None` if nothing of it can be visible to the
    /// cursor's transaction.
    pub(crate) fn list_of_layout<'p>(
        &'p self,
        at: usize,
        layout_version: u32,
        storage: &'p ListStorage,
        pin: &'p Pin,
    ) -> Option<List<'p>> {
        let list = self.list(at, storage, pin);
        if list.layout_version == layout_version {
            return Some(list);
        }
        let old = self.previous.get(pin)?.descriptor(at)?.load(Ordering::Acquire);
        let list = self.list_of(old, storage, pin);
        (old != 0 && list.layout_version == layout_version).then_some(list)
    }

    /// The list that a descriptor describes.
    #[inline]
    pub(crate) fn list_of<'p>(&'p self, descriptor: u64, storage: &'p ListStorage, pin: &'p Pin) -> List<'p> {
        let is_dirty = descriptor & DIRTY != 0;
        let packed = |block: Option<&'p Block>, run: Range<usize>| match block {
            Some(block) => (
                &block.neighbors[run.clone()],
                &block.edges[run.clone()],
                if is_dirty { block.ended.of_run(run) } else { Suspects::default() },
            ),
            None => (&[][..], &[][..], Suspects::default()),
        };
        let tails = &storage.tails;
        if descriptor & HEADER == 0 {
            let layout_version = packed_layout(descriptor);
            let (neighbors, edges, suspects) = packed(self.block(layout_version, pin), packed_run(descriptor));
            return List {
                neighbors,
                edges,
                suspects,
                tail_len: 0,
                layout_version,
                first_cells: &[],
                first_row: 0,
                tails,
                pin,
            };
        }
        let header = storage.header(descriptor, pin);
        let layout_version = header.layout_version();
        let block = header.own.get(pin).or_else(|| self.block(layout_version, pin));
        let (neighbors, edges, suspects) = packed(block, header.run());
        // The count first: the first row is there before a cell in it counts.
        let tail_len = header.count();
        let (first_cells, first_row) = (&header.cells[..], header.first_row());
        List { neighbors, edges, suspects, tail_len, layout_version, first_cells, first_row, tails, pin }
    }

    /// The block and the run of the packed part of the list that a descriptor describes; `None` if nothing is packed.
    ///
    /// A list that was replaced may be described by a part of another block, or by `None`, if no transaction keeps its
    /// layout (STORE-17). So a caller that is not sure looks at the descriptor again.
    fn packed_part<'p>(
        &'p self,
        descriptor: u64,
        storage: &'p ListStorage,
        pin: &'p Pin,
    ) -> Option<(&'p Block, Range<usize>)> {
        let (block, run) = if descriptor & HEADER == 0 {
            (self.block(packed_layout(descriptor), pin), packed_run(descriptor))
        } else {
            let header = storage.header(descriptor, pin);
            let of_table = || self.block(header.layout_version(), pin);
            (header.own.get(pin).or_else(of_table), header.run())
        };
        block.filter(|block| run.end <= block.neighbors.len()).map(|block| (block, run))
    }

    /// Counts a change, and returns as [`Changes::add`] does.
    fn note(&self, change: Change, storage: &ListStorage) -> bool {
        let is_due = self.changes.add(change);
        storage.note_change();
        is_due
    }

    /// Adds an edge to a list. Returns true if the caller has to list the table for compaction.
    #[must_use = "if true, only the caller lists the table"]
    pub(crate) fn append(
        &self,
        at: usize,
        cell: (VertexId, EdgeId),
        connecting: &Connecting<'_>,
        storage: &ListStorage,
        space: Space<'_>,
        pin: &Pin,
    ) -> bool {
        let mut made = None;
        loop {
            let descriptor = self.descriptors.load(at, pin);
            // Before the cell is in the list (STORE-36).
            connecting.note(descriptor != 0, &self.noted);
            if descriptor & HEADER != 0 {
                if self.append_under_header(at, descriptor, cell, storage, space.memory, pin) {
                    break;
                }
                continue;
            }
            let (index, header) = *made.get_or_insert_with(|| storage.new_header_with(cell, space.memory, pin));
            header.set_packed(packed_run(descriptor), packed_layout(descriptor));
            // The flags of the run go along: they hold wherever the run is named.
            let named = HEADER | (descriptor & FLAGS) | index;
            if self.descriptors.exchange(at, descriptor, named, space, pin).is_ok() {
                return self.note(Change::Appended, storage);
            }
        }
        if let Some((index, _)) = made {
            // Another thread made one first. No thread has seen this one.
            storage.free_blank_header(index);
        }
        self.note(Change::Appended, storage)
    }

    /// Adds an edge to a list with a header. Returns false if the list was replaced.
    fn append_under_header(
        &self,
        at: usize,
        descriptor: u64,
        cell: (VertexId, EdgeId),
        storage: &ListStorage,
        memory: &Memory,
        pin: &Pin,
    ) -> bool {
        let header = storage.header(descriptor, pin);
        let mut appending = header.latch.lock();
        // STORE-16: the header may have been replaced while this thread waited for the latch.
        let is_current = same_header(self.descriptors.load(at, pin), descriptor);
        if is_current {
            header.push(&mut appending, cell, &storage.tails, memory, pin);
        }
        is_current
    }

    /// Names an edge whose end the caller has claimed, and marks its list (STORE-14, STORE-15). Returns as
    /// [`AdjacencyTable::append`] does.
    #[must_use = "if true, only the caller lists the table"]
    pub(crate) fn mark_ended(
        &self,
        at: usize,
        cell: EndedCell,
        storage: &ListStorage,
        space: Space<'_>,
        pin: &Pin,
    ) -> bool {
        self.mark(at, EndedEdges::One(cell), storage, space, pin);
        self.note(Change::Ended, storage)
    }

    /// As [`AdjacencyTable::mark_ended`], for all edges of a list at once.
    #[must_use = "if true, only the caller lists the table"]
    pub(crate) fn mark_all_ended(&self, at: usize, storage: &ListStorage, space: Space<'_>, pin: &Pin) -> bool {
        self.mark(at, EndedEdges::All, storage, space, pin);
        self.note(Change::Ended, storage)
    }

    /// Names edges of a list whose ends the caller has claimed, and marks the list.
    fn mark(&self, at: usize, ended: EndedEdges, storage: &ListStorage, space: Space<'_>, pin: &Pin) {
        let mut descriptor = self.descriptors.load(at, pin);
        loop {
            let is_packed = self.name(descriptor, ended, storage, pin);
            // Pairs with the fence in `begin_compaction`: either this thread sees the compaction bit, or compaction sees
            // the claim and the name.
            fence(Ordering::SeqCst);
            let seen = self.descriptors.load(at, pin);
            // A compaction has replaced the list, and need not have seen the name.
            if !same_list(seen, descriptor) {
                descriptor = seen;
                continue;
            }
            let is_marked = !is_packed || seen & DIRTY != 0;
            let outcome = match seen & COMPACTING {
                0 if is_marked => Ok(()),
                0 => self.descriptors.exchange(at, seen, seen | DIRTY, space, pin),
                _ => {
                    // While this lock is held, compaction does not replace the list.
                    let mut names = storage.late_names.lock();
                    let outcome = match self.descriptors.load(at, pin) {
                        current if current != seen => Err(current),
                        _ if is_marked => Ok(()),
                        _ => self.descriptors.exchange(at, seen, seen | DIRTY, space, pin),
                    };
                    outcome.map(|()| names.push(LateName { at, ended }))
                }
            };
            match outcome {
                Ok(()) if is_packed && seen & HEADER != 0 => return storage.header(seen, pin).count_ended(),
                Ok(()) => return,
                Err(current) => descriptor = current,
            }
        }
    }

    /// Sets the bits of edges in the run of the list that a descriptor describes. Returns true if it has set one.
    fn name(&self, descriptor: u64, ended: EndedEdges, storage: &ListStorage, pin: &Pin) -> bool {
        let Some((block, run)) = self.packed_part(descriptor, storage, pin) else { return false };
        let cells = match ended {
            EndedEdges::All => run,
            EndedEdges::One(cell) => match block.position(run, &cell) {
                Some(at) => at..at + 1,
                None => return false,
            },
        };
        let is_any = !cells.is_empty();
        block.ended.name(cells);
        is_any
    }

    /// Gives the table its packed block: runs of `lengths` in the order of the page's slots. Only during a bulk load,
    /// before any reader comes. `nth` is the number of the table among those that are loaded together.
    pub(crate) fn set_block(
        &self,
        nth: usize,
        mut block: Block,
        lengths: &[u32],
        sizes: &StoreSizes,
        storage: &ListStorage,
        space: Space<'_>,
    ) {
        let count = lengths.iter().filter(|&&len| len > 0).count();
        // STORE-39. Where few vertices have a list, the ends would take more memory than the descriptors.
        if self.descriptors.is_dense(count) && lengths.iter().all(|length| *length <= sizes.run_max) {
            let used = lengths.iter().rposition(|length| *length > 0).map_or(0, |last| last + 1);
            let ends = lengths[..used].iter().scan(0, |end, length| {
                *end += length;
                Some(*end)
            });
            block.ends = ends.collect();
        }
        space.memory.add(RecordKind::Block, block.bytes());
        let cells = block.neighbors.len() as u64;
        assert!(self.blocks[0].swap(Some(block)).is_none(), "a table is packed once");
        let mut offset = 0_u64;
        let pin = &epoch::pin();
        let words = lengths.iter().map(|&length| {
            let len = u64::from(length);
            let word = match length {
                0 => 0,
                _ if length <= sizes.run_max => packed_word(0, offset, len),
                _ => {
                    let (index, header) = storage.new_header(space.memory, pin);
                    header.set_packed(offset as usize..(offset + len) as usize, 0);
                    HEADER | index
                }
            };
            offset += len;
            word
        });
        self.descriptors.fill(count, words, space, pin);
        assert_eq!(offset, cells, "the runs fill their block");
        self.changes.set_first_limit(nth, lengths.len(), cells as usize);
    }

    /// Takes back the headers of a packed table that no other thread has seen. The table can only be dropped.
    pub(crate) fn give_up_headers(&self, storage: &ListStorage) {
        let pin = epoch::pin();
        for at in self.descriptors.slots(&pin) {
            let descriptor = self.descriptors.load(at, &pin);
            if descriptor & HEADER != 0 {
                storage.free_blank_header(descriptor & descriptor::HEADER_MASK);
            }
        }
    }

    /// Empties the list of a vertex that no snapshot sees: gives up its records, and adds the edges of its cells to
    /// `dropped`.
    pub(crate) fn empty(
        &self,
        at: usize,
        (lists, tablet): (&ListStorage, u16),
        space: Space<'_>,
        garbage: &mut Vec<Garbage>,
        dropped: &mut Vec<EdgeId>,
    ) {
        let pin = epoch::pin();
        let descriptor = self.descriptors.take(at, space, &pin);
        if descriptor != 0 {
            dropped.extend(self.list_of(descriptor, lists, &pin).cells().map(|(_, edge)| edge));
            lists.retire(descriptor, tablet, garbage, &pin);
        }
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;
    use crate::connections::{ConnectionFacts, ListKind};
    use crate::memory::Limbo;
    use mangrove_graph::{Direction, LabelSetId, TabletId};

    fn vertex(n: u64) -> VertexId {
        VertexId::new(TabletId(1), n)
    }
    fn edge(n: u64) -> EdgeId {
        EdgeId::new(TabletId(1), n)
    }

    /// An edge between two vertices of one label set.
    fn connecting(facts: &ConnectionFacts) -> Connecting<'_> {
        let set = LabelSetId(0);
        let kind = ListKind { vertices: set, direction: Direction::Out, edges: set };
        Connecting { facts, kind, neighbors: set }
    }

    #[test]
    fn a_header_fills_a_cache_line() {
        assert_eq!((size_of::<storage::ListHeader>(), align_of::<storage::ListHeader>()), (64, 64));
    }

    #[test]
    fn a_tail_grows_through_rows_of_every_size_and_resumes_anywhere() {
        let (memory, limbo) = (Memory::new(u64::MAX), Limbo::default());
        let space = Space { memory: &memory, limbo: &limbo };
        let facts = ConnectionFacts::default();
        let (storage, table) = (ListStorage::new(), AdjacencyTable::new(2, &StoreSizes::default()));
        let pin = epoch::pin();
        assert_eq!(table.clean_len(1, &pin), Some(0));
        for n in 0..5_000 {
            let _ = table.append(1, (vertex(n), edge(n + 1)), &connecting(&facts), &storage, space, &pin);
        }
        let list = table.list(1, &storage, &pin);
        assert!(list.cells().eq((0..5_000).map(|n| (vertex(n), edge(n + 1)))));
        for from in [0, 1, 2, 3, 9, 10, 11, 1_000, 2_045, 4_999, 5_000] {
            assert!(list.tail(from).map(|(at, v, _)| (at, v.slot())).eq((from..5_000).map(|n| (n, n))), "{from}");
        }
        assert_eq!(table.list(0, &storage, &pin).cells().count(), 0);
    }

    #[test]
    fn packed_runs_short_and_long_keep_their_place_and_take_tails() {
        let (memory, limbo) = (Memory::new(u64::MAX), Limbo::default());
        let space = Space { memory: &memory, limbo: &limbo };
        let facts = ConnectionFacts::default();
        let (storage, table) = (ListStorage::new(), AdjacencyTable::new(4, &StoreSizes::default()));
        let lengths = [3, 0, 40_000, 2];
        let total: u32 = lengths.iter().sum();
        let cells: Vec<_> = (0..u64::from(total)).map(|n| (vertex(n), edge(n))).collect();
        let block = Block::of(&cells);
        table.set_block(0, block, &lengths, &StoreSizes::default(), &storage, space);
        let pin = epoch::pin();
        let slots = |at| table.list(at, &storage, &pin).cells().map(|(v, _)| v.slot()).collect::<Vec<_>>();
        assert_eq!(slots(0), [0, 1, 2]);
        assert_eq!(slots(1), [0_u64; 0]);
        assert_eq!((slots(2).len(), slots(2)[0], slots(3)), (40_000, 3, vec![40_003, 40_004]));
        assert_eq!((table.clean_len(0, &pin), table.clean_len(2, &pin)), (Some(3), None));

        let is_dirty = |at| table.list(at, &storage, &pin).suspects.is_some();
        let end = |at, n| {
            let cell = EndedCell { neighbor: vertex(n), edge: edge(n), place: 1 << 31 };
            table.mark_ended(at, cell, &storage, space, &pin)
        };
        let _ = table.append(0, (vertex(77), edge(77)), &connecting(&facts), &storage, space, &pin);
        assert_eq!(slots(0), [0, 1, 2, 77]);
        let _ = end(0, 77);
        assert!(!is_dirty(0), "cells of tails are checked in any case");
        let _ = (end(0, 1), end(3, 40_003));
        assert!(is_dirty(0) && is_dirty(3));
        let suspects = |at| (0..4).filter(|&nth| table.list(at, &storage, &pin).suspects.has(nth)).collect::<Vec<_>>();
        assert_eq!((suspects(0), suspects(2), suspects(3)), (vec![1], vec![], vec![0]));
        assert_eq!(slots(0), [0, 1, 2, 77]);
    }
}
