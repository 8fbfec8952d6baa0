//! The transactions of one graph: beginning them, counting them, bulk loads, collection on request, and indexes.
//!
//! The manager is the way into this crate. It owns nothing but handles on the shared state (`shared`). A bulk load and
//! a begin exclude each other: the begin claims its status entry first and reads the flag second, the load does it the
//! other way round.

use std::sync::{Arc, OnceLock};

use mangrove_graph::statistics::Statistics;
use mangrove_graph::{Error, ErrorKind, IndexId, KeyId, LabelSetId, Purpose, Result};
use mangrove_store::{BulkLoader, GarbageReport, IndexOptions, RunningTransactions, Store};

use crate::bulk::BulkLoad;
use crate::counters::{Counters, TransactionCounters};
use crate::expiry::{Clock, Expiry};
use crate::following::Following;
use crate::log::{CommitLog, IndexChange};
use crate::options::TransactionOptions;
use crate::recent::{RecentCommits, RecentOptions};
use crate::settings::Settings;
use crate::sharded_arc::ShardedArc;
use crate::shared::{AfterLoad, MakeDurable, Shared};
use crate::statistics::{DatedStatistics, StatisticsKeeper};
use crate::status::StatusTable;
use crate::sync::{AtomicBool, Ordering};
use crate::transaction::Transaction;
use crate::workers::Workers;

/// The transactions of one graph. A clone is another handle to the same graph.
#[derive(Clone, Debug)]
pub struct TransactionManager {
    shared: Arc<Shared>,
    handles: ShardedArc<Shared>,
}

impl TransactionManager {
    /// The transactions of a store. A store has at most one manager.
    pub fn new(store: Arc<Store>) -> Self {
        Self::with_options(store, RecentOptions::default())
    }

    /// As [`TransactionManager::new`], with other options for recent commits.
    pub fn with_options(store: Arc<Store>, recent: RecentOptions) -> Self {
        Self::resuming(store, recent, 0)
    }

    /// The transactions of a store that was restored as of `last_ts`. The first transaction sees all of it, and commits
    /// after it.
    pub fn resuming(store: Arc<Store>, recent: RecentOptions, last_ts: u64) -> Self {
        Self::build(store, RecentCommits::resuming(recent, last_ts))
    }

    /// As [`TransactionManager::resuming`], with a log that makes commits durable. Everything up to `last_ts` is
    /// durable.
    pub fn with_log(store: Arc<Store>, recent: RecentOptions, last_ts: u64, log: Arc<dyn CommitLog>) -> Self {
        let manager = Self::resuming(store, recent, last_ts);
        manager.shared.use_log(log);
        manager
    }

