//! Where traversers must go through the steps one after the other, because they share side effects.
//!
//! The language processes traversers depth first: a traverser goes through all steps up to the next barrier before the
//! next one starts. Batches of rows have the same results, unless a traverser sees the side effects of another one.
//! That needs a nested traversal that runs for each traverser and fills a side effect, and one of these, which show
//! when or how often it ran:
//!
//! - a step reads side effects before all traversers have come (unlike a `cap()` at the end);
//! - several steps fill side effects, so that one collection gets members from several steps;
//! - a `limit()` ends the stream before all traversers are processed;
//! - only the first result of a traversal is taken, and the step that fills the side effect is nested in it once more.
//!
//! Only then rows go on one at a time ([`crate::physical::Op::OneByOne`]), and only to some steps:
//!
//! - **PLAN-10.** Rows come one at a time to a step that reads or fills side effects if it, or a step that a row comes
//!   to after it, fills one. Later iterations of a loop come after each step of the loop. A row that goes through the
//!   steps before the next one starts then sees only what the rows before it have put there. If no step from here on
//!   fills anything, no row can see that another one went first: rows of a message go on together. The next row still
//!   comes to the last step that fills only after all work on those rows is done.

use mangrove_graph::FastSet;

use crate::logical::{Effect, Enters, Name, Step, StepTraits, Traversal};

/// The side effects of a whole traversal, and whether they show the order of traversers. The default: there are none.
#[derive(Default)]
pub struct Interleaving {
    filled: FastSet<Name>,
    shows: bool,
}

impl Interleaving {
    /// Examines a whole traversal.
    pub fn of(traversal: &Traversal) -> Self {
        let filled = crate::purity::side_effects_filled(traversal, &Default::default());
        let mut survey = SideEffectSurvey { filled: &filled, fills: 0, deepest: None, reads: false, cuts: false };
        survey.visit(traversal, 0);
        let fills_by_row = survey.deepest.is_some_and(|depth| depth > 0);
        let is_nested_twice = survey.deepest.is_some_and(|depth| depth > 1);
        let shows = fills_by_row && (survey.reads || survey.cuts || survey.fills > 1 || is_nested_twice);
        Interleaving { filled, shows }
    }

    /// Returns true if side effects show the order in which traversers go through the steps.
    pub fn shows(&self) -> bool {
        self.shows
    }

    /// Returns true if the step must get its rows one at a time (PLAN-10). The caller sets `fills_from_here` if the step
    /// fills a side effect, or if a step after it does.
    pub fn is_one_by_one(&self, step: &Step, fills_from_here: bool) -> bool {
        self.shows && fills_from_here && touches(step, &self.filled)
    }
}

struct SideEffectSurvey<'a> {
    filled: &'a FastSet<Name>,
    /// The number of steps that fill side effects.
    fills: usize,
    /// The number of traversals, each run for each traverser, around the innermost of these steps.
    deepest: Option<usize>,
    /// True if a step reads side effects before all traversers have come.
    reads: bool,
    /// True if a step may end the stream early.
    cuts: bool,
}

impl SideEffectSurvey<'_> {
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
                Enters::EachTraverser | Enters::EachAsked => self.visit(nested, depth + 1),
                Enters::Stream => self.visit(nested, depth),
            });
        }
    }
}

/// Returns true if the step itself may read one of these side effects. A step that gets the name from its input may
/// read any.
fn reads(traits: &StepTraits<'_>, filled: &FastSet<Name>) -> bool {
    traits.reads_any_name || traits.names_read.iter().any(|name| filled.contains(*name))
}

/// Returns true if the step reads side effects, or a traversal in it that runs for each traverser reads or fills them.
fn touches(step: &Step, filled: &FastSet<Name>) -> bool {
    let uses = |nested: &Traversal| {
        nested.any(|step| {
            let traits = step.traits();
            traits.fills.is_some() || reads(&traits, filled) || traits.effect == Effect::CollectsSideEffects
        })
    };
    reads(&step.traits(), filled)
        || step.nested_for(Enters::is_each).into_iter().any(uses)
        // All rows of a loop enter an iteration together. The steps of its body take them one at a time themselves.
        || !matches!(step, Step::Repeat(_))
            && step
                .nested_for(Enters::is_stream)
                .into_iter()
                .flat_map(|nested| &nested.steps)
                .any(|node| touches(&node.step, filled))
}
