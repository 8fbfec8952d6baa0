//! A durable graph with failures at points that a test chooses (`mangrove_failpoint`): a panic, or a pause in which
//! other threads continue. Afterwards every acknowledged commit is found, once, and the process continues.
#![cfg(debug_assertions)]

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;

use mangrove_durable::disk::SimDisk;
use mangrove_durable::durable::{Durable, DurableOptions};
use mangrove_durable::log::{LogOptions, LogState};
use mangrove_failpoint::{Armed, Point, Scenario, set};
use mangrove_graph::{ErrorKind, GraphView, LabelFilter, Result, Share, UserId};
use mangrove_store::WriteCardinality;

/// The points of an open graph.
const RUNNING: [Point; 9] = [
    Point::FlushTaken,
    Point::FlushWritten,
    Point::SegmentNamed,
    Point::CheckpointFloor,
    Point::CheckpointImages,
    Point::CheckpointFiles,
    Point::CheckpointManifest,
    Point::CheckpointRelease,
    Point::Compaction,
];

/// Segments with three blocks for batches, so flushes often cross from one to the next.
fn options(prepare_ahead: bool) -> DurableOptions {
    let log =
        LogOptions { segment_bytes_min: 16 << 10, segment_bytes_max: 16 << 10, prepare_ahead, ..LogOptions::default() };
    DurableOptions {
        tablet_count: 2,
        log,
        checkpoint_log_bytes: Some(0),
        recovery_threads: 2,
        ..DurableOptions::default()
    }
}

fn open(disk: &SimDisk) -> Result<Durable> {
    let durable = Durable::open(Arc::new(disk.clone()), &options(false), &|_| ())?;
    durable.manager().settings().gc_workers.store(0, Ordering::Relaxed);
    Ok(durable)
}

/// Commits a vertex with this id, larger than a segment of the log.
fn insert(durable: &Durable, id: u64) -> Result<()> {
    insert_with(durable, id, 13_000)
}

fn insert_with(durable: &Durable, id: u64, bytes: usize) -> Result<()> {
    let txn = durable.manager().begin(Default::default())?;
    let catalog = txn.store().catalog();
    let vertex = txn.insert_vertex(catalog.intern_label_text("x"), Some(UserId::int(id as i64)))?;
    let text = "y".repeat(bytes);
    txn.set_vertex_property(vertex, catalog.intern_key("text"), text.into(), WriteCardinality::Single, Vec::new())?;
    txn.commit().map(drop)
}

/// The ids among these that exist; no other vertex may exist.
fn found(durable: &Durable, attempted: u64) -> BTreeSet<u64> {
    let view = durable.manager().begin_read().unwrap();
    let ids: Vec<UserId> = (0..attempted).map(|id| UserId::int(id as i64)).collect();
    let mut vertices = Vec::new();
    view.find_vertices(&ids, &mut vertices).unwrap();
    let found: BTreeSet<u64> = (0..attempted).filter(|&id| vertices[id as usize].is_some()).collect();
    assert_eq!(view.count_vertices(&LabelFilter::Any, Share::ALL).unwrap(), found.len() as u64, "each is there once");
    found
}

/// Panics when the point is reached for the given time, counted from 1.
fn panic_at(point: Point, time: u64) -> (Armed, Arc<AtomicU64>) {
    let count = Arc::new(AtomicU64::new(0));
    let reached = count.clone();
    let armed = set(point, move || match reached.fetch_add(1, Ordering::SeqCst) + 1 == time {
        true => panic!("a test panics at {point:?}"),
        false => Ok(()),
    });
    (armed, count)
}

/// Inserts vertices, takes checkpoints and compacts. Returns the acknowledged inserts.
fn work(durable: &Durable, ids: std::ops::Range<u64>) -> BTreeSet<u64> {
    let mut acknowledged = BTreeSet::new();
    for id in ids {
        if let Ok(Ok(())) = catch_unwind(AssertUnwindSafe(|| insert(durable, id))) {
            acknowledged.insert(id);
        }
        if id % 5 == 4
            && let Err(error) = durable.checkpoint()
        {
            let is_named = error.kind() == ErrorKind::Bug && error.message().contains("a test panics at Checkpoint");
            assert!(is_named || error.message().contains("a test panics at Flush"), "{error}");
        }
        if id % 7 == 6 {
            let _ = catch_unwind(AssertUnwindSafe(|| durable.manager().compact()));
        }
    }
    acknowledged
}

