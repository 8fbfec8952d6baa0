//! Followers of owners that commit, checkpoint, collect, die and go on; and what becomes of the graph when a follower is
//! promoted at any step.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use mangrove_graph::{GraphView, LabelFilter, ScanCursor, Share, Value, VertexId};
use mangrove_testdata::{case_count, first_seed};
use rand::Rng;

use super::*;
use crate::disk::SimDisk;
use crate::durable_home::tests::{self as owners, WAIT, check_objects, insert, make_index, refuses};
use crate::home::delay::DelayHome;
use crate::home::{DiskHome, MemoryHome};
use crate::testing::{Actor, Dump, dump, dump_now, quiet};

mod cases;
mod pins;
mod speed;

fn options() -> FollowOptions {
    FollowOptions {
        graph: owners::options(),
        pin_time: Duration::ZERO,
        manifest_pause: Duration::ZERO,
        busy_pause: Duration::from_millis(1),
        idle_pause: Duration::from_millis(5),
        closed_pause: Duration::from_millis(5),
        ..FollowOptions::default()
    }
}

/// A follower without a thread and without a pin.
fn tail(home: &Arc<dyn Home>) -> Result<Box<Tail>> {
    tail_with(home, &options())
}

fn tail_with(home: &Arc<dyn Home>, options: &FollowOptions) -> Result<Box<Tail>> {
    let tail = Tail::open(home.clone(), options, &|_| ())?;
    quiet(tail.manager());
    Ok(Box::new(tail))
}

fn follow(home: &Arc<dyn Home>) -> FollowingHome {
    let following = FollowingHome::open(home.clone(), &options(), &|_| ()).unwrap();
    quiet(following.manager());
    following
}

fn promote(mut tail: Box<Tail>) -> Result<DurableHome> {
    let owned = tail.take_over()?;
    tail.own(owned)
}

/// A home that a seed chooses, and a slow way to it.
fn homes(actor: &mut Actor, seed: u64) -> (Arc<dyn Home>, Arc<dyn Home>) {
    let near: Arc<dyn Home> = match seed % 3 {
        0 => Arc::new(DiskHome::new(Arc::new(SimDisk::new()), (seed % 2 * 2) as usize).unwrap()),
        _ => Arc::new(MemoryHome::new()),
    };
    let typical = Duration::from_micros(actor.rng.random_range(0..400));
    let far = Arc::new(DelayHome::new(near.clone(), typical, actor.rng.random()).unwrap());
    (near, far)
}

/// What an owner and its followers have done, for comparisons.
#[derive(Default)]
struct Seen {
    compared: u64,
    reopened: u64,
    behind: u64,
    promoted_behind: u64,
}

/// One act of an owner.
fn act(actor: &mut Actor, owner: &DurableHome) {
    match actor.rng.random_range(0..14) {
        0 | 1 => {
            owner.checkpoint().unwrap();
        }
        2 => make_index(owner, ["a", "b", "c"][actor.rng.random_range(0..3)]).unwrap(),
        3 => {
            let indexes = owner.manager().store().indexes();
            if let Some(index) = indexes.first() {
                owner.manager().drop_index(index.id).unwrap();
            }
        }
        4 | 5 => owner.manager().compact(),
        _ => {
            let outcome = actor.transaction(owner.manager());
            assert!(outcome.is_none_or(|outcome| outcome.is_ok()));
        }
    }
}

/// Compares a follower with what its owner had at the same commit.
fn compare(tail: &Tail, states: &BTreeMap<u64, Dump>, what: &str) {
    let view = tail.manager().begin_read().unwrap();
    let (_, expected) = states.range(..=view.begin_ts()).next_back().unwrap();
    assert!(dump(&view) == *expected, "{what}: commit {}", view.begin_ts());
}

