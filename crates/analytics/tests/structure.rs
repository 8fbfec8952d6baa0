//! How densely a graph is connected: algorithms and their verifiers, on random graphs, with any number of threads.

use mangrove_analytics::algorithm::forest::{self, Extreme};
use mangrove_analytics::algorithm::matching::{self, UNMATCHED};
use mangrove_analytics::algorithm::{coloring, independent_set, k_core, k_truss, lcc, triangles};
use mangrove_analytics::{Orientation, Projection, Team, verify};
use mangrove_testdata::case_count;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::common::{all, graph_of, karate_club, on_random_graphs, project, with_teams};

fn check(projection: &Projection, team: &Team, what: &str) {
    let (found, expected) = (triangles::run(projection, team).unwrap(), verify::triangles(projection));
    assert_eq!(found.of_positions, expected, "triangles of {what}");
    assert_eq!(found.total * 3, expected.iter().sum::<u64>(), "all triangles of {what}");
    assert_eq!(triangles::total(projection, team).unwrap(), found.total, "the number of triangles of {what}");
    assert_eq!(k_core::run(projection, team).unwrap(), verify::k_core(projection), "cores of {what}");
    let (mut found, expected) = (k_truss::run(projection, team).unwrap(), verify::k_truss(projection));
    found.edges.sort();
    assert_eq!(found.edges, expected, "trusses of {what}");
    for (at, number) in found.of_positions.iter().enumerate() {
        let of_vertex = expected.iter().filter(|edge| [edge.ends.0, edge.ends.1].contains(&(at as u32)));
        assert_eq!(*number, of_vertex.map(|edge| edge.number).max().unwrap_or(0), "truss of {at} in {what}");
    }
    assert_eq!(lcc::run(projection, team).unwrap(), verify::lcc(projection), "coefficients of {what}");
    for extreme in [Extreme::Least, Extreme::Greatest] {
        let mut found = forest::run(projection, extreme, team).unwrap();
        found.sort_by_key(|edge| edge.ends);
        assert_eq!(found, verify::forest(projection, extreme), "forest of {what}, {extreme:?}");
    }
    for seed in [0, 7] {
        verify::matching(projection, &matching::run(projection, seed, team).unwrap())
            .unwrap_or_else(|error| panic!("matching of {what}: {error}"));
        verify::coloring(projection, &coloring::run(projection, seed, team).unwrap())
            .unwrap_or_else(|error| panic!("colors of {what}: {error}"));
        verify::independent_set(projection, &independent_set::run(projection, seed, team).unwrap())
            .unwrap_or_else(|error| panic!("independent set of {what}: {error}"));
    }
}

#[test]
fn algorithms_find_what_their_verifiers_find() {
    on_random_graphs(6, &[3, 40], check);
}

/// A graph of hubs: the end of an edge is the more likely, the lower its number.
fn hubs(seed: u64, vertices: i64, edges: usize) -> (mangrove_txn::TransactionManager, mangrove_graph::KeyId) {
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut any = || (vertices as f64 * rng.random::<f64>().powi(3)) as i64;
    let edges: Vec<_> = (0..edges).map(|_| (any(), any(), 1.0)).collect();
    graph_of(&(0..vertices).collect::<Vec<_>>(), &edges)
}

#[test]
fn a_graph_of_hubs_has_the_same_structure_for_every_team() {
    // Triangles are counted by ranks here, and in place in random graphs without hubs.
    let (manager, _) = hubs(7, 300, 4_000);
    with_teams(|team| {
        for orientation in [Orientation::Directed, Orientation::Undirected] {
            let projection = project(&manager, &all(orientation, None), team);
            check(&projection, team, &format!("{orientation:?}, {team:?}"));
        }
    });
}

#[test]
fn seeds_decide_ties_and_threads_do_not() {
    let (manager, _) = hubs(3, 400, 3_000);
    let mut before = None;
    with_teams(|team| {
        let projection = project(&manager, &all(Orientation::Undirected, None), team);
        let found: Vec<_> = (0..3)
            .map(|seed| {
                let partners = matching::run(&projection, seed, team).unwrap();
                (partners, coloring::run(&projection, seed, team).unwrap())
            })
            .collect();
        assert!(found[0] != found[1] && found[1] != found[2]);
        assert!(*before.get_or_insert(found.clone()) == found, "{team:?}");
    });
}

#[test]
fn the_karate_club_has_the_structure_that_is_known() {
    let (manager, _) = karate_club();
    let team = Team::alone();
    let projection = project(&manager, &all(Orientation::Undirected, None), &team);
    assert_eq!(triangles::run(&projection, &team).unwrap().total, 45);
    assert_eq!(k_core::run(&projection, &team).unwrap().into_iter().max(), Some(4));
    assert_eq!(k_truss::run(&projection, &team).unwrap().of_positions.into_iter().max(), Some(5));
    assert_eq!(forest::run(&projection, Extreme::Least, &team).unwrap().len(), 33);
}

