//! Backups of homes and directories, restored and compared; what they copy; what is deleted.

use std::sync::atomic::{AtomicBool, Ordering};

use mangrove_txn::TransactionManager;
use rand::Rng;

use super::*;
use crate::disk::{Disk, SimDisk};
use crate::durable::{Durable, DurableOptions};
use crate::durable_home::{DurableHome, DurableHomeOptions};
use crate::home::MemoryHome;
use crate::home::counting::{CountingHome, RequestKind};
use crate::restore::{RestoreOptions, restore};
use crate::stream::log::ObjectLogOptions;
use crate::stream::names::stream_place;
use crate::testing::{Actor, Dump, dump_now, quiet};

const WAIT: Duration = Duration::from_secs(20);

fn graph_options() -> DurableOptions {
    DurableOptions { tablet_count: 3, checkpoint_log_bytes: Some(0), recovery_threads: 2, ..DurableOptions::default() }
}

fn open(home: &Arc<dyn Home>) -> DurableHome {
    let options = DurableHomeOptions {
        graph: graph_options(),
        log: ObjectLogOptions { lease: Duration::ZERO, ..ObjectLogOptions::default() },
        ..DurableHomeOptions::default()
    };
    let graph = DurableHome::open(home.clone(), &options, &|_| ()).unwrap();
    quiet(graph.manager());
    graph
}

fn open_directory(disk: &Arc<dyn Disk>) -> Durable {
    let graph = Durable::open(disk.clone(), &graph_options(), &|_| ()).unwrap();
    quiet(graph.manager());
    graph
}

fn memory() -> Arc<dyn Home> {
    Arc::new(MemoryHome::new())
}

/// Runs transactions until so many have changed something.
fn run(actor: &mut Actor, manager: &TransactionManager, commits: usize) {
    let end = manager.watermark() + commits as u64;
    while manager.watermark() < end {
        drop(actor.transaction(manager));
    }
}

/// The graph that a restore makes.
fn restored(from: &Arc<dyn Home>, moment: Moment) -> Dump {
    let to = memory();
    restore(&Location::Home(from.clone()), moment, &Location::Home(to.clone()), &RestoreOptions::default()).unwrap();
    dump_now(open(&to).manager())
}

fn names(home: &dyn Home, directory: &str) -> BTreeSet<String> {
    home.list(&Name::new(directory).unwrap()).unwrap().iter().map(Name::to_string).collect()
}

#[test]
fn a_backup_copies_what_was_written_since_the_last_and_each_is_restored() {
    let counting = Arc::new(CountingHome::new(memory()));
    let home: Arc<dyn Home> = counting.clone();
    let (to, mut actor) = (memory(), Actor::new(4));
    let written = || counting.count(RequestKind::PutUnique).bytes + counting.count(RequestKind::PutNew).bytes;
    let mut taken: Vec<(u64, u64, Dump)> = Vec::new();
    for life in 0..4 {
        let graph = open(&home);
        for round in 0..3 {
            let before = written();
            run(&mut actor, graph.manager(), 12);
            if actor.rng.random() {
                graph.checkpoint().unwrap();
            }
            let (what, since) = (format!("life {life}, round {round}"), written() - before);
            let report = backup(&Location::Home(home.clone()), &to, BackupOptions::default()).unwrap();
            if round > 0 {
                assert!(report.copied_bytes <= since, "{what}: {} of {since} bytes", report.copied_bytes);
            }
            assert!(report.copied_bytes > 0, "{what}");
            assert_eq!(report.backup.last_ts, graph.manager().watermark(), "{what}");
            taken.push((report.backup.number, report.backup.last_ts, dump_now(graph.manager())));
            let again = backup(&Location::Home(home.clone()), &to, BackupOptions::default()).unwrap();
            assert_eq!((again.copied, again.copied_bytes), (0, 0), "{what}: nothing was written since");
        }
    }
    for (number, commit, dump) in &taken {
        assert!(restored(&to, Moment::Commit(*commit)) == *dump, "backup {number}");
    }
    assert!(restored(&to, Moment::Newest) == taken.last().unwrap().2);
    // No pin is left, at either end.
    assert!(names(&*home, "pin").is_empty() && names(&*to, "pin").is_empty());
}

