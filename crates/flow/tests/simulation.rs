//! Runs with helpers under a seeded choice of turns ([`simulator`]).
//!
//! `MANGROVE_SEEDS` is the number of seeds for each plan; without it, some hundred.

mod simulator;
mod toys;

use simulator::{PLANS, simulate};

#[test]
fn helpers_change_no_result_whatever_the_order_of_turns() {
    let seeds = std::env::var("MANGROVE_SEEDS").ok().and_then(|n| n.parse().ok()).unwrap_or(400);
    for plan in PLANS {
        for seed in 0..seeds {
            let outcome = std::panic::catch_unwind(|| simulate(plan, seed));
            assert!(outcome.is_ok(), "{plan:?} fails with seed {seed}");
        }
    }
}
