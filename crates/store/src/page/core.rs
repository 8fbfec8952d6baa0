//! Pages: up to 1,024 vertices or edges of one label set in one tablet.
//!
//! A page is the unit of scans, counts, loading, compaction and checkpoints. Slot `page * PAGE_SLOTS + offset` never
//! moves. The first page of a label set is small, so that a graph with many labels and few elements stays small.
//! [`PageCore`] has the parts that pages of vertices and of edges share.
//!
//! A page that transactions write to has *version words*, two a slot. They are transient: freezing (`freeze`) takes
//! them away.
//!
//! - **STORE-18.** An edge's slot has three references: its cells in two lists, and its columns. The slot is given back
//!   when all are released. A cell counts as released when no layout that a cursor can reach holds it.
//! - **STORE-20.** A page without version words has elements that all snapshots see in its first `clean` slots, except
//!   the slots in its set of free slots, and no other elements.
//! - **STORE-23.** An id is given once. The generation of a slot goes up before the slot's next element begins. A slot
//!   whose generations are used up stays empty, and counts as a free slot when its page is frozen.
//! - **STORE-26.** A write that changes an element, its id or a property notes its commit timestamp on the page before
//!   the timestamp is finished. So a page without a note after `R` holds at any `S > R` what it held at `R`.
//!
//! A writer reserves a slot by counting `used` up. The begin word stays `NEVER` until the writer has written the rest
//! of the element; a reader that sees the claim sees the element. The column of chosen ids exists once an element of
//! the page has a chosen id. Generations are kept once a slot has been used again, or an edge has ended; before that,
//! every slot is in its first.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, Ordering};

use mangrove_graph::{KeyId, LabelSetId, UserId};
use mangrove_reclaim::sync::{AtomicBool, AtomicU8, AtomicU16, AtomicU32, AtomicU64};
use mangrove_reclaim::{AppendMap, EpochCell, EpochSlice, OnceSlice, Pin, epoch};

use crate::cell::column::Column;
use crate::cell::{Content, RawCell, ValueRegion};
use crate::memory::{Garbage, Memory, RecordKind, Space};
use crate::page::SlotSet;
use crate::version::{BASE_TS, NEVER, Snapshot, VersionPair, visible};

pub(crate) use mangrove_graph::{GENERATION_MAX, GENERATION_SHIFT, PAGE_SLOTS};

/// The parts that pages of vertices and of edges share. Invariants: STORE-18, STORE-20, STORE-23, STORE-26.
///
/// A page's record is read for nearly every element, and those of a large graph together are larger than a processor's caches. So its fields
/// are grouped by cache line. The record begins 16 bytes before the core, with what a kind of page has for itself:
///
/// | line | fields | written by |
/// |---|---|---|
/// | first | what leads to the versions and the generation of an element, and to the ends of an edge | few |
/// | second | what each commit counts or notes, and what leads to chosen ids | commits |
/// | third and later | columns, one a line | few |
///
/// So processors do not take the first line from one another, and a page with one key uses three lines.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct PageCore {
    versions: EpochSlice<VersionPair>,
    /// By slot: its generation, and the references of an ended edge that are released ([`RELEASED_SHIFT`]). Made when a slot is used again, or
    /// with the first release.
    generations: OnceSlice<AtomicU16>,
    /// The free slots when the page was last frozen, if there were any.
    free_slots: EpochCell<SlotSet>,
    capacity: u32,
    /// The label set of every element of the page.
    pub(crate) label: LabelSetId,
    /// The page was loaded in bulk: no writer reserves slots here.
    sealed: bool,
    /// True while the page is in its tablet's list of pages to be frozen.
    is_listed: AtomicBool,
    /// True if a slot has had more than one element.
    is_reused: AtomicBool,
    /// No fewer than there are columns, so that a look at all of them ends without a look at the cache line where the next one would be.
    columns_max: AtomicU8,
    /// How many slots from the front STORE-20 is about. Read only while there are no version words.
    clean: AtomicU32,
    /// How many slots were ever reserved. It may exceed the capacity while writers find the page full.
    used: AtomicU32,
    /// How many committed elements there are that no committed transaction has deleted.
    live: AtomicI64,
    /// The timestamp of the last commit that changed an element, its id or a property (STORE-26).
    changed: AtomicU64,
    /// The ids that users chose. Most pages have none, so it is a pointer.
    ids: OnceLock<Box<Column>>,
    columns: AppendMap<Column>,
    /// The value of `changed` when a collector last walked over the page.
    seen_change: AtomicU64,
}

