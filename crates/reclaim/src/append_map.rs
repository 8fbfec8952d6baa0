//! A small map from numbers to values that only grows.
//!
//! Most maps have a handful of entries, so a walk over four entries inside the owner beats a hash table and needs no
//! lock. Some have hundreds: from the fifth entry on, a map has an *index*, a hash table with open addressing. A bucket
//! of the index holds the position of an entry. A full index gets a larger *level*, and look-ups use the newest level.
//!
//! ```text
//! entries   first: 4 inline | chunks of 4, 8, 16, .. on the heap        position ──▶ (key, value)
//! index     levels of 16, 32, .. buckets                                hash of key ──▶ position + 1
//! ```
//!
//! - **RECLAIM-8.** Entries fill in order, and each is set once. So positions are stable, and callers may keep them.
//! - Two threads that add the same key meet at the first empty inline entry, where one of them wins, or at the lock of
//!   the other entries. So a key is never there twice. Readers take no lock.
//! - A level of the index holds every key that was there when the next level was made. A reader that has chosen an old
//!   level misses only keys that were added after its choice. Old levels stay: together they are smaller than the
//!   newest, and readers may still use them.

use std::sync::OnceLock;
use std::sync::atomic::Ordering;

use mangrove_locks::rank;

use crate::accounting::Accounting;
use crate::sync::{AtomicU32, Mutex};

/// Entries inside the map. Chunk `n` on the heap has `INLINE << n` entries.
const INLINE: usize = 4;
/// Level `n` of the index has `FIRST_LEVEL << n` buckets.
const FIRST_LEVEL: usize = 16;
/// Chunks and levels at most. That is room for about 2^26 entries, more than a map gets: keys are numbers of names.
const CHUNKS: usize = 24;

type Entry<V> = OnceLock<(u32, V)>;

/// A map from numbers to values that only grows. Invariant: RECLAIM-8.
#[derive(Debug)]
#[repr(C)]
pub struct AppendMap<V> {
    rest: OnceLock<Box<Rest<V>>>,
    /// Inline, so that a look-up of the first few follows no pointer. At the end, so that an owner can have them begin where a cache line begins.
    first: [Entry<V>; INLINE],
}

impl<V> Default for AppendMap<V> {
    fn default() -> Self {
        AppendMap { first: [const { OnceLock::new() }; INLINE], rest: OnceLock::new() }
    }
}

/// The entries that are not inline, and the index over them. Positions in this type count from the first such entry.
#[derive(Debug)]
struct Rest<V> {
    chunks: [OnceLock<Box<[Entry<V>]>>; CHUNKS],
    levels: [OnceLock<Box<[AtomicU32]>>; CHUNKS],
    /// The number of the newest level.
    newest: AtomicU32,
    /// How many of these entries are set. A thread that adds an entry holds the lock.
    len: Mutex<usize, rank::AppendMapEntries>,
}

impl<V> Default for Rest<V> {
    fn default() -> Self {
        Rest {
            chunks: [const { OnceLock::new() }; CHUNKS],
            levels: [const { OnceLock::new() }; CHUNKS],
            newest: AtomicU32::new(0),
            len: Mutex::new(0),
        }
    }
}

