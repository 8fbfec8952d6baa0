//! The feed of random histories: replayed into an empty graph, resumed at every position, beside commits that are being
//! made, over directories and homes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mangrove_graph::{EdgeId, GraphView, LabelFilter, PropertyRow, ScanCursor, Share, Value, VertexId};
use mangrove_store::WriteCardinality;
use mangrove_testdata::case_count;
use mangrove_txn::{Isolation, Transaction, TransactionManager, TransactionOptions};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use rand::Rng;

use super::*;
use crate::codec::tests::values;
use crate::disk::SimDisk;
use crate::durable::{Durable, DurableOptions};
use crate::durable_home::{DurableHome, DurableHomeOptions};
use crate::home::MemoryHome;
use crate::log::LogOptions;
use crate::states::Retention;
use crate::stream::log::ObjectLogOptions;
use crate::testing::{Actor, new_graph, quiet};

fn options(feed: FeedContent, keep_bytes: u64) -> DurableOptions {
    DurableOptions {
        tablet_count: 3,
        log: LogOptions {
            segment_bytes_min: 16 << 10,
            segment_bytes_max: 64 << 10,
            prepare_ahead: false,
            feed,
            keep_bytes,
            ..LogOptions::default()
        },
        checkpoint_log_bytes: Some(0),
        recovery_threads: 1,
        ..DurableOptions::default()
    }
}

const EVERYTHING: u64 = 1 << 40;

fn open(disk: &SimDisk, feed: FeedContent) -> Durable {
    let durable = Durable::open(Arc::new(disk.clone()), &options(feed, EVERYTHING), &|_| ()).unwrap();
    quiet(durable.manager());
    durable
}

/// The values under a key, each with its meta-properties, as text: values need not equal themselves.
type Values = Vec<(String, Vec<(String, String)>)>;

fn content_text(content: &Content, catalog: &Catalog) -> Values {
    match content {
        Content::Absent => Vec::new(),
        Content::One(value) => vec![(format!("{value:?}"), Vec::new())],
        Content::Multi(multi) => multi
            .values
            .iter()
            .map(|one| {
                let meta = one.meta.iter().map(|(key, value)| (catalog.key_name(*key).into(), format!("{value:?}")));
                (format!("{:?}", one.value), meta.collect())
            })
            .collect(),
    }
}

/// An element as clients see it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Shown {
    labels: String,
    ends: Option<(String, String)>,
    values: BTreeMap<String, Values>,
}

/// All elements, by kind and id.
type Picture = BTreeMap<(bool, String), Shown>;

/// The labels of a set. Catalogs may have them in different orders.
fn labels_text(catalog: &Catalog, set: LabelSetId) -> String {
    let mut names: Vec<_> = catalog.labels_of(set).into_iter().map(|label| catalog.label_name(label)).collect();
    names.sort_unstable();
    names.join(" ")
}

fn id_text(id: &UserId) -> String {
    format!("{:?}", id.to_value())
}

fn picture(view: &dyn GraphView) -> Picture {
    let (mut vertices, mut cursor) = (Vec::new(), ScanCursor::default());
    while !view.scan_vertices(&LabelFilter::Any, Share::ALL, &mut cursor, 1_000, &mut vertices).unwrap() {}
    let (mut edges, mut cursor) = (Vec::new(), ScanCursor::default());
    while !view.scan_edges(&LabelFilter::Any, Share::ALL, &mut cursor, 1_000, &mut edges).unwrap() {}
    let mut all = Picture::new();
    let (mut ids, mut labels, mut rows) = (Vec::new(), Vec::new(), Vec::new());
    view.vertex_user_ids(&vertices, &mut ids).unwrap();
    view.vertex_labels(&vertices, &mut labels).unwrap();
    view.vertex_properties(&vertices, None, &mut rows).unwrap();
    put_all(view, false, &ids, &labels, &[], &rows, &mut all);
    let (mut sources, mut targets) = (Vec::new(), Vec::new());
    view.edge_ends(&edges, &mut sources, &mut targets).unwrap();
    let (mut source_ids, mut target_ids) = (Vec::new(), Vec::new());
    view.vertex_user_ids(&sources, &mut source_ids).unwrap();
    view.vertex_user_ids(&targets, &mut target_ids).unwrap();
    let text = |value: &Value| format!("{value:?}");
    let ends: Vec<_> = source_ids.iter().zip(&target_ids).map(|(s, t)| (text(s), text(t))).collect();
    let (mut ids, mut labels, mut rows) = (Vec::new(), Vec::new(), Vec::new());
    view.edge_user_ids(&edges, &mut ids).unwrap();
    view.edge_labels(&edges, &mut labels).unwrap();
    view.edge_properties(&edges, None, &mut rows).unwrap();
    put_all(view, true, &ids, &labels, &ends, &rows, &mut all);
    all
}

