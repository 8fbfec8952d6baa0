//! Epochs: when what was unlinked may be freed or used again.
//!
//! A thread *pins* itself while it follows published pointers and numbers: a call of a view or a writer (an
//! operator's quantum), never a transaction. What is unlinked meanwhile is *retired* with a tag, and released
//! once every pin is younger than the tag. There is one domain for the whole process and one slot a thread.
//!
//! ```text
//! reader:    slot = epoch; fence ──▶ follow pointers ──▶ slot = 0
//! reclaimer: unlink; tag = epoch++; fence ──▶ every slot 0 or > tag? ──▶ release
//! ```
//!
//! Invariants:
//!
//! 1. A thread's slot is 0, or an epoch that was current at or before the moment its outermost pin began.
//! 2. A thing is unlinked before its tag is drawn: whoever pins later can no longer reach it.
//! 3. A thing with tag `t` is released only after all slots were seen to be 0 or greater than `t`.
//!
//! Why 3 suffices. Let a reader hold a reference to a released thing. If the reclaimer saw its slot as 0, then by
//! the two SeqCst fences the reader's loads come after the unlinking, and it found nothing (a pin that ended in
//! between holds no reference). If the reclaimer saw an epoch above `t`, the reader has read an epoch that was
//! written by the drawing of `t` or after it; the drawing is a read-modify-write that released the unlinking, so
//! again the reader found nothing. An epoch that is older than it need be only delays the release.
//!
//! [`EpochCell`] and [`EpochSlice`] hold what is replaced as a whole; [`RecordCell`] a record that is written once
//! and cleared for the next. All three are safe to use: a reference lives no longer than the pin it was taken
//! under, and what they release goes through a [`crate::limbo::Limbo`], which keeps invariant 3.

#![expect(unsafe_code, reason = "memory that is freed while readers come and go; see the invariants above")]

use std::cell::{Cell, UnsafeCell};
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crossbeam_utils::CachePadded;

use crate::sync::{AtomicPtr, AtomicU8, AtomicU64, Mutex, fence, thread_local};

type ThreadSlot = Arc<CachePadded<AtomicU64>>;

/// The epoch and the slots of all threads.
struct Domain {
    /// Read by every pin: apart from the lock, which whoever releases takes.
    epoch: CachePadded<AtomicU64>,
    slots: Mutex<Vec<ThreadSlot>>,
}

#[cfg(not(feature = "model"))]
static DOMAIN: Domain = Domain { epoch: CachePadded::new(AtomicU64::new(1)), slots: Mutex::new(Vec::new()) };
#[cfg(feature = "model")]
shuttle::lazy_static! {
    static ref DOMAIN: Domain = Domain { epoch: CachePadded::new(AtomicU64::new(1)), slots: Mutex::new(Vec::new()) };
}

impl Domain {
    fn register(&self) -> ThreadSlot {
        let slot = ThreadSlot::default();
        self.slots.lock().push(slot.clone());
        slot
    }

    fn forget(&self, slot: &ThreadSlot) {
        self.slots.lock().retain(|other| !Arc::ptr_eq(other, slot));
    }

    fn enter(&self, slot: &ThreadSlot) {
        slot.store(self.epoch.load(Ordering::Acquire), Ordering::Relaxed);
        // SeqCst: the slot is visible before anything is followed. Pairs with the fence in `oldest_pin`.
        fence(Ordering::SeqCst);
    }
}

/// A thread's place in the domain.
struct Local {
    slot: ThreadSlot,
    depth: Cell<u32>,
}

impl Drop for Local {
    fn drop(&mut self) {
        // A pin that outlives its thread's slot (kept in another thread-local) holds everything back for good, which
        // is a leak, and sound.
        // A model that fails has no domain any more when its threads are taken down, and asking for it would hide why.
        let is_lost = cfg!(feature = "model") && std::thread::panicking();
        if self.depth.get() == 0 && !is_lost {
            DOMAIN.forget(&self.slot);
        }
    }
}

thread_local! {
    static LOCAL: Local = Local { slot: DOMAIN.register(), depth: Cell::new(0) };
}

