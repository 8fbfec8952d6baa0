//! The open groups of a node, how they nest, and the cancellations of their work.
//!
//! ```text
//!  tag 2 of group 7 is cancelled at the operators 3..9, among them the operators of the scopes of
//!
//!    ├─ group 8, Each [0, 2, 2, 3] ─► its tags 1 and 2
//!    │    └─ group 11, Same        ─► its tags 1 and 2
//!    ├─ group 9, One(2)            ─► all of it
//!    └─ group 10, One(0)           ─► nothing
//! ```
//!
//! - **FLOW-7.** A cancellation drops rows and never ends. A cancelled group ends like any other, so no state is left
//!   behind.
//! - **FLOW-8.** A cancellation is an optimization, and local to its node. An operator that receives rows of a
//!   cancelled instance must still give the right answer.
//! - **FLOW-40.** A cancellation of instances descends to every open group nested in them, if the operator of the
//!   group's scope is in the range of the cancellation. It does so at the end of the call that made it. A group that is
//!   opened later gets it when it is opened. An instance that belongs to no cancelled instance is spared.
//! - **FLOW-41.** After the call that cancelled them, the operators in the range hold neither state nor charge of
//!   cancelled instances ([`crate::Operator::cancelled`]), and no batch of a group that is cancelled as a whole waits in
//!   an inbox. Rows of single cancelled instances are dropped when their message is taken.

use std::borrow::Cow;
use std::ops::Range;

use mangrove_graph::FastMap;

use crate::group::{GroupId, NodeId, OuterTags, TagSet};
use crate::heavy::{HeavyInstance, LongSteps};
use crate::mutation::{self, Mutation};
use crate::topology::OpId;

/// A cancellation: it concerns the rows of a group, or of some of its instances, at a range of operators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cancellation {
    pub operators: Range<OpId>,
    /// The cancelled instances; `None` stands for all.
    pub tags: Option<TagSet>,
}

impl Cancellation {
    /// Returns true if it cancels a whole group at all of these operators.
    fn covers(&self, operators: &Range<OpId>) -> bool {
        self.tags.is_none() && self.operators.start <= operators.start && operators.end <= self.operators.end
    }
}

/// How the runtime treats a batch of a group.
pub(crate) enum Disposition<'a> {
    /// Deliver the batch.
    Deliver,
    /// Drop the batch.
    Drop,
    /// Deliver the batch without the rows of these tags.
    DropTags(Cow<'a, TagSet>),
}

/// A group that this node has opened.
struct OpenGroup {
    parent: GroupId,
    /// The operator of its scope.
    scope: OpId,
    outer: OuterTags,
    /// Its index among the groups nested in its parent.
    place: usize,
    /// The steps that find its heavy instances.
    long_steps: LongSteps,
}

impl OpenGroup {
    /// Returns what a cancellation of the parent cancels of the instances from `first` on; `None` for nothing.
    fn reached_by(&self, outside: &Cancellation, first: usize) -> Option<Cancellation> {
        if !outside.operators.contains(&self.scope) {
            return None;
        }
        let tags = match (&outside.tags, &self.outer) {
            (None, _) => None,
            (Some(cancelled), OuterTags::One(tag)) => {
                if !cancelled.contains(*tag) {
                    return None;
                }
                None
            }
            (Some(cancelled), OuterTags::Same) => Some(cancelled.clone()),
            (Some(cancelled), OuterTags::Each(outer) | OuterTags::Growing(outer)) => {
                let off = u32::from(mutation::is_set(Mutation::CancellationReachesNeighbor));
                let is_reached = |outer: u32| cancelled.contains(outer.saturating_add(off));
                let reached = (0..).zip(outer).skip(first).filter(|(_, outer)| is_reached(**outer));
                let tags: TagSet = reached.map(|(tag, _)| tag).collect();
                if tags.is_empty() {
                    return None;
                }
                Some(tags)
            }
        };
        Some(Cancellation { operators: outside.operators.clone(), tags })
    }
}

