//! The way a traverser came: a list that shares its beginnings.

use std::sync::Arc;

use mangrove_graph::{Error, PathValue, Result, Value};
use mangrove_plan::logical::{Name, Segment};

/// A remembered way; `None` is the empty one.
pub type Path = Option<Arc<PathNode>>;

/// The last object of a path, and the path before it.
#[derive(Debug)]
pub struct PathNode {
    /// The object.
    pub object: Value,
    /// The labels of the step that made it.
    pub labels: Vec<Name>,
    /// The way up to here.
    pub previous: Path,
}

impl PathNode {
    /// A path with one more object.
    pub fn extend(previous: Path, object: Value, labels: &[Name]) -> Path {
        Some(Arc::new(PathNode { object, labels: labels.to_vec(), previous }))
    }
}

/// The same path, its last object with these labels too. An empty path stays empty.
pub fn relabel(path: &Path, labels: &[Name]) -> Path {
    path.as_ref().map(|node| {
        let mut all = node.labels.clone();
        all.extend(labels.iter().filter(|l| !node.labels.contains(l)).cloned());
        Arc::new(PathNode { object: node.object.clone(), labels: all, previous: node.previous.clone() })
    })
}

/// The nodes, newest first.
pub fn newest_first(path: &Path) -> impl Iterator<Item = &PathNode> {
    std::iter::successors(path.as_deref(), |node| node.previous.as_deref())
}

/// The objects, oldest first.
pub fn objects(path: &Path) -> Vec<Value> {
    let mut objects: Vec<Value> = newest_first(path).map(|node| node.object.clone()).collect();
    objects.reverse();
    objects
}

/// The path as a value.
pub fn to_value(path: &Path) -> PathValue {
    let mut labels: Vec<Vec<Name>> = newest_first(path).map(|node| node.labels.clone()).collect();
    labels.reverse();
    PathValue { objects: objects(path), labels }
}

/// A part of the path as a value. A label that is not there is an error.
pub fn segment(path: &Path, segment: &Segment) -> Result<PathValue> {
    let mut value = to_value(path);
    if *segment == Segment::default() {
        return Ok(value);
    }
    let place = |label: &Option<Name>, end: &str| {
        let Some(label) = label else { return Ok(None) };
        let found = value.labels.iter().rposition(|labels| labels.contains(label));
        found.map(Some).ok_or_else(|| {
            Error::evaluation(format!(
                "Could not locate path {end}-label: {label}; as('{label}') puts it on a step before"
            ))
        })
    };
    let start = place(&segment.from, "from")?.unwrap_or(0);
    let end = place(&segment.to, "to")?.map_or(value.objects.len(), |at| at + 1);
    let start = start.min(end);
    value.objects = value.objects[start..end].to_vec();
    value.labels = value.labels[start..end].to_vec();
    Ok(value)
}

/// A path may be as long as memory allows: it is taken apart in a loop, not by recursion.
impl Drop for PathNode {
    fn drop(&mut self) {
        let mut next = self.previous.take();
        while let Some(node) = next {
            match Arc::try_unwrap(node) {
                Ok(mut node) => next = node.previous.take(),
                Err(_) => break,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_path_is_dropped_without_recursion() {
        let mut path = None;
        for n in 0..1_000_000 {
            path = PathNode::extend(path, Value::I32(n), &[]);
        }
        assert_eq!(newest_first(&path).count(), 1_000_000);
        drop(path);
    }

    #[test]
    fn labels_join_the_last_object() {
        let path = PathNode::extend(None, Value::I32(1), &["a".into()]);
        let path = relabel(&path, &["b".into(), "a".into()]);
        assert_eq!(to_value(&path).labels, vec![vec![Name::from("a"), Name::from("b")]]);
        assert!(relabel(&None, &["a".into()]).is_none());
    }
}
