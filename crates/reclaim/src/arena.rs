//! Rows of entries handed out by number, from chunks whose memory is given back once they are empty.
//!
//! ```text
//! number    | chunk | entry LOG2 |          array of chunks ──▶ chunk ──▶ 2^LOG2 entries, or nothing
//! ```
//!
//! A row is a number of consecutive entries of a chunk. Its length is a power of two, and its number a multiple of the length. Rows are cut from
//! a chunk one after another. Entries that have to be left out, because a row of a length cannot begin there, become shorter free rows. A row
//! that comes back is free, too. Free rows of a length are handed out in the order of their numbers, again and again from the lowest (`number_set`).
//!
//! A chunk all of whose rows have come back is *empty*: [`Arena::give_back_chunks`] gives up its memory, and its number is used again before a
//! new one is. So after a burst, an arena shrinks to the chunks that are not empty.
//!
//! - **RECLAIM-5.** Rows are handed out and taken back, and chunks are given up, under one lock. So no caller gets a
//!   row of a chunk that is going away.
//! - **RECLAIM-7.** A row is taken back a grace period after it was unlinked, so no pinned thread has its number. Only
//!   a thread that loads ahead without reading may still touch an empty chunk. For its sake the chunk's memory goes
//!   through a limbo, and entries are looked up under a pin.
//!
//! An entry comes as its last owner left it, or as its default.
//!
//! The lock is taken once a row, for a few loads and stores. An owner that expects contention makes several arenas.

use std::ops::Range;

use mangrove_locks::rank;

use crate::accounting::Accounting;
use crate::chunked::ChunkedArray;
use crate::epoch::Pin;
use crate::epoch_cell::EpochSlice;
use crate::ledger::Ledger;
use crate::number_set::NumberSet;
use crate::pool::Usage;
use crate::retired::Retired;
use crate::sync::Mutex;

/// The array of chunks is a [`ChunkedArray`] itself; this is its `BASE_LOG2`.
const CHUNKS_BASE_LOG2: u32 = 4;

/// The memory of `2^LOG2` entries, or nothing.
#[derive(Debug)]
struct Chunk<T, const LOG2: u32>(EpochSlice<T>);

impl<T: Send + Sync + 'static, const LOG2: u32> Default for Chunk<T, LOG2> {
    fn default() -> Self {
        Chunk(EpochSlice::empty(1 << LOG2))
    }
}

/// Rows of entries handed out by number. Number 0 is never handed out, so that it can stand for "no row".
///
/// Invariant: RECLAIM-5.
#[derive(Debug)]
pub struct Arena<T, K, const LOG2: u32> {
    chunks: ChunkedArray<Chunk<T, LOG2>, K, CHUNKS_BASE_LOG2>,
    account: Mutex<RowAccount, rank::ArenaRows>,
    /// The kind under which the memory is counted.
    kind: K,
}

/// The rows that are handed out, and the rows that can be.
#[derive(Debug, Default)]
struct RowAccount {
    /// Free rows, by the logarithm of their length: their numbers divided by it.
    free: Vec<NumberSet>,
    /// The rest of the chunk that rows are cut from.
    fresh: Range<u64>,
    /// How many entries of each chunk are handed out.
    live: Vec<u32>,
    /// Numbers of chunks whose memory was given up.
    vacant: Vec<u64>,
    ledger: Ledger,
}

impl RowAccount {
    /// Adds a free row, of so many entries as the logarithm says.
    fn add_free(&mut self, start: u64, class: usize) {
        if self.free.len() <= class {
            self.free.resize_with(class + 1, NumberSet::default);
        }
        self.free[class].insert((start >> class) as usize);
    }

    /// Makes free rows of what is left of the chunk, up to where a row of this length may begin.
    fn leave_out(&mut self, len: u64) {
        while !self.fresh.is_empty() && !self.fresh.start.is_multiple_of(len) {
            let class = self.fresh.start.trailing_zeros();
            self.add_free(self.fresh.start, class as usize);
            self.fresh.start += 1 << class;
        }
    }

    /// Begins another chunk, of `len` entries, and returns the numbers of its entries. A chunk whose memory was given
    /// up is taken before a new one.
    fn open_chunk(&mut self, len: u64) -> Range<u64> {
        let chunk = self.vacant.pop().unwrap_or_else(|| {
            self.live.push(0);
            self.live.len() as u64 - 1
        });
        assert_eq!(self.live[chunk as usize], 0, "chunk {chunk} was given up with rows in it");
        assert!(self.fresh.is_empty() || self.fresh.start / len != chunk, "rows are cut from chunk {chunk} already");
        // Number 0 stands for "no row".
        (chunk * len).max(1)..(chunk + 1) * len
    }
}