#[test]
fn a_panic_anywhere_loses_nothing_that_was_acknowledged() {
    let _scenario = Scenario::new();
    for point in RUNNING {
        for time in 1..=4 {
            let disk = SimDisk::new();
            let durable = open(&disk).unwrap();
            let (armed, reached) = panic_at(point, time);
            let acknowledged = work(&durable, 0..30);
            drop(armed);
            assert!(reached.load(Ordering::SeqCst) >= time, "{point:?} is reached {time} times");
            match durable.log_status().state {
                LogState::Failed { cause } => assert!(cause.contains("a test panics at Flush"), "{cause}"),
                state => {
                    assert!(!matches!(point, Point::FlushTaken | Point::FlushWritten), "{point:?}: {state:?}");
                    assert!(acknowledged.len() >= 29, "{point:?}: the graph goes on, {acknowledged:?}");
                    assert!(durable.checkpoint().is_ok(), "{point:?}");
                }
            }
            assert!(found(&durable, 30).is_superset(&acknowledged), "{point:?}, {time}: readers go on");
            drop(durable);
            for disk in [disk.power_cut(time), disk] {
                let again = open(&disk).unwrap();
                let there = found(&again, 30);
                assert!(there.is_superset(&acknowledged), "{point:?}, {time}: {acknowledged:?} became {there:?}");
                insert(&again, 30).unwrap();
            }
        }
    }
}

#[test]
fn a_panic_while_a_graph_is_opened_changes_nothing_that_counts() {
    let _scenario = Scenario::new();
    let disk = SimDisk::new();
    let durable = open(&disk).unwrap();
    assert_eq!(work(&durable, 0..23).len(), 23);
    drop(durable);
    for point in [Point::RecoveryWorker, Point::Recovered, Point::RecoveryEpoch, Point::SegmentNamed] {
        let (armed, reached) = panic_at(point, 1);
        let outcome = catch_unwind(AssertUnwindSafe(|| open(&disk).map(drop)));
        drop(armed);
        assert_eq!(reached.load(Ordering::SeqCst).min(1), 1, "{point:?} is reached");
        if point == Point::RecoveryWorker {
            let error = outcome.expect("a worker's panic is an error").unwrap_err();
            assert!(error.kind() == ErrorKind::Bug && error.message().contains("wal/"), "{error}");
            assert!(error.message().contains("a test panics at RecoveryWorker"), "{error}");
        }
        let again = open(&disk.power_cut(7)).unwrap();
        assert_eq!(found(&again, 23).len(), 23, "{point:?}");
    }
    let again = open(&disk).unwrap();
    insert(&again, 23).unwrap();
    assert_eq!(found(&again, 24).len(), 24);
}

/// Makes the first thread that reaches a point wait there. Returns a receiver of its arrival, and a sender that lets it
/// continue.
fn pause_at(point: Point) -> (Armed, mpsc::Receiver<()>, mpsc::Sender<()>) {
    let (arrived, has_arrived) = mpsc::channel();
    let (go_on, may_go_on) = mpsc::channel::<()>();
    let may_go_on = std::sync::Mutex::new(Some(may_go_on));
    let armed = set(point, move || {
        if let Some(may_go_on) = may_go_on.lock().unwrap().take() {
            arrived.send(()).unwrap();
            // Waits until the test sends, or ends.
            let _ = may_go_on.recv();
        }
        Ok(())
    });
    (armed, has_arrived, go_on)
}

