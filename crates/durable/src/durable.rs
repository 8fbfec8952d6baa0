//! A graph that outlives its process: recovery, log and checkpoints under one roof.
//!
//! ```text
//! open:   newest manifest ──▶ recover ──▶ new epoch (manifest N+1) ──▶ cut the log's torn end ──▶ new segment ──▶ transactions
//! then:   commits ──▶ log; the log has grown by `checkpoint_log_bytes`, or `checkpoint_after` has passed ──▶ checkpoint
//!         ──▶ what it covers goes
//! ```
//!
//! The epoch is claimed before anything else is changed: of two processes that open one database, the second one's
//! manifest stands in the way of the first one's next. On a local disk [`crate::lock`] keeps them apart to begin with.
//!
//! A bulk load writes no log. It is durable when a checkpoint of it is, and only then transactions may begin: a crash
//! before leaves the empty graph.
//!
//! Lock order: the turn to take a checkpoint is held through all of its I/O, and nobody who has another lock asks for it.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use mangrove_failpoint::{Point, reach};
use mangrove_graph::{Error, ErrorKind, MemoryBudget, Result};
use mangrove_store::{Store, StoreSizes};
use mangrove_txn::{RecentOptions, TransactionManager};
use parking_lot::{Condvar, Mutex};
use uuid::Uuid;

use crate::checkpoint::{CheckpointReport, CheckpointSnapshot, Checkpoints, SEGMENT_DIR, clean_up};
use crate::damage::panic_text;
use crate::disk::Disk;
use crate::log::record::NameCounts;
use crate::log::{self, DurabilityStatus, Log, LogOptions, LogStart};
use crate::manifest::{MANIFEST_DIR, Manifest};
use crate::recovery::{Recovered, RecoveryOptions, RecoveryProgress, RecoverySummary, recover};

/// How often the log's length is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// After a checkpoint failed, so many looks pass before it is tried again.
const LOOKS_AFTER_FAILURE: u32 = 20;

/// How a durable graph is to be.
#[derive(Clone, Debug)]
pub struct DurableOptions {
    /// How many tablets a new graph gets; one that exists keeps its number.
    pub tablet_count: u16,
    /// Writes are refused while the graph uses this much memory.
    pub memory_limit_bytes: u64,
    /// The process's budget of memory, in which the graph counts.
    pub memory_budget: MemoryBudget,
    /// At what sizes structures of the store take another form.
    pub sizes: StoreSizes,
    /// How far back validation looks.
    pub recent: RecentOptions,
    /// The log.
    pub log: LogOptions,
    /// A checkpoint is taken in the background when so many bytes of log have been written since the last one; 0: never.
    pub checkpoint_log_bytes: u64,
    /// A checkpoint is taken in the background, too, when so much time has passed since the last one and the log has grown
    /// by anything; `None`: however long that is.
    pub checkpoint_after: Option<Duration>,
    /// Threads for recovery; 0: one a core.
    pub recovery_threads: usize,
    /// The identity of a database that is made; `None`: a random one. A given one makes the files of a test repeatable.
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
            checkpoint_log_bytes: 256 << 20,
            checkpoint_after: None,
            recovery_threads: 0,
            new_database: None,
        }
    }
}

impl DurableOptions {
    /// Those of recovery.
    pub(crate) fn of_recovery(&self) -> RecoveryOptions {
        let threads = match self.recovery_threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            n => n,
        };
        RecoveryOptions {
            threads,
            memory_limit_bytes: self.memory_limit_bytes,
            memory_budget: self.memory_budget.clone(),
            sizes: self.sizes,
        }
    }
}

/// What the checkpoints need of a graph.
#[derive(Debug)]
struct Inner {
    disk: Arc<dyn Disk>,
    log: Arc<Log>,
    /// The turn to take a checkpoint.
    checkpoints: Mutex<Checkpoints>,
    progress: Mutex<Progress>,
    changed: Condvar,
}

/// What the background thread and those who ask know.
#[derive(Debug, Default)]
struct Progress {
    is_closing: bool,
    /// The log's bytes at the last checkpoint.
    log_bytes: u64,
    last: Option<CheckpointReport>,
    taken: u64,
    trouble: Option<Error>,
}

/// What there is to know about checkpoints.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CheckpointStatus {
    /// Checkpoints taken since the graph was opened.
    pub taken: u64,
    /// The last of them.
    pub last: Option<CheckpointReport>,
    /// Bytes of log written since.
    pub log_bytes: u64,
    /// Why the last try failed, if it did. It is tried again.
    pub trouble: Option<Error>,
}

