//! Compaction: lists become packed runs again, without tails and dead cells.
//!
//! One table at a time (a page's vertices, one direction, one edge label set), by the thread that has the tablet's
//! turn:
//!
//! 1. *Look*: every list is read without a latch. A list that is no clean run gets the compaction bit first. The edges
//!    of its tail are checked, that is, their versions are read; of the packed edges, those that are named
//!    (`adjacency::ended`). Edges that are frozen ([`Standing`]) go into the list's new run. Cells of edges that are
//!    over are dropped. The rest, which is young or changing, goes into a new, short tail.
//! 2. *Build*: the runs become a new block of the table, under the next layout version.
//! 3. *Replace*: list by list, by a compare-and-swap of the descriptor, under the header's latch if there is a header.
//!    Cells that were added to a list since it was looked at go into the new list's tail. Edges that a transaction has
//!    begun to end since then are named in the new list, which is dirty then.
//! 4. *Remember*: the replaced lists stay readable as the table's previous layout, until every transaction has ended
//!    that may have a cursor inside one of the lists. Then its records are given up, and the cells that were dropped
//!    count as gone.
//!
//! Why a clean run is right (STORE-13). Suppose that a run holds an edge whose end a transaction claims. Compaction set
//! the bit, passed a SeqCst fence, then read the end word. The claimer claimed, passed a fence, then read the
//! descriptor (`AdjacencyTable::mark_ended`). If compaction did not see the claim, there are two cases:
//!
//! - The claimer sees the bit and gives a late name. Then the new list is made dirty, too.
//! - The claimer sees the new descriptor, and marks that one.
//!
//! A clean run without a header has no bit. There the claimer makes the descriptor itself dirty, and one of the two
//! exchanges fails.
//!
//! A table is compacted again only when its previous layout is gone, so it has at most two layouts at a time
//! (STORE-17). Every compaction takes a layout version of its own; `adjacency` says how cursors use it.
//!
//! [`Effort`] says which tables are compacted, and when. A table counts the cells that were appended to it and the ends
//! of its edges ([`Changes`]). The writer whose change makes it *due* lists it in its tablet. So under load no thread
//! walks the graph to find work, every table has a bounded part of it waiting, and every change costs the same share of
//! a rewrite. Tables that never become due are found by a walk, once they are left alone.
//!
//! [`Changes`]: crate::adjacency::Changes

use std::ops::Range;
use std::sync::atomic::Ordering;

use mangrove_graph::{Direction, EdgeId, LabelSetId, TabletId, VertexId};
use mangrove_reclaim::{Pin, epoch};
use smallvec::SmallVec;

use crate::adjacency::{AdjacencyTable, Block, HEADER, Layout, List, ListFigures, NewList, Seen, is_clean_run};
use crate::garbage::RunningTransactions;
use crate::memory::{Garbage, RecordKind};
use crate::page::{TableName, Tablet, VertexPage};
use crate::store::Store;
use crate::version::Standing;

/// The choice of the tables that are compacted.
///
/// A scan of a table with 1 % dirty lists takes about 1.1 times as long as that of a clean table, with 10 % twice as
/// long. Rewriting a table takes about as long as scanning it five times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effort {
    /// Every table with a change.
    All,
    /// Tables that are due, and tables that are left alone and have at least one change in a hundred lists.
    Worthwhile,
    /// Tables that are due: they have as many changes as lists, or changes in a sixteenth of their cells.
    Due,
}

/// A table that is left alone is compacted from so many changes on a hundred lists.
const QUIET_PERCENT: u64 = 1;
/// A long list is packed again when one cell in this many is in its tail or has ended. So every edge is rewritten at
/// most about eight times while the list grows.
const LONG_LIST_PART: u64 = 8;

/// A list that was looked at. Ranges are of the arrays of the same name in [`Draft`].
struct Looked {
    seen: Seen,
    /// The run of the new list, in the table's new block or in `own`.
    run: Range<usize>,
    /// The block that a long list has to itself.
    own: Option<Block>,
    /// The tail of the new list.
    young: Range<usize>,
}

