//! Sets of items: a sorted array while small, compressed bitmaps by facet when large.
//!
//! A set is filled, frozen, and compared. Most transactions name a handful of items; some name a million, mostly the
//! same few facets of many elements, whose ids are dense: a bitmap takes one to two bytes for such an item.
//! Hashed ids lie anywhere, and are kept as they are.

use hashbrown::{HashMap, HashSet};
use roaring::RoaringTreemap;
use smallvec::SmallVec;

use super::{Facet, Item, Signature};

/// So many items need no allocation: what one element's insertion with a property writes.
const INLINE: usize = 12;
/// A set with more items than this is compressed.
const SMALL_MAX: usize = 512;
/// How many items wait for being sorted into the bitmaps.
const PENDING_MAX: usize = 4_096;
/// The same of a set that nobody asks before it is frozen: the more at a time, the less work an item.
const PENDING_MAX_IN_BULK: usize = 1 << 20;

/// A set that is asked before it is frozen is sorted again when more items than this have come since.
const UNSORTED_MAX: usize = 32;

type FastState = foldhash::fast::FixedState;

/// See the module.
#[derive(Debug, Default)]
pub struct ItemSet {
    /// All items, or those that are not in `large` yet; sorted and without duplicates once frozen.
    small: SmallVec<[Item; INLINE]>,
    /// So many of them, at the beginning, are known to be sorted and without duplicates.
    sorted: u32,
    large: Option<Box<HashMap<Facet, Ids, FastState>>>,
    signature: Signature,
    is_in_bulk: bool,
}

/// The ids of one facet.
#[derive(Debug)]
enum Ids {
    Dense(RoaringTreemap),
    Hashed(HashSet<u64, FastState>),
}

impl Ids {
    fn new(facet: Facet) -> Self {
        match facet.is_hashed() {
            true => Ids::Hashed(HashSet::default()),
            false => Ids::Dense(RoaringTreemap::new()),
        }
    }

    fn extend(&mut self, ascending: &[Item]) {
        match self {
            Ids::Dense(ids) => {
                let ascending = ascending.iter().map(|item| item.id);
                let more = RoaringTreemap::from_sorted_iter(ascending).expect("items of one facet ascend by their ids");
                *ids |= more;
            }
            Ids::Hashed(ids) => ids.extend(ascending.iter().map(|item| item.id)),
        }
    }

    fn contains(&self, id: u64) -> bool {
        match self {
            Ids::Dense(ids) => ids.contains(id),
            Ids::Hashed(ids) => ids.contains(&id),
        }
    }

    fn len(&self) -> usize {
        match self {
            Ids::Dense(ids) => ids.len() as usize,
            Ids::Hashed(ids) => ids.len(),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Ids::Dense(ids) => ids.serialized_size() + 64 * ids.bitmaps().count(),
            Ids::Hashed(ids) => ids.allocation_size(),
        }
    }

    fn meets(&self, other: &Ids) -> bool {
        match (self, other) {
            (Ids::Dense(a), Ids::Dense(b)) => !a.is_disjoint(b),
            (Ids::Hashed(a), Ids::Hashed(b)) => !a.is_disjoint(b),
            // One facet is kept in one way.
            _ => true,
        }
    }
}

impl ItemSet {
    /// An empty set for about so many items, which are all added before anybody asks for one.
    pub(super) fn for_bulk(items: usize) -> Self {
        let is_in_bulk = items > PENDING_MAX;
        let small = SmallVec::with_capacity(if is_in_bulk { items.min(PENDING_MAX_IN_BULK) } else { 0 });
        ItemSet { small, is_in_bulk, ..ItemSet::default() }
    }

    /// Adds an item.
    #[inline]
    pub fn add(&mut self, item: Item) {
        if self.small.last() == Some(&item) {
            return;
        }
        self.signature.add(item);
        self.small.push(item);
        if self.small.len() > self.room() {
            self.tidy();
        }
    }

    /// How many items may wait.
    #[inline]
    fn room(&self) -> usize {
        match (self.is_in_bulk, &self.large) {
            (true, _) => PENDING_MAX_IN_BULK - 1,
            (false, Some(_)) => PENDING_MAX,
            (false, None) => SMALL_MAX,
        }
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.small.is_empty() && self.large.is_none()
    }

    /// How many items; duplicates count until the set is frozen.
    pub fn len(&self) -> usize {
        self.small.len() + self.large.as_ref().map_or(0, |large| large.values().map(Ids::len).sum())
    }

    /// The memory it takes, about.
    pub fn bytes(&self) -> usize {
        let large = self.large.as_ref().map_or(0, |large| large.values().map(Ids::bytes).sum::<usize>());
        let small = if self.small.spilled() { self.small.capacity() * size_of::<Item>() } else { 0 };
        size_of::<ItemSet>() + small + large
    }

    /// The set's signature.
    pub fn signature(&self) -> &Signature {
        &self.signature
    }

    fn sort(&mut self) {
        if !self.small.is_sorted_by(|a, b| a < b) {
            match self.sorted {
                0 => self.small.sort_unstable(),
                // A long run and a few items: what this sort finds and merges.
                _ => self.small.sort(),
            }
            self.small.dedup();
        }
        self.sorted = self.small.len() as u32;
    }

    /// Sorts, and compresses what is still large without duplicates.
    fn tidy(&mut self) {
        self.sort();
        if self.large.is_some() || self.small.len() > SMALL_MAX / 2 {
            self.compress();
        }
    }

