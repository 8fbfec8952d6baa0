//! The plain graph: two maps. Every question scans them from end to end.
//!
//! Internal element ids are assigned in order of insertion and are never shown; users know elements by their
//! [`UserId`]. An element without a chosen id gets an *automatic* id from [`AUTOMATIC_ID_MIN`] up. The generator
//! chooses small numbers, so a comparison can tell the two apart.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use mangrove_graph::{
    Direction, EdgeId, Error, ErrorKind, KeyId, PropertyOwner, PropertyValue, Result, Token, UserId, Value, VertexId,
    VertexPropertyValue,
};
use mangrove_gremlin::{Argument, Bytecode, Cardinality, Instruction};
use smol_str::SmolStr;

use crate::script::{bytecode, nested, step, token};

/// Integer ids from here up are automatic; the ids that a case chooses are below.
pub const AUTOMATIC_ID_MIN: i64 = 60_000;

/// One property of a vertex.
#[derive(Clone, Debug)]
pub struct VertexProperty {
    /// The key.
    pub key: KeyId,
    /// The cardinality of the key.
    pub ordinal: u32,
    /// The value.
    pub value: Value,
    /// Meta-properties, in order of insertion.
    pub meta: Vec<(KeyId, Value)>,
}

/// A vertex.
#[derive(Clone, Debug)]
pub struct Vertex {
    /// The user id.
    pub id: UserId,
    /// The label.
    pub label: SmolStr,
    /// Properties in order of insertion.
    pub properties: Vec<VertexProperty>,
}

/// An edge.
#[derive(Clone, Debug)]
pub struct Edge {
    /// The user id.
    pub id: UserId,
    /// The label.
    pub label: SmolStr,
    /// The source vertex.
    pub source: VertexId,
    /// The target vertex.
    pub target: VertexId,
    /// Properties in order of insertion.
    pub properties: Vec<(KeyId, Value)>,
}

/// A property graph.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    vertices: BTreeMap<VertexId, Vertex>,
    edges: BTreeMap<EdgeId, Edge>,
    keys: Vec<SmolStr>,
    made: u64,
}

impl Graph {
    /// An empty graph.
    pub fn new() -> Self {
        Self::default()
    }

    fn next_number(&mut self) -> u64 {
        self.made += 1;
        self.made
    }

    fn automatic(number: u64) -> UserId {
        UserId::int(AUTOMATIC_ID_MIN + i64::try_from(number).expect("a test makes fewer than 2^63 elements"))
    }

    /// Adds a vertex; fails if the id is taken.
    pub fn add_vertex(&mut self, id: Option<UserId>, label: &str) -> Result<VertexId> {
        let number = self.next_number();
        let id = id.unwrap_or_else(|| Self::automatic(number));
        if self.find_vertex(&id).is_some() {
            return Err(Error::new(ErrorKind::DuplicateId, format!("a vertex with id {id} exists already")));
        }
        let vertex = VertexId::from_bits(number);
        self.vertices.insert(vertex, Vertex { id, label: label.into(), properties: Vec::new() });
        Ok(vertex)
    }

    /// Adds an edge; fails if the id is taken or an end does not exist.
    pub fn add_edge(&mut self, id: Option<UserId>, label: &str, source: VertexId, target: VertexId) -> Result<EdgeId> {
        let number = self.next_number();
        let id = id.unwrap_or_else(|| Self::automatic(number));
        if self.find_edge(&id).is_some() {
            return Err(Error::new(ErrorKind::DuplicateId, format!("an edge with id {id} exists already")));
        }
        self.vertex(source)?;
        self.vertex(target)?;
        let edge = EdgeId::from_bits(number);
        self.edges.insert(edge, Edge { id, label: label.into(), source, target, properties: Vec::new() });
        Ok(edge)
    }

    /// The number of a key; a new key gets a new number.
    pub fn intern_key(&mut self, name: &str) -> KeyId {
        let at = self.keys.iter().position(|k| k == name).unwrap_or_else(|| {
            self.keys.push(name.into());
            self.keys.len() - 1
        });
        KeyId(u32::try_from(at).expect("a test has few keys"))
    }

    /// The name of a key.
    pub fn key_name(&self, key: KeyId) -> SmolStr {
        self.keys[key.0 as usize].clone()
    }

