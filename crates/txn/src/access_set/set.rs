//! A set of items, in one of three forms that depend on its size.
//!
//! | form | items | why |
//! |---|---|---|
//! | list | up to 24 | most transactions name a handful of items, and a short list is searched fastest |
//! | hash table | up to 8,192 | the cost of adding one item counts, and the table needs no order |
//! | bitmaps, one a class | more | ids of elements are dense, so a compressed bitmap takes one or two bytes an item |
//!
//! Hashed ids are spread over 64 bits, where a bitmap saves nothing. Their classes keep hash sets in place of bitmaps.
//!
//! A transaction fills a set, may look items up meanwhile, freezes it, and compares it with others. A *bulk* set is
//! filled without lookups, so it collects the ids of each class, duplicates too, until they go into the bitmaps. The ids
//! of a class mostly come in ascending order, because the elements of a large write do, and are sorted only if they do not.
//!
//! Invariants:
//!
//! - **TXN-21.** In a frozen set an item is once. In another set an item may also be in the bitmaps if it was added
//!   again after it had gone there, and a bulk set may have it any number of times.
//! - **TXN-22.** A frozen set is a list, a table or bitmaps, and not two of them.

use hashbrown::{HashMap, HashSet};
use roaring::RoaringTreemap;
use smallvec::SmallVec;

use super::{Item, ItemClass, Signature};

/// Items that need no allocation. The insertion of one element with a property writes about this many.
const INLINE: usize = 12;
/// The most items in a list. Lists are searched from one end to the other, so a longer one becomes a table.
const LIST_MAX: usize = 24;
/// The most items in a table. More go into the bitmaps, which take less memory and more time.
const TABLE_MAX: usize = 8_192;
/// A set that is not read before it is frozen is a bulk set if it will have more items than this.
const BULK_MIN: usize = 2_048;
/// The most items of a bulk set that wait to go into the bitmaps. The more at a time, the less work an item.
const PENDING_MAX: usize = 1 << 20;

type FastState = foldhash::fast::FixedState;
type ItemTable = HashSet<Item, FastState>;

/// Items that a transaction has read, or that it changes.
#[derive(Debug, Default)]
pub struct ItemSet {
    /// The first items.
    list: SmallVec<[Item; INLINE]>,
    table: Option<Box<ItemTable>>,
    bitmaps: Option<Box<HashMap<ItemClass, ClassIds, FastState>>>,
    /// The size of the bitmaps in bytes. Summing it up visits all their containers, so it is done when they change.
    bitmap_bytes: usize,
    signature: Signature,
    /// In a bulk set that is not frozen, the items that are not in the bitmaps yet, with duplicates.
    pending: Option<Box<Pending>>,
}

/// The ids of items of a bulk set, by class.
#[derive(Debug, Default)]
struct Pending {
    classes: Vec<(ItemClass, Vec<u64>)>,
    /// Where each class is.
    places: HashMap<ItemClass, usize, FastState>,
    /// Where the class of the next item is likely to be: the facts of one write after the other have the same classes.
    expected: usize,
    count: usize,
}

impl Pending {
    #[inline]
    fn add(&mut self, item: Item) {
        let place = match self.classes.get(self.expected) {
            Some((class, _)) if *class == item.class => self.expected,
            _ => self.place(item.class),
        };
        self.expected = if place + 1 < self.classes.len() { place + 1 } else { 0 };
        let ids = &mut self.classes[place].1;
        if ids.last() != Some(&item.id) {
            ids.push(item.id);
            self.count += 1;
        }
    }

    fn place(&mut self, class: ItemClass) -> usize {
        *self.places.entry(class).or_insert_with(|| {
            self.classes.push((class, Vec::new()));
            self.classes.len() - 1
        })
    }

    /// Takes the ids of each class: ascending and each once, if they are no hashes.
    fn take(&mut self) -> impl Iterator<Item = (ItemClass, Vec<u64>)> {
        self.count = 0;
        self.places.clear();
        std::mem::take(&mut self.classes).into_iter().map(|(class, mut ids)| {
            // Hashes go into a set, which needs no order.
            if !class.is_hashed() && !ids.is_sorted_by(|one, next| one < next) {
                ids.sort_unstable();
                ids.dedup();
            }
            (class, ids)
        })
    }

    fn bytes(&self) -> usize {
        self.classes.iter().map(|(_, ids)| ids.capacity() * size_of::<u64>()).sum()
    }
}

/// The ids of one class.
#[derive(Debug)]
enum ClassIds {
    Dense(RoaringTreemap),
    Hashed(HashSet<u64, FastState>),
}

