//! Adjacency lists: one word a list, packed runs, and headers for what is long, growing or dirty.
//!
//! An [`AdjacencyTable`] holds the lists of one page's vertices in one direction along one edge label set.
//! A list is one descriptor word, read once, so that no reader sees half of a replacement:
//!
//! ```text
//! 0                                                     no edge
//! 00 | block 14 | offset 32 | length 16                 a clean packed run in one of the table's blocks
//! 1dc | unused  | header number 48                      a list header; d: the packed part is dirty
//!                                                       c: a compaction is looking at the list
//! ```
//!
//! Neighbors of a run lie together, and so do its edge ids; runs are sorted by neighbor. Whatever is packed
//! was visible to everyone when it was packed: until the dirty bit is set, a reader takes it without looking
//! at any version. A header's tail holds edges added since, each checked against its edge's version words,
//! the only truth about an edge's visibility.
//!
//! Invariants:
//!
//! 1. A list grows under its header's latch; its count, stored last, publishes the cell to readers, who take no
//!    latch. Whoever has the latch looks again whether the descriptor still names the header.
//! 2. The dirty bit is set *after* a packed edge's end was claimed and before the claiming call returns: a reader
//!    that comes in between and takes the run unchecked is one for whom the end has not happened (`version`,
//!    invariants 3 and 4).
//! 3. Setting it also takes back the compaction bit, with a fence between claim and look: a compaction that has not
//!    seen the claim fails to replace the descriptor (`compaction`).
//! 4. Only compaction, and the clearing of a dead vertex, replaces a header's descriptor: one thread at a time in a
//!    tablet. Headers, rows and blocks that no descriptor names any more are used again a grace period later.
//!
//! The number of the block of a run, also kept in the header that takes the run over, is the list's *stamp*: a
//! cursor inside a list carries it, and finds the list as it was if compaction has replaced it meanwhile.

use std::ops::Range;
use std::sync::atomic::{Ordering, fence};

use mangrove_graph::{EdgeId, VertexId};

use crate::epoch::{self, EpochCell, Pin, Retired};
use crate::limbo::Garbage;
use crate::memory::{Memory, RecordKind};
use crate::segments::{Pool, Usage};
use crate::sync::{AtomicBool, AtomicU32, AtomicU64, Mutex};
use crate::tablet::Tablet;
use crate::tail::{FIRST_ROW, LAST_ROW, TailArena, TailCell};

pub(crate) const HEADER: u64 = 1 << 63;
const DIRTY: u64 = 1 << 62;
const COMPACTING: u64 = 1 << 61;
const HEADER_MASK: u64 = (1 << 48) - 1;
const LENGTH_BITS: u32 = 16;
/// The longest run that a descriptor word describes.
pub(crate) const LENGTH_MAX: u64 = (1 << (LENGTH_BITS - 1)) - 1;
const BLOCK_SHIFT: u32 = 48;
/// Block numbers have 14 bits.
const BLOCK_NUMBERS: u32 = 1 << 14;
/// Blocks that one table can have at a time: the newest, the one before it, and what unlucky lists still need.
const BLOCKS: usize = 4;

/// Packed runs of one table: two parallel arrays.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) neighbors: Box<[VertexId]>,
    pub(crate) edges: Box<[EdgeId]>,
}

impl Block {
    /// A block of these cells.
    pub(crate) fn of(cells: &[(VertexId, EdgeId)]) -> Self {
        Block {
            neighbors: cells.iter().map(|&(neighbor, _)| neighbor).collect(),
            edges: cells.iter().map(|&(_, edge)| edge).collect(),
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.neighbors) + size_of_val(&*self.edges)
    }
}

/// Where a header's writer stands in the last row of the tail.
#[derive(Debug, Default)]
struct TailEnd {
    row: u64,
    len: u64,
    used: u64,
}

