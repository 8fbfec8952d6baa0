//! How important vertices are: algorithms find what their verifiers find, with the same bits for any number of threads.

use mangrove_analytics::algorithm::betweenness::{self, BetweennessOptions};
use mangrove_analytics::algorithm::bfs::Follow;
use mangrove_analytics::algorithm::closeness::{self, ClosenessOptions, Measure};
use mangrove_analytics::algorithm::katz::{self, KatzOptions};
use mangrove_analytics::algorithm::pagerank::{self, Dangling, PageRankOptions};
use mangrove_analytics::algorithm::{degree, hits};
use mangrove_analytics::{Orientation, Projection, Team, verify};
use mangrove_testdata::{case_count, first_seed};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::common::{World, all, assert_near, graph_of, of_labels, present, project, unweighted, with_teams};

const ORIENTATIONS: [Orientation; 2] = [Orientation::Directed, Orientation::Undirected];

/// Calls `expect` with projections of random graphs, and what it returns with teams of all sizes.
fn on_random_graphs<E: Fn(&Team)>(cases: u64, steps: usize, expect: impl Fn(Projection, String) -> E) {
    let first = first_seed(0);
    for seed in first..first + case_count(cases) {
        let mut world = World::new(seed);
        world.write(steps);
        for orientation in ORIENTATIONS {
            let what = format!("seed {seed}, {orientation:?}");
            let of_all = project(&world.manager, &all(orientation, Some(world.weight)), &Team::alone());
            with_teams(expect(of_all, what.clone()));
            let some = of_labels(world.labels[0], world.along[0], orientation);
            with_teams(expect(project(&world.manager, &some, &Team::alone()), format!("{what}, one label")));
        }
    }
}

#[test]
fn personalised_and_weighted_ranks_are_those_of_a_walk_that_pushes() {
    on_random_graphs(6, 30, |projection, what| {
        let vertices = present(&projection);
        let weighted = projection.is_weighted() && projection.cell_count() > 0;
        // One source counts twice.
        let sources: Vec<u32> = vertices.iter().copied().step_by(9).chain(vertices.first().copied()).collect();
        let mut cases = Vec::new();
        for (dangling, spread) in [(Dangling::Spread, true), (Dangling::Drop, false)] {
            for weighted in [false, weighted] {
                let options = PageRankOptions { rounds: 9, dangling, weighted, ..Default::default() };
                let all = verify::personalized(&projection, (0.85, 9, spread), &vertices, weighted);
                let some = verify::personalized(&projection, (0.85, 9, spread), &sources, weighted);
                cases.push((options, all, some));
            }
        }
        move |team| {
            for (options, all, some) in &cases {
                let what = format!("{what}, {options:?}, {team:?}");
                assert_near(&pagerank::run(&projection, options, team).unwrap().ranks, all, &what);
                let found = pagerank::personalized(&projection, options, &sources, team).unwrap().ranks;
                assert_near(&found, some, &what);
                let is_sum_one = (found.iter().sum::<f64>() - 1.0).abs() < 1e-12;
                assert!(is_sum_one || options.dangling == Dangling::Drop, "{what}");
            }
        }
    });
}

#[test]
fn betweenness_is_the_part_of_all_shortest_paths() {
    on_random_graphs(5, 15, |projection, what| {
        let vertices = present(&projection);
        let expected = verify::betweenness(&projection, &vertices);
        let pairs = (vertices.len() as f64 - 1.0) * (vertices.len() as f64 - 2.0);
        let pairs = if projection.is_directed() { pairs } else { pairs / 2.0 };
        move |team| {
            let options = BetweennessOptions::default();
            assert_near(&betweenness::run(&projection, &options, team).unwrap(), &expected, &what);
            let options = BetweennessOptions { normalized: true, ..options };
            let normalized: Vec<f64> = expected.iter().map(|value| value / pairs).collect();
            assert_near(&betweenness::run(&projection, &options, team).unwrap(), &normalized, &what);
            let some = &vertices[..vertices.len() / 3];
            let expected = verify::betweenness(&projection, some);
            assert_near(&betweenness::of_sources(&projection, some, team).unwrap(), &expected, &what);
            assert_near(&verify::betweenness_by_queue(&projection, some), &expected, &what);
        }
    });
}

/// Vertices that edges connect as in a grid: each one to its right neighbor and to the one below it.
fn grid(width: i64, height: i64) -> Projection {
    let mut edges = Vec::new();
    for at in 0..width * height {
        edges.extend((at % width + 1 < width).then_some((at, at + 1)));
        edges.extend((at + width < width * height).then_some((at, at + width)));
    }
    unweighted((width * height) as usize, &edges)
}

