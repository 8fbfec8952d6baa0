//! Which vertices belong together: algorithms and their verifiers, on random graphs, with any number of threads.

use mangrove_analytics::algorithm::louvain::{Communities, ModularityOptions};
use mangrove_analytics::algorithm::{leiden, louvain, scc};
use mangrove_analytics::{Orientation, Projection, Team, verify};
use mangrove_testdata::{case_count, first_seed};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::common::{World, all, graph_of, karate_club, on_random_graphs, project, with_teams};

fn check_scc(projection: &Projection, team: &Team, what: &str) {
    let expected = verify::scc(projection);
    // By one thread, by colors to the end, and by both.
    for sequential in [usize::MAX, 0, 20] {
        let found = scc::run_with(projection, sequential, team).unwrap();
        assert_eq!(found, expected, "strong components of {what}, {sequential}");
    }
    assert_eq!(scc::run(projection, team).unwrap(), expected);
}

#[test]
fn strong_components_are_those_of_two_searches() {
    on_random_graphs(12, &[3, 40], check_scc);
}

/// A graph of cycles, of which each leads to a later one.
fn chain_of_cycles(seed: u64, cycles: i64) -> (mangrove_txn::TransactionManager, mangrove_graph::KeyId) {
    let mut rng = SmallRng::seed_from_u64(seed);
    let (mut vertices, mut edges, mut next) = (Vec::new(), Vec::new(), 0);
    let mut before = None;
    for _ in 0..cycles {
        let length = rng.random_range(1..5_i64);
        vertices.extend(next..next + length);
        edges.extend((0..length).map(|at| (next + at, next + (at + 1) % length, 1.0)));
        if let Some(before) = before {
            edges.push((before, next + rng.random_range(0..length), 1.0));
        }
        before = Some(next + rng.random_range(0..length));
        next += length;
    }
    // The order of positions is not that of the chain.
    for at in (1..vertices.len()).rev() {
        vertices.swap(at, rng.random_range(0..=at));
    }
    graph_of(&vertices, &edges)
}

#[test]
fn strong_components_of_a_long_chain_are_found() {
    for seed in 0..case_count(4) {
        let (manager, _) = chain_of_cycles(seed, 300);
        with_teams(|team| {
            let projection = project(&manager, &all(Orientation::Directed, None), team);
            check_scc(&projection, team, &format!("seed {seed}, {team:?}"));
        });
    }
}

/// Checks what both algorithms promise. Returns the two results.
fn check_modularity(projection: &Projection, options: &ModularityOptions, team: &Team, what: &str) -> [Communities; 2] {
    let alone: Vec<u32> = (0..projection.positions() as u32).collect();
    let least = verify::modularity(projection, &alone, options.resolution);
    [("Louvain", louvain::run as fn(_, _, _) -> _), ("Leiden", leiden::run)].map(|(name, run)| {
        let found: Communities = run(projection, options, team).unwrap();
        let modularity = verify::modularity(projection, &found.of_positions, options.resolution);
        assert!((modularity - found.modularity).abs() < 1e-9, "{name}, {what}: {modularity}, {}", found.modularity);
        assert!(modularity >= least - 1e-9, "{name}, {what}: {modularity}, and {least} alone");
        for (at, &community) in found.of_positions.iter().enumerate() {
            assert_eq!(found.of_positions[community as usize], community, "{name}, {what}");
            assert!(community as usize <= at, "{name}, {what}: {at} is in {community}");
        }
        if name == "Leiden" {
            assert!(verify::are_connected(projection, &found.of_positions), "{what}");
        }
        found
    })
}

#[test]
fn communities_have_the_modularity_that_is_told_and_are_the_same_for_every_team() {
    let first = first_seed(0);
    for seed in first..first + case_count(4) {
        let mut world = World::new(seed);
        for steps in [3, 40] {
            world.write(steps);
            for orientation in [Orientation::Directed, Orientation::Undirected] {
                for (resolution, weight) in
                    [(1.0, Some(world.weight)), (1.0, None), (0.3, None), (4.0, Some(world.weight))]
                {
                    let mut before = None;
                    with_teams(|team| {
                        let options = ModularityOptions { resolution, seed, ..Default::default() };
                        let projection = project(&world.manager, &all(orientation, weight), team);
                        let what = format!("seed {seed}, {orientation:?}, {team:?}, {options:?}");
                        let found = check_modularity(&projection, &options, team, &what);
                        assert_eq!(*before.get_or_insert(found.clone()), found, "{what}");
                    });
                }
            }
        }
    }
}

