//! A whole durable graph on a disk with power cuts: recovery finds every acknowledged commit.

use std::sync::Arc;

use mangrove_graph::{ElementKind, ErrorKind, GraphView, IndexId, IndexInfo, KeyId, UserId, Value, ValueRows};
use mangrove_store::{IndexOptions, WriteCardinality};

use super::*;
use crate::disk::SimDisk;
use crate::log::LogState;
use crate::testing::{Actor, Dump, dump, dump_now, quiet};

/// Options without background threads, and with small sizes, so that boundaries are crossed often.
fn options() -> DurableOptions {
    DurableOptions {
        tablet_count: 3,
        log: LogOptions {
            segment_bytes_min: 16 << 10,
            segment_bytes_max: 64 << 10,
            prepare_ahead: false,
            ..LogOptions::default()
        },
        checkpoint_log_bytes: Some(0),
        recovery_threads: 2,
        ..DurableOptions::default()
    }
}

fn open(disk: &SimDisk) -> Result<Durable> {
    let durable = Durable::open(Arc::new(disk.clone()), &options(), &|_| ())?;
    quiet(durable.manager());
    Ok(durable)
}

/// The state of the graph in memory, with all decided commits, durable or not.
fn dump_decided(durable: &Durable) -> Dump {
    dump(&durable.manager().begin(Default::default()).unwrap())
}

/// One run of a database: it is opened and used until the power is cut. Returns the states that recovery may find, the
/// last acknowledged state first.
fn run_until_power_cut(disk: &SimDisk, actor: &mut Actor, expected: &[Dump]) -> Vec<Dump> {
    use rand::Rng;
    let Ok(durable) = open(disk) else { return expected.to_vec() };
    let mut acknowledged = dump_now(durable.manager());
    assert!(expected.contains(&acknowledged), "recovery found a state that was never acknowledged");
    for _ in 0..40 {
        let outcome = match actor.rng.random_range(0..12) {
            0 | 1 => durable.checkpoint().map(|_| ()),
            2 => change_indexes(&durable, actor),
            3 => {
                durable.manager().compact();
                Ok(())
            }
            _ => match actor.transaction(durable.manager()) {
                None => Ok(()),
                Some(Ok(_)) => {
                    acknowledged = dump_now(durable.manager());
                    Ok(())
                }
                Some(Err(error)) => {
                    assert!(!matches!(error.kind(), ErrorKind::Conflict | ErrorKind::Bug), "{error}");
                    Err(error)
                }
            },
        };
        if outcome.is_err() {
            return vec![acknowledged, dump_decided(&durable)];
        }
    }
    vec![acknowledged]
}

fn change_indexes(durable: &Durable, actor: &mut Actor) -> Result<()> {
    use rand::Rng;
    let manager = durable.manager();
    let found = manager.store().indexes();
    if let Some(index) = found.first().filter(|_| actor.rng.random_ratio(1, 2)) {
        return manager.drop_index(index.id);
    }
    let key = manager.store().catalog().intern_key(["a", "b", "c"][actor.rng.random_range(0..3)]);
    let options =
        IndexOptions { element: ElementKind::Vertex, label: None, keys: vec![key], ordered: true, unique: false };
    match manager.create_index(&options) {
        Err(error) if error.kind() == ErrorKind::DuplicateId => Ok(()),
        made => made.map(|_| ()),
    }
}

#[test]
fn acknowledged_commits_are_found_after_any_power_cut() {
    use rand::Rng;
    let cases: u64 = mangrove_testdata::case_count(150);
    for seed in 0..cases {
        let mut disk = SimDisk::new();
        let mut actor = Actor::new(seed);
        let mut expected = vec![Dump::new()];
        for _ in 0..6 {
            disk.power_off_at(disk.operations() + actor.rng.random_range(1..160));
            expected = run_until_power_cut(&disk, &mut actor, &expected);
            disk = disk.power_cut(actor.rng.random());
        }
        let durable = open(&disk).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert!(expected.contains(&dump_now(durable.manager())), "seed {seed}");
    }
}

