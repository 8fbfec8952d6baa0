//! Every algorithm finds what its verifier finds, on random graphs, with any number of threads.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use mangrove_analytics::algorithm::{bfs, cdlp, lcc, least_reaching, pagerank, peer_pressure, sssp, wcc};
use mangrove_analytics::{Orientation, Projection, ProjectionOptions, Team, verify};
use mangrove_flow::clock::MonotonicClock;
use mangrove_flow::schedule::{ExecutorOptions, Executors, Tenant};
use mangrove_flow::{QueryControl, QueryLimits};
use mangrove_graph::ErrorKind;
use mangrove_testdata::case_count;

use crate::common::{World, all, assert_near, on_random_graphs, project, unweighted, with_teams};

const ORIENTATIONS: [Orientation; 2] = [Orientation::Directed, Orientation::Undirected];

fn check(projection: &Projection, team: &Team, what: &str) {
    let vertices: Vec<u32> =
        (0..projection.positions() as u32).filter(|at| projection.numbering().exists(*at)).collect();
    for &source in vertices.iter().step_by(vertices.len() / 3 + 1) {
        let found = bfs::run(projection, source, bfs::Follow::Outgoing, team).unwrap();
        assert_eq!(found, verify::bfs(projection, source), "depths of {what} from {source}");
        if projection.is_weighted() {
            for delta in [None, Some(0.5), Some(1e9)] {
                let found = sssp::run(projection, source, delta, team).unwrap();
                assert_eq!(found, verify::sssp(projection, source), "distances of {what} from {source}, {delta:?}");
            }
        }
    }
    assert_eq!(wcc::run(projection, team).unwrap(), verify::wcc(projection), "components of {what}");
    for (dangling, spread) in [(pagerank::Dangling::Spread, true), (pagerank::Dangling::Drop, false)] {
        let options = pagerank::PageRankOptions { rounds: 7, dangling, ..Default::default() };
        let found = pagerank::run(projection, &options, team).unwrap().ranks;
        assert_near(&found, &verify::pagerank(projection, 0.85, 7, spread), what);
    }
    // Labels whose order is not that of the positions.
    let labels: Vec<u64> =
        (0..projection.positions() as u64).map(|at| at.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
    for rounds in [1, 4] {
        let found = cdlp::run(projection, labels.clone(), rounds, team).unwrap();
        assert_eq!(found, verify::cdlp(projection, &labels, rounds), "labels of {what}");
    }
    // Some vertices do not vote, and some vote more than once.
    let exists = |at: usize| projection.numbering().exists(at as u32);
    let strengths: Vec<f64> =
        (0..projection.positions()).map(|at| if exists(at) { (at % 3) as f64 } else { 0.0 }).collect();
    for rounds in [1, 5] {
        let found = peer_pressure::run(projection, &labels, &strengths, rounds, team).unwrap();
        assert_eq!(found, verify::peer_pressure(projection, &labels, &strengths, rounds), "clusters of {what}");
    }
    let options = pagerank::PageRankOptions { rounds: 3, ..Default::default() };
    let found = pagerank::run_from(projection, strengths.clone(), &options, team).unwrap().ranks;
    assert_near(&found, &verify::pagerank_from(projection, strengths, 0.85, 3), what);
    let mut order = vertices;
    order.sort_by_key(|at| labels[*at as usize]);
    let found = least_reaching::run(projection, &order, team).unwrap();
    assert_eq!(found, verify::least_reaching(projection, &order), "least labels of {what}");
    let backwards = projection.clone().reversed();
    let found = least_reaching::run(&backwards, &order, team).unwrap();
    assert_eq!(found, verify::least_reaching(&backwards, &order), "least labels backwards, of {what}");
}

#[test]
fn a_reversed_graph_has_its_rows_turned_around() {
    let mut world = World::new(4);
    world.write(30);
    let team = Team::alone();
    let projection = project(&world.manager, &all(Orientation::Directed, Some(world.weight)), &team);
    let reversed = projection.clone().reversed();
    for at in 0..projection.positions() as u32 {
        assert_eq!(reversed.outgoing(at), projection.incoming(at));
        assert_eq!(reversed.incoming(at), projection.outgoing(at));
        assert_eq!(reversed.outgoing_weights(at).len(), projection.incoming(at).len());
    }
    let both = project(&world.manager, &all(Orientation::Undirected, None), &team);
    let turned = both.clone().reversed();
    assert!((0..both.positions() as u32).all(|at| both.outgoing(at) == turned.outgoing(at)));
}

#[test]
fn algorithms_find_what_their_verifiers_find() {
    on_random_graphs(12, &[3, 40], check);
}

#[test]
fn coefficients_are_those_of_all_pairs() {
    for seed in 0..case_count(6) {
        let mut world = World::new(seed);
        world.write(25);
        with_teams(|team| {
            for orientation in ORIENTATIONS {
                let projection = project(&world.manager, &all(orientation, None), team);
                let found = lcc::run(&projection, team).unwrap();
                assert_near(&found, &verify::lcc(&projection), &format!("seed {seed}, {orientation:?}"));
            }
        });
    }
}

#[test]
fn results_are_the_same_bits_for_any_number_of_threads() {
    let mut world = World::new(5);
    world.write(300);
    let mut first = None;
    with_teams(|team| {
        let projection = project(&world.manager, &all(Orientation::Directed, None), team);
        let found = pagerank::run(&projection, &pagerank::PageRankOptions::default(), team).unwrap();
        let bits: Vec<u64> = found.ranks.iter().map(|rank| rank.to_bits()).collect();
        assert!(*first.get_or_insert(bits.clone()) == bits, "{team:?}");
    });
}

#[test]
fn an_empty_graph_and_a_single_vertex_have_results() {
    let mut world = World::new(1);
    let team = Team::alone();
    let empty = project(&world.manager, &ProjectionOptions::default(), &team);
    assert_eq!((empty.positions(), empty.vertex_count(), empty.cell_count()), (0, 0, 0));
    assert!(wcc::run(&empty, &team).unwrap().is_empty());
    assert!(pagerank::run(&empty, &Default::default(), &team).unwrap().ranks.is_empty());
    let txn = world.begin();
    world.vertices.push(txn.insert_vertex(world.labels[0], None).unwrap());
    txn.commit().unwrap();
    let one = project(&world.manager, &ProjectionOptions::default(), &team);
    let at = one.numbering().position(world.vertices[0]);
    assert_eq!(one.numbering().vertex(at), world.vertices[0]);
    assert_eq!(bfs::run(&one, at, bfs::Follow::Outgoing, &team).unwrap()[at as usize], 0);
    let ranks = pagerank::run(&one, &Default::default(), &team).unwrap().ranks;
    assert!((ranks[at as usize] - 1.0).abs() < 1e-12, "{}", ranks[at as usize]);
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let world = World::new(2);
    let team = Team::alone();
    let options = pagerank::PageRankOptions { damping: 1.5, ..Default::default() };
    let projection = project(&world.manager, &all(Orientation::Directed, Some(world.weight)), &team);
    assert!(pagerank::run(&projection, &options, &team).unwrap_err().message().contains("from 0 to 1"));
    let mut world = world;
    world.write(5);
    let txn = world.begin();
    let weight = mangrove_graph::Value::F64(-1.0);
    txn.set_edge_property(world.edges[0], world.weight, weight).unwrap();
    txn.commit().unwrap();
    let unweighted = project(&world.manager, &all(Orientation::Directed, None), &team);
    assert!(sssp::run(&unweighted, 0, None, &team).unwrap_err().message().contains("has no weights"));
    let negative = project(&world.manager, &all(Orientation::Directed, Some(world.weight)), &team);
    for delta in [None, Some(1.0)] {
        assert!(sssp::run(&negative, 0, delta, &team).unwrap_err().message().contains("the weight -1"));
    }
}

#[test]
fn a_search_follows_edges_backwards() {
    let mut world = World::new(8);
    world.write(12);
    with_teams(|team| {
        let projection = project(&world.manager, &all(Orientation::Directed, None), team);
        let positions = projection.positions() as u32;
        let vertices: Vec<u32> = (0..positions).filter(|at| projection.numbering().exists(*at)).collect();
        let target = vertices[vertices.len() / 2];
        let found = bfs::run(&projection, target, bfs::Follow::Incoming, team).unwrap();
        for from in vertices {
            assert_eq!(found[from as usize], verify::bfs(&projection, from)[target as usize], "{from} to {target}");
        }
    });
}

#[test]
fn an_algorithm_of_a_query_that_was_cancelled_ends_with_an_error() {
    let mut world = World::new(9);
    world.write(40);
    let projection = project(&world.manager, &all(Orientation::Directed, None), &Team::alone());
    let executors = Executors::start(ExecutorOptions { count: 2, ..ExecutorOptions::default() }).unwrap();
    let cancelled = Arc::new(AtomicBool::new(true));
    let control = Arc::new(QueryControl::new(QueryLimits::default(), Arc::new(MonotonicClock::default()), cancelled));
    for team in [Team::alone(), Team::with_executors(&executors, &Tenant::default(), 2)] {
        let team = team.controlled_by(control.clone());
        assert_eq!(wcc::run(&projection, &team).unwrap_err().kind(), ErrorKind::Cancelled);
        assert_eq!(pagerank::run(&projection, &Default::default(), &team).unwrap_err().kind(), ErrorKind::Cancelled);
    }
}

#[test]
fn ranks_are_right_on_pages_with_long_rows_and_with_short_ones() {
    // Two pages: of rows with more cells than are loaded ahead at a time, and of rows with one.
    let (hubs, others) = (300, 1_500);
    let among = (0..hubs).flat_map(|from| (1..=100).map(move |step| (from, (from * 7 + step * step) % hubs)));
    let edges: Vec<(i64, i64)> = among.chain((hubs..others).map(|at| (at, at * 11 % hubs))).collect();
    let projection = unweighted(others as usize, &edges);
    with_teams(|team| {
        let (double, expected) = (pagerank::PageRankOptions::default(), verify::pagerank(&projection, 0.85, 20, true));
        assert_near(&pagerank::run(&projection, &double, team).unwrap().ranks, &expected, "doubles");
        let single = pagerank::PageRankOptions { precision: pagerank::Precision::Single, ..double };
        let found = pagerank::run(&projection, &single, team).unwrap().ranks;
        for (at, (found, expected)) in found.iter().zip(&expected).enumerate() {
            assert!((found - expected).abs() <= 1e-5 * expected, "at {at}: {found}, expected {expected}");
        }
    });
}
