//! Vertex properties that traversers hold, as they are now.
//!
//! A traverser holds a copy of a vertex property with its meta-properties ([`VertexPropertyValue`]). In a transaction that
//! writes, meta-properties may have been written after the copy was made, by the same traversal too. What reads them
//! therefore looks at [`current`] objects.

use std::borrow::Cow;
use std::sync::Arc;

use mangrove_graph::compare::equivalent;
use mangrove_graph::{Result, Value, VertexPropertyValue};

use crate::environment::Environment;
use crate::rows::Column;

/// The objects with the meta-properties that their vertex properties have now. A property that was removed, or has another
/// value now, stays as it is held.
pub fn current<'a>(objects: &'a Column, environment: &Environment) -> Result<Cow<'a, Column>> {
    let Column::Values(values) = objects else { return Ok(Cow::Borrowed(objects)) };
    let held: Vec<(usize, &Arc<VertexPropertyValue>)> = match environment.writer {
        None => Vec::new(),
        Some(_) => values.iter().enumerate().filter_map(|(row, value)| Some((row, property(value)?))).collect(),
    };
    if held.is_empty() {
        return Ok(Cow::Borrowed(objects));
    }
    let mut renewed = values.clone();
    let vertices: Vec<_> = held.iter().map(|(_, property)| property.vertex).collect();
    let mut found = Vec::new();
    environment.view.vertex_properties(&vertices, None, &mut found)?;
    for now in found {
        let (row, held) = held[now.row as usize];
        let same = held.key == now.key && held.ordinal == now.ordinal && equivalent(&held.value, &now.value);
        if same && held.meta != now.meta {
            renewed[row] = Value::VertexProperty(Arc::new(VertexPropertyValue { meta: now.meta, ..(**held).clone() }));
        }
    }
    Ok(Cow::Owned(Column::Values(renewed)))
}

fn property(value: &Value) -> Option<&Arc<VertexPropertyValue>> {
    match value {
        Value::VertexProperty(property) => Some(property),
        _ => None,
    }
}
