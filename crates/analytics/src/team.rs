//! The threads that work on an algorithm: its caller, and executors that join while they have nothing better to do.
//!
//! An algorithm is a sequence of *phases*. A phase has parts, which are numbered. Each thread draws the next number, works
//! on that part, and draws again. The caller always takes part, so a phase ends also if no executor ever joins.
//! An executor joins as a helper task, which gets a turn only when no query waits for one, and leaves after about a millisecond. So
//! parts are small: tens of microseconds, at most 0.1 ms.
//!
//! How a phase ends although helpers borrow from the caller's stack: [`gang`](crate::gang).
//!
//! - **ALGO-2.** What an algorithm computes does not depend on how many threads take part: a part writes only what is its own, or what any
//!   order of writes leaves the same, and partial results are put together in the order of the parts.

use std::cell::Cell;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use mangrove_flow::clock::{Clock, MonotonicClock};
use mangrove_flow::schedule::{Executors, Task, TaskStatus, Tenant, Waker};
use mangrove_flow::{Charge, QueryControl, QueryProgress};
use mangrove_graph::{Error, MemoryBudget, Result};
use parking_lot::Mutex;

use crate::gang::Gang;

/// How long an executor works on parts in one turn, in nanoseconds.
const TURN_NANOS: u64 = 1_000_000;
/// How long an executor looks for the next phase before it sleeps. Callers mostly need less between two phases, and to wake it takes the
/// caller some microseconds, and the executor tens.
const LOOKING_NANOS: u64 = 200_000;
/// How often an executor looks between two readings of the clock: about a microsecond.
const LOOKS: usize = 32;
/// How long a caller works on a phase alone before it wakes executors that sleep: most phases are over by then.
const ALONE_NANOS: u64 = 20_000;

/// The threads that work on an algorithm.
///
/// A team is used by one thread at a time, and a part cannot begin a phase.
pub struct Team {
    shared: Arc<Shared>,
    /// The number of helpers.
    helpers: usize,
    control: Option<Arc<QueryControl>>,
    budget: MemoryBudget,
    /// Whether the progress is that of the parts of each phase.
    shows_parts: Cell<bool>,
    /// Makes the team unfit to be shared between threads (ALGO-1: one phase at a time).
    not_shared: PhantomData<Cell<()>>,
}

impl std::fmt::Debug for Team {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Team").field("helpers", &self.helpers).finish_non_exhaustive()
    }
}

impl Team {
    /// The caller alone.
    pub fn alone() -> Self {
        Team {
            shared: Arc::new(Shared::new(0)),
            helpers: 0,
            control: None,
            budget: MemoryBudget::unlimited(),
            shows_parts: Cell::new(false),
            not_shared: PhantomData,
        }
    }

    /// The caller, and up to `helpers` executors, which count for a tenant.
    pub fn with_executors(executors: &Executors, tenant: &Tenant, helpers: usize) -> Self {
        let mut team = Team::alone();
        team.helpers = helpers;
        team.shared = Arc::new(Shared::new(helpers));
        for thread in 1..=helpers {
            let shared = team.shared.clone();
            executors.spawn_helper(tenant, |waker| {
                shared.helpers.lock().push(Sleeper { waker, is_asleep: false });
                Box::new(Helper { shared: shared.clone(), thread })
            });
        }
        team
    }

    /// Ends algorithms of this team with an error when the control of their query says so.
    pub fn controlled_by(mut self, control: Arc<QueryControl>) -> Self {
        self.control = Some(control);
        self
    }

    /// Draws the memory of projections that the team reads from a budget.
    pub fn drawing_on(mut self, budget: &MemoryBudget) -> Self {
        self.budget = budget.clone();
        self
    }

    /// What the memory of projections is drawn from.
    pub(crate) fn budget(&self) -> &MemoryBudget {
        &self.budget
    }

    fn progress(&self) -> Option<&QueryProgress> {
        self.control.as_deref().and_then(QueryControl::progress).map(|progress| &**progress)
    }

    /// Shows how far the work that begins has come: in units that the caller counts with [`Team::advance`].
    pub fn begin(&self, phase: &'static str, unit: &'static str, all: u64) {
        self.shows_parts.set(false);
        if let Some(progress) = self.progress() {
            progress.begin(phase, unit, all);
        }
    }

