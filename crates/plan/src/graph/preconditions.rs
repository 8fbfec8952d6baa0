//! What must be true of a whole traversal, so that its first steps may be worked off in another way (PLAN-11, PLAN-12).

use mangrove_graph::FastSet;

use crate::logical::{Condition, Configuration, Effect, Traversal};
use crate::physical::{PathRequirement, Requirements};
use crate::requirements::requirements;

/// Why nothing was chosen, in words for `explain()`; `None` if there is nothing to choose.
pub(crate) type Declined = Option<&'static str>;

/// What [`check`] says of one traversal.
pub(super) type Checked = Result<Requirements, &'static str>;

/// What rows keep, if nothing but the bag of results can be observed. Otherwise, what else can be.
pub(super) fn check(traversal: &Traversal, configuration: &Configuration) -> Checked {
    if let Some(shown) = shown_besides_results(traversal, configuration) {
        return Err(shown);
    }
    let needs = requirements(traversal, configuration);
    match () {
        () if needs.path != PathRequirement::None => Err("a step reads paths"),
        () if !gives_names_once(traversal) => Err("two steps have one name"),
        () => Ok(needs),
    }
}

/// What can be observed of a traversal besides the bag of its results, and what its steps read of paths and names.
fn shown_besides_results(traversal: &Traversal, configuration: &Configuration) -> Option<&'static str> {
    let Configuration { side_effects, path, policy, sack, one_bulk, productive_by, seed, .. } = configuration;
    match () {
        () if *path => Some("withPath() keeps paths"),
        () if *one_bulk => Some("withBulk(false) shows how rows are merged"),
        () if !policy.is_default() => Some("a policy orders the work"),
        () if sack.is_some() => Some("it has sacks"),
        () if productive_by.is_some() => Some("ProductiveByStrategy gives nulls"),
        () if seed.is_some() => Some("a seed fixes the order of random numbers"),
        () => {
            let (mut effect, mut fills) = (Effect::None, !side_effects.is_empty());
            traversal.visit(&mut |node| {
                let traits = node.step.traits();
                fills |= traits.fills.is_some();
                if effect == Effect::None {
                    effect = traits.effect;
                }
            });
            if fills { Some("it has side effects") } else { shown_by(effect) }
        }
    }
}

/// What a step shows by its effect.
fn shown_by(effect: Effect) -> Option<&'static str> {
    match effect {
        Effect::None => None,
        Effect::Writes => Some("it writes"),
        Effect::File => Some("it reads or writes a file"),
        Effect::Service => Some("it calls a service"),
        Effect::CollectsSideEffects => Some("it has side effects"),
        Effect::Chance | Effect::Shuffles => Some("it draws random numbers"),
        Effect::Clock => Some("it reads the clock"),
        Effect::Fails => Some("it may fail"),
    }
}

/// Returns true if no two steps have the same label.
fn gives_names_once(traversal: &Traversal) -> bool {
    let mut given = FastSet::default();
    let mut once = true;
    traversal.visit(&mut |node| once &= node.labels.iter().all(|label| given.insert(label)));
    once
}

/// Returns true if a condition cannot fail for a vertex or an edge.
pub(super) fn is_total(condition: &Condition) -> bool {
    match condition {
        Condition::LabelIn(_)
        | Condition::Label(_)
        | Condition::Id(_)
        | Condition::Property(..)
        | Condition::HasKey(_)
        | Condition::HasNot(_) => true,
        Condition::AnyOf(branches) => branches.iter().flatten().all(is_total),
        // They are asked of properties.
        Condition::PropertyKey(_) | Condition::PropertyValue(_) => false,
    }
}
