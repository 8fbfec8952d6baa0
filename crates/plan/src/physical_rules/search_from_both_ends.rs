//! A search for the first arrival goes on from both ends, if its targets have known ids or indexes find them.
//!
//! From one end a search of `k` hops meets about `d^k` vertices, if `d` is the mean degree. From both ends it meets
//! about `2 · d^(k/2)`. The operator chooses at each level the side that costs less, so a hub at one end does no harm.
//!
//! The rule takes the loops that the logical rule *search for the first arrival* has made searches. The body must be a
//! hop with conditions on edges and vertices, since these hold in either direction.
//!
//! Indexes find targets as they find the elements of a source with the same conditions. How many they find is known
//! only in a run, so the plan keeps the search from one end for the runs in which they are many.

use mangrove_graph::Direction;
use mangrove_gremlin::Comparison;

use crate::logical::{Avoids, Condition, EdgeEnd, FilterKind, LoopSearch, Operand, Test};
use crate::physical::{BothEnds, LocalKind, LoopTest, Op, PathBound, Pipeline, RepeatScope, Stage, TargetAccess};
use crate::physical_rules::Facts;

pub(super) fn apply(stages: &mut [Stage], facts: &Facts<'_>) -> bool {
    let mut changed = false;
    for stage in stages {
        if let Op::Repeat(scope) = &stage.operator
            && stage.labels.is_empty()
            && let Some(mut both) = both_ends(scope, facts)
        {
            let operator = std::mem::replace(&mut stage.operator, Op::Identity);
            both.one_sided.stages.push(Stage { expected: stage.expected, ..Stage::new(operator) });
            stage.operator = Op::BothEnds(Box::new(both));
            changed = true;
        }
    }
    changed
}

/// The search that a loop is; `None` if it cannot begin at the targets.
fn both_ends(scope: &RepeatScope, facts: &Facts<'_>) -> Option<BothEnds> {
    let LoopSearch::Search(avoids) = scope.search else { return None };
    // Several rows share a loop that avoids nothing.
    if avoids == Avoids::Nothing || scope.until_first || scope.emit_first {
        return None;
    }
    let (target, through_targets, bound) = leaving(scope)?;
    let mut both = hop(&scope.body)?;
    both.found_by = match target.iter().find_map(ids) {
        Some(ids) => TargetAccess::Ids(ids),
        None => TargetAccess::Index((facts.vertices_by_index)(target)?),
    };
    (both.target, both.through_targets, both.bound, both.avoids) = (target.to_vec(), through_targets, bound, avoids);
    Some(both)
}

/// The operands of a condition on ids that a look-up answers.
fn ids(condition: &Condition) -> Option<Vec<Operand>> {
    match condition {
        Condition::Id(test @ (Test::Compare(Comparison::Eq, _) | Test::Within(_))) => test.equal_operands(),
        _ => None,
    }
}

/// The conditions of the targets, whether paths may lead through targets, and the bound.
fn leaving(scope: &RepeatScope) -> Option<(&[Condition], bool, Option<PathBound>)> {
    match (&scope.until, &scope.emit) {
        (Some(LoopTest::Exists(until)), None) => match bounded(until) {
            Some((target, bound)) => Some((target, false, Some(bound))),
            None => Some((conditions(until)?, false, None)),
        },
        (None, Some(LoopTest::Exists(emit))) => Some((conditions(emit)?, true, None)),
        (Some(LoopTest::Times(bound)), Some(LoopTest::Exists(emit))) => {
            Some((conditions(emit)?, true, Some(PathBound::Times(bound.clone()))))
        }
        _ => None,
    }
}

/// The conditions of a chain that is one filter.
fn conditions(pipeline: &Pipeline) -> Option<&[Condition]> {
    match &pipeline.stages[..] {
        [Stage { operator: Op::Filter(conditions), labels, .. }] if labels.is_empty() => Some(conditions),
        _ => None,
    }
}

/// The conditions and the bound of `or(has(…), loops().is(n))`, in either order.
fn bounded(until: &Pipeline) -> Option<(&[Condition], PathBound)> {
    let [Stage { operator: Op::Local(scope), .. }] = &until.stages[..] else { return None };
    let LocalKind::Filter(FilterKind::Any, operands) = &scope.kind else { return None };
    let [a, b] = &operands[..] else { return None };
    let target_and_bound = |target, bound| Some((conditions(target)?, loops(bound)?));
    target_and_bound(a, b).or_else(|| target_and_bound(b, a))
}

/// The test of `loops().is(n)`.
fn loops(pipeline: &Pipeline) -> Option<PathBound> {
    match &pipeline.stages[..] {
        [Stage { operator: Op::Loops(_), .. }, Stage { operator: Op::Is(test), .. }] => {
            Some(PathBound::Loops(test.clone()))
        }
        _ => None,
    }
}

/// The hop of a body and its conditions; `None` if the body does more.
fn hop(body: &Pipeline) -> Option<BothEnds> {
    if body.stages.iter().any(|stage| !stage.labels.is_empty()) {
        return None;
    }
    let mut operators = body.stages.iter().map(|stage| &stage.operator);
    let Op::Expand { direction, labels, to_edges } = operators.next()? else { return None };
    let mut both = BothEnds {
        direction: *direction,
        labels: labels.clone(),
        over_edges: *to_edges,
        edges: Vec::new(),
        vertices: Vec::new(),
        found_by: TargetAccess::Ids(Vec::new()),
        target: Vec::new(),
        through_targets: false,
        avoids: Avoids::Vertex,
        bound: None,
        one_sided: Pipeline::default(),
    };
    let mut at_edge = *to_edges;
    for operator in operators {
        match operator {
            Op::Filter(conditions) if at_edge => both.edges.extend(conditions.iter().cloned()),
            Op::Filter(conditions) => both.vertices.extend(conditions.iter().cloned()),
            Op::EdgeVertex(end) if at_edge && leads_on(*direction, *end) => at_edge = false,
            Op::Identity => {}
            _ => return None,
        }
    }
    (!at_edge).then_some(both)
}

/// Returns true if an end of an edge is the neighbor to which the edge leads.
fn leads_on(direction: Direction, end: EdgeEnd) -> bool {
    match end {
        EdgeEnd::Other => true,
        EdgeEnd::Target => direction == Direction::Out,
        EdgeEnd::Source => direction == Direction::In,
        EdgeEnd::Both => false,
    }
}
