//! The threads that work on an algorithm: its caller, and executors that join while they have nothing better to do.
//!
//! An algorithm is a sequence of *phases*. A phase has parts, which are numbered. Each thread draws the next number, works
//! on that part, and draws again. The caller always takes part, so a phase ends also if no executor ever joins.
//! An executor joins as a helper task, which gets a turn only when no query waits for one, and leaves after a few parts. So
//! parts are small: about 0.1 ms each.
//!
//! ```text
//! caller:    open the phase ──▶ draw parts until none is left ──▶ close it ──▶ wait for those inside ──▶ next phase
//! executor:  enter ──▶ is a phase open? draw parts ──▶ leave ──▶ look for the next phase for a moment, then sleep
//! ```
//!
//! - **ALGO-1.** The work of a phase is borrowed from the caller's stack. No executor uses it after the phase: one counts as
//!   inside before it looks whether the phase is open, and the caller returns only when the phase is closed and no thread
//!   is inside.
//! - **ALGO-2.** What an algorithm computes does not depend on how many threads take part: a part writes only what is its own, or what any
//!   order of writes leaves the same, and partial results are put together in the order of the parts.
//!
//! Both looks of ALGO-1 are a store and then a load of another place, on both sides. Sequential consistency makes one of
//! the two see the other.

use std::any::Any;
use std::cell::{Cell, UnsafeCell};
use std::marker::PhantomData;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use mangrove_flow::QueryControl;
use mangrove_flow::schedule::{Executors, Task, TaskStatus, Tenant, Waker};
use mangrove_graph::{Error, Result};
use parking_lot::Mutex;

/// Parts that an executor works on in one turn: about a millisecond.
const PARTS_A_TURN: usize = 8;
/// How often an executor looks for the next phase before it sleeps: for tens of microseconds, as long as a caller needs
/// between two phases, and as long as a sleeping thread takes to wake.
const LOOKS: usize = 2_000;

/// The work of a phase: what is to be done for a part.
type Work<'w> = dyn Fn(usize) + Sync + 'w;

/// The threads that work on an algorithm.
///
/// A team is used by one thread at a time, and a part cannot begin a phase.
pub struct Team {
    gang: Arc<Gang>,
    control: Option<Arc<QueryControl>>,
    /// Makes the team unfit to be shared between threads (ALGO-1: one phase at a time).
    not_shared: PhantomData<Cell<()>>,
}

impl std::fmt::Debug for Team {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Team").field("helpers", &self.gang.helpers.lock().len()).finish_non_exhaustive()
    }
}

impl Team {
    /// The caller alone.
    pub fn alone() -> Self {
        Team { gang: Arc::new(Gang::default()), control: None, not_shared: PhantomData }
    }

    /// The caller, and up to `helpers` executors, which count for a tenant.
    pub fn with_executors(executors: &Executors, tenant: &Tenant, helpers: usize) -> Self {
        let team = Team::alone();
        for number in 0..helpers {
            let gang = team.gang.clone();
            executors.spawn_helper(tenant, |waker| {
                gang.helpers.lock().push(waker);
                gang.is_asleep.lock().push(false);
                Box::new(Helper { gang: gang.clone(), number })
            });
        }
        team
    }

    /// Ends algorithms of this team with an error when the control of their query says so.
    pub fn controlled_by(mut self, control: Arc<QueryControl>) -> Self {
        self.control = Some(control);
        self
    }

    /// The control of the query that the team works for.
    pub fn control(&self) -> Option<&Arc<QueryControl>> {
        self.control.as_ref()
    }

    /// Calls `work` with every number below `parts`, in any order and from several threads.
    ///
    /// # Errors
    ///
    /// If the query was cancelled or its time is over; then some parts were left out.
    pub fn for_parts(&self, parts: usize, work: impl Fn(usize) + Sync) -> Result<()> {
        let failed: Mutex<Option<Error>> = Mutex::new(None);
        let (gang, control) = (&*self.gang, self.control.as_deref());
        gang.phase(parts, &|part| {
            // The clock is read before each part: it is long compared with that.
            match control.map_or(Ok(()), QueryControl::check) {
                Ok(()) => work(part),
                Err(error) => {
                    gang.next.store(parts, Ordering::Relaxed);
                    failed.lock().get_or_insert(error);
                }
            }
        });
        failed.into_inner().map_or(Ok(()), Err)
    }

    /// As [`Team::for_parts`], with a result for each part. Returns them in the order of the parts.
    pub fn map_parts<T: Send>(&self, parts: usize, work: impl Fn(usize) -> T + Sync) -> Result<Vec<T>> {
        let results: Vec<Mutex<Option<T>>> = (0..parts).map(|_| Mutex::new(None)).collect();
        self.for_parts(parts, |part| *results[part].lock() = Some(work(part)))?;
        let all = results.into_iter().map(|result| result.into_inner());
        Ok(all.map(|result| result.expect("every part was worked on")).collect())
    }

    /// Calls `work` with the number of each range and the entries of `data` in it. Ranges ascend, and do not overlap. Returns the
    /// results in the order of the ranges.
    pub fn map_slices<T: Send, R: Send>(
        &self,
        ranges: &[Range<usize>],
        data: &mut [T],
        work: impl Fn(usize, &mut [T]) -> R + Sync,
    ) -> Result<Vec<R>> {
        let (mut slices, mut rest, mut at) = (Vec::with_capacity(ranges.len()), data, 0);
        for range in ranges {
            let (_, from) = rest.split_at_mut(range.start - at);
            let (slice, after) = from.split_at_mut(range.len());
            slices.push(Mutex::new(Some(slice)));
            (rest, at) = (after, range.end);
        }
        self.map_parts(ranges.len(), |part| {
            let slice = slices[part].lock().take().expect("a part is drawn once");
            work(part, slice)
        })
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        self.gang.is_over.store(true, Ordering::SeqCst);
        self.gang.wake_all();
    }
}

