//! A durable graph: recovery, log and checkpoints together.
//!
//! ```text
//! open:   newest manifest ──▶ recover ──▶ new fencing epoch (manifest N+1) ──▶ cut the log's torn end
//!         ──▶ new segment ──▶ transactions
//! then:   commits ──▶ log; the log has grown by a quarter of the packs, or `checkpoint_after` has passed
//!         ──▶ checkpoint ──▶ remove the log segments and the old files that it makes needless
//! ```
//!
//! The fencing epoch is claimed before anything else is changed (LOG-31). On a local disk [`crate::lock`] already keeps
//! a second process away.
//!
//! A bulk load writes no log. It is durable when a checkpoint of it is, and only then transactions may begin: after a
//! crash before that, the graph is empty.
//!
//! The module `background` decides when a checkpoint is due.
//!
//! Locks: `mangrove_locks::rank` has their order. The one on the checkpoint state is held through all I/O of a
//! checkpoint.

pub(crate) mod background;

use std::sync::Arc;
use std::time::Duration;

use mangrove_failpoint::{Point, reach};
use mangrove_graph::{Error, ErrorKind, MemoryBudget, Result};
use mangrove_locks::{Mutex, rank};
use mangrove_store::{Store, StoreSizes};
use mangrove_txn::{RecentOptions, TransactionManager};
use uuid::Uuid;

pub use background::CheckpointStatus;
use background::{Background, CheckpointPolicy, CheckpointProgress, Checkpointed};

use crate::ambient::{draw_uuid, unix_us};
use crate::backup::{BackupOptions, BackupReport, copy_state};
use crate::checkpoint::{CheckpointForms, CheckpointReport, CheckpointSnapshot, Checkpoints, clean_up};
use crate::disk::Disk;
use crate::extract::copy::Origin;
use crate::extract::find::Found;
use crate::feed::{Feed, FeedPosition};
use crate::home::Home;
use crate::log::record::NameCounts;
use crate::log::{self, DurabilityStatus, Log, LogOptions, LogStart};
use crate::manifest::{CHECKPOINT_DIR, FIRST_CHECKPOINT_DIR, MANIFEST_DIR, Manifest};
use crate::open::columns::ColumnsFormat;
use crate::recovery::{Recovered, RecoveryOptions, RecoveryProgress, RecoverySummary, recover};

/// The options of a durable graph.
#[derive(Clone, Debug)]
pub struct DurableOptions {
    /// The number of tablets of a new graph. An existing graph keeps its number.
    pub tablet_count: u16,
    /// Writes are refused while the graph uses more memory than this.
    pub memory_limit_bytes: u64,
    /// The memory budget of the process, which the graph draws on.
    pub memory_budget: MemoryBudget,
    /// The sizes at which structures of the store change their form.
    pub sizes: StoreSizes,
    /// How recent commits are kept for validation.
    pub recent: RecentOptions,
    /// The options of the log.
    pub log: LogOptions,
    /// A checkpoint is taken in the background when this many bytes of log were written since the last one; 0: never;
    /// `None`: a quarter of the checkpoint's live bytes, and 64 MiB at least.
    pub checkpoint_log_bytes: Option<u64>,
    /// A checkpoint is also taken in the background when this much time has passed since the last one and the log has
    /// grown; `None`: never.
    pub checkpoint_after: Option<Duration>,
    /// Whether checkpoints have topology blocks, which other programs can read (`docs/design/open-formats.md`); `None`: as the
    /// last checkpoint was.
    pub open_topology: Option<bool>,
    /// How checkpoints write open columns; `None`: they cannot.
    pub columns: Option<Arc<dyn ColumnsFormat>>,
    /// Every checkpoint has open columns, not only those that are asked for them.
    pub open_columns: bool,
    /// Threads of recovery; 0: one per core.
    pub recovery_threads: usize,
    /// The id of a new database; `None`: a random one. A fixed one makes the files of a test repeatable.
    pub new_database: Option<Uuid>,
}

impl Default for DurableOptions {
    fn default() -> Self {
        DurableOptions {
            tablet_count: 64,
            memory_limit_bytes: u64::MAX,
            memory_budget: MemoryBudget::unlimited(),
            sizes: StoreSizes::default(),
            recent: RecentOptions::default(),
            log: LogOptions::default(),
            checkpoint_log_bytes: None,
            checkpoint_after: None,
            open_topology: None,
            columns: None,
            open_columns: false,
            recovery_threads: 0,
            new_database: None,
        }
    }
}

impl DurableOptions {
    /// Whether checkpoints of the graph with this manifest have topology blocks.
    pub(crate) fn has_topology(&self, manifest: &Manifest) -> bool {
        self.open_topology.unwrap_or(manifest.topology.is_some())
    }

