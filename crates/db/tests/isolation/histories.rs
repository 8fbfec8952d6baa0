//! Random histories of many threads, checked.
//!
//! `MANGROVE_CASES` transactions of each level, in rounds of a database each, with seeds from `MANGROVE_FIRST` on. Half
//! of the rounds run on threads. There, a seed repeats only the operations that each client tries. In the other rounds,
//! clients take turns on one thread in an order of the seed. A seed repeats these exactly, and their transactions
//! overlap much more.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use mangrove::{AbortCause, Database, DatabaseOptions, Isolation, TransactionOptions};
use mangrove_histories::{History, Kind, Recorder, Report, Transaction, check};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::attempt::{Attempt, Fault};
use super::support::{VALIDATED, promised};
use super::workload;

/// Transactions of one database.
const ROUND: usize = 4_000;
/// Transactions of one thread over one generation of objects.
const GENERATION: usize = 60;
/// Clients at once, by seed.
const PROCESSES: [usize; 4] = [4, 2, 8, 3];

#[derive(Clone, Copy, Debug)]
enum Schedule {
    Threads,
    Interleaved,
}

struct Round {
    seed: u64,
    isolation: Isolation,
    schedule: Schedule,
    fault: Fault,
    transaction_count: usize,
}

struct Outcome {
    report: Report,
    database: Database,
}

impl Round {
    fn run(&self) -> Outcome {
        let database = Database::with_options(&DatabaseOptions { tablet_count: 4, ..DatabaseOptions::default() });
        let processes = PROCESSES[(self.seed % PROCESSES.len() as u64) as usize];
        let each = self.transaction_count / processes;
        workload::set_up(&database, (each / GENERATION + 1) as u64, &workload::PREPARED);
        self.switch_optimizations(&database);
        let recorder = Recorder::default();
        let processes: Vec<Process<'_>> =
            (0..processes as u32).map(|number| Process::new(self, &database, &recorder, number)).collect();
        let mut history = History::default();
        match self.schedule {
            Schedule::Threads => history.extend(run_on_threads(processes, each)),
            Schedule::Interleaved => history.extend(run_interleaved(processes, each, self.seed)),
        }
        name_objects(&mut history);
        let report = check(&history).unwrap_or_else(|error| panic!("seed {}: {error}", self.seed));
        Outcome { report, database }
    }

    /// Seeds select every combination of the protocol's optimizations; the first seeds, those of CI, enable both.
    fn switch_optimizations(&self, database: &Database) {
        let combination = self.seed / 2 % 4;
        let settings = database.settings();
        settings.optimistic_pre_read.store(combination & 1 == 0, Ordering::Relaxed);
        settings.optimistic_validation.store(combination & 2 == 0, Ordering::Relaxed);
    }
}

/// A client: one transaction after the other, an operation a step.
struct Process<'r> {
    round: &'r Round,
    database: &'r Database,
    recorder: &'r Recorder,
    number: u32,
    random: SmallRng,
    finished: Vec<Transaction>,
    running: Option<Running<'r>>,
}

struct Running<'r> {
    attempt: Attempt<'r>,
    operations_left: usize,
    read_only: bool,
}

impl<'r> Process<'r> {
    fn new(round: &'r Round, database: &'r Database, recorder: &'r Recorder, number: u32) -> Self {
        let random = SmallRng::seed_from_u64(round.seed << 8 | u64::from(number));
        Process { round, database, recorder, number, random, finished: Vec::new(), running: None }
    }

    /// Begins a transaction, does one operation of it, or ends it.
    fn step(&mut self) {
        let Some(mut running) = self.running.take() else {
            self.running = Some(self.begin());
            return;
        };
        let outcome = match running.operations_left {
            0 => Ok(()),
            _ => {
                running.operations_left -= 1;
                let generation = (self.finished.len() / GENERATION) as u64;
                workload::operate(&mut running.attempt, &mut self.random, generation, running.read_only)
            }
        };
        if outcome.is_ok() && running.operations_left > 0 {
            self.running = Some(running);
            return;
        }
        self.finished.push(running.attempt.end(outcome, self.random.random_bool(0.95)));
    }

    fn begin(&mut self) -> Running<'r> {
        let read_only = self.random.random_bool(0.2);
        let options = TransactionOptions { isolation: self.round.isolation, read_only };
        let attempt = Attempt::begin(self.database, self.recorder, self.number, options, self.round.fault);
        Running { attempt, operations_left: self.random.random_range(1..=12), read_only }
    }
}

/// Runs each process on a thread of its own.
fn run_on_threads(processes: Vec<Process<'_>>, each: usize) -> Vec<Transaction> {
    std::thread::scope(|scope| {
        let run = |mut process: Process<'_>| {
            while process.finished.len() < each {
                process.step();
                // Without it, a thread would run many transactions before another gets its turn on a small machine.
                if process.random.random_bool(0.3) {
                    std::thread::yield_now();
                }
            }
            process.finished
        };
        let running: Vec<_> = processes.into_iter().map(|process| scope.spawn(move || run(process))).collect();
        running.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    })
}

