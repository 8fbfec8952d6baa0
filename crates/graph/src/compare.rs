//! How Gremlin compares values: equality, equivalence, comparability, orderability.
//!
//! - *Equality* (`eq`, `within`, ids): numbers by value across types (`1 == 1.0`), NaN equal to nothing,
//!   collections pairwise, elements by id.
//! - *Equivalence* (`dedup`, `group`, set and map keys): as equality, but NaN is equivalent to itself and
//!   numbers of different types differ (`1`, `1L` and `1.0` are three).
//! - *Comparability* (`lt`, `gt`, …): only within a type family; anything else is simply false.
//! - *Orderability* (`order`): a total order over everything, type families in a fixed sequence.
//!
//! Source: TinkerPop's provider documentation, "Gremlin semantics", as of 3.8.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::hash::{Hash, Hasher};

use crate::numeric::to_f64;
use crate::structure::{GraphValue, Tree};
use crate::value::{Direction, Token, Value};

/// `eq`: by value, numbers across types; NaN equals nothing.
pub fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Null, Value::Null) => true,
        _ if is_number(a) && is_number(b) => crate::numeric::compare(a, b) == Some(Ordering::Equal),
        (Value::String(x), Value::String(y)) => x == y,
        (Value::List(x), Value::List(y)) => x.len() == y.len() && x.iter().zip(y.iter()).all(|(x, y)| equal(x, y)),
        (Value::Set(x), Value::Set(y)) => x.len() == y.len() && x.iter().all(|x| y.iter().any(|y| equal(x, y))),
        (Value::Map(x), Value::Map(y)) => {
            x.len() == y.len() && x.iter().all(|(k, v)| y.iter().any(|(k2, v2)| equal(k, k2) && equal(v, v2)))
        }
        (Value::Entry(x), Value::Entry(y)) => equal(&x.0, &y.0) && equal(&x.1, &y.1),
        (Value::DateTime(x), Value::DateTime(y)) => x.instant() == y.instant(),
        (Value::VertexProperty(x), Value::VertexProperty(y)) => {
            (x.vertex, x.key, x.ordinal) == (y.vertex, y.key, y.ordinal) && equal(&x.value, &y.value)
        }
        (Value::Property(x), Value::Property(y)) => x.key == y.key && equal(&x.value, &y.value),
        (Value::Path(x), Value::Path(y)) => {
            x.objects.len() == y.objects.len()
                && x.labels == y.labels
                && x.objects.iter().zip(&y.objects).all(|(x, y)| equal(x, y))
        }
        (Value::Tree(x), Value::Tree(y)) => is_same_tree(x, y),
        (Value::Graph(x), Value::Graph(y)) => is_same_graph(x, y),
        _ => std::mem::discriminant(a) == std::mem::discriminant(b) && a == b,
    }
}

/// `dedup`, grouping and map keys: as [`equal`], but types must match and NaN is equivalent to NaN.
pub fn equivalent(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::F32(x), Value::F32(y)) => x == y || (x.is_nan() && y.is_nan()),
        (Value::F64(x), Value::F64(y)) => x == y || (x.is_nan() && y.is_nan()),
        (Value::List(x), Value::List(y)) => x.len() == y.len() && x.iter().zip(y.iter()).all(|(x, y)| equivalent(x, y)),
        (Value::Set(x), Value::Set(y)) => x.len() == y.len() && is_subset(x, y),
        (Value::Map(x), Value::Map(y)) => x.len() == y.len() && is_submap(x, y),
        (Value::Entry(x), Value::Entry(y)) => equivalent(&x.0, &y.0) && equivalent(&x.1, &y.1),
        (Value::Property(x), Value::Property(y)) => x.key == y.key && equivalent(&x.value, &y.value),
        (Value::Path(x), Value::Path(y)) => {
            x.objects.len() == y.objects.len()
                && x.labels == y.labels
                && x.objects.iter().zip(&y.objects).all(|(x, y)| equivalent(x, y))
        }
        _ => std::mem::discriminant(a) == std::mem::discriminant(b) && equal(a, b),
    }
}

