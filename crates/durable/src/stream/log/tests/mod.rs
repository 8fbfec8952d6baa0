//! A graph whose log is in a home, with the threads of the log and of its clients.

mod outage;
mod threads;

use std::num::NonZeroU32;
use std::sync::atomic::AtomicU64;

use bytes::Bytes;
use mangrove_graph::{ElementKind, GraphView, UserId};
use mangrove_store::schema::Rule;
use mangrove_store::{IndexOptions, StoreOptions};
use mangrove_txn::{RecentOptions, TransactionManager};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::super::fence::{ListedStream, ManifestView, Manifests, StreamEnd, StreamTail, TakeOverStart};
use super::super::names::manifest_name;
use super::super::tails::{StreamTails, StreamsEnd};
use super::super::take_over::take_over;
use super::*;
use crate::home::delay::DelayHome;
use crate::home::{Completion, HomeError, HomeErrorKind, HomeTraits, MemoryHome, Name, Request, WaitHome};
use crate::recovery::{RecoveredLog, recover_log};
use crate::testing::{Actor, dump_now, quiet};

/// A manifest of a graph without checkpoints: every stream is needed from its first object.
#[derive(Debug, Default, Serialize, Deserialize)]
struct TestManifest {
    database: Uuid,
    owner: u64,
    streams: Vec<u64>,
}

#[derive(Debug)]
struct TestManifests;

impl TestManifests {
    fn read(manifest: &[u8]) -> Result<TestManifest> {
        serde_json::from_slice(manifest).map_err(|error| Error::new(ErrorKind::Damaged, error.to_string()))
    }
}

impl Manifests for TestManifests {
    fn view(&self, _: u64, manifest: &[u8]) -> Result<ManifestView> {
        let TestManifest { database, owner, streams } = Self::read(manifest)?;
        let listed = |incarnation| ListedStream { incarnation, floor: 1, end: None, end_ts: None, database: None };
        Ok(ManifestView { database, owner, streams: streams.into_iter().map(listed).collect() })
    }

    fn claim(&self, _: u64, parent: &[u8], incarnation: u64) -> Result<Vec<u8>> {
        let mut manifest = Self::read(parent)?;
        manifest.owner = incarnation;
        manifest.streams.push(incarnation);
        Ok(serde_json::to_vec(&manifest).expect("numbers can be written"))
    }
}

/// A home with an empty graph.
fn new_home() -> Arc<dyn Home> {
    let home = MemoryHome::new();
    let manifest = TestManifest { database: Uuid::from_u128(77), ..TestManifest::default() };
    let name = Name::new(&manifest_name(1)).unwrap();
    home.put_new(&name, serde_json::to_vec(&manifest).unwrap().into()).unwrap();
    Arc::new(home)
}

/// An owner of the graph in a home.
struct Owner {
    log: Arc<ObjectLog>,
    manager: TransactionManager,
    tails: Vec<StreamTail>,
    end: StreamsEnd,
}

/// A number that no other caller gets.
fn draw() -> u128 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    u128::from(NEXT.fetch_add(1, Ordering::Relaxed)) << 64 | 0x51ee_d51e
}

impl Owner {
    fn open(home: &Arc<dyn Home>, options: ObjectLogOptions) -> Self {
        let seed = draw().to_le_bytes();
        let start = TakeOverStart {
            node: Bytes::copy_from_slice(&seed),
            nonce_seed: seed,
            lease_us: options.lease.as_micros() as u64,
        };
        let taken = take_over(&**home, start, TestManifests, Duration::from_secs(20)).unwrap();
        let source = StreamTails { home: &**home, tails: &taken.tails };
        let store = StoreOptions { tablet_count: 3, ..StoreOptions::default() };
        let RecoveredLog { store, last_ts, end, commits, .. } = recover_log(&source, &store, 2, &|_| {}).unwrap();
        assert_eq!((commits, last_ts), (end.commits, end.last_ts));
        let store = Arc::new(store);
        let start = StreamStart {
            database: taken.database,
            incarnation: taken.incarnation,
            nonce_seed: seed,
            durable_ts: last_ts,
            held_until_us: taken.held_until_us,
        };
        let log = Arc::new(
            ObjectLog::open(home.clone(), store.clone(), NameCounts::of(store.catalog()), start, options).unwrap(),
        );
        let manager = TransactionManager::with_log(store, RecentOptions::default(), last_ts, log.clone());
        quiet(&manager);
        Owner { log, manager, tails: taken.tails, end }
    }