impl ClassIds {
    fn new(class: ItemClass) -> Self {
        match class.is_hashed() {
            true => ClassIds::Hashed(HashSet::default()),
            false => ClassIds::Dense(RoaringTreemap::new()),
        }
    }

    /// Adds ids, which ascend if they are no hashes.
    fn extend(&mut self, more: impl Iterator<Item = u64>) {
        match self {
            ClassIds::Dense(ids) => {
                let more = RoaringTreemap::from_sorted_iter(more).expect("items of one class ascend by their ids");
                *ids |= more;
            }
            ClassIds::Hashed(ids) => ids.extend(more),
        }
    }

    fn contains(&self, id: u64) -> bool {
        match self {
            ClassIds::Dense(ids) => ids.contains(id),
            ClassIds::Hashed(ids) => ids.contains(&id),
        }
    }

    fn len(&self) -> usize {
        match self {
            ClassIds::Dense(ids) => ids.len() as usize,
            ClassIds::Hashed(ids) => ids.len(),
        }
    }

    fn each(&self, then: impl FnMut(u64)) {
        match self {
            ClassIds::Dense(ids) => ids.iter().for_each(then),
            ClassIds::Hashed(ids) => ids.iter().copied().for_each(then),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            ClassIds::Dense(ids) => ids.serialized_size() + 64 * ids.bitmaps().count(),
            ClassIds::Hashed(ids) => ids.allocation_size(),
        }
    }

    fn meets(&self, other: &ClassIds) -> bool {
        match (self, other) {
            (ClassIds::Dense(a), ClassIds::Dense(b)) => !a.is_disjoint(b),
            (ClassIds::Hashed(a), ClassIds::Hashed(b)) => !a.is_disjoint(b),
            // The class decides which form its ids have, so two sets never differ in it.
            _ => true,
        }
    }
}

/// Makes room for this many more items. A full table grows fourfold, because moving items to a larger table is the
/// greatest cost of one, and a table is short-lived.
fn make_room(table: &mut ItemTable, items: usize) {
    if table.capacity() - table.len() < items {
        table.reserve(items.max(3 * table.len()).min(TABLE_MAX));
    }
}

impl ItemSet {
    /// An empty set for about this many items, all of which are added before the set is frozen or read.
    pub(super) fn for_bulk(items: usize) -> Self {
        ItemSet { pending: (items > BULK_MIN).then(Box::default), ..ItemSet::default() }
    }

    /// Makes room for this many more items, as far as they will be in a table.
    pub fn reserve(&mut self, items: usize) {
        if items > LIST_MAX && self.pending.is_none() {
            make_room(self.table.get_or_insert_default(), items);
        }
    }

    /// Adds an item.
    #[inline]
    pub fn add(&mut self, item: Item) {
        if self.table.is_none() && self.bitmaps.is_none() && self.pending.is_none() && self.list.len() < LIST_MAX {
            if !self.list.contains(&item) {
                self.signature.add(item);
                self.list.push(item);
            }
        } else {
            self.add_to_large(item);
        }
    }

    fn add_to_large(&mut self, item: Item) {
        self.signature.add(item);
        if let Some(pending) = &mut self.pending {
            pending.add(item);
            if pending.count >= PENDING_MAX {
                self.compress();
            }
            return;
        }
        let table = self.table.get_or_insert_default();
        if !self.list.is_empty() {
            table.extend(self.list.drain(..));
        }
        make_room(table, 1);
        table.insert(item);
        if table.len() > TABLE_MAX {
            self.compress();
        }
    }

    /// Returns true if the set has no items.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of items, which is exact in a frozen set. In another one, items that were added again after they had
    /// gone to the bitmaps count twice.
    pub fn len(&self) -> usize {
        let in_table = self.table.as_ref().map_or(0, |table| table.len());
        self.list.len()
            + in_table
            + self.pending.as_ref().map_or(0, |pending| pending.count)
            + self.bitmaps.as_ref().map_or(0, |bitmaps| bitmaps.values().map(ClassIds::len).sum())
    }

    /// The approximate size of the set in bytes. Takes constant time.
    pub fn bytes(&self) -> usize {
        let table = self.table.as_ref().map_or(0, |table| size_of::<ItemTable>() + table.allocation_size());
        let list = if self.list.spilled() { self.list.capacity() * size_of::<Item>() } else { 0 };
        let pending = self.pending.as_ref().map_or(0, |pending| pending.bytes());
        size_of::<ItemSet>() + list + table + pending + self.bitmap_bytes
    }

    /// The Bloom filter of the set's items.
    pub fn signature(&self) -> &Signature {
        &self.signature
    }

