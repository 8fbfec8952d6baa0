//! Predicates in two-valued logic: a comparison of incomparable values is false.

use std::cmp::Ordering;

use mangrove_graph::Value;
use mangrove_graph::compare::{comparable, equal};
use mangrove_gremlin::{Argument, Comparison, Predicate, TextOperation};

use super::step::value;
use super::{Interpreter, Outcome, unsupported, wrong};

/// Returns true if the value passes; operands are literals.
pub(crate) fn passes(predicate: &Predicate, subject: &Value) -> Outcome<bool> {
    passes_with(predicate, subject, &mut |argument| Ok(value(argument)?.clone()))
}

/// The operands of a predicate and of those it is made of.
pub(crate) fn operands(predicate: &Predicate) -> Vec<&Argument> {
    match predicate {
        Predicate::Compare(_, operand) | Predicate::Text(_, operand) => vec![operand],
        Predicate::Within(operands) | Predicate::Without(operands) => operands.iter().collect(),
        Predicate::And(members) | Predicate::Or(members) => members.iter().flat_map(operands).collect(),
        Predicate::Not(inner) => operands(inner),
        Predicate::TypeOf(_) => Vec::new(),
    }
}

/// Returns true if the value passes. `resolve` computes the operands.
pub(crate) fn passes_with(
    predicate: &Predicate,
    subject: &Value,
    resolve: &mut dyn FnMut(&Argument) -> Outcome<Value>,
) -> Outcome<bool> {
    Ok(match predicate {
        Predicate::Compare(comparison, operand) => compare(*comparison, subject, &resolve(operand)?),
        Predicate::Within(operands) => among(operands, subject, resolve)?,
        Predicate::Without(operands) => !among(operands, subject, resolve)?,
        Predicate::Text(operation, operand) => text(*operation, subject, &resolve(operand)?)?,
        Predicate::And(all) => {
            for p in all {
                if !passes_with(p, subject, resolve)? {
                    return Ok(false);
                }
            }
            true
        }
        Predicate::Or(any) => {
            for p in any {
                if passes_with(p, subject, resolve)? {
                    return Ok(true);
                }
            }
            false
        }
        Predicate::Not(p) => !passes_with(p, subject, resolve)?,
        Predicate::TypeOf(name) => match name.as_ref() {
            Argument::Type(name) => is_of(subject, name)?,
            other => return unsupported(format!("typeOf({other:?})")),
        },
    })
}

fn compare(comparison: Comparison, a: &Value, b: &Value) -> bool {
    match comparison {
        Comparison::Eq => equal(a, b),
        Comparison::Neq => !equal(a, b),
        Comparison::Lt => comparable(a, b) == Some(Ordering::Less),
        Comparison::Lte => comparable(a, b).is_some_and(Ordering::is_le),
        Comparison::Gt => comparable(a, b) == Some(Ordering::Greater),
        Comparison::Gte => comparable(a, b).is_some_and(Ordering::is_ge),
    }
}

/// A side effect among the operands of `within` stands for its members.
fn among(
    operands: &[Argument],
    subject: &Value,
    resolve: &mut dyn FnMut(&Argument) -> Outcome<Value>,
) -> Outcome<bool> {
    for operand in operands {
        match resolve(operand)? {
            Value::List(members) if members.iter().any(|m| equal(m, subject)) => return Ok(true),
            Value::BulkSet(members) if members.iter().any(|(m, _)| equal(m, subject)) => return Ok(true),
            operand if equal(&operand, subject) => return Ok(true),
            _ => {}
        }
    }
    Ok(false)
}

/// `typeOf(GType.…)`
fn is_of(subject: &Value, name: &str) -> Outcome<bool> {
    Ok(match (name, subject) {
        ("NUMBER", subject) => mangrove_graph::compare::is_number(subject),
        ("INT", Value::I32(_))
        | ("LONG", Value::I64(_))
        | ("DOUBLE", Value::F64(_))
        | ("STRING", Value::String(_))
        | ("BOOLEAN", Value::Bool(_))
        | ("VERTEX", Value::Vertex(_))
        | ("EDGE", Value::Edge(_))
        | ("NULL", Value::Null) => true,
        ("INT" | "LONG" | "DOUBLE" | "STRING" | "BOOLEAN" | "VERTEX" | "EDGE" | "NULL", _) => false,
        (other, _) => return unsupported(format!("typeOf({other})")),
    })
}

fn text(operation: TextOperation, subject: &Value, operand: &Value) -> Outcome<bool> {
    let (Value::String(subject), Value::String(operand)) = (subject, operand) else { return Ok(false) };
    Ok(match operation {
        TextOperation::StartingWith => subject.starts_with(operand.as_str()),
        TextOperation::EndingWith => subject.ends_with(operand.as_str()),
        TextOperation::Containing => subject.contains(operand.as_str()),
        TextOperation::Regex => match regex::Regex::new(operand) {
            Ok(pattern) => pattern.is_match(subject),
            Err(e) => return wrong(format!("not a regular expression: {e}")),
        },
    })
}

impl Interpreter<'_> {
    /// Returns true if a value passes an argument: a predicate, or a literal that it must equal.
    pub(crate) fn argument_matches(&self, argument: &Argument, subject: &Value) -> Outcome<bool> {
        match argument {
            Argument::Predicate(p) => passes(p, subject),
            Argument::Value(v) => Ok(equal(subject, v)),
            other => unsupported(format!("{other:?} as a test")),
        }
    }
}
