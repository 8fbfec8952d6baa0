//! Images of pages, taken while transactions go on, and the store made of them again.
//!
//! A random history of small transactions runs one after the other. At some moments a snapshot is held and its pages
//! are imaged a few at a time, with commits in between. The graph restored from the newest image of every page and from
//! the changes of later commits must equal the original: elements, ids, properties, adjacency in both directions,
//! indexes. Then history goes on in the restored graph.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use common::recount::check_statistics;
use common::{check_consistent, check_memory, edges, find, vertices};
use mangrove_graph::{
    EdgeId, ElementId, ElementKind, GENERATION_MAX, GraphView, IndexRange, KeyId, LabelSetId, Share, TabletId, UserId,
    Value, VertexId,
};
use mangrove_store::image::{PageImage, PageName};
use mangrove_store::restore::{Damage, Restore, Restored};
use mangrove_store::{
    Content, IndexOptions, MultiProperty, MultiValue, RecordKind, Store, StoreOptions, StoreSizes, WriteCardinality,
};
use mangrove_txn::{RecentOptions, Transaction, TransactionManager, TransactionOptions};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

const TABLETS: u16 = 3;

type Rows = BTreeMap<KeyId, Vec<MultiValue>>;

#[derive(Clone, PartialEq, Debug)]
struct Element {
    labels: LabelSetId,
    id: Value,
    ends: Option<(VertexId, VertexId)>,
    properties: Rows,
}

/// Everything that a snapshot shows of the elements, by kind and internal id.
type Dump = BTreeMap<(bool, u64), Element>;