/// With more members than this, sets and maps are compared by hash.
const COMPARED_PAIRWISE_MAX: usize = 16;

/// Whether every value of a set is in another.
fn is_subset(of: &[Value], all: &[Value]) -> bool {
    if all.len() <= COMPARED_PAIRWISE_MAX {
        return of.iter().all(|x| all.iter().any(|y| equivalent(x, y)));
    }
    let all: HashSet<Equivalent> = all.iter().cloned().map(Equivalent).collect();
    of.iter().all(|x| all.contains(&Equivalent(x.clone())))
}

/// Whether every entry of a map is in another.
fn is_submap(of: &[(Value, Value)], all: &[(Value, Value)]) -> bool {
    if all.len() <= COMPARED_PAIRWISE_MAX {
        return of.iter().all(|(k, v)| all.iter().any(|(k2, v2)| equivalent(k, k2) && equivalent(v, v2)));
    }
    let all: HashMap<Equivalent, &Value> = all.iter().map(|(k, v)| (Equivalent(k.clone()), v)).collect();
    of.iter().all(|(k, v)| all.get(&Equivalent(k.clone())).is_some_and(|there| equivalent(v, there)))
}

/// Whether two trees have the same branches, in whatever order.
fn is_same_tree(a: &Tree, b: &Tree) -> bool {
    if a.branches.len() != b.branches.len() {
        return false;
    }
    if b.branches.len() <= COMPARED_PAIRWISE_MAX {
        return a.branches.iter().all(|(key, below)| b.get(key).is_some_and(|there| is_same_tree(below, there)));
    }
    let all: HashMap<Equivalent, &Tree> = b.branches.iter().map(|(k, t)| (Equivalent(k.clone()), t)).collect();
    a.branches.iter().all(|(k, t)| all.get(&Equivalent(k.clone())).is_some_and(|there| is_same_tree(t, there)))
}

/// Whether two graphs have the same vertices and edges, in whatever order.
fn is_same_graph(a: &GraphValue, b: &GraphValue) -> bool {
    let same = |a: &[Value], b: &[Value]| a.len() == b.len() && is_subset(a, b);
    same(&a.vertices, &b.vertices) && same(&a.edges, &b.edges)
}

/// Feeds a hasher so that values that are [`equal`] have the same hash; some that are not do, too.
pub fn hash_equal<H: Hasher>(value: &Value, state: &mut H) {
    match value {
        // Numbers that are equal have the same nearest double; unequal ones may share it.
        _ if is_number(value) => match to_f64(value) {
            Some(0.0) | None => 0_u64.hash(state),
            Some(f) => f.to_bits().hash(state),
        },
        Value::List(values) => values.iter().for_each(|v| hash_equal(v, state)),
        // Members may come in any order.
        Value::Set(values) => values.len().hash(state),
        Value::Map(entries) => entries.len().hash(state),
        other => hash_equivalent(other, state),
    }
}