/// While this lives, nothing that its thread finds is released. Pins nest; only the outermost costs a fence.
#[must_use = "what was found is protected only while the pin lives"]
pub struct Pin {
    /// The slot of a pin taken while the thread's own is already gone, when the thread ends.
    stray: Option<ThreadSlot>,
    /// A pin belongs to the thread that took it.
    not_send: PhantomData<*const ()>,
}

/// Pins the thread.
#[inline]
pub fn pin() -> Pin {
    let pinned = LOCAL.try_with(|local| {
        let depth = local.depth.get();
        local.depth.set(depth + 1);
        if depth == 0 {
            DOMAIN.enter(&local.slot);
        }
    });
    Pin { stray: if pinned.is_ok() { None } else { Some(stray_pin()) }, not_send: PhantomData }
}

#[cold]
fn stray_pin() -> ThreadSlot {
    let slot = DOMAIN.register();
    DOMAIN.enter(&slot);
    slot
}

impl Drop for Pin {
    #[inline]
    fn drop(&mut self) {
        if let Some(slot) = self.stray.take() {
            DOMAIN.forget(&slot);
            return;
        }
        // Fails only for a pin that outlived the slot: see there.
        let _ = LOCAL.try_with(|local| {
            let depth = local.depth.get() - 1;
            local.depth.set(depth);
            if depth == 0 {
                // Release: what was read under the pin was read before its end.
                local.slot.store(0, Ordering::Release);
            }
        });
    }
}

impl std::fmt::Debug for Pin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Pin")
    }
}

/// Draws the tag of what the caller has just unlinked.
pub(crate) fn draw_tag() -> u64 {
    DOMAIN.epoch.fetch_add(1, Ordering::SeqCst)
}

/// The smallest epoch that a thread is pinned in: what has a smaller tag may be released.
pub(crate) fn oldest_pin() -> u64 {
    // SeqCst: the caller has unlinked before; see the module.
    fence(Ordering::SeqCst);
    let now = DOMAIN.epoch.load(Ordering::SeqCst);
    let pinned = |slot: &ThreadSlot| Some(slot.load(Ordering::Acquire)).filter(|&epoch| epoch != 0);
    DOMAIN.slots.lock().iter().filter_map(pinned).fold(now, u64::min)
}

/// The time until every pin that there was at its beginning has ended.
#[derive(Debug)]
pub struct Grace(u64);

impl Grace {
    /// Begins now.
    pub fn begin() -> Self {
        Grace(draw_tag())
    }

    /// Whether all those pins have ended. Never, as long as the caller has one of them.
    pub fn is_over(&self) -> bool {
        oldest_pin() > self.0
    }
}

/// Waits until every pin that there is now has ended. Not under a pin of one's own.
pub fn wait_for_readers() {
    let grace = Grace::begin();
    while !grace.is_over() {
        crate::sync::yield_now();
    }
}

/// A reference that brings its own pin.
pub(crate) struct Guarded<'a, T: ?Sized> {
    target: &'a T,
    _pin: Pin,
}

impl<T: ?Sized> Deref for Guarded<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        self.target
    }
}

/// Memory that was unlinked and is not freed yet. Dropping it leaks; a `Limbo` frees it in time.
#[derive(Debug)]
pub(crate) struct Retired {
    target: *mut (),
    len: usize,
    free: unsafe fn(*mut (), usize),
}

// SAFETY: made only from boxes of `T: Send` (bounds of `swap` below), and gives no access but freeing.
unsafe impl Send for Retired {}

impl Retired {
    /// Frees the memory.
    ///
    /// # Safety
    /// Every pin in the process must have begun after the memory was unlinked (invariant 3).
    pub(crate) unsafe fn free(self) {
        // SAFETY: `target` and `len` are those of the box that `free` was made for, given up once by `swap`;
        // the caller vouches that nobody has a reference.
        unsafe { (self.free)(self.target, self.len) }
    }
}

/// A box that is replaced as a whole while others read it, or nothing.
pub(crate) struct EpochCell<T> {
    target: AtomicPtr<T>,
    owns: PhantomData<Box<T>>,
}

// SAFETY: shares `&T` among threads and moves boxes of `T` between them, as a `RwLock<Box<T>>` does.
unsafe impl<T: Send + Sync> Send for EpochCell<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for EpochCell<T> {}

impl<T> Default for EpochCell<T> {
    fn default() -> Self {
        EpochCell { target: AtomicPtr::new(std::ptr::null_mut()), owns: PhantomData }
    }
}

