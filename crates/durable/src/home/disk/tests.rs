//! The contract on directories, and what is left after power cuts and failures.

use std::path::PathBuf;

use super::super::contract::{self, name, pieces};
use super::super::{HomeErrorKind, WaitHome};
use super::*;
use crate::disk::{LocalDisk, SimDisk};

/// A directory of this test, removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("mangrove-home-{test}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Scratch(path)
    }

    fn open(&self, threads: usize) -> Arc<dyn Home> {
        Arc::new(DiskHome::new(Arc::new(LocalDisk::new(&self.0).unwrap()), threads).unwrap())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn on(disk: &SimDisk) -> DiskHome {
    DiskHome::new(Arc::new(disk.clone()), 0).unwrap()
}

#[test]
fn a_directory_keeps_the_contract() {
    let scratch = Scratch::new("contract");
    let home = scratch.open(4);
    contract::check(&home);
    contract::put_before_opening_again(&*home);
    drop(home);
    contract::check_after_opening_again(&*scratch.open(4));
    assert_eq!(std::fs::read_dir(scratch.0.join(DRAFT_DIR)).unwrap().count(), 0, "no draft is left");
}

#[test]
fn a_simulated_disk_keeps_the_contract() {
    let disk = SimDisk::new();
    let home: Arc<dyn Home> = Arc::new(on(&disk));
    contract::check(&home);
    contract::put_before_opening_again(&*home);
    contract::check_after_opening_again(&on(&disk.power_cut(0)));
}

#[test]
fn two_homes_of_one_directory_agree() {
    let scratch = Scratch::new("two");
    let (one, other) = (scratch.open(1), scratch.open(1));
    for n in 0..50 {
        let contested = name(&format!("log/{n}"));
        let put = |home: &Arc<dyn Home>, byte: u8| home.put_new(&contested, vec![byte; 100].into()).unwrap();
        std::thread::scope(|scope| {
            let first = scope.spawn(|| put(&one, 1));
            let second = put(&other, 2);
            let winner = if second == Put::Done { 2 } else { 1 };
            assert_eq!(first.join().unwrap() == Put::Done, winner == 1);
            assert_eq!(one.get(&contested).unwrap(), other.get(&contested).unwrap());
            assert_eq!(one.get(&contested).unwrap().unwrap(), vec![winner; 100]);
        });
    }
}

/// Some puts and deletes. Returns what was answered, for the comparison after a power cut.
fn history(home: &DiskHome) -> Vec<(Name, Vec<u8>, bool)> {
    let mut answered = Vec::new();
    for n in 0..6_u8 {
        let (new, unique) = (name(&format!("log/{}/{n}", n % 2)), name(&format!("pack/{n}")));
        let bytes = contract::pattern(1_500 + usize::from(n));
        let put = home.put_new(&new, bytes.clone().into());
        answered.push((new, bytes.clone(), put == Ok(Put::Done)));
        let put = home.put_unique(&unique, pieces(&[&bytes[..700], &bytes[700..]]));
        answered.push((unique, bytes, put.is_ok()));
    }
    answered
}

#[test]
fn an_answered_put_survives_a_power_cut_and_no_other_is_seen_in_part() {
    let whole = SimDisk::new();
    assert!(history(&on(&whole)).iter().all(|(.., done)| *done));
    let (mut survivors, mut lost) = (0, 0);
    for operation in 1..=whole.operations() + 1 {
        let disk = SimDisk::new();
        disk.power_off_at(operation);
        let answered = history(&on(&disk));
        for seed in 0..6 {
            let home = on(&disk.power_cut(seed));
            for (object, bytes, done) in &answered {
                match home.get(object).unwrap() {
                    Some(found) => {
                        assert!(found == bytes, "{object} is not whole, operation {operation}, seed {seed}");
                        survivors += u64::from(!done);
                    }
                    None => {
                        assert!(!done, "{object} is gone, operation {operation}, seed {seed}");
                        lost += 1;
                    }
                }
            }
            let listed: Vec<_> =
                ["log/0", "log/1", "pack"].iter().flat_map(|dir| home.list(&name(dir)).unwrap()).collect();
            assert!(listed.iter().all(|listed| answered.iter().any(|(object, ..)| object == listed)), "{listed:?}");
            assert!(home.list(&name("log")).unwrap().is_empty());
        }
    }
    assert!(survivors > 0 && lost > 0, "both ends of an unanswered put: {survivors} and {lost}");
}

#[test]
fn what_was_read_survives_a_power_cut_though_its_writer_never_synced_it() {
    let show: [fn(&DiskHome) -> bool; 4] = [
        |home| home.get(&name("log/1")).unwrap().is_some(),
        |home| home.head(&name("log/1")).unwrap().is_some(),
        |home| !home.list(&name("log")).unwrap().is_empty(),
        |home| home.put_new(&name("log/1"), Bytes::from_static(b"reader's")).unwrap() == Put::Taken,
    ];
    for shows in show {
        // The writer dies between the link and the sync of the directory.
        let disk = SimDisk::new();
        disk.create_dir("log").unwrap();
        disk.sync_dir("").unwrap();
        let file = disk.create("log/draft").unwrap();
        file.write_at(0, b"writer's").unwrap();
        file.sync_data().unwrap();
        disk.link_new("log/draft", "log/1").unwrap();
        assert!(on(&disk.power_cut(0)).get(&name("log/1")).unwrap().is_none(), "the name is not durable yet");
        assert!(shows(&on(&disk)));
        assert_eq!(on(&disk.power_cut(0)).get(&name("log/1")).unwrap().unwrap(), "writer's");
    }
}

#[test]
fn a_home_whose_directory_cannot_be_synced_fails() {
    let bytes = Bytes::from_static(b"x");
    let whole = SimDisk::new();
    on(&whole).put_new(&name("log/1"), bytes.clone()).unwrap();
    let (mut unknown, mut clean) = (0, 0);
    for operation in 1..=whole.operations() {
        let disk = SimDisk::new();
        disk.fail_at(operation);
        let home = on(&disk);
        match home.put_new(&name("log/1"), bytes.clone()) {
            // Only the removal of a draft may fail unnoticed.
            Ok(put) => assert_eq!((put, operation), (Put::Done, whole.operations() - 1)),
            Err(error) if error.kind() == HomeErrorKind::Unknown => {
                unknown += 1;
                assert!(error.message().contains("open the graph again"), "{error}");
                let later = home.get(&name("log/1")).unwrap_err();
                assert_eq!((later.kind(), later.message()), (HomeErrorKind::Failed, error.message()));
                assert_eq!(on(&disk).put_new(&name("log/2"), bytes.clone()), Ok(Put::Done), "opened again");
            }
            Err(error) => {
                clean += 1;
                assert_eq!(error.kind(), HomeErrorKind::Unavailable);
                assert_eq!(home.get(&name("log/1")), Ok(None), "nothing was changed");
                assert_eq!(home.put_new(&name("log/1"), bytes.clone()), Ok(Put::Done));
            }
        }
    }
    assert!(unknown > 0 && clean > 0, "{unknown} and {clean}");
}

#[test]
fn a_sync_of_bytes_that_fails_puts_nothing() {
    let disk = SimDisk::new();
    disk.fail_sync(1);
    let home = on(&disk);
    assert_eq!(home.put_new(&name("log/1"), vec![7; 5_000].into()).unwrap_err().kind(), HomeErrorKind::Unavailable);
    assert_eq!(home.get(&name("log/1")), Ok(None));
    // The second attempt writes its bytes anew, to another draft.
    assert_eq!(home.put_new(&name("log/1"), vec![7; 5_000].into()), Ok(Put::Done));
    assert_eq!(on(&disk.power_cut(0)).get(&name("log/1")).unwrap().unwrap(), vec![7; 5_000]);
}

#[test]
fn a_full_or_read_only_disk_is_named_with_the_way_out() {
    let disk = SimDisk::new();
    let home = on(&disk);
    home.put_new(&name("log/1"), Bytes::from_static(b"x")).unwrap();
    disk.set_capacity(Some(1_000));
    let error = home.put_new(&name("log/2"), vec![0; 2_000].into()).unwrap_err();
    assert_eq!(error.kind(), HomeErrorKind::Unavailable);
    assert!(error.message().contains("make room on the disk"), "{error}");
    assert_eq!(disk.used(), 1, "the draft is removed");
    disk.set_capacity(None);
    disk.set_read_only(true);
    let reader = on(&disk);
    assert_eq!(reader.get(&name("log/1")).unwrap().unwrap(), "x");
    assert_eq!(reader.list(&name("log")).unwrap(), [name("log/1")]);
    let error = reader.put_new(&name("log/2"), Bytes::new()).unwrap_err();
    assert_eq!(error.kind(), HomeErrorKind::Refused);
    assert!(error.message().contains("read-only"), "{error}");
}

#[test]
fn drafts_of_died_processes_are_hidden_and_can_be_removed() {
    let scratch = Scratch::new("drafts");
    let home = DiskHome::new(Arc::new(LocalDisk::new(&scratch.0).unwrap()), 0).unwrap();
    home.remove_drafts().unwrap();
    std::fs::create_dir_all(scratch.0.join(DRAFT_DIR)).unwrap();
    std::fs::write(scratch.0.join(".draft/0"), "half an obj").unwrap();
    home.put_new(&name("log/1"), Bytes::from_static(b"x")).unwrap();
    assert_eq!(std::fs::read(scratch.0.join(".draft/0")).unwrap(), b"half an obj", "it may belong to a live process");
    // A file of another program.
    std::fs::write(scratch.0.join("log/.nfs 1"), "x").unwrap();
    assert_eq!(home.list(&name("log")).unwrap(), [name("log/1")]);
    home.remove_drafts().unwrap();
    assert_eq!(std::fs::read_dir(scratch.0.join(DRAFT_DIR)).unwrap().count(), 0);
}

#[test]
fn a_directory_that_was_removed_is_made_again() {
    let scratch = Scratch::new("removed");
    let home = scratch.open(0);
    let put = |part: &str| home.put_new(&name(&format!("log/{part}")), Bytes::from_static(b"x"));
    put("1").unwrap();
    std::fs::remove_dir_all(scratch.0.join("log")).unwrap();
    let error = put("2").unwrap_err();
    assert_eq!(error.kind(), HomeErrorKind::Unavailable, "{error}");
    assert_eq!(put("2"), Ok(Put::Done));
    assert_eq!(home.list(&name("log")).unwrap(), [name("log/2")]);
}

#[test]
fn requests_are_answered_though_the_home_is_dropped() {
    let scratch = Scratch::new("dropped");
    let home = scratch.open(2);
    let (sender, answers) = std::sync::mpsc::channel();
    for n in 0..100 {
        let sender = sender.clone();
        // The completion holds the home: the last one drops it, on a thread of the home.
        let held = home.clone();
        let put = Request::PutNew { name: name(&format!("log/{n}")), bytes: Bytes::new() };
        home.submit(
            put,
            Box::new(move |answer| {
                sender.send(answer.is_ok()).unwrap();
                drop(held);
            }),
        );
    }
    drop((home, sender));
    assert_eq!(answers.iter().filter(|ok| *ok).count(), 100);
}
