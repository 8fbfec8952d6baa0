//! A graph that follows another one: the commits of a random history, redone in a second store while transactions read
//! there, show in every snapshot what the owner had at that commit.

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use common::history::{Dump, History, dump, names, new_store};
use common::recount::check_statistics;
use common::{check_memory, vertices};
use mangrove_graph::{
    EdgeId, ElementId, ElementKind, ErrorKind, GENERATION_MAX, GraphView, KeyId, LabelFilter, LabelSetId, Result,
    Share, TabletId, Value, VertexId,
};
use mangrove_store::restore::Restore;
use mangrove_store::schema::RuleEntry;
use mangrove_store::{Content, Redo, Store, StoreOptions, StoreSizes, Write, WriteCardinality};
use mangrove_txn::{
    CommitLog, Follower, IndexChange, IndexOptions, Isolation, PreparedCommit, RecentOptions, Transaction,
    TransactionManager, TransactionOptions, Watermarks,
};
use parking_lot::Mutex;
use rand::Rng;

type Commits = Arc<Mutex<BTreeMap<u64, Vec<Redo>>>>;

/// A log that keeps the after-images of commits in memory.
#[derive(Debug)]
struct MemoryLog {
    store: Arc<Store>,
    commits: Commits,
    indexes: Arc<Mutex<Vec<IndexChange>>>,
}

#[derive(Debug)]
struct Prepared(Commits, Vec<Redo>);

impl PreparedCommit for Prepared {
    fn hand_over(self: Box<Self>, ts: u64) {
        assert!(self.0.lock().insert(ts, self.1).is_none(), "a commit is handed over once");
    }
}

impl CommitLog for MemoryLog {
    fn prepare(&self, writes: &[Write], txn: u64) -> Result<Box<dyn PreparedCommit>> {
        let mut images = Vec::new();
        self.store.each_redo(writes, txn, &mut |image| images.push(image));
        Ok(Box::new(Prepared(self.commits.clone(), images)))
    }

    fn wait(&self, _ts: u64, watermarks: &dyn Watermarks) -> Result<()> {
        watermarks.set_durable(watermarks.stable());
        Ok(())
    }

    fn change_index(&self, change: &IndexChange, _watermarks: &dyn Watermarks) -> Result<()> {
        self.indexes.lock().push(change.clone());
        Ok(())
    }

    fn change_rules(&self, _rules: &[RuleEntry], _next: u32, _watermarks: &dyn Watermarks) -> Result<()> {
        Ok(())
    }
}

/// An owner whose log can be read.
struct Owner {
    history: History,
    commits: Commits,
    indexes: Arc<Mutex<Vec<IndexChange>>>,
}

impl Owner {
    fn new(seed: u64) -> Self {
        let (commits, indexes) = (Commits::default(), Arc::<Mutex<Vec<IndexChange>>>::default());
        let history = History::with_manager(seed, |store| {
            let log = MemoryLog { store: store.clone(), commits: commits.clone(), indexes: indexes.clone() };
            TransactionManager::with_log(store, RecentOptions::default(), 0, Arc::new(log))
        });
        Owner { history, commits, indexes }
    }
}

fn without_collector(manager: &TransactionManager) {
    manager.settings().gc_workers.store(0, Ordering::Relaxed);
}

fn begin(manager: &TransactionManager) -> Transaction {
    manager.begin(TransactionOptions { isolation: Isolation::Snapshot, read_only: false }).unwrap()
}

/// Returns true if a transaction has expired.
fn is_expired(view: &Transaction) -> bool {
    let counted = view.count_vertices(&LabelFilter::Any, Share::ALL);
    counted.is_err_and(|error| error.kind() == ErrorKind::Expired)
}

/// An empty graph that follows, with the names of the owner.
fn follower() -> (TransactionManager, Follower) {
    let store = new_store();
    names(&store);
    TransactionManager::following(Arc::new(store), RecentOptions::default(), 0)
}

/// A graph that follows from a checkpoint on: the state of the owner now, restored from images of all its pages.
fn follower_from_images(owner: &TransactionManager) -> (TransactionManager, Follower) {
    let held = owner.begin_read().unwrap();
    let (store, at) = (owner.store(), held.begin_ts());
    let fresh = new_store();
    names(&fresh);
    let restore = Restore::new(fresh).to_follow();
    for tablet in (1..=store.tablet_count()).map(TabletId) {
        for page in store.pages_changed_since(tablet, None) {
            restore.tablet(tablet).unwrap().image(store.page_image(page, at).unwrap()).unwrap();
        }
    }
    let (online, next) = store.online_indexes();
    let restored = restore.finish(&online, next, at, 1, &mut |_| ()).unwrap();
    TransactionManager::following(Arc::new(restored.store), RecentOptions::default(), at)
}

