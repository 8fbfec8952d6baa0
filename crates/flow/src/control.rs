//! The control of a running query: its limits, its memory account, its clock, and its cancellation.
//!
//! All nodes of a query and the thread that reads its results share one [`QueryControl`]. Every field that changes
//! while the query runs is atomic or has a lock, which is held for a few instructions. No lock is taken while another
//! one is held.
//!
//! - **FLOW-17.** The holder of memory charges it and releases the same amount when it drops it. What is held beyond
//!   [`UNDRAWN_BYTES_MAX`] is also drawn on the memory budget of the process: `memory ≤ covered` whenever no charge is
//!   under way.

use std::any::Any;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use mangrove_graph::{Draw, Error, ErrorKind, Interrupt, MemoryBudget, Purpose, Result};
use parking_lot::Mutex;

use crate::clock::Clock;
use crate::progress::QueryProgress;

/// Messages between two readings of the clock. A message takes well under a millisecond.
const CLOCK_MESSAGES: u64 = 16;

/// Bytes that a query may hold before it draws on the memory budget. So a light query, of which many run in a
/// millisecond, does not touch the budget that all share. At most this many bytes for each running query are outside
/// the budget.
const UNDRAWN_BYTES_MAX: u64 = 64 << 10;
/// Bytes that a query draws on the budget at a time, if the budget has as much.
const GRANT_BYTES: u64 = 1 << 20;
/// A query that has drawn more unused bytes than this gives the unused bytes back.
const SPARE_BYTES_MAX: u64 = 4 * GRANT_BYTES;
/// The value of [`QueryControl::covered`] without a budget.
const WITHOUT_BUDGET: u64 = u64::MAX;

/// The limits of one query. A query that exceeds one ends with an error that names the limit; other queries go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueryLimits {
    /// The time it may run, in nanoseconds; `None` for no limit.
    pub time_nanos: Option<u64>,
    /// The bytes that its operators may hold at a time.
    pub memory_bytes: u64,
}

impl Default for QueryLimits {
    fn default() -> Self {
        QueryLimits { time_nanos: None, memory_bytes: 2 << 30 }
    }
}

/// The limits, memory account, clock and cancellation of one query. Its nodes share it.
pub struct QueryControl {
    limits: QueryLimits,
    clock: Arc<dyn Clock>,
    /// `None` if neither a limit nor `profile()` needs the time: reading a clock costs as much as a message of a few
    /// rows.
    started: Option<u64>,
    cancelled: Arc<AtomicBool>,
    /// What is asked besides; `None` to ask nothing.
    interrupt: Option<Interrupt>,
    /// True if the client has stopped reading its results.
    abandoned: AtomicBool,
    memory: AtomicU64,
    memory_peak: AtomicU64,
    /// Bytes that the query may hold before it draws on the budget again.
    covered: AtomicU64,
    budget: MemoryBudget,
    draw: Mutex<Draw>,
    samples: AtomicU64,
    leftovers: Mutex<Leftovers>,
    has_leftovers: AtomicBool,
    /// Where others look how far the query has come.
    progress: OnceLock<Arc<QueryProgress>>,
}

/// Values of a failed query whose drop takes long.
pub type Leftovers = Vec<Box<dyn Any + Send>>;

/// A charge that is released when it is dropped, on any thread.
#[derive(Debug)]
pub struct Charge {
    control: Arc<QueryControl>,
    bytes: u64,
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.control.release(self.bytes);
    }
}

impl std::fmt::Debug for QueryControl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("QueryControl")
            .field("limits", &self.limits)
            .field("memory", &self.memory)
            .finish_non_exhaustive()
    }
}

impl QueryControl {
    /// The control of a query that starts now. Setting `cancelled` ends the query at its next message.
    pub fn new(limits: QueryLimits, clock: Arc<dyn Clock>, cancelled: Arc<AtomicBool>) -> Self {
        let started = limits.time_nanos.map(|_| clock.now_nanos());
        let budget = MemoryBudget::unlimited();
        QueryControl {
            limits,
            clock,
            started,
            cancelled,
            interrupt: None,
            abandoned: AtomicBool::new(false),
            memory: AtomicU64::new(0),
            memory_peak: AtomicU64::new(0),
            covered: AtomicU64::new(WITHOUT_BUDGET),
            draw: Mutex::new(budget.account(Purpose::Queries)),
            budget,
            samples: AtomicU64::new(0),
            leftovers: Mutex::default(),
            has_leftovers: AtomicBool::new(false),
            progress: OnceLock::new(),
        }
    }

    /// The same control, which also draws on a memory budget of the process.
    #[must_use]
    pub fn drawing_on(self, budget: &MemoryBudget) -> Self {
        let covered = if budget.is_unlimited() { WITHOUT_BUDGET } else { UNDRAWN_BYTES_MAX };
        let draw = Mutex::new(budget.account(Purpose::Queries));
        QueryControl { covered: AtomicU64::new(covered), draw, budget: budget.clone(), ..self }
    }

