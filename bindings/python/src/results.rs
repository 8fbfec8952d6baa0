//! The results of a query, which runs as they are read.
//!
//! A lock on results is only waited for without the interpreter's lock: the thread that has it may need the interpreter's, to look
//! for signals.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use mangrove::ResultStream;
use mangrove::arrow::{ArrowOptions, ArrowStream, Collected, ResultSource, StreamSource, collect};
use mangrove_graph::{Error, ErrorKind, Result, Value};
use parking_lot::{Mutex, MutexGuard};
use pyo3::exceptions::PyStopIteration;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList};

use crate::capsule::export_stream;
use crate::errors::{raised, wrong};
use crate::options::Queries;
use crate::process::{OfProcess, detached};
use crate::table::{PyTable, arrow_options, converted};
use crate::to_python::ToPython;

/// Results as the source of record batches.
type Source = Box<dyn ResultSource + Send>;

/// Results that are being read.
pub(crate) struct Reading {
    /// `None` when the query is over.
    stream: Option<ResultStream>,
    /// Results that were found and not read, each with how many times it occurs.
    ready: VecDeque<(Value, u64)>,
    /// Why there are no more results, if they were not read to the end.
    ended: Option<Error>,
}

/// Results, and what others than their reader need to end them: the transaction that ends, or the database that is closed.
pub(crate) struct SharedReading {
    reading: Mutex<Reading>,
    /// Ends the query. A thread that reads has the lock for as long as its query runs, so this is set without it.
    cancel: Arc<AtomicBool>,
    /// Why others have ended the query.
    ended_by: OnceLock<Error>,
    /// The queries of the database, which end when it is closed.
    of_database: Arc<Queries>,
}

/// The results of a query, in the process that began it.
pub(crate) type ReadingCell = OfProcess<SharedReading>;

impl SharedReading {
    /// The results of the query that this flag cancels.
    pub(crate) fn cell(stream: ResultStream, cancel: Arc<AtomicBool>, of_database: &Arc<Queries>) -> Arc<ReadingCell> {
        let reading = Mutex::new(Reading { stream: Some(stream), ready: VecDeque::new(), ended: None });
        let of_database = of_database.clone();
        Arc::new(OfProcess::new(SharedReading { reading, cancel, ended_by: OnceLock::new(), of_database }))
    }

    /// Waits for the lock, then works with the results. Called without the interpreter's lock.
    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut Reading) -> Result<T>) -> Result<T> {
        self.explained(work(&mut self.reading.lock()))
    }

    /// The outcome of reading. If others have ended the query, the error is theirs.
    fn explained<T>(&self, outcome: Result<T>) -> Result<T> {
        let outcome = outcome.map_err(|error| match self.ended_by.get() {
            Some(cause) if error.kind() == ErrorKind::Cancelled => cause.clone(),
            _ => error,
        });
        self.of_database.explained(outcome)
    }
}

