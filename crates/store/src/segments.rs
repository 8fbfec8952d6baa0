//! Arrays that grow while others read them, and a pool of numbered records on top.
//!
//! Chunk `k` of [`Segments`] has `2^BASE_LOG2 << k` entries and is allocated when it is first written to.
//! Entries never move and are never freed before the whole, so a reader needs no lock: an index that was
//! published somewhere can be followed any time after. What an entry *says* may change once it is used again;
//! records of a [`Pool`] come back to its free list only a grace period after they were unlinked (`reclaim`), so
//! a number read under a pin keeps its meaning as long as the pin.

use std::sync::OnceLock;
use std::sync::atomic::Ordering;

use crate::memory::{Memory, RecordKind};
use crate::sync::{AtomicU64, AtomicUsize, Mutex};

const CHUNKS: usize = 32;

/// A growable array with stable addresses and lock-free reads.
#[derive(Debug)]
pub(crate) struct Segments<T, const BASE_LOG2: u32> {
    chunks: [OnceLock<Box<[T]>>; CHUNKS],
    kind: RecordKind,
}

/// The chunk of an index, and its place in it.
#[inline]
fn locate<const BASE_LOG2: u32>(index: u64) -> (usize, usize) {
    let group = (index >> BASE_LOG2) + 1;
    let chunk = group.ilog2();
    let start = ((1_u64 << chunk) - 1) << BASE_LOG2;
    (chunk as usize, (index - start) as usize)
}

impl<T: Default, const BASE_LOG2: u32> Segments<T, BASE_LOG2> {
    pub(crate) fn new(kind: RecordKind) -> Self {
        Segments { chunks: [const { OnceLock::new() }; CHUNKS], kind }
    }

    /// The entry, if its chunk exists.
    #[inline]
    pub(crate) fn get(&self, index: u64) -> Option<&T> {
        let (chunk, offset) = locate::<BASE_LOG2>(index);
        self.chunks.get(chunk)?.get()?.get(offset)
    }

    /// The entry, in a chunk made where it is missing.
    pub(crate) fn ensure(&self, index: u64, memory: &Memory) -> &T {
        let (chunk, offset) = locate::<BASE_LOG2>(index);
        let entries = self.chunks[chunk].get_or_init(|| {
            let len = 1_usize << (BASE_LOG2 as usize + chunk);
            memory.add(self.kind, len * size_of::<T>());
            (0..len).map(|_| T::default()).collect()
        });
        &entries[offset]
    }

    /// The memory of the chunks there are.
    pub(crate) fn bytes(&self) -> usize {
        self.chunks.iter().filter_map(|chunk| chunk.get()).map(|chunk| size_of_val(&**chunk)).sum()
    }

    /// All entries there are.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.chunks.iter().filter_map(|chunk| chunk.get()).flat_map(|chunk| chunk.iter())
    }
}

/// Numbers that may be given out again.
#[derive(Debug, Default)]
pub(crate) struct FreeList {
    numbers: Mutex<Vec<u64>>,
    /// The length, so that nobody takes the lock in vain.
    len: AtomicUsize,
}

impl FreeList {
    /// A number, if there is one, and the one that the next caller gets.
    #[inline]
    pub(crate) fn take(&self) -> Option<(u64, Option<u64>)> {
        // Relaxed: a hint; the lock orders what matters.
        if self.len.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let mut numbers = self.numbers.lock();
        let number = numbers.pop()?;
        self.len.store(numbers.len(), Ordering::Relaxed);
        Some((number, numbers.last().copied()))
    }

    /// Gives a number back.
    pub(crate) fn give(&self, number: u64) {
        let mut numbers = self.numbers.lock();
        numbers.push(number);
        self.len.store(numbers.len(), Ordering::Relaxed);
    }

    pub(crate) fn len(&self) -> u64 {
        self.len.load(Ordering::Relaxed) as u64
    }
}

/// Records handed out by number. Number 0 is none, so that a zero word means "nothing there".
#[derive(Debug)]
pub(crate) struct Pool<T, const BASE_LOG2: u32> {
    entries: Segments<T, BASE_LOG2>,
    next: AtomicU64,
    free: FreeList,
}

impl<T: Default, const BASE_LOG2: u32> Pool<T, BASE_LOG2> {
    pub(crate) fn new(kind: RecordKind) -> Self {
        Pool { entries: Segments::new(kind), next: AtomicU64::new(1), free: FreeList::default() }
    }

    /// A new record and its number, or one that was freed, as its last owner left it.
    pub(crate) fn allocate(&self, memory: &Memory) -> (u64, &T) {
        let Some((index, next)) = self.free.take() else {
            // Relaxed: the number is private until its owner publishes it.
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            return (index, self.entries.ensure(index, memory));
        };
        // A record that came back was last touched long ago, or by another core: it is loaded before it is needed.
        if let Some(next) = next.and_then(|next| self.entries.get(next)) {
            crate::prefetch::prefetch(next);
        }
        (index, self.entries.ensure(index, memory))
    }

    /// Gives a number back that nobody can reach any more.
    pub(crate) fn free(&self, index: u64) {
        debug_assert!(index != 0 && index < self.next.load(Ordering::Relaxed), "record {index} was never given out");
        self.free.give(index);
    }

    /// The record of a number that [`Pool::allocate`] gave out.
    #[inline]
    pub(crate) fn get(&self, index: u64) -> Option<&T> {
        self.entries.get(index)
    }

    /// How many records are given out, and how many bytes lie free in those that were.
    pub(crate) fn usage(&self) -> Usage {
        let free = self.free.len();
        let given = self.next.load(Ordering::Relaxed) - 1;
        Usage { live: given.saturating_sub(free), free_bytes: free * size_of::<T>() as u64 }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.entries.bytes()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.entries.iter()
    }
}

/// How much of a pool is in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Records given out.
    pub(crate) live: u64,
    /// Bytes of records that came back and wait to be given out again.
    pub(crate) free_bytes: u64,
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Usage) {
        self.live += other.live;
        self.free_bytes += other.free_bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_follow_one_another_without_gap_or_overlap() {
        let mut expected = (0, 0);
        for index in 0..if cfg!(miri) { 100 } else { 10_000 } {
            assert_eq!(locate::<2>(index), expected, "{index}");
            expected =
                if expected.1 + 1 == 4 << expected.0 { (expected.0 + 1, 0) } else { (expected.0, expected.1 + 1) };
        }
    }

    #[test]
    fn entries_appear_with_their_chunk_and_are_counted() {
        let memory = Memory::new(u64::MAX);
        let segments = Segments::<AtomicU64, 2>::new(RecordKind::Directory);
        assert!(segments.get(5).is_none());
        segments.ensure(5, &memory).store(9, Ordering::Relaxed);
        assert_eq!(segments.get(5).unwrap().load(Ordering::Relaxed), 9);
        assert!(segments.get(0).is_none() && segments.get(11).is_some());
        assert_eq!((segments.bytes(), memory.report().total_bytes()), (64, 64));
    }
}