/// The most emptied sets of tags that are kept for later cancellations.
const SPARE_SETS_MAX: usize = 4;

/// The open groups of a node and their cancellations.
#[derive(Default)]
pub(crate) struct Groups {
    node: NodeId,
    /// True on a helper.
    is_helper: bool,
    /// The number of groups that this run has opened on this node, or on this helper.
    opened: u64,
    /// On a helper: how many of them the home knows of.
    counted: u64,
    open: FastMap<GroupId, OpenGroup>,
    /// The open groups nested directly in a group, which another node may have opened.
    nested: FastMap<GroupId, Vec<GroupId>>,
    /// By the group that was cancelled. An entry is removed when its group is closed.
    cancellations: FastMap<GroupId, Vec<Cancellation>>,
    /// What the current call of an operator has cancelled: it has not descended yet (FLOW-40).
    fresh: Vec<(GroupId, Cancellation)>,
    /// Empty sets, which keep their memory.
    spare: Vec<TagSet>,
    /// In an open run: the groups whose cancellations have changed since [`Groups::take_changes`].
    changed: Option<Vec<GroupId>>,
}

impl Groups {
    pub fn new(node: NodeId) -> Self {
        Groups { node, ..Groups::default() }
    }

    /// The groups of a helper: those that it opens itself (FLOW-50), and the group of its parcel.
    pub fn of_helper() -> Self {
        Groups { is_helper: true, ..Groups::default() }
    }

    /// Opens a group for the rows that enter a scope from `parent`, and returns its id. `outer` says which instances of
    /// the parent its instances belong to.
    pub fn open(&mut self, parent: GroupId, scope: OpId, outer: OuterTags) -> GroupId {
        self.opened += 1;
        let id = if self.is_helper { GroupId::of_helper(self.opened) } else { GroupId::of(self.node, self.opened) };
        let siblings = self.nested.entry(parent).or_default();
        let place = siblings.len();
        siblings.push(id);
        self.open.insert(id, OpenGroup { parent, scope, outer, place, long_steps: LongSteps::default() });
        self.inherit(id, 0);
        id
    }

    /// Adds instances to a group with [`OuterTags::Growing`].
    pub fn add_instances(&mut self, group: GroupId, outer: impl IntoIterator<Item = u32>) {
        let Some(OpenGroup { outer: OuterTags::Growing(known), .. }) = self.open.get_mut(&group) else { return };
        let first = known.len();
        known.extend(outer);
        self.inherit(group, first);
    }

    /// Cancels the instances from `first` on that belong to cancelled instances of the parent (FLOW-40).
    fn inherit(&mut self, group: GroupId, first: usize) {
        if self.cancellations.is_empty() {
            return;
        }
        let Some(open) = self.open.get(&group) else { return };
        let of_parent = self.cancellations.get(&open.parent).into_iter().flatten();
        let inherited: Vec<Cancellation> = of_parent.filter_map(|outside| open.reached_by(outside, first)).collect();
        for cancellation in &inherited {
            self.add(group, cancellation);
        }
    }

    /// Clears the state of a run. Returns false if a group of it is still open.
    pub fn reset(&mut self) -> bool {
        (self.opened, self.counted) = (0, 0);
        self.changed = None;
        // The root group is never closed, so its cancellations are here until the run ends.
        self.cancellations.clear();
        self.nested.clear();
        self.fresh.clear();
        self.open.is_empty()
    }