impl<T: Default + Send + Sync + 'static, K: Copy, const LOG2: u32> Arena<T, K, LOG2> {
    /// The entries of a chunk.
    const CHUNK: u64 = 1 << LOG2;

    /// An arena without chunks. Its memory is counted under `kind`.
    pub fn new(kind: K) -> Self {
        Arena { chunks: ChunkedArray::new(kind), account: Mutex::default(), kind }
    }

    fn chunk_of(number: u64) -> usize {
        (number >> LOG2) as usize
    }

    /// The entries of a row that has not come back since the pin began. `None` if its chunk has no memory.
    #[inline]
    pub fn row<'p>(&'p self, start: u64, len: u64, pin: &'p Pin) -> Option<&'p [T]> {
        let at = (start & (Self::CHUNK - 1)) as usize;
        self.chunks.get(start >> LOG2)?.0.get(pin)?.get(at..at + len as usize)
    }

    /// As [`Arena::row`], of one entry.
    #[inline]
    pub fn get<'p>(&'p self, number: u64, pin: &'p Pin) -> Option<&'p T> {
        self.chunks.get(number >> LOG2)?.0.get(pin)?.get((number & (Self::CHUNK - 1)) as usize)
    }

    /// Hands out a row of `len` entries: its number and its entries. `len` is a power of two that fits a chunk.
    pub fn allocate<'p>(&'p self, len: u64, memory: &impl Accounting<K>, pin: &'p Pin) -> (u64, &'p [T]) {
        debug_assert!(len.is_power_of_two(), "{len} entries are no row");
        debug_assert!(len <= Self::CHUNK, "a row of {len} entries fits no chunk");
        // The position of the free list for this length.
        let class = len.ilog2() as usize;
        // RECLAIM-5: handed out under the lock.
        let mut account = self.account.lock();
        let start = match account.free.get_mut(class).and_then(NumberSet::take) {
            Some(row) => {
                // A row that came back was last touched long ago or by another core, so the next one is loaded ahead.
                let next = account.free[class].next().and_then(|next| self.get((next as u64) << class, pin));
                next.into_iter().for_each(crate::prefetch::prefetch);
                (row as u64) << class
            }
            None => {
                account.leave_out(len);
                while account.fresh.is_empty() {
                    account.fresh = account.open_chunk(Self::CHUNK);
                    account.leave_out(len);
                }
                let start = account.fresh.start;
                account.fresh.start += len;
                start
            }
        };
        let live = &mut account.live[Self::chunk_of(start)];
        *live += len as u32;
        let live = u64::from(*live);
        assert!(live <= Self::CHUNK, "chunk {} has {live} entries handed out", Self::chunk_of(start));
        Self::check_row(start, len);
        account.ledger.hand_out(start..start + len);
        let chunk = self.chunks.ensure(start >> LOG2, memory);
        let (entries, is_new) = chunk.0.get_or_init(pin, || (0..Self::CHUNK).map(|_| T::default()).collect());
        if is_new {
            assert_eq!(live, len, "a chunk without memory has no rows");
            memory.add(self.kind, size_of_val(entries));
        }
        let at = (start & (Self::CHUNK - 1)) as usize;
        (start, &entries[at..at + len as usize])
    }

    /// Takes back a row, a grace period after it was unlinked (RECLAIM-7).
    pub fn free(&self, start: u64, len: u64) {
        Self::check_row(start, len);
        let (class, chunk) = (len.ilog2() as usize, Self::chunk_of(start));
        let mut account = self.account.lock();
        account.ledger.take_back(start..start + len);
        let live = account.live[chunk].checked_sub(len as u32);
        account.live[chunk] = live.expect("a row comes back that was handed out");
        debug_assert!(self.has_memory(chunk as u64), "chunk {chunk} was given up while it had a row");
        account.add_free(start, class);
    }

    /// Checks that a row lies where [`Arena::allocate`] may have cut it.
    #[inline]
    fn check_row(start: u64, len: u64) {
        debug_assert!(start != 0 && start.is_multiple_of(len), "no row of {len} entries begins at {start}");
        debug_assert_eq!(
            start >> LOG2,
            (start + len - 1) >> LOG2,
            "a row of {len} entries at {start} is in two chunks"
        );
    }

    fn has_memory(&self, chunk: u64) -> bool {
        self.chunks.get(chunk).is_some_and(|chunk| chunk.0.is_some())
    }

    /// Gives up the memory of empty chunks. Returns how many there were. The memory is appended to `garbage`, which the
    /// caller hands to a `Limbo` (RECLAIM-7).
    pub fn give_back_chunks<G: From<Retired>>(&self, memory: &impl Accounting<K>, garbage: &mut Vec<G>) -> usize {
        let mut guard = self.account.lock();
        let RowAccount { free, fresh, live, vacant, ledger: _ } = &mut *guard;
        let empty = |chunk: &u64| live[*chunk as usize] == 0 && self.has_memory(*chunk);
        let empty: Vec<u64> = (0..live.len() as u64).filter(empty).collect();
        if empty.is_empty() {
            return 0;
        }
        for (class, rows) in free.iter_mut().enumerate() {
            for chunk in &empty {
                rows.remove_range((chunk << LOG2 >> class) as usize..((chunk + 1) << LOG2 >> class) as usize);
            }
            // So that rows gather in few chunks.
            rows.restart();
        }
        if !fresh.is_empty() && live[Self::chunk_of(fresh.start)] == 0 {
            *fresh = 0..0;
        }
        for &number in &empty {
            let chunk = self.chunks.get(number).expect("it was found to be there");
            memory.remove(self.kind, chunk.0.bytes());
            garbage.extend(chunk.0.take().map(G::from));
            debug_assert!(!vacant.contains(&number), "chunk {number} was given up already");
        }
        vacant.extend(empty.iter().rev());
        debug_assert!(vacant.iter().all(|chunk| !self.has_memory(*chunk)), "a chunk that was given up has no memory");
        empty.len()
    }

    /// How many entries are handed out, and the bytes of free rows.
    pub fn usage(&self) -> Usage {
        let account = self.account.lock();
        let live = account.live.iter().map(|&live| u64::from(live)).sum();
        let free: u64 = account.free.iter().enumerate().map(|(class, rows)| (rows.len() as u64) << class).sum();
        Usage { live, free_bytes: free * size_of::<T>() as u64 }
    }

    /// The memory of all chunks in bytes.
    pub fn bytes(&self) -> usize {
        self.chunks.bytes() + self.chunks.iter().map(|chunk| chunk.0.bytes()).sum::<usize>()
    }

    /// The entries of all chunks, handed out or not.
    pub fn iter<'p>(&'p self, pin: &'p Pin) -> impl Iterator<Item = &'p T> {
        self.chunks.iter().filter_map(|chunk| chunk.0.get(pin)).flatten()
    }
}

