//! A column taken apart by the kind of its objects, so that the graph is read once a kind.

use std::borrow::Cow;

use mangrove_graph::{EdgeId, Value, VertexId};

use crate::rows::Column;

/// The objects of one kind, and the rows they stand in.
pub struct Members<'a, T: Clone> {
    /// The objects, in row order.
    pub items: Cow<'a, [T]>,
    /// Their rows, ascending; `None`: the column has no other objects, and an object's position is its row.
    rows: Option<Vec<u32>>,
}

impl<T: Clone + 'static> Members<'_, T> {
    const NONE: Members<'static, T> = Members { items: Cow::Owned(Vec::new()), rows: None };

    /// The row of the object at a position.
    pub fn row(&self, at: usize) -> usize {
        self.rows.as_ref().map_or(at, |rows| rows[at] as usize)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}

/// A column by kind.
pub struct Kinds<'a> {
    /// Its vertices.
    pub vertices: Members<'a, VertexId>,
    /// Its edges.
    pub edges: Members<'a, EdgeId>,
    /// What is neither, with its row.
    pub others: Vec<(usize, &'a Value)>,
}

impl<'a> Kinds<'a> {
    /// The vertices of a column of nothing else, each at the position of its row.
    pub fn all_vertices(&self) -> Option<&[VertexId]> {
        let is_all = self.vertices.rows.is_none() && self.edges.is_empty() && self.others.is_empty();
        is_all.then_some(&*self.vertices.items)
    }

    /// Takes a column apart.
    pub fn of(column: &'a Column) -> Self {
        let mut kinds = Kinds { vertices: Members::NONE, edges: Members::NONE, others: Vec::new() };
        match column {
            Column::Vertices(ids) => kinds.vertices.items = Cow::Borrowed(ids),
            Column::Edges(ids) => kinds.edges.items = Cow::Borrowed(ids),
            Column::Values(values) => {
                let (mut vertices, mut vertex_rows) = (Vec::new(), Vec::new());
                let (mut edges, mut edge_rows) = (Vec::new(), Vec::new());
                for (row, value) in values.iter().enumerate() {
                    match value {
                        Value::Vertex(id) => {
                            vertices.push(*id);
                            vertex_rows.push(row as u32);
                        }
                        Value::Edge(id) => {
                            edges.push(*id);
                            edge_rows.push(row as u32);
                        }
                        other => kinds.others.push((row, other)),
                    }
                }
                kinds.vertices = Members { items: Cow::Owned(vertices), rows: Some(vertex_rows) };
                kinds.edges = Members { items: Cow::Owned(edges), rows: Some(edge_rows) };
            }
        }
        kinds
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mangrove_graph::TabletId;

    #[test]
    fn every_object_keeps_its_row() {
        let v = |slot| VertexId::new(TabletId(1), slot);
        let column = Column::Values(vec![Value::I32(1), v(7).into(), EdgeId::from_bits(3).into(), v(8).into()]);
        let kinds = Kinds::of(&column);
        assert_eq!(&kinds.vertices.items[..], &[v(7), v(8)]);
        assert_eq!((kinds.vertices.row(0), kinds.vertices.row(1), kinds.edges.row(0)), (1, 3, 2));
        assert_eq!(kinds.others, vec![(0, &Value::I32(1))]);
        let pure = Column::Vertices(vec![v(7), v(8)]);
        assert_eq!(Kinds::of(&pure).vertices.row(1), 1);
    }
}
