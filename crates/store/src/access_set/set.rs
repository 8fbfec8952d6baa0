//! Sets of items: a list while there are a few, a table while there are some thousands, compressed bitmaps by class beyond.
//!
//! A set is filled, perhaps asked meanwhile, frozen, and compared. Most transactions name a handful of items, for which a
//! list is all that is needed. Long ones name some thousands, and what counts is what one of them costs: a place in a hash
//! table, without an order. A few name a million, mostly the same few classes of many elements, whose ids are dense: a
//! bitmap takes one to two bytes for such an item. Hashed ids lie anywhere, and are kept as they are.
//!
//! Invariants: an item is in one of the three at most, and once only, except in a set for bulk before it is frozen. A
//! frozen set is a list, a table or bitmaps, and not two of them.

use hashbrown::{HashMap, HashSet};
use roaring::RoaringTreemap;
use smallvec::SmallVec;

use super::{Item, ItemClass, Signature};

/// So many items need no allocation: what one element's insertion with a property writes.
const INLINE: usize = 12;
/// A list is searched from one end to the other: a longer one becomes a table.
const LIST_MAX: usize = 24;
/// A table with more items than this goes into the bitmaps: there it would take less memory, and more time.
const TABLE_MAX: usize = 8_192;
/// A set of more items than this that nobody asks before it is frozen goes into the bitmaps at once.
const BULK_MIN: usize = 2_048;
/// How many items of a set for bulk wait for being sorted into the bitmaps: the more at a time, the less work an item.
const PENDING_MAX: usize = 1 << 20;

type FastState = foldhash::fast::FixedState;
type Table = HashSet<Item, FastState>;

/// See the module.
#[derive(Debug, Default)]
pub struct ItemSet {
    /// The first items. In a set for bulk, those that are not in `large` yet, duplicates among them.
    few: SmallVec<[Item; INLINE]>,
    some: Option<Box<Table>>,
    large: Option<Box<HashMap<ItemClass, Ids, FastState>>>,
    /// What the bitmaps take. To sum it up takes a look at each of their parts, so it is done when they change.
    large_bytes: usize,
    signature: Signature,
    is_in_bulk: bool,
}

/// The ids of one class.
#[derive(Debug)]
enum Ids {
    Dense(RoaringTreemap),
    Hashed(HashSet<u64, FastState>),
}

impl Ids {
    fn new(class: ItemClass) -> Self {
        match class.is_hashed() {
            true => Ids::Hashed(HashSet::default()),
            false => Ids::Dense(RoaringTreemap::new()),
        }
    }

