//! Equality and equivalence: when two values are the same.
//!
//! Collections are compared by recursion, sets and maps without regard to order. Comparisons of collections, texts
//! and arrays ask their [`Pace`] whether the query still runs. If it has ended, they return an arbitrary answer at once,
//! and the executor discards the results. The hashes in `hash.rs` must agree with the answers here (GRAPH-8).

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::sync::Arc;

use super::watch::{MEMBERS_AT_ONCE, Pace};
use super::{Sameness, hash, is_number};
use crate::value::{GraphValue, Tree, Value};

/// Returns true if two values are the same under equality or equivalence, as `by` says.
pub(super) fn is_same<P: Pace>(by: Sameness, a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::List(x), Value::List(y)) => shares_memory(by, x, y) || is_same_in_order::<P>(by, x, y),
        (Value::Set(x), Value::Set(y)) => shares_memory(by, x, y) || (x.len() == y.len() && is_subset::<P>(by, x, y)),
        (Value::Map(x), Value::Map(y)) => shares_memory(by, x, y) || (x.len() == y.len() && is_submap::<P>(by, x, y)),
        (Value::Entry(x), Value::Entry(y)) => {
            shares_memory(by, x, y)
                || P::has_time_for(2) && is_same::<P>(by, &x.0, &y.0) && is_same::<P>(by, &x.1, &y.1)
        }
        (Value::BulkSet(x), Value::BulkSet(y)) => {
            let pairs = |x: &[(Value, u64)], y: &[(Value, u64)]| {
                x.iter().zip(y).all(|((x, n), (y, m))| n == m && is_same::<P>(by, x, y))
            };
            shares_memory(by, x, y) || are_chunks_same::<P, _>(x, y, pairs)
        }
        (Value::Path(x), Value::Path(y)) => {
            shares_memory(by, x, y) || (x.labels == y.labels && is_same_in_order::<P>(by, &x.objects, &y.objects))
        }
        (Value::Tree(x), Value::Tree(y)) => Arc::ptr_eq(x, y) || is_same_tree::<P>(x, y),
        (Value::Graph(x), Value::Graph(y)) => Arc::ptr_eq(x, y) || is_same_graph::<P>(x, y),
        (Value::VertexProperty(x), Value::VertexProperty(y)) => {
            (x.vertex, x.key, x.ordinal) == (y.vertex, y.key, y.ordinal) && is_same::<P>(by, &x.value, &y.value)
        }
        (Value::Property(x), Value::Property(y)) => x.key == y.key && is_same::<P>(by, &x.value, &y.value),
        // Texts and arrays of different lengths differ: the last arm sees that without reading their content.
        (Value::String(x), Value::String(y)) if x.len() == y.len() => P::has_time_for_bytes(x.len()) && x == y,
        (Value::Bytes(x), Value::Bytes(y)) if x.len() == y.len() => P::has_time_for_bytes(x.len()) && x == y,
        (Value::F32Array(x), Value::F32Array(y)) if x.len() == y.len() => {
            P::has_time_for_bytes(size_of_val(&**x))
                && match by {
                    Sameness::Equal => x == y,
                    Sameness::Equivalent => x.iter().zip(y.iter()).all(|(x, y)| x == y || (x.is_nan() && y.is_nan())),
                }
        }
        _ => match by {
            Sameness::Equal => is_equal_scalar(a, b),
            Sameness::Equivalent => is_equivalent_scalar(a, b),
        },
    }
}

/// Returns true if two values that are no collections are equal.
fn is_equal_scalar(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::String(x), Value::String(y)) => x == y,
        (Value::DateTime(x), Value::DateTime(y)) => x.instant() == y.instant(),
        _ if is_number(a) && is_number(b) => crate::numeric::compare(a, b) == Some(Ordering::Equal),
        _ => std::mem::discriminant(a) == std::mem::discriminant(b) && a == b,
    }
}

/// Returns true if two values that are no collections are equivalent.
fn is_equivalent_scalar(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::F32(x), Value::F32(y)) => x == y || (x.is_nan() && y.is_nan()),
        (Value::F64(x), Value::F64(y)) => x == y || (x.is_nan() && y.is_nan()),
        _ => std::mem::discriminant(a) == std::mem::discriminant(b) && is_equal_scalar(a, b),
    }
}

/// Returns true if two collections share their memory, which makes them equivalent. It does not make them equal: a list
/// that holds NaN is not equal to itself.
fn shares_memory<T>(by: Sameness, a: &Arc<T>, b: &Arc<T>) -> bool {
    by == Sameness::Equivalent && Arc::ptr_eq(a, b)
}

fn is_same_in_order<P: Pace>(by: Sameness, x: &[Value], y: &[Value]) -> bool {
    are_chunks_same::<P, _>(x, y, |x, y| x.iter().zip(y).all(|(x, y)| is_same::<P>(by, x, y)))
}