#[test]
fn every_snapshot_of_a_follower_is_one_of_the_owner() {
    let (mut kept, mut together) = (0, 0);
    for seed in 0..mangrove_testdata::case_count(12) {
        let mut owner = Owner::new(seed);
        let (manager, mut follower) = follower();
        without_collector(&manager);
        for change in owner.indexes.lock().drain(..) {
            let IndexChange::Created(info) = change else { panic!("{change:?}") };
            follower.create_index(&info).unwrap();
        }
        let mut states = BTreeMap::from([(0, Dump::new())]);
        // Snapshots that are kept while commits are redone, until a commit needs the slot of an element that they see.
        manager.settings().max_snapshot_age_ms.store(1, Ordering::Relaxed);
        let mut held: Vec<Transaction> = Vec::new();
        for _ in 0..120 {
            if let Some((ts, _)) = owner.history.transaction() {
                states.insert(ts, owner.history.now.clone());
            }
            // The follower takes some commits at once, now and then.
            if owner.history.rng.random_ratio(2, 3) {
                continue;
            }
            // Commits are redone together, up to one that is chosen by chance.
            for (ts, images) in std::mem::take(&mut *owner.commits.lock()) {
                let before = follower.applied();
                follower.redo(ts, &images).unwrap();
                assert!(follower.redone() == ts && (follower.applied() == before || follower.applied() < ts));
                together += u64::from(ts > follower.applied() + 1);
                if owner.history.rng.random_ratio(1, 4) {
                    follower.show().unwrap();
                    assert_eq!(follower.applied(), ts);
                }
            }
            follower.show().unwrap();
            let view = manager.begin_read().unwrap();
            assert_eq!(dump(&view), states[&view.begin_ts()], "seed {seed}");
            owner.history.check_look_ups(&view);
            held.push(view);
            held.retain(|view| match is_expired(view) {
                true => false,
                false => {
                    assert_eq!(dump(view), states[&view.begin_ts()], "seed {seed}: after later commits");
                    kept += 1;
                    owner.history.rng.random_ratio(2, 3)
                }
            });
            if owner.history.rng.random_ratio(1, 4) {
                manager.compact();
            }
        }
        drop(held);
        manager.collect_garbage();
        check_memory(manager.store());
        check_statistics(&manager);
    }
    assert!(together > 100, "{together} commits were redone together with others");
    assert!(kept > 100, "{kept} snapshots were compared after later commits");
}

#[test]
fn transactions_of_a_follower_that_was_replaced_begin_again_elsewhere() {
    let mut owner = Owner::new(7);
    let (manager, mut follower) = follower();
    (0..20).for_each(|_| drop(owner.history.transaction()));
    for (ts, images) in std::mem::take(&mut *owner.commits.lock()) {
        follower.apply(ts, &images).unwrap();
    }
    let (reader, writer) = (manager.begin_read().unwrap(), begin(&manager));
    assert!(!is_expired(&reader));
    manager.replaced();
    for error in [
        reader.count_vertices(&LabelFilter::Any, Share::ALL).unwrap_err(),
        writer.commit().unwrap_err(),
        manager.begin_read().unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Expired, "{error}");
        assert!(error.message().contains("loaded the graph again"), "{error}");
    }
}

