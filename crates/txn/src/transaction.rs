//! One transaction, from begin to commit or rollback.
//!
//! Reads go to the store's view at the begin timestamp, plus own writes of finished statements. Writes take
//! turns on the transaction's log; a transaction may be shared by threads, whose writes are then those of
//! one statement. After a conflict everything is taken back at once (others need not wait for the owner to
//! notice), and every later call fails with the same conflict.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};

use mangrove_graph::{EdgeId, Error, ErrorKind, KeyId, LabelSetId, Result, UserId, Value, VertexId};
use mangrove_store::version::{STATEMENT_MAX, claim};
use mangrove_store::{Snapshot, Store, StoreView, Write, WriteCardinality, Writer};
use parking_lot::Mutex;

use crate::counters::AbortCause;
use crate::manager::{Isolation, Shared, TransactionOptions};
use crate::snapshots::SlotId;

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
struct WriteSet {
    log: Vec<Write>,
    /// How long the log was when the running statement began.
    statement_start: usize,
}

/// See the module.
#[derive(Debug)]
pub struct Transaction {
    shared: Arc<Shared>,
    options: TransactionOptions,
    number: u64,
    slot: SlotId,
    begin_ts: u64,
    /// The last finished statement: what reads see of own writes.
    finished: AtomicU16,
    doomed: AtomicBool,
    writes: Mutex<WriteSet>,
    /// Committed or rolled back: nothing is left to undo.
    ended: bool,
}

impl Transaction {
    pub(crate) fn new(
        shared: Arc<Shared>,
        options: TransactionOptions,
        number: u64,
        slot: SlotId,
        begin_ts: u64,
    ) -> Self {
        Transaction {
            shared,
            options,
            number,
            slot,
            begin_ts,
            finished: AtomicU16::new(0),
            doomed: AtomicBool::new(false),
            writes: Mutex::default(),
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
        self.begin_ts
    }

    /// The store.
    pub fn store(&self) -> &Arc<Store> {
        &self.shared.store
    }

    /// Whether it has written anything.
    pub fn has_writes(&self) -> bool {
        !self.writes.lock().log.is_empty()
    }

    fn snapshot(&self) -> Snapshot<'static> {
        Snapshot::new(self.begin_ts, self.number, self.finished.load(Ordering::Acquire))
    }

