//! The public methods of a database: opening it, running queries, loading and exporting, reports.
//!
//! Their state is in `state`; management, schema, scripts and durability have methods in modules of their own.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use mangrove_durable::follow::FollowStatus;
use mangrove_durable::home::address;
use mangrove_durable::recovery::RecoveryProgress;
use mangrove_graph::statistics::Statistics;
use mangrove_graph::{Error, ErrorKind, IdRule, Result, Value};
use mangrove_gremlin::{Bytecode, Parameters};
use mangrove_load::export::{ExportOptions, ExportProgress, ExportReport};
use mangrove_load::{SourceTable, UpsertKeys};
use mangrove_store::{Store, StoreOptions};
use mangrove_txn::{DatedStatistics, TransactionCounters, TransactionManager, TransactionOptions};

use crate::bulk::{self, LoadOptions, LoadProgress, LoadReport};
use crate::files::FileAccess;
use crate::home::{Home, OpenDirectory};
use crate::open_home::OpenHome;
use crate::options::{DatabaseOptions, QueryOptions};
use crate::query::plans::{KeptPlan, PlanCacheReport, prepare_to_explain};
use crate::query::prepared::Prepared;
use crate::query::stream::ResultStream;
use crate::state::Database;
use crate::transaction::Transaction;
use crate::upsert::UpsertSink;

