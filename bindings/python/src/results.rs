//! The results of a query, which runs as they are read.
//!
//! A lock on results is only waited for without the interpreter's lock: the thread that has it may need the interpreter's, to look
//! for signals.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use mangrove::ResultStream;
use mangrove::arrow::{ArrowOptions, ArrowStream, Collected, RecordBatchReader};
use mangrove_graph::{Error, ErrorKind, Result, Value};
use parking_lot::{Mutex, MutexGuard};
use pyo3::exceptions::PyStopIteration;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList};

use crate::capsule::export_stream;
use crate::errors::{raised, wrong};
use crate::process::{OfProcess, detached};
use crate::table::{PyTable, arrow_options, converted};
use crate::to_python::ToPython;

/// Results that were found, each with how many times it occurs, and the query that finds more.
type Unread = (VecDeque<(Value, u64)>, Option<ResultStream>);

/// A stream of record batches.
type Batches = Box<dyn RecordBatchReader + Send>;

/// Results that are being read.
pub(crate) struct Reading {
    /// `None` when the query is over.
    stream: Option<ResultStream>,
    /// Results that were found and not read, each with how many times it occurs.
    ready: VecDeque<(Value, u64)>,
    /// Why there are no more results, if they were not read to the end.
    ended: Option<Error>,
}

/// A place of results that others can end: the transaction, or the database that is closed.
pub(crate) type ReadingCell = OfProcess<Mutex<Reading>>;

impl Reading {
    pub(crate) fn new(stream: ResultStream) -> Self {
        Reading { stream: Some(stream), ready: VecDeque::new(), ended: None }
    }

    /// Reads a batch, if the query is not over. Returns false at the end.
    fn read(&mut self) -> Result<bool> {
        if let Some(error) = &self.ended {
            return Err(error.clone());
        }
        let Some(stream) = &mut self.stream else { return Ok(false) };
        match stream.next_batch() {
            Ok(Some(batch)) => {
                self.ready.extend(batch.into_iter().filter(|(_, times)| *times > 0));
                Ok(true)
            }
            Ok(None) => {
                self.stream = None;
                Ok(false)
            }
            Err(error) => {
                self.end(error.clone());
                Err(error)
            }
        }
    }

    /// The next result.
    pub(crate) fn next(&mut self) -> Result<Option<Value>> {
        while self.ready.is_empty() {
            if !self.read()? {
                return Ok(None);
            }
        }
        let Some((value, times)) = self.ready.front_mut() else { return Ok(None) };
        if *times > 1 {
            *times -= 1;
            return Ok(Some(value.clone()));
        }
        Ok(self.ready.pop_front().map(|(value, _)| value))
    }

    /// The results that were found and not read, and the query, if it is not over. Nothing is left to be read.
    fn take(&mut self) -> Result<Unread> {
        match &self.ended {
            Some(error) => Err(error.clone()),
            None => Ok((std::mem::take(&mut self.ready), self.stream.take())),
        }
    }

    /// Gives up the results that were not read. Reading on fails with this error.
    fn end(&mut self, error: Error) {
        self.stream = None;
        self.ready.clear();
        self.ended = Some(error);
    }
}

/// Ends results because what they were read in has ended. Called without the interpreter's lock.
pub(crate) fn end_all(readings: &mut Vec<Weak<ReadingCell>>, what: &str) {
    for reading in readings.drain(..).filter_map(|reading| reading.upgrade()) {
        let Ok(reading) = reading.get() else { continue };
        let mut reading = reading.lock();
        if reading.stream.is_some() {
            let message = format!("{what} before all results were read; read them before it ends (all(), list(…))");
            reading.end(Error::new(ErrorKind::Closed, message));
        }
    }
}

/// The results of a query. They are found as they are read: by iteration, or by one of the methods.
///
/// A query that only reads holds its snapshot of the graph until its results are read, closed or dropped.
#[pyclass(name = "Results", module = "mangrove", frozen)]
pub(crate) struct PyResults {
    reading: Arc<ReadingCell>,
    cancel: Arc<AtomicBool>,
    convert: Mutex<ToPython>,
}

