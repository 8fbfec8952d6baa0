//! Reclamation: what transactions left becomes free records.
//!
//! Most of it is done by committers, each behind itself ([`Store::sweep`]): versions are cut off, edges taken apart, and
//! what has left limbo is given back. The rest waits for a collector ([`Store::collect`]), which also does a committer's
//! part where that does not come again.
//!
//! Everything here looks at the state it finds, not at what the log said, so that what is done twice, late, or for an
//! element that is another one by now does nothing. Any number of threads cut versions and take edges apart; one thread
//! at a time works in a tablet (its `turn`) on vertices, pages and tables. Nothing here takes a lock that a reader or a
//! writer would wait for, but for latches of single lists and shards of indexes, for the time of one list or entry.
//!
//! What goes which way, once no running snapshot reads it:
//!
//! | what | taken away by | given back |
//! |---|---|---|
//! | undo record | [`crate::cell::column::Column::cut`] | a grace period later |
//! | record of the value region | with the cell or the undo record that named it | two grace periods later: the first for those who read the name, the second for those who read the content |
//! | entry of a property index | when the last version with the value goes, under the lock of its shard | at once |
//! | entry of the id index | with its element | at once, as a tombstone |
//! | slot of a vertex | its lists are emptied, its columns cleared | a grace period later |
//! | slot of an edge | its cells leave two lists, its columns are cleared: three references | a grace period after the last |
//!
//! An element's begin word is made `NEVER` when its place is given up and the end word only when it is given back:
//! a reader that finds the one in its old state and the other in its new would see an element that never was.

#![expect(unsafe_code, reason = "clears records of the value region when their grace period is over")]

use std::sync::atomic::Ordering;

use mangrove_graph::{Direction, EdgeId, ElementId, ElementKind, KeyId, VertexId};
use mangrove_reclaim::epoch;

use crate::cell::{Content, RawCell, undo};
use crate::index::IdKey;
use crate::memory::{BEHIND_WRITES, Backlog, ChunkedArray, Garbage, GarbageReport, Write};
use crate::page::{
    Closing, Cursor, Freezing, PageCore, PagePosition, SlotPage, TableName, Tablet, VertexPage, page_core,
    value_garbage,
};
use crate::store::{Slot, Store};
use crate::version::{NEVER, Standing};

/// Tasks of one type that are worth a visit to a tablet.
const BATCH: usize = 16;
/// Tasks of all tablets that are worth a collector's round.
const TASKS_WORTH: u64 = 32;
/// Reference counts that are loaded ahead.
const RELEASES_AHEAD: usize = 8;
/// Writes, and things in limbo, that are worked off under one pin.
const QUANTUM: usize = 512;

/// What the collector knows about running transactions.
pub trait RunningTransactions: Sync {
    /// No running or future transaction reads at an earlier timestamp.
    fn oldest_snapshot(&self) -> u64;
    /// No transaction with a smaller number is running.
    fn oldest_transaction(&self) -> u64;
    /// The number that the next transaction gets: all that exist have smaller ones.
    fn next_transaction(&self) -> u64;
}

impl Store {
    // --- Hand-over ----------------------------------------------------------------------------------

    /// Takes over the log of a commit that was installed at `ts`.
    pub fn retire(&self, log: Vec<Write>, ts: u64) -> Backlog {
        self.queue.push(ts, log, &self.memory)
    }

    /// Takes over the log of a transaction that was rolled back.
    pub fn retire_aborted(&self, log: Vec<Write>) {
        if !log.is_empty() {
            self.limbo.take_in(vec![Garbage::Aborted(log)]);
        }
    }

    /// Gives up a value that no cell names (any more).
    pub(crate) fn discard(&self, tablet: &Tablet, cell: RawCell) {
        self.limbo.take_in(value_garbage(tablet, cell).into_iter().collect());
    }

    /// Gives up a slot that was reserved, and whose element never began for anybody.
    pub(crate) fn give_up(&self, element: ElementId, slot: &Slot<'_>) {
        let id = slot.core.user_id(slot.at);
        slot.core.clear_user_id(slot.at);
        let garbage = value_garbage(slot.tablet, id).into_iter().chain([Garbage::Slot(element)]);
        self.limbo.take_in(garbage.collect());
    }