#[test]
fn opening_again_changes_nothing_and_counts_epochs() {
    let disk = SimDisk::new();
    let mut actor = Actor::new(3);
    let mut last = Dump::new();
    let mut indexes = Vec::new();
    for round in 1..=12 {
        let durable = open(&disk).unwrap();
        assert_eq!((durable.epoch(), dump_now(durable.manager())), (round, last));
        assert_eq!(durable.manager().store().indexes(), indexes);
        for _ in 0..15 {
            actor.transaction(durable.manager());
        }
        change_indexes(&durable, &mut actor).unwrap();
        if round % 3 == 0 {
            let report = durable.checkpoint().unwrap().unwrap();
            assert_eq!(durable.checkpoint_status().last, Some(report));
            assert_eq!(durable.checkpoint_status().log_bytes, 0);
        }
        last = dump_now(durable.manager());
        indexes = durable.manager().store().indexes();
    }
    let segments = disk.list(crate::log::DIRECTORY).unwrap().len();
    assert!(segments <= 6, "{segments} segments are kept of a log that is checkpointed");
}

#[test]
fn a_checkpoint_leaves_little_to_be_done_again() {
    let disk = SimDisk::new();
    let durable = open(&disk).unwrap();
    let mut actor = Actor::new(4);
    (0..50).for_each(|_| drop(actor.transaction(durable.manager())));
    durable.checkpoint().unwrap();
    let at = durable.manager().watermark();
    let txn = durable.manager().begin(Default::default()).unwrap();
    let label = txn.store().catalog().intern_label_text("a new name");
    txn.insert_vertex(label, Some(UserId::from("the last one"))).unwrap();
    txn.commit().unwrap();
    let expected = dump_now(durable.manager());
    drop(durable);
    let durable = open(&disk).unwrap();
    let found = durable.recovery();
    assert_eq!((found.checkpoint_ts, found.commits_replayed, found.last_ts), (at, 1, at + 1));
    assert_eq!(found.graph.vertices + found.graph.edges, expected.len() as u64);
    assert_eq!(dump_now(durable.manager()), expected);
}

/// Loads a small graph in bulk.
fn load(durable: &Durable) -> Result<()> {
    let catalog = durable.manager().store().catalog();
    let (person, knows) = (catalog.intern_label_text("person"), catalog.intern_label_text("knows"));
    let mut load = durable.manager().bulk_load()?;
    let ids: Vec<UserId> = (0..100).map(UserId::int).collect();
    let vertices = load.vertices(person, 100, Some(&ids), &[])?;
    let ends: Vec<_> = (0..99).map(|n| (vertices[n], vertices[n + 1])).collect();
    load.edges(knows, &ends, None, &[])?;
    load.finish()
}

#[test]
fn a_bulk_load_is_there_wholly_or_not_at_all() {
    let mut was_cut = 0;
    for operation in 1.. {
        let disk = SimDisk::new();
        let durable = open(&disk).unwrap();
        disk.power_off_at(disk.operations() + operation);
        let outcome = load(&durable);
        let begun = durable.manager().begin_read();
        assert_eq!(begun.is_ok(), outcome.is_ok(), "transactions begin when the load is durable");
        drop(begun);
        drop(durable);
        let found = open(&disk.power_cut(operation)).unwrap();
        let count = dump_now(found.manager()).len();
        assert!(count == 199 || (count == 0 && outcome.is_err()), "{count} elements after operation {operation}");
        if outcome.is_ok() {
            break;
        }
        was_cut += 1;
        if count == 0 {
            load(&found).unwrap();
        }
        assert_eq!(dump_now(found.manager()).len(), 199);
        // After that, it is an ordinary graph.
        let txn = found.manager().begin(Default::default()).unwrap();
        txn.insert_vertex(txn.store().catalog().intern_label_text("person"), None).unwrap();
        txn.commit().unwrap();
    }
    assert!(was_cut > 10);
}

#[test]
fn a_second_opening_stops_the_first() {
    let disk = SimDisk::new();
    let first = open(&disk).unwrap();
    let mut actor = Actor::new(9);
    (0..20).for_each(|_| drop(actor.transaction(first.manager())));
    let second = open(&disk).unwrap();
    (0..5).for_each(|_| drop(actor.transaction(second.manager())));
    second.checkpoint().unwrap();
    let error = first.checkpoint().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
    assert_eq!(first.checkpoint_status().trouble, Some(error));
    drop(first);
    let expected = dump_now(second.manager());
    drop(second);
    assert_eq!(dump_now(open(&disk).unwrap().manager()), expected);
}