impl PyResults {
    pub(crate) fn new(reading: Arc<ReadingCell>, cancel: Arc<AtomicBool>) -> Self {
        PyResults { reading, cancel, convert: Mutex::default() }
    }

    pub(crate) fn lock<'s>(&'s self, py: Python<'_>) -> PyResult<MutexGuard<'s, Reading>> {
        let reading = self.reading.get().map_err(|error| raised(py, &error))?;
        match reading.try_lock() {
            Some(guard) => Ok(guard),
            // Another thread reads. The guard cannot be taken into the closure, so wait for it and try again.
            None => loop {
                py.detach(|| drop(reading.lock()));
                if let Some(guard) = reading.try_lock() {
                    return Ok(guard);
                }
            },
        }
    }

    fn convert<'py>(&self, py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
        match self.convert.try_lock() {
            Some(mut convert) => convert.object(py, value),
            // Another thread converts, and may wait for the interpreter's lock.
            None => ToPython::default().object(py, value),
        }
    }

    /// Up to `most` results.
    fn some<'py>(&self, py: Python<'py>, most: usize) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        let mut reading = self.lock(py)?;
        while list.len() < most {
            if let Some((value, times)) = reading.ready.pop_front() {
                let object = self.convert(py, &value)?;
                let taken = times.min((most - list.len()) as u64);
                for _ in 0..taken {
                    list.append(&object)?;
                }
                if taken < times {
                    reading.ready.push_front((value, times - taken));
                }
            } else {
                let reading = &mut *reading;
                if !detached(py, || reading.read())? {
                    break;
                }
            }
        }
        Ok(list)
    }

    fn next_object<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let mut reading = self.lock(py)?;
        while reading.ready.is_empty() {
            let reading = &mut *reading;
            if !detached(py, || reading.read())? {
                return Ok(None);
            }
        }
        // It is there, so this does not wait.
        let next = reading.next().map_err(|error| raised(py, &error))?;
        drop(reading);
        next.map(|value| self.convert(py, &value)).transpose()
    }
}

