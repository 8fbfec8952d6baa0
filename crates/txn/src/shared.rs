//! The state that the manager of a graph, its transactions and its collector share.

use std::sync::{Arc, OnceLock};

use mangrove_graph::{Draw, Error, ErrorKind, Result};
use mangrove_store::Store;

use crate::counters::{AbortCause, Counters};
use crate::expiry::{Clock, Expiry};
use crate::log::CommitLog;
use crate::recent::RecentCommits;
use crate::settings::Settings;
use crate::status::StatusTable;
use crate::sync::{AtomicBool, Ordering};
use crate::workers::Workers;

/// What the manager and its transactions share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) store: Arc<Store>,
    pub(crate) recent: RecentCommits,
    /// What recent commits take of the memory budget; absent where there is none.
    pub(crate) history_draw: Option<parking_lot::Mutex<Draw>>,
    pub(crate) status: StatusTable,
    /// Where commits are made durable; absent where they are not.
    pub(crate) log: Option<Arc<dyn CommitLog>>,
    /// Set while the graph belongs to a bulk load.
    pub(crate) loading: AtomicBool,
    pub(crate) after_load: AfterLoad,
    pub(crate) counters: Counters,
    pub(crate) settings: Settings,
    pub(crate) clock: Clock,
    pub(crate) expiry: Expiry,
    pub(crate) workers: Workers,
}

/// Makes a graph durable that was loaded in bulk; told the store and the watermark.
pub(crate) type MakeDurable = Box<dyn Fn(&Store, u64) -> Result<()> + Send + Sync>;

/// What is to be done after a bulk load, before transactions begin.
#[derive(Default)]
pub(crate) struct AfterLoad(pub(crate) OnceLock<MakeDurable>);

impl std::fmt::Debug for AfterLoad {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "AfterLoad({})", self.0.get().is_some())
    }
}

impl Shared {
    pub(crate) fn after_load(&self) -> Result<()> {
        self.after_load.0.get().map_or(Ok(()), |make_durable| make_durable(&self.store, self.recent.stable()))
    }

    pub(crate) fn end_load(&self) {
        self.loading.store(false, Ordering::SeqCst);
    }

    /// Expires who is too old, and leaves out of account who expired earlier. Whether some wait to be left out.
    pub(crate) fn expire_old(&self) -> bool {
        let limit = self.settings.max_snapshot_age_ms.load(std::sync::atomic::Ordering::Relaxed);
        self.expiry.expire_old(&self.status, &self.clock, limit)
    }

    /// How old the oldest snapshot is that something is kept for; 0 where there is none.
    pub(crate) fn oldest_age_ms(&self) -> u64 {
        self.status.oldest_born().map_or(0, |born| self.clock.now().saturating_sub(born))
    }

    /// What an expired transaction is told.
    pub(crate) fn expired_error(&self) -> Error {
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
