//! The log of a graph in a home, driven by threads: what the directory's [`crate::log::Log`] is for a disk.
//!
//! ```text
//!  committers ── hand over, wait ──▶ ┌───────────┐ ── requests ──▶ home
//!  readers ───── admit_read ───────▶ │ LogState, │ ◀── answers ─── its threads
//!  clock ─────── pauses, cuts, ────▶ │ one lock  │
//!                stalls, lease       └───────────┘ ── durable ──▶ watermarks of the graph, committers
//! ```
//!
//! Every thread that brings an event takes the lock, hands the event to the state, and wakes those who wait. Requests
//! that come of it are sent without the lock: a home may answer before it returns. One thread at a time sends, so an
//! answer that leads to a further request makes no deeper call.
//!
//! | module | what it holds |
//! |---|---|
//! | `state` | the writer, the puts that are being settled, requests to be sent; no threads |
//! | `options`, `status` | options; the numbers for metrics |
//!
//! Invariants:
//!
//! - **LOG-60.** Commits that are acknowledged are reported as durable (TXN-15) under the lock, before any committer
//!   that waits for them goes on.
//! - **LOG-61.** No lock is held while a request is sent, and none while the watermarks of the graph are given up: they
//!   may be the last part of a graph that owns this log.

mod options;
mod state;
mod status;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use mangrove_graph::{Error, ErrorKind, Result, TabletId};
use mangrove_locks::{Guard, Mutex, rank};
use mangrove_store::schema::RuleEntry;
use mangrove_store::{Store, Write};
use mangrove_txn::{CommitLog, IndexChange, PreparedCommit, Watermarks};
use parking_lot::{Condvar, MutexGuard};

pub use options::ObjectLogOptions;
pub use status::{ObjectLogState, ObjectLogStatus};

use super::clock;
use super::writer::{HandedOver, ReadPermit, Refusal, StreamFloor, StreamStart};
use super::{Now, ask};
use crate::codec::SavedRules;
use crate::home::Home;
use crate::log::commit::EncodedCommit;
use crate::log::record::{
    NameCounts, Names, put_index_created, put_index_dropped, put_names, put_rules_record, tablet_of,
};
use state::{Acknowledged, LogState};

/// Says what a read relies on that may go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReadGrounds {
    /// No other process had opened the graph when a request was sent, less than a lease ago.
    Proved,
    /// Nothing: the home does not answer. Another process may have opened the graph and committed since.
    Unproved,
}

/// An open log in a home. Dropping it ends it at once, without FIN; then a successor has to fence it.
#[derive(Debug)]
pub struct ObjectLog {
    core: Arc<LogCore>,
    store: Arc<Store>,
    clock: Mutex<Option<JoinHandle<()>>, rank::ObjectLogClock>,
}

type StateGuard<'a> = Guard<MutexGuard<'a, LogState>, rank::ObjectLog>;

/// What the log, its clock, and the answers of the home share.
#[derive(Debug)]
struct LogCore {
    home: Arc<dyn Home>,
    options: ObjectLogOptions,
    start: StreamStart,
    state: Mutex<LogState, rank::ObjectLog>,
    /// Wakes committers, and a thread that ends the log.
    acknowledged: Condvar,
    /// Wakes readers.
    news: Condvar,
    /// Wakes the thread that keeps the time.
    clock: Condvar,
    /// Reads are proved before this time, and need not ask for the next proof; 0 if they are not. Readers look here first,
    /// without the lock.
    proved_until_us: AtomicU64,
    watermarks: OnceLock<Weak<dyn Watermarks + Send + Sync>>,
}

impl ObjectLog {
    /// Opens the log of an owner that has taken over, and puts its first object. The store has all that is durable.
    /// `names` are those of its names that are durable; later ones are written with the next commit (LOG-11).
    ///
    /// # Errors
    ///
    /// If no thread can be started.
    pub fn open(
        home: Arc<dyn Home>,
        store: Arc<Store>,
        names: NameCounts,
        start: StreamStart,
        options: ObjectLogOptions,
    ) -> Result<Self> {
        let state = LogState::new(start, &options, names, clock::now());
        let core = Arc::new(LogCore {
            home,
            options,
            start,
            state: Mutex::new(state),
            acknowledged: Condvar::new(),
            news: Condvar::new(),
            clock: Condvar::new(),
            proved_until_us: AtomicU64::new(0),
            watermarks: OnceLock::new(),
        });
        let keeper = core.clone();
        let thread = std::thread::Builder::new().name("mangrove-stream".into()).spawn(move || keeper.keep_time());
        let thread = thread.map_err(|error| {
            Error::new(ErrorKind::Io, format!("the thread of the log could not be started: {error}"))
        })?;
        core.run(|_, _| {});
        Ok(ObjectLog { core, store, clock: Mutex::new(Some(thread)) })
    }