    /// Sets a property of a vertex, with these meta-properties. If a set has the value already, the value gets them.
    pub fn set_vertex_property(
        &mut self,
        vertex: VertexId,
        cardinality: Cardinality,
        key: &str,
        value: Value,
        meta: &[(SmolStr, Value)],
    ) -> Result<()> {
        let key = self.intern_key(key);
        let meta: Vec<(KeyId, Value)> = meta.iter().map(|(key, v)| (self.intern_key(key), v.clone())).collect();
        let properties = &mut self.vertices.get_mut(&vertex).ok_or_else(gone)?.properties;
        if cardinality == Cardinality::Single {
            let mut single = VertexProperty { key, ordinal: 0, value, meta: Vec::new() };
            meta.into_iter().for_each(|(key, value)| put(&mut single.meta, key, value));
            // The first value keeps its position, as in a map.
            match properties.iter().position(|p| p.key == key) {
                Some(at) => {
                    properties[at] = single;
                    let mut index = 0;
                    properties.retain(|p| {
                        index += 1;
                        p.key != key || index == at + 1
                    });
                }
                None => properties.push(single),
            }
            return Ok(());
        }
        let same = |p: &VertexProperty| p.key == key && mangrove_graph::compare::equivalent(&p.value, &value);
        let known = properties.iter().position(|p| cardinality == Cardinality::Set && same(p));
        let at = known.unwrap_or_else(|| {
            let ordinal = properties.iter().filter(|p| p.key == key).map(|p| p.ordinal + 1).max().unwrap_or(0);
            properties.push(VertexProperty { key, ordinal, value, meta: Vec::new() });
            properties.len() - 1
        });
        meta.into_iter().for_each(|(key, value)| put(&mut properties[at].meta, key, value));
        Ok(())
    }

    /// Sets a meta-property of a value of a vertex.
    pub fn set_meta_property(&mut self, of: &VertexPropertyValue, key: &str, value: Value) -> Result<()> {
        let key = self.intern_key(key);
        let properties = &mut self.vertices.get_mut(&of.vertex).ok_or_else(gone)?.properties;
        let owner = properties.iter_mut().find(|p| (p.key, p.ordinal) == (of.key, of.ordinal)).ok_or_else(gone)?;
        put(&mut owner.meta, key, value);
        Ok(())
    }

    /// Removes every value of an element under a key.
    pub fn remove_key(&mut self, element: &Value, key: &str) -> Result<()> {
        let key = self.intern_key(key);
        match element {
            Value::Vertex(v) => self.vertices.get_mut(v).ok_or_else(gone)?.properties.retain(|p| p.key != key),
            Value::Edge(e) => self.edges.get_mut(e).ok_or_else(gone)?.properties.retain(|(k, _)| *k != key),
            other => return Err(Error::evaluation(format!("a {} has no properties to remove", other.type_name()))),
        }
        Ok(())
    }

    /// Sets a property of an edge.
    pub fn set_edge_property(&mut self, edge: EdgeId, key: &str, value: Value) -> Result<()> {
        let key = self.intern_key(key);
        put(&mut self.edges.get_mut(&edge).ok_or_else(gone)?.properties, key, value);
        Ok(())
    }

    /// Removes a vertex and its edges, an edge, or a property. If it does not exist, nothing happens.
    pub fn remove(&mut self, object: &Value) -> Result<()> {
        match object {
            Value::Vertex(v) => {
                self.vertices.remove(v);
                self.edges.retain(|_, e| e.source != *v && e.target != *v);
            }
            Value::Edge(e) => {
                self.edges.remove(e);
            }
            Value::VertexProperty(p) => {
                if let Some(vertex) = self.vertices.get_mut(&p.vertex) {
                    vertex.properties.retain(|q| (q.key, q.ordinal) != (p.key, p.ordinal));
                }
            }
            Value::Property(p) => {
                let properties = match p.owner {
                    PropertyOwner::Edge(e) => self.edges.get_mut(&e).map(|edge| &mut edge.properties),
                    PropertyOwner::VertexProperty(v, key, ordinal) => self.vertices.get_mut(&v).and_then(|vertex| {
                        let mut values = vertex.properties.iter_mut();
                        values.find(|q| (q.key, q.ordinal) == (key, ordinal)).map(|owner| &mut owner.meta)
                    }),
                };
                if let Some(properties) = properties {
                    properties.retain(|(key, _)| *key != p.key);
                }
            }
            other => return Err(Error::evaluation(format!("a {} cannot be dropped", other.type_name()))),
        }
        Ok(())
    }

    /// All vertices, in order of insertion.
    pub fn vertices(&self) -> impl Iterator<Item = (VertexId, &Vertex)> {
        self.vertices.iter().map(|(id, v)| (*id, v))
    }

    /// All edges, in order of insertion.
    pub fn edges(&self) -> impl Iterator<Item = (EdgeId, &Edge)> {
        self.edges.iter().map(|(id, e)| (*id, e))
    }

    /// The vertex of this id; it must exist.
    pub fn vertex(&self, id: VertexId) -> Result<&Vertex> {
        self.vertices.get(&id).ok_or_else(gone)
    }

