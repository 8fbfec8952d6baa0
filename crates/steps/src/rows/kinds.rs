//! A column split by the kind of its objects, so that the graph is read once for each kind.

use std::borrow::Cow;

use mangrove_graph::{EdgeId, Value, VertexId};

use crate::rows::column::ObjectColumn;

/// The objects of one kind and their rows.
pub(crate) struct KindMembers<'a, T: Clone> {
    /// The objects, in row order.
    pub items: Cow<'a, [T]>,
    /// Their rows, ascending. `None` if the column has no other objects: the index of an object is its row.
    rows: Option<Vec<u32>>,
}

impl<T: Clone + 'static> KindMembers<'_, T> {
    const NONE: KindMembers<'static, T> = KindMembers { items: Cow::Owned(Vec::new()), rows: None };

    /// Returns the row of the object at an index.
    pub fn row(&self, at: usize) -> usize {
        self.rows.as_ref().map_or(at, |rows| rows[at] as usize)
    }

    /// Returns true if there are no objects of this kind.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}

/// A column split by kind.
pub(crate) struct Kinds<'a> {
    /// The vertices of the column.
    pub vertices: KindMembers<'a, VertexId>,
    /// The edges of the column.
    pub edges: KindMembers<'a, EdgeId>,
    /// All other objects, with their rows. Numbers of a typed column become values here.
    others: Vec<(usize, Cow<'a, Value>)>,
}

impl<'a> Kinds<'a> {
    /// Returns all objects that are neither vertices nor edges, with their rows.
    pub fn others(&self) -> impl Iterator<Item = (usize, &Value)> {
        self.others.iter().map(|(row, value)| (*row, &**value))
    }

    /// Returns true if the column has vertices and edges only.
    pub fn are_elements(&self) -> bool {
        self.others.is_empty()
    }

    /// Returns the vertices if the column holds nothing else; the index of each is its row.
    pub fn all_vertices(&self) -> Option<&[VertexId]> {
        let is_all = self.vertices.rows.is_none() && self.edges.is_empty() && self.others.is_empty();
        is_all.then_some(&*self.vertices.items)
    }

    /// Splits a column.
    pub fn of(column: &'a ObjectColumn) -> Self {
        let mut kinds = Kinds { vertices: KindMembers::NONE, edges: KindMembers::NONE, others: Vec::new() };
        match column {
            ObjectColumn::Vertices(ids) => kinds.vertices.items = Cow::Borrowed(ids),
            ObjectColumn::Edges(ids) => kinds.edges.items = Cow::Borrowed(ids),
            ObjectColumn::Numbers(numbers) => {
                kinds.others = numbers.slice().values().map(Cow::Owned).enumerate().collect();
            }
            ObjectColumn::Values(values) => {
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
                        other => kinds.others.push((row, Cow::Borrowed(other))),
                    }
                }
                kinds.vertices = KindMembers { items: Cow::Owned(vertices), rows: Some(vertex_rows) };
                kinds.edges = KindMembers { items: Cow::Owned(edges), rows: Some(edge_rows) };
            }
        }
        kinds
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::NumberColumn;
    use mangrove_graph::{NumberType, TabletId};

    #[test]
    fn every_object_keeps_its_row() {
        let v = |slot| VertexId::new(TabletId(1), slot);
        let column = ObjectColumn::Values(vec![Value::I32(1), v(7).into(), EdgeId::from_bits(3).into(), v(8).into()]);
        let kinds = Kinds::of(&column);
        assert_eq!(&kinds.vertices.items[..], &[v(7), v(8)]);
        assert_eq!((kinds.vertices.row(0), kinds.vertices.row(1), kinds.edges.row(0)), (1, 3, 2));
        assert_eq!(kinds.others().collect::<Vec<_>>(), vec![(0, &Value::I32(1))]);
        let numbers = NumberColumn::of_integers(NumberType::I16, vec![5, 6]).unwrap();
        let numbers = ObjectColumn::Numbers(numbers);
        let kinds = Kinds::of(&numbers);
        assert_eq!(kinds.others().collect::<Vec<_>>(), vec![(0, &Value::I16(5)), (1, &Value::I16(6))]);
        assert!(!kinds.are_elements() && kinds.all_vertices().is_none());
        let pure = ObjectColumn::Vertices(vec![v(7), v(8)]);
        assert_eq!(Kinds::of(&pure).vertices.row(1), 1);
    }
}
