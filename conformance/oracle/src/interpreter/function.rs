//! Functions of one object: texts, collections, tests of members.

use std::sync::Arc;

use mangrove_graph::Value;
use mangrove_graph::compare::equivalent;
use mangrove_graph::numeric::integer;
use mangrove_gremlin::Argument;

use super::convert::text_of;
use super::local::members;
use super::predicate::passes;
use super::step::Step;
use super::{Interpreter, Outcome, Traverser, first, unsupported, wrong};

/// A function of a text, or with `Scope.local` of every text in a list. Null stays null.
pub(crate) fn of_text(step: &Step<'_>, value: &Value) -> Outcome<Option<Value>> {
    if !step.is_local() {
        return Ok(Some(of_one_text(step, step.arguments, value)?));
    }
    let Some(all) = members(value) else { return Ok(Some(of_one_text(step, &step.arguments[1..], value)?)) };
    let made = all.iter().map(|member| of_one_text(step, &step.arguments[1..], member)).collect::<Outcome<Vec<_>>>()?;
    Ok(Some(Value::list(made)))
}

fn of_one_text(step: &Step<'_>, arguments: &[Argument], value: &Value) -> Outcome<Value> {
    if step.name == "asString" {
        return Ok(Value::from(text_of(value)?));
    }
    let text = match value {
        Value::String(text) => text.as_str(),
        Value::Null => return Ok(Value::Null),
        other => return wrong(format!("{}() of a {}", step.name, other.type_name())),
    };
    let argument = |at: usize| match arguments.get(at) {
        Some(Argument::Value(Value::String(argument))) => Ok(argument.clone()),
        other => unsupported(format!("{}() with {other:?}", step.name)),
    };
    Ok(match step.name {
        "length" => Value::I32(i32::try_from(text.chars().count()).unwrap_or(i32::MAX)),
        "toUpper" => Value::from(text.to_uppercase()),
        "toLower" => Value::from(text.to_lowercase()),
        "trim" => Value::from(text.trim()),
        "lTrim" => Value::from(text.trim_start()),
        "rTrim" => Value::from(text.trim_end()),
        "replace" if argument(0)?.is_empty() => value.clone(),
        "replace" => Value::from(text.replace(argument(0)?.as_str(), &argument(1)?)),
        "split" if matches!(arguments, [Argument::Value(Value::Null)]) => {
            Value::list(text.split_whitespace().map(Value::from).collect())
        }
        "split" => match argument(0)?.as_str() {
            "" if text.is_empty() => Value::list(vec![value.clone()]),
            "" => Value::list(text.chars().map(|c| Value::from(c.to_string())).collect()),
            separator => {
                let behind = text.ends_with(separator).then_some("");
                Value::list(text.split(separator).filter(|s| !s.is_empty()).chain(behind).map(Value::from).collect())
            }
        },
        "substring" => substring(text, arguments)?,
        other => return unsupported(format!("{other}()")),
    })
}

/// Negative positions count from the end.
fn substring(text: &str, arguments: &[Argument]) -> Outcome<Value> {
    let length = text.chars().count();
    let place = |at: usize| match arguments.get(at) {
        None => Ok(length),
        Some(Argument::Value(place)) => match integer(place) {
            Some(place) if place < 0 => Ok(length.saturating_sub(usize::try_from(-place).unwrap_or(length))),
            Some(place) => Ok(usize::try_from(place).unwrap_or(length)),
            None => unsupported("substring() with something else than numbers"),
        },
        Some(_) => unsupported("substring() with something else than numbers"),
    };
    let kept = place(0)?..place(1)?;
    Ok(Value::from(text.chars().enumerate().filter(|(at, _)| kept.contains(at)).map(|(_, c)| c).collect::<String>()))
}

/// `reverse()` of a text or a list.
pub(crate) fn reverse(value: &Value) -> Outcome<Option<Value>> {
    Ok(Some(match value {
        Value::String(text) => Value::from(text.chars().rev().collect::<String>()),
        Value::List(members) => Value::list(members.iter().rev().cloned().collect()),
        Value::Null => Value::Null,
        other => return unsupported(format!("reverse() of a {}", other.type_name())),
    }))
}

