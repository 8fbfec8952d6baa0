//! The records of a tablet that lists are made of: headers, and the rows of tails.
//!
//! A header is written under its latch only, and read without it (STORE-16). Its packed part is set before a descriptor
//! names the header, and stays. The tail grows, and the count publishes it cell by cell.
//!
//! The first cells of a tail are in the header. Between two compactions most lists get one or two edges. Then there is no
//! row: writers, readers and the compaction look at one cache line.

use std::ops::Range;
use std::sync::atomic::Ordering;

use mangrove_graph::{EdgeId, VertexId};
use mangrove_locks::rank;
use mangrove_reclaim::sync::{AtomicBool, AtomicU16, AtomicU32, AtomicU64, Mutex};
use mangrove_reclaim::{EpochCell, Pin, Retired, Usage, epoch};

use super::LateName;
use super::descriptor::{BARE, HEADER, HEADER_MASK};
use super::list::Block;
use super::tail::{FIRST_ROW, Place, TailArena, TailCell, longer};
use crate::memory::{Arena, Garbage, Memory, RecordKind};

/// How many cells of a tail are in the header.
pub(super) const HEADER_CELLS: usize = 2;

/// The right to add cells to a tail, of the thread that holds the latch of the list's header.
#[derive(Debug, Default)]
pub(super) struct Appending(());

/// The header of a list that is long, has a tail, or has deleted edges. It fills a cache line, since to find a header is mostly a cache miss.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct ListHeader {
    /// Offset << 32 | length of the packed part; set before the header is published.
    packed: AtomicU64,
    /// The packed part of a long list, which has a block to itself.
    pub(super) own: EpochCell<Block>,
    /// How many cells of the tail readers may see.
    count: AtomicU32,
    /// The first row of the tail, divided by the length of a first row; 0 if there is none.
    rows: AtomicU32,
    /// About how many packed edges were deleted: a hint for compaction.
    ended: AtomicU32,
    /// The list's layout version, which names the block that the packed part lies in; set before the header is
    /// published.
    layout_version: AtomicU16,
    pub(super) latch: Mutex<Appending, rank::ListHeader>,
    /// The first cells of the tail. The others are in rows.
    pub(super) cells: [TailCell; HEADER_CELLS],
}

impl ListHeader {
    /// The packed part, as a range of its block.
    pub(super) fn run(&self) -> Range<usize> {
        let packed = self.packed.load(Ordering::Relaxed);
        let offset = (packed >> 32) as usize;
        offset..offset + (packed as u32) as usize
    }

    /// Sets the packed part and the layout version, before a descriptor names the header.
    pub(super) fn set_packed(&self, run: Range<usize>, layout_version: u32) {
        self.packed.store(((run.start as u64) << 32) | run.len() as u64, Ordering::Relaxed);
        self.layout_version.store(layout_version as u16, Ordering::Relaxed);
    }

    pub(super) fn layout_version(&self) -> u32 {
        self.layout_version.load(Ordering::Relaxed).into()
    }

    /// How many cells of the tail the caller may see.
    pub(super) fn count(&self) -> u64 {
        // Acquire: its partner is the Release in `push`.
        self.count.load(Ordering::Acquire).into()
    }

    /// The first row of the tail; 0 if there is none.
    pub(super) fn first_row(&self) -> u64 {
        u64::from(self.rows.load(Ordering::Acquire)) * FIRST_ROW
    }

    /// About how many packed edges have ended.
    pub(super) fn ended(&self) -> u32 {
        self.ended.load(Ordering::Relaxed)
    }

    /// Counts a packed edge that has ended. Two threads may count the same one.
    pub(super) fn count_ended(&self) {
        self.ended.store(self.ended.load(Ordering::Relaxed).saturating_add(1), Ordering::Relaxed);
    }

    /// Adds a cell.
    ///
    /// # Panics
    ///
    /// If the list has 2^32 cells that no compaction has packed, or the tablet has 2^34 of them.
    pub(super) fn push(
        &self,
        appending: &mut Appending,
        (neighbor, edge): (VertexId, EdgeId),
        tails: &TailArena,
        memory: &Memory,
        pin: &Pin,
    ) {
        let count = self.count.load(Ordering::Relaxed);
        let cell = match self.cells.get(count as usize) {
            Some(cell) => cell,
            None => self.next_in_rows(appending, u64::from(count), tails, memory, pin),
        };
        cell.set(neighbor, edge);
        // Release publishes the cell (STORE-16). Only the holder of the latch changes the count.
        self.count.store(count.checked_add(1).expect("a tail has less than 2^32 cells"), Ordering::Release);
    }

