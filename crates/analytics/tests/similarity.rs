//! Similar vertices, random walks and embeddings: what their definitions say, with the same bits for any number of threads.

use std::collections::BTreeMap;

use mangrove_analytics::algorithm::fast_rp::{self, FastRpOptions};
use mangrove_analytics::algorithm::random_walks::{self, WalkOptions, Walks};
use mangrove_analytics::algorithm::similarity::{self, Measure, Similar, SimilarityOptions};
use mangrove_analytics::{Orientation, Projection, Team, verify};
use mangrove_testdata::{case_count, first_seed};

use crate::common::{World, all, graph_of, present, project, with_teams};

const ORIENTATIONS: [Orientation; 2] = [Orientation::Directed, Orientation::Undirected];

/// Calls `each` with projections of random graphs.
fn on_random_graphs(cases: u64, steps: usize, each: impl Fn(&Projection, &str)) {
    let first = first_seed(0);
    for seed in first..first + case_count(cases) {
        let mut world = World::new(seed);
        world.write(steps);
        for orientation in ORIENTATIONS {
            let projection = project(&world.manager, &all(orientation, None), &Team::alone());
            each(&projection, &format!("seed {seed}, {orientation:?}"));
        }
    }
}

#[test]
fn similar_vertices_are_the_best_of_all_pairs() {
    on_random_graphs(5, 30, |projection, what| {
        let pairs = verify::common_neighbors(projection);
        assert!(!pairs.is_empty());
        for measure in [Measure::Jaccard, Measure::Overlap, Measure::Cosine] {
            let of = |[common, one, other]: [usize; 3]| match measure {
                Measure::Jaccard => common as f64 / (one + other - common) as f64,
                Measure::Overlap => common as f64 / one.min(other) as f64,
                Measure::Cosine => common as f64 / ((one * other) as f64).sqrt(),
            };
            for (top, least, degrees) in [(usize::MAX, 0.0, 1..=usize::MAX), (2, 0.0, 1..=usize::MAX), (3, 0.4, 2..=4)]
            {
                let mut expected = BTreeMap::<u32, Vec<Similar>>::new();
                for (&(one, other), &counts) in &pairs {
                    let similarity = of(counts);
                    if similarity >= least && degrees.contains(&counts[1]) && degrees.contains(&counts[2]) {
                        expected.entry(one).or_default().push(Similar { one, other, similarity });
                    }
                }
                for rows in expected.values_mut() {
                    rows.sort_by(|one, other| {
                        other.similarity.total_cmp(&one.similarity).then(one.other.cmp(&other.other))
                    });
                    rows.truncate(top);
                }
                let expected: Vec<Similar> = expected.into_values().flatten().collect();
                let options = SimilarityOptions { measure, top, least, degrees };
                with_teams(|team| {
                    let found = similarity::run(projection, &options, team).unwrap();
                    assert!(found == expected, "{what}, {options:?}: {found:?}, expected {expected:?}");
                });
            }
        }
    });
}

fn walks_of(walks: &Walks) -> impl Iterator<Item = &[u32]> {
    let starts = [0].into_iter().chain(walks.ends.iter().copied());
    starts.zip(&walks.ends).map(|(start, end)| &walks.positions[start..*end])
}

#[test]
fn walks_follow_edges_and_do_not_depend_on_threads_nor_on_other_walks() {
    on_random_graphs(3, 40, |projection, what| {
        let sources = present(projection);
        for (p, q) in [(1.0, 1.0), (0.25, 4.0)] {
            let options = WalkOptions { walks: 3, steps: 20, p, q, seed: 5, ..WalkOptions::default() };
            let expected = random_walks::run(projection, &sources, &options, &Team::alone()).unwrap();
            assert_eq!(expected.ends.len(), sources.len() * 3);
            for (number, walk) in walks_of(&expected).enumerate() {
                assert_eq!(walk[0], sources[number / 3], "{what}");
                assert!(walk.windows(2).all(|step| projection.outgoing(step[0]).contains(&step[1])), "{what}");
                let is_at_end = projection.outgoing(walk[walk.len() - 1]).is_empty();
                assert!(walk.len() == 21 || is_at_end, "{what}: {walk:?}");
            }
            with_teams(|team| {
                let found = random_walks::run(projection, &sources, &options, team).unwrap();
                assert!(found == expected, "{what}, {team:?}");
            });
            let alone = random_walks::run(projection, &sources[3..4], &options, &Team::alone()).unwrap();
            assert!(walks_of(&alone).eq(walks_of(&expected).skip(9).take(3)), "{what}");
            let others = WalkOptions { seed: 6, ..options };
            assert_ne!(random_walks::run(projection, &sources, &others, &Team::alone()).unwrap(), expected, "{what}");
        }
    });
}

