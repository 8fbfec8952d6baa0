//! Paths of traversers: linked lists, newest object first, that share their beginnings.
//!
//! - **STEPS-10.** Each node of a path is charged to the query once, when it is first sent, and released when its last
//!   holder drops it. Which rows share a beginning changes all the time, so no batch can tell what its paths take.
//!
//! Nodes are many and small: charging each one would cost as much as making it. So one node carries the charge for
//! about [`SAMPLE_BYTES`] of nodes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use mangrove_flow::{Charge, QueryControl};
use mangrove_graph::{Error, PathValue, Result, Value};
use mangrove_plan::logical::{Name, Segment};

use crate::limits::sizes::Sizes;

/// The path of a traverser; `None` is the empty path.
pub(crate) type Path = Option<Arc<PathNode>>;

/// The last object of a path, and the path before it.
#[derive(Debug)]
pub(crate) struct PathNode {
    /// The last object of the path.
    pub object: Value,
    /// The labels of the step that made it.
    pub labels: Box<[Name]>,
    /// The path before this object.
    pub previous: Path,
    /// True once the node has been counted in a sample (STEPS-10).
    is_charged: AtomicBool,
    /// The charge of a sample, if this node carries it.
    charge: OnceLock<Box<Charge>>,
}

/// Bytes of nodes in a sample: one node carries the charge for all.
const SAMPLE_BYTES: u64 = 4 << 10;

impl PathNode {
    fn new(previous: Path, object: Value, labels: Box<[Name]>) -> Arc<Self> {
        Arc::new(PathNode { object, labels, previous, is_charged: AtomicBool::new(false), charge: OnceLock::new() })
    }

    /// Returns a path with one more object.
    pub fn extend(previous: Path, object: Value, labels: &[Name]) -> Path {
        Some(PathNode::new(previous, object, labels.into()))
    }

    /// Returns the bytes of this node alone, with its part of shared values.
    fn bytes(&self, sizes: &mut Sizes) -> u64 {
        /// The two reference counts of the `Arc`.
        const COUNTS: usize = 2 * size_of::<usize>();
        (COUNTS + size_of::<Self>() + size_of_val(&*self.labels) + sizes.pointed_to(&self.object)) as u64
    }
}

/// Charges the query for the newest nodes of these paths that are not charged yet (STEPS-10).
pub(crate) fn charge_newest(paths: &[Path], control: &Arc<QueryControl>) -> Result<()> {
    let mut nodes = paths.iter().flatten().filter(|node| !node.is_charged.load(Ordering::Relaxed)).peekable();
    if nodes.peek().is_none() {
        return Ok(());
    }
    let mut sizes = Sizes::default();
    let mut gathered = control.sample_start() % SAMPLE_BYTES;
    for node in nodes {
        // STEPS-10: a node is counted once.
        node.is_charged.store(true, Ordering::Relaxed);
        gathered += node.bytes(&mut sizes);
        if gathered >= SAMPLE_BYTES {
            let charge = control.charge_while(std::mem::take(&mut gathered))?;
            // If another thread has set a charge meanwhile, that one counts, and this one is released.
            let _ = node.charge.set(Box::new(charge));
        }
    }
    Ok(())
}

/// Returns the path with more labels on its last object. An empty path stays empty.
pub(crate) fn relabel(path: &Path, labels: &[Name]) -> Path {
    path.as_ref().map(|node| {
        let more = labels.iter().filter(|label| !node.labels.contains(label));
        let all = node.labels.iter().chain(more).cloned().collect();
        PathNode::new(node.previous.clone(), node.object.clone(), all)
    })
}

/// Returns the nodes, newest first.
pub(crate) fn newest_first(path: &Path) -> impl Iterator<Item = &PathNode> {
    std::iter::successors(path.as_deref(), |node| node.previous.as_deref())
}

/// Returns the objects, oldest first.
pub(crate) fn objects(path: &Path) -> Vec<Value> {
    let mut objects: Vec<Value> = newest_first(path).map(|node| node.object.clone()).collect();
    objects.reverse();
    objects
}

/// Returns the path as a value.
pub(crate) fn to_value(path: &Path) -> PathValue {
    let mut labels: Vec<Vec<Name>> = newest_first(path).map(|node| node.labels.to_vec()).collect();
    labels.reverse();
    PathValue { objects: objects(path), labels }
}

/// Returns a part of the path as a value. Fails if a label is not in the path.
pub(crate) fn segment(path: &Path, segment: &Segment) -> Result<PathValue> {
    let mut value = to_value(path);
    if *segment == Segment::default() {
        return Ok(value);
    }
    let position = |label: &Option<Name>, end: &str| {
        let Some(label) = label else { return Ok(None) };
        let found = value.labels.iter().rposition(|labels| labels.contains(label));
        found.map(Some).ok_or_else(|| {
            Error::evaluation(format!(
                "Could not locate path {end}-label: {label}; as('{label}') puts it on a step before"
            ))
        })
    };
    let start = position(&segment.from, "from")?.unwrap_or(0);
    let end = position(&segment.to, "to")?.map_or(value.objects.len(), |at| at + 1);
    let start = start.min(end);
    value.objects = value.objects[start..end].to_vec();
    value.labels = value.labels[start..end].to_vec();
    Ok(value)
}

/// A path may be as long as memory allows, so its nodes are dropped in a loop instead of by recursion.
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

    /// The query is charged for about the bytes that paths take, whether they come row by row or a thousand at a time.
    /// The charge is released with the paths.
    #[test]
    fn paths_are_charged_while_there_are_any() {
        let control = Arc::new(crate::limits::meter::limited_control(u64::MAX, None));
        let bytes = |node: &Path| node.as_ref().unwrap().bytes(&mut Sizes::default());
        for rows in [1, 7, 1_000] {
            let mut paths: Vec<Path> = vec![None; rows];
            let mut taken = 0;
            for n in 0..70_000 / rows as i32 {
                paths.iter_mut().for_each(|path| *path = PathNode::extend(path.take(), Value::I32(n), &[]));
                taken += paths.iter().map(bytes).sum::<u64>();
                charge_newest(&paths, &control).unwrap();
                charge_newest(&paths, &control).unwrap();
            }
            let charged = control.memory();
            assert!(charged.abs_diff(taken) < taken / 50, "{charged} charged for {taken} of {rows} rows");
            let others = paths.clone();
            drop(paths);
            assert_eq!(control.memory(), charged);
            drop(others);
            assert_eq!(control.memory(), 0);
        }
        let long = PathNode::extend(None, Value::from("x".repeat(100_000)), &[]);
        charge_newest(&[long.clone(), None], &control).unwrap();
        assert!(control.memory() > 100_000);
        let narrow = Arc::new(crate::limits::meter::limited_control(10_000, None));
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
