//! Epochs: when unlinked memory may be freed or used again.
//!
//! A thread *pins* itself while it follows published pointers and numbers. A pin lasts for one call of a view or of a
//! writer, never for a transaction. Memory that is unlinked in the meantime is *retired* with a tag. It is released
//! once every pin is younger than the tag. The process has one domain; each thread has one slot in it.
//!
//! ```text
//! reader:    slot = epoch; fence ──▶ follow pointers ──▶ slot = 0
//! writer:    unlink; tag = epoch++
//! reclaimer: epoch > tag? fence ──▶ every slot 0 or > tag? ──▶ release
//! ```
//!
//! - **RECLAIM-1.** A thread's slot is 0, or an epoch that was current when its outermost pin began, or an earlier one.
//! - **RECLAIM-2.** Memory is unlinked before its tag is drawn, so a thread that pins later cannot reach it.
//! - **RECLAIM-3.** Memory with tag `t` is released only after every slot was seen to be 0 or greater than `t`.
//!
//! Why RECLAIM-3 suffices. Suppose that a reader holds a reference to released memory. There are two cases.
//!
//! - *The reclaimer saw the reader's slot as 0.* The reclaimer has read an epoch above `t` before its fence, so the
//!   unlinking comes before that fence, whichever thread unlinked. By the two SeqCst fences, the reader's loads come
//!   after the unlinking, so the reader cannot have found the memory. (A pin that ended in between holds no reference.)
//! - *The reclaimer saw an epoch above `t`.* The reader has then read an epoch that was written by the drawing of `t`,
//!   or after it. The drawing is a read-modify-write that released the unlinking, so again the reader cannot have found
//!   it.
//!
//! Reads of a pin that has ended come before the freeing, too: every store to a slot is Release, that of the next pin's
//! epoch included, and the reclaimer loads the slot with Acquire.
//!
//! A slot with an older epoch than necessary only delays the release. `tests/loom.rs` tries the protocol out under weak
//! memory.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crossbeam_utils::CachePadded;
use mangrove_locks::rank;

use crate::sync::{AtomicU64, Mutex, fence, thread_local};

type ThreadSlot = Arc<CachePadded<AtomicU64>>;

/// The epoch and the slots of all threads.
struct Domain {
    /// Every pin reads it, so it is on another cache line than the lock, which every release takes.
    epoch: CachePadded<AtomicU64>,
    slots: Mutex<Vec<ThreadSlot>, rank::PinnedThreads>,
}

#[cfg(not(any(feature = "model", feature = "loom")))]
static DOMAIN: Domain = Domain { epoch: CachePadded::new(AtomicU64::new(1)), slots: Mutex::new(Vec::new()) };
#[cfg(feature = "model")]
shuttle::lazy_static! {
    static ref DOMAIN: Domain = Domain { epoch: CachePadded::new(AtomicU64::new(1)), slots: Mutex::new(Vec::new()) };
}
#[cfg(feature = "loom")]
loom::lazy_static! {
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
        // Release: a reclaimer that reads this epoch also sees the end of the thread's last pin, and so may free what
        // that pin protected.
        slot.store(self.epoch.load(Ordering::Acquire), Ordering::Release);
        // SeqCst: the slot is visible before the thread follows any pointer. Pairs with the fence in `oldest_pin`.
        fence(Ordering::SeqCst);
    }
}

/// A thread's slot in the domain, and how many pins of the thread are nested.
struct Local {
    slot: ThreadSlot,
    depth: Cell<u32>,
}

impl Drop for Local {
    fn drop(&mut self) {
        // A pin may outlive its thread's slot if it is kept in another thread-local. The slot then stays in the domain
        // and holds everything back for good: a leak, but sound. The domain is gone before its threads are when a
        // shuttle model fails, and whenever a loom model ends. Asking for it would hide why the model failed.
        let is_lost = cfg!(feature = "loom") || (cfg!(feature = "model") && std::thread::panicking());
        if self.depth.get() == 0 && !is_lost {
            DOMAIN.forget(&self.slot);
        }
    }
}

thread_local! {
    static LOCAL: Local = Local { slot: DOMAIN.register(), depth: Cell::new(0) };
}

/// A guard: while it lives, no memory that its thread finds is released. Pins nest, and only the outermost costs a
/// fence.
///
/// Invariant: RECLAIM-1. A pin stays on its thread.
#[must_use = "what was found is protected only while the pin lives"]
pub struct Pin {
    /// A slot of its own, for a pin that is taken while the thread ends and the thread's slot is gone.
    stray: Option<ThreadSlot>,
    /// A pin belongs to the thread that took it.
    not_send: PhantomData<*const ()>,
}

/// Pins the calling thread.
#[inline]
pub fn pin() -> Pin {
    let pinned = LOCAL.try_with(|local| {
        let depth = local.depth.get();
        local.depth.set(depth + 1);
        if depth == 0 {
            // RECLAIM-1: the slot gets an epoch before the thread follows any pointer.
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
        // Fails only for a pin that outlived the slot (`Local::drop`).
        let _ = LOCAL.try_with(|local| {
            let depth = local.depth.get() - 1;
            local.depth.set(depth);
            if depth == 0 {
                // Release: every read under the pin comes before its end.
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

/// Draws the tag of the memory that the caller has just unlinked.
pub fn draw_tag() -> u64 {
    // RECLAIM-2: the read-modify-write releases the unlinking, which the caller has done before.
    DOMAIN.epoch.fetch_add(1, Ordering::SeqCst)
}

/// The smallest epoch that a thread is pinned in. Memory with a smaller tag may be released (RECLAIM-3).
pub fn oldest_pin() -> u64 {
    // Acquire, before the fence: everything with a smaller tag, whichever thread drew it, was unlinked before the fence.
    let now = DOMAIN.epoch.load(Ordering::Acquire);
    // SeqCst: pairs with the fence in `Domain::enter`.
    fence(Ordering::SeqCst);
    let pinned = |slot: &ThreadSlot| Some(slot.load(Ordering::Acquire)).filter(|&epoch| epoch != 0);
    DOMAIN.slots.lock().iter().filter_map(pinned).fold(now, u64::min)
}

/// A grace period: it lasts until every pin that existed when it began has ended.
#[derive(Debug)]
pub struct Grace(u64);

impl Grace {
    /// Begins a grace period.
    pub fn begin() -> Self {
        Grace(draw_tag())
    }

    /// Returns true if all those pins have ended. It cannot while the caller holds one of them.
    pub fn is_over(&self) -> bool {
        oldest_pin() > self.0
    }
}

/// Waits for a grace period. The caller must not hold a pin, or it waits for itself.
pub fn wait_for_readers() {
    let grace = Grace::begin();
    while !grace.is_over() {
        crate::sync::yield_now();
    }
}

#[cfg(all(test, not(any(feature = "model", feature = "loom"))))]
mod tests {
    use super::*;

    #[test]
    fn a_pin_holds_back_what_was_unlinked_under_it_and_nothing_else() {
        let outer = pin();
        let tag = draw_tag();
        assert!(oldest_pin() <= tag);
        let inner = pin();
        drop(outer);
        assert!(oldest_pin() <= tag, "pins nest");
        drop(inner);
        // Other tests of this process pin their threads, too.
        while oldest_pin() <= tag {
            std::thread::yield_now();
        }
    }
}
