//! Steps that write: `addV`, `addE`, `property`, `drop`.

use mangrove_graph::{Error, ErrorKind, Token, UserId, Value, VertexId};
use mangrove_gremlin::{Argument, Cardinality};

use super::step::{Step, string};
use super::{Interpreter, Outcome, Stream, Traverser, first, unsupported, wrong};
use crate::script::text;

impl Interpreter<'_> {
    pub(crate) fn add_vertex(&mut self, step: &Step<'_>, t: Traverser) -> Outcome<Stream> {
        let label = match step.arguments {
            [] => "vertex".into(),
            [label] => self.label_argument(label, &t)?,
            _ => return unsupported("addV() with several arguments"),
        };
        let id = self.id_property(step, &t)?;
        let vertex = Value::Vertex(self.graph.add_vertex(id, &label)?);
        self.finish_adding(step, &t, vertex)
    }

    pub(crate) fn add_edge(&mut self, step: &Step<'_>, t: Traverser) -> Outcome<Stream> {
        let label = self.label_argument(step.argument(0)?, &t)?;
        let (source, target) = (self.edge_end("from", step.from, &t)?, self.edge_end("to", step.to, &t)?);
        let id = self.id_property(step, &t)?;
        let edge = Value::Edge(self.graph.add_edge(id, &label, source, target)?);
        self.finish_adding(step, &t, edge)
    }

    fn label_argument(&mut self, argument: &Argument, t: &Traverser) -> Outcome<smol_str::SmolStr> {
        match self.evaluated(argument, t)? {
            Some(Value::String(label)) => Ok(label),
            _ => wrong("a label must be a string"),
        }
    }

    /// A literal, or the first result of a child.
    fn evaluated(&mut self, argument: &Argument, t: &Traverser) -> Outcome<Option<Value>> {
        match argument {
            Argument::Traversal(child) => Ok(first(self.local_child(child, t)?)),
            argument => Ok(Some(super::step::value(argument)?.clone())),
        }
    }

    fn edge_end(&mut self, which: &str, argument: Option<&Argument>, t: &Traverser) -> Outcome<VertexId> {
        let found = match argument {
            None if t.is_unborn => None,
            None => Some(t.value.clone()),
            Some(Argument::Value(Value::String(label))) => self.scope(label, t),
            Some(Argument::Traversal(child)) => first(self.local_child(child, t)?),
            Some(Argument::Vertex(id) | Argument::Value(id)) => {
                UserId::from_value(id).and_then(|id| self.graph.find_vertex(&id)).map(Value::Vertex)
            }
            Some(other) => return unsupported(format!("{which}({other:?})")),
        };
        match found {
            Some(Value::Vertex(v)) => Ok(v),
            Some(other) => wrong(format!("{which}() of addE() must give a vertex, not a {}", other.type_name())),
            None => wrong(format!("{which}() of addE() gives no vertex")),
        }
    }

    /// The id that `property(T.id, …)` right after the step chooses.
    fn id_property(&mut self, step: &Step<'_>, t: &Traverser) -> Outcome<Option<UserId>> {
        for arguments in &step.properties {
            if let [Argument::Value(Value::Token(Token::Id)), id] = arguments {
                let id = self.evaluated(id, t)?.and_then(|id| UserId::from_value(&id));
                return match id {
                    Some(id) => Ok(Some(id)),
                    None => wrong("an id must be an integer, a string or a UUID"),
                };
            }
        }
        Ok(None)
    }

    fn finish_adding(&mut self, step: &Step<'_>, t: &Traverser, element: Value) -> Outcome<Stream> {
        let made = t.moved_to(element);
        let marks: Vec<_> = self.source.parts.iter().filter_map(|part| part.mark.clone()).collect();
        for (key, value) in marks {
            self.set_property(&[text(&key), Argument::Value(value)], Cardinality::Single, &made)?;
        }
        for arguments in &step.properties {
            if !matches!(arguments.first(), Some(Argument::Value(Value::Token(Token::Id)))) {
                // A child there reads the traverser the step was given, not the new element.
                if matches!(arguments.last(), Some(Argument::Traversal(_))) {
                    return unsupported("property() with a child right after addV() or addE()");
                }
                // A new vertex keeps every value that is given for one key.
                let is_repeated = matches!(&made.value, Value::Vertex(_))
                    && step.properties.iter().filter(|other| key_of(other) == key_of(arguments)).count() > 1;
                self.set_property(arguments, if is_repeated { Cardinality::List } else { Cardinality::Single }, &made)?;
            }
        }
        Ok(vec![made])
    }

    pub(crate) fn property(&mut self, step: &Step<'_>, t: Traverser) -> Outcome<Stream> {
        self.set_property(step.arguments, Cardinality::Single, &t)?;
        Ok(vec![t])
    }

    /// Sets a property, with this cardinality where none is given.
    fn set_property(&mut self, arguments: &[Argument], default: Cardinality, t: &Traverser) -> Outcome<()> {
        // A map of properties, each with its own cardinality or the default.
        if let [Argument::Value(Value::Map(entries))] = arguments {
            for (key, value) in entries.iter() {
                self.set_property(&[Argument::Value(key.clone()), Argument::Value(value.clone())], default, t)?;
            }
            return Ok(());
        }
        let (cardinality, key, value) = match arguments {
            [Argument::Cardinality(c), key, value] => (*c, key, value),
            [key, value] => (default, key, value),
            other => return unsupported(format!("property({other:?})")),
        };
        let key = string(key)?;
        let Some(value) = self.evaluated(value, t)? else { return unsupported("property() of a child without result") };
        if matches!(value, Value::Null) {
            return unsupported("property() with null");
        }
        if !value.is_storable() {
            return Err(Error::new(ErrorKind::InvalidArgument, "a property cannot hold this value").into());
        }
        match &t.value {
            Value::Vertex(v) => self.graph.set_vertex_property(*v, cardinality, &key, value)?,
            Value::Edge(e) => self.graph.set_edge_property(*e, &key, value)?,
            other => return wrong(format!("property() needs an element, not a {}", other.type_name())),
        }
        Ok(())
    }

    pub(crate) fn drop_elements(&mut self, input: Stream) -> Outcome<Stream> {
        for t in &input {
            self.graph.remove(&t.value)?;
        }
        Ok(Vec::new())
    }
}

/// The key that the arguments of a `property()` name, if they name one.
fn key_of(arguments: &[Argument]) -> Option<&str> {
    match arguments {
        [Argument::Cardinality(_), Argument::Value(Value::String(key)), _]
        | [Argument::Value(Value::String(key)), _] => Some(key),
        _ => None,
    }
}