    /// The budget that it draws on.
    pub fn budget(&self) -> &MemoryBudget {
        &self.budget
    }

    /// The same control, which also asks whether the query is to end.
    #[must_use]
    pub fn asking(self, interrupt: Option<Interrupt>) -> Self {
        QueryControl { interrupt, ..self }
    }

    /// Makes this the control of another query, which starts now. It is reused in place if no other thread holds it.
    pub fn renew(
        self: &mut Arc<Self>,
        limits: QueryLimits,
        clock: &Arc<dyn Clock>,
        cancelled: &Arc<AtomicBool>,
        interrupt: Option<&Interrupt>,
    ) {
        let Some(control) = Arc::get_mut(self) else {
            let renewed = QueryControl::new(limits, clock.clone(), cancelled.clone()).drawing_on(&self.budget);
            *self = Arc::new(renewed.asking(interrupt.cloned()));
            return;
        };
        control.give_back();
        control.leftovers.get_mut().clear();
        *control.has_leftovers.get_mut() = false;
        control.progress.take();
        control.limits = limits;
        if !Arc::ptr_eq(&control.clock, clock) {
            control.clock = clock.clone();
        }
        if !Arc::ptr_eq(&control.cancelled, cancelled) {
            control.cancelled = cancelled.clone();
        }
        control.interrupt = interrupt.cloned();
        control.started = control.limits.time_nanos.map(|_| control.clock.now_nanos());
        *control.abandoned.get_mut() = false;
        *control.memory.get_mut() = 0;
        *control.memory_peak.get_mut() = 0;
    }

    /// Counts the time from now on, even if there is no time limit.
    pub fn count_time(self: &mut Arc<Self>) {
        if let Some(control) = Arc::get_mut(self) {
            control.started.get_or_insert_with(|| control.clock.now_nanos());
        }
    }

    /// Lets others see how far the query has come.
    pub fn show_progress_in(&self, progress: Arc<QueryProgress>) {
        // The first one stays.
        let _ = self.progress.set(progress);
    }

    /// Where others look how far the query has come, if there is such a place.
    pub fn progress(&self) -> Option<&Arc<QueryProgress>> {
        self.progress.get()
    }

    /// Returns the clock.
    pub fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    /// Returns nanoseconds since the query started; 0 if the time is not counted ([`QueryControl::count_time`]).
    pub fn elapsed_nanos(&self) -> u64 {
        self.started.map_or(0, |started| self.clock.now_nanos().saturating_sub(started))
    }

    /// Returns the bytes that the query may hold at a time.
    pub fn memory_limit(&self) -> u64 {
        self.limits.memory_bytes
    }

    /// Returns the bytes that are charged.
    pub fn memory(&self) -> u64 {
        self.memory.load(Ordering::Relaxed)
    }

    /// Returns the most bytes that were charged at a time.
    pub fn memory_peak(&self) -> u64 {
        self.memory_peak.load(Ordering::Relaxed)
    }

    /// Ends the query at its next message, because the client has stopped reading its results. Other queries with the
    /// same `cancelled` go on.
    pub fn abandon(&self) {
        self.abandoned.store(true, Ordering::Relaxed);
    }

    /// Fails if the query was cancelled or its time limit has passed.
    pub fn check(&self) -> Result<()> {
        self.check_at(CLOCK_MESSAGES)
    }

    /// As [`QueryControl::check`], before the message of this number. Reads the clock only before every 16th message,
    /// so a light query reads it once, when it starts.
    pub fn check_at(&self, message: u64) -> Result<()> {
        if self.cancelled.load(Ordering::Relaxed) || self.abandoned.load(Ordering::Relaxed) {
            return Err(Error::new(ErrorKind::Cancelled, "the query was cancelled"));
        }
        if message == 0 || !message.is_multiple_of(CLOCK_MESSAGES) {
            return Ok(());
        }
        if self.interrupt.as_ref().is_some_and(Interrupt::is_raised) {
            self.cancelled.store(true, Ordering::Relaxed);
            return Err(Error::new(ErrorKind::Cancelled, "the query was cancelled by an interrupt"));
        }
        match self.limits.time_nanos {
            Some(limit) if self.elapsed_nanos() > limit => Err(Error::time_limit(Duration::from_nanos(limit))),
            _ => Ok(()),
        }
    }

