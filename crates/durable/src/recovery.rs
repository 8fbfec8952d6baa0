//! Recovery: loading the newest checkpoint, and replaying the log after it.
//!
//! ```text
//! manifest ──▶ images, tablets in parallel ──▶ log, one reader ──▶ redo, tablets in parallel ──▶ pack, index ──▶ graph
//! ```
//!
//! One thread reads and decodes the log, and deals redo entries to workers by tablet. All entries of a tablet go to the
//! same worker, which applies them in the order of the log. Between tablets no order is needed, since the graph is read
//! only after all entries are applied.
//!
//! - **LOG-40.** The recovered graph is the state after the last whole commit in the log. It has every acknowledged
//!   commit.
//! - **LOG-41.** Commits up to the checkpoint's timestamp are in the checkpoint and are skipped. Later ones are applied
//!   once.
//! - **LOG-42.** Nothing is changed on the disk. So a recovery that is interrupted, or fails, can be repeated any
//!   number of times.
//! - **LOG-43.** Damage is an error that names file and offset. A torn end of the log is no damage
//!   ([`crate::log::read`]).
//! - **LOG-44.** A file of a later format is refused by its number.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use mangrove_failpoint::{Point, reach};
use mangrove_graph::{Error, ErrorKind, IndexInfo, MemoryBudget, Result, TabletId};
use mangrove_store::restore::{Damage, Restore, RestorePhase, RestoreSummary, TabletRestore};
use mangrove_store::{Redo, Store, StoreOptions, StoreSizes};
use parking_lot::Mutex;

use crate::checkpoint::place::Place;
use crate::checkpoint::{Checkpoints, IMPOSSIBLE_INDEX, Indexes, is_possible, load};
use crate::codec::{IMPOSSIBLE_RULE, Malformed, SavedRules};
use crate::damage::{damaged, panic_text};
use crate::disk::Disk;
use crate::log::read::{LogEnd, RecordPosition};
use crate::log::record::{Record, tablet_of};
use crate::log::source::{DirectoryLog, LogSource};
use crate::manifest::Manifest;

/// Redo entries that a worker gets at a time.
const PORTION_ENTRIES: usize = 256;
/// Portions that may wait for a worker.
const QUEUED_PORTIONS: usize = 16;

/// The options of a recovery.
#[derive(Clone, Debug)]
pub(crate) struct RecoveryOptions {
    /// Worker threads, besides the thread that reads the log.
    pub(crate) threads: usize,
    /// The memory limit of the store, in bytes.
    pub(crate) memory_limit_bytes: u64,
    /// The memory budget that the store draws on.
    pub(crate) memory_budget: MemoryBudget,
    /// The sizes at which structures of the store change their form.
    pub(crate) sizes: StoreSizes,
    /// The store goes on with the commits of another process.
    pub(crate) follows: bool,
    /// The store notes changes of lists (STORE-37), those of the replayed commits too.
    pub(crate) notes_replayed_lists: bool,
}

/// The phases of a recovery, in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum RecoveryPhase {
    /// Loading the checkpoint; counts pages.
    Checkpoint,
    /// Replaying the log; counts commits, of an unknown total.
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

/// The progress of a recovery.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecoveryProgress {
    /// The current phase.
    pub phase: RecoveryPhase,
    /// Units of the phase that are done.
    pub done: u64,
    /// Units of the phase in total; 0 if unknown.
    pub total: u64,
}

/// The result of a recovery, in numbers. `E` is what is known about the log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecoverySummary<E = LogEnd> {
    /// The numbers of vertices, edges and pages.
    pub graph: RestoreSummary,
    /// The checkpoint has every commit up to this timestamp.
    pub checkpoint_ts: u64,
    /// Bytes of the checkpoint that were read.
    pub checkpoint_bytes: u64,
    /// Commits that were replayed from the log.
    pub commits_replayed: u64,
    /// The timestamp of the last commit.
    pub last_ts: u64,
    /// The end of the log: in a directory, with its torn tail.
    pub log: E,
}

