//! Followers that are paused while their owner takes checkpoints and collects, with pins and without.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};

use super::super::*;
use super::owners::{self, FailingHome, insert};
use super::{ids, options, tail_with};
use crate::home::{HomeErrorKind, MemoryHome, Name, WaitHome};
use crate::pin::list_pins;
use crate::stream::names::MANIFESTS;

fn with_pins(time: Duration) -> FollowOptions {
    FollowOptions { pin_time: time, ..options() }
}

/// Commits, each with a checkpoint after it, which collects.
fn commits_with_checkpoints(owner: &DurableHome, commits: std::ops::Range<i64>) {
    for id in commits {
        insert(owner, id).unwrap();
        owner.checkpoint().unwrap().unwrap();
    }
}

fn catch_up(tail: &mut Tail) {
    while tail.step().unwrap() != Found::Nothing {}
}

#[test]
fn what_a_follower_has_not_read_stays_and_goes_when_it_has_read_it() {
    let home: Arc<dyn Home> = Arc::new(MemoryHome::new());
    let owner = owners::open(&home).unwrap();
    insert(&owner, 0).unwrap();
    let manifests = || home.list(&Name::new(MANIFESTS).unwrap()).unwrap().len();
    let mut paused = tail_with(&home, &with_pins(PIN_TIME)).unwrap();
    commits_with_checkpoints(&owner, 1..10);
    assert!(manifests() > 9, "all since the pinned one");
    catch_up(&mut paused);
    assert_eq!(ids(paused.manager()), (0..10).collect());
    // With the next step, the pin is that of the newest manifest.
    catch_up(&mut paused);
    commits_with_checkpoints(&owner, 10..11);
    assert_eq!(manifests(), 2);
    drop(paused);
    assert_eq!(list_pins(&*home, Duration::ZERO).unwrap(), []);
}

#[test]
fn a_follower_whose_pin_has_ended_says_so_and_pins_again_if_nothing_is_missing() {
    let time = Duration::from_millis(60);
    for is_collected in [false, true] {
        let home: Arc<dyn Home> = Arc::new(MemoryHome::new());
        let owner = owners::open(&home).unwrap();
        insert(&owner, 0).unwrap();
        let mut paused = tail_with(&home, &with_pins(time)).unwrap();
        std::thread::sleep(2 * time);
        assert_eq!(list_pins(&*home, Duration::ZERO).unwrap(), []);
        if is_collected {
            commits_with_checkpoints(&owner, 1..4);
            let error = std::iter::repeat_with(|| paused.step()).find_map(Result::err).unwrap();
            assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
            assert!(error.message().contains("open the graph again"), "{error}");
            drop(paused);
            paused = tail_with(&home, &with_pins(PIN_TIME)).unwrap();
        } else {
            insert(&owner, 1).unwrap();
            catch_up(&mut paused);
            assert_eq!(list_pins(&*home, Duration::ZERO).unwrap().len(), 1);
        }
        let all = if is_collected { 0..4 } else { 0..2 };
        assert_eq!(ids(paused.manager()), all.collect());
    }
}

#[test]
fn a_follower_that_may_not_write_to_the_home_follows_without_a_pin() {
    let home: Arc<dyn Home> = Arc::new(MemoryHome::new());
    let owner = owners::open(&home).unwrap();
    insert(&owner, 0).unwrap();
    let refusing: Arc<dyn Home> = Arc::new(FailingHome {
        home: home.clone(),
        directory: "pin",
        failing: AtomicU32::new(u32::MAX),
        kind: HomeErrorKind::Refused,
        carries_out: false,
    });
    let following = FollowingHome::open(refusing, &with_pins(PIN_TIME), &|_| ()).unwrap();
    insert(&owner, 1).unwrap();
    while ids(following.manager()).len() < 2 {
        std::thread::sleep(Duration::from_millis(1));
    }
    let status = following.status();
    assert_eq!((status.pin, status.trouble), (FollowPinState::Refused, None));
    assert_eq!(list_pins(&*home, Duration::ZERO).unwrap(), []);
}

#[test]
fn a_pin_that_cannot_be_moved_is_trouble_and_the_follower_goes_on() {
    let home: Arc<dyn Home> = Arc::new(MemoryHome::new());
    let owner = owners::open(&home).unwrap();
    insert(&owner, 0).unwrap();
    let failing = Arc::new(FailingHome {
        home: home.clone(),
        directory: "pin",
        failing: AtomicU32::new(0),
        kind: HomeErrorKind::Unavailable,
        carries_out: false,
    });
    let far: Arc<dyn Home> = failing.clone();
    let mut tail = tail_with(&far, &with_pins(PIN_TIME)).unwrap();
    failing.failing.store(1, Ordering::SeqCst);
    commits_with_checkpoints(&owner, 1..4);
    catch_up(&mut tail);
    let pinned = tail.pin_state();
    // The manifest that was seen last is pinned with the next step. After a failure, nothing is tried for a second.
    for fails in [true, false] {
        assert_eq!(tail.step().unwrap(), Found::Nothing);
        let trouble = tail.pin_trouble().map(|error| error.message().contains("the pin of this follower"));
        assert_eq!((trouble, tail.pin_state()), (fails.then_some(true), pinned));
    }
    assert_eq!(ids(tail.manager()), BTreeSet::from([0, 1, 2, 3]));
}
