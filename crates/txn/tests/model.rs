//! Random interleavings of transactions against a sequential model.
//!
//! The model keeps every committed state whole: a transaction's view is a copy of the state at its begin with its own
//! writes on top. It also says which writes must conflict: those to an object that another running transaction has
//! written, or that was committed after the begin. After every step the view of every running transaction must equal
//! that of its model; one seed is one history. A read in batches, by a cursor that is kept while others commit and the
//! graph is compacted, must meet the elements that the transaction saw when the read began.

mod common;

use std::collections::{BTreeMap, BTreeSet};

use common::walk::{Expand, Scan, Values, Walk, Way};
use common::{Graph, check_consistent, edges, find, small_sizes, vertices};
use mangrove_graph::{Direction, EdgeId, ErrorKind, LabelFilter, UserId, VertexId};
use mangrove_store::StoreOptions;
use mangrove_txn::Transaction;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

#[derive(Clone, Default, PartialEq, Debug)]
struct State {
    vertices: BTreeMap<VertexId, (Option<i64>, Option<i64>)>,
    edges: BTreeMap<EdgeId, (VertexId, VertexId)>,
}

/// An object that one transaction at a time can write.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Object {
    Balance(VertexId),
    Vertex(VertexId),
    Edge(EdgeId),
    /// A vertex that got or lost an edge: conflicts with deleting the vertex only.
    Adjacency(VertexId),
    Id(i64),
}

struct Running {
    txn: Transaction,
    begun_at: usize,
    /// The state that its reads see.
    seen: State,
    /// With the writes of the running statement.
    own: State,
    written: BTreeSet<Object>,
    /// Edges that it has added and deleted again: their ends existed.
    passing: Vec<(EdgeId, (VertexId, VertexId))>,
    /// Reads under way, with the elements that were seen at their begin.
    walks: Vec<(Walk, State)>,
}

impl Running {
    /// Removes an edge that it deletes.
    fn forget_edge(&mut self, edge: EdgeId) {
        let ends = self.own.edges.remove(&edge);
        // Written before: the transaction has added the edge itself.
        if !self.written.insert(Object::Edge(edge)) {
            self.passing.extend(ends.map(|ends| (edge, ends)));
        }
    }
}

struct Model {
    graph: Graph,
    committed: State,
    /// Written objects by commit.
    commits: Vec<BTreeSet<Object>>,
    running: Vec<Running>,
    rng: SmallRng,
    conflicts: usize,
    walked: usize,
}

impl Model {
    fn new(seed: u64) -> Self {
        let rng = SmallRng::seed_from_u64(seed);
        let options = StoreOptions { tablet_count: 4, sizes: small_sizes(seed), ..StoreOptions::default() };
        Model {
            graph: Graph::with_options(&options),
            committed: State::default(),
            commits: vec![],
            running: vec![],
            rng,
            conflicts: 0,
            walked: 0,
        }
    }

    fn begin(&mut self) {
        let state = self.committed.clone();
        self.running.push(Running {
            txn: self.graph.begin(),
            begun_at: self.commits.len(),
            seen: state.clone(),
            own: state,
            written: BTreeSet::new(),
            passing: Vec::new(),
            walks: vec![],
        });
    }

    /// Returns true if another transaction has written this object.
    fn is_contested(&self, who: usize, object: Object) -> bool {
        let since = &self.commits[self.running[who].begun_at..];
        let others = self.running.iter().enumerate().filter(|(i, _)| *i != who).map(|(_, r)| &r.written);
        since.iter().chain(others).any(|written| written.contains(&object))
    }

    /// The outcome of a write must be that of the model.
    #[track_caller]
    fn expect<T>(&mut self, who: usize, objects: &[Object], outcome: mangrove_graph::Result<T>) -> Option<T> {
        let contested = objects.iter().any(|&object| self.is_contested(who, object));
        match outcome {
            Ok(value) => {
                assert!(!contested, "no conflict on {objects:?}");
                Some(value)
            }
            Err(error) => {
                assert!(contested, "{error} on {objects:?}");
                assert_eq!(error.kind(), ErrorKind::Conflict);
                let gone = self.running.remove(who);
                assert!(gone.txn.finish_statement().is_err(), "it is doomed");
                assert!(gone.txn.commit().is_err(), "it is doomed");
                self.conflicts += 1;
                None
            }
        }
    }