    /// Forgets a group that has ended, and its cancellations.
    pub fn close(&mut self, group: GroupId) {
        if let Some(OpenGroup { parent, place, .. }) = self.open.remove(&group)
            && let Some(siblings) = self.nested.get_mut(&parent)
        {
            siblings.swap_remove(place);
            if let Some(moved) = siblings.get(place).and_then(|moved| self.open.get_mut(moved)) {
                moved.place = place;
            }
            // This node never closes the group of another node, and a helper never that of its parcel.
            let is_elsewhere = parent.home() != self.node || self.is_helper && !parent.is_of_helper();
            if siblings.is_empty() && is_elsewhere {
                self.nested.remove(&parent);
            }
        }
        self.nested.remove(&group);
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

    /// On a helper: replaces what it knows of the group of its parcel by what the home has published for it. All other
    /// messages of the helper are of groups nested in this one, so the cancellations then descend to those (FLOW-40).
    pub fn adopt(&mut self, group: GroupId, published: Option<Vec<Cancellation>>) {
        self.cancellations.retain(|known, _| known.is_of_helper());
        if let Some(list) = published {
            if !self.open.is_empty() {
                self.fresh.extend(list.iter().map(|cancellation| (group, cancellation.clone())));
            }
            self.cancellations.insert(group, list);
        }
    }

    /// Returns the group around a group that this node has opened.
    pub fn parent(&self, group: GroupId) -> Option<GroupId> {
        self.open.get(&group).map(|open| open.parent)
    }

    /// Returns the number of groups that this run has opened.
    pub fn opened(&self) -> u64 {
        self.opened
    }

    /// On a helper: returns the number of groups that it has opened since the last call.
    pub fn take_opened_count(&mut self) -> u64 {
        self.opened - std::mem::replace(&mut self.counted, self.opened)
    }

    /// Returns the number of groups that are open now.
    pub fn open_count(&self) -> usize {
        self.open.len()
    }

    /// Returns true if an operator may have state of a group: if `scope`, the innermost scope around the operator, is
    /// the scope of the group. The scope of a group that another node has opened is not known.
    pub fn may_be_at(&self, group: GroupId, scope: Option<OpId>) -> bool {
        match self.open.get(&group) {
            Some(open) => scope == Some(open.scope),
            None => group != GroupId::ROOT || scope.is_none(),
        }
    }

    /// Cancels the work of a range of operators for a group, and for all groups nested in it there.
    pub fn cancel(&mut self, group: GroupId, operators: Range<OpId>) {
        let cancellation = Cancellation { operators, tags: None };
        if self.add(group, &cancellation) {
            self.fresh.push((group, cancellation));
        }
    }

    /// Cancels one instance, and everything nested in it. Returns false if it was cancelled for this range already.
    pub fn cancel_tag(&mut self, group: GroupId, operators: Range<OpId>, tag: u32) -> bool {
        let list = self.cancellations.entry(group).or_default();
        if list.iter().any(|known| known.covers(&operators)) {
            return false;
        }
        let known = list.iter_mut().find(|known| known.operators == operators).and_then(|known| known.tags.as_mut());
        let is_new = match known {
            Some(tags) => tags.insert(tag),
            None => {
                list.push(Cancellation { operators: operators.clone(), tags: Some(TagSet::from_iter([tag])) });
                true
            }
        };
        if !is_new {
            return false;
        }
        self.note_change(group);
        let last = self.fresh.last_mut().filter(|(of, last)| *of == group && last.operators == operators);
        if let Some((_, Cancellation { tags: Some(tags), .. })) = last {
            tags.insert(tag);
        } else {
            let mut tags = self.spare.pop().unwrap_or_default();
            tags.insert(tag);
            self.fresh.push((group, Cancellation { operators, tags: Some(tags) }));
        }
        true
    }

    /// Adds a cancellation of a group. Returns false if all of it was cancelled before.
    fn add(&mut self, group: GroupId, cancellation: &Cancellation) -> bool {
        let list = self.cancellations.entry(group).or_default();
        if list.iter().any(|known| known.covers(&cancellation.operators)) {
            return false;
        }
        let is_new = match &cancellation.tags {
            None => {
                // The instances cancelled for these operators are part of the group.
                list.retain(|known| !cancellation.covers(&known.operators));
                list.push(cancellation.clone());
                true
            }
            Some(tags) => match list.iter_mut().find(|known| known.operators == cancellation.operators) {
                Some(Cancellation { tags: Some(known), .. }) => known.insert_all(tags),
                _ => {
                    list.push(cancellation.clone());
                    true
                }
            },
        };
        if is_new {
            self.note_change(group);
        }
        is_new
    }

    /// If a cancellation has left no instance of a group for these operators, cancels the whole group there. Returns
    /// true if it did.
    fn widen(&mut self, group: GroupId, operators: &Range<OpId>) -> bool {
        let Some(OpenGroup { outer: OuterTags::Each(outer), .. }) = self.open.get(&group) else { return false };
        let list = self.cancellations.get(&group).into_iter().flatten();
        let tags = list.filter(|known| known.operators == *operators).find_map(|known| known.tags.as_ref());
        if tags.is_none_or(|tags| tags.len() < outer.len()) {
            return false;
        }
        self.add(group, &Cancellation { operators: operators.clone(), tags: None })
    }

    /// Returns an instance of a group as one that counts as heavy.
    pub fn as_heavy(&self, group: GroupId, tag: u32) -> Option<HeavyInstance> {
        self.open.get(&group).map(|open| HeavyInstance { group, tag, scope: open.scope })
    }

    /// Returns the operator of the scope that opened a group.
    pub fn scope(&self, group: GroupId) -> Option<OpId> {
        self.open.get(&group).map(|open| open.scope)
    }

    /// Returns true if the next whole step for one instance of a group makes it heavy, however light it is.
    pub fn looks_for_heavy(&self, group: GroupId) -> bool {
        self.open.get(&group).is_some_and(|open| open.long_steps.are_new())
    }

    /// Counts a step that worked for one instance only, and for those that it is nested in. Returns those of them that
    /// are heavy now, an instance before those that it is nested in.
    pub fn count_step(&mut self, group: GroupId, tag: u32) -> Vec<HeavyInstance> {
        let mut heavy = Vec::new();
        let mut at = (group, tag);
        while let Some(open) = self.open.get_mut(&at.0) {
            if open.long_steps.count(at.1) {
                heavy.push(HeavyInstance { group: at.0, tag: at.1, scope: open.scope });
            }
            let outer = match &open.outer {
                OuterTags::One(outer) => *outer,
                OuterTags::Same => at.1,
                OuterTags::Each(outer) | OuterTags::Growing(outer) => {
                    outer.get(at.1 as usize).copied().unwrap_or(OuterTags::SEVERAL)
                }
            };
            if outer == OuterTags::SEVERAL {
                break;
            }
            at = (open.parent, outer);
        }
        heavy
    }

    /// A heavy instance is told to begin again.
    pub fn found_heavy(&mut self, heavy: HeavyInstance) {
        if let Some(open) = self.open.get_mut(&heavy.group) {
            open.long_steps.found();
        }
    }

    /// Returns true if the current call of an operator has cancelled something.
    pub fn has_fresh(&self) -> bool {
        !self.fresh.is_empty()
    }

    /// Lets what the current call has cancelled descend to all open groups nested there (FLOW-40). Returns everything
    /// that is cancelled, a group before those nested in it. [`Groups::give_back`] takes the list back.
    pub fn descend(&mut self) -> Vec<(GroupId, Cancellation)> {
        let mut reached = std::mem::take(&mut self.fresh);
        let mut at = 0;
        while at < reached.len() {
            let (group, cancellation) = &mut reached[at];
            if cancellation.tags.is_some() && self.widen(*group, &cancellation.operators) {
                cancellation.tags = None;
            }
            at += 1;
            if mutation::is_set(Mutation::CancellationStopsAtGroup) {
                continue;
            }
            let nested = self.nested.get(&*group).into_iter().flatten();
            let inside = |nested: &GroupId| Some((*nested, self.open.get(nested)?.reached_by(cancellation, 0)?));
            let inside: Vec<(GroupId, Cancellation)> = nested.filter_map(inside).collect();
            for (nested, cancellation) in inside {
                if self.add(nested, &cancellation) {
                    reached.push((nested, cancellation));
                }
            }
        }
        reached
    }

    /// Takes back the list of [`Groups::descend`], to use its memory again.
    pub fn give_back(&mut self, mut reached: Vec<(GroupId, Cancellation)>) {
        for (_, cancellation) in reached.drain(..) {
            if let Some(mut tags) = cancellation.tags.filter(|_| self.spare.len() < SPARE_SETS_MAX) {
                tags.clear();
                self.spare.push(tags);
            }
        }
        if self.fresh.is_empty() {
            self.fresh = reached;
        }
    }

    /// Returns how to treat a batch of a group that waits at an operator. Ends are always delivered (FLOW-7).
    #[inline]
    pub fn disposition(&self, group: GroupId, operator: OpId) -> Disposition<'_> {
        if self.cancellations.is_empty() { Disposition::Deliver } else { self.disposition_among(group, operator) }
    }

