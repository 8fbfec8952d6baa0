//! The column of current objects: the one column that every batch has.

use mangrove_graph::{EdgeId, Value, VertexId};

use crate::rows::numbers::{NumberColumn, NumberSlice};

/// The current objects of a batch, as tight as their kinds allow.
#[derive(Clone, Debug, PartialEq)]
pub enum ObjectColumn {
    /// Vertices only.
    Vertices(Vec<VertexId>),
    /// Edges only.
    Edges(Vec<EdgeId>),
    /// Numbers of one type only (STEPS-12).
    Numbers(NumberColumn),
    /// Objects of any kind.
    Values(Vec<Value>),
}

impl Default for ObjectColumn {
    /// No objects.
    fn default() -> Self {
        ObjectColumn::Values(Vec::new())
    }
}

impl ObjectColumn {
    /// Returns the number of objects.
    pub fn len(&self) -> usize {
        match self {
            ObjectColumn::Vertices(v) => v.len(),
            ObjectColumn::Edges(v) => v.len(),
            ObjectColumn::Numbers(v) => v.len(),
            ObjectColumn::Values(v) => v.len(),
        }
    }

    /// Returns true if there are no objects.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the object of a row.
    pub fn get(&self, row: usize) -> Value {
        match self {
            ObjectColumn::Vertices(v) => Value::Vertex(v[row]),
            ObjectColumn::Edges(v) => Value::Edge(v[row]),
            ObjectColumn::Numbers(v) => v.slice().value(row),
            ObjectColumn::Values(v) => v[row].clone(),
        }
    }

    /// Returns the objects of a mixed column. There are none in a column of one type, whose objects point to nothing.
    pub fn values(&self) -> &[Value] {
        match self {
            ObjectColumn::Vertices(_) | ObjectColumn::Edges(_) | ObjectColumn::Numbers(_) => &[],
            ObjectColumn::Values(values) => values,
        }
    }

    /// Returns the objects of a column of numbers.
    pub(crate) fn numbers(&self) -> Option<NumberSlice<'_>> {
        match self {
            ObjectColumn::Numbers(numbers) => Some(numbers.slice()),
            ObjectColumn::Vertices(_) | ObjectColumn::Edges(_) | ObjectColumn::Values(_) => None,
        }
    }

    /// Returns the same objects, numbers as values.
    pub(crate) fn without_numbers(self) -> ObjectColumn {
        match self {
            ObjectColumn::Numbers(numbers) => ObjectColumn::Values(numbers.slice().values().collect()),
            other => other,
        }
    }

    /// Returns the objects of these rows.
    pub fn gather(&self, rows: &[u32]) -> ObjectColumn {
        match self {
            ObjectColumn::Vertices(v) => ObjectColumn::Vertices(rows.iter().map(|&r| v[r as usize]).collect()),
            ObjectColumn::Edges(v) => ObjectColumn::Edges(rows.iter().map(|&r| v[r as usize]).collect()),
            ObjectColumn::Numbers(v) => ObjectColumn::Numbers(v.gather(rows)),
            ObjectColumn::Values(v) => ObjectColumn::Values(rows.iter().map(|&r| v[r as usize].clone()).collect()),
        }
    }

    /// Returns all objects as values.
    pub fn into_values(self) -> Vec<Value> {
        match self {
            ObjectColumn::Vertices(v) => v.into_iter().map(Value::Vertex).collect(),
            ObjectColumn::Edges(v) => v.into_iter().map(Value::Edge).collect(),
            ObjectColumn::Numbers(v) => v.slice().values().collect(),
            ObjectColumn::Values(v) => v,
        }
    }

    /// Returns the tightest column for these values.
    pub fn from_values(values: Vec<Value>) -> ObjectColumn {
        let vertices = |v: &Value| match v {
            Value::Vertex(id) => Some(*id),
            _ => None,
        };
        let edges = |v: &Value| match v {
            Value::Edge(id) => Some(*id),
            _ => None,
        };
        match values.first() {
            Some(Value::Vertex(_)) => match values.iter().map(vertices).collect() {
                Some(ids) => ObjectColumn::Vertices(ids),
                None => ObjectColumn::Values(values),
            },
            Some(Value::Edge(_)) => match values.iter().map(edges).collect() {
                Some(ids) => ObjectColumn::Edges(ids),
                None => ObjectColumn::Values(values),
            },
            _ => ObjectColumn::Values(values),
        }
    }

    /// Appends another column.
    pub fn append(&mut self, other: ObjectColumn) {
        if self.is_empty() {
            *self = other;
            return;
        }
        match (&mut *self, other) {
            (ObjectColumn::Vertices(a), ObjectColumn::Vertices(b)) => a.extend(b),
            (ObjectColumn::Edges(a), ObjectColumn::Edges(b)) => a.extend(b),
            (ObjectColumn::Numbers(a), ObjectColumn::Numbers(b)) => {
                if let Err(b) = a.append(b) {
                    self.append_values(ObjectColumn::Numbers(b));
                }
            }
            (ObjectColumn::Values(a), b) => a.extend(b.into_values()),
            (_, b) => self.append_values(b),
        }
    }

    /// Appends a column of another type. The result is a mixed column.
    fn append_values(&mut self, other: ObjectColumn) {
        let mut values = std::mem::take(self).into_values();
        values.extend(other.into_values());
        *self = ObjectColumn::Values(values);
    }
}

#[cfg(test)]
mod tests {
    use mangrove_graph::{NumberType, TabletId};

    use super::*;

    fn numbers(kind: NumberType, numbers: Vec<i64>) -> ObjectColumn {
        ObjectColumn::Numbers(NumberColumn::of_integers(kind, numbers).unwrap())
    }

    /// Whatever the types of two columns, the joined one has the objects of both.
    #[test]
    fn columns_of_any_types_join() {
        let columns = [
            ObjectColumn::default(),
            ObjectColumn::Vertices(vec![VertexId::new(TabletId(0), 1)]),
            ObjectColumn::Edges(vec![EdgeId::from_bits(1)]),
            numbers(NumberType::I32, vec![1, 2]),
            numbers(NumberType::I64, vec![1, 2]),
            ObjectColumn::Numbers(NumberColumn::of_floats(NumberType::F64, vec![0.5]).unwrap()),
            ObjectColumn::Values(vec![Value::Null, 3.into()]),
        ];
        for first in &columns {
            for second in &columns {
                let mut joined = first.clone();
                joined.append(second.clone());
                let expected = [first.clone().into_values(), second.clone().into_values()].concat();
                assert_eq!(joined.len(), expected.len());
                assert_eq!((0..joined.len()).map(|row| joined.get(row)).collect::<Vec<_>>(), expected);
                let reversed: Vec<u32> = (0..joined.len() as u32).rev().collect();
                let values = joined.gather(&reversed).without_numbers().into_values();
                assert_eq!(values, expected.into_iter().rev().collect::<Vec<_>>());
            }
        }
        let mut joined = numbers(NumberType::I32, vec![1]);
        joined.append(numbers(NumberType::I32, vec![2]));
        assert_eq!(joined, numbers(NumberType::I32, vec![1, 2]), "columns of one type stay a column of that type");
    }
}
