//! Single situations of a follower and of its promotion.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};

use mangrove_graph::{GraphView, LabelFilter, Share, UserId, VertexId};

use super::super::*;
use super::owners::{self, FailingHome, WAIT, insert, refuses};
use super::{follow, ids, options, promote, tail};
use crate::home::counting::{CountingHome, RequestKind};
use crate::home::{HomeErrorKind, MemoryHome};
use crate::stream::names::stream_name;
use crate::testing::{Actor, dump_now, quiet};

#[test]
fn readers_go_on_and_clients_write_after_a_promotion() {
    let home: Arc<dyn Home> = Arc::new(MemoryHome::new());
    let owner = owners::open(&home).unwrap();
    insert(&owner, 1).unwrap();
    let following = follow(&home);
    let manager = following.manager().clone();
    insert(&owner, 2).unwrap();
    while ids(&manager).len() < 2 {
        std::thread::sleep(Duration::from_millis(1));
    }
    let write = |id| {
        let txn = manager.begin(Default::default())?;
        txn.insert_vertex(
            txn.store()
                .catalog()
                .label("person")
                .map(|label| txn.store().catalog().intern_label_set(&[label]))
                .unwrap(),
            Some(UserId::int(id)),
        )?;
        txn.finish_statement()?;
        txn.commit().map(|_| ())
    };
    let refused = write(3).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ReadOnly);
    assert!(refused.message().contains("promote this server"), "{refused}");
    let status = following.status();
    assert_eq!(
        (status.state.clone(), status.incarnation, status.commits),
        (FollowState::Following, 1, 2),
        "{status:?}"
    );
    assert!(status.cut_unix_us.is_some() && status.delay.is_some(), "{status:?}");
    let reader = manager.begin_read().unwrap();
    let promoted = following.promote().unwrap();
    assert_eq!(promoted.incarnation(), 2);
    write(3).unwrap();
    assert_eq!((ids(&manager).len(), promoted.recovery().commits_replayed), (3, 2));
    assert_eq!(reader.count_vertices(&LabelFilter::Any, Share::ALL).unwrap(), 2, "a reader keeps its snapshot");
    drop(reader);
    assert_eq!(manager.settings().max_snapshot_age_ms.load(Ordering::Relaxed), 0);
    refuses(&owner);
    let next = follow(&home);
    promoted.close(WAIT).unwrap();
    while next.status().state != FollowState::OwnerClosed {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(ids(next.manager()).len(), 3);
    let cold = owners::open(&home).unwrap();
    insert(&cold, 4).unwrap();
    while ids(next.manager()).len() < 4 {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(next.status().incarnation, 3);
}

#[test]
fn a_promotion_needs_few_requests() {
    let home: Arc<dyn Home> = Arc::new(MemoryHome::new());
    let owner = owners::open(&home).unwrap();
    let mut actor = Actor::new(1);
    for _ in 0..60 {
        drop(actor.transaction(owner.manager()));
    }
    owner.checkpoint().unwrap().unwrap();
    for _ in 0..60 {
        drop(actor.transaction(owner.manager()));
    }
    let counting = Arc::new(CountingHome::new(home.clone()));
    let counted: Arc<dyn Home> = counting.clone();
    let mut tail = tail(&counted).unwrap();
    assert_eq!(tail.step().unwrap(), Found::Nothing);
    let counts = || RequestKind::ALL.map(|kind| counting.count(kind).requests);
    let before = counts();
    let owned = tail.take_over().unwrap();
    let [put_new, put_unique, gets, ranges, heads, lists, deletes] =
        std::array::from_fn(|kind| counts()[kind] - before[kind]);
    println!("a promotion: {put_new} puts, {gets} reads of objects, {ranges} of ranges, {lists} lists");
    // The claims of the incarnation and the manifest, FENCE; the next object and one ahead; the list after the manifest.
    assert_eq!([put_new, gets, lists], [3, 2, 1]);
    assert_eq!([put_unique, ranges, heads, deletes], [0; 4], "the directories were read before");
    let promoted = tail.own(owned).unwrap();
    assert!(dump_now(promoted.manager()) == dump_now(owner.manager()));
    assert_eq!(promoted.checkpoint().unwrap().map(|report| report.pages > 0), Some(true));
}

#[test]
fn a_long_stream_is_redone_commit_by_commit() {
    let home: Arc<dyn Home> = Arc::new(MemoryHome::new());
    let owner = owners::open(&home).unwrap();
    let mut tail = tail(&home).unwrap();
    let mut actor = Actor::new(2);
    let commits =
        (0..2_000).filter(|_| actor.transaction(owner.manager()).is_some_and(|outcome| outcome.is_ok())).count();
    let begun = clock::now();
    while tail.step().unwrap() != Found::Nothing {}
    let took_us = clock::now().us - begun.us;
    println!("{commits} commits in {} objects redone in {took_us} µs", tail.end.objects);
    assert!(dump_now(tail.manager()) == dump_now(owner.manager()));
    assert_eq!(tail.end.commits, owner.log_status().counts.commits);
}

#[test]
fn a_follower_that_was_away_for_too_long_says_so_and_keeps_its_readers() {
    let home: Arc<dyn Home> = Arc::new(MemoryHome::new());
    let owner = owners::open(&home).unwrap();
    insert(&owner, 1).unwrap();
    let mut late = tail(&home).unwrap();
    for id in 2..6 {
        insert(&owner, id).unwrap();
        owner.checkpoint().unwrap().unwrap();
    }
    let error = late.step().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Closed);
    assert!(error.message().contains("open the graph again"), "{error}");
    assert_eq!(ids(late.manager()), BTreeSet::from([1]));
    // It claims nothing that it could not go on with.
    let refused = late.take_over().map(|_| ()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Closed, "{refused}");
    insert(&owner, 6).unwrap();
    let again = tail(&home).unwrap();
    assert_eq!(ids(again.manager()), (1..=6).collect());
    let threaded = FollowingHome::start(late).unwrap();
    let state = std::iter::repeat_with(|| threaded.status().state).find(|state| *state != FollowState::Following);
    assert!(matches!(state, Some(FollowState::Stopped { error }) if error.kind() == ErrorKind::Closed));
    let failed = threaded.promote().unwrap_err();
    assert!(failed.following.is_some() && failed.error.kind() == ErrorKind::Closed);
    insert(&owner, 7).unwrap();
}

