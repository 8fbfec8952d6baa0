//! Statistics: a pass counts what a snapshot shows, whatever happens beside it, and is made and refreshed in the
//! background.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mangrove_graph::statistics::{BUCKETED_TABLES_MAX, EdgeTable, MOMENT_TABLES_MAX};
use mangrove_graph::{Direction, ElementKind, ErrorKind, LabelSetId, VertexId};
use mangrove_store::{IndexOptions, Snapshot, StatisticsPass, StoreOptions};
use mangrove_testdata::case_count;
use mangrove_txn::{COUNTED_VALUES_MAX, Transaction};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::common::recount::{check_statistics, check_values, recount};
use crate::common::{Graph, edges, small_sizes, vertices};

/// Random transactions over a few label sets, some of which are rolled back, with hubs and edges that end.
struct History {
    graph: Graph,
    labels: Vec<LabelSetId>,
    edge_labels: Vec<LabelSetId>,
    rng: SmallRng,
}

impl History {
    fn new(seed: u64) -> Self {
        let options = StoreOptions { tablet_count: 3, sizes: small_sizes(seed), ..StoreOptions::default() };
        let graph = Graph::with_options(&options).without_collector();
        let sets = |names: &[&str]| {
            let catalog = graph.manager.store().catalog();
            names.iter().map(|name| catalog.intern_label_text(name)).collect()
        };
        let (labels, edge_labels) = (sets(&["person", "robot", "person::robot"]), sets(&["knows", "likes", "owns"]));
        History { labels, edge_labels, rng: SmallRng::seed_from_u64(seed), graph }
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.rng.random_range(0..from.len())]
    }

    /// One change. Conflicts with other transactions change nothing.
    fn change(&mut self, txn: &Transaction) -> mangrove_graph::Result<()> {
        let known = vertices(txn);
        let kind = self.rng.random_range(0..12);
        if known.len() < 4 || kind < 3 {
            let label = self.pick(&self.labels.clone());
            let id = txn.insert_vertex(label, None)?;
            return self.graph.set(txn, id, id.to_bits() as i64 % 7);
        }
        if kind < 9 {
            // The first vertices become hubs.
            let near = known.len().min(1 + known.len() / self.rng.random_range(1..20));
            let (source, target) = (self.pick(&known[..near]), self.pick(&known));
            let label = self.pick(&self.edge_labels.clone());
            return txn.insert_edge(source, target, label, None).map(|_| ());
        }
        let ends = edges(txn);
        if kind < 11 && !ends.is_empty() {
            return txn.delete_edge(self.pick(&ends).0);
        }
        txn.delete_vertex(self.pick(&known))
    }

    fn transaction(&mut self) {
        let txn = self.graph.begin();
        for _ in 0..self.rng.random_range(1..15) {
            if self.change(&txn).is_err() {
                return;
            }
            txn.finish_statement().unwrap();
        }
        if self.rng.random_ratio(1, 5) {
            return txn.rollback();
        }
        // A conflict rolls it back.
        let _ = txn.commit();
    }
}

#[test]
fn statistics_equal_a_recount_after_any_history() {
    for seed in 0..case_count(40) {
        let mut history = History::new(seed);
        let index = IndexOptions {
            element: ElementKind::Vertex,
            label: None,
            keys: vec![history.graph.balance],
            ordered: true,
            unique: false,
        };
        history.graph.manager.create_index(&index).unwrap();
        let unused = history.graph.manager.store().catalog().intern_key("unused");
        let pairs = history.labels.iter().flat_map(|label| [(*label, history.graph.balance), (*label, unused)]);
        history.graph.manager.ask_values(&pairs.collect::<Vec<_>>());
        for step in 0..25 {
            history.transaction();
            match history.rng.random_range(0..6) {
                0 => history.graph.manager.compact(),
                1 => history.graph.manager.collect_garbage(),
                2 => history.graph.manager.collect_round(),
                _ => {}
            }
            // Beside a transaction that has written and is still running.
            let running = (step % 3 == 0).then(|| history.graph.begin());
            if let Some(running) = &running {
                let _ = history.change(running);
            }
            check_statistics(&history.graph.manager);
        }
    }
}

#[test]
fn a_pass_in_small_steps_sees_its_snapshot_beside_commits_and_compaction() {
    for seed in 0..case_count(40) {
        let mut history = History::new(seed);
        (0..20).for_each(|_| history.transaction());
        let held = history.graph.manager.begin_read().unwrap();
        let expected = recount(&held, held.begin_ts());
        let pairs: Vec<_> = history.labels.iter().map(|label| (*label, history.graph.balance)).collect();
        let mut pass = StatisticsPass::with_values(&pairs);
        let store = history.graph.manager.store().clone();
        let mut steps = 0;
        while !pass.step(&store.view(Snapshot::committed(held.begin_ts())), 1) {
            history.transaction();
            if steps % 4 == 0 {
                history.graph.manager.compact();
            }
            steps += 1;
        }
        assert!(steps > 1, "a page is a step");
        let found = pass.finish(&store, held.begin_ts());
        assert_eq!(found.labels(), expected.labels());
        check_values(&held, &found);
    }
}

