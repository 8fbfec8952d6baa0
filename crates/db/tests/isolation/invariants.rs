//! Invariants under load that must hold in any schedule, and those that snapshot isolation does not keep.

use std::sync::atomic::{AtomicUsize, Ordering};

use mangrove::{Database, Isolation, Transaction, TransactionOptions};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::support::{
    BOTH, VALIDATED, begin, committed, database, integers, numbers, parameters, run, until_committed,
};

fn ask(tx: &Transaction, script: &str, values: &[i64]) -> mangrove::Result<Vec<i64>> {
    let prepared = tx.database().prepare(script)?;
    Ok(integers(&tx.run(&prepared, &parameters(values))?.collect()?))
}

/// Runs the same on several threads.
fn on_threads(count: u64, run: impl Fn(u64) + Sync) {
    std::thread::scope(|scope| {
        let run = &run;
        (0..count).for_each(|number| drop(scope.spawn(move || run(number))));
    });
}

/// Money moves between accounts; every snapshot shows the same total, and so does the end.
#[test]
fn bank_transfers_keep_the_total() {
    const ACCOUNTS: i64 = 8;
    for isolation in BOTH {
        let database = Database::in_memory();
        for id in 0..ACCOUNTS {
            let script = format!("g.addV('account').property(id, {id}).property('balance', 100)");
            database.query(&script).unwrap().collect().unwrap();
        }
        let running = AtomicUsize::new(3);
        let transfer = |random: &mut SmallRng| {
            let (from, to, amount) =
                (random.random_range(0..ACCOUNTS), random.random_range(0..ACCOUNTS), random.random_range(1..20));
            if from == to {
                return;
            }
            until_committed(&database, isolation, |tx| {
                let balance = ask(tx, "g.V(v).values('balance')", &[from])?[0];
                let other = ask(tx, "g.V(v).values('balance')", &[to])?[0];
                std::thread::yield_now();
                ask(tx, "g.V(v).property('balance', x).count()", &[from, balance - amount])?;
                ask(tx, "g.V(v).property('balance', x).count()", &[to, other + amount])
            });
        };
        std::thread::scope(|scope| {
            for seed in 0..3 {
                let (transfer, running) = (&transfer, &running);
                scope.spawn(move || {
                    let mut random = SmallRng::seed_from_u64(seed);
                    (0..300).for_each(|_| transfer(&mut random));
                    running.fetch_sub(1, Ordering::SeqCst);
                });
            }
            while running.load(Ordering::SeqCst) > 0 {
                let tx = database.begin_with(TransactionOptions { isolation, read_only: true }).unwrap();
                assert_eq!(numbers(&tx, "g.V().values('balance').sum()"), [100 * ACCOUNTS], "{isolation:?}");
                // A transaction that may write may read later commits, so its reads count only if it commits.
                let tx = begin(&database, isolation);
                let total = numbers(&tx, "g.V().values('balance').sum()");
                assert!(total == [100 * ACCOUNTS] || tx.commit().is_err(), "{isolation:?}: {total:?}");
                std::thread::yield_now();
            }
        });
        assert_eq!(committed(&database, "g.V().values('balance').sum()"), [100 * ACCOUNTS]);
        assert_eq!(database.transaction_counters().active, 0);
    }
}

/// Of two doctors on call, one may leave if the other stays. Returns the number of shifts that end without a doctor.
fn abandoned_shifts(isolation: Isolation, shifts: i64) -> usize {
    let database = Database::in_memory();
    for shift in 0..shifts {
        let script = format!("g.inject(1, 2).addV('doctor').property('shift', {shift}).property('on_call', 1)");
        database.query(&script).unwrap().collect().unwrap();
    }
    let doctors = committed(&database, "g.V().id()");
    let barrier = std::sync::Barrier::new(2);
    on_threads(2, |number| {
        for shift in 0..shifts {
            let me = doctors[(shift * 2) as usize + number as usize];
            barrier.wait();
            until_committed(&database, isolation, |tx| {
                let count = ask(tx, "g.V().has('shift', v).has('on_call', 1).count()", &[shift])?;
                // Lets the other thread count, too.
                (0..4).for_each(|_| std::thread::yield_now());
                if count[0] == 2 {
                    ask(tx, "g.V(v).property('on_call', 0).count()", &[me])?;
                }
                Ok(())
            });
        }
    });
    let left = committed(&database, "g.V().has('on_call', 1).count()")[0];
    (shifts - left) as usize
}

#[test]
fn somebody_stays_on_call_at_serializable() {
    let abandoned = abandoned_shifts(Isolation::Serializable, 150);
    assert!(!VALIDATED || abandoned == 0, "{abandoned} shifts were abandoned");
}

#[test]
fn nobody_may_be_left_on_call_at_snapshot() {
    // Two threads overlap by chance, but in so many shifts some overlap is practically certain.
    assert!((0..20).any(|_| abandoned_shifts(Isolation::Snapshot, 60) > 0));
}

/// Each transaction uses the count of tickets as the number of its ticket: the count protects the tickets it counted.
#[test]
fn tickets_are_numbered_without_gap_at_serializable() {
    let database = database("g.addV('office')");
    on_threads(4, |_| {
        for _ in 0..60 {
            until_committed(&database, Isolation::Serializable, |tx| {
                let next = numbers(tx, "g.V().hasLabel('ticket').count()")[0];
                std::thread::yield_now();
                ask(tx, "g.addV('ticket').property('number', v).count()", &[next])
            });
        }
    });
    let mut tickets = committed(&database, "g.V().hasLabel('ticket').values('number')");
    tickets.sort_unstable();
    assert_eq!(tickets.len(), 240);
    assert!(!VALIDATED || tickets == (0..240).collect::<Vec<_>>(), "{tickets:?}");
}

#[test]
fn two_snapshots_may_take_the_same_ticket() {
    let database = database("g.addV('office')");
    let (one, two) = (begin(&database, Isolation::Snapshot), begin(&database, Isolation::Snapshot));
    for tx in [&one, &two] {
        let next = numbers(tx, "g.V().hasLabel('ticket').count()")[0];
        run(tx, &format!("g.addV('ticket').property('number', {next})")).unwrap();
    }
    one.commit().unwrap();
    two.commit().unwrap();
    assert_eq!(committed(&database, "g.V().hasLabel('ticket').values('number')"), [0, 0]);
}
