//! Restoring a store: from images of its pages, and from the after-images of the commits that the log has after them.
//!
//! ```text
//! images ──▶ private pages ──▶ redo, in the order of the log ──▶ finish: pack, publish, index ──▶ Store
//! ```
//!
//! A [`Restore`] owns an empty store that no other thread has yet. One thread at a time restores the pages of a tablet
//! ([`Restore::tablet`]), so several tablets are restored in parallel. Redo is applied in place: there are no
//! snapshots, and the last write in the order of the log wins. [`Restore::finish`] does the rest, which needs all
//! tablets. It checks that edges have ends, packs the adjacency, publishes the pages as the base that every snapshot
//! sees, fills the indexes, and makes empty slots free.
//!
//! A restored store differs from the original in nothing that a transaction can observe:
//!
//! 1. Every element has its old id, chosen or not. A slot that had an element is given away under a later generation
//!    (STORE-33).
//! 2. Pages keep their numbers (STORE-34). [`Store::pages_changed_since`] goes on as before: a page from an image
//!    counts as unchanged, and a page that redo touches as changed by that commit.
//! 3. Input is not trusted. A contradiction in it is [`Damage`], which names the page. After damage the store is
//!    dropped.
//! 4. A reserved slot whose element was never committed is a free slot.
//!
//! Not here: files and bytes (`durable`), and the names of labels and keys, which must be put into the catalog first.

mod finish;

use std::fmt;

use hashbrown::HashMap;
use mangrove_graph::{
    EdgeId, ElementId, ElementKind, GENERATION_MAX, KeyId, LabelSetId, PAGE_SLOTS, TabletId, UserId, VertexId,
};
use mangrove_locks::{Guard, Mutex, rank};
use mangrove_reclaim::epoch;
use parking_lot::MutexGuard;

use crate::cell::Content;
use crate::load::image::{ColumnImage, PageImage};
use crate::load::staged::HasPageCore;
use crate::memory::{Garbage, Memory};
use crate::page::{EdgePage, PageCore, PageName, SlotPosition, SlotSet, Tablet, VertexPage, value_garbage};
use crate::store::Store;
use crate::version::BASE_TS;
use crate::write::redo::Redo;

pub use finish::{RestorePhase, RestoreSummary, Restored};

/// A contradiction in images or redo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The page on which it was found.
    pub page: PageName,
    /// The contradiction, for people.
    pub message: String,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.page, self.message)
    }
}

impl std::error::Error for Damage {}

fn damage(page: PageName, message: impl Into<String>) -> Damage {
    Damage { page, message: message.into() }
}

/// The result of a step of a restore.
type Outcome<T = ()> = Result<T, Damage>;

/// A page that is being restored, and is not published.
struct PrivatePage<P> {
    page: Box<P>,
    /// The number of slots, from the front, that were ever reserved.
    used: u32,
    /// The slots with an element.
    live: SlotSet,
    /// The timestamp of the last commit that changed the page; the base for a page from an image.
    changed: u64,
}

/// The pages of one kind of one tablet, by number.
type Pages<P> = HashMap<u32, PrivatePage<P>, foldhash::fast::RandomState>;

/// The pages of one tablet.
#[derive(Default)]
struct TabletPages {
    vertices: Pages<VertexPage>,
    edges: Pages<EdgePage>,
    /// Pages of vertices, of any tablet, whose lists redo of this tablet has changed, and by which commit last
    /// (STORE-37). Empty in a store that does not note this.
    changed_lists: HashMap<(TabletId, u32), u64, foldhash::fast::RandomState>,
}

impl TabletPages {
    fn note_lists(&mut self, store: &Store, vertex: VertexId, ts: u64) {
        if store.notes_replayed_lists {
            let last = self.changed_lists.entry((vertex.tablet(), vertex.page() as u32)).or_default();
            *last = ts.max(*last);
        }
    }
}

