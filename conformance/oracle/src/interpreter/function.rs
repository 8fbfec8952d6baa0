//! Functions of one object: texts, collections, `math()`.
//!
//! Only what the generator makes: arguments are literals, `math()` knows `_ * number + number`.

use mangrove_graph::Value;
use mangrove_graph::compare::equivalent;
use mangrove_graph::numeric::{integer, to_f64};

use super::local::members;
use super::predicate::passes;
use super::step::Step;
use super::{Outcome, unsupported, wrong};
use mangrove_gremlin::Argument;

/// A function of a text; null stays null.
pub(crate) fn of_text(step: &Step<'_>, value: &Value) -> Outcome<Option<Value>> {
    let text = match value {
        Value::String(text) => text.as_str(),
        Value::Null if step.name != "concat" => return Ok(Some(Value::Null)),
        other => return wrong(format!("{}() of a {}", step.name, other.type_name())),
    };
    let argument = |at: usize| match step.value(at)? {
        Value::String(argument) => Ok(argument.clone()),
        other => unsupported(format!("{}() with a {}", step.name, other.type_name())),
    };
    let position = |at: usize| match step.value(at).map(integer)? {
        Some(position) if position >= 0 => Ok(usize::try_from(position).unwrap_or(usize::MAX)),
        _ => unsupported("substring() from the end"),
    };
    Ok(Some(match step.name {
        "length" => Value::I32(i32::try_from(text.chars().count()).unwrap_or(i32::MAX)),
        "toUpper" => Value::from(text.to_uppercase()),
        "toLower" => Value::from(text.to_lowercase()),
        "reverse" => Value::from(text.chars().rev().collect::<String>()),
        "concat" => Value::from(format!("{text}{}", argument(0)?)),
        "replace" => Value::from(text.replace(argument(0)?.as_str(), &argument(1)?)),
        "substring" => {
            let (from, to) = (position(0)?, position(1)?);
            Value::from(
                text.chars().enumerate().filter(|(at, _)| (from..to).contains(at)).map(|(_, c)| c).collect::<String>(),
            )
        }
        other => return unsupported(format!("{other}()")),
    }))
}

/// A function of a collection and another one.
pub(crate) fn of_collection(step: &Step<'_>, value: &Value) -> Outcome<Option<Value>> {
    let (Some(here), Some(there)) = (members(value), members(step.value(0)?)) else {
        return wrong(format!("{}() of a {}", step.name, value.type_name()));
    };
    let holds = |values: &[Value], value: &Value| values.iter().any(|v| equivalent(v, value));
    let distinct = |values: Vec<Value>| {
        let mut kept: Vec<Value> = Vec::new();
        for value in values {
            if !holds(&kept, &value) {
                kept.push(value);
            }
        }
        Value::Set(kept.into())
    };
    Ok(Some(match step.name {
        "combine" => Value::list(here.into_iter().chain(there).collect()),
        "merge" => distinct(here.into_iter().chain(there).collect()),
        "difference" => distinct(here.into_iter().filter(|v| !holds(&there, v)).collect()),
        "intersect" => distinct(here.into_iter().filter(|v| holds(&there, v)).collect()),
        "disjunct" => {
            let only = |of: &[Value], not: &[Value]| of.iter().filter(|v| !holds(not, v)).cloned().collect::<Vec<_>>();
            distinct([only(&here, &there), only(&there, &here)].concat())
        }
        other => return unsupported(format!("{other}()")),
    }))
}

/// `all(P)` and `any(P)`: what is no collection does not pass.
pub(crate) fn of_members(step: &Step<'_>, value: &Value) -> Outcome<bool> {
    let (Argument::Predicate(predicate), Some(members)) = (step.argument(0)?, members(value)) else { return Ok(false) };
    let all = step.name == "all";
    for member in &members {
        if passes(predicate, member)? != all {
            return Ok(!all);
        }
    }
    Ok(all)
}

/// `math("_ * a + b")`.
pub(crate) fn math(step: &Step<'_>, value: &Value) -> Outcome<Option<Value>> {
    let Value::String(expression) = step.value(0)? else { return unsupported("math() without a text") };
    let numbers: Option<Vec<f64>> = expression
        .strip_prefix("_ * ")
        .map(|rest| rest.split(" + ").filter_map(|number| number.parse().ok()).collect());
    let (Some([factor, term]), Some(number)) =
        (numbers.as_deref().map(|n| <[f64; 2]>::try_from(n).unwrap_or_default()), to_f64(value))
    else {
        return wrong(format!("math() of a {}", value.type_name()));
    };
    Ok(Some(Value::F64(number * factor + term)))
}