    fn disposition_among(&self, group: GroupId, operator: OpId) -> Disposition<'_> {
        let mut cancelled: Option<Cow<'_, TagSet>> = None;
        for cancellation in self.cancellations.get(&group).into_iter().flatten() {
            if !cancellation.operators.contains(&operator) {
                continue;
            }
            let Some(tags) = &cancellation.tags else { return Disposition::Drop };
            match &mut cancelled {
                None => cancelled = Some(Cow::Borrowed(tags)),
                Some(all) => {
                    all.to_mut().insert_all(tags);
                }
            }
        }
        cancelled.map_or(Disposition::Deliver, Disposition::DropTags)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tags of a group that are cancelled at an operator; `None` for all of them.
    fn cancelled(groups: &Groups, group: GroupId, operator: OpId) -> Option<Vec<u32>> {
        match groups.disposition(group, operator) {
            Disposition::Deliver => Some(Vec::new()),
            Disposition::Drop => None,
            Disposition::DropTags(tags) => Some(tags.iter().collect()),
        }
    }

    fn reached(groups: &mut Groups) -> Vec<GroupId> {
        groups.descend().into_iter().map(|(group, _)| group).collect()
    }

    #[test]
    fn canceling_a_group_reaches_nested_groups_and_spares_the_rest() {
        let mut groups = Groups::new(3);
        let outer = groups.open(GroupId::ROOT, 2, OuterTags::One(0));
        let inner = groups.open(outer, 4, OuterTags::Same);
        assert_eq!((outer.home(), inner.home()), (3, 3));
        groups.cancel(GroupId::ROOT, 0..6);
        assert_eq!(reached(&mut groups), [GroupId::ROOT, outer, inner]);
        assert_eq!(cancelled(&groups, GroupId::ROOT, 5), None);
        assert_eq!(cancelled(&groups, GroupId::ROOT, 6), Some(vec![]));
        assert_eq!(cancelled(&groups, inner, 5), None);
        let other = groups.open(GroupId::ROOT, 7, OuterTags::One(0));
        assert_eq!(cancelled(&groups, other, 8), Some(vec![]));
        let late = groups.open(outer, 4, OuterTags::Same);
        assert_eq!(cancelled(&groups, late, 5), None, "a group that is opened later is cancelled, too");
        for group in [late, inner, outer, other] {
            groups.close(group);
        }
        assert!(groups.reset());
    }

