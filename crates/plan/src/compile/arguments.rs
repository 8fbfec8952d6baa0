//! Reading arguments: names, values, counts, ids and nested traversals.
//!
//! A *name* (label, key, step label, side effect) must be known when the traversal is compiled (PLAN-9). A *value* may
//! be a parameter. The error of each function says what was given and what would be right.

use mangrove_graph::{Detached, Error, Result, UserId, Value, numeric};
use mangrove_gremlin::Argument;

use super::NESTING_MAX;
use super::site::Site;
use super::steps;
use crate::literals::Fact;
use crate::logical::{Name, Operand, Traversal};

/// A name. `what` is the kind of name, for the error: `a label`, `a key`.
pub(super) fn name(site: &Site<'_>, argument: &Argument, what: &str) -> Result<Name> {
    match argument {
        Argument::Value(Value::String(text)) => Ok(text.clone()),
        Argument::Parameter(parameter) => Err(unbound(site, parameter, what)),
        other => Err(site.invalid(format_args!("{what} is a string, not {}", describe(other)))),
    }
}

/// Names, one for each argument.
pub(super) fn names(site: &Site<'_>, arguments: &[Argument], what: &str) -> Result<Vec<Name>> {
    arguments.iter().map(|argument| name(site, argument, what)).collect()
}

/// A name; `None` for null, which no element has for a label or key.
pub(super) fn nullable_name(site: &Site<'_>, argument: &Argument, what: &str) -> Result<Option<Name>> {
    match argument {
        Argument::Value(Value::Null) => Ok(None),
        other => name(site, other, what).map(Some),
    }
}

/// The error for a parameter in the position of a name.
pub(super) fn unbound(site: &Site<'_>, parameter: &str, what: &str) -> Error {
    site.invalid(format_args!(
        "{what} must be known when the traversal is compiled, but `{parameter}` is a parameter without a value; \
         write the string or bind the parameter first"
    ))
}

/// A value.
pub(super) fn operand(site: &Site<'_>, argument: &Argument) -> Result<Operand> {
    operand_at(site, argument, site.depth, false)
}

/// A value that is an id. An element stands for its id.
pub(super) fn id_operand(site: &Site<'_>, argument: &Argument) -> Result<Operand> {
    operand_at(site, argument, site.depth, true)
}

fn operand_at(site: &Site<'_>, argument: &Argument, depth: usize, ids: bool) -> Result<Operand> {
    if depth > NESTING_MAX {
        return Err(too_deep(site));
    }
    match argument {
        Argument::Value(Value::Detached(element)) if ids => Ok(Operand::Literal(detached_id(site, element)?)),
        Argument::Value(Value::Detached(element)) => Ok(match &**element {
            Detached::Vertex { id, .. } => Operand::Vertex(id.clone()),
            Detached::Edge { id, .. } => Operand::Edge(id.clone()),
            // A property is compared by the content that the client sent.
            Detached::VertexProperty(_) | Detached::Property { .. } => {
                Operand::Literal(Value::Detached(element.clone()))
            }
        }),
        Argument::Value(value) => Ok(Operand::Literal(value.clone())),
        Argument::Parameter(name) => Ok(Operand::Parameter(name.clone())),
        Argument::Lifted(number) => Ok(Operand::Lifted(*number)),
        Argument::List(items) => {
            let items = items.iter().map(|item| operand_at(site, item, depth + 1, ids));
            Ok(Operand::List(items.collect::<Result<_>>()?))
        }
        Argument::Vertex(id) | Argument::Edge(id) if ids => Ok(Operand::Literal(id.clone())),
        Argument::Vertex(id) => Ok(Operand::Vertex(id.clone())),
        Argument::Edge(id) => Ok(Operand::Edge(id.clone())),
        Argument::Map(entries) => {
            let entry = |(key, value): &(Argument, Argument)| {
                Ok((operand_at(site, key, depth + 1, false)?, operand_at(site, value, depth + 1, ids)?))
            };
            Ok(Operand::Map(entries.iter().map(entry).collect::<Result<_>>()?))
        }
        other => Err(site.invalid(format_args!("a value is needed, not {}", describe(other)))),
    }
}

/// An integer, or a parameter that will be one.
pub(super) fn count(site: &Site<'_>, argument: &Argument) -> Result<Operand> {
    match argument {
        Argument::Parameter(name) => Ok(Operand::Parameter(name.clone())),
        Argument::Lifted(number) if site.literals.ask(*number, Fact::Integer) => Ok(Operand::Lifted(*number)),
        other => integer(other)
            .map(long)
            .ok_or_else(|| site.invalid(format_args!("a 64-bit integer is needed, not {}", describe(other)))),
    }
}

/// The operand of a count.
pub(super) fn long(number: i64) -> Operand {
    Operand::Literal(Value::I64(number))
}

/// The integer in an argument, of any width, that fits 64 bits.
pub(super) fn integer(argument: &Argument) -> Option<i64> {
    match argument {
        Argument::Value(Value::BigInt(n)) => i64::try_from(n.as_ref()).ok(),
        Argument::Value(value) => numeric::integer(value),
        _ => None,
    }
}

/// The ids of `V()` or `E()`; `None` for all elements. Lists are flattened. Null names no element.
pub(super) fn ids(site: &Site<'_>, arguments: &[Argument]) -> Result<Option<Vec<Operand>>> {
    let mut ids = Vec::new();
    for argument in arguments {
        flatten_ids(site, id_operand(site, argument)?, &mut ids)?;
    }
    // TinkerPop reads V([]) as V(): unlike a null, an empty list is no restriction.
    let all = match arguments {
        [] => true,
        [Argument::Value(Value::List(items) | Value::Set(items))] => items.is_empty(),
        [Argument::List(items)] => items.is_empty(),
        _ => false,
    };
    Ok((!all).then_some(ids))
}