/// The buckets of a level that a key may be in, in the order of the search. `len` is the number of buckets.
fn probes(key: u32, len: usize) -> impl Iterator<Item = usize> {
    // Multiplication carries every bit of the key upwards, so the hash is the upper half.
    let hash = (u64::from(key).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize;
    (0..len).map(move |step| (hash + step) & (len - 1))
}

impl<V> Rest<V> {
    /// The entry at a position.
    fn entry(&self, position: usize) -> Option<&Entry<V>> {
        let chunk = (position / INLINE + 1).ilog2() as usize;
        let start = ((1 << chunk) - 1) * INLINE;
        self.chunks.get(chunk)?.get()?.get(position - start)
    }

    fn get(&self, key: u32) -> Option<&V> {
        // Acquire: its partner is the Release in `add_level`, after the level was filled.
        let level = self.levels[self.newest.load(Ordering::Acquire) as usize].get()?;
        for at in probes(key, level.len()) {
            // Acquire: its partner is the Release in `enter`, after the entry was set.
            let position = match level[at].load(Ordering::Acquire) {
                0 => return None,
                position => position as usize - 1,
            };
            let (k, value) = self.entry(position)?.get()?;
            if *k == key {
                return Some(value);
            }
        }
        None
    }

    fn iter(&self) -> impl Iterator<Item = &(u32, V)> {
        self.chunks.iter().map_while(OnceLock::get).flat_map(|chunk| chunk.iter()).map_while(OnceLock::get)
    }

    fn add<K: Copy>(&self, key: u32, make: impl FnOnce() -> V, memory: (&impl Accounting<K>, K)) -> &V {
        let mut len = self.len.lock();
        if let Some(value) = self.get(key) {
            return value;
        }
        let newest = self.newest.load(Ordering::Relaxed) as usize;
        let has_room = self.levels[newest].get().is_some_and(|level| (*len + 1) * 4 <= level.len() * 3);
        if !has_room {
            self.add_level(*len, memory);
        }
        let chunk = (*len / INLINE + 1).ilog2() as usize;
        let entries = self.chunks[chunk].get_or_init(|| {
            let entries: Box<[Entry<V>]> = (0..INLINE << chunk).map(|_| OnceLock::new()).collect();
            memory.0.add(memory.1, size_of_val(&*entries));
            entries
        });
        let entry = &entries[*len - ((1 << chunk) - 1) * INLINE];
        // RECLAIM-8: set once, under the lock.
        let (_, value) = entry.get_or_init(|| (key, make()));
        let level = self.levels[self.newest.load(Ordering::Relaxed) as usize].get();
        enter(level.expect("a level was made for the first entry"), key, *len);
        *len += 1;
        value
    }

    /// Makes the next level of the index, over the first `len` entries. The caller holds the lock.
    fn add_level<K: Copy>(&self, len: usize, memory: (&impl Accounting<K>, K)) {
        let number = (0..CHUNKS).find(|&number| self.levels[number].get().is_none()).expect("keys are fewer than 2^26");
        let level: Box<[AtomicU32]> = (0..FIRST_LEVEL << number).map(|_| AtomicU32::new(0)).collect();
        memory.0.add(memory.1, size_of_val(&*level));
        for (position, (key, _)) in self.iter().take(len).enumerate() {
            enter(&level, *key, position);
        }
        assert!(self.levels[number].set(level).is_ok(), "levels are made under the lock");
        self.newest.store(number as u32, Ordering::Release);
    }

    fn bytes(&self) -> usize {
        let entries: usize = self.chunks.iter().filter_map(OnceLock::get).map(|chunk| size_of_val(&**chunk)).sum();
        let levels: usize = self.levels.iter().filter_map(OnceLock::get).map(|level| size_of_val(&**level)).sum();
        size_of::<Self>() + entries + levels
    }
}

/// Enters the position of a key into a level, which has an empty bucket.
fn enter(level: &[AtomicU32], key: u32, position: usize) {
    let free = probes(key, level.len()).find(|&at| level[at].load(Ordering::Relaxed) == 0);
    // Release: a reader that finds the position finds the entry set.
    level[free.expect("a level is never full")].store(position as u32 + 1, Ordering::Release);
}

impl<V> AppendMap<V> {
    /// The value under a key.
    #[inline]
    pub fn get(&self, key: u32) -> Option<&V> {
        for entry in &self.first {
            let (k, value) = entry.get()?;
            if *k == key {
                return Some(value);
            }
        }
        self.rest.get()?.get(key)
    }

    /// Starts loading the first entry.
    #[inline]
    pub fn prefetch(&self) {
        crate::prefetch::prefetch(&self.first[0]);
    }

    /// The entries in the order they were added.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &V)> {
        let first = self.first.iter().map_while(OnceLock::get);
        first.chain(self.rest.get().into_iter().flat_map(|rest| rest.iter())).map(|(key, value)| (*key, value))
    }

    /// Calls `each` with position, key and value of each entry, in order, until it returns false. Positions count from
    /// 0, inline entries included. Returns true if `each` never returned false. For hot paths, where the iterator does
    /// not compile to a plain loop.
    #[inline]
    pub fn each_while<'a>(&'a self, mut each: impl FnMut(u32, u32, &'a V) -> bool) -> bool {
        let mut position = 0;
        for entry in &self.first {
            let Some((key, value)) = entry.get() else { return true };
            if !each(position, *key, value) {
                return false;
            }
            position += 1;
        }
        let Some(rest) = self.rest.get() else { return true };
        for chunk in &rest.chunks {
            let Some(chunk) = chunk.get() else { return true };
            for entry in chunk {
                let Some((key, value)) = entry.get() else { return true };
                if !each(position, *key, value) {
                    return false;
                }
                position += 1;
            }
        }
        true
    }

    /// The value under a key, which `make` makes if it is missing. `memory` is a counter, and the kind under which it
    /// counts what the map allocates.
    pub fn get_or_insert_with<K: Copy>(&self, key: u32, memory: (&impl Accounting<K>, K), make: impl Fn() -> V) -> &V {
        for entry in &self.first {
            let (k, value) = entry.get_or_init(|| (key, make()));
            if *k == key {
                return value;
            }
        }
        if self.rest.get().is_none() && self.rest.set(Box::default()).is_ok() {
            memory.0.add(memory.1, size_of::<Rest<V>>());
        }
        let rest = self.rest.get().expect("it has just been made");
        match rest.get(key) {
            Some(value) => value,
            None => rest.add(key, make, memory),
        }
    }

    /// The bytes that the map has on the heap.
    pub fn bytes(&self) -> usize {
        self.rest.get().map_or(0, |rest| rest.bytes())
    }
}