/// Owners one after the other, each promoted from a follower of the one before, which closes the graph, dies, or goes on.
fn run(seed: u64) -> Seen {
    let mut actor = Actor::new(seed);
    let (near, far) = homes(&mut actor, seed);
    // With pins, nothing is deleted that a follower has not read.
    let is_pinned = actor.rng.random_ratio(1, 2);
    let with_pins = FollowOptions { pin_time: if is_pinned { PIN_TIME } else { Duration::ZERO }, ..options() };
    let tail = |home: &Arc<dyn Home>| tail_with(home, &with_pins);
    let check_cause = |error: &Error, what: &str| {
        assert_eq!(error.kind(), ErrorKind::Closed, "{what}: {error}");
        assert!(!is_pinned || !error.message().contains("deleted"), "{what}: {error}");
    };
    let mut seen = Seen::default();
    let mut owner = owners::open(&far).unwrap();
    let mut states = BTreeMap::from([(0, dump_now(owner.manager()))]);
    let mut followers: Vec<Box<Tail>> = Vec::new();
    for life in 1..=5 {
        let what = format!("seed {seed}, life {life}");
        for _ in 0..actor.rng.random_range(1..40) {
            act(&mut actor, &owner);
            states.insert(owner.manager().watermark(), dump_now(owner.manager()));
            if followers.is_empty() || (followers.len() < 2 && actor.rng.random_ratio(1, 8)) {
                followers.push(tail(&near).unwrap());
            }
            for follower in &mut followers {
                for _ in 0..actor.rng.random_range(0..4) {
                    match follower.step() {
                        Ok(_) => compare(follower, &states, &what),
                        Err(error) => {
                            check_cause(&error, &what);
                            assert!(error.message().contains("open the graph again"), "{error}");
                            // What it has stays readable.
                            compare(follower, &states, &what);
                            *follower = tail(&near).unwrap_or_else(|error| panic!("{what}: {error}"));
                            compare(follower, &states, &what);
                            seen.reopened += 1;
                        }
                    }
                    seen.compared += 1;
                }
                if actor.rng.random_ratio(1, 10) {
                    follower.manager().collect_garbage();
                }
            }
        }
        let acknowledged = dump_now(owner.manager());
        let indexes = owner.manager().store().indexes();
        let zombie = match actor.rng.random_range(0..3) {
            0 => {
                owner.close(WAIT).unwrap();
                None
            }
            1 => {
                drop(owner);
                None
            }
            _ => Some(owner),
        };
        let chosen = followers.swap_remove(actor.rng.random_range(0..followers.len()));
        let (manager, was_at) = (chosen.manager().clone(), chosen.follower.applied());
        let is_behind = was_at < *states.keys().next_back().unwrap();
        seen.behind += u64::from(is_behind);
        owner = match promote(chosen) {
            Ok(owner) => {
                seen.promoted_behind += u64::from(is_behind);
                assert!(!manager.is_following());
                owner
            }
            // What it has not read is gone: nothing was claimed, and another follower can be opened and promoted.
            Err(error) => {
                check_cause(&error, &what);
                seen.reopened += 1;
                promote(tail(&near).unwrap()).unwrap_or_else(|error| panic!("{what}: {error}"))
            }
        };
        assert!(dump_now(owner.manager()) == acknowledged, "{what}: promoted");
        assert_eq!(owner.manager().store().indexes(), indexes, "{what}");
        if let Some(zombie) = zombie {
            refuses(&zombie);
        }
        if actor.rng.random_ratio(1, 2) {
            // A cold opening of what the promotion has left, before the promoted owner has taken a checkpoint.
            for _ in 0..actor.rng.random_range(0..12) {
                let outcome = actor.transaction(owner.manager());
                assert!(outcome.is_none_or(|outcome| outcome.is_ok()), "{what}");
                states.insert(owner.manager().watermark(), dump_now(owner.manager()));
            }
            let expected = dump_now(owner.manager());
            let copy = owners::copy(&*near);
            assert!(dump_now(owners::open(&copy).unwrap().manager()) == expected, "{what}: opened cold");
        }
    }
    drop(followers);
    for id in 0..3 {
        insert(&owner, 4_000_000 + id).unwrap();
        owner.checkpoint().unwrap().expect("a commit is new");
    }
    assert_eq!(owner.checkpoint_status().trouble, None, "seed {seed}");
    let (at, indexes) = (dump_now(owner.manager()), owner.manager().store().indexes());
    let incarnation = owner.incarnation();
    owner.close(WAIT).unwrap();
    check_objects(&*near, incarnation);
    let last = owners::open(&near).unwrap();
    assert!(dump_now(last.manager()) == at, "the end of seed {seed}");
    assert_eq!((last.manager().store().indexes(), last.recovery().commits_replayed), (indexes, 0));
    seen
}

#[test]
fn a_follower_is_a_prefix_of_its_owner_and_can_be_promoted_at_any_step() {
    let (first, cases) = (first_seed(0), case_count(24));
    let mut all = Seen::default();
    for seed in first..first + cases {
        let seen = run(seed);
        all.compared += seen.compared;
        all.reopened += seen.reopened;
        all.behind += seen.behind;
        all.promoted_behind += seen.promoted_behind;
    }
    println!(
        "{cases} seeds: {} snapshots compared, {} followers opened again, {} of {} that were behind promoted",
        all.compared, all.reopened, all.promoted_behind, all.behind
    );
    assert!(cases < 24 || (all.reopened > 0 && all.promoted_behind > 0), "every kind of follower has occurred");
}