#[test]
fn old_backups_are_deleted_with_what_they_alone_need() {
    let (home, to, mut actor) = (memory(), memory(), Actor::new(6));
    let options = BackupOptions { keep: Some(2), ..BackupOptions::default() };
    let mut taken = Vec::new();
    for round in 0..6 {
        let graph = open(&home);
        run(&mut actor, graph.manager(), 10);
        graph.checkpoint().unwrap();
        run(&mut actor, graph.manager(), 3);
        let report = backup(&Location::Home(home.clone()), &to, options).unwrap();
        assert_eq!((report.deleted, report.not_deleted), (u64::from(round >= 2), None));
        taken.push((report.backup.last_ts, dump_now(graph.manager())));
    }
    let kept = list_backups(&*to, WAIT).unwrap();
    assert_eq!(kept.iter().map(|backup| backup.number).collect::<Vec<_>>(), [5, 6]);
    let needed: BTreeSet<String> = kept.iter().flat_map(|backup| backup.packs()).map(|pack| pack.path()).collect();
    assert_eq!(names(&*to, "pack"), needed);
    let places: BTreeSet<(u64, u64)> = kept.iter().flat_map(|b| b.spans()).flat_map(|span| span.places()).collect();
    for incarnation in 1..=6 {
        let first = stream_name(incarnation, 1);
        for name in names(&*to, crate::disk::parent(&first)) {
            let place = stream_place(&name).unwrap();
            // A stream that no backup names any more is left alone.
            assert!(places.contains(&place) || !places.iter().any(|(stream, _)| *stream == incarnation), "{name}");
        }
    }
    for (commit, dump) in &taken[4..] {
        assert!(restored(&to, Moment::Commit(*commit)) == *dump);
    }
    let target = Location::Home(memory());
    let from = Location::Home(to.clone());
    let gone = restore(&from, Moment::Commit(taken[1].0), &target, &RestoreOptions::default()).unwrap_err();
    assert!(gone.kind() == ErrorKind::NotFound && gone.message().contains("Backup 5 has commits"), "{gone}");
    // While a restore reads, nothing is deleted.
    let reading = hold(&to, "restore", WAIT).unwrap();
    let options = BackupOptions { keep: Some(1), ..BackupOptions::default() };
    let report = backup(&Location::Home(home.clone()), &to, options).unwrap();
    assert_eq!(report.deleted, 0);
    assert!(report.not_deleted.is_some_and(|others| others.contains("restore")));
    drop(reading);
    assert_eq!(backup(&Location::Home(home), &to, options).unwrap().deleted, 3);
    assert!(restored(&to, Moment::Newest) == taken[5].1);
}

#[test]
fn a_backup_waits_for_a_collection() {
    let (home, to) = (memory(), memory());
    drop(open(&home));
    let collection = Pin::mark(to.clone(), PinOptions::of(COLLECTION, WAIT)).unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(50));
            is_over.store(true, Ordering::SeqCst);
            drop(collection);
        });
        backup(&Location::Home(home.clone()), &to, BackupOptions::default()).unwrap();
        assert!(is_over.load(Ordering::SeqCst));
    });
}

#[test]
fn a_home_has_backups_of_one_database_and_no_graph() {
    let (one, other, to) = (memory(), memory(), memory());
    drop((open(&one), open(&other)));
    backup(&Location::Home(one.clone()), &to, BackupOptions::default()).unwrap();
    let error = backup(&Location::Home(other.clone()), &to, BackupOptions::default()).unwrap_err();
    assert!(error.message().contains("has backups of database"), "{error}");
    let error = backup(&Location::Home(one.clone()), &other, BackupOptions::default()).unwrap_err();
    assert!(error.message().contains("is the home of a graph"), "{error}");
    let error = restore(&Location::Home(one), Moment::Newest, &Location::Home(to), &RestoreOptions::default());
    assert!(error.unwrap_err().message().contains("is not empty"));
}