/// Where the fields of a core begin that a page's record has in its second cache line, if the record begins 16 bytes before the core.
#[cfg(not(feature = "model"))]
pub(crate) const SECOND_LINE: usize = std::mem::offset_of!(PageCore, sealed);

/// The number of released references (STORE-18) is above a slot's generation, which has 10 bits.
const RELEASED_SHIFT: u32 = 12;
const GENERATION_MASK: u16 = (1 << RELEASED_SHIFT) - 1;
const _: () = assert!(GENERATION_MAX <= GENERATION_MASK);
/// The references of an edge's slot: two cells of lists, and the columns.
const REFERENCES: u16 = 3;

impl PageCore {
    /// Makes a page that transactions write to.
    pub(crate) fn live(label: LabelSetId, capacity: u32, memory: &Memory) -> Self {
        let page = PageCore { sealed: false, ..Self::clean(label, capacity) };
        page.versions(&epoch::pin(), memory);
        page
    }

    /// Makes a page that a bulk load fills.
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
            is_reused: AtomicBool::new(false),
            columns_max: AtomicU8::new(0),
            versions: EpochSlice::empty(capacity as usize),
            free_slots: EpochCell::default(),
            generations: OnceSlice::empty(capacity),
            ids: OnceLock::new(),
            columns: AppendMap::default(),
        }
    }

    pub(crate) fn capacity(&self) -> usize {
        self.capacity as usize
    }

    /// How many slots were ever reserved, at most the capacity.
    #[inline]
    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Acquire).min(self.capacity) as usize
    }

    /// Reserves the next slot that was never used; `None` if the page is full.
    pub(crate) fn reserve(&self) -> Option<usize> {
        if self.used.load(Ordering::Relaxed) >= self.capacity {
            return None;
        }
        let at = self.used.fetch_add(1, Ordering::AcqRel);
        debug_assert!(at >= self.capacity || self.is_vacant(at as usize), "slot {at} has an element before its first");
        (at < self.capacity).then_some(at as usize)
    }

    /// Reserves the slots before `end` that were never used. Returns the first of them; `None` if there are none. Only
    /// one thread reserves slots meanwhile.
    pub(crate) fn reserve_up_to(&self, end: usize) -> Option<usize> {
        assert!(end <= self.capacity(), "{end} slots are reserved of {}", self.capacity);
        let before = self.used.fetch_max(end as u32, Ordering::AcqRel) as usize;
        (before < end).then_some(before)
    }

    /// Fills the next slot of a page that is not published.
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

    /// Leaves a filled slot of a page that is not published without an element.
    pub(crate) fn leave_empty(&self, at: usize, memory: &Memory) {
        self.versions(&epoch::pin(), memory)[at].begin.store(NEVER, Ordering::Relaxed);
        self.add_live(-1);
    }

    /// The number of elements that every snapshot sees, if the page has neither version words nor free slots.
    pub(crate) fn clean_count(&self) -> Option<usize> {
        (!self.versions.is_some() && !self.free_slots.is_some()).then(|| self.clean_slots())
    }

    /// Starts loading the fields that a count reads.
    pub(crate) fn prefetch_counts(&self) {
        mangrove_reclaim::prefetch::prefetch(&self.label);
        mangrove_reclaim::prefetch::prefetch(&self.versions);
    }

    /// The version words, which are made if they are missing. The caller runs a transaction or owns a slot of the page.
    pub(crate) fn versions<'p>(&'p self, pin: &'p Pin, memory: &Memory) -> &'p [VersionPair] {
        let mut bytes_made = 0;
        let (words, is_new) = self.versions.get_or_init(pin, || {
            debug_assert!(self.clean_slots() <= self.used(), "an element is in a slot that was never handed out");
            let begin = |at| if self.is_frozen(at, pin) { BASE_TS } else { NEVER };
            let pairs: Box<[VersionPair]> = (0..self.capacity()).map(|at| VersionPair::begun(begin(at))).collect();
            bytes_made = size_of_val(&*pairs);
            memory.add(RecordKind::Version, bytes_made);
            pairs
        });
        // Several threads may make words at once; one publishes them.
        if bytes_made > 0 && !is_new {
            memory.remove(RecordKind::Version, bytes_made);
        }
        words
    }

    /// The version words, if the page has any.
    pub(crate) fn current_versions<'p>(&'p self, pin: &'p Pin) -> Option<&'p [VersionPair]> {
        self.versions.get(pin)
    }

    /// Returns true if the page has version words.
    pub(crate) fn has_versions(&self) -> bool {
        self.versions.is_some()
    }

    /// Returns true if no writer will reserve a slot that was never used. (Slots that are used again count as
    /// reserved.)
    pub(crate) fn is_full_for_good(&self) -> bool {
        self.sealed || self.used() == self.capacity()
    }

    /// Returns true if a slot of a page without version words has an element, which every snapshot sees (STORE-20).
    #[inline]
    fn is_frozen(&self, at: usize, pin: &Pin) -> bool {
        at < self.clean_slots() && self.free_slots.get(pin).is_none_or(|free_slots| !free_slots.contains(at))
    }

    /// The free slots when the page was last frozen, if there were any.
    pub(crate) fn free_slots<'p>(&'p self, pin: &'p Pin) -> Option<&'p SlotSet> {
        self.free_slots.get(pin)
    }

    /// Makes the page frozen: notes how many slots have elements, and which of these are free, and takes the version
    /// words away. The caller is the collector that freezes the page (`freeze`).
    pub(crate) fn take_versions(
        &self,
        slots: usize,
        free_slots: Option<SlotSet>,
        memory: &Memory,
        garbage: &mut Vec<Garbage>,
    ) {
        assert!(slots <= self.capacity(), "{slots} slots are frozen of {}", self.capacity);
        debug_assert!(
            free_slots.is_none_or(|free_slots| free_slots.iter().all(|at| at < slots)),
            "a free slot was never handed out"
        );
        let bytes = |is_there| if is_there { size_of::<SlotSet>() } else { 0 };
        memory.resize(RecordKind::Version, bytes(self.free_slots.is_some()), bytes(free_slots.is_some()));
        garbage.extend(self.free_slots.swap(free_slots).map(Garbage::Box));
        // Release: a reader that finds the words gone finds this. STORE-20: the free slots are published before it.
        self.clean.store(slots as u32, Ordering::Release);
        memory.remove(RecordKind::Version, self.versions.bytes());
        garbage.extend(self.versions.take().map(Garbage::Box));
    }

    /// Begin and end word of a slot.
    #[inline]
    pub(crate) fn version(&self, at: usize) -> (u64, u64) {
        self.version_under(&epoch::pin(), at)
    }

    /// As [`PageCore::version`], under the caller's pin.
    #[inline]
    pub(crate) fn version_under(&self, pin: &Pin, at: usize) -> (u64, u64) {
        match self.versions.get(pin) {
            Some(versions) => versions[at].load(),
            None if self.is_frozen(at, pin) => (BASE_TS, NEVER),
            None => (NEVER, NEVER),
        }
    }

    /// Returns true if a slot has no element: it is free, or a transaction owns it and has not begun.
    pub(crate) fn is_vacant(&self, at: usize) -> bool {
        self.version(at) == (NEVER, NEVER)
    }

    #[inline]
    pub(crate) fn visible(&self, at: usize, snapshot: &Snapshot<'_>) -> bool {
        self.visible_under(&epoch::pin(), at, snapshot)
    }

    /// As [`PageCore::visible`], under the caller's pin: for loops.
    #[inline]
    pub(crate) fn visible_under(&self, pin: &Pin, at: usize, snapshot: &Snapshot<'_>) -> bool {
        match self.versions.get(pin) {
            Some(versions) => {
                let (begin, end) = versions[at].load();
                visible(begin, end, snapshot)
            }
            None => self.is_frozen(at, pin),
        }
    }

    /// Starts loading the pointers that lead to the version words.
    #[inline]
    pub(crate) fn prefetch(&self) {
        mangrove_reclaim::prefetch::prefetch(&self.versions);
    }

    /// Starts loading what each commit counts or notes.
    #[inline]
    pub(crate) fn prefetch_counters(&self) {
        mangrove_reclaim::prefetch::prefetch(&self.sealed);
    }

    /// Starts loading the first column.
    #[inline]
    pub(crate) fn prefetch_first_column(&self) {
        self.columns.prefetch();
    }

    /// Starts loading the generation of a slot.
    #[inline]
    pub(crate) fn prefetch_generation(&self, at: usize) {
        if let Some(generation) = self.generations.get().and_then(|generations| generations.get(at)) {
            mangrove_reclaim::prefetch::prefetch(generation);
        }
    }

    /// Starts loading the version words of a slot.
    #[inline]
    pub(crate) fn prefetch_version_words(&self, pin: &Pin, at: usize) {
        if let Some(pair) = self.versions.get(pin).and_then(|versions| versions.get(at)) {
            mangrove_reclaim::prefetch::prefetch(pair);
        }
    }

    /// Starts loading the version words and the generation of a slot.
    #[inline]
    pub(crate) fn prefetch_version(&self, pin: &Pin, at: usize) {
        self.prefetch_version_words(pin, at);
        self.prefetch_generation(at);
    }

    // --- Generations --------------------------------------------------------------------------------

    /// The generation of a slot: how many elements had it before.
    #[inline]
    pub(crate) fn generation(&self, at: usize) -> u16 {
        // Acquire: its partner is the Release in `next_generation`.
        self.generations.get().map_or(0, |generations| generations[at].load(Ordering::Acquire) & GENERATION_MASK)
    }

    /// Returns true if a slot has no generation left. When its element is gone, it stays empty (STORE-23).
    pub(crate) fn is_used_up(&self, at: usize) -> bool {
        self.generation(at) == GENERATION_MAX
    }

    /// The generations of the first slots, or none if all slots are in their first.
    pub(crate) fn generations_of(&self, slots: usize, out: &mut Vec<u16>) {
        out.clear();
        if !self.is_first_generation() {
            out.extend((0..slots).map(|at| self.generation(at)));
        }
    }

    /// The slot of an element: its generation and its slot index. `base` is the slot index that the page begins at; or the id that has it, and
    /// then this is the id of the element.
    #[inline]
    pub(crate) fn slot_number(&self, base: u64, at: usize) -> u64 {
        (base + at as u64) | (u64::from(self.generation(at)) << GENERATION_SHIFT)
    }

    /// Returns true if all slots are in their first generation.
    #[inline]
    pub(crate) fn is_first_generation(&self) -> bool {
        // Acquire: its partner is the Release in `reuse`.
        self.generations.get().is_none() || !self.is_reused.load(Ordering::Acquire)
    }

    /// Begins the next generation of a slot that is used again, before its element begins (STORE-23).
    pub(crate) fn next_generation(&self, at: usize, memory: &Memory) -> u16 {
        let generations = self.generations_or_create(memory);
        // The slot's next owner is the only thread here, and no reference is released before it has an element.
        let next = generations[at].load(Ordering::Relaxed) + 1;
        assert!(next <= GENERATION_MAX, "a slot whose generations are used up was handed out");
        self.reuse();
        generations[at].store(next, Ordering::Release);
        next
    }

    /// Notes that a slot is used again, before its generation goes up.
    fn reuse(&self) {
        // Read first, since most slots of a page are used again after one has been.
        if !self.is_reused.load(Ordering::Relaxed) {
            self.is_reused.store(true, Ordering::Release);
        }
    }

    fn generations_or_create(&self, memory: &Memory) -> &[AtomicU16] {
        let zeros = || (0..self.capacity).map(|_| AtomicU16::new(0)).collect();
        let (generations, is_new) = self.generations.get_or_init(zeros);
        if is_new {
            memory.add(RecordKind::Version, size_of_val(generations));
        }
        generations
    }

    /// Releases one reference of an ended edge, the one of this generation. Returns true if it was the last, so that the
    /// slot may be given back (STORE-18).
    pub(crate) fn release_reference(&self, at: usize, generation: u16, memory: &Memory) -> bool {
        let word = &self.generations_or_create(memory)[at];
        // Acquire and Release: the thread with the last release gives back what the others have let go.
        let before = word.fetch_add(1 << RELEASED_SHIFT, Ordering::AcqRel);
        assert_eq!(before & GENERATION_MASK, generation, "another edge has slot {at}");
        let count = (before >> RELEASED_SHIFT) + 1;
        assert!(count <= REFERENCES, "slot {at} was released {count} times");
        let is_last = count == REFERENCES;
        if is_last {
            // For the next element. No other thread has a reference left.
            word.fetch_sub(REFERENCES << RELEASED_SHIFT, Ordering::Relaxed);
        }
        is_last
    }

    /// Counts elements that a commit added and removed, after the commit was noted ([`PageCore::note_change`]).
    pub(crate) fn add_live(&self, change: i64) {
        // Release: a reader that finds the element counted finds the commit noted (`count_at`).
        self.live.fetch_add(change, Ordering::Release);
    }

    /// How many elements a snapshot without writes of its own sees, if no later commit has changed the page. All
    /// commits that it sees must be finalized.
    pub(crate) fn count_at(&self, begin_ts: u64) -> Option<usize> {
        // Acquire: had a later commit been counted, it would be noted.
        let live = self.live.load(Ordering::Acquire);
        (self.changed() <= begin_ts).then_some(live.max(0) as usize)
    }

    /// Returns true if the caller is the one that must list the page as one to be frozen. Relaxed: the list has a lock.
    pub(crate) fn enlist(&self) -> bool {
        !self.is_listed.load(Ordering::Relaxed) && !self.is_listed.swap(true, Ordering::Relaxed)
    }

    /// Notes that the page left that list, before the caller looks at the page.
    pub(crate) fn delist(&self) {
        // SeqCst: an element that begins after the look finds the page delisted.
        self.is_listed.swap(false, Ordering::SeqCst);
    }

    pub(crate) fn live_count(&self) -> u64 {
        self.live.load(Ordering::Relaxed).max(0) as u64
    }

    // --- Images -------------------------------------------------------------------------------------

    /// Notes that a commit has changed the page, before the commit is finished (STORE-26).
    #[inline]
    pub(crate) fn note_change(&self, ts: u64) {
        // A caller that asks about commits up to a timestamp has seen them finished, and with them this note.
        // It is read first, since commits mostly come in order and the cache line is shared. SeqCst: the look whether writes of
        // properties are noted comes after this (STORE-38).
        if self.changed.load(Ordering::SeqCst) < ts {
            self.changed.fetch_max(ts, Ordering::SeqCst);
        }
    }

    /// Returns true if no commit has changed the page since the last call.
    pub(crate) fn is_quiet(&self) -> bool {
        let changed = self.changed();
        self.seen_change.swap(changed, Ordering::Relaxed) == changed
    }

    /// The timestamp of the last commit that changed the page; the base if none has since it was loaded.
    pub(crate) fn changed(&self) -> u64 {
        self.changed.load(Ordering::SeqCst)
    }

    /// Restores a page that is not published: `used` slots, of which those in `live` have an element.
    pub(crate) fn restore(&mut self, used: usize, live: &SlotSet, changed: u64, memory: &Memory) {
        assert!(used <= self.capacity(), "{used} slots are used of {}", self.capacity);
        *self.used.get_mut() = used as u32;
        // Free slots get version words, which take every slot before `clean` for an element of the base.
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

    /// Sets the generation of a slot of a page that is not published.
    pub(crate) fn set_generation(&self, at: usize, generation: u16, memory: &Memory) {
        if generation > 0 || !self.is_first_generation() {
            self.reuse();
            self.generations_or_create(memory)[at].store(generation, Ordering::Release);
        }
    }

    /// Lets transactions reserve the remaining slots. Only before the page is published.
    pub(crate) fn unseal(&mut self) {
        self.sealed = false;
    }

    /// The column of a key.
    #[inline]
    pub(crate) fn column(&self, key: KeyId) -> Option<&Column> {
        self.columns.get(key.0)
    }

    /// The column of a key, which is made if it is missing.
    pub(crate) fn column_or_create(&self, key: KeyId, memory: &Memory) -> &Column {
        if self.columns.get(key.0).is_none() {
            // Before the column is there. Two threads that make the same one count it twice, which does no harm.
            _ = self.columns_max.fetch_update(Ordering::AcqRel, Ordering::Relaxed, |count| count.checked_add(1));
        }
        self.columns.get_or_insert_with(key.0, (memory, RecordKind::Column), || Column::new(self.capacity()))
    }

    /// The columns in the order they were first written.
    pub(crate) fn columns(&self) -> impl Iterator<Item = (KeyId, &Column)> {
        // Acquire: who has seen a column, sees that it was counted.
        let count = match self.columns_max.load(Ordering::Acquire) {
            u8::MAX => usize::MAX,
            count => count.into(),
        };
        self.columns.iter().take(count).map(|(key, column)| (KeyId(key), column))
    }

    fn ids_or_create(&self, memory: &Memory) -> &Column {
        self.ids.get_or_init(|| {
            memory.add(RecordKind::Column, size_of::<Column>());
            Box::new(Column::new(self.capacity()))
        })
    }

    /// Makes columns dense that a load will fill for most elements: chosen ids, and the values of some keys.
    pub(crate) fn expect_many(&self, ids: bool, keys: impl Iterator<Item = KeyId>, space: Space<'_>) {
        if ids {
            self.ids_or_create(space.memory).make_dense(space);
        }
        keys.for_each(|key| self.column_or_create(key, space.memory).make_dense(space));
    }

    /// Sets the id that a user chose, before the element begins.
    pub(crate) fn set_user_id(&self, at: usize, id: &UserId, region: &ValueRegion, space: Space<'_>) {
        self.set_user_id_cell(at, region.encode(id.to_value(), space.memory), space);
    }

    /// As [`PageCore::set_user_id`], for an id that is encoded already.
    pub(crate) fn set_user_id_cell(&self, at: usize, cell: RawCell, space: Space<'_>) {
        self.ids_or_create(space.memory).set_in_place(at, cell, space);
    }

    /// The cell of the id that a user chose; absent if the id is automatic.
    #[inline]
    pub(crate) fn user_id(&self, at: usize) -> RawCell {
        self.ids.get().map_or(RawCell::ABSENT, |ids| ids.newest(at))
    }

    /// Returns true if any element of the page ever had a chosen id.
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

    /// Clears the chosen id of a slot whose element no snapshot sees.
    pub(crate) fn clear_user_id(&self, at: usize) {
        if let Some(ids) = self.ids.get() {
            ids.clear_in_place(at);
        }
    }

    /// Returns true if a user chose this id for the slot.
    pub(crate) fn has_user_id(&self, at: usize, id: &UserId, region: &ValueRegion) -> bool {
        match region.decode(self.user_id(at)) {
            Content::One(value) => UserId::from_value(&value).as_ref() == Some(id),
            _ => false,
        }
    }

    pub(crate) fn add_bytes(&self, add: &mut impl FnMut(RecordKind, usize)) {
        let free_slots = if self.free_slots.is_some() { size_of::<SlotSet>() } else { 0 };
        add(RecordKind::Version, self.versions.bytes() + free_slots + self.generations.bytes());
        add(RecordKind::Column, self.ids.get().map_or(0, |ids| size_of_val(&**ids)));
        for column in self.ids.get().map(|ids| &**ids).into_iter().chain(self.columns.iter().map(|(_, column)| column))
        {
            let (values, heads) = column.bytes();
            add(RecordKind::Column, values);
            add(RecordKind::Undo, heads);
        }
        add(RecordKind::Column, self.columns.bytes());
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    #[test]
    fn the_third_release_is_the_last_and_generations_do_not_see_any() {
        let memory = Memory::new(u64::MAX);
        let core = PageCore::clean(LabelSetId(0), 8);
        let mut generations = Vec::new();
        for generation in 0..5 {
            assert_eq!([3, 4, 3].map(|at| core.release_reference(at, generation, &memory)), [false; 3]);
            core.generations_of(8, &mut generations);
            assert_eq!((core.is_first_generation(), generations.is_empty()), (generation == 0, generation == 0));
            assert_eq!([3, 4].map(|at| core.generation(at)), [generation; 2]);
            assert!(core.release_reference(3, generation, &memory));
            assert_eq!([4, 4].map(|at| core.release_reference(at, generation, &memory)), [false, true]);
            assert_eq!([3, 4].map(|at| core.next_generation(at, &memory)), [generation + 1; 2]);
        }
        core.generations_of(5, &mut generations);
        assert_eq!(generations, [0, 0, 0, 5, 5]);
        core.set_generation(7, GENERATION_MAX, &memory);
        assert!(!core.release_reference(7, GENERATION_MAX, &memory) && core.is_used_up(7) && !core.is_used_up(3));
        let (mut counted, expected) = (0, memory.report().total_bytes());
        core.add_bytes(&mut |_, bytes| counted += bytes as u64);
        assert_eq!((counted, expected), (16, 16), "two bytes a slot");
    }

    #[test]
    #[should_panic(expected = "slot 2 was released 4 times")]
    fn a_fourth_release_is_a_mistake() {
        let (core, memory) = (PageCore::clean(LabelSetId(0), 8), Memory::new(u64::MAX));
        core.generations_or_create(&memory)[2].store(REFERENCES << RELEASED_SHIFT, Ordering::Relaxed);
        core.release_reference(2, 0, &memory);
    }
}
