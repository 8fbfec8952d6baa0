//! Terminals: the methods that end a traversal, such as `toList()`, and the value that they make of its results.
//!
//! A terminal takes part twice. Before the traversal is planned, [`Terminal::apply`] appends steps, so that no more
//! results are computed than the terminal takes. After it has run, [`Terminal::value`] makes the value of a variable.

use mangrove_graph::{Error, ErrorKind, Result, Value};

use super::names;
use super::{Parser, Token};
use crate::bytecode::{Argument, Bytecode, Comparison, Instruction, Predicate};
use crate::collections;

/// The most results that the value of a variable is made of.
pub const VARIABLE_SIZE_MAX: u64 = 1_000_000;

/// How a client takes the results of a traversal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Terminal {
    /// There is no terminal: all results are taken.
    None,
    /// `next()`, or `next(n)`.
    Next(Option<u64>),
    /// `toList()`
    ToList,
    /// `toSet()`
    ToSet,
    /// `toBulkSet()`
    ToBulkSet,
    /// `iterate()`: the traversal runs, and its results are dropped.
    Iterate,
    /// `hasNext()`
    HasNext,
    /// `tryNext()`
    TryNext,
    /// `explain()`: the plan instead of the results.
    Explain,
}

impl Terminal {
    /// Returns true if [`Terminal::apply`] appends steps.
    pub fn has_steps(self) -> bool {
        !matches!(self, Terminal::None | Terminal::ToList | Terminal::ToBulkSet | Terminal::Explain)
    }

    /// Appends steps with the same meaning, so that the planner knows about the terminal. [`Terminal::Explain`] has no
    /// such steps.
    pub fn apply(self, bytecode: &mut Bytecode) {
        let mut append = |name: &str, arguments| bytecode.steps.push(Instruction::new(name, arguments));
        let count = |n: u64| vec![Argument::from(Value::I64(i64::try_from(n).unwrap_or(i64::MAX)))];
        match self {
            Terminal::None | Terminal::ToList | Terminal::ToBulkSet | Terminal::Explain => {}
            Terminal::Next(amount) => append("limit", count(amount.unwrap_or(1))),
            Terminal::TryNext => append("limit", count(1)),
            Terminal::ToSet => append("dedup", Vec::new()),
            Terminal::Iterate => append("discard", Vec::new()),
            Terminal::HasNext => {
                let constant = |truth: bool| {
                    let step = Instruction::new("constant", vec![Value::Bool(truth).into()]);
                    Argument::Traversal(Bytecode { source: Vec::new(), steps: vec![step] })
                };
                let some = Predicate::Compare(Comparison::Gt, Box::new(Value::I64(0).into()));
                append("limit", count(1));
                append("count", Vec::new());
                append("choose", vec![Argument::Predicate(some), constant(true), constant(false)]);
            }
        }
    }

    /// Returns true if the terminal makes a value that a variable can hold.
    fn has_value(self) -> bool {
        !matches!(self, Terminal::None | Terminal::Iterate | Terminal::TryNext | Terminal::Explain)
    }

    /// The value of a variable, from the results of a traversal that ends with this terminal. Each result comes with
    /// the number of times it occurs. Fails above [`VARIABLE_SIZE_MAX`] results, and if `next()` has no result.
    pub fn value(self, results: Vec<(Value, u64)>) -> Result<Value> {
        let size = results.iter().map(|(_, bulk)| *bulk).fold(0, u64::saturating_add);
        if size > VARIABLE_SIZE_MAX {
            return Err(Error::new(
                ErrorKind::MemoryLimit,
                format!(
                    "a variable holds at most {VARIABLE_SIZE_MAX} results, and there are {size}; take fewer with limit()"
                ),
            ));
        }
        let mut each = results.into_iter().flat_map(|(value, bulk)| (0..bulk).map(move |_| value.clone()));
        Ok(match self {
            Terminal::Next(None) | Terminal::HasNext => each.next().ok_or_else(|| {
                Error::new(ErrorKind::Evaluation, "next() has no result to give; toList() would be an empty list")
            })?,
            Terminal::ToSet => collections::set(each.collect()),
            _ => Value::list(each.collect()),
        })
    }
}

/// The results of a statement that names a variable: the members of its list or set, or its only value.
pub fn results_of(value: Value) -> Vec<(Value, u64)> {
    match value {
        Value::List(items) => items.iter().map(|item| (item.clone(), 1)).collect(),
        Value::Set(items) => items.iter().map(|item| (item.clone(), 1)).collect(),
        other => vec![(other, 1)],
    }
}

impl<'a> Parser<'a> {
    /// The terminal of a name, from its `(`.
    pub(super) fn terminal(&mut self, name: Token<'a>) -> Result<Terminal> {
        let arguments = self.arguments()?;
        let invalid = |message: &str| self.error(ErrorKind::InvalidArgument, name.at, message);
        let amount = match (name.text, arguments.as_slice()) {
            (_, []) => None,
            ("next", [Argument::Value(amount)]) => {
                let amount = mangrove_graph::numeric::integer(amount).and_then(|n| u64::try_from(n).ok());
                Some(amount.ok_or_else(|| invalid("`next` takes a whole number that is not negative"))?)
            }
            ("next", _) => return Err(invalid("`next` takes at most one whole number")),
            (other, _) => return Err(invalid(&format!("`{other}` takes no arguments"))),
        };
        Ok(match name.text {
            "next" => Terminal::Next(amount),
            "toList" => Terminal::ToList,
            "toSet" => Terminal::ToSet,
            "toBulkSet" => Terminal::ToBulkSet,
            "iterate" => Terminal::Iterate,
            "hasNext" => Terminal::HasNext,
            "tryNext" => Terminal::TryNext,
            _ => Terminal::Explain,
        })
    }

    /// Fails if the terminal makes no value that a variable can hold.
    pub(super) fn check_assigned(&self, variable: Token<'a>, terminal: Terminal) -> Result<()> {
        if terminal.has_value() {
            return Ok(());
        }
        let values: Vec<&str> = names::TERMINALS.iter().copied().filter(|name| has_value(name)).collect();
        let message = format!(
            "`{}` holds a value: end the traversal it is given with one of {}",
            variable.text,
            values.join(", ")
        );
        Err(self.error(ErrorKind::Unsupported, variable.at, &message))
    }
}

/// [`Terminal::has_value`] of the terminal with this name.
fn has_value(name: &str) -> bool {
    !matches!(name, "iterate" | "tryNext" | "explain")
}
