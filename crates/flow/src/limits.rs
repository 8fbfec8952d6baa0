//! What a query may use, and what it shares between its nodes.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use mangrove_graph::{Draw, Error, ErrorKind, MemoryBudget, Purpose, Result};
use parking_lot::Mutex;

use crate::clock::Clock;

/// How many messages pass between two looks at the clock. A message is worked off in well under a millisecond.
const CLOCK_MESSAGES: u64 = 16;

/// What a query may hold before it draws on the memory budget: a light one, of which many run in a millisecond, touches nothing
/// that all share. This times the queries at once is held outside the budget.
const UNDRAWN_BYTES_MAX: u64 = 64 << 10;
/// A query draws so much on the budget at a time, where there is as much.
const GRANT_BYTES: u64 = 1 << 20;
/// It gives back what it has no use for when that is more than this.
const SPARE_BYTES_MAX: u64 = 4 * GRANT_BYTES;
/// What [`QueryContext::covered`] is without a budget.
const WITHOUT_BUDGET: u64 = u64::MAX;

/// Limits of one query. Exceeding one ends that query alone, with an error that names the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How long it may run, in nanoseconds; `None`: as long as it likes.
    pub time_nanos: Option<u64>,
    /// How many bytes its operators may hold at a time.
    pub memory_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { time_nanos: None, memory_bytes: 2 << 30 }
    }
}

/// What the nodes of one running query share.
pub struct QueryContext {
    limits: Limits,
    clock: Arc<dyn Clock>,
    /// Absent where nobody counts the time: reading a clock costs as much as a message of a few rows.
    started: Option<u64>,
    cancelled: Arc<AtomicBool>,
    /// The reader of its results has left.
    abandoned: AtomicBool,
    memory: AtomicU64,
    memory_peak: AtomicU64,
    /// How many bytes the query may hold before it draws again.
    covered: AtomicU64,
    budget: MemoryBudget,
    draw: Mutex<Draw>,
    samples: AtomicU64,
    leftovers: Mutex<Leftovers>,
    has_leftovers: AtomicBool,
}

/// Values of a query that has failed, which take long to drop.
pub type Leftovers = Vec<Box<dyn Any + Send>>;

/// Bytes that a query is charged for, until this is dropped, on whichever thread.
#[derive(Debug)]
pub struct Charge {
    context: Arc<QueryContext>,
    bytes: u64,
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.context.release(self.bytes);
    }
}

impl std::fmt::Debug for QueryContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("QueryContext")
            .field("limits", &self.limits)
            .field("memory", &self.memory)
            .finish_non_exhaustive()
    }
}

impl QueryContext {
    /// A query that starts now. Setting `cancelled` ends it at its next message.
    pub fn new(limits: Limits, clock: Arc<dyn Clock>, cancelled: Arc<AtomicBool>) -> Self {
        let started = limits.time_nanos.map(|_| clock.now_nanos());
        let budget = MemoryBudget::unlimited();
        QueryContext {
            limits,
            clock,
            started,
            cancelled,
            abandoned: AtomicBool::new(false),
            memory: AtomicU64::new(0),
            memory_peak: AtomicU64::new(0),
            covered: AtomicU64::new(WITHOUT_BUDGET),
            draw: Mutex::new(budget.account(Purpose::Queries)),
            budget,
            samples: AtomicU64::new(0),
            leftovers: Mutex::default(),
            has_leftovers: AtomicBool::new(false),
        }
    }

    /// The same, and what it holds counts in a budget of the process.
    #[must_use]
    pub fn drawing_on(self, budget: &MemoryBudget) -> Self {
        let covered = if budget.is_unlimited() { WITHOUT_BUDGET } else { UNDRAWN_BYTES_MAX };
        let draw = Mutex::new(budget.account(Purpose::Queries));
        QueryContext { covered: AtomicU64::new(covered), draw, budget: budget.clone(), ..self }
    }