fn put_all(
    view: &dyn GraphView,
    is_edge: bool,
    ids: &[Value],
    labels: &[LabelSetId],
    ends: &[(String, String)],
    rows: &[PropertyRow],
    all: &mut Picture,
) {
    let key_of = |row: usize| (is_edge, format!("{:?}", ids[row]));
    for row in 0..ids.len() {
        let labels = labels_text(view.catalog(), labels[row]);
        let shown = Shown { labels, ends: ends.get(row).cloned(), values: BTreeMap::new() };
        assert!(all.insert(key_of(row), shown).is_none(), "two elements have one id");
    }
    for row in rows {
        let name = |key: KeyId| view.catalog().key_name(key).to_string();
        let meta = row.meta.iter().map(|(key, value)| (name(*key), format!("{value:?}"))).collect();
        let shown = all.get_mut(&key_of(row.row as usize)).unwrap();
        shown.values.entry(name(row.key)).or_default().push((format!("{:?}", row.value), meta));
    }
}

/// A graph into which a feed is replayed, and a model beside it.
struct Replica {
    manager: TransactionManager,
    vertices: BTreeMap<String, VertexId>,
    edges: BTreeMap<String, EdgeId>,
    /// What the elements were before the commit that is being replayed.
    model: Picture,
    changes: Vec<FeedChange>,
    /// The elements that it has inserted so far.
    inserted: BTreeSet<(bool, String)>,
    /// True if the feed has the values before.
    is_full: bool,
}

impl Replica {
    fn new(is_full: bool) -> Self {
        let (vertices, edges, model, inserted) = Default::default();
        Replica { manager: new_graph(), vertices, edges, model, changes: Vec::new(), inserted, is_full }
    }

    fn apply(&mut self, event: FeedEvent, catalog: &Catalog) {
        assert_eq!(event.at.n, self.changes.len() as u64 + 1, "{event:?}");
        match event.what {
            FeedEventKind::Change(change) => self.changes.push(*change),
            FeedEventKind::Commit { changes } => {
                assert_eq!(changes, self.changes.len() as u64);
                let txn = self.manager.begin(Default::default()).unwrap();
                for change in std::mem::take(&mut self.changes) {
                    self.check_before(&change, catalog);
                    self.replay(&txn, &change, catalog);
                    txn.finish_statement().unwrap();
                }
                txn.commit().unwrap();
                self.inserted.clear();
                self.model = picture(&self.manager.begin_read().unwrap());
            }
        }
    }

    /// Compares what a change says of its element before the commit with the model.
    fn check_before(&mut self, change: &FeedChange, catalog: &Catalog) {
        let element = (change.element == ElementKind::Edge, id_text(&change.id));
        if change.change == FeedChangeKind::Insert {
            self.inserted.insert(element);
            return;
        }
        // A deleted element and a new one may have the same id in one commit.
        let old = self.model.get(&element).filter(|_| !self.inserted.contains(&element));
        assert!(old.is_none_or(|old| old.labels == labels_text(catalog, change.labels)), "{change:?} of {old:?}");
        assert_eq!(old.is_none(), self.inserted.contains(&element), "{change:?}");
        let old = old.filter(|_| self.is_full).map(|old| old.values.clone()).unwrap_or_default();
        let of = |key: KeyId| old.get(&*catalog.key_name(key)).cloned().unwrap_or_default();
        match &change.change {
            FeedChangeKind::Insert => {}
            FeedChangeKind::Set { key, before, .. } | FeedChangeKind::Unset { key, before } => {
                assert_eq!(content_text(before, catalog), of(*key), "{change:?}");
            }
            FeedChangeKind::Delete { before } => {
                let texts = before
                    .iter()
                    .map(|(key, content)| (catalog.key_name(*key).to_string(), content_text(content, catalog)));
                assert_eq!(texts.collect::<BTreeMap<_, _>>(), old, "{change:?}");
            }
        }
    }