/// Runs all processes on this thread, in an order of the seed, so that a failure repeats.
fn run_interleaved(mut processes: Vec<Process<'_>>, each: usize, seed: u64) -> Vec<Transaction> {
    let mut random = SmallRng::seed_from_u64(seed);
    let total = each * processes.len();
    while processes.iter().map(|process| process.finished.len()).sum::<usize>() < total {
        let next = random.random_range(0..processes.len());
        if processes[next].finished.len() < each {
            processes[next].step();
        }
    }
    processes.into_iter().flat_map(|process| process.finished).collect()
}

fn name_objects(history: &mut History) {
    let objects: Vec<_> =
        history.transactions().iter().flat_map(|t| t.operations.iter().map(|operation| operation.object())).collect();
    for object in objects {
        history.name(object, workload::name(object));
    }
}

/// The outcomes of the transactions of a level.
#[derive(Default)]
struct Summary {
    checked: usize,
    dependencies: usize,
    commits: u64,
    read_only: u64,
    aborts: [u64; AbortCause::ALL.len()],
    dependency_waits: u64,
    pre_reads: u64,
    found: BTreeMap<Kind, usize>,
}

impl Summary {
    fn add(&mut self, Outcome { report, database }: &Outcome) {
        let counters = database.transaction_counters();
        self.checked += report.transaction_count;
        self.dependencies += report.dependency_count;
        self.commits += counters.commits;
        self.read_only += counters.read_only;
        for cause in AbortCause::ALL {
            self.aborts[cause as usize] += counters.aborted(cause);
        }
        self.dependency_waits += counters.dependency_waits;
        self.pre_reads += counters.pre_reads;
        for (kind, count) in report.counts() {
            *self.found.entry(kind).or_default() += count;
        }
    }

    fn print(&self, isolation: Isolation) {
        let total = self.commits + self.read_only + self.aborts.iter().sum::<u64>();
        let share = |count: u64| format!("{count} ({:.1} %)", 100.0 * count as f64 / total.max(1) as f64);
        let aborts: Vec<String> = AbortCause::ALL
            .iter()
            .map(|&cause| format!("{} {}", cause.name(), share(self.aborts[cause as usize])))
            .collect();
        println!(
            "{isolation:?}: {} transactions checked, {} dependencies; committed {}, read only {}; aborted: {}; \
             {} waits for dependencies, {} reads ahead; found {:?}",
            self.checked,
            self.dependencies,
            share(self.commits),
            share(self.read_only),
            aborts.join(", "),
            self.dependency_waits,
            self.pre_reads,
            self.found,
        );
    }
}

/// Runs a level's share of transactions and prints their outcomes. Fails at the first anomaly that the level forbids.
fn run_level(isolation: Isolation) -> BTreeMap<Kind, usize> {
    let count = mangrove_testdata::case_count(8_000_usize);
    let first = mangrove_testdata::first_seed(0);
    let mut summary = Summary::default();
    for seed in (first..).take(count.div_ceil(ROUND)) {
        let schedule = if seed % 2 == 0 { Schedule::Threads } else { Schedule::Interleaved };
        let round = Round { seed, isolation, schedule, fault: Fault::None, transaction_count: ROUND };
        let outcome = round.run();
        if let Some(anomaly) = outcome.report.violations(promised(isolation)).next() {
            panic!("seed {seed}, {schedule:?}: {isolation:?} must not allow this\n{anomaly}");
        }
        summary.add(&outcome);
    }
    summary.print(isolation);
    summary.found
}

#[test]
fn serializable_histories_have_no_anomaly() {
    let found = run_level(Isolation::Serializable);
    assert!(!VALIDATED || found.is_empty(), "{found:?}");
}

#[test]
fn snapshot_histories_have_write_skew_and_nothing_else() {
    let found = run_level(Isolation::Snapshot);
    assert!(found.keys().all(|kind| matches!(kind, Kind::G2Item | Kind::G2)), "{found:?}");
    for kind in [Kind::G2Item, Kind::G2] {
        assert!(found.contains_key(&kind), "{kind:?} was never seen: do these transactions overlap at all? {found:?}");
    }
}

/// The checker must be able to fail: it finds faults that are injected on purpose.
#[test]
fn broken_isolation_is_found_out() {
    for (fault, expected) in [
        (Fault::ReadsOutside, vec![Kind::Internal, Kind::GSingle]),
        (Fault::WritesOutside, vec![Kind::Internal, Kind::G1a]),
        (Fault::CommitsNothing, vec![Kind::GSingle]),
    ] {
        let round = Round {
            seed: 1,
            isolation: Isolation::Snapshot,
            schedule: Schedule::Interleaved,
            fault,
            transaction_count: 1_000,
        };
        let counts = round.run().report.counts();
        for kind in expected {
            assert!(counts.contains_key(&kind), "{fault:?} shows no {kind:?}, but {counts:?}");
        }
    }
}