/// Layers of vertices, each with edges to all vertices of the next layer: `width` to the power of `layers` paths.
fn layers(width: i64, layers: i64) -> Projection {
    let pairs = |layer| (0..width * width).map(move |pair| (layer * width + pair / width, pair % width));
    let edges: Vec<_> = (0..layers - 1)
        .flat_map(|layer| pairs(layer).map(move |(from, to)| (from, (layer + 1) * width + to)))
        .collect();
    unweighted((width * layers) as usize, &edges)
}

/// Both sizes of graphs, which betweenness searches in different ways.
#[test]
fn betweenness_counts_more_shortest_paths_than_a_double_holds() {
    // From one corner of the grid to the other are more than 10³¹³ paths, and along its sides is one.
    for (name, projection) in [("grid", grid(528, 528)), ("layers", layers(8, 400)), ("wide layers", layers(16, 300))] {
        let vertices = present(&projection);
        let sources = [vertices[0], vertices[vertices.len() / 2 + 7]];
        let expected = verify::betweenness_by_queue(&projection, &sources);
        assert!(expected.iter().all(|value| value.is_finite()), "{name}");
        let mut first = None;
        with_teams(|team| {
            let found = betweenness::of_sources(&projection, &sources, team).unwrap();
            for (one, other) in found.iter().zip(&expected) {
                assert!((one - other).abs() <= 1e-10 * other.abs(), "{name}, {team:?}: {one}, expected {other}");
            }
            assert!(found == *first.get_or_insert(found.clone()), "{name}, {team:?}: other bits");
        });
    }
}

#[test]
fn closeness_is_that_of_single_searches() {
    on_random_graphs(6, 30, |projection, what| {
        let (near, harmonic) = verify::closeness(&projection);
        let others = present(&projection).len() as f64 - 1.0;
        let means: Vec<f64> = harmonic.iter().map(|value| value / others).collect();
        move |team| {
            for (measure, expected) in
                [(Measure::Closeness, &near), (Measure::Harmonic, &harmonic), (Measure::HarmonicMean, &means)]
            {
                let options = ClosenessOptions { measure, follow: Follow::Outgoing, samples: None, seed: 0 };
                let found = closeness::run(&projection, &options, team).unwrap();
                assert_near(&found, expected, &format!("{what}, {measure:?}"));
            }
        }
    });
}

#[test]
fn paths_from_a_vertex_are_those_to_it_in_the_reversed_graph() {
    let mut world = World::new(3);
    world.write(30);
    let projection = project(&world.manager, &all(Orientation::Directed, None), &Team::alone());
    let run = |follow| {
        let options = ClosenessOptions { measure: Measure::Closeness, follow, samples: None, seed: 0 };
        closeness::run(&projection, &options, &Team::alone()).unwrap()
    };
    let from = run(Follow::Incoming);
    let others = present(&projection).len() as f64 - 1.0;
    for at in present(&projection) {
        let depths = verify::bfs(&projection, at);
        let known: Vec<f64> = depths.into_iter().filter(|depth| (1..u32::MAX).contains(depth)).map(f64::from).collect();
        let reached = known.len() as f64;
        let expected = if known.is_empty() { 0.0 } else { reached * reached / known.iter().sum::<f64>() / others };
        assert!((from[at as usize] - expected).abs() < 1e-12, "{at}");
    }
    assert_ne!(from, run(Follow::Outgoing));
}

#[test]
fn hubs_authorities_and_katz_are_those_of_dense_matrices() {
    on_random_graphs(4, 20, |projection, what| {
        let (hubs, authorities) = verify::hits(&projection, 12);
        let most = present(&projection).iter().map(|at| projection.incoming(*at).len()).max().unwrap_or(0).max(1);
        let alphas = [0.0, 0.3 / most as f64, 0.85 / most as f64];
        let katz = alphas.map(|alpha| verify::katz(&projection, alpha, 2.0));
        move |team| {
            let found = hits::run(&projection, 12, 0.0, team).unwrap();
            assert_eq!(found.rounds, 12);
            assert_near(&found.hubs, &hubs, &format!("hubs of {what}"));
            assert_near(&found.authorities, &authorities, &format!("authorities of {what}"));
            for (alpha, expected) in alphas.into_iter().zip(&katz) {
                let options = KatzOptions { alpha: Some(alpha), beta: 2.0, tolerance: 1e-15, ..KatzOptions::default() };
                let found = katz::run(&projection, &options, team).unwrap();
                assert_near(&found, expected, &format!("katz of {what}, {alpha}"));
            }
        }
    });
}

#[test]
fn katz_that_does_not_converge_names_an_alpha_that_does() {
    let mut world = World::new(6);
    world.write(40);
    let projection = project(&world.manager, &all(Orientation::Undirected, None), &Team::alone());
    let options = KatzOptions { alpha: Some(0.9), ..KatzOptions::default() };
    for rounds in [3, 1_000_000] {
        let refused = katz::run(&projection, &KatzOptions { rounds, ..options }, &Team::alone());
        let refused = refused.expect_err("the sums are not finite");
        assert!(refused.message().contains("smaller alpha"), "{refused}");
    }
    let values = katz::run(&projection, &KatzOptions::default(), &Team::alone()).unwrap();
    assert!(present(&projection).iter().all(|at| values[*at as usize] >= 1.0));
}

