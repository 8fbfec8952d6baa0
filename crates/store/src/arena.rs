//! Entries handed out by number in rows, from chunks that are given back once nobody has anything in them.
//!
//! ```text
//! number    | chunk | entry LOG2 |          directory ──▶ chunk ──▶ 2^LOG2 entries, or nothing
//! ```
//!
//! A row is some entries that follow one another in a chunk. Rows are cut from a chunk until its rest is too short, and
//! come back to a list for each length; a chunk all of whose rows have come back is *empty*, and
//! [`Arena::give_back_chunks`] gives its memory up. Its number is taken again, before new ones, when another chunk is
//! needed. So after a burst an arena shrinks to the chunks that something is left in.
//!
//! Invariants:
//!
//! 1. Rows are handed out, taken back, and chunks given up under one lock. So nobody gets a row of a chunk that goes.
//! 2. A row is taken back a grace period after it was unlinked: nobody who is pinned has its number any more. So a chunk
//!    that is empty has no readers but those who load ahead what they do not read; for them its memory goes through a
//!    limbo, and entries are looked up under a pin.
//! 3. What an entry says is the business of its owner: it comes as the last one left it, or as its default.
//!
//! The lock is taken once a row, for some loads and stores. There is an arena for each tablet, so threads rarely meet.

use std::ops::Range;

use crate::epoch::{EpochSlice, Pin};
use crate::limbo::Garbage;
use crate::memory::{Memory, RecordKind};
use crate::segments::{Segments, Usage};
use crate::sync::Mutex;

/// Chunks of the directory's first part.
const DIRECTORY_LOG2: u32 = 4;

/// `2^LOG2` entries that are there or not.
#[derive(Debug)]
struct Chunk<T, const LOG2: u32>(EpochSlice<T>);

impl<T: Send + Sync + 'static, const LOG2: u32> Default for Chunk<T, LOG2> {
    fn default() -> Self {
        Chunk(EpochSlice::empty(1 << LOG2))
    }
}

/// See the module. Number 0 is never handed out, so that it can stand for "none".
#[derive(Debug)]
pub(crate) struct Arena<T, const LOG2: u32> {
    chunks: Segments<Chunk<T, LOG2>, DIRECTORY_LOG2>,
    places: Mutex<Places>,
    kind: RecordKind,
}

/// What is handed out, and what can be.
#[derive(Debug, Default)]
struct Places {
    /// Rows that came back, by the logarithm of their length.
    free: Vec<Vec<u64>>,
    /// What is left of the chunk that rows are cut from.
    fresh: Range<u64>,
    /// How many entries of each chunk are handed out.
    live: Vec<u32>,
    /// Chunks that were given up.
    vacant: Vec<u64>,
}

impl Places {
    /// The numbers of another chunk of `len` entries, which is one that was given up if there is such.
    fn open_chunk(&mut self, len: u64) -> Range<u64> {
        let chunk = self.vacant.pop().unwrap_or_else(|| {
            self.live.push(0);
            self.live.len() as u64 - 1
        });
        // Number 0 is none.
        (chunk * len).max(1)..(chunk + 1) * len
    }
}