/// A client may keep the transaction manager of a graph after the graph was closed and its directory unlocked.
#[test]
fn a_manager_that_outlives_its_graph_changes_nothing_on_the_disk() {
    let disk = SimDisk::new();
    // With a thread that makes segments, like graphs in production.
    let log = LogOptions { prepare_ahead: true, ..options().log };
    let durable = Durable::open(Arc::new(disk.clone()), &DurableOptions { log, ..options() }, &|_| ()).unwrap();
    let manager = durable.manager().clone();
    quiet(&manager);
    let write = |id: i64| -> Result<()> {
        let txn = manager.begin(Default::default())?;
        let label = txn.store().catalog().intern_label_text("a");
        txn.insert_vertex(label, Some(UserId::int(id)))?;
        txn.commit().map(|_| ())
    };
    write(1).unwrap();
    drop(durable);
    assert_eq!(write(2).unwrap_err().kind(), ErrorKind::Closed);
    let operations = disk.operations();
    assert_eq!(write(3).unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(disk.operations(), operations, "nothing is done on the disk");
    assert_eq!(dump_now(open(&disk).unwrap().manager()).len(), 1);
}

/// Threads count, each in a vertex of its own, while checkpoints are taken, until the power is cut.
#[test]
fn threads_and_checkpoints_lose_nothing_that_was_acknowledged() {
    let cases: u64 = mangrove_testdata::case_count(40);
    for seed in 0..cases {
        let disk = SimDisk::new();
        let durable = open(&disk).unwrap();
        let manager = durable.manager();
        let key = manager.store().catalog().intern_key("count");
        let label = manager.store().catalog().intern_label_text("counter");
        let set = |at: usize, count: i64| -> Result<()> {
            let txn = manager.begin(Default::default())?;
            let mut found = Vec::new();
            let id = UserId::int(at as i64);
            txn.find_vertices(std::slice::from_ref(&id), &mut found)?;
            let vertex = match found[0] {
                Some(vertex) => vertex,
                None => txn.insert_vertex(label, Some(id))?,
            };
            txn.set_vertex_property(vertex, key, Value::I64(count), WriteCardinality::Single, Vec::new())?;
            txn.commit().map(|_| ())
        };
        disk.power_off_at(disk.operations() + 20 + seed * 37 % 400);
        let acknowledged: Vec<i64> = std::thread::scope(|scope| {
            let writers: Vec<_> = (0..3)
                .map(|at| scope.spawn(move || (1..).take_while(|&count| set(at, count).is_ok()).last().unwrap_or(0)))
                .collect();
            while durable.checkpoint().is_ok() {}
            writers.into_iter().map(|writer| writer.join().unwrap()).collect()
        });
        drop(durable);
        let found = open(&disk.power_cut(seed)).unwrap();
        let view = found.manager().begin_read().unwrap();
        dump(&view);
        for (at, &count) in acknowledged.iter().enumerate() {
            let (mut vertices, mut rows) = (Vec::new(), ValueRows::default());
            view.find_vertices(&[UserId::int(at as i64)], &mut vertices).unwrap();
            view.vertex_values(&Vec::from_iter(vertices[0]), key_of(&view), &mut rows).unwrap();
            let seen = match rows.value.first() {
                Some(Value::I64(seen)) => *seen,
                _ => 0,
            };
            assert!(seen == count || seen == count + 1, "seed {seed}: {seen} is found and {count} acknowledged");
        }
    }
}

fn key_of(view: &dyn GraphView) -> KeyId {
    view.catalog().intern_key("count")
}

#[test]
fn a_full_disk_is_not_filled_by_checkpoints_that_fail() {
    let disk = SimDisk::new();
    let durable = open(&disk).unwrap();
    let mut actor = Actor::new(12);
    (0..60).for_each(|_| drop(actor.transaction(durable.manager())));
    durable.checkpoint().unwrap();
    (0..60).for_each(|_| drop(actor.transaction(durable.manager())));
    let used = disk.used();
    disk.set_capacity(Some(used + 2_000));
    for _ in 0..5 {
        assert_eq!(durable.checkpoint().unwrap_err().kind(), ErrorKind::Io);
        assert_eq!(disk.used(), used, "a failed checkpoint leaves nothing");
    }
    disk.set_capacity(None);
    assert!(durable.checkpoint().unwrap().is_some());
    assert_eq!(durable.checkpoint_status().trouble, None);
    let expected = dump_now(durable.manager());
    drop(durable);
    assert_eq!(dump_now(open(&disk).unwrap().manager()), expected);
}

#[test]
fn lost_manifests_are_no_new_database() {
    let disk = SimDisk::new();
    drop(open(&disk).unwrap());
    for version in Manifest::versions(&disk).unwrap() {
        disk.remove(&Manifest::path(version)).unwrap();
    }
    let error = open(&disk).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Damaged);
    assert!(error.message().contains("no manifest"), "{error}");
}

