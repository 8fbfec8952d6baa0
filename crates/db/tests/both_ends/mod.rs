//! Searches from both ends, against a plain breadth-first search in the test: on skewed graphs of some dozens of
//! vertices, in several parts, with loops and parallel edges, and conditions on edges and vertices.
//!
//! Which of several shortest paths a search returns is free. So the test compares the length, and follows the path.

mod by_index;
mod graph;

use mangrove::{Database, Parameters, QueryLimits, QueryOptions, UserId, Value, VertexId};
use rand::prelude::*;
use rand::rngs::StdRng;

use graph::{Graph, Target, check_searches};

#[test]
fn a_path_from_both_ends_is_a_shortest_one() {
    let (mut far, mut none) = (0, 0);
    for seed in 1..=mangrove_testdata::case_count(150) {
        let random = &mut StdRng::seed_from_u64(seed);
        let size = random.random_range(2..50);
        let graph = Graph::new(random, size);
        let database = graph.database();
        let draw = |random: &mut StdRng| Target::ids(random, size);
        check_searches(random, (&graph, &database, seed), &draw, &mut |plan, case, distance| {
            assert!(plan.contains("search from both ends"), "{plan}");
            far += usize::from(distance.is_some_and(|distance| distance > 3));
            none += usize::from(distance.is_none());
            !case.is_tested_again()
        });
    }
    assert!(far > 20 && none > 20, "{far} long paths, {none} without a path");
}

/// `layers` hops lead from vertex 0 to vertex 1, each over so many vertices. A third of the vertices lead nowhere.
fn wide(layers: usize, width: usize) -> Database {
    let database = Database::in_memory();
    let (catalog, transaction) = (database.catalog(), database.begin().unwrap());
    let count = (2 + layers * width) as i64;
    let user_ids: Vec<UserId> = (0..count).map(Into::into).collect();
    let vertices = transaction.insert_vertices(catalog.intern_label_text("v"), &user_ids).unwrap();
    let layer = |at: usize| &vertices[2 + at * width..2 + (at + 1) * width];
    let mut edges: Vec<(VertexId, VertexId)> = layer(0).iter().map(|to| (vertices[0], *to)).collect();
    for at in 1..layers {
        let pairs = layer(at - 1).iter().flat_map(|from| layer(at).iter().map(|to| (*from, *to)));
        edges.extend(pairs);
    }
    edges.extend(layer(layers - 1).iter().map(|from| (*from, vertices[1])));
    transaction.insert_edges(catalog.intern_label_text("x"), &edges).unwrap();
    transaction.commit().unwrap();
    database
}

fn search(from: usize, to: usize) -> String {
    format!("g.V({from}).repeat(both().simplePath()).until(hasId({to})).path().limit(1)")
}

/// A search that is over on one side does not go on with the other: what the other side keeps stays small.
#[test]
fn a_search_ends_when_either_side_has_met_everything() {
    let database = wide(4, 200);
    database.query("g.addV('v').property(T.id, 100000)").unwrap().collect().unwrap();
    for (from, to) in [(0, 100_000), (100_000, 0), (0, 200_000)] {
        let limits = QueryLimits { memory_bytes: 20 << 10, ..QueryLimits::default() };
        let options = QueryOptions { limits, ..QueryOptions::default() };
        let prepared = database.prepare(&search(from, to)).unwrap();
        let results = database.run_with(&prepared, &Parameters::new(), &options).unwrap().collect().unwrap();
        assert!(results.is_empty(), "{from} to {to}: {results:?}");
    }
}

/// What both sides have reached counts for the memory limit.
#[test]
fn both_sides_are_charged() {
    let database = wide(6, 200);
    let run = |memory_bytes| {
        let limits = QueryLimits { memory_bytes, ..QueryLimits::default() };
        let options = QueryOptions { limits, ..QueryOptions::default() };
        let prepared = database.prepare(&search(0, 1)).unwrap();
        database.run_with(&prepared, &Parameters::new(), &options).and_then(mangrove::ResultStream::collect)
    };
    assert_eq!(run(64 << 20).unwrap().len(), 1);
    let error = run(16 << 10).unwrap_err();
    assert!(error.message().contains("memory"), "{error}");
}

/// A chain 0 → 1 → … → 6, from which a serializable transaction writes the length of the way to vertex 6.
#[test]
fn an_edge_that_makes_a_shorter_path_conflicts() {
    for (from, to, conflicts) in [(0, 5, true), (1, 6, true), (2, 5, true), (20, 21, false)] {
        let database = Database::in_memory();
        let run = |script: &str| database.query(script).unwrap().collect().unwrap();
        run("g.addV('v').property(T.id, 20).addV('v').property(T.id, 21)");
        for n in 0..7 {
            run(&format!("g.addV('v').property(T.id, {n})"));
        }
        for n in 1..7 {
            run(&format!("g.addE('x').from(V({})).to(V({n}))", n - 1));
        }
        let transaction = database.begin().unwrap();
        let script = "g.V(0).repeat(out('x').simplePath()).until(hasId(6)).path().limit(1)";
        assert!(database.explain(script).unwrap().contains("search from both ends"));
        assert_eq!(transaction.query(script).unwrap().collect().unwrap().len(), 1);
        transaction.query("g.addV('way').property('length', 6)").unwrap().collect().unwrap();
        run(&format!("g.addE('x').from(V({from})).to(V({to}))"));
        assert_eq!(transaction.commit().is_err(), conflicts, "an edge from {from} to {to}");
    }
}

/// Targets are found by every value that `hasId()` takes for their id, in the search as in a filter.
#[test]
fn targets_are_named_by_numbers_of_any_type_by_vertices_and_by_parameters() {
    let database = wide(3, 5);
    for id in ["1", "1L", "1.0", "1.0d", "1.0m", "1n", "1, 100", "1, 1", "within(1, 100)"] {
        let script = format!("g.V(0).repeat(both().simplePath()).until(hasId({id})).path().count(local).limit(1)");
        assert!(database.explain(&script).unwrap().contains("search from both ends"), "{id}");
        let found = database.query(&script).unwrap().collect().unwrap();
        assert_eq!(found, [Value::I64(5)], "{id}");
    }
    let prepared = database.prepare("g.V(0).repeat(both().simplePath()).until(hasId(x)).path().limit(1)").unwrap();
    let run = |value: &Value| {
        let parameters: Parameters = [("x".into(), value.clone())].into_iter().collect();
        database.run(&prepared, &parameters).unwrap().collect().unwrap()
    };
    for value in [Value::I32(1), Value::I64(1), Value::F64(1.0)] {
        assert_eq!(run(&value).len(), 1, "{value:?}");
    }
    for value in [Value::I32(100), Value::F64(1.5), Value::from("1")] {
        assert!(run(&value).is_empty(), "{value:?}");
    }
}
