//! One transaction, from begin to commit or rollback.
//!
//! Reads go to the store's view at the begin timestamp, plus own writes of finished statements. Writes take
//! turns on the transaction's log; a transaction may be shared by threads, whose writes are then those of
//! one statement. After a conflict everything is taken back at once (others need not wait for the owner to
//! notice), and every later call fails with the same conflict. So it is with a request that fails after it has begun to write
//! ([`Transaction::fail_since`]): half of what a request was to do is never committed.

use std::sync::{Arc, OnceLock};

use mangrove_graph::{
    EdgeId, ElementId, ElementKind, Error, ErrorKind, GraphView, IndexRange, KeyId, LabelFilter, LabelSetId,
    MemoryBudget, Result, UserId, Value, VertexId,
};
use mangrove_reclaim::{Pin, epoch};
use mangrove_store::access_set::{Item, Predicate};
use mangrove_store::{STATEMENT_MAX, claim};
use mangrove_store::{Snapshot, Store, StoreView, Write, WriteCardinality, Writer};

use crate::counters::AbortCause;
use crate::held::Held;
use crate::hold::Hold;
use crate::options::{Isolation, TransactionOptions};
use crate::outcome::Outcome;
use crate::reads::{KnownNames, ReadSet};
use crate::shared::Shared;
use crate::status::{Registration, SlotId, Status};
use crate::sync::{AtomicBool, AtomicU16, AtomicU64, Mutex, Ordering};
use crate::validation::abort_error;

/// What a commit did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CommitInfo {
    /// The commit timestamp; for a transaction that wrote nothing, the timestamp it read at.
    pub timestamp: u64,
    /// How many versions were written.
    pub write_count: usize,
    /// How many items the read set names; 0 where reads are not tracked.
    pub read_count: usize,
}

/// What the transaction has claimed so far.
#[derive(Debug, Default)]
struct Writes {
    log: Vec<Write>,
    /// How long the log was when the running statement began.
    statement_start: usize,
    /// Claims up to here carry statement 0.
    renumbered: usize,
    held: Held,
}

/// How a serializable transaction that may write keeps what it reads.
#[derive(Debug)]
pub(crate) struct Tracking {
    pub(crate) reads: Mutex<ReadSet>,
    /// Whether it may read at later moments than its begin.
    pub(crate) pre_reads: bool,
    /// How many names there were when it began.
    known: KnownNames,
    /// [`ReadSet::latest`], to be looked at without the lock.
    latest: AtomicU64,
    /// Whether it has set a property of an element that came after its begin. Searches by value, made at the begin, do not
    /// show such an element.
    sets_newer: AtomicBool,
}

impl Tracking {
    /// Returns true if a search by value may miss a value that the transaction has set itself.
    pub(crate) fn sets_newer(&self) -> bool {
        self.sets_newer.load(Ordering::Acquire)
    }
}

/// A view of the graph that was found to be of a live transaction, and stays right while it is there: see `age`.
pub(crate) struct PinnedView<'a> {
    view: StoreView<'a>,
    _pin: Pin,
}

impl<'a> std::ops::Deref for PinnedView<'a> {
    type Target = StoreView<'a>;
    fn deref(&self) -> &StoreView<'a> {
        &self.view
    }
}

/// See the module.
#[derive(Debug)]
pub struct Transaction {
    pub(crate) shared: Hold<Shared>,
    options: TransactionOptions,
    registration: Registration,
    /// The last finished statement: what reads see of own writes.
    finished: AtomicU16,
    /// Why it was rolled back before its end, if it was. Set under the lock of `writes`.
    doomed: OnceLock<AbortCause>,
    /// What the first request said that failed after it had begun to write. Set before `doomed`.
    failure: OnceLock<String>,
    writes: Mutex<Writes>,
    /// Absent where nobody will ask: read-only and snapshot transactions see one moment. In a box, since most
    /// transactions only read, and a transaction is moved a few times while it begins.
    tracking: Option<Box<Tracking>>,
    /// Committed or rolled back: nothing is left to undo.
    ended: bool,
}

