//! Checks the checker against a small simulated database with a known isolation level: all of its histories pass at
//! that level, and falsified histories fail.

use std::collections::BTreeMap;

use mangrove_histories::{Draft, Outcome};
use mangrove_histories::{History, Kind, Level, Object, Operation, Recorder, Transaction, check};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

#[derive(Clone, Copy, PartialEq)]
enum Isolation {
    /// First committer wins, for writes.
    Snapshot,
    /// First committer wins, for writes and reads.
    Serializable,
    /// No conflicts: the last writer wins.
    None,
}

/// The versions of an object: the time of each commit, and the content.
type Versions = Vec<(u64, Vec<u64>)>;

struct Running {
    draft: Draft,
    begin: u64,
    read: Vec<Object>,
    written: BTreeMap<Object, Vec<u64>>,
}

/// Many processes over lists (even numbers) and registers (odd numbers), one operation at a time.
struct Simulation {
    isolation: Isolation,
    random: SmallRng,
    recorder: Recorder,
    objects: BTreeMap<Object, Versions>,
    clock: u64,
    history: History,
}

impl Simulation {
    fn new(isolation: Isolation, seed: u64) -> Self {
        Simulation {
            isolation,
            random: SmallRng::seed_from_u64(seed),
            recorder: Recorder::default(),
            objects: BTreeMap::new(),
            clock: 0,
            history: History::default(),
        }
    }

    fn run(mut self, transaction_count: usize, process_count: usize) -> History {
        let mut running: Vec<Option<Running>> = (0..process_count).map(|_| None).collect();
        while self.history.transactions().len() < transaction_count {
            let process = self.random.random_range(0..process_count);
            match running[process].take() {
                None => {
                    let draft = self.recorder.begin(process as u32);
                    running[process] =
                        Some(Running { draft, begin: self.clock, read: Vec::new(), written: BTreeMap::new() });
                }
                Some(transaction) if self.random.random_bool(0.2) => self.finish(transaction),
                Some(mut transaction) => {
                    self.operate(&mut transaction);
                    running[process] = Some(transaction);
                }
            }
        }
        self.history
    }

    fn operate(&mut self, transaction: &mut Running) {
        // New objects are added, so that lists stay short.
        let newest = self.history.transactions().len() as u64 / 50;
        let object = Object(newest * 4 + self.random.random_range(0..8));
        let state = self.state(transaction, object);
        let value = transaction.draft.value();
        let is_list = object.0.is_multiple_of(2);
        if self.random.random_bool(0.5) {
            transaction.read.push(object);
            transaction.draft.push(match is_list {
                true => Operation::ReadList { object, values: state },
                false => Operation::Read { object, value: state.last().copied() },
            });
            return;
        }
        let mut state = state;
        match is_list {
            true => state.push(value),
            false => state = vec![value],
        }
        transaction.written.insert(object, state);
        transaction.draft.push(match is_list {
            true => Operation::Append { object, value },
            false => Operation::Write { object, value },
        });
        // An append reads the list to which it appends.
        transaction.read.extend(is_list.then_some(object));
    }

    fn state(&self, transaction: &Running, object: Object) -> Vec<u64> {
        if let Some(own) = transaction.written.get(&object) {
            return own.clone();
        }
        let begin = if self.isolation == Isolation::None { u64::MAX } else { transaction.begin };
        let versions = self.objects.get(&object).map_or(&[][..], Vec::as_slice);
        versions.iter().rev().find(|(at, _)| *at <= begin).map(|(_, state)| state.clone()).unwrap_or_default()
    }

    fn finish(&mut self, transaction: Running) {
        let newer = |object: &Object| {
            self.objects.get(object).and_then(|v| v.last()).is_some_and(|(at, _)| *at > transaction.begin)
        };
        let loses = match self.isolation {
            Isolation::None => false,
            Isolation::Snapshot => transaction.written.keys().any(newer),
            Isolation::Serializable => {
                transaction.written.keys().any(newer)
                    || (!transaction.written.is_empty() && transaction.read.iter().any(newer))
            }
        };
        if loses || self.random.random_bool(0.05) {
            self.history.push(transaction.draft.finish(Outcome::Aborted));
            return;
        }
        self.clock += 1;
        for (object, state) in transaction.written {
            self.objects.entry(object).or_default().push((self.clock, state));
        }
        self.history.push(transaction.draft.finish(Outcome::Committed));
    }
}

