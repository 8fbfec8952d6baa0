//! Questions about literals, and the guards that their answers become.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::fmt;

use mangrove_graph::{Value, compare, numeric};

use crate::logical::Operand;

/// A fact about a literal.
#[derive(Clone, Debug, PartialEq)]
pub enum Fact {
    /// It is a whole number of at most 64 bits.
    Integer,
    /// It is a number.
    Number,
    /// It is a string.
    Text,
    /// It is this whole number, of any width.
    Is(i64),
    /// It is a whole number of at least this.
    AtLeast(i64),
    /// It is a whole number that is not above the literal of this number.
    AtMostLiteral(u32),
    /// It equals this value.
    Equals(Value),
    /// It equals the literal of this number.
    EqualsLiteral(u32),
}

impl Fact {
    /// Returns true if the fact holds for a literal. Nothing holds for a literal that is missing.
    fn holds(&self, value: &Value, literals: &[Value]) -> bool {
        let literal = |number: &u32| literals.get(*number as usize);
        let integer = || numeric::integer(value);
        match self {
            Fact::Integer => integer().is_some(),
            Fact::Number => value.is_number(),
            Fact::Text => matches!(value, Value::String(_)),
            Fact::Is(number) => integer() == Some(*number),
            Fact::AtLeast(least) => integer().is_some_and(|number| number >= *least),
            Fact::AtMostLiteral(other) => {
                let most = literal(other).and_then(numeric::integer);
                integer().zip(most).is_some_and(|(number, most)| number <= most)
            }
            Fact::Equals(other) => compare::equal(value, other),
            Fact::EqualsLiteral(other) => literal(other).is_some_and(|other| compare::equal(value, other)),
        }
    }
}

/// What a plan relies on: whether a fact holds for a literal.
#[derive(Clone, Debug, PartialEq)]
pub struct Guard {
    literal: u32,
    fact: Fact,
    holds: bool,
}

impl Guard {
    /// Returns true if literals are as the plan relies on.
    pub fn admits(&self, literals: &[Value]) -> bool {
        literals.get(self.literal as usize).is_some_and(|value| self.fact.holds(value, literals) == self.holds)
    }
}

/// `?0 is at least 9`. Values that were compared with are not shown: they may be those of a user.
impl fmt::Display for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "?{} is {}", self.literal, if self.holds { "" } else { "not " })?;
        match &self.fact {
            Fact::Integer => f.write_str("a whole number"),
            Fact::Number => f.write_str("a number"),
            Fact::Text => f.write_str("a string"),
            Fact::Is(number) => write!(f, "{number}"),
            Fact::AtLeast(least) => write!(f, "at least {least}"),
            Fact::AtMostLiteral(other) => write!(f, "at most ?{other}"),
            Fact::Equals(_) => f.write_str("equal to a value of the shape"),
            Fact::EqualsLiteral(other) => write!(f, "equal to ?{other}"),
        }
    }
}

/// The literals of the traversal that is being planned, and what planning has asked about them. The default is for a
/// traversal that keeps all its literals.
#[derive(Debug, Default)]
pub struct Literals<'a> {
    values: &'a [Value],
    guards: RefCell<Vec<Guard>>,
}

impl<'a> Literals<'a> {
    /// These literals, by number.
    pub fn new(values: &'a [Value]) -> Self {
        Literals { values, guards: RefCell::default() }
    }

    /// What a plan that was made with these literals relies on.
    pub fn into_guards(self) -> Vec<Guard> {
        self.guards.into_inner()
    }

    /// Returns true if a fact holds for a literal. The plan relies on the answer from here on (PLAN-3).
    pub fn ask(&self, literal: u32, fact: Fact) -> bool {
        let Some(value) = self.values.get(literal as usize) else { return false };
        let holds = fact.holds(value, self.values);
        let guard = Guard { literal, fact, holds };
        let mut guards = self.guards.borrow_mut();
        if !guards.contains(&guard) {
            guards.push(guard);
        }
        holds
    }

    /// Returns true if an operand is known to be this whole number.
    pub fn is(&self, operand: &Operand, number: i64) -> bool {
        match operand {
            Operand::Literal(value) => numeric::integer(value) == Some(number),
            Operand::Lifted(literal) => self.ask(*literal, Fact::Is(number)),
            _ => false,
        }
    }

    /// Returns the whole number that an operand is known to be, if it is at most `most`. Above it, the plan relies on
    /// nothing but that.
    pub fn at_most(&self, operand: &Operand, most: i64) -> Option<i64> {
        let literal = match operand {
            Operand::Literal(value) => return numeric::integer(value).filter(|number| *number <= most),
            Operand::Lifted(literal) => *literal,
            _ => return None,
        };
        if !self.ask(literal, Fact::Integer) || self.ask(literal, Fact::AtLeast(most.saturating_add(1))) {
            return None;
        }
        let number = numeric::integer(self.values.get(literal as usize)?)?;
        self.ask(literal, Fact::Is(number)).then_some(number)
    }

    /// Compares two operands that are known to be whole numbers. The plan relies on whether the first is above the
    /// second.
    pub fn is_above(&self, left: &Operand, right: &Operand) -> bool {
        match (left, right) {
            (Operand::Literal(left), Operand::Literal(right)) => numeric::integer(left)
                .zip(numeric::integer(right))
                .is_some_and(|(left, right)| left.cmp(&right) == Ordering::Greater),
            (Operand::Literal(left), Operand::Lifted(right)) => {
                numeric::integer(left).is_some_and(|left| !self.ask(*right, Fact::AtLeast(left)))
            }
            (Operand::Lifted(left), Operand::Literal(right)) => numeric::integer(right)
                .and_then(|right| right.checked_add(1))
                .is_some_and(|above| self.ask(*left, Fact::AtLeast(above))),
            (Operand::Lifted(left), Operand::Lifted(right)) => !self.ask(*left, Fact::AtMostLiteral(*right)),
            _ => false,
        }
    }

    /// Returns true if two operands are known to be equal values.
    pub fn are_equal(&self, left: &Operand, right: &Operand) -> bool {
        match (left, right) {
            (Operand::Lifted(left), Operand::Lifted(right)) => {
                left == right || self.ask(*left, Fact::EqualsLiteral(*right))
            }
            (Operand::Lifted(lifted), Operand::Literal(value)) | (Operand::Literal(value), Operand::Lifted(lifted)) => {
                self.ask(*lifted, Fact::Equals(value.clone()))
            }
            _ => left == right,
        }
    }

    /// Returns true if two operands are known to be different values.
    pub fn differ(&self, left: &Operand, right: &Operand) -> bool {
        match (left, right) {
            (Operand::Literal(left), Operand::Literal(right)) => !compare::equal(left, right),
            (Operand::Lifted(lifted), Operand::Literal(value)) | (Operand::Literal(value), Operand::Lifted(lifted)) => {
                !self.ask(*lifted, Fact::Equals(value.clone()))
            }
            (Operand::Lifted(left), Operand::Lifted(right)) => !self.ask(*left, Fact::EqualsLiteral(*right)),
            _ => false,
        }
    }
}
