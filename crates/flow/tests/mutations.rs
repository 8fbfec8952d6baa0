//! The simulation notices each rule that is broken (feature `mutations`).

mod fair;
mod simulator;
mod toys;

use mangrove_flow::mutation::{self, Mutation};
use simulator::{PLANS, Plan, kernels, nested, simulate, simulate_late, simulate_sharing};

/// Seeds within which a broken rule must be noticed.
const SEEDS: u64 = 400;

fn is_noticed(mutation: Mutation, simulate: fn(Plan, u64)) -> bool {
    let fails = |scenario: &dyn Fn()| {
        mutation::set(Some(mutation));
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(scenario));
        mutation::set(None);
        outcome.is_err()
    };
    if mutation == Mutation::MessagesOutliveCancellation {
        return fails(&nested::a_canceled_group_releases_its_messages);
    }
    if mutation == Mutation::TimeOfLaneIsIgnored {
        return fails(&fair::two_instances_share_time);
    }
    (0..SEEDS).any(|seed| PLANS.iter().any(|plan| fails(&|| simulate(*plan, seed))))
}

/// Messages that must keep their order are shared: the plan says so, not the runtime.
#[test]
fn shared_messages_lose_their_order() {
    std::panic::set_hook(Box::new(|_| {}));
    let fails = |seed| std::panic::catch_unwind(|| simulate_sharing(Plan::Ordered, seed, kernels(Plan::Ordered)));
    let is_noticed = (0..SEEDS).any(|seed| fails(seed).is_err());
    let _ = std::panic::take_hook();
    assert!(is_noticed);
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
        Mutation::PassingOperatorKeepsRows,
        Mutation::KeptParcelIsDone,
        Mutation::CancellationStopsAtGroup,
        Mutation::CancellationReachesNeighbor,
        Mutation::StateOutlivesCancellation,
        Mutation::MessagesOutliveCancellation,
        Mutation::HeavyRowGoesAfterEnd,
        Mutation::ReplicaDoesNotJoin,
        Mutation::EveryPortIsShared,
        Mutation::GroupsOfHelpersAreShared,
        Mutation::GroupsOfHelpersArePutDown,
        Mutation::EndOvertakesParts,
        Mutation::PartTakenBackIsDone,
        Mutation::TimeOfLaneIsIgnored,
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