/// Lists are read in groups of this size, which are loaded ahead together.
const GROUP: usize = 16;
/// How many edges are checked together.
const CHECKED_TOGETHER: usize = 64;

/// A list that compaction has begun to look at.
struct Begun<'p> {
    at: usize,
    descriptor: u64,
    list: List<'p>,
    /// Its edges that are checked, as a range of the checks: those of the tail, and then those of the run.
    checks: Range<usize>,
}

/// A cell whose edge is checked.
struct Check {
    cell: (VertexId, EdgeId),
    /// Of a cell of the run: its position there.
    at: usize,
    standing: Standing,
}

impl Check {
    fn new(cell: (VertexId, EdgeId), at: usize) -> Self {
        Check { cell, at, standing: Standing::Changing }
    }
}

/// The new lists of a table, before any list is replaced. The arrays are used for one table after another.
#[derive(Default)]
struct Draft {
    /// Vertices that may have a list.
    slots: Vec<usize>,
    /// Of the group of lists at hand.
    checks: Vec<Check>,
    looked: Vec<Looked>,
    /// The cells of the new block, in two parallel arrays.
    neighbors: Vec<VertexId>,
    edges: Vec<EdgeId>,
    /// Cells of new tails.
    young: Vec<(VertexId, EdgeId)>,
    /// Edges whose cells go.
    dropped: Vec<EdgeId>,
    /// Cells of the tail of the list at hand that every snapshot sees.
    fresh: Vec<(VertexId, EdgeId)>,
    /// Positions in the run of the list at hand whose cells leave it, ascending.
    leaving: Vec<usize>,
    /// True if a long list with changes stays as it is, until it has more of them.
    is_some_left: bool,
}

impl Draft {
    fn clear(&mut self) {
        self.is_some_left = false;
        self.slots.clear();
        self.looked.clear();
        self.neighbors.clear();
        self.edges.clear();
        self.young.clear();
        self.dropped.clear();
    }

    /// Decides where a cell goes that not every snapshot sees.
    fn leave(&mut self, check: &Check) {
        match check.standing {
            Standing::Vacant | Standing::Over => self.dropped.push(check.cell.1),
            _ => self.young.push(check.cell),
        }
    }

    /// Appends the run of a list, without the cells that leave it, and with those of the tail that every snapshot sees. Mostly few cells
    /// come and leave, also of a long run. What lies between them is copied in stretches.
    fn merge(&mut self, (of_neighbors, of_edges): (&[VertexId], &[EdgeId])) {
        let Draft { fresh, leaving, neighbors, edges, .. } = self;
        let (mut from, mut leaving) = (0, leaving.iter().copied().peekable());
        let mut copy_up_to = |to: usize, neighbors: &mut Vec<VertexId>, edges: &mut Vec<EdgeId>| {
            loop {
                let stop = leaving.next_if(|at| *at < to);
                let end = stop.unwrap_or(to);
                neighbors.extend_from_slice(&of_neighbors[from..end]);
                edges.extend_from_slice(&of_edges[from..end]);
                from = end + usize::from(stop.is_some());
                if stop.is_none() {
                    return;
                }
            }
        };
        let mut place = 0;
        for &(neighbor, edge) in &*fresh {
            place += place_in(&of_neighbors[place..], &of_edges[place..], neighbor, edge);
            copy_up_to(place, neighbors, edges);
            neighbors.push(neighbor);
            edges.push(edge);
        }
        copy_up_to(of_neighbors.len(), neighbors, edges);
    }
}

/// How many cells of a run come before a cell.
fn place_in(neighbors: &[VertexId], edges: &[EdgeId], neighbor: VertexId, edge: EdgeId) -> usize {
    let first = neighbors.partition_point(|other| *other < neighbor);
    let parallel = neighbors[first..].partition_point(|other| *other == neighbor);
    first + edges[first..first + parallel].partition_point(|before| *before < edge)
}

/// How far transactions had come when a compaction began. Greater numbers would only allow it to do more.
#[derive(Clone, Copy)]
struct Reached {
    oldest_snapshot: u64,
    oldest_transaction: u64,
}