    /// What waits, and what was done.
    pub fn garbage(&self) -> GarbageReport {
        let load = |counter: &mangrove_reclaim::sync::AtomicU64| counter.load(Ordering::Relaxed);
        let done = &self.reclaimed;
        GarbageReport {
            queued_writes: self.queue.len() as u64,
            tasks: self.tablets.iter().map(|tablet| tablet.tasks.lock().len() as u64).sum(),
            in_limbo: (self.limbo.len() + self.collectors_limbo.len()) as u64,
            versions: load(&done.versions),
            values: load(&done.values),
            vertices: load(&done.vertices),
            edges: load(&done.edges),
            cells: load(&done.cells),
            tables: load(&done.tables),
            pages: load(&done.pages),
        }
    }

    /// How many slots were ever given to an element: pages are filled from the front.
    pub fn reserved_slots(&self) -> u64 {
        let cores = |kind| self.tablets.iter().flat_map(move |tablet| tablet.cores(kind));
        let all = cores(ElementKind::Vertex).chain(cores(ElementKind::Edge));
        all.map(|(_, core)| core.used()).sum::<usize>() as u64
    }

    /// How many of these are free for another one.
    pub fn free_slots(&self) -> u64 {
        let edges = self.tablets.iter().map(|tablet| &tablet.edge_cursors);
        let free = |cursors: &ChunkedArray<Cursor, 3>| cursors.iter().map(|cursor| cursor.free.len()).sum::<u64>();
        edges.chain([&self.vertex_cursors]).map(free).sum()
    }

    /// About how many writes wait to be worked off.
    pub fn garbage_waiting(&self) -> usize {
        self.queue.len_about()
    }

    /// Whether there is enough for a collector: tasks that tablets were given since one last looked, or more writes
    /// than those who hand them over come to.
    pub fn is_collector_wanted(&self) -> bool {
        self.tasks_given.load(Ordering::Relaxed) >= TASKS_WORTH || self.queue.len_about() >= BEHIND_WRITES
    }

    // --- Rounds -------------------------------------------------------------------------------------

    /// Clears up behind the calling thread: works off what it has handed over and every snapshot has passed, the
    /// oldest of which reads at `oldest`, and gives back some of what has left limbo.
    pub fn sweep(&self, oldest: u64) {
        let oldest = self.note_oldest(oldest);
        let writes = self.queue.take_own(oldest, &self.memory);
        writes.chunks(QUANTUM).for_each(|writes| self.work(writes, oldest));
        self.release(QUANTUM);
    }

    /// One round of a collector: gives back what left limbo, works off about `limit` writes of the queue, and the
    /// tasks of every tablet that has a batch of them (`all`: of every tablet). Returns how much there was to do; 0
    /// when nothing more can be done now.
    pub fn collect(&self, running: &dyn RunningTransactions, limit: usize, all: bool) -> usize {
        let oldest = self.note_oldest(running.oldest_snapshot());
        self.tasks_given.store(0, Ordering::Relaxed);
        let mut done = self.release_of_collectors();
        done += self.release(if all { usize::MAX } else { QUANTUM });
        self.installing.tidy();
        for log in self.queue.take(oldest, limit, all, &self.memory) {
            done += log.len();
            log.chunks(QUANTUM).for_each(|writes| self.work(writes, oldest));
        }
        for tablet in &self.tablets {
            let turn = if all { Some(tablet.turn.lock()) } else { tablet.turn.try_lock() };
            if turn.is_some() {
                done += self.work_vertices(tablet, all) + self.work_pages(tablet, all);
            }
            if turn.is_some() && all {
                done += self.give_back_chunks(tablet);
            }
        }
        done
    }

    /// Gives up what the lists of a tablet have left empty of their pools; how many pieces it was. Not behind every
    /// commit: what is empty for a moment is soon needed again.
    fn give_back_chunks(&self, tablet: &Tablet) -> usize {
        let mut garbage = Vec::new();
        let count = tablet.lists.give_back_chunks(&self.memory, &mut garbage);
        self.collectors_limbo.take_in(garbage);
        count
    }

