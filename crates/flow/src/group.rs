//! Groups of scope instances: their ids, their nesting, and the cancellations of their work.
//!
//! The rows of one message that enter a scope together become the instances of one group. A row names its instance by a
//! *tag*. [`Groups`] holds the groups that one node has opened, and the cancellations on that node.
//!
//! - **FLOW-5.** The tags of a group are dense: `0..instances`. The number of instances travels with the end-of-stream,
//!   so a reduction answers also for instances without rows (`count()` of nothing is 0).
//! - **FLOW-6.** A group is at home on the node that opened it. Operators that keep state run at the home of the group.
//! - **FLOW-7.** A cancellation drops rows and never ends. A cancelled group ends like any other, so no state is left
//!   behind.
//! - **FLOW-8.** A cancellation is an optimization, and local to its node. An operator that receives rows of a
//!   cancelled instance must still give the right answer.

use std::ops::Range;

use mangrove_graph::FastMap;

use crate::topology::OpId;

/// The number of a node. Each node owns a share of the tablets of the graph.
pub type NodeId = u16;

/// The id of a group of scope instances that entered a scope together: the number of its home node in the upper 16
/// bits, and a number that the home counts up in the lower 48.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct GroupId(u64);

/// The position in a [`GroupId`] at which the number of the home node begins.
const NODE_SHIFT: u32 = 48;

impl GroupId {
    /// The group of the query itself. It has one instance and is at home on node 0.
    pub const ROOT: GroupId = GroupId(0);

    /// Returns the node that opened the group (FLOW-6).
    pub fn home(self) -> NodeId {
        (self.0 >> NODE_SHIFT) as NodeId
    }

    /// Returns the id as it is sent to other nodes.
    pub fn to_bits(self) -> u64 {
        self.0
    }

    /// Reads an id that another node sent.
    pub fn from_bits(bits: u64) -> Self {
        GroupId(bits)
    }
}

/// A set of tags: a bit for each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TagSet {
    words: Vec<u64>,
}

impl TagSet {
    /// Adds a tag. Returns true if the set did not contain it.
    pub fn insert(&mut self, tag: u32) -> bool {
        let (word, bit) = (tag as usize / 64, 1_u64 << (tag % 64));
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        let new = self.words[word] & bit == 0;
        self.words[word] |= bit;
        new
    }

    /// Returns true if the set contains the tag.
    pub fn contains(&self, tag: u32) -> bool {
        self.words.get(tag as usize / 64).is_some_and(|w| w & (1 << (tag % 64)) != 0)
    }
}

/// A group and the groups around it: each group with its parent and with the operator of its scope. The root group is
/// left out.
pub(crate) type Ancestry = Vec<(GroupId, GroupId, OpId)>;

/// A cancellation: it concerns the rows of a group, or of some of its instances, at a range of operators, and all work
/// in scopes nested there.
#[derive(Clone, Debug)]
pub(crate) struct Cancellation {
    operators: Range<OpId>,
    /// The cancelled instances; `None` stands for all.
    tags: Option<TagSet>,
}

/// How the runtime treats a batch of a group.
pub(crate) enum Disposition<'a> {
    /// Deliver the batch.
    Deliver,
    /// Drop the batch.
    Drop,
    /// Deliver the batch without the rows of these tags.
    DropTags(&'a TagSet),
}

/// The open groups of a node and their cancellations.
#[derive(Default)]
pub(crate) struct Groups {
    node: NodeId,
    /// The number of groups that this run has opened on this node.
    opened: u64,
    /// For each open group: the group around it, and the operator of the scope.
    parents: FastMap<GroupId, (GroupId, OpId)>,
    /// By the group that was cancelled. An entry is removed when its group is closed.
    cancellations: FastMap<GroupId, Vec<Cancellation>>,
    /// In an open run: the groups whose cancellations have changed since [`Groups::take_changes`].
    changed: Option<Vec<GroupId>>,
}

impl Groups {
    pub fn new(node: NodeId) -> Self {
        Groups { node, ..Groups::default() }
    }

    /// Opens a group for the rows that enter a scope from `parent`, and returns its id.
    pub fn open(&mut self, parent: GroupId, scope: OpId) -> GroupId {
        self.opened += 1;
        let id = GroupId((u64::from(self.node) << NODE_SHIFT) | self.opened);
        self.parents.insert(id, (parent, scope));
        id
    }

    /// Clears the state of a run. Returns false if a group of it is still open.
    pub fn reset(&mut self) -> bool {
        self.opened = 0;
        self.changed = None;
        // The root group is never closed, so its cancellations are here until the run ends.
        self.cancellations.clear();
        self.parents.is_empty()
    }

    /// Forgets a group that has ended, and its cancellations.
    pub fn close(&mut self, group: GroupId) {
        self.parents.remove(&group);
        if self.cancellations.remove(&group).is_some() {
            self.note_change(group);
        }
    }

    /// Notes changes of cancellations from here on, for the helpers of the run.
    pub fn note_changes(&mut self) {
        self.changed = Some(self.cancellations.keys().copied().collect());
    }

    fn note_change(&mut self, group: GroupId) {
        if let Some(changed) = self.changed.as_mut().filter(|changed| changed.last() != Some(&group)) {
            changed.push(group);
        }
    }

