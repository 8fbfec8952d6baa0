//! One phase after another: numbered parts that a caller works on together with helpers that come and go.
//!
//! The parts of a phase are cut into as many *stretches* as there are threads. Each thread draws from its own stretch first, and then
//! from those of the others. So from phase to phase a thread mostly works on the same parts, whose state is in its caches.
//!
//! ```text
//! caller:   open the phase ──▶ draw parts until none is left ──▶ close it ──▶ wait for those inside ──▶ return
//! helper:   enter ──▶ is a phase open? draw parts ──▶ leave
//! ```
//!
//! - **ALGO-1.** The work of a phase is borrowed from the caller's stack. No helper uses it after the phase: a helper counts as
//!   inside before it looks whether the phase is open, and the caller returns only when the phase is closed and no helper
//!   is inside.
//!
//! Both looks are a store and then a load of another place, on both sides. Sequential consistency makes one of the two see the
//! other.
//!
//! The code is unsafe because the work borrows the arrays of an algorithm, and helpers are tasks that may outlive it. Without
//! that, every array would be shared by reference counts and written through atomics.

use std::any::Any;
use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use parking_lot::Mutex;

use crate::sync::{AtomicBool, AtomicUsize, Ordering, spin_loop, yield_now};

/// How often the caller looks whether helpers have left before it gives its processor away: the system may have taken a
/// helper's in the middle of a part.
const LOOKS: usize = 2_000;

/// The work of a phase: what is to be done for a part, by a thread.
pub(crate) type Work<'w> = dyn Fn(usize, usize) + Sync + 'w;

/// A cache line of its own, since helpers that look whether a phase is open must not lose the line to those that draw parts.
#[derive(Default)]
#[repr(align(64))]
struct Line<T>(T);

/// What the caller and its helpers share. The caller is thread 0.
pub(crate) struct Gang {
    /// The work of the open phase. Written by the caller while no phase is open and no helper is inside.
    work: UnsafeCell<Option<*const Work<'static>>>,
    is_open: AtomicBool,
    /// The number of parts.
    parts: AtomicUsize,
    /// Helpers that may use `work`.
    inside: Line<AtomicUsize>,
    /// Of each stretch, the next part to be drawn.
    next: Box<[Line<AtomicUsize>]>,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

// SAFETY: `work` is written only by the caller, while no helper reads it (ALGO-1), and what it points to is `Sync`. All
// other fields may be shared.
unsafe impl Sync for Gang {}
// SAFETY: as above; the pointer is used only while the caller waits in `phase`.
unsafe impl Send for Gang {}

impl Gang {
    /// For a caller and so many helpers.
    pub(crate) fn new(helpers: usize) -> Self {
        Gang {
            work: UnsafeCell::default(),
            is_open: AtomicBool::new(false),
            parts: AtomicUsize::new(0),
            inside: Line::default(),
            next: (0..=helpers).map(|_| Line::default()).collect(),
            panic: Mutex::default(),
        }
    }

    /// Runs a phase without helpers. Only one thread calls this or [`Gang::phase`] at a time.
    pub(crate) fn phase_alone(&self, parts: usize, work: &Work<'_>) {
        self.begin(parts);
        while let Some(part) = self.next_part(0) {
            work(part, 0);
        }
    }

