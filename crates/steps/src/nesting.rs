//! How deep collections may nest in one another.
//!
//! Values are dropped, compared and encoded by recursion, so their depth must have a bound. One chain of steps wraps
//! an object at most as often as the plan allows ([`LEVELS_MAX`](mangrove_plan::limits::LEVELS_MAX)). Two things come to
//! the same step again, and could wrap for ever: a loop (`repeat(fold())`) and a side effect that is put into itself
//! (`sideEffect(cap('x').aggregate('x'))`). What a loop carries from one iteration to the next, and what is put into a
//! side effect, is looked at here.

use std::sync::Arc;

use mangrove_flow::QueryContext;
use mangrove_graph::{Error, Result, Tree, Value};

/// The deepest nesting of what a loop carries or a side effect holds.
pub const NESTING_MAX: u32 = 256;

/// The most collections in one such value. They may be shared and take little memory: doubling in
/// every iteration, they would still be without end for a reader that walks through them.
const COLLECTIONS_MAX: u32 = 1 << 22;

/// The most collections in one result or parameter.
const RETURNED_COLLECTIONS_MAX: u32 = 1 << 24;

/// Fails if one of these values nests too deep, or holds too many collections; looks at the limits of the query between
/// two collections. A collection that stands twice in a row is looked at once.
pub fn check_all<'a>(values: impl IntoIterator<Item = &'a Value>, context: &QueryContext) -> Result<()> {
    let mut last = &Value::Null;
    for value in values.into_iter().filter(|value| is_collection(value)) {
        if !is_same(value, last) {
            context.check()?;
            check(value)?;
            last = value;
        }
    }
    Ok(())
}

/// Fails if what is returned holds so many collections that writing it out has no end in sight.
pub fn check_results<'a>(values: impl IntoIterator<Item = &'a Value>, context: &QueryContext) -> Result<()> {
    for value in values.into_iter().filter(|value| is_collection(value)) {
        context.check()?;
        let mut left = RETURNED_COLLECTIONS_MAX;
        if !fits(value, u32::MAX, &mut left) {
            return Err(Error::evaluation(format!(
                "a result holds more than {RETURNED_COLLECTIONS_MAX} collections; return its parts one by one (unfold())"
            )));
        }
    }
    Ok(())
}

/// Fails for a parameter that nests too deep: a session may keep a result in a variable and wrap it in every request.
pub fn check_parameter(name: &str, value: &Value) -> Result<()> {
    let mut left = RETURNED_COLLECTIONS_MAX;
    match fits(value, NESTING_MAX, &mut left) {
        true => Ok(()),
        false => Err(Error::invalid(format!(
            "the value of `{name}` nests more than {NESTING_MAX} deep or holds more than {RETURNED_COLLECTIONS_MAX} \
             collections"
        ))),
    }
}

fn is_collection(value: &Value) -> bool {
    matches!(
        value,
        Value::List(_)
            | Value::Set(_)
            | Value::Map(_)
            | Value::Entry(_)
            | Value::BulkSet(_)
            | Value::Path(_)
            | Value::Tree(_)
            | Value::Graph(_)
    )
}

/// Returns true if two values are one collection in memory.
fn is_same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::List(a), Value::List(b)) | (Value::Set(a), Value::Set(b)) => Arc::ptr_eq(a, b),
        (Value::Map(a), Value::Map(b)) => Arc::ptr_eq(a, b),
        (Value::BulkSet(a), Value::BulkSet(b)) => Arc::ptr_eq(a, b),
        _ => false,
    }
}

/// Fails for a value that nests too deep, or holds too many collections.
pub fn check(value: &Value) -> Result<()> {
    let mut left = COLLECTIONS_MAX;
    if fits(value, NESTING_MAX, &mut left) {
        return Ok(());
    }
    Err(Error::evaluation(format!(
        "a loop or a side effect holds a collection that nests more than {NESTING_MAX} deep or holds more than \
         {COLLECTIONS_MAX} others; unfold() it before it is carried on"
    )))
}

fn fits(value: &Value, depth: u32, left: &mut u32) -> bool {
    match value {
        Value::List(values) | Value::Set(values) => all_fit(values.iter(), depth, left),
        Value::Map(entries) => all_fit(entries.iter().flat_map(|(key, value)| [key, value]), depth, left),
        Value::Entry(entry) => all_fit([&entry.0, &entry.1].into_iter(), depth, left),
        Value::BulkSet(values) => all_fit(values.iter().map(|(value, _)| value), depth, left),
        Value::Path(path) => all_fit(path.objects.iter(), depth, left),
        Value::Tree(tree) => fits_tree(tree, depth, left),
        Value::Graph(graph) => all_fit(graph.vertices.iter().chain(&graph.edges), depth, left),
        _ => true,
    }
}

fn fits_tree(tree: &Tree, depth: u32, left: &mut u32) -> bool {
    all_fit(tree.branches.iter().map(|(key, _)| key), depth, left)
        && tree.branches.iter().all(|(_, below)| depth > 0 && fits_tree(below, depth - 1, left))
}

fn all_fit<'a>(mut values: impl Iterator<Item = &'a Value>, depth: u32, left: &mut u32) -> bool {
    if depth == 0 || *left == 0 {
        return false;
    }
    *left -= 1;
    values.all(|value| fits(value, depth - 1, left))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_and_size_have_bounds() {
        let wrapped = |times: u32| (0..times).fold(Value::Null, |value, _| Value::list(vec![value]));
        assert!(check(&wrapped(NESTING_MAX)).is_ok());
        assert!(check(&wrapped(NESTING_MAX + 1)).is_err());
        let doubled = |times: u32| (0..times).fold(Value::list(vec![]), |v, _| Value::list(vec![v.clone(), v]));
        assert!(check(&doubled(10)).is_ok());
        assert!(check(&doubled(200)).is_err());
        assert!(check(&Value::list(vec![Value::Null; 2_000_000])).is_ok());
    }
}