/// A list that is long, has a tail, or has deleted edges.
#[derive(Debug, Default)]
pub(crate) struct ListHeader {
    /// Offset << 32 | length of the packed part; set before the header is published.
    packed: AtomicU64,
    /// The number of the block it lies in: the list's stamp.
    block: AtomicU32,
    /// About how many packed edges were deleted: a hint for compaction.
    ended: AtomicU32,
    /// The packed part of a long list, which has a block to itself.
    own: EpochCell<Block>,
    /// The first row of the tail.
    first: AtomicU64,
    /// Cells of the tail that readers may see.
    count: AtomicU64,
    latch: Mutex<TailEnd>,
}

/// The records that lists of one tablet are made of.
#[derive(Debug)]
pub(crate) struct ListStorage {
    headers: Pool<ListHeader, 6>,
    tails: TailArena,
    /// Whether a table of the tablet has become dirtier since a compaction last went through them.
    changed: AtomicBool,
}

impl ListStorage {
    pub(crate) fn new() -> Self {
        ListStorage {
            headers: Pool::new(RecordKind::ListHeader),
            tails: TailArena::new(),
            changed: AtomicBool::new(false),
        }
    }

    /// Says that a table has something for compaction, or will have.
    pub(crate) fn note_change(&self) {
        // Release: a compaction that takes the flag finds what it was set for. One that took it before leaves it set.
        self.changed.store(true, Ordering::Release);
    }

    /// Whether there was something, before the caller looks at the tables.
    pub(crate) fn take_change(&self) -> bool {
        self.changed.swap(false, Ordering::AcqRel)
    }

    fn header(&self, descriptor: u64) -> &ListHeader {
        self.headers.get(descriptor & HEADER_MASK).expect("a descriptor names only headers that were allocated")
    }

    /// A blank header and its number.
    fn new_header(&self, memory: &Memory) -> (u64, &ListHeader) {
        let (index, header) = self.headers.allocate(memory);
        // Relaxed: private until a descriptor names it.
        for word in [&header.packed, &header.first, &header.count] {
            word.store(0, Ordering::Relaxed);
        }
        header.block.store(0, Ordering::Relaxed);
        header.ended.store(0, Ordering::Relaxed);
        *header.latch.lock() = TailEnd::default();
        (index, header)
    }

    /// Gives up what a replaced descriptor named: its header with the rows of the tail.
    pub(crate) fn retire(&self, descriptor: u64, tablet: u16, garbage: &mut Vec<Garbage>) {
        if descriptor & HEADER == 0 {
            return;
        }
        let header = self.header(descriptor);
        let (mut start, mut len) = (header.first.load(Ordering::Acquire), FIRST_ROW);
        while start != 0 {
            garbage.push(Garbage::Row { tablet, start, len });
            start = self.tails.row(start, len)[0].neighbor.load(Ordering::Acquire);
            len = (len * 2).min(LAST_ROW);
        }
        garbage.push(Garbage::Header { tablet, record: descriptor & HEADER_MASK });
    }

    /// Gives back a header that nobody reads any more; the block it had to itself is given up next.
    pub(crate) fn free_header(&self, number: u64, memory: &Memory) -> Option<Retired> {
        let header = self.header(number);
        let pin = epoch::pin();
        if let Some(block) = header.own.get(&pin) {
            memory.remove(RecordKind::Block, block.bytes());
        }
        let own = header.own.swap(None);
        self.headers.free(number);
        own
    }

    /// Gives back a row that nobody reads any more.
    pub(crate) fn free_row(&self, start: u64, len: u64) {
        self.tails.free(start, len);
    }

    /// Use of the headers, and of the cells of tails.
    pub(crate) fn usage(&self) -> (Usage, Usage) {
        (self.headers.usage(), self.tails.usage())
    }

    /// Bytes of the headers, of the tails, and of the blocks that long lists have to themselves.
    pub(crate) fn bytes(&self) -> (usize, usize, usize) {
        let pin = epoch::pin();
        let own = self.headers.iter().filter_map(|header| header.own.get(&pin)).map(Block::bytes).sum();
        (self.headers.bytes(), self.tails.bytes(), own)
    }
}