/// A hash that agrees with [`equivalent`].
pub fn hash_equivalent<H: Hasher>(value: &Value, state: &mut H) {
    std::mem::discriminant(value).hash(state);
    match value {
        Value::Null => {}
        Value::Bool(v) => v.hash(state),
        Value::I8(v) => v.hash(state),
        Value::I16(v) => v.hash(state),
        Value::I32(v) => v.hash(state),
        Value::I64(v) => v.hash(state),
        Value::BigInt(v) => v.hash(state),
        Value::F32(v) => float_bits(f64::from(*v)).hash(state),
        Value::F64(v) => float_bits(*v).hash(state),
        // Decimals equal by value may differ in scale: the normal form hashes alike.
        Value::Decimal(v) => v.normalized().hash(state),
        Value::Char(v) => v.hash(state),
        Value::String(v) => v.hash(state),
        Value::Bytes(v) => v.hash(state),
        Value::Uuid(v) => v.hash(state),
        Value::DateTime(v) => v.instant().hash(state),
        Value::Duration(v) => v.hash(state),
        Value::List(v) => hash_in_order(v, state),
        // Order does not matter for sets and maps: the sum of their members' hashes has none.
        Value::Set(v) => {
            v.len().hash(state);
            hash_sum(v.iter().map(hash_of)).hash(state);
        }
        Value::Map(v) => {
            v.len().hash(state);
            hash_sum(v.iter().map(|(key, value)| hash_of(key).rotate_left(1) ^ hash_of(value))).hash(state);
        }
        Value::Entry(v) => {
            hash_equivalent(&v.0, state);
            hash_equivalent(&v.1, state);
        }
        Value::BulkSet(v) => {
            v.len().hash(state);
            for (value, count) in v.iter() {
                hash_equivalent(value, state);
                count.hash(state);
            }
        }
        Value::F32Array(v) => v.iter().for_each(|f| float_bits(f64::from(*f)).hash(state)),
        Value::Vertex(v) => v.hash(state),
        Value::Edge(v) => v.hash(state),
        Value::VertexProperty(v) => (v.vertex, v.key, v.ordinal).hash(state),
        Value::Property(v) => {
            v.key.hash(state);
            hash_equivalent(&v.value, state);
        }
        Value::Path(v) => hash_in_order(&v.objects, state),
        Value::Tree(v) => hash_of_tree(v).hash(state),
        Value::Graph(v) => {
            hash_sum(v.vertices.iter().map(hash_of)).hash(state);
            hash_sum(v.edges.iter().map(hash_of)).hash(state);
        }
        Value::Token(v) => v.hash(state),
        Value::Direction(v) => v.hash(state),
        Value::Detached(_) => {}
    }
}

fn hash_in_order<H: Hasher>(values: &[Value], state: &mut H) {
    values.len().hash(state);
    values.iter().for_each(|v| hash_equivalent(v, state));
}

/// The hash of one member of a set or map. It cannot go on with the state of the whole: that depends on order.
fn hash_of(value: &Value) -> u64 {
    let mut state = std::hash::DefaultHasher::new();
    hash_equivalent(value, &mut state);
    state.finish()
}

/// A hash of a tree in which the order of its branches plays no part.
fn hash_of_tree(tree: &Tree) -> u64 {
    let branch = |(key, below): &(Value, Tree)| hash_of(key).rotate_left(1) ^ hash_of_tree(below).rotate_left(7);
    hash_sum(tree.branches.iter().map(branch)).wrapping_add(tree.branches.len() as u64)
}

fn hash_sum(hashes: impl Iterator<Item = u64>) -> u64 {
    hashes.fold(0, u64::wrapping_add)
}

fn float_bits(v: f64) -> u64 {
    if v.is_nan() {
        f64::NAN.to_bits()
    } else if v == 0.0 {
        0
    } else {
        v.to_bits()
    }
}

/// A value as a key of a hash table, under [`equivalent`].
#[derive(Clone, Debug)]
pub struct Equivalent(pub Value);

impl PartialEq for Equivalent {
    fn eq(&self, other: &Self) -> bool {
        equivalent(&self.0, &other.0)
    }
}
impl Eq for Equivalent {}
impl Hash for Equivalent {
    fn hash<H: Hasher>(&self, state: &mut H) {
        hash_equivalent(&self.0, state);
    }
}

/// `lt`, `lte`, `gt`, `gte`: `None` where the two are not comparable (the test is then false).
pub fn comparable(a: &Value, b: &Value) -> Option<Ordering> {
    if is_number(a) && is_number(b) {
        return crate::numeric::compare(a, b);
    }
    match (a, b) {
        (Value::Null, Value::Null) => Some(Ordering::Equal),
        // A token has its place among the texts of an order, and is no text.
        _ if is_token(a) != is_token(b) => None,
        _ if family(a) == family(b) && !matches!(a, Value::Null) => match (a, b) {
            // Collections that hold something incomparable are incomparable themselves.
            (Value::List(x), Value::List(y)) => {
                for (x, y) in x.iter().zip(y.iter()) {
                    match comparable(x, y)? {
                        Ordering::Equal => {}
                        unequal => return Some(unequal),
                    }
                }
                Some(x.len().cmp(&y.len()))
            }
            _ => Some(order(a, b)),
        },
        _ => None,
    }
}

