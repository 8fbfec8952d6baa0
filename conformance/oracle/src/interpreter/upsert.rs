//! `mergeV()`: find, or make what is not there.

use mangrove_graph::compare::equal;
use mangrove_graph::{Token, Value, VertexId};
use mangrove_gremlin::{Argument, Cardinality, Merge};

use super::step::Step;
use super::{Interpreter, Outcome, Stream, Traverser, unsupported};

type Entries = [(Value, Value)];

impl Interpreter<'_> {
    /// Every traverser in turn: a later one finds what an earlier one made.
    pub(crate) fn merge_vertex(&mut self, step: &Step<'_>, t: &Traverser) -> Outcome<Stream> {
        let Value::Map(wanted) = step.value(0)? else { return unsupported("mergeV() without a map") };
        let option = |which: Merge| {
            step.options.iter().find_map(|option| match option {
                [Argument::Merge(merge), Argument::Value(Value::Map(entries))] if *merge == which => Some(entries),
                _ => None,
            })
        };
        let all: Vec<VertexId> = self.graph.vertices().map(|(id, _)| id).collect();
        let mut found = Vec::new();
        for vertex in all {
            if self.is_described(vertex, wanted)? {
                found.push(vertex);
            }
        }
        if found.is_empty() {
            let label = wanted.iter().find_map(|(key, value)| match (key, value) {
                (Value::Token(Token::Label), Value::String(label)) => Some(label.clone()),
                _ => None,
            });
            let vertex = self.graph.add_vertex(None, label.as_deref().unwrap_or("vertex"))?;
            self.write_entries(vertex, wanted)?;
            if let Some(more) = option(Merge::OnCreate) {
                self.write_entries(vertex, more)?;
            }
            return Ok(vec![t.moved_to(Value::Vertex(vertex))]);
        }
        if let Some(more) = option(Merge::OnMatch) {
            for vertex in &found {
                self.write_entries(*vertex, more)?;
            }
        }
        Ok(found.into_iter().map(|vertex| t.moved_to(Value::Vertex(vertex))).collect())
    }

    fn is_described(&self, vertex: VertexId, wanted: &Entries) -> Outcome<bool> {
        for (key, value) in wanted {
            let holds = match key {
                Value::Token(Token::Label) => *value == Value::string(self.graph.vertex(vertex)?.label.as_str()),
                Value::String(name) => self.graph.properties(&Value::Vertex(vertex))?.iter().any(|property| {
                    matches!(property, Value::VertexProperty(p)
                        if self.graph.key_name(p.key) == *name && equal(&p.value, value))
                }),
                other => return unsupported(format!("mergeV() with a {} as key", other.type_name())),
            };
            if !holds {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn write_entries(&mut self, vertex: VertexId, entries: &Entries) -> Outcome<()> {
        for (key, value) in entries {
            if let Value::String(key) = key {
                self.graph.set_vertex_property(vertex, Cardinality::Single, key, value.clone())?;
            }
        }
        Ok(())
    }
}
