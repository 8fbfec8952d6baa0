//! Several threads that do transactions, each as fast as it can, and what became of them.
//!
//! Every thread draws a template and its arguments, then carries it out between two looks at the clock. A conflict is
//! a failed transaction: it is counted and not tried again. Any other error ends the run.
//!
//! The time is cut into a hundred slices. The first, 1 %, is dropped; the throughput is the mean over the others, with
//! a 95 % interval by the bootstrap ([`Estimate`]). Histograms hold everything.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use mangrove::{Error, ErrorKind, Result};

use super::draw::Draw;
use super::histogram::Histogram;
use super::session::{Done, Session};
use super::statistics::Estimate;
use super::template::Mix;

/// Slices of a run's time.
const SLICE_COUNT: usize = 100;
/// Slices at its beginning that do not count: 1 %.
const SLICES_DROPPED: usize = 1;

/// How long a run goes on.
#[derive(Clone, Copy, Debug)]
pub struct Length {
    /// So long.
    pub seconds: f64,
    /// Every thread does so many transactions in any case.
    pub transactions_min: u64,
}

/// A thread of a run.
pub struct Worker {
    /// Who carries templates out.
    pub session: Box<dyn Session>,
    /// What is drawn.
    pub draw: Draw,
}

/// What became of one template.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Transactions that were carried out.
    pub done: u64,
    /// Of them, those whose vertex or edge did not exist (or no longer).
    pub missing: u64,
    /// Transactions that met a conflict.
    pub failed: u64,
    /// Nanoseconds, of those carried out.
    pub latency: Histogram,
    /// Versions written.
    pub writes: Histogram,
    /// Items of read sets.
    pub reads: Histogram,
}

/// What became of a run.
#[derive(Clone, Debug)]
pub struct Record {
    /// By the template's place in the mix.
    pub outcomes: Vec<Outcome>,
    /// How long it took.
    pub seconds: f64,
    /// Transactions carried out by slice.
    slices: Vec<u64>,
    slice_seconds: f64,
}

impl Record {
    fn new(templates: usize, seconds: f64) -> Self {
        Record {
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

    fn merge(&mut self, other: &Record) {
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

    /// Transactions that were carried out.
    pub fn done(&self) -> u64 {
        self.outcomes.iter().map(|outcome| outcome.done).sum()
    }

    /// Transactions that met a conflict.
    pub fn failed(&self) -> u64 {
        self.outcomes.iter().map(|outcome| outcome.failed).sum()
    }

    /// Of all transactions, how many percent met a conflict.
    pub fn failed_percent(&self) -> f64 {
        100.0 * self.failed() as f64 / (self.done() + self.failed()).max(1) as f64
    }

    /// Transactions carried out a second, slice by slice; a run too short for slices is one.
    pub fn rates(&self) -> Vec<f64> {
        if self.slice_seconds == 0.0 {
            return vec![self.done() as f64 / self.seconds.max(1e-9)];
        }
        self.slices[SLICES_DROPPED..].iter().map(|&count| count as f64 / self.slice_seconds).collect()
    }

    /// Transactions carried out a second.
    pub fn throughput(&self) -> Estimate {
        Estimate::of(&self.rates()).expect("a run has slices or is one")
    }

    /// All latencies.
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

/// What is looked at while a run goes on.
pub struct Watch<'a> {
    /// How often.
    pub interval: Duration,
    /// Given the seconds since the start and the transactions carried out so far.
    pub look: &'a mut dyn FnMut(f64, u64),
}

/// Transactions of one worker, on a cache line of its own: counting must not make the workers wait for one another.
#[derive(Default)]
#[repr(align(128))]
struct Count(AtomicU64);

/// Runs the workers. `Err` is the first error that is no conflict.
pub fn drive(mix: &Mix, length: Length, workers: &mut [Worker], watch: Option<Watch<'_>>) -> Result<Record> {
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
        let mut record = Record::new(mix.entries.len(), length.seconds);
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

/// One thread's part.
fn work(mix: &Mix, length: Length, worker: &mut Worker, count: &AtomicU64, stop: &AtomicBool) -> Result<Record> {
    let mut record = Record::new(mix.entries.len(), length.seconds);
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

/// Whether another transaction was in the way. (A server has tried again by then.)
pub fn is_conflict(error: &Error) -> bool {
    error.kind() == ErrorKind::Conflict
}