/// `index()`: every member with its position.
pub(crate) fn index(value: &Value) -> Outcome<Option<Value>> {
    let all = members(value).unwrap_or_else(|| vec![value.clone()]);
    let place = |at: usize| Value::I32(i32::try_from(at).unwrap_or(i32::MAX));
    Ok(Some(Value::list(all.into_iter().enumerate().map(|(at, v)| Value::list(vec![v, place(at)])).collect())))
}

impl Interpreter<'_> {
    /// An argument of a function: a literal, or the first result of a child.
    pub(crate) fn given(&mut self, argument: &Argument, t: &Traverser) -> Outcome<Option<Value>> {
        match argument {
            Argument::Traversal(child) => Ok(first(self.local_child(child, t)?)),
            argument => Ok(Some(super::step::value(argument)?.clone())),
        }
    }

    /// `concat(…)`: nulls among the parts are left out.
    pub(crate) fn concat(&mut self, step: &Step<'_>, t: &Traverser) -> Outcome<Option<Value>> {
        let mut made: Option<String> = None;
        let mut add = |part: &Value| match part {
            Value::String(part) => {
                made.get_or_insert_default().push_str(part);
                Ok(())
            }
            Value::Null => Ok(()),
            other => wrong(format!("concat() of a {}", other.type_name())),
        };
        add(&t.value)?;
        for argument in step.arguments {
            if let Some(part) = self.given(argument, t)? {
                add(&part)?;
            }
        }
        Ok(Some(made.map_or(Value::Null, Value::from)))
    }

    /// A function of two collections.
    pub(crate) fn of_collection(&mut self, step: &Step<'_>, t: &Traverser) -> Outcome<Option<Value>> {
        let given = self.given(step.argument(0)?, t)?;
        let Some(here) = members(&t.value) else {
            return wrong(format!("{}() of a {}", step.name, t.value.type_name()));
        };
        if step.name == "conjoin" {
            return conjoin(&here, given.as_ref());
        }
        let Some(there) = given.as_ref().and_then(members) else {
            return wrong(format!("{}() with {given:?}", step.name));
        };
        let holds = |values: &[Value], value: &Value| values.iter().any(|v| equivalent(v, value));
        let only = |of: &[Value], not: &[Value]| of.iter().filter(|v| !holds(not, v)).cloned().collect::<Vec<_>>();
        Ok(Some(match step.name {
            "combine" => Value::list([here, there].concat()),
            "merge" => distinct([here, there].concat()),
            "difference" => distinct(only(&here, &there)),
            "intersect" => distinct(here.into_iter().filter(|v| holds(&there, v)).collect()),
            "disjunct" => distinct([only(&here, &there), only(&there, &here)].concat()),
            "product" => {
                let pairs = here.iter().flat_map(|a| there.iter().map(|b| Value::list(vec![a.clone(), b.clone()])));
                Value::list(pairs.collect())
            }
            other => return unsupported(format!("{other}()")),
        }))
    }
}

fn conjoin(members: &[Value], separator: Option<&Value>) -> Outcome<Option<Value>> {
    let Some(Value::String(separator)) = separator else { return unsupported("conjoin() without a text") };
    if !members.is_empty() && members.iter().all(|m| matches!(m, Value::Null)) {
        return Ok(Some(Value::Null));
    }
    let present = members.iter().filter(|m| !matches!(m, Value::Null));
    let texts = present.map(text_of).collect::<Outcome<Vec<String>>>()?;
    Ok(Some(Value::from(texts.join(separator.as_str()))))
}

fn distinct(values: Vec<Value>) -> Value {
    let mut kept: Vec<Value> = Vec::new();
    for value in values {
        if !kept.iter().any(|v| equivalent(v, &value)) {
            kept.push(value);
        }
    }
    Value::Set(Arc::new(kept))
}

/// `all(P)` and `any(P)`: an object that is no collection does not pass.
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
