//! Ids of elements as arrays: 64-bit integers if all are integers, else text.

use std::sync::Arc;

use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, PrimitiveArray};
use arrow_schema::DataType;
use mangrove_graph::{EdgeId, GraphView, Result, Value, VertexId};

use crate::column::Column;
use crate::options::Mixed;

/// Ids that are read at a time.
const READ_AT_ONCE: usize = 16 * 1024;

/// The ids by which users know these vertices.
pub(crate) fn vertex_ids(view: &dyn GraphView, vertices: &[VertexId]) -> Result<ArrayRef> {
    read(vertices, |some, out| view.vertex_user_ids(some, out))
}

/// The ids by which users know these edges.
pub(crate) fn edge_ids(view: &dyn GraphView, edges: &[EdgeId]) -> Result<ArrayRef> {
    read(edges, |some, out| view.edge_user_ids(some, out))
}

fn read<T>(ids: &[T], read_some: impl Fn(&[T], &mut Vec<Value>) -> Result<()>) -> Result<ArrayRef> {
    let mut column = Column::new(true, Mixed::Refuse);
    let (mut values, mut row) = (Vec::new(), 0);
    for some in ids.chunks(READ_AT_ONCE) {
        read_some(some, &mut values)?;
        for value in values.drain(..) {
            column.push(value, "id", row)?;
            row += 1;
        }
    }
    if ids.is_empty() {
        return Ok(Arc::new(PrimitiveArray::<Int64Type>::from_iter_values([])));
    }
    let of = column.data_type();
    debug_assert!(matches!(of, DataType::Int64 | DataType::Utf8));
    column.finish(&of, "id", 0)
}