/// See the module. Dropping it ends the background work; what is acknowledged is durable at any time.
#[derive(Debug)]
pub struct Durable {
    inner: Arc<Inner>,
    manager: TransactionManager,
    recovery: RecoverySummary,
    database: Uuid,
    epoch: u64,
    background: Option<JoinHandle<()>>,
}

impl Durable {
    /// Opens the graph on a disk, or makes a new one on an empty disk. The caller keeps other processes away
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
            recover(&*disk, &manifest, options.of_recovery(), progress)?;
        reach(Point::Recovered);
        checkpoints.begin_epoch(&*disk)?;
        reach(Point::RecoveryEpoch);
        // Where nothing was ever in it, somebody may have tidied it away.
        disk.create_dir(SEGMENT_DIR)?;
        summary.log.cut(&*disk)?;
        clean_up(&*disk, checkpoints.manifest())?;
        let store = Arc::new(store);
        let epoch = checkpoints.manifest().epoch;
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
        let (checkpoints, progress) = (Mutex::new(checkpoints), Mutex::default());
        let inner = Arc::new(Inner { disk, log, checkpoints, progress, changed: Condvar::new() });
        let loaded = inner.clone();
        manager.after_load(Box::new(move |store, now| loaded.checkpoint_loaded(store, now)));
        let due = Due { log_bytes: options.checkpoint_log_bytes, after: options.checkpoint_after };
        let background = match due.is_ever() {
            false => None,
            true => Some(start_background(inner.clone(), manager.clone(), due)?),
        };
        Ok(Durable { inner, manager, recovery: summary, database: manifest.database, epoch, background })
    }

    /// The transactions of the graph.
    pub fn manager(&self) -> &TransactionManager {
        &self.manager
    }

    /// What was found when the graph was opened.
    pub fn recovery(&self) -> &RecoverySummary {
        &self.recovery
    }

    /// Which database it is: drawn when it was made.
    pub fn database(&self) -> Uuid {
        self.database
    }

    /// Which opening of the database this is.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The log.
    pub fn log_status(&self) -> DurabilityStatus {
        self.inner.log.status()
    }

    /// The checkpoints.
    pub fn checkpoint_status(&self) -> CheckpointStatus {
        self.inner.checkpoint_status()
    }

    /// Takes a checkpoint now, on this thread; `None` where there is nothing new. Waits for one that is being taken.
    pub fn checkpoint(&self) -> Result<Option<CheckpointReport>> {
        self.inner.checkpoint(&self.manager)
    }
}

impl Drop for Durable {
    fn drop(&mut self) {
        self.inner.progress.lock().is_closing = true;
        self.inner.changed.notify_all();
        if let Some(background) = self.background.take() {
            // One that panicked has said so.
            let _ = background.join();
        }
        // A collector may hold the transactions, and with them the log, a moment longer than the directory's lock is held.
        self.inner.log.close();
    }
}

/// Makes a new database on an empty disk: the first segment of its log, then its first manifest.
fn found(disk: &dyn Disk, options: &DurableOptions) -> Result<Manifest> {
    let segment = disk.list(SEGMENT_DIR)?.first().map(|name| format!("{SEGMENT_DIR}/{name}"));
    if let Some(path) = segment.map_or_else(|| log::remains(disk), |path| Ok(Some(path)))? {
        let message = format!(
            "{} has no manifest, and yet there is {}: the manifests of this database were lost; restore it from a \
             backup, or open an empty directory",
            disk.describe(MANIFEST_DIR),
            disk.describe(&path)
        );
        return Err(Error::new(ErrorKind::Damaged, message));
    }
    for directory in [MANIFEST_DIR, SEGMENT_DIR] {
        disk.create_dir(directory)?;
    }
    disk.sync_dir("")?;
    let manifest = Manifest::first(options.new_database.unwrap_or_else(draw_uuid), options.tablet_count);
    log::found(disk, manifest.database)?;
    manifest.put(disk)?;
    Ok(manifest)
}

/// A random (version 4) UUID, of the randomness that hash maps are seeded with.
fn draw_uuid() -> Uuid {
    let word = || RandomState::new().build_hasher().finish();
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&word().to_le_bytes());
    bytes[8..].copy_from_slice(&word().to_le_bytes());
    uuid::Builder::from_random_bytes(bytes).into_uuid()
}

impl Inner {
    /// Takes a checkpoint. A panic ends it as an error does: the last one counts, and the next one is tried.
    fn checkpoint(&self, manager: &TransactionManager) -> Result<Option<CheckpointReport>> {
        catch_unwind(AssertUnwindSafe(|| self.try_checkpoint(manager))).unwrap_or_else(|panic| {
            let error = Error::bug(format!("a checkpoint: {}", panic_text(&*panic)));
            self.progress.lock().trouble = Some(error.clone());
            Err(error)
        })
    }

