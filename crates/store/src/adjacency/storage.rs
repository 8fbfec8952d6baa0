//! The records of a tablet that lists are made of: headers, and the rows of tails.
//!
//! A header is written under its latch only, and read without it (STORE-16). Its packed part is set before a descriptor
//! names the header, and stays. The tail grows, and the count publishes it cell by cell.

use std::ops::Range;
use std::sync::atomic::Ordering;

use mangrove_graph::{EdgeId, VertexId};
use mangrove_locks::rank;
use mangrove_reclaim::sync::{AtomicBool, AtomicU32, AtomicU64, Mutex};
use mangrove_reclaim::{EpochCell, Pin, Retired, Usage, epoch};

use super::LateName;
use super::descriptor::{HEADER, HEADER_MASK};
use super::list::Block;
use crate::adjacency::tail::{FIRST_ROW, LAST_ROW, TailArena};
use crate::memory::{Arena, Garbage, Memory, RecordKind};

/// The position of a header's writer in the last row of the tail.
#[derive(Debug, Default)]
pub(super) struct TailEnd {
    row: u64,
    len: u32,
    used: u32,
}

/// The header of a list that is long, has a tail, or has deleted edges. It fills a cache line, since to find a header is mostly a cache miss.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct ListHeader {
    /// Offset << 32 | length of the packed part; set before the header is published.
    pub(super) packed: AtomicU64,
    /// The list's layout version, which names the block that the packed part lies in; set before the header is
    /// published.
    pub(super) layout_version: AtomicU32,
    /// About how many packed edges were deleted: a hint for compaction.
    pub(super) ended: AtomicU32,
    /// The packed part of a long list, which has a block to itself.
    pub(super) own: EpochCell<Block>,
    /// The first row of the tail.
    pub(super) first: AtomicU64,
    /// How many cells of the tail readers may see.
    pub(super) count: AtomicU64,
    pub(super) latch: Mutex<TailEnd, rank::ListHeader>,
}

impl ListHeader {
    /// The packed part, as a range of its block.
    pub(super) fn run(&self) -> Range<usize> {
        let packed = self.packed.load(Ordering::Relaxed);
        let offset = (packed >> 32) as usize;
        offset..offset + (packed as u32) as usize
    }

    /// Counts a packed edge that has ended. Two threads may count the same one.
    pub(super) fn count_ended(&self) {
        self.ended.store(self.ended.load(Ordering::Relaxed).saturating_add(1), Ordering::Relaxed);
    }

    /// Adds a cell. The caller holds the latch.
    pub(super) fn push(
        &self,
        end: &mut TailEnd,
        (neighbor, edge): (VertexId, EdgeId),
        tails: &TailArena,
        memory: &Memory,
        pin: &Pin,
    ) {
        if end.used == end.len {
            let last_len = u64::from(end.len);
            let len = if last_len == 0 { FIRST_ROW } else { (last_len * 2).min(LAST_ROW) };
            let (row, _) = tails.allocate(len, memory, pin);
            // Release: a reader that follows the link finds the row's chunk.
            match end.row {
                0 => self.first.store(row, Ordering::Release),
                last => tails.row(last, last_len, pin)[0].neighbor.store(row, Ordering::Release),
            }
            *end = TailEnd { row, len: len as u32, used: 1 };
        }
        let cell = &tails.row(end.row, end.len.into(), pin)[end.used as usize];
        cell.neighbor.store(neighbor.to_bits(), Ordering::Relaxed);
        cell.edge.store(edge.to_bits(), Ordering::Relaxed);
        end.used += 1;
        // Release publishes the cell (STORE-16). Only the holder of the latch changes the count.
        self.count.store(self.count.load(Ordering::Relaxed) + 1, Ordering::Release);
    }
}

/// The records that lists of one tablet are made of.
#[derive(Debug)]
pub(crate) struct ListStorage {
    pub(super) headers: Arena<ListHeader, 6>,
    pub(super) tails: TailArena,
    /// For the compaction that is under way in the tablet, of one table at a time (STORE-15).
    pub(super) late_names: Mutex<Vec<LateName>, rank::LateNames>,
    /// True if a table of the tablet has changed since a compaction last went through them.
    changed: AtomicBool,
}

impl ListStorage {
    pub(crate) fn new() -> Self {
        ListStorage {
            headers: Arena::new(RecordKind::ListHeader),
            tails: TailArena::new(),
            late_names: Mutex::default(),
            changed: AtomicBool::new(false),
        }
    }

    /// Notes that a table has something for compaction, or will have.
    #[inline]
    pub(crate) fn note_change(&self) {
        // Mostly set already, and then every core keeps a copy of its line. SeqCst: see `Changes::add`.
        if !self.changed.load(Ordering::SeqCst) {
            self.changed.store(true, Ordering::SeqCst);
        }
    }