    /// The options of recovery.
    pub(crate) fn of_recovery(&self, manifest: &Manifest) -> RecoveryOptions {
        let threads = match self.recovery_threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            n => n,
        };
        RecoveryOptions {
            threads,
            memory_limit_bytes: self.memory_limit_bytes,
            memory_budget: self.memory_budget.clone(),
            sizes: self.sizes,
            follows: false,
            notes_replayed_lists: self.has_topology(manifest),
        }
    }
}

/// The disk, log and checkpoints of a graph, shared with the background thread.
#[derive(Debug)]
struct DurableCore {
    disk: Arc<dyn Disk>,
    log: Arc<Log>,
    /// Locked while a checkpoint is taken.
    checkpoints: Mutex<Checkpoints, rank::CheckpointState>,
    progress: CheckpointProgress,
}

/// An open durable graph. Dropping it ends the background work. Everything acknowledged is durable at any time.
#[derive(Debug)]
pub struct Durable {
    inner: Arc<DurableCore>,
    manager: TransactionManager,
    recovery: RecoverySummary,
    database: Uuid,
    epoch: u64,
    background: Background,
}

impl Durable {
    /// Opens the graph on a disk, or creates one on an empty disk. The caller keeps other processes away
    /// ([`crate::lock`]). `progress` is called from several threads.
    pub fn open(
        disk: Arc<dyn Disk>,
        options: &DurableOptions,
        progress: &(dyn Fn(RecoveryProgress) + Sync),
    ) -> Result<Self> {
        let manifest = match Manifest::newest(&*disk)? {
            Some(manifest) => manifest,
            None => found(&*disk, options)?,
        };
        let Recovered { store, mut checkpoints, summary } =
            recover(&*disk, &manifest, options.of_recovery(&manifest), progress)?;
        checkpoints.set_topology(options.has_topology(&manifest));
        checkpoints.set_columns(options.columns.clone(), options.open_columns);
        reach(Point::Recovered);
        // LOG-42: nothing was changed until here. LOG-31: the epoch before anything else.
        checkpoints.begin_epoch(&*disk)?;
        reach(Point::RecoveryEpoch);
        // A version that wrote format 1 did not make it. If it was always empty, it may have been removed.
        disk.create_dir(CHECKPOINT_DIR)?;
        disk.sync_dir("")?;
        summary.log.cut(&*disk)?;
        clean_up(&*disk, checkpoints.manifest())?;
        let store = Arc::new(store);
        let epoch = checkpoints.manifest().epoch();
        let start = LogStart {
            database: manifest.database,
            epoch,
            next_segment: summary.log.next_segment,
            next_batch: summary.log.next_batch,
            durable_ts: summary.last_ts,
            names: NameCounts::of(store.catalog()),
        };
        let log = Arc::new(Log::open(disk.clone(), store.clone(), start, options.log.clone())?);
        let manager = TransactionManager::with_log(store, options.recent, summary.last_ts, log.clone());
        let progress = CheckpointProgress::new(checkpoints.live_bytes());
        let inner = Arc::new(DurableCore { disk, log, checkpoints: Mutex::new(checkpoints), progress });
        let loaded = inner.clone();
        manager.after_load(Box::new(move |store, now| loaded.checkpoint_loaded(store, now)));
        let policy = CheckpointPolicy { log_bytes: options.checkpoint_log_bytes, after: options.checkpoint_after };
        let background = background::start(inner.clone(), manager.clone(), policy)?;
        Ok(Durable { inner, manager, recovery: summary, database: manifest.database, epoch, background })
    }

    /// The transactions of the graph.
    pub fn manager(&self) -> &TransactionManager {
        &self.manager
    }

    /// The summary of the recovery when the graph was opened.
    pub fn recovery(&self) -> &RecoverySummary {
        &self.recovery
    }

    /// The id of the database, drawn when it was created.
    pub fn database(&self) -> Uuid {
        self.database
    }

    /// The fencing epoch: the number of this opening of the database.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The state and counters of the log.
    pub fn log_status(&self) -> DurabilityStatus {
        self.inner.log.status()
    }

    /// The status of checkpoints.
    pub fn checkpoint_status(&self) -> CheckpointStatus {
        self.inner.progress.status(self.inner.log_bytes())
    }

    /// The change feed after a position; `None`: from the oldest one that the log has.
    ///
    /// # Errors
    ///
    /// `NotFound` if the log that is kept begins after the position.
    pub fn feed(&self, from: Option<FeedPosition>) -> Result<Feed> {
        let DurableCore { disk, log, .. } = &*self.inner;
        Feed::of_open(disk.clone(), self.manager.store().clone(), log.growth(), from)
    }

    /// Takes a checkpoint now, on this thread. Returns `None` if nothing has changed. Waits for a checkpoint that is
    /// being taken.
    pub fn checkpoint(&self) -> Result<Option<CheckpointReport>> {
        background::checkpoint(&*self.inner, &self.manager)
    }

