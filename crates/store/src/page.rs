//! Pages: up to 1,024 vertices or edges of one label set in one tablet, the unit of everything.
//!
//! A page is scanned, counted, loaded (and later: compacted, checkpointed, read back) as a whole. Slot
//! `page * PAGE_SLOTS + offset` never moves. The first page of a label set is small, so that a graph with
//! many labels and few elements stays small.
//!
//! - Version words are *transient*: a page without them was loaded in bulk or has been settled (`settle`), and its first
//!   `clean` slots but its holes are visible to everyone. A page that is written to by transactions has them from the
//!   start.
//! - A slot is reserved by counting `used` up. Its begin word is `NEVER` until its owner claims it, which it
//!   does after the rest of the record is written; so whoever sees the claim sees the record.
//! - The column of user ids exists once an element of the page has a chosen id.
//! - A slot whose element is gone for everybody is used again under the next generation. A page keeps generations
//!   only once one of its slots was used again: without them, every slot is in its first.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, Ordering};

use mangrove_graph::{Direction, KeyId, LabelSetId, UserId};

use crate::adjacency::AdjacencyTable;
use crate::append_map::AppendMap;
use crate::cell::{Content, RawCell, ValueRegion};
use crate::column::Column;
use crate::epoch::{self, EpochCell, EpochSlice, Pin};
use crate::image::SlotSet;
use crate::limbo::{Garbage, Space};
use crate::memory::{Memory, RecordKind};
use crate::store::Store;
use crate::sync::{AtomicBool, AtomicU16, AtomicU32, AtomicU64};
use crate::version::{BASE_TS, NEVER, Snapshot, VersionPair, visible};

pub(crate) use mangrove_graph::{GENERATION_MAX, GENERATION_SHIFT, PAGE_SLOTS};

/// What vertices and edges have in common.
#[derive(Debug)]
pub(crate) struct PageCore {
    /// The label set of every element of the page.
    pub(crate) label: LabelSetId,
    capacity: u32,
    /// Nobody reserves slots here: the page was loaded in bulk.
    sealed: bool,
    /// The first slots, which are visible to everyone while there are no version words, but for the holes.
    clean: AtomicU32,
    used: AtomicU32,
    /// Committed elements that were not deleted.
    live: AtomicI64,
    /// The last commit that changed what an image of the page holds: elements, their ids and properties.
    changed: AtomicU64,
    /// As `changed` was when a collector last walked by.
    seen_change: AtomicU64,
    /// Whether the page is in its tablet's list of those that may be settled (`settle`).
    is_listed: AtomicBool,
    versions: EpochSlice<VersionPair>,
    /// The slots without an element when the page was last settled, if there were any.
    holes: EpochCell<SlotSet>,
    generations: OnceLock<Box<[AtomicU16]>>,
    ids: OnceLock<Column>,
    columns: AppendMap<Column>,
}

impl PageCore {
    /// A page that transactions write to.
    pub(crate) fn live(label: LabelSetId, capacity: u32, memory: &Memory) -> Self {
        let page = PageCore { sealed: false, ..Self::clean(label, capacity) };
        page.versions(&epoch::pin(), memory);
        page
    }

    /// A page to be filled in bulk.
    pub(crate) fn clean(label: LabelSetId, capacity: u32) -> Self {
        PageCore {
            label,
            capacity,
            sealed: true,
            clean: AtomicU32::new(0),
            used: AtomicU32::new(0),
            live: AtomicI64::new(0),
            changed: AtomicU64::new(BASE_TS),
            seen_change: AtomicU64::new(BASE_TS),
            is_listed: AtomicBool::new(false),
            versions: EpochSlice::empty(capacity as usize),
            holes: EpochCell::default(),
            generations: OnceLock::new(),
            ids: OnceLock::new(),
            columns: AppendMap::default(),
        }
    }

    pub(crate) fn capacity(&self) -> usize {
        self.capacity as usize
    }

