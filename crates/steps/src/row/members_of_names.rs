//! `where(within("a"))`: looks for an object in the collection that a name stands for.

use std::borrow::Cow;
use std::sync::Arc;

use mangrove_graph::compare::watched::{equal, is_among};
use mangrove_graph::{EdgeId, FastSet, Result, Value, VertexId};
use mangrove_plan::logical::{Lookup, Name};

use crate::context::execution::ExecutionContext;
use crate::limits::meter::Meter;
use crate::row::operator::RowOperator;
use crate::rows::named::NamedValues;
use crate::rows::{BindingColumn, Rows};
/// The members of the collection that `within("x")` was last applied to, hashed, because many rows share one
/// collection.
#[derive(Default)]
pub(super) struct HashedMembers {
    /// The collection, kept so that no other one gets its address.
    of: Option<Value>,
    vertices: FastSet<VertexId>,
    edges: FastSet<EdgeId>,
}

/// A collection of at least this many members is hashed.
const HASHED_MEMBERS_MIN: usize = 16;

impl HashedMembers {
    /// Returns true if a value is in a collection, or equals a right side that is none.
    pub fn contain(&mut self, left: &Value, right: &Value) -> bool {
        let len = match right {
            Value::List(values) | Value::Set(values) => values.len(),
            Value::BulkSet(values) => values.len(),
            value => return equal(left, value),
        };
        let is_hashed = len >= HASHED_MEMBERS_MIN && matches!(left, Value::Vertex(_) | Value::Edge(_));
        if is_hashed && !self.of.as_ref().is_some_and(|known| is_same_collection(known, right)) {
            self.hash(right);
        }
        match (left, right) {
            (Value::Vertex(id), _) if is_hashed => self.vertices.contains(id),
            (Value::Edge(id), _) if is_hashed => self.edges.contains(id),
            (_, Value::List(values) | Value::Set(values)) => is_among(left, values.iter()),
            (_, Value::BulkSet(values)) => is_among(left, values.iter().map(|(value, _)| value)),
            _ => false,
        }
    }

    fn hash(&mut self, collection: &Value) {
        self.vertices.clear();
        self.edges.clear();
        let mut add = |value: &Value| match value {
            Value::Vertex(id) => drop(self.vertices.insert(*id)),
            Value::Edge(id) => drop(self.edges.insert(*id)),
            _ => {}
        };
        match collection {
            Value::List(values) | Value::Set(values) => values.iter().for_each(&mut add),
            Value::BulkSet(values) => values.iter().for_each(|(value, _)| add(value)),
            _ => {}
        }
        self.of = Some(collection.clone());
    }
}

fn is_same_collection(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::List(a), Value::List(b)) | (Value::Set(a), Value::Set(b)) => Arc::ptr_eq(a, b),
        (Value::BulkSet(a), Value::BulkSet(b)) => Arc::ptr_eq(a, b),
        _ => false,
    }
}

/// `where(within("a"))`, `where(without("a"))`: looks for the object in the value of a name, without cloning either.
pub(crate) struct MemberOfName {
    /// True to keep objects that are found, false to keep the others.
    found: bool,
    name: Name,
    lookup: Lookup,
    members: HashedMembers,
}

impl MemberOfName {
    /// A test that looks the name up where `lookup` says.
    pub fn new(found: bool, name: Name, lookup: Lookup) -> Self {
        MemberOfName { found, name, lookup, members: HashedMembers::default() }
    }
}

impl RowOperator for MemberOfName {
    fn apply(&mut self, mut rows: Rows, context: &ExecutionContext, meter: &mut Meter<'_>) -> Result<Rows> {
        let named = NamedValues::of(&rows, &self.name, self.lookup, context);
        let mut kept = Vec::with_capacity(rows.len());
        for row in 0..rows.len() {
            let right = match named.column() {
                Some(BindingColumn::Values(values)) => values[row].as_ref().map(Cow::Borrowed),
                _ => named.get(row, meter)?,
            };
            // A name without a value drops the row.
            let Some(right) = right else { continue };
            let left = match rows.objects.values().get(row) {
                Some(value) => Cow::Borrowed(value),
                None => Cow::Owned(rows.object(row)),
            };
            if self.members.contain(&left, &right) == self.found {
                kept.push(row as u32);
            }
        }
        rows.computed.clear();
        Ok(rows.keep(&kept))
    }
}