#[cfg(all(test, not(any(feature = "model", feature = "loom"))))]
mod tests {
    use std::collections::HashMap;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crate::accounting::Counted;
    use crate::epoch;
    use crate::limbo::Limbo;

    type Small = Arena<AtomicU64, (), 4>;

    #[test]
    fn rows_of_all_lengths_lie_apart_and_are_used_again() {
        let memory = Counted::default();
        let (arena, pin) = (Small::new(()), epoch::pin());
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
        assert_eq!(arena.bytes() as u64, memory.bytes());
    }

    #[test]
    fn what_is_left_out_is_handed_out_in_shorter_rows_and_free_rows_in_the_order_of_their_numbers() {
        let memory = Counted::default();
        let (arena, pin) = (Small::new(()), epoch::pin());
        let rows =
            |lens: &[u64]| -> Vec<u64> { lens.iter().map(|len| arena.allocate(*len, &memory, &pin).0).collect() };
        assert_eq!(rows(&[4, 8, 2, 1, 1, 2]), [4, 8, 2, 1, 16, 18]);
        assert_eq!(rows(&[16, 8, 4, 2]), [32, 24, 20, 48], "the rest of the second chunk is free rows of 4 and of 8");
        assert_eq!(memory.bytes(), arena.bytes() as u64);
        arena.free(20, 4);
        arena.free(4, 4);
        assert_eq!(rows(&[4]), [4]);
        arena.free(4, 4);
        assert_eq!(rows(&[4, 4]), [20, 4]);
    }

    #[test]
    fn empty_chunks_are_given_back_and_their_numbers_taken_again() {
        let (memory, limbo) = (Counted::default(), Limbo::<Retired>::default());
        let arena = Small::new(());
        let fill = |count: u64, len: u64| -> Vec<u64> {
            let pin = epoch::pin();
            (0..count).map(|_| arena.allocate(len, &memory, &pin).0).collect()
        };
        let give_back = || {
            let mut garbage: Vec<Retired> = Vec::new();
            let count = arena.give_back_chunks(&memory, &mut garbage);
            limbo.take_in(garbage);
            assert_eq!(arena.bytes() as u64, memory.bytes());
            count
        };
        let rows = fill(100, 4);
        let peak = memory.bytes();
        rows[..99].iter().for_each(|&start| arena.free(start, 4));
        assert!(give_back() > 20);
        assert_eq!((give_back(), arena.usage().live), (0, 4));
        let pin = epoch::pin();
        assert!(arena.row(rows[99], 4, &pin).is_some() && arena.row(rows[0], 4, &pin).is_none());
        drop(pin);
        // The same chunks again, cut into other rows.
        let other = fill(200, 2);
        assert!(other.iter().all(|start| *start < rows[99] + 16));
        assert!(memory.bytes() <= peak);
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
        let (memory, limbo) = (Counted::default(), Limbo::<Retired>::default());
        let arena = Small::new(());
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
                let mut garbage: Vec<Retired> = Vec::new();
                arena.give_back_chunks(&memory, &mut garbage);
                limbo.take_in(garbage);
                limbo.release_boxes();
            }
        });
        assert_eq!(arena.usage().live, 0);
        assert_eq!(arena.bytes() as u64, memory.bytes());
    }
}
