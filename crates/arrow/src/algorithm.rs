//! The results of graph algorithms as a record batch. Numbers keep their memory.

use std::sync::Arc;

use arrow_array::types::{Float32Type, Float64Type, Int64Type};
use arrow_array::{
    ArrayRef, FixedSizeListArray, LargeListArray, ListArray, PrimitiveArray, RecordBatch, RecordBatchOptions,
};
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, Schema};
use mangrove_analytics::registry::{ColumnValues, Output};
use mangrove_graph::{Error, GraphView, Result};

use crate::build::arrow;
use crate::ids::{edge_ids, vertex_ids};

/// The results of an algorithm as one record batch. The view is the one that the algorithm has read.
///
/// Vertices and edges are ids: 64-bit integers if all ids of the column are integers, else text. Counts become `Int64`, numbers
/// `Float64`, lists of vertices `List`, vectors `FixedSizeList` of `Float32`.
///
/// # Errors
///
/// Those of the view.
pub fn algorithm_batch(view: &dyn GraphView, output: Output) -> Result<RecordBatch> {
    let rows = output.len();
    let (mut fields, mut arrays) = (Vec::new(), Vec::new());
    for column in output.columns {
        let array: ArrayRef = match column.values {
            ColumnValues::Vertices(vertices) => vertex_ids(view, &vertices)?,
            ColumnValues::Edges(edges) => edge_ids(view, &edges)?,
            ColumnValues::Counts(counts) => Arc::new(PrimitiveArray::<Int64Type>::new(whole_numbers(counts), None)),
            ColumnValues::Numbers(numbers) => Arc::new(PrimitiveArray::<Float64Type>::new(numbers.into(), None)),
            ColumnValues::VertexLists { ends, vertices } => lists(&ends, vertex_ids(view, &vertices)?)?,
            ColumnValues::Vectors { width, numbers } => {
                let width =
                    i32::try_from(width).map_err(|_| Error::invalid("vectors have more than 2 billion numbers"))?;
                let item = Arc::new(Field::new("item", DataType::Float32, true));
                let numbers = Arc::new(PrimitiveArray::<Float32Type>::new(numbers.into(), None));
                let array = FixedSizeListArray::try_new_with_length(item, width, numbers, None, rows);
                Arc::new(array.map_err(arrow)?)
            }
        };
        fields.push(Field::new(column.name, array.data_type().clone(), true));
        arrays.push(array);
    }
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options).map_err(arrow)
}

/// Counts as 64-bit integers: in the memory that they have, because none is larger than 2^63 - 1 but by mistake, and then it is cut.
fn whole_numbers(mut counts: Vec<u64>) -> ScalarBuffer<i64> {
    counts.iter_mut().for_each(|count| *count = (*count).min(i64::MAX as u64));
    let len = counts.len();
    ScalarBuffer::new(Buffer::from_vec(counts), 0, len)
}

/// Lists that end at these members.
fn lists(ends: &[usize], members: ArrayRef) -> Result<ArrayRef> {
    let lengths = ends.iter().scan(0, |before, end| Some(end - std::mem::replace(before, *end)));
    let item = Arc::new(Field::new("item", members.data_type().clone(), true));
    Ok(match i32::try_from(members.len()) {
        Ok(_) => Arc::new(ListArray::try_new(item, OffsetBuffer::from_lengths(lengths), members, None).map_err(arrow)?),
        Err(_) => {
            Arc::new(LargeListArray::try_new(item, OffsetBuffer::from_lengths(lengths), members, None).map_err(arrow)?)
        }
    })
}
