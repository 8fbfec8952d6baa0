//! Several threads that run transactions, each as fast as it can, and count the outcomes.
//!
//! Every thread draws a template and its arguments, then reads the clock, runs the transaction, and reads the clock
//! again. A conflict is a failed transaction: it is counted and not retried. Any other error ends the run.
//!
//! The time of a run has a hundred slices. The first (1 %) is dropped. The throughput is the mean over the others, with
//! a 95 % interval by the bootstrap ([`Estimate`]). Histograms cover the whole run.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use mangrove::{Error, ErrorKind, Result};

use super::draw::Draw;
use super::histogram::Histogram;
use super::session::{Done, Session};
use super::statistics::Estimate;
use super::template::Mix;

/// The number of slices of a run's time.
const SLICE_COUNT: usize = 100;
/// The slices at the beginning that do not count: 1 %.
const SLICES_DROPPED: usize = 1;

/// The length of a run.
#[derive(Clone, Copy, Debug)]
pub struct Length {
    /// A duration.
    pub seconds: f64,
    /// A fixed number of transactions of every thread.
    pub transactions_min: u64,
}

/// One thread of a run.
pub struct Worker {
    /// Runs the templates.
    pub session: Box<dyn Session>,
    /// Draws the templates and arguments.
    pub draw: Draw,
}

/// The outcomes of one template.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Transactions that committed.
    pub done: u64,
    /// Committed transactions whose vertex or edge did not exist; part of `done`.
    pub missing: u64,
    /// Transactions that met a conflict.
    pub failed: u64,
    /// Latency of the committed transactions, in nanoseconds.
    pub latency: Histogram,
    /// Versions written by a transaction.
    pub writes: Histogram,
    /// Items in a transaction's read set.
    pub reads: Histogram,
}

/// The outcomes of a run.
#[derive(Clone, Debug)]
pub struct RunRecord {
    /// By index of the template in the mix.
    pub outcomes: Vec<Outcome>,
    /// The duration of the run.
    pub seconds: f64,
    /// Committed transactions, by slice.
    slices: Vec<u64>,
    slice_seconds: f64,
}

impl RunRecord {
    fn new(templates: usize, seconds: f64) -> Self {
        RunRecord {
            outcomes: vec![Outcome::default(); templates],
            seconds,
            slices: vec![0; SLICE_COUNT],
            slice_seconds: seconds / SLICE_COUNT as f64,
        }
    }

    fn add(&mut self, template: usize, done: Done, nanos: u64, since_start: Duration) {
        let outcome = &mut self.outcomes[template];
        outcome.done += 1;
        outcome.missing += u64::from(done.rows == 0);
        outcome.latency.add(nanos);
        outcome.writes.add(done.writes as u64);
        outcome.reads.add(done.reads as u64);
        if let Some(slice) = self.slices.get_mut((since_start.as_secs_f64() / self.slice_seconds) as usize) {
            *slice += 1;
        }
    }

    fn merge(&mut self, other: &RunRecord) {
        for (mine, others) in self.outcomes.iter_mut().zip(&other.outcomes) {
            mine.done += others.done;
            mine.missing += others.missing;
            mine.failed += others.failed;
            mine.latency.merge(&others.latency);
            mine.writes.merge(&others.writes);
            mine.reads.merge(&others.reads);
        }
        self.seconds = self.seconds.max(other.seconds);
        self.slices.iter_mut().zip(&other.slices).for_each(|(mine, others)| *mine += others);
    }

    /// The number of transactions that committed.
    pub fn done(&self) -> u64 {
        self.outcomes.iter().map(|outcome| outcome.done).sum()
    }

    /// The number of transactions that met a conflict.
    pub fn failed(&self) -> u64 {
        self.outcomes.iter().map(|outcome| outcome.failed).sum()
    }

    /// The percentage of transactions that met a conflict.
    pub fn failed_percent(&self) -> f64 {
        100.0 * self.failed() as f64 / (self.done() + self.failed()).max(1) as f64
    }

    /// Committed transactions a second, by slice; a run that is too short for slices has one.
    pub fn rates(&self) -> Vec<f64> {
        if self.slice_seconds == 0.0 {
            return vec![self.done() as f64 / self.seconds.max(1e-9)];
        }
        self.slices[SLICES_DROPPED..].iter().map(|&count| count as f64 / self.slice_seconds).collect()
    }