impl Store {
    /// Compacts tables that are worth it; returns how many lists were replaced or layouts given up.
    pub fn compact(&self, running: &dyn RunningTransactions, effort: Effort) -> usize {
        let reached =
            Reached { oldest_snapshot: running.oldest_snapshot(), oldest_transaction: running.oldest_transaction() };
        let mut done = 0;
        for tablet in &self.tablets {
            let turn = if effort == Effort::All { Some(tablet.turn.lock()) } else { tablet.turn.try_lock() };
            if turn.is_none() {
                continue;
            }
            done += self.give_up_layouts(tablet, reached) + self.compact_listed(tablet, running, reached, effort);
            // Quiet tablets cost nothing: the tables of a large graph are many.
            if effort != Effort::Due && tablet.lists.take_change() {
                done += self.compact_others(tablet, running, reached, effort);
            }
            if effort != Effort::Due && tablet.take_new_free_slots() {
                done += self.freeze_with_free_slots(tablet, reached.oldest_snapshot, effort == Effort::All);
            }
        }
        done
    }

    /// Compacts the tables that have cells of these edges, which have ended. Returns how many lists were replaced or
    /// layouts given up.
    pub fn compact_lists_of(&self, running: &dyn RunningTransactions, edges: impl Iterator<Item = EdgeId>) -> usize {
        let reached =
            Reached { oldest_snapshot: running.oldest_snapshot(), oldest_transaction: running.oldest_transaction() };
        let mut tables: Vec<(TabletId, TableName)> = edges.filter_map(|edge| self.tables_of(edge)).flatten().collect();
        let key = |(tablet, name): &(TabletId, TableName)| (tablet.0, name.page, name.direction as u8, name.label.0);
        tables.sort_unstable_by_key(key);
        tables.dedup_by_key(|table| key(table));
        let (mut done, mut draft) = (0, Draft::default());
        for of_tablet in tables.chunk_by(|a, b| a.0 == b.0) {
            let tablet = self.tablet(of_tablet[0].0).expect("the end of an edge is in a tablet");
            let _turn = tablet.turn.lock();
            done += self.give_up_layouts(tablet, reached);
            for &(_, name) in of_tablet {
                let Some((page, table)) = tablet.table(name) else { continue };
                let compaction = Compaction { store: self, tablet, page, table, name, running, reached };
                done += compaction.run(Effort::All, &mut draft);
            }
        }
        done
    }

    /// Gives up the previous layouts that no cursor of a running transaction can be in.
    fn give_up_layouts(&self, tablet: &Tablet, reached: Reached) -> usize {
        let (mut count, mut garbage) = (0, Vec::new());
        loop {
            let name = {
                let mut tasks = tablet.tasks.lock();
                match tasks.layouts.front() {
                    Some(&(boundary, name)) if boundary <= reached.oldest_transaction => {
                        tasks.layouts.pop_front();
                        name
                    }
                    _ => break,
                }
            };
            let (_, table) = tablet.table(name).expect("a table stays where it was listed");
            self.give_up_layout(tablet, table, &mut garbage);
            count += 1;
            // The table may have become due while it had to wait.
            if table.changes.is_due() && table.changes.enlist() {
                tablet.tasks.lock().tables.push(name);
            }
        }
        self.collectors_limbo.take_in(garbage);
        count
    }

    fn compact_listed(
        &self,
        tablet: &Tablet,
        running: &dyn RunningTransactions,
        reached: Reached,
        effort: Effort,
    ) -> usize {
        let listed = std::mem::take(&mut tablet.tasks.lock().tables);
        let mut draft = Draft::default();
        let compact = |&name: &TableName| {
            let (page, table) = tablet.table(name).expect("a table stays where it was listed");
            table.changes.delist();
            Compaction { store: self, tablet, page, table, name, running, reached }.run(effort, &mut draft)
        };
        listed.iter().map(compact).sum()
    }