    fn try_checkpoint(&self, manager: &TransactionManager) -> Result<Option<CheckpointReport>> {
        let mut checkpoints = self.checkpoints.lock();
        // The floor before the snapshot: what it leaves out is later than the snapshot.
        let floor = self.log.checkpoint_floor()?;
        reach(Point::CheckpointFloor);
        let held = manager.begin_protected_read()?;
        let snapshot = CheckpointSnapshot { at_ts: held.begin_ts(), floor, held: Some(held) };
        self.take(&mut checkpoints, manager.store(), snapshot)
    }

    /// The checkpoint of a graph that was loaded in bulk, while nothing else can happen to it.
    fn checkpoint_loaded(&self, store: &Store, now: u64) -> Result<()> {
        let mut checkpoints = self.checkpoints.lock();
        let snapshot = CheckpointSnapshot { at_ts: now, floor: self.log.checkpoint_floor()?, held: None };
        self.take(&mut checkpoints, store, snapshot).map(|_| ())
    }

    fn take(
        &self,
        checkpoints: &mut Checkpoints,
        store: &Store,
        snapshot: CheckpointSnapshot,
    ) -> Result<Option<CheckpointReport>> {
        let log_bytes = self.log.status().bytes;
        let mut pause = || match self.progress.lock().is_closing {
            true => {
                Err(Error::new(ErrorKind::Closed, "the database is being closed; what it acknowledged is in the log"))
            }
            false => {
                // Others first: a checkpoint is in no hurry.
                std::thread::yield_now();
                Ok(())
            }
        };
        let taken = checkpoints.take(&*self.disk, store, snapshot, &mut pause).and_then(|report| {
            let manifest = checkpoints.manifest();
            if report.is_some() {
                reach(Point::CheckpointManifest);
                clean_up(&*self.disk, manifest)?;
                reach(Point::CheckpointRelease);
                self.log.release_before(manifest.first_log_segment)?;
            }
            Ok(report)
        });
        if taken.is_err() {
            // What it left takes space; if that cannot be removed now, the next one removes it.
            let _ = clean_up(&*self.disk, checkpoints.manifest());
        }
        let mut progress = self.progress.lock();
        match &taken {
            Ok(report) => {
                progress.log_bytes = log_bytes;
                progress.taken += u64::from(report.is_some());
                progress.last = report.or(progress.last);
                progress.trouble = None;
            }
            Err(error) => progress.trouble = Some(error.clone()),
        }
        taken
    }

    fn checkpoint_status(&self) -> CheckpointStatus {
        // Not under the turn: it may be held for long.
        let written = self.log.status().bytes;
        let progress = self.progress.lock();
        CheckpointStatus {
            taken: progress.taken,
            last: progress.last,
            log_bytes: written.saturating_sub(progress.log_bytes),
            trouble: progress.trouble.clone(),
        }
    }
}

/// When a checkpoint is due.
#[derive(Clone, Copy, Debug)]
struct Due {
    /// Bytes of log since the last one; 0: however many there are.
    log_bytes: u64,
    after: Option<Duration>,
}

impl Due {
    fn is_ever(self) -> bool {
        self.log_bytes > 0 || self.after.is_some()
    }

    fn is_now(self, log_bytes: u64, passed: Duration) -> bool {
        let is_long = self.log_bytes > 0 && log_bytes >= self.log_bytes;
        is_long || (log_bytes > 0 && self.after.is_some_and(|after| passed >= after))
    }
}

fn start_background(inner: Arc<Inner>, manager: TransactionManager, due: Due) -> Result<JoinHandle<()>> {
    let run = move || {
        // Time is counted in looks: to be some too late does no harm.
        let (mut looks_to_skip, mut looks, mut taken) = (0, 0_u32, 0);
        loop {
            let is_due = {
                let mut progress = inner.progress.lock();
                if !progress.is_closing {
                    inner.changed.wait_for(&mut progress, LOOK_EVERY);
                }
                if progress.is_closing {
                    return;
                }
                // Somebody may have asked for one.
                looks = if progress.taken == taken { looks.saturating_add(1) } else { 0 };
                taken = progress.taken;
                due.is_now(inner.log.status().bytes.saturating_sub(progress.log_bytes), LOOK_EVERY * looks)
            };
            if looks_to_skip > 0 {
                looks_to_skip -= 1;
            } else if is_due && inner.checkpoint(&manager).is_err() {
                // The status has the error.
                looks_to_skip = LOOKS_AFTER_FAILURE;
            }
        }
    };
    let thread = std::thread::Builder::new().name("mangrove-checkpoint".into());
    thread
        .spawn(run)
        .map_err(|error| Error::new(ErrorKind::Io, format!("the thread for checkpoints could not be started: {error}")))
}

#[cfg(test)]
mod tests;
