//! The guarantee of cursors: a read in small batches meets every element of its snapshot once, whatever is committed,
//! collected and compacted in between.
//!
//! One test reads random graphs in the smallest batches by several cursors at a time, while writers change the graph
//! one after another. It keeps every committed state whole. A snapshot transaction must see the state of its begin. A
//! serializable one may see a list or a property in a later state: one state for each list and property, unless it
//! reads a list by two walks at a time. If it commits, one state explains all its reads.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use mangrove_graph::{
    Direction, EdgeId, ElementKind, ErrorKind, GraphView, IndexId, IndexRange, LabelFilter, LabelSetId, Share, Value,
    VertexId,
};
use mangrove_store::{IndexOptions, StoreOptions, StoreSizes};
use mangrove_testdata::{case_count, first_seed};
use mangrove_txn::{Isolation, Transaction, TransactionOptions};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::common::walk::{Expand, Scan, Values, Walk, Way};
use crate::common::{Graph, check_consistent, edges, expand, small_sizes, vertices};

/// Edges from the first vertex to all others, inserted in an order that compaction changes, one transaction after another.
fn permuted_edges(graph: &Graph, ids: &[VertexId], count: usize, a_transaction: usize) {
    let others = ids.len() - 1;
    let targets: Vec<_> = (0..count).map(|n| (ids[0], ids[1 + n * 7_919 % others])).collect();
    for ends in targets.chunks(a_transaction) {
        let txn = graph.begin();
        txn.insert_edges(ends, graph.knows).unwrap();
        txn.commit().unwrap();
    }
}

/// The edges of a walk over the out-edges of a vertex, sorted.
fn found_edges(walk: &Walk) -> Vec<EdgeId> {
    let Walk::Lists(expand) = walk else { panic!("not an expansion: {walk:?}") };
    let mut edges: Vec<EdgeId> = expand.found.iter().map(|(.., edge)| *edge).collect();
    edges.sort_unstable();
    edges
}

fn out_edges(hub: VertexId, limit: usize) -> Walk {
    Walk::Lists(Expand::new(vec![hub], Direction::Out, LabelFilter::Any, limit))
}

/// All out-edges of a vertex, sorted.
fn all_out_edges(view: &dyn GraphView, hub: VertexId) -> Vec<EdgeId> {
    let mut edges: Vec<EdgeId> = expand(view, &[hub], Direction::Out, usize::MAX).iter().map(|(.., e)| *e).collect();
    edges.sort_unstable();
    edges
}

#[test]
fn a_cursor_goes_on_when_the_compaction_before_packed_nothing() {
    let graph = Graph::new().without_collector();
    let ids = graph.persons(100);
    let old = graph.begin();
    permuted_edges(&graph, &ids, 20, 20);
    // The edges are too recent to be packed.
    graph.manager.compact();
    drop(old);
    graph.manager.collect_garbage();
    let reader = graph.begin();
    let (expected, mut walk) = (all_out_edges(&reader, ids[0]), out_edges(ids[0], 7));
    assert!(!walk.step(&reader));
    graph.manager.compact();
    while !walk.step(&reader) {}
    assert_eq!(found_edges(&walk), expected);
}

#[test]
fn a_cursor_goes_on_when_only_long_lists_were_packed() {
    let graph = Graph::new().without_collector();
    let ids = graph.persons(1_001);
    permuted_edges(&graph, &ids, 5_000, 100);
    graph.manager.compact();
    permuted_edges(&graph, &ids, 700, 100);
    let reader = graph.begin();
    let (expected, mut walk) = (all_out_edges(&reader, ids[0]), out_edges(ids[0], 1_000));
    assert!(!walk.step(&reader));
    graph.manager.compact();
    while !walk.step(&reader) {}
    assert_eq!(found_edges(&walk), expected);
}