    /// The graph as this transaction sees it now: at its begin, with its own finished statements.
    pub(crate) fn view(&self) -> Result<StoreView<'_>> {
        self.check_alive()?;
        Ok(self.peek())
    }

    /// As `view`, for what cannot fail.
    pub(crate) fn peek(&self) -> StoreView<'_> {
        self.shared.store.view(self.snapshot())
    }

    fn check_alive(&self) -> Result<()> {
        if self.doomed.load(Ordering::Acquire) {
            return Err(Error::conflict(
                "this transaction met a conflict and was rolled back; run it again from its beginning",
            ));
        }
        Ok(())
    }

    /// Runs one write operation under the log's mutex.
    fn write<T>(&self, operation: impl FnOnce(&mut Writer<'_>) -> Result<T>) -> Result<T> {
        if self.options.read_only {
            let message = "this transaction is read-only; begin one that may write";
            return Err(Error::new(ErrorKind::InvalidArgument, message));
        }
        let mut writes = self.writes.lock();
        self.check_alive()?;
        let snapshot = self.snapshot();
        // Finished statements end at `finished`, so the running one is the next.
        let mut writer = Writer::new(&self.shared.store, snapshot, snapshot.statement + 1, &mut writes.log);
        let outcome = operation(&mut writer);
        if matches!(&outcome, Err(error) if error.kind() == ErrorKind::Conflict) {
            self.doom(&mut writes);
        }
        outcome
    }

    fn doom(&self, writes: &mut WriteSet) {
        self.doomed.store(true, Ordering::Release);
        let log = std::mem::take(&mut writes.log);
        self.shared.store.rollback(&log, self.number);
        self.shared.store.retire_aborted(log);
        self.shared.counters.count_abort(AbortCause::WriteConflict);
    }

    /// Ends the running statement: its writes are seen by this transaction's reads from now on.
    pub fn finish_statement(&self) -> Result<()> {
        let mut writes = self.writes.lock();
        self.check_alive()?;
        if writes.log.len() == writes.statement_start {
            // Overwrites in place happen only beside a claim of the same statement, so there are none.
            return Ok(());
        }
        let finished = self.finished.load(Ordering::Relaxed) + 1;
        if finished + 1 == STATEMENT_MAX {
            // The numbers are used up. All statements so far are finished, so they may share number 0,
            // which every later statement sees.
            self.shared.store.stamp(&writes.log, claim(self.number, 0));
            self.finished.store(0, Ordering::Release);
        } else {
            self.finished.store(finished, Ordering::Release);
        }
        writes.statement_start = writes.log.len();
        Ok(())
    }

    /// Adds a vertex, under an id of its own or an automatic one.
    pub fn insert_vertex(&self, labels: LabelSetId, id: Option<UserId>) -> Result<VertexId> {
        self.write(|writer| writer.insert_vertex(labels, id.as_ref()))
    }

    /// Adds an edge between two vertices.
    pub fn insert_edge(
        &self,
        source: VertexId,
        target: VertexId,
        label: LabelSetId,
        id: Option<UserId>,
    ) -> Result<EdgeId> {
        self.write(|writer| writer.insert_edge(source, target, label, id.as_ref()))
    }

    /// Adds edges with automatic ids, given by source and target.
    pub fn insert_edges(&self, ends: &[(VertexId, VertexId)], label: LabelSetId) -> Result<Vec<EdgeId>> {
        self.write(|writer| ends.iter().map(|&(s, t)| writer.insert_edge(s, t, label, None)).collect())
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
        self.write(|writer| writer.set_vertex_property(vertex, key, value, cardinality, meta))
    }

    /// Sets the value of an edge.
    pub fn set_edge_property(&self, edge: EdgeId, key: KeyId, value: Value) -> Result<()> {
        self.write(|writer| writer.set_edge_property(edge, key, value))
    }

    /// Removes one value of a vertex, or all under the key.
    pub fn remove_vertex_property(&self, vertex: VertexId, key: KeyId, ordinal: Option<u32>) -> Result<()> {
        self.write(|writer| writer.remove_vertex_property(vertex, key, ordinal))
    }

    /// Removes the value of an edge.
    pub fn remove_edge_property(&self, edge: EdgeId, key: KeyId) -> Result<()> {
        self.write(|writer| writer.remove_edge_property(edge, key))
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
        self.write(|writer| writer.set_meta_property(vertex, key, ordinal, meta_key, value))
    }

    /// Removes a meta-property of one value of a vertex.
    pub fn remove_meta_property(&self, vertex: VertexId, key: KeyId, ordinal: u32, meta_key: KeyId) -> Result<()> {
        self.write(|writer| writer.remove_meta_property(vertex, key, ordinal, meta_key))
    }

    /// Deletes a vertex with its edges; nothing happens where this transaction sees no such vertex.
    pub fn delete_vertex(&self, vertex: VertexId) -> Result<()> {
        self.write(|writer| writer.delete_vertex(vertex))
    }

    /// Deletes an edge; nothing happens where this transaction sees no such edge.
    pub fn delete_edge(&self, edge: EdgeId) -> Result<()> {
        self.write(|writer| writer.delete_edge(edge))
    }

    /// Commits. When this returns, whoever begins a transaction sees its writes.
    pub fn commit(mut self) -> Result<CommitInfo> {
        self.check_alive()?;
        let log = std::mem::take(&mut self.writes.get_mut().log);
        if log.is_empty() {
            self.ended = true;
            self.shared.counters.read_only.fetch_add(1, Ordering::Relaxed);
            return Ok(CommitInfo { timestamp: self.begin_ts, write_count: 0, read_count: 0 });
        }
        let drawn = self.shared.watermark.draw();
        let timestamp = drawn.ts();
        self.shared.store.install(&log, timestamp);
        drop(drawn);
        self.ended = true;
        self.shared.watermark.wait_for(timestamp);
        self.shared.counters.commits.fetch_add(1, Ordering::Relaxed);
        let write_count = log.len();
        self.shared.hand_over(log, timestamp);
        Ok(CommitInfo { timestamp, write_count, read_count: 0 })
    }

    /// Takes everything back.
    pub fn rollback(self) {
        // What is to be done is done by `drop`.
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        let doomed = *self.doomed.get_mut();
        if !self.ended && !doomed {
            let log = std::mem::take(&mut self.writes.get_mut().log);
            self.shared.store.rollback(&log, self.number);
            if log.is_empty() {
                self.shared.counters.read_only.fetch_add(1, Ordering::Relaxed);
            } else {
                self.shared.counters.count_abort(AbortCause::Rollback);
                self.shared.store.retire_aborted(log);
            }
        }
        self.shared.snapshots.release(self.slot);
    }
}
