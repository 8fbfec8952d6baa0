//! The key of an index entry: the values of the index's property keys, in their order.

use std::cmp::Ordering;
use std::hash::{BuildHasher, Hasher};

use mangrove_graph::Value;
use mangrove_graph::compare::{hash_equal, order};

use crate::cell::heap_bytes;

/// The values of an index's keys.
#[derive(Clone, Debug)]
pub(crate) enum IndexKey {
    /// One value, which needs no allocation of its own.
    One(Value),
    /// Values of a composite index. An ordered index has fewer values than keys for an element that lacks a key.
    Many(Box<[Value]>),
}

impl IndexKey {
    pub(crate) fn new(mut values: Vec<Value>) -> Self {
        match (values.len(), values.pop()) {
            (1, Some(value)) => IndexKey::One(value),
            (_, last) => {
                values.extend(last);
                IndexKey::Many(values.into())
            }
        }
    }

    pub(crate) fn values(&self) -> &[Value] {
        match self {
            IndexKey::One(value) => std::slice::from_ref(value),
            IndexKey::Many(values) => values,
        }
    }

    /// The bytes that the key owns on the heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        let own = match self {
            IndexKey::One(_) => 0,
            IndexKey::Many(values) => size_of_val(&**values),
        };
        own + self.values().iter().map(heap_bytes).sum::<usize>()
    }

    /// A hash that agrees with `compare::equal` of every value.
    pub(crate) fn hash_equal(&self) -> u64 {
        let mut hasher = hasher();
        for (at, value) in self.values().iter().enumerate() {
            // Separates the values of a composite key, so that ("ab", "c") and ("a", "bc") differ.
            if at > 0 {
                hasher.write_u8(0xff);
            }
            hash_equal(value, &mut hasher);
        }
        hasher.finish()
    }
}

/// A hash of one value that agrees with `compare::equal`.
pub(crate) fn hash_of(value: &Value) -> u64 {
    let mut hasher = hasher();
    hash_equal(value, &mut hasher);
    hasher.finish()
}

/// The seed is fixed, since all shards of an index use one hash. No hash is stored on disk.
fn hasher() -> impl Hasher {
    foldhash::fast::FixedState::with_seed(0x6d61_6e67).build_hasher()
}

/// By `compare::order` of one value after the other. A key comes before longer keys that begin with it.
impl Ord for IndexKey {
    fn cmp(&self, other: &Self) -> Ordering {
        let (mine, theirs) = (self.values(), other.values());
        let differ = mine.iter().zip(theirs).map(|(a, b)| order(a, b)).find(|o| o.is_ne());
        differ.unwrap_or_else(|| mine.len().cmp(&theirs.len()))
    }
}

impl PartialOrd for IndexKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for IndexKey {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for IndexKey {}

/// A limit of a range; true if the range includes it. `None`: no limit.
type Limit<'a> = Option<&'a (Value, bool)>;

/// The keys that begin with these values, and whose next value is between two limits.
pub(crate) struct Interval<'a> {
    pub(crate) prefix: &'a [Value],
    pub(crate) low: Limit<'a>,
    pub(crate) high: Limit<'a>,
}

impl Interval<'_> {
    /// `Less` for a key before the interval, `Equal` for one inside, and `Greater` for one after it. Along ascending
    /// keys the result never falls.
    pub(crate) fn position(&self, key: &IndexKey) -> Ordering {
        let values = key.values();
        for (value, wanted) in values.iter().zip(self.prefix) {
            match order(value, wanted) {
                Ordering::Equal => {}
                unequal => return unequal,
            }
        }
        match values.get(self.prefix.len()) {
            Some(next) => position(next, self.low, self.high),
            // An element that lacks the key sorts before all elements that have it.
            None => Ordering::Less,
        }
    }
}

fn position(value: &Value, low: Limit<'_>, high: Limit<'_>) -> Ordering {
    if let Some((bound, inclusive)) = low {
        match order(value, bound) {
            Ordering::Less => return Ordering::Less,
            Ordering::Equal if !inclusive => return Ordering::Less,
            _ => {}
        }
    }
    if let Some((bound, inclusive)) = high {
        match order(value, bound) {
            Ordering::Greater => return Ordering::Greater,
            Ordering::Equal if !inclusive => return Ordering::Greater,
            _ => {}
        }
    }
    Ordering::Equal
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(values: &[i32]) -> IndexKey {
        IndexKey::new(values.iter().map(|&v| Value::I32(v)).collect())
    }

    #[test]
    fn a_prefix_sorts_before_what_it_begins() {
        let mut keys = [key(&[2]), key(&[1, 2]), key(&[1]), key(&[1, 1, 5]), key(&[1, 1])];
        keys.sort();
        assert_eq!(keys, [key(&[1]), key(&[1, 1]), key(&[1, 1, 5]), key(&[1, 2]), key(&[2])]);
    }

    #[test]
    fn intervals_follow_a_prefix() {
        let (prefix, low, high) = ([Value::I32(1)], (Value::I32(3), false), (Value::I32(5), true));
        let interval = Interval { prefix: &prefix, low: Some(&low), high: Some(&high) };
        let positions = [(key(&[0, 4]), -1), (key(&[1]), -1), (key(&[1, 3]), -1), (key(&[1, 4]), 0)];
        let behind = [(key(&[1, 5, 9]), 0), (key(&[1, 6]), 1), (key(&[2]), 1)];
        for (key, expected) in positions.into_iter().chain(behind) {
            assert_eq!(interval.position(&key) as i8, expected, "{key:?}");
        }
    }

    #[test]
    fn composite_hashes_keep_values_apart() {
        let of = |values: &[&str]| IndexKey::new(values.iter().map(|&v| Value::from(v)).collect()).hash_equal();
        assert_ne!(of(&["ab", "c"]), of(&["a", "bc"]));
        let (int, double) = (Value::I32(2), Value::F64(2.0));
        let pair = |v: &Value| IndexKey::new(vec!["a".into(), v.clone()]).hash_equal();
        assert_eq!(pair(&int), pair(&double));
    }
}