/// A long list is skipped by compactions of its table while it does not change. Meanwhile the layout versions wrap
/// around to that of the list.
#[test]
fn a_cursor_is_not_deceived_when_the_layout_versions_come_round() {
    const LONG: usize = 8;
    /// As many layout versions as their bits can name, without 0.
    const VERSIONS: usize = (1 << 13) - 1;
    let sizes = StoreSizes { long_list: LONG as u32, first_page_slots: 64, ..StoreSizes::default() };
    let options = StoreOptions { tablet_count: 1, sizes, ..StoreOptions::default() };
    let graph = Graph::with_options(&options).without_collector();
    let ids = graph.persons(64);
    // All vertices are on one page, so all lists are in one table. The last vertices are targets only.
    let (hubs, busy) = (&ids[..8], ids[8]);
    let insert = |source: VertexId, count: usize| {
        let txn = graph.begin();
        let target = |n: usize| ids[16 + n * 29 % 48];
        for n in 0..count {
            txn.insert_edge(source, target(n), graph.knows, None).unwrap();
        }
        txn.commit().unwrap();
    };
    hubs.iter().for_each(|hub| insert(*hub, LONG));
    graph.manager.compact();
    for round in 1..=VERSIONS + 4 {
        if let Some(hub) = (round + 3).checked_sub(VERSIONS).and_then(|nth| hubs.get(nth)) {
            // Compacted in this round, one of the rounds in which its layout version comes again.
            insert(*hub, LONG);
            let reader = graph.begin();
            let (expected, mut walk) = (all_out_edges(&reader, *hub), out_edges(*hub, 5));
            assert!(!walk.step(&reader));
            graph.manager.compact();
            while !walk.step(&reader) {}
            assert_eq!(found_edges(&walk), expected, "round {round}");
        } else {
            let txn = graph.begin();
            let edge = txn.insert_edge(busy, ids[20], graph.knows, None).unwrap();
            txn.finish_statement().unwrap();
            txn.delete_edge(edge).unwrap();
            txn.commit().unwrap();
            graph.manager.compact();
        }
    }
    check_consistent(&graph.begin());
}

#[derive(Clone, Copy, Debug)]
struct Edge {
    source: VertexId,
    target: VertexId,
    label: LabelSetId,
    balance: Option<i64>,
}

/// A committed state, or that of a running writer.
#[derive(Clone, Default, Debug)]
struct State {
    vertices: BTreeMap<VertexId, Option<i64>>,
    edges: BTreeMap<EdgeId, Edge>,
}

/// An observation of a reader.
#[derive(Clone, Debug)]
enum Observation {
    List { vertex: VertexId, direction: Direction, labels: LabelFilter, found: Vec<(VertexId, EdgeId)> },
    Vertices { range: Option<IndexRange>, found: Vec<VertexId> },
    Edges { range: Option<IndexRange>, found: Vec<EdgeId> },
    Value(VertexId, Option<i64>),
}

fn is_in(range: &Option<IndexRange>, balance: Option<i64>) -> bool {
    range.as_ref().is_none_or(|range| balance.is_some_and(|n| range.holds(&Value::I64(n))))
}

impl State {
    fn list(&self, vertex: VertexId, direction: Direction, labels: &LabelFilter) -> Vec<(VertexId, EdgeId)> {
        let taken = || self.edges.iter().filter(|(_, edge)| labels.takes(edge.label));
        let out =
            taken().filter(|(_, e)| direction != Direction::In && e.source == vertex).map(|(id, e)| (e.target, *id));
        let into =
            taken().filter(|(_, e)| direction != Direction::Out && e.target == vertex).map(|(id, e)| (e.source, *id));
        let mut list: Vec<_> = out.chain(into).collect();
        list.sort_unstable();
        list
    }

    /// Returns true if a reader of this state would observe the same.
    fn explains(&self, observation: &Observation) -> bool {
        match observation {
            Observation::List { vertex, direction, labels, found } => self.list(*vertex, *direction, labels) == *found,
            Observation::Vertices { range, found } => {
                let expected = self.vertices.iter().filter(|(_, balance)| is_in(range, **balance));
                expected.map(|(id, _)| *id).eq(found.iter().copied())
            }
            Observation::Edges { range, found } => {
                let expected = self.edges.iter().filter(|(_, edge)| is_in(range, edge.balance));
                expected.map(|(id, _)| *id).eq(found.iter().copied())
            }
            Observation::Value(vertex, balance) => self.vertices.get(vertex).copied().flatten() == *balance,
        }
    }
}