    /// Says whether a read may be served that has drawn its begin. Waits for a look at the home if the last proof is
    /// older than a lease, for `read_wait` at most; and for the end of the hold after a take-over (LOG-58).
    ///
    /// # Errors
    ///
    /// `Closed` if another process has opened the graph, which the error names, or if the log is being closed. `Io`
    /// without a proof, if the options ask for one.
    pub fn admit_read(&self) -> Result<ReadGrounds> {
        self.core.admit_read()
    }

    /// Ends the stream with FIN, after every commit that was handed over is acknowledged. No commit and no read is
    /// accepted from here on. Returns when the end is confirmed.
    ///
    /// # Errors
    ///
    /// If that takes longer than `wait`, or if another process has opened the graph. In both cases the log is closed
    /// without FIN, and nothing that was acknowledged is lost.
    pub fn finish(&self, wait: Duration) -> Result<()> {
        let core = &self.core;
        let watermarks = core.watermarks();
        core.run(|state, now| {
            if let Some(watermarks) = &watermarks {
                state.watermark(watermarks.stable(), now);
            }
            state.finish(now);
        });
        let until_us = clock::now().us.saturating_add(wait.as_micros() as u64);
        let mut state = core.state.lock();
        while !state.is_over && core.wait_until(&core.acknowledged, &mut state, until_us) {}
        let has_ended = state.is_over;
        let refusal = state.writer.admit(clock::now()).err();
        drop(state);
        self.close();
        match refusal {
            Some(refusal @ Refusal::Fenced { .. }) => Err(refusal.into()),
            _ if has_ended => Ok(()),
            _ => Err(Error::new(
                ErrorKind::Io,
                format!(
                    "the graph's home {} has not confirmed the end of the log in {:.1} s, so the next opening has to end it. \
                     Nothing that was acknowledged is lost",
                    core.home.describe(""),
                    wait.as_secs_f64()
                ),
            )),
        }
    }

    /// The position from which a checkpoint needs the stream. Returns once everything before it is acknowledged, which
    /// takes until the end of the hold after a take-over. The checkpoint must take its snapshot, and then read names,
    /// indexes and rules, after this call (LOG-6).
    ///
    /// # Errors
    ///
    /// If the log is closed, or another process has opened the graph.
    pub fn checkpoint_floor(&self) -> Result<StreamFloor> {
        let floor = self.core.state.lock().writer.floor();
        self.core.wait(Acknowledged { ts: floor.through, leading: 0 }, None)?;
        Ok(floor)
    }

    /// The state and numbers of the log.
    pub fn status(&self) -> ObjectLogStatus {
        let now = clock::now();
        let state = self.core.state.lock();
        let writer = state.writer.status(now);
        let stalled = writer.stalled_us.map(Duration::from_micros);
        ObjectLogStatus {
            state: ObjectLogState::of(writer.refusal, stalled, state.is_over),
            incarnation: self.core.start.incarnation,
            durable_ts: writer.acknowledged,
            counts: writer.counts,
            requests: state.requests,
            in_flight: writer.in_flight,
            oldest_unsettled: writer.oldest_unsettled_us.map(Duration::from_micros),
            usual_put: writer.usual_put_us.map(Duration::from_micros),
            waiting_commits: writer.waiting_commits,
            waiting_bytes: writer.waiting_bytes,
            unproved_reads: state.unproved_reads,
            floor: state.writer.floor(),
        }
    }

    /// Ends everything without FIN.
    pub(crate) fn close(&self) {
        self.core.run(|state, _| state.close());
        self.core.clock.notify_one();
        let thread = self.clock.lock().take();
        // An answer of the home or the clock itself may drop the last handle: the clock cannot wait for itself.
        if let Some(thread) = thread.filter(|thread| thread.thread().id() != std::thread::current().id()) {
            // A panic was reported already.
            let _ = thread.join();
        }
    }

    /// Returns when a record that belongs to no commit is durable.
    fn write_record(&self, record: &[u8]) -> Result<()> {
        self.core.admit()?;
        let names = NameCounts::of(self.store.catalog());
        let leading = self.core.run(|state, now| state.lead(record, names, names_of(&self.store), now));
        // Without a deadline: a record of unknown outcome would be undone in memory, and be there after a restart.
        self.core.wait(Acknowledged { ts: 0, leading }, None)
    }
}

/// Makes the record of the names of a store between two counts.
fn names_of(store: &Store) -> impl FnOnce(NameCounts, NameCounts) -> Vec<u8> {
    |first, end| {
        let mut record = Vec::new();
        put_names(&Names::between(store.catalog(), first, end), &mut record);
        record
    }
}

