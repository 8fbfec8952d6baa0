//! Compaction: tails and dead cells go, and lists are packed runs again.
//!
//! One table at a time (a page's vertices, one direction, one edge label set), by the one thread that has the tablet's
//! turn:
//!
//! 1. *Look*: every list is read without a latch; one with a header gets the compaction bit first. Edges that every
//!    snapshot sees and nobody is ending go into the list's new run. Cells of edges that are over are dropped. The
//!    rest (too young, or ending) goes into a new, short tail.
//! 2. *Build*: the runs become a new block of the table, under the next block number.
//! 3. *Replace*: list by list, by a compare-and-swap of the descriptor, under the header's latch where there is one.
//!    A list that somebody has added to or dirtied since it was looked at keeps what it has, until next time.
//! 4. *Remember*: what was replaced stays readable as the table's previous layout, until every transaction has ended
//!    that may have a cursor inside one of the lists. Then its records are given up, and the cells that were dropped
//!    count as gone.
//!
//! Why a clean run is right. Let a run hold an edge whose end somebody claims. Compaction set the bit, passed a SeqCst
//! fence, then read the end word; the claimer claimed, passed a fence, then read the descriptor
//! (`AdjacencyTable::mark_dirty`). If compaction did not see the claim, the claimer sees the bit and takes it away, so
//! that the replacement fails; or it sees the new descriptor, and marks that one. A clean list without a header has
//! no bit; there the claimer replaces the descriptor itself, and one of the two exchanges fails.
//!
//! A table is compacted again only when its previous layout is gone, so at most two layouts are there at a time. When
//! it is worth it says [`Effort`].

use std::sync::atomic::Ordering;

use mangrove_graph::{Direction, EdgeId, VertexId};

use crate::adjacency::{AdjacencyTable, Block, HEADER, LENGTH_MAX, Layout, NewList, Weight};
use crate::epoch::{self, Pin};
use crate::limbo::Garbage;
use crate::memory::RecordKind;
use crate::page::VertexPage;
use crate::reclaim::Horizon;
use crate::store::Store;
use crate::tablet::Tablet;
use crate::version::{CLOSED, NEVER, claimed_by};

/// How much dirt makes a table worth compacting.
///
/// Reading a table of which 1 % of the lists are dirty costs 1.1 times a clean one, 10 % cost 2 times. Rewriting it
/// costs about as much as reading it five times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effort {
    /// What became dirty at all.
    All,
    /// Tables that are left alone at the moment from 1 % on, tables that are being written to from 12 % on: a busy
    /// table would be dirty again at once.
    Worthwhile,
}

/// Shares of a page's vertices, in percent; see [`Effort`].
const DIRTY_PERCENT_QUIET: u64 = 1;
const DIRTY_PERCENT_BUSY: u64 = 12;
/// Lists from this length on have a block to themselves, so that their page's other lists can be packed without them.
const LONG_LIST: u64 = 4_096;
/// A long list is packed again when this part of it is in its tail or ended: every edge is then rewritten about eight
/// times at most while the list grows.
const LONG_LIST_PART: u64 = 8;

/// What an edge is to a compaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Standing {
    /// Every snapshot sees it, and nobody is ending it.
    Settled,
    /// Some see it, and some do not.
    Changing,
    /// Nobody sees it, now or later.
    Over,
}

/// A list that was looked at.
struct Looked {
    at: usize,
    old: u64,
    /// Cells of the tail then.
    tail_seen: u64,
    new: NewList,
    dropped: Vec<EdgeId>,
}

impl Store {
    /// Compacts tables that are worth it; returns how many lists were replaced or layouts given up.
    pub fn compact(&self, horizon: &dyn Horizon, effort: Effort) -> usize {
        let mut done = 0;
        for tablet in &self.tablets {
            let turn = if effort == Effort::All { Some(tablet.turn.lock()) } else { tablet.turn.try_lock() };
            // Quiet tablets cost nothing: the tables of a large graph are many.
            if turn.is_none() || !tablet.lists.take_change() {
                continue;
            }
            for page in tablet.vertices.iter() {
                for direction in [Direction::Out, Direction::In] {
                    for (_, table) in page.tables(direction).iter() {
                        done += Compaction { store: self, tablet, page, table, horizon }.run(effort);
                        if table.has_work() {
                            tablet.lists.note_change();
                        }
                    }
                }
            }
        }
        done
    }