    /// The oldest snapshot, as the latest of all looks at it said: what was true once stays true, though a
    /// transaction that is just beginning may make a later look say less.
    fn note_oldest(&self, oldest: u64) -> u64 {
        self.oldest_seen.fetch_max(oldest, Ordering::SeqCst).max(oldest)
    }

    /// The latest look. Asked after tasks were taken, it is at least what they were given for.
    fn oldest_seen(&self) -> u64 {
        self.oldest_seen.load(Ordering::SeqCst)
    }

    /// Gives back about `limit` things that readers have left behind.
    pub(crate) fn release(&self, limit: usize) -> usize {
        let mut second = Vec::new();
        let count = self.limbo.release(limit, |garbage| self.give_back(garbage, &mut second));
        self.limbo.take_in(second);
        count
    }

    /// Gives back what collectors have unlinked and readers have left behind.
    fn release_of_collectors(&self) -> usize {
        let mut second = Vec::new();
        let count = self.collectors_limbo.release(usize::MAX, |garbage| self.give_back(garbage, &mut second));
        self.collectors_limbo.take_in(second);
        count
    }

    fn pools(&self, tablet: u16) -> &Tablet {
        self.tablet(mangrove_graph::TabletId(tablet)).expect("garbage names tablets there are")
    }

    fn give_back(&self, garbage: Garbage, second: &mut Vec<Garbage>) {
        match garbage {
            Garbage::Box(_) => unreachable!("the limbo frees boxes"),
            Garbage::Undo { tablet, record } => {
                self.reclaimed.versions.fetch_add(1, Ordering::Relaxed);
                self.pools(tablet).undo.free(record);
            }
            Garbage::Value { tablet, record } => {
                if self.pools(tablet).values.retire(record, &self.memory) {
                    second.push(Garbage::DyingValue { tablet, record });
                }
            }
            Garbage::DyingValue { tablet, record } => {
                self.reclaimed.values.fetch_add(1, Ordering::Relaxed);
                // SAFETY: it went into limbo after `retire` had refused it to readers, and came out now.
                unsafe { self.pools(tablet).values.clear(record) }
            }
            Garbage::Header { tablet, record } => {
                let own = self.pools(tablet).lists.free_header(record, &self.memory);
                second.extend(own.map(Garbage::Box));
            }
            Garbage::Row { tablet, start, len } => self.pools(tablet).lists.free_row(start, len),
            Garbage::Slot(element) => self.recycle_slot(element),
            Garbage::Aborted(log) => self.work_aborted(&log, second),
        }
    }

    /// Lets another element have a slot.
    fn recycle_slot(&self, element: ElementId) {
        let slot = self.slot(element).expect("a slot is freed once a generation");
        let pin = epoch::pin();
        // Begin is NEVER since the slot was given up.
        slot.core.versions(&pin, &self.memory)[slot.at].end.store(NEVER, Ordering::Release);
        let (kind, number, counter) = match element {
            ElementId::Vertex(id) => (ElementKind::Vertex, id.page(), &self.reclaimed.vertices),
            ElementId::Edge(id) => (ElementKind::Edge, id.page(), &self.reclaimed.edges),
        };
        counter.fetch_add(1, Ordering::Relaxed);
        let position = PagePosition { number, tablet: slot.tablet.id };
        let page = SlotPage { kind, position, core: slot.core };
        self.cursor(slot.tablet, kind, slot.core.label).free.give(page, slot.at);
        slot.tablet.note_free_slots();
    }

    // --- Tasks of tablets ---------------------------------------------------------------------------

    /// Has a table compacted that has become due; asked by the one who enlisted it.
    pub(crate) fn give_table(&self, tablet: &Tablet, name: TableName) {
        tablet.tasks.lock().tables.push(name);
        self.tasks_given.fetch_add(1, Ordering::Relaxed);
    }