/// `order()`: a total order over all values.
pub fn order(a: &Value, b: &Value) -> Ordering {
    family(a).cmp(&family(b)).then_with(|| within_family(a, b))
}

fn within_family(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Bool(x), Value::Bool(y)) => x.cmp(y),
        _ if is_number(a) && is_number(b) => order_numbers(a, b),
        (Value::DateTime(x), Value::DateTime(y)) => x.instant().cmp(&y.instant()),
        (Value::Duration(x), Value::Duration(y)) => x.cmp(y),
        (Value::String(x), Value::String(y)) => x.cmp(y),
        (Value::Char(x), Value::Char(y)) => x.cmp(y),
        (Value::String(x), Value::Char(y)) => x.as_str().cmp(y.encode_utf8(&mut [0; 4])),
        (Value::Char(x), Value::String(y)) => (*x.encode_utf8(&mut [0; 4])).cmp(y.as_str()),
        (Value::Uuid(x), Value::Uuid(y)) => x.cmp(y),
        (Value::Bytes(x), Value::Bytes(y)) => x.cmp(y),
        (Value::Vertex(x), Value::Vertex(y)) => x.cmp(y),
        (Value::Edge(x), Value::Edge(y)) => x.cmp(y),
        (Value::VertexProperty(x), Value::VertexProperty(y)) => {
            (x.vertex, x.key, x.ordinal).cmp(&(y.vertex, y.key, y.ordinal)).then_with(|| order(&x.value, &y.value))
        }
        (Value::Property(x), Value::Property(y)) => x.key.cmp(&y.key).then_with(|| order(&x.value, &y.value)),
        (Value::Path(x), Value::Path(y)) => order_all(&x.objects, &y.objects),
        (Value::List(x), Value::List(y)) => order_all(x, y),
        (Value::Set(x), Value::Set(y)) => order_all(&sorted(x), &sorted(y)),
        (Value::Map(x), Value::Map(y)) => order_all(&sorted_entries(x), &sorted_entries(y)),
        (Value::Entry(x), Value::Entry(y)) => order(&x.0, &y.0).then_with(|| order(&x.1, &y.1)),
        (Value::F32Array(x), Value::F32Array(y)) => x.iter().map(|v| v.to_bits()).cmp(y.iter().map(|v| v.to_bits())),
        (Value::Tree(x), Value::Tree(y)) => order_trees(x, y),
        (Value::Graph(x), Value::Graph(y)) => order_all(&sorted(&x.vertices), &sorted(&y.vertices))
            .then_with(|| order_all(&sorted(&x.edges), &sorted(&y.edges))),
        _ if is_token(a) || is_token(b) => spelled(a).cmp(&spelled(b)).then_with(|| rank(a).cmp(&rank(b))),
        _ => Ordering::Equal,
    }
}

fn is_token(value: &Value) -> bool {
    matches!(value, Value::Token(_) | Value::Direction(_))
}

/// A text or a token as it is spelled: in an order both stand among each other, as the keys of an `elementMap()` do.
fn spelled(value: &Value) -> Cow<'_, str> {
    Cow::Borrowed(match value {
        Value::String(text) => text,
        Value::Char(c) => return Cow::Owned(c.to_string()),
        Value::Token(Token::Id) => "id",
        Value::Token(Token::Label) => "label",
        Value::Token(Token::Key) => "key",
        Value::Token(Token::Value) => "value",
        Value::Direction(Direction::Out) => "OUT",
        Value::Direction(Direction::In) => "IN",
        Value::Direction(Direction::Both) => "BOTH",
        _ => "",
    })
}

/// Which of a text and tokens that are spelled alike comes first.
fn rank(value: &Value) -> u8 {
    match value {
        Value::Token(_) => 1,
        Value::Direction(_) => 2,
        _ => 0,
    }
}