    /// As [`Team::begin`], in the parts of each phase, which are counted by themselves and begin anew with each phase.
    pub fn begin_parts(&self, phase: &'static str, unit: &'static str) {
        self.begin(phase, unit, 0);
        self.shows_parts.set(true);
    }

    /// The phase that has begun is counted in other units.
    pub fn count_in(&self, unit: &'static str, all: u64) {
        if let Some(figures) = self.progress().and_then(QueryProgress::read) {
            self.begin(figures.phase, unit, all);
        }
    }

    /// Counts units as done.
    pub fn advance(&self, units: u64) {
        if let Some(progress) = self.progress() {
            progress.add(units);
        }
    }

    /// Charges the query for memory, until what is returned is dropped. Without a query nothing is charged.
    ///
    /// # Errors
    ///
    /// If the query may not hold as much, or the memory budget has no room for it.
    pub fn charge(&self, bytes: u64) -> Result<Option<Charge>> {
        self.control.as_ref().map(|control| control.charge_while(bytes)).transpose()
    }

    /// Fails if the query was cancelled or its time is over. For loops that are no phase: they call it at least every
    /// millisecond.
    ///
    /// # Errors
    ///
    /// If the query has ended.
    pub fn check(&self) -> Result<()> {
        self.control.as_deref().map_or(Ok(()), QueryControl::check)
    }

    /// What a part of a phase checks with, if it may take longer than a millisecond.
    pub fn checker(&self) -> Checker {
        Checker(self.control.clone())
    }

    /// Returns true if other threads may work on a phase.
    pub(crate) fn has_helpers(&self) -> bool {
        self.helpers > 0
    }

    /// The most threads that work on a phase.
    pub(crate) fn threads(&self) -> usize {
        self.helpers + 1
    }

    /// Calls `work` with every number below `parts`, in any order and from several threads.
    ///
    /// # Errors
    ///
    /// If the query was cancelled or its time is over; then some parts were left out.
    pub fn for_parts(&self, parts: usize, work: impl Fn(usize) + Sync) -> Result<()> {
        self.for_parts_by(parts, |part, _| work(part))
    }

    /// As [`Team::for_parts`]. `work` gets a number of its thread, too, which is below [`Team::threads`]: threads that work at the same time have
    /// different ones.
    pub(crate) fn for_parts_by(&self, parts: usize, work: impl Fn(usize, usize) + Sync) -> Result<()> {
        let failed: Mutex<Option<Error>> = Mutex::new(None);
        let (gang, control) = (&self.shared.gang, self.control.as_deref());
        let shown = self.progress().filter(|_| self.shows_parts.get());
        if let Some(progress) = shown {
            progress.restart(parts as u64);
        }
        let checked = |part, thread| {
            // The clock is read before each part: it is long compared with that.
            match control.map_or(Ok(()), QueryControl::check) {
                Ok(()) => {
                    work(part, thread);
                    if let Some(progress) = shown {
                        progress.add(1);
                    }
                }
                Err(error) => {
                    gang.leave_out_the_rest();
                    failed.lock().get_or_insert(error);
                }
            }
        };
        match parts > 1 && self.has_helpers() {
            true => {
                let Shared { clock, asleep, .. } = &*self.shared;
                let mut begin = None;
                gang.phase(parts, &checked, &mut || {
                    // Mostly none sleeps, and then the clock is not read.
                    if asleep.load(Ordering::Relaxed) > 0 {
                        let now = clock.now_nanos();
                        if now - *begin.get_or_insert(now) >= ALONE_NANOS {
                            self.shared.wake_all();
                        }
                    }
                });
            }
            false => gang.phase_alone(parts, &checked),
        }
        failed.into_inner().map_or(Ok(()), Err)
    }

    /// As [`Team::for_parts`], with a result for each part. Returns them in the order of the parts.
    pub fn map_parts<T: Send>(&self, parts: usize, work: impl Fn(usize) -> T + Sync) -> Result<Vec<T>> {
        let results: Vec<Mutex<Option<T>>> = (0..parts).map(|_| Mutex::new(None)).collect();
        self.for_parts(parts, |part| *results[part].lock() = Some(work(part)))?;
        let all = results.into_iter().map(|result| result.into_inner());
        Ok(all.map(|result| result.expect("every part was worked on")).collect())
    }