    fn replay(&mut self, txn: &Transaction, change: &FeedChange, theirs: &Catalog) {
        let own = self.manager.store().catalog();
        let key = |key: KeyId| own.intern_key(&theirs.key_name(key));
        let labels = || own.intern_label_text(&theirs.label_set_name(change.labels));
        let id = id_text(&change.id);
        match (change.element, &change.change) {
            (ElementKind::Vertex, FeedChangeKind::Insert) => {
                let vertex = txn.insert_vertex(labels(), Some(change.id.clone())).unwrap();
                self.vertices.insert(id, vertex);
            }
            (ElementKind::Edge, FeedChangeKind::Insert) => {
                let (source, target) = change.ends.as_ref().unwrap();
                let [source, target] = [source, target].map(|end| {
                    let found = self.vertices.get(&id_text(end));
                    *found.unwrap_or_else(|| panic!("{end:?} of {change:?} is not there"))
                });
                let edge = txn.insert_edge(source, target, labels(), Some(change.id.clone())).unwrap();
                self.edges.insert(id, edge);
            }
            (ElementKind::Vertex, FeedChangeKind::Delete { .. }) => {
                txn.delete_vertex(self.vertices.remove(&id).unwrap()).unwrap();
            }
            (ElementKind::Edge, FeedChangeKind::Delete { .. }) => {
                // Its vertex may have been deleted before it, and has taken it along.
                let _ = txn.delete_edge(self.edges.remove(&id).unwrap());
            }
            (ElementKind::Vertex, FeedChangeKind::Unset { key: unset, .. }) => {
                txn.remove_vertex_property(self.vertices[&id], key(*unset), None).unwrap();
            }
            (ElementKind::Edge, FeedChangeKind::Unset { key: unset, .. }) => {
                txn.remove_edge_property(self.edges[&id], key(*unset)).unwrap();
            }
            (ElementKind::Edge, FeedChangeKind::Set { key: set, after, .. }) => {
                let Content::One(value) = after else { panic!("an edge has several values: {change:?}") };
                txn.set_edge_property(self.edges[&id], key(*set), value.clone()).unwrap();
            }
            (ElementKind::Vertex, FeedChangeKind::Set { key: set, after, .. }) => {
                let (vertex, set) = (self.vertices[&id], key(*set));
                match after {
                    Content::Absent => panic!("nothing is set: {change:?}"),
                    Content::One(value) => {
                        let single = WriteCardinality::Single;
                        txn.set_vertex_property(vertex, set, value.clone(), single, Vec::new()).unwrap();
                    }
                    Content::Multi(multi) => {
                        txn.remove_vertex_property(vertex, set, None).unwrap();
                        for one in &multi.values {
                            txn.finish_statement().unwrap();
                            let meta = one.meta.iter().map(|(name, value)| (key(*name), value.clone())).collect();
                            let list = WriteCardinality::List;
                            txn.set_vertex_property(vertex, set, one.value.clone(), list, meta).unwrap();
                        }
                    }
                }
            }
        }
    }
}

/// A client that runs random transactions, and at times sets a value of any kind.
struct Writer {
    actor: Actor,
    values: TestRunner,
}

impl Writer {
    fn new(seed: u64) -> Self {
        Writer { actor: Actor::new(seed), values: TestRunner::deterministic() }
    }

    fn write(&mut self, manager: &TransactionManager) {
        if self.actor.rng.random_ratio(1, 4) {
            let txn = manager.begin(Default::default()).unwrap();
            let (mut found, mut cursor) = (Vec::new(), ScanCursor::default());
            while !txn.scan_vertices(&LabelFilter::Any, Share::ALL, &mut cursor, 100, &mut found).unwrap() {}
            if found.is_empty() {
                return;
            }
            let vertex = found[self.actor.rng.random_range(0..found.len())];
            let mut value = || values().new_tree(&mut self.values).unwrap().current();
            let (key, meta) = (txn.store().catalog().intern_key("any"), txn.store().catalog().intern_key("meta"));
            let cardinality = [WriteCardinality::Single, WriteCardinality::List][self.actor.rng.random_range(0..2)];
            txn.set_vertex_property(vertex, key, value(), cardinality, vec![(meta, value())]).unwrap();
            txn.finish_statement().unwrap();
            txn.commit().unwrap();
        } else if let Some(outcome) = self.actor.transaction(manager) {
            outcome.unwrap();
        }
    }
}