/// `'static`: what was in the cell may be dropped long after the cell.
impl<T: Send + Sync + 'static> EpochCell<T> {
    pub(crate) fn new(content: T) -> Self {
        EpochCell { target: AtomicPtr::new(Box::into_raw(Box::new(content))), owns: PhantomData }
    }

    /// What is in the cell now.
    #[inline]
    pub(crate) fn get<'p>(&'p self, _pin: &'p Pin) -> Option<&'p T> {
        // SAFETY: null, or a box that `new` or `swap` put here. It is freed by `Retired::free` only once every
        // pin is younger than its unlinking, so not while this pin lives; or by `drop`, which the borrow of
        // the cell excludes. Acquire: its partner is the Release in `swap`.
        unsafe { self.target.load(Ordering::Acquire).as_ref() }
    }

    /// Whether there is anything in the cell.
    pub(crate) fn is_some(&self) -> bool {
        !self.target.load(Ordering::Relaxed).is_null()
    }

    /// What is in the cell now, with a pin of its own.
    #[inline]
    pub(crate) fn load(&self) -> Option<Guarded<'_, T>> {
        let pin = pin();
        // SAFETY: as in `get`; the guard keeps the pin as long as the reference.
        let target = unsafe { self.target.load(Ordering::Acquire).as_ref() }?;
        Some(Guarded { target, _pin: pin })
    }

    /// Puts something else into the cell; what was there goes to a `Limbo`.
    pub(crate) fn swap(&self, content: Option<T>) -> Option<Retired> {
        unsafe fn free<T>(target: *mut (), _: usize) {
            // SAFETY: `swap` made the pointer of a `Box<T>` and gave it up; see `Retired::free`.
            drop(unsafe { Box::from_raw(target.cast::<T>()) });
        }
        let new = content.map_or(std::ptr::null_mut(), |content| Box::into_raw(Box::new(content)));
        let old = self.target.swap(new, Ordering::AcqRel);
        (!old.is_null()).then(|| Retired { target: old.cast(), len: 1, free: free::<T> })
    }
}

impl<T> Drop for EpochCell<T> {
    fn drop(&mut self) {
        let target = self.target.load(Ordering::Relaxed);
        if !target.is_null() {
            // SAFETY: a box of this cell, and `&mut self` says that nobody borrows the cell.
            drop(unsafe { Box::from_raw(target) });
        }
    }
}

impl<T: Send + Sync + std::fmt::Debug + 'static> std::fmt::Debug for EpochCell<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("EpochCell").field(&self.load().as_deref()).finish()
    }
}

/// An array of a fixed length that is there or not, one pointer away.
pub(crate) struct EpochSlice<T> {
    first: AtomicPtr<T>,
    len: usize,
    owns: PhantomData<Box<[T]>>,
}

// SAFETY: as for `EpochCell`.
unsafe impl<T: Send + Sync> Send for EpochSlice<T> {}
// SAFETY: as for `EpochCell`.
unsafe impl<T: Send + Sync> Sync for EpochSlice<T> {}