    /// Calls `work` with the number of each range and the entries of `data` in it: a slice, or a pair of slices of one length. Ranges
    /// ascend, and do not overlap. Returns the results in the order of the ranges.
    pub fn map_slices<D: Sliced, R: Send>(
        &self,
        ranges: &[Range<usize>],
        data: D,
        work: impl Fn(usize, D) -> R + Sync,
    ) -> Result<Vec<R>> {
        let (mut slices, mut rest, mut at) = (Vec::with_capacity(ranges.len()), data, 0);
        for range in ranges {
            let (_, from) = rest.split(range.start - at);
            let (slice, after) = from.split(range.len());
            slices.push(Mutex::new(Some(slice)));
            (rest, at) = (after, range.end);
        }
        self.map_parts(ranges.len(), |part| {
            let slice = slices[part].lock().take().expect("a part is drawn once");
            work(part, slice)
        })
    }
}

/// What [`Team::map_slices`] cuts into parts.
pub trait Sliced: Send + Sized {
    /// The first `length` entries, and the others.
    fn split(self, length: usize) -> (Self, Self);
}

impl<T: Send> Sliced for &mut [T] {
    fn split(self, length: usize) -> (Self, Self) {
        self.split_at_mut(length)
    }
}

impl<A: Sliced, B: Sliced> Sliced for (A, B) {
    fn split(self, length: usize) -> (Self, Self) {
        let ((first, rest), (other_first, other_rest)) = (self.0.split(length), self.1.split(length));
        ((first, other_first), (rest, other_rest))
    }
}

/// Tells a part of a phase whether the query of the team has ended.
#[derive(Clone)]
pub struct Checker(Option<Arc<QueryControl>>);

impl std::fmt::Debug for Checker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Checker").finish_non_exhaustive()
    }
}

impl Checker {
    /// As [`Team::check`].
    ///
    /// # Errors
    ///
    /// If the query has ended.
    pub fn check(&self) -> Result<()> {
        self.0.as_deref().map_or(Ok(()), QueryControl::check)
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        if let Some(progress) = self.progress() {
            progress.end();
        }
        self.shared.is_over.store(true, Ordering::SeqCst);
        self.shared.wake_all();
    }
}

/// What the caller and its helpers share.
struct Shared {
    gang: Gang,
    is_over: AtomicBool,
    /// How many helpers sleep.
    asleep: AtomicUsize,
    clock: MonotonicClock,
    /// By the numbers of the helpers' threads, from 1 on.
    helpers: Mutex<Vec<Sleeper>>,
}

/// How a helper is woken, and whether it must be.
struct Sleeper {
    waker: Waker,
    is_asleep: bool,
}

impl Shared {
    fn new(helpers: usize) -> Self {
        Shared {
            gang: Gang::new(helpers),
            is_over: AtomicBool::new(false),
            asleep: AtomicUsize::new(0),
            clock: MonotonicClock::default(),
            helpers: Mutex::default(),
        }
    }

    fn wake_all(&self) {
        for helper in &mut *self.helpers.lock() {
            if std::mem::take(&mut helper.is_asleep) {
                self.asleep.fetch_sub(1, Ordering::Relaxed);
                helper.waker.wake();
            }
        }
    }
}

/// An executor's part in a team.
struct Helper {
    shared: Arc<Shared>,
    /// The number of its thread in the gang.
    thread: usize,
}

impl Task for Helper {
    fn run(&mut self, _: usize) -> TaskStatus {
        let Shared { gang, is_over, asleep, helpers, clock } = &*self.shared;
        let begin = clock.now_nanos();
        let is_turn_over = || clock.now_nanos() - begin >= TURN_NANOS;
        let mut last_worked = begin;
        loop {
            for _ in 0..LOOKS {
                if is_over.load(Ordering::SeqCst) {
                    return TaskStatus::Done;
                }
                if gang.help(self.thread, is_turn_over) > 0 {
                    last_worked = clock.now_nanos();
                    break;
                }
                std::hint::spin_loop();
            }
            if is_turn_over() {
                return TaskStatus::Again;
            }
            if clock.now_nanos() - last_worked >= LOOKING_NANOS {
                break;
            }
        }
        // A phase that opens after this wakes the helper if it lasts; the look after it sees one that opened before.
        let mut helpers = helpers.lock();
        helpers[self.thread - 1].is_asleep = true;
        asleep.fetch_add(1, Ordering::SeqCst);
        drop(helpers);
        match gang.is_open() || is_over.load(Ordering::SeqCst) {
            true => TaskStatus::Again,
            false => TaskStatus::Waiting,
        }
    }
}