    /// The edge of this id; it must exist.
    pub fn edge(&self, id: EdgeId) -> Result<&Edge> {
        self.edges.get(&id).ok_or_else(gone)
    }

    /// The vertex of this user id.
    pub fn find_vertex(&self, id: &UserId) -> Option<VertexId> {
        self.vertices().find(|(_, v)| v.id == *id).map(|(v, _)| v)
    }

    /// The edge of this user id.
    pub fn find_edge(&self, id: &UserId) -> Option<EdgeId> {
        self.edges().find(|(_, e)| e.id == *id).map(|(e, _)| e)
    }

    /// The edges of a vertex, each with the vertex at its other end. Outgoing edges come first; `Both` has a self-loop
    /// twice.
    pub fn incident(&self, vertex: VertexId, direction: Direction) -> Vec<(EdgeId, VertexId)> {
        let mut found = Vec::new();
        if direction != Direction::In {
            found.extend(self.edges().filter(|(_, e)| e.source == vertex).map(|(id, e)| (id, e.target)));
        }
        if direction != Direction::Out {
            found.extend(self.edges().filter(|(_, e)| e.target == vertex).map(|(id, e)| (id, e.source)));
        }
        found
    }

    /// The properties of a vertex, an edge or a vertex property, as property objects.
    pub fn properties(&self, element: &Value) -> Result<Vec<Value>> {
        Ok(match element {
            Value::Vertex(vertex) => self
                .vertex(*vertex)?
                .properties
                .iter()
                .map(|p| {
                    let (vertex, key, ordinal, value) = (*vertex, p.key, p.ordinal, p.value.clone());
                    let property = VertexPropertyValue { vertex, key, ordinal, value, meta: p.meta.clone().into() };
                    Value::VertexProperty(property.into())
                })
                .collect(),
            Value::Edge(edge) => self
                .edge(*edge)?
                .properties
                .iter()
                .map(|(key, value)| plain_property(PropertyOwner::Edge(*edge), *key, value))
                .collect(),
            // The current value, not the value at the time when the traverser reached the property.
            Value::VertexProperty(of) => self
                .vertices
                .get(&of.vertex)
                .and_then(|v| v.properties.iter().find(|p| (p.key, p.ordinal) == (of.key, of.ordinal)))
                .map_or(&[][..], |p| &p.meta)
                .iter()
                .map(|(key, value)| {
                    plain_property(PropertyOwner::VertexProperty(of.vertex, of.key, of.ordinal), *key, value)
                })
                .collect(),
            other => {
                return Err(Error::evaluation(format!(
                    "a {} has no properties: an element is needed",
                    other.type_name()
                )));
            }
        })
    }

    /// The traversals that build this graph from an empty one: one for each vertex, then one for each edge.
    pub fn script(&self) -> Vec<Bytecode> {
        let vertices = self.vertices().map(|(_, v)| {
            let mut steps = vec![
                step("addV", [Argument::Value(Value::String(v.label.clone()))]),
                step("property", [token(Token::Id), Argument::Value(v.id.to_value())]),
            ];
            for p in &v.properties {
                let several = v.properties.iter().filter(|q| q.key == p.key).count() > 1;
                steps.push(self.property_step(p.key, &p.value, several, &p.meta));
            }
            bytecode(steps)
        });
        let edges = self.edges().map(|(_, e)| {
            let end = |v: VertexId| nested([step("V", [Argument::Value(self.vertices[&v].id.to_value())])]);
            let mut steps = vec![
                step("addE", [Argument::Value(Value::String(e.label.clone()))]),
                step("from", [end(e.source)]),
                step("to", [end(e.target)]),
                step("property", [token(Token::Id), Argument::Value(e.id.to_value())]),
            ];
            steps.extend(e.properties.iter().map(|(key, value)| self.property_step(*key, value, false, &[])));
            bytecode(steps)
        });
        vertices.chain(edges).collect()
    }

    fn property_step(&self, key: KeyId, value: &Value, several: bool, meta: &[(KeyId, Value)]) -> Instruction {
        let mut arguments = Vec::new();
        if several {
            arguments.push(Argument::Cardinality(Cardinality::List));
        }
        for (key, value) in std::iter::once((&key, value)).chain(meta.iter().map(|(key, value)| (key, value))) {
            arguments.push(Argument::Value(Value::String(self.key_name(*key))));
            arguments.push(Argument::Value(value.clone()));
        }
        Instruction::new("property", arguments)
    }

    /// The same graph with its elements inserted in reverse order, so every scan and every expansion has another order.
    pub fn reversed(&self) -> Result<Graph> {
        self.inserted(self.vertices.values().rev(), self.edges.values().rev())
    }