impl Reading {
    /// Whether a result was found that is not read.
    pub(crate) fn is_ready(&self) -> bool {
        !self.ready.is_empty()
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

    /// The results that were not read, as the source of record batches. Nothing is left to be read.
    fn take(&mut self, options: &ArrowOptions) -> Result<Source> {
        if let Some(error) = &self.ended {
            return Err(error.clone());
        }
        let mut ready = std::mem::take(&mut self.ready);
        Ok(match self.stream.take() {
            Some(stream) if ready.is_empty() => Box::new(StreamSource::new(stream, options)),
            stream => {
                // Some were found already, to be shown or read one by one.
                if let Some(stream) = stream {
                    ready.extend(stream.collect_bulked()?);
                }
                Box::new(Collected::new(ready.into(), None))
            }
        })
    }

    /// Gives up the results that were not read. Reading on fails with this error.
    fn end(&mut self, error: Error) {
        self.stream = None;
        self.ready.clear();
        self.ended = Some(error);
    }
}

/// Ends results because what they were read in has ended. A thread that reads them meanwhile is told so. Called without the
/// interpreter's lock.
pub(crate) fn end_all(readings: &mut Vec<Weak<ReadingCell>>, what: &str) {
    let readings: Vec<_> = readings.drain(..).filter_map(|reading| reading.upgrade()).collect();
    let readings: Vec<_> = readings.iter().filter_map(|reading| reading.get().ok()).collect();
    let message = format!("{what} before all results were read; read them before it ends (all(), list(…))");
    let cause = Error::new(ErrorKind::Closed, message);
    // All of them before the first is waited for.
    for shared in &readings {
        shared.ended_by.get_or_init(|| cause.clone());
        shared.cancel.store(true, Ordering::Relaxed);
    }
    for shared in readings {
        let mut reading = shared.reading.lock();
        if reading.stream.is_some() {
            reading.end(cause.clone());
        }
    }
}

/// The results of a query. They are found as they are read: by iteration, or by one of the methods.
///
/// A query that only reads holds its snapshot of the graph until its results are read, closed or dropped.
#[pyclass(name = "Results", module = "mangrove", frozen)]
pub(crate) struct PyResults {
    reading: Arc<ReadingCell>,
    convert: Mutex<ToPython>,
}

impl PyResults {
    pub(crate) fn new(reading: Arc<ReadingCell>) -> Self {
        PyResults { reading, convert: Mutex::default() }
    }

    fn shared(&self, py: Python<'_>) -> PyResult<&SharedReading> {
        self.reading.get().map_err(|error| raised(py, &error))
    }

    fn lock<'s>(&'s self, py: Python<'_>) -> PyResult<MutexGuard<'s, Reading>> {
        let reading = &self.shared(py)?.reading;
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
        let shared = self.shared(py)?;
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
                if !detached(py, || shared.explained(reading.read()))? {
                    break;
                }
            }
        }
        Ok(list)
    }

    /// Works with the results that were not read. Nothing is left to be read.
    fn taken<T: Send>(
        &self,
        py: Python<'_>,
        options: &ArrowOptions,
        work: impl FnOnce(Source) -> Result<T> + Send,
    ) -> PyResult<T> {
        let shared = self.shared(py)?;
        detached(py, || shared.with(|reading| work(reading.take(options)?)))
    }

    fn next_object<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let shared = self.shared(py)?;
        let mut reading = self.lock(py)?;
        let inner = &mut *reading;
        // A result that was found already is taken without giving up the interpreter's lock.
        let next = match inner.is_ready() {
            true => inner.next().map_err(|error| raised(py, &error))?,
            false => detached(py, || shared.explained(inner.next()))?,
        };
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
        let shared = self.shared(py)?;
        let mut reading = self.lock(py)?;
        let list = PyList::empty(py);
        loop {
            let inner = &mut *reading;
            let count = inner.ready.iter().fold(0_usize, |count, (_, times)| count.saturating_add(*times as usize));
            if count >= size || !detached(py, || shared.explained(inner.read()))? {
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
        let (schema, batches) = self.taken(py, &options, |mut source| collect(&mut source, &options))?;
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
        let batches = self.taken(py, &options, |source| ArrowStream::new(source, &options))?;
        export_stream(py, Box::new(batches))
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
        let shared = self.shared(py)?;
        // A thread that reads at the moment notices this.
        shared.cancel.store(true, Ordering::Relaxed);
        py.detach(|| {
            let mut reading = shared.reading.lock();
            reading.stream = None;
            reading.ready.clear();
        });
        Ok(())
    }

    /// Ends the query, from any thread: a thread that waits for results gets a :class:`RetryLaterError`.
    fn cancel(&self, py: Python<'_>) -> PyResult<()> {
        self.shared(py)?.cancel.store(true, Ordering::Relaxed);
        Ok(())
    }

    fn __enter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, pyo3::types::PyTuple>) -> PyResult<()> {
        self.close(py)
    }
}
