//! Collection: what finished transactions left becomes free records, free slots and frozen pages.
//!
//! A committer collects most of it after its own commit ([`Store::sweep`]): it cuts off older versions, takes apart
//! edges that ended, and gives back what has left limbo. The rest waits for a collector ([`Store::collect`]). A
//! collector also works off the logs of committers that do not come again.
//!
//! Collection looks at the state that it finds, and takes a log only as a hint where to look. So a log that is worked
//! off twice, late, or after its element's slot has another element does no harm.
//!
//! Any number of threads cut versions and take edges apart. Vertices, pages and tables of a tablet are the work of one
//! thread at a time, the holder of the tablet's `turn`. Readers and writers never wait for a collection, except for the
//! latch of a list or the shard of an index, which is held for one list or one entry.
//!
//! These kinds of garbage are taken away, once no running snapshot reads them:
//!
//! | what | taken away by | given back |
//! |---|---|---|
//! | undo record | [`crate::cell::column::Column::cut`] | a grace period later |
//! | record of the value region | the loss of the cell or undo record that named it | two grace periods later: the first for readers of the name, the second for readers of the content |
//! | entry of a property index | the loss of the last version with the value, under the lock of the entry's shard | at once |
//! | entry of the id index | the loss of its element | at once, as a tombstone |
//! | slot of a vertex | emptying its lists and clearing its columns | a grace period later |
//! | slot of an edge | removing its cells from two lists and clearing its columns: three references (STORE-18) | a grace period after the last |
//!
//! - **STORE-35.** An element's begin word becomes `NEVER` when the element is taken apart, and its end word a grace
//!   period later, when its slot is given back. So no reader combines one word from before with the other from after,
//!   which would show an element that does not exist.

#![expect(unsafe_code, reason = "clears records of the value region when their grace period is over")]

use std::sync::atomic::Ordering;

use mangrove_graph::{Direction, EdgeId, ElementId, ElementKind, KeyId, VertexId};
use mangrove_reclaim::{RELEASED_TOGETHER, epoch};
use smallvec::SmallVec;

use crate::cell::{Content, RawCell, undo};
use crate::index::IdKey;
use crate::memory::{BEHIND_WRITES, Backlog, ChunkedArray, Garbage, GarbageReport, Write};
use crate::page::{
    Closing, Cursor, Freezing, PageCore, PageName, PagePosition, SlotPage, SlotPosition, TableName, Tablet, VertexPage,
    page_core, value_garbage,
};
use crate::store::{Slot, Store};
use crate::version::{NEVER, Standing};

/// So many tasks of one type are worth a visit to a tablet.
const TASKS_BATCH: usize = 16;
/// So many tasks of all tablets are worth a collector's round.
const TASKS_WORTH: u64 = 32;
/// How many writes are worked off under one pin, and about how many things are taken out of limbo in one call.
const WRITES_A_PIN: usize = 512;

/// The figures of running transactions that a collector needs.
pub trait RunningTransactions: Sync {
    /// A timestamp. No running or future transaction reads at an earlier one.
    fn oldest_snapshot(&self) -> u64;
    /// A transaction number. No transaction with a smaller one is running.
    fn oldest_transaction(&self) -> u64;
    /// A transaction number that is greater than those of all transactions so far.
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

    /// Gives up a value that no cell names.
    pub(crate) fn discard(&self, tablet: &Tablet, cell: RawCell) {
        self.limbo.take_in(value_garbage(tablet, cell).into_iter().collect());
    }

    /// Gives up a slot that was reserved, and whose element has not begun for any transaction.
    pub(crate) fn give_up(&self, element: ElementId, slot: &Slot<'_>) {
        let id = slot.core.user_id(slot.at);
        slot.core.clear_user_id(slot.at);
        let garbage = value_garbage(slot.tablet, id).into_iter().chain([Garbage::Slot(element)]);
        self.limbo.take_in(garbage.collect());
    }

    /// Figures of the garbage that waits to be collected, and of the garbage that was collected so far.
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

    /// How many slots of all pages were ever reserved. Pages are filled from the front.
    pub fn reserved_slots(&self) -> u64 {
        let cores = |kind| self.tablets.iter().flat_map(move |tablet| tablet.cores(kind));
        let all = cores(ElementKind::Vertex).chain(cores(ElementKind::Edge));
        all.map(|(_, core)| core.used()).sum::<usize>() as u64
    }

