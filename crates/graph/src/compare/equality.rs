//! Equality and equivalence: when two values are the same.
//!
//! Collections are compared by recursion, sets and maps without regard to order. A set may have several members that are
//! equal, because its members differ under equivalence only: `{1, 1.0}`. So each member of one set needs a member of the
//! other for itself, and `{1, 1.0}` differs from `{1, 2}`.
//!
//! Comparisons of collections, texts and arrays ask their [`Pace`] whether the query still runs. If it has ended, they return an arbitrary answer at once,
//! and the executor discards the results. The hashes in `hash.rs` must agree with the answers here (GRAPH-8).

use std::cmp::Ordering;
use std::collections::HashMap;
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
        (Value::Set(x), Value::Set(y)) => {
            shares_memory(by, x, y) || (x.len() == y.len() && are_members_in::<P>(by, x, y))
        }
        (Value::Map(x), Value::Map(y)) => {
            shares_memory(by, x, y) || (x.len() == y.len() && are_entries_in::<P>(by, x, y))
        }
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

/// A member of a set, or a key or value of a map, in a hash table.
struct Member<'a, P>(Sameness, &'a Value, PhantomData<P>);

impl<'a, P: Pace> Member<'a, P> {
    fn new(by: Sameness, value: &'a Value) -> Self {
        Member(by, value, PhantomData)
    }

    /// Key and value of an entry of a map.
    fn pair(by: Sameness, (key, value): &'a (Value, Value)) -> (Self, Self) {
        (Member::new(by, key), Member::new(by, value))
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

/// Returns true if each value of `of` has a value of `all` for itself that is the same.
fn are_members_in<P: Pace>(by: Sameness, of: &[Value], all: &[Value]) -> bool {
    if all.len() <= COMPARED_PAIRWISE_MAX {
        let is_value = |x: &Value, y: &Value| P::has_time_for(1) && is_same::<P>(by, x, y);
        return are_paired(of, all, is_value);
    }
    let member = |value| Member::<P>::new(by, value);
    are_counted_in::<P, _>(of.iter().map(member), all.iter().map(member))
}

/// Returns true if each entry of `of` has an entry of `all` for itself that is the same.
fn are_entries_in<P: Pace>(by: Sameness, of: &[(Value, Value)], all: &[(Value, Value)]) -> bool {
    if all.len() <= COMPARED_PAIRWISE_MAX {
        let is_entry = |(k, v): &(Value, Value), (k2, v2): &(Value, Value)| {
            P::has_time_for(2) && is_same::<P>(by, k, k2) && is_same::<P>(by, v, v2)
        };
        return are_paired(of, all, is_entry);
    }
    let member = |value| Member::<P>::new(by, value);
    let entries = all.iter().take_while(|_| P::has_time_for(2));
    let mut by_key: HashMap<_, &Value, Seeds> = entries.map(|(k, v)| (member(k), v)).collect();
    if by_key.len() == all.len() {
        let mut is_entry = |k, v| by_key.remove(&member(k)).is_some_and(|there| is_same::<P>(by, v, there));
        return of.iter().all(|(k, v)| P::has_time_for(2) && is_entry(k, v));
    }
    // Some keys are equal, so a key does not say which value to compare. Only then the values are hashed, too.
    let pair = |entry| Member::<P>::pair(by, entry);
    are_counted_in::<P, _>(of.iter().map(pair), all.iter().map(pair))
}

/// Returns true if each item of `of` has an item of `all` for itself, as `is_same` says. `all` is short.
fn are_paired<T>(of: &[T], all: &[T], is_same: impl Fn(&T, &T) -> bool) -> bool {
    let mut is_taken = [false; COMPARED_PAIRWISE_MAX];
    of.iter().all(|x| {
        let found = all.iter().zip(&mut is_taken).find(|(y, is_taken)| !**is_taken && is_same(x, y));
        found.map(|(_, is_taken)| *is_taken = true).is_some()
    })
}

/// Returns true if `all` has each item of `of` at least as often as `of` has it.
fn are_counted_in<P: Pace, T: Hash + Eq>(mut of: impl Iterator<Item = T>, all: impl Iterator<Item = T>) -> bool {
    let mut counts: HashMap<T, usize, Seeds> = HashMap::default();
    for item in all.take_while(|_| P::has_time_for(1)) {
        *counts.entry(item).or_default() += 1;
    }
    of.all(|item| {
        P::has_time_for(1)
            && counts.get_mut(&item).is_some_and(|left| {
                let is_left = *left > 0;
                *left = left.saturating_sub(1);
                is_left
            })
    })
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
    let same = |a: &[Value], b: &[Value]| a.len() == b.len() && are_members_in::<P>(Sameness::Equivalent, a, b);
    same(&a.vertices, &b.vertices) && same(&a.edges, &b.edges)
}

impl Tree {
    /// The tree below the key that is equivalent to `key`.
    pub fn get(&self, key: &Value) -> Option<&Tree> {
        self.branches.iter().find(|(known, _)| super::equivalent(known, key)).map(|(_, below)| below)
    }
}