fn dump(view: &dyn GraphView) -> Dump {
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

fn content(values: &[MultiValue]) -> Content {
    match values {
        [] => Content::Absent,
        [one] if one.ordinal == 0 && one.meta.is_empty() => Content::One(one.value.clone()),
        many => Content::Multi(Arc::new(MultiProperty { values: many.to_vec() })),
    }
}

fn element(key: (bool, u64)) -> ElementId {
    if key.0 { ElementId::Edge(EdgeId::from_bits(key.1)) } else { ElementId::Vertex(VertexId::from_bits(key.1)) }
}

/// The changes of a commit, as a log records them.
fn replay(restore: &Restore, ts: u64, before: &Dump, after: &Dump) -> Result<(), Damage> {
    let turn = |key: (bool, u64)| restore.tablet(VertexId::from_bits(key.1).tablet()).unwrap();
    for &key in before.keys().filter(|key| !after.contains_key(key)) {
        turn(key).delete(ts, element(key))?;
    }
    for (&key, now) in after {
        let old = before.get(&key);
        if old.is_none() {
            let bits = VertexId::from_bits(key.1);
            let chosen = UserId::from_value(&now.id).filter(|id| *id != UserId::int(bits.external()));
            match now.ends {
                None => turn(key).vertex(ts, bits, now.labels, chosen.as_ref())?,
                Some(ends) => turn(key).edge(ts, EdgeId::from_bits(key.1), now.labels, ends, chosen.as_ref())?,
            }
        }
        let empty = Rows::new();
        let old = old.map_or(&empty, |old| &old.properties);
        for property in old.keys().chain(now.properties.keys()).collect::<BTreeSet<_>>() {
            let values = now.properties.get(property);
            if old.get(property) != values {
                turn(key).property(ts, element(key), *property, content(values.map_or(&[], Vec::as_slice)))?;
            }
        }
    }
    Ok(())
}

struct History {
    manager: TransactionManager,
    vertex_labels: Vec<LabelSetId>,
    edge_labels: Vec<LabelSetId>,
    keys: Vec<KeyId>,
    rng: SmallRng,
    now: Dump,
    /// Every id that a commit has ever given.
    given: BTreeSet<(bool, u64)>,
    images: BTreeMap<PageName, PageImage>,
    /// The snapshot that the images are of.
    imaged: Option<u64>,
    pages_skipped: usize,
}

fn names(store: &Store) -> (Vec<LabelSetId>, Vec<LabelSetId>, Vec<KeyId>) {
    let labels = |names: &[&str]| names.iter().map(|name| store.catalog().intern_label_text(name)).collect();
    let keys = ["a", "b", "c"].iter().map(|name| store.catalog().intern_key(name)).collect();
    (labels(&["x", "y", "x::y"]), labels(&["e", "f"]), keys)
}

fn new_store() -> Store {
    Store::new(&StoreOptions { tablet_count: TABLETS, ..StoreOptions::default() })
}

fn tablets() -> impl Iterator<Item = TabletId> {
    (1..=TABLETS).map(TabletId)
}

impl History {
    fn new(seed: u64) -> Self {
        let store = new_store();
        let (vertex_labels, edge_labels, keys) = names(&store);
        let manager = TransactionManager::new(Arc::new(store));
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
            images: BTreeMap::new(),
            imaged: None,
            pages_skipped: 0,
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
    fn transaction(&mut self) -> Option<(u64, Dump)> {
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

    /// Images the changed pages, with transactions in between. Returns the store restored from the images and the
    /// changes.
    fn checkpoint(&mut self) -> Restored {
        let held = self.manager.begin_read().unwrap();
        let at = held.begin_ts();
        let store = self.manager.store().clone();
        let mut due: Vec<PageName> = tablets().flat_map(|id| store.pages_changed_since(id, self.imaged)).collect();
        let all: Vec<PageName> = tablets().flat_map(|id| store.pages_changed_since(id, None)).collect();
        self.pages_skipped += all.len() - due.len();
        let mut commits = Vec::new();
        while let Some(name) = due.pop() {
            self.images.insert(name, store.page_image(name, at).unwrap());
            if self.rng.random_ratio(1, 3)
                && let Some((ts, before)) = self.transaction()
            {
                commits.push((ts, before, self.now.clone()));
            }
        }
        drop(held);
        self.imaged = Some(at);
        let (online, next_index) = store.online_indexes();
        let fresh = new_store();
        names(&fresh);
        let restore = Restore::new(fresh);
        for image in self.images.values() {
            restore.tablet(image.name.tablet).unwrap().image(image.clone()).unwrap();
        }
        for (ts, before, after) in &commits {
            replay(&restore, *ts, before, after).unwrap();
        }
        restore.finish(&online, next_index, self.manager.watermark(), 2, &mut |_| ()).unwrap()
    }

    /// Brings a restored store to the state of the other one.
    fn take_over(&mut self, restored: Restored) {
        let (summary, at) = (restored.summary, self.manager.watermark());
        let counted = |is_edge| self.now.keys().filter(|key| key.0 == is_edge).count() as u64;
        assert_eq!((summary.vertices, summary.edges), (counted(false), counted(true)));
        let manager = TransactionManager::resuming(Arc::new(restored.store), RecentOptions::default(), at);
        manager.settings().gc_workers.store(0, std::sync::atomic::Ordering::Relaxed);
        check_memory(manager.store());
        let view = manager.begin_read().unwrap();
        assert_eq!(dump(&view), self.now);
        check_statistics(&manager);
        self.check_look_ups(&view);
        drop(view);
        let free = manager.store().free_slots();
        assert_eq!(manager.store().reserved_slots() - free, self.now.len() as u64, "what has no element is free");
        self.manager = manager;
    }

    fn check_look_ups(&self, view: &Transaction) {
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

#[test]
fn a_restored_graph_is_the_graph() {
    let seeds = mangrove_testdata::case_count(12);
    let mut skipped = 0;
    for seed in 0..seeds {
        let mut history = History::new(seed);
        for _ in 0..6 {
            for _ in 0..history.rng.random_range(0..20) {
                history.transaction();
            }
            let restored = history.checkpoint();
            if history.rng.random_ratio(1, 2) {
                history.take_over(restored);
            }
        }
        skipped += history.pages_skipped;
    }
    assert!(skipped > 0, "pages without changes are not imaged again");
}

#[test]
fn pages_that_only_the_log_knows_grow_as_needed() {
    let store = new_store();
    let (labels, edge_labels, keys) = names(&store);
    let restore = Restore::new(store);
    let vertex = |n: u64| VertexId::new(TabletId(2), n);
    let mut turn = restore.tablet(TabletId(2)).unwrap();
    for n in [3, 1_023, 5_000] {
        turn.vertex(7, vertex(n), labels[0], (n == 3).then(|| UserId::from("a chosen name")).as_ref()).unwrap();
        turn.property(7, ElementId::Vertex(vertex(n)), keys[0], Content::One(Value::I64(n as i64))).unwrap();
    }
    turn.edge(8, EdgeId::new(TabletId(2), 0), edge_labels[0], (vertex(3), vertex(5_000)), None).unwrap();
    turn.edge(8, EdgeId::new(TabletId(2), 200), edge_labels[0], (vertex(3), vertex(3)), None).unwrap();
    drop(turn);
    let store = restore.finish(&[], 0, 8, 1, &mut |_| ()).unwrap().store;
    assert_eq!(store.pages_changed_since(TabletId(2), Some(6)).len(), 3);
    assert_eq!(store.pages_changed_since(TabletId(2), Some(7)).len(), 1);
    let manager = TransactionManager::resuming(Arc::new(store), RecentOptions::default(), 8);
    let view = manager.begin_read().unwrap();
    assert_eq!(view.begin_ts(), 8);
    check_consistent(&view);
    assert_eq!((vertices(&view).len(), edges(&view).len()), (3, 2));
    assert_eq!(find(&view, "a chosen name"), Some(vertex(3)));
    assert_eq!(common::values(&view, vertex(3), keys[0]), [Value::I64(3)]);
    drop(view);
    // The slots below those that the log named were always free; those on the lowest page are taken first.
    let txn = manager.begin(Default::default()).unwrap();
    let new = txn.insert_vertex(labels[0], None).unwrap();
    assert_eq!((new.page(), new.generation()), (0, 1));
    assert!(![3, 1_023].contains(&new.offset()), "{new:?} is a vertex that was restored");
    assert_eq!(txn.commit().unwrap().timestamp, 9);
}

/// An image that `put` damages must be refused, with these words.
#[track_caller]
fn check_damage(word: &str, put: impl Fn(&Restore) -> Result<(), Damage>) {
    let store = new_store();
    names(&store);
    let restore = Restore::new(store);
    let outcome = put(&restore).and_then(|()| restore.finish(&[], 0, 9, 1, &mut |_| ()).map(|_| ()));
    let text = outcome.unwrap_err().to_string();
    assert!(text.contains(word), "{text}");
    assert!(text.contains("tablet 1"), "{text}");
}

#[test]
fn damage_is_found_and_named() {
    let labels = LabelSetId(0);
    let vertex = |n: u64| VertexId::new(TabletId(1), n);
    let turn = |restore: &Restore,
                work: &dyn Fn(&mut mangrove_store::restore::TabletRestore<'_>) -> Result<(), Damage>| {
        work(&mut restore.tablet(TabletId(1)).unwrap())
    };
    check_damage("no such element", |r| turn(r, &|t| t.delete(1, ElementId::Vertex(vertex(0)))));
    check_damage("no such element", |r| {
        turn(r, &|t| {
            t.vertex(1, vertex(0).with_generation(1), labels, None)?;
            t.property(1, ElementId::Vertex(vertex(0)), KeyId(0), Content::One(Value::I64(1)))
        })
    });
    check_damage("has one or a later one", |r| {
        turn(r, &|t| t.vertex(1, vertex(0), labels, None).and_then(|()| t.vertex(2, vertex(0), labels, None)))
    });
    check_damage("label set 1", |r| {
        turn(r, &|t| t.vertex(1, vertex(0), labels, None).and_then(|()| t.vertex(2, vertex(1), LabelSetId(1), None)))
    });
    check_damage("label set 77", |r| turn(r, &|t| t.vertex(1, vertex(0), LabelSetId(77), None)));
    check_damage("no such vertex", |r| {
        turn(r, &|t| {
            t.vertex(1, vertex(0), labels, None)?;
            t.edge(1, EdgeId::new(TabletId(1), 0), labels, (vertex(0), vertex(1)), None)
        })
    });
    check_damage("the id 5", |r| {
        turn(r, &|t| {
            t.vertex(1, vertex(0), labels, Some(&UserId::int(5)))?;
            t.vertex(1, vertex(1), labels, Some(&UserId::int(5)))
        })
    });
    check_damage("is that of", |r| {
        turn(r, &|t| {
            t.vertex(1, vertex(0), labels, None)?;
            t.vertex(1, vertex(1), labels, Some(&UserId::int(vertex(0).external())))
        })
    });
}

/// The version words and generations of a graph, and its free slots.
fn words_and_places(manager: &TransactionManager) -> (u64, u64) {
    manager.compact();
    let store = manager.store();
    check_memory(store);
    (store.memory().rows[RecordKind::Version as usize].bytes, store.free_slots())
}

/// A slot has a number of generations, after which it stays empty. Its page loses its version words like any other.
#[test]
fn pages_with_places_that_are_used_up_are_settled() {
    const SLOTS: u64 = 8;
    let sizes = StoreSizes { page_slots_max: SLOTS as u32, ..StoreSizes::default() };
    let options = StoreOptions { tablet_count: 1, sizes, ..StoreOptions::default() };
    let store = Store::new(&options);
    let (vertex_labels, edge_labels, _) = names(&store);
    let manager = TransactionManager::new(Arc::new(store));
    manager.settings().gc_workers.store(0, std::sync::atomic::Ordering::Relaxed);
    let begin = || manager.begin(TransactionOptions::default()).unwrap();
    // One vertex stays, beside slots that are used up.
    let txn = begin();
    let stays = txn.insert_vertex(vertex_labels[0], None).unwrap();
    txn.commit().unwrap();
    for _ in 0..GENERATION_MAX {
        let txn = begin();
        let new: Vec<_> = (1..SLOTS).map(|_| txn.insert_vertex(vertex_labels[0], None).unwrap()).collect();
        assert!(new.iter().all(|vertex| vertex.page() == 0));
        txn.finish_statement().unwrap();
        for target in 0..SLOTS as usize {
            txn.insert_edge(stays, *new.get(target).unwrap_or(&stays), edge_labels[0], None).unwrap();
        }
        txn.commit().unwrap();
        let txn = begin();
        edges(&txn).iter().for_each(|&(edge, ..)| txn.delete_edge(edge).unwrap());
        txn.finish_statement().unwrap();
        new.iter().for_each(|vertex| txn.delete_vertex(*vertex).unwrap());
        txn.commit().unwrap();
        manager.compact();
    }
    // The last generation of all slots: after it each of them is used up.
    let txn = begin();
    let last: Vec<_> = (1..SLOTS).map(|_| txn.insert_vertex(vertex_labels[0], None).unwrap()).collect();
    let links: Vec<_> = (0..SLOTS).map(|_| txn.insert_edge(stays, stays, edge_labels[0], None).unwrap()).collect();
    txn.commit().unwrap();
    assert!(last.iter().all(|vertex| (vertex.page(), vertex.generation()) == (0, GENERATION_MAX)));
    let txn = begin();
    last.iter().for_each(|vertex| txn.delete_vertex(*vertex).unwrap());
    links.iter().for_each(|edge| txn.delete_edge(*edge).unwrap());
    txn.commit().unwrap();
    // Two bytes of generation and a bit for each slot, of two pages.
    let settled = 2 * (2 * SLOTS + 128);
    assert_eq!(words_and_places(&manager), (settled, 0));

    let fresh = Store::new(&options);
    names(&fresh);
    let restore = Restore::new(fresh);
    for name in manager.store().pages_changed_since(TabletId(1), None) {
        let image = manager.store().page_image(name, manager.watermark()).unwrap();
        restore.tablet(TabletId(1)).unwrap().image(image).unwrap();
    }
    let restored = restore.finish(&[], 0, manager.watermark(), 1, &mut |_| ()).unwrap().store;
    let again = TransactionManager::resuming(Arc::new(restored), RecentOptions::default(), manager.watermark());
    again.settings().gc_workers.store(0, std::sync::atomic::Ordering::Relaxed);
    assert_eq!(words_and_places(&again), (settled, 0));
    // New elements go to other pages, and the remaining ones can be deleted.
    let txn = again.begin(TransactionOptions::default()).unwrap();
    assert_ne!(txn.insert_vertex(vertex_labels[0], None).unwrap().page(), 0);
    txn.delete_vertex(stays).unwrap();
    txn.commit().unwrap();
    check_consistent(&again.begin_read().unwrap());
    let (_, free) = words_and_places(&again);
    assert_eq!(free, 1, "the place of the one that stayed has all its other generations");
    let txn = again.begin(TransactionOptions::default()).unwrap();
    assert_eq!(txn.insert_vertex(vertex_labels[0], None).unwrap().page(), 0);
}
