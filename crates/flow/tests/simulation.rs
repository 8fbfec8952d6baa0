//! Runs with helpers under a seeded choice of turns ([`simulator`]).

mod simulator;
mod toys;

use simulator::{PLANS, nested, simulate};

#[test]
fn helpers_change_no_result_whatever_the_order_of_turns() {
    let first = mangrove_testdata::first_seed(0);
    for plan in PLANS {
        for seed in first..first + mangrove_testdata::case_count(400) {
            let outcome = std::panic::catch_unwind(|| simulate(plan, seed));
            assert!(outcome.is_ok(), "{plan:?} fails with seed {seed}");
        }
    }
}

#[test]
fn a_canceled_group_releases_its_messages() {
    nested::a_canceled_group_releases_its_messages();
}
