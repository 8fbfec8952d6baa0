//! The database, and prepared queries.

use std::path::PathBuf;
use std::sync::{Arc, Weak};

use mangrove::arrow::{CsrOptions, ElementColumns, RecordBatch};
use mangrove::script::Script;
use mangrove::{
    Database, DatabaseOptions, MemoryBudget, Prepared, QueryGauges, QueryOptions, ResultStream, TransactionOptions,
};
use mangrove_graph::{Error, ErrorKind, Result, Value};
use mangrove_gremlin::{Parameters, ProfileTable};
use parking_lot::{Mutex, RwLock};
use pyo3::prelude::*;
use pyo3::types::{PyAny, PyBytes, PyDict, PyTuple};

use crate::algorithms;
use crate::errors::{closed, raised};
use crate::from_python::parameters;
use crate::loading::{self, GivenLoad, GivenTable};
use crate::options::{PyCanceller, Queries, RunOptions, isolation};
use crate::process::{OfProcess, detached};
use crate::results::{PyResults, ReadingCell, SharedReading, end_all};
use crate::sampling::{self, EdgeTypeArguments, EpochCell, PyEpoch, VertexTypeArguments};
use crate::server::PyServer;
use crate::table::{PyTable, arrow_options};
use crate::transaction::{PyTransaction, TransactionCell};
use crate::wire::{self, PyWireResults};

/// A query that was parsed.
pub(crate) enum Query {
    /// One traversal.
    Traversal(Prepared),
    /// Several statements, as one transaction.
    Script(Script),
}

impl Query {
    /// The query of a text. The plan of a traversal is kept by the database.
    pub(crate) fn of_text(database: &Database, text: &str) -> Result<Query> {
        let error = match database.prepare(text) {
            Ok(prepared) => return Ok(Query::Traversal(prepared)),
            Err(error) => error,
        };
        // What is no traversal may be a script. If it is neither, the script's error is the one about all of the text.
        match database.prepare_script(text) {
            Ok(script) => Ok(Query::Script(script)),
            Err(of_script) if error.kind() == ErrorKind::Syntax => Err(of_script),
            Err(_) => Err(error),
        }
    }

    fn run(&self, database: &Database, parameters: &Parameters, options: &QueryOptions) -> Result<ResultStream> {
        match self {
            Query::Traversal(prepared) => database.run_with(prepared, parameters, options),
            Query::Script(script) => database.run_script(script, parameters, options),
        }
    }
}

/// Why results end with their database.
const CLOSED: &str = "the database was closed";

/// An open database, and what is open in it.
pub(crate) struct OpenDatabase {
    /// `None` when it is closed.
    database: RwLock<Option<Database>>,
    queries: Arc<Queries>,
    open: Mutex<Open>,
    location: String,
}

/// What must end before the database is closed.
#[derive(Default)]
struct Open {
    readings: Vec<Weak<ReadingCell>>,
    transactions: Vec<Weak<TransactionCell>>,
    epochs: Vec<Weak<EpochCell>>,
    /// The length of the lists at which those that have ended are removed.
    sweep_at: usize,
}

impl Open {
    fn sweep(&mut self) {
        if self.readings.len() + self.transactions.len() + self.epochs.len() >= self.sweep_at {
            self.readings.retain(|reading| reading.strong_count() > 0);
            self.transactions.retain(|transaction| transaction.strong_count() > 0);
            self.epochs.retain(|epoch| epoch.strong_count() > 0);
            self.sweep_at = 64 + 2 * (self.readings.len() + self.transactions.len() + self.epochs.len());
        }
    }
}

impl OpenDatabase {
    /// The database, if it is not closed.
    pub(crate) fn get(&self) -> Result<Database> {
        let database = self.database.read();
        database.clone().ok_or_else(closed)
    }

    /// Begins a query, and keeps its results, so that they end when the database is closed.
    fn run(
        &self,
        options: &QueryOptions,
        begin: impl FnOnce(&Database) -> Result<ResultStream>,
    ) -> Result<Arc<ReadingCell>> {
        let stream = self.queries.explained(begin(&self.get()?))?;
        let reading = SharedReading::cell(stream, options.cancel.clone(), &self.queries);
        let mut open = self.open.lock();
        open.sweep();
        open.readings.push(Arc::downgrade(&reading));
        drop(open);
        // The database may have been closed before the results were kept.
        if self.database.read().is_none() {
            end_all(&mut vec![Arc::downgrade(&reading)], CLOSED);
        }
        Ok(reading)
    }

