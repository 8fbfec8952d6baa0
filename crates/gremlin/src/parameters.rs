//! Parameters: values that come beside a traversal instead of inside it.
//!
//! A traversal with parameters is planned once and run with many values, and a client need not quote values into text.

use std::collections::BTreeMap;

use mangrove_graph::{Detached, Error, Result, Value};
use smol_str::SmolStr;

use crate::bytecode::{Argument, Bytecode, Instruction, Predicate};
use crate::collections;
use crate::predicate::spread;

/// Values by name. A vertex or edge among them ([`Value::Detached`]) is a reference to it.
pub type Parameters = BTreeMap<SmolStr, Value>;

/// Replaces the parameters of a traversal by their values. A parameter without a value is an error; a value without a
/// parameter is not.
pub fn bind(bytecode: &Bytecode, parameters: &Parameters) -> Result<Bytecode> {
    Ok(Bytecode {
        source: instructions(&bytecode.source, parameters)?,
        steps: instructions(&bytecode.steps, parameters)?,
    })
}

fn instructions(instructions: &[Instruction], parameters: &Parameters) -> Result<Vec<Instruction>> {
    let bound = |instruction: &Instruction| {
        Ok(Instruction {
            name: instruction.name.clone(),
            arguments: arguments(&instruction.arguments, parameters)?,
            position: instruction.position,
        })
    };
    instructions.iter().map(bound).collect()
}

fn arguments(items: &[Argument], parameters: &Parameters) -> Result<Vec<Argument>> {
    items.iter().map(|item| argument(item, parameters)).collect()
}

fn argument(item: &Argument, parameters: &Parameters) -> Result<Argument> {
    Ok(match item {
        Argument::Parameter(name) => reference(parameters.get(name).ok_or_else(|| missing(name))?),
        Argument::List(items) => collections::list_argument(arguments(items, parameters)?),
        Argument::Map(entries) => collections::map_argument(
            entries
                .iter()
                .map(|(key, value)| Ok((argument(key, parameters)?, argument(value, parameters)?)))
                .collect::<Result<_>>()?,
        ),
        Argument::Traversal(nested) => Argument::Traversal(bind(nested, parameters)?),
        Argument::Predicate(test) => Argument::Predicate(predicate(test, parameters)?),
        Argument::CardinalityValue(cardinality, value) => {
            Argument::CardinalityValue(*cardinality, Box::new(argument(value, parameters)?))
        }
        Argument::Strategy(name, configuration) => Argument::Strategy(
            name.clone(),
            configuration
                .iter()
                .map(|(key, value)| Ok((key.clone(), argument(value, parameters)?)))
                .collect::<Result<_>>()?,
        ),
        plain => plain.clone(),
    })
}

fn predicate(test: &Predicate, parameters: &Parameters) -> Result<Predicate> {
    let operand = |operand: &Argument| Ok::<_, Error>(Box::new(argument(operand, parameters)?));
    let all = |members: &[Predicate]| -> Result<Vec<Predicate>> {
        members.iter().map(|member| predicate(member, parameters)).collect()
    };
    Ok(match test {
        Predicate::Compare(comparison, value) => Predicate::Compare(*comparison, operand(value)?),
        Predicate::Within(values) => Predicate::Within(operands(values, parameters)?),
        Predicate::Without(values) => Predicate::Without(operands(values, parameters)?),
        Predicate::Text(operation, value) => Predicate::Text(*operation, operand(value)?),
        Predicate::TypeOf(value) => Predicate::TypeOf(operand(value)?),
        Predicate::And(members) => Predicate::And(all(members)?),
        Predicate::Or(members) => Predicate::Or(all(members)?),
        Predicate::Not(inner) => Predicate::Not(Box::new(predicate(inner, parameters)?)),
    })
}

/// The operands of `within`. A single parameter may stand for a list of operands.
fn operands(values: &[Argument], parameters: &Parameters) -> Result<Vec<Argument>> {
    let bound = arguments(values, parameters)?;
    Ok(if matches!(values, [Argument::Parameter(_)]) { spread(bound) } else { bound })
}

/// A value as an argument. Elements become references, also inside collections. A set with elements becomes a list,
/// since a set argument has literals only.
fn reference(value: &Value) -> Argument {
    match value {
        Value::Detached(element) => match element.as_ref() {
            Detached::Vertex { id, .. } => Argument::Vertex(id.clone()),
            Detached::Edge { id, .. } => Argument::Edge(id.clone()),
            Detached::VertexProperty(_) | Detached::Property { .. } => Argument::Value(value.clone()),
        },
        Value::List(items) | Value::Set(items) if items.iter().any(holds_element) => {
            Argument::List(items.iter().map(reference).collect())
        }
        Value::Map(entries) if entries.iter().any(|(k, v)| holds_element(k) || holds_element(v)) => {
            Argument::Map(entries.iter().map(|(k, v)| (reference(k), reference(v))).collect())
        }
        plain => Argument::Value(plain.clone()),
    }
}

fn holds_element(value: &Value) -> bool {
    match value {
        Value::Detached(_) => true,
        Value::List(items) | Value::Set(items) => items.iter().any(holds_element),
        Value::Map(entries) => entries.iter().any(|(k, v)| holds_element(k) || holds_element(v)),
        _ => false,
    }
}

fn missing(name: &str) -> Error {
    Error::invalid(format!(
        "the parameter `{name}` has no value; send one with the request, or quote the word if it was meant as a string"
    ))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::script::{ParseOptions, Statement, parse_one};

    fn parsed(text: &str) -> Bytecode {
        match parse_one(text, &ParseOptions::default()).unwrap() {
            Statement::Traversal { bytecode, .. } => bytecode,
            other => panic!("{other:?} is no traversal"),
        }
    }

    fn values() -> Parameters {
        let vertex = Detached::Vertex { id: Value::I32(7), label: "person".into(), properties: Vec::new() };
        [
            ("x", Value::I32(1)),
            ("xs", Value::list(vec![Value::I32(1), Value::I32(2)])),
            ("v", Value::Detached(Arc::new(vertex))),
        ]
        .into_iter()
        .map(|(name, value)| (name.into(), value))
        .collect()
    }

    #[test]
    fn parameters_are_replaced_wherever_they_stand() {
        for (text, bound) in [
            ("g.V(x)", "g.V(1)"),
            ("g.V(v)", "g.V(new Vertex(7))"),
            ("g.V().has('a', gt(x).and(P.not(eq(x))))", "g.V().has('a', gt(1).and(P.not(eq(1))))"),
            ("g.V().has('a', within(xs))", "g.V().has('a', within(1, 2))"),
            ("g.V().has('a', within([xs, x]))", "g.V().has('a', within([[1, 2], 1]))"),
            ("g.V().where(__.out().is([x]))", "g.V().where(__.out().is([1]))"),
            ("g.mergeV([(T.id): x])", "g.mergeV([(T.id): 1])"),
            ("g.withStrategies(new SeedStrategy(seed: x)).V()", "g.withStrategies(new SeedStrategy(seed: 1)).V()"),
            ("g.addV().property('a', list(x))", "g.addV().property('a', list(1))"),
        ] {
            assert_eq!(bind(&parsed(text), &values()).unwrap(), parsed(bound), "{text}");
        }
    }

    #[test]
    fn a_missing_parameter_is_named() {
        let error = bind(&parsed("g.V().out(nobody)"), &values()).unwrap_err();
        assert!(error.message().starts_with("the parameter `nobody` has no value"), "{error}");
    }
}