impl Transaction {
    pub(crate) fn new(shared: Hold<Shared>, options: TransactionOptions, registration: Registration) -> Self {
        let tracking = options.is_validated().then(|| {
            Box::new(Tracking {
                reads: Mutex::default(),
                pre_reads: shared.settings.optimistic_pre_read.load(std::sync::atomic::Ordering::Relaxed),
                known: KnownNames {
                    label_sets: shared.store.catalog().label_set_count() as u32,
                    keys: shared.store.catalog().key_count() as u32,
                },
                latest: AtomicU64::new(0),
                sets_newer: AtomicBool::new(false),
            })
        });
        Transaction {
            shared,
            options,
            registration,
            finished: AtomicU16::new(0),
            doomed: OnceLock::new(),
            failure: OnceLock::new(),
            writes: Mutex::default(),
            tracking,
            ended: false,
        }
    }

    /// Whether it refuses writes.
    pub fn is_read_only(&self) -> bool {
        self.options.read_only
    }

    /// What it is protected from.
    pub fn isolation(&self) -> Isolation {
        self.options.isolation
    }

    /// The timestamp it reads at.
    pub fn begin_ts(&self) -> u64 {
        self.registration.begin_ts
    }

    pub(crate) fn slot(&self) -> SlotId {
        self.registration.slot
    }

    pub(crate) fn number(&self) -> u64 {
        self.registration.number
    }

    pub(crate) fn known_names(&self) -> KnownNames {
        self.tracking.as_ref().map(|tracking| tracking.known).unwrap_or_default()
    }

    pub(crate) fn tracking(&self) -> Option<&Tracking> {
        self.tracking.as_deref()
    }

    pub(crate) fn take_log(&mut self) -> Vec<Write> {
        std::mem::take(&mut self.writes.get_mut().log)
    }

    pub(crate) fn take_reads(&mut self) -> ReadSet {
        self.tracking.as_mut().map(|tracking| std::mem::take(tracking.reads.get_mut())).unwrap_or_default()
    }

    /// Says that nothing is left to undo.
    pub(crate) fn end(&mut self) {
        self.ended = true;
    }

    /// The store.
    pub fn store(&self) -> &Arc<Store> {
        &self.shared.store
    }

    /// The process's memory budget.
    pub(crate) fn memory_budget(&self) -> &MemoryBudget {
        self.shared.store.memory_budget()
    }

    /// Whether it has written anything.
    pub fn has_writes(&self) -> bool {
        !self.writes.lock().log.is_empty()
    }

