//! A graph in a home: owners that close it, die, or go on while a successor takes over; homes that fail; damaged objects.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};

use mangrove_graph::{ElementKind, UserId};
use mangrove_store::IndexOptions;
use mangrove_testdata::{case_count, first_seed};
use rand::Rng;

use super::*;
use crate::disk::SimDisk;
use crate::home::delay::DelayHome;
use crate::home::{
    Completion, DiskHome, HomeError, HomeErrorKind, HomeResult, HomeTraits, MemoryHome, Put, Reply, Request,
};
use crate::manifest::PackName;
use crate::open::columns::columns_path;
use crate::stream::fence::StreamEnd;
use crate::stream::names::{manifest_name, manifest_number, node_incarnation, node_name, stream_name, stream_place};
use crate::testing::{Actor, Dump, dump_now, quiet};

pub(crate) fn options() -> DurableHomeOptions {
    DurableHomeOptions {
        graph: DurableOptions {
            tablet_count: 3,
            checkpoint_log_bytes: Some(0),
            recovery_threads: 2,
            ..DurableOptions::default()
        },
        log: ObjectLogOptions { lease: Duration::from_millis(10), ..ObjectLogOptions::default() },
        patience: Duration::from_secs(20),
        ..DurableHomeOptions::default()
    }
}

pub(crate) fn open(home: &Arc<dyn Home>) -> Result<DurableHome> {
    let graph = DurableHome::open(home.clone(), &options(), &|_| ())?;
    quiet(graph.manager());
    Ok(graph)
}

pub(crate) const WAIT: Duration = Duration::from_secs(20);

pub(crate) fn insert(graph: &DurableHome, id: i64) -> Result<()> {
    let txn = graph.manager().begin(Default::default())?;
    let label = txn.store().catalog().intern_label_text("person");
    txn.insert_vertex(label, Some(UserId::int(id)))?;
    txn.finish_statement()?;
    txn.commit().map(|_| ())
}

pub(crate) fn make_index(graph: &DurableHome, key: &str) -> Result<()> {
    let key = graph.manager().store().catalog().intern_key(key);
    let options =
        IndexOptions { element: ElementKind::Vertex, label: None, keys: vec![key], ordered: true, unique: false };
    match graph.manager().create_index(&options) {
        Err(error) if error.kind() == ErrorKind::DuplicateId => Ok(()),
        made => made.map(|_| ()),
    }
}

/// The names of all objects.
fn names(home: &dyn Home) -> Vec<Name> {
    let list = |directory: &str| home.list(&Name::new(directory).unwrap()).unwrap();
    let nodes = list(NODES);
    let streams: Vec<Name> = (1..=nodes.len() as u64)
        .flat_map(|incarnation| list(Name::new(&stream_name(incarnation, 1)).unwrap().directory().unwrap()))
        .collect();
    [nodes, streams, list(MANIFESTS), list(CHECKPOINT_DIR)].concat()
}

/// A home in memory with the same objects.
pub(crate) fn copy(home: &dyn Home) -> Arc<dyn Home> {
    let copy = MemoryHome::new();
    for name in names(home) {
        assert_eq!(copy.put_new(&name, home.get(&name).unwrap().unwrap()).unwrap(), Put::Done);
    }
    Arc::new(copy)
}

/// Checks that a home has nothing but what the newest two manifests and the rules of streams need.
pub(crate) fn check_objects(home: &dyn Home, incarnation: u64) {
    let names: Vec<String> = names(home).iter().map(Name::to_string).collect();
    let mut manifests: Vec<u64> = names.iter().filter_map(|name| manifest_number(name)).collect();
    manifests.sort_unstable();
    assert_eq!(manifests.len(), 2, "{names:?}");
    let read = |number: u64| {
        let bytes = home.get(&Name::new(&manifest_name(number)).unwrap()).unwrap().unwrap();
        Manifest::of_object(home, number, &bytes).unwrap()
    };
    let [before, newest] = [read(manifests[0]), read(manifests[1])];
    let named = |name: &str| [&before, &newest].iter().any(|kept| kept.packs.iter().any(|pack| pack.path() == name));
    let mut ends = BTreeSet::new();
    for name in &names {
        if let Some((stream, seq)) = stream_place(name) {
            if stream == incarnation {
                assert!(seq >= before.streams[0].first, "{name} is before the floor");
            } else {
                assert!(ends.insert(stream), "{name} is not the only object of its stream");
            }
        } else {
            let is_known = manifest_number(name).is_some() || node_incarnation(name).is_some();
            assert!(is_known || named(name), "{name} is garbage");
        }
    }
    assert_eq!(newest.streams.len(), 1);
    for pack in &newest.packs {
        assert!(names.contains(&pack.path()), "{} is missing", pack.path());
    }
    assert!(names.contains(&node_name(incarnation)));
}