/// An error names a missing file, with and without a checkpoint, and changes nothing.
#[test]
fn a_missing_file_is_named() {
    for is_checkpointed in [false, true] {
        let disk = SimDisk::new();
        let durable = open(&disk).unwrap();
        let mut actor = Actor::new(21);
        (0..30).for_each(|_| drop(actor.transaction(durable.manager())));
        if is_checkpointed {
            durable.checkpoint().unwrap().unwrap();
        }
        (0..30).for_each(|_| drop(actor.transaction(durable.manager())));
        let expected = dump_now(durable.manager());
        drop(durable);
        let manifest = Manifest::newest(&disk).unwrap().unwrap();
        let logs = disk.list(crate::log::DIRECTORY).unwrap();
        // The last segment with batches is the end of the log: no later batch shows that it is missing.
        let logs = logs.into_iter().map(|name| format!("wal/{name}")).filter(|path| {
            let seq = u64::from_str_radix(&path["wal/".len()..], 16).unwrap();
            seq >= manifest.log_floor().segment
        });
        let logs: Vec<_> = logs.collect();
        let (_, inner) = logs.split_last().unwrap();
        assert_eq!(manifest.packs.is_empty(), !is_checkpointed);
        let files = manifest.packs.iter().map(|pack| pack.path()).chain(inner.iter().cloned());
        for path in files {
            let disk = disk.power_cut(1);
            disk.remove(&path).unwrap();
            let error = open(&disk).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Damaged, "{error}");
            assert!(error.message().contains(&path) && error.message().contains("missing"), "{error}");
            assert_eq!(Manifest::newest(&disk).unwrap().as_ref(), Some(&manifest));
        }
        let disk = disk.power_cut(2);
        logs.iter().for_each(|path| disk.remove(path).unwrap());
        let error = open(&disk).unwrap_err();
        assert!(error.kind() == ErrorKind::Damaged && error.message().contains(&logs[0]), "{error}");
        assert!(!expected.is_empty());
    }
}

/// The disk fills up before the opened log has a segment, and has space again when a checkpoint is taken. All files
/// that the checkpoint's manifest names must exist.
#[test]
fn a_checkpoint_names_no_segment_that_is_not_there() {
    let disk = SimDisk::new();
    let durable = open(&disk).unwrap();
    let mut actor = Actor::new(22);
    (0..30).for_each(|_| drop(actor.transaction(durable.manager())));
    let expected = dump_now(durable.manager());
    drop(durable);
    // This opening cuts off the end of the log.
    drop(open(&disk).unwrap());
    // Space for the manifest of an opening, but not for a segment.
    disk.set_capacity(Some(disk.used() + 2_000));
    let durable = open(&disk).unwrap();
    assert_ne!(durable.log_status().state, LogState::Running);
    assert!(durable.checkpoint().is_err());
    disk.set_capacity(None);
    assert!(durable.checkpoint().unwrap().is_some());
    drop(durable);
    assert_eq!(dump_now(open(&disk).unwrap().manager()), expected);
}

/// If the creation of a database is interrupted at any operation, the next opening repeats it. It does not take the
/// directory for a database that lost its manifests.
#[test]
fn a_new_database_is_made_in_spite_of_power_cuts() {
    for operation in 1.. {
        for seed in 0..8 {
            let disk = SimDisk::new();
            disk.power_off_at(operation);
            let is_open = open(&disk).is_ok();
            let disk = disk.power_cut(seed);
            drop(open(&disk).unwrap_or_else(|error| panic!("operation {operation}, seed {seed}: {error}")));
            if is_open && seed == 7 {
                return;
            }
        }
    }
}

