//! A durable graph in a [`Home`]: take-over, recovery, log and checkpoints together. It is to a home what
//! [`crate::durable`] is to a directory.
//!
//! ```text
//! open:   no manifest? put the first one ──▶ take over: claim, manifest N+1, end the streams ──▶ checkpoint ──▶ tails
//!         of the streams ──▶ own stream ──▶ transactions
//! then:   commits ──▶ stream; the stream has grown ──▶ packs ──▶ manifest, which counts ──▶ delete what it makes
//!         needless
//! close:  FIN
//! ```
//!
//! Any process may open the graph at any time. The owner before it is fenced: it acknowledges nothing more, its
//! checkpoints fail, and its transactions serve no reads (`CommitLog::admit_read`).
//!
//! | module | what it holds |
//! |---|---|
//! | `garbage` | objects that no manifest needs, and their deletion |

mod garbage;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use mangrove_graph::{Error, ErrorKind, Result};
use mangrove_locks::{Mutex, rank};
use mangrove_store::Store;
use mangrove_txn::TransactionManager;
use uuid::Uuid;

use crate::ambient::draw_uuid;
use crate::checkpoint::home::{HomePlace, patiently};
use crate::checkpoint::{CheckpointFloor, CheckpointForms, CheckpointReport, CheckpointSnapshot, Checkpoints};
use crate::durable::background::{self, Background, CheckpointPolicy, CheckpointProgress, Checkpointed};
use crate::durable::{CheckpointStatus, DurableOptions};
use crate::home::{Home, Name, WaitHome};
use crate::log::record::NameCounts;
use crate::manifest::{CHECKPOINT_DIR, HomeManifests, Manifest};
use crate::recovery::{Recovered, RecoveryProgress, RecoverySummary, recover_in};
use crate::states::Retention;
use crate::stream::fence::{StreamTail, TakeOverStart, TakenOver};
use crate::stream::log::{ObjectLog, ObjectLogOptions, ObjectLogState, ObjectLogStatus};
use crate::stream::names::{MANIFESTS, NODES};
use crate::stream::tails::{StreamTails, StreamsEnd};
use crate::stream::take_over::{put_manifest, take_over};
use crate::stream::writer::{Refusal, StreamStart};
use garbage::Garbage;

/// The options of a durable graph in a home.
#[derive(Clone, Debug)]
pub struct DurableHomeOptions {
    /// Options that graphs in directories have too. `log` among them is for directories, and is not used.
    pub graph: DurableOptions,
    /// The options of the log.
    pub log: ObjectLogOptions,
    /// How long states of the graph are kept, to be restored.
    pub retention: Retention,
    /// Makes a graph if there is none.
    pub create: bool,
    /// How long a request of an opening or a checkpoint is sent again while the home does not answer.
    pub patience: Duration,
}

impl Default for DurableHomeOptions {
    fn default() -> Self {
        DurableHomeOptions {
            graph: DurableOptions::default(),
            log: ObjectLogOptions::default(),
            retention: Retention::default(),
            create: true,
            patience: Duration::from_secs(30),
        }
    }
}

/// Makes a graph durable that was loaded in bulk.
type AfterLoad = Box<dyn Fn(&Store, u64) -> Result<()> + Send + Sync>;

/// A graph after its take-over: what an owner begins with.
pub(crate) struct OwnedGraph {
    pub(crate) place: HomePlace,
    pub(crate) database: Uuid,
    pub(crate) incarnation: u64,
    /// The end of the hold (LOG-58), in microseconds.
    pub(crate) held_until_us: u64,
    pub(crate) tails: Vec<StreamTail>,
    /// The state after the checkpoint of the manifest that was claimed.
    pub(crate) checkpoints: Checkpoints,
    /// The names that are durable.
    pub(crate) names: NameCounts,
    pub(crate) summary: RecoverySummary<StreamsEnd>,
}

