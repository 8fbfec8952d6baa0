//! The facts about edges as plans use them: which labels the vertices have that a hop leads to.
//!
//! - **PLAN-13.** A plan that relies on the facts says so ([`PhysicalPlan::uses_connections`]). It may run only over a
//!   view that offers the facts, and offers those of the same epoch when the run begins. A traversal that writes relies
//!   on none.
//!
//! [`PhysicalPlan::uses_connections`]: crate::PhysicalPlan::uses_connections

use std::sync::Arc;

use mangrove_graph::connections::{Connections, Ends, ListFacts};
use mangrove_graph::{Direction, LabelSetId};

use crate::label_sets::{NamedSets, Sets};
use crate::logical::{Condition, Name, Step, Traversal};
use crate::physical::EdgesOf;

/// The facts about the edges of a graph, with the names of its label sets.
#[derive(Clone, Debug, PartialEq)]
pub struct KnownConnections {
    facts: Arc<Connections>,
    /// The label sets of the facts.
    sets: Arc<NamedSets>,
}

/// The label sets that the vertices in one position of a plan may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VertexSets {
    /// Those among the label sets of the facts; `None`: all.
    known: Option<Sets>,
    /// True if the vertices have no other label sets. Otherwise there may be vertices of further sets, which have no edge.
    are_all: bool,
}

/// A look at a traversal: returns false if its plan cannot rely on facts about edges.
pub fn may_rely_on_connections(traversal: &Traversal) -> bool {
    let is_of_labels = |condition: &Condition| matches!(condition, Condition::LabelIn(_));
    let is_label_test = |step: &Step| matches!(step, Step::Has(conditions) if conditions.iter().any(is_of_labels));
    let is_dedup = |step: &Step| matches!(step, Step::Dedup { labels, by } if labels.is_empty() && by.is_empty());
    let is_hop = |step: &Step| matches!(step, Step::Expand { .. });
    let is_scan = |step: &Step| matches!(step, Step::Vertices { ids: None, conditions } if conditions.is_empty());
    let (mut may_help, mut has_hop) = (false, false);
    traversal.visit(&mut |node| {
        may_help |= is_label_test(&node.step) || is_dedup(&node.step) || is_scan(&node.step);
        has_hop |= is_hop(&node.step);
    });
    may_help && has_hop && !traversal.is_mutating()
}

impl VertexSets {
    /// Any label set.
    pub fn any() -> Self {
        VertexSets { known: None, are_all: false }
    }
}

impl KnownConnections {
    /// Facts with the names that take a label set, which `names_of` gives.
    pub fn new(facts: Arc<Connections>, names_of: impl Fn(LabelSetId) -> Vec<Name>) -> Self {
        let mut sets = Vec::new();
        for lists in facts.lists() {
            sets.extend([lists.vertices, lists.table.label]);
            if let Ends::Sets(ends) = &lists.ends {
                sets.extend(ends);
            }
        }
        KnownConnections { facts, sets: Arc::new(NamedSets::new(sets, names_of)) }
    }

    /// The number of facts when they were read.
    pub fn epoch(&self) -> u64 {
        self.facts.epoch
    }

    /// The label sets that are left after a test for one of these labels.
    pub(crate) fn narrowed(&self, sets: &VertexSets, labels: &[Name]) -> VertexSets {
        let mut left = self.sets.taken_by(labels);
        if let Some(known) = &sets.known {
            left.retain(|set| known.binary_search(set).is_ok());
        }
        VertexSets { known: Some(left), are_all: sets.are_all }
    }

    /// The label sets of the vertices to which edges with one of these labels lead; with no labels, all edges.
    pub(crate) fn ends(&self, from: &VertexSets, direction: Direction, labels: &[Name]) -> VertexSets {
        let mut known = Sets::new();
        let named = self.sets.taken_by(labels);
        for lists in self.facts.lists() {
            let is_followed = (direction == Direction::Both || direction == lists.table.direction)
                && (labels.is_empty() || named.binary_search(&lists.table.label).is_ok())
                && from.known.as_ref().is_none_or(|known| known.binary_search(&lists.vertices).is_ok());
            match &lists.ends {
                Ends::Sets(ends) if is_followed => known.extend_from_slice(ends),
                Ends::Any if is_followed => return VertexSets::any(),
                _ => {}
            }
        }
        known.sort_unstable();
        known.dedup();
        VertexSets { known: Some(known), are_all: true }
    }

