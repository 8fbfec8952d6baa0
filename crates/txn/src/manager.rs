//! The transactions of one graph: who begins, who counts, and what needs the graph to itself.

use std::sync::Arc;

use mangrove_graph::{Error, ErrorKind, IndexId, Purpose, Result};
use mangrove_store::{BulkLoader, GarbageReport, Horizon, IndexOptions, Store};

use crate::bulk::BulkLoad;
use crate::counters::{Counters, TransactionCounters};
use crate::expiry::{Clock, Expiry};
use crate::hold::Holds;
use crate::log::{CommitLog, IndexChange};
use crate::options::TransactionOptions;
use crate::recent::{RecentCommits, RecentOptions};
use crate::settings::Settings;
use crate::shared::{AfterLoad, MakeDurable, Shared};
use crate::status::StatusTable;
use crate::sync::{AtomicBool, Ordering};
use crate::transaction::Transaction;
use crate::workers::Workers;

/// See the module. Cloning gives another handle to the same graph.
#[derive(Clone, Debug)]
pub struct TransactionManager {
    shared: Arc<Shared>,
    holds: Holds<Shared>,
}

impl TransactionManager {
    /// The transactions of a store. A store has one manager at most.
    pub fn new(store: Arc<Store>) -> Self {
        Self::with_options(store, RecentOptions::default())
    }

    /// As [`TransactionManager::new`], with another way to keep recent commits.
    pub fn with_options(store: Arc<Store>, recent: RecentOptions) -> Self {
        Self::resuming(store, recent, 0)
    }

    /// The transactions of a store that was restored as it was at a timestamp: the first one sees all of it, and
    /// commits after it.
    pub fn resuming(store: Arc<Store>, recent: RecentOptions, last_ts: u64) -> Self {
        Self::build(store, RecentCommits::resuming(recent, last_ts), None)
    }

    /// As [`TransactionManager::resuming`], with a log that makes commits durable. Everything up to `last_ts` is.
    pub fn with_log(store: Arc<Store>, recent: RecentOptions, last_ts: u64, log: Arc<dyn CommitLog>) -> Self {
        let recent = RecentCommits::resuming(recent, last_ts);
        recent.set_durable(last_ts);
        Self::build(store, recent, Some(log))
    }

