//! Arrays that grow while readers use them.
//!
//! Chunk `k` of a [`ChunkedArray`] has `2^BASE_LOG2 << k` entries and is allocated when it is first written to. Entries
//! never move, and are freed with the whole array. So a reader needs no lock: it may follow an index that was published
//! somewhere at any time after. The content of an entry may change when a `pool` hands it out again.

use std::sync::OnceLock;

use crate::accounting::Accounting;

const CHUNKS: usize = 32;

/// An array that grows in chunks. Entries keep their addresses, and reads take no lock.
#[derive(Debug)]
pub struct ChunkedArray<T, K, const BASE_LOG2: u32> {
    chunks: [OnceLock<Box<[T]>>; CHUNKS],
    /// The kind under which the chunks are counted.
    kind: K,
}

/// The chunk of an index and the offset in that chunk.
#[inline]
fn locate<const BASE_LOG2: u32>(index: u64) -> (usize, usize) {
    let group = (index >> BASE_LOG2) + 1;
    let chunk = group.ilog2();
    let start = ((1_u64 << chunk) - 1) << BASE_LOG2;
    debug_assert!(index >= start, "entry {index} is before its chunk");
    debug_assert!(index - start < len_of::<BASE_LOG2>(chunk as usize) as u64, "entry {index} is after its chunk");
    (chunk as usize, (index - start) as usize)
}

/// How many entries a chunk has.
#[inline]
fn len_of<const BASE_LOG2: u32>(chunk: usize) -> usize {
    1 << (BASE_LOG2 as usize + chunk)
}

impl<T: Default, K: Copy, const BASE_LOG2: u32> ChunkedArray<T, K, BASE_LOG2> {
    /// An array without chunks. Its memory is counted under `kind`.
    pub fn new(kind: K) -> Self {
        ChunkedArray { chunks: [const { OnceLock::new() }; CHUNKS], kind }
    }

    /// The entry at an index, if its chunk exists.
    #[inline]
    pub fn get(&self, index: u64) -> Option<&T> {
        let (chunk, offset) = locate::<BASE_LOG2>(index);
        let entries = self.chunks.get(chunk)?.get()?;
        debug_assert_eq!(entries.len(), len_of::<BASE_LOG2>(chunk), "chunk {chunk} is as `ensure` made it");
        entries.get(offset)
    }

    /// The entry at an index. Makes its chunk if that is missing.
    pub fn ensure(&self, index: u64, memory: &impl Accounting<K>) -> &T {
        let (chunk, offset) = locate::<BASE_LOG2>(index);
        let entries = self.chunks[chunk].get_or_init(|| {
            let len = len_of::<BASE_LOG2>(chunk);
            memory.add(self.kind, len * size_of::<T>());
            (0..len).map(|_| T::default()).collect()
        });
        debug_assert_eq!(entries.len(), len_of::<BASE_LOG2>(chunk), "chunk {chunk} is of its length");
        &entries[offset]
    }

    /// The memory of all chunks in bytes.
    pub fn bytes(&self) -> usize {
        self.chunks.iter().filter_map(|chunk| chunk.get()).map(|chunk| size_of_val(&**chunk)).sum()
    }

    /// The entries of all chunks, used or not.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.chunks.iter().filter_map(|chunk| chunk.get()).flat_map(|chunk| chunk.iter())
    }
}

#[cfg(all(test, not(any(feature = "model", feature = "loom"))))]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crate::accounting::Counted;

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
        let memory = Counted::default();
        let array = ChunkedArray::<AtomicU64, _, 2>::new(());
        assert!(array.get(5).is_none());
        array.ensure(5, &memory).store(9, Ordering::Relaxed);
        assert_eq!(array.get(5).unwrap().load(Ordering::Relaxed), 9);
        assert!(array.get(0).is_none() && array.get(11).is_some());
        assert_eq!((array.bytes(), memory.bytes()), (64, 64));
    }
}