    fn compress(&mut self) {
        let large = self.large.get_or_insert_default();
        for run in self.small.chunk_by(|a, b| a.facet == b.facet) {
            large.entry(run[0].facet).or_insert_with(|| Ids::new(run[0].facet)).extend(run);
        }
        self.small.clear();
        self.sorted = 0;
    }

    /// Gets ready to be compared.
    pub fn freeze(&mut self) {
        self.sort();
        if self.large.is_some() || self.small.len() > SMALL_MAX {
            self.compress();
            self.small = SmallVec::new();
        }
    }

    /// Whether the item is in the set, frozen or not.
    pub fn contains(&mut self, item: Item) -> bool {
        if self.small.len() - self.sorted as usize > UNSORTED_MAX {
            self.sort();
        }
        let (sorted, rest) = self.small.split_at(self.sorted as usize);
        rest.contains(&item) || sorted.binary_search(&item).is_ok() || self.large_contains(item)
    }

    fn large_contains(&self, item: Item) -> bool {
        self.large.as_ref().and_then(|large| large.get(&item.facet)).is_some_and(|ids| ids.contains(item.id))
    }

    /// As [`ItemSet::contains`], of a frozen set.
    pub fn contains_frozen(&self, item: Item) -> bool {
        self.small.binary_search(&item).is_ok() || self.large_contains(item)
    }

    /// Whether two frozen sets have an item in common: the smaller one's items are looked for in the other.
    pub fn meets(&self, other: &ItemSet) -> bool {
        if !self.signature.meets(&other.signature) {
            return false;
        }
        let (few, many) = if self.len() <= other.len() { (self, other) } else { (other, self) };
        if few.small.iter().any(|item| many.contains_frozen(*item)) {
            return true;
        }
        let Some(few_large) = &few.large else { return false };
        let Some(many_large) = &many.large else { return many.small.iter().any(|item| few.large_contains(*item)) };
        few_large.iter().any(|(facet, ids)| many_large.get(facet).is_some_and(|others| ids.meets(others)))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use mangrove_graph::{ElementRef, KeyId, TabletId, Value, VertexId};
    use rand::rngs::SmallRng;
    use rand::{Rng, SeedableRng};

    use super::*;
    use crate::footprint::ElementKind;

    fn vertex(n: u64) -> ElementRef {
        ElementRef::Vertex(VertexId::new(TabletId(1 + (n % 3) as u16), n))
    }

    fn item(rng: &mut SmallRng, range: u64) -> Item {
        let n = rng.random_range(0..range);
        match rng.random_range(0..4) {
            0 => Item::existence(vertex(n)),
            1 => Item::cell(vertex(n), KeyId(rng.random_range(0..3))),
            2 => Item::value(ElementKind::Vertex, KeyId(0), None, &Value::I64(n as i64)),
            _ => Item::cells(vertex(n)),
        }
    }

    fn set(items: &BTreeSet<Item>) -> ItemSet {
        let mut set = ItemSet::default();
        items.iter().rev().chain(items.iter().take(9)).for_each(|item| set.add(*item));
        set
    }

    #[test]
    fn sets_of_all_sizes_agree_with_a_plain_one() {
        let mut rng = SmallRng::seed_from_u64(1);
        let mut met = [0; 2];
        for _ in 0..300 {
            let [a, b] = [0, 1].map(|_| {
                let count = [0, 3, 100, 700, 6_000][rng.random_range(0..5)];
                let range = [20, 100_000, 100_000_000][rng.random_range(0..3)];
                (0..count).map(|_| item(&mut rng, range)).collect::<BTreeSet<Item>>()
            });
            let (mut set_a, mut set_b) = (set(&a), set(&b));
            let probe = item(&mut rng, 100);
            assert_eq!(set_a.contains(probe), a.contains(&probe));
            // Asked again and again while it grows.
            let mut asked = ItemSet::default();
            for (n, item) in a.iter().rev().chain(a.iter().take(50)).enumerate() {
                asked.add(*item);
                assert!(n % 7 > 0 || asked.contains(*item));
            }
            assert_eq!(asked.contains(probe), a.contains(&probe));
            asked.freeze();
            assert_eq!(asked.len(), a.len());
            set_a.freeze();
            set_b.freeze();
            assert_eq!((set_a.len(), set_a.is_empty()), (a.len(), a.is_empty()));
            assert_eq!(set_a.contains_frozen(probe), a.contains(&probe));
            assert!(a.iter().all(|item| set_a.contains_frozen(*item)));
            let expected = !a.is_disjoint(&b);
            assert_eq!((set_a.meets(&set_b), set_b.meets(&set_a)), (expected, expected));
            met[usize::from(expected)] += 1;
        }
        assert!(met.iter().all(|count| *count > 20), "{met:?}");
    }

    #[test]
    fn a_million_items_take_little_memory() {
        let mut set = ItemSet::default();
        (0..1_000_000).for_each(|n| set.add(Item::cell(vertex(n * 7 % 1_000_003), KeyId(1))));
        set.freeze();
        assert_eq!(set.len(), 1_000_000);
        assert!(set.bytes() < 4_000_000, "{} bytes", set.bytes());
    }

    #[test]
    fn facets_do_not_run_into_one_another() {
        let facets: BTreeSet<Facet> = (0..14_u8)
            .flat_map(|_| [Item::existence(vertex(0)), Item::cells(vertex(0)), Item::cell(vertex(0), KeyId(0))])
            .map(|item| item.facet)
            .collect();
        assert_eq!(facets.len(), 3);
        assert_ne!(Item::cell(vertex(1), KeyId(1)).facet, Item::cell(vertex(1), KeyId(2)).facet);
    }
}
