//! How Gremlin compares values. There are four questions:
//!
//! | question | asked by | answer |
//! |---|---|---|
//! | *equality* | `eq`, `within`, ids | numbers by value across types (`1 == 1.0`), NaN equals nothing, collections by their members, elements by id |
//! | *equivalence* | `dedup`, `group`, keys of sets and maps | as equality, but numbers of different types differ (`1`, `1L`, `1.0` are three), and NaN is equivalent to NaN |
//! | *comparability* | `lt`, `gt` and so on | an order within a type family; values of two families are not comparable, and the test is false |
//! | *orderability* | `order` | a total order over all values: first by type family, then within the family |
//!
//! - **GRAPH-8.** [`order`] is total: any two values are ordered, `order(a, b)` is the reverse of `order(b, a)`, and it
//!   is transitive. Values that are [`equal`] have one [`hash_equal`], and equivalent values one [`hash_equivalent`].
//!
//! Each question has two functions. The functions in [`watched`] compare values that a query has computed, and end with
//! the query. The others compare values that a graph stores or looks up, and always return the right answer.
//!
//! Source: TinkerPop's provider documentation, "Gremlin semantics", as of 3.8.

mod equality;
mod hash;
mod order;
pub mod watch;

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use crate::value::Value;
use watch::{Unwatched, Watched};

/// The two meanings of "the same value".
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sameness {
    /// Equality, as [`equal`] decides it.
    Equal,
    /// Equivalence, as [`equivalent`] decides it.
    Equivalent,
}

/// Returns true if two values are equal (`eq`): numbers by value across types; NaN equals nothing.
pub fn equal(a: &Value, b: &Value) -> bool {
    equality::is_same::<Unwatched>(Sameness::Equal, a, b)
}

/// Returns true if two values are equivalent (`dedup`, `group`, keys): as [`equal`], but types must match, and NaN is
/// equivalent to NaN.
pub fn equivalent(a: &Value, b: &Value) -> bool {
    equality::is_same::<Unwatched>(Sameness::Equivalent, a, b)
}

/// Feeds a hasher so that [`equal`] values have the same hash (GRAPH-8).
pub fn hash_equal<H: Hasher>(value: &Value, state: &mut H) {
    hash::feed::<Unwatched, H>(Sameness::Equal, value, state);
}

/// Feeds a hasher so that [`equivalent`] values have the same hash (GRAPH-8).
pub fn hash_equivalent<H: Hasher>(value: &Value, state: &mut H) {
    hash::feed::<Unwatched, H>(Sameness::Equivalent, value, state);
}

/// The order of two comparable values (`lt`, `lte`, `gt`, `gte`); `None` if they are not comparable, which makes the
/// test false.
pub fn comparable(a: &Value, b: &Value) -> Option<Ordering> {
    order::comparable::<Unwatched>(a, b)
}

/// The total order over all values, as `order()` sorts by it (GRAPH-8).
pub fn order(a: &Value, b: &Value) -> Ordering {
    order::order::<Unwatched>(a, b)
}

/// The same functions for values that a query has made, which may be of any size: they end with the query (see
/// [`watch`]).
pub mod watched {
    use super::watch::Pace;
    use super::{Hasher, Ordering, Sameness, Value, Watched, equality, hash, order as orders};

    /// As [`super::equal`].
    pub fn equal(a: &Value, b: &Value) -> bool {
        equality::is_same::<Watched>(Sameness::Equal, a, b)
    }

    /// Returns true if a value is [`equal`] to one of `values`.
    pub fn is_among<'a>(value: &Value, values: impl Iterator<Item = &'a Value>) -> bool {
        equality::is_among::<Watched>(Sameness::Equal, value, values)
    }

    /// The value under the key that is [`equivalent`] to `key`.
    pub fn value_of<'a>(entries: &'a [(Value, Value)], key: &Value) -> Option<&'a Value> {
        let mut entries = entries.iter().take_while(|_| Watched::has_time_for(1));
        entries.find(|(known, _)| equivalent(known, key)).map(|(_, value)| value)
    }

    /// As [`super::equivalent`].
    pub fn equivalent(a: &Value, b: &Value) -> bool {
        equality::is_same::<Watched>(Sameness::Equivalent, a, b)
    }

    /// As [`super::hash_equivalent`]: the same hash as that of an [`Equivalent`](super::Equivalent).
    pub fn hash_equivalent<H: Hasher>(value: &Value, state: &mut H) {
        hash::feed::<Watched, H>(Sameness::Equivalent, value, state);
    }

    /// As [`super::comparable`].
    pub fn comparable(a: &Value, b: &Value) -> Option<Ordering> {
        orders::comparable::<Watched>(a, b)
    }

    /// As [`super::order`].
    pub fn order(a: &Value, b: &Value) -> Ordering {
        orders::order::<Watched>(a, b)
    }
}

