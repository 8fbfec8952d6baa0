//! Rewrites of bytecode before its steps are compiled: infix connectives and `where()` patterns.
//!
//! Infix `and()` and `or()` have no arguments and are between the chains that they join: `a.or().b.and().c` means
//! `or(a, and(b, c))`, since `and` binds tighter. In a root traversal the start step (`V()` with its labels) is no part
//! of the first operand.
//!
//! A pattern is a traversal in `where()` with step labels at its ends. `where(as("a").out().as("b"))` asks whether `a`
//! has an out-neighbor that is `b`. It becomes `where(select(Pop.last, "a").out().where(eq("b")))`. Patterns inside
//! `and()`, `or()` and `not()` at the head of a pattern are rewritten in the same way.

use std::borrow::Cow;

use mangrove_graph::{Error, Result, Value};
use mangrove_gremlin::{Argument, Bytecode, Comparison, Instruction, Pop, Predicate};

use super::NESTING_MAX;
use super::arguments::too_deep;
use super::site::Site;

/// The chain with its infix connectives in prefix form.
pub(super) fn infix(instructions: &[Instruction], root: bool) -> Cow<'_, [Instruction]> {
    let head = if root { start_length(instructions) } else { 0 };
    let (start, rest) = instructions.split_at(head);
    if !rest.iter().any(|instruction| is_marker(instruction, "and") || is_marker(instruction, "or")) {
        return Cow::Borrowed(instructions);
    }
    let mut rewritten = start.to_vec();
    rewritten.extend(join(rest, "or", |member| join(member, "and", <[Instruction]>::to_vec)));
    Cow::Owned(rewritten)
}

/// The chain and the traversals nested in it, for a source without `ConnectiveStrategy`. An `and()` without arguments
/// always holds, an `or()` without arguments never does, and neither joins chains.
pub(super) fn left_alone(instructions: &[Instruction], depth: usize) -> Result<Vec<Instruction>> {
    if depth > NESTING_MAX {
        return Err(Error::unsupported(format!("traversals nest deeper than {NESTING_MAX}; split the traversal")));
    }
    let mut alone = instructions.to_vec();
    for instruction in &mut alone {
        if is_marker(instruction, "and") {
            instruction.name = "identity".into();
        } else if is_marker(instruction, "or") {
            instruction.name = "discard".into();
        }
        for argument in &mut instruction.arguments {
            if let Argument::Traversal(inner) = argument {
                inner.steps = left_alone(&inner.steps, depth + 1)?;
            }
        }
    }
    Ok(alone)
}

/// The number of instructions of the start step and its modulators.
fn start_length(instructions: &[Instruction]) -> usize {
    let modulators = instructions.iter().skip(1).take_while(|i| is_modulator(i) || &*i.name == "property");
    instructions.len().min(1) + modulators.count()
}

fn is_marker(instruction: &Instruction, name: &str) -> bool {
    instruction.name == name && instruction.arguments.is_empty()
}

/// The operands between the infix steps of a name, as one prefix step. A single operand stays a chain.
fn join(chain: &[Instruction], name: &str, operand: impl Fn(&[Instruction]) -> Vec<Instruction>) -> Vec<Instruction> {
    let Some(marker) = chain.iter().find(|instruction| is_marker(instruction, name)) else {
        return operand(chain);
    };
    let operands = chain.split(|instruction| is_marker(instruction, name));
    let arguments = operands.map(|part| Argument::Traversal(Bytecode { source: Vec::new(), steps: operand(part) }));
    vec![Instruction { name: name.into(), arguments: arguments.collect(), position: marker.position }]
}

/// Returns true if an instruction modulates the step before it.
fn is_modulator(instruction: &Instruction) -> bool {
    match instruction.name.as_str() {
        "as" | "by" | "from" | "option" | "with" | "until" | "emit" | "times" => true,
        "to" => !matches!(instruction.arguments.first(), Some(Argument::Value(Value::Direction(_)))),
        _ => false,
    }
}

/// The argument of a `where()` with the labels at its ends rewritten.
pub(super) fn pattern(site: &Site<'_>, bytecode: &Bytecode) -> Result<Bytecode> {
    pattern_at(site, bytecode, site.depth)
}

fn pattern_at(site: &Site<'_>, bytecode: &Bytecode, depth: usize) -> Result<Bytecode> {
    if depth > NESTING_MAX {
        return Err(too_deep(site));
    }
    let mut steps = infix(&bytecode.steps, false).into_owned();
    let mut body_start = 0;
    match steps.first_mut() {
        Some(first) if matches!(&*first.name, "and" | "or" | "not") => {
            for argument in &mut first.arguments {
                if let Argument::Traversal(inner) = argument {
                    *inner = pattern_at(site, inner, depth + 1)?;
                }
            }
        }
        Some(first) if &*first.name == "as" && first.arguments.len() == 1 => {
            first.name = "select".into();
            first.arguments.insert(0, Argument::Pop(Pop::Last));
            // A label of the object that enters is the start of the pattern, not its end.
            body_start = 1;
        }
        _ => {}
    }
    if let Some(end) = take_end_label(site, &mut steps, body_start)? {
        let equal = Predicate::Compare(Comparison::Eq, Box::new(end.arguments[0].clone()));
        let arguments = vec![Argument::Predicate(equal)];
        steps.push(Instruction { name: "where".into(), arguments, position: end.position });
    }
    Ok(Bytecode { source: bytecode.source.clone(), steps })
}

/// Removes the `as()` from the modulators of the last step, if it has exactly one label.
pub(super) fn take_end_label(
    site: &Site<'_>,
    steps: &mut Vec<Instruction>,
    body_start: usize,
) -> Result<Option<Instruction>> {
    let modulators = steps.iter().skip(body_start).rev().take_while(|step| is_modulator(step)).count();
    let tail = steps.len() - modulators;
    let labels: Vec<_> = steps.extract_if(tail.., |step| &*step.name == "as").collect();
    match labels.iter().map(|step| step.arguments.len()).sum() {
        0 => Ok(None),
        1 => Ok(labels.into_iter().find(|step| !step.arguments.is_empty())),
        count => Err(site.unsupported(format_args!(
            "the end step of a where()-traversal can only have one label, not {count}; name one in as(…)"
        ))),
    }
}
