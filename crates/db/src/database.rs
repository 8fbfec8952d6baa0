//! The database: a handle to one graph.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use mangrove_durable::recovery::RecoveryProgress;
use mangrove_flow::QueryLimits;
use mangrove_flow::clock::{Clock, MonotonicClock};
use mangrove_flow::executor::{ExecutorLoad, Executors};
use mangrove_graph::{Catalog, Error, ErrorKind, IdRule, MemoryBudget, Result, Value};
use mangrove_gremlin::{Bytecode, Parameters};
use mangrove_load::UpsertKeys;
use mangrove_load::export::{ExportOptions, ExportProgress, ExportReport};
use mangrove_store::{Store, StoreOptions, StoreSizes};
use mangrove_txn::{Hold, Holds, Isolation, TransactionCounters, TransactionManager, TransactionOptions};
use parking_lot::Mutex;

use crate::bulk::{self, LoadOptions, LoadReport, Progress};
use crate::durability::{Directory, DurabilityOptions, Home};
use crate::files::FileAccess;
use crate::prepared::{PlanCache, PlanCacheReport, Prepared};
use crate::services::ServiceDesk;
use crate::stream::{Materialize, ResultStream};
use crate::transaction::Transaction;
use crate::upsert::UpsertSink;

/// How a database is opened.
#[derive(Clone, Debug)]
pub struct DatabaseOptions {
    /// Tablets a new graph is spread over; one in a directory keeps the number it was made with.
    pub tablet_count: u16,
    /// The database refuses writes while the graph uses this much memory; reads go on.
    pub memory_limit_bytes: u64,
    /// The process's budget of memory, in which the graph, its queries and its loads count. By default nothing is counted.
    pub memory_budget: MemoryBudget,
    /// At what sizes structures of the store take another form: tests choose small ones.
    #[doc(hidden)]
    pub sizes: StoreSizes,
    /// Threads that queries share when they do not run on their caller's; 0: as many as there are cores.
    pub executor_count: usize,
    /// How a graph in a directory is kept there.
    pub durability: DurabilityOptions,
}

impl Default for DatabaseOptions {
    fn default() -> Self {
        let store = StoreOptions::default();
        DatabaseOptions {
            tablet_count: store.tablet_count,
            memory_limit_bytes: store.memory_limit_bytes,
            memory_budget: store.memory_budget,
            sizes: store.sizes,
            executor_count: 0,
            durability: DurabilityOptions::default(),
        }
    }
}

/// How a query is run.
#[derive(Clone, Debug)]
pub struct QueryOptions {
    /// Limits of time and memory. A time limit that the traversal names (`with("evaluationTimeout", ms)`)
    /// counts too: the shorter one holds, and 0 names none.
    pub limits: QueryLimits,
    /// What elements in the results carry.
    pub materialize: Materialize,
    /// Setting it ends the query at its next message.
    pub cancel: Arc<AtomicBool>,
    /// How many messages a query that goes to the executors ([`Database::run_shared`]) is first run for on its
    /// caller's thread. Waking an executor costs more than a light query: one that ends within these never
    /// leaves its thread, and a heavy one takes its turn with the others.
    pub inline_messages: usize,
    /// What a query that runs in a transaction of its own is protected from.
    pub isolation: Isolation,
    /// How many times a query that writes, in a transaction of its own, is run again after a conflict.
    pub retries: u32,
    /// Who answers `call()` instead of the database itself: a server adds services of its own, and decides who may
    /// call which.
    pub services: Option<ServiceDesk>,
}

/// As often as a server retries.
const RETRIES_DEFAULT: u32 = 10;

impl Default for QueryOptions {
    fn default() -> Self {
        QueryOptions {
            limits: QueryLimits::default(),
            materialize: Materialize::default(),
            cancel: Arc::default(),
            inline_messages: INLINE_MESSAGES,
            isolation: Isolation::default(),
            retries: RETRIES_DEFAULT,
            services: None,
        }
    }
}

/// Two turns of an executor: at most some hundred microseconds.
const INLINE_MESSAGES: usize = 2 * mangrove_flow::executor::QUOTA_MESSAGES;