    /// Returns the groups whose cancellations have changed, each with its cancellations.
    pub fn take_changes(&mut self) -> Vec<(GroupId, Vec<Cancellation>)> {
        let Some(changed) = self.changed.as_mut().filter(|changed| !changed.is_empty()) else { return Vec::new() };
        let list = |group: GroupId| (group, self.cancellations.get(&group).cloned().unwrap_or_default());
        changed.drain(..).map(list).collect()
    }

    /// Returns a group and the groups around it, for a helper.
    pub fn ancestry(&self, group: GroupId) -> Ancestry {
        let mut ancestry = Vec::new();
        let mut inner = group;
        while let Some(&(parent, scope)) = self.parents.get(&inner) {
            ancestry.push((inner, parent, scope));
            inner = parent;
        }
        ancestry
    }

    /// On a helper: replaces all groups by those of a parcel.
    pub fn adopt(&mut self, ancestry: Ancestry) {
        self.parents.clear();
        self.parents.extend(ancestry.into_iter().map(|(group, parent, scope)| (group, (parent, scope))));
    }

    /// On a helper: replaces the cancellations of its groups by those that the home has published.
    pub fn refresh(&mut self, published: impl Fn(GroupId) -> Option<Vec<Cancellation>>) {
        self.cancellations.clear();
        for group in self.parents.keys().copied().chain([GroupId::ROOT]) {
            if let Some(list) = published(group) {
                self.cancellations.insert(group, list);
            }
        }
    }

    /// Returns the number of groups that this run has opened.
    pub fn opened(&self) -> u64 {
        self.opened
    }

    /// Returns the number of groups that are open now.
    pub fn open_count(&self) -> usize {
        self.parents.len()
    }

    /// Cancels the work of a range of operators for a group, and for all groups nested in it there.
    pub fn cancel(&mut self, group: GroupId, operators: Range<OpId>) {
        self.cancellations.entry(group).or_default().push(Cancellation { operators, tags: None });
        self.note_change(group);
    }

    /// Cancels one instance. Returns false if it was cancelled for this range already.
    pub fn cancel_tag(&mut self, group: GroupId, operators: Range<OpId>, tag: u32) -> bool {
        let list = self.cancellations.entry(group).or_default();
        let at = match list.iter().position(|c| c.tags.is_some() && c.operators == operators) {
            Some(at) => at,
            None => {
                list.push(Cancellation { operators, tags: Some(TagSet::default()) });
                list.len() - 1
            }
        };
        let is_new = list[at].tags.as_mut().is_some_and(|tags| tags.insert(tag));
        if is_new {
            self.note_change(group);
        }
        is_new
    }

    /// Returns how to treat a batch of a group that waits at an operator. Ends are always delivered (FLOW-7). If
    /// several sets of tags are cancelled for the operator, the result has only one of them (FLOW-8 allows that).
    pub fn disposition(&self, group: GroupId, operator: OpId) -> Disposition<'_> {
        if self.cancellations.is_empty() {
            return Disposition::Deliver;
        }
        let mut cancelled = None;
        for cancellation in self.cancellations.get(&group).into_iter().flatten() {
            if cancellation.operators.contains(&operator) {
                match &cancellation.tags {
                    None => return Disposition::Drop,
                    Some(tags) => cancelled = Some(tags),
                }
            }
        }
        // A nested group is cancelled with any group around it.
        let mut inner = group;
        while let Some(&(parent, scope)) = self.parents.get(&inner) {
            let is_cancelled = |c: &Cancellation| c.tags.is_none() && c.operators.contains(&scope);
            if self.cancellations.get(&parent).is_some_and(|list| list.iter().any(is_cancelled)) {
                return Disposition::Drop;
            }
            inner = parent;
        }
        cancelled.map_or(Disposition::Deliver, Disposition::DropTags)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cancelling_reaches_nested_groups_and_spares_the_rest() {
        let mut groups = Groups::new(3);
        let outer = groups.open(GroupId::ROOT, 2);
        let inner = groups.open(outer, 4);
        assert_eq!((outer.home(), inner.home()), (3, 3));
        groups.cancel(GroupId::ROOT, 0..6);
        assert!(matches!(groups.disposition(GroupId::ROOT, 5), Disposition::Drop));
        assert!(matches!(groups.disposition(GroupId::ROOT, 6), Disposition::Deliver));
        assert!(matches!(groups.disposition(inner, 5), Disposition::Drop));
        let later = groups.open(GroupId::ROOT, 7);
        assert!(matches!(groups.disposition(later, 8), Disposition::Deliver));
    }

    #[test]
    fn one_instance_is_cancelled_alone() {
        let mut groups = Groups::new(0);
        let group = groups.open(GroupId::ROOT, 1);
        assert!(groups.cancel_tag(group, 2..4, 70));
        assert!(!groups.cancel_tag(group, 2..4, 70));
        let Disposition::DropTags(tags) = groups.disposition(group, 3) else {
            panic!("rows of one tag are to be dropped")
        };
        assert!(tags.contains(70) && !tags.contains(7));
        assert!(matches!(groups.disposition(group, 4), Disposition::Deliver));
    }
}