/// A page of vertices or of edges that is being restored.
trait PageRecord: HasPageCore + Sized {
    /// Makes an empty page.
    fn make(labels: LabelSetId, capacity: u32, memory: &Memory) -> Self;
    /// Copies the part of a slot that is not in the core.
    fn copy_slot(&self, at: usize, to: &mut Self);
    /// Counts the memory of a page out that is about to be dropped.
    fn remove_bytes(&self, memory: &Memory);
}

impl PageRecord for VertexPage {
    fn make(labels: LabelSetId, capacity: u32, memory: &Memory) -> Self {
        VertexPage::clean(labels, capacity, memory)
    }
    fn copy_slot(&self, _at: usize, _to: &mut Self) {}
    fn remove_bytes(&self, memory: &Memory) {
        self.add_bytes(&mut |kind, bytes| memory.remove(kind, bytes));
    }
}

impl PageRecord for EdgePage {
    fn make(labels: LabelSetId, capacity: u32, memory: &Memory) -> Self {
        EdgePage::clean(labels, capacity, memory)
    }
    fn copy_slot(&self, at: usize, to: &mut Self) {
        let (source, target) = self.ends(at, &epoch::pin());
        to.set_own_ends(at, source, target);
    }
    fn remove_bytes(&self, memory: &Memory) {
        self.add_bytes(&mut |kind, bytes| memory.remove(kind, bytes));
    }
}

/// A store that is being restored.
pub struct Restore {
    store: Store,
    /// The pages of each tablet, counting from 0.
    tablets: Box<[Mutex<TabletPages, rank::RestoredTablet>]>,
    /// True for a store that goes on with the commits of another process.
    follows: bool,
}

impl fmt::Debug for Restore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Restore({} tablets)", self.tablets.len())
    }
}

impl Restore {
    /// Restores into an empty store. Panics if something was written to it.
    pub fn new(store: Store) -> Self {
        assert!(store.is_empty(), "a graph is restored into an empty store");
        let tablets = (0..store.tablets.len()).map(|_| Mutex::default()).collect();
        Restore { store, tablets, follows: false }
    }

    /// Restores a store that goes on with the commits of another process ([`crate::Writer::redo`]). Its pages have
    /// room for every slot that the other process may use.
    #[must_use]
    pub fn to_follow(self) -> Self {
        Restore { follows: true, ..self }
    }

    /// The store, whose catalog must have all names before [`Restore::finish`].
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The turn to restore a tablet; `None` if there is no such tablet. Waits while another thread has the turn.
    pub fn tablet(&self, id: TabletId) -> Option<TabletRestore<'_>> {
        let pages = self.tablets.get(usize::from(id.0).checked_sub(1)?)?.lock();
        let first_page_slots = if self.follows { PAGE_SLOTS as u32 } else { self.store.sizes.first_page_slots };
        let tablet = self.store.tablet(id)?;
        let image_slots = if self.follows { PAGE_SLOTS as u32 } else { 0 };
        Some(TabletRestore { store: &self.store, tablet, pages, first_page_slots, image_slots, garbage: Vec::new() })
    }
}

/// The turn to restore one tablet.
///
/// Its methods fail with [`Damage`] if the input contradicts itself or the pages that were restored before.
pub struct TabletRestore<'a> {
    store: &'a Store,
    tablet: &'a Tablet,
    pages: Guard<MutexGuard<'a, TabletPages>, rank::RestoredTablet>,
    /// The fewest slots of a page that redo makes.
    first_page_slots: u32,
    /// The fewest slots of a page from an image.
    image_slots: u32,
    /// Records of values that redo has replaced.
    garbage: Vec<Garbage>,
}

impl Drop for TabletRestore<'_> {
    fn drop(&mut self) {
        if !self.garbage.is_empty() {
            self.store.limbo.take_in(std::mem::take(&mut self.garbage));
            self.store.release(usize::MAX);
        }
    }
}

impl fmt::Debug for TabletRestore<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TabletRestore({})", self.tablet.id.0)
    }
}

