//! Every run sees one moment: beside a writer that keeps an invariant, projections have it, and algorithms find what their verifiers
//! find.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use mangrove_analytics::algorithm::{bfs, k_core, pagerank, triangles, wcc};
use mangrove_analytics::cache::ProjectionCache;
use mangrove_analytics::{Orientation, Team, verify};
use mangrove_flow::schedule::{ExecutorOptions, Executors, Tenant};
use mangrove_graph::{EdgeId, VertexId};
use mangrove_txn::{Isolation, TransactionManager, TransactionOptions};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::common::{all, with_teams};

/// A graph, and a writer that moves an edge in each transaction: from a vertex to the one after it, and so on. So the number of edges
/// stays, and so does the sum of the numbers of their targets, modulo the number of vertices.
struct Ring {
    manager: TransactionManager,
    vertices: Vec<VertexId>,
    edges: Vec<(EdgeId, [usize; 2])>,
}

const VERTICES: usize = 300;
const EDGES: usize = 3_000;
/// The steps of the writer from one refresh to the next: half of them before it, and half of them while it is made.
const STEPS: usize = 8;

impl Ring {
    fn new(seed: u64) -> Self {
        let numbers: Vec<i64> = (0..VERTICES as i64).collect();
        let mut rng = SmallRng::seed_from_u64(seed);
        let (manager, _) = crate::common::graph_of(&numbers, &[]);
        let txn = manager.begin(TransactionOptions { isolation: Isolation::Snapshot, read_only: false }).unwrap();
        let label = manager.store().catalog().intern_label_text("edge");
        let ids: Vec<_> = (0..VERTICES as i64).map(|number| Some(mangrove_graph::UserId::int(number))).collect();
        let mut found = Vec::new();
        mangrove_graph::GraphView::find_vertices(&txn, &ids.into_iter().flatten().collect::<Vec<_>>(), &mut found)
            .unwrap();
        let vertices: Vec<VertexId> = found.into_iter().flatten().collect();
        let edges = (0..EDGES)
            .map(|_| {
                let ends = [rng.random_range(0..VERTICES), rng.random_range(0..VERTICES)];
                (txn.insert_edge(vertices[ends[0]], vertices[ends[1]], label, None).unwrap(), ends)
            })
            .collect();
        txn.commit().unwrap();
        Ring { manager, vertices, edges }
    }

    /// Moves the targets of two edges: one forward, one back.
    fn step(&mut self, rng: &mut SmallRng) {
        let label = self.manager.store().catalog().intern_label_text("edge");
        let txn = self.manager.begin(TransactionOptions { isolation: Isolation::Snapshot, read_only: false }).unwrap();
        let one = rng.random_range(0..EDGES);
        let other = (one + 1 + rng.random_range(0..EDGES - 1)) % EDGES;
        for (at, by) in [(one, 1), (other, VERTICES - 1)] {
            let (edge, ends) = self.edges[at];
            let ends = [ends[0], (ends[1] + by) % VERTICES];
            txn.delete_edge(edge).unwrap();
            let edge = txn.insert_edge(self.vertices[ends[0]], self.vertices[ends[1]], label, None).unwrap();
            self.edges[at] = (edge, ends);
        }
        txn.commit().unwrap();
    }
}

/// Sets the flag when it is dropped, so that the reader does not wait for a writer that has panicked.
struct EndsWith<'a>(&'a AtomicBool);