    pub(crate) fn build(store: Arc<Store>, recent: RecentCommits) -> Self {
        let budget = store.memory_budget();
        let history_draw =
            (!budget.is_unlimited()).then(|| mangrove_locks::Mutex::new(budget.account(Purpose::Transactions)));
        let shared = Arc::new(Shared {
            store,
            recent,
            history_draw,
            status: StatusTable::new(),
            log: OnceLock::new(),
            following: Following::default(),
            loading: AtomicBool::new(false),
            after_load: AfterLoad::default(),
            counters: Counters::default(),
            settings: Settings::default(),
            clock: Clock::start(),
            expiry: Expiry::default(),
            statistics: StatisticsKeeper::default(),
            workers: Workers::default(),
        });
        TransactionManager { handles: ShardedArc::new(&shared), shared }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// The store.
    pub fn store(&self) -> &Arc<Store> {
        &self.shared.store
    }

    /// Begins a transaction. Fails with `Closed` during a bulk load, or if another process has taken the graph over.
    pub fn begin(&self, options: TransactionOptions) -> Result<Transaction> {
        let transaction = self.begin_unproved(options)?;
        match self.shared.log.get().filter(|_| options.read_only) {
            Some(log) => log.admit_read().map(|()| transaction),
            None => Ok(transaction),
        }
    }

    /// Begins a transaction, without a proof that no other process has taken the graph over.
    fn begin_unproved(&self, options: TransactionOptions) -> Result<Transaction> {
        let Shared { status, recent, clock, .. } = &*self.shared;
        let registration = match options.read_only {
            true => status.register_reader(recent, clock.now()),
            false => status.register(recent, clock.now(), options.is_validated()),
        };
        // The entry first, the flag second; `bulk_load` does it the other way round. So one of the two notices the
        // other.
        if self.shared.loading.load(Ordering::SeqCst) {
            self.shared.status.release(registration.entry);
            let message = "a bulk load is running, or what it loaded could not be made durable; transactions begin when it has \
                           finished, or when the graph was opened again";
            return Err(Error::new(ErrorKind::Closed, message));
        }
        // In this order, too.
        if self.shared.following.is_replaced() {
            self.shared.status.release(registration.entry);
            return Err(self.shared.expired_error());
        }
        Ok(Transaction::new(self.handles.handle(), options, registration))
    }

    /// Begins a read-only transaction.
    pub fn begin_read(&self) -> Result<Transaction> {
        self.begin(TransactionOptions { read_only: true, ..TransactionOptions::default() })
    }

    /// Begins a read-only transaction that cannot expire, for an export that ends it soon.
    pub fn begin_protected_read(&self) -> Result<Transaction> {
        self.protected(self.begin_read()?)
    }

    /// Begins a read-only transaction that cannot expire, without a proof that no other process has taken the graph over:
    /// for a checkpoint or statistics, from which no client learns that a state is the newest one.
    pub fn begin_unproved_read(&self) -> Result<Transaction> {
        self.protected(self.begin_unproved(TransactionOptions { read_only: true, ..TransactionOptions::default() })?)
    }

    fn protected(&self, held: Transaction) -> Result<Transaction> {
        // The limit may be shorter than the time this thread was not running.
        if held.protect() { Ok(held) } else { Err(self.shared.expired_error()) }
    }

    /// Begins to load an empty graph. Fails while transactions are running.
    pub fn bulk_load(&self) -> Result<BulkLoad> {
        self.shared.following.check_writable()?;
        if self.shared.loading.swap(true, Ordering::SeqCst) {
            return Err(Error::new(ErrorKind::Closed, "another bulk load is running on this graph"));
        }
        // Statistics of an empty graph are no reason to refuse the load.
        self.shared.give_up_statistics();
        let loader = match self.shared.status.count() {
            0 => BulkLoader::new(self.shared.store.clone()),
            n => Err(Error::new(
                ErrorKind::Closed,
                format!("a bulk load cannot begin while {n} transactions are running"),
            )),
        };
        match loader {
            Ok(loader) => Ok(BulkLoad::new(loader, self.shared.clone())),
            Err(error) => {
                self.shared.end_load();
                Err(error)
            }
        }
    }

    /// Registers a callback that runs after each bulk load, before transactions begin: it makes the graph durable. The
    /// owner that opens the graph calls this once.
    pub fn after_load(&self, make_durable: MakeDurable) {
        // A second callback would mean a second owner of the graph.
        assert!(self.shared.after_load.0.set(make_durable).is_ok(), "a graph is opened once");
    }

    /// The stable watermark: a transaction that may write reads at it if it begins now.
    pub fn watermark(&self) -> u64 {
        self.shared.recent.stable()
    }

    /// The timestamp a read-only transaction reads at if it begins now: the watermark or, if there is a log and that is
    /// lower, the last durable timestamp.
    pub fn readable(&self) -> u64 {
        self.shared.recent.readable()
    }

    /// The oldest snapshot: no running or future transaction reads at an earlier timestamp.
    pub fn oldest_snapshot(&self) -> u64 {
        self.shared.status.oldest(&self.shared.recent)
    }

    /// The ordinal of the oldest running transaction, or of the next one: for models.
    #[doc(hidden)]
    pub fn oldest_transaction(&self) -> u64 {
        RunningTransactions::oldest_transaction(&*self.shared)
    }

    /// The age in milliseconds of the oldest snapshot that holds collection back; 0 if there is none.
    pub fn oldest_snapshot_age_ms(&self) -> u64 {
        self.shared.oldest_age_ms()
    }

    /// Bytes that the write sets of recent commits take.
    pub fn commit_history_bytes(&self) -> u64 {
        self.shared.recent.bytes()
    }

    /// Counters of how transactions ended so far.
    pub fn counters(&self) -> TransactionCounters {
        self.shared.counters.load(self.shared.status.count() as u64)
    }

    /// The settings that can be changed while transactions run.
    pub fn settings(&self) -> &Settings {
        &self.shared.settings
    }

    /// Wakes the collector's workers, and starts them if there are none: after a change of settings.
    pub fn wake_collector(&self) {
        self.shared.workers.wake(&self.shared);
    }

    /// Collects on this thread everything that no running transaction can see. Waits for readers that hold memory back,
    /// but not for long.
    pub fn collect_garbage(&self) {
        self.shared.collect_all(false);
    }

    /// As [`TransactionManager::collect_garbage`], and packs the adjacency that every running transaction sees alike.
    pub fn compact(&self) {
        self.shared.collect_all(true);
    }

    /// One round of a worker, on this thread and without a wait: for models, which have no workers.
    #[doc(hidden)]
    pub fn collect_round(&self) {
        self.shared.collect_some(true);
    }

    /// The newest statistics of the graph; `None` until the first pass is over. The first call has the collector's
    /// workers make them, and keep them fresh from then on.
    pub fn statistics(&self) -> Option<Arc<Statistics>> {
        self.shared.newest_statistics()
    }

    /// As [`TransactionManager::statistics`], with their age. Looks at the counters of all pages.
    pub fn dated_statistics(&self) -> Option<DatedStatistics> {
        self.shared.dated_statistics()
    }

    /// Asks for statistics of the values that vertices of a label set have under a key, for each of these pairs. They
    /// come with one of the next [`TransactionManager::statistics`]. The values of [`COUNTED_VALUES_MAX`] pairs are
    /// counted; if more are asked for, those that were asked for last.
    ///
    /// [`COUNTED_VALUES_MAX`]: crate::COUNTED_VALUES_MAX
    pub fn ask_values(&self, pairs: &[(LabelSetId, KeyId)]) {
        self.shared.ask_values(pairs);
    }

    /// Makes statistics of the newest snapshot on this thread. `check` is called every millisecond or so, and its error
    /// ends the pass and is returned.
    pub fn measure_statistics(&self, check: &mut dyn FnMut() -> Result<()>) -> Result<Arc<Statistics>> {
        let held = self.begin_unproved_read()?;
        self.shared.measure_statistics(held.begin_ts(), check)
    }

    /// How much garbage waits to be collected, and how much was collected.
    pub fn garbage(&self) -> GarbageReport {
        self.shared.store.garbage()
    }

    /// Builds an index while transactions run. Transactions that begin after this use it.
    /// Errors: those of [`Store::create_index`].
    pub fn create_index(&self, options: &IndexOptions) -> Result<IndexId> {
        self.shared.following.check_writable()?;
        // The versions that the builder reads must not be collected meanwhile. (During a bulk load no transaction can
        // begin, and no version is collected.)
        let held = self.begin_read().ok();
        if held.as_ref().is_some_and(|held| !held.protect()) {
            // The limit may be shorter than the time this thread was not running.
            return Err(self.shared.expired_error());
        }
        let id = self.shared.store.create_index(options, || self.watermark())?;
        self.log_index(id)?;
        Ok(id)
    }

    /// Drops an index. Fails with `NotFound` if there is none.
    pub fn drop_index(&self, id: IndexId) -> Result<()> {
        self.shared.following.check_writable()?;
        // The log first: no commit may break the uniqueness of an index before the end of the index is durable. Both
        // under the lock on changes of indexes: a checkpoint that began after the log record and listed the indexes
        // before the drop would bring the index back.
        self.shared.store.drop_index_after(id, || match self.shared.log.get() {
            Some(log) => log.change_index(&IndexChange::Dropped(id), &self.shared.recent),
            None => Ok(()),
        })
    }

    /// Makes a new index durable, or drops it.
    fn log_index(&self, id: IndexId) -> Result<()> {
        let Some(log) = self.shared.log.get() else { return Ok(()) };
        let created = self.shared.store.indexes().into_iter().find(|index| index.id == id);
        let logged = created.map_or(Ok(()), |info| log.change_index(&IndexChange::Created(info), &self.shared.recent));
        let is_there = self.shared.store.indexes().iter().any(|index| index.id == id);
        match logged {
            Err(error) if is_there => {
                self.shared.store.drop_index(id)?;
                Err(error)
            }
            Err(error) => Err(error),
            Ok(()) if is_there => Ok(()),
            // Another client dropped it meanwhile, and the log may have that record before the one of its creation.
            Ok(()) => log.change_index(&IndexChange::Dropped(id), &self.shared.recent),
        }
    }
}
