//! Recovery: the newest checkpoint, and the log after it.
//!
//! ```text
//! manifest ──▶ images, tablets side by side ──▶ log, one reader ──▶ redo, tablets side by side ──▶ pack, index ──▶ graph
//! ```
//!
//! The log is read and decoded by one thread, which deals what commits left to workers by tablet: a tablet is always the
//! same worker's, so that everything in it is done in the order of the log. Between tablets no order is needed, since
//! nothing is looked at before all is done.
//!
//! Invariants:
//!
//! 1. What is recovered is the state after a commit: that of the last one that is whole in the log, and at least
//!    everything that was acknowledged.
//! 2. Commits up to the checkpoint's timestamp are in it and are passed over; those after are done once.
//! 3. Nothing is changed on the disk. So a recovery that is cut off, or fails, can be tried again, any number of times.
//! 4. Damage is an error that names file and offset. A torn end of the log is no damage: see [`crate::log::read`].

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use mangrove_failpoint::{Point, reach};
use mangrove_graph::{ElementId, Error, IndexInfo, MemoryBudget, Result, TabletId};
use mangrove_store::restore::{Restore, RestorePhase, RestoreSummary, TabletRestore};
use mangrove_store::{Redo, Store, StoreOptions, StoreSizes};
use parking_lot::Mutex;

use crate::checkpoint::{Checkpoints, IMPOSSIBLE_INDEX, Indexes, is_possible, load};
use crate::codec::{IMPOSSIBLE_RULE, Malformed, SavedRules};
use crate::damage::{damaged, panic_text};
use crate::disk::Disk;
use crate::log::read::{LogEnd, Place, read};
use crate::log::record::Record;
use crate::manifest::Manifest;

/// So many redo entries are handed to a worker at a time.
const PORTION: usize = 256;
/// So many portions may wait for a worker.
const QUEUE: usize = 16;

/// How to recover.
#[derive(Clone, Debug)]
pub(crate) struct RecoveryOptions {
    /// Threads that work side by side, besides the one that reads the log.
    pub(crate) threads: usize,
    /// For the store.
    pub(crate) memory_limit_bytes: u64,
    /// For the store.
    pub(crate) memory_budget: MemoryBudget,
    /// For the store.
    pub(crate) sizes: StoreSizes,
}

/// What a recovery is at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum RecoveryPhase {
    /// Reading the checkpoint: counts pages.
    Checkpoint,
    /// Doing again what the log has: counts commits, of how many is not known.
    Log,
    /// Checking that every edge has its ends.
    Checking,
    /// Packing the adjacency.
    Packing,
    /// Filling the index of ids.
    Ids,
    /// Filling the property indexes.
    Indexes,
}

/// How far a recovery is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecoveryProgress {
    /// What it is at.
    pub phase: RecoveryPhase,
    /// How much of it is done.
    pub done: u64,
    /// Of how much; 0 where that is not known.
    pub total: u64,
}

/// What a recovery has found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecoverySummary {
    /// Vertices and edges.
    pub graph: RestoreSummary,
    /// The commit up to which the checkpoint had everything.
    pub checkpoint_ts: u64,
    /// The bytes of it that were read.
    pub checkpoint_bytes: u64,
    /// Commits that came after it.
    pub commits_replayed: u64,
    /// The last commit.
    pub last_ts: u64,
    /// What the log was like, and what of its end was torn.
    pub log: LogEnd,
}

/// What was recovered.
pub(crate) struct Recovered {
    pub(crate) store: Store,
    pub(crate) checkpoints: Checkpoints,
    pub(crate) summary: RecoverySummary,
}