    /// Names that take the label sets whose vertices may have such an edge; `None` if there are none, or all have some.
    pub(crate) fn sources(&self, edges: &EdgesOf) -> Option<Vec<Name>> {
        let EdgesOf { direction, labels } = edges;
        let has_edges = |lists: &&ListFacts| {
            (*direction == Direction::Both || *direction == lists.table.direction)
                && (labels.is_empty() || self.sets.is_taken(lists.table.label, labels))
        };
        let mut sets: Vec<LabelSetId> =
            self.facts.lists().iter().filter(has_edges).map(|lists| lists.vertices).collect();
        sets.sort_unstable();
        sets.dedup();
        let has_edges = |lists: &ListFacts| sets.binary_search(&lists.vertices).is_ok();
        // Further label sets have no edges at all. Most graphs have none of these.
        if sets.is_empty() || self.facts.lists().iter().all(has_edges) {
            return None;
        }
        sets.into_iter().map(|set| self.sets.whole_name(set).cloned()).collect()
    }

    /// Returns true if no two edges with one of these labels, or any, lead from these vertices to the same one.
    pub(crate) fn leads_nowhere_twice(&self, from: &VertexSets, direction: Direction, labels: &[Name]) -> bool {
        if direction == Direction::Both {
            return false;
        }
        let is_followed = |label: LabelSetId| labels.is_empty() || self.sets.is_taken(label, labels);
        let leads_back = |lists: &&ListFacts| {
            let meets = |known: &Sets| match &lists.ends {
                Ends::Sets(ends) => ends.iter().any(|end| known.contains(end)),
                Ends::Any => true,
            };
            lists.table.direction == direction.reverse()
                && is_followed(lists.table.label)
                && from.known.as_ref().is_none_or(meets)
        };
        // By label set. A vertex may have an edge of each kind.
        let ends: Vec<&ListFacts> = self.facts.lists().iter().filter(leads_back).collect();
        ends.iter().all(|lists| lists.is_functional) && ends.windows(2).all(|two| two[0].vertices != two[1].vertices)
    }

    /// Returns true if all vertices of these label sets pass a test for one of these labels.
    pub(crate) fn all_pass(&self, sets: &VertexSets, labels: &[Name]) -> bool {
        let all = |known: &Sets| known.iter().all(|set| self.sets.is_taken(*set, labels));
        sets.are_all && sets.known.as_ref().is_some_and(all)
    }
}

#[cfg(test)]
mod tests {
    use mangrove_graph::statistics::EdgeTable;

    use super::*;

    const NAMES: [&[&str]; 5] = [&["knows"], &["likes"], &["person"], &["post"], &["person", "admin", "admin::person"]];

    /// Persons know persons and admins, and like posts; admins like anything.
    fn known() -> KnownConnections {
        let lists = |vertices, direction, label, ends: &[u32]| ListFacts {
            vertices: LabelSetId(vertices),
            table: EdgeTable { direction, label: LabelSetId(label) },
            ends: match ends {
                [] => Ends::Any,
                ends => Ends::Sets(ends.iter().map(|end| LabelSetId(*end)).collect()),
            },
            is_functional: false,
        };
        let lists = vec![
            lists(2, Direction::Out, 0, &[2, 4]),
            lists(2, Direction::In, 0, &[2]),
            lists(4, Direction::In, 0, &[2]),
            lists(2, Direction::Out, 1, &[3]),
            lists(3, Direction::In, 1, &[2]),
            lists(4, Direction::Out, 1, &[]),
        ];
        let names_of = |set: LabelSetId| NAMES[set.0 as usize].iter().map(|name| Name::from(*name)).collect();
        KnownConnections::new(Arc::new(Connections::new(1, lists)), names_of)
    }

    #[track_caller]
    fn check(from: &[&str], direction: Direction, edges: &[&str], labels: &[&str], passes: bool) {
        let known = known();
        let names = |names: &[&str]| -> Vec<Name> { names.iter().map(|name| Name::from(*name)).collect() };
        let mut sets = VertexSets::any();
        if !from.is_empty() {
            sets = known.narrowed(&sets, &names(from));
            assert!(!known.all_pass(&sets, &names(from)), "there may be vertices without edges");
        }
        let ends = known.ends(&sets, direction, &names(edges));
        assert_eq!(known.all_pass(&ends, &names(labels)), passes, "{from:?} {direction:?} {edges:?} {labels:?}");
    }

    #[test]
    fn a_test_is_left_out_if_all_ends_pass_it() {
        use Direction::{Both, In, Out};
        check(&[], Out, &["knows"], &["person"], true);
        check(&[], Out, &["knows"], &["admin"], false);
        check(&[], In, &["likes"], &["person"], true);
        check(&[], In, &["likes"], &["admin::person"], false);
        check(&[], In, &["likes"], &["post", "person"], true);
        check(&[], Both, &["knows"], &["person"], true);
        check(&["post"], In, &[], &["person"], true);
        // Admins like vertices of any labels. A person may be one.
        check(&["person"], Out, &["likes"], &["post"], false);
        check(&["admin"], In, &["knows"], &["person"], true);
        // There is no such edge.
        check(&["post"], Out, &[], &["person"], true);
        check(&[], Out, &["rates"], &["person"], true);
    }
}
