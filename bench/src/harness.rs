//! Takes times.
//!
//! An [`Operation`] takes a number and returns one. The harness runs operations in a *chain*: it draws every input from
//! the answer before it. So an operation cannot begin before the last one has ended, as in a program that waits for its
//! answers. (Independent operations would overlap in the processor and look three to eight times faster.) The step
//! number is mixed into the input, because a chain over a fixed function soon enters a short cycle, which runs in the
//! cache.
//!
//! The harness first runs the chain with doubling lengths, until the clock's resolution and cold caches make no
//! difference. Then it runs repetitions of a fixed length and takes their median.

use std::hint::black_box;
use std::time::Instant;

use mangrove::{Error, ErrorKind, Result};

use crate::options::Options;
use mangrove_generate::random::{below, mix};

/// An operation that can be repeated any number of times.
pub trait Operation: Send {
    /// Runs the operation on this input and returns a digest of the answer.
    fn perform(&mut self, input: u64) -> Result<u64>;
}

impl<F: FnMut(u64) -> Result<u64> + Send> Operation for F {
    fn perform(&mut self, input: u64) -> Result<u64> {
        self(input)
    }
}

/// The number of repetitions of a chain.
pub const REPETITION_COUNT: usize = 5;

/// The duration of measurements.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    /// The duration of one repetition.
    pub slice_seconds: f64,
    /// The number of threads, each with a chain of its own.
    pub threads: usize,
}

impl Schedule {
    /// The schedule that the options ask for.
    pub fn of(options: &Options) -> Self {
        Schedule { slice_seconds: options.seconds / REPETITION_COUNT as f64, threads: options.threads }
    }

    /// The same schedule with one thread.
    pub fn alone(self) -> Self {
        Schedule { threads: 1, ..self }
    }
}

/// The times of repetitions of one length, in nanoseconds an operation and thread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timing {
    /// The median.
    pub median: f64,
    /// The fastest repetition.
    pub min: f64,
    /// The slowest repetition.
    pub max: f64,
}

impl Timing {
    /// The median and the spread. There must be at least one sample.
    pub fn of(mut samples: Vec<f64>) -> Self {
        samples.sort_unstable_by(f64::total_cmp);
        Timing { median: samples[samples.len() / 2], min: samples[0], max: samples[samples.len() - 1] }
    }

    /// The time of one of `count` equal parts.
    pub fn divided_by(self, count: f64) -> Self {
        Timing { median: self.median / count, min: self.min / count, max: self.max / count }
    }
}

/// Times an operation on this thread that takes the number of its run. It need not outlive the call.
pub fn measure_alone(schedule: Schedule, operation: &mut dyn FnMut(u64) -> Result<u64>) -> Result<Timing> {
    take_times(schedule, &mut |step, count| {
        let start = Instant::now();
        for n in step..step + count {
            black_box(operation(n)?);
        }
        Ok(start.elapsed().as_secs_f64())
    })
}

/// Times chains of operations, one chain a thread. Inputs are below `input_count`.
pub fn measure(schedule: Schedule, input_count: u64, operations: &mut [Box<dyn Operation>]) -> Result<Timing> {
    take_times(schedule, &mut |step, count| run_chains(operations, input_count, step, count))
}

/// Calls `run` with doubling counts, until one call takes long enough, and then once for each repetition. `run` takes the
/// number of steps before it and the number of its own, and returns its seconds.
fn take_times(schedule: Schedule, run: &mut dyn FnMut(u64, u64) -> Result<f64>) -> Result<Timing> {
    let mut step = 0;
    let mut count = 1;
    loop {
        let seconds = run(step, count)?;
        step += count;
        if seconds >= schedule.slice_seconds / 4.0 {
            count = ((schedule.slice_seconds / seconds.max(1e-9) * count as f64) as u64).max(1);
            break;
        }
        count *= 2;
    }
    let mut samples = Vec::with_capacity(REPETITION_COUNT);
    for _ in 0..REPETITION_COUNT {
        samples.push(run(step, count)? * 1e9 / count as f64);
        step += count;
    }
    Ok(Timing::of(samples))
}

/// Runs one chain a thread. Returns the seconds until the last one has ended.
fn run_chains(operations: &mut [Box<dyn Operation>], input_count: u64, step: u64, count: u64) -> Result<f64> {
    let start = Instant::now();
    if let [alone] = operations {
        chain(&mut **alone, input_count, 0, step, count)?;
    } else {
        std::thread::scope(|scope| {
            let numbered = operations.iter_mut().zip(0u64..);
            let running: Vec<_> = numbered
                .map(|(operation, seed)| scope.spawn(move || chain(&mut **operation, input_count, seed, step, count)))
                .collect();
            running.into_iter().try_for_each(|thread| {
                thread.join().map_err(|_| Error::bug("an operation panicked while it was timed"))?
            })
        })?;
    }
    Ok(start.elapsed().as_secs_f64())
}

