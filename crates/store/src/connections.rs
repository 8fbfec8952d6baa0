//! Which label sets edges have connected: the facts that plans may rely on, and the proof that they hold.
//!
//! The lists of one *kind* are those of the vertices of one label set, in one direction, along one edge label set. Of
//! each kind the store knows *facts*: the label sets of all neighbors that an edge in such a list ever had, and whether
//! such a list ever had a second edge. Facts are only added. A graph that is loaded in bulk, or restored from disk,
//! begins with those of the edges that it has.
//!
//! - **STORE-36.** Before the cell of an edge is in a list, its facts are added, and the epoch has grown if one of them
//!   is new.
//!
//! So a plan that relies on facts is right for a run, if the transaction of the run meets no edge but those of its
//! snapshot, and if the epoch *after* the snapshot was taken is still that of the facts:
//!
//! 1. Each edge of the snapshot has a cell, which was appended by a writer before the writer's commit.
//! 2. The writer has found each fact of the edge in the table's [`NotedFacts`], or has added it under the lock of
//!    [`Connections`]. In the first case the load (Acquire) has read what the thread that added the fact has stored
//!    (Release) after it had added the fact. In both cases the addition happened before the append (STORE-36).
//! 3. The append happened before the commit of the writer, and that before the begin of the snapshot: the begin reads the
//!    stable watermark, which the commit has moved (TXN-2).
//! 4. The reader loads the epoch after that. So it reads an epoch that counts all facts of all edges of the snapshot. If
//!    it is the epoch of the plan's facts, these are among them.
//!
//! A writer that is rolled back leaves its facts, which say too little then. A cell that compaction moves keeps its two
//! ends, and brings no fact. The label set of a vertex never changes, since it is that of the page.
//!
//! A transaction that may write can meet other edges: its own, and, if it is serializable, those of commits after its
//! begin (pre-reads). So `txn` offers the facts to transactions alone that only read.
//!
//! The facts of a kind are one word: a bit for each label set below `MANY_FROM`, one bit for all others together, and
//! one for a second edge in a list. The word of a table has the facts that its appends need not add any more. So an
//! append costs one load and a test, but for the first edge of a sort in the table.
//!
//! Not here: how plans use the facts (`mangrove_plan`), and which transactions may (`mangrove_txn`).

use std::sync::Arc;
use std::sync::atomic::Ordering;

use hashbrown::HashMap;
use mangrove_graph::connections::{Connections, Ends, ListFacts};
use mangrove_graph::statistics::EdgeTable;
use mangrove_graph::{Direction, LabelSetId};
use mangrove_locks::rank;
use mangrove_reclaim::sync::{AtomicU64, Mutex};

/// Label sets from this number on share a bit.
const MANY_FROM: u32 = 62;

/// The bit of the label sets that share one.
const MANY: u64 = 1 << MANY_FROM;

/// The bit that says that a list had a second edge.
const SEVERAL: u64 = 1 << 63;

/// The most kinds of lists whose facts are kept. A graph with more has none: plans then rely on nothing.
const KINDS_MAX: usize = 16_384;

/// The epoch of a graph without facts.
const NO_FACTS: u64 = u64::MAX;

/// The kind of a list: the label set of its vertex, its direction (not `Both`), and the label set of its edges.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct ListKind {
    pub(crate) vertices: LabelSetId,
    pub(crate) direction: Direction,
    pub(crate) edges: LabelSetId,
}

/// Facts about the lists of one kind, as bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Facts(u64);

impl Facts {
    /// The facts that lists have neighbors of a label set, and, if so, that a list has a second edge.
    #[inline]
    pub(crate) fn of(neighbors: LabelSetId, is_second: bool) -> Self {
        Facts(1 << neighbors.0.min(MANY_FROM) | if is_second { SEVERAL } else { 0 })
    }

    /// Both of them.
    #[inline]
    pub(crate) fn and(self, other: Facts) -> Self {
        Facts(self.0 | other.0)
    }

    fn ends(self) -> Ends {
        match self.0 & MANY {
            0 => Ends::Sets((0..MANY_FROM).filter(|set| self.0 & 1 << set != 0).map(LabelSetId).collect()),
            _ => Ends::Any,
        }
    }
}

/// The facts that the appends to one table need not add any more (STORE-36).
#[derive(Debug, Default)]
pub(crate) struct NotedFacts(AtomicU64);

/// The facts about a graph.
#[derive(Debug, Default)]
pub(crate) struct ConnectionFacts {
    /// How many additions there were, or [`NO_FACTS`]. Changed under the lock of `known`, and read without it.
    epoch: AtomicU64,
    known: Mutex<Known, rank::ConnectionFacts>,
}

#[derive(Debug, Default)]
struct Known {
    kinds: HashMap<ListKind, Facts, foldhash::fast::RandomState>,
    /// The value that readers were given last.
    shown: Option<Arc<Connections>>,
}

impl ConnectionFacts {
    /// Adds facts that a table has not noted, and notes them there. No reader finds a cell yet that they are about.
    #[cold]
    pub(crate) fn add_and_note(&self, kind: ListKind, facts: Facts, noted: &NotedFacts) {
        self.add(kind, facts);
        // Release: a writer that finds the facts noted comes after their addition.
        noted.0.fetch_or(facts.0, Ordering::Release);
    }

