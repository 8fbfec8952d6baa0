//! The log: every acknowledged commit, in the order of commit timestamps.
//!
//! ```text
//! reserve ──▶ (timestamp drawn, decided) ──▶ hand over ──▶ (watermark W passes the timestamp) ──▶ wait
//!    │                                                                                             │
//!    └─ refused: nothing is decided           flush: all handed over ≤ W, in order, one write, one sync;
//!                                             then `durable` = W, and the waiting committers are woken
//!
//!  Running ──no space for a segment──▶ Refusing ──space again──▶ Running        states of an open log
//!     └──a write, sync or flush failed──▶ Failed ──the database is opened again──▶ Running
//! ```
//!
//! | module | what it holds |
//! |---|---|
//! | `format`, [`record`] | headers of segments and batches; the records in them |
//! | `commit` | the records of a commit, before its timestamp is known |
//! | `first_segment` | the first segment of a new database |
//! | `supply` | segments made ahead of need, and reservations in them |
//! | `writer` | records into batches, batches into segments |
//! | `group` | group commit: which committer flushes for the others |
//! | `floor` | the position from which a checkpoint needs the log |
//! | [`read`](mod@read) | reading the log after a crash: whole, torn or damaged |
//! | `join` | records out of batches that have them in parts |
//! | `position` | where a record was found |
//! | [`source`] | where recovery reads a log from |
//! | `rewrite` | the log of a new database from the records of another log |
//! | `status` | the state and counters of an open log |
//!
//! Invariants (the argument is in `docs/design/durability.md`):
//!
//! - **LOG-1.** A flush at watermark `W` writes every commit up to `W` that is not durable, in the order of timestamps.
//!   All of them have been handed over (TXN-14).
//! - **LOG-2.** `durable` grows only after a sync that covers everything up to it has succeeded.
//! - **LOG-3.** After a write or sync failed, or a flush panicked, nothing is written any more: it is unknown which
//!   part of it is on the disk, and the commits that the flush took from the queue are lost.
//! - **LOG-4.** A record fits into its reserved space. So after the decision only a failing disk can prevent a commit
//!   from becoming durable.
//! - **LOG-5.** The segment that a manifest names exists: a log without it has lost something.
//! - **LOG-6.** The floor of a checkpoint moves last: when it passes a batch, `durable` has passed the commits in it.
//!   So a snapshot that begins after the floor was read has every commit before it.
//!
//! Locks: `mangrove_locks::rank` has their order, and says which are held through I/O.

pub(crate) mod commit;
mod first_segment;
mod floor;
pub(crate) mod format;
mod group;
pub(crate) mod join;
#[cfg(feature = "model")]
#[doc(hidden)]
pub mod model;
mod options;
mod position;
pub mod read;
pub mod record;
mod rewrite;
pub mod source;
mod status;
mod supply;
mod writer;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

use mangrove_failpoint::{Point, reach};
use mangrove_graph::{Error, ErrorKind, Result};
use mangrove_locks::rank;
use mangrove_store::schema::RuleEntry;
use mangrove_store::{Store, Write};
use mangrove_txn::{CommitLog, IndexChange, PreparedCommit, Watermarks};
use uuid::Uuid;

pub use commit::FeedContent;
pub use floor::{LogBefore, LogFloor};
pub use options::LogOptions;
pub use status::{DurabilityStatus, LogState, SYNC_TIME_BOUNDS_US};

use crate::codec::SavedRules;
use crate::damage::panic_text;
use crate::disk::{Disk, DiskError};
use crate::sync::{AtomicU64, Mutex, Ordering};
use commit::EncodedCommit;
pub(crate) use first_segment::{create_first_segment, remains};
pub(crate) use format::DIRECTORY;
use format::blocks_of;
use group::{Flush, FlushGoal, FlushProgress, GroupCommit};
use record::{
    MOMENT_BYTES, NameCounts, Names, put_index_created, put_index_dropped, put_moment, put_names, put_rules_record,
};
pub(crate) use rewrite::{FramedRecord, LogRewrite};
use source::LogGrowth;
use status::LogMeters;
use supply::SegmentSupply;
use writer::BatchWriter;

/// Where a new log continues. It is known when the old log has been read and cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogStart {
    /// The database that the log belongs to.
    pub database: Uuid,
    /// The fencing epoch: the number of this opening of the database. Larger than that of every existing segment.
    pub epoch: u64,
    /// The number of the first new segment.
    pub next_segment: u64,
    /// The number of the first new batch, from 1.
    pub next_batch: u64,
    /// Everything up to this timestamp is durable, in the log or in a checkpoint.
    pub durable_ts: u64,
    /// The names that are durable.
    pub names: NameCounts,
}