#[test]
fn a_bulk_load_of_the_owner_is_noticed() {
    for is_idle in [true, false] {
        let home: Arc<dyn Home> = Arc::new(MemoryHome::new());
        let owner = owners::open(&home).unwrap();
        let mut before = tail(&home).unwrap();
        let person = owner.manager().store().catalog().intern_label_text("person");
        let mut load = owner.manager().bulk_load().unwrap();
        let loaded: Vec<UserId> = (0..100).map(UserId::int).collect();
        load.vertices(person, 100, Some(&loaded), &[]).unwrap();
        load.finish().unwrap();
        // It claims nothing: the graph in memory is not that of the checkpoint.
        let mut other = tail(&home).unwrap();
        assert_eq!(ids(other.manager()).len(), 100);
        before.is_current = true;
        assert_eq!(before.take_over().map(|_| ()).unwrap_err().kind(), ErrorKind::Closed);
        if !is_idle {
            insert(&owner, 100).unwrap();
        }
        let error = std::iter::repeat_with(|| before.step()).find_map(Result::err).unwrap();
        assert_eq!(error.kind(), ErrorKind::Closed);
        assert!(error.message().contains("in bulk"), "{error}");
        assert!(ids(before.manager()).is_empty());
        while other.step().unwrap() != Found::Nothing {}
        assert_eq!(ids(other.manager()).len(), if is_idle { 100 } else { 101 });
        insert(&owner, 101).unwrap();
    }
}