/// A value as a key of a hash table, under [`watched::equal`]. A key that holds NaN is never found.
#[derive(Clone, Debug)]
pub struct Equal(pub Value);

/// A value as a key of a hash table, under [`watched::equivalent`].
#[derive(Clone, Debug)]
pub struct Equivalent(pub Value);

impl PartialEq for Equal {
    fn eq(&self, other: &Self) -> bool {
        watched::equal(&self.0, &other.0)
    }
}

impl Eq for Equal {}

impl Hash for Equal {
    fn hash<H: Hasher>(&self, state: &mut H) {
        hash::feed::<Watched, H>(Sameness::Equal, &self.0, state);
    }
}

impl PartialEq for Equivalent {
    fn eq(&self, other: &Self) -> bool {
        watched::equivalent(&self.0, &other.0)
    }
}

impl Eq for Equivalent {}

impl Hash for Equivalent {
    fn hash<H: Hasher>(&self, state: &mut H) {
        hash::feed::<Watched, H>(Sameness::Equivalent, &self.0, state);
    }
}

/// Returns true for a number of any type.
pub fn is_number(v: &Value) -> bool {
    v.is_number()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::hash::BuildHasher;
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::{EdgeId, KeyId, PathValue, PropertyOwner, PropertyValue, Token, Tree, VertexId, VertexPropertyValue};

    #[test]
    fn equality_crosses_number_types_and_equivalence_does_not() {
        assert!(equal(&Value::I32(1), &Value::F64(1.0)));
        assert!(!equivalent(&Value::I32(1), &Value::F64(1.0)));
        assert!(!equivalent(&Value::I32(1), &Value::I64(1)));
        let nan = Value::F64(f64::NAN);
        assert!(!equal(&nan, &nan));
        assert!(equivalent(&nan, &nan));
        let property = vertex_property(nan);
        assert!(!equal(&property, &property));
        assert!(equivalent(&property, &property));
        assert!(equal(&vertex_property(Value::I32(1)), &vertex_property(Value::F64(1.0))));
        assert!(!equivalent(&vertex_property(Value::I32(1)), &vertex_property(Value::F64(1.0))));
        assert!(!equal(&Value::Null, &Value::I32(0)));
    }

    fn hash(value: &Value) -> u64 {
        let mut state = std::hash::DefaultHasher::new();
        hash_equivalent(value, &mut state);
        state.finish()
    }

    fn hash_of_equal(value: &Value) -> u64 {
        let mut state = std::hash::DefaultHasher::new();
        hash_equal(value, &mut state);
        state.finish()
    }

    fn path(objects: Vec<Value>) -> Value {
        Value::Path(Arc::new(PathValue { labels: vec![Vec::new(); objects.len()], objects }))
    }

    fn vertex_property(value: Value) -> Value {
        let (vertex, key) = (VertexId::from_bits(1), KeyId(1));
        Value::VertexProperty(Arc::new(VertexPropertyValue { vertex, key, ordinal: 0, value, meta: Arc::default() }))
    }

    fn property(value: Value) -> Value {
        let (owner, key) = (PropertyOwner::Edge(EdgeId::from_bits(1)), KeyId(1));
        Value::Property(Arc::new(PropertyValue { owner, key, value }))
    }

    /// Few values of each kind, so that many are equal; collections of each kind, and a long set and map.
    fn any_value() -> impl Strategy<Value = Value> {
        let decimal = |n: i64| Value::Decimal(Arc::new(bigdecimal::BigDecimal::new(n.into(), 1)));
        let scalar = prop_oneof![
            Just(Value::Null),
            (0..3_i32).prop_map(Value::I32),
            (0..3_i64).prop_map(Value::I64),
            prop::sample::select(vec![0.0, -0.0, 1.0, 0.5, f64::NAN]).prop_map(Value::F64),
            prop::sample::select(vec![1.0, f32::NAN]).prop_map(Value::F32),
            (0..2_i64).prop_map(|n| Value::BigInt(Arc::new(n.into()))),
            prop::sample::select(vec![0, 5, 10]).prop_map(decimal),
            "[ab]?".prop_map(Value::from),
            prop::collection::vec(prop::sample::select(vec![-1.0_f32, 0.0, -0.0, f32::NAN]), 0..3)
                .prop_map(|numbers| Value::F32Array(numbers.into())),
        ];
        let unique = |values: Vec<Value>| {
            let mut kept: Vec<Value> = Vec::new();
            for value in values {
                if !kept.iter().any(|known| equivalent(known, &value)) {
                    kept.push(value);
                }
            }
            kept
        };
        scalar.prop_recursive(3, 60, 3, move |inner| {
            let values = prop::collection::vec(inner.clone(), 0..4);
            // With and without enough members to be compared by hash.
            let filled = (values.clone(), prop::sample::select(vec![0, 20])).prop_map(move |(mut values, more)| {
                values.extend((0..more).map(Value::I8));
                unique(values)
            });
            let tree =
                |keys: Vec<Value>| Tree { branches: keys.into_iter().map(|key| (key, Tree::default())).collect() };
            prop_oneof![
                values.clone().prop_map(Value::list),
                filled.clone().prop_map(|values| Value::Set(values.into())),
                filled
                    .clone()
                    .prop_map(|keys| Value::map(keys.iter().cloned().zip(keys.iter().rev().cloned()).collect())),
                inner.clone().prop_map(vertex_property),
                inner.clone().prop_map(property),
                (inner.clone(), inner).prop_map(|entry| Value::Entry(entry.into())),
                values
                    .clone()
                    .prop_map(|values| Value::BulkSet(Arc::new(values.into_iter().map(|v| (v, 2)).collect()))),
                values.prop_map(path),
                filled.prop_map(move |keys| Value::Tree(tree(keys).into())),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3_000))]

        #[test]
        fn what_is_the_same_hashes_alike(a in any_value(), b in any_value()) {
            prop_assert!(equivalent(&a, &a));
            prop_assert_eq!(order(&a, &a), Ordering::Equal);
            prop_assert_eq!(order(&a, &b), order(&b, &a).reverse());
            prop_assert_eq!(equal(&a, &b), equal(&b, &a));
            prop_assert_eq!(equivalent(&a, &b), equivalent(&b, &a));
            if equal(&a, &b) {
                prop_assert_eq!(hash_of_equal(&a), hash_of_equal(&b));
            }
            if equivalent(&a, &b) {
                prop_assert_eq!(hash(&a), hash(&b));
            }
            prop_assert_eq!(watched::equal(&a, &b), equal(&a, &b));
            prop_assert_eq!(watched::equivalent(&a, &b), equivalent(&a, &b));
            prop_assert_eq!(watched::comparable(&a, &b), comparable(&a, &b));
            prop_assert_eq!(watched::order(&a, &b), order(&a, &b));
        }
    }

    thread_local! {
        static ASKED: Cell<usize> = const { Cell::new(0) };
    }

    /// The control of a query that ends at the third check.
    fn ends_soon() -> bool {
        ASKED.set(ASKED.get() + 1);
        ASKED.get() == 3
    }

    /// 2^60 values in a few kilobytes; two calls share nothing.
    fn deep(wrap: impl Fn(Value, i32) -> Value) -> Value {
        (0..60).fold(Value::from("x"), wrap)
    }

    #[test]
    fn comparisons_end_with_their_query() {
        let set = |v: Value, n: i32| Value::Set(vec![Value::list(vec![v.clone(), n.into()]), v].into());
        let wide = |v: Value, n: i32| {
            Value::Set((0..20).map(|m| Value::list(vec![v.clone(), (n * 100 + m).into()])).collect::<Vec<_>>().into())
        };
        let tree = |v: Value, n: i32| {
            let branches = [0, 1].map(|m| (Value::list(vec![v.clone(), (n + m).into()]), Tree::default()));
            Value::Tree(Tree { branches: branches.into() }.into())
        };
        // A gigabyte to walk through, a megabyte to hold.
        let long = |text: Value| Value::list(vec![text; 1_000]);
        let shapes: [&dyn Fn() -> Value; 11] = [
            &|| long("x".repeat(1 << 20).into()),
            &|| long(Value::Bytes(vec![1; 1 << 20].into())),
            &|| long(Value::F32Array(vec![1.0; 1 << 20].into())),
            &|| deep(|v, _| Value::list(vec![v.clone(), v])),
            &|| deep(set),
            &|| deep(wide),
            &|| deep(|v, n| Value::map(vec![(Value::list(vec![v.clone()]), n.into()), (v.clone(), v)])),
            &|| deep(|v, _| Value::Entry((v.clone(), v).into())),
            &|| deep(|v, _| Value::BulkSet(vec![(v.clone(), 1), (v, 2)].into())),
            &|| deep(|v, _| path(vec![v.clone(), v])),
            &|| deep(tree),
        ];
        for (at, shape) in shapes.into_iter().enumerate() {
            let (a, b) = (shape(), shape());
            let comparisons: [&dyn Fn(); 5] = [
                &|| _ = watched::equal(&a, &b),
                &|| _ = watched::equivalent(&a, &b),
                &|| _ = watched::comparable(&a, &b),
                &|| _ = watched::order(&a, &b),
                &|| Equivalent(a.clone()).hash(&mut std::hash::DefaultHasher::new()),
            ];
            for (number, compare) in comparisons.into_iter().enumerate() {
                ASKED.set(0);
                let _watch = watch::begin(ends_soon);
                compare();
                let asked = ASKED.get();
                assert!(watch::is_interrupted() && asked == 3, "shape {at}, comparison {number}: asked {asked} times");
            }
            assert!(!watch::is_interrupted());
        }
    }

    #[test]
    fn hashes_are_spread_after_the_query_has_ended() {
        let pair = |v: Value| [v.clone(), v];
        let wraps: [fn([Value; 2]) -> Value; 7] = [
            |v| Value::list(v.to_vec()),
            |v| Value::Set(v.to_vec().into()),
            |[k, v]| Value::map(vec![(k, v)]),
            |[k, v]| Value::Entry((k, v).into()),
            |v| Value::BulkSet(Arc::new(v.map(|v| (v, 1)).to_vec())),
            |v| path(v.to_vec()),
            |v| Value::Tree(Tree { branches: v.map(|key| (key, Tree::default())).to_vec() }.into()),
        ];
        for wrap in wraps {
            let keys: Vec<_> = (0..1_000).map(|n| Equivalent(wrap(pair(n.into())))).collect();
            let _watch = watch::begin(|| true);
            let [a, b] = [0, 1].map(|_| deep(|v, _| Value::list(vec![v; 2])));
            assert!(!watched::equal(&a, &b));
            assert!(watch::is_interrupted());
            let seeds = foldhash::fast::RandomState::default();
            let hashes: std::collections::HashSet<u64> = keys.iter().map(|key| seeds.hash_one(key)).collect();
            assert!(hashes.len() > 990, "a thousand of {:?} have {} hashes", keys[0].0, hashes.len());
        }
    }

    #[test]
    fn without_end_comparisons_come_to_an_answer() {
        let _watch = watch::begin(|| false);
        let many = |last: i32| Value::list((0..300_000).chain([last]).map(Value::I32).collect());
        assert!(watched::equal(&many(0), &many(0)) && !watched::equal(&many(0), &many(1)));
        assert_eq!(watched::order(&many(0), &many(1)), Ordering::Less);
        let set = |from: i32| Value::Set((from..from + 200_000).map(Value::I32).collect::<Vec<_>>().into());
        assert!(watched::equal(&set(0), &set(0)) && !watched::equal(&set(0), &set(1)));
        assert!(!watch::is_interrupted());
    }

    #[test]
    fn what_is_equivalent_hashes_alike() {
        let numbers = |range: std::ops::Range<i32>| range.map(Value::I32).collect::<Vec<_>>();
        let reversed = |mut values: Vec<Value>| {
            values.reverse();
            values
        };
        for count in [3, 40] {
            let set = Value::Set(numbers(0..count).into());
            let turned = Value::Set(reversed(numbers(0..count)).into());
            let other = Value::Set(numbers(1..count + 1).into());
            assert!(equivalent(&set, &turned) && hash(&set) == hash(&turned));
            assert!(!equivalent(&set, &other) && hash(&set) != hash(&other));
            let entries = |keys: Vec<Value>| keys.into_iter().map(|k| (k.clone(), Value::list(vec![k]))).collect();
            let map = Value::map(entries(numbers(0..count)));
            let turned = Value::map(entries(reversed(numbers(0..count))));
            let other = Value::map(numbers(0..count).into_iter().map(|k| (k, Value::Null)).collect());
            assert!(equivalent(&map, &turned) && hash(&map) == hash(&turned));
            assert!(!equivalent(&map, &other) && hash(&map) != hash(&other));
        }
        let array = |zero: f32| Value::F32Array(vec![zero, 1.0].into());
        assert!(equivalent(&array(0.0), &array(-0.0)) && hash(&array(0.0)) == hash(&array(-0.0)));
        let path = |object: Value| path(vec![object]);
        assert!(!equivalent(&path(Value::I32(1)), &path(Value::F64(1.0))));
        assert!(equal(&path(Value::I32(1)), &path(Value::F64(1.0))));
    }

    #[test]
    fn arrays_are_compared_as_lists_of_their_numbers() {
        let numbers = [f32::NEG_INFINITY, -2.0, -1.0, -0.0, 0.0, 1.0, f32::NAN, -f32::NAN];
        let pairs = numbers.iter().flat_map(|a| numbers.iter().map(move |b| vec![*a, *b]));
        let all: Vec<Vec<f32>> = std::iter::once(Vec::new()).chain(numbers.map(|n| vec![n])).chain(pairs).collect();
        let array = |numbers: &[f32]| Value::F32Array(numbers.into());
        let list = |numbers: &[f32]| Value::list(numbers.iter().copied().map(Value::F32).collect());
        for (a, b) in all.iter().flat_map(|a| all.iter().map(move |b| (a, b))) {
            let (arrays, lists) = ((array(a), array(b)), (list(a), list(b)));
            assert_eq!(equal(&arrays.0, &arrays.1), equal(&lists.0, &lists.1), "{a:?} against {b:?}");
            assert_eq!(equivalent(&arrays.0, &arrays.1), equivalent(&lists.0, &lists.1), "{a:?} against {b:?}");
            assert_eq!(comparable(&arrays.0, &arrays.1), comparable(&lists.0, &lists.1), "{a:?} against {b:?}");
            assert_eq!(order(&arrays.0, &arrays.1), order(&lists.0, &lists.1), "{a:?} against {b:?}");
        }
    }

    #[test]
    fn comparing_across_families_is_no_answer() {
        assert_eq!(comparable(&Value::I32(1), &Value::from("a")), None);
        assert_eq!(comparable(&Value::F64(f64::NAN), &Value::I32(1)), None);
        assert_eq!(comparable(&Value::from("a"), &Value::from("b")), Some(Ordering::Less));
    }

    #[test]
    fn the_order_is_total_over_everything() {
        let values = [
            Value::Null,
            Value::Bool(false),
            Value::Bool(true),
            Value::I32(-1),
            Value::F64(0.5),
            Value::I64(1),
            Value::F64(f64::INFINITY),
            Value::F64(f64::NAN),
            Value::from("a"),
            Value::from("b"),
            Value::from("id"),
            Value::Token(Token::Id),
            Value::from("idea"),
            Value::Set(vec![Value::I32(1)].into()),
            Value::list(vec![Value::I32(1)]),
            Value::list(vec![Value::I32(1), Value::I32(0)]),
        ];
        for (i, a) in values.iter().enumerate() {
            for (j, b) in values.iter().enumerate() {
                assert_eq!(order(a, b), i.cmp(&j), "{a:?} against {b:?}");
            }
        }
    }
}