    /// How many of the reserved slots are free for another element.
    pub fn free_slots(&self) -> u64 {
        let edges = self.tablets.iter().map(|tablet| &tablet.edge_cursors);
        let free = |cursors: &ChunkedArray<Cursor, 3>| cursors.iter().map(|cursor| cursor.free.len()).sum::<u64>();
        edges.chain([&self.vertex_cursors]).map(free).sum()
    }

    /// About how many writes wait to be worked off.
    pub fn garbage_waiting(&self) -> usize {
        self.queue.len_about()
    }

    /// Returns true if a collector is worth its while: tablets were given enough tasks since the last round, or
    /// committers do not keep up with their own writes.
    pub fn is_collector_wanted(&self) -> bool {
        self.tasks_given.load(Ordering::Relaxed) >= TASKS_WORTH || self.queue.len_about() >= BEHIND_WRITES
    }

    // --- Rounds -------------------------------------------------------------------------------------

    /// Collects after the calling committer: works off the logs that it has handed over and that every snapshot has
    /// passed, and gives back some of what has left limbo. The oldest snapshot reads at `oldest`.
    pub fn sweep(&self, oldest: u64) {
        let oldest = self.note_oldest(oldest);
        let writes = self.queue.take_own(oldest, &self.memory);
        writes.chunks(WRITES_A_PIN).for_each(|writes| self.collect_writes(writes, oldest));
        self.release(WRITES_A_PIN);
    }

    /// One round of a collector: gives back what has left limbo, works off about `limit` writes of the queue, and then
    /// the tasks of every tablet that has a batch of them. With `all`, it works off the tasks of every tablet. Returns
    /// how many writes, tasks and things from limbo it worked off: 0 if nothing more can be done now.
    pub fn collect(&self, running: &dyn RunningTransactions, limit: usize, all: bool) -> usize {
        let oldest = self.note_oldest(running.oldest_snapshot());
        self.tasks_given.store(0, Ordering::Relaxed);
        let mut done = self.release_of_collectors();
        done += self.release(if all { usize::MAX } else { WRITES_A_PIN });
        self.installing.tidy();
        for log in self.queue.take(oldest, limit, all, &self.memory) {
            done += log.len();
            log.chunks(WRITES_A_PIN).for_each(|writes| self.collect_writes(writes, oldest));
        }
        for tablet in &self.tablets {
            let turn = if all { Some(tablet.turn.lock()) } else { tablet.turn.try_lock() };
            if turn.is_some() {
                done += self.collect_vertices(tablet, all) + self.freeze_listed(tablet, all);
            }
            if turn.is_some() && all {
                done += self.give_back_chunks(tablet);
            }
        }
        done
    }

    /// Gives up the empty chunks of the pools of a tablet's lists. Returns how many chunks. It is not done after every
    /// commit, since a chunk that is empty for a moment is soon needed again.
    fn give_back_chunks(&self, tablet: &Tablet) -> usize {
        let mut garbage = Vec::new();
        let count = tablet.lists.give_back_chunks(&self.memory, &mut garbage);
        self.collectors_limbo.take_in(garbage);
        count
    }

    /// Notes a timestamp of the oldest snapshot, and returns the greatest that was noted. What was true once stays
    /// true, although a transaction that is just beginning may make a later look return an earlier timestamp.
    fn note_oldest(&self, oldest: u64) -> u64 {
        self.oldest_seen.fetch_max(oldest, Ordering::SeqCst).max(oldest)
    }

    /// The greatest timestamp of the oldest snapshot that was noted. A caller that has taken tasks before gets at least
    /// the timestamp that the tasks were given at.
    fn oldest_seen(&self) -> u64 {
        self.oldest_seen.load(Ordering::SeqCst)
    }

    /// Gives back about `limit` things whose grace period is over.
    pub(crate) fn release(&self, limit: usize) -> usize {
        let mut second = Vec::new();
        let ahead = |group: &[Garbage]| self.prefetch_slots(group);
        let count = self.limbo.release_groups(limit, ahead, |garbage| self.give_back(garbage, &mut second));
        self.limbo.take_in(second);
        count
    }