/// The observations of a walk that has ended.
fn observations(walk: Walk) -> Vec<Observation> {
    fn sorted<T: Ord>(mut all: Vec<T>) -> Vec<T> {
        all.sort_unstable();
        all
    }
    match walk {
        Walk::Vertices(Scan { range, found, .. }) => {
            vec![Observation::Vertices { range: range.map(|(_, range)| range), found: sorted(found) }]
        }
        Walk::Edges(Scan { range, found, .. }) => {
            vec![Observation::Edges { range: range.map(|(_, range)| range), found: sorted(found) }]
        }
        Walk::Lists(Expand { vertices, request, found, .. }) => {
            assert!(found.is_sorted_by_key(|(row, ..)| *row));
            let of_row = |(row, vertex): (usize, VertexId)| {
                let cells =
                    found.iter().filter(|(of, ..)| *of as usize == row).map(|(_, neighbor, edge)| (*neighbor, *edge));
                let (direction, labels) = (request.direction, request.labels.clone());
                Observation::List { vertex, direction, labels, found: sorted(cells.collect()) }
            };
            vertices.into_iter().enumerate().map(of_row).collect()
        }
        Walk::Values(Values { vertices, found, .. }) => {
            vertices.into_iter().zip(found).map(|(vertex, balance)| Observation::Value(vertex, balance)).collect()
        }
    }
}

struct Reader {
    txn: Transaction,
    is_serializable: bool,
    /// The state at its begin.
    first_state: usize,
    /// The number of walks at a time.
    walks_max: usize,
    walks: Vec<Walk>,
    learned: Vec<Observation>,
}

struct Writer {
    txn: Transaction,
    state: State,
}

