//! The shape of a traversal as text, in which every value is a `?`.
//!
//! Plans are shown to people who may read their texts but not the values in them. So only names are shown: a string is
//! one if its step takes names. The values of all other steps are hidden, whether they are part of the shape or not.

use mangrove_graph::Value;
use mangrove_gremlin::{Argument, Bytecode, Instruction, Predicate};

/// The steps and source instructions whose strings are names: of labels, keys, step labels, side effects and services.
#[rustfmt::skip] // A name a line would be pages of names.
const NAMING: &[&str] = &[
    "out", "in", "both", "outE", "inE", "bothE", "to", "toE", "from", "hasLabel", "hasKey", "hasNot", "values",
    "properties", "valueMap", "propertyMap", "elementMap", "as", "select", "project", "by", "group", "groupCount",
    "aggregate", "store", "cap", "where", "dedup", "tree", "subgraph", "addV", "addE", "loops", "withoutStrategies",
];

/// The steps whose first argument is a name, and the next one a value.
const NAMING_FIRST: &[&str] = &["has", "property", "call", "with", "withSideEffect", "repeat", "sack"];

/// A traversal as text without values.
pub fn shown(bytecode: &Bytecode) -> String {
    without_values(bytecode).to_string()
}

fn without_values(bytecode: &Bytecode) -> Bytecode {
    let hidden = |instructions: &[Instruction]| instructions.iter().map(instruction).collect();
    Bytecode { source: hidden(&bytecode.source), steps: hidden(&bytecode.steps) }
}

fn instruction(given: &Instruction) -> Instruction {
    // `has(label, key, value)`, `property(cardinality, key, value)`: the last one is the value.
    let has_text = |argument: &Argument| !matches!(argument, Argument::Traversal(_) | Argument::Lifted(_));
    let names = match given.name.as_str() {
        // Most steps are looked up for nothing.
        _ if !given.arguments.iter().any(has_text) => 0,
        name if NAMING.contains(&name) => given.arguments.len(),
        "has" | "property" if given.arguments.len() == 3 => 2,
        name if NAMING_FIRST.contains(&name) => 1,
        _ => 0,
    };
    let arguments = given.arguments.iter().enumerate().map(|(at, given)| argument(given, at < names)).collect();
    Instruction { name: given.name.clone(), arguments, position: None }
}

/// An argument without values. `are_names`: strings are names.
fn argument(given: &Argument, are_names: bool) -> Argument {
    let each = |all: &[Argument]| all.iter().map(|given| argument(given, are_names)).collect();
    match given {
        Argument::Value(Value::String(_)) if are_names => given.clone(),
        Argument::Value(Value::Token(_) | Value::Direction(_) | Value::Null) => given.clone(),
        Argument::Value(_) | Argument::Lifted(_) | Argument::Vertex(_) | Argument::Edge(_) => Argument::Lifted(0),
        Argument::List(items) => Argument::List(each(items)),
        Argument::Map(entries) => {
            Argument::Map(entries.iter().map(|(key, value)| (argument(key, true), argument(value, false))).collect())
        }
        Argument::Traversal(nested) => Argument::Traversal(without_values(nested)),
        Argument::Predicate(given) => Argument::Predicate(predicate(given, are_names)),
        Argument::CardinalityValue(cardinality, value) => {
            Argument::CardinalityValue(*cardinality, Box::new(argument(value, false)))
        }
        Argument::Strategy(name, settings) => Argument::Strategy(
            name.clone(),
            settings.iter().map(|(name, value)| (name.clone(), argument(value, false))).collect(),
        ),
        Argument::Parameter(_)
        | Argument::Order(_)
        | Argument::Scope(_)
        | Argument::Pop(_)
        | Argument::Column(_)
        | Argument::Cardinality(_)
        | Argument::Merge(_)
        | Argument::Operator(_)
        | Argument::Pick(_)
        | Argument::NormSack
        | Argument::DateUnit(_)
        | Argument::Type(_) => given.clone(),
    }
}

fn predicate(given: &Predicate, are_names: bool) -> Predicate {
    let operand = |operand: &Argument| Box::new(argument(operand, are_names));
    let operands = |all: &[Argument]| all.iter().map(|given| argument(given, are_names)).collect();
    let each = |all: &[Predicate]| all.iter().map(|given| predicate(given, are_names)).collect();
    match given {
        Predicate::Compare(comparison, value) => Predicate::Compare(*comparison, operand(value)),
        Predicate::Within(values) => Predicate::Within(operands(values)),
        Predicate::Without(values) => Predicate::Without(operands(values)),
        Predicate::Text(operation, value) => Predicate::Text(*operation, operand(value)),
        Predicate::TypeOf(of) => Predicate::TypeOf(of.clone()),
        Predicate::And(members) => Predicate::And(each(members)),
        Predicate::Or(members) => Predicate::Or(each(members)),
        Predicate::Not(inner) => Predicate::Not(Box::new(predicate(inner, are_names))),
    }
}