    fn close(&self) {
        let database = self.database.write().take();
        // Threads that run queries or wait for results have locks that are taken below.
        self.queries.end();
        let Open { mut readings, transactions, epochs, .. } = std::mem::take(&mut *self.open.lock());
        end_all(&mut readings, CLOSED);
        for transaction in transactions.iter().filter_map(Weak::upgrade) {
            if let Ok(transaction) = transaction.get() {
                transaction.lock().roll_back();
            }
        }
        epochs.iter().filter_map(Weak::upgrade).for_each(|epoch| sampling::end(&epoch));
        drop(database);
    }

    /// Keeps an epoch, so that it ends when the database is closed.
    fn remember_epoch(&self, epoch: Weak<EpochCell>) {
        let mut open = self.open.lock();
        open.sweep();
        open.epochs.push(epoch);
    }
}

impl Drop for OpenDatabase {
    fn drop(&mut self) {
        self.close();
    }
}

/// A database in this process.
#[pyclass(name = "Database", module = "mangrove._mangrove", frozen, subclass)]
pub(crate) struct PyDatabase {
    shared: Arc<OfProcess<OpenDatabase>>,
    options: RunOptions,
}

impl PyDatabase {
    fn open_database(&self, py: Python<'_>) -> PyResult<&OpenDatabase> {
        self.shared.get().map_err(|error| raised(py, &error))
    }

    fn run(&self, py: Python<'_>, query: &Query, parameters: &Parameters) -> PyResult<PyResults> {
        let open = self.open_database(py)?;
        let options = self.options.begin(py);
        let begin = |database: &Database| query.run(database, parameters, &options);
        detached(py, || open.run(&options, begin)).map(PyResults::new)
    }
}

pub(crate) fn element_columns(labels: Vec<String>, keys: Option<Vec<String>>) -> ElementColumns {
    ElementColumns {
        labels: labels.into_iter().map(Into::into).collect(),
        keys: keys.map(|keys| keys.into_iter().map(Into::into).collect()),
    }
}

/// What `memory_limit` leaves for everything else than the graph: none of it is set apart.
fn database_options(memory_limit: Option<u64>) -> DatabaseOptions {
    let defaults = DatabaseOptions::default();
    match memory_limit {
        None => defaults,
        Some(bytes) => DatabaseOptions { memory_budget: MemoryBudget::of(bytes), ..defaults },
    }
}

#[pymethods]
impl PyDatabase {
    #[new]
    #[pyo3(signature = (location = ":memory:", *, read_only = false, memory_limit = None, _handle = None))]
    fn open(
        py: Python<'_>,
        location: &str,
        read_only: bool,
        memory_limit: Option<u64>,
        _handle: Option<PyRef<'_, PyDatabase>>,
    ) -> PyResult<Self> {
        if let Some(handle) = _handle {
            // Another object for an open database: that of a subclass.
            return Ok(PyDatabase { shared: handle.shared.clone(), options: handle.options.clone() });
        }
        let options = database_options(memory_limit);
        let database = detached(py, || match location {
            ":memory:" | "memory:" => Ok(Database::with_options(&options)),
            location if read_only => Database::open_to_read(location, &options, &|_| {}),
            location => Database::open(location, &options),
        })?;
        let options = RunOptions::default();
        let open = OpenDatabase {
            database: RwLock::new(Some(database)),
            queries: options.of_database.clone(),
            open: Mutex::default(),
            location: location.to_owned(),
        };
        Ok(PyDatabase { shared: Arc::new(OfProcess::new(open)), options })
    }

