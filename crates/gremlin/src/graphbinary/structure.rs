//! Trees and graphs, which have forms of their own in GraphBinary.
//!
//! A tree is a count and as many keys, each followed by the tree below it without a type code. A graph is its vertices
//! and then its edges. They are not written like elements elsewhere: labels are bare, and an edge names its ends by
//! their ids.

use mangrove_graph::{Detached, DetachedVertexProperty, Error, GraphValue, Result, Tree, Value};
use smol_str::SmolStr;

use super::reader::{Reader, VALUE_SIZE_MIN};
use super::writer;
use crate::terms;

/// The branches of a tree.
pub(super) fn tree(out: &mut Vec<u8>, tree: &Tree) -> Result<()> {
    writer::length(out, tree.branches.len())?;
    tree.branches.iter().try_for_each(|(key, below)| {
        writer::value(out, key)?;
        self::tree(out, below)
    })
}

/// Vertices and edges.
pub(super) fn graph(out: &mut Vec<u8>, graph: &GraphValue) -> Result<()> {
    writer::length(out, graph.vertices.len())?;
    graph.vertices.iter().try_for_each(|vertex| match vertex {
        Value::Detached(element) => match element.as_ref() {
            Detached::Vertex { id, label, properties } => self::vertex(out, id, label, properties),
            _ => Err(stranger()),
        },
        _ => Err(stranger()),
    })?;
    writer::length(out, graph.edges.len())?;
    graph.edges.iter().try_for_each(|edge| match edge {
        Value::Detached(element) => match element.as_ref() {
            Detached::Edge { id, label, source, target, properties } => {
                self::edge(out, (id, label), &source.0, &target.0, properties)
            }
            _ => Err(stranger()),
        },
        _ => Err(stranger()),
    })
}

fn stranger() -> Error {
    Error::bug("a graph that reaches the wire holds detached vertices and edges")
}

fn vertex(out: &mut Vec<u8>, id: &Value, label: &str, properties: &[DetachedVertexProperty]) -> Result<()> {
    writer::value(out, id)?;
    writer::string(out, label)?;
    writer::length(out, properties.len())?;
    properties.iter().try_for_each(|property| {
        writer::value(out, &property.id)?;
        writer::string(out, &property.key)?;
        writer::value(out, &property.value)?;
        writer::null(out); // the parent
        plain_properties(out, &property.meta)
    })
}

fn edge(
    out: &mut Vec<u8>,
    (id, label): (&Value, &str),
    source: &Value,
    target: &Value,
    properties: &[(SmolStr, Value)],
) -> Result<()> {
    writer::value(out, id)?;
    writer::string(out, label)?;
    // The target stands first, and the labels of both are left out.
    for end in [target, source] {
        writer::value(out, end)?;
        writer::null(out);
    }
    writer::null(out); // the parent
    plain_properties(out, properties)
}

/// A list without its type, even where there are none: unlike elsewhere, that is what clients expect here.
fn plain_properties(out: &mut Vec<u8>, properties: &[(SmolStr, Value)]) -> Result<()> {
    writer::length(out, properties.len())?;
    properties.iter().try_for_each(|(key, value)| writer::property(out, key, value))
}

impl Reader<'_> {
    /// The branches of a tree.
    pub(super) fn tree(&mut self) -> Result<Tree> {
        let length = self.length(VALUE_SIZE_MIN + 4)?;
        let mut branches = Vec::with_capacity(self.room_for(length));
        for _ in 0..length {
            let key = self.detached_value()?;
            branches.push((key, self.nested(Self::tree)?));
        }
        Ok(Tree { branches })
    }

    /// Vertices and edges.
    pub(super) fn graph(&mut self) -> Result<GraphValue> {
        /// The smallest of both: an id, an empty label and a count.
        const ELEMENT_SIZE_MIN: usize = VALUE_SIZE_MIN + 8;
        let count = self.length(ELEMENT_SIZE_MIN)?;
        let mut graph = GraphValue::default();
        let mut labels = std::collections::HashMap::new();
        for _ in 0..count {
            let (id, label) = (self.detached_value()?, self.string()?);
            let properties = self.vertex_properties()?;
            labels.insert(mangrove_graph::compare::Equivalent(id.clone()), label.clone());
            graph.vertices.push(Value::Detached(Detached::Vertex { id, label, properties }.into()));
        }
        // An edge does not say what its ends are labeled; the vertices in front do.
        let labeled = |id: Value| {
            let label = labels.get(&mangrove_graph::compare::Equivalent(id.clone())).cloned();
            (id, label.unwrap_or_else(|| SmolStr::new_static("vertex")))
        };
        for _ in 0..self.length(ELEMENT_SIZE_MIN)? {
            let (id, label) = (self.detached_value()?, self.string()?);
            let target = self.end()?;
            let source = self.end()?;
            self.parent()?;
            let properties = self.plain_properties()?;
            let edge = Detached::Edge { id, label, source: labeled(source), target: labeled(target), properties };
            graph.edges.push(Value::Detached(edge.into()));
        }
        Ok(graph)
    }

    /// A list without its type.
    fn plain_properties(&mut self) -> Result<Vec<(SmolStr, Value)>> {
        let count = self.length(VALUE_SIZE_MIN)?;
        let items = (0..count).map(|_| self.detached_value()).collect::<Result<Vec<_>>>()?;
        self.properties_of(&items, terms::plain_property)
    }

    fn end(&mut self) -> Result<Value> {
        let id = self.detached_value()?;
        self.detached_value()?; // the label, which is left out
        Ok(id)
    }

    fn vertex_properties(&mut self) -> Result<Vec<DetachedVertexProperty>> {
        let count = self.length(2 * VALUE_SIZE_MIN)?;
        let mut properties = Vec::with_capacity(self.room_for(count));
        for _ in 0..count {
            let (id, key, value) = (self.detached_value()?, self.string()?, self.detached_value()?);
            self.parent()?;
            properties.push(DetachedVertexProperty { id, key, value, meta: self.plain_properties()? });
        }
        Ok(properties)
    }
}
