//! The column of current objects: the one column that every batch has.

use mangrove_graph::{EdgeId, Value, VertexId};

/// The current objects of a batch, as tight as their kinds allow.
#[derive(Clone, Debug, PartialEq)]
pub enum ObjectColumn {
    /// Vertices only.
    Vertices(Vec<VertexId>),
    /// Edges only.
    Edges(Vec<EdgeId>),
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
            ObjectColumn::Values(v) => v[row].clone(),
        }
    }

    /// Returns the objects of a mixed column; none for a column of vertices or of edges.
    pub fn values(&self) -> &[Value] {
        match self {
            ObjectColumn::Vertices(_) | ObjectColumn::Edges(_) => &[],
            ObjectColumn::Values(values) => values,
        }
    }

    /// Returns the objects of these rows.
    pub fn gather(&self, rows: &[u32]) -> ObjectColumn {
        match self {
            ObjectColumn::Vertices(v) => ObjectColumn::Vertices(rows.iter().map(|&r| v[r as usize]).collect()),
            ObjectColumn::Edges(v) => ObjectColumn::Edges(rows.iter().map(|&r| v[r as usize]).collect()),
            ObjectColumn::Values(v) => ObjectColumn::Values(rows.iter().map(|&r| v[r as usize].clone()).collect()),
        }
    }

    /// Returns all objects as values.
    pub fn into_values(self) -> Vec<Value> {
        match self {
            ObjectColumn::Vertices(v) => v.into_iter().map(Value::Vertex).collect(),
            ObjectColumn::Edges(v) => v.into_iter().map(Value::Edge).collect(),
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
            (ObjectColumn::Values(a), b) => a.extend(b.into_values()),
            (_, b) => {
                let mut values = std::mem::replace(self, ObjectColumn::Values(Vec::new())).into_values();
                values.extend(b.into_values());
                *self = ObjectColumn::Values(values);
            }
        }
    }
}
