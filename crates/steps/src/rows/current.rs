//! Vertex properties of traversers with their current meta-properties.
//!
//! A traverser holds a copy of a vertex property with its meta-properties ([`VertexPropertyValue`]). In a transaction
//! that writes, meta-properties may be written after the copy was made, also by the same traversal. So an operator that
//! reads meta-properties reads them from [`current`] objects.

use std::borrow::Cow;
use std::sync::Arc;

use mangrove_graph::compare::equivalent;
use mangrove_graph::{Result, Value, VertexPropertyValue};

use crate::context::execution::ExecutionContext;
use crate::rows::column::ObjectColumn;

/// Returns the objects with the current meta-properties of their vertex properties. A property that was removed or has
/// another value stays as the traverser holds it.
pub(crate) fn current<'a>(objects: &'a ObjectColumn, context: &ExecutionContext) -> Result<Cow<'a, ObjectColumn>> {
    let ObjectColumn::Values(values) = objects else { return Ok(Cow::Borrowed(objects)) };
    let held: Vec<(usize, &Arc<VertexPropertyValue>)> = match context.writer {
        None => Vec::new(),
        Some(_) => values.iter().enumerate().filter_map(|(row, value)| Some((row, property(value)?))).collect(),
    };
    if held.is_empty() {
        return Ok(Cow::Borrowed(objects));
    }
    let mut renewed = values.clone();
    let vertices: Vec<_> = held.iter().map(|(_, property)| property.vertex).collect();
    let mut found = Vec::new();
    context.view.vertex_properties(&vertices, None, &mut found)?;
    for now in found {
        let (row, held) = held[now.row as usize];
        let same = held.key == now.key && held.ordinal == now.ordinal && equivalent(&held.value, &now.value);
        if same && held.meta != now.meta {
            renewed[row] = Value::VertexProperty(Arc::new(VertexPropertyValue { meta: now.meta, ..(**held).clone() }));
        }
    }
    Ok(Cow::Owned(ObjectColumn::Values(renewed)))
}

fn property(value: &Value) -> Option<&Arc<VertexPropertyValue>> {
    match value {
        Value::VertexProperty(property) => Some(property),
        _ => None,
    }
}
