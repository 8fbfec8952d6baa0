//! `match()`: patterns put in an order in which each begins at something known.
//!
//! A pattern begins at a variable (`as("a")`) and may end at one. Patterns are rewritten into steps of the chain, so
//! that a `match()` is nothing else to the planner than steps, labels and filters:
//!
//! - each begins with `select(last, "a")`; one whose end is not bound yet binds it (`as("b")`), one whose end is bound
//!   compares (`where(eq("b"))`);
//! - `and(…)` is its patterns; `or(…)`, `not(…)` and `where(…)` are tests, made when their variables are bound;
//! - in the end stands `select` of all variables, which gives the map.
//!
//! The first variable is the object that enters, unless a step before bears its label already: one that is the end of
//! no pattern, or else the start of the first. Which pattern comes next: what binds nothing new before what does, and
//! among equals the one that is written first.

use std::borrow::Cow;

use mangrove_graph::{Result, Value};
use mangrove_gremlin::{Argument, Bytecode, Comparison, Instruction, Pop, Predicate};

use super::NESTING_MAX;
use super::arguments::{describe, misfit, too_deep};
use super::connectives::{infix, take_end_label};
use super::site::Site;
use crate::logical::Name;

/// The chain with every `match()` in it rewritten.
pub(super) fn rewrite<'a>(
    instructions: Cow<'a, [Instruction]>,
    parent: Option<&Site<'_>>,
) -> Result<Cow<'a, [Instruction]>> {
    if !instructions.iter().any(|instruction| instruction.name == "match") {
        return Ok(instructions);
    }
    let mut rewritten: Vec<Instruction> = Vec::with_capacity(instructions.len());
    let mut known: Vec<Name> = Vec::new();
    for (index, instruction) in instructions.iter().enumerate() {
        if instruction.name == "match" {
            let site = Site::new(instruction, index, parent);
            rewritten.extend(steps(&site, instruction, &mut known)?);
        } else {
            known.extend(labels_of(instruction));
            rewritten.push(instruction.clone());
        }
    }
    Ok(Cow::Owned(rewritten))
}

/// A pattern with its variables.
struct Pattern {
    /// Without the labels at its ends.
    steps: Vec<Instruction>,
    start: Option<Name>,
    end: Option<Name>,
    /// The variables it speaks of, but for its end.
    needs: Vec<Name>,
    /// The variables of the patterns in an `or()`: those that are bound before are shown, too.
    shows: Vec<Name>,
}