/// `'static`: as for [`EpochCell`].
impl<T: Send + Sync + 'static> EpochSlice<T> {
    /// Nothing yet; arrays of `len` entries to come.
    pub(crate) fn empty(len: usize) -> Self {
        EpochSlice { first: AtomicPtr::new(std::ptr::null_mut()), len, owns: PhantomData }
    }

    /// How many entries the array has, once it is there.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The array that is there now.
    #[inline]
    pub(crate) fn get<'p>(&'p self, _pin: &'p Pin) -> Option<&'p [T]> {
        let first = self.first.load(Ordering::Acquire);
        // SAFETY: null, or the first entry of a boxed array of `len` entries (`get_or_init` is the only one who
        // stores one). Freed as in `EpochCell::get`.
        (!first.is_null()).then(|| unsafe { std::slice::from_raw_parts(first, self.len) })
    }

    /// The array that is there, for who has the cell to himself.
    pub(crate) fn get_mut(&mut self) -> Option<&mut [T]> {
        let first = *self.first.get_mut();
        // SAFETY: null, or the first entry of a boxed array of `len` entries of this cell; `&mut self` says that nobody
        // else borrows it.
        (!first.is_null()).then(|| unsafe { std::slice::from_raw_parts_mut(first, self.len) })
    }

    /// Whether there is an array.
    #[inline]
    pub(crate) fn is_some(&self) -> bool {
        !self.first.load(Ordering::Acquire).is_null()
    }

    /// The array that is there now, made where it is missing, and whether it is the one made here.
    pub(crate) fn get_or_init<'p>(&'p self, pin: &'p Pin, make: impl FnOnce() -> Box<[T]>) -> (&'p [T], bool) {
        if let Some(array) = self.get(pin) {
            return (array, false);
        }
        let made = make();
        assert_eq!(made.len(), self.len, "all arrays of a cell are of one length");
        let made = Box::into_raw(made);
        let publish =
            self.first.compare_exchange(std::ptr::null_mut(), made.cast::<T>(), Ordering::AcqRel, Ordering::Acquire);
        match publish {
            // SAFETY: as in `get`.
            Ok(_) => (unsafe { &*made }, true),
            Err(first) => {
                // SAFETY: the box made above, which nobody else has seen.
                drop(unsafe { Box::from_raw(made) });
                // SAFETY: as in `get`; not null, or the exchange had succeeded.
                (unsafe { std::slice::from_raw_parts(first, self.len) }, false)
            }
        }
    }

    /// Takes the array away.
    pub(crate) fn take(&self) -> Option<Retired> {
        unsafe fn free<T>(target: *mut (), len: usize) {
            // SAFETY: `get_or_init` made the pointer of a boxed array of `len` entries; see `Retired::free`.
            drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(target.cast::<T>(), len)) });
        }
        let old = self.first.swap(std::ptr::null_mut(), Ordering::AcqRel);
        (!old.is_null()).then(|| Retired { target: old.cast(), len: self.len, free: free::<T> })
    }

    /// The bytes of the array that is there.
    pub(crate) fn bytes(&self) -> usize {
        if self.is_some() { self.len * size_of::<T>() } else { 0 }
    }
}

impl<T> Drop for EpochSlice<T> {
    fn drop(&mut self) {
        let first = self.first.load(Ordering::Relaxed);
        if !first.is_null() {
            // SAFETY: a boxed array of `len` entries of this cell, and `&mut self` says that nobody borrows it.
            drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(first, self.len)) });
        }
    }
}

impl<T> std::fmt::Debug for EpochSlice<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "EpochSlice(of {})", self.len)
    }
}

const EMPTY: u8 = 0;
const WRITING: u8 = 1;
const FULL: u8 = 2;
const DYING: u8 = 3;

/// A record of a pool that is written once, read by many, and cleared for the next: `EMPTY → WRITING → FULL →
/// DYING → EMPTY`. Whoever asks for the content of any cell at any time gets a sound answer, even by a number that
/// names something else by now: content is given out while `FULL` only, and cleared a grace period after that.
pub(crate) struct RecordCell<T> {
    state: AtomicU8,
    content: UnsafeCell<MaybeUninit<T>>,
}

// SAFETY: shares `&T` and moves `T` between threads; the state says who may write.
unsafe impl<T: Send + Sync> Send for RecordCell<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for RecordCell<T> {}

impl<T> Default for RecordCell<T> {
    fn default() -> Self {
        RecordCell { state: AtomicU8::new(EMPTY), content: UnsafeCell::new(MaybeUninit::uninit()) }
    }
}

impl<T: Send + Sync> RecordCell<T> {
    /// The content, where there is one.
    #[inline]
    pub(crate) fn get<'p>(&'p self, _pin: &'p Pin) -> Option<&'p T> {
        // SAFETY: FULL is stored (Release) after the content is written. `clear` waits until every pin is younger
        // than the change to DYING, so the content stays while this pin lives.
        (self.state.load(Ordering::Acquire) == FULL).then(|| unsafe { (*self.content.get()).assume_init_ref() })
    }

    /// Writes an empty cell. Panics when it is not empty: a number was given out twice.
    pub(crate) fn set(&self, content: T) {
        let claimed = self.state.compare_exchange(EMPTY, WRITING, Ordering::Acquire, Ordering::Relaxed);
        assert!(claimed.is_ok(), "a record that is given out is empty");
        // SAFETY: WRITING is entered by one thread, and nobody looks at the content before FULL.
        unsafe { (*self.content.get()).write(content) };
        self.state.store(FULL, Ordering::Release);
    }