/// A commit that was handed over and is not flushed.
#[derive(Debug)]
struct PendingCommit {
    ts: u64,
    encoded: EncodedCommit,
    reservation: Reservation,
}

/// The space that a record was promised, and the names it relies on.
#[derive(Clone, Copy, Debug)]
struct Reservation {
    /// Blocks reserved in the segments.
    blocks: u64,
    /// Names that must be in the log before the record (LOG-11).
    names: NameCounts,
}

/// The records that were handed over and are not flushed.
#[derive(Debug, Default)]
struct FlushQueue {
    commits: Vec<PendingCommit>,
    /// Framed records of indexes and schema rules, which belong to no commit.
    schema_records: Vec<(Vec<u8>, Reservation)>,
    /// How many schema records were handed over since the log was opened.
    schema_record_count: u64,
}

/// Where the log ends after a flush.
#[derive(Clone, Copy, Debug)]
struct FlushEnd {
    /// Blocks that the flush used.
    used_blocks: u64,
    /// The segment in which the log ends.
    segment: u64,
    /// The number of the next batch.
    next_batch: u64,
}

/// The state of an open log, shared by the log and the commits that hold reservations.
#[derive(Debug)]
struct LogCore {
    store: Arc<Store>,
    feed: FeedContent,
    supply: Arc<SegmentSupply>,
    meters: Arc<LogMeters>,
    group: GroupCommit,
    queue: Mutex<FlushQueue, rank::LogQueue>,
    /// Locked by the leader of a flush only, so never contended.
    writer: Mutex<BatchWriter, rank::LogWriter>,
    /// Every commit up to this timestamp is durable (LOG-2).
    durable: AtomicU64,
    /// Schema records up to this number are durable.
    durable_schema_record: AtomicU64,
    /// The first failure (LOG-3).
    failed: OnceLock<DiskError>,
    /// Set when the log accepts nothing any more.
    is_closed: AtomicBool,
    /// The names that are in the log.
    names: Mutex<NameCounts, rank::LogNames>,
    /// The position from which a checkpoint needs the log: the segment in which the durable part ends, and the end of
    /// that part.
    floor: Mutex<LogFloor, rank::LogFloor>,
}

/// An open log. Dropping it closes it.
#[derive(Debug)]
pub struct Log {
    inner: Arc<LogCore>,
    maker: Mutex<Option<SegmentMaker>, rank::SegmentMaker>,
}

