//! Transactions.

use std::sync::{Arc, Weak};

use mangrove::{Prepared, QueryOptions, ResultStream, Transaction};
use mangrove_graph::{Error, ErrorKind, Result};
use mangrove_gremlin::Parameters;
use parking_lot::Mutex;
use pyo3::prelude::*;
use pyo3::types::{PyAny, PyDict, PyTuple, PyType};

use crate::database::{PyPrepared, Query, element_columns};
use crate::errors::raised;
use crate::from_python::parameters;
use crate::options::{Queries, RunOptions};
use crate::process::{OfProcess, detached};
use crate::results::{PyResults, ReadingCell, SharedReading, end_all};
use crate::table::{PyTable, arrow_options};

/// A transaction, until it ends, and the results that are being read in it.
pub(crate) struct OpenTransaction {
    transaction: Option<Transaction>,
    readings: Vec<Weak<ReadingCell>>,
    /// The queries of the database.
    of_database: Arc<Queries>,
}

/// A place of a transaction that others can end: the database that is closed.
pub(crate) type TransactionCell = OfProcess<Mutex<OpenTransaction>>;

impl OpenTransaction {
    fn get(&self) -> Result<&Transaction> {
        self.transaction.as_ref().ok_or_else(|| {
            Error::new(ErrorKind::Closed, "the transaction has ended; begin another one (db.transaction())")
        })
    }

    /// Takes the transaction out, to end it.
    fn take(&mut self) -> Result<Transaction> {
        self.get()?;
        end_all(&mut self.readings, "the transaction ended");
        self.transaction.take().ok_or_else(|| Error::bug("the transaction was there"))
    }

    /// Rolls the transaction back, if it has not ended.
    pub(crate) fn roll_back(&mut self) {
        if let Ok(transaction) = self.take() {
            transaction.rollback();
        }
    }

    /// Runs a query, and remembers its results.
    fn run(&mut self, query: &Query, parameters: &Parameters, options: &QueryOptions) -> Result<Arc<ReadingCell>> {
        let stream = match query {
            Query::Traversal(prepared) => self.get()?.run_with(prepared, parameters, options)?,
            Query::Script(script) => self.get()?.run_script(script, parameters, options)?,
        };
        Ok(self.remember(stream, options))
    }

    fn remember(&mut self, stream: ResultStream, options: &QueryOptions) -> Arc<ReadingCell> {
        let reading = SharedReading::cell(stream, options.cancel.clone(), &self.of_database);
        self.readings.retain(|reading| reading.strong_count() > 0);
        self.readings.push(Arc::downgrade(&reading));
        reading
    }
}

/// A transaction: queries that see one snapshot of the graph, and take effect together or not at all.
///
/// Used with ``with``, it is committed at the end of the block, and rolled back if an exception leaves the block.
#[pyclass(name = "Transaction", module = "mangrove", frozen)]
pub(crate) struct PyTransaction {
    cell: Arc<TransactionCell>,
    options: RunOptions,
}

impl PyTransaction {
    pub(crate) fn new(transaction: Transaction, options: RunOptions) -> (Self, Weak<TransactionCell>) {
        let of_database = options.of_database.clone();
        let open = OpenTransaction { transaction: Some(transaction), readings: Vec::new(), of_database };
        let cell = Arc::new(OfProcess::new(Mutex::new(open)));
        let weak = Arc::downgrade(&cell);
        (PyTransaction { cell, options }, weak)
    }

    fn cell(&self, py: Python<'_>) -> PyResult<&Mutex<OpenTransaction>> {
        self.cell.get().map_err(|error| raised(py, &error))
    }

    pub(crate) fn run(&self, py: Python<'_>, query: &Query, parameters: &Parameters) -> PyResult<PyResults> {
        let cell = self.cell(py)?;
        let options = self.options.begin(py);
        let run = || cell.lock().run(query, parameters, &options);
        detached(py, || self.options.of_database.explained(run())).map(PyResults::new)
    }