    /// Refuses the content to readers from now on; false if the cell is not full.
    pub(crate) fn retire(&self) -> bool {
        self.state.compare_exchange(FULL, DYING, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Takes the content out of a retired cell, which is then empty; `None` if it is not retired.
    ///
    /// # Safety
    /// Every pin in the process must have begun after [`RecordCell::retire`].
    pub(crate) unsafe fn clear(&self) -> Option<T> {
        let claimed = self.state.compare_exchange(DYING, WRITING, Ordering::Acquire, Ordering::Relaxed);
        claimed.ok()?;
        // SAFETY: DYING comes after FULL, so there is content; the change to WRITING is made by one thread; and the
        // caller vouches that nobody has a reference.
        let content = unsafe { (*self.content.get()).assume_init_read() };
        self.state.store(EMPTY, Ordering::Release);
        Some(content)
    }
}

impl<T> Drop for RecordCell<T> {
    fn drop(&mut self) {
        if matches!(self.state.load(Ordering::Relaxed), FULL | DYING) {
            // SAFETY: there is content in these states, and `&mut self` says that nobody borrows the cell.
            unsafe { self.content.get_mut().assume_init_drop() };
        }
    }
}

impl<T> std::fmt::Debug for RecordCell<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RecordCell")
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;
    use crate::limbo::Limbo;

    #[test]
    fn a_pin_holds_back_what_was_unlinked_under_it_and_nothing_else() {
        let outer = pin();
        let tag = draw_tag();
        assert!(oldest_pin() <= tag);
        let inner = pin();
        drop(outer);
        assert!(oldest_pin() <= tag, "pins nest");
        drop(inner);
        // Other tests of this process may be pinned now and then.
        while oldest_pin() <= tag {
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_replaced_box_is_readable_until_the_pin_ends() {
        let (cell, limbo) = (EpochCell::new(vec![1, 2, 3]), Limbo::default());
        let pin = pin();
        let before = cell.get(&pin).unwrap();
        limbo.retire(cell.swap(Some(vec![4])));
        limbo.release_boxes();
        assert_eq!((before.as_slice(), cell.load().unwrap().as_slice()), (&[1, 2, 3][..], &[4][..]));
        drop(pin);
        limbo.retire(cell.swap(None));
        assert!(cell.load().is_none());
    }

    #[test]
    fn an_array_is_made_once_and_taken_away() {
        let (slice, limbo) = (EpochSlice::<u64>::empty(3), Limbo::default());
        let pin = pin();
        assert!(slice.get(&pin).is_none());
        assert_eq!(slice.get_or_init(&pin, || vec![1, 2, 3].into()), (&[1, 2, 3][..], true));
        assert_eq!(slice.get_or_init(&pin, || unreachable!("there is one")), (&[1, 2, 3][..], false));
        assert_eq!(slice.bytes(), 24);
        limbo.retire(slice.take());
        assert!(slice.get(&pin).is_none() && slice.take().is_none());
    }

    #[test]
    fn a_record_goes_round_its_states() {
        let cell = RecordCell::default();
        let first = pin();
        assert!(cell.get(&first).is_none() && !cell.retire());
        cell.set(String::from("content"));
        let seen = cell.get(&first).unwrap();
        assert!(cell.retire() && !cell.retire() && cell.get(&first).is_none());
        assert_eq!(seen, "content");
        drop(first);
        wait_for_readers();
        // SAFETY: every pin since has ended.
        assert_eq!(unsafe { cell.clear() }.as_deref(), Some("content"));
        cell.set(String::from("again"));
        assert_eq!(cell.get(&pin()).map(String::as_str), Some("again"));
    }

    #[test]
    fn readers_race_with_a_replacer() {
        let (cell, limbo) = (EpochCell::new((0_u64, 0_u64)), Limbo::default());
        let rounds = if cfg!(miri) { 20 } else { 5_000 };
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..rounds {
                        let seen = cell.load().unwrap();
                        assert_eq!(seen.1, 2 * seen.0);
                    }
                });
            }
            scope.spawn(|| {
                for n in 1..=rounds {
                    limbo.retire(cell.swap(Some((n, 2 * n))));
                    limbo.release_boxes();
                }
            });
        });
    }
}
