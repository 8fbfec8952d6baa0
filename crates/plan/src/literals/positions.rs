//! Which literals are taken out of a traversal.
//!
//! The list decides only how many plans are made: a step that is not in it keeps its literals, and has a plan for each
//! of them.

use std::ops::Range;

use mangrove_graph::{Token, UserId, Value, numeric};
use mangrove_gremlin::{Argument, Instruction, Predicate, TextOperation};

/// The use that a step makes of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArgumentUse {
    /// A value.
    Value,
    /// An id of an element.
    Id,
    /// An id that is compared with, or a predicate.
    IdTest,
    /// A value that other values are compared with, or a predicate.
    Test,
    /// A number of rows, iterations or the like.
    Count,
    /// A map whose values under keys are written or compared with.
    Map,
}

/// The positions of the arguments of a step whose literals may be taken out, and their use.
pub(super) fn liftable_arguments(step: &Instruction) -> Option<(Range<usize>, ArgumentUse)> {
    let is_text = |argument: &Argument| matches!(argument, Argument::Value(Value::String(_)));
    let is_id = |argument: &Argument| matches!(argument, Argument::Value(Value::Token(Token::Id)));
    let tested = |accessor: &Argument| match is_id(accessor) {
        true => Some(ArgumentUse::IdTest),
        false => is_text(accessor).then_some(ArgumentUse::Test),
    };
    Some(match (step.name.as_str(), &step.arguments[..]) {
        ("V" | "E", ids) => (0..ids.len(), ArgumentUse::Id),
        ("inject", values) => (0..values.len(), ArgumentUse::Value),
        ("constant" | "coin", [_]) => (0..1, ArgumentUse::Value),
        ("hasId", ids) => (0..ids.len(), ArgumentUse::IdTest),
        ("has", [accessor, _]) => (1..2, tested(accessor)?),
        ("has", [_, accessor, _]) => (2..3, tested(accessor)?),
        ("is", [_]) => (0..1, ArgumentUse::Test),
        ("limit" | "skip" | "tail" | "sample" | "timeLimit" | "times", [_]) => (0..1, ArgumentUse::Count),
        ("limit" | "skip" | "tail" | "sample", [Argument::Scope(_), _]) => (1..2, ArgumentUse::Count),
        ("range", [_, _]) => (0..2, ArgumentUse::Count),
        ("range", [Argument::Scope(_), _, _]) => (1..3, ArgumentUse::Count),
        ("dateAdd", [_, _]) => (1..2, ArgumentUse::Count),
        ("property", [key, _]) if is_text(key) => (1..2, ArgumentUse::Value),
        ("property", [Argument::Cardinality(_) | Argument::Value(Value::Null), key, _]) if is_text(key) => {
            (2..3, ArgumentUse::Value)
        }
        ("mergeV" | "mergeE", [_]) => (0..1, ArgumentUse::Map),
        ("option", [Argument::Merge(_), _, ..]) => (1..2, ArgumentUse::Map),
        _ => return None,
    })
}

/// Returns true if a value in this use is taken out.
pub(super) fn is_free(value: &Value, used_as: ArgumentUse) -> bool {
    match used_as {
        ArgumentUse::Value | ArgumentUse::Test | ArgumentUse::IdTest => is_scalar(value),
        ArgumentUse::Id => UserId::from_value(value).is_some(),
        ArgumentUse::Count => numeric::integer(value).is_some(),
        ArgumentUse::Map => false,
    }
}

fn is_scalar(value: &Value) -> bool {
    value.is_number() || matches!(value, Value::Bool(_) | Value::String(_) | Value::Uuid(_) | Value::DateTime(_))
}

/// Returns true if the entry of a map under this key is a value, and no name of a label.
pub(super) fn is_value_key(key: &Value) -> bool {
    matches!(key, Value::String(_) | Value::Token(Token::Id))
}

/// Returns true if the members of a `within()` or `without()` are taken out together, as one list: then lists of any
/// length have one shape.
pub(super) fn is_free_list(members: &[Argument]) -> bool {
    let is_free = |member: &Argument| matches!(member, Argument::Value(value) if is_scalar(value));
    !members.is_empty() && members.iter().all(is_free)
}

/// The literal that the members of such a list are.
pub(super) fn list_literal(members: &[Argument]) -> Value {
    let value = |member: &Argument| match member {
        Argument::Value(value) => value.clone(),
        _ => Value::Null,
    };
    match members {
        [one] => value(one),
        members => Value::list(members.iter().map(value).collect()),
    }
}

/// Returns true if an argument may be a predicate with literals.
pub(super) fn has_predicates(used_as: ArgumentUse) -> bool {
    matches!(used_as, ArgumentUse::Test | ArgumentUse::IdTest)
}

/// Returns true if the operand of a text predicate is taken out. A regular expression is compiled once for its plan.
pub(super) fn is_free_text(operation: TextOperation, operand: &Argument) -> bool {
    operation != TextOperation::Regex && matches!(operand, Argument::Value(Value::String(_)))
}

/// Returns true if a predicate in this use may be a list: the ids of `hasId(within(…))` are read one by one.
pub(super) fn takes_lists(predicate: &Predicate, used_as: ArgumentUse) -> bool {
    used_as == ArgumentUse::Test && matches!(predicate, Predicate::Within(_) | Predicate::Without(_))
}
