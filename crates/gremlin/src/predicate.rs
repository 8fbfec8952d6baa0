//! Predicates by their names in Gremlin, and their normal form.
//!
//! - **WIRE-4.** Scripts and the wire make every predicate here, in normal form:
//!   1. `inside`, `between` and `outside` are conjunctions and disjunctions of comparisons;
//!   2. a negated text predicate is [`Predicate::Not`] of the plain one;
//!   3. the first member of `And` is never an `And`, nor that of `Or` an `Or` (chains are flat), and `Not` never holds
//!      a `Not`;
//!   4. a single list or set operand of `within` and `without` is spread.

use mangrove_graph::{Error, Result, Value};

use crate::bytecode::{Argument, Comparison, Predicate, TextOperation};

/// The predicates of `P`.
pub(crate) const P_NAMES: &[&str] =
    &["eq", "neq", "lt", "lte", "gt", "gte", "inside", "outside", "between", "within", "without", "not", "typeOf"];

/// The predicates of `TextP`.
pub(crate) const TEXT_P_NAMES: &[&str] = &[
    "startingWith",
    "notStartingWith",
    "endingWith",
    "notEndingWith",
    "containing",
    "notContaining",
    "regex",
    "notRegex",
];

impl Comparison {
    /// The name as Gremlin writes it.
    pub fn name(self) -> &'static str {
        match self {
            Comparison::Eq => "eq",
            Comparison::Neq => "neq",
            Comparison::Lt => "lt",
            Comparison::Lte => "lte",
            Comparison::Gt => "gt",
            Comparison::Gte => "gte",
        }
    }

    /// The comparison of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "eq" => Comparison::Eq,
            "neq" => Comparison::Neq,
            "lt" => Comparison::Lt,
            "lte" => Comparison::Lte,
            "gt" => Comparison::Gt,
            "gte" => Comparison::Gte,
            _ => return None,
        })
    }
}

impl TextOperation {
    /// The name as Gremlin writes it.
    pub fn name(self) -> &'static str {
        match self {
            TextOperation::StartingWith => "startingWith",
            TextOperation::EndingWith => "endingWith",
            TextOperation::Containing => "containing",
            TextOperation::Regex => "regex",
        }
    }

    /// The operation of a name, and true if the name negates it.
    fn from_name(name: &str) -> Option<(Self, bool)> {
        Some(match name {
            "startingWith" => (TextOperation::StartingWith, false),
            "notStartingWith" => (TextOperation::StartingWith, true),
            "endingWith" => (TextOperation::EndingWith, false),
            "notEndingWith" => (TextOperation::EndingWith, true),
            "containing" => (TextOperation::Containing, false),
            "notContaining" => (TextOperation::Containing, true),
            "regex" => (TextOperation::Regex, false),
            "notRegex" => (TextOperation::Regex, true),
            _ => return None,
        })
    }
}

impl Predicate {
    /// A comparison with one operand.
    pub fn compare(comparison: Comparison, operand: Argument) -> Self {
        Predicate::Compare(comparison, Box::new(operand))
    }

    /// The predicate of a name (`gt`, `within`, `notContaining`, …) with these arguments, in normal form (WIRE-4).
    pub fn from_name(name: &str, mut arguments: Vec<Argument>) -> Result<Self> {
        if let Some(comparison) = Comparison::from_name(name) {
            return Ok(Predicate::compare(comparison, only(name, &mut arguments)?));
        }
        if let Some((operation, negated)) = TextOperation::from_name(name) {
            let plain = Predicate::Text(operation, Box::new(only(name, &mut arguments)?));
            return Ok(if negated { plain.negate() } else { plain });
        }
        Ok(match name {
            "inside" => {
                let [low, high] = two(name, arguments)?;
                Predicate::And(vec![Predicate::compare(Comparison::Gt, low), Predicate::compare(Comparison::Lt, high)])
            }
            "between" => {
                let [low, high] = two(name, arguments)?;
                Predicate::And(vec![Predicate::compare(Comparison::Gte, low), Predicate::compare(Comparison::Lt, high)])
            }
            "outside" => {
                let [low, high] = two(name, arguments)?;
                Predicate::Or(vec![Predicate::compare(Comparison::Lt, low), Predicate::compare(Comparison::Gt, high)])
            }
            "within" => Predicate::Within(spread(arguments)),
            "without" => Predicate::Without(spread(arguments)),
            "typeOf" => Predicate::TypeOf(Box::new(only(name, &mut arguments)?)),
            "not" => predicate_operand(name, only(name, &mut arguments)?)?.negate(),
            "and" | "or" => join(name, arguments)?,
            _ => return Err(Error::unsupported(format!("unknown predicate `{name}`"))),
        })
    }

    /// `self.and(other)`
    #[must_use]
    pub fn and(self, other: Predicate) -> Self {
        match self {
            Predicate::And(mut members) => {
                members.push(other);
                Predicate::And(members)
            }
            first => Predicate::And(vec![first, other]),
        }
    }

    /// `self.or(other)`
    #[must_use]
    pub fn or(self, other: Predicate) -> Self {
        match self {
            Predicate::Or(mut members) => {
                members.push(other);
                Predicate::Or(members)
            }
            first => Predicate::Or(vec![first, other]),
        }
    }

    /// `self.negate()`
    #[must_use]
    pub fn negate(self) -> Self {
        match self {
            Predicate::Not(inner) => *inner,
            plain => Predicate::Not(Box::new(plain)),
        }
    }
}

/// The operands of `within`. A single list or set stands for its members.
pub(crate) fn spread(mut arguments: Vec<Argument>) -> Vec<Argument> {
    if arguments.len() != 1 {
        return arguments;
    }
    match arguments.remove(0) {
        Argument::List(items) => items,
        Argument::Value(Value::List(items) | Value::Set(items)) => {
            items.iter().map(|item| Argument::Value(item.clone())).collect()
        }
        single => vec![single],
    }
}

fn only(name: &str, arguments: &mut Vec<Argument>) -> Result<Argument> {
    match (arguments.pop(), arguments.len()) {
        (Some(argument), 0) => Ok(argument),
        (found, rest) => Err(count_error(name, "one argument", rest + usize::from(found.is_some()))),
    }
}

fn two(name: &str, arguments: Vec<Argument>) -> Result<[Argument; 2]> {
    // A client may send the two operands as one list.
    let arguments = spread(arguments);
    let found = arguments.len();
    arguments.try_into().map_err(|_| count_error(name, "two arguments", found))
}

fn count_error(name: &str, needed: &str, found: usize) -> Error {
    Error::invalid(format!("the predicate `{name}` takes {needed}, not {found}"))
}

fn predicate_operand(name: &str, argument: Argument) -> Result<Predicate> {
    match argument {
        Argument::Predicate(predicate) => Ok(predicate),
        _ => Err(Error::invalid(format!("the predicate `{name}` takes a predicate, such as `{name}(gt(1))`"))),
    }
}

fn join(name: &str, arguments: Vec<Argument>) -> Result<Predicate> {
    let mut members = arguments.into_iter().map(|argument| predicate_operand(name, argument));
    let first = members.next().ok_or_else(|| count_error(name, "two arguments", 0))??;
    members.try_fold(first, |joined, next| Ok(if name == "and" { joined.and(next?) } else { joined.or(next?) }))
}
