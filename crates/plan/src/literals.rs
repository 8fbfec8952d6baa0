//! Literals that a plan does not depend on.
//!
//! Clients send values as literals: `has('id', 7)` and `has('id', 8)` are two traversals with one plan. This module
//! takes such literals out of a traversal and numbers them. The remaining traversal is planned once. Each run gets the
//! values beside the plan, like parameters.
//!
//! - **PLAN-3.** A literal is taken out only if neither the compiler nor a rule reads it: [`Operand::Lifted`] in its
//!   position gives the same plan, the same answers and the same errors.
//!
//! So a literal stays if it
//!
//! - is a name (a label, a key, a step label) or a number of rows, or is no plain scalar;
//! - is in the position of an id and is no id: the compiler refuses it;
//! - is 0 or 1 in `is()`: a rule rewrites `count().is(0)` into a test of existence.
//!
//! A rule compares the tests of a loop with those after it. So equal literals of a traversal with a `repeat()` have one
//! number, and whether two literals are equal is part of what is planned.
//!
//! [`Operand::Lifted`]: crate::logical::Operand::Lifted

use std::ops::Range;

use mangrove_graph::{Token, UserId, Value, numeric};
use mangrove_gremlin::{Argument, Bytecode, Instruction, Predicate};

/// A traversal with more literals than this keeps them. It is data, and hardly ever comes again with other values.
const LITERALS_MAX: usize = 1024;

/// A traversal without its literals.
#[derive(Debug)]
pub struct Lifted {
    /// The traversal without the literals.
    pub bytecode: Bytecode,
    /// The literals by number.
    pub values: Vec<Value>,
}

/// Takes out the literals that the plan of a traversal does not depend on; `None` if there are none.
pub fn lift(bytecode: &Bytecode) -> Option<Lifted> {
    let count = count(&bytecode.steps);
    if !(1..=LITERALS_MAX).contains(&count) {
        return None;
    }
    let mut bytecode = bytecode.clone();
    let mut taken = Taken { values: Vec::with_capacity(count), shares: has_loop(&bytecode.steps) };
    take(&mut bytecode.steps, &mut taken);
    Some(Lifted { bytecode, values: taken.values })
}

/// The literals that were taken out so far.
struct Taken {
    values: Vec<Value>,
    /// Equal literals have one number.
    shares: bool,
}

impl Taken {
    /// Returns the number of a literal.
    fn number(&mut self, value: Value) -> u32 {
        /// Only so many of the last literals are compared, so that the time stays linear.
        const COMPARED_MAX: usize = 64;
        let from = self.values.len().saturating_sub(COMPARED_MAX);
        let is_same = |known: &Value| match (known, &value) {
            (Value::I32(a), Value::I32(b)) => a == b,
            (Value::I64(a), Value::I64(b)) => a == b,
            (Value::String(a), Value::String(b)) => a == b,
            (Value::Uuid(a), Value::Uuid(b)) => a == b,
            (Value::Bool(a), Value::Bool(b)) => a == b,
            _ => false,
        };
        let known = self.values[from..].iter().position(is_same).filter(|_| self.shares);
        let number = known.map_or(self.values.len(), |at| from + at);
        if known.is_none() {
            self.values.push(value);
        }
        // There are at most `LITERALS_MAX`.
        number as u32
    }
}

fn has_loop(steps: &[Instruction]) -> bool {
    let in_argument = |argument: &Argument| matches!(argument, Argument::Traversal(nested) if has_loop(&nested.steps));
    steps.iter().any(|step| step.name == "repeat" || step.arguments.iter().any(in_argument))
}

/// The use that a step makes of an argument.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ArgumentUse {
    /// A value that is written.
    Value,
    /// An id of an element.
    Id,
    /// A value that other values are compared with, or a predicate.
    Test,
    /// The same, in `is()`.
    Is,
}

/// The positions of the arguments of a step whose literals may be taken out, and their use.
fn liftable_arguments(step: &Instruction) -> Option<(Range<usize>, ArgumentUse)> {
    let is_text = |argument: &Argument| matches!(argument, Argument::Value(Value::String(_)));
    let is_accessor =
        |argument: &Argument| matches!(argument, Argument::Value(Value::String(_) | Value::Token(Token::Id)));
    Some(match (step.name.as_str(), &step.arguments[..]) {
        ("V" | "E", ids) => (0..ids.len(), ArgumentUse::Id),
        ("hasId", ids) => (0..ids.len(), ArgumentUse::Test),
        ("has", [accessor, _]) if is_accessor(accessor) => (1..2, ArgumentUse::Test),
        ("has", [_, accessor, _]) if is_accessor(accessor) => (2..3, ArgumentUse::Test),
        ("is", [_]) => (0..1, ArgumentUse::Is),
        ("property", [key, _]) if is_text(key) => (1..2, ArgumentUse::Value),
        ("property", [Argument::Cardinality(_) | Argument::Value(Value::Null), key, _]) if is_text(key) => {
            (2..3, ArgumentUse::Value)
        }
        _ => return None,
    })
}

