//! The way a traverser came: a list that shares its beginnings.
//!
//! Which rows share a beginning changes all the time, so no batch can say what its paths take. Each object of a path is
//! charged to the query when it is first sent, and given back when the last path with it is gone. They are many and small: to
//! charge each by itself would cost as much as to make it. So one of them carries the charge of about [`SAMPLE_BYTES`].

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use mangrove_flow::{Charge, QueryContext};
use mangrove_graph::{Error, PathValue, Result, Value};
use mangrove_plan::logical::{Name, Segment};

use crate::size::Sizes;

/// A remembered way; `None` is the empty one.
pub type Path = Option<Arc<PathNode>>;

/// The last object of a path, and the path before it.
#[derive(Debug)]
pub struct PathNode {
    /// The object.
    pub object: Value,
    /// The labels of the step that made it.
    pub labels: Box<[Name]>,
    /// The way up to here.
    pub previous: Path,
    /// Whether the query is charged for it.
    is_charged: AtomicBool,
    /// The charge, if this is the node of its sample that carries it.
    charge: OnceLock<Box<Charge>>,
}

/// A node carries the charge for about so many bytes of nodes.
const SAMPLE_BYTES: u64 = 4 << 10;

impl PathNode {
    fn new(previous: Path, object: Value, labels: Box<[Name]>) -> Arc<Self> {
        Arc::new(PathNode { object, labels, previous, is_charged: AtomicBool::new(false), charge: OnceLock::new() })
    }

    /// A path with one more object.
    pub fn extend(previous: Path, object: Value, labels: &[Name]) -> Path {
        Some(PathNode::new(previous, object, labels.into()))
    }

    /// What it takes itself: without the nodes before it, and with its part of what other values share.
    fn bytes(&self, sizes: &mut Sizes) -> u64 {
        /// The counts of who holds it.
        const COUNTS: usize = 2 * size_of::<usize>();
        (COUNTS + size_of::<Self>() + size_of_val(&*self.labels) + sizes.behind(&self.object)) as u64
    }
}

/// Charges the query for the newest objects of these paths that it is not charged for yet.
pub fn charge_newest(paths: &[Path], context: &Arc<QueryContext>) -> Result<()> {
    let mut nodes = paths.iter().flatten().filter(|node| !node.is_charged.load(Ordering::Relaxed)).peekable();
    if nodes.peek().is_none() {
        return Ok(());
    }
    let mut sizes = Sizes::default();
    let mut gathered = context.sample_start() % SAMPLE_BYTES;
    for node in nodes {
        node.is_charged.store(true, Ordering::Relaxed);
        gathered += node.bytes(&mut sizes);
        if gathered >= SAMPLE_BYTES {
            let charge = context.charge_while(std::mem::take(&mut gathered))?;
            // If another thread was here at the same time, its charge counts, and this one is given back.
            let _ = node.charge.set(Box::new(charge));
        }
    }
    Ok(())
}

/// The same path, its last object with these labels too. An empty path stays empty.
pub fn relabel(path: &Path, labels: &[Name]) -> Path {
    path.as_ref().map(|node| {
        let more = labels.iter().filter(|label| !node.labels.contains(label));
        let all = node.labels.iter().chain(more).cloned().collect();
        PathNode::new(node.previous.clone(), node.object.clone(), all)
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
    let mut labels: Vec<Vec<Name>> = newest_first(path).map(|node| node.labels.to_vec()).collect();
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

    /// However paths come, row by row or a thousand at a time: the query is charged for about what they take, and gets it
    /// back when they are gone.
    #[test]
    fn paths_are_charged_while_there_are_any() {
        let context = Arc::new(crate::meter::limited_context(u64::MAX, None));
        let bytes = |node: &Path| node.as_ref().unwrap().bytes(&mut Sizes::default());
        for rows in [1, 7, 1_000] {
            let mut paths: Vec<Path> = vec![None; rows];
            let mut taken = 0;
            for n in 0..70_000 / rows as i32 {
                paths.iter_mut().for_each(|path| *path = PathNode::extend(path.take(), Value::I32(n), &[]));
                taken += paths.iter().map(bytes).sum::<u64>();
                charge_newest(&paths, &context).unwrap();
                charge_newest(&paths, &context).unwrap();
            }
            let charged = context.memory();
            assert!(charged.abs_diff(taken) < taken / 50, "{charged} charged for {taken} of {rows} rows");
            let others = paths.clone();
            drop(paths);
            assert_eq!(context.memory(), charged);
            drop(others);
            assert_eq!(context.memory(), 0);
        }
        let long = PathNode::extend(None, Value::from("x".repeat(100_000)), &[]);
        charge_newest(&[long.clone(), None], &context).unwrap();
        assert!(context.memory() > 100_000);
        let narrow = Arc::new(crate::meter::limited_context(10_000, None));
        let paths: Vec<Path> = (0..1_000).map(|n| PathNode::extend(None, Value::I32(n), &[])).collect();
        assert!(charge_newest(&paths, &narrow).is_err());
        drop(paths);
        assert_eq!(narrow.memory(), 0);
    }

    #[test]
    fn labels_join_the_last_object() {
        let path = PathNode::extend(None, Value::I32(1), &["a".into()]);
        let path = relabel(&path, &["b".into(), "a".into()]);
        assert_eq!(to_value(&path).labels, vec![vec![Name::from("a"), Name::from("b")]]);
        assert!(relabel(&None, &["a".into()]).is_none());
    }
}
