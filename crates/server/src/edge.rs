//! What the server takes from the world outside: the time, and random bits.
//!
//! The engine takes neither by itself; a server stands at the edge of the house and may.

use std::hash::{BuildHasher, RandomState};

use mangrove_graph::DateTime;
use uuid::{Builder, Uuid};

/// The time, in UTC; `None` where the clock stands before 1970.
#[allow(clippy::disallowed_methods, reason = "the server is the edge of the house: what datetime() means is read here")]
pub fn now() -> Option<DateTime> {
    let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).ok()?;
    let seconds = i64::try_from(since_epoch.as_secs()).ok()?;
    Some(DateTime { seconds, nanos: since_epoch.subsec_nanos(), offset_seconds: 0 })
}

/// A random UUID.
pub fn fresh_uuid() -> Uuid {
    let bits = u128::from(random_bits()) << 64 | u128::from(random_bits());
    Builder::from_random_bytes(bits.to_be_bytes()).into_uuid()
}

/// Bits good enough to tell requests apart; not for secrets.
fn random_bits() -> u64 {
    RandomState::new().hash_one(0_u8)
}
