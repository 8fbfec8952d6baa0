//! Adjacency lists: one word a list, packed runs, and headers for what is long, growing or dirty.
//!
//! An [`AdjacencyTable`] holds the lists of one page's vertices in one direction along one edge label set.
//! A list is one descriptor word, read once, so that no reader sees half of a replacement:
//!
//! ```text
//! 0                                                     no edge
//! 00 | block 14 (0 for now) | offset 32 | length 16     a clean packed run in the table's block
//! 1d | unused               | header number 48          a list header; d: the packed part is dirty
//! ```
//!
//! Neighbors of a run lie together, and so do its edge ids; runs are sorted by neighbor. Whatever is packed
//! was visible to everyone when it was packed: until the dirty bit is set, a reader takes it without looking
//! at any version. A header's tail holds edges added since, each checked against its edge's version words,
//! the only truth about an edge's visibility. The dirty bit is set before a packed edge's end is claimed.
//!
//! A list grows under its header's latch; its count, stored last, publishes the cell to readers, who take no
//! latch. Not here: compaction, which will replace descriptors by new runs as a whole.

use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use mangrove_graph::{EdgeId, VertexId};
use parking_lot::Mutex;

use crate::memory::{Memory, RecordKind};
use crate::segments::Pool;
use crate::tail::{FIRST_ROW, LAST_ROW, TailArena, TailCell};

const HEADER: u64 = 1 << 63;
const DIRTY: u64 = 1 << 62;
const HEADER_MASK: u64 = (1 << 48) - 1;
const LENGTH_BITS: u32 = 16;
const LENGTH_MAX: u64 = (1 << (LENGTH_BITS - 1)) - 1;

/// Packed runs of one table: two parallel arrays.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) neighbors: Box<[VertexId]>,
    pub(crate) edges: Box<[EdgeId]>,
}

impl Block {
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
}

impl ListStorage {
    pub(crate) fn new() -> Self {
        ListStorage { headers: Pool::new(RecordKind::ListHeader), tails: TailArena::new() }
    }

    fn header(&self, descriptor: u64) -> &ListHeader {
        self.headers.get(descriptor & HEADER_MASK).expect("a descriptor names only headers that were allocated")
    }

    /// Bytes of the headers, and of the tails.
    pub(crate) fn bytes(&self) -> (usize, usize) {
        (self.headers.bytes(), self.tails.bytes())
    }
}

/// The lists of one page in one direction along one label set.
#[derive(Debug)]
pub(crate) struct AdjacencyTable {
    descriptors: Box<[AtomicU64]>,
    block: OnceLock<Block>,
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
    first_row: u64,
    tails: &'a TailArena,
}

impl AdjacencyTable {
    pub(crate) fn new(capacity: usize, memory: &Memory) -> Self {
        let table =
            AdjacencyTable { descriptors: (0..capacity).map(|_| AtomicU64::new(0)).collect(), block: OnceLock::new() };
        memory.add(RecordKind::Descriptor, table.descriptor_bytes());
        table
    }

    fn descriptor_bytes(&self) -> usize {
        size_of::<AdjacencyTable>() + size_of_val(&*self.descriptors)
    }

    /// Bytes of the descriptors, and of the block.
    pub(crate) fn bytes(&self) -> (usize, usize) {
        (self.descriptor_bytes(), self.block.get().map_or(0, Block::bytes))
    }

