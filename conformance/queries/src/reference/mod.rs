//! A second implementation of the papers' queries and of LDBC's updates: plain loops over maps.
//!
//! It reads the CSV files itself and imports nothing of the engine. It is meant to be obviously correct, so it has one
//! representation of everything: a vertex is a number, its properties are texts, and its edges are two lists for each
//! relation. Each query of a set is a function that computes in loops the answer of the traversal.

mod answers;
mod barriers;
mod cq;
mod grasper;
mod lbv;
mod load;
mod lsqb;
mod patterns;
mod templates;
mod updates;

use std::collections::{BTreeMap, HashMap};

pub use answers::answer;
pub use load::load;
pub use updates::apply;

/// A vertex: its index in [`Graph::vertices`].
pub type Vertex = usize;

/// A vertex's label, id and properties.
#[derive(Clone, Debug)]
pub struct VertexData {
    /// The first label: `Person`, `Post`, `Comment` and so on.
    pub kind: String,
    /// LDBC's id, unique within a label.
    pub id: i64,
    /// The properties except the id; dates are in milliseconds.
    pub properties: BTreeMap<String, String>,
}

/// An edge.
#[derive(Clone, Debug)]
pub struct Edge {
    /// The label.
    pub label: String,
    /// The source.
    pub from: Vertex,
    /// The target.
    pub to: Vertex,
    /// The only property of the edge, if it has one: its key, and its value, which is a number.
    pub property: Option<(String, i64)>,
}

/// A social network.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// All vertices.
    pub vertices: Vec<VertexData>,
    /// All edges.
    pub edges: Vec<Edge>,
    by_id: HashMap<(String, i64), Vertex>,
    /// By relation and vertex: indexes into `edges`.
    out: HashMap<String, HashMap<Vertex, Vec<usize>>>,
    into: HashMap<String, HashMap<Vertex, Vec<usize>>>,
}

impl Graph {
    /// Adds a vertex.
    ///
    /// # Panics
    ///
    /// If a vertex with this label and id exists.
    pub fn add_vertex(&mut self, kind: &str, id: i64, properties: BTreeMap<String, String>) -> Vertex {
        self.vertices.push(VertexData { kind: kind.to_owned(), id, properties });
        let vertex = self.vertices.len() - 1;
        assert!(self.by_id.insert((kind.to_owned(), id), vertex).is_none(), "{kind} {id} is there twice");
        vertex
    }

    /// Adds an edge.
    pub fn add_edge(&mut self, label: &str, from: Vertex, to: Vertex, property: Option<(String, i64)>) {
        let at = self.edges.len();
        self.edges.push(Edge { label: label.to_owned(), from, to, property });
        self.out.entry(label.to_owned()).or_default().entry(from).or_default().push(at);
        self.into.entry(label.to_owned()).or_default().entry(to).or_default().push(at);
    }

    /// The vertex with this label and id.
    ///
    /// # Panics
    ///
    /// If there is no such vertex.
    pub fn find(&self, kind: &str, id: i64) -> Vertex {
        self.by_id[&(kind.to_owned(), id)]
    }

    /// The vertex with this label and id, if it exists.
    pub fn get(&self, kind: &str, id: i64) -> Option<Vertex> {
        self.by_id.get(&(kind.to_owned(), id)).copied()
    }

    /// The vertices with this label.
    pub fn of_kind<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = Vertex> + 'a {
        (0..self.vertices.len()).filter(move |vertex| self.vertices[*vertex].kind == kind)
    }

    /// The outgoing edges of a vertex in a relation.
    pub fn out_edges(&self, vertex: Vertex, label: &str) -> impl Iterator<Item = &Edge> {
        self.out.get(label).and_then(|by| by.get(&vertex)).into_iter().flatten().map(|at| &self.edges[*at])
    }

    /// The incoming edges of a vertex in a relation.
    pub fn in_edges(&self, vertex: Vertex, label: &str) -> impl Iterator<Item = &Edge> {
        self.into.get(label).and_then(|by| by.get(&vertex)).into_iter().flatten().map(|at| &self.edges[*at])
    }

    /// The targets of a vertex's outgoing edges in a relation.
    pub fn out(&self, vertex: Vertex, label: &str) -> Vec<Vertex> {
        self.out_edges(vertex, label).map(|edge| edge.to).collect()
    }

    /// The sources of a vertex's incoming edges in a relation.
    pub fn into(&self, vertex: Vertex, label: &str) -> Vec<Vertex> {
        self.in_edges(vertex, label).map(|edge| edge.from).collect()
    }

    /// The friends of a person: `knows` has no direction.
    pub fn friends(&self, person: Vertex) -> Vec<Vertex> {
        let mut friends = self.out(person, "knows");
        friends.extend(self.into(person, "knows"));
        friends
    }

    /// LDBC's id of a vertex.
    pub fn id(&self, vertex: Vertex) -> i64 {
        self.vertices[vertex].id
    }

    /// Returns true if the vertex has this label.
    pub fn is(&self, vertex: Vertex, kind: &str) -> bool {
        self.vertices[vertex].kind == kind
    }

    /// The value of a property, as text.
    pub fn text(&self, vertex: Vertex, key: &str) -> Option<&str> {
        self.vertices[vertex].properties.get(key).map(String::as_str)
    }

    /// The value of a property, as a number.
    ///
    /// # Panics
    ///
    /// If the value is no number.
    pub fn number(&self, vertex: Vertex, key: &str) -> Option<i64> {
        self.text(vertex, key).map(|text| text.parse().expect("the property is a number"))
    }

    /// Returns true if the creation date of the vertex is in `[from, to)`, in milliseconds.
    pub fn created_between(&self, vertex: Vertex, from: i64, to: i64) -> bool {
        self.number(vertex, "creationDate").is_some_and(|date| from <= date && date < to)
    }
}
