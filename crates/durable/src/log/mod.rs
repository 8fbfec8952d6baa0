//! The log: every commit that was acknowledged, in the order of commit timestamps.
//!
//! ```text
//! reserve ──▶ (timestamp drawn, decided) ──▶ hand over ──▶ (watermark W passes the timestamp) ──▶ wait
//!    │                                                                                             │
//!    └─ refused: nothing is decided           flush: all handed over ≤ W, in order, one write, one sync;
//!                                             then `durable` = W, and whoever waits for it is woken
//! ```
//!
//! | module | what it holds |
//! |---|---|
//! | `format`, [`record`] | headers of segments and batches; what is in them |
//! | `founding` | the first segment of a new database |
//! | `supply` | segments made ahead of need, and reservations in them |
//! | `writer` | records into batches, batches into segments |
//! | `group` | who flushes for whom |
//! | `floor` | from where on a checkpoint needs the log |
//! | [`read`](mod@read) | the log from disk: what is whole, what is torn, what is damaged |
//! | `status` | what there is to know about a running log |
//!
//! Invariants (the argument is in `docs/design/durability.md`):
//!
//! 1. A commit is handed over before the watermark can pass its timestamp. So at any watermark W, all commits up to W
//!    are handed over, and a flush leaves no hole behind it.
//! 2. `durable` grows only after a sync that covers everything up to it has succeeded.
//! 3. After a write or a sync failed, or a flush panicked, nothing is written any more: nobody knows what of it is on the
//!    disk, and what the flush took from the queue is gone from there.
//! 4. What is reserved fits. So after the decision only a failing disk stands in the way of a commit.
//! 5. The segment that a manifest names is there: a log without it has lost something.
//! 6. The floor of a checkpoint moves last: when it passes a batch, `durable` has passed the commits in it. So a snapshot
//!    that begins after a look at the floor has every commit before it.

mod floor;
mod format;
mod founding;
mod group;
#[cfg(feature = "model")]
#[doc(hidden)]
pub mod model;
mod options;
pub mod read;
pub mod record;
mod status;
mod supply;
mod writer;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

use mangrove_failpoint::{Point, reach};
use mangrove_graph::{Error, ErrorKind, Result};
use mangrove_store::schema::RuleEntry;
use mangrove_store::{Store, Write};
use mangrove_txn::{CommitLog, IndexChange, PreparedCommit, Watermarks};
use uuid::Uuid;

pub use floor::{LogBefore, LogFloor};
pub use options::LogOptions;
pub use status::{DurabilityStatus, LogState, SYNC_TIME_BOUNDS_US};

use crate::codec::SavedRules;
use crate::damage::panic_text;
use crate::disk::{Disk, DiskError};
use crate::sync::{AtomicU64, Mutex, Ordering};
pub(crate) use format::DIRECTORY;
use format::blocks_of;
pub(crate) use founding::{found, remains};
use group::{Flush, Goal, Group, Reached};
use record::{
    COMMIT_OVERHEAD, NameCounts, Names, commit_body, put_commit_head, put_index_created, put_index_dropped, put_names,
    put_rules_record,
};
use status::Meters;
use supply::Supply;
use writer::Writer;

/// Where a log goes on: what is known when the one before has been read, and cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogStart {
    /// Whose log it is.
    pub database: Uuid,
    /// Which opening of the database this is; larger than that of every segment there is.
    pub epoch: u64,
    /// The number of the first segment to be made.
    pub next_segment: u64,
    /// The number of the first batch to be written, from 1.
    pub next_batch: u64,
    /// Everything up to this timestamp is durable: in the log or in a checkpoint.
    pub durable_ts: u64,
    /// The names that are durable.
    pub names: NameCounts,
}

/// A commit on its way into the log.
#[derive(Debug)]
struct Commit {
    ts: u64,
    body: Vec<u8>,
    needs: Needs,
}

/// What a record needs besides its own bytes.
#[derive(Clone, Copy, Debug)]
struct Needs {
    /// Blocks that were reserved for it.
    blocks: u64,
    /// Names that must be in the log before it.
    names: NameCounts,
}

/// What was handed over and is not flushed.
#[derive(Debug, Default)]
struct Pending {
    commits: Vec<Commit>,
    /// Other records, framed.
    orders: Vec<(Vec<u8>, Needs)>,
    /// How many of those were handed over since the log was opened.
    order_count: u64,
}

/// What a flush has written.
#[derive(Clone, Copy, Debug)]
struct Written {
    /// How many blocks that took.
    used_blocks: u64,
    /// The segment in which the log ends then.
    segment: u64,
    /// The number of the batch that comes next.
    next_batch: u64,
}