/// The directory that a location names.
fn directory_of(location: &str) -> Result<&Path> {
    match location {
        "" => Err(Error::invalid(
            "a graph is opened in a directory, at an address as s3://BUCKET/DIRECTORY, or as `memory:`, not as an empty name",
        )),
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
            notes_replayed_lists: false,
        });
        Self::assemble(options, TransactionManager::new(Arc::new(store)), Home::Memory)
    }

    /// Opens the graph at a location.
    ///
    /// - `memory:` is a new, empty graph in memory, which ends with its last handle.
    /// - Anything else is a directory, in which the graph outlives its process: an acknowledged commit survives a crash
    ///   of the process or the machine. A directory that does not exist, or is empty, becomes a new database. Only one
    ///   process at a time can have a directory open. Dropping the last handle closes it.
    /// - `s3://BUCKET/DIRECTORY` is a home of objects, in which the graph outlives its machine. `file:DIRECTORY` is one in
    ///   a directory that several machines may share. A process that opens a graph there takes it over: another one that
    ///   has it open acknowledges nothing more and serves no more reads. What an address does not say comes from the
    ///   environment, by the names of AWS (`AWS_ENDPOINT_URL`, `AWS_ACCESS_KEY_ID`, …).
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

    /// As [`Database::open`], with reports of the progress of recovery. `progress` is called from several threads.
    pub fn open_with_progress(
        location: &str,
        options: &DatabaseOptions,
        progress: &(dyn Fn(RecoveryProgress) + Sync),
    ) -> Result<Self> {
        if location == "memory:" {
            return Ok(Self::with_options(options));
        }
        if address::is_address(location) {
            let home = OpenHome::own(address::open(location)?, options, progress)?;
            return Ok(Self::in_home(options, home));
        }
        let home = OpenDirectory::open(directory_of(location)?, options, progress)?;
        Ok(Self::assemble(options, home.manager().clone(), Home::Directory(Box::new(home))))
    }

    /// Opens the graph in a directory for reading, or follows the one at an address ([`Database::follow`]). No file in the
    /// directory is created or changed, so the process needs no right to write there. The graph is the one that [`Database::open`] would find. A transaction that has written fails
    /// when it commits, with the kind `ReadOnly`.
    ///
    /// # Errors
    ///
    /// `NotFound` if there is no database, and `Closed` if another process has it open.
    pub fn open_to_read(
        directory: &str,
        options: &DatabaseOptions,
        progress: &(dyn Fn(RecoveryProgress) + Sync),
    ) -> Result<Self> {
        if address::is_address(directory) {
            return Self::follow(directory, options, progress);
        }
        let (manager, home) = Home::open_to_read(directory_of(directory)?, options, progress)?;
        Ok(Self::assemble(options, manager, home))
    }

    /// Follows the process that has the graph in a home open: a copy in memory that has every commit a moment after the
    /// owner has acknowledged it. It serves reads, at its newest commit; a transaction that would write fails with the
    /// kind `ReadOnly`. The owner notices nothing. [`Database::promote`] makes this process the owner.
    ///
    /// # Errors
    ///
    /// `NotFound` if there is no graph.
    pub fn follow(
        address: &str,
        options: &DatabaseOptions,
        progress: &(dyn Fn(RecoveryProgress) + Sync),
    ) -> Result<Self> {
        let home = OpenHome::follow(address::open(address)?, options, progress)?;
        Ok(Self::in_home(options, home))
    }

    fn in_home(options: &DatabaseOptions, home: OpenHome) -> Self {
        Self::assemble(options, home.manager().clone(), Home::Objects(Box::new(home)))
    }

    /// Makes a process that follows the owner of its graph the owner. The owner before it may be dead, alive or paused: it
    /// acknowledges nothing more and serves no more reads. Transactions that are open go on.
    ///
    /// # Errors
    ///
    /// If this process does not follow, or if the home fails; then it goes on following.
    pub fn promote(&self) -> Result<()> {
        match &self.inner.home {
            Home::Objects(home) => home.promote(),
            _ => Err(Error::unsupported(
                "only a server that follows the owner of a graph can be promoted (`mangrove serve --follow ADDRESS`)",
            )),
        }
    }

    /// Why a process that followed the owner of its graph follows it no more, and must load the graph again
    /// ([`Database::follow_again`]): commits are missing, or a promotion has failed half-way. `None` if all is well.
    pub fn stopped_following(&self) -> Option<Error> {
        match &self.inner.home {
            Home::Objects(home) => home.stopped_following(),
            _ => None,
        }
    }

    /// Loads the graph from its home once more, and follows its owner with the new copy. The new handle has the settings of
    /// this one. This one keeps serving reads of the old copy until [`Database::replaced`]; until then the process has
    /// both in memory.
    ///
    /// # Errors
    ///
    /// Those of [`Database::follow`]; and `Unsupported` for a graph that is in no home.
    pub fn follow_again(&self) -> Result<Database> {
        let Home::Objects(home) = &self.inner.home else {
            return Err(Error::unsupported("only a graph in a home of objects is followed"));
        };
        let (home, options) = home.follow_again()?;
        let again = Self::in_home(&options, home);
        again.inner.numeric_ids.store(self.inner.numeric_ids.load(Ordering::Relaxed), Ordering::Relaxed);
        *again.inner.files.lock() = self.inner.files();
        self.config().iter().try_for_each(|(name, value)| again.configure(name, value))?;
        Ok(again)
    }

    /// Ends the transactions of this handle's graph, which another handle replaces ([`Database::follow_again`]): each fails
    /// at its next call with `Expired`, and none begins.
    pub fn replaced(&self) {
        self.inner.manager.replaced();
    }

    /// What is known about the following of the owner; `None` if this process follows none.
    pub fn following(&self) -> Option<FollowStatus> {
        match &self.inner.home {
            Home::Objects(home) => home.following(),
            _ => None,
        }
    }

    /// Sets how queries read ids: in `V()`, `E()` and `hasId()`, in parameters, and for new elements. The rule is not
    /// stored with the graph and changes no existing id, so set the same rule before the first query every time.
    pub fn set_id_rule(&self, rule: IdRule) {
        self.inner.numeric_ids.store(rule == IdRule::Numbers, Ordering::Relaxed);
    }

    /// Sets the directory below which `g.io(…)` reads and writes files. With `None`, which is the default, `io()` is
    /// refused. Links below the directory are not followed. Every transaction that may write may use it.
    ///
    /// # Errors
    ///
    /// If the path is not a directory.
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

    /// Runs a Gremlin traversal in a transaction of its own, on the thread that reads the results.
    pub fn query(&self, text: &str) -> Result<ResultStream> {
        let prepared = self.prepare(text)?;
        self.run(&prepared, &Parameters::new())
    }

    /// Parses a Gremlin traversal, to be run many times. It is planned when it runs for the first time.
    pub fn prepare(&self, text: &str) -> Result<Prepared> {
        self.inner.plans.script(text)
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

    /// As [`Database::run_with`], but a query that is not over soon ([`QueryOptions::inline_messages`]) continues on
    /// the executors, where queries take turns. `accept` gets batches of results as they are found; the
    /// query waits while `accept` runs. The results of a traversal that writes come after its commit.
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

    /// Makes the plan that the first run of a prepared traversal would make. So this run does not wait for it.
    pub fn make_plan(&self, prepared: &Prepared) -> Result<()> {
        self.begin_read()?.plan(prepared).map(drop)
    }

    /// Returns the plan of a query as text.
    pub fn explain(&self, script: &str) -> Result<String> {
        let prepared = prepare_to_explain(script)?;
        self.begin_read()?.explain(&prepared)
    }

    /// Loads files into the empty graph, which stays empty if the load fails.
    pub fn load(
        &self,
        files: &[PathBuf],
        options: &LoadOptions,
        progress: &mut dyn FnMut(LoadProgress<'_>),
    ) -> Result<LoadReport> {
        bulk::load(&self.inner, files, options, progress)
    }

    /// Loads files into a graph that need not be empty and may be in use. Values of existing elements are replaced.
    /// Each batch is a transaction of its own, so a load that fails leaves the batches that it has committed; the same
    /// load, run again, finds their elements. If vertices of the files could not be recognized, or if a key fits no
    /// file, the load is refused before anything is written: see [`UpsertKeys`].
    pub fn upsert(
        &self,
        files: &[PathBuf],
        options: &LoadOptions,
        keys: UpsertKeys,
        progress: &mut dyn FnMut(LoadProgress<'_>),
    ) -> Result<LoadReport> {
        let options = LoadOptions { upsert: Some(keys), ..options.clone() };
        mangrove_load::load(files, &options, &mut UpsertSink::new(self), progress)
    }

    /// Loads tables that the program hands over into the empty graph, which stays empty if the load fails. An edge may name vertices
    /// of any of the tables. Of the options, those about files have no effect.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the graph is not empty, if a table does not have a column that is named, or if more rows are rejected
    /// than allowed.
    pub fn load_tables(
        &self,
        tables: Vec<SourceTable<'_>>,
        options: &LoadOptions,
        progress: &mut dyn FnMut(LoadProgress<'_>),
    ) -> Result<LoadReport> {
        let options = LoadOptions { upsert: None, ..options.clone() };
        bulk::load_with(&self.inner, &options, |sink| mangrove_load::load_tables(tables, &options, sink, progress))
    }

    /// Loads tables that the program hands over into a graph that need not be empty and may be in use, as [`Database::upsert`]
    /// loads files.
    ///
    /// # Errors
    ///
    /// As those of [`Database::load_tables`], but for the empty graph; and if vertices could not be recognized, or a key fits no
    /// table.
    pub fn upsert_tables(
        &self,
        tables: Vec<SourceTable<'_>>,
        options: &LoadOptions,
        keys: UpsertKeys,
        progress: &mut dyn FnMut(LoadProgress<'_>),
    ) -> Result<LoadReport> {
        let options = LoadOptions { upsert: Some(keys), ..options.clone() };
        mangrove_load::load_tables(tables, &options, &mut UpsertSink::new(self), progress)
    }

    /// Writes the graph to a file or a new folder, as one snapshot that does not expire, however long it takes. An
    /// error that `progress` returns ends the export.
    pub fn export(
        &self,
        path: &Path,
        options: &ExportOptions,
        progress: &mut dyn FnMut(ExportProgress) -> Result<()>,
    ) -> Result<ExportReport> {
        let snapshot = self.inner.manager.begin_protected_read()?;
        mangrove_load::export::export(&snapshot, path, options, progress)
    }

    /// A typed bulk load into the empty graph, without files.
    pub fn bulk_load(&self) -> Result<mangrove_txn::BulkLoad> {
        self.inner.manager.bulk_load()
    }

    /// The numbers of transactions, by how they ended.
    pub fn transaction_counters(&self) -> TransactionCounters {
        self.inner.manager.counters()
    }

    /// The settings of transactions that can be changed while the database runs.
    pub fn settings(&self) -> &mangrove_txn::Settings {
        self.inner.manager.settings()
    }

    /// Collects all versions that no running transaction can see, on this thread. Usually the collector does that in
    /// the background.
    pub fn collect_garbage(&self) {
        self.inner.manager.collect_garbage();
    }

    /// Collects, and packs the adjacency lists on which all running snapshots agree.
    pub fn compact(&self) {
        self.inner.manager.compact();
    }

    /// The backlog of garbage collection, and the numbers of records that it has collected.
    pub fn garbage(&self) -> mangrove_store::GarbageReport {
        self.inner.manager.garbage()
    }

    /// The newest statistics of the graph; `None` until the first pass over the graph is over. The first call has the
    /// collector's threads make them, and refresh them from then on when the graph has changed by much.
    pub fn statistics(&self) -> Option<Arc<Statistics>> {
        self.inner.manager.statistics()
    }

    /// As [`Database::statistics`], with their age. Looks at counters of all pages.
    pub fn dated_statistics(&self) -> Option<DatedStatistics> {
        self.inner.manager.dated_statistics()
    }

    /// Makes statistics of the newest snapshot on this thread. `check` is called every millisecond or so, and its error
    /// ends the pass and is returned.
    pub fn measure_statistics(&self, check: &mut dyn FnMut() -> Result<()>) -> Result<Arc<Statistics>> {
        self.inner.manager.measure_statistics(check)
    }

    /// The memory of the graph by kind of record.
    pub fn memory(&self) -> mangrove_store::MemoryReport {
        self.inner.manager.store().memory()
    }

    /// The numbers of vertices and edges from counters, without a scan. Elements of transactions that have not ended
    /// count.
    pub fn element_counts(&self) -> (u64, u64) {
        self.inner.manager.store().live_counts()
    }

    /// Fails if the graph has reached its own memory limit or the budget of the process. Writes are then refused until
    /// something is deleted.
    pub fn check_memory(&self) -> Result<()> {
        self.inner.manager.store().check_memory()
    }

    /// The layout of the adjacency lists in memory. Reads all of them.
    pub fn adjacency_layout(&self) -> mangrove_store::AdjacencyLayout {
        self.inner.manager.store().adjacency_layout()
    }

    /// The size, hits and misses of the plan cache.
    pub fn plan_cache(&self) -> PlanCacheReport {
        self.inner.plans.report()
    }

    /// The plans in the cache, those that were used last first.
    pub fn kept_plans(&self) -> Vec<KeptPlan> {
        self.inner.plans.plans()
    }

    /// The number of commits since the oldest running snapshot, for which versions of that age are kept.
    pub fn snapshot_lag(&self) -> u64 {
        let manager = &self.inner.manager;
        // The oldest first: it is never above a watermark that is read after it.
        let oldest = manager.oldest_snapshot();
        manager.watermark().saturating_sub(oldest)
    }

    /// The age of the oldest running snapshot for which versions are kept, in milliseconds.
    pub fn snapshot_age_ms(&self) -> u64 {
        self.inner.manager.oldest_snapshot_age_ms()
    }

    /// The memory of the write sets of recent commits, in bytes. Running serializable transactions are validated
    /// against them.
    pub fn commit_history_bytes(&self) -> u64 {
        self.inner.manager.commit_history_bytes()
    }

    /// Returns true if two handles are of the same graph.
    pub fn is_same(&self, other: &Database) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// Returns true if the graph was never written to.
    pub fn is_empty(&self) -> bool {
        self.inner.manager.store().is_empty()
    }
}