/// Recovers the graph of a manifest. `progress` is called from several threads.
pub(crate) fn recover(
    disk: &dyn Disk,
    manifest: &Manifest,
    options: RecoveryOptions,
    progress: &(dyn Fn(RecoveryProgress) + Sync),
) -> Result<Recovered> {
    let say = |phase, done, total| progress(RecoveryProgress { phase, done, total });
    let threads = options.threads.max(1);
    let pages = |done, total| say(RecoveryPhase::Checkpoint, done, total);
    let RecoveryOptions { memory_limit_bytes, memory_budget, sizes, .. } = options;
    let store = StoreOptions { tablet_count: manifest.tablet_count, memory_limit_bytes, memory_budget, sizes };
    let loaded = load(disk, manifest, &store, threads, &pages)?;
    let (mut indexes, mut rules) = (loaded.indexes, loaded.rules);
    let commits = |done| say(RecoveryPhase::Log, done, 0);
    let (log, commits_replayed) =
        replay(disk, manifest, &loaded.restore, (&mut indexes, &mut rules), threads, &commits)?;
    if log.epoch > manifest.epoch {
        let path = Manifest::path(manifest.version);
        let what =
            format!("the log is of epoch {}, and this manifest of {}: later ones were lost", log.epoch, manifest.epoch);
        return Err(damaged(disk, &path, 0, what));
    }
    let last_ts = log.last_ts.max(manifest.checkpoint_ts);
    let mut phase = |phase| {
        let phase = match phase {
            RestorePhase::Packing => RecoveryPhase::Packing,
            RestorePhase::Ids => RecoveryPhase::Ids,
            RestorePhase::Indexes => RecoveryPhase::Indexes,
            _ => RecoveryPhase::Checking,
        };
        say(phase, 0, 0);
    };
    let restored = loaded.restore.finish(&indexes.list, indexes.next, last_ts, threads, &mut phase);
    let restored = restored.map_err(|damage| loaded.source.error(disk, &damage))?;
    restored.store.restore_rules(rules.list, rules.next);
    let summary = RecoverySummary {
        graph: restored.summary,
        checkpoint_ts: manifest.checkpoint_ts,
        checkpoint_bytes: loaded.bytes,
        commits_replayed,
        last_ts,
        log,
    };
    Ok(Recovered { store: restored.store, checkpoints: loaded.checkpoints, summary })
}

/// Does again what the log has after the checkpoint; how many commits that were.
fn replay(
    disk: &dyn Disk,
    manifest: &Manifest,
    restore: &Restore,
    (indexes, rules): (&mut Indexes, &mut SavedRules),
    threads: usize,
    progress: &dyn Fn(u64),
) -> Result<(LogEnd, u64)> {
    let failure = Failure::default();
    let done = std::thread::scope(|scope| {
        let dealer = Dealer::start(threads, |portions| {
            let failure = &failure;
            scope.spawn(move || work(restore, &portions, failure));
        });
        let mut replay =
            Replay { restore, indexes, rules, dealer, failure: &failure, after: manifest.checkpoint_ts, commits: 0 };
        let end = read(disk, manifest.database, manifest.log_floor(), &mut |record, place| {
            replay.record(record, place)?;
            progress(replay.commits);
            Ok(())
        });
        let commits = replay.commits;
        // The workers end when they have done what there is.
        let sent = replay.dealer.finish();
        end.map(|end| (end, commits)).and_then(|done| sent.map(|()| done))
    });
    // What a worker found is at fault, whatever made the reader stop.
    failure.error.into_inner().map_or(done, Err)
}

/// What went wrong in a worker.
#[derive(Default)]
struct Failure {
    is_there: AtomicBool,
    error: Mutex<Option<Error>>,
}

impl Failure {
    fn set(&self, error: Error) {
        self.error.lock().get_or_insert(error);
        self.is_there.store(true, Ordering::Release);
    }
}

/// Redo entries of one worker's tablets, from one place in the log.
struct Portion {
    path: Arc<str>,
    offset: u64,
    redo: Vec<(u64, Redo)>,
}

/// Deals redo entries to workers.
struct Dealer {
    workers: Vec<(SyncSender<Portion>, Portion)>,
    path: Arc<str>,
}

impl Dealer {
    fn start(count: usize, mut spawn: impl FnMut(Receiver<Portion>)) -> Self {
        let path: Arc<str> = "".into();
        let workers = (0..count).map(|_| {
            let (sender, receiver) = sync_channel(QUEUE);
            spawn(receiver);
            (sender, Portion { path: path.clone(), offset: 0, redo: Vec::new() })
        });
        Dealer { workers: workers.collect(), path: path.clone() }
    }

    fn deal(&mut self, ts: u64, redo: Redo, place: Place<'_>) {
        if *self.path != *place.path {
            self.path = place.path.into();
        }
        let at = usize::from(tablet_of(&redo).0) % self.workers.len();
        let (sender, portion) = &mut self.workers[at];
        let is_elsewhere = portion.offset != place.offset || !Arc::ptr_eq(&portion.path, &self.path);
        if !portion.redo.is_empty() && (is_elsewhere || portion.redo.len() >= PORTION) {
            send(sender, portion);
        }
        if is_elsewhere {
            (portion.path, portion.offset) = (self.path.clone(), place.offset);
        }
        portion.redo.push((ts, redo));
    }

    fn finish(self) -> Result<()> {
        for (sender, mut portion) in self.workers {
            if !portion.redo.is_empty() {
                send(&sender, &mut portion);
            }
        }
        Ok(())
    }
}