/// Fields go in this order: first those who may still run queries, last the directory that they are about.
pub(crate) struct Inner {
    executors: Mutex<Option<Arc<Executors>>>,
    executor_count: usize,
    pub manager: TransactionManager,
    pub clock: Arc<dyn Clock>,
    pub plans: PlanCache,
    pub retries: AtomicU64,
    /// Whether strings that spell integers name them: [`IdRule::Numbers`].
    numeric_ids: AtomicBool,
    /// Where `io()` reads and writes, if anywhere.
    files: Mutex<Arc<FileAccess>>,
    /// How a query is run of which nothing is said. Nobody ever cancels it.
    options: QueryOptions,
    /// The process's budget of memory.
    pub budget: MemoryBudget,
    pub home: Home,
}

impl Inner {
    /// The files of `io()`.
    pub fn files(&self) -> Arc<FileAccess> {
        self.files.lock().clone()
    }
}

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

/// A graph database in this process. Cloning gives another handle to the same graph.
#[derive(Clone)]
pub struct Database {
    pub(crate) inner: Arc<Inner>,
    /// The handles that transactions hold. They are without this: otherwise the last one would never go.
    of_transactions: Option<Holds<Database>>,
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

    /// A handle to a graph that is there.
    pub(crate) fn assemble(options: &DatabaseOptions, manager: TransactionManager, home: Home) -> Self {
        let inner = Inner {
            executors: Mutex::new(None),
            executor_count: options.executor_count,
            manager,
            clock: Arc::new(MonotonicClock::default()),
            plans: PlanCache::default(),
            retries: AtomicU64::new(0),
            numeric_ids: AtomicBool::new(false),
            files: Mutex::default(),
            options: QueryOptions::default(),
            budget: options.memory_budget.clone(),
            home,
        };
        let database = Database { inner: Arc::new(inner), of_transactions: None };
        Database { of_transactions: Some(Holds::on(&Arc::new(database.clone()))), ..database }
    }

    /// The handle of a transaction.
    fn hold(&self) -> Hold<Database> {
        match &self.of_transactions {
            Some(holds) => holds.hold(),
            // Begun by the handle of another transaction.
            None => Hold::on(Arc::new(self.clone())),
        }
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

    /// How ids are read.
    pub fn id_rule(&self) -> IdRule {
        if self.inner.numeric_ids.load(Ordering::Relaxed) { IdRule::Numbers } else { IdRule::Any }
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

    /// The names of labels and keys.
    pub fn catalog(&self) -> &Catalog {
        self.inner.manager.store().catalog()
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
        prepared.explain(&transaction)
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

    /// The process's budget of memory that the database draws on.
    pub fn memory_budget(&self) -> &MemoryBudget {
        &self.inner.budget
    }

    /// The clock the database takes the time from.
    pub(crate) fn clock(&self) -> &Arc<dyn Clock> {
        &self.inner.clock
    }

    /// How a query is run of which nothing is said.
    pub(crate) fn options(&self) -> &QueryOptions {
        &self.inner.options
    }

    /// The executors; started when they are first needed.
    pub(crate) fn executors(&self) -> Result<Arc<Executors>> {
        let mut executors = self.inner.executors.lock();
        if let Some(running) = &*executors {
            return Ok(running.clone());
        }
        let count = match self.inner.executor_count {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            n => n,
        };
        let started = Executors::start(count)
            .map_err(|e| Error::new(ErrorKind::Io, format!("the executor threads could not be started: {e}")))?;
        Ok(executors.insert(Arc::new(started)).clone())
    }
}

/// What a query with these options may use, with the limit its traversal names.
pub(crate) fn limits(options: &QueryOptions, prepared: &Prepared) -> QueryLimits {
    // Zero names no limit of its own.
    let named = prepared.timeout_millis().filter(|ms| *ms > 0).map(|ms| ms.saturating_mul(1_000_000));
    let time_nanos = match (options.limits.time_nanos, named) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    };
    QueryLimits { time_nanos, ..options.limits }
}
