//! The clock of streams: one that never falls, and goes on while the machine sleeps.
//!
//! A lease that ends while its owner sleeps must be over when the owner wakes. So on Linux this is the time since the
//! machine was started, sleep included; the clock of other systems counts sleep too, or the system says so.

use std::time::Duration;

use super::Now;
use crate::ambient::unix_us;

/// The time now.
pub fn now() -> Now {
    Now { us: steady_us(), unix_us: unix_us() }
}

/// How long it is until a time of this clock, in microseconds; zero if it has passed.
pub fn until(us: u64) -> Duration {
    Duration::from_micros(us.saturating_sub(steady_us()))
}

#[cfg(target_os = "linux")]
fn steady_us() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    time.tv_sec as u64 * 1_000_000 + time.tv_nsec as u64 / 1_000
}

#[cfg(not(target_os = "linux"))]
#[expect(clippy::disallowed_methods, reason = "deadlines of requests to a store are in real time")]
fn steady_us() -> u64 {
    use std::sync::OnceLock;
    use std::time::Instant;
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_micros() as u64
}
