//! Runs with helpers under a seeded choice of turns ([`simulator`]).

use std::sync::Arc;

use mangrove_flow::{AnyOperator, NodeRuntime, QueryLimits, Sharers};
use mangrove_virtual_nodes::run_with_helpers;

use crate::simulator::parts::Tally;
use crate::simulator::{PLANS, Plan, nested, simulate, simulate_late};
use crate::toys::{Numbers, control};

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
fn a_part_of_an_end_that_fails_ends_the_run() {
    let plan = Plan::Parts;
    let operators = || {
        let mut operators = plan.operators(50);
        operators[3] = AnyOperator::stateful(Tally::new(true));
        operators
    };
    let first = mangrove_testdata::first_seed(0);
    for seed in first..first + mangrove_testdata::case_count(100) {
        let topology = Arc::new(plan.topology());
        let mut home = NodeRuntime::new(0, 1, topology, operators(), control(QueryLimits::default()));
        home.begin(None).expect("a run begins");
        home.start(Numbers(vec![(0, 0)])).expect("a run starts");
        let sharers = Sharers { stealable: plan.stealable(), shares_all: true };
        let outcome = run_with_helpers(&mut home, &sharers, || Ok(operators()), seed);
        assert_eq!(outcome.expect_err("a part fails").message(), "a part has failed");
        assert_eq!(home.failed_operator(), Some(3));
    }
}

#[test]
fn late_reads_change_no_result_whatever_the_order_of_completions() {
    for_every_seed(simulate_late);
}