#[derive(Debug)]
struct Inner {
    store: Arc<Store>,
    supply: Arc<Supply>,
    meters: Arc<Meters>,
    group: Group,
    pending: Mutex<Pending>,
    /// Locked by whoever leads a flush, so never contended.
    writer: Mutex<Writer>,
    durable: AtomicU64,
    /// Orders up to this number are durable.
    ordered: AtomicU64,
    failed: OnceLock<DiskError>,
    /// Set when the log takes nothing any more.
    is_closed: AtomicBool,
    /// The names that are in the log, or reserved bytes for.
    names: Mutex<NameCounts>,
    /// From where on a checkpoint needs the log: the segment in which what is durable ends, and how far that goes.
    floor: Mutex<LogFloor>,
}

/// An open log. See the module.
#[derive(Debug)]
pub struct Log {
    inner: Arc<Inner>,
    maker: Mutex<Option<Maker>>,
}

/// The thread that makes segments ahead of need.
#[derive(Debug)]
struct Maker {
    supply: Arc<Supply>,
    closing: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Log {
    /// Opens a log for a store, after everything there was before has been read and cut ([`read::LogEnd::cut`]). Where
    /// no segment can be made it opens all the same, and refuses commits until one can.
    pub fn open(disk: Arc<dyn Disk>, store: Arc<Store>, start: LogStart, options: LogOptions) -> Result<Self> {
        disk.create_dir(DIRECTORY)?;
        disk.sync_dir(crate::disk::parent(DIRECTORY))?;
        let prepare_ahead = options.prepare_ahead;
        let LogStart { database, epoch, next_segment, .. } = start;
        let supply = Arc::new(Supply::new(disk, database, epoch, next_segment, options));
        let meters = Arc::new(Meters::default());
        let writer = Writer::new(supply.clone(), meters.clone(), start.next_batch);
        // The supply keeps the error, and whoever commits first meets it.
        let _ = supply.make_one(1);
        let maker = if prepare_ahead { Some(Maker::start(supply.clone())?) } else { None };
        let before = LogBefore { next_batch: start.next_batch, last_ts: start.durable_ts };
        let inner = Inner {
            store,
            supply,
            meters,
            group: Group::default(),
            pending: Mutex::default(),
            writer: Mutex::new(writer),
            durable: AtomicU64::new(start.durable_ts),
            ordered: AtomicU64::new(0),
            failed: OnceLock::new(),
            is_closed: AtomicBool::new(false),
            names: Mutex::new(start.names),
            floor: Mutex::new(LogFloor { segment: next_segment, before: Some(before) }),
        };
        Ok(Log { inner: Arc::new(inner), maker: Mutex::new(maker) })
    }

    /// Closes it: from here on it takes nothing, and makes, renames and removes no file. Whoever holds it still does no harm
    /// to the directory, which another process may open next.
    pub fn close(&self) {
        self.inner.is_closed.store(true, std::sync::atomic::Ordering::SeqCst);
        // Waits for the segment that is being made.
        self.maker.lock().take();
    }

    /// A look at it.
    pub fn status(&self) -> DurabilityStatus {
        let inner = &self.inner;
        let cause = |error: DiskError| error.to_string();
        let state = match (inner.failed.get().cloned(), inner.supply.refusal()) {
            (Some(error), _) => LogState::Failed { cause: cause(error) },
            (None, Some(error)) => LogState::Refusing { cause: cause(error) },
            (None, None) => LogState::Running,
        };
        let segment = inner.floor.lock().segment;
        inner.meters.status(state, inner.durable.load(Ordering::Acquire), Some(segment))
    }

    /// From where on a checkpoint needs the log, if it takes its snapshot, and then looks at names and indexes, after
    /// this call: all that is before is durable and therefore in the snapshot (invariant 6). Fails where the first
    /// segment that is needed is still to be made and cannot be: a manifest must not name what is not there (invariant
    /// 5).
    pub fn checkpoint_floor(&self) -> Result<LogFloor> {
        let floor = *self.inner.floor.lock();
        if self.inner.supply.next_seq() <= floor.segment {
            self.inner.supply.make_one(1)?;
        }
        Ok(floor)
    }

    /// Takes away the segments before one: those that a checkpoint covers. Says how many.
    pub fn release_before(&self, segment: u64) -> Result<usize> {
        let inner = &self.inner;
        let segment = segment.min(inner.floor.lock().segment);
        Ok(inner.supply.retire_before(segment)?)
    }

    /// Takes the bytes of a commit that may be decided later, and space for them.
    fn reserve(&self, body: Vec<u8>) -> Result<(Vec<u8>, Needs)> {
        let needs = self.inner.reserve((COMMIT_OVERHEAD + body.len()) as u64)?;
        Ok((body, needs))
    }
}

impl Inner {
    fn reserve(&self, bytes: u64) -> Result<Needs> {
        if self.is_closed.load(std::sync::atomic::Ordering::SeqCst) {
            return Err(Error::new(ErrorKind::Closed, "the database is closed, so nothing is committed to it"));
        }
        if let Some(error) = self.failed.get() {
            return Err(failed_error(error));
        }
        let catalog = self.store.catalog();
        let names = NameCounts::of(catalog);
        let known = *self.names.lock();
        let mut bytes = bytes;
        if known.max(names) != known {
            let mut record = Vec::new();
            put_names(&Names::between(catalog, known, names), &mut record);
            bytes += record.len() as u64;
        }
        let blocks = blocks_of(bytes);
        self.supply.reserve(blocks).map_err(|error| refused_error(&error))?;
        Ok(Needs { blocks, names })
    }

