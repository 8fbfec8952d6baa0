//! Compares two answers, as far as Gremlin determines them.
//!
//! Each value first gets a [`Canonical`] form:
//!
//! - An element becomes its kind, id and label. All automatic ids are equal, because each side assigns its own.
//! - Sets and maps lose their order; so do lists, if the case says that their order is not determined.
//! - Floats are equal within a tolerance, because a sum may be computed in any order.
//! - Integers of up to 32 bits are equal regardless of width, because the point at which a sum widens depends on that
//!   order.

use mangrove_graph::{Detached, Token, Tree, Value};
use smol_str::SmolStr;

use crate::graph::AUTOMATIC_ID_MIN;

/// How much of the order of results is determined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Determinism {
    /// The results in sequence.
    Ordered,
    /// The results in any order.
    Multiset,
    /// Only the number of results is compared, because which results remain depends on an unspecified order.
    CountOnly,
}

/// How much of a value survives the encoding of the engine's answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// The whole value.
    #[default]
    Whole,
    /// Sets and multisets become lists, and maps have strings for keys, as in GraphSON 2.
    ListsOnly,
    /// JSON values: numbers have no width, and dates and elements are lost.
    Json,
}

impl Form {
    /// Returns true if the encoding keeps the whole value.
    pub fn holds(self, value: &Value) -> bool {
        let all = |values: &[Value]| values.iter().all(|value| self.holds(value));
        let plain = self != Form::Json;
        match value {
            _ if self == Form::Whole => true,
            Value::List(v) | Value::Set(v) => all(v),
            Value::BulkSet(v) => v.iter().all(|(value, _)| self.holds(value)),
            Value::Map(m) => m.iter().all(|(key, value)| matches!(key, Value::String(_)) && self.holds(value)),
            Value::Path(p) => plain && all(&p.objects),
            Value::Null | Value::Bool(_) | Value::String(_) | Value::I8(_) | Value::I16(_) | Value::I32(_) => true,
            Value::I64(n) => plain || i32::try_from(*n).is_ok(),
            Value::F64(n) => plain || (n.is_finite() && n.fract() != 0.0),
            Value::Tree(_) | Value::Graph(_) => false,
            _ => plain,
        }
    }
}

/// How an answer may be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expectation {
    /// The order of results.
    pub rows: Determinism,
    /// Lists were folded from a stream without an order: they are compared as multisets.
    pub lists_unordered: bool,
    /// The maps of the answer were sorted last: they are compared as sequences.
    pub maps_ordered: bool,
    /// How much of the values survives.
    pub form: Form,
}

impl Default for Expectation {
    fn default() -> Self {
        Expectation { rows: Determinism::Multiset, lists_unordered: true, maps_ordered: false, form: Form::Whole }
    }
}

