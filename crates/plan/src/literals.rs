//! Literals that a plan does not depend on.
//!
//! Clients send values as literals: `has('id', 7)` and `has('id', 8)` are two traversals with one plan. Here such
//! literals are taken out of a traversal and numbered. What is left is planned once, and a run takes the values beside
//! it, like parameters.
//!
//! A literal is taken out only where neither the compiler nor a rule reads it: where [`Operand::Lifted`] in its place
//! gives the same plan, the same answers and the same errors. So a literal stays where it
//!
//! - is a name (a label, a key, a step label) or a number of rows, and wherever it is not a plain scalar;
//! - is no id, and an id is needed: that is an error of the compiler;
//! - is 0 or 1 in `is()`: `count().is(0)` is rewritten into a test of existence.
//!
//! [`Operand::Lifted`]: crate::logical::Operand::Lifted

use std::ops::Range;

use mangrove_graph::{Token, UserId, Value, numeric};
use mangrove_gremlin::{Argument, Bytecode, Instruction, Predicate};

/// A traversal with more literals than this keeps them: it is data, and hardly comes again with others.
const LITERALS_MAX: usize = 1024;

/// A traversal without its literals.
#[derive(Debug)]
pub struct Lifted {
    /// What is left of it.
    pub bytecode: Bytecode,
    /// The literals by number.
    pub values: Vec<Value>,
}

/// The traversal without the literals that its plan does not depend on; `None` where it has none.
pub fn lift(bytecode: &Bytecode) -> Option<Lifted> {
    let count = count(&bytecode.steps);
    if !(1..=LITERALS_MAX).contains(&count) {
        return None;
    }
    let mut bytecode = bytecode.clone();
    let mut values = Vec::with_capacity(count);
    take(&mut bytecode.steps, &mut values);
    Some(Lifted { bytecode, values })
}

/// What an argument is to its step.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// A value that is written.
    Value,
    /// An id of an element.
    Id,
    /// A value that others are compared with, or a predicate.
    Test,
    /// The same in `is()`.
    Is,
}

/// The arguments of a step whose literals may be taken out.
fn places(step: &Instruction) -> Option<(Range<usize>, Role)> {
    let is_text = |argument: &Argument| matches!(argument, Argument::Value(Value::String(_)));
    let is_accessor =
        |argument: &Argument| matches!(argument, Argument::Value(Value::String(_) | Value::Token(Token::Id)));
    Some(match (step.name.as_str(), &step.arguments[..]) {
        ("V" | "E", ids) => (0..ids.len(), Role::Id),
        ("hasId", ids) => (0..ids.len(), Role::Test),
        ("has", [accessor, _]) if is_accessor(accessor) => (1..2, Role::Test),
        ("has", [_, accessor, _]) if is_accessor(accessor) => (2..3, Role::Test),
        ("is", [_]) => (0..1, Role::Is),
        ("property", [key, _]) if is_text(key) => (1..2, Role::Value),
        ("property", [Argument::Cardinality(_) | Argument::Value(Value::Null), key, _]) if is_text(key) => {
            (2..3, Role::Value)
        }
        _ => return None,
    })
}

/// Returns true if a plan is the same whatever scalar stands in the place of this value.
fn is_free(value: &Value, role: Role) -> bool {
    let is_scalar =
        value.is_number() || matches!(value, Value::Bool(_) | Value::String(_) | Value::Uuid(_) | Value::DateTime(_));
    is_scalar
        && match role {
            Role::Value | Role::Test => true,
            Role::Id => UserId::from_value(value).is_some(),
            Role::Is => !matches!(numeric::integer(value), Some(0 | 1)),
        }
}

fn count(steps: &[Instruction]) -> usize {
    steps.iter().map(count_in_step).sum()
}

fn count_in_step(step: &Instruction) -> usize {
    let places = places(step);
    let of_argument = |(at, argument): (usize, &Argument)| match (argument, &places) {
        (Argument::Traversal(nested), _) => count(&nested.steps),
        (argument, Some((range, role))) if range.contains(&at) => count_in_place(argument, *role),
        _ => 0,
    };
    step.arguments.iter().enumerate().map(of_argument).sum()
}

fn count_in_place(argument: &Argument, role: Role) -> usize {
    match argument {
        Argument::Value(value) => usize::from(is_free(value, role)),
        Argument::Predicate(predicate) if matches!(role, Role::Test | Role::Is) => count_in_predicate(predicate, role),
        _ => 0,
    }
}

fn count_in_predicate(predicate: &Predicate, role: Role) -> usize {
    match predicate {
        Predicate::Compare(_, operand) => match &**operand {
            Argument::Value(value) => usize::from(is_free(value, role)),
            _ => 0,
        },
        Predicate::And(members) | Predicate::Or(members) => members.iter().map(|m| count_in_predicate(m, role)).sum(),
        Predicate::Not(inner) => count_in_predicate(inner, role),
        Predicate::Within(_) | Predicate::Without(_) | Predicate::Text(..) | Predicate::TypeOf(_) => 0,
    }
}

fn take(steps: &mut [Instruction], values: &mut Vec<Value>) {
    for step in steps {
        let places = places(step);
        for (at, argument) in step.arguments.iter_mut().enumerate() {
            match (argument, &places) {
                (Argument::Traversal(nested), _) => take(&mut nested.steps, values),
                (argument, Some((range, role))) if range.contains(&at) => take_in_place(argument, *role, values),
                _ => {}
            }
        }
    }
}

fn take_in_place(argument: &mut Argument, role: Role, values: &mut Vec<Value>) {
    match argument {
        Argument::Value(_) => take_value(argument, role, values),
        Argument::Predicate(predicate) if matches!(role, Role::Test | Role::Is) => {
            take_in_predicate(predicate, role, values);
        }
        _ => {}
    }
}

fn take_in_predicate(predicate: &mut Predicate, role: Role, values: &mut Vec<Value>) {
    match predicate {
        Predicate::Compare(_, operand) => take_value(operand, role, values),
        Predicate::And(members) | Predicate::Or(members) => {
            members.iter_mut().for_each(|member| take_in_predicate(member, role, values));
        }
        Predicate::Not(inner) => take_in_predicate(inner, role, values),
        Predicate::Within(_) | Predicate::Without(_) | Predicate::Text(..) | Predicate::TypeOf(_) => {}
    }
}

fn take_value(argument: &mut Argument, role: Role, values: &mut Vec<Value>) {
    if let Argument::Value(value) = argument
        && is_free(value, role)
    {
        // Their count is small.
        let number = values.len() as u32;
        if let Argument::Value(value) = std::mem::replace(argument, Argument::Lifted(number)) {
            values.push(value);
        }
    }
}