/// The start of a take-over, with numbers that no other one has.
pub(crate) fn take_over_start(log: &ObjectLogOptions) -> TakeOverStart {
    TakeOverStart {
        node: Bytes::copy_from_slice(draw_uuid().as_bytes()),
        nonce_seed: draw_uuid().into_bytes(),
        lease_us: log.lease.as_micros() as u64,
    }
}

/// The log and the checkpoints of a graph, shared with the background thread.
#[derive(Debug)]
struct HomeCore {
    place: HomePlace,
    log: Arc<ObjectLog>,
    incarnation: u64,
    /// Bytes of the streams that were read when the graph was opened.
    recovered_bytes: u64,
    /// Locked while a checkpoint is taken.
    checkpoints: Mutex<HomeCheckpoints, rank::CheckpointState>,
    progress: CheckpointProgress,
}

#[derive(Debug)]
struct HomeCheckpoints {
    checkpoints: Checkpoints,
    garbage: Garbage,
}

/// An open durable graph in a home. Everything acknowledged is durable at any time. Dropping it ends it without FIN, as
/// the death of the process does; then the next opening waits for the length of a read lease.
#[derive(Debug)]
pub struct DurableHome {
    core: Arc<HomeCore>,
    manager: TransactionManager,
    recovery: RecoverySummary<StreamsEnd>,
    database: Uuid,
    background: Background,
}

impl DurableHome {
    /// Opens the graph in a home, and fences its owner; or makes one. `progress` is called from several threads.
    ///
    /// # Errors
    ///
    /// If there is no graph and none shall be made, if an object is damaged or missing, which the error names, or if the
    /// home fails.
    pub fn open(
        home: Arc<dyn Home>,
        options: &DurableHomeOptions,
        progress: &(dyn Fn(RecoveryProgress) + Sync),
    ) -> Result<Self> {
        let DurableHomeOptions { graph, log, create, patience, .. } = options;
        find_or_found(&*home, graph, *create, *patience)?;
        let taken = take_over(&*home, take_over_start(log), HomeManifests { home: &*home }, *patience)?;
        let TakenOver { database, incarnation, manifest_number, manifest, tails, held_until_us } = taken;
        let manifest = Manifest::of_object(&*home, manifest_number, &manifest)?;
        let place = HomePlace::new(home.clone(), *patience);
        let source = StreamTails { home: &*home, tails: &tails };
        let Recovered { store, checkpoints, summary } =
            recover_in(&place, &manifest, &source, &|_| Ok(()), graph.of_recovery(&manifest), progress)?;
        let store = Arc::new(store);
        let names = NameCounts::of(store.catalog());
        let owned = OwnedGraph { place, database, incarnation, held_until_us, tails, checkpoints, names, summary };
        DurableHome::begin(owned, store.clone(), options, |log, last_ts, loaded| {
            let manager = TransactionManager::with_log(store, graph.recent, last_ts, log);
            manager.after_load(loaded);
            manager
        })
    }

    /// Begins the life of an owner that has taken over, and that has everything that earlier owners committed in a store.
    /// `manage` lets transactions write from then on: it is given the log, the timestamp of the last commit, and what
    /// makes a bulk load durable.
    pub(crate) fn begin(
        owned: OwnedGraph,
        store: Arc<Store>,
        options: &DurableHomeOptions,
        manage: impl FnOnce(Arc<ObjectLog>, u64, AfterLoad) -> TransactionManager,
    ) -> Result<Self> {
        let OwnedGraph { place, database, incarnation, held_until_us, tails, mut checkpoints, names, summary } = owned;
        checkpoints.set_topology(options.graph.has_topology(checkpoints.manifest()));
        checkpoints.set_columns(options.graph.columns.clone(), options.graph.open_columns);
        let garbage = Garbage::new(options.retention);
        drop(tails);
        let start = StreamStart {
            database,
            incarnation,
            nonce_seed: draw_uuid().into_bytes(),
            durable_ts: summary.last_ts,
            held_until_us,
        };
        let log = Arc::new(ObjectLog::open(place.home().clone(), store, names, start, options.log)?);
        let progress = CheckpointProgress::new(checkpoints.live_bytes());
        let checkpoints = Mutex::new(HomeCheckpoints { checkpoints, garbage });
        let recovered_bytes = summary.log.bytes;
        let core = Arc::new(HomeCore { place, log: log.clone(), incarnation, recovered_bytes, checkpoints, progress });
        let loaded = core.clone();
        let manager = manage(log, summary.last_ts, Box::new(move |store, now| loaded.checkpoint_loaded(store, now)));
        let graph = &options.graph;
        let policy = CheckpointPolicy { log_bytes: graph.checkpoint_log_bytes, after: graph.checkpoint_after };
        let background = background::start(core.clone(), manager.clone(), policy);
        let background = background.inspect_err(|_| core.log.close())?;
        Ok(DurableHome { core, manager, recovery: summary, database, background })
    }

