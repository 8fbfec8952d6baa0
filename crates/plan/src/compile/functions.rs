//! Compiles the functions of one object: text, collections, dates, conversions, `math()` and `format()`, and the tests
//! of members (`all`, `any`, `none`). Literal arguments are checked here; parameters and results of traversals are
//! checked when the step runs.

use mangrove_graph::{Result, Value};
use mangrove_gremlin::Argument as Given;

use super::arguments::{child, describe, integer, misfit, operand};
use super::filters::take_local;
use super::groups::Call;
use super::modulators::by;
use super::predicates::test;
use super::site::Site;
use crate::logical::expression::{self, Part};
use crate::logical::function::{CollectionFunction, DateUnit, Function, NumberType, TextFunction};
use crate::logical::{Argument, By, Operand, Quantifier, Step};

/// A function of a text, with at least `least` and at most `most` arguments.
pub(super) fn text(call: &mut Call<'_>, function: TextFunction, least: usize, most: usize) -> Result<Step> {
    let local = take_local(call);
    if !(least..=most).contains(&call.arguments.len()) {
        let takes = match (least, most) {
            (0, 0) => "nothing or a scope",
            (1, 1) => "one argument",
            (1, _) => "one or two arguments",
            _ => "two arguments",
        };
        return Err(misfit(&call.site, takes, call.arguments));
    }
    for given in call.arguments {
        let fits = match (function, given) {
            (_, Given::Parameter(_)) => true,
            (TextFunction::Substring, given) => integer(given).is_some(),
            (_, Given::Value(value)) => matches!(value, Value::String(_) | Value::Char(_) | Value::Null),
            _ => false,
        };
        if !fits {
            let wanted = if function == TextFunction::Substring { "a number" } else { "a string" };
            return Err(call.site.invalid(format_args!("{wanted} is needed, not {}", describe(given))));
        }
    }
    let arguments = values(&call.site, call.arguments)?;
    Ok(Step::Function { function: Function::Text { function, local }, arguments })
}

/// A function of a collection and one more argument: another collection, or a traversal that returns one.
pub(super) fn collection(call: &Call<'_>, function: CollectionFunction) -> Result<Step> {
    let [given] = call.arguments else {
        return Err(misfit(&call.site, "one argument", call.arguments));
    };
    let argument = argument(&call.site, given)?;
    if let Argument::Operand(Operand::Literal(value)) = &argument {
        check_member_argument(&call.site, function, value)?;
    }
    Ok(Step::Function { function: Function::Collection(function), arguments: vec![argument] })
}

/// Fails for a literal argument that the function never takes. Messages are TinkerPop's.
fn check_member_argument(site: &Site<'_>, function: CollectionFunction, value: &Value) -> Result<()> {
    let name = function.name();
    match (function, value) {
        (_, Value::Null) => Err(site.invalid(format_args!("Argument provided for {name} step can't be null"))),
        (CollectionFunction::Conjoin, Value::String(_))
        | (CollectionFunction::Merge, Value::Map(_))
        | (_, Value::List(_) | Value::Set(_)) => Ok(()),
        (_, other) => Err(site.invalid(format_args!(
            "{name} step can only take an array or an Iterable as an argument, encountered {}",
            describe(&Given::Value(other.clone()))
        ))),
    }
}

/// `concat(texts…)`: strings, or traversals that return them.
pub(super) fn concat(call: &Call<'_>) -> Result<Step> {
    for given in call.arguments {
        if !matches!(
            given,
            Given::Parameter(_) | Given::Traversal(_) | Given::Value(Value::String(_) | Value::Char(_) | Value::Null)
        ) {
            return Err(call.site.invalid(format_args!("takes strings and traversals, not {}", describe(given))));
        }
    }
    Ok(Step::Function { function: Function::Concat, arguments: values(&call.site, call.arguments)? })
}

/// A function without arguments.
pub(super) fn plain(call: &Call<'_>, function: Function) -> Result<Step> {
    match call.arguments {
        [] => Ok(Step::Function { function, arguments: Vec::new() }),
        given => Err(misfit(&call.site, "no arguments", given)),
    }
}