/// The lists that a compaction replaced, as they were: for cursors that are inside one of them.
#[derive(Debug)]
pub(crate) struct Layout {
    /// The old descriptors; 0 where the list was not replaced.
    pub(crate) descriptors: Box<[AtomicU64]>,
    /// Transactions from this number on began after the replacement: none of their cursors can be inside.
    pub(crate) boundary: AtomicU64,
    /// Edges whose cells are in here and no more in the table.
    pub(crate) dropped: Mutex<Vec<EdgeId>>,
}

impl Layout {
    pub(crate) fn new(capacity: usize) -> Self {
        Layout {
            descriptors: (0..capacity).map(|_| AtomicU64::new(0)).collect(),
            boundary: AtomicU64::new(u64::MAX),
            dropped: Mutex::default(),
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.descriptors)
    }
}

/// The lists of one page in one direction along one label set.
#[derive(Debug)]
pub(crate) struct AdjacencyTable {
    pub(crate) descriptors: Box<[AtomicU64]>,
    /// Block `n` is at `n % BLOCKS`.
    blocks: [EpochCell<Block>; BLOCKS],
    /// The number of the newest block.
    newest_block: AtomicU32,
    /// The layout before the last compaction, as long as a cursor may need it.
    pub(crate) previous: EpochCell<Layout>,
    /// Lists that became dirty or got a tail, and rows that tails grew by, since the last compaction.
    pub(crate) dirt: AtomicU32,
    /// As `dirt` was when a collector last looked.
    pub(crate) dirt_seen: AtomicU32,
}

/// What a descriptor says by itself.
pub(crate) enum Packed<'a> {
    /// No edges.
    Nothing,
    /// A clean run of a block.
    Run(&'a Block, Range<usize>),
    /// More than a descriptor can say: see [`AdjacencyTable::list`].
    Header,
}

/// A list as a reader meets it.
pub(crate) struct List<'a> {
    /// The packed part.
    pub(crate) neighbors: &'a [VertexId],
    /// Parallel to `neighbors`.
    pub(crate) edges: &'a [EdgeId],
    /// Whether packed edges must be checked.
    pub(crate) dirty: bool,
    /// How many cells the tail has; each must be checked.
    pub(crate) tail_len: u64,
    /// What a cursor must find again to go on in this list.
    pub(crate) stamp: u32,
    first_row: u64,
    tails: &'a TailArena,
}

impl AdjacencyTable {
    pub(crate) fn new(capacity: usize, memory: &Memory) -> Self {
        let table = AdjacencyTable {
            descriptors: (0..capacity).map(|_| AtomicU64::new(0)).collect(),
            blocks: Default::default(),
            newest_block: AtomicU32::new(0),
            previous: EpochCell::default(),
            dirt: AtomicU32::new(0),
            dirt_seen: AtomicU32::new(0),
        };
        memory.add(RecordKind::Descriptor, table.descriptor_bytes());
        table
    }

    fn descriptor_bytes(&self) -> usize {
        size_of::<AdjacencyTable>() + size_of_val(&*self.descriptors)
    }

    /// Bytes of the descriptors, and of the blocks.
    pub(crate) fn bytes(&self) -> (usize, usize) {
        let pin = epoch::pin();
        let blocks = self.blocks.iter().filter_map(|block| block.get(&pin)).map(Block::bytes).sum();
        (self.descriptor_bytes() + self.previous.get(&pin).map_or(0, Layout::bytes), blocks)
    }

    /// The descriptor at an offset; that of an empty list beyond the page's capacity.
    #[inline]
    pub(crate) fn descriptor(&self, at: usize) -> u64 {
        // Acquire: its partners are the compare-and-swaps that publish headers and runs, and `set_block`.
        self.descriptors.get(at).map_or(0, |descriptor| descriptor.load(Ordering::Acquire))
    }

    #[inline]
    fn block<'p>(&'p self, number: u32, pin: &'p Pin) -> Option<&'p Block> {
        self.blocks[number as usize % BLOCKS].get(pin)
    }

    /// Starts loading a descriptor.
    #[inline]
    pub(crate) fn prefetch_descriptor(&self, at: usize) {
        if let Some(descriptor) = self.descriptors.get(at) {
            crate::prefetch::prefetch(descriptor);
        }
    }

