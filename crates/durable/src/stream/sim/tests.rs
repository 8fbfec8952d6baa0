//! Histories by seed, and rules that are broken on purpose.

use mangrove_testdata::{case_count, first_seed};

use super::super::format::with_nonce;
use super::*;
use crate::home::settle::SettleRules;

/// Histories that each test tries in CI.
const IN_CI: u64 = 300;
/// Histories with `MANGROVE_TEST_FULL`.
const IN_FULL: u64 = 10_000;
/// Histories within which each broken rule must be noticed.
const MUTATION_SEEDS: u64 = 3_000;

fn cases() -> u64 {
    let asked = std::env::var_os("MANGROVE_CASES").is_some();
    let is_full = std::env::var_os("MANGROVE_TEST_FULL").is_some() && !asked;
    let cases = case_count(IN_CI);
    if is_full { cases.max(IN_FULL) } else { cases }
}

/// So many owners and followers at a time at most, which keep all rules.
fn scenario(owners: usize, followers: usize) -> Scenario {
    let (rules, follow) = (Rules::default(), FollowRules::default());
    Scenario { owners, followers, rules, follow, collects: true }
}

/// Runs seeds with all rules, and checks that they try what they should.
fn run_all(owners: usize, followers: usize) {
    let first = first_seed(1);
    let mut total = Tally::default();
    for seed in first..first + cases() {
        match run(seed, scenario(owners, followers)) {
            Ok(tally) => total.add(tally),
            Err(Violation(what)) => {
                panic!(
                    "seed {seed} with {owners} owners and {followers} followers: {what}. MANGROVE_FIRST={seed} MANGROVE_CASES=1 runs it again"
                )
            }
        }
    }
    println!("{owners} owners, {followers} followers: {total:?}");
    // One history may be quiet; many are not.
    if cases() >= 100 {
        let happened = [total.acknowledged, total.reads, total.manifests, total.fenced, total.stalls];
        assert!(happened.iter().all(|count| *count > 0), "something never happened: {total:?}");
        let followed = [total.followers, total.promotions, total.collected, total.found_by_pin];
        assert!(followers == 0 || followed.iter().all(|count| *count > 0), "something never happened: {total:?}");
    }
}

#[test]
fn one_owner_after_the_other_loses_nothing() {
    run_all(1, 0);
}

#[test]
fn several_owners_lose_nothing_and_fence_each_other() {
    (2..=4).for_each(|owners| run_all(owners, 0));
}

#[test]
fn followers_have_a_prefix_and_lose_nothing_when_they_are_promoted() {
    (1..=2).for_each(|owners| run_all(owners, 2));
}

#[test]
fn a_seed_is_one_history() {
    let scenario = Scenario { followers: 1, ..scenario(4, 0) };
    for seed in 1..20 {
        assert_eq!(run(seed, scenario), run(seed, scenario), "seed {seed}");
    }
}

#[test]
fn garbage_that_stays_is_noticed() {
    let scenario = Scenario { collects: false, ..scenario(2, 0) };
    let Err(Violation(what)) = run(1, scenario) else { panic!("nothing was noticed") };
    assert!(what.ends_with("was never collected"), "{what}");
}

/// Runs seeds with a broken rule until it is noticed. Returns the seeds that it took, and what was noticed.
fn noticed(rules: Rules) -> Option<(u64, String)> {
    (1..=MUTATION_SEEDS).find_map(|seed| {
        let owners = 2 + (seed % 3) as usize;
        run(seed, Scenario { rules, ..scenario(owners, 0) }).err().map(|Violation(what)| (seed, what))
    })
}

/// The object with another nonce for each retry.
fn with_other_nonce(object: &[u8], retry: u32) -> Vec<u8> {
    let mut nonce = [0; 16];
    nonce[..4].copy_from_slice(&retry.to_le_bytes());
    with_nonce(object, nonce)
}

#[test]
fn every_broken_rule_is_noticed() {
    let all = Rules::default();
    let mutations = [
        ("acknowledges after a gap", Rules { acknowledges_prefix: false, ..all }),
        (
            "a new nonce at a retry",
            Rules { settle: SettleRules { changes_retry: Some(with_other_nonce), ..all.settle }, ..all },
        ),
        ("'taken' is believed", Rules { settle: SettleRules { checks_taken: false, ..all.settle }, ..all }),
        ("fences before it claims the manifest", Rules { claims_first: false, ..all }),
        ("fences from the first object", Rules { fences_from_floor: false, ..all }),
        ("a manifest counts without a look", Rules { looks_for_larger: false, ..all }),
        ("deletes ends of streams", Rules { keeps_ends: false, ..all }),
        ("no lease wait", Rules { waits_for_lease: false, ..all }),
        ("a successor reads at once", Rules { holds_reads: false, ..all }),
        ("a retry renews the lease", Rules { leases_from_attempt: false, ..all }),
        ("looks while a put is in flight", Rules { looks_when_settled: false, ..all }),
    ];
    let missed: Vec<&str> = mutations
        .into_iter()
        .filter_map(|(what, rules)| match noticed(rules) {
            Some((seeds, how)) => {
                println!("{what}: noticed after {seeds} seeds: {how}");
                None
            }
            None => Some(what),
        })
        .collect();
    assert!(missed.is_empty(), "not noticed within {MUTATION_SEEDS} seeds: {missed:?}");
}

#[test]
fn every_broken_rule_of_followers_and_pins_is_noticed() {
    let all = FollowRules::default();
    let mutations = [
        ("pins after it has read", FollowRules { pins_before_reading: false, ..all }),
        ("follows beyond a gap", FollowRules { follows_prefix: false, ..all }),
        ("goes on to a stream that is not listed with the last", FollowRules { goes_on_if_listed: false, ..all }),
        ("pins less than it needs", FollowRules { pins_what_it_needs: false, ..all }),
        ("lists pins before the manifest counts", FollowRules { lists_pins_when_counted: false, ..all }),
        ("misses a pin that moves", FollowRules { lists_pins_again: false, ..all }),
    ];
    let missed: Vec<&str> = mutations
        .into_iter()
        .filter_map(|(what, follow)| {
            let found = (1..=MUTATION_SEEDS).find_map(|seed| {
                let scenario = Scenario { follow, ..scenario(1 + (seed % 2) as usize, 2) };
                run(seed, scenario).err().map(|Violation(how)| (seed, how))
            });
            match found {
                Some((seeds, how)) => {
                    println!("{what}: noticed after {seeds} seeds: {how}");
                    None
                }
                None => Some(what),
            }
        })
        .collect();
    assert!(missed.is_empty(), "not noticed within {MUTATION_SEEDS} seeds: {missed:?}");
}