    /// The transactions of the graph. A read begins once it is proved that no other process has opened the graph, as the
    /// options of the log say.
    pub fn manager(&self) -> &TransactionManager {
        &self.manager
    }

    /// The summary of the recovery when the graph was opened.
    pub fn recovery(&self) -> &RecoverySummary<StreamsEnd> {
        &self.recovery
    }

    /// The id of the database, drawn when it was created.
    pub fn database(&self) -> Uuid {
        self.database
    }

    /// The incarnation: the number of this opening.
    pub fn incarnation(&self) -> u64 {
        self.core.incarnation
    }

    /// The home as its user would write it, for messages.
    pub fn describe(&self) -> String {
        self.core.place.home().describe("")
    }

    /// The state and numbers of the log.
    pub fn log_status(&self) -> ObjectLogStatus {
        self.core.log.status()
    }

    /// The status of checkpoints.
    pub fn checkpoint_status(&self) -> CheckpointStatus {
        self.core.progress.status(self.core.log_bytes())
    }

    /// Takes a checkpoint now, on this thread. Returns `None` if nothing has changed. Waits for a checkpoint that is
    /// being taken, and for the end of the hold after a take-over.
    ///
    /// # Errors
    ///
    /// `Closed` if another process has opened the graph. After any other error the last checkpoint counts, or this one
    /// does; the next attempt finds out.
    pub fn checkpoint(&self) -> Result<Option<CheckpointReport>> {
        background::checkpoint(&*self.core, &self.manager)
    }

    /// As [`DurableHome::checkpoint`], with these forms for other programs. If only they differ from the last checkpoint, something has
    /// changed.
    ///
    /// # Errors
    ///
    /// As [`DurableHome::checkpoint`].
    pub fn checkpoint_with(&self, forms: CheckpointForms) -> Result<Option<CheckpointReport>> {
        self.core.checkpoints.lock().checkpoints.ask(forms)?;
        self.checkpoint()
    }

    /// Closes the graph: every commit that was handed over is acknowledged, then FIN is put, so that the next opening
    /// waits for nothing. No commit and no read is accepted from here on.
    ///
    /// # Errors
    ///
    /// If that takes longer than `wait`, or if another process has opened the graph. The graph is closed in both cases,
    /// and nothing that was acknowledged is lost.
    pub fn close(mut self, wait: Duration) -> Result<()> {
        self.background.end(&self.core.progress);
        self.core.log.finish(wait)
    }
}

impl Drop for DurableHome {
    fn drop(&mut self) {
        self.background.end(&self.core.progress);
        // A client may keep the transactions, and with them the log, alive for longer.
        self.core.log.close();
    }
}