/// Owners of a graph, one after the other. Returns how many were fenced.
fn run(seed: u64) -> u64 {
    let mut actor = Actor::new(seed);
    let memory: Arc<dyn Home> = match seed % 3 {
        0 => Arc::new(DiskHome::new(Arc::new(SimDisk::new()), (seed % 2 * 2) as usize).unwrap()),
        _ => Arc::new(MemoryHome::new()),
    };
    let (mut acknowledged, mut indexes) = (Dump::new(), Vec::new());
    let mut earlier: Option<DurableHome> = None;
    let mut fenced = 0;
    for life in 1..=6 {
        let typical = Duration::from_micros(actor.rng.random_range(1..600));
        let home: Arc<dyn Home> = Arc::new(DelayHome::new(memory.clone(), typical, actor.rng.random()).unwrap());
        let graph = open(&home).unwrap_or_else(|error| panic!("life {life} of seed {seed}: {error}"));
        assert_eq!(graph.incarnation(), life);
        assert!(dump_now(graph.manager()) == acknowledged, "life {life} of seed {seed}");
        assert_eq!(graph.manager().store().indexes(), indexes);
        if let Some(earlier) = earlier.take() {
            fenced += 1;
            refuses(&earlier);
        }
        for _ in 0..actor.rng.random_range(0..30) {
            match actor.rng.random_range(0..12) {
                0 | 1 => {
                    graph.checkpoint().unwrap();
                }
                2 => make_index(&graph, ["a", "b", "c"][actor.rng.random_range(0..3)]).unwrap(),
                3 => {
                    graph.manager().compact();
                }
                _ => {
                    let outcome = actor.transaction(graph.manager());
                    assert!(outcome.is_none_or(|outcome| outcome.is_ok()), "life {life} of seed {seed}");
                }
            }
        }
        assert_eq!(graph.log_status().unproved_reads, 0);
        acknowledged = dump_now(graph.manager());
        indexes = graph.manager().store().indexes();
        match actor.rng.random_range(0..3) {
            0 => graph.close(WAIT).unwrap(),
            1 => drop(graph),
            _ => earlier = Some(graph),
        }
    }
    let last = open(&memory).unwrap();
    assert!(dump_now(last.manager()) == acknowledged, "the end of seed {seed}");
    insert(&last, 1_000_000).unwrap();
    for _ in 0..2 {
        insert(&last, last.manager().watermark() as i64 + 2_000_000).unwrap();
        last.checkpoint().unwrap().expect("a commit is new");
    }
    assert_eq!(last.checkpoint().unwrap(), None);
    assert_eq!(last.checkpoint_status().trouble, None);
    let at = dump_now(last.manager());
    last.close(WAIT).unwrap();
    check_objects(&*memory, 7);
    let again = open(&memory).unwrap();
    assert_eq!((dump_now(again.manager()), again.recovery().commits_replayed), (at, 0));
    fenced
}

/// An owner that was fenced refuses everything, and says why.
pub(crate) fn refuses(old: &DurableHome) {
    let refused = (0..).find_map(|n| insert(old, 3_000_000 + n).err()).unwrap();
    assert!(matches!(refused.kind(), ErrorKind::OutcomeUnknown | ErrorKind::Closed), "{refused}");
    let read = std::iter::repeat_with(|| old.manager().begin_read()).find_map(Result::err).unwrap();
    let checkpoint = old.checkpoint().unwrap_err();
    for error in [&refused, &read, &checkpoint] {
        assert!(error.message().contains("another process has opened th"), "{error}");
    }
    assert_eq!((read.kind(), checkpoint.kind()), (ErrorKind::Closed, ErrorKind::Closed));
}