    #[test]
    fn an_instance_is_canceled_with_everything_nested_in_it() {
        let mut groups = Groups::new(0);
        let outer = groups.open(GroupId::ROOT, 1, OuterTags::One(0));
        let each = groups.open(outer, 3, OuterTags::Each(vec![0, 70, 70, OuterTags::SEVERAL]));
        let same = groups.open(each, 5, OuterTags::Same);
        let [one, other] = [70, 7].map(|tag| groups.open(outer, 3, OuterTags::One(tag)));
        let growing = groups.open(outer, 3, OuterTags::Growing(vec![70, 8]));
        assert!(groups.cancel_tag(outer, 2..9, 70));
        assert!(!groups.cancel_tag(outer, 2..9, 70));
        assert_eq!(reached(&mut groups), [outer, each, one, growing, same]);
        assert_eq!(cancelled(&groups, outer, 3), Some(vec![70]));
        assert_eq!(cancelled(&groups, outer, 9), Some(vec![]), "an operator past the range");
        assert_eq!(cancelled(&groups, each, 4), Some(vec![1, 2]));
        assert_eq!(cancelled(&groups, same, 6), Some(vec![1, 2]));
        assert_eq!(cancelled(&groups, one, 4), None);
        assert_eq!(cancelled(&groups, other, 4), Some(vec![]));
        groups.add_instances(growing, [9, 70]);
        assert_eq!(cancelled(&groups, growing, 4), Some(vec![0, 3]));
        let late = groups.open(outer, 3, OuterTags::Each(vec![1, 70]));
        assert_eq!(cancelled(&groups, late, 4), Some(vec![1]));
        // A scope outside the range is not reached.
        let past = groups.open(outer, 9, OuterTags::One(70));
        assert_eq!(cancelled(&groups, past, 10), Some(vec![]));
    }

