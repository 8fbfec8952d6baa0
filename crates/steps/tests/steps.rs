//! No call of an operator is unbounded (FLOW-2): traversals over some thousand rows run message by message, and what
//! one call sends and holds is counted.

use std::sync::Arc;

use mangrove_flow::clock::ManualClock;
use mangrove_flow::{NodeRuntime, Progress, QueryControl, QueryLimits};
use mangrove_graph::{GraphView as _, Result, Value};
use mangrove_steps::{Rows, build};
use mangrove_store::{Store, StoreOptions};
use mangrove_txn::{Transaction, TransactionManager, TransactionOptions};

use crate::runs::{COUNT, context, graph, plan, unit};

/// The most rows that one call may send. Most send one message; the operators before and after a scope send two.
const ROWS_MAX: u64 = 4 << 10;

/// The most bytes by which one call may raise what the query holds: a map of all vertices has more than one megabyte.
const BYTES_MAX: u64 = 2 << 20;

/// What the calls of one run did.
#[derive(Debug, Default)]
struct Calls {
    count: u64,
    /// The most rows that one call sent.
    rows_max: u64,
    /// The most bytes by which one call raised the charge of the query.
    bytes_max: u64,
    /// The most bytes charged at a time.
    peak: u64,
    /// The number of results.
    results: u64,
    /// The results, each once.
    values: Vec<Value>,
}

fn run(graph: &Arc<Transaction>, script: &str) -> Result<Calls> {
    let plan = plan(script);
    let control = QueryControl::new(QueryLimits::default(), Arc::new(ManualClock::default()), Arc::default());
    let built = build(&plan, 1, false)?;
    let mut runtime = NodeRuntime::new(0, 1, built.topology, built.operators, Arc::new(control));
    let context = context(graph, &plan);
    context.seed(&plan)?;
    runtime.begin(context)?;
    runtime.start(unit(&plan))?;
    let mut calls = Calls::default();
    let sent = |runtime: &NodeRuntime<Rows>| runtime.stats().iter().map(|stats| stats.rows_out).sum::<u64>();
    loop {
        let (rows, bytes) = (sent(&runtime), runtime.control().memory());
        let progress = runtime.run(1)?;
        while let Some(batch) = runtime.take_results() {
            calls.results += (0..batch.len()).map(|row| batch.bulk(row)).sum::<u64>();
            calls.values.extend((0..batch.len()).map(|row| batch.object(row)));
        }
        calls.count += 1;
        calls.rows_max = calls.rows_max.max(sent(&runtime) - rows);
        calls.bytes_max = calls.bytes_max.max(runtime.control().memory().saturating_sub(bytes));
        if progress == Progress::Complete {
            break;
        }
    }
    calls.peak = runtime.control().memory_peak();
    let (_, is_clean) = runtime.recycle();
    assert!(is_clean, "{script} left something");
    Ok(calls)
}

#[track_caller]
fn check(graph: &Arc<Transaction>, script: &str, results: usize) -> Calls {
    let calls = run(graph, script).unwrap_or_else(|error| panic!("{script}: {error}"));
    assert_eq!(calls.results, results as u64, "{script}");
    assert!(calls.rows_max <= ROWS_MAX, "one call of {script} sent {} rows", calls.rows_max);
    assert!(calls.bytes_max <= BYTES_MAX, "one call of {script} made {} bytes", calls.bytes_max);
    calls
}

#[test]
fn barriers_send_their_rows_in_steps() {
    let graph = graph();
    for (script, results) in [
        ("g.V().order().by('n')", COUNT),
        ("g.V().order().by('k').by('n', desc)", COUNT),
        ("g.V().order()", COUNT),
        ("g.V().order().by(shuffle)", COUNT),
        ("g.V().values('n').order().limit(5000)", 5_000),
        ("g.V().barrier()", COUNT),
        ("g.withSack(1.0).V().barrier(normSack).sack()", COUNT),
        ("g.V().tail(15000)", 15_000),
        ("g.V().sample(15000)", 15_000),
        ("g.V().aggregate('x').by('n')", COUNT),
        ("g.withSideEffect('x', []).V().aggregate('x').by('n')", COUNT),
        ("g.V().groupCount('x').by('n')", COUNT),
        ("g.V().group('x').by('k')", COUNT),
        ("g.V().group('x').by('n').by(count())", COUNT),
        ("g.V().tree('x')", COUNT),
        ("g.E().subgraph('x')", COUNT),
        ("g.V().aggregate('x').union(identity(), cap('x').count(local))", COUNT + 1),
    ] {
        check(&graph, script, results);
    }
}

#[test]
fn instances_send_their_results_in_steps() {
    let graph = graph();
    for script in [
        "g.V().group().by('n').by(count())",
        "g.V().group().by('n').by(values('n').sum())",
        "g.V().group().by('n').by(fold())",
        "g.V().group().by('n').by(groupCount().by('k'))",
        "g.V().group().by('n').by(tree())",
        "g.V().group().by('n').by(values('n').fold(0, sum))",
        "g.V().aggregate('x').by(constant(1)).group().by('n').by(cap('x'))",
        "g.V().group().by('n').by(__.inject(1, 2, 3).count())",
    ] {
        check(&graph, &format!("{script}.unfold()"), COUNT);
    }
}