impl Drop for EndsWith<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn every_projection_shows_one_moment_and_algorithms_are_right_on_it() {
    let mut ring = Ring::new(3);
    let number_of: std::collections::HashMap<VertexId, usize> =
        ring.vertices.iter().enumerate().map(|(number, vertex)| (*vertex, number)).collect();
    let sum = |targets: &mut dyn Iterator<Item = usize>| targets.sum::<usize>() % VERTICES;
    let expected = sum(&mut ring.edges.iter().map(|(_, ends)| ends[1]));
    let manager = ring.manager.clone();
    let is_over = AtomicBool::new(false);
    // The writer's steps, and how many it may make: few between two refreshes, so that pages are amended on the slowest machine, too.
    let (made, allowed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let write_on = || {
        let before = allowed.fetch_add(STEPS, Ordering::Relaxed);
        while made.load(Ordering::Relaxed) < before + STEPS / 2 && !is_over.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
    };
    std::thread::scope(|scope| {
        let (is_over, made, allowed, ring) = (&is_over, &made, &allowed, &mut ring);
        scope.spawn(move || {
            let mut rng = SmallRng::seed_from_u64(4);
            let _ends = EndsWith(is_over);
            while !is_over.load(Ordering::Relaxed) {
                if made.load(Ordering::Relaxed) < allowed.load(Ordering::Relaxed) {
                    ring.step(&mut rng);
                    made.fetch_add(1, Ordering::Relaxed);
                } else {
                    std::thread::yield_now();
                }
            }
        });
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let cache = ProjectionCache::default();
            let (mut moments, mut amended) = (0, 0);
            with_teams(|team| {
                for run in 0..40 {
                    let orientation = [Orientation::Directed, Orientation::Undirected][run % 2];
                    write_on();
                    let view = manager.begin_read().unwrap();
                    let projection = cache.projection(&view, &all(orientation, None), team).unwrap();
                    drop(view);
                    write_on();
                    let (projection, refreshed) = projection.refreshed(&manager.begin_read().unwrap(), team).unwrap();
                    amended += refreshed.amended;
                    moments += 1;
                    let numbering = projection.numbering();
                    let present = || numbering.present(0..numbering.positions());
                    if projection.is_directed() {
                        assert_eq!(projection.cell_count(), EDGES as u64, "{team:?}");
                        let mut targets = present()
                            .flat_map(|at| projection.outgoing(at))
                            .map(|target| number_of[&numbering.vertex(*target)]);
                        assert_eq!(sum(&mut targets), expected, "{team:?}");
                        let back: usize = present().map(|at| projection.incoming(at).len()).sum();
                        assert_eq!(back, EDGES, "{team:?}");
                    } else {
                        assert_eq!(projection.cell_count(), 2 * EDGES as u64, "{team:?}");
                        let cores = k_core::run(&projection, team).unwrap();
                        assert_eq!(cores, verify::k_core(&projection), "{team:?}");
                    }
                    let source = present().nth(run * 7 % VERTICES).unwrap();
                    let depths = bfs::run(&projection, source, bfs::Follow::Outgoing, team).unwrap();
                    assert_eq!(depths, verify::bfs(&projection, source), "{team:?}");
                    assert_eq!(wcc::run(&projection, team).unwrap(), verify::wcc(&projection), "{team:?}");
                    let ranks = pagerank::run(&projection, &Default::default(), team).unwrap().ranks;
                    assert!((ranks.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{team:?}");
                    triangles::run(&projection, team).unwrap();
                }
            });
            // The first refresh of each of the two projections has nothing to amend.
            assert!(moments >= 160 && amended >= moments - 2, "{amended} pages were amended in {moments} moments");
        }));
        is_over.store(true, Ordering::Relaxed);
        outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}

/// Executors that have something better to do leave an algorithm, and come back.
#[test]
fn helpers_that_leave_change_nothing() {
    let ring = Ring::new(5);
    let executors = Executors::start(ExecutorOptions { count: 2, ..ExecutorOptions::default() }).unwrap();
    let team = Team::with_executors(&executors, &Tenant::default(), 4);
    let view = ring.manager.begin_read().unwrap();
    let cache = ProjectionCache::default();
    let projection = cache.projection(&view, &all(Orientation::Directed, None), &team).unwrap();
    let options = pagerank::PageRankOptions { rounds: 300, ..Default::default() };
    let expected = pagerank::run(&projection, &options, &Team::alone()).unwrap().ranks;
    for _ in 0..20 {
        // Another team takes the same executors in between.
        let other = Team::with_executors(&executors, &Tenant::default(), 2);
        wcc::run(&projection, &other).unwrap();
        assert!(pagerank::run(&projection, &options, &team).unwrap().ranks == expected);
    }
}