    /// Starts loading the list itself: of a packed run the first two lines and the last.
    #[inline]
    pub(crate) fn prefetch_list(&self, at: usize, with_edges: bool, storage: &ListStorage, pin: &Pin) {
        let descriptor = self.descriptor(at);
        if descriptor == 0 {
            return;
        }
        if descriptor & HEADER != 0 {
            crate::prefetch::prefetch(storage.header(descriptor));
            return;
        }
        let run = packed_run(descriptor);
        let Some(block) = self.block(packed_block(descriptor), pin) else { return };
        prefetch_run(&block.neighbors[run.clone()]);
        if with_edges {
            prefetch_run(&block.edges[run]);
        }
    }

    /// The number of edges where that needs no look at any edge.
    #[inline]
    pub(crate) fn clean_len(&self, at: usize) -> Option<usize> {
        let descriptor = self.descriptor(at);
        (descriptor & HEADER == 0).then(|| packed_run(descriptor).len())
    }

    /// The run of a list that is a clean packed run and nothing else.
    #[inline]
    pub(crate) fn packed<'p>(&'p self, at: usize, pin: &'p Pin) -> Packed<'p> {
        match self.descriptor(at) {
            0 => Packed::Nothing,
            descriptor if descriptor & HEADER != 0 => Packed::Header,
            descriptor => match self.block(packed_block(descriptor), pin) {
                Some(block) => Packed::Run(block, packed_run(descriptor)),
                None => Packed::Nothing,
            },
        }
    }