#[test]
fn scopes_let_rows_in_and_out_in_steps() {
    let graph = graph();
    for (script, results) in [
        ("g.V().repeat(out()).times(3)", COUNT),
        ("g.V().as('a').repeat(out()).times(2).path()", COUNT),
        ("g.V().order().by('n').local(out())", COUNT),
        ("g.V().order().by('n').limit(100).local(__.V().limit(200))", 20_000),
        ("g.V().limit(20).local(__.V().limit(1000).order().by('n')).order().by('n')", 20_000),
        ("g.V().order().by('n').limit(20).flatMap(union(__.V().limit(500), __.V().limit(500)))", 20_000),
        ("g.V().where(out().has('n'))", COUNT),
        ("g.V().project('a').by(out().has('n').count())", COUNT),
    ] {
        check(&graph, script, results);
    }
}

/// A vertex with many edges takes several steps. It never passes as itself, even if the last step finds none of its edges,
/// because they are deleted. A vertex whose edges are all deleted does.
#[test]
fn an_optional_hop_from_a_hub_comes_in_steps() {
    let manager = TransactionManager::new(Arc::new(Store::new(&StoreOptions::default())));
    let writer = manager.begin(TransactionOptions::default()).unwrap();
    let catalog = writer.catalog();
    let (node, next) = (catalog.intern_label_text("node"), catalog.intern_label_text("next"));
    let vertices: Vec<_> = (0..6_000).map(|_| writer.insert_vertex(node, None).unwrap()).collect();
    // How many edges each vertex gets, and how many of them stay. The first one fills a message.
    let degrees = [(2_500, 1_024), (1_023, 1_023), (0, 0), (1, 1), (1_024, 1_024), (3_000, 3_000), (0, 0), (2_000, 0)];
    let mut edges = Vec::new();
    for (&from, (degree, _)) in vertices.iter().zip(degrees) {
        let ends = vertices.iter().take(degree);
        edges.push(ends.map(|&to| writer.insert_edge(from, to, next, None).unwrap()).collect::<Vec<_>>());
    }
    writer.commit().unwrap();
    let transaction = Arc::new(manager.begin(TransactionOptions::default()).unwrap());
    for (edges, (_, left)) in edges.iter().zip(degrees) {
        edges[left..].iter().for_each(|edge| transaction.delete_edge(*edge).unwrap());
    }
    transaction.finish_statement().unwrap();
    let results = vertices.len() - degrees.len() + degrees.iter().map(|(_, left)| (*left).max(1)).sum::<usize>();
    check(&transaction, "g.V().optional(out('next'))", results);
    check(&transaction, "g.V().optional(outE('next'))", results);
    check(&transaction, "g.V().as('a').optional(out('next').as('b')).path()", results);
    let count = check(&transaction, "g.V().optional(out('next')).count()", 1);
    assert_eq!(count.values, [Value::I64(results as i64)]);
}

#[test]
fn a_limited_order_holds_what_it_needs() {
    let graph = graph();
    for order in ["by('n')", "by('n', desc)", "by(values('n'))", "by('k').by('n')"] {
        // A row takes less than a hundred bytes. All are forty times as many as are needed, and twice as many.
        for (limit, rows_max) in [(500, 3 << 10), (10_000, 17 << 10)] {
            let script = format!("g.V().order().{order}.limit({limit})");
            let calls = check(&graph, &script, limit);
            assert!(calls.peak < rows_max * 100, "{script} held {} bytes", calls.peak);
        }
    }
}

/// Sorted by runs, rows come in the order in which they would come if they were sorted at once; equal rows in the order
/// of the graph.
#[test]
fn runs_are_merged_in_order() {
    let graph = graph();
    let values = |script: &str| {
        let all = run(&graph, script).unwrap().values;
        all.into_iter().map(|value| mangrove_graph::numeric::integer(&value).unwrap()).collect::<Vec<i64>>()
    };
    let ascending = values("g.V().order().by('n').values('n')");
    assert!(ascending.is_sorted() && ascending.len() == COUNT);
    let descending = values("g.V().order().by('n', desc).values('n')");
    assert!(descending.iter().rev().eq(&ascending));
    assert_eq!(values("g.V().order().by('n', desc).limit(3000).values('n')"), descending[..3_000]);
    assert_eq!(values("g.V().values('n').order().by(desc).limit(3000)"), descending[..3_000]);
    let stored = values("g.V().values('n')");
    let stable = |k: i64| stored.iter().zip(0..).filter(move |(_, at)| at % 10 == k).map(|(n, _)| *n);
    let by_group: Vec<i64> = (0..10).flat_map(stable).collect();
    assert_eq!(values("g.V().order().by('k').values('n')"), by_group);
    assert_eq!(values("g.V().order().by('k').limit(7000).values('n')"), by_group[..7_000]);
    assert_eq!(values("g.V().order().by(values('k')).by(constant('a')).values('n')"), by_group);
}