#[test]
fn checkpoints_are_due_by_the_length_of_the_log_or_by_time() {
    let seconds = Duration::from_secs;
    let both = CheckpointPolicy { log_bytes: Some(100), after: Some(seconds(9)) };
    assert!(both.is_now(100, 0, seconds(0)) && both.is_now(1, 0, seconds(9)));
    assert!(!both.is_now(99, 0, seconds(8)) && !both.is_now(0, 0, seconds(60)), "nothing has been written");
    let by_time = CheckpointPolicy { log_bytes: Some(0), ..both };
    assert!(by_time.is_ever() && !by_time.is_now(1 << 40, 0, seconds(1)));
    assert!(!CheckpointPolicy { log_bytes: Some(0), after: None }.is_ever());
}

#[test]
fn checkpoints_come_by_themselves_and_go_on_under_writers() {
    let disk = SimDisk::new();
    let after = Some(Duration::from_millis(500));
    let options = DurableOptions { checkpoint_log_bytes: Some(1 << 40), checkpoint_after: after, ..options() };
    let durable = Durable::open(Arc::new(disk.clone()), &options, &|_| ()).unwrap();
    let mut actor = Actor::new(11);
    let mut rounds = 0;
    while durable.checkpoint_status().taken < 2 {
        actor.transaction(durable.manager());
        std::thread::sleep(Duration::from_millis(1));
        rounds += 1;
        assert!(rounds < 20_000, "{:?}", durable.checkpoint_status());
    }
    let expected = dump_now(durable.manager());
    drop(durable);
    assert_eq!(dump_now(open(&disk.power_cut(1)).unwrap().manager()), expected);
}

/// A log that no correct graph writes: two vertices have the same value for a unique index.
#[test]
fn unique_indexes_are_checked_again() {
    let disk = SimDisk::new();
    let durable = open(&disk).unwrap();
    let manager = durable.manager();
    let catalog = manager.store().catalog();
    let (label, key) = (catalog.intern_label_text("person"), catalog.intern_key("name"));
    for name in ["ada", "bob", "ada"] {
        let txn = manager.begin(Default::default()).unwrap();
        let vertex = txn.insert_vertex(label, None).unwrap();
        txn.set_vertex_property(vertex, key, name.into(), WriteCardinality::Single, Vec::new()).unwrap();
        txn.commit().unwrap();
    }
    let options =
        IndexOptions { element: ElementKind::Vertex, label: None, keys: vec![key], ordered: false, unique: true };
    assert_eq!(manager.create_index(&options).unwrap_err().kind(), ErrorKind::DuplicateId);
    let info = IndexInfo {
        id: IndexId(7),
        element: ElementKind::Vertex,
        label: None,
        keys: [key].into(),
        ordered: false,
        unique: true,
    };
    let forged = mangrove_txn::IndexChange::Created(info);
    mangrove_txn::CommitLog::change_index(&*durable.inner.log, &forged, &FixedWatermarks(manager.watermark())).unwrap();
    drop(durable);
    for error in [
        open(&disk).map(drop).unwrap_err(),
        crate::verify::verify(&disk, 1, &mut |_, _, _| Ok(None), &|_| ()).map(drop).unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Damaged, "{error}");
        assert!(error.message().contains("two vertices have 'name' = 'ada', and index 7 keeps that unique"), "{error}");
    }
}

/// Watermarks of a graph in which all commits up to this timestamp were handed over.
struct FixedWatermarks(u64);

impl mangrove_txn::Watermarks for FixedWatermarks {
    fn stable(&self) -> u64 {
        self.0
    }
    fn set_durable(&self, _: u64) {}
}

/// A worker of the recovery finds the damage, long before the reader reaches the end of the log.
#[test]
fn damage_found_by_a_worker_is_named_with_file_and_offset() {
    let disk = SimDisk::new();
    let durable = open(&disk).unwrap();
    let mut actor = Actor::new(41);
    (0..20).for_each(|_| drop(actor.transaction(durable.manager())));
    let (log, first) = (&durable.inner.log, durable.manager().watermark() + 1);
    let (segment, bytes) = (log.status().segment, log.status().bytes);
    // Each commit deletes a missing vertex of the first tablet: a byte, then the id with the tablet last.
    for ts in first..first + 300 {
        let mut body = vec![5];
        crate::codec::put_varint(9_999 << 16 | 1, &mut body);
        log.forge(ts, body);
        mangrove_txn::CommitLog::wait(&**log, ts, &FixedWatermarks(ts)).unwrap();
    }
    assert!(log.status().segment > segment && bytes > 0);
    drop(durable);
    for _ in 0..20 {
        let error = open(&disk).map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Damaged, "{error}");
        assert!(error.message().contains(&format!("wal/{segment:016x}, offset ")), "{error}");
    }
}