    fn standing(&self, pin: &Pin, edge: EdgeId, oldest: u64) -> Standing {
        let Some((_, page)) = self.edge_page(edge) else { return Standing::Over };
        let (begin, end) = page.core.version_under(pin, edge.offset());
        match (begin, end) {
            (NEVER, _) => Standing::Over,
            (_, end) if claimed_by(end).is_none() && end <= oldest => Standing::Over,
            (begin, end) if begin <= oldest && (end == NEVER || end == CLOSED) => Standing::Settled,
            _ => Standing::Changing,
        }
    }
}

struct Compaction<'a> {
    store: &'a Store,
    tablet: &'a Tablet,
    page: &'a VertexPage,
    table: &'a AdjacencyTable,
    horizon: &'a dyn Horizon,
}

impl Compaction<'_> {
    fn run(&self, effort: Effort) -> usize {
        // A table is a quantum.
        let pin = epoch::pin();
        let given_up = match self.give_up_previous(&pin) {
            // Somebody may still be inside.
            None => return 0,
            Some(given_up) => usize::from(given_up),
        };
        if !self.is_worthwhile(effort) {
            return given_up;
        }
        given_up + self.compact(effort, &pin)
    }

    fn is_worthwhile(&self, effort: Effort) -> bool {
        let dirt = self.table.dirt.load(Ordering::Relaxed);
        let is_quiet = self.table.dirt_seen.swap(dirt, Ordering::Relaxed) == dirt;
        let percent = match effort {
            Effort::All => return dirt > 0,
            Effort::Worthwhile if is_quiet => DIRTY_PERCENT_QUIET,
            Effort::Worthwhile => DIRTY_PERCENT_BUSY,
        };
        dirt > 0 && u64::from(dirt) * 100 >= percent * self.page.core.used() as u64
    }

    fn compact(&self, effort: Effort, pin: &Pin) -> usize {
        let (store, table) = (self.store, self.table);
        let Some(number) = table.next_block(pin) else { return 0 };
        // What comes from here on is counted for the next time.
        table.dirt.store(0, Ordering::Relaxed);
        let oldest = self.horizon.oldest_snapshot();
        let mut cells = Vec::new();
        let looked: Vec<Looked> = (0..self.page.core.used())
            .filter_map(|at| self.look(at, number, oldest, effort, &mut cells, pin))
            .collect();
        if looked.is_empty() {
            return 0;
        }
        if !cells.is_empty() {
            table.add_block(number, Block::of(&cells), &store.memory);
        }
        let layout = Layout::new(table.descriptors.len());
        store.memory.add(RecordKind::Descriptor, layout.bytes());
        let none_before = table.previous.swap(Some(layout));
        assert!(none_before.is_none(), "a table has one previous layout at most");
        let replaced = self.replace(looked, pin);
        let layout = table.previous.get(pin).expect("it was put there just now, by the one who has the turn");
        layout.boundary.store(self.horizon.next_transaction(), Ordering::Release);
        store.reclaimed.tables.fetch_add(1, Ordering::Relaxed);
        replaced
    }

    /// Reads a list and says what it should become; `None` where it stays as it is.
    fn look(
        &self,
        at: usize,
        number: u32,
        oldest: u64,
        effort: Effort,
        cells: &mut Vec<(VertexId, EdgeId)>,
        pin: &Pin,
    ) -> Option<Looked> {
        let (table, lists) = (self.table, &self.tablet.lists);
        let mut old = table.descriptor(at);
        if old == 0 {
            return None;
        }
        if old & HEADER != 0 {
            if !is_due(&table.weigh(old, lists, pin), effort) {
                return None;
            }
            old = table.begin_compaction(at)?;
        }
        let list = table.list_of(old, lists, pin);
        let packed = list.neighbors.iter().copied().zip(list.edges.iter().copied());
        let mut looked = Looked { at, old, tail_seen: list.tail_len, new: NewList::default(), dropped: Vec::new() };
        let first = cells.len();
        if list.is_clean() {
            cells.extend(packed);
        } else {
            let tail = list.tail(0).map(|(_, neighbor, edge)| (neighbor, edge));
            for (neighbor, edge) in packed.chain(tail) {
                match self.store.standing(pin, edge, oldest) {
                    Standing::Settled => cells.push((neighbor, edge)),
                    Standing::Changing => looked.new.tail.push((neighbor, edge)),
                    Standing::Over => looked.dropped.push(edge),
                }
            }
            cells[first..].sort_unstable();
        }
        looked.new.number = number;
        looked.new.run = first..cells.len();
        if (cells.len() - first) as u64 >= LONG_LIST.min(LENGTH_MAX) {
            looked.new.own = Some(Block::of(&cells[first..]));
            looked.new.run = 0..cells.len() - first;
            cells.truncate(first);
        }
        Some(looked)
    }

    fn replace(&self, looked: Vec<Looked>, pin: &Pin) -> usize {
        let (store, table, lists) = (self.store, self.table, &self.tablet.lists);
        let previous = table.previous.get(pin).expect("it was put there just now, by the one who has the turn");
        let (mut replaced, mut left) = (0, 0);
        for Looked { at, old, tail_seen, new, dropped } in looked {
            let has_tail = !new.tail.is_empty();
            let made = table.make_list(new, lists, &store.memory);
            // Before the replacement: a cursor that meets the new list finds the old one.
            previous.descriptors[at].store(old, Ordering::Release);
            if table.replace(at, old, made, tail_seen, lists) {
                replaced += 1;
                left += u32::from(has_tail);
                previous.dropped.lock().extend(dropped);
            } else {
                previous.descriptors[at].store(0, Ordering::Release);
                left += 1;
                let mut garbage = Vec::new();
                lists.retire(made, self.tablet.id.0, &mut garbage);
                store.limbo.take_in(garbage);
            }
        }
        // Lists that are not clean yet are worth another look.
        table.dirt.fetch_add(left, Ordering::Relaxed);
        replaced
    }

    /// Gives up the previous layout, if nobody can be inside any more; whether there was one. `None` if somebody may.
    fn give_up_previous(&self, pin: &Pin) -> Option<bool> {
        let (store, table, lists) = (self.store, self.table, &self.tablet.lists);
        let Some(previous) = table.previous.get(pin) else { return Some(false) };
        if self.horizon.oldest_transaction() < previous.boundary.load(Ordering::Acquire) {
            return None;
        }
        let mut garbage = Vec::new();
        for descriptor in &previous.descriptors {
            lists.retire(descriptor.load(Ordering::Acquire), self.tablet.id.0, &mut garbage);
        }
        let dropped = std::mem::take(&mut *previous.dropped.lock());
        store.reclaimed.cells.fetch_add(dropped.len() as u64, Ordering::Relaxed);
        store.vote(&dropped, &mut garbage);
        store.memory.remove(RecordKind::Descriptor, previous.bytes());
        garbage.extend(table.previous.swap(None).map(Garbage::Box));
        table.retire_blocks(lists, &mut garbage, &store.memory);
        store.limbo.take_in(garbage);
        Some(true)
    }
}

/// Whether a list with a header is to be packed.
fn is_due(weight: &Weight, effort: Effort) -> bool {
    let Weight { packed, is_apart, tail, ended, is_dirty } = *weight;
    // A long list moves to a block of its own first of all.
    if packed < LONG_LIST || !is_apart {
        return true;
    }
    match effort {
        Effort::All => tail > 0 || is_dirty,
        Effort::Worthwhile => (tail + ended) * LONG_LIST_PART >= packed,
    }
}