    /// Has the page of an element frozen, if the element may be the last that was missing. A hint: an element that
    /// begins while a collector looks at its page may be missed, until the next one.
    pub(crate) fn give_page(&self, tablet: &Tablet, core: &PageCore, element: ElementId) {
        if core.is_full_for_good() && core.enlist() {
            let page = match element {
                ElementId::Vertex(id) => (ElementKind::Vertex, id.page() as u32),
                ElementId::Edge(id) => (ElementKind::Edge, id.page() as u32),
            };
            tablet.tasks.lock().pages.push(page);
        }
    }

    fn give_vertex(&self, id: VertexId) {
        if let Some((tablet, _)) = self.vertex_page(id) {
            tablet.tasks.lock().vertices.push(id);
            self.tasks_given.fetch_add(1, Ordering::Relaxed);
        }
    }

    // --- Logs ---------------------------------------------------------------------------------------

    /// Works off writes of commits that every snapshot sees.
    fn work(&self, writes: &[Write], oldest: u64) {
        let _pin = epoch::pin();
        let mut garbage = Vec::with_capacity(2 * writes.len());
        for write in writes {
            match *write {
                Write::Property { element, key, .. } => self.cut(element, key, oldest, &mut garbage),
                Write::End(ElementId::Vertex(id)) => self.give_vertex(id),
                Write::End(ElementId::Edge(id)) => self.end_edge(id, oldest, &mut garbage),
                Write::Begin(_) => {}
            }
        }
        self.limbo.take_in(garbage);
    }

    /// Works off what was rolled back, now that nobody reads what was there before the rollback.
    fn work_aborted(&self, log: &[Write], garbage: &mut Vec<Garbage>) {
        let (_pin, oldest) = (epoch::pin(), self.oldest_seen());
        for write in log {
            if let Write::Property { element, undo, .. } = *write
                && let Some(slot) = self.slot(element)
            {
                undo::end_rollback(undo, &slot.tablet.undo);
            }
        }
        for write in log {
            match *write {
                Write::Property { element, key, .. } => self.cut(element, key, oldest, garbage),
                Write::Begin(ElementId::Vertex(id)) => self.give_vertex(id),
                Write::Begin(ElementId::Edge(id)) => self.end_edge(id, oldest, garbage),
                // A deletion that was taken back may have been the last reason that the page had version words.
                Write::End(element) => {
                    if let Some(slot) = self.slot(element) {
                        self.give_page(slot.tablet, slot.core, element);
                    }
                }
            }
        }
    }

    // --- Cells --------------------------------------------------------------------------------------

    fn cut(&self, element: ElementId, key: KeyId, oldest: u64, garbage: &mut Vec<Garbage>) {
        let Some(slot) = self.slot(element) else { return };
        let Some(column) = slot.core.column(key) else { return };
        let first = garbage.len();
        column.cut(slot.at, oldest, &slot.tablet.undo, |record| {
            garbage.push(Garbage::Undo { tablet: slot.tablet.id.0, record });
        });
        self.drop_values(element, &slot, key, first, garbage);
    }

    /// Adds the values of the undo records in `garbage[first..]`, which were cut off, and forgets them in indexes.
    fn drop_values(&self, element: ElementId, slot: &Slot<'_>, key: KeyId, first: usize, garbage: &mut Vec<Garbage>) {
        for at in first..garbage.len() {
            let Garbage::Undo { record, .. } = garbage[at] else { continue };
            let old = undo::old_value(record, &slot.tablet.undo);
            if !old.is_absent() {
                self.forget_value(element, slot, key, old);
                garbage.extend(value_garbage(slot.tablet, old));
            }
        }
    }

    /// Takes the entries of a value that left a cell out of the indexes, unless another version still has it.
    pub(crate) fn forget_value(&self, element: ElementId, slot: &Slot<'_>, key: KeyId, cell: RawCell) {
        if let ElementId::Vertex(id) = element
            && !self.indexes.load().is_empty()
        {
            slot.tablet.values.values(cell, |value| self.unindex_value(id, key, value));
        }
    }

    // --- Pages --------------------------------------------------------------------------------------