    fn build(store: Arc<Store>, recent: RecentCommits, log: Option<Arc<dyn CommitLog>>) -> Self {
        let budget = store.memory_budget();
        let history_draw =
            (!budget.is_unlimited()).then(|| parking_lot::Mutex::new(budget.account(Purpose::Transactions)));
        let shared = Arc::new(Shared {
            store,
            recent,
            history_draw,
            status: StatusTable::new(),
            log,
            loading: AtomicBool::new(false),
            after_load: AfterLoad::default(),
            counters: Counters::default(),
            settings: Settings::default(),
            clock: Clock::start(),
            expiry: Expiry::default(),
            workers: Workers::default(),
        });
        TransactionManager { holds: Holds::on(&shared), shared }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// The store.
    pub fn store(&self) -> &Arc<Store> {
        &self.shared.store
    }

    /// Begins a transaction. Fails with `Closed` while the graph is loaded in bulk.
    pub fn begin(&self, options: TransactionOptions) -> Result<Transaction> {
        let Shared { status, recent, clock, .. } = &*self.shared;
        let registration = match options.read_only {
            true => status.register_reader(recent, clock.now()),
            false => status.register(recent, clock.now(), options.is_validated()),
        };
        // The slot first, the flag second; `bulk_load` the other way round: one of the two notices.
        if self.shared.loading.load(Ordering::SeqCst) {
            self.shared.status.release(registration.slot);
            let message = "a bulk load is running, or what it loaded could not be made durable; transactions begin when it has \
                           finished, or when the graph was opened again";
            return Err(Error::new(ErrorKind::Closed, message));
        }
        Ok(Transaction::new(self.holds.hold(), options, registration))
    }

    /// Begins a read-only transaction.
    pub fn begin_read(&self) -> Result<Transaction> {
        self.begin(TransactionOptions { read_only: true, ..TransactionOptions::default() })
    }

    /// Begins a read-only transaction that does not expire, however long it is open: for checkpoints and the like, which
    /// end it soon.
    pub fn hold_snapshot(&self) -> Result<Transaction> {
        let held = self.begin_read()?;
        // The limit is shorter than a thread may be held up.
        if held.keep() { Ok(held) } else { Err(self.shared.expired_error()) }
    }

    /// Begins loading an empty graph. Fails while transactions are running.
    pub fn bulk_load(&self) -> Result<BulkLoad> {
        if self.shared.loading.swap(true, Ordering::SeqCst) {
            return Err(Error::new(ErrorKind::Closed, "another bulk load is running on this graph"));
        }
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

    /// Has this done after each bulk load, before transactions begin: what makes the graph durable. Said once, by whoever
    /// opens the graph.
    pub fn after_load(&self, make_durable: MakeDurable) {
        // A second one would be a second owner of the graph.
        assert!(self.shared.after_load.0.set(make_durable).is_ok(), "a graph is opened once");
    }

    /// The stable watermark: what a transaction that begins now and may write sees.
    pub fn watermark(&self) -> u64 {
        self.shared.recent.stable()
    }

    /// What a read-only transaction that begins now sees: the watermark or, where there is a log and it is behind, what is
    /// durable.
    pub fn readable(&self) -> u64 {
        self.shared.recent.readable()
    }

    /// No running or future transaction reads at an earlier timestamp.
    pub fn oldest_snapshot(&self) -> u64 {
        self.shared.status.oldest(&self.shared.recent)
    }

    /// The number of the oldest transaction that runs, or of the next one: for models.
    #[doc(hidden)]
    pub fn oldest_transaction(&self) -> u64 {
        RunningTransactions::oldest_transaction(&*self.shared)
    }

    /// How many milliseconds ago the oldest snapshot was taken that anything is kept for; 0 where there is none.
    pub fn oldest_snapshot_age_ms(&self) -> u64 {
        self.shared.oldest_age_ms()
    }

    /// The bytes that write sets of recent commits take, which serializable transactions are checked against.
    pub fn commit_history_bytes(&self) -> u64 {
        self.shared.recent.bytes()
    }

    /// How transactions ended so far.
    pub fn counters(&self) -> TransactionCounters {
        self.shared.counters.load(self.shared.status.count() as u64)
    }

    /// What can be changed while transactions run.
    pub fn settings(&self) -> &Settings {
        &self.shared.settings
    }

    /// Has the collector's workers look around now, and starts them where there are none: after a change of settings.
    pub fn wake_collector(&self) {
        self.shared.workers.wake(&self.shared);
    }

    /// Collects everything that no running transaction can see, now and on this thread. What readers of this moment
    /// hold back is waited for, but not for long.
    pub fn collect_garbage(&self) {
        self.shared.collect_all(false);
    }

    /// Collects, and packs the adjacency of everything that every running transaction sees alike.
    pub fn compact(&self) {
        self.shared.collect_all(true);
    }

    /// One round of a collector's worker, on this thread and without a wait: for models, where nobody else collects.
    #[doc(hidden)]
    pub fn collect_round(&self) {
        self.shared.collect_some(true);
    }

    /// What waits to be collected, and what was.
    pub fn garbage(&self) -> GarbageReport {
        self.shared.store.garbage()
    }

    /// Builds an index while transactions go on. Those that begin afterwards use it.
    pub fn create_index(&self, options: &IndexOptions) -> Result<IndexId> {
        // What the builder reads must not be collected meanwhile. (While a load is running nothing is.)
        let held = self.begin_read().ok();
        if held.as_ref().is_some_and(|held| !held.keep()) {
            // The limit is shorter than a thread may be held up.
            return Err(self.shared.expired_error());
        }
        let id = self.shared.store.create_index(options, || self.watermark())?;
        self.log_index(id)?;
        Ok(id)
    }

    /// Drops an index. Fails with `NotFound` where there is none.
    pub fn drop_index(&self, id: IndexId) -> Result<()> {
        // The log first: what a unique index forbids is not done before everybody knows that it is gone. In one turn: a
        // checkpoint that begins after the one and asks before the other would bring the index back.
        self.shared.store.drop_index_after(id, || match &self.shared.log {
            Some(log) => log.change_index(&IndexChange::Dropped(id), &self.shared.recent),
            None => Ok(()),
        })
    }

    /// Makes a new index durable, or drops it.
    fn log_index(&self, id: IndexId) -> Result<()> {
        let Some(log) = &self.shared.log else { return Ok(()) };
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
            // Somebody dropped it meanwhile, and the log may say so before it says that the index is there.
            Ok(()) => log.change_index(&IndexChange::Dropped(id), &self.shared.recent),
        }
    }
}