    /// Runs a query in a transaction of its own: a traversal or a script in Gremlin, or a prepared query.
    ///
    /// Parameters are given as keyword arguments, or in a dictionary. A query that writes is committed when this returns. One that
    /// only reads runs as its results are read.
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
        let text = query.extract::<std::borrow::Cow<'_, str>>()?;
        let open = self.open_database(py)?;
        let options = self.options.begin(py);
        let begin = |database: &Database| Query::of_text(database, &text)?.run(database, &parameters, &options);
        detached(py, || open.run(&options, begin)).map(PyResults::new)
    }

    /// Parses a query, to be run many times with different parameters.
    fn prepare(&self, py: Python<'_>, text: &str) -> PyResult<PyPrepared> {
        let open = self.open_database(py)?;
        let query = detached(py, || Query::of_text(&open.get()?, text))?;
        let database = PyDatabase { shared: self.shared.clone(), options: self.options.clone() };
        Ok(PyPrepared { query: OfProcess::new(query), database, text: text.to_owned() })
    }

    /// Begins a transaction.
    #[pyo3(signature = (*, isolation = None, read_only = false))]
    fn transaction(&self, py: Python<'_>, isolation: Option<&str>, read_only: bool) -> PyResult<PyTransaction> {
        let level = isolation.map_or(Ok(self.options.isolation), |name| self::isolation(py, name))?;
        let open = self.open_database(py)?;
        let transaction = detached(py, || match read_only {
            true => open.get()?.begin_read(),
            false => open.get()?.begin_with(TransactionOptions { isolation: level, ..TransactionOptions::default() }),
        })?;
        let (transaction, cell) = PyTransaction::new(transaction, self.options.clone());
        let mut kept = open.open.lock();
        kept.sweep();
        kept.transactions.push(cell);
        Ok(transaction)
    }

    /// The plan of a query as text.
    fn explain(&self, py: Python<'_>, text: &str) -> PyResult<String> {
        let open = self.open_database(py)?;
        detached(py, || open.get()?.explain(text))
    }

    /// Runs a traversal to its end, and returns what each operator of its plan did as a table in text. A traversal that writes
    /// takes effect.
    #[pyo3(signature = (text, params = None, /, **named))]
    fn profile(
        &self,
        py: Python<'_>,
        text: &str,
        params: Option<&Bound<'_, PyDict>>,
        named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<String> {
        let parameters = parameters(params, named)?;
        let open = self.open_database(py)?;
        let options = self.options.begin(py);
        detached(py, || {
            let database = open.get()?;
            let prepared = database.prepare(&format!("{}.profile()", text.trim().trim_end_matches(';')))?;
            let run = || database.run_with(&prepared, &parameters, &options)?.collect();
            match open.queries.explained(run())?.pop() {
                Some(Value::TraversalMetrics(metrics)) => Ok(ProfileTable(&metrics).to_string()),
                other => Err(Error::bug(format!("profile() answered {other:?}"))),
            }
        })
    }

    /// Another handle of the same database, whose queries have these options.
    #[pyo3(name = "_with_options", signature = (timeout = None, memory_limit = None, threads = None, isolation = None, retries = None, canceller = None))]
    fn with_options(
        this: &Bound<'_, Self>,
        timeout: Option<f64>,
        memory_limit: Option<u64>,
        threads: Option<usize>,
        isolation: Option<&str>,
        retries: Option<u32>,
        canceller: Option<PyRef<'_, PyCanceller>>,
    ) -> PyResult<Py<PyAny>> {
        let py = this.py();
        let own = this.get();
        let options = own.options.clone();
        let options = options.changed(py, timeout, memory_limit, threads, isolation, retries, canceller.as_deref())?;
        let changed = PyDatabase { shared: own.shared.clone(), options };
        Ok(Bound::new(py, changed)?.into_any().unbind())
    }

    /// Runs bytecode that gremlinpython has written in GraphBinary. In a transaction, if one is given.
    #[pyo3(name = "_submit", signature = (bytecode, transaction = None))]
    fn submit(
        &self,
        py: Python<'_>,
        bytecode: &Bound<'_, PyBytes>,
        transaction: Option<&Bound<'_, PyTransaction>>,
    ) -> PyResult<PyWireResults> {
        let open = self.open_database(py)?;
        let bytes = bytecode.as_bytes();
        let prepared = detached(py, || open.get()?.prepare_bytecode(&wire::bytecode(bytes)?))?;
        let reading = match transaction {
            Some(transaction) => transaction.get().stream(py, &prepared)?,
            None => {
                let options = self.options.begin(py);
                let begin = |database: &Database| database.run_with(&prepared, &Parameters::new(), &options);
                detached(py, || open.run(&options, begin))?
            }
        };
        Ok(PyWireResults::new(reading))
    }

    /// Runs an algorithm of the registry on the graph as it is.
    #[pyo3(name = "_algorithm", signature = (name, options, threads = 0, progress = None))]
    fn algorithm(
        &self,
        py: Python<'_>,
        name: &str,
        options: &Bound<'_, PyDict>,
        threads: usize,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<PyTable> {
        let given = algorithms::given(options)?;
        let open = self.open_database(py)?;
        let mut run = self.options.begin(py);
        if threads > 0 {
            run.workers_max = threads;
        }
        if let Some(report) = progress {
            let gauges = Arc::new(QueryGauges::default());
            run.gauges = Some(gauges.clone());
            run.interrupt = Some(algorithms::reporting(run.interrupt, gauges, report));
        }
        let rows = |database: Database| database.run_algorithm_with(name, &given, &run)?.into_arrow();
        detached(py, || open.queries.explained(rows(open.get()?))).map(PyTable::of)
    }

    /// Loads tables of other libraries.
    #[pyo3(name = "_load_tables")]
    fn load_tables<'py>(
        &self,
        py: Python<'py>,
        tables: Vec<GivenTable<'py>>,
        load: GivenLoad<'py>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let open = self.open_database(py)?;
        loading::report(py, &loading::load_tables(py, || open.get(), tables, &load)?)
    }

    /// Loads files.
    #[pyo3(name = "_load_files")]
    fn load_files<'py>(
        &self,
        py: Python<'py>,
        files: Vec<PathBuf>,
        load: GivenLoad<'py>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let open = self.open_database(py)?;
        loading::report(py, &loading::load_files(py, || open.get(), &files, &load)?)
    }

    /// The properties of vertices as columns: ``id`` and one for each key; without keys also ``label``, and every key that a vertex has.
    #[pyo3(signature = (*labels, keys = None, mixed = "error"))]
    fn vertices(
        &self,
        py: Python<'_>,
        labels: Vec<String>,
        keys: Option<Vec<String>>,
        mixed: &str,
    ) -> PyResult<PyTable> {
        let (columns, options) = (element_columns(labels, keys), arrow_options(py, mixed, false)?);
        let open = self.open_database(py)?;
        let (schema, batches) = detached(py, || open.get()?.begin_read()?.vertex_table(&columns, &options))?;
        Ok(PyTable::new(schema, batches))
    }

    /// The properties of edges as columns: ``id``, ``src``, ``dst`` and one for each key; without keys also ``label``, and every key that
    /// an edge has.
    #[pyo3(signature = (*labels, keys = None, mixed = "error"))]
    fn edges(&self, py: Python<'_>, labels: Vec<String>, keys: Option<Vec<String>>, mixed: &str) -> PyResult<PyTable> {
        let (columns, options) = (element_columns(labels, keys), arrow_options(py, mixed, false)?);
        let open = self.open_database(py)?;
        let (schema, batches) = detached(py, || open.get()?.begin_read()?.edge_table(&columns, &options))?;
        Ok(PyTable::new(schema, batches))
    }

    /// The graph as compressed sparse rows: tables of one column each with the ids of vertices, where rows begin, the neighbors, and
    /// weights if there are some.
    #[pyo3(name = "_csr", signature = (vertices, edges, undirected, weight, default_weight))]
    fn csr(
        &self,
        py: Python<'_>,
        vertices: Vec<String>,
        edges: Vec<String>,
        undirected: bool,
        weight: Option<String>,
        default_weight: Option<f64>,
    ) -> PyResult<(PyTable, PyTable, PyTable, Option<PyTable>)> {
        let names = |names: Vec<String>| names.into_iter().map(Into::into).collect();
        let options = CsrOptions {
            vertices: names(vertices),
            edges: names(edges),
            undirected,
            weight: weight.map(Into::into),
            default_weight,
            edge_ids: false,
        };
        let threads = self.options.threads;
        let open = self.open_database(py)?;
        let csr = detached(py, || open.get()?.begin_read()?.csr(&options, threads))?;
        let table = |name: &str, array| {
            let batch = RecordBatch::try_from_iter([(name, array)]);
            batch.map(PyTable::of).map_err(|error| raised(py, &Error::bug(error.to_string())))
        };
        Ok((
            table("id", csr.ids)?,
            table("indptr", csr.indptr)?,
            table("indices", csr.indices)?,
            csr.weights.map(|weights| table("weight", weights)).transpose()?,
        ))
    }

    /// Serves the database to other programs, until the server is stopped.
    #[pyo3(name = "_serve", signature = (host, port, allow_remote, name))]
    fn serve(&self, py: Python<'_>, host: &str, port: u16, allow_remote: bool, name: &str) -> PyResult<PyServer> {
        let open = self.open_database(py)?;
        detached(py, || PyServer::start(open.get()?, host, port, allow_remote, name))
    }

    /// The labels of all vertices, and the source, edge and target labels of all edges.
    #[pyo3(name = "_all_types")]
    fn all_types(&self, py: Python<'_>) -> PyResult<sampling::TypeNames> {
        let open = self.open_database(py)?;
        detached(py, || sampling::all_types(&open.get()?))
    }

    /// Begins an epoch of these types.
    #[pyo3(name = "_begin_epoch")]
    fn begin_epoch(
        &self,
        py: Python<'_>,
        vertex_types: Vec<VertexTypeArguments>,
        edge_types: Vec<EdgeTypeArguments>,
        threads: usize,
    ) -> PyResult<PyEpoch> {
        let types = sampling::types(py, vertex_types, edge_types)?;
        let open = self.open_database(py)?;
        let (epoch, cell) = PyEpoch::new(detached(py, || open.get()?.begin_epoch(&types, threads))?);
        open.remember_epoch(cell);
        Ok(epoch)
    }

    /// The epoch of the newest moment, after another one.
    #[pyo3(name = "_next_epoch")]
    fn next_epoch(&self, py: Python<'_>, epoch: PyRef<'_, PyEpoch>, threads: usize) -> PyResult<PyEpoch> {
        let open = self.open_database(py)?;
        let (epoch, cell) = epoch.next(py, threads)?;
        open.remember_epoch(cell);
        Ok(epoch)
    }

    /// The numbers of vertices and edges, from counters.
    fn counts(&self, py: Python<'_>) -> PyResult<(u64, u64)> {
        let open = self.open_database(py)?;
        detached(py, || Ok(open.get()?.element_counts()))
    }

    /// Closes the database: queries that run in other threads end, open transactions are rolled back, results that were not read
    /// are given up. Other handles of the same database, such as those of `options()`, are closed, too.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let open = self.open_database(py)?;
        py.detach(|| open.close());
        Ok(())
    }

    /// Where the database is kept.
    #[getter]
    fn location(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.open_database(py)?.location.clone())
    }

    /// Whether the database is closed.
    #[getter]
    fn is_closed(&self, py: Python<'_>) -> PyResult<bool> {
        let open = self.open_database(py)?;
        Ok(py.detach(|| open.database.read().is_none()))
    }

    fn __enter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.close(py)
    }
}

/// A query that was parsed once, to be run many times. Calling it runs it in a transaction of its own; ``tx.query(prepared)`` runs
/// it in another one.
#[pyclass(name = "Prepared", module = "mangrove", frozen)]
pub(crate) struct PyPrepared {
    query: OfProcess<Query>,
    database: PyDatabase,
    text: String,
}

impl PyPrepared {
    pub(crate) fn query(&self, py: Python<'_>) -> PyResult<&Query> {
        self.query.get().map_err(|error| raised(py, &error))
    }
}

#[pymethods]
impl PyPrepared {
    #[pyo3(signature = (params = None, /, **named))]
    fn __call__(
        &self,
        py: Python<'_>,
        params: Option<&Bound<'_, PyDict>>,
        named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyResults> {
        self.database.run(py, self.query(py)?, &parameters(params, named)?)
    }

    /// The text of the query.
    #[getter]
    fn text(&self) -> &str {
        &self.text
    }

    fn __repr__(&self) -> String {
        format!("Prepared({:?})", self.text)
    }
}