    /// The next cell of the rows, of a tail with so many cells. If the last row is full, another one is added.
    fn next_in_rows<'p>(
        &self,
        _: &mut Appending,
        count: u64,
        tails: &'p TailArena,
        memory: &Memory,
        pin: &'p Pin,
    ) -> &'p TailCell {
        let place = Place::of(count - HEADER_CELLS as u64);
        let first = self.first_row();
        // The first row's link cell also has the number of the last row.
        let last = |first| &tails.row(first, FIRST_ROW, pin)[0].edge;
        if place.at > 1 {
            let row = if place.is_first { first } else { last(first).load(Ordering::Relaxed) };
            return &tails.row(row, place.len, pin)[place.at];
        }
        let (row, cells) = tails.allocate(place.len, memory, pin);
        // Release: a reader that follows the link finds the row's chunk.
        if place.is_first {
            let number = u32::try_from(row / FIRST_ROW).expect("the tails of a tablet have less than 2^34 cells");
            self.rows.store(number, Ordering::Release);
            last(row).store(row, Ordering::Relaxed);
        } else {
            let before = last(first).load(Ordering::Relaxed);
            tails.row(before, place.len_before, pin)[0].neighbor.store(row, Ordering::Release);
            last(first).store(row, Ordering::Relaxed);
        }
        &cells[place.at]
    }

    /// Returns true if the list has no memory but this header: no rows, and no block to itself.
    pub(super) fn is_bare(&self, pin: &Pin) -> bool {
        self.first_row() == 0 && self.own.get(pin).is_none()
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

    /// Starts loading the first row of the tail of a list with a header, if there is a row.
    #[inline]
    pub(crate) fn prefetch_tail(&self, descriptor: u64, pin: &Pin) {
        if descriptor & HEADER != 0
            && let row = self.header(descriptor, pin).first_row()
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
        header.set_packed(0..0, 0);
        for word in [&header.count, &header.rows, &header.ended] {
            word.store(0, Ordering::Relaxed);
        }
        // Everything that knew the header's last owner is over, since a header is given out a grace period after it was
        // unlinked.
        assert!(header.latch.try_lock().is_some(), "a header that is given out has no user");
        (index, header)
    }

    /// As [`ListStorage::new_header`], with the first cell of its tail.
    pub(super) fn new_header_with<'p>(
        &'p self,
        (neighbor, edge): (VertexId, EdgeId),
        memory: &Memory,
        pin: &'p Pin,
    ) -> (u64, &'p ListHeader) {
        let (index, header) = self.new_header(memory, pin);
        // Relaxed: as there.
        header.cells[0].set(neighbor, edge);
        header.count.store(1, Ordering::Relaxed);
        (index, header)
    }

    /// Gives up the header that a replaced descriptor named, with the rows of its tail. One that is noted to be bare is
    /// not looked at: that would be a cache miss.
    pub(crate) fn retire(&self, descriptor: u64, tablet: u16, garbage: &mut Vec<Garbage>, pin: &Pin) {
        if descriptor & HEADER == 0 {
            return;
        }
        let record = descriptor & HEADER_MASK;
        if descriptor & BARE != 0 {
            garbage.push(Garbage::Header { tablet, record, has_block: false });
            return;
        }
        let header = self.header(descriptor, pin);
        let (mut start, mut len) = (header.first_row(), FIRST_ROW);
        let mut left = header.count().saturating_sub(HEADER_CELLS as u64);
        while start != 0 {
            garbage.push(Garbage::Row { tablet, start, len });
            // Without a look at the last row, which would be a cache miss: it has no successor.
            if left < len {
                break;
            }
            left -= len - 1;
            start = self.tails.row(start, len, pin)[0].neighbor.load(Ordering::Acquire);
            len = longer(len);
        }
        // A block is given to a header before a descriptor names it.
        let has_block = header.own.get(pin).is_some();
        garbage.push(Garbage::Header { tablet, record, has_block });
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