impl<'a> TabletRestore<'a> {
    // --- Images -------------------------------------------------------------------------------------

    /// Makes a page from its image. The caller puts in one image of a page, the newest, and does so before any redo.
    pub fn image(&mut self, image: PageImage) -> Outcome {
        let name = image.name;
        if name.tablet != self.tablet.id {
            return Err(damage(name, format!("it is among the pages of tablet {}", self.tablet.id.0)));
        }
        check_image(&image)?;
        let capacity = image.capacity.max(self.image_slots);
        let is_new = match name.kind {
            ElementKind::Vertex => {
                let page = VertexPage::make(image.labels, capacity, &self.store.memory);
                put(&mut self.pages.vertices, self.store, self.tablet, page, image)
            }
            ElementKind::Edge => {
                let mut page = EdgePage::make(image.labels, capacity, &self.store.memory);
                for (at, &(source, target)) in image.live.iter().zip(&image.ends) {
                    page.set_own_ends(at, source, target);
                }
                put(&mut self.pages.edges, self.store, self.tablet, page, image)
            }
        };
        if is_new { Ok(()) } else { Err(damage(name, "there are two images of it")) }
    }

    // --- Redo ---------------------------------------------------------------------------------------

    fn destination(&self) -> Destination<'a> {
        Destination { store: self.store, tablet: self.tablet, first_page_slots: self.first_page_slots }
    }

    /// Redoes that the commit at `ts` has added a vertex.
    pub fn vertex(&mut self, ts: u64, id: VertexId, labels: LabelSetId, chosen: Option<&UserId>) -> Outcome {
        let at = SlotPosition::of(ElementId::Vertex(id));
        self.pages.note_lists(self.store, id, ts);
        let (to, pages) = (self.destination(), &mut self.pages.vertices);
        begin_element(pages, to, ts, at, labels, chosen).map(|_| ())
    }

    /// Redoes that the commit at `ts` has added an edge.
    pub fn edge(
        &mut self,
        ts: u64,
        id: EdgeId,
        labels: LabelSetId,
        ends: (VertexId, VertexId),
        chosen: Option<&UserId>,
    ) -> Outcome {
        let at = SlotPosition::of(ElementId::Edge(id));
        self.pages.note_lists(self.store, ends.0, ts);
        self.pages.note_lists(self.store, ends.1, ts);
        let (to, pages) = (self.destination(), &mut self.pages.edges);
        let page = begin_element(pages, to, ts, at, labels, chosen)?;
        page.set_ends(at.offset, ends.0, ends.1, &self.store.memory, &epoch::pin());
        Ok(())
    }

    /// Redoes that the commit at `ts` has deleted an element.
    pub fn delete(&mut self, ts: u64, element: ElementId) -> Outcome {
        let (slot, tablet) = (SlotPosition::of(element), self.tablet);
        let mut garbage = std::mem::take(&mut self.garbage);
        let (core, live) = self.living(ts, slot, "is deleted")?;
        live.remove(slot.offset);
        garbage.extend(value_garbage(tablet, core.user_id(slot.offset)));
        core.clear_user_id(slot.offset);
        for (_, column) in core.columns() {
            garbage.extend(value_garbage(tablet, column.clear(slot.offset, &tablet.undo, |_| {})));
        }
        self.garbage = garbage;
        match element {
            ElementId::Vertex(id) => self.pages.note_lists(self.store, id, ts),
            ElementId::Edge(_) => {
                let private = self.pages.edges.get(&slot.page.number).expect("the page of an edge that was deleted");
                let (source, target) = private.page.ends(slot.offset, &epoch::pin());
                self.pages.note_lists(self.store, source, ts);
                self.pages.note_lists(self.store, target, ts);
            }
        }
        Ok(())
    }

    /// Redoes that the commit at `ts` has set the values under a key of an element.
    pub fn property(&mut self, ts: u64, element: ElementId, key: KeyId, content: Content) -> Outcome {
        let (slot, store, tablet) = (SlotPosition::of(element), self.store, self.tablet);
        let (core, _) = self.living(ts, slot, "gets a property")?;
        if content == Content::Absent && core.column(key).is_none() {
            return Ok(());
        }
        let column = core.column_or_create(key, &store.memory);
        let old = column.newest(slot.offset);
        column.set_in_place(slot.offset, tablet.values.encode_content(content, &store.memory), store.space());
        self.garbage.extend(value_garbage(tablet, old));
        Ok(())
    }

    /// Applies one after-image of the commit at `ts`.
    pub fn redo(&mut self, ts: u64, redo: Redo) -> Outcome {
        match redo {
            Redo::Insert { element: ElementId::Vertex(id), labels, user_id, .. } => {
                self.vertex(ts, id, labels, user_id.as_ref())
            }
            Redo::Insert { element: ElementId::Edge(id), labels, ends, user_id } => match ends {
                Some(ends) => self.edge(ts, id, labels, ends, user_id.as_ref()),
                None => Err(damage(
                    SlotPosition::of(ElementId::Edge(id)).page,
                    format!("commit {ts} adds an edge without ends"),
                )),
            },
            Redo::Delete(element) => self.delete(ts, element),
            Redo::Property { element, key, content } => self.property(ts, element, key, content),
        }
    }

    /// The core of an element's page, and the page's slots with elements. Notes that the commit at `ts` has changed the
    /// page. Fails if there is no such element; `what` says what the commit does to it.
    fn living(&mut self, ts: u64, slot: SlotPosition, what: &str) -> Outcome<(&PageCore, &mut SlotSet)> {
        fn found<P: HasPageCore>(
            pages: &mut Pages<P>,
            ts: u64,
            slot: SlotPosition,
        ) -> Option<(&PageCore, &mut SlotSet)> {
            let private = pages.get_mut(&slot.page.number)?;
            let core = private.page.core();
            let is_there = private.live.contains(slot.offset) && core.generation(slot.offset) == slot.generation;
            private.changed = private.changed.max(ts);
            is_there.then_some((core, &mut private.live))
        }
        let found = match slot.page.kind {
            ElementKind::Vertex => found(&mut self.pages.vertices, ts, slot),
            ElementKind::Edge => found(&mut self.pages.edges, ts, slot),
        };
        found.ok_or_else(|| {
            damage(slot.page, format!("the element in {slot} {what} by commit {ts}, and there is no such element"))
        })
    }
}