/// Returns true if two sequences are equally long and `is_same` returns true for each pair of their chunks.
fn are_chunks_same<P: Pace, T>(x: &[T], y: &[T], is_same: impl Fn(&[T], &[T]) -> bool) -> bool {
    let mut parts = x.chunks(MEMBERS_AT_ONCE).zip(y.chunks(MEMBERS_AT_ONCE));
    x.len() == y.len() && parts.all(|(x, y)| P::has_time_for(x.len()) && is_same(x, y))
}

/// Returns true if a value is the same as one of `values`.
pub(super) fn is_among<'a, P: Pace>(by: Sameness, value: &Value, values: impl Iterator<Item = &'a Value>) -> bool {
    values.take_while(|_| P::has_time_for(1)).any(|other| is_same::<P>(by, value, other))
}

/// Sets and maps with more members than this are compared by hash.
const COMPARED_PAIRWISE_MAX: usize = 16;

/// A member of a set, or a key of a map, in a hash table.
struct Member<'a, P>(Sameness, &'a Value, PhantomData<P>);

impl<'a, P: Pace> Member<'a, P> {
    fn new(by: Sameness, value: &'a Value) -> Self {
        Member(by, value, PhantomData)
    }
}

impl<P: Pace> Hash for Member<'_, P> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        hash::feed::<P, H>(self.0, self.1, state);
    }
}

impl<P: Pace> PartialEq for Member<'_, P> {
    fn eq(&self, other: &Self) -> bool {
        is_same::<P>(self.0, self.1, other.1)
    }
}

impl<P: Pace> Eq for Member<'_, P> {}

type Seeds = foldhash::fast::RandomState;

/// Returns true if `all` contains every value of `of`.
fn is_subset<P: Pace>(by: Sameness, of: &[Value], all: &[Value]) -> bool {
    if all.len() <= COMPARED_PAIRWISE_MAX {
        return of.iter().all(|x| is_among::<P>(by, x, all.iter()));
    }
    let member = |value| Member::<P>::new(by, value);
    let all: HashSet<_, Seeds> = all.iter().take_while(|_| P::has_time_for(1)).map(member).collect();
    of.iter().all(|x| P::has_time_for(1) && all.contains(&member(x)))
}

/// Returns true if `all` contains every entry of `of`.
fn is_submap<P: Pace>(by: Sameness, of: &[(Value, Value)], all: &[(Value, Value)]) -> bool {
    let is_entry = |(k, v): &(Value, Value), (k2, v2): &(Value, Value)| {
        P::has_time_for(2) && is_same::<P>(by, k, k2) && is_same::<P>(by, v, v2)
    };
    if all.len() <= COMPARED_PAIRWISE_MAX {
        return of.iter().all(|x| all.iter().any(|y| is_entry(x, y)));
    }
    let key = |value| Member::<P>::new(by, value);
    let entries = all.iter().take_while(|_| P::has_time_for(2));
    let all: HashMap<_, &Value, Seeds> = entries.map(|(k, v)| (key(k), v)).collect();
    of.iter().all(|(k, v)| P::has_time_for(2) && all.get(&key(k)).is_some_and(|there| is_same::<P>(by, v, there)))
}

/// Returns true if two trees have the same branches, in any order.
fn is_same_tree<P: Pace>(a: &Tree, b: &Tree) -> bool {
    let by = Sameness::Equivalent;
    if a.branches.len() != b.branches.len() {
        return false;
    }
    if b.branches.len() <= COMPARED_PAIRWISE_MAX {
        let there = |key| b.branches.iter().find(|(known, _)| P::has_time_for(1) && is_same::<P>(by, known, key));
        return a.branches.iter().all(|(key, below)| there(key).is_some_and(|(_, t)| is_same_tree::<P>(below, t)));
    }
    let key = |value| Member::<P>::new(by, value);
    let branches = b.branches.iter().take_while(|_| P::has_time_for(1));
    let all: HashMap<_, &Tree, Seeds> = branches.map(|(k, below)| (key(k), below)).collect();
    a.branches
        .iter()
        .all(|(k, below)| P::has_time_for(1) && all.get(&key(k)).is_some_and(|there| is_same_tree::<P>(below, there)))
}

/// Returns true if two graphs have the same vertices and edges, in any order.
fn is_same_graph<P: Pace>(a: &GraphValue, b: &GraphValue) -> bool {
    let same = |a: &[Value], b: &[Value]| a.len() == b.len() && is_subset::<P>(Sameness::Equivalent, a, b);
    same(&a.vertices, &b.vertices) && same(&a.edges, &b.edges)
}

impl Tree {
    /// The tree below the key that is equivalent to `key`.
    pub fn get(&self, key: &Value) -> Option<&Tree> {
        self.branches.iter().find(|(known, _)| super::equivalent(known, key)).map(|(_, below)| below)
    }
}