#[test]
fn a_follower_becomes_the_owner_and_another_one_follows_it() {
    for seed in 100..100 + mangrove_testdata::case_count(6) {
        let mut owner = Owner::new(seed);
        for _ in 0..60 {
            owner.history.transaction();
        }
        owner.commits.lock().clear();
        let (manager, mut follower) = follower_from_images(&owner.history.manager);
        without_collector(&manager);
        for _ in 0..60 {
            owner.history.transaction();
        }
        for (ts, images) in std::mem::take(&mut *owner.commits.lock()) {
            follower.apply(ts, &images).unwrap();
        }
        let refused = begin(&manager).insert_vertex(LabelSetId(0), None).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ReadOnly);
        let log = MemoryLog {
            store: manager.store().clone(),
            commits: owner.commits.clone(),
            indexes: owner.indexes.clone(),
        };
        let at = owner.history.manager.watermark();
        // The owner may have aborted after its last commit.
        assert_eq!(dump(&manager.begin_read().unwrap()), owner.history.now, "seed {seed}");
        let last = follower.applied();
        assert!(last <= at);
        follower.own(Some(Arc::new(log)));
        assert!(!manager.is_following());
        // The history goes on there: every id is given once, and every slot is used or free.
        owner.history.manager = manager.clone();
        let (next, mut second) = follower_from_images(&manager);
        without_collector(&next);
        for _ in 0..60 {
            owner.history.transaction();
        }
        for (ts, images) in std::mem::take(&mut *owner.commits.lock()) {
            second.apply(ts, &images).unwrap();
        }
        assert_eq!(dump(&next.begin_read().unwrap()), owner.history.now, "seed {seed}");
        for graph in [&manager, &next] {
            check_memory(graph.store());
            check_statistics(graph);
        }
        manager.compact();
        let free = manager.store().free_slots();
        let held = manager.store().reserved_slots() - free;
        assert_eq!(held, owner.history.now.len() as u64, "seed {seed}: what has no element is free");
    }
}

/// One slot is used again and again. The follower's collector runs only if a commit needs it.
#[test]
fn a_slot_that_is_wanted_again_is_collected_first() {
    let sizes = StoreSizes { first_page_slots: 1, page_slots_max: 1, ..StoreSizes::default() };
    let store = Arc::new(Store::new(&StoreOptions { tablet_count: 1, sizes, ..StoreOptions::default() }));
    let (labels, ..) = names(&store);
    let commits = Commits::default();
    let log = MemoryLog { store: store.clone(), commits: commits.clone(), indexes: Arc::default() };
    let owner = TransactionManager::with_log(store, RecentOptions::default(), 0, Arc::new(log));
    without_collector(&owner);
    let fresh = Arc::new(Store::new(&StoreOptions { tablet_count: 1, ..StoreOptions::default() }));
    names(&fresh);
    let (manager, mut follower) = TransactionManager::following(fresh, RecentOptions::default(), 0);
    without_collector(&manager);
    for round in 0..u64::from(GENERATION_MAX.min(40)) {
        let txn = begin(&owner);
        let vertex = txn.insert_vertex(labels[0], None).unwrap();
        txn.commit().unwrap();
        assert_eq!((vertex.page(), u64::from(vertex.generation())), (0, round));
        let txn = begin(&owner);
        txn.delete_vertex(vertex).unwrap();
        txn.commit().unwrap();
        owner.collect_garbage();
    }
    // A reader that expires, because the owner does not wait for it.
    manager.settings().max_snapshot_age_ms.store(1, Ordering::Relaxed);
    let reader = manager.begin_read().unwrap();
    for (ts, images) in std::mem::take(&mut *commits.lock()) {
        follower.apply(ts, &images).unwrap();
    }
    assert!(is_expired(&reader));
    drop(reader);
    manager.collect_garbage();
    assert!(vertices(&manager.begin_read().unwrap()).is_empty());
}

/// Commits come while other threads read: no read fails, and each sees a whole commit.
#[test]
fn readers_see_whole_commits_while_others_are_redone() {
    let store = Arc::new(new_store());
    let (labels, edge_labels, keys) = names(&store);
    let commits = Commits::default();
    let log = MemoryLog { store: store.clone(), commits: commits.clone(), indexes: Arc::default() };
    let owner = TransactionManager::with_log(store, RecentOptions::default(), 0, Arc::new(log));
    // Two vertices that always have the same value and one edge between them; commits also add and delete others.
    let txn = begin(&owner);
    let pair = [0, 1].map(|_| txn.insert_vertex(labels[0], None).unwrap());
    txn.insert_edge(pair[0], pair[1], edge_labels[0], None).unwrap();
    txn.commit().unwrap();
    let mut others = Vec::new();
    for round in 0..1_500_i64 {
        let txn = begin(&owner);
        for vertex in pair {
            txn.set_vertex_property(vertex, keys[0], Value::I64(round), WriteCardinality::Single, Vec::new()).unwrap();
        }
        let other = txn.insert_vertex(labels[1], None).unwrap();
        txn.insert_edge(pair[0], other, edge_labels[1], None).unwrap();
        others.push(other);
        if others.len() > 20 {
            txn.delete_vertex(others.remove(0)).unwrap();
        }
        txn.commit().unwrap();
    }
    let (manager, mut follower) = follower();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut reads = 0;
                while !is_over.load(Ordering::Relaxed) || reads == 0 {
                    let view = manager.begin_read().unwrap();
                    if view.begin_ts() < 2 {
                        continue;
                    }
                    let [a, b] = pair.map(|vertex| common::values(&view, vertex, keys[0]));
                    assert_eq!(a, b, "half of a commit is visible");
                    common::check_consistent(&view);
                    reads += 1;
                }
            });
        }
        for (ts, images) in std::mem::take(&mut *commits.lock()) {
            follower.apply(ts, &images).unwrap();
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert_eq!(dump(&manager.begin_read().unwrap()), dump(&owner.begin_read().unwrap()));
}

