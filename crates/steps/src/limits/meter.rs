//! The meter of one call of an operator: it charges memory and checks the limits of the query.
//!
//! An operator charges values before it makes them. The meter releases the charge when the call is over: from then on,
//! the rows that hold the values are charged while they wait or are kept (FLOW-13, FLOW-17). Small amounts are
//! gathered. For every 64 KiB made or read, the meter checks the memory limit, the time limit and the cancellation of
//! the query.

use mangrove_flow::QueryControl;
use mangrove_graph::{Result, Value};

/// Bytes made or read between two checks of the limits.
const GATHERED_BYTES_MAX: u64 = 64 << 10;

/// The account of one call of an operator.
pub struct Meter<'a> {
    control: &'a QueryControl,
    /// Bytes charged to the query.
    charged: u64,
    /// Bytes to be charged at the next check.
    gathered: u64,
    /// Bytes made or read since the last check.
    effort: u64,
}

impl<'a> Meter<'a> {
    /// The meter of a call that begins.
    pub fn new(control: &'a QueryControl) -> Self {
        Meter { control, charged: 0, gathered: 0, effort: 0 }
    }

    /// Returns the control of the query.
    pub fn control(&self) -> &'a QueryControl {
        self.control
    }

    /// Charges bytes that the call is about to make. Fails if that exceeds the memory limit or the query is to end.
    pub fn charge(&mut self, bytes: usize) -> Result<()> {
        self.gathered = self.gathered.saturating_add(bytes as u64);
        self.pass(bytes)
    }

    /// Counts bytes that the call is about to read. Fails if the query is to end.
    pub fn pass(&mut self, bytes: usize) -> Result<()> {
        self.effort = self.effort.saturating_add(bytes as u64);
        if self.effort < GATHERED_BYTES_MAX { Ok(()) } else { self.look() }
    }

    /// Charges bytes that the query holds until it ends: the end of the call does not release them.
    pub fn hold(&mut self, bytes: usize) -> Result<()> {
        self.control.charge(bytes as u64)?;
        self.pass(bytes)
    }

    /// Charges the gathered bytes and checks the limits.
    pub fn look(&mut self) -> Result<()> {
        let gathered = std::mem::take(&mut self.gathered);
        self.effort = 0;
        self.charged = self.charged.saturating_add(gathered);
        self.control.charge(gathered)?;
        self.control.check()
    }

    /// Ends the call without releasing its charge: the values made are held until the query ends.
    pub fn keep(mut self) -> Result<()> {
        self.look()?;
        self.charged = 0;
        Ok(())
    }

    /// Returns the bytes made since the call began, also those to be charged at the next check.
    pub fn made(&self) -> u64 {
        self.charged.saturating_add(self.gathered)
    }
}

impl Drop for Meter<'_> {
    fn drop(&mut self) {
        // If the query has taken values over, it stays charged for them until it is over.
        if !self.control.has_leftovers() {
            self.control.release(self.charged);
        }
    }
}

/// Values that a call makes one by one. If the call fails, the query takes the values over and drops them after the
/// client has been told of the failure ([`QueryControl::leave`]).
pub(crate) struct MadeSoFar<'a> {
    values: Vec<Value>,
    control: &'a QueryControl,
}

impl<'a> MadeSoFar<'a> {
    /// No values yet, with room for `room`.
    pub fn new(meter: &Meter<'a>, room: usize) -> Self {
        MadeSoFar { values: Vec::with_capacity(room), control: meter.control }
    }

    pub fn push(&mut self, value: Value) {
        self.values.push(value);
    }

    /// Returns the last value; null if there is none.
    pub fn last(&self) -> &Value {
        self.values.last().unwrap_or(&Value::Null)
    }

    /// Returns all values: the call has succeeded.
    pub fn done(mut self) -> Vec<Value> {
        std::mem::take(&mut self.values)
    }
}

impl Drop for MadeSoFar<'_> {
    fn drop(&mut self) {
        if !self.values.is_empty() {
            self.control.leave(std::mem::take(&mut self.values));
        }
    }
}

/// The control of a query whose clock advances by a nanosecond at every reading, so `looks` limits the number of
/// readings.
#[cfg(test)]
pub(crate) fn limited_control(memory_bytes: u64, looks: Option<u64>) -> QueryControl {
    use std::sync::atomic::{AtomicU64, Ordering};

    #[derive(Default)]
    struct Looks(AtomicU64);

    impl mangrove_flow::clock::Clock for Looks {
        fn now_nanos(&self) -> u64 {
            self.0.fetch_add(1, Ordering::Relaxed)
        }
    }

    let limits = mangrove_flow::QueryLimits { memory_bytes, time_nanos: looks };
    QueryControl::new(limits, std::sync::Arc::new(Looks::default()), std::sync::Arc::default())
}

#[cfg(test)]
mod tests {
    use mangrove_graph::ErrorKind;

    use super::*;

    #[test]
    fn many_small_amounts_are_one_large_one() {
        let control = limited_control(1 << 20, None);
        let mut meter = Meter::new(&control);
        let made = (0..).take_while(|_| meter.charge(100).is_ok()).count();
        assert!((9_000..=11_200).contains(&made), "{made}");
        drop(meter);
        assert_eq!(control.memory(), 0);
    }

    #[test]
    fn values_of_a_call_that_fails_are_left_to_the_query() {
        let control = limited_control(u64::MAX, None);
        let made = |fails: bool| {
            let meter = Meter::new(&control);
            let mut making = MadeSoFar::new(&meter, 0);
            making.push(Value::Null);
            if fails { Vec::new() } else { making.done() }
        };
        assert_eq!(made(false).len(), 1);
        assert!(control.take_leftovers().is_empty());
        made(true);
        assert_eq!(control.take_leftovers().len(), 1);
        assert!(control.take_leftovers().is_empty());
    }

    #[test]
    fn time_is_looked_at_on_the_way() {
        let control = limited_control(u64::MAX, Some(10));
        let mut meter = Meter::new(&control);
        let passed = (0..).map_while(|_| meter.pass(1_000).ok()).count();
        assert!((700..760).contains(&passed), "{passed}");
        assert_eq!(meter.pass(1 << 20).unwrap_err().kind(), ErrorKind::Timeout);
        assert_eq!(meter.made(), 0);
    }
}
