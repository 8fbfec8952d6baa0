//! Owners that die, are fenced or close the graph, each with clients that commit and read, by seed.
//!
//! The clients keep what they were told. Nothing here relies on how long something takes: delays and lives are short and
//! random, and what is checked holds for any.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicI64;

use mangrove_graph::{LabelFilter, ScanCursor, Share, Value};
use mangrove_testdata::{case_count, first_seed};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::*;

/// Seeds in CI, and with `MANGROVE_TEST_FULL`.
const IN_CI: u64 = 24;
const IN_FULL: u64 = 500;
const OWNERS: usize = 4;
const COMMITTERS: usize = 3;
/// Commits that a client makes without a pause, and the pause before each further one.
const FAST_COMMITS: u32 = 100;
const PAUSE: Duration = Duration::from_millis(20);

/// What the clients of all owners know.
#[derive(Debug, Default)]
struct Ledger {
    next: AtomicI64,
    tried: parking_lot::Mutex<BTreeSet<i64>>,
    acknowledged: parking_lot::Mutex<BTreeSet<i64>>,
    proved_reads: AtomicU64,
    unknown: AtomicU64,
}

impl Ledger {
    fn acknowledged(&self) -> Vec<i64> {
        self.acknowledged.lock().iter().copied().collect()
    }

    /// Commits until the owner refuses for good: fast at first, then in steps, because a successor has to read all that
    /// the owner puts meanwhile.
    fn commit(&self, owner: &Owner) {
        for tried in 0.. {
            if tried > FAST_COMMITS {
                std::thread::sleep(PAUSE);
            }
            let id = self.next.fetch_add(1, Ordering::Relaxed);
            self.tried.lock().insert(id);
            match owner.insert(id) {
                Ok(_) => drop(self.acknowledged.lock().insert(id)),
                Err(error) if error.kind() == ErrorKind::Closed => return,
                Err(error) if error.kind() == ErrorKind::OutcomeUnknown => {
                    self.unknown.fetch_add(1, Ordering::Relaxed);
                }
                Err(error) => assert_eq!(error.kind(), ErrorKind::ReadOnly, "{error}"),
            }
        }
    }

    /// Reads until the owner refuses for good. A read shows every commit that was acknowledged, by any owner, before
    /// the client sent it.
    fn read(&self, owner: &Owner) {
        loop {
            let acknowledged = self.acknowledged();
            let read = match owner.manager.begin_read() {
                Ok(read) => read,
                Err(error) if error.kind() == ErrorKind::Closed => return,
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
                    continue;
                }
            };
            let lost = missing(&read, &acknowledged);
            assert!(lost.is_empty(), "a read of incarnation {} misses {lost:?}", owner.log.status().incarnation);
            self.proved_reads.fetch_add(1, Ordering::Relaxed);
            // A read looks at every commit, and other threads are to have their turns.
            std::thread::sleep(PAUSE / 100);
        }
    }
}

fn missing(view: &dyn GraphView, ids: &[i64]) -> Vec<i64> {
    let user_ids: Vec<UserId> = ids.iter().map(|id| UserId::int(*id)).collect();
    let mut found = Vec::new();
    view.find_vertices(&user_ids, &mut found).unwrap();
    ids.iter().zip(found).filter(|(_, found)| found.is_none()).map(|(id, _)| *id).collect()
}

/// The ids of all vertices, one for each vertex.
fn all_ids(view: &dyn GraphView) -> Vec<i64> {
    let (mut vertices, mut cursor, mut ids) = (Vec::new(), ScanCursor::default(), Vec::new());
    while !view.scan_vertices(&LabelFilter::Any, Share::ALL, &mut cursor, 1_000, &mut vertices).unwrap() {}
    view.vertex_user_ids(&vertices, &mut ids).unwrap();
    let number = |id| if let Value::I64(number) = id { number } else { panic!("no client chose the id {id:?}") };
    ids.into_iter().map(number).collect()
}

/// Closes the logs of all owners if a check fails, so that their clients end.
#[derive(Default)]
struct ClosesAfterPanic(Vec<Arc<Owner>>);

impl Drop for ClosesAfterPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.iter().for_each(|owner| owner.log.close());
        }
    }
}

fn run(seed: u64) -> Ledger {
    let mut rng = SmallRng::seed_from_u64(seed);
    let (home, ledger) = (new_home(), Ledger::default());
    let options = ObjectLogOptions {
        lease: Duration::from_millis([10, 20, 40][rng.random_range(0..3)]),
        log_interval: Duration::from_millis([0, 0, 2][rng.random_range(0..3)]),
        reads_without_home: false,
        ..ObjectLogOptions::default()
    };
    std::thread::scope(|scope| {
        let mut opened = ClosesAfterPanic::default();
        for number in 0..OWNERS {
            let typical = Duration::from_micros(rng.random_range(100..1_500));
            let owner = Arc::new(Owner::open(&delayed(&home, typical, rng.random()), options));
            opened.0.push(owner.clone());
            // Whatever an earlier owner acknowledges later, it has put before its stream was ended.
            let read = owner.manager.begin_unproved_read().unwrap();
            let lost = missing(&read, &ledger.acknowledged());
            assert!(lost.is_empty(), "owner {number} has taken over without {lost:?}");
            for client in 0..=COMMITTERS {
                let (owner, ledger) = (owner.clone(), &ledger);
                scope.spawn(move || if client == 0 { ledger.read(&owner) } else { ledger.commit(&owner) });
            }
            std::thread::sleep(Duration::from_micros(rng.random_range(0..40_000)));
            match rng.random_range(0..4) {
                // It dies: what it has sent still arrives.
                0 => owner.log.close(),
                1 => drop(owner.log.finish(Duration::from_secs(20))),
                // It goes on until it notices its successor.
                _ if number + 1 < OWNERS => {}
                _ => owner.log.close(),
            }
        }
    });
    let last = Owner::open(&home, options);
    let read = last.manager.begin_read().unwrap();
    let lost = missing(&read, &ledger.acknowledged());
    assert!(lost.is_empty(), "lost in the end: {lost:?}");
    let ids = all_ids(&read);
    let tried = ledger.tried.lock();
    let distinct: BTreeSet<i64> = ids.iter().copied().collect();
    assert_eq!(distinct.len(), ids.len(), "a commit was recovered twice");
    assert!(ids.iter().all(|id| tried.contains(id)), "a commit was recovered that no client made");
    assert_eq!(last.end.commits, ids.len() as u64);
    drop((read, tried));
    ledger
}

#[test]
fn no_acknowledged_commit_is_lost_and_no_read_is_stale_over_take_overs() {
    let is_full = std::env::var_os("MANGROVE_TEST_FULL").is_some() && std::env::var_os("MANGROVE_CASES").is_none();
    let cases = if is_full { case_count(IN_CI).max(IN_FULL) } else { case_count(IN_CI) };
    let first = first_seed(1);
    let (mut acknowledged, mut unknown, mut reads) = (0, 0, 0);
    for seed in first..first + cases {
        println!("seed {seed}");
        let ledger = run(seed);
        acknowledged += ledger.acknowledged.lock().len();
        unknown += ledger.unknown.load(Ordering::Relaxed);
        reads += ledger.proved_reads.load(Ordering::Relaxed);
    }
    println!("{cases} seeds: {acknowledged} acknowledged commits, {unknown} of unknown outcome, {reads} reads");
    assert!(acknowledged > 0 && reads > 0, "nothing happened");
}