#[test]
fn loaded_graphs_are_counted_and_transactions_go_on() {
    let graph = Graph::new().without_collector();
    let mut load = graph.manager.bulk_load().unwrap();
    let robot = graph.manager.store().catalog().intern_label_text("robot");
    let mut people = load.vertices(graph.person, 3_000, None, &[]).unwrap();
    people.extend(load.vertices(robot, 500, None, &[]).unwrap());
    let mut rng = SmallRng::seed_from_u64(1);
    let mut pick = || people[(rng.random::<f64>().powi(3) * people.len() as f64) as usize];
    let ends: Vec<_> = (0..40_000).map(|_| (pick(), pick())).collect();
    load.edges(graph.knows, &ends, None, &[]).unwrap();
    load.finish().unwrap();
    check_statistics(&graph.manager);
    let txn = graph.begin();
    people.iter().step_by(3).for_each(|&id| txn.delete_vertex(id).unwrap());
    txn.insert_edge(people[1], people[2], graph.knows, None).unwrap();
    txn.commit().unwrap();
    check_statistics(&graph.manager);
    graph.manager.compact();
    check_statistics(&graph.manager);
}

/// A graph in which persons have edges of very many labels: `sizes[n]` of label `n`.
fn wide(graph: &Graph, sizes: &[usize]) -> (Vec<VertexId>, Vec<LabelSetId>) {
    let people = graph.persons(20);
    let catalog = graph.manager.store().catalog();
    let labels: Vec<_> = (0..sizes.len()).map(|n| catalog.intern_label_text(&format!("label {n}"))).collect();
    let txn = graph.begin();
    for (&label, &size) in labels.iter().zip(sizes) {
        for n in 0..size {
            let (source, target) = (people[n * 7 % 20], people[n * n % 20]);
            txn.insert_edge(source, target, label, None).unwrap();
        }
    }
    txn.commit().unwrap();
    (people, labels)
}

#[test]
fn a_label_set_with_many_tables_keeps_the_moments_of_the_largest() {
    for count in [MOMENT_TABLES_MAX / 2, MOMENT_TABLES_MAX / 2 + 1, 60] {
        let graph = Graph::new().without_collector();
        // Later labels have more edges, so the tables that are met first are not kept.
        let (_, labels) = wide(&graph, &(0..count).map(|n| n + 1).collect::<Vec<_>>());
        check_statistics(&graph.manager);
        let statistics = graph.manager.statistics().unwrap();
        let person = statistics.label(graph.person).unwrap();
        let out = |n: usize| EdgeTable { direction: Direction::Out, label: labels[n] };
        assert!(person.moment(out(count - 1), out(count - 2)).is_some_and(|moment| moment > 0.0));
        let is_small_kept = person.moment(out(0), out(count - 1)).is_some();
        assert_eq!(is_small_kept, count <= MOMENT_TABLES_MAX / 2);
    }
}

#[test]
fn the_memory_of_statistics_has_a_bound() {
    let options = StoreOptions { tablet_count: 1, ..StoreOptions::default() };
    let graph = Graph::with_options(&options).without_collector();
    let count = BUCKETED_TABLES_MAX;
    wide(&graph, &vec![1; count]);
    let held = graph.manager.begin_read().unwrap();
    let mut pass = StatisticsPass::new();
    while !pass.step(&graph.manager.store().view(Snapshot::committed(held.begin_ts())), usize::MAX) {}
    // Half of the tables have buckets; the others take little: their sums, and the ends of their edges.
    let bound = BUCKETED_TABLES_MAX * 800 + 2 * count * 164 + MOMENT_TABLES_MAX * MOMENT_TABLES_MAX * 8;
    assert!(pass.bytes() > BUCKETED_TABLES_MAX * 700 && pass.bytes() < bound, "{}", pass.bytes());
    let statistics = pass.finish(graph.manager.store(), held.begin_ts());
    let tables = statistics.label(graph.person).unwrap().tables();
    assert_eq!(tables.len(), 2 * count);
    assert_eq!(tables.iter().filter(|degrees| !degrees.buckets.is_empty()).count(), BUCKETED_TABLES_MAX);
    assert!(tables.iter().all(|degrees| (degrees.edges, degrees.max_degree, degrees.squares) == (1, 1, 1.0)));
    let tables_in_store = graph.manager.store().memory().total_bytes() as usize;
    assert!(statistics.bytes() < tables_in_store, "{} of {tables_in_store}", statistics.bytes());
}

