//! Searches and paths find what their verifiers find, on random graphs, with any number of threads.

use std::collections::HashSet;

use mangrove_analytics::algorithm::shortest_path::Path;
use mangrove_analytics::algorithm::{all_shortest_paths, bfs, k_hop, k_shortest_paths, shortest_path};
use mangrove_analytics::{Orientation, Projection, Team, verify};

use crate::common::{World, all, on_random_graphs, present, project, with_teams};

const ORIENTATIONS: [Orientation; 2] = [Orientation::Directed, Orientation::Undirected];

/// Some pairs of vertices all over the graph.
fn pairs(projection: &Projection) -> Vec<(u32, u32)> {
    let vertices = present(projection);
    let some = |step: usize, from: usize| vertices.iter().copied().skip(from).step_by(vertices.len() / step + 1);
    some(5, 0).flat_map(|one| some(4, 1).map(move |other| (one, other))).collect()
}

#[test]
fn parents_are_the_least_of_the_level_before_and_depths_have_a_limit() {
    on_random_graphs(6, &[30], |projection, team, what| {
        for source in present(projection).into_iter().step_by(17) {
            let depths = bfs::run(projection, source, bfs::Follow::Outgoing, team).unwrap();
            let found = bfs::parents(projection, &depths, bfs::Follow::Outgoing, team).unwrap();
            assert_eq!(found, verify::parents(projection, source), "parents of {what} from {source}");
            for depth_max in [0, 1, 3] {
                let found = bfs::within(projection, source, bfs::Follow::Outgoing, depth_max, team).unwrap();
                let near = |depth: &u32| if *depth > depth_max { bfs::UNREACHED } else { *depth };
                let expected: Vec<u32> = depths.iter().map(near).collect();
                assert_eq!(found, expected, "depths of {what} from {source} to {depth_max}");
            }
        }
    });
}

/// Fails if a path is not one of the projection, visits a vertex twice, or has another length.
fn check_path(projection: &Projection, path: &Path, (source, target): (u32, u32), weighted: bool, what: &str) {
    let vertices = &path.vertices;
    assert_eq!((vertices[0], vertices[vertices.len() - 1]), (source, target), "the ends, {what}");
    assert_eq!(vertices.iter().collect::<HashSet<_>>().len(), vertices.len(), "no vertex twice, {what}");
    let mut length = 0.0;
    for step in vertices.windows(2) {
        let row = projection.outgoing(step[0]).iter().enumerate().filter(|(_, other)| **other == step[1]);
        let weight = |(cell, _)| if weighted { projection.outgoing_weights(step[0])[cell] } else { 1.0 };
        length += row.map(weight).min_by(f64::total_cmp).unwrap_or_else(|| panic!("no edge {step:?}, {what}"));
    }
    assert_eq!(length, path.length, "the length, {what}");
}

#[test]
fn a_shortest_path_is_one_and_none_is_shorter() {
    on_random_graphs(6, &[25], |projection, team, what| {
        for (source, target) in pairs(projection) {
            let what = format!("{what}, from {source} to {target}");
            let depth = verify::bfs(projection, source)[target as usize];
            let found = shortest_path::fewest_edges(projection, source, target, team).unwrap();
            assert_eq!(found.is_some(), depth != bfs::UNREACHED, "{what}");
            if let Some(path) = found {
                assert_eq!(path.length, f64::from(depth), "{what}");
                check_path(projection, &path, (source, target), false, &what);
            }
            if projection.is_weighted() {
                let distance = verify::sssp(projection, source)[target as usize];
                let found = shortest_path::least_weight(projection, source, target, team).unwrap();
                assert_eq!(found.as_ref().map_or(f64::INFINITY, |path| path.length), distance, "{what}");
                found.iter().for_each(|path| check_path(projection, path, (source, target), true, &what));
            }
        }
    });
}

#[test]
fn the_k_shortest_paths_are_different_and_as_short_as_those_of_all_paths() {
    let count = 12;
    on_random_graphs(4, &[6], |projection, team, what| {
        for ends in pairs(projection) {
            for weighted in [false, true].into_iter().filter(|weighted| !weighted || projection.is_weighted()) {
                let what = format!("{what}, {ends:?}, weighted: {weighted}");
                let found = k_shortest_paths::run(projection, ends, count, weighted, team).unwrap();
                let lengths: Vec<f64> = found.iter().map(|path| path.length).collect();
                assert_eq!(lengths, verify::path_lengths(projection, ends, count, weighted), "{what}");
                found.iter().for_each(|path| check_path(projection, path, ends, weighted, &what));
                let different: HashSet<_> = found.iter().map(|path| &path.vertices).collect();
                assert_eq!(different.len(), found.len(), "{what}");
                let fewer = k_shortest_paths::run(projection, ends, 3, weighted, team).unwrap();
                assert_eq!(fewer[..], found[..found.len().min(3)], "the first ones, {what}");
            }
        }
    });
}

#[test]
fn all_distances_and_counts_of_near_vertices_are_those_of_single_searches() {
    // More than 64 vertices, so that there are several batches.
    on_random_graphs(5, &[25], |projection, team, what| {
        let sources = present(projection);
        let depths: Vec<Vec<u32>> = sources.iter().map(|source| verify::bfs(projection, *source)).collect();
        let mut expected = Vec::new();
        for (source, depths) in sources.iter().zip(&depths) {
            let reached = depths.iter().enumerate().filter(|(_, depth)| **depth != 0 && **depth != bfs::UNREACHED);
            let mut of_source: Vec<(u32, u32)> = reached.map(|(target, depth)| (*depth, target as u32)).collect();
            of_source.sort_unstable();
            expected.extend(of_source.into_iter().map(|(depth, target)| (*source, target, depth)));
        }
        let found = all_shortest_paths::run(projection, &sources, expected.len(), team).unwrap();
        let found: Vec<_> =
            found.iter().flat_map(|from| from.rows().map(|(target, edges)| (from.source, target, edges))).collect();
        assert!(found == expected, "distances of {what}");
        if !expected.is_empty() {
            let refused = all_shortest_paths::run(projection, &sources, expected.len() - 1, team).unwrap_err();
            assert!(refused.message().contains("raise 'limit'"), "{refused}");
        }
        for edges in [0, 1, 2, 5, u32::MAX] {
            let near = |depths: &Vec<u32>| {
                depths.iter().filter(|depth| **depth != 0 && **depth != bfs::UNREACHED && **depth <= edges).count()
            };
            let expected: Vec<u64> = depths.iter().map(|depths| near(depths) as u64).collect();
            assert_eq!(k_hop::run(projection, &sources, edges, team).unwrap(), expected, "{what}, {edges} edges");
        }
    });
}

#[test]
fn paths_are_the_same_for_any_number_of_threads() {
    let mut world = World::new(4);
    world.write(200);
    for orientation in ORIENTATIONS {
        let projection = project(&world.manager, &all(orientation, Some(world.weight)), &Team::alone());
        let mut first = None;
        with_teams(|team| {
            let found: Vec<_> = pairs(&projection)
                .into_iter()
                .map(|ends| k_shortest_paths::run(&projection, ends, 9, true, team).unwrap())
                .collect();
            assert!(found.iter().any(|paths| paths.len() == 9), "the graph has many paths");
            assert!(*first.get_or_insert(found.clone()) == found, "{team:?}");
        });
    }
}