/// All events that are there.
fn rest(feed: &mut Feed) -> Vec<FeedEvent> {
    std::iter::from_fn(|| feed.next().unwrap()).collect()
}

/// Replays a feed, and compares the replica with the graph.
#[track_caller]
fn check_replay(mut feed: Feed, graph: &TransactionManager, is_full: bool) -> Vec<FeedEvent> {
    let events = rest(&mut feed);
    let mut replica = Replica::new(is_full);
    for event in &events {
        replica.apply(event.clone(), feed.catalog());
    }
    let (expected, found) = (picture(&graph.begin_read().unwrap()), picture(&replica.manager.begin_read().unwrap()));
    assert_eq!(found, expected);
    assert!(events.is_sorted_by(|a, b| a.at < b.at), "positions ascend");
    events
}

#[test]
fn replaying_the_feed_of_a_history_into_an_empty_graph_gives_the_graph() {
    for seed in 0..case_count(12) {
        for feed in [FeedContent::After, FeedContent::Full] {
            let (mut disk, mut writer) = (SimDisk::new(), Writer::new(seed));
            for life in 0..3 {
                let durable = open(&disk, feed);
                for step in 0..60 {
                    writer.write(durable.manager());
                    // Free slots are used again, and the log is read from before a checkpoint.
                    if step % 16 == 7 {
                        durable.manager().compact();
                        durable.checkpoint().unwrap();
                    }
                }
                let of_open = check_replay(durable.feed(None).unwrap(), durable.manager(), feed == FeedContent::Full);
                let manager = durable.manager().clone();
                drop(durable);
                if life == 1 {
                    disk = disk.power_cut(seed);
                }
                let closed = Feed::of_directory(Arc::new(disk.clone()), None).unwrap();
                let of_closed = check_replay(closed, &manager, feed == FeedContent::Full);
                assert_eq!(of_open, of_closed, "seed {seed}");
            }
        }
    }
}

#[test]
fn a_feed_that_begins_at_any_position_gives_the_events_after_it() {
    let (disk, mut writer) = (SimDisk::new(), Writer::new(5));
    let durable = open(&disk, FeedContent::Full);
    for step in 0..80 {
        writer.write(durable.manager());
        if step == 40 {
            durable.checkpoint().unwrap();
        }
    }
    let all = rest(&mut durable.feed(None).unwrap());
    assert!(all.len() > 200, "{} events", all.len());
    let suffix = |at: FeedPosition| all.iter().filter(|event| event.at > at).cloned().collect::<Vec<_>>();
    for event in &all {
        for at in [event.at, FeedPosition::after_commit(event.at.ts)] {
            assert_eq!(rest(&mut durable.feed(Some(at)).unwrap()), suffix(at), "after {at}");
        }
    }
    drop(durable);
    for event in all.iter().step_by(7) {
        let mut feed = Feed::of_directory(Arc::new(disk.clone()), Some(event.at)).unwrap();
        assert_eq!(rest(&mut feed), suffix(event.at), "after {}", event.at);
        assert_eq!(feed.position(), all.last().unwrap().at);
    }
}