/// Fails if an image contradicts itself.
fn check_image(image: &PageImage) -> Outcome {
    let PageImage { name, capacity, used, live, generations, ids, ends, columns, .. } = image;
    let wrong = |message: String| Err(damage(*name, message));
    if u64::from(*capacity) > PAGE_SLOTS || used > capacity {
        return wrong(format!("{used} of {capacity} slots are used, and a page has at most {PAGE_SLOTS}"));
    }
    let used = *used as usize;
    if live.iter().any(|at| at >= used) {
        return wrong("a slot that was never reserved has an element".into());
    }
    if !generations.is_empty() && (generations.len() != used || generations.iter().any(|&g| g > GENERATION_MAX)) {
        return wrong(format!("it has {} generations for {used} slots, or one is too large", generations.len()));
    }
    let is_ascending = ids.windows(2).all(|pair| pair[0].0 < pair[1].0);
    if !is_ascending || ids.iter().any(|&(at, _)| !live.contains(usize::from(at))) {
        return wrong("its chosen ids are not those of its elements".into());
    }
    let ends_needed = if name.kind == ElementKind::Edge { live.len() } else { 0 };
    if ends.len() != ends_needed {
        return wrong(format!("it has the ends of {} edges and needs those of {ends_needed}", ends.len()));
    }
    match columns.iter().find(|c| !c.present.is_subset(live) || c.values.len() != c.present.len()) {
        Some(column) => wrong(format!("the values under key {} are not those of its elements", column.key.0)),
        None => Ok(()),
    }
}