/// The thread that makes segments ahead of need.
#[derive(Debug)]
struct SegmentMaker {
    supply: Arc<SegmentSupply>,
    closing: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Log {
    /// Opens a log for a store, after the old log has been read and cut ([`read::LogEnd::cut`]). If no segment can be
    /// made, the log opens all the same, and refuses commits until one can be made.
    pub fn open(disk: Arc<dyn Disk>, store: Arc<Store>, start: LogStart, options: LogOptions) -> Result<Self> {
        disk.create_dir(DIRECTORY)?;
        disk.sync_dir(crate::disk::parent(DIRECTORY))?;
        let LogOptions { prepare_ahead, feed, .. } = options;
        let LogStart { database, epoch, next_segment, .. } = start;
        let supply = Arc::new(SegmentSupply::new(disk, database, epoch, next_segment, options));
        let meters = Arc::new(LogMeters::default());
        let writer = BatchWriter::new(supply.clone(), meters.clone(), start.next_batch);
        // The supply keeps the error, and the first committer gets it.
        let _ = supply.make_one(1);
        let maker = if prepare_ahead { Some(SegmentMaker::start(supply.clone())?) } else { None };
        let before = LogBefore { next_batch: start.next_batch, last_ts: start.durable_ts };
        let inner = LogCore {
            store,
            feed,
            supply,
            meters,
            group: GroupCommit::default(),
            queue: Mutex::default(),
            writer: Mutex::new(writer),
            durable: AtomicU64::new(start.durable_ts),
            durable_schema_record: AtomicU64::new(0),
            failed: OnceLock::new(),
            is_closed: AtomicBool::new(false),
            names: Mutex::new(start.names),
            floor: Mutex::new(LogFloor { segment: next_segment, before: Some(before) }),
        };
        Ok(Log { inner: Arc::new(inner), maker: Mutex::new(maker) })
    }

    /// Closes the log: it accepts nothing more, and makes, renames and removes no file. A handle that lives on does no
    /// harm to the directory, which another process may open next.
    pub fn close(&self) {
        self.inner.is_closed.store(true, std::sync::atomic::Ordering::SeqCst);
        // Waits for a segment that is being made.
        self.maker.lock().take();
    }

    /// The state and counters of the log.
    pub fn status(&self) -> DurabilityStatus {
        let inner = &self.inner;
        let cause = |error: DiskError| error.to_string();
        let state = match (inner.failed.get().cloned(), inner.supply.refusal()) {
            (Some(error), _) => LogState::Failed { cause: cause(error) },
            (None, Some(error)) => LogState::Refusing { cause: cause(error) },
            (None, None) => LogState::Running,
        };
        let segment = inner.floor.lock().segment;
        inner.meters.status(state, inner.durable.load(Ordering::Acquire), segment)
    }

    /// Returns the position from which a checkpoint needs the log. The checkpoint must take its snapshot, and then read
    /// names and indexes, after this call: everything before the floor is durable and therefore in the snapshot
    /// (LOG-6). If the first needed segment does not exist yet and cannot be made, this fails: a manifest must not name
    /// a missing segment (LOG-5).
    pub fn checkpoint_floor(&self) -> Result<LogFloor> {
        let floor = *self.inner.floor.lock();
        // LOG-6.
        assert!(floor.is_covered_by(self.inner.so_far().ts), "the floor {floor:?} is beyond what is durable");
        if self.inner.supply.next_seq() <= floor.segment {
            self.inner.supply.make_one(1)?;
        }
        Ok(floor)
    }

    /// The log, for readers of the change feed.
    pub(crate) fn growth(&self) -> Arc<dyn LogGrowth> {
        self.inner.clone()
    }

    /// Removes the segments before one, because a checkpoint covers them. Returns how many.
    pub fn release_before(&self, segment: u64) -> Result<usize> {
        let inner = &self.inner;
        let segment = segment.min(inner.floor.lock().segment);
        Ok(inner.supply.retire_before(segment)?)
    }

    /// Reserves space for a commit that may be decided later.
    fn reserve(&self, encoded: EncodedCommit) -> Result<PreparedRecord> {
        let reservation = self.inner.reserve(encoded.len_max() as u64)?;
        Ok(PreparedRecord { log: self.inner.clone(), encoded: Some(encoded), reservation })
    }
}

impl LogGrowth for LogCore {
    fn durable_batches(&self) -> u64 {
        // LOG-6: the floor moves when what is before it is durable.
        self.floor.lock().before.map_or(1, |before| before.next_batch)
    }
}

impl LogCore {
    fn reserve(&self, bytes: u64) -> Result<Reservation> {
        if self.is_closed.load(std::sync::atomic::Ordering::SeqCst) {
            return Err(Error::new(ErrorKind::Closed, "the database is closed, so it accepts no commit"));
        }
        if let Some(error) = self.failed.get() {
            return Err(failed_error(error));
        }
        let catalog = self.store.catalog();
        let names = NameCounts::of(catalog);
        let known = *self.names.lock();
        // The first record of a flush has a moment before it.
        let mut bytes = bytes + MOMENT_BYTES as u64;
        if known.max(names) != known {
            let mut record = Vec::new();
            put_names(&Names::between(catalog, known, names), &mut record);
            bytes += record.len() as u64;
        }
        let blocks = blocks_of(bytes);
        // LOG-4: refused before anything is decided.
        self.supply.reserve(blocks).map_err(|error| refused_error(&error))?;
        Ok(Reservation { blocks, names })
    }

    /// Writes and syncs records. Returns where the log ends then.
    fn write(
        &self,
        commits: &[PendingCommit],
        schema_records: &[(Vec<u8>, Reservation)],
    ) -> Result<FlushEnd, DiskError> {
        let mut writer = self.writer.lock();
        let mut moment = Vec::with_capacity(MOMENT_BYTES);
        put_moment(writer.moment_us(), &mut moment);
        writer.push([&moment, &[]])?;
        self.write_names(
            &mut writer,
            commits.iter().map(|commit| commit.reservation).chain(schema_records.iter().map(|(_, n)| *n)),
        )?;
        for (record, _) in schema_records {
            writer.push([record, &[]])?;
        }
        for commit in commits {
            for (head, entries) in commit.encoded.records(commit.ts) {
                writer.push([&head, entries])?;
            }
            writer.count_commit(commit.ts);
        }
        let used_blocks = writer.finish()?;
        let segment = writer.seq().expect("a flush writes something, and that is in a segment");
        Ok(FlushEnd { used_blocks, segment, next_batch: writer.next_number() })
    }

