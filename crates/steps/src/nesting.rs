//! How deep collections may nest in one another.
//!
//! Values are dropped, compared and encoded by recursion, so their depth must have a bound. One chain of steps wraps
//! an object as often as it has steps, which the size of a plan bounds; a loop could go on for ever
//! (`repeat(fold())`), so what it carries from one iteration to the next is looked at here.

use mangrove_graph::{Error, Result, Tree, Value};

/// The deepest nesting a loop may carry.
pub const NESTING_MAX: u32 = 256;

/// The most collections in one value that a loop may carry. They may be shared and take little memory: doubling in
/// every iteration, they would still be without end for whoever walks through them.
const COLLECTIONS_MAX: u32 = 1 << 20;

/// Fails for a value that nests too deep, or holds too many collections.
pub fn check(value: &Value) -> Result<()> {
    let mut left = COLLECTIONS_MAX;
    if fits(value, NESTING_MAX, &mut left) {
        return Ok(());
    }
    Err(Error::evaluation(format!(
        "repeat() carries a collection that nests more than {NESTING_MAX} deep or holds more than {COLLECTIONS_MAX} \
         others; unfold() it before the next iteration"
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
