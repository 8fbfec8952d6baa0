//! A random history of small transactions, one after the other, and everything that a snapshot shows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mangrove_graph::{
    EdgeId, ElementId, ElementKind, GraphView, IndexRange, KeyId, LabelSetId, Share, TabletId, UserId, Value, VertexId,
};
use mangrove_store::{Content, IndexOptions, MultiProperty, MultiValue, Store, StoreOptions, WriteCardinality};
use mangrove_txn::{Transaction, TransactionManager};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::{check_consistent, edges, find, vertices};

pub const TABLETS: u16 = 3;

pub type Rows = BTreeMap<KeyId, Vec<MultiValue>>;

#[derive(Clone, PartialEq, Debug)]
pub struct Element {
    pub labels: LabelSetId,
    pub id: Value,
    pub ends: Option<(VertexId, VertexId)>,
    pub properties: Rows,
}

/// Everything that a snapshot shows of the elements, by kind and internal id.
pub type Dump = BTreeMap<(bool, u64), Element>;

pub fn dump(view: &dyn GraphView) -> Dump {
    check_consistent(view);
    let mut dump = Dump::new();
    let (ids, all_edges) = (vertices(view), edges(view));
    let edge_ids: Vec<EdgeId> = all_edges.iter().map(|&(edge, ..)| edge).collect();
    let (mut labels, mut names, mut rows) = (Vec::new(), Vec::new(), Vec::new());
    view.vertex_labels(&ids, &mut labels).unwrap();
    view.vertex_user_ids(&ids, &mut names).unwrap();
    view.vertex_properties(&ids, None, &mut rows).unwrap();
    for (row, id) in ids.iter().enumerate() {
        let properties = Rows::new();
        let element = Element { labels: labels[row], id: names[row].clone(), ends: None, properties };
        dump.insert((false, id.to_bits()), element);
    }
    let mut add = |key: (bool, u64), row: mangrove_graph::PropertyRow| {
        let value = MultiValue { ordinal: row.ordinal, value: row.value, meta: row.meta };
        dump.get_mut(&key).unwrap().properties.entry(row.key).or_default().push(value);
    };
    for row in rows {
        add((false, ids[row.row as usize].to_bits()), row);
    }
    let (mut labels, mut names, mut rows) = (Vec::new(), Vec::new(), Vec::new());
    view.edge_labels(&edge_ids, &mut labels).unwrap();
    view.edge_user_ids(&edge_ids, &mut names).unwrap();
    view.edge_properties(&edge_ids, None, &mut rows).unwrap();
    for (row, &(id, source, target)) in all_edges.iter().enumerate() {
        let (ends, properties) = (Some((source, target)), Rows::new());
        dump.insert((true, id.to_bits()), Element { labels: labels[row], id: names[row].clone(), ends, properties });
    }
    for row in rows {
        let key = (true, edge_ids[row.row as usize].to_bits());
        let value = MultiValue { ordinal: row.ordinal, value: row.value, meta: row.meta };
        dump.get_mut(&key).unwrap().properties.entry(row.key).or_default().push(value);
    }
    dump
}

pub fn content(values: &[MultiValue]) -> Content {
    match values {
        [] => Content::Absent,
        [one] if one.ordinal == 0 && one.meta.is_empty() => Content::One(one.value.clone()),
        many => Content::Multi(Arc::new(MultiProperty { values: many.to_vec() })),
    }
}

pub fn element(key: (bool, u64)) -> ElementId {
    if key.0 { ElementId::Edge(EdgeId::from_bits(key.1)) } else { ElementId::Vertex(VertexId::from_bits(key.1)) }
}

/// A graph that random transactions change.
pub struct History {
    pub manager: TransactionManager,
    vertex_labels: Vec<LabelSetId>,
    edge_labels: Vec<LabelSetId>,
    pub keys: Vec<KeyId>,
    pub rng: SmallRng,
    /// The graph after the last commit.
    pub now: Dump,
    /// Every id that a commit has ever given.
    given: BTreeSet<(bool, u64)>,
}

pub fn names(store: &Store) -> (Vec<LabelSetId>, Vec<LabelSetId>, Vec<KeyId>) {
    let labels = |names: &[&str]| names.iter().map(|name| store.catalog().intern_label_text(name)).collect();
    let keys = ["a", "b", "c"].iter().map(|name| store.catalog().intern_key(name)).collect();
    (labels(&["x", "y", "x::y"]), labels(&["e", "f"]), keys)
}

pub fn new_store() -> Store {
    Store::new(&StoreOptions { tablet_count: TABLETS, ..StoreOptions::default() })
}

pub fn tablets() -> impl Iterator<Item = TabletId> {
    (1..=TABLETS).map(TabletId)
}

impl History {
    pub fn new(seed: u64) -> Self {
        Self::with_manager(seed, TransactionManager::new)
    }

    /// A history of the manager that a new store is given to.
    pub fn with_manager(seed: u64, manager: impl FnOnce(Arc<Store>) -> TransactionManager) -> Self {
        let store = new_store();
        let (vertex_labels, edge_labels, keys) = names(&store);
        let manager = manager(Arc::new(store));
        manager.settings().gc_workers.store(0, std::sync::atomic::Ordering::Relaxed);
        for element in [ElementKind::Vertex, ElementKind::Edge] {
            for (key, ordered) in [(keys[0], true), (keys[1], false)] {
                let options = IndexOptions { element, label: None, keys: vec![key], ordered, unique: false };
                manager.create_index(&options).unwrap();
            }
        }
        History {
            manager,
            vertex_labels,
            edge_labels,
            keys,
            rng: SmallRng::seed_from_u64(seed),
            now: Dump::new(),
            given: BTreeSet::new(),
        }
    }

    fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.rng.random_range(0..items.len())]
    }

    fn value(&mut self) -> Value {
        match self.rng.random_range(0..6) {
            0 => Value::Bool(true),
            1 => Value::I32(self.rng.random_range(0..9)),
            2 | 3 => Value::I64(self.rng.random_range(0..9)),
            4 => Value::F64(0.5),
            _ => Value::from("a string too long for a cell".repeat(self.rng.random_range(1..3))),
        }
    }

    fn operation(&mut self, txn: &Transaction) -> mangrove_graph::Result<()> {
        let known: Vec<VertexId> = vertices(txn);
        let all_edges: Vec<EdgeId> = edges(txn).iter().map(|&(edge, ..)| edge).collect();
        let key = self.pick(&self.keys.clone());
        match self.rng.random_range(0..20) {
            0..5 => {
                let labels = self.pick(&self.vertex_labels.clone());
                let id = match self.rng.random_range(0..4) {
                    0 => Some(UserId::int(self.rng.random_range(0..50))),
                    1 => Some(UserId::from(&*format!("name of vertex {}", self.rng.random_range(0..50)))),
                    _ => None,
                };
                txn.insert_vertex(labels, id).map(|_| ())
            }
            _ if known.is_empty() => Ok(()),
            5..10 => {
                let (source, target, label) = (self.pick(&known), self.pick(&known), self.edge_labels[0]);
                let label = if self.rng.random_ratio(1, 4) { self.edge_labels[1] } else { label };
                let id = self.rng.random_ratio(1, 5).then(|| UserId::int(self.rng.random_range(0..50)));
                txn.insert_edge(source, target, label, id).map(|_| ())
            }
            10..15 => {
                let cardinality = self.pick(&[
                    WriteCardinality::Single,
                    WriteCardinality::Single,
                    WriteCardinality::List,
                    WriteCardinality::Set,
                ]);
                let meta = if self.rng.random_ratio(1, 4) { vec![(self.keys[2], self.value())] } else { vec![] };
                let value = self.value();
                txn.set_vertex_property(self.pick(&known), key, value, cardinality, meta)
            }
            15 => txn.remove_vertex_property(self.pick(&known), key, None),
            16 => txn.delete_vertex(self.pick(&known)),
            _ if all_edges.is_empty() => Ok(()),
            17 => {
                let value = self.value();
                txn.set_edge_property(self.pick(&all_edges), key, value)
            }
            18 => txn.remove_edge_property(self.pick(&all_edges), key),
            _ => txn.delete_edge(self.pick(&all_edges)),
        }
    }

    /// One transaction. Returns its commit timestamp and the state of the graph before it.
    pub fn transaction(&mut self) -> Option<(u64, Dump)> {
        let txn = self.manager.begin(Default::default()).unwrap();
        for _ in 0..self.rng.random_range(1..12) {
            // A duplicate id changes nothing, and there is no other transaction to conflict with.
            let _ = self.operation(&txn);
            txn.finish_statement().unwrap();
        }
        if self.rng.random_ratio(1, 5) {
            txn.rollback();
            return None;
        }
        let ts = txn.commit().unwrap().timestamp;
        if self.rng.random_ratio(1, 3) {
            self.manager.compact();
        }
        let before = std::mem::replace(&mut self.now, dump(&self.manager.begin_read().unwrap()));
        for key in self.now.keys().filter(|key| !before.contains_key(key)) {
            assert!(self.given.insert(*key), "{key:?} is given twice");
        }
        Some((ts, before))
    }

    /// Finds every vertex by its id, and elements by the values that indexes cover.
    pub fn check_look_ups(&self, view: &Transaction) {
        for (&(is_edge, bits), element) in &self.now {
            let id = UserId::from_value(&element.id).unwrap();
            if !is_edge {
                assert_eq!(find(view, id), Some(VertexId::from_bits(bits)));
            }
        }
        let indexes = view.indexes();
        assert_eq!(indexes.len(), 4);
        for index in &indexes {
            for number in 0..9 {
                let range = IndexRange::Equal(vec![Value::I64(number)]);
                let (mut found, mut found_edges) = (Vec::new(), Vec::new());
                match index.element {
                    ElementKind::Vertex => view.index_vertices(index.id, &[], &range, Share::ALL, &mut found).unwrap(),
                    ElementKind::Edge => view.index_edges(index.id, &[], &range, Share::ALL, &mut found_edges).unwrap(),
                }
                let has = |values: &Vec<MultiValue>| {
                    values.iter().any(|v| mangrove_graph::compare::equal(&v.value, &Value::I64(number)))
                };
                let is_edge = index.element == ElementKind::Edge;
                let expected =
                    |e: &&Element| e.ends.is_some() == is_edge && e.properties.get(&index.keys[0]).is_some_and(has);
                assert_eq!(found.len() + found_edges.len(), self.now.values().filter(expected).count());
            }
        }
    }
}