    /// Slots reserved so far.
    #[inline]
    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Acquire).min(self.capacity) as usize
    }

    /// A free slot; `None` when the page is full.
    pub(crate) fn reserve(&self) -> Option<usize> {
        if self.used.load(Ordering::Relaxed) >= self.capacity {
            return None;
        }
        let at = self.used.fetch_add(1, Ordering::AcqRel);
        (at < self.capacity).then_some(at as usize)
    }

    /// Fills the next slot of a page that nobody else has yet.
    pub(crate) fn fill(&mut self) -> Option<usize> {
        let at = self.clean_slots();
        if at == self.capacity() {
            return None;
        }
        self.clean.store(at as u32 + 1, Ordering::Relaxed);
        self.used.store(at as u32 + 1, Ordering::Relaxed);
        *self.live.get_mut() = at as i64 + 1;
        Some(at)
    }

    #[inline]
    fn clean_slots(&self) -> usize {
        self.clean.load(Ordering::Acquire) as usize
    }

    /// Leaves a filled slot of a page that is not published yet without an element.
    pub(crate) fn leave_empty(&self, at: usize, memory: &Memory) {
        self.versions(&epoch::pin(), memory)[at].begin.store(NEVER, Ordering::Relaxed);
        self.add_live(-1);
    }

    /// The number of visible elements where that needs no look at any of them: they are in the first slots.
    pub(crate) fn clean_count(&self) -> Option<usize> {
        (!self.versions.is_some() && !self.holes.is_some()).then(|| self.clean_slots())
    }

    /// Asks the memory for what a count looks at.
    pub(crate) fn prefetch_counts(&self) {
        crate::prefetch::prefetch(&self.label);
        crate::prefetch::prefetch(&self.versions);
    }

    /// The version words, made where they are missing.
    pub(crate) fn versions<'p>(&'p self, pin: &'p Pin, memory: &Memory) -> &'p [VersionPair] {
        let mut bytes_made = 0;
        let (words, is_new) = self.versions.get_or_init(pin, || {
            let begin = |at| if self.is_settled(at, pin) { BASE_TS } else { NEVER };
            let pairs: Box<[VersionPair]> = (0..self.capacity()).map(|at| VersionPair::begun(begin(at))).collect();
            bytes_made = size_of_val(&*pairs);
            memory.add(RecordKind::Version, bytes_made);
            pairs
        });
        // Several may have made them at once, of whom one has published them.
        if bytes_made > 0 && !is_new {
            memory.remove(RecordKind::Version, bytes_made);
        }
        words
    }

    /// The version words there are.
    pub(crate) fn current_versions<'p>(&'p self, pin: &'p Pin) -> Option<&'p [VersionPair]> {
        self.versions.get(pin)
    }

    /// Whether there are version words.
    pub(crate) fn has_versions(&self) -> bool {
        self.versions.is_some()
    }

    /// Whether nobody will reserve a slot here any more (places that are used again are counted as filled).
    pub(crate) fn is_full_for_good(&self) -> bool {
        self.sealed || self.used() == self.capacity()
    }

    /// Whether a slot of a page without version words has an element, which is then visible to everyone.
    #[inline]
    fn is_settled(&self, at: usize, pin: &Pin) -> bool {
        at < self.clean_slots() && self.holes.get(pin).is_none_or(|holes| !holes.contains(at))
    }

    /// The slots without an element when the page was last settled.
    pub(crate) fn holes<'p>(&'p self, pin: &'p Pin) -> Option<&'p SlotSet> {
        self.holes.get(pin)
    }

    /// Says that the first slots but the holes are visible to everyone, and takes the version words away: see `settle`.
    pub(crate) fn take_versions(
        &self,
        slots: usize,
        holes: Option<SlotSet>,
        memory: &Memory,
        garbage: &mut Vec<Garbage>,
    ) {
        let bytes = |is_there| if is_there { size_of::<SlotSet>() } else { 0 };
        memory.resize(RecordKind::Version, bytes(self.holes.is_some()), bytes(holes.is_some()));
        garbage.extend(self.holes.swap(holes).map(Garbage::Box));
        // Release: who finds the words gone finds this.
        self.clean.store(slots as u32, Ordering::Release);
        memory.remove(RecordKind::Version, self.versions.bytes());
        garbage.extend(self.versions.take().map(Garbage::Box));
    }

    /// Begin and end word of a slot.
    #[inline]
    pub(crate) fn version(&self, at: usize) -> (u64, u64) {
        self.version_under(&epoch::pin(), at)
    }

    /// As [`PageCore::version`], under a pin that the caller has.
    #[inline]
    pub(crate) fn version_under(&self, pin: &Pin, at: usize) -> (u64, u64) {
        match self.versions.get(pin) {
            Some(versions) => versions[at].load(),
            None if self.is_settled(at, pin) => (BASE_TS, NEVER),
            None => (NEVER, NEVER),
        }
    }

    #[inline]
    pub(crate) fn visible(&self, at: usize, snapshot: &Snapshot<'_>) -> bool {
        self.visible_under(&epoch::pin(), at, snapshot)
    }

    /// As [`PageCore::visible`], under a pin that the caller has: for loops.
    #[inline]
    pub(crate) fn visible_under(&self, pin: &Pin, at: usize, snapshot: &Snapshot<'_>) -> bool {
        match self.versions.get(pin) {
            Some(versions) => {
                let (begin, end) = versions[at].load();
                visible(begin, end, snapshot)
            }
            None => self.is_settled(at, pin),
        }
    }

    /// Starts loading what leads to the version words.
    #[inline]
    pub(crate) fn prefetch(&self) {
        crate::prefetch::prefetch(&self.versions);
    }

    /// Starts loading the version words of a slot.
    #[inline]
    pub(crate) fn prefetch_version(&self, pin: &Pin, at: usize) {
        if let Some(pair) = self.versions.get(pin).and_then(|versions| versions.get(at)) {
            crate::prefetch::prefetch(pair);
        }
        if let Some(generation) = self.generations.get().and_then(|generations| generations.get(at)) {
            crate::prefetch::prefetch(generation);
        }
    }

    // --- Generations --------------------------------------------------------------------------------

    /// How many elements had the slot before the one that has it now.
    #[inline]
    pub(crate) fn generation(&self, at: usize) -> u16 {
        // Acquire: its partner is the Release in `next_generation`.
        self.generations.get().map_or(0, |generations| generations[at].load(Ordering::Acquire))
    }

    /// Returns true if a slot has no generation left: when its element is gone, it stays empty.
    pub(crate) fn is_used_up(&self, at: usize) -> bool {
        self.generation(at) == GENERATION_MAX
    }

    /// The generations of the first slots, or none where all are in their first.
    pub(crate) fn generations_of(&self, slots: usize, out: &mut Vec<u16>) {
        out.clear();
        if let Some(generations) = self.generations.get() {
            out.extend(generations[..slots].iter().map(|generation| generation.load(Ordering::Acquire)));
        }
    }

    /// The slot number of an element at an offset, whose page begins at place `base`.
    #[inline]
    pub(crate) fn slot_number(&self, base: u64, at: usize) -> u64 {
        (base + at as u64) | (u64::from(self.generation(at)) << GENERATION_SHIFT)
    }

    /// Whether all slots are in their first generation.
    #[inline]
    pub(crate) fn is_first_generation(&self) -> bool {
        self.generations.get().is_none()
    }

    /// Begins the next generation of a slot that is used again, before its element begins.
    pub(crate) fn next_generation(&self, at: usize, memory: &Memory) -> u16 {
        let generations = self.generations_or_create(memory);
        // Only the slot's next owner is here.
        let next = generations[at].load(Ordering::Relaxed) + 1;
        generations[at].store(next, Ordering::Release);
        next
    }

    fn generations_or_create(&self, memory: &Memory) -> &[AtomicU16] {
        self.generations.get_or_init(|| {
            let zeros: Box<[AtomicU16]> = (0..self.capacity).map(|_| AtomicU16::new(0)).collect();
            memory.add(RecordKind::Version, size_of_val(&*zeros));
            zeros
        })
    }

    /// Counts elements that came and went with a commit, after it was noted ([`PageCore::note_change`]).
    pub(crate) fn add_live(&self, change: i64) {
        // Release: who finds the element counted finds the commit noted (`count_at`).
        self.live.fetch_add(change, Ordering::Release);
    }

    /// How many elements a snapshot sees that has no writes of its own, where no commit after it has changed the page. All
    /// that it sees must be stamped.
    pub(crate) fn count_at(&self, begin_ts: u64) -> Option<usize> {
        // Acquire: had a later commit been counted, it would be noted.
        let live = self.live.load(Ordering::Acquire);
        (self.changed() <= begin_ts).then_some(live.max(0) as usize)
    }

    /// Whether it is the caller's turn to list the page as one that may be settled. Relaxed: the list has a lock.
    pub(crate) fn enlist(&self) -> bool {
        !self.is_listed.load(Ordering::Relaxed) && !self.is_listed.swap(true, Ordering::Relaxed)
    }

    /// Says that the page is in that list no more, before the caller looks at the page.
    pub(crate) fn delist(&self) {
        // SeqCst: an element that begins after the look finds the page delisted.
        self.is_listed.swap(false, Ordering::SeqCst);
    }

    pub(crate) fn live_count(&self) -> u64 {
        self.live.load(Ordering::Relaxed).max(0) as u64
    }

    // --- Images -------------------------------------------------------------------------------------

    /// Says that a commit has changed the page, before the commit is finished.
    #[inline]
    pub(crate) fn note_change(&self, ts: u64) {
        // Relaxed: who asks about the commits up to a timestamp has seen them finished, and with them this. The look
        // first, since commits mostly come in order and the line is shared.
        if self.changed.load(Ordering::Relaxed) < ts {
            self.changed.fetch_max(ts, Ordering::Relaxed);
        }
    }

    /// Whether no commit has changed the page since the last call.
    pub(crate) fn is_quiet(&self) -> bool {
        let changed = self.changed();
        self.seen_change.swap(changed, Ordering::Relaxed) == changed
    }

    /// The last commit that changed the page; the base where none has since it was loaded.
    pub(crate) fn changed(&self) -> u64 {
        self.changed.load(Ordering::Relaxed)
    }

    /// Makes a page that nobody else has yet what it was: `used` slots, of which those in `live` have an element.
    pub(crate) fn restore(&mut self, used: usize, live: &SlotSet, changed: u64, memory: &Memory) {
        assert!(used <= self.capacity(), "{used} slots are used of {}", self.capacity);
        *self.used.get_mut() = used as u32;
        // Holes get version words, which take what lies before `clean` for elements of the base.
        *self.clean.get_mut() = used as u32;
        *self.live.get_mut() = live.len() as i64;
        *self.changed.get_mut() = changed;
        if live.len() < used {
            let pin = epoch::pin();
            let words = self.versions(&pin, memory);
            for at in (0..used).filter(|&at| !live.contains(at)) {
                words[at].begin.store(NEVER, Ordering::Relaxed);
            }
        }
    }

    /// Sets the generation of a slot of a page that nobody else has yet.
    pub(crate) fn set_generation(&self, at: usize, generation: u16, memory: &Memory) {
        if generation > 0 || !self.is_first_generation() {
            self.generations_or_create(memory)[at].store(generation, Ordering::Release);
        }
    }

    /// Lets transactions reserve the slots that are left. Only before anybody else has the page.
    pub(crate) fn unseal(&mut self) {
        self.sealed = false;
    }

    /// The column of a key.
    #[inline]
    pub(crate) fn column(&self, key: KeyId) -> Option<&Column> {
        self.columns.get(key.0)
    }

    /// The column of a key, made where it is missing.
    pub(crate) fn column_or_create(&self, key: KeyId, memory: &Memory) -> &Column {
        self.columns.get_or_insert_with(key.0, (memory, RecordKind::Column), || Column::new(self.capacity()))
    }

    /// The columns in the order they were first written.
    pub(crate) fn columns(&self) -> impl Iterator<Item = (KeyId, &Column)> {
        self.columns.iter().map(|(key, column)| (KeyId(key), column))
    }

    fn ids_or_create(&self) -> &Column {
        self.ids.get_or_init(|| Column::new(self.capacity()))
    }

    /// Makes room for chosen ids of most elements of the page, and for their values of some keys.
    pub(crate) fn expect_many(&self, ids: bool, keys: impl Iterator<Item = KeyId>, space: Space<'_>) {
        if ids {
            self.ids_or_create().make_dense(space);
        }
        keys.for_each(|key| self.column_or_create(key, space.memory).make_dense(space));
    }

    /// Sets the id a user chose, before the element begins.
    pub(crate) fn set_user_id(&self, at: usize, id: &UserId, region: &ValueRegion, space: Space<'_>) {
        self.set_user_id_cell(at, region.encode(id.to_value(), space.memory), space);
    }

    /// As [`PageCore::set_user_id`], of an id that is in a cell already.
    pub(crate) fn set_user_id_cell(&self, at: usize, cell: RawCell, space: Space<'_>) {
        self.ids_or_create().set_in_place(at, cell, space);
    }

    /// The cell of the id a user chose; absent for automatic ids.
    #[inline]
    pub(crate) fn user_id(&self, at: usize) -> RawCell {
        self.ids.get().map_or(RawCell::ABSENT, |ids| ids.newest(at))
    }

    /// Whether any element of the page ever had a chosen id.
    pub(crate) fn has_user_ids(&self) -> bool {
        self.ids.get().is_some()
    }

    /// Starts loading what [`PageCore::user_id`] needs.
    #[inline]
    pub(crate) fn prefetch_user_id(&self, at: usize) {
        if let Some(ids) = self.ids.get() {
            ids.prefetch(at);
        }
    }

    /// Takes the chosen id away from a slot whose element is gone for everybody.
    pub(crate) fn clear_user_id(&self, at: usize) {
        if let Some(ids) = self.ids.get() {
            ids.clear_in_place(at);
        }
    }

    /// Whether the user chose this id for the slot.
    pub(crate) fn has_user_id(&self, at: usize, id: &UserId, region: &ValueRegion) -> bool {
        match region.decode(self.user_id(at)) {
            Content::One(value) => UserId::from_value(&value).as_ref() == Some(id),
            _ => false,
        }
    }

    pub(crate) fn add_bytes(&self, add: &mut impl FnMut(RecordKind, usize)) {
        let generations = self.generations.get().map_or(0, |generations| size_of_val(&**generations));
        let holes = if self.holes.is_some() { size_of::<SlotSet>() } else { 0 };
        add(RecordKind::Version, self.versions.bytes() + holes + generations);
        for column in self.ids.get().into_iter().chain(self.columns.iter().map(|(_, column)| column)) {
            let (values, heads) = column.bytes();
            add(RecordKind::Column, values);
            add(RecordKind::Undo, heads);
        }
        add(RecordKind::Column, self.columns.bytes());
    }
}