fn steps(site: &Site<'_>, instruction: &Instruction, known: &mut Vec<Name>) -> Result<Vec<Instruction>> {
    let mut patterns = Vec::new();
    for argument in &instruction.arguments {
        let Argument::Traversal(pattern) = argument else {
            return Err(misfit(site, "patterns such as as(\"a\").out().as(\"b\")", &instruction.arguments));
        };
        gather(site, pattern, site.depth, &mut patterns)?;
    }
    let mut variables: Vec<Name> = Vec::new();
    for name in patterns.iter().flat_map(|pattern| pattern.start.iter().chain(&pattern.end)) {
        if !variables.contains(name) {
            variables.push(name.clone());
        }
    }
    let shown = patterns.iter().flat_map(|pattern| &pattern.shows).filter(|name| known.contains(name));
    for name in shown.cloned().collect::<Vec<_>>() {
        if !variables.contains(&name) {
            variables.push(name);
        }
    }
    for pattern in &mut patterns {
        pattern.needs.retain(|name| variables.contains(name) && pattern.end.as_ref() != Some(name));
        pattern.needs.extend(pattern.start.clone());
    }
    let ends = |name: &Name| patterns.iter().any(|pattern| pattern.end.as_ref() == Some(name));
    let starts = || patterns.iter().filter_map(|pattern| pattern.start.as_ref());
    let Some(first) = starts().find(|name| !ends(name)).or_else(|| starts().next()).cloned() else {
        return Err(site.invalid("no pattern begins with as(…), so there is nothing to begin at"));
    };

    let position = instruction.position;
    let call = |name: &str, arguments: Vec<Argument>| Instruction { name: name.into(), arguments, position };
    let text = |name: &Name| Argument::Value(Value::String(name.clone()));
    let mut made = Vec::new();
    let mut bound: Vec<Name> = variables.iter().filter(|name| known.contains(name)).cloned().collect();
    if !bound.contains(&first) {
        made.push(call("as", vec![text(&first)]));
        bound.push(first);
    }
    while !patterns.is_empty() {
        let ready = |pattern: &Pattern| pattern.needs.iter().all(|name| bound.contains(name));
        let binds = |pattern: &Pattern| pattern.end.as_ref().is_some_and(|end| !bound.contains(end));
        let next = patterns.iter().position(|p| ready(p) && !binds(p)).or_else(|| patterns.iter().position(ready));
        let Some(next) = next else {
            return Err(site.unsupported(format_args!(
                "no order of the patterns binds every variable before it is read; `{}` is never bound",
                patterns.iter().flat_map(|p| &p.needs).find(|name| !bound.contains(name)).map_or("", |name| name)
            )));
        };
        let pattern = patterns.remove(next);
        if let Some(start) = &pattern.start {
            made.push(call("select", vec![Argument::Pop(Pop::Last), text(start)]));
        }
        made.extend(alone(pattern.steps));
        match pattern.end {
            Some(end) if bound.contains(&end) => {
                let equal = Predicate::Compare(Comparison::Eq, Box::new(text(&end)));
                made.push(call("where", vec![Argument::Predicate(equal)]));
            }
            Some(end) => {
                made.push(call("as", vec![text(&end)]));
                bound.push(end);
            }
            None => {}
        }
    }
    let mut names: Vec<Argument> = variables.iter().map(text).collect();
    if let [only] = &names[..] {
        // One name would give its value, not a map of it.
        names.push(only.clone());
    }
    names.insert(0, Argument::Pop(Pop::Last));
    made.push(call("select", names));
    known.extend(variables);
    Ok(made)
}

/// A pattern's steps, kept apart for every traverser where one of them reads the whole stream.
fn alone(steps: Vec<Instruction>) -> Vec<Instruction> {
    let apart = |step: &Instruction| STREAM_READERS.contains(&step.name.as_str());
    let position = steps.first().and_then(|step| step.position);
    if !steps.iter().any(apart) {
        return steps;
    }
    let inner = Argument::Traversal(Bytecode { source: Vec::new(), steps });
    vec![Instruction { name: "flatMap".into(), arguments: vec![inner], position }]
}

/// A pattern in a test, with its steps kept apart likewise.
fn alone_inside(site: &Site<'_>, bytecode: &Bytecode, depth: usize) -> Result<Bytecode> {
    if depth > NESTING_MAX {
        return Err(too_deep(site));
    }
    let mut steps = infix(&bytecode.steps, false).into_owned();
    match steps.first_mut() {
        Some(first) if matches!(first.name.as_str(), "and" | "or" | "not" | "where") => {
            for argument in &mut first.arguments {
                if let Argument::Traversal(inner) = argument {
                    *inner = alone_inside(site, inner, depth + 1)?;
                }
            }
        }
        Some(first) if first.name == "as" => {
            let mut body = steps.split_off(1);
            let end = take_end_label(site, &mut body, 0)?;
            steps.extend(alone(body));
            steps.extend(end);
        }
        _ => {}
    }
    Ok(Bytecode { source: bytecode.source.clone(), steps })
}

/// Steps whose results depend on the rows that come together; and `match`, whose variables are its own.
#[rustfmt::skip] // A name a line would be pages of names.
const STREAM_READERS: &[&str] = &[
    "aggregate", "barrier", "cap", "count", "dedup", "fold", "group", "groupCount", "inject", "limit", "match", "max",
    "mean", "min", "order", "range", "sample", "skip", "sum", "tail",
];