/// Fills a new page from its image. Returns false if there is already a page of that number.
fn put<P: PageRecord>(pages: &mut Pages<P>, store: &Store, tablet: &Tablet, page: P, image: PageImage) -> bool {
    let core = page.core();
    for (at, &generation) in image.generations.iter().enumerate() {
        core.set_generation(at, generation, &store.memory);
    }
    for (at, id) in &image.ids {
        core.set_user_id(usize::from(*at), id, &tablet.values, store.space());
    }
    for ColumnImage { key, present, values } in &image.columns {
        let column = core.column_or_create(*key, &store.memory);
        for (i, at) in present.iter().enumerate() {
            column.set_in_place(at, tablet.values.encode_content(values.get(i), &store.memory), store.space());
        }
    }
    let private = PrivatePage { page: Box::new(page), used: image.used, live: image.live, changed: BASE_TS };
    pages.insert(image.name.number, private).is_none()
}

/// Where redo adds elements.
#[derive(Clone, Copy)]
struct Destination<'a> {
    store: &'a Store,
    tablet: &'a Tablet,
    /// The fewest slots of a page that is made.
    first_page_slots: u32,
}

/// Gives a slot to an element that the commit at `ts` has added. Returns the page, which is made if it is missing.
/// Fails if the page has another label set, or if the slot has an element.
fn begin_element<'p, P: PageRecord>(
    pages: &'p mut Pages<P>,
    to: Destination<'_>,
    ts: u64,
    slot: SlotPosition,
    labels: LabelSetId,
    chosen: Option<&UserId>,
) -> Outcome<&'p P> {
    let Destination { store, tablet, first_page_slots } = to;
    let capacity = (slot.offset as u32 + 1).next_power_of_two().max(first_page_slots);
    let private = pages.entry(slot.page.number).or_insert_with(|| PrivatePage {
        page: Box::new(P::make(labels, capacity, &store.memory)),
        used: 0,
        live: SlotSet::default(),
        changed: ts,
    });
    if private.page.core().label != labels {
        let expected = private.page.core().label.0;
        let message = format!("commit {ts} puts an element of label set {} on it, and it is of {expected}", labels.0);
        return Err(damage(slot.page, message));
    }
    if slot.offset >= private.page.core().capacity() {
        *private.page = enlarged(&*private.page, private.used as usize, capacity, store);
    }
    let core = private.page.core();
    // An empty slot may begin with any generation. Generations of elements that were never committed are in no log. The
    // owner that has made an image knows them, and a follower that was promoted after it does not.
    if private.live.contains(slot.offset) {
        let message = format!("an element comes to be in {slot} by commit {ts}, and the slot has one");
        return Err(damage(slot.page, message));
    }
    core.set_generation(slot.offset, slot.generation, &store.memory);
    if let Some(id) = chosen {
        core.set_user_id(slot.offset, id, &tablet.values, store.space());
    }
    private.live.insert(slot.offset);
    private.used = private.used.max(slot.offset as u32 + 1);
    private.changed = private.changed.max(ts);
    Ok(&private.page)
}

/// The same page with more slots. The first pages of a label set have fewer slots than later ones, and the log does not
/// say which pages those are. So a page that only the log has begins small, and is enlarged if a later slot is used.
fn enlarged<P: PageRecord>(page: &P, used: usize, capacity: u32, store: &Store) -> P {
    let (core, memory) = (page.core(), &store.memory);
    let mut large = P::make(core.label, capacity, memory);
    for at in 0..used {
        page.copy_slot(at, &mut large);
        large.core().set_generation(at, core.generation(at), memory);
        let id = core.user_id(at);
        if !id.is_absent() {
            large.core().set_user_id_cell(at, id, store.space());
        }
        for (key, column) in core.columns() {
            let cell = column.newest(at);
            if !cell.is_absent() {
                large.core().column_or_create(key, memory).set_in_place(at, cell, store.space());
            }
        }
    }
    page.remove_bytes(memory);
    large
}
