//! Record batches across Arrow's C interface, in the capsules of its PyCapsule protocol: no bytes are copied.
//!
//! <https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html>

use std::ffi::CStr;

use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use mangrove::arrow::{RecordBatchReader, SchemaRef, arrow_schema};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::errors::wrong;

/// The name of a capsule with a stream.
const STREAM: &CStr = c"arrow_array_stream";
/// The name of a capsule with a schema.
const SCHEMA: &CStr = c"arrow_schema";
/// The method of the protocol that gives a stream.
const STREAM_METHOD: &str = "__arrow_c_stream__";

/// A capsule with a stream of record batches.
pub(crate) fn export_stream<'py>(
    py: Python<'py>,
    batches: Box<dyn RecordBatchReader + Send>,
) -> PyResult<Bound<'py, PyCapsule>> {
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(batches), STREAM)
}

/// A capsule with a schema.
pub(crate) fn export_schema<'py>(py: Python<'py>, schema: &SchemaRef) -> PyResult<Bound<'py, PyCapsule>> {
    let exported = arrow_schema::ffi::FFI_ArrowSchema::try_from(&**schema);
    let exported =
        exported.map_err(|error| wrong(py, format!("the schema cannot be given to other programs: {error}")))?;
    PyCapsule::new_with_value(py, exported, SCHEMA)
}

/// The record batches of an object of another library: a table or a stream of pyarrow, a frame of pandas or polars, a relation of
/// DuckDB.
pub(crate) fn import_stream(object: &Bound<'_, PyAny>) -> PyResult<RecordBatchStreamReader> {
    let py = object.py();
    if !object.hasattr(STREAM_METHOD)? {
        return Err(wrong(
            py,
            format!(
                "a {} is no table: it takes what has Arrow's method {STREAM_METHOD}, as a table of pyarrow, a frame of pandas (2.2 or \
                 later) or polars, a relation of DuckDB",
                object.get_type().fully_qualified_name()?
            ),
        ));
    }
    let given = object.call_method0(STREAM_METHOD)?;
    let capsule = given.cast::<PyCapsule>()?;
    let stream = capsule.pointer_checked(Some(STREAM))?.cast::<FFI_ArrowArrayStream>();
    // SAFETY: a capsule of this name points to a stream of Arrow's C interface, which is valid while the capsule lives. It is taken
    // out here: an empty stream, which is not released again, stays in the capsule.
    let reader = unsafe { RecordBatchStreamReader::from_raw(stream.as_ptr()) };
    reader.map_err(|error| wrong(py, format!("the table cannot be read: {error}")))
}