#[test]
fn every_owner_has_what_earlier_ones_acknowledged() {
    let first = first_seed(0);
    let cases = case_count(24);
    let fenced: u64 = (first..first + cases).map(run).sum();
    assert!(fenced > 0 || cases < 24, "no owner was fenced");
}

#[test]
fn a_bulk_load_and_a_background_checkpoint_come_back() {
    let home: Arc<dyn Home> = Arc::new(MemoryHome::new());
    let graph = open(&home).unwrap();
    let person = graph.manager().store().catalog().intern_label_text("person");
    let mut load = graph.manager().bulk_load().unwrap();
    let ids: Vec<UserId> = (0..100).map(UserId::int).collect();
    load.vertices(person, 100, Some(&ids), &[]).unwrap();
    load.finish().unwrap();
    assert_eq!(graph.checkpoint_status().taken, 1);
    drop(graph);
    let mut options = options();
    options.graph.checkpoint_log_bytes = Some(1);
    let graph = DurableHome::open(home.clone(), &options, &|_| ()).unwrap();
    assert_eq!((graph.recovery().graph.vertices, graph.recovery().commits_replayed), (100, 0));
    insert(&graph, 100).unwrap();
    while graph.checkpoint_status().last.is_none_or(|last| last.checkpoint_ts < graph.manager().watermark()) {
        std::thread::sleep(Duration::from_millis(5));
    }
    graph.close(WAIT).unwrap();
    assert_eq!(open(&home).unwrap().recovery().graph.vertices, 101);
}

#[test]
fn what_earlier_owners_left_is_deleted() {
    let home: Arc<dyn Home> = Arc::new(MemoryHome::new());
    let first = open(&home).unwrap();
    insert(&first, 1).unwrap();
    first.checkpoint().unwrap().expect("a commit is new");
    let second = open(&home).unwrap();
    // Of the fenced owner: a pack, which the manifest names, and what it put before it learned that it was fenced.
    let pack = |incarnation, counter| PackName::Pack { incarnation, counter }.path();
    let left = [pack(1, 9), columns_path(1, 10)];
    // Of the owner: a checkpoint that is being taken. Of a process that is taking over: its first.
    let [named, growing, next] = [pack(1, 1), pack(2, 50), pack(3, 1)];
    for name in left.iter().chain([&growing, &next]) {
        assert_eq!(home.put_new(&Name::new(name).unwrap(), Bytes::from_static(b"part")).unwrap(), Put::Done);
    }
    let is_there = |name: &str| home.head(&Name::new(name).unwrap()).unwrap().is_some();
    insert(&second, 2).unwrap();
    second.checkpoint().unwrap().expect("a commit is new");
    assert_eq!(second.checkpoint_status().trouble, None);
    assert!(left.iter().all(|name| !is_there(name)), "{:?}", names(&*home));
    assert!([&named, &growing, &next].iter().all(|name| is_there(name)), "{:?}", names(&*home));
}

#[test]
fn a_place_without_a_graph_or_without_its_manifests_is_refused() {
    let home: Arc<dyn Home> = Arc::new(MemoryHome::new());
    let reader = DurableHomeOptions { create: false, ..options() };
    let none = DurableHome::open(home.clone(), &reader, &|_| ()).unwrap_err();
    assert_eq!(none.kind(), ErrorKind::NotFound, "{none}");
    assert!(names(&*home).is_empty());
    let graph = open(&home).unwrap();
    let database = graph.database();
    graph.close(WAIT).unwrap();
    assert_eq!(open(&home).unwrap().database(), database);
    home.delete(home.list(&Name::new(MANIFESTS).unwrap()).unwrap()).unwrap();
    let lost = open(&home).unwrap_err();
    assert_eq!(lost.kind(), ErrorKind::Damaged);
    assert!(lost.message().contains("manifest") && lost.message().contains("node"), "{lost}");
}

/// A home that fails some puts.
#[derive(Debug)]
pub(crate) struct FailingHome {
    pub(crate) home: Arc<dyn Home>,
    pub(crate) directory: &'static str,
    /// Puts in the directory that fail from now on.
    pub(crate) failing: AtomicU32,
    pub(crate) kind: HomeErrorKind,
    /// True if they are carried out in spite of the error.
    pub(crate) carries_out: bool,
}