/// `asNumber()` and `asNumber(type)`.
pub(super) fn as_number(call: &Call<'_>) -> Result<Step> {
    let to =
        match call.arguments {
            [] => None,
            [Given::Type(name)] => Some(NumberType::from_name(name).ok_or_else(|| {
                call.site.invalid(format_args!("asNumber() requires a numeric type token, got {name}"))
            })?),
            given => return Err(misfit(&call.site, "nothing or a numeric GType", given)),
        };
    Ok(Step::Function { function: Function::AsNumber(to), arguments: Vec::new() })
}

/// `dateAdd(unit, number)`.
pub(super) fn date_add(call: &Call<'_>) -> Result<Step> {
    let [Given::DateUnit(unit), number] = call.arguments else {
        return Err(misfit(&call.site, "a unit (DT.day) and a number", call.arguments));
    };
    let unit = DateUnit::from_name(unit)
        .ok_or_else(|| call.site.invalid(format_args!("DT has no unit {unit}: there are second, minute, hour, day")))?;
    let number = super::arguments::count(&call.site, number)?;
    Ok(Step::Function { function: Function::DateAdd(unit), arguments: vec![Argument::Operand(number)] })
}

/// `dateDiff(date)`.
pub(super) fn date_diff(call: &Call<'_>) -> Result<Step> {
    match call.arguments {
        [given @ (Given::Traversal(_) | Given::Parameter(_) | Given::Value(Value::DateTime(_) | Value::Null))] => {
            let arguments = vec![argument(&call.site, given)?];
            Ok(Step::Function { function: Function::DateDiff, arguments })
        }
        given => Err(misfit(&call.site, "a date or a traversal that gives one", given)),
    }
}

/// The name of `WithOptions.indexer` in bytecode.
const INDEXER_OPTION: &str = "~tinkerpop.index.indexer";

/// `index()`: a list of members with their positions or, with `with(WithOptions.indexer, WithOptions.map)`, a map from
/// positions to members.
pub(super) fn index(call: &mut Call<'_>) -> Result<Step> {
    if !call.arguments.is_empty() {
        return Err(misfit(&call.site, "no arguments", call.arguments));
    }
    let mut map = false;
    for modulator in call.take("with") {
        map = match modulator.arguments {
            [Given::Value(Value::String(option)), kind] if option == INDEXER_OPTION => match integer(kind) {
                Some(0) => false,
                Some(1) => true,
                _ => {
                    return Err(misfit(
                        &modulator.site,
                        "WithOptions.list or WithOptions.map",
                        std::slice::from_ref(kind),
                    ));
                }
            },
            other => return Err(misfit(&modulator.site, "WithOptions.indexer and a kind of index", other)),
        };
    }
    Ok(Step::Function { function: Function::Index { map }, arguments: Vec::new() })
}

/// `math(expression)`.
pub(super) fn math(call: &mut Call<'_>) -> Result<Step> {
    let [Given::Value(Value::String(text))] = call.arguments else {
        return Err(misfit(&call.site, "an expression in a string", call.arguments));
    };
    let (expression, variables) = expression::parse(text)
        .map_err(|reason| call.site.invalid(format_args!("\"{text}\" is no expression: {reason}")))?;
    Ok(Step::Math { expression, variables, by: by(call)? })
}

/// `format(template)`.
pub(super) fn format(call: &mut Call<'_>) -> Result<Step> {
    let [Given::Value(Value::String(text))] = call.arguments else {
        return Err(misfit(&call.site, "a template in a string", call.arguments));
    };
    let parts = expression::template(text);
    let mut modulators: Vec<By> = by(call)?;
    if modulators.is_empty() && parts.contains(&Part::By) {
        modulators.push(By::Identity);
    }
    Ok(Step::Format { parts, by: modulators })
}

/// `all(P)`, `any(P)`, `none(P)`.
pub(super) fn members(call: &Call<'_>, quantifier: Quantifier) -> Result<Step> {
    match call.arguments {
        [given @ Given::Predicate(_)] => Ok(Step::Members { quantifier, test: test(&call.site, given)? }),
        given => Err(misfit(&call.site, "a predicate", given)),
    }
}

/// Each argument as [`argument`] reads it.
fn values(site: &Site<'_>, given: &[Given]) -> Result<Vec<Argument>> {
    given.iter().map(|given| argument(site, given)).collect()
}

/// An argument that is a value or a traversal.
pub(super) fn argument(site: &Site<'_>, given: &Given) -> Result<Argument> {
    Ok(match given {
        Given::Traversal(_) => Argument::Traversal(Box::new(child(site, given)?)),
        value => Argument::Operand(operand(site, value)?),
    })
}