impl<E> RecoverySummary<E> {
    /// The same summary, with something else about the log.
    pub fn with_log<L>(&self, log: L) -> RecoverySummary<L> {
        let RecoverySummary { graph, checkpoint_ts, checkpoint_bytes, commits_replayed, last_ts, .. } = *self;
        RecoverySummary { graph, checkpoint_ts, checkpoint_bytes, commits_replayed, last_ts, log }
    }
}

/// A recovered graph.
pub(crate) struct Recovered<E = LogEnd> {
    pub(crate) store: Store,
    pub(crate) checkpoints: Checkpoints,
    pub(crate) summary: RecoverySummary<E>,
}

/// Recovers the graph of a manifest in a directory. `progress` is called from several threads.
pub(crate) fn recover(
    disk: &dyn Disk,
    manifest: &Manifest,
    options: RecoveryOptions,
    progress: &(dyn Fn(RecoveryProgress) + Sync),
) -> Result<Recovered> {
    let source = DirectoryLog { disk, database: manifest.database, floor: manifest.log_floor() };
    let check_end = |log: &LogEnd| match log.epoch > manifest.epoch() {
        false => Ok(()),
        true => {
            let path = Manifest::path(manifest.version);
            let what = format!(
                "the log has fencing epoch {} and this manifest has {}: later manifests are lost",
                log.epoch,
                manifest.epoch()
            );
            Err(damaged(disk, &path, 0, what))
        }
    };
    recover_in(disk, manifest, &source, &check_end, options, progress)
}

/// Recovers the graph of a manifest whose packs are in a place, and whose log is read from a source. `check_end` may refuse
/// the log. `progress` is called from several threads.
pub(crate) fn recover_in<P: Place + ?Sized, S: LogSource>(
    place: &P,
    manifest: &Manifest,
    source: &S,
    check_end: &dyn Fn(&S::End) -> Result<()>,
    options: RecoveryOptions,
    progress: &(dyn Fn(RecoveryProgress) + Sync),
) -> Result<Recovered<S::End>> {
    let say = |phase, done, total| progress(RecoveryProgress { phase, done, total });
    let threads = options.threads.max(1);
    let pages = |done, total| say(RecoveryPhase::Checkpoint, done, total);
    let RecoveryOptions { memory_limit_bytes, memory_budget, sizes, follows, notes_replayed_lists, .. } = options;
    let tablet_count = manifest.tablet_count;
    let store = StoreOptions { tablet_count, memory_limit_bytes, memory_budget, sizes, notes_replayed_lists };
    let restore = Restore::new(Store::new(&store));
    let restore = if follows { restore.to_follow() } else { restore };
    let loaded = load(place, manifest, restore, threads, &pages)?;
    let base = RecoveryBase {
        restore: loaded.restore,
        indexes: loaded.indexes,
        rules: loaded.rules,
        checkpoint_ts: manifest.checkpoint_ts(),
    };
    let error_of = |damage: &Damage| loaded.source.error(place, damage);
    let recovered = recover_from(base, source, threads, check_end, &error_of, progress)?;
    let summary = RecoverySummary {
        graph: recovered.graph,
        checkpoint_ts: manifest.checkpoint_ts(),
        checkpoint_bytes: loaded.bytes,
        commits_replayed: recovered.commits,
        last_ts: recovered.last_ts,
        log: recovered.end,
    };
    Ok(Recovered { store: recovered.store, checkpoints: loaded.checkpoints, summary })
}

impl RecoveryPhase {
    fn of(phase: RestorePhase) -> Self {
        match phase {
            RestorePhase::Packing => RecoveryPhase::Packing,
            RestorePhase::Ids => RecoveryPhase::Ids,
            RestorePhase::Indexes => RecoveryPhase::Indexes,
            _ => RecoveryPhase::Checking,
        }
    }
}