struct World {
    graph: Graph,
    labels: [LabelSetId; 2],
    /// Of vertices and of edges, with their kinds.
    indexes: Vec<(ElementKind, IndexId)>,
    /// Every committed state.
    states: Vec<Rc<State>>,
    writer: Option<Writer>,
    readers: Vec<Reader>,
    rng: SmallRng,
    walked: usize,
    committed: usize,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut rng = SmallRng::seed_from_u64(seed);
        let options =
            StoreOptions { tablet_count: rng.random_range(1..4), sizes: small_sizes(seed), ..StoreOptions::default() };
        let graph = Graph::with_options(&options).without_collector();
        let labels = [graph.knows, graph.manager.store().catalog().intern_label_text("likes")];
        let mut indexes = Vec::new();
        for element in [ElementKind::Vertex, ElementKind::Edge] {
            let (keys, ordered) = (vec![graph.balance], rng.random());
            let options = IndexOptions { element, label: None, keys, ordered, unique: false };
            if rng.random() {
                indexes.push((element, graph.manager.create_index(&options).unwrap()));
            }
        }
        let states = vec![Rc::default()];
        World { graph, labels, indexes, states, writer: None, readers: Vec::new(), rng, walked: 0, committed: 0 }
    }

    fn pick<T: Copy>(&mut self, items: impl Iterator<Item = T>) -> Option<T> {
        let items: Vec<T> = items.collect();
        (!items.is_empty()).then(|| items[self.rng.random_range(0..items.len())])
    }

    fn step(&mut self) {
        match self.rng.random_range(0..20) {
            0 => self.graph.manager.collect_garbage(),
            1 => self.graph.manager.compact(),
            2 => self.graph.manager.collect_round(),
            3..9 => self.write(),
            _ => self.read(),
        }
    }

    // --- Writing ------------------------------------------------------------------------------------

    fn write(&mut self) {
        let isolation = if self.rng.random() { Isolation::Serializable } else { Isolation::Snapshot };
        let mut writer = self.writer.take().unwrap_or_else(|| Writer {
            txn: self.graph.manager.begin(TransactionOptions { isolation, read_only: false }).unwrap(),
            state: State::clone(self.states.last().unwrap()),
        });
        for _ in 0..self.rng.random_range(1..5) {
            self.change(&mut writer);
            writer.txn.finish_statement().unwrap();
        }
        match self.rng.random_range(0..8) {
            0 => writer.txn.rollback(),
            1..6 => {
                writer.txn.commit().unwrap();
                self.states.push(Rc::new(writer.state));
            }
            _ => self.writer = Some(writer),
        }
    }

    fn change(&mut self, Writer { txn, state }: &mut Writer) {
        let balance = self.rng.random_range(0..5);
        let vertex = self.pick(state.vertices.keys().copied());
        match (self.rng.random_range(0..16), vertex) {
            (0..2, _) | (_, None) => {
                let id = self.graph.add(txn, balance);
                state.vertices.insert(id, Some(balance));
            }
            (2, Some(vertex)) => {
                txn.delete_vertex(vertex).unwrap();
                state.vertices.remove(&vertex);
                state.edges.retain(|_, edge| edge.source != vertex && edge.target != vertex);
            }
            (3..6, Some(vertex)) => {
                let balance = self.rng.random_ratio(3, 4).then_some(balance);
                match balance {
                    Some(balance) => self.graph.set(txn, vertex, balance).unwrap(),
                    None => txn.remove_vertex_property(vertex, self.graph.balance, None).unwrap(),
                }
                state.vertices.insert(vertex, balance);
            }
            (6..9, _) => {
                let Some(edge) = self.pick(state.edges.keys().copied()) else { return };
                if self.rng.random() {
                    txn.set_edge_property(edge, self.graph.balance, Value::I64(balance)).unwrap();
                    state.edges.get_mut(&edge).unwrap().balance = Some(balance);
                } else {
                    txn.delete_edge(edge).unwrap();
                    state.edges.remove(&edge);
                }
            }
            (_, Some(vertex)) => self.insert_edges(txn, state, vertex),
        }
    }

    /// Most edges are at the first vertex, whose lists become long.
    fn insert_edges(&mut self, txn: &Transaction, state: &mut State, vertex: VertexId) {
        let label = self.labels[self.rng.random_range(0..2)];
        let hub = *state.vertices.keys().next().unwrap();
        for _ in 0..self.rng.random_range(1..5) {
            let near = if self.rng.random() { hub } else { vertex };
            let far = self.pick(state.vertices.keys().copied()).unwrap();
            let (source, target) = if self.rng.random() { (near, far) } else { (far, near) };
            let id = txn.insert_edge(source, target, label, None).unwrap();
            state.edges.insert(id, Edge { source, target, label, balance: None });
        }
    }

    // --- Reading ------------------------------------------------------------------------------------

    fn read(&mut self) {
        if self.readers.len() < 2 || (self.readers.len() < 5 && self.rng.random_ratio(1, 20)) {
            return self.begin();
        }
        let at = self.rng.random_range(0..self.readers.len());
        if self.rng.random_ratio(1, 30) {
            let reader = self.readers.swap_remove(at);
            return self.end(reader);
        }
        if self.readers[at].walks.len() < self.readers[at].walks_max && self.rng.random_ratio(1, 3) {
            let walk = self.walk(at);
            self.readers[at].walks.push(walk);
        }
        let reader = &mut self.readers[at];
        if reader.walks.is_empty() {
            return self.look_up(at);
        }
        let nth = self.rng.random_range(0..reader.walks.len());
        if reader.walks[nth].step(&reader.txn) {
            let walk = reader.walks.swap_remove(nth);
            self.learn(at, observations(walk));
        }
    }

    fn begin(&mut self) {
        let is_serializable = self.rng.random();
        let isolation = if is_serializable { Isolation::Serializable } else { Isolation::Snapshot };
        let options = TransactionOptions { isolation, read_only: self.rng.random_ratio(1, 4) };
        let txn = self.graph.manager.begin(options).unwrap();
        let first_state = self.states.len() - 1;
        let is_serializable = is_serializable && !options.read_only;
        let walks_max = self.rng.random_range(1..4);
        let (walks, learned) = (Vec::new(), Vec::new());
        self.readers.push(Reader { txn, is_serializable, first_state, walks_max, walks, learned });
    }

    fn range(&mut self) -> IndexRange {
        match self.rng.random() {
            true => IndexRange::Equal(vec![Value::I64(self.rng.random_range(0..5))]),
            false => IndexRange::Between { low: Some((Value::I64(self.rng.random_range(0..5)), true)), high: None },
        }
    }

    /// A new walk for a reader.
    fn walk(&mut self, reader: usize) -> Walk {
        let limit = self.rng.random_range(1..4);
        let state = self.states[self.readers[reader].first_state].clone();
        let range = if self.rng.random() { Some((self.graph.balance, self.range())) } else { None };
        let mut some: Vec<VertexId> = state.vertices.keys().copied().filter(|_| self.rng.random_ratio(2, 3)).collect();
        some.truncate(6);
        match self.rng.random_range(0..8) {
            0 => Walk::Vertices(Scan::new(range, limit)),
            1 => Walk::Edges(Scan::new(range, limit)),
            2 | 3 if !some.is_empty() => {
                let way = [Way::Rows, Way::Numbers, Way::Properties, Way::Columns][self.rng.random_range(0..4)];
                Walk::Values(Values { vertices: some, key: self.graph.balance, way, limit, found: Vec::new() })
            }
            _ => {
                let direction = [Direction::Out, Direction::In, Direction::Both][self.rng.random_range(0..3)];
                let labels = match self.rng.random() {
                    true => LabelFilter::Any,
                    false => LabelFilter::Sets([self.labels[self.rng.random_range(0..2)]].into()),
                };
                Walk::Lists(Expand::new(some, direction, labels, limit))
            }
        }
    }

    /// Reads an index, or all elements at once.
    fn look_up(&mut self, reader: usize) {
        let (range, some) = (self.range(), self.pick(self.indexes.clone().into_iter()));
        let txn = &self.readers[reader].txn;
        let is_answered = matches!(range, IndexRange::Equal(_));
        let usable = txn.indexes().into_iter().filter(|index| is_answered || index.ordered).map(|index| index.id);
        let Some((element, index)) = some.filter(|(_, index)| usable.into_iter().any(|usable| usable == *index)) else {
            if !self.readers[reader].is_serializable {
                self.check_whole(reader);
            }
            return;
        };
        let learned = match element {
            ElementKind::Vertex => {
                let mut found = Vec::new();
                txn.index_vertices(index, &[], &range, Share::ALL, &mut found).unwrap();
                found.sort_unstable();
                Observation::Vertices { range: Some(range), found }
            }
            ElementKind::Edge => {
                let mut found = Vec::new();
                txn.index_edges(index, &[], &range, Share::ALL, &mut found).unwrap();
                found.sort_unstable();
                Observation::Edges { range: Some(range), found }
            }
        };
        self.learn(reader, vec![learned]);
    }

    fn check_whole(&self, reader: usize) {
        let Reader { txn, first_state, .. } = &self.readers[reader];
        check_consistent(txn);
        let state = &self.states[*first_state];
        assert_eq!(BTreeSet::from_iter(vertices(txn)), state.vertices.keys().copied().collect());
        let expected = state.edges.iter().map(|(id, edge)| (*id, edge.source, edge.target)).collect();
        assert_eq!(BTreeSet::from_iter(edges(txn)), expected);
    }

    fn learn(&mut self, reader: usize, learned: Vec<Observation>) {
        self.walked += 1;
        let reader = &mut self.readers[reader];
        let states = &self.states[reader.first_state..];
        // A snapshot sees one state; for another reader, any state from its begin on is correct.
        let states = if reader.is_serializable { states } else { &states[..1] };
        for observation in learned {
            // Two walks that read one list side by side may read it as of two moments; then the transaction does not
            // commit.
            let is_of_one_state = !reader.is_serializable || reader.walks_max == 1;
            let is_explained = !is_of_one_state || states.iter().any(|state| state.explains(&observation));
            assert!(is_explained, "{observation:?} of {:?}", states[0]);
            reader.learned.push(observation);
        }
    }

    fn end(&mut self, reader: Reader) {
        let Reader { txn, is_serializable, first_state, learned, .. } = reader;
        match txn.commit() {
            Ok(_) => {
                let explains_all = |state: &&Rc<State>| learned.iter().all(|observation| state.explains(observation));
                assert!(
                    self.states[first_state..].iter().any(|state| explains_all(&state)),
                    "no state explains {learned:?}"
                );
                self.committed += 1;
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
                assert!(is_serializable, "{error}");
            }
        }
    }
}

#[test]
fn walks_that_rest_between_batches_meet_everything_once() {
    let (mut walked, mut committed) = (0, 0);
    for seed in first_seed(0)..first_seed(0) + case_count(600) {
        let mut world = World::new(seed);
        let history = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            (0..500).for_each(|_| world.step());
            while let Some(reader) = world.readers.pop() {
                world.end(reader);
            }
            check_consistent(&world.graph.begin());
        }));
        if let Err(panic) = history {
            eprintln!("seed {seed}");
            std::panic::resume_unwind(panic);
        }
        walked += world.walked;
        committed += world.committed;
    }
    let enough = 25 * case_count(600);
    assert!(walked as u64 > enough, "{walked} walks of {committed} readers");
    assert!(committed > 0);
}
