//! Writing trees and graphs, which have forms of their own in GraphBinary. `reader/structure.rs` reads the same forms.
//!
//! A tree is a count and as many keys, each followed by the tree below it without a type code. A graph is its vertices
//! and then its edges. They are not written like elements elsewhere: labels are strings without a type code, and an
//! edge names its ends by their ids.

use mangrove_graph::{Detached, DetachedVertexProperty, Error, GraphValue, Result, Tree, Value};
use smol_str::SmolStr;

use super::{length, null, property, string, value};

/// Appends the branches of a tree, without the tree's own type code.
pub(super) fn tree(out: &mut Vec<u8>, tree: &Tree) -> Result<()> {
    length(out, tree.branches.len())?;
    tree.branches.iter().try_for_each(|(key, below)| {
        value(out, key)?;
        self::tree(out, below)
    })
}

/// Appends the vertices and edges of a graph, without the graph's own type code.
pub(super) fn graph(out: &mut Vec<u8>, graph: &GraphValue) -> Result<()> {
    length(out, graph.vertices.len())?;
    graph.vertices.iter().try_for_each(|vertex| match vertex {
        Value::Detached(element) => match element.as_ref() {
            Detached::Vertex { id, label, properties } => self::vertex(out, id, label, properties),
            _ => Err(not_detached()),
        },
        _ => Err(not_detached()),
    })?;
    length(out, graph.edges.len())?;
    graph.edges.iter().try_for_each(|edge| match edge {
        Value::Detached(element) => match element.as_ref() {
            Detached::Edge { id, label, source, target, properties } => {
                self::edge(out, (id, label), &source.0, &target.0, properties)
            }
            _ => Err(not_detached()),
        },
        _ => Err(not_detached()),
    })
}

fn not_detached() -> Error {
    Error::bug("a graph that reaches the wire holds detached vertices and edges")
}

fn vertex(out: &mut Vec<u8>, id: &Value, label: &str, properties: &[DetachedVertexProperty]) -> Result<()> {
    value(out, id)?;
    string(out, label)?;
    length(out, properties.len())?;
    properties.iter().try_for_each(|property| {
        value(out, &property.id)?;
        string(out, &property.key)?;
        value(out, &property.value)?;
        null(out); // the parent
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
    value(out, id)?;
    string(out, label)?;
    // The target comes first, and the labels of both are left out.
    for end in [target, source] {
        value(out, end)?;
        null(out);
    }
    null(out); // the parent
    plain_properties(out, properties)
}

/// Appends a list without its type code, even if it is empty: unlike elsewhere, clients expect no null here.
fn plain_properties(out: &mut Vec<u8>, properties: &[(SmolStr, Value)]) -> Result<()> {
    length(out, properties.len())?;
    properties.iter().try_for_each(|(key, content)| property(out, key, content))
}