#[test]
fn degrees_are_the_lengths_of_rows() {
    on_random_graphs(2, 20, |projection, what| {
        move |team| {
            for (at, degree) in degree::run(&projection, team).unwrap().into_iter().enumerate() {
                let at = at as u32;
                let rows = (projection.outgoing(at).len(), projection.incoming(at).len());
                assert_eq!((degree.outgoing as usize, degree.incoming as usize), rows, "{what}, {at}");
            }
        }
    });
}

#[test]
fn samples_estimate_and_a_sample_of_all_is_exact() {
    let mut world = World::new(12);
    world.write(120);
    let projection = project(&world.manager, &all(Orientation::Undirected, None), &Team::alone());
    let vertices = present(&projection);
    let team = Team::alone();
    let near = |samples, seed| {
        let options = ClosenessOptions { measure: Measure::Closeness, follow: Follow::Outgoing, samples, seed };
        closeness::run(&projection, &options, &team).unwrap()
    };
    assert_eq!(near(Some(vertices.len()), 1), near(None, 0));
    assert_ne!(near(Some(40), 1), near(Some(40), 2), "the seed chooses the sample");
    assert_eq!(near(Some(40), 1), near(Some(40), 1));
    let between = |samples| {
        betweenness::run(&projection, &BetweennessOptions { samples, seed: 5, normalized: false }, &team).unwrap()
    };
    assert_eq!(between(Some(vertices.len())), between(None));
    // The mean error of all vertices is far below the mean value.
    let half = vertices.len() / 2;
    for (estimated, exact) in [(near(Some(half), 3), near(None, 0)), (between(Some(half)), between(None))] {
        let error: f64 = estimated.iter().zip(&exact).map(|(one, other)| (one - other).abs()).sum();
        let values: f64 = exact.iter().sum();
        assert!(error > 0.0 && error < values / 4.0, "{error} of {values}");
    }
}

/// A graph with more cells than betweenness takes for a small one, and with levels that several threads share: both ways of a
/// search are taken.
fn large() -> Projection {
    let mut rng = SmallRng::seed_from_u64(7);
    let vertices: Vec<i64> = (0..5_000).collect();
    let mut edge = || (rng.random_range(0..5_000), rng.random_range(0..5_000), f64::from(rng.random_range(1..9)));
    let edges: Vec<_> = (0..70_000).map(|_| edge()).collect();
    let (manager, weight) = graph_of(&vertices, &edges);
    project(&manager, &all(Orientation::Undirected, Some(weight)), &Team::alone())
}

#[test]
fn values_have_the_same_bits_for_any_number_of_threads() {
    let projection = large();
    let sources: Vec<u32> = present(&projection).into_iter().step_by(50).collect();
    let mut first = None;
    with_teams(|team| {
        let bits = |values: Vec<f64>| -> Vec<u64> { values.into_iter().map(f64::to_bits).collect() };
        let weighted = PageRankOptions { weighted: true, ..Default::default() };
        let nearness =
            ClosenessOptions { measure: Measure::Harmonic, follow: Follow::Outgoing, samples: Some(300), seed: 1 };
        let between = BetweennessOptions { samples: Some(20), seed: 1, normalized: false };
        let hits = hits::run(&projection, 20, 0.0, team).unwrap();
        let found = [
            bits(pagerank::personalized(&projection, &weighted, &sources, team).unwrap().ranks),
            bits(closeness::run(&projection, &nearness, team).unwrap()),
            bits(betweenness::run(&projection, &between, team).unwrap()),
            bits(katz::run(&projection, &KatzOptions::default(), team).unwrap()),
            bits(hits.hubs),
            bits(hits.authorities),
        ];
        assert!(found == *first.get_or_insert(found.clone()), "{team:?}");
    });
}

#[test]
fn weights_that_are_none_are_refused() {
    let mut world = World::new(2);
    world.write(5);
    let team = Team::alone();
    let weighted = PageRankOptions { weighted: true, ..Default::default() };
    let without = project(&world.manager, &all(Orientation::Directed, None), &team);
    assert!(pagerank::run(&without, &weighted, &team).unwrap_err().message().contains("has no weights"));
    assert!(pagerank::personalized(&without, &weighted, &[], &team).unwrap_err().message().contains("one source"));
    let txn = world.begin();
    txn.set_edge_property(world.edges[0], world.weight, mangrove_graph::Value::F64(-1.0)).unwrap();
    txn.commit().unwrap();
    let negative = project(&world.manager, &all(Orientation::Directed, Some(world.weight)), &team);
    assert!(pagerank::run(&negative, &weighted, &team).unwrap_err().message().contains("the weight -1"));
}
