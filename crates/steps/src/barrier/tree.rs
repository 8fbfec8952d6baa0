//! `tree()`: the paths of all rows in one tree.
//!
//! A row adds its path, or what `by()` takes of the objects on it. While rows arrive, the tree is an array of nodes
//! with one table from (parent, key) to node. So a row costs one look-up for each object, however wide the tree is.

use mangrove_flow::{Cursor, Detail, GroupId, Operator, Output, QueryControl, Step, TagSet};
use mangrove_graph::compare::Equivalent;
use mangrove_graph::{Error, ErrorKind, Result, Tree as TreeValue, Value};
use mangrove_plan::logical::Name;

use crate::context::execution::ExecutionContext;
use crate::context::type_name::a_type;
use crate::limits::nesting;
use crate::limits::sizes::Sizes;
use crate::limits::table::PartitionedTable;
use crate::rows::held::{ByInstance, HeldRows, send_results};
use crate::rows::path;
use crate::rows::{Remember, Rows};

/// The approximate bytes of a node while the tree grows: its key twice, its index and its parent.
const NODE_BYTES: u64 = 128;

/// Nodes made into trees between two checks of the limits.
const NODES_AT_ONCE: usize = 1 << 14;

/// The number of the root; other nodes are numbered from 1.
const ROOT: u32 = 0;

/// A tree that is being built.
#[derive(Default)]
struct GrowingTree {
    nodes_by_key: PartitionedTable<(u32, Equivalent), u32>,
    /// Key and parent of every node but the root, parents first.
    nodes: Vec<(Value, u32)>,
    /// The bytes that the keys point to.
    held: u64,
}

impl GrowingTree {
    /// Returns the node of a key below a parent, making it if it is new.
    fn child(&mut self, parent: u32, key: &Value) -> Result<u32> {
        let next = u32::try_from(self.nodes.len() + 1).map_err(|_| {
            Error::new(ErrorKind::MemoryLimit, format!("tree() holds at most {} branches", u32::MAX - 1))
        })?;
        let (&mut node, is_new) = self.nodes_by_key.get_or_insert_with((parent, Equivalent(key.clone())), || next);
        if is_new {
            self.nodes.push((key.clone(), parent));
        }
        Ok(node)
    }

    /// Adds a path that begins at the root.
    fn add<'a>(&mut self, way: impl ExactSizeIterator<Item = &'a Value>, control: &QueryControl) -> Result<()> {
        if way.len() > TreeValue::DEPTH_MAX {
            return Err(Error::evaluation(format!(
                "tree() is at most {} levels deep, and a path has {}; use path(), or limit the path",
                TreeValue::DEPTH_MAX,
                way.len()
            )));
        }
        let mut at = ROOT;
        for key in way {
            nesting::check_all([key], control)?;
            at = self.child(at, key)?;
        }
        Ok(())
    }

    /// Adds all branches of a tree below a node. Checks the limits of the query on the way.
    fn graft(&mut self, parent: u32, tree: &TreeValue, control: &QueryControl) -> Result<()> {
        tree.branches.iter().try_for_each(|(key, below)| {
            if self.nodes.len().is_multiple_of(NODES_AT_ONCE) {
                control.check()?;
            }
            let at = self.child(parent, key)?;
            self.graft(at, below, control)
        })
    }

    /// Returns about how many bytes the tree takes.
    fn bytes(&self) -> u64 {
        self.nodes.len() as u64 * NODE_BYTES + self.held
    }

    /// Makes trees of the nodes. Checks the limits of the query on the way.
    fn into_value(self, control: &QueryControl) -> Result<Value> {
        // The table makes room for the trees.
        drop(self.nodes_by_key);
        let mut below: Vec<TreeValue> = vec![TreeValue::default(); self.nodes.len() + 1];
        // Children have higher numbers than their parents, so in descending order each node is complete when it is
        // reached.
        for (at, (key, parent)) in self.nodes.into_iter().enumerate().rev() {
            if at % NODES_AT_ONCE == 0 {
                control.check()?;
            }
            let mut tree = std::mem::take(&mut below[at + 1]);
            tree.branches.reverse();
            below[parent as usize].branches.push((key, tree));
        }
        let mut root = std::mem::take(&mut below[ROOT as usize]);
        root.branches.reverse();
        Ok(Value::Tree(root.into()))
    }
}

/// Makes a tree of each instance's paths. With a side effect the tree goes there and the rows go on.
pub(crate) struct Tree {
    side_effect: Option<Name>,
    /// True if computed column 0 holds the objects of a row's path.
    computed: bool,
    remember: Remember,
    trees: ByInstance<GrowingTree>,
    held: HeldRows,
}

impl Tree {
    /// For the result, or for a side effect; of paths, or of the lists in computed column 0.
    pub fn new(side_effect: Option<Name>, computed: bool, remember: Remember) -> Self {
        Tree { side_effect, computed, remember, trees: ByInstance::default(), held: HeldRows::default() }
    }
}

impl Operator<Rows> for Tree {
    fn is_by_group(&self) -> bool {
        self.side_effect.is_none()
    }

    fn begin(&mut self, context: &ExecutionContext) -> Result<()> {
        let Some(name) = &self.side_effect else { return Ok(()) };
        context.side_effects.update(name, |old| Ok(old.unwrap_or_else(|| Value::Tree(TreeValue::default().into()))))
    }

    fn recycle(&mut self) -> bool {
        self.trees.is_empty() && self.held.is_empty()
    }

    fn cancelled(&mut self, group: GroupId, tags: Option<&TagSet>, out: &Output<'_, Rows>) {
        self.trees.cancelled(group, tags, out);
        self.held.cancelled(group, tags, out);
    }