/// A graph with edges within groups of vertices, and some between them.
fn groups(seed: u64, groups: i64, size: i64) -> (mangrove_txn::TransactionManager, mangrove_graph::KeyId) {
    let mut rng = SmallRng::seed_from_u64(seed);
    let vertices: Vec<i64> = (0..groups * size).collect();
    let edges: Vec<_> = vertices
        .iter()
        .flat_map(|at| {
            let near = [0; 5].map(|_| (*at, at / size * size + rng.random_range(0..size), 1.0));
            near.into_iter().chain(rng.random_bool(0.5).then(|| (*at, rng.random_range(0..groups * size), 1.0)))
        })
        .collect();
    graph_of(&vertices, &edges)
}

#[test]
fn communities_of_a_graph_of_groups_are_the_groups() {
    // More vertices than are moved one by one.
    let (manager, _) = groups(1, 250, 24);
    let mut before = None;
    with_teams(|team| {
        let projection = project(&manager, &all(Orientation::Undirected, None), team);
        let options = ModularityOptions::default();
        let found =
            [louvain::run(&projection, &options, team).unwrap(), leiden::run(&projection, &options, team).unwrap()];
        let bits = found.clone().map(|found| (found.of_positions, found.modularity.to_bits(), found.levels));
        assert!(*before.get_or_insert(bits.clone()) == bits, "{team:?}");
        // Of 11 ends of edges at a vertex, 10 are within its group.
        for found in found {
            assert!(found.modularity > 0.85, "{}", found.modularity);
        }
    });
}

#[test]
fn the_karate_club_parts_as_it_is_known() {
    let (manager, _) = karate_club();
    with_teams(|team| {
        let projection = project(&manager, &all(Orientation::Undirected, None), team);
        let mut good = 0;
        for seed in 0..20 {
            let options = ModularityOptions { seed, ..Default::default() };
            let [louvain, leiden] = check_modularity(&projection, &options, team, &format!("seed {seed}"));
            // The greatest modularity is 0.41979. The order of moves decides how near to it an algorithm comes.
            assert!((0.38..0.4198).contains(&louvain.modularity), "seed {seed}: {}", louvain.modularity);
            assert!((0.38..0.4198).contains(&leiden.modularity), "seed {seed}: {}", leiden.modularity);
            good += usize::from(leiden.modularity >= 0.41);
        }
        assert!(good >= 15, "{good} of 20 orders");
        let louvain = louvain::run(&projection, &ModularityOptions::default(), team).unwrap();
        assert!(louvain.modularity >= 0.41, "{}", louvain.modularity);
    });
}

#[test]
fn modularity_refuses_what_makes_no_sense() {
    let (manager, weight) = graph_of(&[1, 2], &[(1, 2, -1.0)]);
    let team = Team::alone();
    let projection = project(&manager, &all(Orientation::Undirected, Some(weight)), &team);
    let refused = |options: ModularityOptions, words: &str| {
        for error in [louvain::run(&projection, &options, &team), leiden::run(&projection, &options, &team)] {
            let error = error.unwrap_err();
            assert!(error.message().contains(words), "{error}");
        }
    };
    refused(ModularityOptions::default(), "the weight -1");
    refused(ModularityOptions { resolution: f64::NAN, ..Default::default() }, "the resolution is NaN");
    refused(ModularityOptions { levels: 0, ..Default::default() }, "at least 1");
}

#[test]
fn strong_components_of_a_graph_of_many_parts_are_found() {
    let mut rng = SmallRng::seed_from_u64(5);
    let count = 20_000;
    let mut any = || rng.random_range(0..count);
    let edges: Vec<_> = (0..40_000).map(|_| (any(), any(), 1.0)).collect();
    let (manager, _) = graph_of(&(0..count).collect::<Vec<_>>(), &edges);
    with_teams(|team| {
        let projection = project(&manager, &all(Orientation::Directed, None), team);
        check_scc(&projection, team, &format!("{team:?}"));
    });
}
