//! Tables: results as columns.

use std::sync::Arc;

use arrow_array::RecordBatchIterator;
use mangrove::arrow::{ArrowOptions, Layout, Mixed, RecordBatch, SchemaRef};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};

use crate::capsule::{export_schema, export_stream};
use crate::errors::wrong;

/// The module that gives tables to other libraries.
const CONVERT: &str = "mangrove._convert";

/// A table: columns of Arrow, which other libraries read without a copy.
#[pyclass(name = "Table", module = "mangrove", frozen)]
pub(crate) struct PyTable {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl PyTable {
    pub(crate) fn new(schema: SchemaRef, batches: Vec<RecordBatch>) -> Self {
        PyTable { schema, batches }
    }

    /// A table of one batch.
    pub(crate) fn of(batch: RecordBatch) -> Self {
        PyTable { schema: batch.schema(), batches: vec![batch] }
    }
}

/// What Python says about the form of a table.
pub(crate) fn arrow_options(py: Python<'_>, mixed: &str, one_column: bool) -> PyResult<ArrowOptions> {
    let mixed = match mixed {
        "error" => Mixed::Refuse,
        "text" => Mixed::Text,
        other => return Err(wrong(py, format!("mixed is '{other}'; it is 'error' or 'text'"))),
    };
    let layout = if one_column { Layout::OneColumn } else { Layout::Columns };
    Ok(ArrowOptions { mixed, layout, ..ArrowOptions::default() })
}

/// Calls a function of the module that gives tables to other libraries.
pub(crate) fn converted<'py>(
    object: &Bound<'py, PyAny>,
    function: &str,
    named: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    object.py().import(CONVERT)?.getattr(function)?.call((object,), named)
}

#[pymethods]
impl PyTable {
    /// The names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    fn __len__(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    fn __repr__(&self) -> String {
        let columns: Vec<String> =
            self.schema.fields().iter().map(|field| format!("{}: {}", field.name(), field.data_type())).collect();
        format!("<mangrove.Table of {} rows: {}>", self.__len__(), columns.join(", "))
    }

    fn _repr_html_<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        converted(this.as_any(), "html", None)
    }

    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // Who asks for another schema casts by itself: the protocol allows that.
        drop(requested_schema);
        let batches = self.batches.clone().into_iter().map(Ok);
        export_stream(py, Box::new(RecordBatchIterator::new(batches, Arc::clone(&self.schema))))
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        export_schema(py, &self.schema)
    }

    /// As a table of pyarrow, without a copy.
    fn arrow<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        converted(this.as_any(), "arrow", None)
    }

    /// As a frame of pandas.
    fn df<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        converted(this.as_any(), "df", None)
    }

    /// As a frame of polars, without a copy.
    fn pl<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        converted(this.as_any(), "pl", None)
    }

    /// As a dictionary of arrays of NumPy, by column. Columns of numbers without gaps are not copied.
    fn numpy<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        converted(this.as_any(), "numpy", None)
    }

    /// As a list of dictionaries.
    fn rows<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        converted(this.as_any(), "rows", None)
    }
}