fn send(sender: &SyncSender<Portion>, portion: &mut Portion) {
    let redo = std::mem::take(&mut portion.redo);
    let full = Portion { path: portion.path.clone(), offset: portion.offset, redo };
    // A worker goes on receiving to the end; one that is gone has panicked, which its scope passes on.
    let _ = sender.send(full);
}

fn tablet_of(redo: &Redo) -> TabletId {
    let (Redo::Insert { element, .. } | Redo::Delete(element) | Redo::Property { element, .. }) = redo;
    match element {
        ElementId::Vertex(id) => id.tablet(),
        ElementId::Edge(id) => id.tablet(),
    }
}

/// Does again what comes, until nothing more does. After a failure it only receives.
fn work(restore: &Restore, portions: &Receiver<Portion>, failure: &Failure) {
    for Portion { path, offset, redo } in portions {
        if failure.is_there.load(Ordering::Acquire) {
            continue;
        }
        let applied = catch_unwind(AssertUnwindSafe(|| {
            reach(Point::RecoveryWorker);
            apply(restore, redo)
        }));
        match applied {
            Ok(Ok(())) => {}
            Ok(Err(what)) => failure.set(Place { path: &path, offset }.damage(what)),
            Err(panic) => {
                let what = panic_text(&*panic);
                failure.set(Error::bug(format!("doing again the commits at {path}, offset {offset}: {what}")));
            }
        }
    }
}

fn apply(restore: &Restore, redo: Vec<(u64, Redo)>) -> std::result::Result<(), String> {
    let mut turn: Option<(TabletId, TabletRestore<'_>)> = None;
    for (ts, redo) in redo {
        let id = tablet_of(&redo);
        if turn.as_ref().is_none_or(|(held, _)| *held != id) {
            // The old turn first: nobody waits for one turn with another in hand.
            drop(turn.take());
            let next = restore
                .tablet(id)
                .ok_or_else(|| format!("commit {ts} changes tablet {}, of which there is none", id.0))?;
            turn = Some((id, next));
        }
        let (_, tablet) = turn.as_mut().expect("it was just taken");
        tablet.redo(ts, redo).map_err(|damage| damage.to_string())?;
    }
    Ok(())
}

/// The reading side of a replay.
struct Replay<'a> {
    restore: &'a Restore,
    indexes: &'a mut Indexes,
    rules: &'a mut SavedRules,
    dealer: Dealer,
    failure: &'a Failure,
    after: u64,
    commits: u64,
}

impl Replay<'_> {
    fn record(&mut self, record: Record<'_>, place: Place<'_>) -> Result<()> {
        if self.failure.is_there.load(Ordering::Acquire) {
            // Only to stop: `replay` tells what the worker found.
            return Err(place.damage("what is before could not be done again"));
        }
        match record {
            Record::Commit(commit) if commit.timestamp <= self.after => Ok(()),
            Record::Commit(commit) => {
                self.commits += 1;
                let dealer = &mut self.dealer;
                let dealt = commit.each_redo::<Malformed>(|redo| {
                    dealer.deal(commit.timestamp, redo, place);
                    Ok(())
                });
                dealt.map_err(|malformed| place.damage(format_args!("commit {}: {malformed}", commit.timestamp)))
            }
            Record::Names(names) => match names.put_into(self.restore.store().catalog()) {
                true => Ok(()),
                false => Err(place.damage("names under numbers that others have, or without those before them")),
            },
            Record::Rules(rules) if !rules.are_possible(self.restore.store().catalog()) => {
                Err(place.damage(IMPOSSIBLE_RULE))
            }
            Record::Rules(rules) => {
                *self.rules = rules;
                Ok(())
            }
            Record::IndexCreated(info) => self.create_index(info, place),
            Record::IndexDropped(id) => {
                self.indexes.next = self.indexes.next.max(id.0.saturating_add(1));
                self.indexes.list.retain(|index| index.id != id);
                Ok(())
            }
        }
    }

    /// Notes an index, unless the checkpoint has it already.
    fn create_index(&mut self, info: IndexInfo, place: Place<'_>) -> Result<()> {
        let catalog = self.restore.store().catalog();
        if !is_possible(&info, catalog) {
            return Err(place.damage(format_args!("index {}: {IMPOSSIBLE_INDEX}", info.id.0)));
        }
        self.indexes.next = self.indexes.next.max(info.id.0.saturating_add(1));
        if self.indexes.list.iter().all(|index| index.id != info.id) {
            self.indexes.list.push(info);
        }
        Ok(())
    }
}