#[test]
fn a_directory_is_backed_up_open_and_closed() {
    let disk: Arc<dyn Disk> = Arc::new(SimDisk::new());
    let (to, mut actor) = (memory(), Actor::new(8));
    let mut taken = Vec::new();
    for life in 0..4 {
        let graph = open_directory(&disk);
        run(&mut actor, graph.manager(), 15);
        let (report, dump) = match life % 2 {
            0 => {
                let dump = dump_now(graph.manager());
                let report = graph.backup(&to, BackupOptions::default()).unwrap();
                let again = graph.backup(&to, BackupOptions::default()).unwrap();
                assert_eq!(again.copied, 0);
                // What comes later is no part of it.
                run(&mut actor, graph.manager(), 5);
                (report, dump)
            }
            _ => {
                let dump = dump_now(graph.manager());
                drop(graph);
                let first = backup(&Location::Directory(disk.clone()), &to, BackupOptions::default()).unwrap();
                assert!(first.copied > 0);
                (backup(&Location::Directory(disk.clone()), &to, BackupOptions::default()).unwrap(), dump)
            }
        };
        assert_eq!(report.copied == 0, life % 2 == 1, "nothing was written since");
        taken.push((report.backup.last_ts, dump));
    }
    for (at, (commit, dump)) in taken.iter().enumerate() {
        assert!(restored(&to, Moment::Commit(*commit)) == *dump, "backup of life {at}");
        let back: Arc<dyn Disk> = Arc::new(SimDisk::new());
        let target = Location::Directory(back.clone());
        restore(&Location::Home(to.clone()), Moment::Commit(*commit), &target, &RestoreOptions::default()).unwrap();
        assert!(dump_now(open_directory(&back).manager()) == *dump, "backup of life {at}");
    }
}

#[test]
fn a_directory_is_backed_up_while_transactions_run() {
    let disk: Arc<dyn Disk> = Arc::new(SimDisk::new());
    let (graph, to) = (open_directory(&disk), memory());
    let is_over = AtomicBool::new(false);
    let mut commits = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut actor = Actor::new(2);
            // So many at most, because each transaction scans the graph.
            for _ in 0..200 {
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
                run(&mut actor, graph.manager(), 1);
                std::thread::sleep(Duration::from_micros(200));
            }
        });
        for _ in 0..5 {
            // The watermark passes a commit before it is durable, and a backup has what is durable.
            let before = graph.manager().readable();
            let report = graph.backup(&to, BackupOptions { keep: Some(3), ..BackupOptions::default() }).unwrap();
            assert!(report.backup.last_ts >= before);
            commits.push(report.backup.last_ts);
        }
        is_over.store(true, Ordering::Relaxed);
    });
    // Each is whole: making the dump compares the edges with the lists of their ends.
    for commit in &commits[2..] {
        restored(&to, Moment::Commit(*commit));
    }
    graph.backup(&to, BackupOptions::default()).unwrap();
    assert!(restored(&to, Moment::Newest) == dump_now(graph.manager()));
}

#[test]
fn every_flipped_bit_of_a_backup_is_found() {
    let (home, to) = (memory(), memory());
    let graph = open(&home);
    run(&mut Actor::new(1), graph.manager(), 5);
    backup(&Location::Home(home.clone()), &to, BackupOptions::default()).unwrap();
    let name = Name::new("backup/1.json").unwrap();
    let right = to.get(&name).unwrap().unwrap();
    let expected = list_backups(&*to, WAIT).unwrap();
    for at in 0..right.len() {
        for bit in 0..8 {
            let mut wrong = right.to_vec();
            wrong[at] ^= 1 << bit;
            to.put_unique(&name, Box::new(Bytes::from(wrong))).unwrap();
            // The case of a hexadecimal digit has no meaning.
            match list_backups(&*to, WAIT) {
                Ok(found) => assert_eq!(found, expected, "byte {at}"),
                Err(error) => assert!(error.message().contains("backup/1.json is damaged"), "{error}"),
            }
        }
    }
}