/// What a log is replayed into: a checkpoint in memory, or an empty graph.
pub(crate) struct RecoveryBase {
    pub(crate) restore: Restore,
    pub(crate) indexes: Indexes,
    pub(crate) rules: SavedRules,
    /// Everything up to this timestamp is in it.
    pub(crate) checkpoint_ts: u64,
}

/// A graph that was recovered from a log, and perhaps a checkpoint.
#[derive(Debug)]
pub struct RecoveredLog<E> {
    /// The graph.
    pub store: Store,
    /// The numbers of vertices, edges and pages.
    pub graph: RestoreSummary,
    /// Commits that were replayed.
    pub commits: u64,
    /// The timestamp of the last commit; 0 if there is none.
    pub last_ts: u64,
    /// What is known about the log.
    pub end: E,
}

/// Recovers a graph that has no checkpoint: all of it is in the log. `threads` apply commits. `progress` is called from
/// several threads.
///
/// # Errors
///
/// If the log is damaged.
pub fn recover_log<S: LogSource>(
    source: &S,
    options: &StoreOptions,
    threads: usize,
    progress: &(dyn Fn(RecoveryProgress) + Sync),
) -> Result<RecoveredLog<S::End>> {
    let restore = Restore::new(Store::new(options));
    let (indexes, rules) = Default::default();
    let base = RecoveryBase { restore, indexes, rules, checkpoint_ts: 0 };
    let error_of = |damage: &Damage| {
        let message =
            format!("the commits in the log contradict each other: {damage}; restore the graph from a backup");
        Error::new(ErrorKind::Damaged, message)
    };
    recover_from(base, source, threads.max(1), &|_| Ok(()), &error_of, progress)
}

/// Replays a log and finishes the graph. `check_end` may refuse the log before that; `error_of` names the place of damage
/// that only the whole graph shows.
pub(crate) fn recover_from<S: LogSource>(
    base: RecoveryBase,
    source: &S,
    threads: usize,
    check_end: &dyn Fn(&S::End) -> Result<()>,
    error_of: &dyn Fn(&Damage) -> Error,
    progress: &(dyn Fn(RecoveryProgress) + Sync),
) -> Result<RecoveredLog<S::End>> {
    let say = |phase, done| progress(RecoveryProgress { phase, done, total: 0 });
    let RecoveryBase { restore, mut indexes, mut rules, checkpoint_ts } = base;
    let commits = |done| say(RecoveryPhase::Log, done);
    let Replayed { end, commits, last_ts } =
        replay(source, checkpoint_ts, &restore, (&mut indexes, &mut rules), threads, &commits)?;
    check_end(&end)?;
    let mut phase = |phase| say(RecoveryPhase::of(phase), 0);
    let restored = restore.finish(&indexes.list, indexes.next, last_ts, threads, &mut phase);
    let restored = restored.map_err(|damage| error_of(&damage))?;
    restored.store.restore_rules(rules.list, rules.next);
    Ok(RecoveredLog { store: restored.store, graph: restored.summary, commits, last_ts, end })
}

/// A log that was replayed.
struct Replayed<E> {
    end: E,
    /// Commits after the checkpoint.
    commits: u64,
    /// The timestamp of the last commit, of the checkpoint if the log has none after it (LOG-40).
    last_ts: u64,
}

/// Replays the commits of a log after the timestamp of a checkpoint.
fn replay<S: LogSource>(
    source: &S,
    checkpoint_ts: u64,
    restore: &Restore,
    (indexes, rules): (&mut Indexes, &mut SavedRules),
    threads: usize,
    progress: &dyn Fn(u64),
) -> Result<Replayed<S::End>> {
    let failure = WorkerFailure::default();
    let done = std::thread::scope(|scope| {
        let dealer = RedoDealer::start(threads, |portions| {
            let failure = &failure;
            scope.spawn(move || work(restore, &portions, failure));
        });
        let mut replay =
            Replay { restore, indexes, rules, dealer, failure: &failure, last_ts: checkpoint_ts, commits: 0 };
        let end = source.read(&mut |record, position| {
            replay.record(record, position)?;
            progress(replay.commits);
            Ok(())
        });
        let (commits, last_ts) = (replay.commits, replay.last_ts);
        // The workers end when they have applied everything.
        replay.dealer.finish();
        end.map(|end| Replayed { end, commits, last_ts })
    });
    // The error of a worker comes before the reader's: the reader may have stopped only because the worker failed.
    failure.error.into_inner().map_or(done, Err)
}

