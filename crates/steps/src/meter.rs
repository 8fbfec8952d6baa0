//! The memory and time of one call of an operator.
//!
//! What an operator makes in one call is charged to the query before it is made. When the call is over the charge is
//! given back: from then on the rows that hold what was made are charged where they wait or are kept. Small amounts are
//! gathered. Whenever enough has come together, the query's limits of memory and time are looked at, and whether the
//! query was cancelled.

use mangrove_flow::QueryContext;
use mangrove_graph::{Result, Value};

/// So many bytes are made or passed between two looks at the limits of a query.
const GATHERED_BYTES_MAX: u64 = 64 << 10;

/// Charges one call of an operator.
pub struct Meter<'a> {
    context: &'a QueryContext,
    /// What the query is charged for.
    charged: u64,
    /// What is to be charged at the next look at the limits.
    gathered: u64,
    /// Bytes made or passed since the last look at the limits.
    effort: u64,
}

impl<'a> Meter<'a> {
    /// For a call that begins now.
    pub fn new(context: &'a QueryContext) -> Self {
        Meter { context, charged: 0, gathered: 0, effort: 0 }
    }

    /// The query.
    pub fn context(&self) -> &'a QueryContext {
        self.context
    }

    /// Charges bytes that are going to be made; fails where the query may not have them, or is to end.
    pub fn charge(&mut self, bytes: usize) -> Result<()> {
        self.gathered = self.gathered.saturating_add(bytes as u64);
        self.pass(bytes)
    }

    /// Counts bytes that are going to be looked at; fails where the query is to end.
    pub fn pass(&mut self, bytes: usize) -> Result<()> {
        self.effort = self.effort.saturating_add(bytes as u64);
        if self.effort < GATHERED_BYTES_MAX { Ok(()) } else { self.look() }
    }

    /// Charges bytes that are still held when the call is over, until the query ends.
    pub fn hold(&mut self, bytes: usize) -> Result<()> {
        self.context.charge(bytes as u64)?;
        self.pass(bytes)
    }

    /// Looks at the limits.
    pub fn look(&mut self) -> Result<()> {
        let gathered = std::mem::take(&mut self.gathered);
        self.effort = 0;
        self.charged = self.charged.saturating_add(gathered);
        self.context.charge(gathered)?;
        self.context.check()
    }

    /// Ends the call, and leaves what it charged with the query.
    pub fn keep(mut self) -> Result<()> {
        self.look()?;
        self.charged = 0;
        Ok(())
    }

    /// How many bytes were charged since the call began.
    pub fn made(&self) -> u64 {
        self.charged.saturating_add(self.gathered)
    }
}

/// Values that a call makes one by one. If the call fails, they are left to the query, which drops them after its reader knows
/// of the end.
pub struct Making<'a> {
    values: Vec<Value>,
    context: &'a QueryContext,
}

impl<'a> Making<'a> {
    /// None yet, with room for so many.
    pub fn new(meter: &Meter<'a>, room: usize) -> Self {
        Making { values: Vec::with_capacity(room), context: meter.context }
    }

    /// One more.
    pub fn push(&mut self, value: Value) {
        self.values.push(value);
    }

    /// The last one; null where there is none.
    pub fn last(&self) -> &Value {
        self.values.last().unwrap_or(&Value::Null)
    }

    /// All of them.
    pub fn done(mut self) -> Vec<Value> {
        std::mem::take(&mut self.values)
    }
}

impl Drop for Making<'_> {
    fn drop(&mut self) {
        if !self.values.is_empty() {
            self.context.leave(std::mem::take(&mut self.values));
        }
    }
}

impl Drop for Meter<'_> {
    fn drop(&mut self) {
        if !self.context.has_leftovers() {
            self.context.release(self.charged);
        }
    }
}

/// A query with a limit of memory, whose clock goes on by a nanosecond at every look at it: its limit of time is one of
/// looks.
#[cfg(test)]
pub fn limited_context(memory_bytes: u64, looks: Option<u64>) -> QueryContext {
    use std::sync::atomic::{AtomicU64, Ordering};

    #[derive(Default)]
    struct Looks(AtomicU64);

    impl mangrove_flow::clock::Clock for Looks {
        fn now_nanos(&self) -> u64 {
            self.0.fetch_add(1, Ordering::Relaxed)
        }
    }

    let limits = mangrove_flow::Limits { memory_bytes, time_nanos: looks };
    QueryContext::new(limits, std::sync::Arc::new(Looks::default()), std::sync::Arc::default())
}

#[cfg(test)]
mod tests {
    use mangrove_graph::ErrorKind;

    use super::*;

    #[test]
    fn many_small_amounts_are_one_large_one() {
        let context = limited_context(1 << 20, None);
        let mut meter = Meter::new(&context);
        let made = (0..).take_while(|_| meter.charge(100).is_ok()).count();
        assert!((9_000..=11_200).contains(&made), "{made}");
        drop(meter);
        assert_eq!(context.memory(), 0);
    }

    #[test]
    fn values_of_a_call_that_fails_are_left_to_the_query() {
        let context = limited_context(u64::MAX, None);
        let made = |fails: bool| {
            let meter = Meter::new(&context);
            let mut making = Making::new(&meter, 0);
            making.push(Value::Null);
            if fails { Vec::new() } else { making.done() }
        };
        assert_eq!(made(false).len(), 1);
        assert!(context.take_leftovers().is_empty());
        made(true);
        assert_eq!(context.take_leftovers().len(), 1);
        assert!(context.take_leftovers().is_empty());
    }

    #[test]
    fn time_is_looked_at_on_the_way() {
        let context = limited_context(u64::MAX, Some(10));
        let mut meter = Meter::new(&context);
        let passed = (0..).map_while(|_| meter.pass(1_000).ok()).count();
        assert!((700..760).contains(&passed), "{passed}");
        assert_eq!(meter.pass(1 << 20).unwrap_err().kind(), ErrorKind::Timeout);
        assert_eq!(meter.made(), 0);
    }
}
