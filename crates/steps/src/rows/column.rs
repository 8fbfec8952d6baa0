//! The column of current objects: the one column that every batch has.

use mangrove_graph::{EdgeId, Value, VertexId};

/// The current objects of a batch, as tight as their kinds allow.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// Vertices only.
    Vertices(Vec<VertexId>),
    /// Edges only.
    Edges(Vec<EdgeId>),
    /// Anything.
    Values(Vec<Value>),
}

impl Column {
    /// Returns the number of objects.
    pub fn len(&self) -> usize {
        match self {
            Column::Vertices(v) => v.len(),
            Column::Edges(v) => v.len(),
            Column::Values(v) => v.len(),
        }
    }

    /// Returns true if there are no objects.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the object of a row.
    pub fn get(&self, row: usize) -> Value {
        match self {
            Column::Vertices(v) => Value::Vertex(v[row]),
            Column::Edges(v) => Value::Edge(v[row]),
            Column::Values(v) => v[row].clone(),
        }
    }

    /// Returns the objects of a mixed column; none for a column of vertices or of edges.
    pub fn values(&self) -> &[Value] {
        match self {
            Column::Vertices(_) | Column::Edges(_) => &[],
            Column::Values(values) => values,
        }
    }

    /// Returns the objects of these rows.
    pub fn gather(&self, rows: &[u32]) -> Column {
        match self {
            Column::Vertices(v) => Column::Vertices(rows.iter().map(|&r| v[r as usize]).collect()),
            Column::Edges(v) => Column::Edges(rows.iter().map(|&r| v[r as usize]).collect()),
            Column::Values(v) => Column::Values(rows.iter().map(|&r| v[r as usize].clone()).collect()),
        }
    }

    /// Returns all objects as values.
    pub fn into_values(self) -> Vec<Value> {
        match self {
            Column::Vertices(v) => v.into_iter().map(Value::Vertex).collect(),
            Column::Edges(v) => v.into_iter().map(Value::Edge).collect(),
            Column::Values(v) => v,
        }
    }

    /// Returns the tightest column for these values.
    pub fn from_values(values: Vec<Value>) -> Column {
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
                Some(ids) => Column::Vertices(ids),
                None => Column::Values(values),
            },
            Some(Value::Edge(_)) => match values.iter().map(edges).collect() {
                Some(ids) => Column::Edges(ids),
                None => Column::Values(values),
            },
            _ => Column::Values(values),
        }
    }

    /// Appends another column.
    pub fn append(&mut self, other: Column) {
        if self.is_empty() {
            *self = other;
            return;
        }
        match (&mut *self, other) {
            (Column::Vertices(a), Column::Vertices(b)) => a.extend(b),
            (Column::Edges(a), Column::Edges(b)) => a.extend(b),
            (Column::Values(a), b) => a.extend(b.into_values()),
            (_, b) => {
                let mut values = std::mem::replace(self, Column::Values(Vec::new())).into_values();
                values.extend(b.into_values());
                *self = Column::Values(values);
            }
        }
    }
}