    /// Inserts a vertex with this id.
    fn insert(&self, id: i64) -> Result<u64> {
        let txn = self.manager.begin(Default::default())?;
        let label = txn.store().catalog().intern_label_text("person");
        txn.insert_vertex(label, Some(UserId::int(id)))?;
        txn.finish_statement()?;
        txn.commit().map(|info| info.timestamp)
    }

    /// Which of these ids a read-only transaction finds.
    fn find(&self, ids: &[i64]) -> Vec<bool> {
        let read = self.manager.begin_read().unwrap();
        let ids: Vec<UserId> = ids.iter().map(|id| UserId::int(*id)).collect();
        let mut found = Vec::new();
        read.find_vertices(&ids, &mut found).unwrap();
        found.iter().map(Option::is_some).collect()
    }
}

fn without_lease() -> ObjectLogOptions {
    ObjectLogOptions { lease: Duration::ZERO, ..ObjectLogOptions::default() }
}

/// A home with these delays between a store and its owner.
fn delayed(home: &Arc<dyn Home>, typical: Duration, seed: u64) -> Arc<dyn Home> {
    Arc::new(DelayHome::new(home.clone(), typical, seed).unwrap())
}

#[test]
fn a_random_history_comes_back_with_indexes_and_rules() {
    let home = new_home();
    let owner = Owner::open(&home, without_lease());
    assert_eq!(owner.end, StreamsEnd::default());
    let mut actor = Actor::new(1);
    let mut committed = 0;
    for round in 0..120 {
        let outcome = actor.transaction(&owner.manager);
        assert!(outcome.as_ref().is_none_or(Result::is_ok), "{outcome:?}");
        committed += u64::from(outcome.is_some());
        if round == 60 {
            let catalog = owner.manager.store().catalog();
            let (key, label) = (catalog.intern_key("a"), catalog.intern_label("x"));
            let element = ElementKind::Vertex;
            let options = IndexOptions { element, label: Some(label), keys: vec![key], ordered: true, unique: false };
            owner.manager.create_index(&options).unwrap();
        }
    }
    let catalog = owner.manager.store().catalog();
    let (label, key) = (catalog.intern_label("ruled"), catalog.intern_key("a"));
    let rule = Rule::Required { kind: ElementKind::Vertex, label, key };
    owner.manager.create_rule(rule.clone()).unwrap();
    let (before, last_ts) = (dump_now(&owner.manager), owner.log.status().durable_ts);
    let status = owner.log.status();
    assert!(status.counts.commits <= committed && status.counts.commits > 60, "{status:?}");
    owner.log.finish(Duration::from_secs(20)).unwrap();
    assert_eq!(owner.log.status().state, ObjectLogState::Closed);
    let (refused, no_read) = (owner.insert(1).unwrap_err(), owner.log.admit_read().unwrap_err());
    assert_eq!((refused.kind(), no_read.kind()), (ErrorKind::Closed, ErrorKind::Closed), "{refused} {no_read}");

    let next = Owner::open(&home, without_lease());
    assert_eq!((next.tails.len(), next.tails[0].end), (1, StreamEnd::Fin));
    assert_eq!((dump_now(&next.manager), next.end.last_ts), (before, last_ts));
    assert_eq!(next.manager.store().indexes().len(), 1);
    assert_eq!(next.manager.store().rules().iter().map(|entry| entry.rule.clone()).collect::<Vec<_>>(), [rule]);
    // Names that the second owner adds follow those of the first.
    let txn = next.manager.begin(Default::default()).unwrap();
    txn.insert_vertex(txn.store().catalog().intern_label_text("a new label"), None).unwrap();
    txn.finish_statement().unwrap();
    txn.commit().unwrap();
    let before = dump_now(&next.manager);
    drop(next);
    let last = Owner::open(&home, without_lease());
    assert_eq!(
        last.tails.iter().map(|tail| tail.end).collect::<Vec<_>>(),
        [StreamEnd::Fin, StreamEnd::Fence { by: 3 }]
    );
    assert_eq!(dump_now(&last.manager), before);
}