impl Drop for ObjectLog {
    fn drop(&mut self) {
        self.close();
    }
}

impl LogCore {
    fn watermarks(&self) -> Option<Arc<dyn Watermarks + Send + Sync>> {
        self.watermarks.get()?.upgrade()
    }

    /// Hands an event to the state, tells who waits, and sends what the event asks for.
    fn run<T>(self: &Arc<Self>, event: impl FnOnce(&mut LogState, Now) -> T) -> T {
        // LOG-61: given up after the lock.
        let watermarks = self.watermarks();
        let mut state = self.state.lock();
        let (before, news, was_over) = (state.acknowledged, state.news, state.is_over);
        let result = event(&mut state, clock::now());
        if state.acknowledged != before || state.is_over != was_over {
            // LOG-60.
            if let Some(watermarks) = watermarks.as_ref().filter(|_| state.acknowledged.ts > before.ts) {
                watermarks.set_durable(state.acknowledged.ts);
            }
            self.acknowledged.notify_all();
        }
        let writer = &state.writer;
        let proved_until_us =
            if state.is_over { 0 } else { writer.reads_until_us().min(writer.renews_reads_from_us()) };
        self.proved_until_us.store(proved_until_us, Ordering::Release);
        if (state.news != news || state.is_over) && state.readers > 0 {
            self.news.notify_all();
        }
        // The clock sleeps until a time that is later than the next one.
        if state.wake_at_us().is_some_and(|at| state.wakes_us.is_none_or(|wakes| at < wakes)) {
            self.clock.notify_one();
        }
        self.send(state);
        result
    }

    /// Sends what is in the outbox, unless another thread does.
    fn send<'a>(self: &'a Arc<Self>, mut state: StateGuard<'a>) {
        if state.is_sending {
            return;
        }
        state.is_sending = true;
        while let Some((purpose, request)) = state.outbox.pop_front() {
            drop(state);
            let core = self.clone();
            // LOG-61.
            ask::send(&*self.home, request, move |answer| {
                core.run(|state, now| state.answered(purpose, answer, now));
            });
            state = self.state.lock();
        }
        state.is_sending = false;
    }

    /// Wakes the state at its times, until the log is over.
    fn keep_time(self: Arc<Self>) {
        loop {
            let mut state = self.state.lock();
            if state.is_over {
                return;
            }
            let at = state.wake_at_us();
            let left = at.map(clock::until);
            if left != Some(Duration::ZERO) {
                state.wakes_us = Some(at.unwrap_or(u64::MAX));
                match left {
                    Some(left) => drop(self.clock.wait_for(state.inner(), left)),
                    None => self.clock.wait(state.inner()),
                }
            }
            // Until this thread sleeps again, other threads need not wake it.
            state.wakes_us = Some(0);
            drop(state);
            self.run(|state, now| state.time(now));
        }
    }

    /// Waits for a condition, until a time at most. Returns false if the time has come.
    fn wait_until(&self, condition: &Condvar, state: &mut StateGuard<'_>, until_us: u64) -> bool {
        match clock::until(until_us) {
            Duration::ZERO => false,
            left => {
                condition.wait_for(state.inner(), left);
                true
            }
        }
    }

    /// Returns an error if a commit must be refused.
    fn admit(&self) -> Result<()> {
        let state = self.state.lock();
        state.writer.admit(clock::now())?;
        if state.is_over { Err(closed()) } else { Ok(()) }
    }

    /// Returns when commits and records are acknowledged that were handed over, and which the watermark has passed.
    /// Fails after `patience`; `None`: waits for as long as the log is open.
    fn wait(&self, goal: Acknowledged, patience: Option<Duration>) -> Result<()> {
        let patience_us = patience.map_or(u64::MAX, |patience| patience.as_micros() as u64);
        let until_us = clock::now().us.saturating_add(patience_us);
        let mut state = self.state.lock();
        loop {
            if goal.ts <= state.acknowledged.ts && goal.leading <= state.acknowledged.leading {
                return Ok(());
            }
            if state.is_over {
                state.writer.admit(clock::now())?;
                return Err(closed());
            }
            if !self.wait_until(&self.acknowledged, &mut state, until_us) {
                let waited = patience.unwrap_or_default().as_secs_f64();
                let cause = state.writer.trouble().map(|cause| format!(" ({cause})")).unwrap_or_default();
                let message = format!("the graph's home has not confirmed it in {waited:.1} s{cause}");
                return Err(Error::new(ErrorKind::OutcomeUnknown, message));
            }
        }
    }

    fn admit_read(self: &Arc<Self>) -> Result<ReadGrounds> {
        let begun = clock::now();
        if begun.us < self.proved_until_us.load(Ordering::Acquire) && begun.us >= self.start.held_until_us {
            return Ok(ReadGrounds::Proved);
        }
        let late_us = begun.us.saturating_add(self.options.read_wait.as_micros() as u64);
        loop {
            let is_late = clock::now().us >= late_us;
            let (permit, is_away, news) = self.run(|state, now| {
                let permit = state.ask_to_read(is_late, now);
                (permit, state.is_home_away(now), state.news)
            });
            let until_us = match permit {
                ReadPermit::Granted => return Ok(ReadGrounds::Proved),
                ReadPermit::Never => return Err(self.admit().err().unwrap_or_else(closed)),
                // The hold after a take-over (LOG-58), which is short.
                ReadPermit::Later(Some(at)) => at,
                ReadPermit::Later(None) if is_away && self.options.reads_without_home => {
                    self.state.lock().unproved_reads += 1;
                    return Ok(ReadGrounds::Unproved);
                }
                ReadPermit::Later(None) if is_late => return Err(self.no_proof()),
                ReadPermit::Later(None) => late_us,
            };
            let mut state = self.state.lock();
            if state.is_over {
                state.writer.admit(clock::now())?;
                return Err(closed());
            }
            state.readers += 1;
            while state.news == news && !state.is_over && self.wait_until(&self.news, &mut state, until_us) {}
            state.readers -= 1;
        }
    }

    fn no_proof(&self) -> Error {
        let message = format!(
            "the graph's home {} has not said in {:.1} s whether another process has opened the graph, so this read is \
             refused; try again later, or allow reads without the home",
            self.home.describe(""),
            self.options.read_wait.as_secs_f64()
        );
        Error::new(ErrorKind::Io, message)
    }
}