    fn work_pages(&self, tablet: &Tablet, all: bool) -> usize {
        let pages = {
            let mut tasks = tablet.tasks.lock();
            // Looking at a page may cost a thousand words: not after every commit.
            if tasks.pages.is_empty() || (!all && tasks.pages.len() < BATCH) {
                return 0;
            }
            std::mem::take(&mut tasks.pages)
        };
        let oldest = self.oldest_seen();
        let mut done = 0;
        for &(kind, number) in &pages {
            let Some(core) = page_core(tablet, kind, number as usize) else { continue };
            core.delist();
            match self.freeze_page(tablet, kind, number as usize, oldest, 0) {
                Freezing::Done => done += 1,
                Freezing::TooYoung if core.enlist() => tablet.tasks.lock().pages.push((kind, number)),
                Freezing::TooYoung => {}
                Freezing::NotNow => tablet.note_free_slots(),
            }
        }
        done
    }

    /// Freezes a page, of which so many slots were withdrawn.
    fn freeze_page(
        &self,
        tablet: &Tablet,
        kind: ElementKind,
        number: usize,
        oldest: u64,
        free_slots: usize,
    ) -> Freezing {
        let (pin, mut garbage) = (epoch::pin(), Vec::new());
        let mut closing = Closing { memory: &self.memory, garbage: &mut garbage, pin: &pin, free_slots };
        let freezing = match kind {
            ElementKind::Vertex => {
                tablet.vertices.get(number).map(|page| page.core.freeze(oldest, &mut closing, |_, _| {}))
            }
            ElementKind::Edge => tablet.edges.get(number).map(|page| {
                page.core.freeze(oldest, &mut closing, |free_slots, closing| {
                    page.shrink(free_slots, closing.memory, closing.garbage, closing.pin);
                })
            }),
        };
        if freezing == Some(Freezing::Done) {
            self.reclaimed.pages.fetch_add(1, Ordering::Relaxed);
        }
        self.collectors_limbo.take_in(garbage);
        freezing.unwrap_or(Freezing::NotNow)
    }

    /// Freezes pages in spite of their free slots: all that have words, or those left alone since the last call. Returns how
    /// many. By who has the tablet's turn.
    pub(crate) fn freeze_with_free_slots(&self, tablet: &Tablet, oldest: u64, is_all: bool) -> usize {
        let mut done = 0;
        for kind in [ElementKind::Vertex, ElementKind::Edge] {
            for (number, core) in tablet.cores(kind) {
                if !core.has_versions() || !core.is_full_for_good() {
                    continue;
                }
                if !(core.is_quiet() || is_all) {
                    tablet.note_free_slots();
                    continue;
                }
                done += usize::from(self.freeze_page_with_free_slots(tablet, core, (kind, number), oldest));
            }
        }
        done
    }

    fn freeze_page_with_free_slots(
        &self,
        tablet: &Tablet,
        core: &PageCore,
        page: (ElementKind, usize),
        oldest: u64,
    ) -> bool {
        let (kind, number) = page;
        let pin = epoch::pin();
        let free = &self.cursor(tablet, kind, core.label).free;
        // The pin first: an element that ends once the page is frozen does not give back its slot before the account
        // knows that.
        let page = SlotPage { kind, position: PagePosition { number, tablet: tablet.id }, core };
        let Some(withdrawn) = free.withdraw(page, &pin) else { return false };
        let freezing = self.freeze_page(tablet, kind, number, oldest, withdrawn.slot_count());
        if freezing == Freezing::TooYoung {
            tablet.note_free_slots();
        }
        free.put_back(withdrawn, core.capacity(), freezing == Freezing::Done);
        freezing == Freezing::Done
    }

    // --- Elements -----------------------------------------------------------------------------------

    fn work_vertices(&self, tablet: &Tablet, all: bool) -> usize {
        let vertices = {
            let mut tasks = tablet.tasks.lock();
            if tasks.vertices.is_empty() || (!all && tasks.vertices.len() < BATCH) {
                return 0;
            }
            std::mem::take(&mut tasks.vertices)
        };
        let oldest = self.oldest_seen();
        let _pin = epoch::pin();
        let mut garbage = Vec::new();
        for &id in &vertices {
            let element = ElementId::Vertex(id);
            if let Some(slot) = self.over(element, oldest) {
                self.take_apart(element, &slot, &mut garbage);
                self.empty_lists(id, slot.tablet, &mut garbage);
                garbage.push(Garbage::Slot(element));
            }
        }
        self.collectors_limbo.take_in(garbage);
        vertices.len()
    }

