//! The access sets of a transaction: its read set and its write set, in one vocabulary, so that they can be compared.
//!
//! Both sets hold *items*: facts about the graph that a read may depend on and a write may change.
//!
//! | item | read by | changed by |
//! |---|---|---|
//! | existence of an element | a check of a known id; a look-up by an external number | insert, delete |
//! | id that a user chose (hashed) | look-up by user id, found or not | insert, delete |
//! | cell (element, key) | values of a key | writing the property; deleting the element |
//! | all cells of an element | whole properties | the same |
//! | list (vertex, direction, edge label set, or any) | expansion, degrees | insert or delete of an edge |
//! | scan (vertices or edges, label set or any) | scans, counts | insert, delete |
//! | value (key, label set or any, value hashed) | equality look-ups by index or scan | before- and after-images |
//!
//! A range of values cannot be an item. It is a [`Predicate`], which is checked against the values before and after
//! each write (the *images* that a write set keeps). Items are exact, except that chosen ids and values are hashed to
//! 64 bits. Two with the same hash may show a conflict that does not exist. No conflict is ever missed.
//!
//! A writer names each fact twice: with the label set and with "any label set". A reader names what it asked for, so
//! the comparison is plain equality. No item of a reader can name a label set that was interned after the reader had
//! resolved its labels, or a key that was interned after the reader had looked for its name. [`WriteSet::newest`] shows
//! that a write may concern such a name.
//!
//! Immutable facts are no items: the labels of an element, its id, the ends of an edge.
//!
//! `set` holds sets of items of any size, `writes` makes a write set from a transaction's log, and `merged` merges the
//! write sets of many transactions.

mod merged;
mod set;
mod writes;

use std::cmp::Ordering;
use std::hash::BuildHasher;

use mangrove_graph::compare::order;
use mangrove_graph::{
    Direction, EdgeId, ElementId, ElementKind, IndexRange, KeyId, LabelFilter, LabelSetId, UserId, Value, VertexId,
};
use mangrove_store::user_id_hash;

pub use merged::{MERGED_SPAN_MAX, MergedWrites, ReadTimestamps};
pub use set::ItemSet;
pub use writes::WriteSet;

/// The part of an item that is not its id: 6 bits of kind, 29 of property key, 29 of label set.
///
/// In a catalog with more than 2^29 keys or label sets, two classes may coincide. That may show a conflict that does
/// not exist.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ItemClass(u64);

const PART_BITS: u32 = 29;
const PART_MASK: u32 = (1 << PART_BITS) - 1;
/// Stands for "any label set".
const ANY: u32 = PART_MASK;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
enum ItemKind {
    Vertex,
    Edge,
    VertexCell,
    EdgeCell,
    VertexCells,
    EdgeCells,
    Out,
    In,
    VertexScan,
    EdgeScan,
    /// The ids of this kind and of the following ones are hashes.
    VertexId,
    EdgeId,
    VertexValue,
    EdgeValue,
}

impl ItemClass {
    fn new(kind: ItemKind, key: u32, labels: u32) -> Self {
        let parts = (u64::from(key & PART_MASK) << PART_BITS) | u64::from(labels & PART_MASK);
        ItemClass(((kind as u64) << (2 * PART_BITS)) | parts)
    }

    /// Returns true if the ids of the class are hashes, which are spread over 64 bits.
    fn is_hashed(self) -> bool {
        self.0 >> (2 * PART_BITS) >= ItemKind::VertexId as u64
    }
}

impl std::fmt::Debug for ItemClass {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}/{}", self.0 >> (2 * PART_BITS), self.0 as u32 >> PART_BITS, self.0 as u32 & PART_MASK)
    }
}

/// A fact about the graph that a read may depend on and a write may change: a class, and an id of an element or a hash.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Item {
    class: ItemClass,
    id: u64,
}

fn pick(kind: ElementKind, vertex: ItemKind, edge: ItemKind) -> ItemKind {
    match kind {
        ElementKind::Vertex => vertex,
        ElementKind::Edge => edge,
    }
}

