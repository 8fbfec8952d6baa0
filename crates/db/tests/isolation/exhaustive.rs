//! All interleavings of small transactions, over every kind of object.
//!
//! Every two transactions of two operations (read or write one of two objects) in every order of their steps, and
//! chosen programs of three transactions. Everything runs on one thread and without random choices, so a failure
//! repeats. The history checker decides.

use mangrove::{Database, Isolation, Result, TransactionOptions};
use mangrove_histories::{History, Kind, Object, Recorder, Report, check};

use super::attempt::{Attempt, Fault};
use super::support::promised;
use super::workload::{self, name, touch};

/// Reads or writes the first or the second object.
#[derive(Clone, Copy, Debug)]
struct Step {
    second: bool,
    writes: bool,
}

const READ_FIRST: Step = Step { second: false, writes: false };
const READ_SECOND: Step = Step { second: true, writes: false };
const WRITE_FIRST: Step = Step { second: false, writes: true };
const WRITE_SECOND: Step = Step { second: true, writes: true };
const STEPS: [Step; 4] = [READ_FIRST, READ_SECOND, WRITE_FIRST, WRITE_SECOND];

type Program = Vec<Step>;

/// All orders in which programs of these lengths can take their steps, as lists of program numbers.
fn interleavings(lengths: &[usize]) -> Vec<Vec<usize>> {
    if lengths.iter().all(|length| *length == 0) {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for program in (0..lengths.len()).filter(|&program| lengths[program] > 0) {
        let mut left = lengths.to_vec();
        left[program] -= 1;
        for mut rest in interleavings(&left) {
            rest.insert(0, program);
            all.push(rest);
        }
    }
    all
}

struct Explorer<'d> {
    database: &'d Database,
    recorder: Recorder,
    isolation: Isolation,
    history: History,
}

impl Explorer<'_> {
    /// Runs the programs in this order; each commits one step after its last.
    fn explore(&mut self, programs: &[Program], order: &[usize], objects: [Object; 2]) {
        let options = TransactionOptions { isolation: self.isolation, read_only: false };
        let mut running: Vec<Option<(Attempt<'_>, usize)>> = programs.iter().map(|_| None).collect();
        let mut ended = vec![false; programs.len()];
        for &turn in order {
            if ended[turn] {
                continue;
            }
            let begin = || Attempt::begin(self.database, &self.recorder, turn as u32, options, Fault::None);
            let (mut attempt, done) = running[turn].take().unwrap_or_else(|| (begin(), 0));
            let outcome: Result<()> = match programs[turn].get(done) {
                Some(step) => touch(&mut attempt, objects[usize::from(step.second)], step.writes, false),
                None => {
                    self.history.push(attempt.end(Ok(()), true));
                    ended[turn] = true;
                    continue;
                }
            };
            if outcome.is_ok() {
                running[turn] = Some((attempt, done + 1));
            } else {
                self.history.push(attempt.end(outcome, true));
                ended[turn] = true;
            }
        }
    }
}

/// Every interleaving of each set of programs over each kind of object, checked kind by kind.
fn explore_all(isolation: Isolation, sets: &[Vec<Program>]) -> Vec<Report> {
    let orders: Vec<Vec<Vec<usize>>> =
        sets.iter().map(|set| interleavings(&set.iter().map(|p| p.len() + 1).collect::<Vec<_>>())).collect();
    let mut reports = Vec::new();
    for kind in 0..workload::PAIR_KINDS {
        let database = Database::in_memory();
        let runs: usize = orders.iter().map(Vec::len).sum();
        workload::set_up_pairs(&database, runs as u64, kind);
        let (recorder, history) = (Recorder::default(), History::default());
        let mut explorer = Explorer { database: &database, recorder, isolation, history };
        let mut generation = 0;
        for (programs, orders) in sets.iter().zip(&orders) {
            for order in orders {
                explorer.explore(programs, order, workload::pair(kind, generation));
                generation += 1;
            }
        }
        let objects: Vec<Object> = (0..generation).flat_map(|g| workload::pair(kind, g)).collect();
        objects.into_iter().for_each(|object| explorer.history.name(object, name(object)));
        reports.push(check(&explorer.history).unwrap());
    }
    reports
}

/// All sets of two transactions of two operations, up to exchanging the transactions and the objects.
fn all_pairs() -> Vec<Vec<Program>> {
    let programs: Vec<[usize; 2]> = (0..4).flat_map(|a| (0..4).map(move |b| [a, b])).collect();
    let exchanged = |program: [usize; 2]| program.map(|step| step ^ 1);
    let mut sets = Vec::new();
    for &one in &programs {
        for &two in &programs {
            let same = [[one, two], [two, one], [exchanged(one), exchanged(two)], [exchanged(two), exchanged(one)]];
            if same.iter().min() == Some(&[one, two]) {
                sets.push([one, two].map(|program| program.map(|step| STEPS[step]).to_vec()).to_vec());
            }
        }
    }
    sets
}

/// Programs of three transactions for the anomalies that need so many.
fn triples() -> Vec<Vec<Program>> {
    vec![
        // Without the reader there is no anomaly (Fekete, O'Neil and O'Neil).
        vec![vec![READ_FIRST, READ_SECOND, WRITE_FIRST], vec![WRITE_SECOND], vec![READ_FIRST, READ_SECOND]],
        // Two independent writers and a reader, whose reads lie before, between and after.
        vec![vec![WRITE_FIRST], vec![WRITE_SECOND], vec![READ_SECOND, READ_FIRST]],
        // One writer of both, one of one, and a reader.
        vec![vec![WRITE_FIRST, WRITE_SECOND], vec![READ_FIRST, WRITE_SECOND], vec![READ_SECOND, READ_FIRST]],
    ]
}

fn check_level(isolation: Isolation, sets: &[Vec<Program>]) -> Vec<Report> {
    let reports = explore_all(isolation, sets);
    for report in &reports {
        if let Some(anomaly) = report.violations(promised(isolation)).next() {
            panic!("{isolation:?} must not allow this\n{anomaly}");
        }
    }
    reports
}

#[test]
fn no_interleaving_of_two_serializable_transactions_is_anomalous() {
    check_level(Isolation::Serializable, &all_pairs());
}

#[test]
fn interleavings_of_two_snapshot_transactions_show_write_skew_only() {
    for report in check_level(Isolation::Snapshot, &all_pairs()) {
        // Write skew must occur over every kind of object.
        let skewed = report.anomalies.iter().any(|a| matches!(a.kind, Kind::G2Item | Kind::G2));
        assert!(skewed, "{:?}", report.counts());
    }
}

#[test]
fn no_interleaving_of_three_serializable_transactions_is_anomalous() {
    check_level(Isolation::Serializable, &triples());
}

#[test]
fn interleavings_of_three_snapshot_transactions_show_write_skew_only() {
    check_level(Isolation::Snapshot, &triples());
}