#[test]
fn a_position_before_the_log_that_is_kept_is_an_error_that_names_the_oldest_one() {
    let (disk, mut writer) = (SimDisk::new(), Writer::new(9));
    let durable = Durable::open(Arc::new(disk.clone()), &options(FeedContent::Full, 0), &|_| ()).unwrap();
    quiet(durable.manager());
    let mut slow = durable.feed(None).unwrap();
    let first = loop {
        writer.write(durable.manager());
        if let Some(event) = slow.next().unwrap() {
            break event.at;
        }
    };
    (0..400).for_each(|_| writer.write(durable.manager()));
    durable.checkpoint().unwrap();
    (0..400).for_each(|_| writer.write(durable.manager()));
    durable.checkpoint().unwrap();
    // The log has removed the segments that the slow reader has to read next, or has used them again.
    let error = loop {
        match slow.next() {
            Ok(Some(_)) => {}
            Ok(None) => panic!("the reader was told that there is nothing more"),
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    assert_eq!(slow.next().unwrap_err().kind(), ErrorKind::Closed, "a feed that has failed goes on");
    let error = durable.feed(Some(first)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    let words = "the oldest position is ";
    let at = error.message().find(words).unwrap_or_else(|| panic!("{error}")) + words.len();
    let oldest: String = error.message()[at..].chars().take_while(char::is_ascii_digit).collect();
    let named = oldest.parse().unwrap();
    let from_named = rest(&mut durable.feed(Some(named)).unwrap());
    assert_eq!(from_named, rest(&mut durable.feed(None).unwrap()), "the oldest position is the one that is named");
}

#[test]
fn commits_without_identities_are_an_error_unless_they_only_insert() {
    let disk = SimDisk::new();
    let durable = open(&disk, FeedContent::Off);
    let insert = |manager: &TransactionManager, connect: bool| {
        let txn = manager.begin(Default::default()).unwrap();
        let label = txn.store().catalog().intern_label_text("person");
        let vertex = txn.insert_vertex(label, None).unwrap();
        let (mut found, mut cursor) = (Vec::new(), ScanCursor::default());
        while !txn.scan_vertices(&LabelFilter::Any, Share::ALL, &mut cursor, 100, &mut found).unwrap() {}
        if connect {
            txn.insert_edge(vertex, found[0], label, None).unwrap();
        }
        txn.finish_statement().unwrap();
        txn.commit().unwrap().timestamp
    };
    insert(durable.manager(), false);
    let off = insert(durable.manager(), true);
    drop(durable);
    let durable = open(&disk, FeedContent::After);
    let on = insert(durable.manager(), true);
    let mut feed = durable.feed(None).unwrap();
    assert_eq!((feed.next().unwrap().is_some(), feed.next().unwrap().is_some()), (true, true));
    let error = feed.next().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.message().contains(&format!("go on after this commit: from {off}")), "{error}");
    let mut after = durable.feed(Some(FeedPosition::after_commit(off))).unwrap();
    assert_eq!(rest(&mut after).iter().map(|event| event.at.ts).collect::<Vec<_>>(), [on; 3]);
}

#[test]
fn a_feed_follows_commits_that_are_being_made() {
    let disk = SimDisk::new();
    let durable = open(&disk, FeedContent::Full);
    let is_over = AtomicBool::new(false);
    let snapshot = TransactionOptions { isolation: Isolation::Snapshot, read_only: false };
    let (mut events, mut feed) = (Vec::new(), durable.feed(None).unwrap());
    let made = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..3)
            .map(|writer| {
                let manager = durable.manager().clone();
                scope.spawn(move || {
                    let mut made = Vec::new();
                    for n in 0..150 {
                        let txn = manager.begin(snapshot).unwrap();
                        let label = txn.store().catalog().intern_label_text(["a", "b", "c"][writer]);
                        let key = txn.store().catalog().intern_key(&format!("key {}", n / 50));
                        let vertex = txn.insert_vertex(label, None).unwrap();
                        let single = WriteCardinality::Single;
                        txn.set_vertex_property(vertex, key, Value::I64(n), single, Vec::new()).unwrap();
                        txn.finish_statement().unwrap();
                        made.push(txn.commit().unwrap().timestamp);
                    }
                    made
                })
            })
            .collect();
        let reader = scope.spawn(|| {
            loop {
                let was_over = is_over.load(Ordering::SeqCst);
                match feed.next().unwrap() {
                    Some(event) => events.push(event),
                    None if was_over => break,
                    None => std::thread::yield_now(),
                }
            }
        });
        for _ in 0..5 {
            durable.checkpoint().unwrap();
        }
        let written: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        is_over.store(true, Ordering::SeqCst);
        reader.join().unwrap();
        let mut made: Vec<u64> = written.into_iter().flat_map(|made| made.unwrap()).collect();
        made.sort_unstable();
        made
    });
    let commits = events.iter().filter(|event| matches!(event.what, FeedEventKind::Commit { changes: 2 }));
    assert_eq!(commits.map(|event| event.at.ts).collect::<Vec<_>>(), made);
    assert_eq!(events.len(), made.len() * 3);
}

fn home_options() -> DurableHomeOptions {
    DurableHomeOptions {
        graph: options(FeedContent::Off, 0),
        log: ObjectLogOptions {
            lease: Duration::from_millis(1),
            feed: FeedContent::Full,
            ..ObjectLogOptions::default()
        },
        ..DurableHomeOptions::default()
    }
}

