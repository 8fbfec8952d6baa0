//! The parts that the wire formats share: terms that mean the same in each of them.

use std::sync::Arc;

use mangrove_graph::{Detached, Error, Token, Value};
use smol_str::SmolStr;

use crate::bytecode::{Argument, Bytecode, Cardinality};
use crate::collections;
use crate::parameters::Parameters;

/// The name of the source instruction by which clients send `Cardinality.list(v)` as a bytecode of its own.
pub(crate) const CARDINALITY_VALUE: &str = "CardinalityValueTraversal";

/// How a reader reads elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ElementReading {
    /// As references, in arguments of a traversal.
    References,
    /// As detached values with their properties.
    Detached,
}

/// How a reader treats the bindings in a request's bytecode.
#[derive(Debug)]
pub(crate) struct Bindings {
    /// The values collected so far; `None` if bindings are replaced by their values.
    collected: Option<Parameters>,
}

impl Bindings {
    /// Every binding is replaced by its value.
    pub(crate) fn in_place() -> Self {
        Bindings { collected: None }
    }

    /// Every binding becomes a parameter, and its value is collected.
    pub(crate) fn collected() -> Self {
        Bindings { collected: Some(Parameters::new()) }
    }

    /// Takes the values collected so far.
    pub(crate) fn take(&mut self) -> Parameters {
        self.collected.take().unwrap_or_default()
    }

    /// The argument that a binding becomes. Its value was read with elements detached. `references`: if the value
    /// replaces the binding, an element becomes a reference.
    pub(crate) fn resolve(&mut self, name: SmolStr, bound: Argument, references: bool) -> Argument {
        match (bound, &mut self.collected) {
            // A name that has another value already is replaced by the value.
            (Argument::Value(value), Some(known)) if known.get(&name).is_none_or(|first| *first == value) => {
                known.insert(name.clone(), value);
                Argument::Parameter(name)
            }
            (Argument::Value(Value::Detached(element)), _) if references => match element.as_ref() {
                Detached::Vertex { id, .. } => Argument::Vertex(id.clone()),
                Detached::Edge { id, .. } => Argument::Edge(id.clone()),
                _ => Argument::Value(Value::Detached(element)),
            },
            (argument, _) => argument,
        }
    }
}

/// Returns true if a bytecode is only a cardinality with a value.
pub(crate) fn is_cardinality_value(bytecode: &Bytecode) -> bool {
    bytecode.steps.is_empty() && matches!(bytecode.source.as_slice(), [only] if only.name == CARDINALITY_VALUE)
}

/// The argument that such a bytecode stands for, from the arguments of its instruction. The Java client writes the
/// cardinality as a string; the other clients write the enum.
pub(crate) fn cardinality_value(arguments: Vec<Argument>) -> Result<Argument, &'static str> {
    let (cardinality, value) = match <[Argument; 2]>::try_from(arguments) {
        Ok([Argument::Cardinality(cardinality), value]) => (Some(cardinality), value),
        Ok([Argument::Value(Value::String(name)), value]) => (Cardinality::from_name(name.as_str()), value),
        _ => return Err("a cardinality with a value that has other parts than these two"),
    };
    let cardinality = cardinality.ok_or("a cardinality is single, list or set")?;
    Ok(Argument::CardinalityValue(cardinality, Box::new(value)))
}

/// The operands of `within` as they are written. A single list is wrapped in another one, so that a reader does not
/// spread it.
pub(crate) fn unspreadable(operands: &[Argument]) -> Vec<Argument> {
    match operands {
        [Argument::List(_) | Argument::Value(Value::List(_) | Value::Set(_))] => {
            vec![collections::list_argument(operands.to_vec())]
        }
        _ => operands.to_vec(),
    }
}

/// The argument for a class, which is only a name (WIRE-1): that of a strategy (`withoutStrategies`) or of a type
/// (`typeOf`).
pub(crate) fn class_argument(class: &str) -> Argument {
    let name = simple_name(class);
    match name.ends_with("Strategy") {
        true => Argument::Strategy(name.into(), Vec::new()),
        false => Value::string(name).into(),
    }
}

/// `org.apache.…decoration.SubgraphStrategy` without its package.
pub(crate) fn simple_name(class: &str) -> &str {
    class.rsplit(['.', '$']).next().unwrap_or(class)
}

/// The error for a lambda (WIRE-1).
pub(crate) fn no_lambda() -> Error {
    Error::unsupported(
        "lambdas are not supported, because nothing a client sends is run as code; write the traversal with steps",
    )
}

/// An element as an argument that is a value.
pub(crate) fn detached(element: Detached) -> Argument {
    Argument::Value(Value::Detached(Arc::new(element)))
}

/// Key and value of a property that is not a vertex's.
pub(crate) fn plain_property(property: Detached) -> Option<(SmolStr, Value)> {
    match property {
        Detached::Property { key, value } => Some((key, value)),
        _ => None,
    }
}

/// The labels of one object of a path.
pub(crate) fn label_set(labels: &Value) -> Option<Vec<SmolStr>> {
    let label = |label: &Value| match label {
        Value::String(label) => Some(label.clone()),
        _ => None,
    };
    match labels {
        Value::Set(labels) | Value::List(labels) => labels.iter().map(label).collect(),
        _ => None,
    }
}

/// The name of a token without its `T`.
pub(crate) fn token_name(token: Token) -> &'static str {
    match token {
        Token::Id => "id",
        Token::Label => "label",
        Token::Key => "key",
        Token::Value => "value",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cardinality_with_a_value_is_an_enum_or_its_name() {
        let value = || Argument::Value(Value::I32(33));
        let expected = Argument::CardinalityValue(Cardinality::Set, Box::new(value()));
        for cardinality in [Argument::Cardinality(Cardinality::Set), Argument::Value(Value::string("set"))] {
            assert_eq!(cardinality_value(vec![cardinality, value()]), Ok(expected.clone()));
        }
        assert!(cardinality_value(vec![Argument::Value(Value::string("bag")), value()]).is_err());
        assert!(cardinality_value(vec![value(), value()]).is_err());
        assert!(cardinality_value(vec![value()]).is_err());
    }
}