fn flatten_ids(site: &Site<'_>, operand: Operand, ids: &mut Vec<Operand>) -> Result<()> {
    match operand {
        Operand::Literal(Value::Null) => Ok(()),
        Operand::Literal(Value::List(items) | Value::Set(items)) => {
            items.iter().try_for_each(|item| flatten_ids(site, Operand::Literal(item.clone()), ids))
        }
        Operand::List(items) => items.into_iter().try_for_each(|item| flatten_ids(site, item, ids)),
        Operand::Literal(value) => {
            ids.push(Operand::Literal(checked_id(site, value)?));
            Ok(())
        }
        parameter => {
            ids.push(parameter);
            Ok(())
        }
    }
}

fn checked_id(site: &Site<'_>, value: Value) -> Result<Value> {
    match value {
        Value::Vertex(_) | Value::Edge(_) => Ok(value),
        Value::Detached(element) => detached_id(site, &element),
        value if UserId::from_value(&value).is_some() => Ok(value),
        other => Err(site.invalid(format_args!(
            "an id is an integer, a string or a UUID, not {}",
            describe(&Argument::Value(other))
        ))),
    }
}

fn detached_id(site: &Site<'_>, element: &Detached) -> Result<Value> {
    match element {
        Detached::Vertex { id, .. } | Detached::Edge { id, .. } => Ok(id.clone()),
        Detached::VertexProperty(_) | Detached::Property { .. } => {
            Err(site.invalid("an id or an element is needed, not a property"))
        }
    }
}

/// A nested traversal.
pub(super) fn child(site: &Site<'_>, argument: &Argument) -> Result<Traversal> {
    match argument {
        Argument::Traversal(bytecode) => steps::child(bytecode, site),
        other => Err(site.invalid(format_args!("a traversal is needed, not {}", describe(other)))),
    }
}

/// Nested traversals, one for each argument.
pub(super) fn children(site: &Site<'_>, arguments: &[Argument]) -> Result<Vec<Traversal>> {
    arguments.iter().map(|argument| child(site, argument)).collect()
}

/// The error for arguments that fit none of a step's forms.
pub(super) fn misfit(site: &Site<'_>, takes: &str, arguments: &[Argument]) -> Error {
    site.invalid(format_args!("takes {takes}, not {}", describe_all(arguments)))
}

/// The error for more levels than [`NESTING_MAX`].
pub(super) fn too_deep(site: &Site<'_>) -> Error {
    // The chain of parents would be as long as the nesting. The innermost name and position are enough.
    let place = site.position.map(|at| format!(" at line {}, column {}", at.line, at.column)).unwrap_or_default();
    Error::unsupported(format!(
        "`{}`{place}: traversals, predicates and lists nest deeper than {NESTING_MAX}; split the traversal",
        site.name
    ))
}

/// An argument in words.
pub(super) fn describe(argument: &Argument) -> String {
    match argument {
        Argument::Value(value) => describe_value(value),
        Argument::Parameter(name) => format!("the parameter `{name}`"),
        Argument::Lifted(_) => "a literal".into(),
        Argument::List(_) => "a list".into(),
        Argument::Map(_) => "a map".into(),
        Argument::Traversal(_) => "a traversal".into(),
        Argument::Predicate(_) => "a predicate".into(),
        Argument::Vertex(_) => "a vertex".into(),
        Argument::Edge(_) => "an edge".into(),
        Argument::Order(order) => format!("Order.{}", order.name()),
        Argument::Scope(scope) => format!("Scope.{}", scope.name()),
        Argument::Pop(pop) => format!("Pop.{}", pop.name()),
        Argument::Column(column) => format!("Column.{}", column.name()),
        Argument::Cardinality(cardinality) => format!("Cardinality.{}", cardinality.name()),
        Argument::CardinalityValue(cardinality, _) => format!("a value of Cardinality.{}", cardinality.name()),
        Argument::Merge(merge) => format!("Merge.{}", merge.name()),
        Argument::Operator(operator) => format!("Operator.{}", operator.name()),
        Argument::Pick(pick) => format!("Pick.{}", pick.name()),
        Argument::NormSack => "Barrier.normSack".into(),
        Argument::DateUnit(unit) => format!("DT.{unit}"),
        Argument::Type(name) => format!("GType.{name}"),
        Argument::Strategy(name, _) => format!("the strategy {name}"),
    }
}

fn describe_value(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Bool(b) => format!("{b}"),
        Value::String(text) => format!("the string \"{text}\""),
        Value::F32(n) => format!("the float {n}"),
        Value::F64(n) => format!("the double {n}"),
        Value::BigInt(n) => format!("the bigint {n}"),
        value => match numeric::integer(value) {
            Some(n) => format!("the {} {n}", value.type_name()),
            None if value.type_name().starts_with(['a', 'e', 'i', 'o']) => format!("an {}", value.type_name()),
            None => format!("a {}", value.type_name()),
        },
    }
}

fn describe_all(arguments: &[Argument]) -> String {
    match arguments {
        [] => "nothing".into(),
        [one] => describe(one),
        [first @ .., last] => {
            let first: Vec<_> = first.iter().map(describe).collect();
            format!("{} and {}", first.join(", "), describe(last))
        }
    }
}
