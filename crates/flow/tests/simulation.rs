//! Runs with helpers under a seeded choice of turns ([`simulator`]).

mod simulator;
mod toys;

use simulator::{PLANS, Plan, nested, simulate, simulate_late};

fn for_every_seed(simulate: fn(Plan, u64)) {
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

#[test]
fn helpers_change_no_result_whatever_the_order_of_turns() {
    for_every_seed(simulate);
}

#[test]
fn late_reads_change_no_result_whatever_the_order_of_completions() {
    for_every_seed(simulate_late);
}
