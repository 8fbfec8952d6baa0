//! What comes from the surroundings of the process, and not from its caller: the time of day and random ids.
//!
//! The time is for people, for retention and for pins. No rule of the log rests on it.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::time::{SystemTime, UNIX_EPOCH};

use uuid::Uuid;

/// Microseconds since 1970.
#[expect(
    clippy::disallowed_methods,
    reason = "the time of day is noted for people, and no rule of the log rests on it"
)]
pub(crate) fn unix_us() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64)
}

/// A random (version 4) UUID, from the randomness that seeds hash maps.
pub(crate) fn draw_uuid() -> Uuid {
    let word = || RandomState::new().build_hasher().finish();
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&word().to_le_bytes());
    bytes[8..].copy_from_slice(&word().to_le_bytes());
    uuid::Builder::from_random_bytes(bytes).into_uuid()
}