    fn receive(&mut self, _port: u8, group: GroupId, mut batch: Rows, out: &mut Output<'_, Rows>) -> Result<()> {
        let mut sizes = Sizes::default();
        for row in 0..batch.len() {
            let objects = match self.computed.then(|| batch.computed_value(0, row)) {
                Some(Some(Value::List(objects))) => objects.clone(),
                Some(_) => continue,
                None => path::objects(&batch.path(row)).into(),
            };
            // Charged as if all its nodes were new, before they are made.
            let most = objects.len().min(TreeValue::DEPTH_MAX) as u64 * NODE_BYTES;
            self.trees.charge(group, most, out)?;
            let tree = ByInstance::entry(self.trees.group(group), batch.tag(row), GrowingTree::default);
            let (nodes, before) = (tree.nodes.len(), tree.bytes());
            tree.add(objects.iter(), out.control())?;
            let held: u64 = tree.nodes[nodes..].iter().map(|(key, _)| sizes.pointed_to(key) as u64).sum();
            tree.held += held;
            let grown = tree.bytes() - before;
            self.trees.release(group, most.saturating_sub(grown), out);
            self.trees.charge(group, grown.saturating_sub(most), out)?;
        }
        if self.side_effect.is_some() {
            batch.computed.clear();
            self.held.add(group, batch, out)?;
        }
        Ok(())
    }

    /// Each step sends the trees of some instances. With a side effect, each step adds the trees of some instances;
    /// after that, each step sends one batch, and the detail of the cursor is no more at its start.
    fn finish_step(
        &mut self,
        _port: u8,
        group: GroupId,
        instances: u32,
        at: &mut Cursor,
        out: &mut Output<'_, Rows>,
    ) -> Result<Step> {
        let Tree { side_effect, remember, trees, held, .. } = self;
        let Some(name) = side_effect else {
            return send_results(trees, (group, instances), at, remember, out, |tree, meter| {
                tree.unwrap_or_default().into_value(meter.control()).map(Some)
            });
        };
        if let Detail::Start = at.detail {
            let taken = trees.take_next_wanted(group, at.row, instances, out);
            at.row += taken.states.len() as u32;
            for grown in taken.states.into_iter().flatten() {
                // A side effect stays charged until the query ends.
                out.control().charge(grown.bytes())?;
                out.control().check()?;
                out.context().side_effects.update(name, |old| join(old, grown, name, out.control()))?;
            }
            out.control().release(taken.charged);
            if !taken.is_last {
                return Ok(Step::More);
            }
            at.detail = Detail::Words([0; 2]);
        }
        if held.send_next(group, 0, out)? == Step::More {
            return Ok(Step::More);
        }
        out.finish_all(group, instances)?;
        Ok(Step::Done)
    }
}

/// Joins the tree of a side effect with another one.
fn join(old: Option<Value>, more: GrowingTree, name: &Name, control: &QueryControl) -> Result<Value> {
    let mut tree = GrowingTree::default();
    match old {
        None => return more.into_value(control),
        Some(Value::Tree(known)) if known.branches.is_empty() => return more.into_value(control),
        Some(Value::Tree(known)) => tree.graft(ROOT, &known, control)?,
        Some(other) => {
            return Err(Error::evaluation(format!(
                "tree(\"{name}\") needs a tree in the side effect and met {}",
                a_type(&other)
            )));
        }
    }
    if let Value::Tree(more) = more.into_value(control)? {
        tree.graft(ROOT, &more, control)?;
    }
    tree.into_value(control)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::meter::limited_control;

    fn grown(ways: &[&[i32]]) -> GrowingTree {
        let mut tree = GrowingTree::default();
        for way in ways {
            let way: Vec<Value> = way.iter().map(|n| Value::I32(*n)).collect();
            tree.add(way.iter(), &limited_control(u64::MAX, None)).unwrap();
        }
        tree
    }

    #[test]
    fn ways_that_begin_alike_share_their_beginning() {
        let control = limited_control(u64::MAX, None);
        let text = |tree: GrowingTree| mangrove_gremlin::text::Plain(&tree.into_value(&control).unwrap()).to_string();
        assert_eq!(text(grown(&[&[1, 2, 3], &[1, 4], &[5], &[1, 2]])), "{1={2={3={}}, 4={}}, 5={}}");
        let known = grown(&[&[1, 2]]).into_value(&control).unwrap();
        let joined = join(Some(known), grown(&[&[3], &[1, 4]]), &"x".into(), &control).unwrap();
        assert_eq!(mangrove_gremlin::text::Plain(&joined).to_string(), "{1={2={}, 4={}}, 3={}}");
    }

    #[test]
    fn a_large_tree_is_made_in_pieces() {
        let nodes: Vec<[i32; 1]> = (0..100_000).map(|n| [n]).collect();
        let ways: Vec<&[i32]> = nodes.iter().map(|way| &way[..]).collect();
        let made = |looks| grown(&ways).into_value(&limited_control(u64::MAX, Some(looks)));
        assert_eq!(made(3).unwrap_err().kind(), ErrorKind::Timeout);
        assert!(made(20).is_ok());
    }

    #[test]
    fn a_way_that_is_too_long_is_refused() {
        let way = vec![Value::Null; TreeValue::DEPTH_MAX + 1];
        let (mut tree, control) = (GrowingTree::default(), limited_control(u64::MAX, None));
        assert!(tree.add(way[1..].iter(), &control).is_ok());
        assert!(tree.add(way.iter(), &control).unwrap_err().to_string().contains("128 levels"));
    }
}