    /// Looks at all tables.
    fn compact_others(
        &self,
        tablet: &Tablet,
        running: &dyn RunningTransactions,
        reached: Reached,
        effort: Effort,
    ) -> usize {
        let (mut done, mut draft) = (0, Draft::default());
        for (number, page) in tablet.vertices.numbered() {
            for direction in [Direction::Out, Direction::In] {
                for (label, table) in page.tables(direction).iter() {
                    let name = TableName { page: number as u32, direction, label: LabelSetId(label) };
                    let compaction = Compaction { store: self, tablet, page, table, name, running, reached };
                    done += compaction.run(effort, &mut draft);
                    if table.changes.weight() > 0 {
                        tablet.lists.note_change();
                    }
                }
            }
        }
        done
    }

    /// Gives up the records of a table's previous layout, and counts the cells that were dropped with it.
    fn give_up_layout(&self, tablet: &Tablet, table: &AdjacencyTable, garbage: &mut Vec<Garbage>) {
        let pin = epoch::pin();
        let Some(previous) = table.previous.get(&pin) else { return };
        for descriptor in &previous.descriptors {
            tablet.lists.prefetch(descriptor.load(Ordering::Relaxed), &pin);
        }
        for descriptor in &previous.descriptors {
            tablet.lists.retire(descriptor.load(Ordering::Acquire), tablet.id.0, garbage, &pin);
        }
        let dropped = std::mem::take(&mut *previous.dropped.lock());
        self.reclaimed.cells.fetch_add(dropped.len() as u64, Ordering::Relaxed);
        self.release_reference(&dropped, garbage);
        self.memory.remove(RecordKind::Descriptor, previous.bytes());
        garbage.extend(table.previous.swap(None).map(Garbage::Box));
        table.retire_blocks(&tablet.lists, garbage, self.space(), &pin);
    }

    /// How the snapshots from `oldest` on see the edge of a cell, in a list that was found under the pin.
    fn standing(&self, pin: &Pin, edge: EdgeId, oldest: u64) -> Standing {
        Standing::of(self.edge_of_cell(edge).version_under(pin, edge.offset()), oldest)
    }
}

struct Compaction<'a> {
    store: &'a Store,
    tablet: &'a Tablet,
    page: &'a VertexPage,
    table: &'a AdjacencyTable,
    name: TableName,
    running: &'a dyn RunningTransactions,
    reached: Reached,
}

