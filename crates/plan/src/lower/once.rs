//! Decides where a plan may evaluate once instead of often: a test once for equal rows, and a loop once for each
//! vertex. A plan may do so only if no result shows the difference. Wherever a function here is not sure, it returns
//! false.

use super::Lowering;
use super::order::Chain;
use crate::logical::{By, Name, Repeat, Step, StepNode, Traversal};
use crate::physical::{LocalKind, Op, PathRequirement};
use crate::purity::{is_plain_chain, is_repeatable, is_row_by_row, may_visit_once, names_read};

impl Lowering<'_> {
    /// Returns true if the answer of a test after this chain depends only on the row's object and on side effects, and
    /// remembering it pays: the test follows edges, and rows may be equal, which the rows of a source never are.
    pub(super) fn is_by_object(&self, chain: &Chain, operands: &[Traversal]) -> bool {
        let walks = |traversal: &Traversal| traversal.any(|step| step.traits().walks);
        self.options.merge
            && !self.mutating
            && !comes_from_source(chain)
            && operands.iter().any(walks)
            && operands.iter().all(|t| is_repeatable(t) && self.reads_no_label(t))
    }

    /// Returns true if an instance of a loop may go on from each vertex only once. Rows must be the same whatever path
    /// they took, and either only the existence of a result matters, or a later step removes equal rows.
    pub(super) fn visits_once(&self, repeat: &Repeat, following: &FollowingSteps<'_>) -> bool {
        let requirements = self.requirements;
        let all_alike = !requirements.keep_earlier_objects() && !requirements.loops && !requirements.sacks;
        self.options.merge && !self.mutating && all_alike && may_visit_once(repeat) && is_set(following)
    }

    /// Returns true if a name is a label and no side effect, and no step shows paths.
    pub(super) fn is_only_a_label(&self, name: &Name) -> bool {
        self.requirements.path != PathRequirement::Full && !self.side_effects.contains(name)
    }

    /// Returns true if a step selects the object at which the row already is: `as("a").select("a")`.
    pub(super) fn selects_what_is_there(&self, before: &StepNode, step: &StepNode) -> bool {
        let Step::Select { lookup, labels, by, .. } = &step.step else { return false };
        let [label] = &labels[..] else { return false };
        lookup.is_newest()
            && by.iter().all(|by| *by == By::Identity)
            && step.labels.is_empty()
            && matches!(before.step, Step::Vertices { .. } | Step::Expand { to_edges: false, .. })
            && before.labels.contains(label)
            && self.is_only_a_label(label)
    }

    /// Returns true if a traversal reads no step label of the whole traversal.
    fn reads_no_label(&self, traversal: &Traversal) -> bool {
        names_read(traversal).iter().all(|name| !self.labels_given.contains(name))
    }
}

/// The steps after a loop in its chain.
pub(super) struct FollowingSteps<'a> {
    /// The steps in their order.
    pub steps: &'a [StepNode],
    /// The position in `steps` of the last step that adds to a side effect.
    pub fills_last: Option<usize>,
    /// True if it only matters whether the chain has a result.
    pub existence_only: bool,
}

/// Returns true if the results are the same, however often each row comes to these steps.
fn is_set(following: &FollowingSteps<'_>) -> bool {
    let ends = |node: &StepNode| !is_row_by_row(&node.step);
    match following.steps.iter().position(ends) {
        None => following.existence_only,
        Some(end) => {
            let dedups = matches!(&following.steps[end].step, Step::Dedup { labels, by } if labels.is_empty()
                && !by.iter().any(|by| matches!(by, By::Traversal(_))));
            // A test may read a side effect. If a later step fills it, the answer may change.
            let fills = following.fills_last.is_some_and(|last| last >= end);
            dedups && !fills && is_plain_chain(&following.steps[..end])
        }
    }
}

/// Returns true if the rows at the end of a chain are elements that a source found, each once.
fn comes_from_source(chain: &Chain) -> bool {
    let passes = |operator: &Op| {
        matches!(operator, Op::Filter(_) | Op::HasEdges { .. } | Op::Is(_))
            || matches!(operator, Op::Local(scope) if matches!(scope.kind, LocalKind::Filter(..)))
    };
    match &chain.stages[..] {
        [first, rest @ ..] => {
            matches!(first.operator, Op::Vertices { .. }) && rest.iter().all(|stage| passes(&stage.operator))
        }
        [] => false,
    }
}

/// Returns true if a step, or one nested in it, adds to a side effect.
pub(super) fn is_filling(node: &StepNode) -> bool {
    let mut fills = node.step.fills_side_effect();
    node.step.visit_nested(&mut |_, nested| fills |= nested.fills_side_effects());
    fills
}