/// A page of vertices with their adjacency.
#[derive(Debug)]
pub(crate) struct VertexPage {
    pub(crate) core: PageCore,
    outgoing: AppendMap<AdjacencyTable>,
    incoming: AppendMap<AdjacencyTable>,
}

impl VertexPage {
    /// A page for transactions.
    pub(crate) fn live(label: LabelSetId, capacity: u32, memory: &Memory) -> Self {
        Self::with_core(PageCore::live(label, capacity, memory), memory)
    }

    /// A page to be filled in bulk.
    pub(crate) fn clean(label: LabelSetId, capacity: u32, memory: &Memory) -> Self {
        Self::with_core(PageCore::clean(label, capacity), memory)
    }

    fn with_core(core: PageCore, memory: &Memory) -> Self {
        memory.add(RecordKind::VertexPage, size_of::<VertexPage>());
        VertexPage { core, outgoing: AppendMap::default(), incoming: AppendMap::default() }
    }

    /// The adjacency tables of a direction (not `Both`) by edge label set, in the order they came to be.
    #[inline]
    pub(crate) fn tables(&self, direction: Direction) -> &AppendMap<AdjacencyTable> {
        match direction {
            Direction::In => &self.incoming,
            Direction::Out | Direction::Both => &self.outgoing,
        }
    }

    /// The table for edges of a label set, made where it is missing.
    pub(crate) fn table_or_create(&self, direction: Direction, label: LabelSetId, store: &Store) -> &AdjacencyTable {
        let make = || AdjacencyTable::new(self.core.capacity(), &store.sizes);
        self.tables(direction).get_or_insert_with(label.0, (&store.memory, RecordKind::Descriptor), make)
    }

    pub(crate) fn add_bytes(&self, add: &mut impl FnMut(RecordKind, usize)) {
        add(RecordKind::VertexPage, size_of::<VertexPage>());
        self.core.add_bytes(add);
        for (_, table) in self.outgoing.iter().chain(self.incoming.iter()) {
            let (descriptors, block) = table.bytes();
            add(RecordKind::Descriptor, descriptors);
            add(RecordKind::Block, block);
        }
        add(RecordKind::Descriptor, self.outgoing.bytes() + self.incoming.bytes());
    }
}
