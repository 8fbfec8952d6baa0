//! Scope-instance groups: their names, their place in the hierarchy, and what of them is cancelled.

use std::ops::Range;

use hashbrown::HashMap;

use crate::topology::OpId;

/// A node: one of the shares of a graph that a query runs over.
pub type NodeId = u16;

/// A group of scope instances that entered a scope together. The node that made it is its *home*: where
/// stateful operators keep what belongs to it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct GroupId(u64);

const NODE_SHIFT: u32 = 48;

impl GroupId {
    /// The group of the query itself: one instance, at home on node 0.
    pub const ROOT: GroupId = GroupId(0);

    /// Where the group was made and its state lives.
    pub fn home(self) -> NodeId {
        (self.0 >> NODE_SHIFT) as NodeId
    }

    /// The bits, for the wire.
    pub fn to_bits(self) -> u64 {
        self.0
    }

    /// From the wire.
    pub fn from_bits(bits: u64) -> Self {
        GroupId(bits)
    }
}

/// A set of tags.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TagSet {
    words: Vec<u64>,
}

impl TagSet {
    /// Adds a tag; false if it was in already.
    pub fn insert(&mut self, tag: u32) -> bool {
        let (word, bit) = (tag as usize / 64, 1_u64 << (tag % 64));
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        let new = self.words[word] & bit == 0;
        self.words[word] |= bit;
        new
    }

    /// Whether the tag is in.
    pub fn contains(&self, tag: u32) -> bool {
        self.words.get(tag as usize / 64).is_some_and(|w| w & (1 << (tag % 64)) != 0)
    }
}

/// Something whose result is no longer wanted: rows of a group (or of some of its instances) at the
/// operators of a range, and everything in scopes nested there.
#[derive(Debug)]
struct Cancellation {
    operators: Range<OpId>,
    /// `None`: all instances.
    tags: Option<TagSet>,
}

/// What to do with a message.
pub(crate) enum Fate<'a> {
    Deliver,
    Drop,
    /// Deliver without the rows of these tags.
    Thin(&'a TagSet),
}

/// The groups that a node has made.
#[derive(Default)]
pub(crate) struct Groups {
    node: NodeId,
    made: u64,
    /// Of each living group that a scope made: the group it was made for, and the scope's operator.
    parents: HashMap<GroupId, (GroupId, OpId), foldhash::fast::RandomState>,
    cancellations: HashMap<GroupId, Vec<Cancellation>, foldhash::fast::RandomState>,
}

impl Groups {
    pub fn new(node: NodeId) -> Self {
        Groups { node, ..Groups::default() }
    }

    pub fn create(&mut self, parent: GroupId, scope: OpId) -> GroupId {
        self.made += 1;
        let id = GroupId((u64::from(self.node) << NODE_SHIFT) | self.made);
        self.parents.insert(id, (parent, scope));
        id
    }

    /// Forgets everything of the last run; false where a group of it still lives.
    pub fn reset(&mut self) -> bool {
        self.made = 0;
        // The root group is never retired, so what was cancelled of it is here to the end.
        self.cancellations.clear();
        self.parents.is_empty()
    }

    pub fn retire(&mut self, group: GroupId) {
        self.parents.remove(&group);
        self.cancellations.remove(&group);
    }

    pub fn made(&self) -> u64 {
        self.made
    }

    pub fn living(&self) -> usize {
        self.parents.len()
    }

    pub fn cancel(&mut self, group: GroupId, operators: Range<OpId>) {
        self.cancellations.entry(group).or_default().push(Cancellation { operators, tags: None });
    }

    /// Cancels one instance; false if it was cancelled in this range already.
    pub fn cancel_tag(&mut self, group: GroupId, operators: Range<OpId>, tag: u32) -> bool {
        let list = self.cancellations.entry(group).or_default();
        let at = match list.iter().position(|c| c.tags.is_some() && c.operators == operators) {
            Some(at) => at,
            None => {
                list.push(Cancellation { operators, tags: Some(TagSet::default()) });
                list.len() - 1
            }
        };
        list[at].tags.as_mut().is_some_and(|tags| tags.insert(tag))
    }

    /// What becomes of a message of a group that waits at an operator.
    pub fn fate(&self, group: GroupId, operator: OpId) -> Fate<'_> {
        if self.cancellations.is_empty() {
            return Fate::Deliver;
        }
        let mut thin = None;
        for cancellation in self.cancellations.get(&group).into_iter().flatten() {
            if cancellation.operators.contains(&operator) {
                match &cancellation.tags {
                    None => return Fate::Drop,
                    Some(tags) => thin = Some(tags),
                }
            }
        }
        // A nested group goes with the one it was made for.
        let mut inner = group;
        while let Some(&(parent, scope)) = self.parents.get(&inner) {
            let gone = |c: &Cancellation| c.tags.is_none() && c.operators.contains(&scope);
            if self.cancellations.get(&parent).is_some_and(|list| list.iter().any(gone)) {
                return Fate::Drop;
            }
            inner = parent;
        }
        thin.map_or(Fate::Deliver, Fate::Thin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cancelling_reaches_nested_groups_and_spares_the_rest() {
        let mut groups = Groups::new(3);
        let outer = groups.create(GroupId::ROOT, 2);
        let inner = groups.create(outer, 4);
        assert_eq!((outer.home(), inner.home()), (3, 3));
        groups.cancel(GroupId::ROOT, 0..6);
        assert!(matches!(groups.fate(GroupId::ROOT, 5), Fate::Drop));
        assert!(matches!(groups.fate(GroupId::ROOT, 6), Fate::Deliver));
        assert!(matches!(groups.fate(inner, 5), Fate::Drop));
        let later = groups.create(GroupId::ROOT, 7);
        assert!(matches!(groups.fate(later, 8), Fate::Deliver));
    }

    #[test]
    fn one_instance_is_cancelled_alone() {
        let mut groups = Groups::new(0);
        let group = groups.create(GroupId::ROOT, 1);
        assert!(groups.cancel_tag(group, 2..4, 70));
        assert!(!groups.cancel_tag(group, 2..4, 70));
        let Fate::Thin(tags) = groups.fate(group, 3) else { panic!("rows of one tag are to be dropped") };
        assert!(tags.contains(70) && !tags.contains(7));
        assert!(matches!(groups.fate(group, 4), Fate::Deliver));
    }
}
