//! How large a traversal may be, so that planning it takes little time, and how deep its values may nest.
//!
//! - **PLAN-6.** Values are dropped, compared, hashed and encoded by recursion, so their depth is bounded. A step makes
//!   a value at most some levels deeper, which the table of steps says. The sum over the steps of a chain is at most
//!   [`LEVELS_MAX`]. Loops and side effects bring a value to the same step again; the executing steps bound the depth
//!   of those values.

use mangrove_graph::{Error, Result, Value};
use mangrove_gremlin::{Argument, Bytecode, Instruction};

use crate::logical::{Step, StepNode, Traversal};

/// The most steps of a traversal, with modulators and nested steps. Each name that a step is given (a label, a key)
/// beyond the fourth counts as one, too.
pub const INSTRUCTIONS_MAX: usize = 16_384;

/// The most steps that a traversal may become while it is planned: a `by()` that fills several computed columns is
/// planned for each of them, and `SubgraphStrategy` adds a test after every step.
pub const PLANNED_STEPS_MAX: usize = 2 * INSTRUCTIONS_MAX;

/// The most labels of one step.
pub const STEP_LABELS_MAX: usize = 256;

/// The most patterns of a `match()`. The time to order them is quadratic in their number.
pub const MATCH_PATTERNS_MAX: usize = 256;

/// The most levels that the steps of a chain may add to a value, one after the other (PLAN-6).
pub const LEVELS_MAX: usize = 256;

/// Fails for a traversal of too many steps.
pub(crate) fn check_size(bytecode: &Bytecode) -> Result<()> {
    let mut left = INSTRUCTIONS_MAX;
    if fits(bytecode, &mut left) {
        return Ok(());
    }
    Err(Error::unsupported(format!(
        "the traversal has more than {INSTRUCTIONS_MAX} steps; split it, or give lists of values as parameters"
    )))
}

/// The error for a traversal that becomes too large while it is planned.
pub(crate) fn too_many_planned() -> Error {
    Error::unsupported(format!(
        "the traversal comes to more than {PLANNED_STEPS_MAX} steps when it is planned: each by() counts for every value it \
         takes, and strategies add steps; split it"
    ))
}

/// Fails if a strategy that adds at most so many steps after each step would make the traversal too large. The bound is
/// generous, since steps are counted again when they are lowered.
pub(crate) fn check_growth(traversal: &Traversal, added_to_each: usize) -> Result<()> {
    match steps_in(traversal).saturating_mul(added_to_each) <= 8 * PLANNED_STEPS_MAX {
        true => Ok(()),
        false => Err(too_many_planned()),
    }
}

/// The number of steps, with those of nested traversals.
pub(crate) fn steps_in(traversal: &Traversal) -> usize {
    let mut count = 0;
    traversal.visit(&mut |_| count += 1);
    count
}

fn fits(bytecode: &Bytecode, left: &mut usize) -> bool {
    bytecode.source.iter().chain(&bytecode.steps).all(|instruction| {
        let size = 1 + names_in(instruction);
        *left >= size && {
            *left -= size;
            instruction.arguments.iter().all(|argument| fits_argument(argument, left))
        }
    })
}

/// The number of names that an instruction is given: of strings that are no ids or values. Some are [free](FREE_NAMES).
fn names_in(instruction: &Instruction) -> usize {
    if matches!(instruction.name.as_str(), "V" | "E" | "inject" | "hasId" | "hasValue" | "withSideEffect") {
        return 0;
    }
    let is_name = |argument: &&Argument| matches!(argument, Argument::Value(Value::String(_)));
    instruction.arguments.iter().filter(is_name).count().saturating_sub(FREE_NAMES)
}

/// The names of a step that do not count: `property("key", "value")` is one step.
const FREE_NAMES: usize = 4;

fn fits_argument(argument: &Argument, left: &mut usize) -> bool {
    match argument {
        Argument::Traversal(inner) => fits(inner, left),
        Argument::List(members) => members.iter().all(|member| fits_argument(member, left)),
        Argument::Map(entries) => {
            entries.iter().all(|(key, value)| fits_argument(key, left) && fits_argument(value, left))
        }
        Argument::CardinalityValue(_, value) => fits_argument(value, left),
        Argument::Strategy(_, settings) => settings.iter().all(|(_, value)| fits_argument(value, left)),
        _ => true,
    }
}

/// Fails for a traversal whose steps could make values that nest too deep (PLAN-6).
pub(crate) fn check_levels(traversal: &Traversal) -> Result<()> {
    if levels_of_chain(traversal) <= LEVELS_MAX {
        return Ok(());
    }
    Err(Error::unsupported(format!(
        "the traversal makes collections of collections more than {LEVELS_MAX} deep; split it"
    )))
}

/// The levels that the steps of a chain may add to a value that enters it.
fn levels_of_chain(traversal: &Traversal) -> usize {
    traversal.steps.iter().map(levels_with_nested).sum()
}

/// The levels that a step may add: its own, and those of the deepest nested traversal. A value goes through one of
/// them.
fn levels_with_nested(node: &StepNode) -> usize {
    let mut nested = 0;
    node.step.visit_nested(&mut |_, inner| nested = levels_of_chain(inner).max(nested));
    nested + node.step.traits().levels
}

/// The number of newest objects of a path that may be collections which one iteration of a loop has made: 0 if no step
/// of the body makes any, and any number if there is a loop inside.
pub(crate) fn collections_made(body: &Traversal) -> usize {
    if !body.any(|step| step.traits().levels > 0) {
        return 0;
    }
    if body.any(|step| matches!(step, Step::Repeat(_))) {
        return usize::MAX;
    }
    steps_in(body)
}
