//! One transaction, from begin to commit or rollback.
//!
//! Reads go to the store's view at the begin timestamp, with the transaction's own writes of finished statements.
//! Writes take turns on the transaction's log of writes. Several threads may share a transaction; their concurrent
//! writes then belong to one statement.
//!
//! After a conflict the transaction is rolled back at once, so that other transactions need not wait for its owner, and
//! every later call fails with the same conflict.
//!
//! - **TXN-19.** A transaction never commits a part of a request. If a request fails after it has begun to write
//!   ([`Transaction::fail_since`]), the transaction is rolled back at once.
//! - **TXN-20.** Snapshot and read-only transactions keep no read set, never look at the status table, and wait for no
//!   other transaction except, after a write, for the watermark.

use std::sync::{Arc, OnceLock};

use mangrove_graph::{
    EdgeId, ElementId, ElementKind, Error, ErrorKind, GraphView, IndexInfo, IndexRange, KeyId, LabelFilter, LabelSetId,
    MemoryBudget, Result, UserId, Value, VertexId,
};
use mangrove_locks::rank;
use mangrove_reclaim::{Pin, epoch};
use mangrove_store::{Redo, Snapshot, Store, StoreView, Write, WriteCardinality, Writer};
use mangrove_store::{STATEMENT_MAX, claim};

use crate::access_set::{Item, Predicate};
use crate::counters::AbortCause;
use crate::memory::TransactionMemory;
use crate::options::{Isolation, TransactionOptions};
use crate::outcome::Outcome;
use crate::reads::{KnownNames, ReadSet};
use crate::sharded_arc::ShardHandle;
use crate::shared::Shared;
use crate::status::{EntryId, Registration, Status};
use crate::sync::{AtomicBool, AtomicU16, AtomicU64, Mutex, Ordering};
use crate::validation::abort_error;

/// The result of a commit, in numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CommitInfo {
    /// The commit timestamp; for a transaction that wrote nothing, the timestamp it read at.
    pub timestamp: u64,
    /// The number of versions written.
    pub write_count: usize,
    /// The number of items in the read set; 0 if reads are not tracked.
    pub read_count: usize,
}

/// The log of writes: the claims of the transaction. Locked for the length of one write.
#[derive(Debug, Default)]
struct Writes {
    log: Vec<Write>,
    /// The length of the log when the running statement began.
    statement_start: usize,
    /// Claims up to here carry statement 0.
    renumbered: usize,
    memory: TransactionMemory,
}

/// The read set of a serializable transaction that may write, and the state of its pre-reads.
#[derive(Debug)]
pub(crate) struct Tracking {
    pub(crate) reads: Mutex<ReadSet, rank::TransactionReads>,
    /// True if it may read at later timestamps than its begin.
    pub(crate) pre_reads: bool,
    /// The names of the catalog when it began.
    known: KnownNames,
    /// [`ReadSet::latest`], readable without the lock.
    latest: AtomicU64,
    /// True if it has set a property of an element that is newer than its begin. Searches by value read at the begin,
    /// and do not show such an element.
    sets_newer: AtomicBool,
}

impl Tracking {
    /// Returns true if a search by value may miss a value that the transaction has set itself.
    pub(crate) fn sets_newer(&self) -> bool {
        self.sets_newer.load(Ordering::Acquire)
    }
}

/// A view of the graph for a transaction that had not expired when the view was made. It is right for as long as it
/// lives, because it holds a pin (TXN-17).
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

/// A running transaction. Dropping it rolls it back.
#[derive(Debug)]
pub struct Transaction {
    pub(crate) shared: ShardHandle<Shared>,
    options: TransactionOptions,
    registration: Registration,
    /// The last finished statement: reads see own writes up to it.
    finished: AtomicU16,
    /// Why it was rolled back before its end, if it was. Set under the lock of `writes`.
    abort_cause: OnceLock<AbortCause>,
    /// The error message of the request that failed after it had begun to write. Set before `abort_cause`.
    failed_request: OnceLock<String>,
    writes: Mutex<Writes, rank::TransactionWrites>,
    /// Absent in read-only and snapshot transactions (TXN-20). Boxed, because most transactions only read, and a
    /// transaction is moved a few times while it begins.
    tracking: Option<Box<Tracking>>,
    /// The timestamp at which it commits, if it redoes commits of another process, which has checked them.
    redone_at: Option<u64>,
    /// True if it has committed or was rolled back: nothing is left to undo.
    ended: bool,
}