/// Waits until the workers have done something.
#[track_caller]
fn wait_for(what: &str, mut is_done: impl FnMut() -> bool) {
    for _ in 0..12_000 {
        if is_done() {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("{what} takes too long");
}

#[test]
fn workers_measure_after_the_first_request_and_refresh_after_large_changes() {
    let graph = Graph::new();
    graph.persons(10);
    graph.manager.collect_round();
    assert!(graph.manager.statistics().is_none(), "no caller had requested statistics");
    wait_for("the first pass", || graph.manager.statistics().is_some());
    let first = graph.manager.dated_statistics().unwrap();
    assert_eq!((first.statistics.vertices(), first.commits_since, first.is_stale), (10, 0, false));
    graph.persons(1_000);
    let small = graph.manager.dated_statistics().unwrap();
    assert_eq!((small.statistics.vertices(), small.commits_since, small.is_stale), (10, 1, false));
    graph.persons(1);
    assert!(graph.manager.dated_statistics().unwrap().is_stale);
    wait_for("the refresh", || !graph.manager.dated_statistics().unwrap().is_stale);
    assert_eq!(graph.manager.statistics().unwrap().vertices(), 1_011);
    check_statistics(&graph.manager);
}

#[test]
fn values_come_with_a_pass_after_they_were_asked_for() {
    let graph = Graph::new();
    graph.persons(10);
    graph.manager.statistics();
    wait_for("the first pass", || graph.manager.statistics().is_some());
    let first = graph.manager.statistics().unwrap();
    assert_eq!(first.values(), []);
    // Of more than can be counted, those that were asked for last are.
    let catalog = graph.manager.store().catalog();
    let ask = |number: usize| graph.manager.ask_values(&[(graph.person, catalog.intern_key(&format!("k{number}")))]);
    (0..2 * COUNTED_VALUES_MAX).for_each(ask);
    graph.manager.ask_values(&[(graph.person, graph.balance)]);
    let is_known = || graph.manager.statistics().unwrap().values_of(graph.person, graph.balance).is_some();
    wait_for("the pass with values", is_known);
    let second = graph.manager.statistics().unwrap();
    assert_eq!(second.values().len(), COUNTED_VALUES_MAX);
    assert!(second.edition() != first.edition(), "plans tell them apart, though they are of one snapshot");
    check_statistics(&graph.manager);
}

#[test]
fn passes_beside_writers_end_and_hold_nothing_afterwards() {
    let graph = Graph::new();
    let people = graph.persons(3_000);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for writer in 0..2 {
            let (graph, people, is_over) = (&graph, &people, &is_over);
            scope.spawn(move || {
                let mut rng = SmallRng::seed_from_u64(writer);
                while !is_over.load(Ordering::Relaxed) {
                    let txn = graph.begin();
                    for _ in 0..20 {
                        let mut pick = || people[rng.random_range(0..people.len())];
                        txn.insert_edge(pick(), pick(), graph.knows, None).unwrap();
                    }
                    txn.commit().expect("additions conflict neither with each other nor with a pass");
                }
            });
        }
        graph.manager.statistics();
        wait_for("the first pass", || graph.manager.statistics().is_some());
        let first = graph.manager.statistics().unwrap();
        let is_newer = || graph.manager.statistics().unwrap().as_of > first.as_of;
        wait_for("the refresh", is_newer);
        let newest = graph.manager.measure_statistics(&mut || Ok(())).unwrap();
        assert!(graph.manager.statistics().unwrap().as_of >= newest.as_of);
        is_over.store(true, Ordering::Relaxed);
    });
    wait_for("the last pass", || graph.manager.counters().active == 0);
    check_statistics(&graph.manager);
}

#[test]
fn a_check_ends_a_pass_and_nothing_is_published() {
    let graph = Graph::new().without_collector();
    // A step looks at many descriptors, so the graph has more.
    let mut load = graph.manager.bulk_load().unwrap();
    let people = load.vertices(graph.person, 300_000, None, &[]).unwrap();
    let ends: Vec<_> = people.windows(2).map(|pair| (pair[0], pair[1])).collect();
    load.edges(graph.knows, &ends, None, &[]).unwrap();
    load.finish().unwrap();
    let mut checks = 0;
    let outcome = graph.manager.measure_statistics(&mut || {
        checks += 1;
        Err(mangrove_graph::Error::new(ErrorKind::Timeout, "the time is over"))
    });
    assert_eq!((outcome.unwrap_err().kind(), checks), (ErrorKind::Timeout, 1));
    assert!(graph.manager.statistics().is_none());
    assert_eq!(graph.manager.counters().active, 0);
    // Rounds go on with a pass of the workers, one step each.
    graph.manager.collect_round();
    assert!(graph.manager.statistics().is_none() && graph.manager.counters().active == 1);
    // An explicit collection gives it up.
    graph.manager.compact();
    assert_eq!(graph.manager.counters().active, 0);
    check_statistics(&graph.manager);
}

#[test]
fn a_bulk_load_does_not_wait_for_a_pass_of_the_workers() {
    for _ in 0..50 {
        let graph = Graph::new();
        // A worker begins its pass now.
        graph.manager.statistics();
        let mut load = graph.manager.bulk_load().expect("only workers hold a snapshot, and they give it up");
        load.vertices(graph.person, 10, None, &[]).unwrap();
        load.finish().unwrap();
        check_statistics(&graph.manager);
    }
}