    /// Publishes that a flush is durable, up to a watermark and a schema record.
    fn announce(&self, reached: FlushGoal, written: Option<FlushEnd>, watermarks: &dyn Watermarks) {
        // LOG-2: only the leader of a flush stores here, after the sync.
        let before = self.so_far();
        assert!(before.is_within(reached), "what is durable fell from {before:?} to {reached:?}");
        // Release, both: their partner is in `so_far`.
        self.durable.store(reached.ts, Ordering::Release);
        self.durable_schema_record.store(reached.schema_record, Ordering::Release);
        debug_assert_eq!(self.so_far(), reached);
        watermarks.set_durable(reached.ts);
        if let Some(FlushEnd { segment, next_batch, .. }) = written {
            // LOG-6: last. The lock orders it after the stores above, and before the snapshot of a checkpoint that
            // finds it.
            let before = LogBefore { next_batch, last_ts: reached.ts };
            let mut floor = self.floor.lock();
            assert!(floor.segment <= segment, "the log goes on in an earlier segment");
            // LOG-14.
            assert!(floor.before.is_none_or(|last| last.next_batch < next_batch), "a flush wrote no batch");
            *floor = LogFloor { segment, before: Some(before) };
        }
    }

    /// Writes the names that these records need and the log does not have (LOG-11).
    fn write_names(
        &self,
        writer: &mut BatchWriter,
        reservation: impl Iterator<Item = Reservation>,
    ) -> Result<(), DiskError> {
        let known = *self.names.lock();
        let needed = reservation.fold(known, |names, reservation| names.max(reservation.names));
        if needed == known {
            return Ok(());
        }
        let mut record = Vec::new();
        put_names(&Names::between(self.store.catalog(), known, needed), &mut record);
        writer.push([&record, &[]])?;
        *self.names.lock() = needed;
        Ok(())
    }

    fn wait(&self, goal: FlushGoal, watermarks: &dyn Watermarks) -> Result<()> {
        self.group.wait(goal, &Flushing { log: self, watermarks });
        match (goal.is_within(self.so_far()), self.failed.get()) {
            (false, Some(error)) => Err(failed_error(error)),
            _ => Ok(()),
        }
    }

    fn so_far(&self) -> FlushGoal {
        // Acquire: everything that the flush did before it stored them.
        FlushGoal {
            ts: self.durable.load(Ordering::Acquire),
            schema_record: self.durable_schema_record.load(Ordering::Acquire),
        }
    }
}

/// A flush on behalf of the committers of one graph.
struct Flushing<'a> {
    log: &'a LogCore,
    watermarks: &'a dyn Watermarks,
}

impl Flush for Flushing<'_> {
    fn reached(&self) -> FlushProgress {
        match self.log.failed.get() {
            None => FlushProgress::Now(self.log.so_far()),
            Some(_) => FlushProgress::Failed,
        }
    }

    fn flush(&self) {
        if self.log.failed.get().is_some() {
            return;
        }
        let flushed = catch_unwind(AssertUnwindSafe(|| self.flush_handed_over())).unwrap_or_else(|panic| {
            let cause = std::io::Error::other(format!("a bug: {}", panic_text(&*panic)));
            Err(DiskError::new("flush", "the log", &cause))
        });
        if let Err(error) = flushed {
            // LOG-3. Only the leader comes here (LOG-8), and it has looked.
            assert!(self.log.failed.set(error).is_ok(), "a log fails once");
        }
    }
}

impl Flushing<'_> {
    /// Writes everything that was handed over up to the watermark, and publishes that it is durable.
    fn flush_handed_over(&self) -> Result<(), DiskError> {
        let log = self.log;
        // LOG-1: before the queue is read. All commits up to here are in it (TXN-14).
        let stable = self.watermarks.stable();
        let (mut commits, schema_records, schema_record_count) = {
            let mut queue = log.queue.lock();
            let (now, later) = std::mem::take(&mut queue.commits).into_iter().partition(|commit| commit.ts <= stable);
            queue.commits = later;
            let now: Vec<PendingCommit> = now;
            (now, std::mem::take(&mut queue.schema_records), queue.schema_record_count)
        };
        commits.sort_unstable_by_key(|commit| commit.ts);
        // LOG-1: a commit that comes now was not in an earlier flush.
        let durable = log.so_far().ts;
        assert!(stable >= durable, "the watermark {stable} is below what is durable, {durable}");
        assert!(commits.first().is_none_or(|first| first.ts > durable), "a commit is flushed after it was durable");
        let mut written = None;
        if !(commits.is_empty() && schema_records.is_empty()) {
            let reservation = commits
                .iter()
                .map(|commit| commit.reservation)
                .chain(schema_records.iter().map(|(_, reservation)| *reservation));
            let reserved: u64 = reservation.map(|reservation| reservation.blocks).sum();
            reach(Point::FlushTaken);
            let done = log.write(&commits, &schema_records)?;
            reach(Point::FlushWritten);
            let used = done.used_blocks;
            // LOG-4.
            debug_assert!(used <= reserved, "{used} blocks were used of {reserved} reserved ones");
            log.supply.give_back(reserved.saturating_sub(used));
            written = Some(done);
        }
        log.announce(FlushGoal { ts: stable, schema_record: schema_record_count }, written, self.watermarks);
        Ok(())
    }
}