    /// Runs a phase. `between` is called before each part that the caller works on, when helpers may enter. A panic of any thread's work is the
    /// caller's.
    pub(crate) fn phase(&self, parts: usize, work: &Work<'_>, between: &mut dyn FnMut()) {
        let pointer = std::ptr::from_ref(work);
        // SAFETY: only the lifetime changes. No helper uses the pointer after this function (ALGO-1).
        let pointer = unsafe { std::mem::transmute::<*const Work<'_>, *const Work<'static>>(pointer) };
        // SAFETY: no phase is open and no helper is inside, so none reads it.
        unsafe { *self.work.get() = Some(pointer) };
        self.begin(parts);
        // Publishes the three.
        self.is_open.store(true, Ordering::SeqCst);
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            while let Some(part) = self.next_part(0) {
                between();
                work(part, 0);
            }
        }));
        if outcome.is_err() {
            self.leave_out_the_rest();
        }
        self.is_open.store(false, Ordering::SeqCst);
        let mut looks = 0;
        while self.inside.0.load(Ordering::SeqCst) > 0 {
            looks += 1;
            if looks > LOOKS { yield_now() } else { spin_loop() }
        }
        if let Some(panic) = outcome.err().or_else(|| self.panic.lock().take()) {
            resume_unwind(panic);
        }
    }

    /// Works on parts of the open phase as a thread, until none is left or `is_enough` after a part. Returns on how many. Each helper is another
    /// thread, from 1 on.
    pub(crate) fn help(&self, thread: usize, is_enough: impl Fn() -> bool) -> usize {
        // Mostly no phase is open, and then a look changes nothing.
        if !self.is_open() {
            return 0;
        }
        // ALGO-1: inside before the look that counts.
        self.inside.0.fetch_add(1, Ordering::SeqCst);
        let mut worked = 0;
        if self.is_open.load(Ordering::SeqCst) {
            // SAFETY: the phase is open and this thread is inside, so the caller waits, and what the pointer points to lives.
            let work = unsafe { (*self.work.get()).map(|work| &*work) };
            while let Some(work) = work
                && let Some(part) = self.next_part(thread)
            {
                if let Err(panic) = catch_unwind(AssertUnwindSafe(|| work(part, thread))) {
                    self.panic.lock().get_or_insert(panic);
                    self.leave_out_the_rest();
                }
                worked += 1;
                if is_enough() {
                    break;
                }
            }
        }
        self.inside.0.fetch_sub(1, Ordering::SeqCst);
        worked
    }

    /// Returns true if a phase is open.
    pub(crate) fn is_open(&self) -> bool {
        self.is_open.load(Ordering::SeqCst)
    }

    /// Lets no further part of the phase be drawn.
    pub(crate) fn leave_out_the_rest(&self) {
        let parts = self.parts.load(Ordering::Relaxed);
        self.next.iter().for_each(|next| next.0.store(parts, Ordering::Relaxed));
    }

    fn begin(&self, parts: usize) {
        self.parts.store(parts, Ordering::Relaxed);
        for (stretch, next) in self.next.iter().enumerate() {
            next.0.store(self.start(stretch, parts), Ordering::Relaxed);
        }
    }

    /// The first part of a stretch.
    fn start(&self, stretch: usize, parts: usize) -> usize {
        parts * stretch / self.next.len()
    }

    /// Draws a part: one of the thread's own stretch while it has some.
    fn next_part(&self, thread: usize) -> Option<usize> {
        let parts = self.parts.load(Ordering::Relaxed);
        let mut stretches = (thread..self.next.len()).chain(0..thread);
        stretches.find_map(|stretch| {
            let (next, end) = (&self.next[stretch].0, self.start(stretch + 1, parts));
            // The check first: the counter must not overflow while helpers look for parts.
            if next.load(Ordering::Relaxed) >= end {
                return None;
            }
            Some(next.fetch_add(1, Ordering::Relaxed)).filter(|part| *part < end)
        })
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    /// Helpers that look for phases until the caller is through with all of them.
    fn with_helpers(count: usize, caller: impl FnOnce(&Gang)) {
        let (gang, is_over) = (Gang::new(count), AtomicBool::new(false));
        std::thread::scope(|scope| {
            for thread in 1..=count {
                let (gang, is_over) = (&gang, &is_over);
                scope.spawn(move || {
                    while !is_over.load(Ordering::SeqCst) {
                        let parts = AtomicUsize::new(0);
                        gang.help(thread, || parts.fetch_add(1, Ordering::Relaxed) == 2);
                        std::thread::yield_now();
                    }
                });
            }
            let outcome = catch_unwind(AssertUnwindSafe(|| caller(&gang)));
            is_over.store(true, Ordering::SeqCst);
            outcome.unwrap_or_else(|panic| resume_unwind(panic));
        });
    }

    #[test]
    fn every_part_is_worked_on_once_with_what_the_caller_has_on_its_stack() {
        let phases = if cfg!(miri) { 20 } else { 2_000 };
        with_helpers(3, |gang| {
            for phase in 0..phases {
                let parts = phase % 17;
                let numbers: Vec<usize> = (0..parts).map(|part| part * phase).collect();
                let found: Vec<AtomicUsize> = (0..parts).map(|_| AtomicUsize::new(0)).collect();
                let add = |part: usize, _: usize| {
                    found[part].fetch_add(numbers[part] + 1, Ordering::Relaxed);
                };
                gang.phase(parts, &add, &mut || ());
                assert!(found.iter().zip(&numbers).all(|(found, number)| found.load(Ordering::Relaxed) == number + 1));
            }
        });
    }

    #[test]
    fn a_panic_of_any_thread_is_the_callers_and_the_gang_goes_on() {
        with_helpers(2, |gang| {
            for _ in 0..20 {
                let work = |part: usize, _: usize| assert!(part != 7, "the seventh part");
                let caught = catch_unwind(AssertUnwindSafe(|| gang.phase(20, &work, &mut || ())));
                assert!(caught.is_err());
                let done = AtomicUsize::new(0);
                let count = |_: usize, _: usize| {
                    done.fetch_add(1, Ordering::Relaxed);
                };
                gang.phase(9, &count, &mut || ());
                assert_eq!(done.into_inner(), 9);
            }
        });
    }
}

#[cfg(all(test, feature = "model"))]
mod models {
    use std::sync::Arc;

    use shuttle::{check_random, thread};

    use super::*;

    /// ALGO-1, under schedules that the checker chooses: no work runs after its phase, and each part runs once.
    #[test]
    fn no_work_runs_after_its_phase() {
        check_random(
            || {
                let gang = Arc::new(Gang::new(2));
                let helpers: Vec<_> = (1..=2)
                    .map(|thread| {
                        let gang = gang.clone();
                        thread::spawn(move || {
                            for _ in 0..4 {
                                let parts = AtomicUsize::new(0);
                                gang.help(thread, || parts.fetch_add(1, Ordering::Relaxed) == 1);
                            }
                        })
                    })
                    .collect();
                // Kept to the end: what uses the work of an earlier phase finds that one's state.
                let mut works: Vec<Box<Work<'static>>> = Vec::new();
                for parts in [2, 3] {
                    let is_over = Arc::new(AtomicBool::new(false));
                    let runs: Arc<Vec<AtomicUsize>> = Arc::new((0..parts).map(|_| AtomicUsize::new(0)).collect());
                    let (over, run) = (is_over.clone(), runs.clone());
                    works.push(Box::new(move |part, _| {
                        assert!(!over.load(Ordering::SeqCst), "work before its phase is over");
                        run[part].fetch_add(1, Ordering::SeqCst);
                        thread::yield_now();
                        assert!(!over.load(Ordering::SeqCst), "the phase waits for its work");
                    }));
                    gang.phase(parts, &*works[works.len() - 1], &mut || ());
                    is_over.store(true, Ordering::SeqCst);
                    assert!(runs.iter().all(|runs| runs.load(Ordering::SeqCst) == 1), "each part once");
                }
                helpers.into_iter().for_each(|helper| helper.join().unwrap());
            },
            20_000,
        );
    }
}