/// The first error of a worker.
#[derive(Default)]
struct WorkerFailure {
    is_there: AtomicBool,
    error: Mutex<Option<Error>>,
}

impl WorkerFailure {
    fn set(&self, error: Error) {
        self.error.lock().get_or_insert(error);
        self.is_there.store(true, Ordering::Release);
    }
}

/// Redo entries for one worker's tablets, all from one position in the log.
struct RedoPortion {
    path: Arc<str>,
    offset: u64,
    redo: Vec<(u64, Redo)>,
}

/// Deals redo entries to workers, in portions. Invariant: all entries of a tablet go to one worker.
struct RedoDealer {
    /// The channel of each worker, and the portion that is being filled for it.
    workers: Vec<(SyncSender<RedoPortion>, RedoPortion)>,
    /// The path of the segment that the last entry came from, shared by its portions.
    path: Arc<str>,
}

impl RedoDealer {
    fn start(count: usize, mut spawn: impl FnMut(Receiver<RedoPortion>)) -> Self {
        let path: Arc<str> = "".into();
        let workers = (0..count).map(|_| {
            let (sender, receiver) = sync_channel(QUEUED_PORTIONS);
            spawn(receiver);
            (sender, RedoPortion { path: path.clone(), offset: 0, redo: Vec::new() })
        });
        RedoDealer { workers: workers.collect(), path: path.clone() }
    }

    /// Adds an entry to the portion of its tablet's worker. Sends the portion before, if it is full or if the entry
    /// comes from another position.
    fn deal(&mut self, ts: u64, redo: Redo, position: RecordPosition<'_>) {
        if *self.path != *position.path {
            self.path = position.path.into();
        }
        let at = usize::from(tablet_of(&redo).0) % self.workers.len();
        let (sender, portion) = &mut self.workers[at];
        let is_at_new_position = portion.offset != position.offset || !Arc::ptr_eq(&portion.path, &self.path);
        if !portion.redo.is_empty() && (is_at_new_position || portion.redo.len() >= PORTION_ENTRIES) {
            send(sender, portion);
        }
        if is_at_new_position {
            (portion.path, portion.offset) = (self.path.clone(), position.offset);
        }
        portion.redo.push((ts, redo));
    }

    /// Sends the remaining portions and closes the channels.
    fn finish(self) {
        for (sender, mut portion) in self.workers {
            if !portion.redo.is_empty() {
                send(&sender, &mut portion);
            }
        }
    }
}

fn send(sender: &SyncSender<RedoPortion>, portion: &mut RedoPortion) {
    let redo = std::mem::take(&mut portion.redo);
    let full = RedoPortion { path: portion.path.clone(), offset: portion.offset, redo };
    // Fails only if the worker is gone. A worker receives to the end unless it panics, and its scope passes a panic on.
    let _ = sender.send(full);
}

/// Applies portions until no more come. After a failure it only receives.
fn work(restore: &Restore, portions: &Receiver<RedoPortion>, failure: &WorkerFailure) {
    for RedoPortion { path, offset, redo } in portions {
        if failure.is_there.load(Ordering::Acquire) {
            continue;
        }
        let applied = catch_unwind(AssertUnwindSafe(|| {
            reach(Point::RecoveryWorker);
            apply(restore, redo)
        }));
        match applied {
            Ok(Ok(())) => {}
            Ok(Err(what)) => failure.set(RecordPosition { path: &path, offset }.damage(what)),
            Err(panic) => {
                let what = panic_text(&*panic);
                failure.set(Error::bug(format!("replaying the commits at {path}, offset {offset}: {what}")));
            }
        }
    }
}

