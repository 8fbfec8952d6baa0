//! How long a query runs on the thread of its caller.
//!
//! A query of `Database::run_shared` begins on the thread of its caller, and moves to an executor if it is not over
//! soon. The threads of callers have a higher priority than executors, so a light query does not wait for heavy ones.
//! But if many heavy queries begin at the same time, each on its caller's thread, they keep the cores from light ones
//! until the last has moved.
//!
//! A thread reads the clock only after some messages, and a message of a heavy query may take a millisecond. So a plan
//! whose last runs all moved begins on an executor ([`super::last_runs`]).
//!
//! The tenant of the query pays for that time, too ([`pay`]). A light query reads no clock, so an estimate stands for its
//! time. Each thread adds up what it owes, and hands it over to the executors when it is worth a lock.
//!
//! - **DB-8.** The callers' threads together work for about [`CALLERS_NANOS`] for each core on queries that have begun
//!   together, however many they are. So the more threads there are, the sooner does each query move.

use std::cell::RefCell;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use mangrove_flow::schedule::Tenant;

/// The messages that a query processes before its thread reads the clock. Most light queries are over then.
pub(crate) const FIRST_MESSAGES: u64 = 8;

/// The messages between two readings of the clock after that.
pub(crate) const MESSAGES_PER_READING: u64 = 4;

/// The time of the callers' threads, for each core.
const CALLERS_NANOS: u64 = 1_000_000;

/// The estimate for the messages of a query before the first reading of the clock.
const UNREAD_NANOS: u64 = 2_000;

/// A thread hands over what a tenant owes when it is as much as this.
const HAND_OVER_NANOS: u64 = 100_000;

/// The tenants for which a thread adds up what they owe. For further ones, it hands over the time of each query.
const OWING_TENANTS_MAX: usize = 8;

thread_local! {
    /// What tenants owe for queries on this thread. If the thread ends, that is lost.
    static OWED: RefCell<Vec<(Tenant, u64)>> = const { RefCell::new(Vec::new()) };
}

/// Adds the time of a query on this thread to what its tenant owes. Calls `hand_over` with an amount that is large enough
/// for a lock, or if the query moves to an executor, which takes a lock anyway.
pub(crate) fn pay(tenant: &Tenant, nanos: u64, moves: bool, hand_over: impl FnOnce(&Tenant, u64)) {
    OWED.with_borrow_mut(|owed| {
        let at = owed.iter().position(|(owing, _)| owing == tenant).unwrap_or_else(|| {
            owed.push((tenant.clone(), 0));
            owed.len() - 1
        });
        owed[at].1 += nanos;
        if moves || owed[at].1 >= HAND_OVER_NANOS || owed.len() > OWING_TENANTS_MAX {
            let (tenant, nanos) = owed.swap_remove(at);
            hand_over(&tenant, nanos);
        }
    });
}

/// The threads of callers that run a query, which has had its first messages.
static CALLERS: AtomicU64 = AtomicU64::new(0);

static CORES: LazyLock<u64> =
    LazyLock::new(|| std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64));

/// Returns true if the threads of callers leave a core to helpers. A helper on a core that a caller needs slows both.
pub(crate) fn callers_leave_a_core() -> bool {
    CALLERS.load(Ordering::Relaxed) < *CORES
}

/// The time of one query on the thread of its caller. It stands still while the caller takes results.
#[derive(Default)]
pub(crate) struct CallerTime {
    spent_nanos: u64,
    /// Of the time since it began to run: the part before the last reading of the clock.
    running_nanos: u64,
    /// When it began to run; `None` while it stands still.
    since_nanos: Option<u64>,
}

impl CallerTime {
    /// Lets the time run, if it stands still. Returns true if the query must move to an executor.
    pub fn is_over(&mut self, now_nanos: u64) -> bool {
        let since = *self.since_nanos.get_or_insert_with(|| {
            // Relaxed: no other memory is published with the counter.
            CALLERS.fetch_add(1, Ordering::Relaxed);
            now_nanos
        });
        self.running_nanos = now_nanos.saturating_sub(since);
        let spent = self.spent_nanos + self.running_nanos;
        is_over(spent, CALLERS.load(Ordering::Relaxed), *CORES)
    }