    /// The same graph with the later half of its elements inserted first. Unlike reversal, this changes palindromes,
    /// too.
    pub fn rotated(&self) -> Result<Graph> {
        let (vertex_half, edge_half) = (self.vertices.len() / 2, self.edges.len() / 2);
        self.inserted(
            self.vertices.values().skip(vertex_half).chain(self.vertices.values().take(vertex_half)),
            self.edges.values().skip(edge_half).chain(self.edges.values().take(edge_half)),
        )
    }

    /// The same graph with its elements inserted in this order.
    fn inserted<'a>(
        &'a self,
        vertices: impl Iterator<Item = &'a Vertex>,
        edges: impl Iterator<Item = &'a Edge>,
    ) -> Result<Graph> {
        let mut graph = Graph { keys: self.keys.clone(), ..Graph::new() };
        for vertex in vertices {
            let made = graph.add_vertex(Some(vertex.id.clone()), &vertex.label)?;
            graph.vertices.insert(made, vertex.clone());
        }
        for edge in edges {
            let end = |v: &VertexId| graph.find_vertex(&self.vertices[v].id).ok_or_else(gone);
            let (source, target) = (end(&edge.source)?, end(&edge.target)?);
            let made = graph.add_edge(Some(edge.id.clone()), &edge.label, source, target)?;
            graph.edges.insert(made, Edge { source, target, ..edge.clone() });
        }
        Ok(graph)
    }

    /// The graph as text for reports, one element a line.
    pub fn describe(&self) -> String {
        let mut text = String::new();
        for (_, v) in self.vertices() {
            let meta =
                |p: &VertexProperty| p.meta.iter().map(|(k, v)| (self.key_name(*k), v.clone())).collect::<Vec<_>>();
            let properties: Vec<_> = v.properties.iter().map(|p| (self.key_name(p.key), &p.value, meta(p))).collect();
            writeln!(text, "v[{}] {} {properties:?}", v.id, v.label).expect("a string takes every write");
        }
        for (_, e) in self.edges() {
            let (source, target) = (&self.vertices[&e.source].id, &self.vertices[&e.target].id);
            let properties: Vec<_> = e.properties.iter().map(|(k, v)| (self.key_name(*k), v)).collect();
            writeln!(text, "e[{}] {source}-{}->{target} {properties:?}", e.id, e.label)
                .expect("a string takes every write");
        }
        text
    }
}

/// Replaces the value under a key, or appends the key.
fn put(properties: &mut Vec<(KeyId, Value)>, key: KeyId, value: Value) {
    match properties.iter_mut().find(|(known, _)| *known == key) {
        Some((_, old)) => *old = value,
        None => properties.push((key, value)),
    }
}

fn plain_property(owner: PropertyOwner, key: KeyId, value: &Value) -> Value {
    Value::Property(PropertyValue { owner, key, value: value.clone() }.into())
}

fn gone() -> Error {
    Error::new(ErrorKind::NotFound, "the element was removed")
}

/// TinkerPop's toy graph `modern`, with the ids that TinkerPop's documentation uses.
pub fn modern() -> Graph {
    let mut graph = Graph::new();
    let people = [(1, "marko", 29), (2, "vadas", 27), (4, "josh", 32), (6, "peter", 35)];
    let software = [(3, "lop"), (5, "ripple")];
    let id = |n: i32| UserId::from_value(&Value::I32(n));
    let built = "the toy graph's ids and keys are well formed";
    for n in 1..=6 {
        if let Some((_, name, age)) = people.iter().find(|p| p.0 == n) {
            let v = graph.add_vertex(id(n), "person").expect(built);
            graph.set_vertex_property(v, Cardinality::Single, "name", (*name).into(), &[]).expect(built);
            graph.set_vertex_property(v, Cardinality::Single, "age", Value::I32(*age), &[]).expect(built);
        } else if let Some((_, name)) = software.iter().find(|s| s.0 == n) {
            let v = graph.add_vertex(id(n), "software").expect(built);
            graph.set_vertex_property(v, Cardinality::Single, "name", (*name).into(), &[]).expect(built);
            graph.set_vertex_property(v, Cardinality::Single, "lang", "java".into(), &[]).expect(built);
        }
    }
    let edges = [
        (7, 1, "knows", 2, 0.5),
        (8, 1, "knows", 4, 1.0),
        (9, 1, "created", 3, 0.4),
        (10, 4, "created", 5, 1.0),
        (11, 4, "created", 3, 0.4),
        (12, 6, "created", 3, 0.2),
    ];
    for (n, source, label, target, weight) in edges {
        let end = |graph: &Graph, n: i64| graph.find_vertex(&UserId::int(n)).expect(built);
        let (source, target) = (end(&graph, source), end(&graph, target));
        let e = graph.add_edge(id(n), label, source, target).expect(built);
        graph.set_edge_property(e, "weight", Value::F64(weight)).expect(built);
    }
    graph
}
