//! Graphs for the tests, and teams of every size.
use std::sync::Arc;
use std::sync::atomic::Ordering;

use mangrove_analytics::{Orientation, Projection, ProjectionOptions, Team};
use mangrove_flow::schedule::{ExecutorOptions, Executors, Tenant};
use mangrove_graph::{EdgeId, KeyId, LabelFilter, LabelSetId, UserId, Value, VertexId};
use mangrove_store::{Store, StoreOptions};
use mangrove_testdata::{case_count, first_seed};
use mangrove_txn::{Isolation, Transaction, TransactionManager, TransactionOptions};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// A graph under random writes: two labels of vertices and of edges, loops, parallel edges, deleted places that are used again.
pub struct World {
    pub manager: TransactionManager,
    pub labels: [LabelSetId; 2],
    pub along: [LabelSetId; 2],
    pub weight: KeyId,
    pub vertices: Vec<VertexId>,
    pub edges: Vec<EdgeId>,
    rng: SmallRng,
}

impl World {
    pub fn new(seed: u64) -> Self {
        let store = Arc::new(Store::new(&StoreOptions { tablet_count: 3, ..StoreOptions::default() }));
        let catalog = store.catalog();
        let labels = ["person", "robot"].map(|name| catalog.intern_label_text(name));
        let along = ["knows", "made"].map(|name| catalog.intern_label_text(name));
        let weight = catalog.intern_key("weight");
        let manager = TransactionManager::new(store);
        manager.settings().gc_workers.store(0, Ordering::Relaxed);
        World {
            manager,
            labels,
            along,
            weight,
            vertices: Vec::new(),
            edges: Vec::new(),
            rng: SmallRng::seed_from_u64(seed),
        }
    }

    pub fn begin(&self) -> Transaction {
        self.manager.begin(TransactionOptions { isolation: Isolation::Snapshot, read_only: false }).unwrap()
    }

    /// Inserts and deletes elements, in several transactions.
    pub fn write(&mut self, steps: usize) {
        for _ in 0..steps {
            let txn = self.begin();
            for _ in 0..20 {
                match self.rng.random_range(0..12) {
                    0..4 => {
                        let label = self.labels[usize::from(self.rng.random_bool(0.2))];
                        self.vertices.push(txn.insert_vertex(label, None).unwrap());
                    }
                    4..10 if !self.vertices.is_empty() => {
                        let mut any = || self.vertices[self.rng.random_range(0..self.vertices.len())];
                        let ends = [any(), any()];
                        let label = self.along[usize::from(self.rng.random_bool(0.3))];
                        let edge = txn.insert_edge(ends[0], ends[1], label, None).unwrap();
                        if self.rng.random_bool(0.9) {
                            let length = f64::from(self.rng.random_range(0..40_u32)) / 8.0;
                            txn.set_edge_property(edge, self.weight, Value::F64(length)).unwrap();
                        }
                        self.edges.push(edge);
                    }
                    10 if self.edges.len() > 5 => {
                        let at = self.rng.random_range(0..self.edges.len());
                        txn.delete_edge(self.edges.swap_remove(at)).unwrap();
                    }
                    11 if self.vertices.len() > 40 => {
                        let at = self.rng.random_range(0..self.vertices.len());
                        txn.delete_vertex(self.vertices.swap_remove(at)).unwrap();
                    }
                    _ => {}
                }
            }
            txn.commit().unwrap();
        }
        // Deleted places are given again.
        self.manager.compact();
    }
}

/// A graph of edges between numbers, with the numbers as ids.
pub fn graph_of(vertices: &[i64], edges: &[(i64, i64, f64)]) -> (TransactionManager, KeyId) {
    let store = Arc::new(Store::new(&StoreOptions { tablet_count: 3, ..StoreOptions::default() }));
    let catalog = store.catalog();
    let (label, along) = (catalog.intern_label_text("vertex"), catalog.intern_label_text("edge"));
    let weight = catalog.intern_key("weight");
    let manager = TransactionManager::new(store);
    let txn = manager.begin(TransactionOptions { isolation: Isolation::Snapshot, read_only: false }).unwrap();
    let ids: std::collections::BTreeMap<i64, VertexId> =
        vertices.iter().map(|id| (*id, txn.insert_vertex(label, Some(UserId::int(*id))).unwrap())).collect();
    for (from, to, length) in edges {
        let edge = txn.insert_edge(ids[from], ids[to], along, None).unwrap();
        txn.set_edge_property(edge, weight, Value::F64(*length)).unwrap();
    }
    txn.commit().unwrap();
    (manager, weight)
}