#[cfg(all(test, not(any(feature = "model", feature = "loom"))))]
mod tests {
    use super::*;
    use crate::accounting::Counted;

    #[test]
    fn keys_are_added_once_and_found_in_order() {
        let memory = Counted::default();
        let map = AppendMap::default();
        for key in (0..20).chain(0..20) {
            map.get_or_insert_with(key * 7, (&memory, ()), || key);
        }
        assert_eq!(map.get(35), Some(&5));
        assert_eq!(map.get(36), None);
        assert!(map.iter().map(|(_, v)| *v).eq(0..20));
        let mut seen = Vec::new();
        assert!(!map.each_while(|position, key, value| {
            seen.push((position, key, *value));
            position < 9
        }));
        assert!(seen.into_iter().eq((0..10).map(|n| (n, n * 7, n))));
        assert!(map.each_while(|_, _, _| true));
    }

    #[test]
    fn thousands_of_keys_are_found_by_several_threads_and_counted() {
        const COUNT: u32 = if cfg!(miri) { 50 } else { 5_000 };
        let memory = Counted::default();
        let map = AppendMap::default();
        std::thread::scope(|scope| {
            for thread in 0..4_u32 {
                let (map, memory) = (&map, &memory);
                scope.spawn(move || {
                    for n in 0..COUNT {
                        let key = (n + thread * 500) % COUNT;
                        let found = map.get_or_insert_with(key, (memory, ()), || key);
                        assert_eq!((*found, map.get(key)), (key, Some(&key)));
                    }
                });
            }
        });
        assert!((0..COUNT).all(|key| map.get(key) == Some(&key)));
        assert_eq!((map.get(COUNT), map.iter().count()), (None, COUNT as usize));
        let mut keys: Vec<u32> = map.iter().map(|(key, _)| key).collect();
        keys.sort_unstable();
        assert!(keys.into_iter().eq(0..COUNT));
        assert_eq!(map.bytes() as u64, memory.bytes());
    }
}