fn chain(operation: &mut dyn Operation, input_count: u64, seed: u64, first: u64, count: u64) -> Result<()> {
    let mut answer = mix(seed);
    for step in first..first + count {
        answer = operation.perform(below(mix(answer ^ (seed << 56) ^ step), input_count))?;
    }
    black_box(answer);
    Ok(())
}

/// Times an operation that needs a preparation for each run. The preparation is not timed.
pub fn measure_prepared<T>(
    repetitions: usize,
    mut prepare: impl FnMut() -> Result<T>,
    mut run: impl FnMut(T) -> Result<()>,
) -> Result<Timing> {
    let mut samples = Vec::with_capacity(repetitions);
    for _ in 0..repetitions.max(1) {
        let prepared = prepare()?;
        let start = Instant::now();
        run(prepared)?;
        samples.push(start.elapsed().as_secs_f64() * 1e9);
    }
    Ok(Timing::of(samples))
}

/// Runs of [`measure_runs`] at least.
const RUNS_MIN: usize = 5;
/// Runs at least of an operation that takes seconds.
const LONG_RUNS: usize = 3;
/// The time after which an operation counts as one that takes seconds.
const LONG_SECONDS: f64 = 5.0;

/// Times an operation of milliseconds to seconds, once to touch new memory and then for so many seconds. `run` takes the number of the run, and
/// returns a digest of the answer.
pub fn measure_runs(seconds: f64, run: &mut dyn FnMut(usize) -> Result<u64>) -> Result<Timing> {
    let begin = Instant::now();
    black_box(run(0)?);
    let mut samples = Vec::new();
    loop {
        let elapsed = begin.elapsed().as_secs_f64();
        let enough = if elapsed > LONG_SECONDS { LONG_RUNS } else { RUNS_MIN };
        if samples.len() >= enough && elapsed >= seconds {
            return Ok(Timing::of(samples));
        }
        let start = Instant::now();
        black_box(run(samples.len())?);
        samples.push(start.elapsed().as_secs_f64() * 1e9);
    }
}

/// The number of inputs of a case that are compared before it is timed.
pub const VERIFIED_COUNT: u64 = 200;

/// Compares an operation's answers with those of a simpler method.
pub fn verify(
    what: &str,
    operation: &mut dyn Operation,
    input_count: u64,
    expected: &mut dyn FnMut(u64) -> Result<u64>,
) -> Result<()> {
    for trial in 0..VERIFIED_COUNT.min(input_count) {
        let input = below(mix(trial), input_count);
        let (expected, found) = (expected(input)?, operation.perform(input)?);
        if expected != found {
            return Err(wrong(format!("{what}: for input {input}, expected {expected}, found {found}")));
        }
    }
    Ok(())
}

/// The error for a wrong answer.
pub(crate) fn wrong(message: String) -> Error {
    Error::new(ErrorKind::Bug, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_stands_between_the_extremes() {
        let timing = Timing::of(vec![5.0, 1.0, 9.0, 2.0, 3.0]);
        assert_eq!(timing, Timing { median: 3.0, min: 1.0, max: 9.0 });
        assert_eq!(timing.divided_by(2.0).median, 1.5);
    }

    #[test]
    fn inputs_stay_below_their_bound_and_depend_on_answers() {
        let mut seen = Vec::new();
        let mut note = |input: u64| {
            seen.push(input);
            Ok(input)
        };
        chain(&mut note, 10, 0, 0, 100).unwrap();
        assert!(seen.iter().all(|&input| input < 10));
        let mut others = Vec::new();
        let mut silent = |input: u64| {
            others.push(input);
            Ok(0)
        };
        chain(&mut silent, 10, 0, 0, 100).unwrap();
        assert_ne!(seen, others);
    }

    #[test]
    fn a_wrong_answer_is_refused_with_what_was_expected() {
        let error = verify("twice", &mut |n| Ok(n * 3), 100, &mut |n| Ok(n * 2)).unwrap_err();
        assert!(error.message().starts_with("twice: for input"), "{error}");
    }

    #[test]
    fn several_threads_each_run_a_chain() {
        let mut operations: Vec<Box<dyn Operation>> = (0..2).map(|_| Box::new(Ok) as Box<dyn Operation>).collect();
        let schedule = Schedule { slice_seconds: 0.0, threads: 2 };
        assert!(measure(schedule, 100, &mut operations).unwrap().median > 0.0);
    }
}