    /// Gives back the memory that collectors have unlinked, as far as its grace period is over.
    fn release_of_collectors(&self) -> usize {
        let mut second = Vec::new();
        let ahead = |group: &[Garbage]| self.prefetch_slots(group);
        let give_back = |garbage| self.give_back(garbage, &mut second);
        let count = self.collectors_limbo.release_groups(usize::MAX, ahead, give_back);
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
            Garbage::Header { tablet, record, has_block } => {
                let own = self.pools(tablet).lists.free_header(record, has_block, &self.memory);
                second.extend(own.map(Garbage::Box));
            }
            Garbage::Row { tablet, start, len } => self.pools(tablet).lists.free_row(start, len),
            Garbage::Slot(element) => self.recycle_slot(element),
            Garbage::Aborted(log) => self.collect_aborted(&log, second),
        }
    }

    /// Starts loading what [`Store::recycle_slot`] reads and changes, step by step for all slots in the garbage.
    fn prefetch_slots(&self, garbage: &[Garbage]) {
        let pin = epoch::pin();
        let mut slots: SmallVec<[(&PageCore, usize); RELEASED_TOGETHER]> = SmallVec::new();
        for thing in garbage {
            if let Garbage::Slot(element) = *thing {
                let (_, core, position) = self.own_slot(element);
                core.prefetch();
                core.prefetch_counters();
                slots.push((core, position.offset));
            }
        }
        slots.iter().for_each(|(core, at)| core.prefetch_version(&pin, *at));
    }

    /// The tablet, the page and the position of the slot of an element that still has its slot. The caller compares the generation once it is
    /// loaded: here that would be a cache miss.
    fn own_slot(&self, element: ElementId) -> (&Tablet, &PageCore, SlotPosition) {
        let position = SlotPosition::of(element);
        let PageName { tablet, kind, number } = position.page;
        let tablet = self.tablet(tablet).expect("an element is in a tablet");
        let core = page_core(tablet, kind, number as usize).expect("an element has a slot on a page");
        (tablet, core, position)
    }

    /// Gives a slot to the account of free slots.
    fn recycle_slot(&self, element: ElementId) {
        let (tablet, core, SlotPosition { page, offset, generation }) = self.own_slot(element);
        assert_eq!(core.generation(offset), generation, "the slot of {element:?} is freed once a generation");
        let PageName { kind, number, .. } = page;
        let pin = epoch::pin();
        // STORE-35: the begin word is NEVER since the element was taken apart, or because it never began.
        core.versions(&pin, &self.memory)[offset].end.store(NEVER, Ordering::Release);
        let counter = match kind {
            ElementKind::Vertex => &self.reclaimed.vertices,
            ElementKind::Edge => &self.reclaimed.edges,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        let position = PagePosition { number: number as usize, tablet: tablet.id };
        self.cursor(tablet, kind, core.label).free.give_last(SlotPage { kind, position, core }, element);
        tablet.note_free_slots();
    }

    // --- Tasks of tablets ---------------------------------------------------------------------------

    /// Lists a table that has become due for compaction. The caller has enlisted it.
    pub(crate) fn give_table(&self, tablet: &Tablet, name: TableName) {
        tablet.tasks.lock().tables.push(name);
        self.tasks_given.fetch_add(1, Ordering::Relaxed);
    }

    /// Lists the page of an element that has begun, if the page may be frozen then. A hint: a collector that looks at
    /// the page while the element begins may miss it, and then the next element lists the page again.
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
    fn collect_writes(&self, writes: &[Write], oldest: u64) {
        let _pin = epoch::pin();
        let mut garbage = Vec::with_capacity(2 * writes.len());
        for write in writes {
            match *write {
                Write::Property { element, key, .. } => self.cut(element, key, oldest, &mut garbage),
                Write::End(ElementId::Vertex(id)) => self.give_vertex(id),
                Write::End(ElementId::Edge(id)) => self.collect_edge(id, oldest, &mut garbage),
                Write::Begin(_) => {}
            }
        }
        self.limbo.take_in(garbage);
    }

    /// Works off the log of a rollback, a grace period after it. So no reader from before the rollback is left.
    fn collect_aborted(&self, log: &[Write], garbage: &mut Vec<Garbage>) {
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
                Write::Begin(ElementId::Edge(id)) => self.collect_edge(id, oldest, garbage),
                // The claim of this deletion may have been the last reason why the page could not be frozen.
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

    /// Adds to the garbage the values of the undo records in `garbage[first..]`, which were cut off, and takes them out
    /// of the indexes.
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

    /// Takes the entries of a value that left a cell out of the indexes, unless another version of the cell has the
    /// value.
    pub(crate) fn forget_value(&self, element: ElementId, slot: &Slot<'_>, key: KeyId, cell: RawCell) {
        if !self.indexes.load().is_empty() {
            slot.tablet.values.values(cell, |value| self.unindex_value(element, key, value));
        }
    }

    // --- Pages --------------------------------------------------------------------------------------

    /// Freezes the pages that are listed. Returns how many were frozen.
    fn freeze_listed(&self, tablet: &Tablet, all: bool) -> usize {
        let pages = {
            let mut tasks = tablet.tasks.lock();
            // A look at a page may read a thousand words, so it is not worth it after every commit.
            if tasks.pages.is_empty() || (!all && tasks.pages.len() < TASKS_BATCH) {
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

    /// Freezes a page of which `free_slots` slots were withdrawn.
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

    /// Freezes pages in spite of their free slots: with `is_all` all pages that have version words, otherwise those
    /// that were left alone since the last call. Returns how many. The caller has the tablet's turn.
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

    /// Takes apart the vertices that are listed. Returns how many were listed.
    fn collect_vertices(&self, tablet: &Tablet, all: bool) -> usize {
        let vertices = {
            let mut tasks = tablet.tasks.lock();
            if tasks.vertices.is_empty() || (!all && tasks.vertices.len() < TASKS_BATCH) {
                return 0;
            }
            std::mem::take(&mut tasks.vertices)
        };
        let oldest = self.oldest_seen();
        let _pin = epoch::pin();
        let mut garbage = Vec::new();
        for &id in &vertices {
            let element = ElementId::Vertex(id);
            if let Some(slot) = self.unseen_slot(element, oldest) {
                self.take_apart(element, &slot, &mut garbage);
                self.empty_lists(id, slot.tablet, &mut garbage);
                garbage.push(Garbage::Slot(element));
            }
        }
        self.collectors_limbo.take_in(garbage);
        vertices.len()
    }

    /// Takes apart an edge that ended or never began, and releases one of its three references.
    fn collect_edge(&self, id: EdgeId, oldest: u64, garbage: &mut Vec<Garbage>) {
        let element = ElementId::Edge(id);
        if let Some(slot) = self.unseen_slot(element, oldest) {
            self.take_apart(element, &slot, garbage);
            self.release_reference(&[id], garbage);
        }
    }

    /// The slot of an element that was handed over because no snapshot sees it. `None` if another element has the slot
    /// by now.
    fn unseen_slot(&self, element: ElementId, oldest: u64) -> Option<Slot<'_>> {
        let slot = self.slot(element)?;
        let standing = Standing::of(slot.core.version(slot.at), oldest);
        debug_assert!(standing.is_unseen(), "{element:?} was handed over while it is {standing:?}");
        standing.is_unseen().then_some(slot)
    }

    /// Takes an element apart that no snapshot sees: its id, its index entries, and its values with their older
    /// versions.
    fn take_apart(&self, element: ElementId, slot: &Slot<'_>, garbage: &mut Vec<Garbage>) {
        let pin = epoch::pin();
        // STORE-35: the end word follows when the slot is given back.
        slot.core.versions(&pin, &self.memory)[slot.at].begin.store(NEVER, Ordering::Release);
        self.drop_user_id(element, slot, garbage);
        self.unindex_element(element);
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

    /// Empties the lists of a vertex that no snapshot sees. No snapshot sees any of their edges, either.
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

    /// Releases a reference of each edge: its cell has left a list, or its columns were cleared (STORE-18).
    pub(crate) fn release_reference(&self, edges: &[EdgeId], garbage: &mut Vec<Garbage>) {
        for group in edges.chunks(RELEASED_TOGETHER) {
            // An edge has its slot until the last release.
            let cores: SmallVec<[&PageCore; RELEASED_TOGETHER]> =
                group.iter().map(|edge| self.own_slot(ElementId::Edge(*edge)).1).collect();
            cores.iter().for_each(|core| core.prefetch());
            cores.iter().zip(group).for_each(|(core, edge)| core.prefetch_generation(edge.offset()));
            for (core, edge) in cores.iter().zip(group) {
                if core.release_reference(edge.offset(), edge.generation(), &self.memory) {
                    garbage.push(Garbage::Slot(ElementId::Edge(*edge)));
                }
            }
        }
    }
}
