//! A random history of a graph, restored at each of its moments and compared with what it was then.

use std::sync::Arc;
use std::time::Duration;

use mangrove_graph::ErrorKind;
use mangrove_testdata::{case_count, first_seed};
use rand::Rng;

use super::*;
use crate::ambient::unix_us;
use crate::disk::{Disk, SimDisk};
use crate::durable::{Durable, DurableOptions};
use crate::durable_home::{DurableHome, DurableHomeOptions};
use crate::home::{Home, MemoryHome, Name, WaitHome};
use crate::states::Retention;
use crate::stream::log::ObjectLogOptions;
use crate::testing::{Actor, Dump, dump_now, quiet};

const WAIT: Duration = Duration::from_secs(20);

fn graph_options() -> DurableOptions {
    DurableOptions { tablet_count: 3, checkpoint_log_bytes: Some(0), recovery_threads: 2, ..DurableOptions::default() }
}

/// Options that keep every state.
fn keeping() -> DurableHomeOptions {
    DurableHomeOptions {
        graph: graph_options(),
        log: ObjectLogOptions { lease: Duration::ZERO, ..ObjectLogOptions::default() },
        retention: Retention { retain_for: Duration::from_secs(3_600), retain_at_least: 2 },
        ..DurableHomeOptions::default()
    }
}

fn open(home: &Arc<dyn Home>) -> DurableHome {
    let graph = DurableHome::open(home.clone(), &keeping(), &|_| ()).unwrap();
    quiet(graph.manager());
    graph
}

fn open_directory(disk: &Arc<dyn Disk>) -> Durable {
    let graph = Durable::open(disk.clone(), &graph_options(), &|_| ()).unwrap();
    quiet(graph.manager());
    graph
}

/// Runs transactions until one has changed something.
fn change(actor: &mut Actor, manager: &mangrove_txn::TransactionManager) {
    let before = manager.watermark();
    while manager.watermark() == before {
        drop(actor.transaction(manager));
    }
}

fn memory() -> Arc<dyn Home> {
    Arc::new(MemoryHome::new())
}

/// What a graph was after a commit, and until when.
struct Recorded {
    commit: u64,
    until_us: u64,
    dump: Dump,
}

/// Notes the state of a graph, and lets time pass after it.
fn recorded(manager: &mangrove_txn::TransactionManager) -> Recorded {
    std::thread::sleep(Duration::from_micros(200));
    let recorded = Recorded { commit: manager.watermark(), until_us: unix_us(), dump: dump_now(manager) };
    std::thread::sleep(Duration::from_micros(200));
    recorded
}

/// Owners one after the other, with checkpoints, until so many moments are recorded.
fn history(home: &Arc<dyn Home>, actor: &mut Actor, moments: usize) -> Vec<Recorded> {
    let mut all = Vec::new();
    while all.len() < moments {
        let graph = open(home);
        for _ in 0..actor.rng.random_range(5..25) {
            match actor.rng.random_range(0..6) {
                0 => drop(graph.checkpoint().unwrap()),
                _ => {
                    if let Some(outcome) = actor.transaction(graph.manager()) {
                        outcome.unwrap();
                        all.push(recorded(graph.manager()));
                    }
                }
            }
        }
        if actor.rng.random() {
            graph.close(WAIT).unwrap();
        }
    }
    all
}

fn restored(from: &Location, moment: Moment) -> (Arc<dyn Home>, RestoreReport) {
    let to = memory();
    let report = restore(from, moment, &Location::Home(to.clone()), &RestoreOptions::default())
        .unwrap_or_else(|error| panic!("{moment:?}: {error}"));
    (to, report)
}

