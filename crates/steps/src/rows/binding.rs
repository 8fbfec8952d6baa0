//! The objects that rows have under step labels, as columns.
//!
//! A step label whose newest object alone is read needs no path. The plan gives such a label a number
//! ([`Requirements::bindings`](mangrove_plan::physical::Requirements::bindings)), and rows carry a column for it: eight
//! bytes a row if the objects are vertices or edges.
//!
//! - **STEPS-11.** A binding column of a row holds what a path would hold under that label: the object that the label
//!   was last given to. So whatever replaces the path of a row replaces its bindings, too.

use mangrove_graph::{EdgeId, Value, VertexId};

use crate::limits::sizes::Sizes;
use crate::rows::column::ObjectColumn;

/// The object of each row under one step label.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum BindingColumn {
    /// No row has one.
    #[default]
    Unset,
    /// Each row has a vertex.
    Vertices(Vec<VertexId>),
    /// Each row has an edge.
    Edges(Vec<EdgeId>),
    /// Each row has an object of any kind, or none.
    Values(Vec<Option<Value>>),
}

impl From<&ObjectColumn> for BindingColumn {
    fn from(objects: &ObjectColumn) -> Self {
        match objects {
            ObjectColumn::Vertices(ids) => BindingColumn::Vertices(ids.clone()),
            ObjectColumn::Edges(ids) => BindingColumn::Edges(ids.clone()),
            ObjectColumn::Numbers(numbers) => BindingColumn::Values(numbers.slice().values().map(Some).collect()),
            ObjectColumn::Values(values) => BindingColumn::Values(values.iter().cloned().map(Some).collect()),
        }
    }
}

fn gather<T: Clone>(column: &[T], rows: &[u32]) -> Vec<T> {
    rows.iter().map(|&row| column[row as usize].clone()).collect()
}

impl BindingColumn {
    /// Returns the object of a row, if it has one.
    pub fn get(&self, row: usize) -> Option<Value> {
        match self {
            BindingColumn::Unset => None,
            BindingColumn::Vertices(ids) => Some(Value::Vertex(ids[row])),
            BindingColumn::Edges(ids) => Some(Value::Edge(ids[row])),
            BindingColumn::Values(values) => values[row].clone(),
        }
    }

    /// Returns the vertex of a row; `None` if it has no object, or another one.
    pub fn vertex(&self, row: usize) -> Option<VertexId> {
        match self {
            BindingColumn::Unset | BindingColumn::Edges(_) => None,
            BindingColumn::Vertices(ids) => Some(ids[row]),
            BindingColumn::Values(values) => match values[row] {
                Some(Value::Vertex(id)) => Some(id),
                _ => None,
            },
        }
    }

    /// Returns the objects of these rows.
    pub fn gather(&self, rows: &[u32]) -> BindingColumn {
        match self {
            BindingColumn::Unset => BindingColumn::Unset,
            BindingColumn::Vertices(ids) => BindingColumn::Vertices(gather(ids, rows)),
            BindingColumn::Edges(ids) => BindingColumn::Edges(gather(ids, rows)),
            BindingColumn::Values(values) => BindingColumn::Values(gather(values, rows)),
        }
    }

    /// Returns the object of one row, `count` times.
    pub fn repeat(&self, row: usize, count: usize) -> BindingColumn {
        match self {
            BindingColumn::Unset => BindingColumn::Unset,
            BindingColumn::Vertices(ids) => BindingColumn::Vertices(vec![ids[row]; count]),
            BindingColumn::Edges(ids) => BindingColumn::Edges(vec![ids[row]; count]),
            BindingColumn::Values(values) => BindingColumn::Values(vec![values[row].clone(); count]),
        }
    }

    /// Appends the column of `there` other rows to this one of `here` rows.
    pub fn append(&mut self, here: usize, other: BindingColumn, there: usize) {
        match (&mut *self, other) {
            (BindingColumn::Unset, BindingColumn::Unset) => {}
            (BindingColumn::Vertices(a), BindingColumn::Vertices(b)) => a.extend(b),
            (BindingColumn::Edges(a), BindingColumn::Edges(b)) => a.extend(b),
            (_, other) => {
                let mut values = std::mem::take(self).into_options(here);
                values.extend(other.into_options(there));
                *self = BindingColumn::Values(values);
            }
        }
    }

    /// Returns the objects of all `count` rows.
    fn into_options(self, count: usize) -> Vec<Option<Value>> {
        match self {
            BindingColumn::Unset => vec![None; count],
            BindingColumn::Vertices(ids) => ids.into_iter().map(|id| Some(Value::Vertex(id))).collect(),
            BindingColumn::Edges(ids) => ids.into_iter().map(|id| Some(Value::Edge(id))).collect(),
            BindingColumn::Values(values) => values,
        }
    }

    /// Returns the objects that are neither vertices nor edges by the type of the column.
    pub fn values(&self) -> impl Iterator<Item = &Value> {
        let values: &[Option<Value>] = match self {
            BindingColumn::Values(values) => values,
            BindingColumn::Unset | BindingColumn::Vertices(_) | BindingColumn::Edges(_) => &[],
        };
        values.iter().flatten()
    }

    /// Returns the bytes of the column.
    pub fn bytes(&self, sizes: &mut Sizes) -> usize {
        match self {
            BindingColumn::Unset => 0,
            BindingColumn::Vertices(ids) => size_of_val(&ids[..]),
            BindingColumn::Edges(ids) => size_of_val(&ids[..]),
            BindingColumn::Values(values) => {
                size_of_val(&values[..]) + values.iter().flatten().map(|value| sizes.pointed_to(value)).sum::<usize>()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mangrove_graph::TabletId;

    fn vertex(slot: u64) -> VertexId {
        VertexId::new(TabletId(0), slot)
    }

    fn all(column: &BindingColumn, count: usize) -> Vec<Option<Value>> {
        (0..count).map(|row| column.get(row)).collect()
    }

    /// Whatever the types of two columns, the joined one has the objects of both.
    #[test]
    fn columns_of_any_types_join() {
        let columns = [
            BindingColumn::Unset,
            BindingColumn::Vertices(vec![vertex(1), vertex(2)]),
            BindingColumn::Edges(vec![EdgeId::from_bits(1), EdgeId::from_bits(2)]),
            BindingColumn::Values(vec![None, Some(7.into())]),
        ];
        for first in &columns {
            for second in &columns {
                let mut joined = first.clone();
                joined.append(2, second.clone(), 2);
                assert_eq!(all(&joined, 4), [all(first, 2), all(second, 2)].concat());
                assert_eq!(all(&joined.gather(&[3, 0]), 2), vec![second.get(1), first.get(0)]);
                assert_eq!(all(&joined.repeat(3, 2), 2), vec![second.get(1); 2]);
            }
        }
    }

    #[test]
    fn only_vertices_are_found_as_vertices() {
        assert_eq!(BindingColumn::Vertices(vec![vertex(1)]).vertex(0), Some(vertex(1)));
        assert_eq!(BindingColumn::Values(vec![Some(vertex(1).into())]).vertex(0), Some(vertex(1)));
        for other in [
            BindingColumn::Unset,
            BindingColumn::Edges(vec![EdgeId::from_bits(1)]),
            BindingColumn::Values(vec![None]),
            BindingColumn::Values(vec![Some(7.into())]),
        ] {
            assert_eq!(other.vertex(0), None);
        }
    }
}