/// Applies the entries of a portion. Holds one tablet at a time, as long as entries for it follow one another.
fn apply(restore: &Restore, redo: Vec<(u64, Redo)>) -> std::result::Result<(), String> {
    let mut current: Option<(TabletId, TabletRestore<'_>)> = None;
    for (ts, redo) in redo {
        let id = tablet_of(&redo);
        if current.as_ref().is_none_or(|(held, _)| *held != id) {
            // Gives up the old tablet first: a worker holds no tablet while it waits for one.
            drop(current.take());
            let next = restore
                .tablet(id)
                .ok_or_else(|| format!("commit {ts} changes tablet {}, which does not exist", id.0))?;
            current = Some((id, next));
        }
        let (_, tablet) = current.as_mut().expect("it was just taken");
        tablet.redo(ts, redo).map_err(|damage| damage.to_string())?;
    }
    Ok(())
}

/// The reading side of a replay.
struct Replay<'a> {
    restore: &'a Restore,
    indexes: &'a mut Indexes,
    rules: &'a mut SavedRules,
    dealer: RedoDealer,
    failure: &'a WorkerFailure,
    /// The timestamp of the checkpoint, then of the last commit. Only later commits are replayed.
    last_ts: u64,
    /// How many commits have been replayed.
    commits: u64,
}

impl Replay<'_> {
    /// Replays a record of the log. The workers may apply the entries of a commit later.
    fn record(&mut self, record: Record<'_>, position: RecordPosition<'_>) -> Result<()> {
        if self.failure.is_there.load(Ordering::Acquire) {
            // Stops the reader. `replay` returns the error of the worker in place of this one.
            return Err(position.damage("an earlier commit could not be replayed"));
        }
        match record {
            // LOG-41.
            Record::Commit(commit) if commit.timestamp <= self.last_ts => Ok(()),
            Record::Commit(commit) => {
                self.commits += 1;
                self.last_ts = commit.timestamp;
                let dealer = &mut self.dealer;
                let dealt = commit.each_redo::<Malformed>(|redo| {
                    dealer.deal(commit.timestamp, redo, position);
                    Ok(())
                });
                dealt.map_err(|malformed| position.damage(format_args!("commit {}: {malformed}", commit.timestamp)))
            }
            // For readers of the change feed.
            Record::Before(_) | Record::Identities(_) => Ok(()),
            Record::Names(names) => match names.put_into(self.restore.store().catalog()) {
                true => Ok(()),
                false => Err(position.damage("names whose numbers are taken, or do not follow the existing ones")),
            },
            Record::Rules(rules) if !rules.are_possible(self.restore.store().catalog()) => {
                Err(position.damage(IMPOSSIBLE_RULE))
            }
            Record::Rules(rules) => {
                *self.rules = rules;
                Ok(())
            }
            Record::Moment(_) => Ok(()),
            Record::IndexCreated(info) => self.create_index(info, position),
            Record::IndexDropped(id) => {
                self.indexes.next = self.indexes.next.max(id.0.saturating_add(1));
                self.indexes.list.retain(|index| index.id != id);
                Ok(())
            }
        }
    }

    /// Adds an index to the list, unless the checkpoint has it.
    fn create_index(&mut self, info: IndexInfo, position: RecordPosition<'_>) -> Result<()> {
        let catalog = self.restore.store().catalog();
        if !is_possible(&info, catalog) {
            return Err(position.damage(format_args!("index {}: {IMPOSSIBLE_INDEX}", info.id.0)));
        }
        self.indexes.next = self.indexes.next.max(info.id.0.saturating_add(1));
        if self.indexes.list.iter().all(|index| index.id != info.id) {
            self.indexes.list.push(info);
        }
        Ok(())
    }
}