/// A commit with reserved space in the log. Dropping it gives the space back.
#[derive(Debug)]
struct PreparedRecord {
    log: Arc<LogCore>,
    /// `None` after it was handed over.
    encoded: Option<EncodedCommit>,
    reservation: Reservation,
}

impl PreparedCommit for PreparedRecord {
    fn hand_over(mut self: Box<Self>, ts: u64) {
        if let Some(encoded) = self.encoded.take() {
            self.log.queue.lock().commits.push(PendingCommit { ts, encoded, reservation: self.reservation });
        }
    }
}

impl Drop for PreparedRecord {
    fn drop(&mut self) {
        if self.encoded.is_some() {
            self.log.supply.give_back(self.reservation.blocks);
        }
    }
}

impl CommitLog for Log {
    fn prepare(&self, writes: &[Write], txn: u64) -> Result<Box<dyn PreparedCommit>> {
        let encoded = EncodedCommit::of(&self.inner.store, writes, txn, self.inner.feed, |_| {});
        Ok(Box::new(self.reserve(encoded)?))
    }

    fn wait(&self, ts: u64, watermarks: &dyn Watermarks) -> Result<()> {
        // LOG-10: the watermark has passed `ts`, so every commit up to it was handed over.
        self.inner.wait(FlushGoal { ts, schema_record: 0 }, watermarks)
    }

    fn change_index(&self, change: &IndexChange, watermarks: &dyn Watermarks) -> Result<()> {
        let mut record = Vec::new();
        match change {
            IndexChange::Created(info) => put_index_created(info, &mut record),
            IndexChange::Dropped(id) => put_index_dropped(*id, &mut record),
        }
        self.write_record(record, watermarks)
    }

    fn change_rules(&self, rules: &[RuleEntry], next: u32, watermarks: &dyn Watermarks) -> Result<()> {
        let list = rules.iter().map(|entry| (entry.id, entry.rule.clone())).collect();
        let mut record = Vec::new();
        put_rules_record(&SavedRules { list, next }, &mut record);
        self.write_record(record, watermarks)
    }
}

impl Log {
    /// Returns when a schema record is durable.
    fn write_record(&self, record: Vec<u8>, watermarks: &dyn Watermarks) -> Result<()> {
        let reservation = self.inner.reserve(record.len() as u64)?;
        let schema_record = {
            let mut queue = self.inner.queue.lock();
            queue.schema_records.push((record, reservation));
            queue.schema_record_count += 1;
            queue.schema_record_count
        };
        self.inner.wait(FlushGoal { ts: 0, schema_record }, watermarks)
    }
}

fn refused_error(error: &DiskError) -> Error {
    Error::new(
        ErrorKind::ReadOnly,
        format!(
            "the database takes no writes, because its log has no space left: {error}; reads go on, and writes are accepted \
             again as soon as there is space"
        ),
    )
}

fn failed_error(error: &DiskError) -> Error {
    Error::new(
        ErrorKind::ReadOnly,
        format!(
            "the database takes no writes, because its log has failed: {error}; reads go on with durable commits; repair the \
             disk, then restart the database, which recovers all acknowledged commits"
        ),
    )
}

impl SegmentMaker {
    fn start(supply: Arc<SegmentSupply>) -> Result<Self> {
        let closing = Arc::new(AtomicBool::new(false));
        let (segments, is_closing) = (supply.clone(), closing.clone());
        let thread = std::thread::Builder::new().name("mangrove-log".into()).spawn(move || {
            let is_over = || is_closing.load(std::sync::atomic::Ordering::SeqCst);
            while segments.wait_until_low(is_over) {
                // The supply keeps the error, and waits before it tries again.
                let _ = segments.make_ahead();
            }
        })?;
        Ok(SegmentMaker { supply, closing, thread: Some(thread) })
    }
}

impl Drop for SegmentMaker {
    fn drop(&mut self) {
        self.closing.store(true, std::sync::atomic::Ordering::SeqCst);
        self.supply.wake();
        if let Some(thread) = self.thread.take() {
            // A panic was reported already.
            let _ = thread.join();
        }
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.close();
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests;