fn open_home(home: &Arc<dyn Home>) -> DurableHome {
    open_home_with(home, &home_options())
}

fn open_home_with(home: &Arc<dyn Home>, options: &DurableHomeOptions) -> DurableHome {
    let graph = DurableHome::open(home.clone(), options, &|_| ()).unwrap();
    quiet(graph.manager());
    graph
}

#[test]
fn a_feed_over_a_home_follows_owner_after_owner() {
    let home: Arc<dyn Home> = Arc::new(MemoryHome::new());
    let mut writer = Writer::new(3);
    let mut graph = open_home(&home);
    let mut follower = Feed::of_home(home.clone(), None).unwrap();
    let (mut replica, mut all) = (Replica::new(true), Vec::new());
    for life in 0..4 {
        for _ in 0..25 {
            writer.write(graph.manager());
            for event in rest(&mut follower) {
                replica.apply(event.clone(), follower.catalog());
                all.push(event);
            }
        }
        assert_eq!(picture(&replica.manager.begin_read().unwrap()), picture(&graph.manager().begin_read().unwrap()));
        match life % 2 {
            // Ends its stream, or is fenced by its successor.
            0 => graph.close(Duration::from_secs(20)).unwrap(),
            _ => drop(graph),
        }
        graph = open_home(&home);
    }
    // All streams are there, because no checkpoint was taken.
    assert_eq!(rest(&mut Feed::of_home(home.clone(), None).unwrap()), all);
    for event in all.iter().step_by(5) {
        let suffix: Vec<_> = all.iter().filter(|other| other.at > event.at).cloned().collect();
        assert_eq!(rest(&mut Feed::of_home(home.clone(), Some(event.at)).unwrap()), suffix);
    }
    assert!(all.iter().all(|event| event.time_us.is_some()));

    // A checkpoint collects objects: a reader that has seen them goes on, and one that has not is told.
    let mut late = Feed::of_home(home.clone(), Some(all[0].at)).unwrap();
    let first = all[0].at;
    for _ in 0..3 {
        (0..10).for_each(|_| writer.write(graph.manager()));
        for event in rest(&mut follower) {
            replica.apply(event, follower.catalog());
        }
        graph.checkpoint().unwrap();
    }
    writer.write(graph.manager());
    for event in rest(&mut follower) {
        replica.apply(event, follower.catalog());
    }
    assert_eq!(picture(&replica.manager.begin_read().unwrap()), picture(&graph.manager().begin_read().unwrap()));
    let error = loop {
        match late.next() {
            Ok(Some(_)) => {}
            Ok(None) => panic!("the reader was told that there is nothing more"),
            Err(error) => break error,
        }
    };
    assert!(error.kind() == ErrorKind::NotFound && error.message().contains("the oldest position is"), "{error}");
    assert_eq!(Feed::of_home(home, Some(first)).unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn a_feed_begins_at_every_position_that_a_home_keeps() {
    let home: Arc<dyn Home> = Arc::new(MemoryHome::new());
    let mut writer = Writer::new(5);
    let hour = Retention { retain_for: Duration::from_secs(3_600), retain_at_least: 2 };
    let options = DurableHomeOptions { retention: hour, ..home_options() };
    for life in 0..4 {
        let graph = open_home_with(&home, &options);
        for _ in 0..3 {
            (0..10).for_each(|_| writer.write(graph.manager()));
            graph.checkpoint().unwrap();
        }
        match life % 2 {
            0 => graph.close(Duration::from_secs(20)).unwrap(),
            _ => drop(graph),
        }
    }
    let graph = open_home_with(&home, &options);
    let mut feed = Feed::of_home(home.clone(), None).unwrap();
    let (mut replica, all) = (Replica::new(true), rest(&mut feed));
    all.iter().for_each(|event| replica.apply(event.clone(), feed.catalog()));
    assert_eq!(picture(&replica.manager.begin_read().unwrap()), picture(&graph.manager().begin_read().unwrap()));
    for event in all.iter().step_by(7) {
        let suffix: Vec<_> = all.iter().filter(|other| other.at > event.at).cloned().collect();
        let shown = rest(&mut Feed::of_home(home.clone(), Some(event.at)).unwrap());
        let difference = shown.iter().zip(&suffix).find(|(shown, expected)| shown != expected);
        assert!(difference.is_none() && shown.len() == suffix.len(), "from {}: {difference:?}", event.at);
    }
}