fn closed() -> Error {
    Error::new(ErrorKind::Closed, "the graph was closed, so it accepts no commit and no read")
}

/// A commit whose records are encoded.
#[derive(Debug)]
struct PreparedObjectCommit {
    core: Arc<LogCore>,
    store: Arc<Store>,
    encoded: EncodedCommit,
    tablets: Vec<TabletId>,
    /// The names that the commit relies on (LOG-11).
    names: NameCounts,
}

impl PreparedCommit for PreparedObjectCommit {
    fn hand_over(self: Box<Self>, ts: u64) {
        let PreparedObjectCommit { core, store, encoded, tablets, names } = *self;
        let mut records = Vec::with_capacity(encoded.len_max());
        for (head, entries) in encoded.records(ts) {
            records.extend_from_slice(&head);
            records.extend_from_slice(entries);
        }
        let commit = HandedOver { ts, tablets, records };
        core.run(|state, now| state.hand_over(commit, names, names_of(&store), now));
    }
}

impl CommitLog for ObjectLog {
    fn attach(&self, watermarks: Weak<dyn Watermarks + Send + Sync>) {
        // A store has one manager, which attaches itself once.
        let _ = self.core.watermarks.set(watermarks);
    }

    fn prepare(&self, writes: &[Write], txn: u64) -> Result<Box<dyn PreparedCommit>> {
        self.core.admit()?;
        let mut tablets = BTreeSet::new();
        let encoded = EncodedCommit::of(&self.store, writes, txn, self.core.options.feed, |redo| {
            tablets.insert(tablet_of(redo));
        });
        let tablets = tablets.into_iter().collect();
        let names = NameCounts::of(self.store.catalog());
        Ok(Box::new(PreparedObjectCommit {
            core: self.core.clone(),
            store: self.store.clone(),
            encoded,
            tablets,
            names,
        }))
    }

    fn wait(&self, ts: u64, watermarks: &dyn Watermarks) -> Result<()> {
        self.core.run(|state, now| state.watermark(watermarks.stable(), now));
        self.core.wait(Acknowledged { ts, leading: 0 }, Some(self.core.options.commit_wait))
    }

    fn admit_read(&self) -> Result<()> {
        // Reads without a proof are counted, and the options allow them.
        self.core.admit_read().map(drop)
    }

    fn change_index(&self, change: &IndexChange, _: &dyn Watermarks) -> Result<()> {
        let mut record = Vec::new();
        match change {
            IndexChange::Created(info) => put_index_created(info, &mut record),
            IndexChange::Dropped(id) => put_index_dropped(*id, &mut record),
        }
        self.write_record(&record)
    }

    fn change_rules(&self, rules: &[RuleEntry], next: u32, _: &dyn Watermarks) -> Result<()> {
        let list = rules.iter().map(|entry| (entry.id, entry.rule.clone())).collect();
        let mut record = Vec::new();
        put_rules_record(&SavedRules { list, next }, &mut record);
        self.write_record(&record)
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests;