/// The friendships of a karate club (Zachary 1977): 34 vertices, 78 edges.
pub fn karate_club() -> (TransactionManager, KeyId) {
    const FRIENDS: [(i64, &[i64]); 27] = [
        (1, &[2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 18, 20, 22, 32]),
        (2, &[3, 4, 8, 14, 18, 20, 22, 31]),
        (3, &[4, 8, 9, 10, 14, 28, 29, 33]),
        (4, &[8, 13, 14]),
        (5, &[7, 11]),
        (6, &[7, 11, 17]),
        (7, &[17]),
        (9, &[31, 33, 34]),
        (10, &[34]),
        (14, &[34]),
        (15, &[33, 34]),
        (16, &[33, 34]),
        (19, &[33, 34]),
        (20, &[34]),
        (21, &[33, 34]),
        (23, &[33, 34]),
        (24, &[26, 28, 30, 33, 34]),
        (25, &[26, 28, 32]),
        (26, &[32]),
        (27, &[30, 34]),
        (28, &[34]),
        (29, &[32, 34]),
        (30, &[33, 34]),
        (31, &[33, 34]),
        (32, &[33, 34]),
        (33, &[34]),
        (34, &[]),
    ];
    let edges: Vec<_> =
        FRIENDS.iter().flat_map(|(one, friends)| friends.iter().map(move |other| (*one, *other, 1.0))).collect();
    assert_eq!(edges.len(), 78);
    graph_of(&(1..=34).collect::<Vec<_>>(), &edges)
}

/// Reads a projection of the present moment.
pub fn project(manager: &TransactionManager, options: &ProjectionOptions, team: &Team) -> Projection {
    let txn = manager.begin(TransactionOptions { isolation: Isolation::Snapshot, read_only: true }).unwrap();
    Projection::of(&txn, options, team).unwrap()
}

pub fn all(orientation: Orientation, weight: Option<KeyId>) -> ProjectionOptions {
    ProjectionOptions { orientation, weight, ..ProjectionOptions::default() }
}

pub fn of_labels(vertices: LabelSetId, edges: LabelSetId, orientation: Orientation) -> ProjectionOptions {
    let sets = |label: LabelSetId| LabelFilter::Sets([label].into());
    ProjectionOptions { vertices: sets(vertices), edges: sets(edges), orientation, ..ProjectionOptions::default() }
}

/// Calls `check` with projections of random graphs after so many writes: of all elements with weights, and of one label without, in both
/// orientations; with teams of every size; and with words for what is checked.
pub fn on_random_graphs(graphs: u64, steps: &[usize], check: impl Fn(&Projection, &Team, &str)) {
    let first = first_seed(0);
    for seed in first..first + case_count(graphs) {
        let mut world = World::new(seed);
        for steps in steps {
            world.write(*steps);
            with_teams(|team| {
                for orientation in [Orientation::Directed, Orientation::Undirected] {
                    let what = format!("seed {seed}, {orientation:?}, {team:?}");
                    check(&project(&world.manager, &all(orientation, Some(world.weight)), team), team, &what);
                    let of_one = of_labels(world.labels[0], world.along[0], orientation);
                    check(&project(&world.manager, &of_one, team), team, &format!("{what}, one label"));
                }
            });
        }
    }
}

/// Calls `each` with teams of one to eight threads.
pub fn with_teams(mut each: impl FnMut(&Team)) {
    each(&Team::alone());
    let executors = Executors::start(ExecutorOptions { count: 3, ..ExecutorOptions::default() }).unwrap();
    for helpers in [1, 3, 7] {
        each(&Team::with_executors(&executors, &Tenant::default(), helpers));
    }
}

/// All positions with a vertex.
pub fn present(projection: &Projection) -> Vec<u32> {
    projection.numbering().present(0..projection.numbering().positions()).collect()
}

#[track_caller]
pub fn assert_near(found: &[f64], expected: &[f64], what: &str) {
    assert_eq!(found.len(), expected.len());
    for (at, (one, other)) in found.iter().zip(expected).enumerate() {
        assert!(one == other || (one - other).abs() <= 1e-12 * other.abs(), "{what} at {at}: {one}, expected {other}");
    }
}

/// An undirected projection of vertices `0..vertices` and edges between them, which a bulk load puts into a graph. Positions are in the order of
/// these numbers if the graph has one tablet.
pub fn unweighted(vertices: usize, edges: &[(i64, i64)]) -> Projection {
    let store = Arc::new(Store::new(&StoreOptions { tablet_count: 1, ..StoreOptions::default() }));
    let catalog = store.catalog();
    let (label, along) = (catalog.intern_label_text("vertex"), catalog.intern_label_text("edge"));
    let manager = TransactionManager::new(store);
    let mut load = manager.bulk_load().unwrap();
    let ids = load.vertices(label, vertices, None, &[]).unwrap();
    let ends: Vec<_> = edges.iter().map(|(from, to)| (ids[*from as usize], ids[*to as usize])).collect();
    load.edges(along, &ends, None, &[]).unwrap();
    load.finish().unwrap();
    project(&manager, &all(Orientation::Undirected, None), &Team::alone())
}