#[test]
fn every_moment_of_a_history_is_restored() {
    let first = first_seed(0);
    for seed in first..first + case_count(1) {
        let mut actor = Actor::new(seed);
        let home = memory();
        let all = history(&home, &mut actor, 100);
        let from = Location::Home(home.clone());
        for (at, Recorded { commit, until_us, dump }) in all.iter().enumerate() {
            let what = format!("moment {at} of seed {seed}, commit {commit}");
            let moment = if at % 2 == 0 { Moment::Commit(*commit) } else { Moment::Time(*until_us) };
            if at % 3 == 0 {
                let disk: Arc<dyn Disk> = Arc::new(SimDisk::new());
                let to = Location::Directory(disk.clone());
                let report = restore(&from, moment, &to, &RestoreOptions::default()).unwrap();
                assert_eq!(report.origin.last_ts, *commit, "{what}");
                let graph = open_directory(&disk);
                assert!(dump_now(graph.manager()) == *dump, "{what}");
                // It goes on as any graph does.
                change(&mut actor, graph.manager());
                graph.checkpoint().unwrap().expect("a commit is new");
                let now = dump_now(graph.manager());
                drop(graph);
                assert!(dump_now(open_directory(&disk).manager()) == now, "{what}");
            } else {
                let (to, report) = restored(&from, moment);
                assert_eq!(report.origin.last_ts, *commit, "{what}");
                let graph = open(&to);
                assert_ne!(graph.database(), report.origin.database, "{what}");
                assert!(dump_now(graph.manager()) == *dump, "{what}");
                change(&mut actor, graph.manager());
                let now = recorded(graph.manager());
                graph.checkpoint().unwrap().expect("a commit is new");
                drop(graph);
                assert!(dump_now(open(&to).manager()) == now.dump, "{what}");
                if at % 8 == 1 {
                    // A restore of a restore, before and after its own checkpoint.
                    for (moment, expected) in [
                        (Moment::Commit(*commit), dump),
                        (Moment::Newest, &now.dump),
                        (Moment::Time(now.until_us), &now.dump),
                    ] {
                        let (again, report) = restored(&Location::Home(to.clone()), moment);
                        assert!(
                            dump_now(open(&again).manager()) == *expected,
                            "{what}, again at {moment:?}: {report:?}"
                        );
                    }
                }
            }
        }
        // The source is as it was.
        assert!(dump_now(open(&home).manager()) == all.last().unwrap().dump, "seed {seed}");
    }
}

#[test]
fn moments_that_are_not_kept_and_places_that_are_not_empty_are_refused() {
    let home = memory();
    let mut actor = Actor::new(1);
    let all = history(&home, &mut actor, 5);
    let last = all.last().unwrap();
    let from = Location::Home(home.clone());
    let refused = |moment, to: &Location| restore(&from, moment, to, &RestoreOptions::default()).unwrap_err();
    let empty = Location::Home(memory());
    let beyond = refused(Moment::Commit(last.commit + 1), &empty);
    assert!(beyond.kind() == ErrorKind::NotFound && beyond.message().contains("has no commit"), "{beyond}");
    let full = refused(Moment::Newest, &from);
    assert!(full.kind() == ErrorKind::InvalidArgument && full.message().contains("is not empty"), "{full}");
    // An owner that keeps two states only collects the others.
    let graph =
        DurableHome::open(home.clone(), &DurableHomeOptions { retention: Retention::default(), ..keeping() }, &|_| ());
    let graph = graph.unwrap();
    for _ in 0..3 {
        change(&mut actor, graph.manager());
        graph.checkpoint().unwrap();
    }
    let early = refused(Moment::Commit(all[0].commit), &empty);
    assert!(early.kind() == ErrorKind::NotFound && early.message().contains("has no states before"), "{early}");
    let early = refused(Moment::Time(all[0].until_us), &empty);
    assert!(early.message().contains("has no states before"), "{early}");
    let nothing = restore(&Location::Home(memory()), Moment::Newest, &empty, &RestoreOptions::default()).unwrap_err();
    assert!(nothing.message().contains("no graph and no backup"), "{nothing}");
}

