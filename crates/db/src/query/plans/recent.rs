//! A map bounded in bytes, from which the entries go first that were used least recently.
//!
//! The entries form a list from the one that was used last to the one that is to go next. They lie in a vector and name
//! each other by position, so a use moves an entry to the front without an allocation.

use std::sync::Arc;

use hashbrown::HashMap;

/// The position of no entry.
const NONE: usize = usize::MAX;

struct Entry<V> {
    key: Arc<[u8]>,
    value: V,
    bytes: usize,
    /// The entry that was used next after this one.
    newer: usize,
    /// The entry that was used last before this one.
    older: usize,
}

/// The map. Every entry takes a number of bytes, as its user says.
pub(super) struct Recent<V> {
    positions: HashMap<Arc<[u8]>, usize, foldhash::fast::RandomState>,
    entries: Vec<Option<Entry<V>>>,
    /// Positions without an entry.
    free: Vec<usize>,
    newest: usize,
    oldest: usize,
    bytes: usize,
    bytes_max: usize,
}

impl<V> Recent<V> {
    pub fn new(bytes_max: usize) -> Self {
        Recent {
            positions: HashMap::default(),
            entries: Vec::new(),
            free: Vec::new(),
            newest: NONE,
            oldest: NONE,
            bytes: 0,
            bytes_max,
        }
    }

    /// The number of entries.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.positions.len()
    }

    /// The bytes of all entries.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The most bytes of all entries.
    pub fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// Changes the most bytes of all entries. Returns the entries that have to go.
    pub fn set_bytes_max(&mut self, bytes_max: usize) -> Vec<V> {
        self.bytes_max = bytes_max;
        self.shrink()
    }

    /// The position of the entry of a key.
    pub fn find(&self, key: &[u8]) -> Option<usize> {
        self.positions.get(key).copied()
    }

    /// The entry at a position, if there is one.
    pub fn get_mut(&mut self, at: usize) -> Option<&mut V> {
        self.entries.get_mut(at)?.as_mut().map(|entry| &mut entry.value)
    }

    /// All entries with their keys and bytes, the one that was used last first.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &V, usize)> {
        let entry = |at: usize| self.entries.get(at).and_then(Option::as_ref);
        std::iter::successors(entry(self.newest), move |newer| entry(newer.older))
            .map(|entry| (&*entry.key, &entry.value, entry.bytes))
    }

    /// Notes that the entry at a position is used and takes so many bytes. Returns the entries that have to go for that.
    pub fn touch(&mut self, at: usize, bytes: usize) -> Vec<V> {
        let Some(entry) = self.entries.get_mut(at).and_then(Option::as_mut) else { return Vec::new() };
        self.bytes = self.bytes - entry.bytes + bytes;
        entry.bytes = bytes;
        if at != self.newest {
            self.unlink(at);
            self.link(at);
        }
        self.shrink()
    }

    /// Adds an entry that is used now, or replaces the one of the key. Returns its position, and the entries that have
    /// to go. It is one of them itself if it takes more bytes than all may take.
    pub fn insert(&mut self, key: Arc<[u8]>, value: V, bytes: usize) -> (usize, Vec<V>) {
        let mut gone: Vec<V> = self.find(&key).and_then(|at| self.remove(at)).into_iter().collect();
        let at = self.free.pop().unwrap_or_else(|| {
            self.entries.push(None);
            self.entries.len() - 1
        });
        self.positions.insert(key.clone(), at);
        self.entries[at] = Some(Entry { key, value, bytes, newer: NONE, older: NONE });
        self.bytes += bytes;
        self.link(at);
        gone.extend(self.shrink());
        (at, gone)
    }

    /// Removes the entry at a position.
    fn remove(&mut self, at: usize) -> Option<V> {
        self.entries.get(at)?.as_ref()?;
        self.unlink(at);
        let entry = self.entries[at].take()?;
        self.positions.remove(&entry.key);
        self.free.push(at);
        self.bytes -= entry.bytes;
        Some(entry.value)
    }

    fn shrink(&mut self) -> Vec<V> {
        let mut gone = Vec::new();
        while self.bytes > self.bytes_max
            && let Some(value) = self.remove(self.oldest)
        {
            gone.push(value);
        }
        gone
    }

    /// Takes an entry out of the list.
    fn unlink(&mut self, at: usize) {
        let Some(entry) = &self.entries[at] else { return };
        let (newer, older) = (entry.newer, entry.older);
        match self.entries.get_mut(newer).and_then(Option::as_mut) {
            Some(newer) => newer.older = older,
            None => self.newest = older,
        }
        match self.entries.get_mut(older).and_then(Option::as_mut) {
            Some(older) => older.newer = newer,
            None => self.oldest = newer,
        }
    }

    /// Puts an entry that is not in the list at its front.
    fn link(&mut self, at: usize) {
        let newest = self.newest;
        if let Some(entry) = &mut self.entries[at] {
            (entry.newer, entry.older) = (NONE, newest);
        }
        match self.entries.get_mut(newest).and_then(Option::as_mut) {
            Some(second) => second.newer = at,
            None => self.oldest = at,
        }
        self.newest = at;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: usize) -> Arc<[u8]> {
        number.to_string().into_bytes().into()
    }

    #[test]
    fn the_entry_that_was_used_least_recently_goes_first() {
        let mut recent = Recent::new(30);
        for number in 0..3 {
            assert_eq!(recent.insert(key(number), number, 10).1, Vec::<usize>::new());
        }
        let at = recent.find(&key(0)).unwrap();
        assert_eq!(recent.touch(at, 10), Vec::<usize>::new());
        assert_eq!(recent.insert(key(3), 3, 10).1, vec![1]);
        assert_eq!(recent.iter().map(|(_, value, _)| *value).collect::<Vec<_>>(), vec![3, 0, 2]);
        // It grows, and others make room.
        let at = recent.find(&key(0)).unwrap();
        assert_eq!(recent.touch(at, 25), vec![2, 3]);
        assert_eq!((recent.len(), recent.bytes()), (1, 25));
        // Larger than all may be.
        assert_eq!(recent.insert(key(4), 4, 31).1, vec![0, 4]);
        assert_eq!((recent.len(), recent.bytes()), (0, 0));
    }

    #[test]
    fn it_holds_what_a_list_in_order_of_use_would_hold() {
        let mut recent = Recent::new(100);
        // Pairs of a key and its bytes, the oldest first.
        let mut model: Vec<(usize, usize)> = Vec::new();
        let mut state = 7_u64;
        for _ in 0..20_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let (number, bytes) = ((state >> 33) as usize % 40, (state >> 45) as usize % 30);
            model.retain(|(known, _)| *known != number);
            model.push((number, bytes));
            match recent.find(&key(number)) {
                Some(at) if state.is_multiple_of(2) => drop(recent.touch(at, bytes)),
                _ => drop(recent.insert(key(number), number, bytes)),
            }
            while model.iter().map(|(_, bytes)| bytes).sum::<usize>() > 100 {
                model.remove(0);
            }
            let held: Vec<(usize, usize)> = recent.iter().map(|(_, value, bytes)| (*value, bytes)).collect();
            assert!(held.iter().rev().eq(&model), "{held:?}, not {model:?}");
            assert_eq!(recent.bytes(), model.iter().map(|(_, bytes)| bytes).sum::<usize>());
        }
        recent.set_bytes_max(0);
        assert!(recent.entries.len() <= 41, "positions are used again");
    }
}