/// A value in the form in which it is compared.
#[derive(Clone, Debug)]
enum Canonical {
    /// An integer: width class and value.
    Integer(u8, i64),
    /// A float: width class and value.
    Float(u8, f64),
    /// A value without parts, in its debug form.
    Atom(String),
    /// A name and an ordered list of parts.
    Sequence(&'static str, Vec<Canonical>),
    /// A name and an unordered collection of parts.
    Bag(&'static str, Vec<Canonical>),
}

/// Returns where two answers differ, or `None`.
pub fn difference(expectation: &Expectation, ours: &[Value], theirs: &[Value]) -> Option<String> {
    if ours.len() != theirs.len() {
        return Some(format!("{} results against {}", ours.len(), theirs.len()));
    }
    let form = |values: &[Value]| values.iter().map(|v| canonical(expectation, v)).collect::<Vec<_>>();
    match expectation.rows {
        Determinism::CountOnly => None,
        Determinism::Ordered => {
            let (ours, theirs) = (form(ours), form(theirs));
            let at = (0..ours.len()).find(|&i| !same(&ours[i], &theirs[i]))?;
            Some(format!("result {at}: {:?} against {:?}", ours[at], theirs[at]))
        }
        Determinism::Multiset => {
            let (ours, theirs) = (form(ours), form(theirs));
            let missing = unmatched(&ours, &theirs)?;
            Some(format!("only the first answer has {missing:?}"))
        }
    }
}

fn canonical(e: &Expectation, value: &Value) -> Canonical {
    let all = |values: &[Value]| values.iter().map(|v| canonical(e, v)).collect::<Vec<_>>();
    match value {
        Value::I8(n) => Canonical::Integer(32, i64::from(*n)),
        Value::I16(n) => Canonical::Integer(32, i64::from(*n)),
        Value::I32(n) => Canonical::Integer(32, i64::from(*n)),
        Value::I64(n) => Canonical::Integer(if e.form == Form::Json { 32 } else { 64 }, *n),
        Value::F32(n) => Canonical::Float(32, f64::from(*n)),
        Value::F64(n) => Canonical::Float(64, *n),
        // If sets arrive as lists, a list may have been either.
        Value::List(v) if e.lists_unordered || e.form != Form::Whole => Canonical::Bag("list", all(v)),
        Value::List(v) => Canonical::Sequence("list", all(v)),
        Value::Set(v) => Canonical::Bag(if e.form == Form::Whole { "set" } else { "list" }, all(v)),
        Value::BulkSet(v) => Canonical::Bag(
            if e.form == Form::Whole { "bulk set" } else { "list" },
            v.iter()
                .flat_map(|(v, n)| std::iter::repeat_n(canonical(e, v), usize::try_from(*n).unwrap_or(usize::MAX)))
                .collect(),
        ),
        Value::Map(m) => {
            // The order is that of the outer map; maps in its values keep none.
            let inside = Expectation { maps_ordered: false, ..*e };
            let entries = m.iter().map(|(k, v)| canonical_entry(&inside, k, v)).collect();
            if e.maps_ordered && e.form == Form::Whole {
                Canonical::Sequence("map", entries)
            } else {
                Canonical::Bag("map", entries)
            }
        }
        Value::Path(p) => {
            let labels = p
                .labels
                .iter()
                .map(|names| Canonical::Bag("labels", names.iter().map(|n| Canonical::Atom(n.to_string())).collect()));
            let mut parts = all(&p.objects);
            parts.extend(labels);
            Canonical::Sequence("path", parts)
        }
        Value::Tree(tree) => canonical_tree(e, tree),
        Value::Graph(graph) => Canonical::Sequence(
            "graph",
            vec![Canonical::Bag("vertices", all(&graph.vertices)), Canonical::Bag("edges", all(&graph.edges))],
        ),
        Value::Detached(d) => detached(e, d),
        other => Canonical::Atom(format!("{other:?}")),
    }
}

fn canonical_tree(e: &Expectation, tree: &Tree) -> Canonical {
    let branch =
        |(key, below): &(Value, Tree)| Canonical::Sequence("branch", vec![canonical(e, key), canonical_tree(e, below)]);
    Canonical::Bag("tree", tree.branches.iter().map(branch).collect())
}

fn canonical_entry(e: &Expectation, key: &Value, value: &Value) -> Canonical {
    let value = if *key == Value::Token(Token::Id) { id(value) } else { canonical(e, value) };
    Canonical::Sequence("entry", vec![canonical(e, key), value])
}

fn detached(e: &Expectation, element: &Detached) -> Canonical {
    let name = |s: &str| Canonical::Atom(s.to_owned());
    match element {
        Detached::Vertex { id: user, label, .. } => Canonical::Sequence("vertex", vec![id(user), name(label)]),
        Detached::Edge { id: user, label, source, target, .. } => {
            Canonical::Sequence("edge", vec![id(user), name(label), id(&source.0), id(&target.0)])
        }
        Detached::VertexProperty(p) => {
            let pair =
                |(key, value): &(SmolStr, Value)| Canonical::Sequence("meta", vec![name(key), canonical(e, value)]);
            let meta = Canonical::Bag("meta-properties", p.meta.iter().map(pair).collect());
            Canonical::Sequence("vertex property", vec![name(&p.key), canonical(e, &p.value), meta])
        }
        Detached::Property { key, value } => Canonical::Sequence("property", vec![name(key), canonical(e, value)]),
    }
}

/// Replaces the ids in a value: a user id becomes its integer, and all automatic ids become one.
fn id(value: &Value) -> Canonical {
    match mangrove_graph::numeric::integer(value) {
        Some(n) if n >= AUTOMATIC_ID_MIN => Canonical::Atom("an automatic id".into()),
        Some(n) => Canonical::Integer(64, n),
        None => Canonical::Atom(format!("{value:?}")),
    }
}

fn same(a: &Canonical, b: &Canonical) -> bool {
    match (a, b) {
        (Canonical::Integer(w, x), Canonical::Integer(v, y)) => w == v && x == y,
        (Canonical::Float(w, x), Canonical::Float(v, y)) => w == v && close(*w, *x, *y),
        (Canonical::Atom(x), Canonical::Atom(y)) => x == y,
        (Canonical::Sequence(n, x), Canonical::Sequence(m, y)) => {
            n == m && x.len() == y.len() && x.iter().zip(y).all(|(x, y)| same(x, y))
        }
        (Canonical::Bag(n, x), Canonical::Bag(m, y)) => n == m && x.len() == y.len() && unmatched(x, y).is_none(),
        _ => false,
    }
}

fn close(width: u8, a: f64, b: f64) -> bool {
    let tolerance = if width == 32 { 1e-5 } else { 1e-9 };
    (a.is_nan() && b.is_nan()) || a == b || (a - b).abs() <= tolerance * a.abs().max(b.abs()).max(1.0)
}

/// Returns a member of `a` without a partner in `b`. Both have the same length, and each member has one partner at
/// most.
fn unmatched<'a>(a: &'a [Canonical], b: &[Canonical]) -> Option<&'a Canonical> {
    let mut free: Vec<&Canonical> = b.iter().collect();
    for x in a {
        match free.iter().position(|y| same(x, y)) {
            // Searching in order matches two equal sequences in one pass.
            Some(at) => drop(free.remove(at)),
            None => return Some(x),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn multiset() -> Expectation {
        Expectation::default()
    }

    #[test]
    fn order_counts_only_where_it_is_promised() {
        let (a, b) = ([Value::I32(1), Value::I32(2)], [Value::I32(2), Value::I32(1)]);
        assert_eq!(difference(&multiset(), &a, &b), None);
        let ordered = Expectation { rows: Determinism::Ordered, ..multiset() };
        assert!(difference(&ordered, &a, &b).is_some());
        let count = Expectation { rows: Determinism::CountOnly, ..multiset() };
        assert_eq!(difference(&count, &a, &[Value::Null, Value::Null]), None);
        assert!(difference(&count, &a, &[Value::Null]).is_some());
    }

    #[test]
    fn multiplicity_type_and_tolerance_count() {
        let (x, y) = (Value::I32(1), Value::I32(2));
        assert!(difference(&multiset(), &[x.clone(), x.clone(), y.clone()], &[x.clone(), y.clone(), y]).is_some());
        assert!(difference(&multiset(), std::slice::from_ref(&x), &[Value::I64(1)]).is_some());
        assert!(difference(&multiset(), &[x], &[Value::F64(1.0)]).is_some());
        assert_eq!(difference(&multiset(), &[Value::F64(0.1 + 0.2)], &[Value::F64(0.3)]), None);
        assert_eq!(difference(&multiset(), &[Value::F64(f64::NAN)], &[Value::F64(f64::NAN)]), None);
    }

    #[test]
    fn lists_and_maps_compare_as_the_case_says() {
        let list = |a, b| [Value::list(vec![Value::I32(a), Value::I32(b)])];
        assert_eq!(difference(&multiset(), &list(1, 2), &list(2, 1)), None);
        let fixed = Expectation { lists_unordered: false, maps_ordered: true, ..multiset() };
        assert!(difference(&fixed, &list(1, 2), &list(2, 1)).is_some());
        let entry = |n: i32| (Value::I32(n), Value::Null);
        let (a, b) = ([Value::map(vec![entry(1), entry(2)])], [Value::map(vec![entry(2), entry(1)])]);
        assert_eq!(difference(&multiset(), &a, &b), None);
        assert!(difference(&fixed, &a, &b).is_some());
    }
}