fn of_element(element: ElementId, vertex: ItemKind, edge: ItemKind, key: u32) -> Item {
    let kind = pick(element.kind(), vertex, edge);
    Item { class: ItemClass::new(kind, key, 0), id: element.to_bits() }
}

impl Item {
    /// The existence of an element.
    pub fn existence(element: ElementId) -> Self {
        of_element(element, ItemKind::Vertex, ItemKind::Edge, 0)
    }

    /// The values of one key.
    pub fn cell(element: ElementId, key: KeyId) -> Self {
        of_element(element, ItemKind::VertexCell, ItemKind::EdgeCell, key.0)
    }

    /// The values of all keys.
    pub fn cells(element: ElementId) -> Self {
        of_element(element, ItemKind::VertexCells, ItemKind::EdgeCells, 0)
    }

    /// The edges of a vertex in one direction, along one label set or any. `direction` is not `Both`.
    pub fn list(vertex: VertexId, direction: Direction, labels: Option<LabelSetId>) -> Self {
        let kind = if direction == Direction::In { ItemKind::In } else { ItemKind::Out };
        Item { class: ItemClass::new(kind, 0, labels.map_or(ANY, |set| set.0)), id: vertex.to_bits() }
    }

    /// The set of all elements of one label set or any.
    pub fn scan(kind: ElementKind, labels: Option<LabelSetId>) -> Self {
        let kind = pick(kind, ItemKind::VertexScan, ItemKind::EdgeScan);
        Item { class: ItemClass::new(kind, 0, labels.map_or(ANY, |set| set.0)), id: 0 }
    }

    /// The set of elements of one label set or any that have this value.
    pub fn value(kind: ElementKind, key: KeyId, labels: Option<LabelSetId>, value: &Value) -> Self {
        let kind = pick(kind, ItemKind::VertexValue, ItemKind::EdgeValue);
        Item { class: ItemClass::new(kind, key.0, labels.map_or(ANY, |set| set.0)), id: hash_value(value) }
    }

    /// The sets of elements of one label set, and of any, that have this value.
    fn values(kind: ElementKind, key: KeyId, labels: LabelSetId, value: &Value) -> [Self; 2] {
        let of_any = Item::value(kind, key, None, value);
        let kind = pick(kind, ItemKind::VertexValue, ItemKind::EdgeValue);
        [Item { class: ItemClass::new(kind, key.0, labels.0), ..of_any }, of_any]
    }

    /// The element that has this chosen id, if there is one.
    pub fn chosen_id(kind: ElementKind, id: &UserId) -> Self {
        let kind = pick(kind, ItemKind::VertexId, ItemKind::EdgeId);
        Item { class: ItemClass::new(kind, 0, 0), id: user_id_hash(id) }
    }

    /// The items of a look-up by user id: the id itself and, if it is an integer, the existence of the element that has
    /// it as its external number.
    pub fn look_up(kind: ElementKind, id: &UserId) -> impl Iterator<Item = Item> + use<> {
        let automatic = match id {
            UserId::Int(n) => Some(Item::existence(match kind {
                ElementKind::Vertex => ElementId::Vertex(VertexId::from_external(n.number)),
                ElementKind::Edge => ElementId::Edge(EdgeId::from_external(n.number)),
            })),
            _ => None,
        };
        std::iter::once(Item::chosen_id(kind, id)).chain(automatic)
    }

    /// Calls `item` once for each label set that a filter takes, or once with `None` if it takes any.
    pub fn each_label(labels: &LabelFilter, mut item: impl FnMut(Option<LabelSetId>)) {
        match labels {
            LabelFilter::Any => item(None),
            LabelFilter::Sets(sets) => sets.iter().for_each(|set| item(Some(*set))),
        }
    }

    /// The item's bit in a signature: the number of a word, and the bit in it.
    fn signature_bit(self) -> (usize, u64) {
        // Both are multiplied, so the high bits of the sum depend on all bits of id and class.
        let mixed =
            self.id.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(self.class.0.wrapping_mul(0xd6e8_feb8_6659_fd93));
        let bit = mixed >> 56;
        ((bit >> 6) as usize, 1 << (bit & 63))
    }
}