#[pymethods]
impl PyResults {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.next_object(py)?.ok_or_else(|| PyStopIteration::new_err(()))
    }

    /// All results that were not read, as a list.
    fn all<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.some(py, usize::MAX)
    }

    /// Up to ``size`` further results, as a list; an empty list at the end.
    #[pyo3(signature = (size = 1_024))]
    fn fetchmany<'py>(&self, py: Python<'py>, size: usize) -> PyResult<Bound<'py, PyList>> {
        self.some(py, size)
    }

    /// The next result, or ``None`` at the end. Closes the results: later ones are not found.
    fn first<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let first = self.next_object(py)?;
        self.close(py)?;
        Ok(first)
    }

    /// The only result. Raises :class:`RequestError` if there is none, or more than one.
    fn one<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let found = self.some(py, 2)?;
        self.close(py)?;
        match found.len() {
            1 => found.get_item(0),
            0 => Err(wrong(py, "the query has no result, and one() needs one; first() gives None then")),
            _ => Err(wrong(py, "the query has more than one result; use all(), or first() for the first one")),
        }
    }

    /// Up to ``size`` results that are read next, as a list. They stay to be read.
    #[pyo3(name = "_peek")]
    fn peek<'py>(&self, py: Python<'py>, size: usize) -> PyResult<Bound<'py, PyList>> {
        let mut reading = self.lock(py)?;
        let list = PyList::empty(py);
        loop {
            let inner = &mut *reading;
            let count = inner.ready.iter().fold(0_usize, |count, (_, times)| count.saturating_add(*times as usize));
            if count >= size || !detached(py, || inner.read())? {
                break;
            }
        }
        for (value, times) in &reading.ready {
            let object = self.convert(py, value)?;
            for _ in 0..(*times).min((size - list.len()) as u64) {
                list.append(&object)?;
            }
        }
        Ok(list)
    }

    /// All results that were not read, as a :class:`Table`: a column for each key of maps and for each property of elements, else one
    /// column ``value``.
    ///
    /// Values that have no type of Arrow together are an error; with ``mixed="text"`` such a column becomes text. With
    /// ``one_column=True`` all results are in one column, as structs if they are maps or elements.
    #[pyo3(signature = (*, mixed = "error", one_column = false))]
    fn table(&self, py: Python<'_>, mixed: &str, one_column: bool) -> PyResult<PyTable> {
        let options = arrow_options(py, mixed, one_column)?;
        let mut reading = self.lock(py)?;
        let reading = &mut *reading;
        let (schema, batches) = detached(py, || {
            let (mut ready, stream) = reading.take()?;
            match stream {
                Some(stream) if ready.is_empty() => stream.collect_arrow(&options),
                stream => {
                    // Some were found already, to be shown or read one by one.
                    if let Some(stream) = stream {
                        ready.extend(stream.collect_bulked()?);
                    }
                    mangrove::arrow::collect(&mut Collected::new(ready.into(), None), &options)
                }
            }
        })?;
        Ok(PyTable::new(schema, batches))
    }

    /// The results as a stream of record batches, which are found as they are read. The first batch decides the types.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let options = ArrowOptions::default();
        let mut reading = self.lock(py)?;
        let reading = &mut *reading;
        let batches = detached(py, || {
            let (mut ready, stream) = reading.take()?;
            match stream {
                Some(stream) if ready.is_empty() => Ok(Box::new(stream.arrow_batches(&options)?) as Batches),
                stream => {
                    if let Some(stream) = stream {
                        ready.extend(stream.collect_bulked()?);
                    }
                    Ok(Box::new(ArrowStream::new(Collected::new(ready.into(), None), &options)?) as Batches)
                }
            }
        })?;
        export_stream(py, batches)
    }

    /// All results that were not read, as a table of pyarrow. See :meth:`table` for the options.
    #[pyo3(signature = (**options))]
    fn arrow<'py>(this: &Bound<'py, Self>, options: Option<&Bound<'py, PyDict>>) -> PyResult<Bound<'py, PyAny>> {
        converted(this.as_any(), "arrow", options)
    }

    /// All results that were not read, as a frame of pandas. See :meth:`table` for the options.
    #[pyo3(signature = (**options))]
    fn df<'py>(this: &Bound<'py, Self>, options: Option<&Bound<'py, PyDict>>) -> PyResult<Bound<'py, PyAny>> {
        converted(this.as_any(), "df", options)
    }

    /// All results that were not read, as a frame of polars. See :meth:`table` for the options.
    #[pyo3(signature = (**options))]
    fn pl<'py>(this: &Bound<'py, Self>, options: Option<&Bound<'py, PyDict>>) -> PyResult<Bound<'py, PyAny>> {
        converted(this.as_any(), "pl", options)
    }

    fn _repr_html_<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = this.py();
        let display = py.import("mangrove._display")?;
        let most: usize = display.getattr("ROWS_MAX")?.extract()?;
        let found = this.get().peek(py, most + 1)?;
        let has_more = found.len() > most;
        let shown = found.get_slice(0, most);
        display.call_method1("results", (shown, has_more))
    }

    /// Ends the query and gives up the results that were not read. Reading on finds none.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let reading = self.reading.get().map_err(|error| raised(py, &error))?;
        // A thread that reads at the moment notices this.
        self.cancel.store(true, Ordering::Relaxed);
        py.detach(|| {
            let mut reading = reading.lock();
            reading.stream = None;
            reading.ready.clear();
        });
        Ok(())
    }

    /// Ends the query, from any thread: a thread that waits for results gets a :class:`RetryLaterError`.
    fn cancel(&self) {
        self.cancel.store(true, Ordering::Relaxed);
    }

    fn __enter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, pyo3::types::PyTuple>) -> PyResult<()> {
        self.close(py)
    }
}