#[test]
fn commits_that_do_not_fit_are_refused_and_leave_nothing() {
    let (manager, mut follower) = follower();
    let (labels, edges, keys) = names(manager.store());
    let vertex = |n: u64| VertexId::new(TabletId(1), n);
    let insert =
        |n: u64, labels| Redo::Insert { element: ElementId::Vertex(vertex(n)), labels, ends: None, user_id: None };
    let edge = |n: u64, source, target| Redo::Insert {
        element: ElementId::Edge(EdgeId::new(TabletId(1), n)),
        labels: edges[0],
        ends: Some((source, target)),
        user_id: None,
    };
    let property = |n: u64, key| Redo::Property {
        element: ElementId::Vertex(vertex(n)),
        key,
        content: Content::One(Value::I64(1)),
    };
    let delete = |n: u64| Redo::Delete(ElementId::Vertex(vertex(n)));
    follower.apply(1, &[insert(0, labels[0]), property(0, keys[0])]).unwrap();
    let before = dump(&manager.begin_read().unwrap());
    let beyond = VertexId::new(TabletId(99), 0);
    let cases: [(&str, Redo); 9] = [
        ("has an element", insert(0, labels[0])),
        ("another label set", insert(5, labels[1])),
        ("label set without a name", insert(5_000, LabelSetId(77))),
        ("no such vertex", edge(0, vertex(0), vertex(7))),
        ("tablet of its source", edge(0, VertexId::new(TabletId(2), 0), vertex(0))),
        ("deleted and is not there", delete(9)),
        ("is not there", property(9, keys[0])),
        ("key without a name", property(0, KeyId(77))),
        (
            "in no tablet",
            Redo::Insert { element: ElementId::Vertex(beyond), labels: labels[0], ends: None, user_id: None },
        ),
    ];
    for (word, image) in cases {
        let error = follower.apply(2, &[insert(3, labels[0]), image]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Damaged, "{error}");
        assert!(error.to_string().contains(word), "{error}");
        assert_eq!(dump(&manager.begin_read().unwrap()), before, "{word}");
    }
    let error = follower.apply(1, &[insert(3, labels[0])]).unwrap_err();
    assert!(error.to_string().contains("comes after commit 1"), "{error}");
    // What was refused leaves no trace: the same place is free for the commit that comes instead.
    manager.collect_garbage();
    follower.apply(9, &[insert(3, labels[0]), edge(0, vertex(0), vertex(3)), property(3, keys[1])]).unwrap();
    assert_eq!((follower.applied(), dump(&manager.begin_read().unwrap()).len()), (9, 3));
}

#[test]
fn everything_that_changes_a_graph_that_follows_is_refused() {
    let (manager, mut follower) = follower();
    follower.set_owner("ws://db-1:8182");
    let (.., keys) = names(manager.store());
    let refusals = [
        manager
            .create_index(&IndexOptions {
                element: ElementKind::Vertex,
                label: None,
                keys: vec![keys[0]],
                ordered: true,
                unique: false,
            })
            .map(|_| ()),
        manager.bulk_load().map(|_| ()),
        begin(&manager).insert_vertex(LabelSetId(0), None).map(|_| ()),
    ];
    for refusal in refusals {
        let error = refusal.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ReadOnly);
        assert!(error.to_string().contains("send writes to ws://db-1:8182"), "{error}");
    }
    drop(manager.begin_read().unwrap());
    follower.own(None);
    let txn = begin(&manager);
    txn.insert_vertex(LabelSetId(0), None).unwrap();
    assert_eq!(txn.commit().unwrap().timestamp, 1);
}