/// The patterns of an argument: one, or those in an `and()`.
fn gather(site: &Site<'_>, bytecode: &Bytecode, depth: usize, patterns: &mut Vec<Pattern>) -> Result<()> {
    if depth > NESTING_MAX {
        return Err(too_deep(site));
    }
    let mut steps = infix(&bytecode.steps, false).into_owned();
    let mut needs = Vec::new();
    match &steps[..] {
        [] => return Err(site.invalid("a pattern has no steps; write such as as(\"a\").out().as(\"b\")")),
        [only] if only.name == "and" => {
            for argument in &only.arguments {
                match argument {
                    Argument::Traversal(inner) => gather(site, inner, depth + 1, patterns)?,
                    other => {
                        return Err(site.invalid(format_args!("a pattern is a traversal, not {}", describe(other))));
                    }
                }
            }
            return Ok(());
        }
        [first, ..] if matches!(first.name.as_str(), "or" | "not" | "where") => {
            mentions(&steps, depth, &mut needs);
            let mut shows = Vec::new();
            if first.name == "or" {
                labels_inside(&steps, depth, &mut shows);
            }
            for argument in &mut steps[0].arguments {
                if let Argument::Traversal(inner) = argument {
                    *inner = alone_inside(site, inner, depth + 1)?;
                }
            }
            let mut filter = steps;
            if filter.len() == 1 && filter[0].name != "where" {
                // As an argument of where(), its patterns are read as patterns.
                let inner = Bytecode { source: Vec::new(), steps: filter };
                let position = inner.steps[0].position;
                filter =
                    vec![Instruction { name: "where".into(), arguments: vec![Argument::Traversal(inner)], position }];
            }
            patterns.push(Pattern { steps: filter, start: None, end: None, needs, shows });
            return Ok(());
        }
        _ => {}
    }
    let start = match labels_of(&steps[0]).next() {
        Some(start) if steps[0].arguments.len() == 1 => start,
        _ => return Err(site.invalid("a pattern begins with as(…) of one label, or is and(), or(), not() or where()")),
    };
    steps.remove(0);
    let end = take_end_label(site, &mut steps, 0)?.and_then(|label| labels_of(&label).next());
    mentions(&steps, depth, &mut needs);
    patterns.push(Pattern { steps, start: Some(start), end, needs, shows: Vec::new() });
    Ok(())
}

/// The labels that `as()` gives.
fn labels_of(instruction: &Instruction) -> impl Iterator<Item = Name> {
    let names = if instruction.name == "as" { &instruction.arguments[..] } else { &[] };
    names.iter().filter_map(|name| match name {
        Argument::Value(Value::String(name)) => Some(name.clone()),
        _ => None,
    })
}

/// The labels that `as()` gives in steps and what is nested in them.
fn labels_inside(steps: &[Instruction], depth: usize, names: &mut Vec<Name>) {
    if depth > NESTING_MAX {
        return;
    }
    for step in steps {
        names.extend(labels_of(step));
        for argument in &step.arguments {
            if let Argument::Traversal(inner) = argument {
                labels_inside(&inner.steps, depth + 1, names);
            }
        }
    }
}

/// Every string that may be the name of a variable somebody reads: in `as`, `select`, `where`, `dedup` and the like,
/// also in predicates and nested traversals.
fn mentions(steps: &[Instruction], depth: usize, names: &mut Vec<Name>) {
    if depth > NESTING_MAX {
        return;
    }
    for step in steps {
        let reads = matches!(step.name.as_str(), "as" | "select" | "where" | "dedup" | "from" | "to" | "math");
        for argument in &step.arguments {
            match argument {
                Argument::Value(Value::String(name)) if reads => names.push(name.clone()),
                Argument::Predicate(predicate) if reads => operands(predicate, depth, names),
                Argument::Traversal(inner) => mentions(&inner.steps, depth + 1, names),
                _ => {}
            }
        }
    }
}

fn operands(predicate: &Predicate, depth: usize, names: &mut Vec<Name>) {
    if depth > NESTING_MAX {
        return;
    }
    let mut name = |argument: &Argument| {
        if let Argument::Value(Value::String(name)) = argument {
            names.push(name.clone());
        }
    };
    match predicate {
        Predicate::Compare(_, argument) | Predicate::Text(_, argument) => name(argument),
        Predicate::Within(arguments) | Predicate::Without(arguments) => arguments.iter().for_each(name),
        Predicate::TypeOf(_) => {}
        Predicate::And(all) | Predicate::Or(all) => all.iter().for_each(|p| operands(p, depth + 1, names)),
        Predicate::Not(inner) => operands(inner, depth + 1, names),
    }
}