    /// Makes this the context of another query, which starts now; in place where nobody else has it any more.
    pub fn renew(self: &mut Arc<Self>, limits: Limits, clock: &Arc<dyn Clock>, cancelled: &Arc<AtomicBool>) {
        let Some(context) = Arc::get_mut(self) else {
            let renewed = QueryContext::new(limits, clock.clone(), cancelled.clone()).drawing_on(&self.budget);
            *self = Arc::new(renewed);
            return;
        };
        context.give_back();
        context.leftovers.get_mut().clear();
        *context.has_leftovers.get_mut() = false;
        context.limits = limits;
        if !Arc::ptr_eq(&context.clock, clock) {
            context.clock = clock.clone();
        }
        if !Arc::ptr_eq(&context.cancelled, cancelled) {
            context.cancelled = cancelled.clone();
        }
        context.started = context.limits.time_nanos.map(|_| context.clock.now_nanos());
        *context.abandoned.get_mut() = false;
        *context.memory.get_mut() = 0;
        *context.memory_peak.get_mut() = 0;
    }

    /// Counts the time from now on, also where no limit asks for it.
    pub fn count_time(self: &mut Arc<Self>) {
        if let Some(context) = Arc::get_mut(self) {
            context.started.get_or_insert_with(|| context.clock.now_nanos());
        }
    }

    /// The clock.
    pub fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    /// Nanoseconds since the query started; 0 where they are not counted ([`QueryContext::count_time`]).
    pub fn elapsed_nanos(&self) -> u64 {
        self.started.map_or(0, |started| self.clock.now_nanos().saturating_sub(started))
    }

    /// The bytes that are charged now.
    pub fn memory(&self) -> u64 {
        self.memory.load(Ordering::Relaxed)
    }

    /// The most bytes held at a time so far.
    pub fn memory_peak(&self) -> u64 {
        self.memory_peak.load(Ordering::Relaxed)
    }

    /// Ends the query at its next message, because the reader of its results has left. Queries with the same `cancelled` go on.
    pub fn abandon(&self) {
        self.abandoned.store(true, Ordering::Relaxed);
    }

    /// Fails when the query was cancelled or its time is over.
    pub fn check(&self) -> Result<()> {
        self.check_at(CLOCK_MESSAGES)
    }

    /// As [`QueryContext::check`] before a message of this number, but looks at the clock only before every
    /// [`CLOCK_MESSAGES`]th: a light query reads it once, to know when it started.
    pub fn check_at(&self, message: u64) -> Result<()> {
        if self.cancelled.load(Ordering::Relaxed) || self.abandoned.load(Ordering::Relaxed) {
            return Err(Error::new(ErrorKind::Cancelled, "the query was cancelled"));
        }
        if message == 0 || !message.is_multiple_of(CLOCK_MESSAGES) {
            return Ok(());
        }
        match self.limits.time_nanos {
            Some(limit) if self.elapsed_nanos() > limit => Err(Error::time_limit(Duration::from_nanos(limit))),
            _ => Ok(()),
        }
    }

