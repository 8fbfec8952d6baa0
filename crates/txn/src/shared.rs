//! The state that the manager of a graph, its transactions and its collector share.
//!
//! It owns the tables of the protocol (`status`, `recent`), the settings and counters, and the collector's workers. It
//! knows neither transactions nor the manager, so that both can depend on it.

use std::sync::{Arc, OnceLock, Weak};

use mangrove_graph::{Draw, Error, ErrorKind, Result};
use mangrove_locks::rank;
use mangrove_store::Store;

use crate::counters::{AbortCause, Counters};
use crate::expiry::{Clock, Expiry};
use crate::following::Following;
use crate::log::{CommitLog, Watermarks};
use crate::recent::RecentCommits;
use crate::settings::Settings;
use crate::statistics::StatisticsKeeper;
use crate::status::StatusTable;
use crate::sync::{AtomicBool, Ordering};
use crate::workers::Workers;

/// The shared state of one graph.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) store: Arc<Store>,
    pub(crate) recent: RecentCommits,
    /// The draw of the write sets of recent commits on the memory budget; absent if the budget is unlimited.
    pub(crate) history_draw: Option<mangrove_locks::Mutex<Draw, rank::HistoryBudget>>,
    pub(crate) status: StatusTable,
    /// The log that makes commits durable; absent in a graph that lives in memory only, and while it follows.
    pub(crate) log: OnceLock<Arc<dyn CommitLog>>,
    pub(crate) following: Following,
    /// Set while a bulk load has exclusive use of the graph.
    pub(crate) loading: AtomicBool,
    pub(crate) after_load: AfterLoad,
    pub(crate) counters: Counters,
    pub(crate) settings: Settings,
    pub(crate) clock: Clock,
    pub(crate) expiry: Expiry,
    pub(crate) statistics: StatisticsKeeper,
    pub(crate) workers: Workers,
}

impl Watermarks for Shared {
    fn stable(&self) -> u64 {
        self.recent.stable()
    }

    fn set_durable(&self, ts: u64) {
        self.recent.set_durable(ts);
    }
}

/// Makes a graph durable after a bulk load. Its arguments are the store and the stable watermark.
pub(crate) type MakeDurable = Box<dyn Fn(&Store, u64) -> Result<()> + Send + Sync>;

/// The callback that runs after a bulk load, before transactions begin.
#[derive(Default)]
pub(crate) struct AfterLoad(pub(crate) OnceLock<MakeDurable>);

impl std::fmt::Debug for AfterLoad {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "AfterLoad({})", self.0.get().is_some())
    }
}

impl Shared {
    /// Has commits go into a log from now on. Everything up to the watermark is durable.
    pub(crate) fn use_log(self: &Arc<Self>, log: Arc<dyn CommitLog>) {
        self.recent.set_durable(self.recent.stable());
        let watermarks: Weak<Shared> = Arc::downgrade(self);
        log.attach(watermarks);
        assert!(self.log.set(log).is_ok(), "a graph has one log");
    }

    pub(crate) fn after_load(&self) -> Result<()> {
        self.after_load.0.get().map_or(Ok(()), |make_durable| make_durable(&self.store, self.recent.stable()))
    }

    pub(crate) fn end_load(&self) {
        self.loading.store(false, Ordering::SeqCst);
    }

    /// Expires transactions that are too old. Returns true if some expired transactions still hold collection back.
    pub(crate) fn expire_old(&self) -> bool {
        let limit = self.settings.max_snapshot_age_ms.load(std::sync::atomic::Ordering::Relaxed);
        self.expiry.expire_old(&self.status, &self.clock, limit)
    }

    /// The age in milliseconds of the oldest snapshot that holds collection back; 0 if there is none.
    pub(crate) fn oldest_age_ms(&self) -> u64 {
        self.status.oldest_began_ms().map_or(0, |began_ms| self.clock.now().saturating_sub(began_ms))
    }

    /// The error that the client of an expired transaction gets.
    pub(crate) fn expired_error(&self) -> Error {
        if self.following.is_replaced() {
            let message = "the server has loaded the graph again since this transaction began, from its home, because commits were \
                           missing; the transaction was rolled back: run it again from its beginning";
            return Error::new(ErrorKind::Expired, message).because(AbortCause::Expired.name());
        }
        let limit = self.settings.max_snapshot_age_ms.load(std::sync::atomic::Ordering::Relaxed);
        Error::new(
            ErrorKind::Expired,
            format!(
                "this transaction was open for longer than max_snapshot_age_ms = {limit}, so what it read may be gone \
                 and it was rolled back; begin another one, or raise the limit (0: none) with \
                 g.call('mangrove.config').with('max_snapshot_age_ms', N)"
            ),
        )
        .because(AbortCause::Expired.name())
    }
}