/// Returns true if the plan is the same for every scalar in the position of this value (PLAN-3).
fn is_free(value: &Value, used_as: ArgumentUse) -> bool {
    let is_scalar =
        value.is_number() || matches!(value, Value::Bool(_) | Value::String(_) | Value::Uuid(_) | Value::DateTime(_));
    is_scalar
        && match used_as {
            ArgumentUse::Value | ArgumentUse::Test => true,
            ArgumentUse::Id => UserId::from_value(value).is_some(),
            ArgumentUse::Is => !matches!(numeric::integer(value), Some(0 | 1)),
        }
}

fn count(steps: &[Instruction]) -> usize {
    steps.iter().map(count_in_step).sum()
}

fn count_in_step(step: &Instruction) -> usize {
    let liftable = liftable_arguments(step);
    let of_argument = |(at, argument): (usize, &Argument)| match (argument, &liftable) {
        (Argument::Traversal(nested), _) => count(&nested.steps),
        (argument, Some((range, used_as))) if range.contains(&at) => count_in_argument(argument, *used_as),
        _ => 0,
    };
    step.arguments.iter().enumerate().map(of_argument).sum()
}

fn count_in_argument(argument: &Argument, used_as: ArgumentUse) -> usize {
    match argument {
        Argument::Value(value) => usize::from(is_free(value, used_as)),
        Argument::Predicate(predicate) if matches!(used_as, ArgumentUse::Test | ArgumentUse::Is) => {
            count_in_predicate(predicate, used_as)
        }
        _ => 0,
    }
}

fn count_in_predicate(predicate: &Predicate, used_as: ArgumentUse) -> usize {
    match predicate {
        Predicate::Compare(_, operand) => match &**operand {
            Argument::Value(value) => usize::from(is_free(value, used_as)),
            _ => 0,
        },
        Predicate::And(members) | Predicate::Or(members) => {
            members.iter().map(|m| count_in_predicate(m, used_as)).sum()
        }
        Predicate::Not(inner) => count_in_predicate(inner, used_as),
        Predicate::Within(_) | Predicate::Without(_) | Predicate::Text(..) | Predicate::TypeOf(_) => 0,
    }
}

fn take(steps: &mut [Instruction], taken: &mut Taken) {
    for step in steps {
        let liftable = liftable_arguments(step);
        for (at, argument) in step.arguments.iter_mut().enumerate() {
            match (argument, &liftable) {
                (Argument::Traversal(nested), _) => take(&mut nested.steps, taken),
                (argument, Some((range, used_as))) if range.contains(&at) => {
                    take_in_argument(argument, *used_as, taken)
                }
                _ => {}
            }
        }
    }
}

fn take_in_argument(argument: &mut Argument, used_as: ArgumentUse, taken: &mut Taken) {
    match argument {
        Argument::Value(_) => take_value(argument, used_as, taken),
        Argument::Predicate(predicate) if matches!(used_as, ArgumentUse::Test | ArgumentUse::Is) => {
            take_in_predicate(predicate, used_as, taken);
        }
        _ => {}
    }
}

fn take_in_predicate(predicate: &mut Predicate, used_as: ArgumentUse, taken: &mut Taken) {
    match predicate {
        Predicate::Compare(_, operand) => take_value(operand, used_as, taken),
        Predicate::And(members) | Predicate::Or(members) => {
            members.iter_mut().for_each(|member| take_in_predicate(member, used_as, taken));
        }
        Predicate::Not(inner) => take_in_predicate(inner, used_as, taken),
        Predicate::Within(_) | Predicate::Without(_) | Predicate::Text(..) | Predicate::TypeOf(_) => {}
    }
}

fn take_value(argument: &mut Argument, used_as: ArgumentUse, taken: &mut Taken) {
    if let Argument::Value(value) = argument
        && is_free(value, used_as)
    {
        let number = taken.number(value.clone());
        *argument = Argument::Lifted(number);
    }
}