impl Home for FailingHome {
    fn submit(&self, request: Request, done: Completion) {
        let fails = match &request {
            Request::PutNew { name, .. } | Request::PutUnique { name, .. } => {
                name.directory() == Some(self.directory)
                    && self.failing.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok()
            }
            _ => false,
        };
        if !fails {
            return self.home.submit(request, done);
        }
        let error = HomeError::new(self.kind, format!("a put in {} was lost", self.directory));
        if self.carries_out {
            self.home.submit(request, Box::new(move |_: HomeResult<Reply>| done(Err(error))));
        } else {
            done(Err(error));
        }
    }

    fn describe(&self, name: &str) -> String {
        self.home.describe(name)
    }

    fn traits(&self) -> HomeTraits {
        self.home.traits()
    }
}

#[test]
fn a_put_that_fails_leaves_the_last_checkpoint_and_the_next_one_makes_up_for_it() {
    use HomeErrorKind::{Refused, Unavailable, Unknown};
    for (directory, kind, carries_out) in [
        (CHECKPOINT_DIR, Refused, false),
        (CHECKPOINT_DIR, Unavailable, false),
        (CHECKPOINT_DIR, Unknown, true),
        (MANIFESTS, Refused, false),
        (MANIFESTS, Unavailable, false),
        (MANIFESTS, Unknown, false),
        (MANIFESTS, Unknown, true),
    ] {
        let what = format!("{directory} {kind:?} {carries_out}");
        let memory: Arc<dyn Home> = Arc::new(MemoryHome::new());
        let failing =
            Arc::new(FailingHome { home: memory.clone(), directory, failing: AtomicU32::new(0), kind, carries_out });
        let hasty = DurableHomeOptions { patience: Duration::from_millis(30), ..options() };
        let graph = DurableHome::open(failing.clone(), &hasty, &|_| ()).unwrap();
        quiet(graph.manager());
        let mut actor = Actor::new(3);
        let run = |actor: &mut Actor| (0..20).for_each(|_| drop(actor.transaction(graph.manager())));
        run(&mut actor);
        let first = graph.checkpoint().unwrap().unwrap();
        run(&mut actor);
        failing.failing.store(u32::MAX, Ordering::SeqCst);
        let outcome = graph.checkpoint();
        // A manifest that is there after all is found by the look at its name.
        let is_found = directory == MANIFESTS && carries_out;
        assert_eq!(outcome.is_ok(), is_found, "{what}: {outcome:?}");
        if let Err(error) = &outcome {
            assert!(error.message().contains("was lost"), "{what}: {error}");
            assert_eq!(graph.checkpoint_status().trouble.as_ref(), Some(error));
            assert_eq!(graph.checkpoint_status().last, Some(first));
        }
        let expected = dump_now(graph.manager());
        assert!(dump_now(open(&copy(&*memory)).unwrap().manager()) == expected, "{what}");
        failing.failing.store(0, Ordering::SeqCst);
        run(&mut actor);
        let report = graph.checkpoint().unwrap().unwrap();
        assert!(report.version > first.version, "{what}");
        assert_eq!(graph.checkpoint_status().trouble, None, "{what}");
        run(&mut actor);
        graph.checkpoint().unwrap().unwrap();
        let expected = dump_now(graph.manager());
        graph.close(WAIT).unwrap();
        check_objects(&*memory, 1);
        assert!(dump_now(open(&memory).unwrap().manager()) == expected, "{what}");
    }
}