#[test]
fn the_log_may_grow_with_the_graph_before_a_checkpoint() {
    let is_due = |log_bytes, grown, live| {
        CheckpointPolicy { log_bytes, after: None }.is_now(grown, live, Duration::from_secs(9))
    };
    let mib = 1 << 20;
    for (grown, live, expected) in [
        (63 * mib, 0, false),
        (64 * mib, 256 * mib, true),
        (64 * mib, 1_024 * mib, false),
        (256 * mib, 1_024 * mib, true),
    ] {
        assert_eq!(is_due(None, grown, live), expected, "{grown} bytes of log, {live} live bytes");
    }
    assert!(is_due(Some(7), 7, 1_024 * mib) && !is_due(Some(7), 6, 0) && !is_due(Some(0), u64::MAX, 0));
}

/// The kinds of files of a database, and true if every flipped bit is found. In a manifest, the case of a hexadecimal
/// digit has no meaning. In the log, padding and unused blocks have none, and a damaged last batch may be taken for a
/// torn one.
const FILE_KINDS: [(&str, bool); 4] =
    [("newest manifest", false), ("older manifest", false), ("pack", true), ("log", false)];

fn kind_of(path: &str, newest: &str) -> &'static str {
    match path.split_once('/') {
        Some(("manifest", _)) if path == newest => "newest manifest",
        Some(("manifest", _)) => "older manifest",
        Some(("pack", _)) => "pack",
        Some(("wal", _)) => "log",
        _ => panic!("{path} is of no kind"),
    }
}

#[test]
fn a_flipped_bit_in_any_kind_of_file_is_found_and_its_file_named() {
    let disk = SimDisk::new();
    let durable = open(&disk).unwrap();
    let mut actor = Actor::new(31);
    for _ in 0..2 {
        (0..25).for_each(|_| drop(actor.transaction(durable.manager())));
        change_indexes(&durable, &mut actor).unwrap();
        durable.checkpoint().unwrap().unwrap();
    }
    (0..25).for_each(|_| drop(actor.transaction(durable.manager())));
    let before_last = dump_now(durable.manager());
    let txn = durable.manager().begin(Default::default()).unwrap();
    txn.insert_vertex(txn.store().catalog().intern_label_text("x"), None).unwrap();
    txn.commit().unwrap();
    let expected = dump_now(durable.manager());
    drop(durable);
    let newest = Manifest::path(*Manifest::versions(&disk).unwrap().last().unwrap());
    let mut tally: std::collections::BTreeMap<&str, (u64, u64)> = Default::default();
    for (path, length) in disk.files() {
        let kind = kind_of(&path, &newest);
        // Positions all over the file, denser where most is written.
        let places = (0..length.min(256)).step_by(7).chain((256..length).step_by((length / 40).max(11) as usize));
        for at in places {
            let disk = disk.power_cut(0);
            disk.flip_bit(&path, at, (at % 8) as u8).unwrap();
            let (found, harmless) = tally.entry(kind).or_default();
            match crate::verify::verify(&disk, 1, &mut |_, _, _| Ok(None), &|_| ()) {
                Ok(verified) => {
                    let last_ts = verified.recovery.last_ts;
                    let manager = TransactionManager::resuming(Arc::new(verified.store), Default::default(), last_ts);
                    let (seen, torn) = (dump_now(&manager), &verified.recovery.log.torn);
                    let is_torn = seen == before_last && torn.as_ref().is_some_and(|torn| torn.path == path);
                    assert!(seen == expected || is_torn, "{path}, byte {at}");
                    *harmless += 1;
                }
                Err(error) => {
                    assert!(matches!(error.kind(), ErrorKind::Damaged | ErrorKind::Unsupported), "{error}");
                    assert!(error.message().contains(&path), "byte {at} of {path}: {error}");
                    *found += 1;
                }
            }
        }
    }
    println!("kind of file: bits found, bits without a meaning: {tally:?}");
    for (kind, is_every_bit_found) in FILE_KINDS {
        let (found, harmless) = tally.remove(kind).unwrap_or_else(|| panic!("there is no file of the kind {kind}"));
        assert!(found > 0 && (harmless == 0 || !is_every_bit_found), "{kind}: {found} found, {harmless} not");
    }
}
