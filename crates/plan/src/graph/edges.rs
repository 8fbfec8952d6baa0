//! Hops over edges that are tested on the way.
//!
//! | steps | direction of the hop |
//! |---|---|
//! | `outE(l).has(…).inV()` | out |
//! | `inE(l).has(…).outV()` | in |
//! | `bothE(l).has(…).otherV()` | both |
//! | `union(outE(l).has(…).inV(), inE(l).has(…).outV())` | both |
//!
//! There may be several `has()`, or none. The edges have no names.
//!
//! `otherV()` asks the path which vertex the row came from. So rows would have to keep paths. The union needs none, and
//! its results are the same: `bothE()` meets an edge at each of its ends, and a self-loop twice. Of the two branches, each
//! meets an edge at one of its ends, and a self-loop once.

use mangrove_graph::Direction;
use mangrove_gremlin::Position;

use super::preconditions::is_total;
use crate::logical::{Condition, EdgeEnd, Name, Step, StepNode, Traversal};

/// A hop over edges, as steps say it.
pub(super) struct EdgeHop<'a> {
    pub direction: Direction,
    pub labels: &'a [Name],
    /// What is asked of the edges.
    pub conditions: Vec<Condition>,
    /// How many steps say it. The last one is about the end, and has its names.
    pub steps: usize,
}

/// The hop over edges that steps begin with.
pub(super) fn read(steps: &[StepNode]) -> Option<EdgeHop<'_>> {
    match steps.first() {
        Some(StepNode { step: Step::Union(branches), policy, .. }) if policy.is_default() => read_union(branches),
        _ => read_chain(steps),
    }
}

fn read_chain(steps: &[StepNode]) -> Option<EdgeHop<'_>> {
    let (first, rest) = steps.split_first()?;
    let Step::Expand { direction, labels, to_edges: true } = &first.step else { return None };
    let is_nameless = |node: &StepNode| node.labels.is_empty() && node.policy.is_default();
    if !is_nameless(first) {
        return None;
    }
    let mut conditions = Vec::new();
    for (at, node) in rest.iter().enumerate() {
        match (&node.step, direction) {
            (Step::Has(more), _) if is_nameless(node) && more.iter().all(is_total) => {
                conditions.extend(more.iter().cloned());
            }
            (Step::EdgeVertex(EdgeEnd::Target), Direction::Out)
            | (Step::EdgeVertex(EdgeEnd::Source), Direction::In)
            | (Step::EdgeVertex(EdgeEnd::Other), Direction::Both)
                if node.policy.is_default() =>
            {
                return Some(EdgeHop { direction: *direction, labels, conditions, steps: at + 2 });
            }
            _ => return None,
        }
    }
    None
}

fn read_union(branches: &[Traversal]) -> Option<EdgeHop<'_>> {
    let [out, back] = branches else { return None };
    let (first, second) = (read_alone(out)?, read_alone(back)?);
    let are_opposite = (first.direction, second.direction) == (Direction::Out, Direction::In);
    let are_same = first.labels == second.labels && first.conditions == second.conditions;
    (are_opposite && are_same).then_some(EdgeHop { direction: Direction::Both, steps: 1, ..first })
}

/// The hop that is all of a traversal, if its end has no name.
fn read_alone(traversal: &Traversal) -> Option<EdgeHop<'_>> {
    let is_nameless = traversal.steps.last().is_some_and(|end| end.labels.is_empty());
    read_chain(&traversal.steps).filter(|hop| hop.steps == traversal.steps.len() && is_nameless)
}

/// The steps of a hop over edges with conditions. They read no path.
pub(super) fn write(
    direction: Direction,
    labels: &[Name],
    conditions: &[Condition],
    position: Option<Position>,
) -> Vec<StepNode> {
    let chain = |direction, end| {
        let edges = Step::Expand { direction, labels: labels.to_vec(), to_edges: true };
        let steps = [edges, Step::Has(conditions.to_vec()), Step::EdgeVertex(end)];
        steps.map(|step| StepNode::new(step, position)).to_vec()
    };
    match direction {
        Direction::Out => chain(Direction::Out, EdgeEnd::Target),
        Direction::In => chain(Direction::In, EdgeEnd::Source),
        Direction::Both => {
            let branches = [
                write(Direction::Out, labels, conditions, position),
                write(Direction::In, labels, conditions, position),
            ];
            let union = Step::Union(branches.map(|steps| Traversal { steps }).to_vec());
            vec![StepNode::new(union, position)]
        }
    }
}

/// The traversal with unions instead of the hops of its outermost chain that end in `otherV()`. `None` if it has none.
pub(super) fn without_paths(traversal: &Traversal) -> Option<Traversal> {
    let is_other = |node: &StepNode| node.step == Step::EdgeVertex(EdgeEnd::Other);
    if !traversal.steps.iter().any(is_other) {
        return None;
    }
    let mut steps: Vec<StepNode> = Vec::with_capacity(traversal.steps.len());
    let mut left = &traversal.steps[..];
    while let Some(first) = left.first() {
        let hop = read(left).filter(|hop| hop.steps > 1 && hop.direction == Direction::Both);
        let taken = hop.as_ref().map_or(1, |hop| hop.steps);
        match hop {
            Some(hop) => {
                steps.extend(write(Direction::Both, hop.labels, &hop.conditions, first.position));
                if let Some(last) = steps.last_mut() {
                    last.labels.clone_from(&left[taken - 1].labels);
                }
            }
            None => steps.push(first.clone()),
        }
        left = &left[taken..];
    }
    (steps.len() < traversal.steps.len()).then_some(Traversal { steps })
}