    /// Committed transactions a second.
    pub fn throughput(&self) -> Estimate {
        Estimate::of(&self.rates()).expect("a run has slices or is one")
    }

    /// The latencies of all templates, in nanoseconds.
    pub fn latency(&self) -> Histogram {
        self.merged(|outcome| &outcome.latency)
    }

    /// One histogram of all templates.
    pub fn merged(&self, which: impl Fn(&Outcome) -> &Histogram) -> Histogram {
        let mut all = Histogram::default();
        self.outcomes.iter().for_each(|outcome| all.merge(which(outcome)));
        all
    }
}

/// An observer of a run.
pub struct Watch<'a> {
    /// The interval between observations.
    pub interval: Duration,
    /// Called with the seconds since the start and the number of transactions committed so far.
    pub look: &'a mut dyn FnMut(f64, u64),
}

/// The count of one worker, on a cache line of its own, so that workers do not wait for one another when they count.
#[derive(Default)]
#[repr(align(128))]
struct Count(AtomicU64);

/// Runs the workers. Returns the first error that is no conflict.
pub fn drive(mix: &Mix, length: Length, workers: &mut [Worker], watch: Option<Watch<'_>>) -> Result<RunRecord> {
    let barrier = Barrier::new(workers.len() + 1);
    let stop = AtomicBool::new(false);
    let counts: Vec<Count> = workers.iter().map(|_| Count::default()).collect();
    std::thread::scope(|scope| {
        let running: Vec<_> = workers
            .iter_mut()
            .zip(&counts)
            .map(|(worker, count)| {
                let (barrier, stop) = (&barrier, &stop);
                scope.spawn(move || {
                    barrier.wait();
                    let outcome = work(mix, length, worker, &count.0, stop);
                    if outcome.is_err() {
                        stop.store(true, Ordering::Relaxed);
                    }
                    outcome
                })
            })
            .collect();
        barrier.wait();
        let start = Instant::now();
        if let Some(watch) = watch {
            look_on(watch, start, length, &counts, &stop);
        }
        let mut record = RunRecord::new(mix.entries.len(), length.seconds);
        for thread in running {
            let of_thread = thread.join().map_err(|_| Error::bug("a thread of a run panicked"))??;
            record.merge(&of_thread);
        }
        Ok(record)
    })
}

fn look_on(watch: Watch<'_>, start: Instant, length: Length, counts: &[Count], stop: &AtomicBool) {
    let mut next = watch.interval;
    while next.as_secs_f64() <= length.seconds + 1e-9 && !stop.load(Ordering::Relaxed) {
        std::thread::sleep(next.saturating_sub(start.elapsed()));
        let done = counts.iter().map(|count| count.0.load(Ordering::Relaxed)).sum();
        (watch.look)(start.elapsed().as_secs_f64(), done);
        next += watch.interval;
    }
}

/// The work of one thread.
fn work(mix: &Mix, length: Length, worker: &mut Worker, count: &AtomicU64, stop: &AtomicBool) -> Result<RunRecord> {
    let mut record = RunRecord::new(mix.entries.len(), length.seconds);
    let (start, mut transactions) = (Instant::now(), 0u64);
    loop {
        let template = worker.draw.template(mix);
        let what = &mix.entries[template].0;
        let arguments = worker.draw.arguments(what);
        let before = Instant::now();
        let outcome = worker.session.perform(template, arguments);
        let after = Instant::now();
        let since_start = after - start;
        match outcome {
            Ok(done) => {
                worker.draw.note(what.verb, done.created);
                record.add(template, done, (after - before).as_nanos() as u64, since_start);
                count.fetch_add(1, Ordering::Relaxed);
            }
            Err(error) if is_conflict(&error) => record.outcomes[template].failed += 1,
            Err(error) => return Err(error.context(format!("{}, `{}`", mix.name, what.name))),
        }
        transactions += 1;
        let enough = since_start.as_secs_f64() >= length.seconds && transactions >= length.transactions_min;
        if enough || stop.load(Ordering::Relaxed) {
            record.seconds = since_start.as_secs_f64();
            return Ok(record);
        }
    }
}

/// Returns true if another transaction was in conflict. (A server has retried by then.)
pub fn is_conflict(error: &Error) -> bool {
    error.kind() == ErrorKind::Conflict
}