/// What the caller and its helpers share.
#[derive(Default)]
struct Gang {
    /// The work of the open phase. Written by the caller while no phase is open and no helper is inside.
    work: UnsafeCell<Option<*const Work<'static>>>,
    is_open: AtomicBool,
    /// Helpers that may use `work`.
    inside: AtomicUsize,
    /// The next part to be drawn, and the number of parts.
    next: AtomicUsize,
    parts: AtomicUsize,
    is_over: AtomicBool,
    helpers: Mutex<Vec<Waker>>,
    /// By the number of the helper.
    is_asleep: Mutex<Vec<bool>>,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

// SAFETY: `work` is written only by the caller, while no helper reads it (ALGO-1), and what it points to is `Sync`. All
// other fields may be shared.
unsafe impl Sync for Gang {}
// SAFETY: as above; the pointer is used only while the caller waits in `phase`.
unsafe impl Send for Gang {}

impl Gang {
    /// Runs a phase. Only one thread calls this at a time: the team is not shared.
    fn phase(&self, parts: usize, work: &Work<'_>) {
        let has_helpers = parts > 1 && !self.helpers.lock().is_empty();
        if !has_helpers {
            self.next.store(0, Ordering::Relaxed);
            self.parts.store(parts, Ordering::Relaxed);
            return self.draw(work);
        }
        let pointer = std::ptr::from_ref(work);
        // SAFETY: only the lifetime changes. No helper uses the pointer after this function (ALGO-1).
        let pointer = unsafe { std::mem::transmute::<*const Work<'_>, *const Work<'static>>(pointer) };
        // SAFETY: no phase is open and no helper is inside, so none reads it.
        unsafe { *self.work.get() = Some(pointer) };
        self.next.store(0, Ordering::Relaxed);
        self.parts.store(parts, Ordering::Relaxed);
        // Publishes the three.
        self.is_open.store(true, Ordering::SeqCst);
        self.wake_all();
        let outcome = catch_unwind(AssertUnwindSafe(|| self.draw(work)));
        if outcome.is_err() {
            self.next.store(parts, Ordering::Relaxed);
        }
        self.is_open.store(false, Ordering::SeqCst);
        let mut looks = 0;
        while self.inside.load(Ordering::SeqCst) > 0 {
            looks += 1;
            match looks > LOOKS {
                // The system may have taken the processor from a helper in the middle of a part.
                true => std::thread::yield_now(),
                false => std::hint::spin_loop(),
            }
        }
        let panic = outcome.err().or_else(|| self.panic.lock().take());
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }

    fn draw(&self, work: &Work<'_>) {
        let parts = self.parts.load(Ordering::Relaxed);
        while let Some(part) = self.next_part(parts) {
            work(part);
        }
    }

    fn next_part(&self, parts: usize) -> Option<usize> {
        // The check first: the counter must not overflow while helpers look for work.
        if self.next.load(Ordering::Relaxed) >= parts {
            return None;
        }
        Some(self.next.fetch_add(1, Ordering::Relaxed)).filter(|part| *part < parts)
    }

    /// Works on some parts of the open phase. Returns how many.
    fn help(&self) -> usize {
        // ALGO-1: inside before the look.
        self.inside.fetch_add(1, Ordering::SeqCst);
        let mut worked = 0;
        if self.is_open.load(Ordering::SeqCst) {
            // SAFETY: the phase is open and this thread is inside, so the caller waits, and what the pointer points to lives.
            let work = unsafe { (*self.work.get()).map(|work| &*work) };
            let parts = self.parts.load(Ordering::Relaxed);
            while let Some(work) = work.filter(|_| worked < PARTS_A_TURN)
                && let Some(part) = self.next_part(parts)
            {
                if let Err(panic) = catch_unwind(AssertUnwindSafe(|| work(part))) {
                    self.panic.lock().get_or_insert(panic);
                    self.next.store(parts, Ordering::Relaxed);
                }
                worked += 1;
            }
        }
        self.inside.fetch_sub(1, Ordering::SeqCst);
        worked
    }

    fn wake_all(&self) {
        let helpers = self.helpers.lock();
        let mut asleep = self.is_asleep.lock();
        for (helper, is_asleep) in helpers.iter().zip(asleep.iter_mut()) {
            if std::mem::take(is_asleep) {
                helper.wake();
            }
        }
    }
}

/// An executor's part in a team.
struct Helper {
    gang: Arc<Gang>,
    number: usize,
}

impl Task for Helper {
    fn run(&mut self, _: usize) -> TaskStatus {
        let gang = &*self.gang;
        for _ in 0..LOOKS {
            if gang.is_over.load(Ordering::SeqCst) {
                return TaskStatus::Done;
            }
            if gang.help() > 0 {
                return TaskStatus::Again;
            }
            std::hint::spin_loop();
        }
        // A phase that opens after this wakes the helper; the look after it sees one that opened before.
        gang.is_asleep.lock()[self.number] = true;
        match gang.is_open.load(Ordering::SeqCst) || gang.is_over.load(Ordering::SeqCst) {
            true => TaskStatus::Again,
            false => TaskStatus::Waiting,
        }
    }
}
