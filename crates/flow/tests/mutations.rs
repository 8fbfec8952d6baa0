//! The simulation notices each rule that is broken (feature `mutations`).

mod simulator;
mod toys;

use mangrove_flow::mutation::{self, Mutation};
use simulator::{PLANS, Plan, simulate, simulate_late};

/// Seeds within which a broken rule must be noticed.
const SEEDS: u64 = 400;

fn is_noticed(mutation: Mutation, simulate: fn(Plan, u64)) -> bool {
    let fails = |plan, seed| {
        mutation::set(Some(mutation));
        let outcome = std::panic::catch_unwind(|| simulate(plan, seed));
        mutation::set(None);
        outcome.is_err()
    };
    (0..SEEDS).any(|seed| PLANS.iter().any(|plan| fails(*plan, seed)))
}

#[test]
fn every_broken_rule_is_noticed() {
    // The panics are expected; their backtraces would hide the outcome.
    std::panic::set_hook(Box::new(|_| {}));
    let all = [
        Mutation::EndOvertakesParcels,
        Mutation::DoneBeforeSent,
        Mutation::PartIsUncounted,
        Mutation::HomeSleepsBesideWork,
        Mutation::OrderIsIgnored,
        Mutation::PassingOperatorKeepsRows,
    ];
    let all_late = [
        Mutation::EndOvertakesParcels,
        Mutation::ParkedIsUncounted,
        Mutation::LateCompletionIsHeeded,
        Mutation::EarlyCompletionIsLost,
        Mutation::HoldIsDroppedEarly,
        Mutation::RoundIsIgnored,
        Mutation::RefusedIsKept,
        Mutation::OrderOfWaitingIsIgnored,
        Mutation::CompletionDoesNotWake,
    ];
    let mut missed: Vec<Mutation> = all.into_iter().filter(|mutation| !is_noticed(*mutation, simulate)).collect();
    missed.extend(all_late.into_iter().filter(|mutation| !is_noticed(*mutation, simulate_late)));
    let _ = std::panic::take_hook();
    assert!(missed.is_empty(), "not noticed: {missed:?}");
}