    /// Charges bytes that an operator is about to hold. Fails if the query then holds more than its limit, or more than
    /// the budget has. The bytes count even then, until they are released or the query is over.
    pub fn charge(&self, bytes: u64) -> Result<()> {
        // A sum that overflows ends the query like any other amount above the limit.
        // SeqCst, in this order with `covered` below: `give_back_spare` says why.
        let held = self.memory.fetch_add(bytes, Ordering::SeqCst).saturating_add(bytes);
        self.memory_peak.fetch_max(held, Ordering::Relaxed);
        if held > self.limits.memory_bytes {
            return Err(Error::new(
                ErrorKind::MemoryLimit,
                format!(
                    "the query holds more than its memory limit of {} bytes; narrow it (limit(), dedup(), a \
                     filter nearer to its start), or raise the limit (`query_memory_limit` of a server)",
                    self.limits.memory_bytes
                ),
            ));
        }
        if held > self.covered.load(Ordering::SeqCst) {
            self.draw_for(held)?;
        }
        Ok(())
    }

    /// Takes over a value that an operator made before the query failed. It is dropped after the client knows of the
    /// failure: freeing millions of values takes tenths of a second.
    pub fn leave(&self, value: impl Any + Send) {
        self.leftovers.lock().push(Box::new(value));
        self.has_leftovers.store(true, Ordering::Relaxed);
    }

    /// Returns true if a value was taken over. Its charge stays until the query is over.
    pub fn has_leftovers(&self) -> bool {
        self.has_leftovers.load(Ordering::Relaxed)
    }

    /// Returns the values that were taken over, to be dropped.
    pub fn take_leftovers(&self) -> Leftovers {
        std::mem::take(&mut self.leftovers.lock())
    }

    /// As [`QueryControl::charge`], until the returned charge is dropped.
    pub fn charge_while(self: &Arc<Self>, bytes: u64) -> Result<Charge> {
        // Made before the charge, so that a charge that fails is released, too.
        let charge = Charge { control: self.clone(), bytes };
        self.charge(bytes)?;
        Ok(charge)
    }

    /// Returns the start of the next sample, for values that are too small to be charged one by one. The numbers are
    /// spread evenly over 64 bits.
    pub fn sample_start(&self) -> u64 {
        /// 2^64 divided by the golden ratio: its multiples, cut to 64 bits, are spread evenly however many there are.
        const STEP: u64 = 0x9E37_79B9_7F4A_7C15;
        self.samples.fetch_add(STEP, Ordering::Relaxed)
    }

    /// Draws on the budget until `held` bytes are covered.
    #[cold]
    fn draw_for(&self, held: u64) -> Result<()> {
        let mut draw = self.draw.lock();
        // Another node of the query may have drawn meanwhile.
        let needed = held.saturating_sub(UNDRAWN_BYTES_MAX).saturating_sub(draw.bytes());
        if needed > 0 {
            draw.grow_generously(needed, needed.next_multiple_of(GRANT_BYTES))?;
            self.covered.store(UNDRAWN_BYTES_MAX + draw.bytes(), Ordering::SeqCst);
        }
        Ok(())
    }

    /// Releases bytes that were charged.
    pub fn release(&self, bytes: u64) {
        if bytes == 0 {
            return;
        }
        let held = self.memory.fetch_sub(bytes, Ordering::Relaxed).saturating_sub(bytes);
        let covered = self.covered.load(Ordering::Relaxed);
        if covered.saturating_sub(held) > SPARE_BYTES_MAX && covered != WITHOUT_BUDGET {
            self.give_back_spare();
        }
    }

    /// Gives back to the budget the bytes that are drawn but not held.
    #[cold]
    fn give_back_spare(&self) {
        let mut draw = self.draw.lock();
        let needed = self.memory().saturating_sub(UNDRAWN_BYTES_MAX).next_multiple_of(GRANT_BYTES);
        let spare = draw.bytes().saturating_sub(needed);
        let covered = UNDRAWN_BYTES_MAX + draw.bytes() - spare;
        // FLOW-17: store `covered`, then load `memory`; `charge` adds to `memory`, then loads `covered`. So a node that
        // charges meanwhile either sees that less is covered and waits for the lock to draw, or its charge is seen
        // here.
        self.covered.store(covered, Ordering::SeqCst);
        match self.memory.load(Ordering::SeqCst) > covered {
            true => self.covered.store(UNDRAWN_BYTES_MAX + draw.bytes(), Ordering::SeqCst),
            false => draw.shrink(spare),
        }
    }

