//! `by()`: the value that a modulator computes for an object. `None` is Gremlin's "unproductive".

use mangrove_graph::{Token, Value};
use mangrove_gremlin::{Argument, Column, Order};
use smol_str::SmolStr;

use super::{Interpreter, Outcome, Traverser, first, unsupported, wrong};

/// The modulator for the n-th use: modulators are used in rotation.
pub(crate) fn round_robin<'a>(by: &[&'a [Argument]], n: usize) -> &'a [Argument] {
    if by.is_empty() { &[] } else { by[n % by.len()] }
}

impl Interpreter<'_> {
    /// The value of `by(arguments)` for the traverser's object.
    pub(crate) fn by(&mut self, arguments: &[Argument], t: &Traverser) -> Outcome<Option<Value>> {
        let made = self.productive_or_not(arguments, t)?;
        let gives_null = match &self.source.productive_by {
            Some(keys) => !key_of(arguments).is_some_and(|key| keys.contains(key)),
            None => false,
        };
        Ok(if gives_null { made.or(Some(Value::Null)) } else { made })
    }

    /// Like [`Interpreter::by`], without regard to `ProductiveByStrategy`.
    pub(crate) fn productive_or_not(&mut self, arguments: &[Argument], t: &Traverser) -> Outcome<Option<Value>> {
        match arguments.first() {
            None | Some(Argument::Order(Order::Asc | Order::Desc)) => Ok(Some(t.value.clone())),
            Some(Argument::Value(Value::String(key))) => self.value_of_key(key, &t.value),
            Some(Argument::Value(Value::Token(token))) => self.token(*token, &t.value).map(Some),
            Some(Argument::Column(column)) => column_of(*column, &t.value, t.is_entry),
            Some(Argument::Traversal(child)) => Ok(first(self.local_child(child, t)?)),
            Some(other) => unsupported(format!("by({other:?})")),
        }
    }

    /// The one value under a key of an element or a map.
    pub(crate) fn value_of_key(&mut self, key: &str, value: &Value) -> Outcome<Option<Value>> {
        let mut found = self.values_of_key(key, value)?;
        match found.len() {
            // Like a Java map, it gives null for a key that it lacks.
            0 if matches!(value, Value::Map(_)) => Ok(Some(Value::Null)),
            0 => Ok(None),
            1 => Ok(found.pop()),
            _ => wrong(format!("by({key}) meets several values under one key")),
        }
    }

    /// All values of an element under a key; for a map, its value under the key.
    pub(crate) fn values_of_key(&mut self, key: &str, value: &Value) -> Outcome<Vec<Value>> {
        if let Value::Map(entries) = value {
            let found = entries.iter().filter(|(k, _)| matches!(k, Value::String(k) if k == key));
            return Ok(found.map(|(_, v)| v.clone()).collect());
        }
        let mut found: Vec<Value> = Vec::new();
        for property in self.properties_of(value, &[key.into()])? {
            found.push(self.key_and_value(&property)?.1);
        }
        Ok(found)
    }

    /// The part of an element or property that a token names.
    pub(crate) fn token(&self, token: Token, value: &Value) -> Outcome<Value> {
        match (token, value) {
            (Token::Id, Value::Vertex(v)) => Ok(self.graph.vertex(*v)?.id.to_value()),
            (Token::Id, Value::Edge(e)) => Ok(self.graph.edge(*e)?.id.to_value()),
            (Token::Label, Value::Vertex(v)) => Ok(Value::String(self.graph.vertex(*v)?.label.clone())),
            (Token::Label, Value::Edge(e)) => Ok(Value::String(self.graph.edge(*e)?.label.clone())),
            (Token::Key, Value::VertexProperty(_) | Value::Property(_)) | (Token::Label, Value::VertexProperty(_)) => {
                Ok(Value::String(self.key_and_value(value)?.0))
            }
            (Token::Value, Value::VertexProperty(_) | Value::Property(_)) => Ok(self.key_and_value(value)?.1),
            (Token::Id, Value::VertexProperty(_)) => unsupported("the id of a vertex property"),
            (token, other) => wrong(format!("a {} has no {token:?}", other.type_name())),
        }
    }
}

/// The one key whose values a modulator reads, if it reads only that.
fn key_of(arguments: &[Argument]) -> Option<&SmolStr> {
    match arguments.first()? {
        Argument::Value(Value::String(key)) => Some(key),
        Argument::Traversal(child) => match child.steps.as_slice() {
            [only] if only.name == "values" && only.arguments.len() == 1 => key_of(&only.arguments),
            _ => None,
        },
        _ => None,
    }
}

/// `keys` or `values` of a map, an entry or a path.
pub(crate) fn column_of(column: Column, value: &Value, is_entry: bool) -> Outcome<Option<Value>> {
    Ok(Some(match (value, column) {
        (Value::Map(entries), Column::Keys) if is_entry => entries[0].0.clone(),
        (Value::Map(entries), Column::Values) if is_entry => entries[0].1.clone(),
        (Value::Map(entries), Column::Keys) => {
            Value::Set(entries.iter().map(|(k, _)| k.clone()).collect::<Vec<_>>().into())
        }
        (Value::Map(entries), Column::Values) => Value::list(entries.iter().map(|(_, v)| v.clone()).collect()),
        (other, _) => return unsupported(format!("{} of a {}", column.name(), other.type_name())),
    }))
}