impl Transaction {
    pub(crate) fn new(shared: ShardHandle<Shared>, options: TransactionOptions, registration: Registration) -> Self {
        // TXN-20.
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
            abort_cause: OnceLock::new(),
            failed_request: OnceLock::new(),
            writes: Mutex::default(),
            tracking,
            redone_at: None,
            ended: false,
        }
    }

    /// Fails with `ReadOnly` if the graph follows another process ([`crate::TransactionManager::check_writable`]).
    pub fn check_writable(&self) -> Result<()> {
        self.shared.following.check_writable()
    }

    /// The transaction in which a follower redoes commits of the owner, the last of them at this timestamp.
    pub(crate) fn that_is_redone(mut self, ts: u64) -> Self {
        self.redone_at = Some(ts);
        self
    }

    /// The timestamp at which it commits, if it redoes commits of another process, which has checked them.
    pub(crate) fn redone_at(&self) -> Option<u64> {
        self.redone_at
    }

    /// Returns true if it refuses writes.
    pub fn is_read_only(&self) -> bool {
        self.options.read_only
    }

    /// The isolation level.
    pub fn isolation(&self) -> Isolation {
        self.options.isolation
    }

    /// The timestamp it reads at.
    pub fn begin_ts(&self) -> u64 {
        self.registration.begin_ts
    }

    pub(crate) fn entry(&self) -> EntryId {
        self.registration.entry
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

    /// Notes that nothing is left to undo.
    pub(crate) fn end(&mut self) {
        assert!(!self.ended, "a transaction ends once");
        self.ended = true;
    }

    /// The store.
    pub fn store(&self) -> &Arc<Store> {
        &self.shared.store
    }

    /// The memory budget of the process.
    pub(crate) fn memory_budget(&self) -> &MemoryBudget {
        self.shared.store.memory_budget()
    }

    /// Returns true if it has written anything.
    pub fn has_writes(&self) -> bool {
        !self.writes.lock().log.is_empty()
    }

    pub(crate) fn snapshot(&self) -> Snapshot<'static> {
        self.snapshot_at(self.begin_ts())
    }

    /// The snapshot of everything committed up to `read_ts`, with the transaction's own finished statements.
    pub(crate) fn snapshot_at(&self, read_ts: u64) -> Snapshot<'static> {
        Snapshot::new(read_ts, self.number(), self.finished.load(Ordering::Acquire))
    }

    /// The graph as this transaction sees it: at its begin, with its own finished statements.
    pub(crate) fn view(&self) -> Result<PinnedView<'_>> {
        self.check_alive()?;
        self.view_at(self.snapshot())
    }

    /// The graph at another snapshot of this transaction.
    pub(crate) fn view_at<'a>(&'a self, snapshot: Snapshot<'a>) -> Result<PinnedView<'a>> {
        let pin = epoch::pin();
        if self.is_expired() {
            drop(pin);
            return Err(self.abort_expired());
        }
        Ok(PinnedView { view: self.shared.store.view(snapshot), _pin: pin })
    }

    /// As `view`, for reads that do not depend on old versions, and for callers that check expiry themselves.
    pub(crate) fn view_unchecked(&self) -> StoreView<'_> {
        self.shared.store.view(self.snapshot())
    }

    /// Fails if the transaction was rolled back; the error tells why.
    pub(crate) fn check_alive(&self) -> Result<()> {
        if let Some(&cause) = self.abort_cause.get() {
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

    /// Returns true if it may read no more. The caller holds the pin of the read.
    fn is_expired(&self) -> bool {
        self.shared.status.is_expired(&self.registration)
    }

    /// Fails if it has expired. If this succeeds under the same pin as an earlier read, that read is right.
    pub(crate) fn check_not_expired(&self) -> Result<()> {
        if self.is_expired() { Err(self.abort_expired()) } else { Ok(()) }
    }

    /// Protects it from expiry. Returns false if it has expired.
    pub(crate) fn protect(&self) -> bool {
        self.shared.status.protect(&self.registration)
    }

    /// Rolls an expired transaction back, unless that is done. Returns the error for the client.
    #[cold]
    pub(crate) fn abort_expired(&self) -> Error {
        let mut writes = self.writes.lock();
        if self.abort_cause.get().is_none() {
            self.abort_early(&mut writes, AbortCause::Expired);
        }
        drop(writes);
        self.shared.expired_error()
    }

    /// Runs one write operation under the lock of the log of writes. If the operation changes nothing or is refused,
    /// `reads` adds the items it looked at to the read set: a removal of nothing is a read.
    fn write<T>(
        &self,
        operation: impl FnOnce(&mut Writer<'_>) -> Result<T>,
        reads: impl FnOnce(&mut dyn FnMut(Item)),
    ) -> Result<T> {
        if self.options.read_only {
            let message = "this transaction is read-only; begin one that may write";
            return Err(Error::new(ErrorKind::InvalidArgument, message));
        }
        if self.redone_at.is_none() {
            self.shared.following.check_writable()?;
        }
        let mut writes = self.writes.lock();
        self.check_alive()?;
        // The memory of the log so far. The operation adds its own writes to the log.
        let Writes { log, memory, .. } = &mut *writes;
        memory
            .cover(log.capacity() * size_of::<Write>(), self.memory_budget())
            .inspect_err(|_| self.shared.workers.start(&self.shared))?;
        let read_ts = self.write_snapshot_ts().map_err(|cause| self.abort_early(&mut writes, cause))?;
        let statement = self.finished.load(Ordering::Acquire);
        let snapshot = Snapshot::new(read_ts, self.number(), statement);
        // `finished` is the last finished statement, so the running one is the next.
        let mut writer = Writer::new(&self.shared.store, snapshot, statement + 1, &mut writes.log);
        // The writer holds a pin.
        let outcome = if self.is_expired() { Err(self.shared.expired_error()) } else { operation(&mut writer) };
        let has_written = writer.has_written();
        drop(writer);
        if let Err(error) = &outcome
            && error.kind() == ErrorKind::MemoryLimit
        {
            // Deleted data may be the memory that is wanted, and too little of it for a commit to start a collector.
            self.shared.workers.start(&self.shared);
        }
        match &outcome {
            Ok(_) if has_written => return outcome,
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::Conflict => {
                self.abort_early(&mut writes, AbortCause::WriteConflict);
                return outcome.map_err(|error| error.because(AbortCause::WriteConflict.name()));
            }
            Err(error) if error.kind() == ErrorKind::Expired => {
                self.abort_early(&mut writes, AbortCause::Expired);
                return outcome;
            }
            // Part of what it looked at may still be undone, so the refusal itself must not reach the client.
            Err(_) if read_ts > self.begin_ts() => return Err(self.abort_early(&mut writes, AbortCause::ReadConflict)),
            Err(_) => {}
        }
        self.track_unchanged(read_ts, reads);
        outcome
    }

    /// Adds the items that an operation without effect looked at to the read set.
    fn track_unchanged(&self, read_ts: u64, reads: impl FnOnce(&mut dyn FnMut(Item))) {
        let Some(tracking) = &self.tracking else { return };
        let mut set = tracking.reads.lock();
        reads(&mut |item| match read_ts > self.begin_ts() {
            true => set.add_later(&[item], read_ts, &[]),
            // Nothing had been pre-read when the operation began. A pre-read since then is another thread's (TXN-11).
            false => set.add_at_begin(item),
        });
    }

    /// Notes that the transaction has set a property of an element that is newer than its begin, if one of these is. An
    /// element that the transaction itself has added is not, even in the running statement.
    fn note_elements<T>(
        &self,
        elements: impl IntoIterator<Item = T>,
        retain: impl FnOnce(&StoreView<'_>, &mut Vec<T>) -> Result<()>,
    ) -> Result<()> {
        // Without a pre-read, writes are carried out at the begin, which shows every element they meet.
        let may_be_newer = |tracking: &&Tracking| tracking.latest.load(Ordering::Acquire) > 0 && !tracking.sets_newer();
        let Some(tracking) = self.tracking().filter(may_be_newer) else { return Ok(()) };
        let running = self.finished.load(Ordering::Acquire) + 1;
        let mut shown: Vec<T> = elements.into_iter().collect();
        let count = shown.len();
        retain(&*self.view_at(Snapshot::new(self.begin_ts(), self.number(), running))?, &mut shown)?;
        if shown.len() < count {
            tracking.sets_newer.store(true, Ordering::Release);
        }
        Ok(())
    }

    /// The timestamp at which writes are carried out: the begin or, after a pre-read, the latest pre-read timestamp. In
    /// that case this waits until every transaction that pre-reads relied on is installed. A value that is written over
    /// was read at that timestamp, or not at all, or else validation finds it changed.
    fn write_snapshot_ts(&self) -> std::result::Result<u64, AbortCause> {
        let Some(tracking) = self.tracking.as_ref().filter(|t| t.latest.load(Ordering::Acquire) > 0) else {
            return Ok(self.begin_ts());
        };
        let (read_ts, writers) = {
            let reads = tracking.reads.lock();
            (reads.latest(), reads.must_commit().to_vec())
        };
        for ts in writers {
            match self.shared.recent.wait_until_finished(ts) {
                Some(Outcome::Committed) => {}
                Some(_) => return Err(AbortCause::Dependency),
                None => return Err(AbortCause::TooOld),
            }
        }
        Ok(read_ts)
    }

    /// Adds items that were pre-read to the read set.
    pub(crate) fn track_pre_read(&self, tracking: &Tracking, items: &[Item], read_ts: u64, writers: &[u64]) {
        let mut reads = tracking.reads.lock();
        reads.add_later(items, read_ts, writers);
        tracking.latest.store(reads.latest(), Ordering::Release);
        self.shared.counters.pre_reads.fetch_add(items.len() as u64, Ordering::Relaxed);
    }

    /// As [`Transaction::track_pre_read`], for items that were read together and not before.
    pub(crate) fn track_pre_read_batch(&self, tracking: &Tracking, items: &[Item], read_ts: u64, writers: &[u64]) {
        let mut reads = tracking.reads.lock();
        reads.add_batch_later(items, read_ts, writers);
        tracking.latest.store(reads.latest(), Ordering::Release);
        self.shared.counters.pre_reads.fetch_add(items.len() as u64, Ordering::Relaxed);
    }

    /// Rolls the transaction back at once. Returns the error for the client.
    fn abort_early(&self, writes: &mut Writes, cause: AbortCause) -> Error {
        assert!(!self.ended, "a transaction that has ended is rolled back");
        // The caller has the lock of `writes` and found no cause.
        assert!(self.abort_cause.set(cause).is_ok(), "a transaction is rolled back once");
        // TXN-12: the status before the claims are taken back.
        self.shared.status.set(self.entry(), Status::Aborted);
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
        let failed_request = self.failed_request.get().map_or("", String::as_str);
        let message = format!(
            "this transaction was rolled back, because a request in it failed after it had begun to write ({failed_request}); roll \
             back, and begin another"
        );
        Error::new(ErrorKind::Closed, message).because(AbortCause::Failed.name())
    }

    /// The number of writes so far, for [`Transaction::fail_since`].
    pub fn write_mark(&self) -> usize {
        self.writes.lock().log.len()
    }

    /// Tells the transaction that a request failed with this error (TXN-19). If anything was written since the mark, a
    /// part of the request is in the transaction: it is rolled back at once, and every later call fails and names the
    /// error. A request that wrote nothing leaves the transaction as it was. Returns true if the transaction is rolled
    /// back because of a failed request.
    pub fn fail_since(&self, mark: usize, error: &Error) -> bool {
        let mut writes = self.writes.lock();
        if self.abort_cause.get().is_none() && writes.log.len() != mark {
            let _ = self.failed_request.set(error.message().to_owned());
            self.abort_early(&mut writes, AbortCause::Failed);
        }
        self.abort_cause.get() == Some(&AbortCause::Failed)
    }

    /// Rolls back the writes at once, although other handles on the transaction exist: their later calls fail.
    pub fn roll_back_now(&self) {
        let mut writes = self.writes.lock();
        if self.abort_cause.get().is_none() && !writes.log.is_empty() {
            self.abort_early(&mut writes, AbortCause::Rollback);
        }
    }

    /// Ends the running statement: later reads of this transaction see its writes.
    pub fn finish_statement(&self) -> Result<()> {
        let mut writes = self.writes.lock();
        self.check_alive()?;
        if self.is_expired() {
            return Err(self.abort_early(&mut writes, AbortCause::Expired));
        }
        if writes.log.len() == writes.statement_start {
            // Overwrites in place happen only beside a claim of the same statement, so there are none.
            return Ok(());
        }
        let finished = self.finished.load(Ordering::Relaxed) + 1;
        assert!(finished < STATEMENT_MAX);
        assert!(writes.renumbered <= writes.statement_start, "claims of the running statement have its number");
        assert!(writes.statement_start < writes.log.len(), "the log of writes has shrunk");
        if finished + 1 == STATEMENT_MAX {
            // The numbers are used up. All statements so far are finished, so their claims may share number 0, which
            // every later statement sees.
            self.shared.store.replace_claims(&writes.log[writes.renumbered..], claim(self.number(), 0));
            writes.renumbered = writes.log.len();
            self.finished.store(0, Ordering::Release);
        } else {
            self.finished.store(finished, Ordering::Release);
        }
        writes.statement_start = writes.log.len();
        Ok(())
    }

    /// Adds a vertex, under a chosen id or an automatic one.
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

    /// Adds edges with automatic ids, given by source and target. After an error none is added.
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
            // It may have been refused because another vertex has the value.
            equal.into_iter().for_each(add);
        };
        let outcome = self.write(|writer| writer.set_vertex_property(vertex, key, value, cardinality, meta), looks);
        if outcome.is_ok() {
            self.note_elements([vertex], |begin, shown| begin.retain_vertices(shown))?;
        }
        self.track_refusal(ElementKind::Vertex, key, &outcome);
        outcome
    }

    /// Sets the values under a key of many vertices, each to the one beside it: as [`Transaction::set_vertex_property`] of
    /// each, in less time. After an error other than a conflict, values before the one that is refused may be set.
    pub fn set_vertex_properties(&self, key: KeyId, values: &[(VertexId, Value)]) -> Result<()> {
        if self.store().is_unique_of_vertices(key) {
            // An error names the value that another vertex has.
            return values.iter().try_for_each(|(vertex, value)| {
                self.set_vertex_property(*vertex, key, value.clone(), WriteCardinality::Single, Vec::new())
            });
        }
        let looks = |add: &mut dyn FnMut(Item)| {
            values.iter().for_each(|(vertex, _)| cell_of(ElementId::Vertex(*vertex), key, add));
        };
        self.write(|writer| writer.set_vertex_properties(key, values), looks)?;
        let vertices = values.iter().map(|(vertex, _)| *vertex);
        self.note_elements(vertices, |begin, shown| begin.retain_vertices(shown))
    }

    /// If a unique index over several keys may have refused a value, adds what the refusal may depend on besides that
    /// value: any value under the other keys.
    fn track_refusal(&self, kind: ElementKind, key: KeyId, outcome: &Result<()>) {
        if !matches!(outcome, Err(error) if error.kind() == ErrorKind::DuplicateId) {
            return;
        }
        let may_refuse = |index: &IndexInfo| index.unique && index.element == kind && index.keys.contains(&key);
        for index in self.store().indexes().into_iter().filter(may_refuse) {
            for other in index.keys.iter().copied().filter(|other| *other != key) {
                let range = IndexRange::Between { low: None, high: None };
                let labels = LabelFilter::Any;
                self.track_predicate(|| Predicate { kind, labels, key: other, range });
            }
        }
    }

    /// Sets the value of an edge.
    pub fn set_edge_property(&self, edge: EdgeId, key: KeyId, value: Value) -> Result<()> {
        let equal = self.tracking.is_some().then(|| Item::value(ElementKind::Edge, key, None, &value));
        let looks = |add: &mut dyn FnMut(Item)| {
            cell_of(ElementId::Edge(edge), key, add);
            // It may have been refused because another edge has the value.
            equal.into_iter().for_each(add);
        };
        let outcome = self.write(|writer| writer.set_edge_property(edge, key, value), looks);
        if outcome.is_ok() {
            self.note_elements([edge], |begin, shown| begin.retain_edges(shown))?;
        }
        self.track_refusal(ElementKind::Edge, key, &outcome);
        outcome
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

    /// Deletes a vertex with its edges. If this transaction sees no such vertex, nothing happens.
    pub fn delete_vertex(&self, vertex: VertexId) -> Result<()> {
        let looks = |add: &mut dyn FnMut(Item)| add(Item::existence(ElementId::Vertex(vertex)));
        self.write(|writer| writer.delete_vertex(vertex), looks)
    }

    /// Deletes an edge. If this transaction sees no such edge, nothing happens.
    pub fn delete_edge(&self, edge: EdgeId) -> Result<()> {
        let looks = |add: &mut dyn FnMut(Item)| add(Item::existence(ElementId::Edge(edge)));
        self.write(|writer| writer.delete_edge(edge), looks)
    }

    /// Redoes the after-images of the commit that this transaction stands for ([`Writer::redo`]).
    pub(crate) fn redo(&self, images: &[Redo]) -> Result<()> {
        self.write(|writer| writer.redo(images), |_| {})
    }

    /// Rolls the transaction back.
    pub fn rollback(self) {
        // `drop` does the work.
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if !self.ended && self.abort_cause.get().is_none() {
            let log = self.take_log();
            if log.is_empty() {
                // It has no claims, so no transaction looks its status up.
                self.shared.counters.read_only.add();
            } else {
                // TXN-12: the status before the claims are taken back.
                self.shared.status.set(self.entry(), Status::Aborted);
                self.shared.store.rollback(&log, self.number());
                self.shared.counters.count_abort(AbortCause::Rollback);
                self.shared.store.retire_aborted(log);
            }
        }
        self.shared.status.release(self.entry());
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