    /// Gives back everything that was drawn on the budget. Called when the query is over.
    pub fn give_back(&self) {
        let covered = self.covered.load(Ordering::Relaxed);
        if covered != WITHOUT_BUDGET && covered > UNDRAWN_BYTES_MAX {
            let mut draw = self.draw.lock();
            self.covered.store(UNDRAWN_BYTES_MAX, Ordering::Relaxed);
            let all = draw.bytes();
            draw.shrink(all);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ManualClock;

    fn control(limits: QueryLimits, budget: &MemoryBudget) -> Arc<QueryControl> {
        Arc::new(QueryControl::new(limits, Arc::new(ManualClock::default()), Arc::default()).drawing_on(budget))
    }

    #[test]
    fn a_query_draws_on_the_budget_as_it_grows_and_gives_back() {
        let budget = MemoryBudget::of(10 * GRANT_BYTES);
        let mut query = control(QueryLimits::default(), &budget);
        query.charge(UNDRAWN_BYTES_MAX).unwrap();
        assert_eq!(budget.used_bytes(), 0, "a light query draws nothing");
        query.charge(1).unwrap();
        assert_eq!(budget.used_for(Purpose::Queries), GRANT_BYTES);
        query.charge(GRANT_BYTES - 1).unwrap();
        assert_eq!(budget.used_bytes(), GRANT_BYTES);
        query.charge(8 * GRANT_BYTES).unwrap();
        // If the budget has less than a whole grant left, it may still have the bytes that are needed.
        let others = budget.draw(Purpose::Graphs, GRANT_BYTES / 2).unwrap();
        query.charge(1).unwrap();
        assert_eq!(budget.used_bytes(), 9 * GRANT_BYTES + GRANT_BYTES / 2 + 1);
        let refused = query.charge(GRANT_BYTES).unwrap_err();
        assert!(refused.kind() == ErrorKind::MemoryLimit && refused.message().contains("memory budget"), "{refused}");
        query.release(GRANT_BYTES);
        query.release(6 * GRANT_BYTES);
        assert_eq!(budget.used_for(Purpose::Queries), 4 * GRANT_BYTES);
        query.give_back();
        assert_eq!(budget.used_for(Purpose::Queries), 0);
        // The next query of the same instance draws on the budget again.
        query.charge(GRANT_BYTES).unwrap();
        query.renew(
            QueryLimits::default(),
            &(Arc::new(ManualClock::default()) as Arc<dyn Clock>),
            &Arc::default(),
            None,
        );
        assert_eq!(budget.used_for(Purpose::Queries), 0);
        query.charge(GRANT_BYTES).unwrap();
        assert_eq!(budget.used_for(Purpose::Queries), GRANT_BYTES);
        let other_hand = query.clone();
        query.renew(
            QueryLimits::default(),
            &(Arc::new(ManualClock::default()) as Arc<dyn Clock>),
            &Arc::default(),
            None,
        );
        query.charge(GRANT_BYTES).unwrap();
        assert_eq!(budget.used_for(Purpose::Queries), 2 * GRANT_BYTES);
        drop((query, other_hand, others));
        assert_eq!(budget.used_bytes(), 0);
    }

    #[test]
    fn an_interrupt_ends_the_query_and_not_the_next_one() {
        let clock: Arc<dyn Clock> = Arc::new(ManualClock::default());
        let raised = Arc::new(AtomicBool::new(false));
        let looked_at = raised.clone();
        let interrupt = Interrupt::new(move || looked_at.load(Ordering::Relaxed));
        let cancelled = Arc::new(AtomicBool::new(false));
        let query = QueryControl::new(QueryLimits::default(), clock.clone(), cancelled.clone());
        let mut query = Arc::new(query.asking(Some(interrupt)));
        query.check().unwrap();
        raised.store(true, Ordering::Relaxed);
        query.check_at(1).expect("the program is asked before every 16th message only");
        assert_eq!(query.check().unwrap_err().kind(), ErrorKind::Cancelled);
        assert!(cancelled.load(Ordering::Relaxed), "threads that do not ask see the flag");
        query.renew(QueryLimits::default(), &clock, &Arc::default(), None);
        query.check().unwrap();
    }

    /// Several nodes of one query charge and release concurrently. The draw covers the charges whenever no charge or
    /// release is under way, and at the end everything is given back.
    #[test]
    fn nodes_of_a_query_draw_together() {
        let budget = MemoryBudget::of(64 * GRANT_BYTES);
        let query = control(QueryLimits { memory_bytes: u64::MAX, ..QueryLimits::default() }, &budget);
        for round in 0..20 {
            std::thread::scope(|scope| {
                for node in 0..4_u64 {
                    let query = &query;
                    scope.spawn(move || {
                        for step in 0..200 {
                            let bytes = (node + 1) * 300_000 + step * 1_000;
                            query.charge(bytes).unwrap();
                            if step % 50 != round {
                                query.release(bytes);
                            }
                        }
                    });
                }
            });
            let (held, drawn) = (query.memory(), budget.used_bytes());
            assert!(drawn + UNDRAWN_BYTES_MAX >= held, "{drawn} drawn for {held}");
            query.release(held);
        }
        assert!(budget.used_bytes() <= SPARE_BYTES_MAX);
        drop(query);
        assert_eq!(budget.used_bytes(), 0);
    }
}
