//! The public methods of a database: opening it, running queries, loading and exporting, reports.
//!
//! The state behind them is in `state`; management, schema, scripts and durability have methods in modules of their own.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use mangrove_durable::recovery::RecoveryProgress;
use mangrove_flow::executor::ExecutorLoad;
use mangrove_graph::{Error, ErrorKind, IdRule, Result, Value};
use mangrove_gremlin::{Bytecode, Parameters};
use mangrove_load::UpsertKeys;
use mangrove_load::export::{ExportOptions, ExportProgress, ExportReport};
use mangrove_store::{Store, StoreOptions};
use mangrove_txn::{TransactionCounters, TransactionManager, TransactionOptions};

use crate::bulk::{self, LoadOptions, LoadReport, Progress};
use crate::files::FileAccess;
use crate::home::{Directory, Home};
use crate::options::{DatabaseOptions, QueryOptions};
use crate::query::prepared::{PlanCacheReport, Prepared};
use crate::query::stream::ResultStream;
use crate::state::Database;
use crate::transaction::Transaction;
use crate::upsert::UpsertSink;

/// The directory that a location names.
fn directory_of(location: &str) -> Result<&Path> {
    match location {
        "" => Err(Error::invalid("a graph is opened in a directory, or as `memory:`, not as an empty name")),
        other if other.contains("://") => Err(Error::unsupported(format!(
            "`{other}` cannot be opened: this version keeps graphs in directories, and in memory (`memory:`)"
        ))),
        directory => Ok(Path::new(directory)),
    }
}

impl Database {
    /// A new, empty graph in memory.
    pub fn in_memory() -> Self {
        Self::with_options(&DatabaseOptions::default())
    }

    /// A new, empty graph in memory.
    pub fn with_options(options: &DatabaseOptions) -> Self {
        let store = Store::new(&StoreOptions {
            tablet_count: options.tablet_count,
            memory_limit_bytes: options.memory_limit_bytes,
            memory_budget: options.memory_budget.clone(),
            sizes: options.sizes,
        });
        Self::assemble(options, TransactionManager::new(Arc::new(store)), Home::Memory)
    }