    /// Runs a prepared traversal, and returns its results as a stream of their own.
    pub(crate) fn stream(&self, py: Python<'_>, prepared: &Prepared) -> PyResult<Arc<ReadingCell>> {
        let cell = self.cell(py)?;
        let options = self.options.begin(py);
        let run = || {
            let mut open = cell.lock();
            let stream = open.get()?.run_with(prepared, &Parameters::new(), &options)?;
            Ok(open.remember(stream, &options))
        };
        detached(py, || self.options.of_database.explained(run()))
    }
}

#[pymethods]
impl PyTransaction {
    /// Runs a query in the transaction: a traversal or a script in Gremlin, or a prepared query.
    ///
    /// Parameters are given as keyword arguments, or in a dictionary.
    #[pyo3(signature = (query, params = None, /, **named))]
    fn query(
        &self,
        py: Python<'_>,
        query: &Bound<'_, PyAny>,
        params: Option<&Bound<'_, PyDict>>,
        named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyResults> {
        let parameters = parameters(params, named)?;
        if let Ok(prepared) = query.cast::<PyPrepared>() {
            return self.run(py, prepared.get().query(py)?, &parameters);
        }
        let text: String = query.extract()?;
        let cell = self.cell(py)?;
        let query = detached(py, || {
            let open = cell.lock();
            Query::of_text(open.get()?.database(), &text)
        })?;
        self.run(py, &query, &parameters)
    }

    /// The properties of vertices as columns, as the transaction sees them; see :meth:`Database.vertices`.
    #[pyo3(signature = (*labels, keys = None, mixed = "error"))]
    fn vertices(
        &self,
        py: Python<'_>,
        labels: Vec<String>,
        keys: Option<Vec<String>>,
        mixed: &str,
    ) -> PyResult<PyTable> {
        let (columns, options) = (element_columns(labels, keys), arrow_options(py, mixed, false)?);
        let cell = self.cell(py)?;
        let (schema, batches) = detached(py, || cell.lock().get()?.vertex_table(&columns, &options))?;
        Ok(PyTable::new(schema, batches))
    }

    /// The properties of edges as columns, as the transaction sees them; see :meth:`Database.edges`.
    #[pyo3(signature = (*labels, keys = None, mixed = "error"))]
    fn edges(&self, py: Python<'_>, labels: Vec<String>, keys: Option<Vec<String>>, mixed: &str) -> PyResult<PyTable> {
        let (columns, options) = (element_columns(labels, keys), arrow_options(py, mixed, false)?);
        let cell = self.cell(py)?;
        let (schema, batches) = detached(py, || cell.lock().get()?.edge_table(&columns, &options))?;
        Ok(PyTable::new(schema, batches))
    }

    /// Makes all writes of the transaction visible at once, and durable if the graph is in a directory or a home. Results that
    /// were not read are given up.
    fn commit(&self, py: Python<'_>) -> PyResult<()> {
        let cell = self.cell(py)?;
        detached(py, || cell.lock().take()?.commit().map(drop))
    }

    /// Takes back all writes of the transaction. Results that were not read are given up.
    fn rollback(&self, py: Python<'_>) -> PyResult<()> {
        let cell = self.cell(py)?;
        detached(py, || cell.lock().take().map(Transaction::rollback))
    }

    /// Whether the transaction has not ended.
    #[getter]
    fn is_open(&self, py: Python<'_>) -> PyResult<bool> {
        let cell = self.cell(py)?;
        Ok(py.detach(|| cell.lock().transaction.is_some()))
    }

    fn __enter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    #[pyo3(signature = (exception_type, *_exception))]
    fn __exit__(
        &self,
        py: Python<'_>,
        exception_type: Option<&Bound<'_, PyType>>,
        _exception: &Bound<'_, PyTuple>,
    ) -> PyResult<()> {
        if !self.is_open(py)? {
            return Ok(());
        }
        match exception_type {
            None => self.commit(py),
            Some(_) => self.rollback(py),
        }
    }
}