    /// Writes and syncs; where the log ends then.
    fn write(&self, commits: &[Commit], orders: &[(Vec<u8>, Needs)]) -> Result<Written, DiskError> {
        let mut writer = self.writer.lock();
        self.write_names(&mut writer, commits.iter().map(|commit| commit.needs).chain(orders.iter().map(|(_, n)| *n)))?;
        for (record, _) in orders {
            writer.push([record, &[]])?;
        }
        let mut head = Vec::new();
        for commit in commits {
            head.clear();
            put_commit_head(commit.ts, commit.body.len(), &mut head);
            writer.push([&head, &commit.body])?;
            writer.count_commit(commit.ts);
        }
        let used_blocks = writer.finish()?;
        let segment = writer.seq().expect("whoever flushes has something to write, and that goes to a segment");
        Ok(Written { used_blocks, segment, next_batch: writer.next_number() })
    }

    /// Says that a flush is durable: everything up to a watermark and an order.
    fn announce(&self, reached: Goal, written: Option<Written>, watermarks: &dyn Watermarks) {
        // Release, both: their partner is in `so_far`.
        self.durable.store(reached.ts, Ordering::Release);
        self.ordered.store(reached.order, Ordering::Release);
        watermarks.set_durable(reached.ts);
        if let Some(Written { segment, next_batch, .. }) = written {
            // Last (invariant 6). The lock orders it after what is above, and before the snapshot of a checkpoint that
            // finds it.
            let before = LogBefore { next_batch, last_ts: reached.ts };
            *self.floor.lock() = LogFloor { segment, before: Some(before) };
        }
    }

    /// The names that these records need and the log has not.
    fn write_names(&self, writer: &mut Writer, needs: impl Iterator<Item = Needs>) -> Result<(), DiskError> {
        let known = *self.names.lock();
        let needed = needs.fold(known, |names, needs| names.max(needs.names));
        if needed == known {
            return Ok(());
        }
        let mut record = Vec::new();
        put_names(&Names::between(self.store.catalog(), known, needed), &mut record);
        writer.push([&record, &[]])?;
        *self.names.lock() = needed;
        Ok(())
    }

    fn wait(&self, goal: Goal, watermarks: &dyn Watermarks) -> Result<()> {
        self.group.wait(goal, &Flushing { log: self, watermarks });
        match (goal.is_within(self.so_far()), self.failed.get()) {
            (false, Some(error)) => Err(failed_error(error)),
            _ => Ok(()),
        }
    }

    fn so_far(&self) -> Goal {
        // Acquire: everything that the flush did before it said so.
        Goal { ts: self.durable.load(Ordering::Acquire), order: self.ordered.load(Ordering::Acquire) }
    }
}

/// A flush for those who wait at one graph.
struct Flushing<'a> {
    log: &'a Inner,
    watermarks: &'a dyn Watermarks,
}

impl Flush for Flushing<'_> {
    fn reached(&self) -> Reached {
        match self.log.failed.get() {
            None => Reached::Now(self.log.so_far()),
            Some(_) => Reached::Failed,
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
            // Only the leader gets here, so it is the first.
            let _ = self.log.failed.set(error);
        }
    }
}