#[test]
fn a_fenced_owner_names_its_successor_to_writers_and_readers() {
    let home = new_home();
    let options = ObjectLogOptions { lease: Duration::from_millis(30), ..ObjectLogOptions::default() };
    let old = Owner::open(&home, options);
    old.insert(1).unwrap();
    assert_eq!(old.log.admit_read().unwrap(), ReadGrounds::Proved);
    let new = Owner::open(&home, options);
    // The old owner learns of its successor only when its put meets the FENCE.
    let unknown = old.insert(2).unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::OutcomeUnknown);
    let (refused, no_read) = (old.insert(3).unwrap_err(), old.log.admit_read().unwrap_err());
    for error in [&unknown, &refused, &no_read] {
        assert!(error.to_string().contains("another process has opened the graph (incarnation 2)"), "{error}");
    }
    assert_eq!((refused.kind(), no_read.kind()), (ErrorKind::Closed, ErrorKind::Closed));
    assert_eq!(old.log.status().state, ObjectLogState::Fenced { by: Some(2) });
    let ended = old.log.finish(Duration::from_secs(20)).unwrap_err();
    assert_eq!(ended.kind(), ErrorKind::Closed);
    assert_eq!(new.log.admit_read().unwrap(), ReadGrounds::Proved);
    assert_eq!(new.find(&[1, 2, 3]), [true, false, false]);
}

#[test]
fn an_idle_owner_learns_of_its_successor_by_the_look_of_a_reader() {
    let home = new_home();
    let options = ObjectLogOptions { lease: Duration::from_millis(20), ..ObjectLogOptions::default() };
    let old = Owner::open(&home, options);
    old.log.admit_read().unwrap();
    let requests = old.log.status().requests;
    let _new = Owner::open(&home, options);
    // The hold of the successor is longer than the lease.
    let refused = std::iter::repeat_with(|| old.log.admit_read()).find_map(Result::err).unwrap();
    assert!(refused.to_string().contains("incarnation 2"), "{refused}");
    assert!(old.log.status().requests > requests, "a look was made");
}

#[test]
fn committers_share_puts_and_an_interval_makes_them_fewer() {
    let commits_per_put = |options: ObjectLogOptions, committers: i64| {
        let memory = new_home();
        let owner = Owner::open(&delayed(&memory, Duration::from_millis(4), 1), options);
        std::thread::scope(|scope| {
            for committer in 0..committers {
                let owner = &owner;
                scope.spawn(move || (0..20).for_each(|n| assert!(owner.insert(committer * 1000 + n).is_ok())));
            }
        });
        let status = owner.log.status();
        assert_eq!(status.counts.commits as i64, committers * 20);
        println!("{committers} committers: {:.2} commits a put, {status:?}", status.commits_per_put());
        status.commits_per_put()
    };
    let (alone, together) = (commits_per_put(without_lease(), 1), commits_per_put(without_lease(), 8));
    assert!(alone <= 1.0 && together > 1.5, "{alone} and {together} commits a put");
    let spaced = ObjectLogOptions { log_interval: Duration::from_millis(40), ..without_lease() };
    let limited = ObjectLogOptions { puts_per_second: NonZeroU32::new(25), ..without_lease() };
    let (spaced, limited) = (commits_per_put(spaced, 8), commits_per_put(limited, 8));
    assert!(spaced > 5.0 && limited > 5.0, "{spaced} and {limited} commits a put");
}

#[test]
fn a_log_that_was_closed_without_an_end_sends_nothing_and_serves_nobody() {
    for options in [without_lease(), ObjectLogOptions::default()] {
        let home = new_home();
        let owner = Owner::open(&home, options);
        let label = owner.manager.store().catalog().intern_label_text("person");
        let late = owner.manager.begin(Default::default()).unwrap();
        late.insert_vertex(label, Some(UserId::int(1))).unwrap();
        late.finish_statement().unwrap();
        let validating = late.enter_validation().unwrap();
        owner.log.close();
        let requests = owner.log.status().requests;
        assert_eq!(validating.finish().unwrap_err().kind(), ErrorKind::OutcomeUnknown);
        assert_eq!(owner.log.admit_read().unwrap_err().kind(), ErrorKind::Closed);
        assert_eq!(owner.log.checkpoint_floor().unwrap().through, 0, "what was acknowledged stays so");
        assert_eq!((owner.log.status().state, owner.log.status().requests), (ObjectLogState::Closed, requests));
        assert_eq!(Owner::open(&home, options).find(&[1]), [false]);
    }
}

#[test]
fn a_log_that_is_dropped_at_once_leaves_a_stream_that_a_successor_ends() {
    let home = new_home();
    for incarnation in 1..5 {
        let owner = Owner::open(&home, without_lease());
        assert_eq!(owner.tails.len() as u64, incarnation - 1);
    }
}