    /// As [`Durable::checkpoint`], with these forms for other programs. If only they differ from the last checkpoint, something has
    /// changed.
    pub fn checkpoint_with(&self, forms: CheckpointForms) -> Result<Option<CheckpointReport>> {
        self.inner.checkpoints.lock().ask(forms)?;
        self.checkpoint()
    }

    /// Takes a checkpoint and copies it to a home of backups, while transactions go on. No other checkpoint is taken until
    /// it is copied. So the backup has what was durable before this call, and nothing of the log.
    ///
    /// # Errors
    ///
    /// As [`crate::backup::backup`].
    pub fn backup(&self, to: &Arc<dyn Home>, options: BackupOptions) -> Result<BackupReport> {
        let began_us = unix_us();
        self.checkpoint()?;
        let checkpoints = self.inner.checkpoints.lock();
        let state = Found::of_checkpoint(checkpoints.manifest().clone());
        copy_state(&Origin::of_disk(self.inner.disk.clone()), state, began_us, None, to, options)
    }
}

impl Drop for Durable {
    fn drop(&mut self) {
        self.background.end(&self.inner.progress);
        // A collector may keep the transactions, and with them the log, alive a little longer than the lock on the
        // directory.
        self.inner.log.close();
    }
}

/// Creates a database on an empty disk: the first segment of its log, then its first manifest (LOG-5).
fn found(disk: &dyn Disk, options: &DurableOptions) -> Result<Manifest> {
    let mut packs = Vec::new();
    for directory in [CHECKPOINT_DIR, FIRST_CHECKPOINT_DIR] {
        packs.extend(disk.list(directory)?.iter().map(|name| format!("{directory}/{name}")));
    }
    if let Some(path) = packs.pop().map_or_else(|| log::remains(disk), |path| Ok(Some(path)))? {
        let message = format!(
            "{} has no manifest, although {} exists: the manifests of this database were lost; restore it from a backup, or \
             open an empty directory",
            disk.describe(MANIFEST_DIR),
            disk.describe(&path)
        );
        return Err(Error::new(ErrorKind::Damaged, message));
    }
    for directory in [MANIFEST_DIR, CHECKPOINT_DIR] {
        disk.create_dir(directory)?;
    }
    disk.sync_dir("")?;
    let mut manifest = Manifest::first(options.new_database.unwrap_or_else(draw_uuid), options.tablet_count);
    log::create_first_segment(disk, manifest.database)?;
    manifest.put(disk)?;
    Ok(manifest)
}

impl DurableCore {
    /// Takes the checkpoint of a graph that was loaded in bulk, while nothing else can change it.
    fn checkpoint_loaded(&self, store: &Store, now: u64) -> Result<()> {
        let mut checkpoints = self.checkpoints.lock();
        let snapshot = CheckpointSnapshot { at_ts: now, floor: self.log.checkpoint_floor()?.into(), held: None };
        self.take(&mut checkpoints, store, snapshot).map(|_| ())
    }

    fn take(
        &self,
        checkpoints: &mut Checkpoints,
        store: &Store,
        snapshot: CheckpointSnapshot,
    ) -> Result<Option<CheckpointReport>> {
        let log_bytes = self.log.status().bytes;
        let mut pause = || self.progress.pause();
        let taken = checkpoints.take(&*self.disk, store, snapshot, &mut pause).and_then(|report| {
            let manifest = checkpoints.manifest();
            if report.is_some() {
                reach(Point::CheckpointManifest);
                clean_up(&*self.disk, manifest)?;
                reach(Point::CheckpointRelease);
                self.log.release_before(manifest.log_floor().segment)?;
            }
            Ok(report)
        });
        if taken.is_err() {
            // The files of the failed checkpoint take space (LOG-24). If they cannot be removed now, the next one
            // removes them.
            let _ = clean_up(&*self.disk, checkpoints.manifest());
        }
        self.progress.note(&taken, log_bytes);
        taken
    }
}

impl Checkpointed for DurableCore {
    fn progress(&self) -> &CheckpointProgress {
        &self.progress
    }

    fn log_bytes(&self) -> u64 {
        self.log.status().bytes
    }

    fn try_checkpoint(&self, manager: &TransactionManager) -> Result<Option<CheckpointReport>> {
        let mut checkpoints = self.checkpoints.lock();
        // LOG-6: the floor before the snapshot. Everything that the floor leaves out is in the snapshot.
        let floor = self.log.checkpoint_floor()?;
        reach(Point::CheckpointFloor);
        // LOG-21: a read-only transaction begins at a durable commit.
        let held = manager.begin_unproved_read()?;
        let snapshot = CheckpointSnapshot { at_ts: held.begin_ts(), floor: floor.into(), held: Some(held) };
        self.take(&mut checkpoints, manager.store(), snapshot)
    }
}

#[cfg(all(test, not(feature = "model")))]
mod columns_tests;
#[cfg(all(test, not(feature = "model")))]
mod tests;
#[cfg(all(test, not(feature = "model")))]
mod topology_tests;