    /// Accounts for bytes that an operator now holds; fails when that is more than the query may.
    pub fn charge(&self, bytes: u64) -> Result<()> {
        // Too many bytes to count end the query like any other amount that is too large.
        // SeqCst with `covered` below: `give_back_spare` has why.
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

    /// Takes over a value that an operator made before the query failed. It is dropped when the reader of the results knows
    /// of the end: to free millions of values takes tenths of a second.
    pub fn leave(&self, value: impl Any + Send) {
        self.leftovers.lock().push(Box::new(value));
        self.has_leftovers.store(true, Ordering::Relaxed);
    }

    /// Returns true if a value was left: what it was charged with stays charged until the query is over.
    pub fn has_leftovers(&self) -> bool {
        self.has_leftovers.load(Ordering::Relaxed)
    }

    /// The values that were left, to be dropped.
    pub fn take_leftovers(&self) -> Leftovers {
        std::mem::take(&mut self.leftovers.lock())
    }

    /// As [`QueryContext::charge`], until what is returned is dropped.
    pub fn charge_while(self: &Arc<Self>, bytes: u64) -> Result<Charge> {
        // Made first: what is charged is given back, also where the query may not have it.
        let charge = Charge { context: self.clone(), bytes };
        self.charge(bytes)?;
        Ok(charge)
    }

    /// Where the next sample is to begin that charges for what is too small to be charged one by one: any number, equally
    /// often.
    pub fn sample_start(&self) -> u64 {
        /// 2^64 divided by the golden ratio: multiples of it, cut to 64 bits, are spread evenly however many there are.
        const STEP: u64 = 0x9E37_79B9_7F4A_7C15;
        self.samples.fetch_add(STEP, Ordering::Relaxed)
    }

    /// Draws what covers so many bytes.
    #[cold]
    fn draw_for(&self, held: u64) -> Result<()> {
        let mut draw = self.draw.lock();
        // Another node of the query may have been here.
        let needed = held.saturating_sub(UNDRAWN_BYTES_MAX).saturating_sub(draw.bytes());
        if needed > 0 {
            draw.grow_generously(needed, needed.next_multiple_of(GRANT_BYTES))?;
            self.covered.store(UNDRAWN_BYTES_MAX + draw.bytes(), Ordering::SeqCst);
        }
        Ok(())
    }

    /// Gives back what was charged.
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

    /// Gives back to the budget what covers more than is held.
    #[cold]
    fn give_back_spare(&self) {
        let mut draw = self.draw.lock();
        let needed = self.memory().saturating_sub(UNDRAWN_BYTES_MAX).next_multiple_of(GRANT_BYTES);
        let spare = draw.bytes().saturating_sub(needed);
        let covered = UNDRAWN_BYTES_MAX + draw.bytes() - spare;
        // In this order: a node that charges meanwhile either finds that less is covered, and waits for the lock to draw, or is
        // found here.
        self.covered.store(covered, Ordering::SeqCst);
        match self.memory.load(Ordering::SeqCst) > covered {
            true => self.covered.store(UNDRAWN_BYTES_MAX + draw.bytes(), Ordering::SeqCst),
            false => draw.shrink(spare),
        }
    }

    /// Gives back everything that was drawn on the budget: the query is over.
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

    fn context(limits: Limits, budget: &MemoryBudget) -> Arc<QueryContext> {
        Arc::new(QueryContext::new(limits, Arc::new(ManualClock::default()), Arc::default()).drawing_on(budget))
    }

    #[test]
    fn a_query_draws_on_the_budget_as_it_grows_and_gives_back() {
        let budget = MemoryBudget::of(10 * GRANT_BYTES);
        let mut query = context(Limits::default(), &budget);
        query.charge(UNDRAWN_BYTES_MAX).unwrap();
        assert_eq!(budget.used_bytes(), 0, "a light query draws nothing");
        query.charge(1).unwrap();
        assert_eq!(budget.used_for(Purpose::Queries), GRANT_BYTES);
        query.charge(GRANT_BYTES - 1).unwrap();
        assert_eq!(budget.used_bytes(), GRANT_BYTES);
        query.charge(8 * GRANT_BYTES).unwrap();
        // Where a grant is not left, what is needed may be.
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
        // The next query of the same instance draws anew.
        query.charge(GRANT_BYTES).unwrap();
        query.renew(Limits::default(), &(Arc::new(ManualClock::default()) as Arc<dyn Clock>), &Arc::default());
        assert_eq!(budget.used_for(Purpose::Queries), 0);
        query.charge(GRANT_BYTES).unwrap();
        assert_eq!(budget.used_for(Purpose::Queries), GRANT_BYTES);
        let other_hand = query.clone();
        query.renew(Limits::default(), &(Arc::new(ManualClock::default()) as Arc<dyn Clock>), &Arc::default());
        query.charge(GRANT_BYTES).unwrap();
        assert_eq!(budget.used_for(Purpose::Queries), 2 * GRANT_BYTES);
        drop((query, other_hand, others));
        assert_eq!(budget.used_bytes(), 0);
    }

    /// Nodes of one query charge and release at once: the draw covers what is held at every moment that nothing moves, and all
    /// comes back.
    #[test]
    fn nodes_of_a_query_draw_together() {
        let budget = MemoryBudget::of(64 * GRANT_BYTES);
        let query = context(Limits { memory_bytes: u64::MAX, ..Limits::default() }, &budget);
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