impl<T: Default + Send + Sync + 'static, const LOG2: u32> Arena<T, LOG2> {
    const CHUNK: u64 = 1 << LOG2;

    pub(crate) fn new(kind: RecordKind) -> Self {
        Arena { chunks: Segments::new(kind), places: Mutex::default(), kind }
    }

    fn chunk_of(number: u64) -> usize {
        (number >> LOG2) as usize
    }

    /// The entries of a row, which has not come back since the pin began. `None` if it never was.
    #[inline]
    pub(crate) fn row<'p>(&'p self, start: u64, len: u64, pin: &'p Pin) -> Option<&'p [T]> {
        let at = (start & (Self::CHUNK - 1)) as usize;
        self.chunks.get(start >> LOG2)?.0.get(pin)?.get(at..at + len as usize)
    }

    /// As [`Arena::row`], of one entry.
    #[inline]
    pub(crate) fn get<'p>(&'p self, number: u64, pin: &'p Pin) -> Option<&'p T> {
        self.chunks.get(number >> LOG2)?.0.get(pin)?.get((number & (Self::CHUNK - 1)) as usize)
    }

    /// Hands out a row of `len` entries, a power of two that fits a chunk: its number and its entries.
    pub(crate) fn allocate<'p>(&'p self, len: u64, memory: &Memory, pin: &'p Pin) -> (u64, &'p [T]) {
        debug_assert!(len.is_power_of_two() && len <= Self::CHUNK, "a row of {len} entries fits no chunk");
        let class = len.ilog2() as usize;
        let mut places = self.places.lock();
        let start = match places.free.get_mut(class).and_then(Vec::pop) {
            Some(start) => {
                // What came back was last touched long ago, or by another core: the next one is loaded before it is
                // needed.
                let next = places.free[class].last().and_then(|next| self.get(*next, pin));
                next.into_iter().for_each(crate::prefetch::prefetch);
                start
            }
            None => {
                if places.fresh.end - places.fresh.start < len {
                    // The rest of the chunk is lost until it is given back.
                    places.fresh = places.open_chunk(Self::CHUNK);
                    // A row as long as a chunk does not fit the first one.
                    if places.fresh.end - places.fresh.start < len {
                        places.fresh = places.open_chunk(Self::CHUNK);
                    }
                }
                let start = places.fresh.start;
                places.fresh.start += len;
                start
            }
        };
        places.live[Self::chunk_of(start)] += len as u32;
        let chunk = self.chunks.ensure(start >> LOG2, memory);
        let (entries, is_new) = chunk.0.get_or_init(pin, || (0..Self::CHUNK).map(|_| T::default()).collect());
        if is_new {
            memory.add(self.kind, size_of_val(entries));
        }
        let at = (start & (Self::CHUNK - 1)) as usize;
        (start, &entries[at..at + len as usize])
    }

    /// Takes back a row that nobody can reach any more.
    pub(crate) fn free(&self, start: u64, len: u64) {
        let class = len.ilog2() as usize;
        let mut places = self.places.lock();
        places.live[Self::chunk_of(start)] -= len as u32;
        if places.free.len() <= class {
            places.free.resize_with(class + 1, Vec::new);
        }
        places.free[class].push(start);
    }

    /// Gives up the memory of empty chunks; how many there were.
    pub(crate) fn give_back_chunks(&self, memory: &Memory, garbage: &mut Vec<Garbage>) -> usize {
        let mut guard = self.places.lock();
        let Places { free, fresh, live, vacant } = &mut *guard;
        let is_there = |chunk: &u64| self.chunks.get(*chunk).is_some_and(|chunk| chunk.0.is_some());
        let empty = |chunk: &u64| live[*chunk as usize] == 0 && is_there(chunk);
        let empty: Vec<u64> = (0..live.len() as u64).filter(empty).collect();
        if empty.is_empty() {
            return 0;
        }
        for rows in free.iter_mut() {
            rows.retain(|start| live[Self::chunk_of(*start)] > 0);
            // The lowest numbers go first from here on, so that what is left gathers in few chunks.
            rows.sort_unstable_by(|one, other| other.cmp(one));
            rows.shrink_to(2 * rows.len());
        }
        if !fresh.is_empty() && live[Self::chunk_of(fresh.start)] == 0 {
            *fresh = 0..0;
        }
        for &number in &empty {
            let chunk = self.chunks.get(number).expect("it was found to be there");
            memory.remove(self.kind, chunk.0.bytes());
            garbage.extend(chunk.0.take().map(Garbage::Box));
        }
        vacant.extend(empty.iter().rev());
        empty.len()
    }

    /// How many entries are handed out, and the bytes of rows that came back.
    pub(crate) fn usage(&self) -> Usage {
        let places = self.places.lock();
        let live = places.live.iter().map(|&live| u64::from(live)).sum();
        let free: u64 = places.free.iter().enumerate().map(|(class, rows)| (rows.len() as u64) << class).sum();
        Usage { live, free_bytes: free * size_of::<T>() as u64 }
    }

    /// The memory of the chunks there are.
    pub(crate) fn bytes(&self) -> usize {
        self.chunks.bytes() + self.chunks.iter().map(|chunk| chunk.0.bytes()).sum::<usize>()
    }

    /// All entries there are.
    pub(crate) fn iter<'p>(&'p self, pin: &'p Pin) -> impl Iterator<Item = &'p T> {
        self.chunks.iter().filter_map(|chunk| chunk.0.get(pin)).flatten()
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use std::collections::HashMap;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crate::epoch;
    use crate::limbo::Limbo;

    type Small = Arena<AtomicU64, 4>;

    #[test]
    fn rows_of_all_lengths_lie_apart_and_are_used_again() {
        let memory = Memory::new(u64::MAX);
        let (arena, pin) = (Small::new(RecordKind::Tail), epoch::pin());
        let mut owner = HashMap::new();
        for round in 0..200_u64 {
            let len = 1 << (round % 5);
            let (start, entries) = arena.allocate(len, &memory, &pin);
            assert_eq!((entries.len() as u64, start / 16), (len, (start + len - 1) / 16));
            assert!((start..start + len).all(|number| number != 0 && owner.insert(number, round).is_none()));
            if round % 3 == 0 {
                arena.free(start, len);
                owner.retain(|number, _| !(start..start + len).contains(number));
            }
        }
        assert_eq!(arena.usage().live, owner.len() as u64);
        assert_eq!(arena.bytes() as u64, memory.report().total_bytes());
    }

    #[test]
    fn empty_chunks_are_given_back_and_their_numbers_taken_again() {
        let (memory, limbo) = (Memory::new(u64::MAX), Limbo::default());
        let arena = Small::new(RecordKind::Tail);
        let fill = |count: u64, len: u64| -> Vec<u64> {
            let pin = epoch::pin();
            (0..count).map(|_| arena.allocate(len, &memory, &pin).0).collect()
        };
        let give_back = || {
            let mut garbage = Vec::new();
            let count = arena.give_back_chunks(&memory, &mut garbage);
            limbo.take_in(garbage);
            assert_eq!(arena.bytes() as u64, memory.report().total_bytes());
            count
        };
        let rows = fill(100, 4);
        let peak = memory.report().total_bytes();
        rows[..99].iter().for_each(|&start| arena.free(start, 4));
        assert!(give_back() > 20);
        assert_eq!((give_back(), arena.usage().live), (0, 4));
        let pin = epoch::pin();
        assert!(arena.row(rows[99], 4, &pin).is_some() && arena.row(rows[0], 4, &pin).is_none());
        drop(pin);
        // The same chunks again, cut into other rows.
        let other = fill(200, 2);
        assert!(other.iter().all(|start| *start < rows[99] + 16));
        assert!(memory.report().total_bytes() <= peak);
        other.iter().for_each(|&start| arena.free(start, 2));
        arena.free(rows[99], 4);
        assert!(give_back() > 20);
        assert_eq!(arena.iter(&epoch::pin()).count(), 0);
        epoch::wait_for_readers();
        limbo.release_boxes();
    }

    #[test]
    fn rows_come_and_go_while_chunks_are_given_back() {
        let rounds = if cfg!(miri) { 20 } else { 3_000 };
        let (memory, limbo) = (Memory::new(u64::MAX), Limbo::default());
        let arena = Small::new(RecordKind::Tail);
        std::thread::scope(|scope| {
            for thread in 1..3_u64 {
                let (arena, memory) = (&arena, &memory);
                scope.spawn(move || {
                    for round in 0..rounds {
                        let pin = epoch::pin();
                        let rows: Vec<_> = (0..9).map(|at| arena.allocate(1 << (at % 4), memory, &pin)).collect();
                        let mark = |at: usize| thread << 32 | round << 8 | at as u64;
                        for (at, (_, entries)) in rows.iter().enumerate() {
                            entries.iter().for_each(|entry| entry.store(mark(at), Ordering::Relaxed));
                        }
                        for (at, (start, entries)) in rows.iter().enumerate() {
                            assert!(entries.iter().all(|entry| entry.load(Ordering::Relaxed) == mark(at)));
                            arena.free(*start, entries.len() as u64);
                        }
                    }
                });
            }
            for _ in 0..rounds {
                let mut garbage = Vec::new();
                arena.give_back_chunks(&memory, &mut garbage);
                limbo.take_in(garbage);
                limbo.release_boxes();
            }
        });
        assert_eq!(arena.usage().live, 0);
        assert_eq!(arena.bytes() as u64, memory.report().total_bytes());
    }
}
