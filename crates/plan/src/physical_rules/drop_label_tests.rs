//! A test for labels is left out after a hop that leads to nothing but vertices with these labels.
//!
//! `out("hasTag").hasLabel("Tag")` reads the label of every neighbor, and mostly all of them are tags. If the facts about
//! the edges of the graph prove it (PLAN-13), the test goes. The hop may then be counted by degrees, or merged with the
//! next one.
//!
//! The rule follows a chain from its first operator on, with the label sets that the vertices may have. A chain that is
//! nested in an operator begins with vertices of any labels. After an operator that the rule does not know, the objects
//! of rows may be anything.

use crate::connections::{KnownConnections, VertexSets};
use crate::logical::{Condition, EdgeEnd, Name};
use crate::physical::{Access, EdgesOf, LocalKind, Op, Stage};
use crate::physical_rules::{Facts, Reliance};
use mangrove_graph::Direction;

/// What is known of the objects of rows.
pub(super) enum Objects {
    /// They may be anything.
    Unknown,
    /// Vertices. Where the last hop led to them, it is told with them.
    Vertices(VertexSets, Option<EdgesOf>),
    /// Edges that were followed from vertices.
    Edges { from: VertexSets, edges: EdgesOf },
}

pub(super) fn apply(stages: &mut Vec<Stage>, facts: &Facts<'_>) -> bool {
    let Some(Reliance { connections, said }) = facts.reliance else { return false };
    let Some(last) = stages.iter().rposition(|stage| tests_labels(&stage.operator)) else { return false };
    let mut objects = Objects::Unknown;
    let mut changed = false;
    for stage in &mut stages[..=last] {
        if let (Op::Filter(conditions), Objects::Vertices(sets, edges)) = (&mut stage.operator, &objects) {
            conditions.retain(|condition| match condition {
                Condition::LabelIn(labels) if connections.all_pass(sets, labels) => {
                    changed = true;
                    said.say(edges.as_ref(), labels);
                    false
                }
                _ => true,
            });
        }
        objects = after(&stage.operator, objects, connections);
    }
    if changed {
        remove_empty_filters(stages);
    }
    changed
}

fn tests_labels(operator: &Op) -> bool {
    let is_of_labels = |condition: &Condition| matches!(condition, Condition::LabelIn(_));
    matches!(operator, Op::Filter(conditions) if conditions.iter().any(is_of_labels))
}

/// What is known of the objects after an operator.
pub(super) fn after(operator: &Op, objects: Objects, connections: &KnownConnections) -> Objects {
    match operator {
        Op::Vertices { access, conditions } => {
            let mut sets = VertexSets::any();
            if let Access::Labels(labels) | Access::Where { labels: Some(labels), .. } = access {
                sets = connections.narrowed(&sets, labels);
            }
            Objects::Vertices(narrowed(sets, conditions, connections), None)
        }
        Op::Expand { direction, labels, to_edges } => {
            // A row that is no vertex ends the query with an error.
            let from = match objects {
                Objects::Vertices(sets, _) => sets,
                Objects::Unknown | Objects::Edges { .. } => VertexSets::any(),
            };
            let edges = EdgesOf { direction: *direction, labels: labels.clone() };
            match to_edges {
                true => Objects::Edges { from, edges },
                false => Objects::Vertices(connections.ends(&from, *direction, labels), Some(edges)),
            }
        }
        Op::EdgeVertex(end) => match objects {
            Objects::Edges { from, edges } if leads_on(edges.direction, *end) => {
                Objects::Vertices(connections.ends(&from, edges.direction, &edges.labels), Some(edges))
            }
            _ => Objects::Unknown,
        },
        Op::Filter(conditions) => match objects {
            Objects::Vertices(sets, edges) => Objects::Vertices(narrowed(sets, conditions, connections), edges),
            other => other,
        },
        operator if keeps_objects(operator) => objects,
        _ => Objects::Unknown,
    }
}

/// The label sets that are left after conditions.
fn narrowed(sets: VertexSets, conditions: &[Condition], connections: &KnownConnections) -> VertexSets {
    conditions.iter().fold(sets, |sets, condition| match condition {
        Condition::LabelIn(labels) => connections.narrowed(&sets, labels),
        _ => sets,
    })
}

/// Returns true if an end of an edge is the one that was not followed from.
fn leads_on(direction: Direction, end: EdgeEnd) -> bool {
    matches!(
        (direction, end),
        (Direction::Out, EdgeEnd::Target | EdgeEnd::Other) | (Direction::In, EdgeEnd::Source | EdgeEnd::Other)
    )
}

/// Returns true if each row that comes out of an operator has an object that went in.
pub(super) fn keeps_objects(operator: &Op) -> bool {
    match operator {
        Op::HasEdges { .. }
        | Op::HasEdgeTo { .. }
        | Op::TestDegrees { .. }
        | Op::Is(_)
        | Op::Modulate(_)
        | Op::CompareName { .. }
        | Op::MemberOfName { .. }
        | Op::CompareComputed(_)
        | Op::PathShape { .. }
        | Op::Identity
        | Op::OneByOne
        | Op::Coin(_)
        | Op::Order { .. }
        | Op::Dedup { .. }
        | Op::Range { .. }
        | Op::Tail(_)
        | Op::Barrier { .. }
        | Op::Merge => true,
        Op::Local(scope) => matches!(scope.kind, LocalKind::Filter(..)),
        _ => false,
    }
}

/// Removes filters without conditions. The rows that are expected to leave one are those that leave the operator before.
fn remove_empty_filters(stages: &mut Vec<Stage>) {
    stages.dedup_by(|next, stage| {
        let is_empty = matches!(&next.operator, Op::Filter(conditions) if conditions.is_empty());
        let goes = is_empty && next.labels.is_empty();
        if goes {
            stage.expected = next.expected;
        }
        goes
    });
}

/// What a plan relies on, for `explain()`.
#[derive(Default)]
pub(crate) struct Said(std::cell::RefCell<Vec<String>>);

impl Said {
    /// Notes that all of these edges lead to vertices with one of these labels.
    pub(crate) fn say(&self, edges: Option<&EdgesOf>, labels: &[Name]) {
        let edges = edges.map(crate::explain::edges_text).unwrap_or_default();
        self.note(format!("facts: {edges} leads to {} alone", labels.join(" | ")));
    }

    /// Notes that a hop along these edges leads to no vertex twice.
    pub(crate) fn say_different(&self, edges: &EdgesOf) {
        self.note(format!("facts: {} leads to no vertex twice", crate::explain::edges_text(edges)));
    }

    /// Notes that vertices with one of these labels alone have such edges.
    pub(crate) fn say_sources(&self, edges: &EdgesOf, labels: &[Name]) {
        self.note(format!("facts: {} leads from {} alone", crate::explain::edges_text(edges), labels.join(" | ")));
    }

    fn note(&self, text: String) {
        let mut said = self.0.borrow_mut();
        if !said.contains(&text) {
            said.push(text);
        }
    }

    /// Returns what was noted.
    pub(crate) fn into_lines(self) -> Vec<String> {
        self.0.into_inner()
    }
}
