//! Images of pages, taken while transactions go on, and the store made of them again.
//!
//! A random history of small transactions runs one after the other. At some moments a snapshot is held and its pages
//! are imaged a few at a time, with commits in between. The graph restored from the newest image of every page and from
//! the changes of later commits must equal the original: elements, ids, properties, adjacency in both directions,
//! indexes. Then history goes on in the restored graph.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use common::history::{Dump, History, Rows, content, dump, element, names, new_store, tablets};
use common::recount::check_statistics;
use common::{check_consistent, check_memory, edges, find, vertices};
use mangrove_graph::{EdgeId, ElementId, GENERATION_MAX, KeyId, LabelSetId, TabletId, UserId, Value, VertexId};
use mangrove_store::image::{PageImage, PageName};
use mangrove_store::restore::{Damage, Restore, Restored};
use mangrove_store::{Content, RecordKind, Store, StoreOptions, StoreSizes};
use mangrove_txn::{RecentOptions, TransactionManager, TransactionOptions};
use rand::Rng;

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

/// The state of a history, and the newest image of every page.
struct Imaged {
    history: History,
    images: BTreeMap<PageName, PageImage>,
    /// The snapshot that the images are of.
    imaged: Option<u64>,
    pages_skipped: usize,
}

impl Imaged {
    fn new(seed: u64) -> Self {
        Imaged { history: History::new(seed), images: BTreeMap::new(), imaged: None, pages_skipped: 0 }
    }

    /// Images the changed pages, with transactions in between. Returns the store restored from the images and the
    /// changes.
    fn checkpoint(&mut self) -> Restored {
        let held = self.history.manager.begin_read().unwrap();
        let at = held.begin_ts();
        let store = self.history.manager.store().clone();
        let mut due: Vec<PageName> = tablets().flat_map(|id| store.pages_changed_since(id, self.imaged)).collect();
        let all: Vec<PageName> = tablets().flat_map(|id| store.pages_changed_since(id, None)).collect();
        self.pages_skipped += all.len() - due.len();
        let mut commits = Vec::new();
        while let Some(name) = due.pop() {
            self.images.insert(name, store.page_image(name, at).unwrap());
            if self.history.rng.random_ratio(1, 3)
                && let Some((ts, before)) = self.history.transaction()
            {
                commits.push((ts, before, self.history.now.clone()));
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
        restore.finish(&online, next_index, self.history.manager.watermark(), 2, &mut |_| ()).unwrap()
    }

    /// Brings a restored store to the state of the other one.
    fn take_over(&mut self, restored: Restored) {
        let (summary, at) = (restored.summary, self.history.manager.watermark());
        let counted = |is_edge| self.history.now.keys().filter(|key| key.0 == is_edge).count() as u64;
        assert_eq!((summary.vertices, summary.edges), (counted(false), counted(true)));
        let manager = TransactionManager::resuming(Arc::new(restored.store), RecentOptions::default(), at);
        manager.settings().gc_workers.store(0, std::sync::atomic::Ordering::Relaxed);
        check_memory(manager.store());
        let view = manager.begin_read().unwrap();
        assert_eq!(dump(&view), self.history.now);
        check_statistics(&manager);
        self.history.check_look_ups(&view);
        drop(view);
        let free = manager.store().free_slots();
        assert_eq!(
            manager.store().reserved_slots() - free,
            self.history.now.len() as u64,
            "what has no element is free"
        );
        self.history.manager = manager;
    }
}

#[test]
fn a_restored_graph_is_the_graph() {
    let seeds = mangrove_testdata::case_count(12);
    let mut skipped = 0;
    for seed in 0..seeds {
        let mut graph = Imaged::new(seed);
        for _ in 0..6 {
            for _ in 0..graph.history.rng.random_range(0..20) {
                graph.history.transaction();
            }
            let restored = graph.checkpoint();
            if graph.history.rng.random_ratio(1, 2) {
                graph.take_over(restored);
            }
        }
        skipped += graph.pages_skipped;
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
    check_damage("and the slot has one", |r| {
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