impl Flushing<'_> {
    /// Writes what was handed over up to the watermark, and says that it is durable.
    fn flush_handed_over(&self) -> Result<(), DiskError> {
        let log = self.log;
        // Before the queue is looked at: all commits up to here are in it (invariant 1).
        let stable = self.watermarks.stable();
        let (mut commits, orders, order_count) = {
            let mut pending = log.pending.lock();
            let (now, later) = std::mem::take(&mut pending.commits).into_iter().partition(|commit| commit.ts <= stable);
            pending.commits = later;
            let now: Vec<Commit> = now;
            (now, std::mem::take(&mut pending.orders), pending.order_count)
        };
        commits.sort_unstable_by_key(|commit| commit.ts);
        let mut written = None;
        if !(commits.is_empty() && orders.is_empty()) {
            let needs = commits.iter().map(|commit| commit.needs).chain(orders.iter().map(|(_, needs)| *needs));
            let reserved: u64 = needs.map(|needs| needs.blocks).sum();
            reach(Point::FlushTaken);
            let done = log.write(&commits, &orders)?;
            reach(Point::FlushWritten);
            let used = done.used_blocks;
            debug_assert!(used <= reserved, "{used} blocks were used of {reserved} reserved ones");
            log.supply.give_back(reserved.saturating_sub(used));
            written = Some(done);
        }
        log.announce(Goal { ts: stable, order: order_count }, written, self.watermarks);
        Ok(())
    }
}

/// A commit with space in the log.
#[derive(Debug)]
struct Prepared {
    log: Arc<Inner>,
    /// Taken when it is handed over.
    body: Option<Vec<u8>>,
    needs: Needs,
}

impl PreparedCommit for Prepared {
    fn hand_over(mut self: Box<Self>, ts: u64) {
        if let Some(body) = self.body.take() {
            self.log.pending.lock().commits.push(Commit { ts, body, needs: self.needs });
        }
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        if self.body.is_some() {
            self.log.supply.give_back(self.needs.blocks);
        }
    }
}

impl CommitLog for Log {
    fn prepare(&self, writes: &[Write], txn: u64) -> Result<Box<dyn PreparedCommit>> {
        let (body, needs) = self.reserve(commit_body(&self.inner.store, writes, txn))?;
        Ok(Box::new(Prepared { log: self.inner.clone(), body: Some(body), needs }))
    }

    fn wait(&self, ts: u64, watermarks: &dyn Watermarks) -> Result<()> {
        self.inner.wait(Goal { ts, order: 0 }, watermarks)
    }

    fn change_index(&self, change: &IndexChange, watermarks: &dyn Watermarks) -> Result<()> {
        let mut record = Vec::new();
        match change {
            IndexChange::Created(info) => put_index_created(info, &mut record),
            IndexChange::Dropped(id) => put_index_dropped(*id, &mut record),
        }
        self.order(record, watermarks)
    }

    fn change_rules(&self, rules: &[RuleEntry], next: u32, watermarks: &dyn Watermarks) -> Result<()> {
        let list = rules.iter().map(|entry| (entry.id, entry.rule.clone())).collect();
        let mut record = Vec::new();
        put_rules_record(&SavedRules { list, next }, &mut record);
        self.order(record, watermarks)
    }
}

impl Log {
    /// Returns when a record that belongs to no commit is durable.
    fn order(&self, record: Vec<u8>, watermarks: &dyn Watermarks) -> Result<()> {
        let needs = self.inner.reserve(record.len() as u64)?;
        let order = {
            let mut pending = self.inner.pending.lock();
            pending.orders.push((record, needs));
            pending.order_count += 1;
            pending.order_count
        };
        self.inner.wait(Goal { ts: 0, order }, watermarks)
    }
}

fn refused_error(error: &DiskError) -> Error {
    Error::new(
        ErrorKind::ReadOnly,
        format!(
            "the database takes no writes, because its log has no space left: {error}; reads go on, and writes too as soon as there is space"
        ),
    )
}

fn failed_error(error: &DiskError) -> Error {
    Error::new(
        ErrorKind::ReadOnly,
        format!(
            "the database takes no writes any more, because its log has failed: {error}; reads go on with what is durable; \
             see to the disk, then restart the database, which recovers everything that was acknowledged"
        ),
    )
}

impl Maker {
    fn start(supply: Arc<Supply>) -> Result<Self> {
        let closing = Arc::new(AtomicBool::new(false));
        let (segments, is_closing) = (supply.clone(), closing.clone());
        let thread = std::thread::Builder::new().name("mangrove-log".into()).spawn(move || {
            let is_over = || is_closing.load(std::sync::atomic::Ordering::SeqCst);
            while segments.wait_until_low(is_over) {
                // The supply keeps the error, and waits a while.
                let _ = segments.make_ahead();
            }
        })?;
        Ok(Maker { supply, closing, thread: Some(thread) })
    }
}

impl Drop for Maker {
    fn drop(&mut self) {
        self.closing.store(true, std::sync::atomic::Ordering::SeqCst);
        self.supply.wake();
        if let Some(thread) = self.thread.take() {
            // A panic has said so itself.
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