fn kinds(history: &History) -> Vec<Kind> {
    check(history).unwrap().counts().into_keys().collect()
}

#[test]
fn serializable_histories_pass() {
    for seed in 0..40 {
        let history = Simulation::new(Isolation::Serializable, seed).run(500, 5);
        let report = check(&history).unwrap();
        assert!(report.anomalies.is_empty(), "seed {seed}: {}", report.anomalies[0]);
        assert!(report.dependency_count > 500);
    }
}

#[test]
fn snapshot_histories_show_write_skew_and_nothing_else() {
    let mut skews = 0;
    for seed in 0..40 {
        let history = Simulation::new(Isolation::Snapshot, seed).run(500, 5);
        let report = check(&history).unwrap();
        let first = report.violations(Level::StrongSnapshot).next();
        assert!(first.is_none(), "seed {seed}: {}", first.unwrap());
        skews += report.violations(Level::Serializable).count();
    }
    assert!(skews > 100, "write skew was seen {skews} times");
}

#[test]
fn without_isolation_everything_is_seen() {
    let mut seen: Vec<Kind> =
        (0..20).flat_map(|seed| kinds(&Simulation::new(Isolation::None, seed).run(500, 5))).collect();
    seen.sort_unstable();
    seen.dedup();
    for kind in [Kind::Internal, Kind::IncompatibleOrder, Kind::LostUpdate, Kind::GSingle] {
        assert!(seen.contains(&kind), "{kind:?} is not among {seen:?}");
    }
}

/// Replaces the result of one read by a different result of another read of the same object.
fn swap_reads(history: &mut History, random: &mut SmallRng) -> bool {
    let is_read = |o: &Operation| matches!(o, Operation::ReadList { .. } | Operation::Read { .. });
    let mut places: BTreeMap<Object, Vec<(usize, usize)>> = BTreeMap::new();
    for (t, transaction) in history.transactions().iter().enumerate() {
        if transaction.outcome != Outcome::Committed {
            continue;
        }
        for (o, operation) in transaction.operations.iter().enumerate().filter(|(_, o)| is_read(o)) {
            places.entry(operation.object()).or_default().push((t, o));
        }
    }
    let places: Vec<Vec<(usize, usize)>> = places.into_values().filter(|p| p.len() > 1).collect();
    let of_object = &places[random.random_range(0..places.len())];
    let (a, b) =
        (of_object[random.random_range(0..of_object.len())], of_object[random.random_range(0..of_object.len())]);
    let transactions: &mut Vec<Transaction> = history.transactions_mut();
    let (one, two) = (transactions[a.0].operations[a.1].clone(), transactions[b.0].operations[b.1].clone());
    if one == two {
        return false;
    }
    transactions[a.0].operations[a.1] = two;
    transactions[b.0].operations[b.1] = one;
    true
}

#[test]
fn swapped_reads_of_a_serial_history_are_found() {
    let mut random = SmallRng::seed_from_u64(7);
    let (mut swapped, mut found) = (0, 0);
    for seed in 0..300 {
        // One process: real time orders every two transactions, so every swap is a contradiction.
        let mut history = Simulation::new(Isolation::Serializable, seed).run(100, 1);
        if swap_reads(&mut history, &mut random) {
            swapped += 1;
            found += usize::from(check(&history).unwrap().violations(Level::StrictSerializable).next().is_some());
        }
    }
    // The order of blind writes to a register is unknown, so some swaps are not found.
    assert!(swapped > 100 && found * 10 >= swapped * 9, "{found} of {swapped} swaps were found");
}

#[test]
fn a_hundred_thousand_transactions_are_checked_at_once() {
    let history = Simulation::new(Isolation::Serializable, 1).run(100_000, 8);
    let report = check(&history).unwrap();
    assert!(report.anomalies.is_empty());
    assert!(report.transaction_count > 50_000, "{} were committed", report.transaction_count);
}