#[test]
fn a_complete_graph_has_as_many_colors_as_vertices() {
    let vertices: Vec<i64> = (0..70).collect();
    let edges: Vec<_> = vertices.iter().flat_map(|one| (0..*one).map(|other| (*one, other, 1.0))).collect();
    let (manager, _) = graph_of(&vertices, &edges);
    let team = Team::alone();
    let projection = project(&manager, &all(Orientation::Undirected, None), &team);
    let exists = |at: &usize| projection.numbering().exists(*at as u32);
    let colors = coloring::run(&projection, 5, &team).unwrap();
    let mut colors: Vec<u32> = (0..colors.len()).filter(exists).map(|at| colors[at]).collect();
    colors.sort();
    assert_eq!(colors, (0..70).collect::<Vec<u32>>());
    let members = independent_set::run(&projection, 5, &team).unwrap();
    assert_eq!(members.into_iter().filter(|is_in| *is_in).count(), 1);
    assert_eq!(triangles::run(&projection, &team).unwrap().total, 70 * 69 * 68 / 6);
    let trusses = k_truss::run(&projection, &team).unwrap();
    assert!(trusses.edges.iter().all(|edge| edge.number == 70), "{:?}", trusses.edges.first());
}

#[test]
fn forests_of_negative_weights_are_those_of_kruskal() {
    for seed in 0..case_count(20) {
        let mut rng = SmallRng::seed_from_u64(seed);
        let edges: Vec<_> = (0..120)
            .map(|_| (rng.random_range(0..40), rng.random_range(0..40), f64::from(rng.random_range(-9..9)) + 0.5))
            .collect();
        let (manager, weight) = graph_of(&(0..40).collect::<Vec<_>>(), &edges);
        with_teams(|team| {
            for orientation in [Orientation::Directed, Orientation::Undirected] {
                let projection = project(&manager, &all(orientation, Some(weight)), team);
                for extreme in [Extreme::Least, Extreme::Greatest] {
                    let mut found = forest::run(&projection, extreme, team).unwrap();
                    found.sort_by_key(|edge| edge.ends);
                    assert_eq!(
                        found,
                        verify::forest(&projection, extreme),
                        "seed {seed}, {orientation:?}, {extreme:?}"
                    );
                }
            }
        });
    }
}

/// The greatest weight of a matching, by trying each edge with and without.
fn best_matching(edges: &[(i64, i64, f64)], taken: u64) -> f64 {
    let Some(((one, other, weight), rest)) = edges.split_first() else { return 0.0 };
    let without = best_matching(rest, taken);
    let ends = 1 << one | 1 << other;
    match one == other || taken & ends != 0 || *weight <= 0.0 {
        true => without,
        false => without.max(weight + best_matching(rest, taken | ends)),
    }
}

#[test]
fn a_matching_has_half_of_the_greatest_weight_or_more() {
    for seed in 0..case_count(40) {
        let mut rng = SmallRng::seed_from_u64(seed);
        let vertices: Vec<i64> = (0..8).collect();
        let edges: Vec<_> = (0..14)
            .map(|_| (rng.random_range(0..8), rng.random_range(0..8), f64::from(rng.random_range(-1..6))))
            .collect();
        let (manager, weight) = graph_of(&vertices, &edges);
        let team = Team::alone();
        let projection = project(&manager, &all(Orientation::Undirected, Some(weight)), &team);
        let partners = matching::run(&projection, seed, &team).unwrap();
        verify::matching(&projection, &partners).unwrap();
        let mut sum = 0.0;
        for (at, partner) in partners.iter().enumerate().filter(|(_, partner)| **partner != UNMATCHED) {
            let row = projection.outgoing(at as u32).iter().zip(projection.outgoing_weights(at as u32));
            sum += row.filter(|(other, _)| *other == partner).map(|(_, weight)| *weight).fold(0.0, f64::max) / 2.0;
        }
        let best = best_matching(&edges, 0);
        assert!(sum <= best && sum * 2.0 >= best, "seed {seed}: {sum} of {best}");
    }
}

#[test]
fn weights_that_are_no_numbers_are_refused() {
    let (manager, weight) = graph_of(&[1, 2], &[(1, 2, f64::INFINITY)]);
    let team = Team::alone();
    let projection = project(&manager, &all(Orientation::Undirected, Some(weight)), &team);
    let errors = [
        forest::run(&projection, Extreme::Least, &team).unwrap_err(),
        matching::run(&projection, 0, &team).unwrap_err(),
    ];
    for error in errors {
        assert!(error.message().contains("the weight inf") && error.message().contains("finite"), "{error}");
    }
}

#[test]
fn a_graph_of_many_parts_has_the_same_structure_for_every_team() {
    let (manager, weight) = hubs(11, 20_000, 60_000);
    let mut before = None;
    with_teams(|team| {
        let projection = project(&manager, &all(Orientation::Directed, Some(weight)), team);
        assert!(projection.parts().len() > 5, "{}", projection.parts().len());
        let found = (
            triangles::run(&projection, team).unwrap(),
            k_core::run(&projection, team).unwrap(),
            k_truss::run(&projection, team).unwrap(),
            lcc::run(&projection, team).unwrap(),
            forest::run(&projection, Extreme::Least, team).unwrap(),
            matching::run(&projection, 1, team).unwrap(),
            coloring::run(&projection, 1, team).unwrap(),
            independent_set::run(&projection, 1, team).unwrap(),
        );
        assert_eq!(found.0.of_positions, verify::triangles(&projection), "{team:?}");
        verify::matching(&projection, &found.5).unwrap();
        verify::coloring(&projection, &found.6).unwrap();
        assert!(*before.get_or_insert(found.clone()) == found, "{team:?}");
    });
}
