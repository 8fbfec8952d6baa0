//! Comparability and orderability: the order within a type family, and the total order over all values (GRAPH-8).
//!
//! Collections are compared by recursion. Comparisons of long texts, of arrays and of collections ask their [`Pace`]
//! whether the query still runs. If it has ended, they return an arbitrary answer at once, and the executor discards the results.

use std::borrow::Cow;
use std::cmp::Ordering;

use super::is_number;
use super::watch::Pace;
use crate::pieces;
use crate::value::{Direction, Token, Tree, Value};

/// The order of two comparable values; `None` if they are not comparable.
pub(super) fn comparable<P: Pace>(a: &Value, b: &Value) -> Option<Ordering> {
    if is_number(a) && is_number(b) {
        return crate::numeric::compare(a, b);
    }
    match (a, b) {
        (Value::Null, Value::Null) => Some(Ordering::Equal),
        // Tokens and texts are one family, for the total order only: they are not comparable.
        _ if is_token(a) != is_token(b) => None,
        _ if family(a) == family(b) && !matches!(a, Value::Null) => match (a, b) {
            // Members of lists must be comparable, too, up to the first members that differ.
            (Value::List(x), Value::List(y)) => {
                for (x, y) in x.iter().zip(y.iter()) {
                    if !P::has_time_for(1) {
                        return None;
                    }
                    match comparable::<P>(x, y)? {
                        Ordering::Equal => {}
                        unequal => return Some(unequal),
                    }
                }
                Some(x.len().cmp(&y.len()))
            }
            // The numbers of arrays, too: NaN is not comparable.
            (Value::F32Array(x), Value::F32Array(y)) => {
                let has_time = P::has_time_for_bytes(size_of_val(&**x).min(size_of_val(&**y)));
                if has_time { x.partial_cmp(y) } else { None }
            }
            _ => Some(order::<P>(a, b)),
        },
        _ => None,
    }
}

/// The total order over all values: by type family, then within the family.
pub(super) fn order<P: Pace>(a: &Value, b: &Value) -> Ordering {
    family(a).cmp(&family(b)).then_with(|| within_family::<P>(a, b))
}

/// The order of two values of one type family.
fn within_family<P: Pace>(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Bool(x), Value::Bool(y)) => x.cmp(y),
        _ if is_number(a) && is_number(b) => order_numbers(a, b),
        (Value::DateTime(x), Value::DateTime(y)) => x.instant().cmp(&y.instant()),
        (Value::Duration(x), Value::Duration(y)) => x.cmp(y),
        (Value::String(x), Value::String(y)) if !P::has_time_for_bytes(x.len().min(y.len())) => Ordering::Less,
        (Value::String(x), Value::String(y)) => x.cmp(y),
        (Value::Char(x), Value::Char(y)) => x.cmp(y),
        (Value::String(x), Value::Char(y)) => x.as_str().cmp(y.encode_utf8(&mut [0; 4])),
        (Value::Char(x), Value::String(y)) => (*x.encode_utf8(&mut [0; 4])).cmp(y.as_str()),
        (Value::Uuid(x), Value::Uuid(y)) => x.cmp(y),
        (Value::Bytes(x), Value::Bytes(y)) if !P::has_time_for_bytes(x.len().min(y.len())) => Ordering::Less,
        (Value::Bytes(x), Value::Bytes(y)) => x.cmp(y),
        (Value::Vertex(x), Value::Vertex(y)) => x.cmp(y),
        (Value::Edge(x), Value::Edge(y)) => x.cmp(y),
        (Value::VertexProperty(x), Value::VertexProperty(y)) => {
            (x.vertex, x.key, x.ordinal).cmp(&(y.vertex, y.key, y.ordinal)).then_with(|| order::<P>(&x.value, &y.value))
        }
        (Value::Property(x), Value::Property(y)) => x.key.cmp(&y.key).then_with(|| order::<P>(&x.value, &y.value)),
        (Value::Path(x), Value::Path(y)) => order_all::<P>(&x.objects, &y.objects),
        (Value::List(x), Value::List(y)) => order_all::<P>(x, y),
        (Value::Set(x), Value::Set(y)) => order_sets::<P>(x, y),
        (Value::Map(x), Value::Map(y)) => order_maps::<P>(x, y),
        (Value::Entry(_), Value::Entry(_)) if !P::has_time_for(2) => Ordering::Less,
        (Value::Entry(x), Value::Entry(y)) => order::<P>(&x.0, &y.0).then_with(|| order::<P>(&x.1, &y.1)),
        (Value::BulkSet(x), Value::BulkSet(y)) => {
            order_each::<P, _>(x, y, |(x, n), (y, m)| order::<P>(x, y).then_with(|| n.cmp(m)))
        }
        (Value::F32Array(x), Value::F32Array(y)) => {
            let has_time = P::has_time_for_bytes(size_of_val(&**x).min(size_of_val(&**y)));
            if has_time { order_floats(x, y) } else { Ordering::Less }
        }
        (Value::Tree(x), Value::Tree(y)) => order_trees::<P>(x, y),
        (Value::Graph(x), Value::Graph(y)) => {
            order_sets::<P>(&x.vertices, &y.vertices).then_with(|| order_sets::<P>(&x.edges, &y.edges))
        }
        _ if is_token(a) || is_token(b) => spelled(a).cmp(&spelled(b)).then_with(|| rank(a).cmp(&rank(b))),
        _ => Ordering::Equal,
    }
}