    /// Opens the graph at a location.
    ///
    /// - `memory:` is a new, empty graph in memory; it is gone when its last handle is.
    /// - Anything else is a directory, in which the graph outlives its process: a commit that was acknowledged is there
    ///   when the directory is opened again, whatever happened to the process or the machine. A directory that is not
    ///   there, or is empty, becomes a new database. One process at a time has a directory open; it is closed when the
    ///   last handle is gone.
    ///
    /// ```
    /// use mangrove::{Database, DatabaseOptions, Value};
    ///
    /// # fn main() -> mangrove::Result<()> {
    /// # let folder = std::env::temp_dir().join(format!("mangrove-doc-{}", std::process::id()));
    /// # let directory = folder.to_str().unwrap();
    /// let db = Database::open(directory, &DatabaseOptions::default())?;
    /// db.query("g.addV('person').property('name', 'ada')")?.collect()?;
    /// drop(db);
    ///
    /// let db = Database::open(directory, &DatabaseOptions::default())?;
    /// assert_eq!(db.query("g.V().values('name')")?.collect()?, vec![Value::from("ada")]);
    /// # drop(db);
    /// # std::fs::remove_dir_all(folder)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn open(location: &str, options: &DatabaseOptions) -> Result<Self> {
        Self::open_with_progress(location, options, &|_| {})
    }

    /// As [`Database::open`], and says how far recovery is. `progress` is called from several threads.
    pub fn open_with_progress(
        location: &str,
        options: &DatabaseOptions,
        progress: &(dyn Fn(RecoveryProgress) + Sync),
    ) -> Result<Self> {
        if location == "memory:" {
            return Ok(Self::with_options(options));
        }
        let home = Directory::open(directory_of(location)?, options, progress)?;
        Ok(Self::assemble(options, home.manager().clone(), Home::Directory(home)))
    }

    /// Opens the graph in a directory to read it: no file in it is made or changed, and it may be one without write rights.
    /// The graph is the one that [`Database::open`] would find. A transaction that has written fails when it commits, with
    /// the kind `ReadOnly`. Fails with `NotFound` where there is no database, and with `Closed` where another process has it
    /// open.
    pub fn open_to_read(
        directory: &str,
        options: &DatabaseOptions,
        progress: &(dyn Fn(RecoveryProgress) + Sync),
    ) -> Result<Self> {
        let (manager, home) = Home::open_to_read(directory_of(directory)?, options, progress)?;
        Ok(Self::assemble(options, manager, home))
    }

    /// How the ids are read that queries which begin from now on name: in `V()` and `E()`, `hasId()`, as parameters, and
    /// for new elements. It is not kept with the graph, and changes no id that is there: set it before the first
    /// query, and the same every time.
    pub fn set_id_rule(&self, rule: IdRule) {
        self.inner.numeric_ids.store(rule == IdRule::Numbers, Ordering::Relaxed);
    }

    /// The directory below which `g.io(…)` reads and writes files; `None`, as in the beginning: `io()` is refused. Links
    /// below it are not followed. Every transaction that may write may use it.
    ///
    /// # Errors
    ///
    /// When it is no directory.
    pub fn set_io_directory(&self, directory: Option<&Path>) -> Result<()> {
        let files = directory.map(FileAccess::below).transpose()?.unwrap_or_default();
        *self.inner.files.lock() = Arc::new(files);
        Ok(())
    }

    /// Begins a serializable transaction that may write.
    pub fn begin(&self) -> Result<Transaction> {
        self.begin_with(TransactionOptions::default())
    }

    /// Begins a transaction.
    pub fn begin_with(&self, options: TransactionOptions) -> Result<Transaction> {
        let transaction = self.inner.manager.begin(options)?;
        Ok(Transaction::new(self.hold(), transaction))
    }

    /// Begins a transaction that may write, for a query with these options.
    pub(crate) fn begin_as(&self, options: &QueryOptions) -> Result<Transaction> {
        self.begin_with(TransactionOptions { isolation: options.isolation, ..TransactionOptions::default() })
    }

    /// Begins a transaction that only reads.
    pub fn begin_read(&self) -> Result<Transaction> {
        Ok(Transaction::new(self.hold(), self.inner.manager.begin_read()?))
    }

    /// Runs a Gremlin script in a transaction of its own, on the thread that reads the results.
    pub fn query(&self, script: &str) -> Result<ResultStream> {
        let prepared = self.prepare(script)?;
        self.run(&prepared, &Parameters::new())
    }

    /// Parses and plans a script, to be run many times.
    pub fn prepare(&self, script: &str) -> Result<Prepared> {
        self.inner.plans.script(script)
    }

    /// Plans a traversal that is bytecode already. The plan is kept: the same bytecode is planned once.
    pub fn prepare_bytecode(&self, bytecode: &Bytecode) -> Result<Prepared> {
        self.inner.plans.bytecode(bytecode)
    }

    /// Runs a prepared traversal in a transaction of its own.
    pub fn run(&self, prepared: &Prepared, parameters: &Parameters) -> Result<ResultStream> {
        self.run_with(prepared, parameters, self.options())
    }

    /// Runs a prepared traversal in a transaction of its own. One that writes is run to its end and
    /// committed before this returns; one that only reads runs as its results are read.
    pub fn run_with(
        &self,
        prepared: &Prepared,
        parameters: &Parameters,
        options: &QueryOptions,
    ) -> Result<ResultStream> {
        if !prepared.is_mutating() {
            return self.begin_read()?.run_with(prepared, parameters, options);
        }
        let results = self.retrying(options, || {
            let transaction = self.begin_as(options)?;
            let results = transaction.run_with(prepared, parameters, options)?.collect_bulked()?;
            transaction.commit()?;
            Ok(results)
        })?;
        Ok(ResultStream::finished(results))
    }

    /// As [`Database::run_with`], but what is not over soon ([`QueryOptions::inline_messages`]) goes on on the
    /// database's executors, where queries take turns. `accept` is
    /// given batches of results as they come; while it does not return, the query waits. Results of a traversal that writes come after its commit.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Committed`] if `accept` fails after the commit: then the traversal must not be run again.
    pub fn run_shared(
        &self,
        prepared: &Prepared,
        parameters: &Parameters,
        options: &QueryOptions,
        accept: &mut dyn FnMut(Vec<(Value, u64)>) -> Result<()>,
    ) -> Result<()> {
        if !prepared.is_mutating() {
            return self.begin_read()?.run_shared(prepared, parameters, options, accept);
        }
        let results = self.retrying(options, || {
            let transaction = self.begin_as(options)?;
            let mut results = Vec::new();
            transaction.run_shared_keeping(prepared, parameters, options, &mut |batch| {
                results.push(batch);
                Ok(())
            })?;
            transaction.commit()?;
            Ok(results)
        })?;
        results.into_iter().try_for_each(accept).map_err(|error| {
            let message = format!("the query was committed, and its results could not be taken: {error}");
            Error::new(ErrorKind::Committed, message)
        })
    }

    /// What a query would do: the plan as text.
    pub fn explain(&self, script: &str) -> Result<String> {
        let prepared = self.prepare(script)?;
        let transaction = self.begin_read()?;
        prepared.explain(&self.inner.identity, transaction.view())
    }

    /// Loads files into the empty graph. See [`LoadOptions`]; the graph stays empty if the load fails.
    pub fn load(
        &self,
        files: &[PathBuf],
        options: &LoadOptions,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<LoadReport> {
        bulk::load(&self.inner, files, options, progress)
    }

    /// Loads files into a graph that need not be empty and may be in use: what exists is replaced. Batches are
    /// transactions of their own, so a load that fails leaves what it had done; run again, it finds that. A load whose vertices
    /// could not be recognized, and a key that fits nothing, are refused before anything is written: see [`UpsertKeys`].
    pub fn upsert(
        &self,
        files: &[PathBuf],
        options: &LoadOptions,
        keys: UpsertKeys,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<LoadReport> {
        let options = LoadOptions { upsert: Some(keys), ..options.clone() };
        mangrove_load::load(files, &options, &mut UpsertSink::new(self), progress)
    }

    /// Writes the graph to a file or a new folder, as one snapshot that does not expire, however long it takes. An error
    /// that `progress` returns ends the export.
    pub fn export(
        &self,
        path: &Path,
        options: &ExportOptions,
        progress: &mut dyn FnMut(ExportProgress) -> Result<()>,
    ) -> Result<ExportReport> {
        let snapshot = self.inner.manager.hold_snapshot()?;
        mangrove_load::export::export(&snapshot, path, options, progress)
    }

    /// A typed bulk load into the empty graph, without files.
    pub fn bulk_load(&self) -> Result<mangrove_txn::BulkLoad> {
        self.inner.manager.bulk_load()
    }

    /// How many transactions ended which way.
    pub fn transaction_counters(&self) -> TransactionCounters {
        self.inner.manager.counters()
    }

    /// What can be changed while the database runs.
    pub fn settings(&self) -> &mangrove_txn::Settings {
        self.inner.manager.settings()
    }

    /// Collects everything that no running transaction can see, now and on this thread. Ordinarily a collector does so
    /// in the background.
    pub fn collect_garbage(&self) {
        self.inner.manager.collect_garbage();
    }

    /// Collects, and packs the adjacency lists that every running transaction sees alike.
    pub fn compact(&self) {
        self.inner.manager.compact();
    }

    /// What waits to be collected, and what was.
    pub fn garbage(&self) -> mangrove_store::GarbageReport {
        self.inner.manager.garbage()
    }

    /// What the graph's records use of memory.
    pub fn memory(&self) -> mangrove_store::MemoryReport {
        self.inner.manager.store().memory()
    }

    /// How many vertices and edges there are, those of transactions that have not ended included: from counters, without a
    /// scan.
    pub fn element_counts(&self) -> (u64, u64) {
        self.inner.manager.store().live_counts()
    }

    /// An error where the graph uses as much memory as it may, by its own limit or by the process's budget, so that writes are
    /// refused until something is deleted.
    pub fn check_memory(&self) -> Result<()> {
        self.inner.manager.store().check_memory()
    }

    /// How the adjacency lies in memory, by a walk over all of it.
    pub fn adjacency_layout(&self) -> mangrove_store::AdjacencyLayout {
        self.inner.manager.store().adjacency_layout()
    }

    /// How well plans are reused.
    pub fn plan_cache(&self) -> PlanCacheReport {
        self.inner.plans.report()
    }

    /// What the executors are doing; nothing until a query needs them.
    pub fn executor_load(&self) -> ExecutorLoad {
        self.inner.executors.lock().as_ref().map_or_else(ExecutorLoad::default, |executors| executors.load())
    }

    /// How many commits the oldest running snapshot is behind: versions that old are still kept for it.
    pub fn snapshot_lag(&self) -> u64 {
        let manager = &self.inner.manager;
        // The oldest first: it is never above a watermark that is asked later.
        let oldest = manager.oldest_snapshot();
        manager.watermark().saturating_sub(oldest)
    }

    /// How many milliseconds ago the oldest running snapshot was taken that versions are kept for.
    pub fn snapshot_age_ms(&self) -> u64 {
        self.inner.manager.oldest_snapshot_age_ms()
    }

    /// The memory for what recent commits wrote, which running serializable transactions are checked against.
    pub fn commit_history_bytes(&self) -> u64 {
        self.inner.manager.commit_history_bytes()
    }

    /// Whether two handles are of the same graph.
    pub fn is_same(&self, other: &Database) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// Whether nothing was ever written.
    pub fn is_empty(&self) -> bool {
        self.inner.manager.store().is_empty()
    }
}