/// Looks for a graph. If there is none, puts the first manifest of one.
fn find_or_found(home: &dyn Home, options: &DurableOptions, create: bool, patience: Duration) -> Result<()> {
    let is_empty = |directory: &str| -> Result<bool> {
        let directory = Name::new(directory)?;
        Ok(patiently(patience, || home.list(&directory))?.is_empty())
    };
    if !is_empty(MANIFESTS)? {
        return Ok(());
    }
    for directory in [NODES, CHECKPOINT_DIR] {
        // Another process may have made the graph meanwhile.
        if !is_empty(directory)? && is_empty(MANIFESTS)? {
            let message = format!(
                "{} has no manifest, although there are objects in {}: the manifests of this database were lost; restore it \
                 from a backup, or open an empty place",
                home.describe(MANIFESTS),
                home.describe(directory)
            );
            return Err(Error::new(ErrorKind::Damaged, message));
        }
    }
    if !create {
        let message = format!("there is no graph in {}; check the address, or create the graph", home.describe(""));
        return Err(Error::new(ErrorKind::NotFound, message));
    }
    let database = options.new_database.unwrap_or_else(draw_uuid);
    let mut first = Manifest::first_in_home(database, options.tablet_count);
    let bytes = first.write_object();
    // If another process has put a first manifest, that one is taken over.
    put_manifest(home, first.version, bytes, patience).map(|_| ())
}

impl HomeCore {
    /// LOG-6: the floor before the snapshot. Fails if the owner knows that it was fenced.
    fn floor(&self, state: &mut HomeCheckpoints) -> Result<CheckpointFloor> {
        if let ObjectLogState::Fenced { by } = self.log.status().state {
            return Err(Refusal::Fenced { by }.into());
        }
        let floor = self.log.checkpoint_floor()?;
        let kept_from = state.garbage.kept_from(&self.place, state.checkpoints.manifest())?;
        Ok(CheckpointFloor::Stream { incarnation: self.incarnation, floor, kept_from })
    }

    /// Takes the checkpoint of a graph that was loaded in bulk, while nothing else can change it.
    fn checkpoint_loaded(&self, store: &Store, now: u64) -> Result<()> {
        let mut state = self.checkpoints.lock();
        let snapshot = CheckpointSnapshot { at_ts: now, floor: self.floor(&mut state)?, held: None };
        self.take(&mut state, store, snapshot).map(|_| ())
    }

    fn take(
        &self,
        HomeCheckpoints { checkpoints, garbage }: &mut HomeCheckpoints,
        store: &Store,
        snapshot: CheckpointSnapshot,
    ) -> Result<Option<CheckpointReport>> {
        let log_bytes = self.log_bytes();
        let (before, first_pack) = (checkpoints.manifest().version, checkpoints.last_pack());
        let taken = checkpoints.take(&self.place, store, snapshot, &mut || self.progress.pause());
        let after = checkpoints.manifest();
        if after.version > before {
            garbage.counted();
        }
        if taken.is_err() && !checkpoints.is_pending() {
            garbage.abandon(first_pack, checkpoints.last_pack());
        }
        // LOG-63: after the manifest counts. If a collection fails, the status says so, and the next checkpoint goes on with it.
        let collected = match &taken {
            Ok(Some(_)) => garbage.collect(&self.place, after),
            _ => Ok(()),
        };
        self.progress.note(&taken, log_bytes);
        if let Err(error) = collected {
            self.progress.note(&Err(error), log_bytes);
        }
        taken
    }
}

impl Checkpointed for HomeCore {
    fn progress(&self) -> &CheckpointProgress {
        &self.progress
    }

    fn log_bytes(&self) -> u64 {
        self.recovered_bytes + self.log.status().counts.bytes
    }

    fn try_checkpoint(&self, manager: &TransactionManager) -> Result<Option<CheckpointReport>> {
        let mut state = self.checkpoints.lock();
        let floor = self.floor(&mut state)?;
        // LOG-21: a read-only transaction begins at a durable commit.
        let held = manager.begin_unproved_read()?;
        let snapshot = CheckpointSnapshot { at_ts: held.begin_ts(), floor, held: Some(held) };
        self.take(&mut state, manager.store(), snapshot)
    }
}

#[cfg(all(test, not(feature = "model")))]
mod open_tests;
#[cfg(all(test, not(feature = "model")))]
pub(crate) mod tests;
