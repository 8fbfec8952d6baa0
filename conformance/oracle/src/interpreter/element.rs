//! Steps that read elements: `values`, `properties`, `id`, `label`, `key`, `value`, `valueMap`, `elementMap`.

use mangrove_graph::{Direction, PropertyOwner, Token, Value, VertexId};
use mangrove_gremlin::Argument;
use smol_str::SmolStr;

use super::by::round_robin;
use super::step::Step;
use super::{Interpreter, Outcome, Traverser, wrong};

/// `WithOptions.tokens`, as bytecode has it.
pub(crate) const TOKENS: &str = "~tinkerpop.valueMap.tokens";

impl Interpreter<'_> {
    /// `element()`: the element or property to which a property belongs.
    pub(crate) fn owner(&self, property: &Value) -> Outcome<Option<Value>> {
        match property {
            Value::VertexProperty(property) => Ok(Some(Value::Vertex(property.vertex))),
            Value::Property(property) => match property.owner {
                PropertyOwner::Edge(edge) => Ok(Some(Value::Edge(edge))),
                PropertyOwner::VertexProperty(vertex, key, ordinal) => {
                    let same =
                        |p: &Value| matches!(p, Value::VertexProperty(p) if (p.key, p.ordinal) == (key, ordinal));
                    Ok(self.graph.properties(&Value::Vertex(vertex))?.into_iter().find(same))
                }
            },
            other => wrong(format!("a {} is no property", other.type_name())),
        }
    }

    /// Key and value of a property object.
    pub(crate) fn key_and_value(&self, property: &Value) -> Outcome<(SmolStr, Value)> {
        match property {
            Value::VertexProperty(p) => Ok((self.graph.key_name(p.key), p.value.clone())),
            Value::Property(p) => Ok((self.graph.key_name(p.key), p.value.clone())),
            other => wrong(format!("a {} is no property", other.type_name())),
        }
    }

    /// The properties of an element under these keys (all, if no key is given), in the order of the keys. Properties
    /// that the traversal does not see are left out.
    pub(crate) fn properties_of(&mut self, element: &Value, keys: &[SmolStr]) -> Outcome<Vec<Value>> {
        let all = self.graph.properties(element)?;
        let mut found = Vec::new();
        for property in all {
            let is_asked_for = keys.is_empty() || keys.contains(&self.key_and_value(&property)?.0);
            if is_asked_for && self.sees(&property)? {
                found.push(property);
            }
        }
        Ok(found)
    }

    pub(crate) fn property_objects(&mut self, step: &Step<'_>, t: &Traverser) -> Outcome<Vec<Value>> {
        let properties = self.properties_of(&t.value, &step.names()?)?;
        if step.name == "properties" {
            return Ok(properties);
        }
        properties.iter().map(|p| Ok(self.key_and_value(p)?.1)).collect()
    }

    pub(crate) fn token_step(&mut self, step: &Step<'_>, t: &Traverser) -> Outcome<Option<Value>> {
        let token = match step.name {
            "id" => Token::Id,
            "label" => Token::Label,
            "key" => Token::Key,
            _ => Token::Value,
        };
        self.token(token, &t.value).map(Some)
    }

    pub(crate) fn value_map(&mut self, step: &Step<'_>, t: &Traverser) -> Outcome<Option<Value>> {
        let (tokens, arguments) = match step.arguments.split_first() {
            Some((Argument::Value(Value::Bool(tokens)), rest)) => (*tokens, rest),
            _ => (false, step.arguments),
        };
        let keys = arguments.iter().map(super::step::string).collect::<Outcome<Vec<_>>>()?;
        let tokens = match step.with.as_slice() {
            [] => tokens,
            [[Argument::Value(Value::String(option))]] if option == TOKENS => true,
            other => return super::unsupported(format!("valueMap() with {other:?}")),
        };
        let mut entries = if tokens { self.token_entries(&t.value)? } else { Vec::new() };
        let token_count = entries.len();
        for property in self.properties_of(&t.value, &keys)? {
            let (key, value) = self.key_and_value(&property)?;
            let key = Value::String(key);
            if !matches!(t.value, Value::Vertex(_)) {
                entries.push((key, value));
                continue;
            }
            match entries[token_count..].iter_mut().find(|(k, _)| *k == key) {
                Some((_, Value::List(values))) => std::sync::Arc::make_mut(values).push(value),
                _ => entries.push((key, Value::list(vec![value]))),
            }
        }
        let properties = entries.split_off(token_count);
        entries.extend(self.modulated(step, t, properties)?);
        Ok(Some(Value::map(entries)))
    }

    /// The entries of a map, with values computed by `by()`. An entry whose `by()` is unproductive is left out.
    fn modulated(
        &mut self,
        step: &Step<'_>,
        t: &Traverser,
        entries: Vec<(Value, Value)>,
    ) -> Outcome<Vec<(Value, Value)>> {
        if step.by.is_empty() {
            return Ok(entries);
        }
        let mut kept = Vec::new();
        for (key, value) in entries {
            let made = self.by(round_robin(&step.by, 0), &t.holding(value))?;
            kept.extend(made.map(|value| (key, value)));
        }
        Ok(kept)
    }

    /// `propertyMap()`: property objects by key; those of vertices in lists.
    pub(crate) fn property_map(&mut self, step: &Step<'_>, t: &Traverser) -> Outcome<Option<Value>> {
        let mut entries: Vec<(Value, Value)> = Vec::new();
        for property in self.properties_of(&t.value, &step.names()?)? {
            let key = Value::String(self.key_and_value(&property)?.0);
            let found = entries.iter_mut().find(|(known, _)| *known == key);
            match (found, &t.value) {
                (Some((_, Value::List(values))), _) => std::sync::Arc::make_mut(values).push(property),
                (_, Value::Vertex(_)) => entries.push((key, Value::list(vec![property]))),
                _ => entries.push((key, property)),
            }
        }
        Ok(Some(Value::map(self.modulated(step, t, entries)?)))
    }

    fn token_entries(&self, element: &Value) -> Outcome<Vec<(Value, Value)>> {
        [Token::Id, Token::Label].into_iter().map(|t| Ok((Value::Token(t), self.token(t, element)?))).collect()
    }

    pub(crate) fn element_map(&mut self, step: &Step<'_>, t: &Traverser) -> Outcome<Option<Value>> {
        let mut entries = self.token_entries(&t.value)?;
        if let Value::Edge(e) = &t.value {
            let (source, target) = (self.graph.edge(*e)?.source, self.graph.edge(*e)?.target);
            let end = |v: VertexId| Ok::<_, super::Failure>(Value::map(self.token_entries(&Value::Vertex(v))?));
            entries.push((Value::Direction(Direction::In), end(target)?));
            entries.push((Value::Direction(Direction::Out), end(source)?));
        }
        for property in self.properties_of(&t.value, &step.names()?)? {
            let (key, value) = self.key_and_value(&property)?;
            let key = Value::String(key);
            // Of several values under a key, the last one stays.
            match entries.iter_mut().find(|(k, _)| *k == key) {
                Some((_, old)) => *old = value,
                None => entries.push((key, value)),
            }
        }
        Ok(Some(Value::map(entries)))
    }
}
