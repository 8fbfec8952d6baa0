//! `dedup()` is left out if no two rows have the same object.
//!
//! A source has each vertex once. A hop from different vertices leads to no vertex twice, if each vertex at its end has at
//! most one such edge in return: `in("hasCreator")` from persons leads to each message once, since a message has one
//! creator. The facts about the edges of a graph say so (PLAN-13). The rows are then those of a tree, and a count after
//! them adds up degrees.
//!
//! As with tests of labels, the rule follows a chain from its first operator on. Nested chains begin with any rows, and a
//! source in them runs for each.

use mangrove_graph::Value;

use super::drop_label_tests::{Objects, after, keeps_objects};
use crate::connections::KnownConnections;
use crate::logical::Operand;
use crate::physical::{Access, EdgesOf, Op, Stage};
use crate::physical_rules::{Facts, Reliance};

/// What is known of two rows.
enum Rows {
    /// They may have the same object.
    Equal,
    /// They have different ones, since no hop along any of these edges has led to a vertex twice.
    Different(Vec<EdgesOf>),
}

pub(super) fn apply(stages: &mut Vec<Stage>, facts: &Facts<'_>) -> bool {
    let Some(Reliance { connections, said }) = facts.reliance else { return false };
    let is_dedup = |stage: &Stage| matches!(stage.operator, Op::Dedup { computed: 0 });
    let Some(last) = stages.iter().rposition(is_dedup) else { return false };
    let mut objects = Objects::Unknown;
    let mut rows = Rows::Equal;
    let mut dropped = Vec::new();
    for (at, stage) in stages[..=last].iter_mut().enumerate() {
        if is_dedup(stage) {
            if let Rows::Different(edges) = &rows {
                edges.iter().for_each(|edges| said.say_different(edges));
                stage.operator = Op::Identity;
                dropped.push(at);
            } else {
                rows = Rows::Different(Vec::new());
            }
        } else {
            rows = follow(facts.is_first && at == 0, &stage.operator, &objects, rows, connections);
        }
        objects = after(&stage.operator, objects, connections);
    }
    let goes = |at: usize, stage: &Stage| dropped.contains(&at) && stage.labels.is_empty();
    let mut at = 0..;
    stages.retain(|stage| !at.next().is_some_and(|at| goes(at, stage)));
    !dropped.is_empty()
}

/// What is known of rows after an operator. `is_first`: it begins the outermost traversal.
fn follow(is_first: bool, operator: &Op, objects: &Objects, rows: Rows, connections: &KnownConnections) -> Rows {
    match (operator, rows) {
        (Op::Vertices { access, .. }, _) if is_first && has_each_once(access) => Rows::Different(Vec::new()),
        (Op::Expand { direction, labels, to_edges: false }, Rows::Different(mut known)) => {
            let Objects::Vertices(from, _) = objects else { return Rows::Equal };
            if !connections.leads_nowhere_twice(from, *direction, labels) {
                return Rows::Equal;
            }
            known.push(EdgesOf { direction: *direction, labels: labels.clone() });
            Rows::Different(known)
        }
        (operator, rows) if keeps_objects(operator) => rows,
        _ => Rows::Equal,
    }
}

/// Returns true if a source finds no vertex twice.
fn has_each_once(access: &Access) -> bool {
    match access {
        Access::All | Access::Labels(_) | Access::Where { .. } | Access::IdSet(_) | Access::Index(_) => true,
        // A list of ids is no literal that is taken out, and a parameter may be one.
        Access::Ids(ids) => match &ids[..] {
            [Operand::Lifted(_)] => true,
            [Operand::Literal(id)] => !matches!(id, Value::List(_) | Value::Set(_)),
            _ => false,
        },
    }
}
