//! Local numbers: 0, 1, 2, … for the vertices of a sample, in the order in which they were met.
//!
//! A sampler asks for the local number of every source that it has taken. There are three tables:
//!
//! | table | memory | for |
//! |---|---|---|
//! | an array by position, with the number of the batch that wrote an entry | 8 bytes a position of the graph | small graphs |
//! | a hash table of positions, with open addressing | 16 bytes a vertex of the sample, at least | all others |
//! | a hash table of trees and positions | 32 bytes a vertex of the sample, at least | disjoint trees |

use std::fmt::Debug;

/// Which table finds local numbers. Samples do not depend on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Numbered {
    /// The array if the graph is small, otherwise the hash table.
    #[default]
    BySize,
    /// The array.
    Array,
    /// The hash table.
    Hash,
}

/// A table of local numbers for one vertex type.
pub(super) trait Locals: Debug + Send + Default {
    /// Forgets all, before a batch on a graph with so many positions of the type.
    fn clear(&mut self, positions: u32);

    /// The local number of a vertex in a tree: `next` if it had none.
    fn number(&mut self, tree: u32, position: u32, next: u32) -> u32;
}

/// The array. An entry has the number of the batch that wrote it above the local number.
#[derive(Debug, Default)]
pub(super) struct ByPosition {
    entries: Vec<u64>,
    batch: u32,
}

impl Locals for ByPosition {
    fn clear(&mut self, positions: u32) {
        if self.batch == u32::MAX {
            self.entries.fill(0);
            self.batch = 0;
        }
        self.batch += 1;
        if self.entries.len() < positions as usize {
            self.entries.resize(positions as usize, 0);
        }
    }

    #[inline]
    fn number(&mut self, _: u32, position: u32, next: u32) -> u32 {
        let entry = &mut self.entries[position as usize];
        if (*entry >> 32) as u32 == self.batch {
            return *entry as u32;
        }
        *entry = u64::from(self.batch) << 32 | u64::from(next);
        next
    }
}

/// The odd number next to 2⁶⁴ divided by the golden ratio.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
/// The entries of a new hash table: a power of two.
const FIRST_ENTRIES: usize = 1 << 10;

/// The first place of a key in a table of a power of two of entries.
#[inline]
fn first_place(key: u64, entries: usize) -> usize {
    (key.wrapping_mul(SPREAD) >> (64 - entries.trailing_zeros())) as usize
}

/// The hash table of positions. An entry has the position above the local number.
#[derive(Debug, Default)]
pub(super) struct Hashed {
    entries: Vec<u64>,
    count: usize,
}

/// The entry of a free place: no position is the greatest number.
const FREE: u64 = u64::MAX;

impl Hashed {
    #[inline]
    fn insert(entries: &mut [u64], position: u32, next: u32) -> (u32, bool) {
        let mut place = first_place(u64::from(position), entries.len());
        loop {
            let entry = &mut entries[place];
            if (*entry >> 32) as u32 == position {
                return (*entry as u32, false);
            }
            if *entry == FREE {
                *entry = u64::from(position) << 32 | u64::from(next);
                return (next, true);
            }
            place = (place + 1) & (entries.len() - 1);
        }
    }
}

impl Locals for Hashed {
    fn clear(&mut self, _: u32) {
        self.count = 0;
        self.entries.fill(FREE);
    }

    #[inline]
    fn number(&mut self, _: u32, position: u32, next: u32) -> u32 {
        if self.count * 2 >= self.entries.len() {
            let mut more = vec![FREE; (self.entries.len() * 2).max(FIRST_ENTRIES)];
            for entry in self.entries.iter().filter(|entry| **entry != FREE) {
                Hashed::insert(&mut more, (*entry >> 32) as u32, *entry as u32);
            }
            self.entries = more;
        }
        let (found, is_new) = Hashed::insert(&mut self.entries, position, next);
        self.count += usize::from(is_new);
        found
    }
}

/// The hash table of trees and positions. An entry has the tree, the position, and the local number.
#[derive(Debug, Default)]
pub(super) struct HashedTrees {
    entries: Vec<(u64, u32)>,
    count: usize,
}

impl HashedTrees {
    #[inline]
    fn insert(entries: &mut [(u64, u32)], key: u64, next: u32) -> (u32, bool) {
        let mut place = first_place(key, entries.len());
        loop {
            let entry = &mut entries[place];
            if entry.0 == key {
                return (entry.1, false);
            }
            if entry.0 == FREE {
                *entry = (key, next);
                return (next, true);
            }
            place = (place + 1) & (entries.len() - 1);
        }
    }
}

impl Locals for HashedTrees {
    fn clear(&mut self, _: u32) {
        self.count = 0;
        self.entries.fill((FREE, 0));
    }

    #[inline]
    fn number(&mut self, tree: u32, position: u32, next: u32) -> u32 {
        if self.count * 2 >= self.entries.len() {
            let mut more = vec![(FREE, 0); (self.entries.len() * 2).max(FIRST_ENTRIES)];
            for (key, local) in self.entries.iter().filter(|(key, _)| *key != FREE) {
                HashedTrees::insert(&mut more, *key, *local);
            }
            self.entries = more;
        }
        let key = u64::from(tree) << 32 | u64::from(position);
        let (found, is_new) = HashedTrees::insert(&mut self.entries, key, next);
        self.count += usize::from(is_new);
        found
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::random::Random;

    fn check<L: Locals>(trees: u64) {
        let mut locals = L::default();
        for batch in 0..5 {
            let random = Random::new(batch);
            let mut expected = HashMap::new();
            locals.clear(5_000);
            for draw in 0..3_000 * (batch % 3 + 1) {
                let tree = random.of(draw).of(0).below(trees) as u32;
                let position = random.of(draw).of(1).below(5_000) as u32;
                let next = expected.len() as u32;
                let number = *expected.entry((tree, position)).or_insert(next);
                assert_eq!(locals.number(tree, position, next), number, "batch {batch}");
            }
        }
    }

    #[test]
    fn vertices_have_the_number_that_they_got_first() {
        check::<ByPosition>(1);
        check::<Hashed>(1);
        check::<HashedTrees>(1);
        check::<HashedTrees>(7);
    }

    #[test]
    fn an_array_is_cleared_when_the_numbers_of_batches_are_used_up() {
        let mut locals = ByPosition::default();
        locals.clear(4);
        assert_eq!(locals.number(0, 3, 0), 0);
        locals.batch = u32::MAX;
        locals.clear(4);
        assert_eq!((locals.batch, locals.number(0, 3, 9), locals.number(0, 3, 10)), (1, 9, 9));
    }
}
