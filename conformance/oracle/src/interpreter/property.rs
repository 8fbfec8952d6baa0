//! `property()`: on existing elements, on new elements, and on vertex properties.
//!
//! Null is not stored. On a new element, a null is skipped. On an existing element it removes the values under the key,
//! unless the cardinality only adds.

use mangrove_graph::{Error, ErrorKind, Token, Value};
use mangrove_gremlin::{Argument, Cardinality};
use smol_str::SmolStr;

use super::step::{Step, string};
use super::{Interpreter, Outcome, Stream, Traverser, unsupported, wrong};

/// One value to write.
pub(crate) struct Written {
    /// How the value joins the values under the key; single by default.
    pub cardinality: Option<Cardinality>,
    pub key: SmolStr,
    pub value: Value,
    /// The meta-properties.
    pub meta: Vec<(SmolStr, Value)>,
}

impl Interpreter<'_> {
    pub(crate) fn property(&mut self, step: &Step<'_>, t: Traverser) -> Outcome<Stream> {
        for mut written in self.written(step.arguments, &t)? {
            self.mark_meta(&mut written);
            self.write(&t.value, written)?;
        }
        Ok(vec![t])
    }

    /// The `property()`s right after `addV()` or `addE()`. Those with a plain key and value belong to the creation:
    /// their children read the input of the step. Those with a cardinality or meta-properties follow it: their children
    /// read the new element.
    pub(crate) fn write_new(&mut self, given: &[&[Argument]], t: &Traverser, made: &Traverser) -> Outcome<()> {
        let is_token =
            |arguments: &[Argument]| matches!(arguments, [Argument::Value(Value::Token(Token::Id | Token::Label)), ..]);
        let given = given.iter().filter(|arguments| !is_token(arguments)).flat_map(|arguments| one_by_one(arguments));
        let (making, after): (Vec<_>, Vec<_>) = given.partition(|arguments| makes(arguments));
        let mut all = Vec::new();
        for arguments in &making {
            all.extend(self.written(arguments, t)?);
        }
        // A new vertex keeps every value for one key; a null removes the values before it.
        let keys: Vec<SmolStr> = all.iter().map(|written| written.key.clone()).collect();
        for mut written in all {
            let is_repeated = keys.iter().filter(|key| **key == written.key).count() > 1;
            let adds = !matches!(written.value, Value::Null);
            if is_repeated && adds && matches!(made.value, Value::Vertex(_)) {
                written.cardinality = Some(Cardinality::List);
            }
            self.mark_meta(&mut written);
            self.write(&made.value, written)?;
        }
        let marks: Vec<_> = self.source.parts.iter().filter_map(|part| part.mark.clone()).collect();
        for mark in marks {
            let written = Written { cardinality: None, key: mark.key, value: mark.value, meta: Vec::new() };
            self.write(&made.value, written)?;
        }
        for arguments in &after {
            for mut written in self.written(arguments, made)? {
                self.mark_meta(&mut written);
                self.write(&made.value, written)?;
            }
        }
        Ok(())
    }

    /// Adds the property of a partition to a vertex property, if the partition has `includeMetaProperties`.
    fn mark_meta(&self, written: &mut Written) {
        for mark in self.source.parts.iter().filter_map(|part| part.mark.as_ref()).filter(|mark| mark.with_meta) {
            written.meta.push((mark.key.clone(), mark.value.clone()));
        }
    }

    /// `(key, value, meta…)` or `(map)`, each with an optional cardinality before it.
    fn written(&mut self, arguments: &[Argument], t: &Traverser) -> Outcome<Vec<Written>> {
        let (cardinality, rest) = match arguments {
            [Argument::Cardinality(cardinality), rest @ ..] => (Some(*cardinality), rest),
            rest => (None, rest),
        };
        match rest {
            [Argument::Value(Value::Map(entries))] => entries
                .iter()
                .map(|(key, value)| {
                    let (key, value) = (Argument::Value(key.clone()), Argument::Value(value.clone()));
                    self.written_one(cardinality, &key, &value, &[], t)
                })
                .collect(),
            [Argument::Map(entries)] => {
                entries.iter().map(|(key, value)| self.written_one(cardinality, key, value, &[], t)).collect()
            }
            [key, value, meta @ ..] if meta.len() % 2 == 0 => {
                Ok(vec![self.written_one(cardinality, key, value, meta, t)?])
            }
            other => unsupported(format!("property({other:?})")),
        }
    }

    fn written_one(
        &mut self,
        cardinality: Option<Cardinality>,
        key: &Argument,
        value: &Argument,
        meta: &[Argument],
        t: &Traverser,
    ) -> Outcome<Written> {
        let (cardinality, value) = match value {
            Argument::CardinalityValue(own, value) => (Some(*own), &**value),
            value => (cardinality, value),
        };
        let key = match self.evaluated(key, t)? {
            Some(Value::String(key)) => key,
            other => return unsupported(format!("{other:?} as a key")),
        };
        let mut pairs = Vec::new();
        for pair in meta.chunks_exact(2) {
            pairs.push((string(&pair[0])?, self.property_value(&pair[1], t)?));
        }
        Ok(Written { cardinality, key, value: self.property_value(value, t)?, meta: pairs })
    }

    fn property_value(&mut self, value: &Argument, t: &Traverser) -> Outcome<Value> {
        match self.evaluated(value, t)? {
            Some(value) if matches!(value, Value::Null) || value.is_storable() => Ok(value),
            Some(_) => Err(Error::new(ErrorKind::InvalidArgument, "a property cannot hold this value").into()),
            None => unsupported("property() of a child without result"),
        }
    }

    /// Writes it to a vertex, an edge, or a property of a vertex.
    pub(crate) fn write(&mut self, element: &Value, written: Written) -> Outcome<()> {
        let Written { cardinality, key, value, mut meta } = written;
        let cardinality = cardinality.unwrap_or(Cardinality::Single);
        meta.retain(|(_, value)| !matches!(value, Value::Null));
        let is_plain = cardinality == Cardinality::Single && meta.is_empty();
        match element {
            Value::Vertex(_) if matches!(value, Value::Null) => {
                if cardinality == Cardinality::Single {
                    self.graph.remove_key(element, &key)?;
                }
            }
            Value::Vertex(v) => self.graph.set_vertex_property(*v, cardinality, &key, value, &meta)?,
            Value::Edge(_) | Value::VertexProperty(_) if !is_plain => {
                return wrong(format!("a {} has one value a key, without properties", element.type_name()));
            }
            Value::Edge(_) if matches!(value, Value::Null) => self.graph.remove_key(element, &key)?,
            Value::Edge(e) => self.graph.set_edge_property(*e, &key, value)?,
            Value::VertexProperty(_) if matches!(value, Value::Null) => {
                for property in self.graph.properties(element)? {
                    if self.key_and_value(&property)?.0 == key {
                        self.graph.remove(&property)?;
                    }
                }
            }
            Value::VertexProperty(of) => self.graph.set_meta_property(of, &key, value)?,
            other => return wrong(format!("property() needs an element, not a {}", other.type_name())),
        }
        Ok(())
    }
}

/// A map of properties, one `property()` for each entry. An entry may have a cardinality.
fn one_by_one(arguments: &[Argument]) -> Vec<Vec<Argument>> {
    match arguments {
        [Argument::Map(entries)] => entries.iter().map(|(key, value)| vec![key.clone(), value.clone()]).collect(),
        arguments => vec![arguments.to_vec()],
    }
}

/// Returns true if a `property()` right after `addV()` or `addE()` is a part of that step.
fn makes(arguments: &[Argument]) -> bool {
    match arguments {
        [Argument::Cardinality(_), ..] | [_, Argument::CardinalityValue(..)] => false,
        arguments => arguments.len() <= 2,
    }
}