    /// The descriptor at an offset; that of an empty list beyond the page's capacity.
    #[inline]
    fn descriptor(&self, at: usize) -> u64 {
        // Acquire: its partners are the compare-and-swap that publishes a header, and `set_block`.
        self.descriptors.get(at).map_or(0, |descriptor| descriptor.load(Ordering::Acquire))
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
    pub(crate) fn prefetch_list(&self, at: usize, with_edges: bool, storage: &ListStorage) {
        let descriptor = self.descriptor(at);
        if descriptor == 0 {
            return;
        }
        if descriptor & HEADER != 0 {
            crate::prefetch::prefetch(storage.header(descriptor));
            return;
        }
        let run = packed_run(descriptor);
        let Some(block) = self.block.get() else { return };
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
    pub(crate) fn packed(&self, at: usize) -> Packed<'_> {
        match self.descriptor(at) {
            0 => Packed::Nothing,
            descriptor if descriptor & HEADER != 0 => Packed::Header,
            descriptor => match self.block.get() {
                Some(block) => Packed::Run(block, packed_run(descriptor)),
                None => Packed::Nothing,
            },
        }
    }

    /// The list of the vertex at an offset.
    #[inline]
    pub(crate) fn list<'a>(&'a self, at: usize, storage: &'a ListStorage) -> List<'a> {
        let descriptor = self.descriptor(at);
        let (run, tail_len, first_row) = if descriptor & HEADER == 0 {
            (packed_run(descriptor), 0, 0)
        } else {
            let header = storage.header(descriptor);
            // Acquire, before `first`: its partner is the Release in `append`.
            let count = header.count.load(Ordering::Acquire);
            (header.run(), count, header.first.load(Ordering::Acquire))
        };
        let (neighbors, edges) = match self.block.get() {
            Some(block) => (&block.neighbors[run.clone()], &block.edges[run]),
            None => (&[][..], &[][..]),
        };
        let dirty = descriptor & DIRTY != 0;
        List { neighbors, edges, dirty, tail_len, first_row, tails: &storage.tails }
    }

    /// Adds an edge to a list.
    pub(crate) fn append(&self, at: usize, neighbor: VertexId, edge: EdgeId, storage: &ListStorage, memory: &Memory) {
        let header = storage.header(self.header_word(at, 0, storage, memory));
        header.append(neighbor, edge, storage, memory);
    }

    /// Says that packed edges of a list are going to end.
    pub(crate) fn mark_dirty(&self, at: usize, storage: &ListStorage, memory: &Memory) {
        if self.header_word(at, DIRTY, storage, memory) & DIRTY == 0 {
            self.descriptors[at].fetch_or(DIRTY, Ordering::AcqRel);
        }
    }

    /// The descriptor of a list with a header, made where there is none, then with these flags.
    fn header_word(&self, at: usize, flags: u64, storage: &ListStorage, memory: &Memory) -> u64 {
        let mut descriptor = self.descriptors[at].load(Ordering::Acquire);
        if descriptor & HEADER != 0 {
            return descriptor;
        }
        let (index, header) = storage.headers.allocate(memory);
        let made = HEADER | flags | index;
        while descriptor & HEADER == 0 {
            let run = packed_run(descriptor);
            header.packed.store(((run.start as u64) << 32) | run.len() as u64, Ordering::Relaxed);
            match self.descriptors[at].compare_exchange(descriptor, made, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return made,
                Err(current) => descriptor = current,
            }
        }
        // Another thread made one first; ours stays unused.
        descriptor
    }

    /// Gives the table its packed block: runs of `lengths` in the order of the page's slots. Only while the
    /// graph is loaded in bulk, before anybody reads.
    pub(crate) fn set_block(&self, block: Block, lengths: &[u32], storage: &ListStorage, memory: &Memory) {
        memory.add(RecordKind::Block, block.bytes());
        let mut offset = 0_u64;
        for (descriptor, &len) in self.descriptors.iter().zip(lengths) {
            let len = u64::from(len);
            let word = match len {
                0 => 0,
                1..=LENGTH_MAX => (offset << LENGTH_BITS) | len,
                _ => {
                    let (index, header) = storage.headers.allocate(memory);
                    header.packed.store((offset << 32) | len, Ordering::Relaxed);
                    HEADER | index
                }
            };
            descriptor.store(word, Ordering::Release);
            offset += len;
        }
        assert_eq!(offset, block.neighbors.len() as u64, "the runs fill their block");
        assert!(self.block.set(block).is_ok(), "a table is packed once");
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

    fn append(&self, neighbor: VertexId, edge: EdgeId, storage: &ListStorage, memory: &Memory) {
        let mut end = self.latch.lock();
        if end.used == end.len {
            let len = if end.len == 0 { FIRST_ROW } else { (end.len * 2).min(LAST_ROW) };
            let row = storage.tails.allocate(len, memory);
            // Release: a reader that follows the link finds the row's chunk.
            match end.row {
                0 => self.first.store(row, Ordering::Release),
                last => storage.tails.row(last, end.len)[0].neighbor.store(row, Ordering::Release),
            }
            *end = TailEnd { row, len, used: 1 };
        }
        let cell = &storage.tails.row(end.row, end.len)[end.used as usize];
        cell.neighbor.store(neighbor.to_bits(), Ordering::Relaxed);
        cell.edge.store(edge.to_bits(), Ordering::Relaxed);
        end.used += 1;
        // Release publishes the cell; only the holder of the latch changes the count.
        self.count.store(self.count.load(Ordering::Relaxed) + 1, Ordering::Release);
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

#[cfg(test)]
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
        let list = table.list(1, &storage);
        assert!(list.cells().eq((0..5_000).map(|n| (vertex(n), edge(n + 1)))));
        for from in [0, 1, 2, 3, 9, 10, 11, 1_000, 2_045, 4_999, 5_000] {
            assert!(list.tail(from).map(|(at, v, _)| (at, v.slot())).eq((from..5_000).map(|n| (n, n))), "{from}");
        }
        assert_eq!(table.list(0, &storage).cells().count(), 0);
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
        let slots = |at| table.list(at, &storage).cells().map(|(v, _)| v.slot()).collect::<Vec<_>>();
        assert_eq!(slots(0), [0, 1, 2]);
        assert_eq!(slots(1), [0_u64; 0]);
        assert_eq!((slots(2).len(), slots(2)[0], slots(3)), (40_000, 3, vec![40_003, 40_004]));
        assert_eq!((table.clean_len(0), table.clean_len(2)), (Some(3), None));

        table.append(0, vertex(77), edge(77), &storage, &memory);
        assert_eq!(slots(0), [0, 1, 2, 77]);
        assert!(!table.list(0, &storage).dirty);
        table.mark_dirty(0, &storage, &memory);
        table.mark_dirty(3, &storage, &memory);
        assert!(table.list(0, &storage).dirty && table.list(3, &storage).dirty);
        assert_eq!(slots(0), [0, 1, 2, 77]);
    }
}
