//! Records handed out by number, and the numbers that came back.
//!
//! A [`Pool`] is a [`ChunkedArray`] of records with a [`FreeList`]. A record is given back to the pool a grace period
//! after it was unlinked. So a number that a reader finds under a pin keeps its meaning for as long as the pin.

use std::sync::atomic::Ordering;

use mangrove_locks::rank;

use crate::accounting::Accounting;
use crate::chunked::ChunkedArray;
use crate::ledger::Ledger;
use crate::sync::{AtomicU64, AtomicUsize, Mutex};

/// A list of numbers that may be handed out again.
#[derive(Debug, Default)]
pub struct FreeList {
    numbers: Mutex<Vec<u64>, rank::FreeNumbers>,
    /// The length of the list, so that a caller that finds it empty takes no lock. Changed under the lock.
    len: AtomicUsize,
}

impl FreeList {
    /// Takes a number, if there is one. The second number, which stays in the list, is the likely result of the next
    /// call: the caller may load its record ahead.
    #[inline]
    pub fn take(&self) -> Option<(u64, Option<u64>)> {
        // Relaxed: a hint; the lock orders what matters.
        if self.len.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let mut numbers = self.numbers.lock();
        debug_assert_eq!(self.len.load(Ordering::Relaxed), numbers.len(), "the length is that of the list");
        let number = numbers.pop()?;
        self.len.store(numbers.len(), Ordering::Relaxed);
        debug_assert_ne!(numbers.last(), Some(&number), "number {number} is in the list twice");
        Some((number, numbers.last().copied()))
    }

    /// Puts a number back.
    pub fn give(&self, number: u64) {
        let mut numbers = self.numbers.lock();
        debug_assert_eq!(self.len.load(Ordering::Relaxed), numbers.len(), "the length is that of the list");
        debug_assert_ne!(numbers.last(), Some(&number), "number {number} is put back twice");
        numbers.push(number);
        self.len.store(numbers.len(), Ordering::Relaxed);
    }

    /// How many numbers are in the list; a hint while threads take and give.
    #[expect(clippy::len_without_is_empty, reason = "a count for reports")]
    #[inline]
    pub fn len(&self) -> u64 {
        self.len.load(Ordering::Relaxed) as u64
    }
}

/// Records handed out by number. Number 0 is never handed out, so that a word of zero can stand for "no record".
/// `BASE_LOG2` sizes the chunks, as in [`ChunkedArray`].
#[derive(Debug)]
pub struct Pool<T, K, const BASE_LOG2: u32> {
    entries: ChunkedArray<T, K, BASE_LOG2>,
    /// The smallest number that was never handed out.
    next: AtomicU64,
    /// The numbers that came back.
    free: FreeList,
    /// A lock without a rank, and no lock of `sync`: a thread that holds it takes no other lock and reaches no point at
    /// which a model could switch threads.
    #[cfg(debug_assertions)]
    ledger: parking_lot::Mutex<Ledger>,
}

impl<T: Default, K: Copy, const BASE_LOG2: u32> Pool<T, K, BASE_LOG2> {
    /// A pool without records. Its memory is counted under `kind`.
    pub fn new(kind: K) -> Self {
        Pool {
            entries: ChunkedArray::new(kind),
            next: AtomicU64::new(1),
            free: FreeList::default(),
            #[cfg(debug_assertions)]
            ledger: parking_lot::Mutex::default(),
        }
    }

    /// Checks a number that is handed out or taken back. In debug builds `note` enters it into the ledger, which panics
    /// if the number was handed out or taken back twice.
    #[inline]
    fn check(&self, index: u64, note: impl FnOnce(&mut Ledger, u64)) {
        debug_assert_ne!(index, 0, "number 0 stands for no record");
        debug_assert!(index < self.next.load(Ordering::Relaxed), "record {index} was never handed out");
        #[cfg(debug_assertions)]
        note(&mut self.ledger.lock(), index);
        #[cfg(not(debug_assertions))]
        let _ = (index, note);
    }

    /// Hands out a record and its number. A record that is used again is as its last owner left it.
    pub fn allocate(&self, memory: &impl Accounting<K>) -> (u64, &T) {
        let Some((index, next)) = self.free.take() else {
            // Relaxed: the number is private until its owner publishes it.
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            self.check(index, |ledger, index| ledger.hand_out(index..index + 1));
            return (index, self.entries.ensure(index, memory));
        };
        self.check(index, |ledger, index| ledger.hand_out(index..index + 1));
        // A record that came back was last touched long ago or by another core, so the next one is loaded ahead.
        if let Some(next) = next.and_then(|next| self.entries.get(next)) {
            crate::prefetch::prefetch(next);
        }
        (index, self.entries.ensure(index, memory))
    }

    /// Takes a number back, a grace period after it was unlinked.
    pub fn free(&self, index: u64) {
        self.check(index, |ledger, index| ledger.take_back(index..index + 1));
        self.free.give(index);
    }

    /// The record of a number that [`Pool::allocate`] returned.
    #[inline]
    pub fn get(&self, index: u64) -> Option<&T> {
        self.entries.get(index)
    }

    /// How much of the pool is in use.
    pub fn usage(&self) -> Usage {
        let free = self.free.len();
        let given = self.next.load(Ordering::Relaxed) - 1;
        Usage { live: given.saturating_sub(free), free_bytes: free * size_of::<T>() as u64 }
    }

    /// The memory of all chunks in bytes.
    pub fn bytes(&self) -> usize {
        self.entries.bytes()
    }

    /// The records of all chunks, handed out or not.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.entries.iter()
    }
}

/// How much of a pool or of an arena is in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Records (of a pool) or entries (of an arena) that are handed out.
    pub live: u64,
    /// Bytes of records or rows that came back and may be handed out again.
    pub free_bytes: u64,
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Usage) {
        self.live += other.live;
        self.free_bytes += other.free_bytes;
    }
}