/// A hash that agrees with `compare::equal`: equal values have equal hashes.
fn hash_value(value: &Value) -> u64 {
    struct Equal<'a>(&'a Value);
    impl std::hash::Hash for Equal<'_> {
        fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
            mangrove_graph::compare::hash_equal(self.0, state);
        }
    }
    // The seed is fixed, because transactions compare each other's hashes. No hash is stored on disk.
    foldhash::fast::FixedState::with_seed(0x7265_6164).hash_one(Equal(value))
}

/// A Bloom filter of a set's items, of 256 bits. Two sets with disjoint signatures have no item in common.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Signature(pub [u64; 4]);

impl Signature {
    fn add(&mut self, item: Item) {
        let (word, bit) = item.signature_bit();
        self.0[word] |= bit;
    }

    /// Adds the items of another set.
    pub fn join(&mut self, other: &Signature) {
        self.0.iter_mut().zip(other.0).for_each(|(mine, theirs)| *mine |= theirs);
    }

    /// Returns true if the sets may have an item in common.
    #[inline]
    pub fn meets(&self, other: &Signature) -> bool {
        self.0.iter().zip(other.0).any(|(a, b)| a & b != 0)
    }
}

/// The largest numbers of label sets and keys among written elements and properties. A reader that resolved its names
/// when the catalog had fewer cannot have named these in an item.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NewestNames {
    /// The largest label set of a vertex.
    pub vertex: u32,
    /// The largest label set of an edge.
    pub edge: u32,
    /// The largest property key.
    pub key: u32,
}

impl NewestNames {
    /// The largest label set of one kind of element.
    pub fn of(&mut self, kind: ElementKind) -> &mut u32 {
        match kind {
            ElementKind::Vertex => &mut self.vertex,
            ElementKind::Edge => &mut self.edge,
        }
    }

    /// Takes the larger of each.
    pub fn join(&mut self, other: NewestNames) {
        self.vertex = self.vertex.max(other.vertex);
        self.edge = self.edge.max(other.edge);
        self.key = self.key.max(other.key);
    }

    /// The three numbers in two words, for atomics.
    pub fn to_bits(self) -> [u64; 2] {
        [u64::from(self.vertex) << 32 | u64::from(self.edge), u64::from(self.key)]
    }

    /// The numbers from the two words that [`NewestNames::to_bits`] made.
    pub fn from_bits([labels, key]: [u64; 2]) -> Self {
        NewestNames { vertex: (labels >> 32) as u32, edge: labels as u32, key: key as u32 }
    }
}

/// A read of all elements that have a value in a range, under one key.
#[derive(Clone, Debug, PartialEq)]
pub struct Predicate {
    /// Vertices or edges.
    pub kind: ElementKind,
    /// The label sets that the elements may have.
    pub labels: LabelFilter,
    /// The key of the values.
    pub key: KeyId,
    /// The range of the values.
    pub range: IndexRange,
}

impl Predicate {
    fn takes(&self, kind: ElementKind, key: KeyId, labels: LabelSetId) -> bool {
        self.kind == kind && self.key == key && self.labels.takes(labels)
    }

    fn holds(&self, value: &Value) -> bool {
        // Scans and ordered indexes differ in how they treat values that are not comparable with a bound. A conflict is
        // one for either.
        self.range.holds(value) || self.may_hold_between(value, value)
    }

    /// Returns true if a value between these two, in the order of `compare::order`, may be in the range.
    fn may_hold_between(&self, smallest: &Value, largest: &Value) -> bool {
        let reaches = |value: &Value, bound: &Option<(Value, bool)>, beyond: Ordering| {
            bound.as_ref().is_none_or(|(bound, inclusive)| {
                let side = order(value, bound);
                side == beyond || (*inclusive && side.is_eq())
            })
        };
        match &self.range {
            IndexRange::Equal(values) => {
                values.iter().any(|value| order(value, smallest).is_ge() && order(value, largest).is_le())
            }
            IndexRange::Between { low, high } => {
                reaches(largest, low, Ordering::Greater) && reaches(smallest, high, Ordering::Less)
            }
        }
    }
}
