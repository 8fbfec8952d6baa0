//! `mergeV()` and `mergeE()`: find elements, or create one if there is none.
//!
//! A map describes the search, further ones what to set on a match and on a creation. Every element of the graph is
//! compared with the search; no index is used.

use mangrove_graph::compare::equal;
use mangrove_graph::{Direction, EdgeId, Token, UserId, Value, VertexId};
use mangrove_gremlin::{Argument, Cardinality, Merge};
use smol_str::SmolStr;

use super::property::Written;
use super::step::Step;
use super::{Interpreter, Outcome, Stream, Traverser, first, unsupported, wrong};

/// An entry of a map that describes an element; for a property, also its cardinality.
#[derive(Clone)]
struct Entry {
    key: Value,
    value: Value,
    cardinality: Option<Cardinality>,
}

type Entries = Vec<Entry>;

fn plain((key, value): &(Value, Value)) -> Entry {
    Entry { key: key.clone(), value: value.clone(), cardinality: None }
}

/// The maps of a merge, evaluated for one traverser.
struct Maps {
    search: Entries,
    on_create: Entries,
    on_match: Entries,
}

impl Interpreter<'_> {
    /// Evaluates the search, and the map of `onCreate` unless a child returns it.
    fn maps(&mut self, step: &Step<'_>, t: &Traverser) -> Outcome<Maps> {
        let mut search = match step.arguments.first() {
            Some(given) => self.entries(given, t)?,
            None => match &t.value {
                Value::Map(entries) => entries.iter().map(plain).collect(),
                other => return wrong(format!("a merge is described by a map, not a {}", other.type_name())),
            },
        };
        // The search and the creation always include the property of a partition.
        for mark in self.source.parts.iter().filter_map(|part| part.mark.as_ref()) {
            search.push(plain(&(Value::String(mark.key.clone()), mark.value.clone())));
        }
        let mut maps = Maps { search, on_create: Entries::new(), on_match: Entries::new() };
        // A traversal runs only if an element is created; a literal is checked at once.
        if !matches!(option_of(step, Merge::OnCreate), Some((Argument::Traversal(_), _))) {
            self.read_on_create(step, t, &mut maps)?;
        }
        Ok(maps)
    }

    fn read_on_create(&mut self, step: &Step<'_>, t: &Traverser, maps: &mut Maps) -> Outcome<()> {
        maps.on_create = self.merge_option(step, Merge::OnCreate, t)?.unwrap_or_default();
        let contradicts = |made: &Entry| {
            let is_open = |wanted: &Entry| matches!(wanted.value, Value::Direction(_));
            let mut search = maps.search.iter();
            search.any(|known| known.key == made.key && !is_open(known) && !equal(&known.value, &made.value))
        };
        if maps.on_create.iter().any(contradicts) {
            return wrong("what is made contradicts what was looked for");
        }
        Ok(())
    }

    /// Reads the map of `onCreate`, if it was not read yet.
    fn complete(&mut self, step: &Step<'_>, t: &Traverser, maps: &mut Maps) -> Outcome<()> {
        match option_of(step, Merge::OnCreate) {
            Some((Argument::Traversal(_), _)) => self.read_on_create(step, t, maps),
            _ => Ok(()),
        }
    }

    /// The map of an option; `None` if the step does not have the option.
    fn merge_option(&mut self, step: &Step<'_>, which: Merge, t: &Traverser) -> Outcome<Option<Entries>> {
        let Some((given, cardinality)) = option_of(step, which) else { return Ok(None) };
        let mut entries = self.entries(given, t)?;
        entries.iter_mut().for_each(|entry| entry.cardinality = entry.cardinality.or(cardinality));
        Ok(Some(entries))
    }

    /// The entries of a literal map, or of the map that a child returns.
    fn entries(&mut self, given: &Argument, t: &Traverser) -> Outcome<Entries> {
        match given {
            Argument::Value(Value::Map(entries)) => Ok(entries.iter().map(plain).collect()),
            // Null is a search without criteria.
            Argument::Value(Value::Null) => Ok(Entries::new()),
            Argument::Map(entries) => entries
                .iter()
                .map(|(key, value)| {
                    let (cardinality, value) = match value {
                        Argument::CardinalityValue(cardinality, value) => (Some(*cardinality), &**value),
                        value => (None, value),
                    };
                    let value = match value {
                        Argument::Merge(Merge::OutV) => Value::Direction(Direction::Out),
                        Argument::Merge(Merge::InV) => Value::Direction(Direction::In),
                        value => super::step::value(value)?.clone(),
                    };
                    Ok(Entry { key: super::step::value(key)?.clone(), value, cardinality })
                })
                .collect(),
            Argument::Traversal(child) => match first(self.local_child(child, t)?) {
                Some(Value::Map(entries)) => Ok(entries.iter().map(plain).collect()),
                Some(Value::Null) => Ok(Entries::new()),
                Some(other) => wrong(format!("a merge is described by a map, not a {}", other.type_name())),
                None => wrong("a traversal that gives no map for a merge"),
            },
            other => unsupported(format!("{other:?} as a map")),
        }
    }

    /// Merges for one traverser after the other, so a later one finds elements that an earlier one created.
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
            self.complete(step, t, &mut maps)?;
            let made = [&maps.search[..], &maps.on_create].concat();
            let label = label(&made).unwrap_or_else(|| "vertex".into());
            let vertex = Value::Vertex(self.graph.add_vertex(id(&made), &label)?);
            self.write_entries(&vertex, &latest(&made))?;
            return Ok(vec![t.moved_to(vertex)]);
        }
        self.matched(step, &mut maps, t, found)
    }

    /// Like [`Self::merge_vertex`], for edges. In a search, a missing end matches any vertex; a new edge needs both.
    pub(crate) fn merge_edge(&mut self, step: &Step<'_>, t: &Traverser) -> Outcome<Stream> {
        let mut maps = self.maps(step, t)?;
        self.find_ends(step, &mut maps.search, t)?;
        self.find_ends(step, &mut maps.on_create, t)?;
        let all: Vec<EdgeId> = self.graph.edges().map(|(id, _)| id).collect();
        let mut found = Vec::new();
        for edge in all {
            if self.is_described(&Value::Edge(edge), &maps.search)? {
                found.push(Value::Edge(edge));
            }
        }
        if found.is_empty() {
            self.complete(step, t, &mut maps)?;
            self.find_ends(step, &mut maps.on_create, t)?;
            let made = [&maps.search[..], &maps.on_create].concat();
            let end = |which| made.iter().find(|e| e.key == Value::Direction(which)).map(|e| e.value.clone());
            let (Some(Value::Vertex(source)), Some(Value::Vertex(target))) = (end(Direction::Out), end(Direction::In))
            else {
                return wrong("an end of the edge to make is missing");
            };
            let label = label(&made).unwrap_or_else(|| "edge".into());
            let edge = Value::Edge(self.graph.add_edge(id(&made), &label, source, target)?);
            self.write_entries(&edge, &latest(&made))?;
            return Ok(vec![t.moved_to(edge)]);
        }
        self.matched(step, &mut maps, t, found)
    }

    /// Replaces descriptions of an edge's ends by vertices; by null if no vertex fits.
    fn find_ends(&mut self, step: &Step<'_>, map: &mut Entries, t: &Traverser) -> Outcome<()> {
        for which in [Direction::Out, Direction::In] {
            if let Some(entry) = map.iter_mut().find(|entry| entry.key == Value::Direction(which)) {
                entry.value = match self.edge_end_named(step, &entry.value, t)? {
                    Some(vertex) => Value::Vertex(vertex),
                    None => Value::Null,
                };
            }
        }
        Ok(())
    }

    /// A vertex by its id, or by the description in the option for this end.
    fn edge_end_named(&mut self, step: &Step<'_>, named: &Value, t: &Traverser) -> Outcome<Option<VertexId>> {
        let option = match named {
            Value::Direction(Direction::Out) => Merge::OutV,
            Value::Direction(_) => Merge::InV,
            Value::Vertex(vertex) => return Ok(Some(*vertex)),
            Value::Null => return Ok(None),
            id => return Ok(UserId::from_value(id).and_then(|id| self.graph.find_vertex(&id))),
        };
        let description = match option_of(step, option) {
            None => return wrong("an end without the option that describes it"),
            Some((Argument::Traversal(child), _)) => match first(self.local_child(child, t)?) {
                Some(Value::Vertex(vertex)) => return Ok(Some(vertex)),
                Some(Value::Map(entries)) => entries.iter().map(plain).collect(),
                other => return unsupported(format!("{other:?} as the end of an edge")),
            },
            Some((given, _)) => self.entries(given, t)?,
        };
        let all: Vec<VertexId> = self.graph.vertices().map(|(id, _)| id).collect();
        for vertex in all {
            if self.is_described(&Value::Vertex(vertex), &description)? {
                return Ok(Some(vertex));
            }
        }
        Ok(None)
    }

    /// Sets the properties of `onMatch` on each found element.
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

    /// Returns true if an element fits all entries.
    fn is_described(&self, element: &Value, wanted: &Entries) -> Outcome<bool> {
        for Entry { key, value, .. } in wanted {
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

    /// Writes the properties among the entries to an element.
    fn write_entries(&mut self, element: &Value, entries: &Entries) -> Outcome<()> {
        for Entry { key, value, cardinality } in entries {
            if let Value::String(key) = key {
                // An edge has one value for each key, whatever the map says.
                let cardinality = cardinality.filter(|_| matches!(element, Value::Vertex(_)));
                let written = Written { cardinality, key: key.clone(), value: value.clone(), meta: Vec::new() };
                self.write(element, written)?;
            }
        }
        Ok(())
    }
}

/// The value of the step's option of this name, and the cardinality of its properties.
fn option_of<'a>(step: &Step<'a>, which: Merge) -> Option<(&'a Argument, Option<Cardinality>)> {
    step.options.iter().rev().find_map(|option| match option {
        [Argument::Merge(merge), given] if *merge == which => Some((given, None)),
        [Argument::Merge(merge), given, Argument::Cardinality(cardinality)] if *merge == which => {
            Some((given, Some(*cardinality)))
        }
        _ => None,
    })
}

/// The entries without repeated keys: an element that is created gets each property once.
fn latest(made: &[Entry]) -> Entries {
    let again = |at: usize| made[at + 1..].iter().any(|later| later.key == made[at].key);
    (0..made.len()).filter(|at| !again(*at)).map(|at| made[at].clone()).collect()
}

fn label(entries: &Entries) -> Option<SmolStr> {
    entries.iter().find_map(|entry| match (&entry.key, &entry.value) {
        (Value::Token(Token::Label), Value::String(label)) => Some(label.clone()),
        _ => None,
    })
}

fn id(entries: &Entries) -> Option<UserId> {
    let given = entries.iter().find(|entry| entry.key == Value::Token(Token::Id));
    given.and_then(|entry| UserId::from_value(&entry.value))
}