    pub(crate) fn snapshot(&self) -> Snapshot<'static> {
        self.snapshot_at(self.begin_ts())
    }

    /// What was committed up to a moment, with the transaction's own finished statements.
    pub(crate) fn snapshot_at(&self, moment: u64) -> Snapshot<'static> {
        Snapshot::new(moment, self.number(), self.finished.load(Ordering::Acquire))
    }

    /// The graph as this transaction sees it now: at its begin, with its own finished statements.
    pub(crate) fn view(&self) -> Result<PinnedView<'_>> {
        self.check_alive()?;
        self.view_at(self.snapshot())
    }

    /// The graph at another snapshot of this transaction.
    pub(crate) fn view_at<'a>(&'a self, snapshot: Snapshot<'a>) -> Result<PinnedView<'a>> {
        let pin = epoch::pin();
        if self.is_expired() {
            drop(pin);
            return Err(self.end_expired());
        }
        Ok(PinnedView { view: self.shared.store.view(snapshot), _pin: pin })
    }

    /// As `view`, for what does not depend on what is kept for this transaction, and for those who check themselves.
    pub(crate) fn peek(&self) -> StoreView<'_> {
        self.shared.store.view(self.snapshot())
    }

    pub(crate) fn check_alive(&self) -> Result<()> {
        if let Some(&cause) = self.doomed.get() {
            return Err(match cause {
                AbortCause::Expired => self.shared.expired_error(),
                AbortCause::Failed => self.failed_error(),
                AbortCause::Rollback => {
                    Error::new(ErrorKind::Closed, "this transaction was rolled back; begin another")
                }
                _ => Error::conflict(
                    "this transaction met a conflict and was rolled back; run it again from its beginning",
                )
                .because(cause.name()),
            });
        }
        Ok(())
    }

    /// Whether it may read no more; to be asked under the pin of the read.
    fn is_expired(&self) -> bool {
        self.shared.status.is_expired(&self.registration)
    }

    /// Fails when it has expired. What was read under a pin, and before this succeeded under the same pin, is right.
    pub(crate) fn check_age(&self) -> Result<()> {
        if self.is_expired() { Err(self.end_expired()) } else { Ok(()) }
    }

    /// Keeps it from expiring.
    pub(crate) fn keep(&self) -> bool {
        self.shared.status.keep(&self.registration)
    }

    /// Rolls an expired transaction back, if nobody has; the error to be returned.
    #[cold]
    pub(crate) fn end_expired(&self) -> Error {
        let mut writes = self.writes.lock();
        if self.doomed.get().is_none() {
            self.doom(&mut writes, AbortCause::Expired);
        }
        drop(writes);
        self.shared.expired_error()
    }

    /// Runs one write operation under the log's mutex. `reads` are the facts the operation has looked at when it
    /// changes nothing, or is refused: a removal of nothing is a read.
    fn write<T>(
        &self,
        operation: impl FnOnce(&mut Writer<'_>) -> Result<T>,
        reads: impl FnOnce(&mut dyn FnMut(Item)),
    ) -> Result<T> {
        if self.options.read_only {
            let message = "this transaction is read-only; begin one that may write";
            return Err(Error::new(ErrorKind::InvalidArgument, message));
        }
        let mut writes = self.writes.lock();
        self.check_alive()?;
        // What it has written so far: the operation then enlarges the log by what it writes.
        let Writes { log, held, .. } = &mut *writes;
        held.cover(log.capacity() * size_of::<Write>(), self.memory_budget())
            .inspect_err(|_| self.shared.workers.start(&self.shared))?;
        let moment = self.write_moment().map_err(|cause| self.doom(&mut writes, cause))?;
        let statement = self.finished.load(Ordering::Acquire);
        let snapshot = Snapshot::new(moment, self.number(), statement);
        // Finished statements end at `finished`, so the running one is the next.
        let mut writer = Writer::new(&self.shared.store, snapshot, statement + 1, &mut writes.log);
        // The writer has pinned.
        let outcome = if self.is_expired() { Err(self.shared.expired_error()) } else { operation(&mut writer) };
        let has_written = writer.has_written();
        drop(writer);
        if let Err(error) = &outcome
            && error.kind() == ErrorKind::MemoryLimit
        {
            // What was deleted may be the room that is wanted, and too little for a commit to start a collector.
            self.shared.workers.start(&self.shared);
        }
        match &outcome {
            Ok(_) if has_written => return outcome,
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::Conflict => {
                self.doom(&mut writes, AbortCause::WriteConflict);
                return outcome.map_err(|error| error.because(AbortCause::WriteConflict.name()));
            }
            Err(error) if error.kind() == ErrorKind::Expired => {
                self.doom(&mut writes, AbortCause::Expired);
                return outcome;
            }
            // Part of what it looked at may be undone yet: not a thing to tell the caller.
            Err(_) if moment > self.begin_ts() => return Err(self.doom(&mut writes, AbortCause::ReadConflict)),
            Err(_) => {}
        }
        self.track_unchanged(moment, reads);
        outcome
    }

    /// Keeps what an operation that changed nothing has looked at.
    fn track_unchanged(&self, moment: u64, reads: impl FnOnce(&mut dyn FnMut(Item))) {
        let Some(tracking) = &self.tracking else { return };
        let mut set = tracking.reads.lock();
        reads(&mut |item| match moment > self.begin_ts() {
            true => set.add_later(&[item], moment, &[]),
            // Nothing had been pre-read when it began: what is by now was read by another thread, and takes nothing away.
            false => set.add_in_spite(item),
        });
    }

    /// Remembers that the transaction has set a property of an element that came after its begin, if this one did. An element
    /// that the transaction has added itself did not, even in the running statement.
    fn note_element<T>(
        &self,
        element: T,
        retain: impl FnOnce(&StoreView<'_>, &mut Vec<T>) -> Result<()>,
    ) -> Result<()> {
        // Without a read at a later moment, writes are made at the begin, which shows what they meet.
        let may_be_newer = |tracking: &&Tracking| tracking.latest.load(Ordering::Acquire) > 0 && !tracking.sets_newer();
        let Some(tracking) = self.tracking().filter(may_be_newer) else { return Ok(()) };
        let running = self.finished.load(Ordering::Acquire) + 1;
        let mut shown = vec![element];
        retain(&*self.view_at(Snapshot::new(self.begin_ts(), self.number(), running))?, &mut shown)?;
        if shown.is_empty() {
            tracking.sets_newer.store(true, Ordering::Release);
        }
        Ok(())
    }

    /// The moment writes are carried out at: the begin or, once something was read at a later moment, the latest of
    /// those, when everything it relied on is installed. What is written over was read at that moment, or not at all,
    /// or else validation finds it changed.
    fn write_moment(&self) -> std::result::Result<u64, AbortCause> {
        let Some(tracking) = self.tracking.as_ref().filter(|t| t.latest.load(Ordering::Acquire) > 0) else {
            return Ok(self.begin_ts());
        };
        let (moment, writers) = {
            let reads = tracking.reads.lock();
            (reads.latest(), reads.writers().to_vec())
        };
        for ts in writers {
            match self.shared.recent.wait_until_finished(ts) {
                Some(Outcome::Committed) => {}
                Some(_) => return Err(AbortCause::Dependency),
                None => return Err(AbortCause::TooOld),
            }
        }
        Ok(moment)
    }

    /// Keeps items read at a later moment than the begin.
    pub(crate) fn track_later(&self, tracking: &Tracking, items: &[Item], moment: u64, writers: &[u64]) {
        let mut reads = tracking.reads.lock();
        reads.add_later(items, moment, writers);
        tracking.latest.store(reads.latest(), Ordering::Release);
        self.shared.counters.pre_reads.fetch_add(items.len() as u64, Ordering::Relaxed);
    }

    /// As [`Transaction::track_later`], of items that were read together and not before.
    pub(crate) fn track_batch_later(&self, tracking: &Tracking, items: &[Item], moment: u64, writers: &[u64]) {
        let mut reads = tracking.reads.lock();
        reads.add_batch_later(items, moment, writers);
        tracking.latest.store(reads.latest(), Ordering::Release);
        self.shared.counters.pre_reads.fetch_add(items.len() as u64, Ordering::Relaxed);
    }

    /// Rolls back at once; the error to be returned.
    fn doom(&self, writes: &mut Writes, cause: AbortCause) -> Error {
        // Set once: whoever has the lock looked.
        let _ = self.doomed.set(cause);
        self.shared.status.set(self.slot(), Status::Aborted);
        let log = std::mem::take(&mut writes.log);
        self.shared.store.rollback(&log, self.number());
        self.shared.store.retire_aborted(log);
        self.shared.counters.count_abort(cause);
        match cause {
            AbortCause::Expired => self.shared.expired_error(),
            _ => abort_error(cause),
        }
    }

    fn failed_error(&self) -> Error {
        let failure = self.failure.get().map_or("", String::as_str);
        let message = format!(
            "this transaction was rolled back, because a request in it failed after it had begun to write ({failure}); roll \
             back, and begin another"
        );
        Error::new(ErrorKind::Closed, message).because(AbortCause::Failed.name())
    }

    /// How much it has written; see [`Transaction::fail_since`].
    pub fn write_mark(&self) -> usize {
        self.writes.lock().log.len()
    }

    /// A request failed with this error. If the transaction has written anything since the mark, a part of what the request
    /// was to do is there: then the transaction is rolled back at once, and every later call fails and names the error. A
    /// request that wrote nothing leaves the transaction as it was. Returns true if it is rolled back for a failed request.
    pub fn fail_since(&self, mark: usize, error: &Error) -> bool {
        let mut writes = self.writes.lock();
        if self.doomed.get().is_none() && writes.log.len() != mark {
            let _ = self.failure.set(error.message().to_owned());
            self.doom(&mut writes, AbortCause::Failed);
        }
        self.doomed.get() == Some(&AbortCause::Failed)
    }

    /// Rolls back at once what it has written, though others still hold the transaction: later calls fail.
    pub fn roll_back_now(&self) {
        let mut writes = self.writes.lock();
        if self.doomed.get().is_none() && !writes.log.is_empty() {
            self.doom(&mut writes, AbortCause::Rollback);
        }
    }

    /// Ends the running statement: its writes are seen by this transaction's reads from now on.
    pub fn finish_statement(&self) -> Result<()> {
        let mut writes = self.writes.lock();
        self.check_alive()?;
        if self.is_expired() {
            return Err(self.doom(&mut writes, AbortCause::Expired));
        }
        if writes.log.len() == writes.statement_start {
            // Overwrites in place happen only beside a claim of the same statement, so there are none.
            return Ok(());
        }
        let finished = self.finished.load(Ordering::Relaxed) + 1;
        if finished + 1 == STATEMENT_MAX {
            // The numbers are used up. All statements so far are finished, so they may share number 0,
            // which every later statement sees.
            self.shared.store.replace_claims(&writes.log[writes.renumbered..], claim(self.number(), 0));
            writes.renumbered = writes.log.len();
            self.finished.store(0, Ordering::Release);
        } else {
            self.finished.store(finished, Ordering::Release);
        }
        writes.statement_start = writes.log.len();
        Ok(())
    }

    /// Adds a vertex, under an id of its own or an automatic one.
    pub fn insert_vertex(&self, labels: LabelSetId, id: Option<UserId>) -> Result<VertexId> {
        let looks = |add: &mut dyn FnMut(Item)| id.iter().for_each(|id| look_up(ElementKind::Vertex, id, add));
        self.write(|writer| writer.insert_vertex(labels, id.as_ref()), looks)
    }

    /// Adds an edge between two vertices.
    pub fn insert_edge(
        &self,
        source: VertexId,
        target: VertexId,
        label: LabelSetId,
        id: Option<UserId>,
    ) -> Result<EdgeId> {
        let looks = |add: &mut dyn FnMut(Item)| {
            existence_of_ends(source, target, add);
            id.iter().for_each(|id| look_up(ElementKind::Edge, id, add));
        };
        self.write(|writer| writer.insert_edge(source, target, label, id.as_ref()), looks)
    }

    /// Adds edges with automatic ids, given by source and target: all or, after an error, none.
    pub fn insert_edges(&self, ends: &[(VertexId, VertexId)], label: LabelSetId) -> Result<Vec<EdgeId>> {
        let looks = |add: &mut dyn FnMut(Item)| ends.iter().for_each(|&(s, t)| existence_of_ends(s, t, add));
        self.write(|writer| writer.insert_edges(ends, label), looks)
    }

    /// Sets or adds a value of a vertex.
    pub fn set_vertex_property(
        &self,
        vertex: VertexId,
        key: KeyId,
        value: Value,
        cardinality: WriteCardinality,
        meta: Vec<(KeyId, Value)>,
    ) -> Result<()> {
        let equal = self.tracking.is_some().then(|| Item::value(ElementKind::Vertex, key, None, &value));
        let looks = |add: &mut dyn FnMut(Item)| {
            cell_of(ElementId::Vertex(vertex), key, add);
            // Refused, perhaps, because another vertex has the value.
            equal.into_iter().for_each(add);
        };
        let outcome = self.write(|writer| writer.set_vertex_property(vertex, key, value, cardinality, meta), looks);
        if outcome.is_ok() {
            self.note_element(vertex, |begin, shown| begin.retain_vertices(shown))?;
        }
        if matches!(&outcome, Err(error) if error.kind() == ErrorKind::DuplicateId) {
            self.track_refusal(key);
        }
        outcome
    }

    /// Keeps what a refusal by a unique index over several keys may hang on, besides the value that was to be set: any
    /// value under its other keys.
    fn track_refusal(&self, key: KeyId) {
        for index in self.store().indexes().into_iter().filter(|index| index.unique && index.keys.contains(&key)) {
            for other in index.keys.iter().copied().filter(|other| *other != key) {
                let range = IndexRange::Between { low: None, high: None };
                let (kind, labels) = (ElementKind::Vertex, LabelFilter::Any);
                self.track_predicate(|| Predicate { kind, labels, key: other, range });
            }
        }
    }

    /// Sets the value of an edge.
    pub fn set_edge_property(&self, edge: EdgeId, key: KeyId, value: Value) -> Result<()> {
        let looks = |add: &mut dyn FnMut(Item)| cell_of(ElementId::Edge(edge), key, add);
        self.write(|writer| writer.set_edge_property(edge, key, value), looks)?;
        self.note_element(edge, |begin, shown| begin.retain_edges(shown))
    }

    /// Removes one value of a vertex, or all under the key.
    pub fn remove_vertex_property(&self, vertex: VertexId, key: KeyId, ordinal: Option<u32>) -> Result<()> {
        let looks = |add: &mut dyn FnMut(Item)| cell_of(ElementId::Vertex(vertex), key, add);
        self.write(|writer| writer.remove_vertex_property(vertex, key, ordinal), looks)
    }

    /// Removes the value of an edge.
    pub fn remove_edge_property(&self, edge: EdgeId, key: KeyId) -> Result<()> {
        let looks = |add: &mut dyn FnMut(Item)| cell_of(ElementId::Edge(edge), key, add);
        self.write(|writer| writer.remove_edge_property(edge, key), looks)
    }

    /// Sets a meta-property of one value of a vertex.
    pub fn set_meta_property(
        &self,
        vertex: VertexId,
        key: KeyId,
        ordinal: u32,
        meta_key: KeyId,
        value: Value,
    ) -> Result<()> {
        let looks = |add: &mut dyn FnMut(Item)| cell_of(ElementId::Vertex(vertex), key, add);
        self.write(|writer| writer.set_meta_property(vertex, key, ordinal, meta_key, value), looks)
    }

    /// Removes a meta-property of one value of a vertex.
    pub fn remove_meta_property(&self, vertex: VertexId, key: KeyId, ordinal: u32, meta_key: KeyId) -> Result<()> {
        let looks = |add: &mut dyn FnMut(Item)| cell_of(ElementId::Vertex(vertex), key, add);
        self.write(|writer| writer.remove_meta_property(vertex, key, ordinal, meta_key), looks)
    }

    /// Deletes a vertex with its edges; nothing happens where this transaction sees no such vertex.
    pub fn delete_vertex(&self, vertex: VertexId) -> Result<()> {
        let looks = |add: &mut dyn FnMut(Item)| add(Item::existence(ElementId::Vertex(vertex)));
        self.write(|writer| writer.delete_vertex(vertex), looks)
    }

    /// Deletes an edge; nothing happens where this transaction sees no such edge.
    pub fn delete_edge(&self, edge: EdgeId) -> Result<()> {
        let looks = |add: &mut dyn FnMut(Item)| add(Item::existence(ElementId::Edge(edge)));
        self.write(|writer| writer.delete_edge(edge), looks)
    }

    /// Takes everything back.
    pub fn rollback(self) {
        // What is to be done is done by `drop`.
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if !self.ended && self.doomed.get().is_none() {
            let log = self.take_log();
            if log.is_empty() {
                // It has no claims, so nobody asks what became of it.
                self.shared.counters.read_only.add();
            } else {
                self.shared.status.set(self.slot(), Status::Aborted);
                self.shared.store.rollback(&log, self.number());
                self.shared.counters.count_abort(AbortCause::Rollback);
                self.shared.store.retire_aborted(log);
            }
        }
        self.shared.status.release(self.slot());
    }
}

fn look_up(kind: ElementKind, id: &UserId, add: &mut dyn FnMut(Item)) {
    Item::look_up(kind, id).for_each(add);
}

fn existence_of_ends(source: VertexId, target: VertexId, add: &mut dyn FnMut(Item)) {
    [source, target].into_iter().for_each(|end| add(Item::existence(ElementId::Vertex(end))));
}

fn cell_of(element: ElementId, key: KeyId, add: &mut dyn FnMut(Item)) {
    add(Item::existence(element));
    add(Item::cell(element, key));
}