    fn pick<T: Copy>(&mut self, items: Vec<T>) -> Option<T> {
        (!items.is_empty()).then(|| items[self.rng.random_range(0..items.len())])
    }

    fn pick_vertex(&mut self, who: usize) -> Option<VertexId> {
        self.pick(self.running[who].own.vertices.keys().copied().collect())
    }

    fn step(&mut self) {
        if self.running.is_empty() || (self.running.len() < 4 && self.rng.random_ratio(1, 6)) {
            return self.begin();
        }
        let who = self.rng.random_range(0..self.running.len());
        match self.rng.random_range(0..28) {
            0..3 => self.insert_vertex(who),
            3..5 => self.insert_chosen(who),
            5..9 => self.insert_edge(who),
            9..13 => self.set_balance(who),
            13 => self.delete_vertex(who),
            14 => self.delete_edge(who),
            15..18 => self.finish_statement(who),
            18 => self.commit(who),
            19..27 => self.walk(who),
            _ => {
                let gone = self.running.remove(who);
                gone.txn.rollback();
            }
        }
    }

    fn insert_vertex(&mut self, who: usize) {
        let id = self.running[who].txn.insert_vertex(self.graph.person, None).unwrap();
        let running = &mut self.running[who];
        running.own.vertices.insert(id, (None, None));
        running.written.insert(Object::Vertex(id));
    }

    fn insert_chosen(&mut self, who: usize) {
        let number = -self.rng.random_range(1..5_i64);
        let outcome = self.running[who].txn.insert_vertex(self.graph.person, Some(UserId::int(number)));
        let taken = self.running[who].own.vertices.values().any(|(_, id)| *id == Some(number));
        if taken {
            assert_eq!(outcome.unwrap_err().kind(), ErrorKind::DuplicateId);
            return;
        }
        if let Some(id) = self.expect(who, &[Object::Id(number)], outcome) {
            let running = &mut self.running[who];
            running.own.vertices.insert(id, (None, Some(number)));
            running.written.extend([Object::Vertex(id), Object::Id(number)]);
        }
    }

    fn insert_edge(&mut self, who: usize) {
        let (Some(s), Some(t)) = (self.pick_vertex(who), self.pick_vertex(who)) else { return };
        let outcome = self.running[who].txn.insert_edge(s, t, self.graph.knows, None);
        if let Some(id) = self.expect(who, &[Object::Vertex(s), Object::Vertex(t)], outcome) {
            let running = &mut self.running[who];
            running.own.edges.insert(id, (s, t));
            running.written.extend([Object::Edge(id), Object::Adjacency(s), Object::Adjacency(t)]);
        }
    }

    fn set_balance(&mut self, who: usize) {
        let Some(v) = self.pick_vertex(who) else { return };
        let balance = self.rng.random_bool(0.8).then(|| self.rng.random_range(0..100));
        let had_one = self.running[who].own.vertices[&v].0.is_some();
        let outcome = match balance {
            Some(balance) => self.graph.set(&self.running[who].txn, v, balance),
            None => self.running[who].txn.remove_vertex_property(v, self.graph.balance, None),
        };
        // Removing an absent property is no write and no conflict, unless another transaction has just removed it.
        let objects = [Object::Balance(v), Object::Vertex(v)];
        if self.expect(who, &objects, outcome).is_some() {
            let running = &mut self.running[who];
            running.own.vertices.get_mut(&v).unwrap().0 = balance;
            if balance.is_some() || had_one {
                running.written.insert(Object::Balance(v));
            }
        }
    }

    fn delete_vertex(&mut self, who: usize) {
        let Some(v) = self.pick_vertex(who) else { return };
        let incident: Vec<_> = self.running[who]
            .own
            .edges
            .iter()
            .filter(|(_, (s, t))| *s == v || *t == v)
            .map(|(e, ends)| (*e, *ends))
            .collect();
        let mut objects = vec![Object::Vertex(v), Object::Balance(v)];
        objects.extend(incident.iter().map(|(e, _)| Object::Edge(*e)));
        // An edge that another transaction added and that is not in this snapshot.
        let strangers: Vec<Object> = self.others_edges_at(who, v);
        objects.extend(strangers);
        let outcome = self.running[who].txn.delete_vertex(v);
        if self.expect(who, &objects, outcome).is_some() {
            let running = &mut self.running[who];
            running.own.vertices.remove(&v);
            running.written.insert(Object::Vertex(v));
            incident.iter().for_each(|(edge, _)| running.forget_edge(*edge));
        }
    }