impl Compaction<'_> {
    /// Returns how many lists it replaced.
    fn run(&self, effort: Effort, draft: &mut Draft) -> usize {
        // STORE-17: a cursor may be in the previous layout. When that layout is given up, the table is looked at again.
        if self.table.previous.is_some() || !self.is_worthwhile(effort) {
            return 0;
        }
        // One pin a table.
        draft.clear();
        self.compact(effort, draft, &epoch::pin())
    }

    fn is_worthwhile(&self, effort: Effort) -> bool {
        let changes = &self.table.changes;
        match effort {
            Effort::All => changes.weight() > 0,
            Effort::Due => changes.is_due(),
            Effort::Worthwhile if changes.is_quiet() => changes.is_part_of(self.page.core.used(), QUIET_PERCENT),
            Effort::Worthwhile => changes.is_due(),
        }
    }

    fn compact(&self, effort: Effort, draft: &mut Draft, pin: &Pin) -> usize {
        let (store, table) = (self.store, self.table);
        let version = table.take_layout_version(pin);
        // Changes that come from here on count for the next compaction.
        table.changes.restart();
        draft.slots.extend(table.descriptors.slots(pin));
        table.prefetch_names(pin);
        for first in (0..draft.slots.len()).step_by(GROUP) {
            let group = first..draft.slots.len().min(first + GROUP);
            self.prefetch(&draft.slots[group.clone()], pin);
            draft.checks.clear();
            let begin = |nth| self.begin(draft.slots[nth], version, effort, draft, pin);
            let begun: SmallVec<[Begun<'_>; GROUP]> = group.filter_map(begin).collect();
            let mut checks = std::mem::take(&mut draft.checks);
            self.check(&mut checks, pin);
            begun.iter().for_each(|list| self.draft_list(list, &checks[list.checks.clone()], version, draft));
            draft.checks = checks;
        }
        // A compaction with `Effort::All` has to find the table. All these lists count as one change, so that they do
        // not make the table due.
        table.changes.keep(u32::from(draft.is_some_left));
        if draft.looked.is_empty() {
            self.give_up_empty(pin);
            return 0;
        }
        table.changes.set_limit(draft.looked.len(), draft.neighbors.len());
        if !draft.neighbors.is_empty() {
            table.add_block(version, Block::new(&draft.neighbors, &draft.edges), &store.memory);
        }
        let layout = Layout::new(draft.looked.iter().map(|list| list.seen.at));
        store.memory.add(RecordKind::Descriptor, layout.bytes());
        let none_before = table.previous.swap(Some(layout));
        assert!(none_before.is_none(), "a table has one previous layout at most");
        let replaced = self.replace(version, draft, pin);
        let boundary = self.running.next_transaction();
        self.tablet.tasks.lock().layouts.push_back((boundary, self.name));
        store.reclaimed.tables.fetch_add(1, Ordering::Relaxed);
        replaced
    }

    /// Gives up the blocks and descriptors of a table whose lists have gone with their vertices.
    fn give_up_empty(&self, pin: &Pin) {
        let mut garbage = Vec::new();
        self.table.retire_blocks(&self.tablet.lists, &mut garbage, self.store.space(), pin);
        self.store.collectors_limbo.take_in(garbage);
    }

    /// Starts loading the parts of lists with headers, step by step for all of them: header, tail.
    fn prefetch(&self, group: &[usize], pin: &Pin) {
        let (table, lists) = (self.table, &self.tablet.lists);
        group.iter().for_each(|&at| lists.prefetch(table.descriptor(at, pin), pin));
        group.iter().for_each(|&at| lists.prefetch_tail(table.descriptor(at, pin), pin));
    }

    /// Begins to look at a list, unless it stays as it is: names its edges that are checked.
    fn begin<'p>(
        &'p self,
        at: usize,
        version: u32,
        effort: Effort,
        draft: &mut Draft,
        pin: &'p Pin,
    ) -> Option<Begun<'p>> {
        let (table, lists) = (self.table, &self.tablet.lists);
        let mut descriptor = table.descriptor(at, pin);
        if descriptor & HEADER != 0 {
            let figures = table.figures(descriptor, lists, pin);
            // If the version has come round to that of the list, the next compaction takes another version.
            if !self.is_due(&figures, effort) || figures.layout_version == version {
                draft.is_some_left |= self.is_due(&figures, Effort::All);
                return None;
            }
        }
        if !is_clean_run(descriptor) {
            // Before an edge is checked (STORE-13).
            descriptor = table.begin_compaction(at, self.store.space(), pin);
        }
        if descriptor == 0 {
            return None;
        }
        let list = table.list_of(descriptor, lists, pin);
        let first = draft.checks.len();
        draft.checks.extend(list.tail(0).map(|(_, neighbor, edge)| Check::new((neighbor, edge), 0)));
        list.suspects.each(|at| draft.checks.push(Check::new((list.neighbors[at], list.edges[at]), at)));
        let checks = first..draft.checks.len();
        Some(Begun { at, descriptor, list, checks })
    }

    /// Checks edges: reads their versions.
    fn check(&self, checks: &mut [Check], pin: &Pin) {
        for checks in checks.chunks_mut(CHECKED_TOGETHER) {
            self.store.prefetch_versions(checks.iter().map(|check| check.cell.1), pin);
            for check in checks {
                check.standing = self.store.standing(pin, check.cell.1, self.reached.oldest_snapshot);
            }
        }
    }

    /// Drafts the list that replaces one in layout `version`.
    fn draft_list(&self, begun: &Begun<'_>, checks: &[Check], version: u32, draft: &mut Draft) {
        let Begun { at, descriptor, list, .. } = begun;
        let (first, first_young) = (draft.neighbors.len(), draft.young.len());
        self.draft_cells(list, checks, draft);
        let seen = Seen { at: *at, descriptor: *descriptor, tail_len: list.tail_len, new_layout: version };
        let (mut run, mut own) = (first..draft.neighbors.len(), None);
        if run.len() as u64 >= self.long_list() {
            own = Some(Block::new(&draft.neighbors[first..], &draft.edges[first..]));
            run = 0..run.len();
            draft.neighbors.truncate(first);
            draft.edges.truncate(first);
        }
        draft.looked.push(Looked { seen, run, own, young: first_young..draft.young.len() });
    }

    /// Drafts the run and the tail of a list whose edges were checked.
    fn draft_cells(&self, list: &List<'_>, checks: &[Check], draft: &mut Draft) {
        draft.fresh.clear();
        draft.leaving.clear();
        let (of_tail, of_run) = checks.split_at(list.tail_len as usize);
        for check in of_tail {
            match check.standing {
                Standing::Frozen => draft.fresh.push(check.cell),
                _ => draft.leave(check),
            }
        }
        for check in of_run.iter().filter(|check| check.standing != Standing::Frozen) {
            draft.leave(check);
            draft.leaving.push(check.at);
        }
        draft.fresh.sort_unstable();
        draft.merge((list.neighbors, list.edges));
    }

    fn replace(&self, version: u32, draft: &mut Draft, pin: &Pin) -> usize {
        let (store, table, lists) = (self.store, self.table, &self.tablet.lists);
        let previous = table.previous.get(pin).expect("this thread has the turn, and put it there");
        let (replaced, mut left) = (draft.looked.len(), 0);
        for (Looked { seen, run, own, young }, remembered) in draft.looked.drain(..).zip(&previous.descriptors) {
            let tail = &draft.young[young];
            let made = table.make_list(NewList { layout_version: version, run, own, tail }, lists, &store.memory, pin);
            let is_as_built = table.replace(&seen, made, remembered, lists, store.space(), pin);
            left += u32::from(!tail.is_empty() || !is_as_built);
        }
        previous.dropped.lock().extend(draft.dropped.drain(..));
        // Lists that are not clean yet need another compaction.
        table.changes.keep(left);
        replaced
    }

    fn long_list(&self) -> u64 {
        self.store.sizes.long_list.into()
    }

    /// Returns true if a list with a header is to be packed.
    fn is_due(&self, figures: &ListFigures, effort: Effort) -> bool {
        let ListFigures { packed, is_apart, tail, ended, is_dirty, .. } = *figures;
        // A long list without a block to itself gets one first.
        if packed < self.long_list() || !is_apart {
            return true;
        }
        match effort {
            Effort::All => tail > 0 || is_dirty,
            Effort::Worthwhile | Effort::Due => (tail + ended) * LONG_LIST_PART >= packed,
        }
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use mangrove_graph::TabletId;

    use super::*;

    /// Beside a sort, with cells that come and leave anywhere in the run, parallel edges and runs without a cell among them.
    #[test]
    fn runs_are_merged_with_cells_that_come_and_without_those_that_leave() {
        let mut random = 1_u64;
        let mut below = |n: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % n
        };
        for round in 0..3_000_u64 {
            let ids = 1 + below(40);
            let mut cells = |count: u64, first: u64| -> Vec<(VertexId, EdgeId)> {
                let edge = |n| EdgeId::new(TabletId(1), (n * 7_919) % 10_007);
                (0..count).map(|n| (VertexId::new(TabletId(1), below(ids)), edge(first + n))).collect()
            };
            let (mut run, fresh) = (cells(round % 50, 0), cells(round % 7, 100));
            run.sort_unstable();
            let mut draft = Draft { fresh, ..Draft::default() };
            draft.fresh.sort_unstable();
            draft.leaving = (0..run.len()).filter(|_| below(1 + round % 9) == 0).collect();
            let kept = run.iter().enumerate().filter(|(at, _)| !draft.leaving.contains(at)).map(|(_, cell)| *cell);
            let mut expected: Vec<_> = kept.chain(draft.fresh.iter().copied()).collect();
            expected.sort_unstable();
            let (neighbors, edges): (Vec<_>, Vec<_>) = run.into_iter().unzip();
            draft.merge((&neighbors, &edges));
            let merged = draft.neighbors.iter().copied().zip(draft.edges.iter().copied());
            assert!(merged.eq(expected), "round {round}");
        }
    }
}