#[test]
fn steps_have_the_probabilities_of_node2vec() {
    // From 2, a walk that came from 1 may go back, to 3, which 1 leads to, along two edges to 4, which it does not, or to 5.
    let undirected = [(1, 2), (1, 3), (2, 3), (2, 4), (2, 4), (2, 5), (3, 5), (4, 5)];
    let edges: Vec<_> = undirected.iter().map(|(one, other)| (*one, *other, 1.0)).collect();
    let (manager, _) = graph_of(&[1, 2, 3, 4, 5], &edges);
    let projection = project(&manager, &all(Orientation::Undirected, None), &Team::alone());
    let sources = present(&projection);
    // The last ones reject nearly all draws.
    for (p, q) in [(1.0, 1.0), (0.5, 2.0), (4.0, 0.25), (0.01, 1.0), (0.01, 10.0)] {
        let options = WalkOptions { walks: 4_000, steps: 8, p, q, seed: 11, ..WalkOptions::default() };
        let walks = random_walks::run(&projection, &sources, &options, &Team::alone()).unwrap();
        let mut counts = BTreeMap::<(u32, u32), BTreeMap<u32, u32>>::new();
        for step in walks_of(&walks).flat_map(|walk| walk.windows(3)) {
            *counts.entry((step[0], step[1])).or_default().entry(step[2]).or_default() += 1;
        }
        assert!(counts.len() > 8, "{counts:?}");
        for (last, counts) in counts {
            let expected = verify::next_step(&projection, last, p, q);
            let all: u32 = counts.values().sum();
            let mut squares = 0.0;
            for (next, probability) in &expected {
                let expected = probability * f64::from(all);
                let found = f64::from(counts.get(next).copied().unwrap_or(0));
                squares += (found - expected).powi(2) / expected;
            }
            // χ² with at most four degrees of freedom is above 30 once in 200,000 times. Seeds are fixed.
            assert!(squares < 30.0, "p {p}, q {q}, after {last:?}: {counts:?}, expected {expected:?}");
            assert!(counts.keys().all(|next| expected.contains_key(next)));
        }
    }
}

#[test]
fn walks_that_make_no_sense_or_are_too_many_are_refused() {
    let (manager, _) = graph_of(&[1, 2], &[(1, 2, 1.0)]);
    let projection = project(&manager, &all(Orientation::Directed, None), &Team::alone());
    let refused = |options: WalkOptions| {
        random_walks::run(&projection, &present(&projection), &options, &Team::alone())
            .unwrap_err()
            .message()
            .to_owned()
    };
    assert!(refused(WalkOptions { p: 0.0, ..WalkOptions::default() }).contains("p is 0"));
    assert!(refused(WalkOptions { q: f64::NAN, ..WalkOptions::default() }).contains("q is NaN"));
    let many = WalkOptions { walks: usize::MAX, steps: usize::MAX, ..WalkOptions::default() };
    assert!(refused(many).contains("raise 'limit'"));
}

#[test]
fn embeddings_are_those_of_powers_of_the_transition_matrix() {
    on_random_graphs(3, 20, |projection, what| {
        let options = FastRpOptions { width: 24, weights: vec![0.5, 1.0, 0.0, 2.0], seed: 3, ..Default::default() };
        let begin = fast_rp::random_vectors(projection, &options, &Team::alone()).unwrap();
        let expected = verify::fast_rp(projection, &begin, options.width, &options.weights);
        let mut bits = None;
        with_teams(|team| {
            let found = fast_rp::run(projection, &options, team).unwrap();
            assert_eq!(found.len(), expected.len());
            for (one, other) in found.iter().zip(&expected) {
                assert!((f64::from(*one) - other).abs() < 1e-4, "{what}: {one}, expected {other}");
            }
            let found: Vec<u32> = found.into_iter().map(f32::to_bits).collect();
            assert!(*bits.get_or_insert(found.clone()) == found, "{what}, {team:?}");
        });
    });
}

#[test]
fn random_vectors_are_sparse_and_scaled_by_degrees() {
    let mut world = World::new(1);
    world.write(60);
    let projection = project(&world.manager, &all(Orientation::Undirected, None), &Team::alone());
    let options = FastRpOptions { width: 60, degree_power: -0.5, ..Default::default() };
    let vectors = fast_rp::random_vectors(&projection, &options, &Team::alone()).unwrap();
    let mut counts = [0_u32; 3];
    for at in present(&projection).into_iter().filter(|at| projection.out_degree(*at) > 0) {
        let part = projection.out_degree(at) as f32 / projection.cell_count() as f32;
        let scale = 3.0_f32.sqrt() / part.sqrt();
        for number in &vectors[at as usize * 60..][..60] {
            assert!(*number == 0.0 || (number.abs() - scale).abs() < 1e-3 * scale, "{number}, expected {scale}");
            counts[usize::from(*number != 0.0) + usize::from(*number > 0.0)] += 1;
        }
    }
    let all = f64::from(counts.iter().sum::<u32>());
    for (count, probability) in counts.iter().zip([2.0 / 3.0, 1.0 / 6.0, 1.0 / 6.0]) {
        assert!((f64::from(*count) / all - probability).abs() < 0.02, "{counts:?}");
    }
    let own = FastRpOptions { own_weight: 1.0, weights: Vec::new(), ..options.clone() };
    let found = fast_rp::run(&projection, &own, &Team::alone()).unwrap();
    let at = present(&projection)[0] as usize;
    let length: f32 = found[at * 60..][..60].iter().map(|number| number * number).sum();
    assert!((length - 1.0).abs() < 1e-4, "{length}");
    assert!(fast_rp::run(&projection, &FastRpOptions { width: 0, ..options }, &Team::alone()).is_err());
}