/// NaN after everything else, so that the order is total.
fn order_numbers(a: &Value, b: &Value) -> Ordering {
    match (is_nan(a), is_nan(b)) {
        (false, false) => crate::numeric::compare(a, b).unwrap_or(Ordering::Equal),
        (x, y) => x.cmp(&y),
    }
}

fn is_nan(v: &Value) -> bool {
    match v {
        Value::F32(v) => v.is_nan(),
        Value::F64(v) => v.is_nan(),
        _ => false,
    }
}

fn order_all(a: &[Value], b: &[Value]) -> Ordering {
    a.iter().zip(b).map(|(a, b)| order(a, b)).find(|o| o.is_ne()).unwrap_or_else(|| a.len().cmp(&b.len()))
}

fn sorted(values: &[Value]) -> Vec<Value> {
    let mut values = values.to_vec();
    values.sort_by(order);
    values
}

fn sorted_entries(entries: &[(Value, Value)]) -> Vec<Value> {
    let mut entries: Vec<_> = entries.to_vec();
    entries.sort_by(|(a, _), (b, _)| order(a, b));
    entries.into_iter().flat_map(|(k, v)| [k, v]).collect()
}

/// Trees by their branches in order of their keys: the keys first, then what is below each.
fn order_trees(a: &Tree, b: &Tree) -> Ordering {
    let sorted = |tree: &Tree| {
        let mut branches: Vec<usize> = (0..tree.branches.len()).collect();
        branches.sort_by(|x, y| order(&tree.branches[*x].0, &tree.branches[*y].0));
        branches
    };
    let (x, y) = (sorted(a), sorted(b));
    let mut pairs = x.iter().zip(&y).map(|(x, y)| (&a.branches[*x], &b.branches[*y]));
    let unequal = pairs.find_map(|((k, t), (k2, t2))| {
        let found = order(k, k2).then_with(|| order_trees(t, t2));
        found.is_ne().then_some(found)
    });
    unequal.unwrap_or_else(|| x.len().cmp(&y.len()))
}

/// Whether the value is a number of any width.
pub fn is_number(v: &Value) -> bool {
    v.is_number()
}

/// The place of the value's type family in the total order.
fn family(v: &Value) -> u8 {
    match v {
        Value::Null => 0,
        Value::Bool(_) => 1,
        _ if is_number(v) => 2,
        Value::DateTime(_) => 3,
        Value::String(_) | Value::Char(_) | Value::Token(_) | Value::Direction(_) => 4,
        Value::Uuid(_) => 5,
        Value::Vertex(_) => 6,
        Value::Edge(_) => 7,
        Value::VertexProperty(_) => 8,
        Value::Property(_) => 9,
        Value::Path(_) => 10,
        Value::Set(_) => 11,
        Value::List(_) => 12,
        Value::Map(_) => 13,
        Value::Duration(_) => 14,
        Value::Bytes(_) => 15,
        Value::F32Array(_) => 16,
        Value::BulkSet(_) => 17,
        Value::Entry(_) => 18,
        Value::Tree(_) => 19,
        Value::Graph(_) => 20,
        _ => 21,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equality_crosses_number_types_and_equivalence_does_not() {
        assert!(equal(&Value::I32(1), &Value::F64(1.0)));
        assert!(!equivalent(&Value::I32(1), &Value::F64(1.0)));
        assert!(!equivalent(&Value::I32(1), &Value::I64(1)));
        let nan = Value::F64(f64::NAN);
        assert!(!equal(&nan, &nan));
        assert!(equivalent(&nan, &nan));
        assert!(!equal(&Value::Null, &Value::I32(0)));
    }

    fn hash(value: &Value) -> u64 {
        hash_of(value)
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
        let path = |object: Value| {
            Value::Path(std::sync::Arc::new(crate::PathValue { objects: vec![object], labels: vec![Vec::new()] }))
        };
        assert!(!equivalent(&path(Value::I32(1)), &path(Value::F64(1.0))));
        assert!(equal(&path(Value::I32(1)), &path(Value::F64(1.0))));
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
