//! What may be asked once instead of often, or of each row by itself: the preconditions that several rewrites share.

use std::collections::HashSet;

use mangrove_gremlin::Order;

use crate::logical::{
    By, Configuration, EdgeEnd, Emit, LocalFunction, Name, OrderBy, Repeat, Step, StepNode, Traversal, Until,
};

/// Whether nobody can tell how often and when a traversal is run for an object, and by which way the object was come to:
/// it writes nothing, fills no side effects, calls nobody, leaves nothing to chance, and looks neither at paths nor at loop
/// counters nor at sacks. It may read step labels and side effects ([`names_read`]).
pub fn is_repeatable(traversal: &Traversal) -> bool {
    let shuffles = |criteria: &[OrderBy]| criteria.iter().any(|c| c.order == Order::Shuffle);
    let leaves_traces = traversal.is_mutating() || traversal.uses_side_effects();
    !leaves_traces
        && !traversal.any(|step| match step {
            Step::Path { .. }
            | Step::PathShape { .. }
            | Step::Tree { .. }
            | Step::Loops(_)
            | Step::Sack
            | Step::FoldSack(..)
            | Step::Barrier { norm_sack: true }
            | Step::SelectKey { .. }
            | Step::Fail(_)
            | Step::EdgeVertex(EdgeEnd::Other) => true,
            Step::Order(criteria) | Step::Local(LocalFunction::Order(criteria)) => shuffles(criteria),
            _ => false,
        })
}

/// Whether what the step makes of a stream is what it makes of each row by itself, in whatever order and however often: it
/// keeps nothing, bears no label (its labels are the caller's to look at), and what is nested in it is repeatable.
pub fn is_row_by_row(step: &Step) -> bool {
    let plain = |by: &[By]| by.iter().all(|by| !matches!(by, By::Traversal(_)));
    match step {
        Step::Expand { .. }
        | Step::EdgeVertex(EdgeEnd::Source | EdgeEnd::Target | EdgeEnd::Both)
        | Step::Has(_)
        | Step::Is(_)
        | Step::Members { .. }
        | Step::Values(_)
        | Step::Properties(_)
        | Step::Id
        | Step::Label
        | Step::Key
        | Step::PropertyValue
        | Step::Identity
        | Step::Unfold => true,
        Step::WherePredicate { by, .. } => plain(by),
        Step::FilterTraversal(_, operands) => operands.iter().all(is_repeatable),
        _ => false,
    }
}

/// Whether a chain is row by row, and nobody can read labels of it.
pub fn is_plain_chain(steps: &[StepNode]) -> bool {
    steps.iter().all(|node| node.labels.is_empty() && is_row_by_row(&node.step))
}

/// Whether a loop finds the same things within reach when it goes on from each vertex only once, the first time it comes
/// there: then it also has the most iterations left. So it may not be asked for what is exactly so many steps away.
pub fn may_visit_once(repeat: &Repeat) -> bool {
    let emits = match &repeat.emit {
        None => true,
        Some(Emit::Always | Emit::Test(_)) => true,
        Some(Emit::Traversal(test)) => is_repeatable(test),
    };
    let leaves = match &repeat.until {
        None => repeat.emit.is_some(),
        // What leaves in the end is not asked what is emitted on the way.
        Some(Until::Times(_)) => matches!(repeat.emit, Some(Emit::Always)),
        Some(Until::Test(_)) => true,
        Some(Until::Traversal(test)) => is_repeatable(test),
    };
    emits && leaves && is_plain_chain(&repeat.body.steps)
}

/// Every label and side effect that is read in a traversal.
pub fn names_read(traversal: &Traversal) -> Vec<Name> {
    let mut names = Vec::new();
    traversal.visit(&mut |node| names.extend(node.step.names_read().into_iter().cloned()));
    names
}

/// Every label that steps of a traversal bear.
pub fn labels_given(traversal: &Traversal) -> HashSet<Name> {
    let mut labels = HashSet::new();
    traversal.visit(&mut |node| labels.extend(node.labels.iter().cloned()));
    labels
}

/// Every side effect that has a value at some time: those that the source gives and those that steps fill.
pub fn side_effects_filled(traversal: &Traversal, configuration: &Configuration) -> HashSet<Name> {
    let mut names: HashSet<Name> = configuration.side_effects.iter().map(|(name, _)| name.clone()).collect();
    traversal.visit(&mut |node| match &node.step {
        Step::Aggregate { name, .. } | Step::Subgraph(name) => {
            names.insert(name.clone());
        }
        Step::Group { side_effect, .. } | Step::GroupCount { side_effect, .. } | Step::Tree { side_effect, .. } => {
            names.extend(side_effect.clone());
        }
        _ => {}
    });
    names
}