/// The chosen ids of all vertices.
fn ids(manager: &TransactionManager) -> BTreeSet<i64> {
    let view = manager.begin_read().unwrap();
    let (mut vertices, mut cursor): (Vec<VertexId>, _) = (Vec::new(), ScanCursor::default());
    while !view.scan_vertices(&LabelFilter::Any, Share::ALL, &mut cursor, 1_000, &mut vertices).unwrap() {}
    let mut ids = Vec::new();
    view.vertex_user_ids(&vertices, &mut ids).unwrap();
    ids.iter().map(|id| if let Value::I64(id) = id { *id } else { panic!("{id:?} was not chosen") }).collect()
}

/// Pauses of the owner. In memory, it would otherwise write and delete objects faster than any follower reads them.
const COMMIT_PAUSE: Duration = Duration::from_micros(300);
const CHECKPOINT_PAUSE: Duration = Duration::from_millis(10);

/// Two promotions under load, each while the owner commits and takes checkpoints on other threads.
fn run_under_load(seed: u64) -> u64 {
    let mut actor = Actor::new(seed);
    let (near, far) = homes(&mut actor, seed);
    let acknowledged = Mutex::new(BTreeSet::new());
    let mut owner = owners::open(&far).unwrap();
    insert(&owner, 0).unwrap();
    acknowledged.lock().unwrap().insert(0);
    for life in 1..=2_i64 {
        let following = follow(&near);
        let manager = following.manager().clone();
        let is_over = AtomicBool::new(false);
        let commits_before = actor.rng.random_range(1..60);
        let next = std::thread::scope(|scope| {
            let (owner, is_over, acknowledged) = (&owner, &is_over, &acknowledged);
            for client in 0..2 {
                scope.spawn(move || {
                    for n in 0.. {
                        let id = life * 1_000_000 + client * 100_000 + n;
                        let was_over = is_over.load(Ordering::SeqCst);
                        match insert(owner, id) {
                            Ok(()) => {
                                assert!(!was_over, "an owner that was fenced acknowledges");
                                acknowledged.lock().unwrap().insert(id);
                            }
                            Err(_) => return,
                        }
                        std::thread::sleep(COMMIT_PAUSE);
                    }
                });
            }
            scope.spawn(move || {
                while !is_over.load(Ordering::SeqCst) && owner.checkpoint().is_ok() {
                    std::thread::sleep(CHECKPOINT_PAUSE);
                }
            });
            while acknowledged.lock().unwrap().len() < commits_before * life as usize {
                std::thread::sleep(Duration::from_millis(1));
            }
            let next = match following.promote() {
                Ok(next) => next,
                // The owner was faster. Nothing was claimed by a follower that says so.
                Err(failed) => {
                    assert_eq!(failed.error.kind(), ErrorKind::Closed, "seed {seed}: {failed}");
                    drop(failed);
                    promote_again(&near, seed)
                }
            };
            is_over.store(true, Ordering::SeqCst);
            next
        });
        refuses(&owner);
        let found = ids(next.manager());
        let lost: Vec<_> = acknowledged.lock().unwrap().difference(&found).copied().collect();
        assert_eq!(lost, Vec::<i64>::new(), "seed {seed}, life {life}");
        acknowledged.lock().unwrap().extend(found);
        drop(manager);
        owner = next;
        quiet(owner.manager());
    }
    insert(&owner, 9_000_000).unwrap();
    let at = dump_now(owner.manager());
    owner.checkpoint().unwrap().unwrap();
    owner.close(WAIT).unwrap();
    assert!(dump_now(owners::open(&near).unwrap().manager()) == at, "seed {seed}");
    at.len() as u64
}

fn promote_again(home: &Arc<dyn Home>, seed: u64) -> DurableHome {
    let mut error = None;
    for _ in 0..20 {
        let opened = FollowingHome::open(home.clone(), &options(), &|_| ());
        match opened.map_err(|error| PromotionError { error, following: None }).and_then(FollowingHome::promote) {
            Ok(owner) => return owner,
            Err(failed) => error = Some(failed.error),
        }
    }
    panic!("seed {seed}: {error:?}")
}

#[test]
fn a_promotion_under_load_loses_nothing_and_the_old_owner_acknowledges_nothing_after_it() {
    let (first, cases) = (first_seed(0), case_count(9));
    let commits: u64 = (first..first + cases).map(run_under_load).sum();
    println!("{cases} seeds, two promotions under load each: {commits} commits");
}