    fn extend(&mut self, ascending: &[Item]) {
        match self {
            Ids::Dense(ids) => {
                let ascending = ascending.iter().map(|item| item.id);
                let more = RoaringTreemap::from_sorted_iter(ascending).expect("items of one class ascend by their ids");
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

    fn each(&self, then: impl FnMut(u64)) {
        match self {
            Ids::Dense(ids) => ids.iter().for_each(then),
            Ids::Hashed(ids) => ids.iter().copied().for_each(then),
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
            // One class is kept in one way.
            _ => true,
        }
    }
}

/// Makes room for so many more items. A table that is full becomes four times as large: moving its items is what one
/// costs most, and it does not live for long.
fn make_room(table: &mut Table, items: usize) {
    if table.capacity() - table.len() < items {
        table.reserve(items.max(3 * table.len()).min(TABLE_MAX));
    }
}

impl ItemSet {
    /// An empty set for about so many items, which are all added before anybody asks for one.
    pub(super) fn for_bulk(items: usize) -> Self {
        let is_in_bulk = items > BULK_MIN;
        let few = SmallVec::with_capacity(if is_in_bulk { items.min(PENDING_MAX) } else { 0 });
        ItemSet { few, is_in_bulk, ..ItemSet::default() }
    }

    /// Gets ready for so many more items, as far as they will be in a table.
    pub fn reserve(&mut self, items: usize) {
        if items > LIST_MAX && !self.is_in_bulk {
            make_room(self.some.get_or_insert_default(), items);
        }
    }

    /// Adds an item.
    #[inline]
    pub fn add(&mut self, item: Item) {
        if self.some.is_none() && self.large.is_none() && !self.is_in_bulk && self.few.len() < LIST_MAX {
            if !self.few.contains(&item) {
                self.signature.add(item);
                self.few.push(item);
            }
        } else {
            self.add_to_many(item);
        }
    }

    fn add_to_many(&mut self, item: Item) {
        self.signature.add(item);
        if self.is_in_bulk {
            if self.few.last() != Some(&item) {
                self.few.push(item);
            }
            if self.few.len() >= PENDING_MAX {
                self.compress();
            }
            return;
        }
        let table = self.some.get_or_insert_default();
        if !self.few.is_empty() {
            table.extend(self.few.drain(..));
        }
        make_room(table, 1);
        table.insert(item);
        if table.len() > TABLE_MAX {
            self.compress();
        }
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many items. Exact of a frozen set; of another one, items that were compressed and came again count twice.
    pub fn len(&self) -> usize {
        let some = self.some.as_ref().map_or(0, |table| table.len());
        self.few.len() + some + self.large.as_ref().map_or(0, |large| large.values().map(Ids::len).sum())
    }

    /// The memory it takes, about. Cheap to ask.
    pub fn bytes(&self) -> usize {
        let some = self.some.as_ref().map_or(0, |table| size_of::<Table>() + table.allocation_size());
        let few = if self.few.spilled() { self.few.capacity() * size_of::<Item>() } else { 0 };
        size_of::<ItemSet>() + few + some + self.large_bytes
    }

    /// The set's signature.
    pub fn signature(&self) -> &Signature {
        &self.signature
    }

    /// Moves list and table into the bitmaps.
    fn compress(&mut self) {
        let table = self.some.take().into_iter().flat_map(|table| table.into_iter());
        let mut items: Vec<Item> = self.few.drain(..).chain(table).collect();
        items.sort_unstable();
        items.dedup();
        let large = self.large.get_or_insert_default();
        for run in items.chunk_by(|a, b| a.class == b.class) {
            large.entry(run[0].class).or_insert_with(|| Ids::new(run[0].class)).extend(run);
        }
        self.large_bytes = large.values().map(Ids::bytes).sum();
    }

    /// Gets ready to be compared.
    pub fn freeze(&mut self) {
        let is_apart = self.large.is_some() && (self.some.is_some() || !self.few.is_empty());
        if is_apart || self.is_in_bulk {
            self.compress();
            self.few = SmallVec::new();
        }
    }

    /// Whether the item is in the set.
    pub fn contains(&self, item: Item) -> bool {
        self.few.contains(&item)
            || self.some.as_ref().is_some_and(|table| table.contains(&item))
            || self.large_contains(item)
    }

    fn large_contains(&self, item: Item) -> bool {
        self.large.as_ref().and_then(|large| large.get(&item.class)).is_some_and(|ids| ids.contains(item.id))
    }

    /// The items that are not in the bitmaps.
    fn plain(&self) -> impl Iterator<Item = Item> {
        self.few.iter().chain(self.some.iter().flat_map(|table| table.iter())).copied()
    }

    /// Calls a function with every item of a frozen set, in no order.
    pub fn each(&self, mut then: impl FnMut(Item)) {
        self.plain().for_each(&mut then);
        for (class, ids) in self.large.iter().flat_map(|large| large.iter()) {
            ids.each(|id| then(Item { class: *class, id }));
        }
    }

    /// Returns true if items are in the bitmaps.
    pub(super) fn is_compressed(&self) -> bool {
        self.large.is_some()
    }

    /// Whether two frozen sets have an item in common: the smaller one's items are looked for in the other.
    pub fn meets(&self, other: &ItemSet) -> bool {
        if !self.signature.meets(&other.signature) {
            return false;
        }
        let (few, many) = if self.len() <= other.len() { (self, other) } else { (other, self) };
        if few.plain().any(|item| many.contains(item)) {
            return true;
        }
        let Some(few_large) = &few.large else { return false };
        let Some(many_large) = &many.large else { return many.plain().any(|item| few.large_contains(item)) };
        few_large.iter().any(|(class, ids)| many_large.get(class).is_some_and(|others| ids.meets(others)))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use mangrove_graph::{ElementId, KeyId, TabletId, Value, VertexId};
    use rand::rngs::SmallRng;
    use rand::{Rng, SeedableRng};

    use mangrove_graph::ElementKind;

    use super::*;

    fn vertex(n: u64) -> ElementId {
        ElementId::Vertex(VertexId::new(TabletId(1 + (n % 3) as u16), n))
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
        for _ in 0..150 {
            let [a, b] = [0, 1].map(|_| {
                let count = [0, 3, 30, 700, 5_000, 9_000][rng.random_range(0..6)];
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
            assert_eq!(set_a.contains(probe), a.contains(&probe));
            assert!(a.iter().all(|item| set_a.contains(*item)));
            let mut each = Vec::new();
            set_a.each(|item| each.push(item));
            each.sort_unstable();
            assert!(each.iter().eq(&a));
            let expected = !a.is_disjoint(&b);
            assert_eq!((set_a.meets(&set_b), set_b.meets(&set_a)), (expected, expected));
            met[usize::from(expected)] += 1;
        }
        assert!(met.iter().all(|count| *count > 10), "{met:?}");
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
    fn classes_do_not_run_into_one_another() {
        let classes: BTreeSet<ItemClass> = (0..14_u8)
            .flat_map(|_| [Item::existence(vertex(0)), Item::cells(vertex(0)), Item::cell(vertex(0), KeyId(0))])
            .map(|item| item.class)
            .collect();
        assert_eq!(classes.len(), 3);
        assert_ne!(Item::cell(vertex(1), KeyId(1)).class, Item::cell(vertex(1), KeyId(2)).class);
    }
}