fn is_token(value: &Value) -> bool {
    matches!(value, Value::Token(_) | Value::Direction(_))
}

/// The spelling of a text or a token. The total order sorts texts and tokens together by their spelling, because the
/// keys of an `elementMap()` are both.
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

/// The position of a text, and of tokens, among values with the same spelling.
fn rank(value: &Value) -> u8 {
    match value {
        Value::Token(_) => 1,
        Value::Direction(_) => 2,
        _ => 0,
    }
}

/// The order of numbers. NaN comes after all other numbers, which makes the order total.
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

/// The order of two arrays, number by number: as [`order_numbers`] orders single numbers.
fn order_floats(a: &[f32], b: &[f32]) -> Ordering {
    let order = |(a, b): (&f32, &f32)| a.partial_cmp(b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()));
    a.iter().zip(b).map(order).find(|order| order.is_ne()).unwrap_or_else(|| a.len().cmp(&b.len()))
}

fn order_all<P: Pace>(a: &[Value], b: &[Value]) -> Ordering {
    order_each::<P, _>(a, b, order::<P>)
}

/// The order of two sequences: the order of the first members that differ or, if none differ, of the lengths.
fn order_each<P: Pace, T>(a: &[T], b: &[T], order: impl Fn(&T, &T) -> Ordering) -> Ordering {
    let order = |(a, b)| if P::has_time_for(1) { order(a, b) } else { Ordering::Less };
    a.iter().zip(b).map(order).find(|o| o.is_ne()).unwrap_or_else(|| a.len().cmp(&b.len()))
}

/// The members, sorted by the value that `key` returns for each.
fn sorted<P: Pace, T>(members: &[T], key: impl Fn(&T) -> &Value) -> Vec<&T> {
    let mut sorted: Vec<&T> = members.iter().collect();
    let check = || if P::has_time_for(1) { Ok(()) } else { Err(()) };
    // If the sort fails, the query has ended, and the executor discards the results.
    let _ = pieces::sort(&mut sorted, pieces::MERGED, check, |a, b| order::<P>(key(a), key(b)));
    sorted
}

/// The order of two sets: the order of their members, sorted.
fn order_sets<P: Pace>(a: &[Value], b: &[Value]) -> Ordering {
    let sorted = |values| sorted::<P, _>(values, |value| value);
    order_each::<P, _>(&sorted(a), &sorted(b), |a, b| order::<P>(a, b))
}

/// The order of two maps: the order of their entries, sorted by key.
fn order_maps<P: Pace>(a: &[(Value, Value)], b: &[(Value, Value)]) -> Ordering {
    let sorted = |entries| sorted::<P, _>(entries, |(key, _)| key);
    order_each::<P, _>(&sorted(a), &sorted(b), |(k, v), (k2, v2)| order::<P>(k, k2).then_with(|| order::<P>(v, v2)))
}

/// The order of two trees: the order of their branches, sorted by key. A key is compared before the tree below it.
fn order_trees<P: Pace>(a: &Tree, b: &Tree) -> Ordering {
    let [a, b] = [a, b].map(|tree| sorted::<P, _>(&tree.branches, |(key, _)| key));
    order_each::<P, _>(&a, &b, |(k, t), (k2, t2)| order::<P>(k, k2).then_with(|| order_trees::<P>(t, t2)))
}

/// The position of the value's type family in the total order.
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
