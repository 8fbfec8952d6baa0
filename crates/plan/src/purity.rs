//! What rules and the planner ask of whole traversals: what they do besides giving results, and what may be asked once
//! instead of often.
//!
//! Every answer is put together from what the table of steps says ([`Step::traits`]).

use std::collections::HashSet;

use crate::logical::{
    Configuration, Effect, Emit, Enters, Name, PathUse, Repeat, SackUse, Step, StepNode, Traversal, Until,
};

impl Traversal {
    /// Returns true if it writes, to the graph or to a file.
    pub fn is_mutating(&self) -> bool {
        self.any(|step| matches!(step.traits().effect, Effect::Writes | Effect::File))
    }

    /// Returns true if a step of it adds to a side effect.
    pub fn fills_side_effects(&self) -> bool {
        self.any(Step::fills_side_effect)
    }

    /// Returns true if it calls services.
    pub fn calls_services(&self) -> bool {
        self.any(|step| step.traits().effect == Effect::Service)
    }

    /// Returns true if it reads or writes a file.
    pub fn uses_files(&self) -> bool {
        self.any(|step| step.traits().effect == Effect::File)
    }

    /// Returns true if its operators share something that only one node has: side effects, a service's state, a clock, or
    /// random numbers in one order.
    pub fn uses_side_effects(&self) -> bool {
        self.any(|step| {
            step.fills_side_effect()
                || match step.traits().effect {
                    Effect::CollectsSideEffects | Effect::Service | Effect::Clock | Effect::Chance => true,
                    Effect::None | Effect::Writes | Effect::File | Effect::Shuffles | Effect::Fails => false,
                }
        })
    }
}

impl Step {
    /// Returns true if the step itself adds to a side effect.
    pub fn fills_side_effect(&self) -> bool {
        self.traits().fills.is_some()
    }
}

/// Returns true if running the traversal more or fewer times for an object, or at another time, cannot be observed, and
/// neither can the way by which the object was reached. The traversal may read step labels and side effects
/// ([`names_read`]).
pub fn is_repeatable(traversal: &Traversal) -> bool {
    !traversal.any(|step| {
        let traits = step.traits();
        traits.effect != Effect::None
            || traits.path != PathUse::None
            || traits.sack != SackUse::None
            || traits.reads_loops
            || traits.fills.is_some()
    })
}

/// Returns true if the step's result for a stream is the union of its results for each traverser, in any order and however
/// often each comes. The step's own labels are not looked at.
pub fn is_row_by_row(step: &Step) -> bool {
    step.traits().row_by_row && step.nested_for(Enters::EachTraverser).into_iter().all(is_repeatable)
}

/// Returns true if all steps of a chain are row by row, and none bears a label.
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
    traversal.visit(&mut |node| names.extend(node.step.traits().names_read.into_iter().cloned()));
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
    traversal.visit(&mut |node| names.extend(node.step.traits().fills.cloned()));
    names
}