#[test]
fn a_directory_is_restored_at_the_moments_of_its_log() {
    let disk: Arc<dyn Disk> = Arc::new(SimDisk::new());
    let mut actor = Actor::new(5);
    let mut all = Vec::new();
    let graph = open_directory(&disk);
    for round in 0..40 {
        if round == 15 {
            graph.checkpoint().unwrap();
            all.clear();
        }
        if let Some(outcome) = actor.transaction(graph.manager()) {
            outcome.unwrap();
            all.push(recorded(graph.manager()));
        }
    }
    drop(graph);
    let from = Location::Directory(disk);
    assert!(all.len() > 10);
    for (at, Recorded { commit, until_us, dump }) in all.iter().enumerate() {
        let moment = if at % 2 == 0 { Moment::Commit(*commit) } else { Moment::Time(*until_us) };
        let to: Arc<dyn Disk> = Arc::new(SimDisk::new());
        restore(&from, moment, &Location::Directory(to.clone()), &RestoreOptions::default()).unwrap();
        assert!(dump_now(open_directory(&to).manager()) == *dump, "moment {at}");
        let (home, report) = restored(&from, moment);
        assert_eq!(report.origin.last_ts, *commit);
        assert!(dump_now(open(&home).manager()) == *dump, "moment {at}");
        // From the home, to the batch of a second.
        let (again, _) = restored(&Location::Home(home), Moment::Commit(*commit));
        assert!(dump_now(open(&again).manager()) == *dump, "moment {at}");
    }
}

#[test]
fn a_pinned_state_outlives_collections_and_goes_with_its_pin() {
    let home = memory();
    let mut actor = Actor::new(9);
    let graph =
        DurableHome::open(home.clone(), &DurableHomeOptions { retention: Retention::default(), ..keeping() }, &|_| ());
    let graph = graph.unwrap();
    let round = |actor: &mut Actor| {
        change(actor, graph.manager());
        graph.checkpoint().unwrap().expect("a commit is new");
        recorded(graph.manager())
    };
    let first = round(&mut actor);
    let options = crate::pin::PinOptions::of("test", WAIT);
    let (pin, manifest) = crate::pin::Pin::hold(home.clone(), None, options).unwrap();
    assert_eq!(manifest.checkpoint_ts(), first.commit);
    for _ in 0..4 {
        round(&mut actor);
    }
    let numbers = || crate::states::manifest_numbers(&*home, WAIT).unwrap().len();
    assert_eq!(numbers(), 5, "the pinned manifest and all later ones");
    // What the pin holds is whole: packs, and streams from the floor on.
    let found = crate::extract::find::walk_home(&*home, manifest.clone(), Moment::Newest, WAIT).unwrap();
    let to = memory();
    let origin = Origin::of_home(home.clone(), WAIT);
    target::write(&Location::Home(to.clone()), &origin, found, None, &RestoreOptions::default()).unwrap();
    assert!(dump_now(open(&to).manager()) == dump_now(graph.manager()));
    drop(pin);
    round(&mut actor);
    assert_eq!(numbers(), 2);
    let gone = manifest.packs.iter().filter(|pack| home.head(&Name::new(&pack.path()).unwrap()).unwrap().is_none());
    assert!(gone.count() > 0, "packs that only the pinned state needed");
}

#[test]
fn a_flipped_bit_is_no_part_of_a_restored_graph() {
    let home = memory();
    history(&home, &mut Actor::new(3), 20);
    let manifest = crate::states::newest_manifest(&*home, WAIT).unwrap();
    let found = crate::extract::find::walk_home(&*home, manifest.clone(), Moment::Newest, WAIT).unwrap();
    let names = manifest.packs.iter().map(|pack| pack.path()).chain(found.spans.iter().flat_map(|span| span.names()));
    let mut checked = 0;
    for name in names {
        let place = Name::new(&name).unwrap();
        let right = home.get(&place).unwrap().unwrap();
        for at in [0, right.len() / 3, right.len() / 2, right.len() - 1] {
            let mut wrong = right.to_vec();
            wrong[at] ^= 0x10;
            home.put_unique(&place, Box::new(bytes::Bytes::from(wrong))).unwrap();
            let to = Location::Home(memory());
            let error = restore(&Location::Home(home.clone()), Moment::Newest, &to, &RestoreOptions::default());
            let error = error.expect_err("a bit was flipped");
            assert!(error.message().contains(&name), "{name}, byte {at}: {error}");
            checked += 1;
        }
        home.put_unique(&place, Box::new(right)).unwrap();
    }
    assert!(checked > 8, "{checked}");
}
