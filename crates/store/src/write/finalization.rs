//! Finalization: the claims of a transaction become commit timestamps, or are taken back.
//!
//! The caller (`txn`) has decided the outcome. Only the owner of a log finalizes its claims, and only once. A commit
//! stores its timestamp in every word that the log names. A rollback takes entries back newest first, so that each
//! older value returns before the one that it replaced.

use std::sync::atomic::Ordering;

use mangrove_graph::{EdgeChange, EdgeChangeKind, EdgeId, ElementId, LabelSetId, VertexId};
use mangrove_reclaim::{Pin, epoch};

use crate::cell::undo;
use crate::change_log::Change;
use crate::memory::Write;
use crate::page::value_garbage;
use crate::store::{Slot, Store};
use crate::version::NEVER;
use crate::version::installing::Announced;

impl Store {
    /// The slot of an element that a log names. The claims of the log keep the element.
    fn log_slot(&self, element: ElementId) -> Slot<'_> {
        self.slot(element).expect("a log names only elements that exist")
    }

    /// Replaces every claim in a log by `word`: a commit timestamp or another claim of the transaction.
    pub fn replace_claims(&self, log: &[Write], word: u64) {
        let pin = epoch::pin();
        for write in log {
            self.replace_claim(write, word, &pin);
        }
    }

    fn replace_claim(&self, write: &Write, word: u64, pin: &Pin) -> Slot<'_> {
        let slot = self.log_slot(write.element());
        match *write {
            Write::Begin(_) => slot.core.versions(pin, &self.memory)[slot.at].begin.store(word, Ordering::Release),
            Write::End(_) => slot.core.versions(pin, &self.memory)[slot.at].end.store(word, Ordering::Release),
            Write::Property { undo, .. } => undo::finalize(undo, word, &slot.tablet.undo),
        }
        slot
    }

    /// Lets snapshots from `ts` on see a commit before its claims are finalized. The caller finalizes them next, then
    /// drops the guard. Its transaction counts as running until then. Returns `None` if too many commits are announced.
    pub fn announce(&self, txn: u64, ts: u64) -> Option<Announced<'_>> {
        self.installing.announce(txn, ts)
    }

    /// Makes the writes of a log those of a commit at `ts`. The timestamp must be above the begin of every running
    /// snapshot, or announced (STORE-3).
    pub fn install(&self, log: &[Write], ts: u64) {
        let pin = epoch::pin();
        for write in log {
            let Slot { core, tablet, .. } = self.replace_claim(write, ts, &pin);
            core.note_change(ts);
            match *write {
                Write::Begin(element) => {
                    self.note_lists(element, true, ts, &pin);
                    core.add_live(1);
                    self.give_page(tablet, core, element);
                }
                Write::End(element) => {
                    self.note_lists(element, false, ts, &pin);
                    core.add_live(-1);
                }
                Write::Property { element: ElementId::Edge(id), key, .. } if self.edge_writes.is_noted() => {
                    self.note_edge(id, |_| EdgeChangeKind::Wrote(key), ts, &pin);
                }
                Write::Property { .. } => {}
            }
        }
    }

    /// Notes that a commit has added or removed a vertex, or an edge in the lists of its ends (STORE-37).
    fn note_lists(&self, element: ElementId, is_added: bool, ts: u64, pin: &Pin) {
        match element {
            ElementId::Vertex(id) => self.note_lists_of(id, ts),
            ElementId::Edge(id) => {
                self.note_edge(id, if is_added { EdgeChangeKind::Added } else { EdgeChangeKind::Removed }, ts, pin);
            }
        }
    }

    /// Notes on the pages of an edge's ends that a commit has done something to the edge, and then in the log of changes what.
    fn note_edge(&self, id: EdgeId, kind: impl FnOnce(LabelSetId) -> EdgeChangeKind, ts: u64, pin: &Pin) {
        let (_, page) = self.edge_page(id).expect("a log names only elements that exist");
        let (source, target) = page.ends(id.offset(), pin);
        let kind = kind(page.core.label);
        for page in [source, target].into_iter().filter_map(|vertex| self.vertex_page_of(vertex)) {
            match kind {
                EdgeChangeKind::Wrote(_) => page.note_edge_write(ts),
                EdgeChangeKind::Added(_) | EdgeChangeKind::Removed(_) => page.note_lists(ts),
            }
        }
        self.log_change(ts, || Change::Edge(EdgeChange { edge: id, source, target, kind }));
    }

    /// Notes on the page of a vertex that the commit at `ts` has changed its vertices or lists.
    pub(crate) fn note_lists_of(&self, id: VertexId, ts: u64) {
        if let Some(page) = self.vertex_page_of(id) {
            page.note_lists(ts);
            self.log_change(ts, || Change::Vertex(id));
        }
    }

    /// Adds a change to the log of changes, if there is one. The commit has noted its timestamp on the pages (STORE-38).
    #[inline]
    fn log_change(&self, ts: u64, change: impl FnOnce() -> Change) {
        if self.change_log.is_kept() {
            self.change_log.add(self.queue.own_shard_number(), ts, change(), &self.memory);
        }
    }

    /// Takes the writes of a log back.
    pub fn rollback(&self, log: &[Write], txn: u64) {
        let pin = epoch::pin();
        let mut undone = Vec::new();
        for write in log.iter().rev() {
            match *write {
                Write::Property { element, key, undo } => {
                    let slot = self.log_slot(element);
                    let column = slot.core.column(key).expect("a written property has a column");
                    let cell = column.restore(slot.at, undo, &slot.tablet.undo);
                    if !cell.is_absent() {
                        undone.push((element, key, cell));
                    }
                }
                Write::Begin(element) | Write::End(element) => {
                    let slot = self.log_slot(element);
                    let pair = &slot.core.versions(&pin, &self.memory)[slot.at];
                    let word = if matches!(write, Write::Begin(_)) { &pair.begin } else { &pair.end };
                    word.store(NEVER, Ordering::Release);
                }
            }
        }
        // Newest first: the begin that `forget` gives a record is that of an older version (`cell::column`).
        for write in log.iter().rev() {
            if let Write::Property { element, undo, .. } = *write {
                undo::forget(undo, txn, &self.log_slot(element).tablet.undo);
            }
        }
        let mut garbage = Vec::new();
        for (element, key, cell) in undone {
            let slot = self.log_slot(element);
            self.forget_value(element, &slot, key, cell);
            garbage.extend(value_garbage(slot.tablet, cell));
        }
        self.limbo.take_in(garbage);
    }
}