    /// Edges at a vertex that this transaction does not see, but that others have added.
    fn others_edges_at(&self, who: usize, v: VertexId) -> Vec<Object> {
        let is_at = |(s, t): &(VertexId, VertexId)| *s == v || *t == v;
        let committed = self.committed.edges.iter().map(|(e, ends)| (Object::Edge(*e), ends));
        let claimed = self.running.iter().flat_map(|r| {
            let edges = r.own.edges.iter().map(|(e, ends)| (Object::Edge(*e), ends));
            let passing = r.passing.iter().map(|(e, ends)| (Object::Edge(*e), ends));
            edges.filter(|(object, _)| r.written.contains(object)).chain(passing)
        });
        let at_v = committed.chain(claimed).filter(|(_, ends)| is_at(ends)).map(|(object, _)| object);
        at_v.filter(|&object| self.is_contested(who, object)).collect()
    }

    fn delete_edge(&mut self, who: usize) {
        let Some(edge) = self.pick(self.running[who].own.edges.keys().copied().collect()) else { return };
        let outcome = self.running[who].txn.delete_edge(edge);
        if self.expect(who, &[Object::Edge(edge)], outcome).is_some() {
            self.running[who].forget_edge(edge);
        }
    }

    fn finish_statement(&mut self, who: usize) {
        let running = &mut self.running[who];
        running.txn.finish_statement().unwrap();
        if running.seen != running.own {
            running.walks.clear();
            running.seen = running.own.clone();
        }
    }

    /// Reads a batch.
    fn walk(&mut self, who: usize) {
        if self.running[who].walks.len() < 2 {
            let walk = self.new_walk(who);
            let running = &mut self.running[who];
            running.walks.push((walk, running.seen.clone()));
        }
        let running = &mut self.running[who];
        let at = self.rng.random_range(0..running.walks.len());
        if running.walks[at].0.step(&running.txn) {
            let (walk, seen) = running.walks.swap_remove(at);
            check_walk(walk, &seen);
            self.walked += 1;
        }
    }

    fn new_walk(&mut self, who: usize) -> Walk {
        let limit = self.rng.random_range(1..4);
        let vertices: Vec<VertexId> = self.running[who].seen.vertices.keys().copied().collect();
        match self.rng.random_range(0..6) {
            0 => Walk::Vertices(Scan::new(None, limit)),
            1 => Walk::Edges(Scan::new(None, limit)),
            2 => Walk::Values(Values { vertices, key: self.graph.balance, way: Way::Columns, limit, found: vec![] }),
            _ => {
                let direction = [Direction::Out, Direction::In, Direction::Both][self.rng.random_range(0..3)];
                Walk::Lists(Expand::new(vertices, direction, LabelFilter::Any, limit))
            }
        }
    }

    fn commit(&mut self, who: usize) {
        let Running { txn, written, own, .. } = self.running.remove(who);
        txn.commit().unwrap();
        for object in &written {
            match *object {
                Object::Vertex(v) => match own.vertices.get(&v) {
                    Some(content) => drop(self.committed.vertices.insert(v, *content)),
                    None => drop(self.committed.vertices.remove(&v)),
                },
                Object::Balance(v) => {
                    if let (Some(new), Some(old)) = (own.vertices.get(&v), self.committed.vertices.get_mut(&v)) {
                        *old = *new;
                    }
                }
                Object::Edge(e) => match own.edges.get(&e) {
                    Some(ends) => drop(self.committed.edges.insert(e, *ends)),
                    None => drop(self.committed.edges.remove(&e)),
                },
                Object::Adjacency(_) | Object::Id(_) => {}
            }
        }
        self.commits.push(written);
    }

