//! `mergeV()` and `mergeE()`: find, or make what is not there.

use mangrove_graph::compare::equal;
use mangrove_graph::{Direction, EdgeId, Token, UserId, Value, VertexId};
use mangrove_gremlin::{Argument, Cardinality, Merge};
use smol_str::SmolStr;

use super::step::Step;
use super::{Interpreter, Outcome, Stream, Traverser, first, unsupported, wrong};

type Entries = Vec<(Value, Value)>;

/// The maps of a merge, as they are for one traverser.
struct Maps {
    search: Entries,
    on_create: Entries,
    on_match: Entries,
}

impl Interpreter<'_> {
    fn maps(&mut self, step: &Step<'_>, t: &Traverser) -> Outcome<Maps> {
        let search = match step.arguments.first() {
            Some(given) => self.entries(given, t)?,
            None => match &t.value {
                Value::Map(entries) => entries.to_vec(),
                other => return wrong(format!("a merge is described by a map, not a {}", other.type_name())),
            },
        };
        let on_create = self.merge_option(step, Merge::OnCreate, t)?.unwrap_or_default();
        let contradicts =
            |(key, value): &(Value, Value)| search.iter().any(|(known, wanted)| known == key && !equal(wanted, value));
        if on_create.iter().any(contradicts) {
            return wrong("what is made contradicts what was looked for");
        }
        Ok(Maps { search, on_create, on_match: Entries::new() })
    }

    fn merge_option(&mut self, step: &Step<'_>, which: Merge, t: &Traverser) -> Outcome<Option<Entries>> {
        let found = step.options.iter().find_map(|option| match option {
            [Argument::Merge(merge), given] if *merge == which => Some(given),
            _ => None,
        });
        found.map(|given| self.entries(given, t)).transpose()
    }

    /// The entries of a literal map, or of one that a child gives.
    fn entries(&mut self, given: &Argument, t: &Traverser) -> Outcome<Entries> {
        match given {
            Argument::Value(Value::Map(entries)) => Ok(entries.to_vec()),
            Argument::Map(entries) => entries
                .iter()
                .map(|(key, value)| {
                    let value = match value {
                        Argument::Merge(Merge::OutV) => Value::Direction(Direction::Out),
                        Argument::Merge(Merge::InV) => Value::Direction(Direction::In),
                        value => super::step::value(value)?.clone(),
                    };
                    Ok((super::step::value(key)?.clone(), value))
                })
                .collect(),
            Argument::Traversal(child) => match first(self.local_child(child, t)?) {
                Some(Value::Map(entries)) => Ok(entries.to_vec()),
                other => unsupported(format!("{other:?} as a map")),
            },
            other => unsupported(format!("{other:?} as a map")),
        }
    }

    /// Every traverser in turn: a later one finds what an earlier one made.
    pub(crate) fn merge_vertex(&mut self, step: &Step<'_>, t: &Traverser) -> Outcome<Stream> {
        let mut maps = self.maps(step, t)?;
        let all: Vec<VertexId> = self.graph.vertices().map(|(id, _)| id).collect();
        let mut found = Vec::new();
        for vertex in all {
            if self.is_described(&Value::Vertex(vertex), &maps.search)? {
                found.push(Value::Vertex(vertex));
            }
        }
        if found.is_empty() {
            let made = [&maps.search[..], &maps.on_create].concat();
            let label = label(&made).unwrap_or_else(|| "vertex".into());
            let vertex = Value::Vertex(self.graph.add_vertex(id(&made), &label)?);
            self.write_entries(&vertex, &made)?;
            return Ok(vec![t.moved_to(vertex)]);
        }
        self.matched(step, &mut maps, t, found)
    }

    /// As [`Self::merge_vertex`], of edges; an end that no map names is any end, but none for a new edge.
    pub(crate) fn merge_edge(&mut self, step: &Step<'_>, t: &Traverser) -> Outcome<Stream> {
        let mut maps = self.maps(step, t)?;
        for which in [Direction::Out, Direction::In] {
            for map in [&mut maps.search, &mut maps.on_create] {
                let entry = map.iter_mut().find(|(key, _)| *key == Value::Direction(which));
                if let Some((_, value)) = entry {
                    *value = match self.edge_end_named(step, value, t)? {
                        Some(vertex) => Value::Vertex(vertex),
                        None => Value::Null,
                    };
                }
            }
        }
        let all: Vec<EdgeId> = self.graph.edges().map(|(id, _)| id).collect();
        let mut found = Vec::new();
        for edge in all {
            if self.is_described(&Value::Edge(edge), &maps.search)? {
                found.push(Value::Edge(edge));
            }
        }
        if found.is_empty() {
            let made = [&maps.search[..], &maps.on_create].concat();
            let end = |which| made.iter().find(|(key, _)| *key == Value::Direction(which)).map(|(_, v)| v.clone());
            let (Some(Value::Vertex(source)), Some(Value::Vertex(target))) = (end(Direction::Out), end(Direction::In))
            else {
                return wrong("an end of the edge to make is missing");
            };
            let label = label(&made).unwrap_or_else(|| "edge".into());
            let edge = Value::Edge(self.graph.add_edge(id(&made), &label, source, target)?);
            self.write_entries(&edge, &made)?;
            return Ok(vec![t.moved_to(edge)]);
        }
        self.matched(step, &mut maps, t, found)
    }

    /// A vertex by its id, or by the description in the option that stands for this end.
    fn edge_end_named(&mut self, step: &Step<'_>, named: &Value, t: &Traverser) -> Outcome<Option<VertexId>> {
        let option = match named {
            Value::Direction(Direction::Out) => Merge::OutV,
            Value::Direction(_) => Merge::InV,
            Value::Vertex(vertex) => return Ok(Some(*vertex)),
            id => return Ok(UserId::from_value(id).and_then(|id| self.graph.find_vertex(&id))),
        };
        let Some(description) = self.merge_option(step, option, t)? else {
            return wrong("an end without the option that describes it");
        };
        let all: Vec<VertexId> = self.graph.vertices().map(|(id, _)| id).collect();
        for vertex in all {
            if self.is_described(&Value::Vertex(vertex), &description)? {
                return Ok(Some(vertex));
            }
        }
        Ok(None)
    }

    fn matched(&mut self, step: &Step<'_>, maps: &mut Maps, t: &Traverser, found: Vec<Value>) -> Outcome<Stream> {
        let mut out = Vec::new();
        for element in found {
            let there = t.moved_to(element.clone());
            maps.on_match = self.merge_option(step, Merge::OnMatch, &there)?.unwrap_or_default();
            self.write_entries(&element, &maps.on_match)?;
            out.push(there);
        }
        Ok(out)
    }

    fn is_described(&self, element: &Value, wanted: &Entries) -> Outcome<bool> {
        for (key, value) in wanted {
            let holds = match key {
                Value::Token(token) => equal(&self.token(*token, element)?, value),
                Value::Direction(direction) => {
                    let Value::Edge(edge) = element else { return wrong("a vertex has no ends") };
                    let edge = self.graph.edge(*edge)?;
                    let end = if *direction == Direction::Out { edge.source } else { edge.target };
                    *value == Value::Vertex(end)
                }
                Value::String(name) => {
                    let mut holds = false;
                    for property in self.graph.properties(element)? {
                        let (key, found) = self.key_and_value(&property)?;
                        holds |= key == *name && equal(&found, value);
                    }
                    holds
                }
                other => return unsupported(format!("a merge with a {} as key", other.type_name())),
            };
            if !holds {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn write_entries(&mut self, element: &Value, entries: &Entries) -> Outcome<()> {
        for (key, value) in entries {
            match (key, element) {
                (Value::String(key), Value::Vertex(vertex)) => {
                    self.graph.set_vertex_property(*vertex, Cardinality::Single, key, value.clone())?;
                }
                (Value::String(key), Value::Edge(edge)) => self.graph.set_edge_property(*edge, key, value.clone())?,
                _ => {}
            }
        }
        Ok(())
    }
}

fn label(entries: &Entries) -> Option<SmolStr> {
    entries.iter().find_map(|(key, value)| match (key, value) {
        (Value::Token(Token::Label), Value::String(label)) => Some(label.clone()),
        _ => None,
    })
}

fn id(entries: &Entries) -> Option<UserId> {
    let given = entries.iter().find(|(key, _)| *key == Value::Token(Token::Id));
    given.and_then(|(_, value)| UserId::from_value(value))
}