    #[test]
    fn several_sets_of_tags_are_merged() {
        let mut groups = Groups::new(0);
        let group = groups.open(GroupId::ROOT, 1, OuterTags::One(0));
        groups.cancel_tag(group, 2..5, 3);
        groups.cancel_tag(group, 2..9, 200);
        assert_eq!(cancelled(&groups, group, 4), Some(vec![3, 200]));
        assert_eq!(cancelled(&groups, group, 6), Some(vec![200]));
    }

    #[test]
    fn a_group_without_a_live_instance_is_canceled_as_a_whole() {
        let mut groups = Groups::new(0);
        let outer = groups.open(GroupId::ROOT, 1, OuterTags::One(0));
        let inner = groups.open(outer, 3, OuterTags::Each(vec![4, 5, 5]));
        for (tag, left) in [(4, Some(vec![0])), (5, None)] {
            groups.cancel_tag(outer, 2..9, tag);
            reached(&mut groups);
            assert_eq!(cancelled(&groups, inner, 6), left);
        }
    }

    #[test]
    fn a_step_counts_for_all_instances_around() {
        let mut groups = Groups::new(0);
        let outer = groups.open(GroupId::ROOT, 1, OuterTags::One(0));
        let inner = groups.open(outer, 3, OuterTags::Each(vec![4, 5, OuterTags::SEVERAL]));
        let [inner_1, inner_2] = [1, 2].map(|tag| HeavyInstance { group: inner, tag, scope: 3 });
        let outer_5 = HeavyInstance { group: outer, tag: 5, scope: 1 };
        assert_eq!(groups.count_step(inner, 1), [inner_1, outer_5]);
        groups.found_heavy(outer_5);
        groups.found_heavy(inner_1);
        // Nothing outside is heavy for an instance that works for several.
        let steps: Vec<_> = (0..4).map(|_| groups.count_step(inner, 2)).collect();
        assert_eq!(steps, [vec![], vec![], vec![], vec![inner_2]]);
    }

    /// Closing a group moves another one to its place among the groups of their parent.
    #[test]
    fn groups_are_closed_in_any_order() {
        let mut groups = Groups::new(0);
        let all: Vec<GroupId> = (0..5).map(|tag| groups.open(GroupId::ROOT, 1, OuterTags::One(tag))).collect();
        groups.close(all[1]);
        groups.close(all[4]);
        groups.close(all[0]);
        groups.cancel(GroupId::ROOT, 0..9);
        let mut left = reached(&mut groups);
        left.sort_unstable();
        assert_eq!(left, [GroupId::ROOT, all[2], all[3]]);
    }
}