#[test]
fn names_of_this_process_are_not_durable_and_do_not_meet_those_of_the_owner() {
    let home: Arc<dyn Home> = Arc::new(MemoryHome::new());
    let owner = owners::open(&home).unwrap();
    insert(&owner, 1).unwrap();
    let (mut first, second) = (tail(&home).unwrap(), tail(&home).unwrap());
    for tail in [&first, &second] {
        tail.manager().store().catalog().intern_label_text("mine");
    }
    // The number of the label is given to another one.
    let theirs = owner.manager().store().catalog().intern_label_text("theirs");
    let txn = owner.manager().begin(Default::default()).unwrap();
    txn.insert_vertex(theirs, None).unwrap();
    txn.finish_statement().unwrap();
    txn.commit().unwrap();
    let error = std::iter::repeat_with(|| first.step()).find_map(Result::err).unwrap();
    assert_eq!(error.kind(), ErrorKind::Closed);
    assert!(error.message().contains("open the graph again"), "{error}");
    drop(second);
    // Without such a commit, the promoted follower writes its names down before it uses them.
    let third = tail(&home).unwrap();
    let mine = third.manager().store().catalog().intern_label_text("mine, too");
    let promoted = promote(third).unwrap();
    let txn = promoted.manager().begin(Default::default()).unwrap();
    txn.insert_vertex(mine, None).unwrap();
    txn.finish_statement().unwrap();
    txn.commit().unwrap();
    let at = dump_now(promoted.manager());
    assert!(dump_now(owners::open(&home).unwrap().manager()) == at);
}

#[test]
fn a_promotion_that_fails_goes_on_following_and_can_be_tried_again() {
    for (directory, carries_out) in
        [("node", false), ("manifest", false), ("manifest", true), ("log", false), ("log", true)]
    {
        let what = format!("{directory} {carries_out}");
        let home: Arc<dyn Home> = Arc::new(MemoryHome::new());
        let owner = owners::open(&home).unwrap();
        insert(&owner, 1).unwrap();
        let directory = match directory {
            "log" => stream_name(1, 1).rsplit_once('/').unwrap().0.to_owned(),
            other => other.to_owned(),
        };
        let failing = Arc::new(FailingHome {
            home: home.clone(),
            directory: Box::leak(directory.into_boxed_str()),
            failing: AtomicU32::new(u32::MAX),
            kind: HomeErrorKind::Unknown,
            carries_out,
        });
        let mut hasty = options();
        hasty.graph.patience = Duration::from_millis(20);
        let following = FollowingHome::open(failing.clone(), &hasty, &|_| ()).unwrap();
        quiet(following.manager());
        let manager = following.manager().clone();
        let promoted = match following.promote() {
            // Objects that are there after all are found by the look at their names.
            Ok(promoted) => promoted,
            Err(failed) => {
                assert!(!carries_out, "{what}: {failed}");
                assert!(failed.error.message().contains("was lost"), "{what}: {failed}");
                assert!(manager.is_following());
                failing.failing.store(0, Ordering::SeqCst);
                let following = failed.following.unwrap();
                assert_eq!(ids(&manager), BTreeSet::from([1]));
                following.promote().unwrap()
            }
        };
        failing.failing.store(0, Ordering::SeqCst);
        insert(&promoted, 2).unwrap();
        refuses(&owner);
        assert_eq!(ids(&manager), BTreeSet::from([1, 2]), "{what}");
        assert_eq!(ids(owners::open(&home).unwrap().manager()), BTreeSet::from([1, 2]), "{what}");
    }
}