    /// Moves all other items into the bitmaps.
    fn compress(&mut self) {
        let table = self.table.take().into_iter().flat_map(|table| table.into_iter());
        let mut items: Vec<Item> = self.list.drain(..).chain(table).collect();
        items.sort_unstable();
        items.dedup();
        let bitmaps = self.bitmaps.get_or_insert_default();
        let mut extend = |class: ItemClass, more: &mut dyn Iterator<Item = u64>| {
            bitmaps.entry(class).or_insert_with(|| ClassIds::new(class)).extend(more);
        };
        for run in items.chunk_by(|a, b| a.class == b.class) {
            extend(run[0].class, &mut run.iter().map(|item| item.id));
        }
        for (class, ids) in self.pending.iter_mut().flat_map(|pending| pending.take()) {
            extend(class, &mut ids.into_iter());
        }
        self.bitmap_bytes = bitmaps.values().map(ClassIds::bytes).sum();
    }

    /// Brings all items into one form, for [`ItemSet::each`] and [`ItemSet::meets`].
    pub fn freeze(&mut self) {
        // TXN-21, TXN-22: the bitmaps take everything, and each item once.
        let is_apart = self.bitmaps.is_some() && (self.table.is_some() || !self.list.is_empty());
        if is_apart || self.pending.is_some() {
            self.compress();
            self.list = SmallVec::new();
            self.pending = None;
        }
    }

    /// Returns true if all items are in one form (TXN-22).
    fn is_frozen(&self) -> bool {
        // A table that room was made in may be empty.
        let has_table = self.table.as_ref().is_some_and(|table| !table.is_empty());
        let forms = [!self.list.is_empty(), has_table, self.bitmaps.is_some()];
        forms.into_iter().filter(|is_used| *is_used).count() <= 1
    }

    /// Returns true if the item is in the set. A bulk set must be frozen first.
    pub fn contains(&self, item: Item) -> bool {
        self.list.contains(&item)
            || self.table.as_ref().is_some_and(|table| table.contains(&item))
            || self.bitmaps_contain(item)
    }

    fn bitmaps_contain(&self, item: Item) -> bool {
        self.bitmaps.as_ref().and_then(|bitmaps| bitmaps.get(&item.class)).is_some_and(|ids| ids.contains(item.id))
    }

    /// The items in list and table.
    fn plain(&self) -> impl Iterator<Item = Item> {
        self.list.iter().chain(self.table.iter().flat_map(|table| table.iter())).copied()
    }

    /// Calls a function with every item of a frozen set, in no particular order.
    pub fn each(&self, mut then: impl FnMut(Item)) {
        self.plain().for_each(&mut then);
        for (class, ids) in self.bitmaps.iter().flat_map(|bitmaps| bitmaps.iter()) {
            ids.each(|id| then(Item { class: *class, id }));
        }
    }

    /// Returns true if the set has bitmaps.
    pub(super) fn is_compressed(&self) -> bool {
        self.bitmaps.is_some()
    }

    /// Returns true if two frozen sets have an item in common. Looks up the items of the smaller set in the larger one.
    pub fn meets(&self, other: &ItemSet) -> bool {
        debug_assert!(self.is_frozen() && other.is_frozen(), "sets are frozen before they are compared");
        if !self.signature.meets(&other.signature) {
            return false;
        }
        let (smaller, larger) = if self.len() <= other.len() { (self, other) } else { (other, self) };
        if smaller.plain().any(|item| larger.contains(item)) {
            return true;
        }
        let Some(smaller_bitmaps) = &smaller.bitmaps else { return false };
        let Some(larger_bitmaps) = &larger.bitmaps else {
            return larger.plain().any(|item| smaller.bitmaps_contain(item));
        };
        smaller_bitmaps.iter().any(|(class, ids)| larger_bitmaps.get(class).is_some_and(|others| ids.meets(others)))
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
            // A set that is read while it grows.
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
            // A set that is filled before it is read.
            let mut bulk = ItemSet::for_bulk(BULK_MIN + 1);
            a.iter().chain(a.iter().rev().take(9)).for_each(|item| bulk.add(*item));
            bulk.freeze();
            assert_eq!((bulk.len(), bulk.contains(probe)), (a.len(), a.contains(&probe)));
            assert!(a.iter().all(|item| bulk.contains(*item)));
            assert_eq!(bulk.signature(), set_a.signature());
            assert_eq!((bulk.meets(&set_b), set_b.meets(&bulk)), (!a.is_disjoint(&b), !a.is_disjoint(&b)));
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