/// A manifest whose put was lost on its way arrives when its owner is gone. The graph is the same with it and without.
#[test]
fn a_manifest_of_unknown_outcome_is_put_again_before_another_one() {
    let memory: Arc<dyn Home> = Arc::new(MemoryHome::new());
    let failing = Arc::new(FailingHome {
        home: memory.clone(),
        directory: MANIFESTS,
        failing: AtomicU32::new(0),
        kind: HomeErrorKind::Unknown,
        carries_out: false,
    });
    let hasty = DurableHomeOptions { patience: Duration::from_millis(30), ..options() };
    let graph = DurableHome::open(failing.clone(), &hasty, &|_| ()).unwrap();
    quiet(graph.manager());
    insert(&graph, 1).unwrap();
    failing.failing.store(u32::MAX, Ordering::SeqCst);
    graph.checkpoint().unwrap_err();
    failing.failing.store(0, Ordering::SeqCst);
    insert(&graph, 2).unwrap();
    let report = graph.checkpoint().unwrap().unwrap();
    // Manifest 1 is the first one, 2 the claim, 3 was lost, 4 has both vertices.
    assert_eq!(report.version, 4);
    let manifests = memory.list(&Name::new(MANIFESTS).unwrap()).unwrap();
    // The oldest that stays was chosen before 3 was put again, so 2 stays for another checkpoint.
    assert_eq!(manifests.iter().filter_map(|name| manifest_number(name.as_str())).collect::<Vec<_>>(), [2, 3, 4]);
    // If another owner has the graph by now, the lost manifest is superseded.
    insert(&graph, 3).unwrap();
    failing.failing.store(u32::MAX, Ordering::SeqCst);
    graph.checkpoint().unwrap_err();
    let next = open(&memory).unwrap();
    failing.failing.store(0, Ordering::SeqCst);
    assert_eq!(graph.checkpoint().unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(next.recovery().graph.vertices, 3);
}

#[test]
fn damage_is_an_error_that_names_the_object() {
    let home: Arc<dyn Home> = Arc::new(MemoryHome::new());
    let graph = open(&home).unwrap();
    let mut actor = Actor::new(5);
    (0..60).for_each(|_| drop(actor.transaction(graph.manager())));
    graph.checkpoint().unwrap();
    (0..6).for_each(|_| drop(actor.transaction(graph.manager())));
    let expected = dump_now(graph.manager());
    drop(graph);
    let newest = names(&*home).iter().filter_map(|name| manifest_number(name.as_str())).max().unwrap();
    let is_needed = |name: &Name| {
        let text = name.as_str();
        PackName::of_path(text).is_some() || text.starts_with("log/") || text == manifest_name(newest)
    };
    let mut found = [0; 3];
    for name in names(&*home).into_iter().filter(is_needed) {
        let bytes = home.get(&name).unwrap().unwrap();
        let (kind, step) = match name.as_str().split('/').next() {
            Some("log") => (0, bytes.len() / 2),
            Some("pack") => (1, 37),
            _ => (2, 11),
        };
        let missing = copy(&*home);
        missing.delete(vec![name.clone()]).unwrap();
        if kind == 1 {
            let error = open(&missing).unwrap_err();
            assert!(error.message().contains(name.as_str()), "{error}");
        }
        for at in (kind..bytes.len()).step_by(step.max(1)) {
            let damaged = copy(&*home);
            damaged.delete(vec![name.clone()]).unwrap();
            let mut other = bytes.to_vec();
            other[at] ^= 1 << (at % 8);
            damaged.put_new(&name, other.into()).unwrap();
            match open(&damaged) {
                // The case of a hexadecimal digit has no meaning; the byte may be of an image that a newer one replaces.
                Ok(graph) => assert!(dump_now(graph.manager()) == expected, "{name}, byte {at}"),
                Err(error) => {
                    found[kind] += 1;
                    assert!(matches!(error.kind(), ErrorKind::Damaged | ErrorKind::Unsupported), "{error}");
                    assert!(error.message().contains(name.as_str()), "{name}, byte {at}: {error}");
                }
            }
        }
    }
    assert!(found.iter().all(|count| *count > 0), "{found:?}");
    assert_eq!(dump_now(open(&home).unwrap().manager()), expected);
}

#[test]
fn a_graph_that_was_closed_needs_no_fence() {
    let home: Arc<dyn Home> = Arc::new(MemoryHome::new());
    let graph = open(&home).unwrap();
    insert(&graph, 1).unwrap();
    let manager = graph.manager().clone();
    graph.close(WAIT).unwrap();
    // A client may keep the transactions.
    let txn = manager.begin(Default::default()).unwrap();
    txn.insert_vertex(txn.store().catalog().intern_label_text("late"), None).unwrap();
    txn.finish_statement().unwrap();
    assert_eq!(txn.commit().unwrap_err().kind(), ErrorKind::Closed);
    let start = TakeOverStart { node: Bytes::from_static(b"another"), nonce_seed: [7; 16], lease_us: 10_000 };
    let taken = take_over(&*home, start, HomeManifests { home: &*home }, WAIT).unwrap();
    assert_eq!((taken.tails[0].end, taken.held_until_us), (StreamEnd::Fin, 0));
}