    /// Returns true if there was something, and takes the note away before the caller looks at the tables.
    pub(crate) fn take_change(&self) -> bool {
        self.changed.swap(false, Ordering::SeqCst)
    }

    /// The header that a descriptor names. The descriptor was read under the pin.
    #[inline]
    pub(super) fn header<'p>(&'p self, descriptor: u64, pin: &'p Pin) -> &'p ListHeader {
        self.headers.get(descriptor & HEADER_MASK, pin).expect("a header that a descriptor names was not given back")
    }

    /// Starts loading the header that a descriptor names, if it names one.
    #[inline]
    pub(crate) fn prefetch(&self, descriptor: u64, pin: &Pin) {
        if descriptor & HEADER != 0 {
            mangrove_reclaim::prefetch::prefetch(self.header(descriptor, pin));
        }
    }

    /// Starts loading the first row of the tail of a list with a header.
    #[inline]
    pub(crate) fn prefetch_tail(&self, descriptor: u64, pin: &Pin) {
        if descriptor & HEADER != 0
            && let row = self.header(descriptor, pin).first.load(Ordering::Acquire)
            && row != 0
        {
            let cells = self.tails.row(row, FIRST_ROW, pin);
            mangrove_reclaim::prefetch::prefetch(&cells[0]);
            mangrove_reclaim::prefetch::prefetch(&cells[cells.len() - 1]);
        }
    }

    /// A blank header and its number.
    pub(super) fn new_header<'p>(&'p self, memory: &Memory, pin: &'p Pin) -> (u64, &'p ListHeader) {
        let (index, header) = self.headers.allocate(1, memory, pin);
        let header = &header[0];
        // Relaxed: private until a descriptor names it.
        for word in [&header.packed, &header.first, &header.count] {
            word.store(0, Ordering::Relaxed);
        }
        header.layout_version.store(0, Ordering::Relaxed);
        header.ended.store(0, Ordering::Relaxed);
        // Not waited for: the caller may hold the latch of the list that the new one replaces. Everything that knew the
        // header's last owner is over, since a header is given out a grace period after it was unlinked.
        let mut end = header.latch.try_lock().expect("a header that is given out has no user");
        *end = TailEnd::default();
        drop(end);
        (index, header)
    }

    /// Gives up the header that a replaced descriptor named, with the rows of its tail.
    pub(crate) fn retire(&self, descriptor: u64, tablet: u16, garbage: &mut Vec<Garbage>, pin: &Pin) {
        if descriptor & HEADER == 0 {
            return;
        }
        let header = self.header(descriptor, pin);
        let (mut start, mut len) = (header.first.load(Ordering::Acquire), FIRST_ROW);
        let mut left = header.count.load(Ordering::Relaxed);
        while start != 0 {
            garbage.push(Garbage::Row { tablet, start, len });
            // Without a look at the last row, which would be a cache miss: it has no successor.
            if left < len {
                break;
            }
            left -= len - 1;
            start = self.tails.row(start, len, pin)[0].neighbor.load(Ordering::Acquire);
            len = (len * 2).min(LAST_ROW);
        }
        // A block is given to a header before a descriptor names it.
        let has_block = header.own.get(pin).is_some();
        garbage.push(Garbage::Header { tablet, record: descriptor & HEADER_MASK, has_block });
    }

    /// Takes back a header, a grace period after it was unlinked. If it has a block to itself, that is given up next. A header without one is
    /// not looked at: that would be a cache miss.
    pub(crate) fn free_header(&self, number: u64, has_block: bool, memory: &Memory) -> Option<Retired> {
        let own = has_block.then(|| {
            let pin = epoch::pin();
            let header = self.header(number, &pin);
            if let Some(block) = header.own.get(&pin) {
                memory.remove(RecordKind::Block, block.bytes());
            }
            header.own.swap(None)
        });
        self.free_blank_header(number);
        own.flatten()
    }

    /// Takes back a header that no other thread has seen.
    pub(super) fn free_blank_header(&self, number: u64) {
        self.headers.free(number, 1);
    }

    /// Gives up the memory of empty chunks of headers and rows. Returns how many chunks.
    pub(crate) fn give_back_chunks(&self, memory: &Memory, garbage: &mut Vec<Garbage>) -> usize {
        self.headers.give_back_chunks(memory, garbage) + self.tails.give_back_chunks(memory, garbage)
    }

    /// Takes back a row, a grace period after it was unlinked.
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
        let own = self.headers.iter(&pin).filter_map(|header| header.own.get(&pin)).map(Block::bytes).sum();
        (self.headers.bytes(), self.tails.bytes(), own)
    }
}