/// A flush waits at a point while a checkpoint is taken and releases the log that it covers.
#[test]
fn a_checkpoint_beside_a_flush_that_waits_loses_nothing() {
    let _scenario = Scenario::new();
    for point in [Point::FlushTaken, Point::FlushWritten, Point::SegmentNamed] {
        for before in 0..6 {
            let disk = SimDisk::new();
            let durable = open(&disk).unwrap();
            (0..before).for_each(|id| insert(&durable, id).unwrap());
            std::thread::scope(|scope| {
                let (_armed, has_arrived, go_on) = pause_at(point);
                let committing = scope.spawn(|| (before..before + 4).for_each(|id| insert(&durable, id).unwrap()));
                has_arrived.recv().unwrap();
                if point == Point::SegmentNamed {
                    // The thread that makes a segment holds the lock for making and releasing segments.
                    go_on.send(()).unwrap();
                }
                durable.checkpoint().unwrap();
                let _ = go_on.send(());
                committing.join().unwrap();
            });
            drop(durable);
            for disk in [disk.power_cut(before), disk] {
                let again = open(&disk).unwrap_or_else(|error| panic!("{point:?}, {before}: {error}"));
                assert_eq!(found(&again, before + 4).len() as u64, before + 4, "{point:?}, {before}");
            }
        }
    }
}

/// The reverse: a checkpoint waits at each of its points while other threads commit.
#[test]
fn commits_beside_a_checkpoint_that_waits_are_all_there() {
    let _scenario = Scenario::new();
    for point in RUNNING.into_iter().filter(|point| format!("{point:?}").starts_with("Checkpoint")) {
        let disk = SimDisk::new();
        let durable = open(&disk).unwrap();
        (0..3).for_each(|id| insert(&durable, id).unwrap());
        std::thread::scope(|scope| {
            let (_armed, has_arrived, go_on) = pause_at(point);
            let checkpoint = scope.spawn(|| durable.checkpoint().unwrap());
            has_arrived.recv().unwrap();
            (3..13).for_each(|id| insert(&durable, id).unwrap());
            // The state after a power cut at this point.
            let cut = open(&disk.power_cut(5)).unwrap();
            assert_eq!(found(&cut, 13).len(), 13, "{point:?}");
            go_on.send(()).unwrap();
            checkpoint.join().unwrap();
        });
        insert(&durable, 13).unwrap();
        durable.checkpoint().unwrap();
        drop(durable);
        assert_eq!(found(&open(&disk).unwrap(), 14).len(), 14, "{point:?}");
    }
}

/// While a checkpoint examines files of the log, commits can reserve space in it.
#[test]
fn commits_do_not_wait_for_a_look_at_an_old_segment() {
    let _scenario = Scenario::new();
    let log = LogOptions { segment_bytes_min: 64 << 10, segment_bytes_max: 64 << 10, ..options(false).log };
    let options = DurableOptions { log, ..options(false) };
    let disk = SimDisk::new();
    let durable = Durable::open(Arc::new(disk.clone()), &options, &|_| ()).unwrap();
    (0..6).for_each(|id| insert(&durable, id).unwrap());
    std::thread::scope(|scope| {
        let (_armed, has_arrived, go_on) = pause_at(Point::SegmentRetired);
        let checkpoint = scope.spawn(|| durable.checkpoint().unwrap());
        has_arrived.recv().unwrap();
        let (committed, has_committed) = mpsc::channel();
        let durable = &durable;
        scope.spawn(move || committed.send(insert_with(durable, 6, 10)));
        let outcome = has_committed.recv_timeout(std::time::Duration::from_secs(20));
        go_on.send(()).unwrap();
        checkpoint.join().unwrap();
        outcome.expect("the commit does not wait for the checkpoint").unwrap();
    });
    drop(durable);
    assert_eq!(found(&open(&disk).unwrap(), 7).len(), 7);
}

/// A checkpoint in the background panics. The same thread tries again.
#[test]
fn checkpoints_in_the_background_outlive_a_panic() {
    let _scenario = Scenario::new();
    let (armed, reached) = panic_at(Point::CheckpointImages, 1);
    let disk = SimDisk::new();
    let options = DurableOptions { checkpoint_log_bytes: Some(1), ..options(true) };
    let durable = Durable::open(Arc::new(disk.clone()), &options, &|_| ()).unwrap();
    insert(&durable, 0).unwrap();
    let mut has_failed = false;
    for _ in 0..40_000 {
        let status = durable.checkpoint_status();
        if let Some(error) = status.trouble {
            assert!(error.message().contains("a test panics at CheckpointImages"), "{error}");
            has_failed = true;
        }
        if status.taken > 0 {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    assert!(has_failed && reached.load(Ordering::SeqCst) > 1, "it was tried again");
    drop((armed, durable));
    assert_eq!(found(&open(&disk).unwrap(), 1).len(), 1);
}
