//! Questions of rules and of the planner about whole traversals: which effects a traversal has besides its results, and
//! whether it may be evaluated once instead of often.
//!
//! Every answer is put together from the table of steps ([`Step::traits`]); no step is named here.

use mangrove_graph::FastSet;

use crate::logical::{
    Configuration, Effect, Emit, Enters, Name, PathUse, Repeat, Sack, SackUse, Step, StepNode, Traversal, Until,
};

/// What the steps of a whole traversal do besides their results, and what they show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TraversalEffects {
    /// True if it writes to the graph, or reads or writes a file.
    pub is_mutating: bool,
    /// True if it reads or writes a file.
    pub uses_files: bool,
    /// True if it calls services.
    pub calls_services: bool,
    /// True if a step adds to a side effect.
    pub fills_side_effects: bool,
    /// True if its operators share something that only one node has: side effects, the state of a service, a clock, or
    /// one sequence of random numbers.
    pub uses_side_effects: bool,
    /// True if it shows, compares or keeps whole paths.
    pub shows_paths: bool,
}

impl TraversalEffects {
    fn add(&mut self, step: &Step) {
        let traits = step.traits();
        let fills = traits.fills.is_some();
        self.fills_side_effects |= fills;
        self.shows_paths |= traits.path == PathUse::Shows;
        self.uses_side_effects |= fills;
        match traits.effect {
            Effect::None | Effect::Shuffles | Effect::Fails => {}
            Effect::Writes => self.is_mutating = true,
            Effect::File => (self.is_mutating, self.uses_files) = (true, true),
            Effect::Service => (self.calls_services, self.uses_side_effects) = (true, true),
            Effect::CollectsSideEffects | Effect::Clock | Effect::Chance => self.uses_side_effects = true,
        }
    }
}

impl Traversal {
    /// What its steps do besides their results: all answers in one pass.
    pub fn effects(&self) -> TraversalEffects {
        let mut effects = TraversalEffects::default();
        self.visit(&mut |node| effects.add(&node.step));
        effects
    }

    /// Returns true if it writes to the graph, or reads or writes a file.
    pub fn is_mutating(&self) -> bool {
        self.effects().is_mutating
    }

    /// Returns true if a step of it adds to a side effect.
    pub fn fills_side_effects(&self) -> bool {
        self.effects().fills_side_effects
    }
}

impl Step {
    /// Returns true if the step itself adds to a side effect.
    pub fn fills_side_effect(&self) -> bool {
        self.traits().fills.is_some()
    }
}

/// Returns true if it cannot be observed how often and when the traversal runs for an object, and if its results do not
/// depend on the path to the object. The traversal may still read step labels and side effects ([`names_read`]).
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

/// Returns true if the step's result for a stream is the union of its results for each traverser, in any order and
/// however often it runs for each. The labels of the step are not looked at.
pub fn is_row_by_row(step: &Step) -> bool {
    step.traits().row_by_row && step.nested_for(Enters::is_each).into_iter().all(is_repeatable)
}

/// Returns true if all steps of a chain are row by row, and none has a label.
pub fn is_plain_chain(steps: &[StepNode]) -> bool {
    steps.iter().all(|node| node.labels.is_empty() && is_row_by_row(&node.step))
}

/// Returns true if a loop reaches the same objects when it goes on from each vertex only the first time it comes there.
/// At that time the most iterations are left. So the loop must not ask for objects that are exactly some number of
/// steps away.
pub fn may_visit_once(repeat: &Repeat) -> bool {
    let emits = match &repeat.emit {
        None => true,
        Some(Emit::Always | Emit::Test(_)) => true,
        Some(Emit::Traversal(test)) => is_repeatable(test),
    };
    let leaves = match &repeat.until {
        None => repeat.emit.is_some(),
        // `emit` does not test rows that leave after the last iteration. That makes no difference if all rows are
        // emitted.
        Some(Until::Times(_)) => matches!(repeat.emit, Some(Emit::Always)),
        Some(Until::Test(_)) => true,
        Some(Until::Traversal(test)) => is_repeatable(test),
    };
    emits && leaves && is_plain_chain(&repeat.body.steps)
}

/// Returns why the iterations of a loop must run one after the other; `None` if the results are the same when they
/// overlap. Iterations that overlap do not merge rows.
pub fn reason_against_overlap(repeat: &Repeat, sack: Option<&Sack>, one_bulk: bool) -> Option<&'static str> {
    match () {
        () if remembers_iterations(&repeat.body) => Some("dedup() in its body remembers what earlier iterations met"),
        () if sack.is_some_and(|sack| sack.merge.is_some()) => {
            Some("sacks of equal traversers become one between them")
        }
        () if one_bulk => Some("equal traversers count once between them"),
        () => None,
    }
}

/// Returns true if a `dedup()` in the body of a loop sees the whole stream of an iteration.
fn remembers_iterations(body: &Traversal) -> bool {
    body.steps.iter().any(|node| {
        matches!(node.step, Step::Dedup { .. })
            || node.step.nested_for(Enters::is_stream).into_iter().any(remembers_iterations)
    })
}

/// The names of all labels and side effects that a traversal reads.
pub fn names_read(traversal: &Traversal) -> Vec<Name> {
    let mut names = Vec::new();
    traversal.visit(&mut |node| names.extend(node.step.traits().names_read.into_iter().cloned()));
    names
}

/// All labels of the steps of a traversal.
pub fn labels_given(traversal: &Traversal) -> FastSet<&Name> {
    let mut labels = FastSet::default();
    traversal.visit(&mut |node| labels.extend(&node.labels));
    labels
}

/// The names of all side effects that have a value at some time: from the source, or because a step fills them.
pub fn side_effects_filled(traversal: &Traversal, configuration: &Configuration) -> FastSet<Name> {
    let mut names: FastSet<Name> = configuration.side_effects.iter().map(|(name, _)| name.clone()).collect();
    traversal.visit(&mut |node| names.extend(node.step.traits().fills.cloned()));
    names
}
