//! Merging of equal traversers in graphs with thousands of vertices, where merged rows become bulks by vertex: as many
//! traversers come out of every merge as a plain count of walks says, for one thread and for several.

use std::collections::BTreeMap;

use mangrove::{Database, Parameters, QueryOptions, Value, VertexId};

/// More than 16,384 rows leave each hop, twice: the rows between two hops become bulks, too.
const VERTICES: u64 = 12_000;

/// The numbers of the vertices that the edges of a vertex lead to. Many are met twice.
fn neighbors(n: u64) -> impl Iterator<Item = u64> {
    [n / 2, (n * 7 + 1) % VERTICES, (n * n) % VERTICES].into_iter()
}

/// A vertex with the property `n` for each number, and edges to [`neighbors`].
fn graph() -> Database {
    let database = Database::in_memory();
    let transaction = database.begin().unwrap();
    let catalog = database.catalog();
    let new = |_| transaction.insert_vertex(catalog.intern_label_text("v"), None).unwrap();
    let vertices: Vec<VertexId> = (0..VERTICES).map(new).collect();
    let numbers: Vec<(VertexId, Value)> = vertices.iter().copied().zip((0..).map(Value::I64)).collect();
    transaction.set_vertex_property("n", &numbers).unwrap();
    let ends: Vec<(VertexId, VertexId)> = (0..VERTICES)
        .flat_map(|n| neighbors(n).map(move |to| (n, to)))
        .map(|(from, to)| (vertices[from as usize], vertices[to as usize]))
        .collect();
    transaction.insert_edges(catalog.intern_label_text("e"), &ends).unwrap();
    transaction.commit().unwrap();
    database
}

/// The number of walks of some hops that end at each vertex, from vertices with numbers that `begins` takes.
fn walks(hops: usize, begins: impl Fn(u64) -> bool) -> BTreeMap<u64, u64> {
    let mut at: BTreeMap<u64, u64> = (0..VERTICES).filter(|n| begins(*n)).map(|n| (n, 1)).collect();
    for _ in 0..hops {
        let mut next = BTreeMap::new();
        for (from, count) in at {
            neighbors(from).for_each(|to| *next.entry(to).or_default() += count);
        }
        at = next;
    }
    at
}

/// The numbers of the vertices that come out, and how often: for one thread, and with simulated helpers.
fn numbers(database: &Database, traversal: &str) -> Vec<BTreeMap<u64, u64>> {
    let prepared = database.prepare(traversal).unwrap();
    let alone = database.run(&prepared, &Parameters::new()).unwrap().collect_bulked().unwrap();
    let helped = (0..8).map(|seed| {
        let transaction = database.begin().unwrap();
        transaction.run_helped(&prepared, &Parameters::new(), &QueryOptions::default(), seed).unwrap()
    });
    let mut counted = Vec::new();
    for results in std::iter::once(alone).chain(helped) {
        let mut counts = BTreeMap::new();
        for (value, times) in results {
            let Value::I64(n) = value else { panic!("{traversal}: {value:?}") };
            *counts.entry(n as u64).or_default() += times;
        }
        counted.push(counts);
    }
    counted
}

#[test]
fn merges_keep_every_traverser() {
    let database = graph();
    let all = |hops| walks(hops, |_| true);
    // One vertex in a block is too few: these stay rows until they have met enough others.
    let sparse = |hops| walks(hops, |n| n % 40 == 0);
    for (traversal, expected) in [
        ("g.V().barrier().values('n')", all(0)),
        ("g.V().out().barrier().out().barrier().out().barrier().values('n')", all(3)),
        ("g.V().repeat(out()).times(4).values('n')", all(4)),
        ("g.V().out().barrier().barrier().repeat(out().barrier()).times(2).values('n')", all(3)),
        ("g.V().filter(values('n').math('_ % 40').is(0)).out().barrier().out().barrier().values('n')", sparse(2)),
        ("g.V().filter(values('n').math('_ % 40').is(0)).repeat(out()).times(5).barrier().values('n')", sparse(5)),
    ] {
        for (way, counts) in numbers(&database, traversal).into_iter().enumerate() {
            assert_eq!(counts, expected, "{traversal}, way {way}");
        }
    }
    // Without `barrier()`, the planner merges between hops.
    for counts in numbers(&database, "g.V().out().out().out().out().count()") {
        assert_eq!(counts, BTreeMap::from([(VERTICES * 81, 1)]));
    }
    // Vertices and values in one merge.
    for counts in numbers(
        &database,
        "g.V().out().union(identity(), values('n')).barrier().choose(is(typeOf(GType.VERTEX)), values('n'))",
    ) {
        let twice: BTreeMap<u64, u64> = all(1).into_iter().map(|(n, count)| (n, 2 * count)).collect();
        assert_eq!(counts, twice);
    }
}

/// A limit ends a walk at whatever point of a merge several threads are, and nothing stays charged.
#[test]
fn a_limit_ends_a_merge_in_its_middle() {
    let database = graph();
    for (traversal, seeds) in [
        ("g.V().out().barrier().out().barrier().out().limit(7)", 40),
        ("g.V().out().barrier().out().barrier().limit(9000).out().limit(20000).count()", 10),
        ("g.V().repeat(out()).emit().times(3).limit(30000).count()", 20),
        ("g.V().out().out().out().out().limit(20000).count()", 10),
    ] {
        let prepared = database.prepare(traversal).unwrap();
        let sum = |results: Vec<(Value, u64)>| {
            let times = results.into_iter().map(|(value, times)| match value {
                Value::I64(count) => count as u64,
                _ => times,
            });
            times.sum::<u64>()
        };
        let expected = sum(database.run(&prepared, &Parameters::new()).unwrap().collect_bulked().unwrap());
        for seed in 0..seeds {
            let transaction = database.begin().unwrap();
            let results =
                transaction.run_helped(&prepared, &Parameters::new(), &QueryOptions::default(), seed).unwrap();
            assert_eq!(sum(results), expected, "{traversal}, seed {seed}");
        }
    }
}

/// A barrier whose reader sees the order of rows keeps it.
#[test]
fn a_barrier_keeps_an_order() {
    let database = graph();
    for traversal in [
        "g.V().order().by('n', desc).barrier().limit(2500).values('n')",
        "g.V().order().by('n', desc).barrier().values('n').fold().unfold().limit(2500)",
    ] {
        let values = database.query(traversal).unwrap().collect().unwrap();
        let expected: Vec<Value> = (0..VERTICES as i64).rev().take(2500).map(Value::I64).collect();
        assert_eq!(values, expected, "{traversal}");
    }
}