    /// Adds facts.
    fn add(&self, kind: ListKind, facts: Facts) {
        let mut known = self.known.lock();
        let old = known.kinds.get(&kind).copied().unwrap_or_default();
        let epoch = self.epoch.load(Ordering::Relaxed);
        if old.and(facts) == old || epoch == NO_FACTS {
            return;
        }
        known.kinds.insert(kind, old.and(facts));
        let is_full = known.kinds.len() > KINDS_MAX;
        if is_full {
            *known = Known::default();
        }
        // Release: a reader that loads the epoch without the lock comes after the additions that it counts.
        self.epoch.store(if is_full { NO_FACTS } else { epoch + 1 }, Ordering::Release);
    }

    /// Forgets all facts of a graph that has no edge and no reader.
    pub(crate) fn forget(&self) {
        let mut known = self.known.lock();
        if !known.kinds.is_empty() {
            *known = Known::default();
            // An epoch does not come again with other facts. That of a graph without facts has no kinds, and stays.
            self.epoch.fetch_add(1, Ordering::Release);
        }
    }

    /// The number of additions so far; `None` if the facts are not kept. It is loaded after the snapshot of the reader
    /// was taken.
    pub(crate) fn epoch(&self) -> Option<u64> {
        let epoch = self.epoch.load(Ordering::Acquire);
        (epoch != NO_FACTS).then_some(epoch)
    }

    /// The facts, with their epoch; `None` if they are not kept.
    pub(crate) fn current(&self) -> Option<Arc<Connections>> {
        let mut known = self.known.lock();
        let epoch = self.epoch()?;
        if let Some(shown) = known.shown.as_ref().filter(|shown| shown.epoch == epoch) {
            return Some(shown.clone());
        }
        let lists = known.kinds.iter().map(|(kind, facts)| ListFacts {
            vertices: kind.vertices,
            table: EdgeTable { direction: kind.direction, label: kind.edges },
            ends: facts.ends(),
            is_functional: facts.0 & SEVERAL == 0,
        });
        let shown = Arc::new(Connections::new(epoch, lists.collect()));
        known.shown = Some(shown.clone());
        Some(shown)
    }
}

/// What an append to a list knows of the edge's two ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Connecting<'a> {
    pub(crate) facts: &'a ConnectionFacts,
    /// The kind of the list.
    pub(crate) kind: ListKind,
    /// The label set of the neighbor.
    pub(crate) neighbors: LabelSetId,
}

impl Connecting<'_> {
    /// Adds the facts of an edge whose cell is about to be appended (STORE-36). `is_second`: the list may have another
    /// edge.
    #[inline]
    pub(crate) fn note(&self, is_second: bool, noted: &NotedFacts) {
        let facts = Facts::of(self.neighbors, is_second);
        // Acquire: its partner is the Release in `add_and_note`.
        if noted.0.load(Ordering::Acquire) & facts.0 != facts.0 {
            self.facts.add_and_note(self.kind, facts, noted);
        }
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    fn kind(vertices: u32) -> ListKind {
        ListKind { vertices: LabelSetId(vertices), direction: Direction::Out, edges: LabelSetId(9) }
    }

    #[test]
    fn an_addition_changes_the_epoch_if_it_is_new() {
        let (facts, noted) = (ConnectionFacts::default(), [NotedFacts::default(), NotedFacts::default()]);
        let append = |vertices, neighbors, is_second, table: usize| {
            let connecting = Connecting { facts: &facts, kind: kind(vertices), neighbors: LabelSetId(neighbors) };
            connecting.note(is_second, &noted[table]);
            facts.epoch().unwrap()
        };
        assert_eq!(facts.epoch(), Some(0));
        assert_eq!(append(1, 2, false, 0), 1);
        assert_eq!(append(1, 2, false, 0), 1);
        assert_eq!(append(1, 2, false, 1), 1, "another table of the same kind");
        assert_eq!(append(1, 2, true, 1), 2);
        assert_eq!(append(1, 3, true, 0), 3);
        let current = facts.current().unwrap();
        let [lists] = current.lists() else { panic!("{current:?}") };
        assert_eq!((current.epoch, lists.is_functional), (3, false));
        assert_eq!(lists.ends, Ends::Sets([LabelSetId(2), LabelSetId(3)].into()));
        assert!(Arc::ptr_eq(&current, &facts.current().unwrap()));
    }

    #[test]
    fn label_sets_that_share_a_bit_are_not_told_apart() {
        let facts = ConnectionFacts::default();
        facts.add(kind(1), Facts::of(LabelSetId(61), false));
        facts.add(kind(2), Facts::of(LabelSetId(62), false));
        facts.add(kind(3), Facts::of(LabelSetId(1_000), false));
        let current = facts.current().unwrap();
        let ends: Vec<&Ends> = current.lists().iter().map(|lists| &lists.ends).collect();
        assert_eq!(ends, [&Ends::Sets([LabelSetId(61)].into()), &Ends::Any, &Ends::Any]);
        assert!(current.lists().iter().all(|lists| lists.is_functional));
    }

    #[test]
    fn a_graph_with_too_many_kinds_of_lists_has_no_facts() {
        let facts = ConnectionFacts::default();
        (0..KINDS_MAX as u32).for_each(|n| facts.add(kind(n), Facts::of(LabelSetId(1), false)));
        assert_eq!(facts.current().map(|current| current.lists().len()), Some(KINDS_MAX));
        facts.add(kind(KINDS_MAX as u32), Facts::of(LabelSetId(1), false));
        facts.add(kind(0), Facts::of(LabelSetId(2), false));
        assert_eq!((facts.epoch(), facts.current()), (None, None));
    }
}
