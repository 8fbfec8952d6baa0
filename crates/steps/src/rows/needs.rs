//! What operators say to a view that may be late: the reads of the rows of a batch from one on.
//!
//! A need names all rows that are left of a message, not only those of the next step. Another replica may take that
//! step, and it may work on more rows at once.

use std::borrow::Cow;

use mangrove_graph::{EdgeId, Elements, KeyId, Need, Value, VertexId};

use crate::rows::column::ObjectColumn;

/// The elements in a column from a row on.
struct Found<'a> {
    vertices: Cow<'a, [VertexId]>,
    edges: Cow<'a, [EdgeId]>,
    /// The vertices of vertex properties.
    owners: Vec<VertexId>,
}

impl<'a> Found<'a> {
    const NONE: Self = Found { vertices: Cow::Borrowed(&[]), edges: Cow::Borrowed(&[]), owners: Vec::new() };

    fn of(objects: &'a ObjectColumn, from: usize) -> Self {
        match objects {
            ObjectColumn::Vertices(ids) => Found { vertices: ids.get(from..).unwrap_or_default().into(), ..Self::NONE },
            ObjectColumn::Edges(ids) => Found { edges: ids.get(from..).unwrap_or_default().into(), ..Self::NONE },
            ObjectColumn::Numbers(_) => Self::NONE,
            ObjectColumn::Values(values) => Found::of_values(values.get(from..).unwrap_or_default()),
        }
    }

    fn of_values(values: &[Value]) -> Self {
        let mut found = Self::NONE;
        for value in values {
            match value {
                Value::Vertex(id) => found.vertices.to_mut().push(*id),
                Value::Edge(id) => found.edges.to_mut().push(*id),
                Value::VertexProperty(property) => found.owners.push(property.vertex),
                _ => {}
            }
        }
        found
    }

    fn values(self, keys: Option<Vec<KeyId>>) -> Need<'a> {
        let values = |of: Elements<'a>| Need::Values { of, keys: keys.clone().map(Cow::Owned) };
        Need::all([values(Elements::Vertices(self.vertices)), values(Elements::Edges(self.edges))])
    }

    fn heads(self) -> Need<'a> {
        let Found { vertices, edges, owners } = self;
        let all = [Elements::Vertices(vertices), Elements::Edges(edges), Elements::Vertices(owners.into())];
        Need::all(all.map(Need::Heads))
    }
}

/// The values of vertices and edges under these keys; `None` means all keys.
pub(crate) fn values<'a>(objects: &'a ObjectColumn, from: usize, keys: Option<Vec<KeyId>>) -> Need<'a> {
    Found::of(objects, from).values(keys)
}

/// As [`values`], of the elements among some values.
pub(crate) fn values_among(values: &[Value], keys: Option<Vec<KeyId>>) -> Need<'static> {
    Found::of_values(values).values(keys)
}

/// The ids and labels of vertices, of edges, and of the vertices of vertex properties.
pub(crate) fn heads<'a>(objects: &'a ObjectColumn, from: usize) -> Need<'a> {
    Found::of(objects, from).heads()
}

/// As [`heads`], of the elements among some values.
pub(crate) fn heads_among(values: &[Value]) -> Need<'static> {
    Found::of_values(values).heads()
}

/// The edges, as the need that `of` makes of them.
pub(crate) fn edges<'a>(objects: &'a ObjectColumn, from: usize, of: fn(Cow<'a, [EdgeId]>) -> Need<'a>) -> Need<'a> {
    of(Found::of(objects, from).edges)
}

/// The vertices among some values.
pub(crate) fn vertices_among(values: &[Value]) -> Vec<VertexId> {
    Found::of_values(values).vertices.into_owned()
}

/// The vertices, as the need that `of` makes of them.
pub(crate) fn vertices<'a>(
    objects: &'a ObjectColumn,
    from: usize,
    of: impl FnOnce(Cow<'a, [VertexId]>) -> Need<'a>,
) -> Need<'a> {
    of(Found::of(objects, from).vertices)
}