    /// Lets the time stand still, if it runs.
    pub fn stop(&mut self, now_nanos: impl FnOnce() -> u64) {
        if let Some(since) = self.since_nanos.take() {
            CALLERS.fetch_sub(1, Ordering::Relaxed);
            self.spent_nanos += now_nanos().saturating_sub(since);
            self.running_nanos = 0;
        }
    }

    /// Returns the nanoseconds that the tenant of the query pays for: the time that was read, and an estimate for the
    /// first messages. It is wall time, in which the thread may have waited for a core, so it has a bound.
    pub fn to_pay(&self) -> u64 {
        (UNREAD_NANOS + self.spent_nanos + self.running_nanos).min(CALLERS_NANOS)
    }
}

impl Drop for CallerTime {
    fn drop(&mut self) {
        self.stop(|| 0);
    }
}

/// DB-8: a thread has the time of a core, or its part of the time of all cores.
fn is_over(nanos: u64, callers: u64, cores: u64) -> bool {
    nanos.saturating_mul(callers.max(cores)) >= CALLERS_NANOS.saturating_mul(cores)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_callers_share_the_time_of_the_cores() {
        let time = |callers| (0..).step_by(1_000).find(|nanos| is_over(*nanos, callers, 4)).unwrap();
        assert_eq!([1, 4, 8, 400].map(time), [1_000_000, 1_000_000, 500_000, 10_000]);
    }

    #[test]
    fn a_query_pays_for_the_time_that_was_read() {
        let mut time = CallerTime::default();
        assert_eq!(time.to_pay(), UNREAD_NANOS, "a light query reads no clock");
        let _ = time.is_over(1_000);
        let _ = time.is_over(5_000);
        assert_eq!(time.to_pay(), UNREAD_NANOS + 4_000);
        time.stop(|| 8_000);
        assert_eq!(time.to_pay(), UNREAD_NANOS + 7_000);
        let _ = time.is_over(100_000);
        let _ = time.is_over(101_000);
        assert_eq!(time.to_pay(), UNREAD_NANOS + 8_000, "the reader's time does not count");
        let _ = time.is_over(1_000_000_000);
        assert_eq!(time.to_pay(), CALLERS_NANOS);
    }

    /// Nothing is lost or doubled, however many tenants a thread serves.
    #[test]
    fn what_tenants_owe_is_handed_over_in_large_amounts() {
        for tenants in [1, 3, 20] {
            let mut handed_over = std::collections::BTreeMap::<Tenant, u64>::new();
            let mut calls = 0;
            for n in 0..1_200 {
                pay(&Tenant::new(format!("{tenants}/{}", n % tenants)), UNREAD_NANOS, false, |tenant, nanos| {
                    *handed_over.entry(tenant.clone()).or_default() += nanos;
                    calls += 1;
                });
            }
            let left = OWED.take();
            assert!(left.len() <= OWING_TENANTS_MAX && left.iter().all(|(_, nanos)| *nanos < HAND_OVER_NANOS));
            left.into_iter().for_each(|(tenant, nanos)| *handed_over.entry(tenant).or_default() += nanos);
            assert!(handed_over.values().all(|sum| *sum == 1_200 / tenants * UNREAD_NANOS), "{handed_over:?}");
            assert!(tenants > OWING_TENANTS_MAX as u64 || calls <= 1_200 * UNREAD_NANOS / HAND_OVER_NANOS, "{calls}");
        }
    }

    #[test]
    fn only_running_times_count() {
        // Other tests run queries at the same time, so the counter itself is not compared.
        let mut others: Vec<_> = (0..1_000).map(|_| CallerTime::default()).collect();
        let mut time = CallerTime::default();
        assert!(!time.is_over(0));
        assert!(!time.is_over(CALLERS_NANOS / 500));
        assert!(others.iter_mut().all(|other| !other.is_over(0)));
        assert!(time.is_over(CALLERS_NANOS / 500 * *CORES));
        others.iter_mut().for_each(|other| other.stop(|| 0));
        assert!(!time.is_over(CALLERS_NANOS / 500));
        time.stop(|| CALLERS_NANOS / 2);
        assert!(!time.is_over(CALLERS_NANOS * 9));
        assert!(time.is_over(CALLERS_NANOS * 9 + CALLERS_NANOS / 2));
    }
}