    #[track_caller]
    fn check(&self) {
        for running in &self.running {
            self.check_view(&running.txn, &running.seen);
        }
        self.check_view(&self.graph.begin(), &self.committed);
    }

    #[track_caller]
    fn check_view(&self, txn: &Transaction, expected: &State) {
        check_consistent(txn);
        let state = State {
            vertices: vertices(txn).into_iter().map(|v| (v, (self.graph.get(txn, v), self.user_id(txn, v)))).collect(),
            edges: edges(txn).into_iter().map(|(e, s, t)| (e, (s, t))).collect(),
        };
        assert_eq!(&state, expected);
        for number in 1..5 {
            let holder = expected.vertices.iter().find(|(_, (_, id))| *id == Some(-number)).map(|(v, _)| *v);
            assert_eq!(find(txn, -number), holder);
        }
    }

    /// After everything is deleted and collected, every record is free and all memory is accounted for.
    #[track_caller]
    fn check_nothing_is_left(&self) {
        let txn = self.graph.begin();
        self.committed.vertices.keys().for_each(|&v| txn.delete_vertex(v).unwrap());
        txn.commit().unwrap();
        self.graph.manager.compact();
        let store = self.graph.manager.store();
        let report = store.memory();
        assert_eq!(report.total_bytes(), store.memory_walk());
        assert!(report.rows.iter().all(|row| row.live == 0), "{report:?}");
        let garbage = store.garbage();
        assert_eq!((garbage.queued_writes, garbage.tasks, garbage.in_limbo), (0, 0, 0), "{garbage:?}");
        assert_eq!(store.free_slots(), store.reserved_slots(), "{garbage:?}");
    }

    fn user_id(&self, txn: &Transaction, v: VertexId) -> Option<i64> {
        let mut ids = Vec::new();
        mangrove_graph::GraphView::vertex_user_ids(txn, &[v], &mut ids).unwrap();
        match ids[0] {
            mangrove_graph::Value::I64(n) if n < 0 => Some(n),
            _ => None,
        }
    }
}

/// A walk that has ended has met every element once that was visible at its begin.
#[track_caller]
fn check_walk(walk: Walk, seen: &State) {
    match walk {
        Walk::Vertices(scan) => assert_eq!(sorted(scan.found), Vec::from_iter(seen.vertices.keys().copied())),
        Walk::Edges(scan) => assert_eq!(sorted(scan.found), Vec::from_iter(seen.edges.keys().copied())),
        Walk::Values(values) => {
            assert!(values.found.into_iter().eq(seen.vertices.values().map(|(balance, _)| *balance)))
        }
        Walk::Lists(Expand { vertices, request, found, .. }) => {
            let found = found.into_iter().map(|(row, neighbor, edge)| (vertices[row as usize], neighbor, edge));
            let edges = || seen.edges.iter().map(|(edge, (source, target))| (*source, *target, *edge));
            let out = edges().filter(|_| request.direction != Direction::In);
            let into = edges().filter(|_| request.direction != Direction::Out).map(|(s, t, edge)| (t, s, edge));
            assert_eq!(sorted(found.collect()), sorted(out.chain(into).collect()), "{:?}", request.direction);
        }
    }
}

fn sorted<T: Ord>(mut all: Vec<T>) -> Vec<T> {
    all.sort_unstable();
    all
}

#[test]
fn random_histories_agree_with_the_model() {
    let (mut conflicts, mut walked) = (0, 0);
    for seed in 0..4_000 {
        let mut model = Model::new(seed);
        let history = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for step in 0..100 {
                model.step();
                match model.rng.random_range(0..10) {
                    0 => model.graph.manager.collect_garbage(),
                    1 => model.graph.manager.compact(),
                    _ => {}
                }
                if step % 4 == 0 {
                    model.check();
                }
            }
            model.running.clear();
            model.check();
            model.graph.manager.compact();
            model.check();
            model.check_nothing_is_left();
        }));
        if let Err(panic) = history {
            eprintln!("seed {seed}");
            std::panic::resume_unwind(panic);
        }
        conflicts += model.conflicts;
        walked += model.walked;
    }
    assert!(conflicts > 1_000, "the histories hold conflicts worth the name: {conflicts}");
    assert!(walked > 10_000, "the histories hold walks worth the name: {walked}");
}