#[test]
fn a_place_without_a_graph_is_refused_and_nothing_is_put_there() {
    let counting = Arc::new(CountingHome::new(Arc::new(MemoryHome::new())));
    let home: Arc<dyn Home> = counting.clone();
    let error = FollowingHome::open(home.clone(), &options(), &|_| ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    let graph = owners::open(&home).unwrap();
    insert(&graph, 1).unwrap();
    let puts = |counting: &CountingHome| counting.count(RequestKind::PutNew).requests;
    let before = puts(&counting);
    let following = follow(&home);
    assert_eq!(ids(following.manager()).len(), 1);
    drop(following);
    assert_eq!(puts(&counting), before, "a follower puts nothing");
}

/// Inserts a vertex of a label, and commits or rolls back.
fn insert_of(manager: &TransactionManager, label: &str, commits: bool) -> VertexId {
    let txn = manager.begin(Default::default()).unwrap();
    let vertex = txn.insert_vertex(txn.store().catalog().intern_label_text(label), None).unwrap();
    txn.finish_statement().unwrap();
    if commits {
        txn.commit().unwrap();
    } else {
        txn.rollback();
    }
    vertex
}

/// Elements that were never committed leave generations in the images of their owner, which no follower knows.
#[test]
fn a_promoted_follower_uses_slots_again_in_generations_below_those_of_images() {
    let home: Arc<dyn Home> = Arc::new(MemoryHome::new());
    let owner = owners::open(&home).unwrap();
    let kept = insert_of(owner.manager(), "a", true);
    let mut follower = tail(&home).unwrap();
    let mut last = kept;
    for _ in 0..3 {
        last = insert_of(owner.manager(), "a", false);
        owner.manager().compact();
    }
    assert!(last.generation() > 0, "the slot was used again and again");
    let txn = owner.manager().begin(Default::default()).unwrap();
    txn.delete_vertex(kept).unwrap();
    txn.finish_statement().unwrap();
    txn.commit().unwrap();
    assert!(matches!(follower.step().unwrap(), Found::Records { commits: 1, .. }));
    owner.checkpoint().unwrap().unwrap();
    drop(owner);
    let promoted = promote(follower).unwrap();
    let mut next = tail(&home).unwrap();
    let below = (0..3).map(|_| insert_of(promoted.manager(), "a", true)).filter(|vertex| {
        (vertex.tablet(), vertex.page(), vertex.offset()) == (last.tablet(), last.page(), last.offset())
            && vertex.generation() < last.generation()
    });
    assert_eq!(below.count(), 1);
    while next.step().unwrap() != Found::Nothing {}
    let at = dump_now(promoted.manager());
    assert!(dump_now(next.manager()) == at, "another follower");
    assert!(dump_now(owners::open(&owners::copy(&*home)).unwrap().manager()) == at, "a cold opening");
    // A follower of a checkpoint whose pages were small at the first owner goes on with pages of any size.
    for _ in 0..200 {
        insert_of(promoted.manager(), "a", true);
    }
    while next.step().unwrap() != Found::Nothing {}
    assert!(dump_now(next.manager()) == dump_now(promoted.manager()));
}

/// The owner has pages without any committed element, and images of them.
#[test]
fn a_promoted_follower_gives_no_page_the_number_of_one_that_only_images_have() {
    let home: Arc<dyn Home> = Arc::new(MemoryHome::new());
    let owner = owners::open(&home).unwrap();
    insert_of(owner.manager(), "a", true);
    let follower = tail(&home).unwrap();
    let gone = ["b", "c"].map(|label| insert_of(owner.manager(), label, false));
    owner.checkpoint().unwrap().unwrap();
    drop(owner);
    let promoted = promote(follower).unwrap();
    for label in ["d", "e", "f", "g", "h", "i"] {
        let vertex = insert_of(promoted.manager(), label, true);
        assert!(gone.iter().all(|gone| (gone.tablet(), gone.page()) != (vertex.tablet(), vertex.page())));
    }
    let at = dump_now(promoted.manager());
    assert!(dump_now(owners::open(&owners::copy(&*home)).unwrap().manager()) == at);
    promoted.checkpoint().unwrap().unwrap();
    assert!(dump_now(owners::open(&home).unwrap().manager()) == at);
}

/// Names of transactions that were rolled back are in checkpoints, and in no stream of an owner that has recovered them.
#[test]
fn names_that_no_stream_has_come_from_the_newest_checkpoint() {
    let home: Arc<dyn Home> = Arc::new(MemoryHome::new());
    let owner = owners::open(&home).unwrap();
    insert_of(owner.manager(), "a", true);
    let mut follower = tail(&home).unwrap();
    insert_of(owner.manager(), "b", false);
    owner.checkpoint().unwrap().unwrap();
    owner.close(WAIT).unwrap();
    while follower.step().unwrap() != Found::Nothing {}
    let next = owners::open(&home).unwrap();
    for label in ["b", "c", "d"] {
        insert_of(next.manager(), label, true);
    }
    while follower.step().unwrap() != Found::Nothing {}
    assert!(dump_now(follower.manager()) == dump_now(next.manager()));
}