    /// The list of the vertex at an offset.
    #[inline]
    pub(crate) fn list<'p>(&'p self, at: usize, storage: &'p ListStorage, pin: &'p Pin) -> List<'p> {
        self.list_of(self.descriptor(at), storage, pin)
    }

    /// The list as it was when it had this stamp: for a cursor inside it. `None` where nothing of it can be visible
    /// to the cursor's transaction any more.
    pub(crate) fn list_of_stamp<'p>(
        &'p self,
        at: usize,
        stamp: u32,
        storage: &'p ListStorage,
        pin: &'p Pin,
    ) -> Option<List<'p>> {
        let list = self.list(at, storage, pin);
        if list.stamp == stamp {
            return Some(list);
        }
        let old = self.previous.get(pin)?.descriptors.get(at)?.load(Ordering::Acquire);
        let list = self.list_of(old, storage, pin);
        (old != 0 && list.stamp == stamp).then_some(list)
    }

    /// The list that a descriptor describes.
    #[inline]
    pub(crate) fn list_of<'p>(&'p self, descriptor: u64, storage: &'p ListStorage, pin: &'p Pin) -> List<'p> {
        let dirty = descriptor & DIRTY != 0;
        if descriptor & HEADER == 0 {
            let (stamp, run) = (packed_block(descriptor), packed_run(descriptor));
            let (neighbors, edges) = run_of(self.block(stamp, pin), run);
            return List { neighbors, edges, dirty, tail_len: 0, stamp, first_row: 0, tails: &storage.tails };
        }
        let header = storage.header(descriptor);
        let stamp = header.block.load(Ordering::Relaxed);
        let block = header.own.get(pin).or_else(|| self.block(stamp, pin));
        let (neighbors, edges) = run_of(block, header.run());
        // Acquire, before `first`: its partner is the Release in `append`.
        let tail_len = header.count.load(Ordering::Acquire);
        let first_row = header.first.load(Ordering::Acquire);
        List { neighbors, edges, dirty, tail_len, stamp, first_row, tails: &storage.tails }
    }

    fn add_dirt(&self, storage: &ListStorage) {
        self.dirt.fetch_add(1, Ordering::Relaxed);
        storage.note_change();
    }

    /// Whether the next compaction may have something to do here.
    pub(crate) fn has_work(&self) -> bool {
        self.dirt.load(Ordering::Relaxed) > 0 || self.previous.is_some()
    }

    /// Adds an edge to a list.
    pub(crate) fn append(&self, at: usize, neighbor: VertexId, edge: EdgeId, storage: &ListStorage, memory: &Memory) {
        loop {
            let descriptor = self.header_word(at, 0, storage, memory);
            let header = storage.header(descriptor);
            let mut end = header.latch.lock();
            // Replaced while we waited for the latch (invariant 1)?
            if same_header(self.descriptors[at].load(Ordering::Acquire), descriptor) {
                if header.push(&mut end, neighbor, edge, &storage.tails, memory) {
                    self.add_dirt(storage);
                }
                return;
            }
        }
    }

    /// Says that a packed edge of a list has been claimed by somebody who ends it (invariants 2 and 3).
    pub(crate) fn mark_dirty(&self, at: usize, storage: &ListStorage, memory: &Memory) {
        fence(Ordering::SeqCst);
        loop {
            let descriptor = self.header_word(at, DIRTY, storage, memory);
            let ended = &storage.header(descriptor).ended;
            if descriptor & (DIRTY | COMPACTING) == DIRTY {
                // A hint: it may miss some.
                ended.store(ended.load(Ordering::Relaxed).saturating_add(1), Ordering::Relaxed);
                return;
            }
            let marked = (descriptor | DIRTY) & !COMPACTING;
            let exchange =
                self.descriptors[at].compare_exchange(descriptor, marked, Ordering::SeqCst, Ordering::Acquire);
            if exchange.is_ok() {
                self.add_dirt(storage);
                return;
            }
        }
    }

    /// The descriptor of a list with a header, made where there is none, then with these flags.
    fn header_word(&self, at: usize, flags: u64, storage: &ListStorage, memory: &Memory) -> u64 {
        let mut descriptor = self.descriptors[at].load(Ordering::Acquire);
        if descriptor & HEADER != 0 {
            return descriptor;
        }
        let (index, header) = storage.new_header(memory);
        let made = HEADER | flags | index;
        while descriptor & HEADER == 0 {
            let run = packed_run(descriptor);
            header.packed.store(((run.start as u64) << 32) | run.len() as u64, Ordering::Relaxed);
            header.block.store(packed_block(descriptor), Ordering::Relaxed);
            match self.descriptors[at].compare_exchange(descriptor, made, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => {
                    self.add_dirt(storage);
                    return made;
                }
                Err(current) => descriptor = current,
            }
        }
        // Another thread made one first; nobody has seen ours.
        storage.headers.free(index);
        descriptor
    }

    /// Gives the table its packed block: runs of `lengths` in the order of the page's slots. Only while the
    /// graph is loaded in bulk, before anybody reads.
    pub(crate) fn set_block(&self, block: Block, lengths: &[u32], storage: &ListStorage, memory: &Memory) {
        memory.add(RecordKind::Block, block.bytes());
        let cells = block.neighbors.len() as u64;
        assert!(self.blocks[0].swap(Some(block)).is_none(), "a table is packed once");
        let mut offset = 0_u64;
        for (descriptor, &len) in self.descriptors.iter().zip(lengths) {
            let len = u64::from(len);
            let word = match len {
                0 => 0,
                1..=LENGTH_MAX => packed_word(0, offset, len),
                _ => {
                    let (index, header) = storage.new_header(memory);
                    header.packed.store((offset << 32) | len, Ordering::Relaxed);
                    HEADER | index
                }
            };
            descriptor.store(word, Ordering::Release);
            offset += len;
        }
        assert_eq!(offset, cells, "the runs fill their block");
    }

    /// Empties the list of a vertex that nobody sees any more: gives up its records, and adds the edges of its
    /// cells to `dropped`.
    pub(crate) fn empty(&self, at: usize, tablet: &Tablet, garbage: &mut Vec<Garbage>, dropped: &mut Vec<EdgeId>) {
        let pin = epoch::pin();
        let descriptor = self.descriptors[at].swap(0, Ordering::AcqRel);
        if descriptor != 0 {
            dropped.extend(self.list_of(descriptor, &tablet.lists, &pin).cells().map(|(_, edge)| edge));
            tablet.lists.retire(descriptor, tablet.id.0, garbage);
        }
    }

    // --- What compaction needs ----------------------------------------------------------------------

    /// Says that a compaction is going to look at a list with a header; the descriptor then. `None` if there is no
    /// header any more.
    pub(crate) fn begin_compaction(&self, at: usize) -> Option<u64> {
        let mut descriptor = self.descriptors[at].load(Ordering::Acquire);
        while descriptor & HEADER != 0 {
            let marked = descriptor | COMPACTING;
            match self.descriptors[at].compare_exchange(descriptor, marked, Ordering::SeqCst, Ordering::Acquire) {
                Ok(_) => {
                    // Pairs with the fence in `mark_dirty`: either it sees the bit, or we see its claim.
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

fn same_header(one: u64, other: u64) -> bool {
    let mask = HEADER | HEADER_MASK;
    one & mask == other & mask
}

#[inline]
fn packed_word(block: u32, offset: u64, len: u64) -> u64 {
    (u64::from(block) << BLOCK_SHIFT) | (offset << LENGTH_BITS) | len
}

/// The block of a packed descriptor.
#[inline]
fn packed_block(descriptor: u64) -> u32 {
    (descriptor >> BLOCK_SHIFT) as u32
}

#[inline]
fn run_of(block: Option<&Block>, run: Range<usize>) -> (&[VertexId], &[EdgeId]) {
    match block {
        Some(block) => (&block.neighbors[run.clone()], &block.edges[run]),
        None => (&[], &[]),
    }
}

#[inline]
fn packed_run(descriptor: u64) -> Range<usize> {
    let offset = (descriptor >> LENGTH_BITS) as u32 as usize;
    offset..offset + (descriptor & ((1 << LENGTH_BITS) - 1)) as usize
}

#[inline]
fn prefetch_run<T>(run: &[T]) {
    for at in [0, 8, run.len().saturating_sub(1)] {
        if let Some(entry) = run.get(at) {
            crate::prefetch::prefetch(entry);
        }
    }
}

impl ListHeader {
    fn run(&self) -> Range<usize> {
        let packed = self.packed.load(Ordering::Relaxed);
        let offset = (packed >> 32) as usize;
        offset..offset + (packed as u32) as usize
    }

    /// Adds a cell, by the holder of the latch; whether the tail grew by a row other than its first.
    fn push(&self, end: &mut TailEnd, neighbor: VertexId, edge: EdgeId, tails: &TailArena, memory: &Memory) -> bool {
        let grows = end.used == end.len;
        let is_first = end.len == 0;
        if grows {
            let len = if is_first { FIRST_ROW } else { (end.len * 2).min(LAST_ROW) };
            let row = tails.allocate(len, memory);
            // Release: a reader that follows the link finds the row's chunk.
            match end.row {
                0 => self.first.store(row, Ordering::Release),
                last => tails.row(last, end.len)[0].neighbor.store(row, Ordering::Release),
            }
            *end = TailEnd { row, len, used: 1 };
        }
        let cell = &tails.row(end.row, end.len)[end.used as usize];
        cell.neighbor.store(neighbor.to_bits(), Ordering::Relaxed);
        cell.edge.store(edge.to_bits(), Ordering::Relaxed);
        end.used += 1;
        // Release publishes the cell; only the holder of the latch changes the count.
        self.count.store(self.count.load(Ordering::Relaxed) + 1, Ordering::Release);
        grows && !is_first
    }
}

impl<'a> List<'a> {
    /// Whether all of it is packed and visible to everyone.
    pub(crate) fn is_clean(&self) -> bool {
        !self.dirty && self.tail_len == 0
    }

    /// The cells of the tail from a position on, as (position, neighbor, edge).
    pub(crate) fn tail(&self, from: u64) -> impl Iterator<Item = (u64, VertexId, EdgeId)> + use<'a> {
        let (tails, count) = (self.tails, self.tail_len);
        let (mut row, mut len, mut row_start) = (self.first_row, FIRST_ROW, 0);
        let next_row = move |row: u64, len: u64| tails.row(row, len)[0].neighbor.load(Ordering::Acquire);
        while from < count && from - row_start >= len - 1 {
            row = next_row(row, len);
            row_start += len - 1;
            len = (len * 2).min(LAST_ROW);
        }
        let mut cells: &'a [TailCell] = if from < count { tails.row(row, len) } else { &[] };
        let mut position = from;
        std::iter::from_fn(move || {
            if position >= count {
                return None;
            }
            if position - row_start >= len - 1 {
                row = next_row(row, len);
                row_start += len - 1;
                len = (len * 2).min(LAST_ROW);
                cells = tails.row(row, len);
            }
            let cell = &cells[(position - row_start) as usize + 1];
            let item = (
                position,
                VertexId::from_bits(cell.neighbor.load(Ordering::Relaxed)),
                EdgeId::from_bits(cell.edge.load(Ordering::Relaxed)),
            );
            position += 1;
            Some(item)
        })
    }

    /// Every cell of the list, visible or not: packed ones first.
    pub(crate) fn cells(&self) -> impl Iterator<Item = (VertexId, EdgeId)> + use<'a> {
        let packed = self.neighbors.iter().copied().zip(self.edges.iter().copied());
        packed.chain(self.tail(0).map(|(_, neighbor, edge)| (neighbor, edge)))
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;
    use mangrove_graph::TabletId;

    fn vertex(n: u64) -> VertexId {
        VertexId::new(TabletId(1), n)
    }
    fn edge(n: u64) -> EdgeId {
        EdgeId::new(TabletId(1), n)
    }

    #[test]
    fn a_tail_grows_through_rows_of_every_size_and_resumes_anywhere() {
        let memory = Memory::new(u64::MAX);
        let (storage, table) = (ListStorage::new(), AdjacencyTable::new(2, &memory));
        assert_eq!(table.clean_len(1), Some(0));
        for n in 0..5_000 {
            table.append(1, vertex(n), edge(n + 1), &storage, &memory);
        }
        let pin = epoch::pin();
        let list = table.list(1, &storage, &pin);
        assert!(list.cells().eq((0..5_000).map(|n| (vertex(n), edge(n + 1)))));
        for from in [0, 1, 2, 3, 9, 10, 11, 1_000, 2_045, 4_999, 5_000] {
            assert!(list.tail(from).map(|(at, v, _)| (at, v.slot())).eq((from..5_000).map(|n| (n, n))), "{from}");
        }
        assert_eq!(table.list(0, &storage, &pin).cells().count(), 0);
    }

    #[test]
    fn packed_runs_short_and_long_keep_their_place_and_take_tails() {
        let memory = Memory::new(u64::MAX);
        let (storage, table) = (ListStorage::new(), AdjacencyTable::new(4, &memory));
        let lengths = [3, 0, 40_000, 2];
        let total: u32 = lengths.iter().sum();
        let block = Block {
            neighbors: (0..u64::from(total)).map(vertex).collect(),
            edges: (0..u64::from(total)).map(edge).collect(),
        };
        table.set_block(block, &lengths, &storage, &memory);
        let pin = epoch::pin();
        let slots = |at| table.list(at, &storage, &pin).cells().map(|(v, _)| v.slot()).collect::<Vec<_>>();
        assert_eq!(slots(0), [0, 1, 2]);
        assert_eq!(slots(1), [0_u64; 0]);
        assert_eq!((slots(2).len(), slots(2)[0], slots(3)), (40_000, 3, vec![40_003, 40_004]));
        assert_eq!((table.clean_len(0), table.clean_len(2)), (Some(3), None));

        table.append(0, vertex(77), edge(77), &storage, &memory);
        assert_eq!(slots(0), [0, 1, 2, 77]);
        assert!(!table.list(0, &storage, &pin).dirty);
        table.mark_dirty(0, &storage, &memory);
        table.mark_dirty(3, &storage, &memory);
        assert!(table.list(0, &storage, &pin).dirty && table.list(3, &storage, &pin).dirty);
        assert_eq!(slots(0), [0, 1, 2, 77]);
    }
}