    fn end_edge(&self, id: EdgeId, oldest: u64, garbage: &mut Vec<Garbage>) {
        let element = ElementId::Edge(id);
        if let Some(slot) = self.over(element, oldest) {
            self.take_apart(element, &slot, garbage);
            self.release_reference(&[id], garbage);
        }
    }

    /// The slot of an element that no snapshot sees, as the collector was told.
    fn over(&self, element: ElementId, oldest: u64) -> Option<Slot<'_>> {
        let slot = self.slot(element)?;
        let standing = Standing::of(slot.core.version(slot.at), oldest);
        debug_assert!(standing.is_unseen(), "{element:?} was handed over while it is {standing:?}");
        standing.is_unseen().then_some(slot)
    }

    /// Takes away what an element left that nobody sees any more.
    fn take_apart(&self, element: ElementId, slot: &Slot<'_>, garbage: &mut Vec<Garbage>) {
        let pin = epoch::pin();
        slot.core.versions(&pin, &self.memory)[slot.at].begin.store(NEVER, Ordering::Release);
        self.drop_user_id(element, slot, garbage);
        if let ElementId::Vertex(id) = element {
            self.unindex_vertex(id);
        }
        for (_, column) in slot.core.columns() {
            let first = garbage.len();
            let cell = column.clear(slot.at, &slot.tablet.undo, |record| {
                garbage.push(Garbage::Undo { tablet: slot.tablet.id.0, record });
            });
            garbage.extend(value_garbage(slot.tablet, cell));
            for at in first..garbage.len() {
                if let Garbage::Undo { record, .. } = garbage[at] {
                    let old = undo::old_value(record, &slot.tablet.undo);
                    garbage.extend(value_garbage(slot.tablet, old));
                }
            }
        }
    }

    fn drop_user_id(&self, element: ElementId, slot: &Slot<'_>, garbage: &mut Vec<Garbage>) {
        let cell = slot.core.user_id(slot.at);
        if let Content::One(value) = slot.tablet.values.decode(cell)
            && let Some(id) = mangrove_graph::UserId::from_value(&value)
        {
            let bits = match element {
                ElementId::Vertex(id) => id.to_bits(),
                ElementId::Edge(id) => id.to_bits(),
            };
            self.ids_of(element).remove(IdKey::of(&id), bits);
            slot.core.clear_user_id(slot.at);
            garbage.extend(value_garbage(slot.tablet, cell));
        }
    }

    /// Empties the lists of a vertex: their edges are all over, or the vertex would not be.
    fn empty_lists(&self, id: VertexId, tablet: &Tablet, garbage: &mut Vec<Garbage>) {
        let page: &VertexPage = tablet.vertices.get(id.page()).expect("the vertex has a slot on it");
        let mut dropped = Vec::new();
        for direction in [Direction::Out, Direction::In] {
            for (_, table) in page.tables(direction).iter() {
                table.empty(id.offset(), (&tablet.lists, tablet.id.0), self.space(), garbage, &mut dropped);
            }
        }
        self.release_reference(&dropped, garbage);
    }

    /// Counts that cells of edges that are over have left a list, or the edges their columns.
    pub(crate) fn release_reference(&self, edges: &[EdgeId], garbage: &mut Vec<Garbage>) {
        let pin = epoch::pin();
        for (at, &edge) in edges.iter().enumerate() {
            if let Some((_, page)) = edges.get(at + RELEASES_AHEAD).and_then(|ahead| self.edge_page(*ahead)) {
                page.prefetch_references(edges[at + RELEASES_AHEAD].offset(), &pin);
            }
            // The place is its own until the last release.
            if let Some((_, page)) = self.edge_page(edge)
                && page.release_reference(edge.offset(), &self.memory, &pin)
            {
                garbage.push(Garbage::Slot(ElementId::Edge(edge)));
            }
        }
    }
}
