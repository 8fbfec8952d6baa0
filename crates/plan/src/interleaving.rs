//! Where traversers have to go through the steps one after the other, since they share side effects.
//!
//! The language works traversers off depth first: one goes through all steps up to the next barrier before the next one
//! does. Rows in batches are the same, but where one traverser sees what another one left: a nested traversal that runs
//! for each traverser fills a side effect, and something tells in which order, or how often, that happened:
//!
//! - a step reads side effects on the way (and not only a `cap()` at the end);
//! - several steps fill them, so that the members of one collection come from several places;
//! - a `limit()` ends the stream before all is worked off;
//! - only the first result of a traversal is taken, and what fills the side effect is nested in it once more.
//!
//! Only then rows go on one at a time ([`crate::physical::Op::OneByOne`]).

use std::collections::HashSet;

use crate::logical::{Effect, Enters, Name, Step, StepTraits, Traversal};

/// What is known of the side effects of a whole traversal.
pub struct Interleaving {
    filled: HashSet<Name>,
    shows: bool,
}

impl Interleaving {
    /// Looks at a whole traversal.
    pub fn of(traversal: &Traversal) -> Self {
        let filled = crate::purity::side_effects_filled(traversal, &Default::default());
        let mut survey = Survey { filled: &filled, fills: 0, deepest: None, reads: false, cuts: false };
        survey.visit(traversal, 0);
        let fills_by_row = survey.deepest.is_some_and(|depth| depth > 0);
        let is_nested_twice = survey.deepest.is_some_and(|depth| depth > 1);
        let shows = fills_by_row && (survey.reads || survey.cuts || survey.fills > 1 || is_nested_twice);
        Interleaving { filled, shows }
    }

    /// Returns true if it can be told in which order traversers go through the steps.
    pub fn shows(&self) -> bool {
        self.shows
    }

    /// Returns true if rows must come to this step one at a time.
    pub fn is_one_by_one(&self, step: &Step) -> bool {
        self.shows && touches(step, &self.filled)
    }
}

struct Survey<'a> {
    filled: &'a HashSet<Name>,
    /// How many steps fill side effects.
    fills: usize,
    /// How many traversals that run for each traverser are around the innermost of them.
    deepest: Option<usize>,
    /// A step reads side effects before all traversers have come.
    reads: bool,
    /// A step may end the stream early.
    cuts: bool,
}

impl Survey<'_> {
    fn visit(&mut self, traversal: &Traversal, depth: usize) {
        for node in &traversal.steps {
            let step = &node.step;
            let traits = step.traits();
            if traits.fills.is_some() {
                self.fills += 1;
                self.deepest = self.deepest.max(Some(depth));
            }
            self.reads |= reads(&traits, self.filled) || depth > 0 && traits.effect == Effect::CollectsSideEffects;
            self.cuts |= traits.cuts;
            step.visit_nested(&mut |enters, nested| match enters {
                Enters::EachTraverser => self.visit(nested, depth + 1),
                Enters::Stream => self.visit(nested, depth),
            });
        }
    }
}

/// Returns true if the step itself reads one of these side effects. A step that learns the name from its input may.
fn reads(traits: &StepTraits<'_>, filled: &HashSet<Name>) -> bool {
    traits.reads_any_name || traits.names_read.iter().any(|name| filled.contains(*name))
}

/// Returns true if the step reads side effects, or something in it reads or fills them for each traverser.
fn touches(step: &Step, filled: &HashSet<Name>) -> bool {
    let uses = |nested: &Traversal| {
        nested.any(|step| {
            let traits = step.traits();
            traits.fills.is_some() || reads(&traits, filled) || traits.effect == Effect::CollectsSideEffects
        })
    };
    reads(&step.traits(), filled)
        || step.nested_for(Enters::EachTraverser).into_iter().any(uses)
        // A loop takes all its rows into one iteration; its body has steps of its own that take one at a time.
        || !matches!(step, Step::Repeat(_))
            && step
                .nested_for(Enters::Stream)
                .into_iter()
                .flat_map(|nested| &nested.steps)
                .any(|node| touches(&node.step, filled))
}
