//! Maps: one object for one object, and traversals nested for each object.

use std::collections::HashSet;

use mangrove_graph::Result;
use mangrove_gremlin::Argument;

use super::arguments::{child, misfit, name, names, operand};
use super::groups::Call;
use super::modulators::by;
use super::predicates::label_test;
use crate::logical::{Lookup, Step};

/// `constant(value)`.
pub(super) fn constant(call: &Call<'_>) -> Result<Step> {
    match call.arguments {
        [value] => Ok(Step::Constant(operand(&call.site, value)?)),
        given => Err(misfit(&call.site, "a value", given)),
    }
}

/// `loops()` and `loops("name")`.
pub(super) fn loops(call: &Call<'_>) -> Result<Step> {
    match call.arguments {
        [] => Ok(Step::Loops(None)),
        [of] => Ok(Step::Loops(Some(name(&call.site, of, "the name of a loop")?))),
        given => Err(misfit(&call.site, "nothing or the name of a loop", given)),
    }
}

/// `path()`.
pub(super) fn path(call: &mut Call<'_>) -> Result<Step> {
    match call.arguments {
        [] => Ok(Step::Path { segment: super::modulators::segment(call)?, by: by(call)? }),
        given => Err(misfit(&call.site, "no arguments", given)),
    }
}

/// `select(labels…)`, with a `Pop` before them, and `select(column)`.
pub(super) fn select(call: &mut Call<'_>) -> Result<Step> {
    let (pop, labels) = match call.arguments {
        [Argument::Column(column)] => return Ok(Step::SelectColumn(*column)),
        [Argument::Pop(pop), labels @ ..] => (Some(*pop), labels),
        labels => (None, labels),
    };
    match labels {
        [] => return Err(misfit(&call.site, "one or more step labels, or a column", call.arguments)),
        [key @ Argument::Traversal(_)] => return super::carried::select_key(call, pop, key),
        _ => {}
    }
    let labels = names(&call.site, labels, "a step label")?;
    Ok(Step::Select { lookup: Lookup::Scope(pop), labels, by: by(call)?, required: true })
}

/// Compiles the instruction by which `matching` looks up variables of a `match()`, which are labels of the path alone:
///
/// - with `P.eq("a")`, a test of the object against a variable;
/// - with `Pop.last, "a", …`, the value or the map of variables that every row has;
/// - with `"a", …`, the map of those variables that a row has.
pub(super) fn matched(call: &mut Call<'_>) -> Result<Step> {
    let (required, variables) = match call.arguments {
        [Argument::Predicate(predicate)] => {
            let test = label_test(&call.site, predicate)?;
            return Ok(Step::WherePredicate { start: None, test, by: Vec::new(), lookup: Lookup::Path });
        }
        [Argument::Pop(_), variables @ ..] => (true, variables),
        variables => (false, variables),
    };
    let labels = names(&call.site, variables, "a variable")?;
    Ok(Step::Select { lookup: Lookup::Path, labels, by: Vec::new(), required })
}

/// `project(names…)`.
pub(super) fn project(call: &mut Call<'_>) -> Result<Step> {
    let names = names(&call.site, call.arguments, "a name")?;
    if names.is_empty() {
        return Err(misfit(&call.site, "one or more names", call.arguments));
    }
    let mut known = HashSet::new();
    if let Some(twice) = names.iter().find(|name| !known.insert(*name)) {
        return Err(call
            .site
            .invalid(format_args!("keys must be unique in project(), but \"{twice}\" is there twice")));
    }
    Ok(Step::Project { names, by: by(call)? })
}

/// `map`, `flatMap`, `local` and `sideEffect` with a traversal.
pub(super) fn nested(call: &Call<'_>) -> Result<Step> {
    let [argument] = call.arguments else {
        return Err(misfit(&call.site, "one traversal", call.arguments));
    };
    let traversal = child(&call.site, argument)?;
    Ok(match call.site.name {
        "map" => Step::Map { traversal, first: true },
        "flatMap" => Step::Map { traversal, first: false },
        "local" => Step::LocalTraversal(traversal),
        _ => Step::SideEffect(traversal),
    })
}
