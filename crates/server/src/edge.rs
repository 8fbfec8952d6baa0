//! Random bits, for the ids of requests that have none.

use std::hash::{BuildHasher, RandomState};

use uuid::{Builder, Uuid};

/// A random UUID, for requests without an id.
pub fn fresh_uuid() -> Uuid {
    let bits = u128::from(random_bits()) << 64 | u128::from(random_bits());
    Builder::from_random_bytes(bits.to_be_bytes()).into_uuid()
}

/// Random enough to tell requests apart; not for secrets.
fn random_bits() -> u64 {
    RandomState::new().hash_one(0_u8)
}
