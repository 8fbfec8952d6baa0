//! Shows inputs to a target, on any toolchain, and says what was found.
//!
//! An input that aborts the process (a stack that overflows, memory that is not there) takes its driver along. The same
//! seed makes the same inputs: with [`Options::trail`] each is written to a file before it is shown, which then holds the
//! last one.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rand::SeedableRng;
use rand::rngs::SmallRng;
use rustix::time::{ClockId, clock_gettime};

use crate::mutate::mutate;
use crate::{STACK_BYTES, Target};

/// How memory is counted: by the allocator of whoever has one that counts.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// Begins to count anew.
    pub reset: fn(),
    /// The most bytes since then, less those that were there when it began.
    pub peak: fn() -> usize,
}

/// When the driver stops showing mutations.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Effort {
    /// After this many times [`Target::quick_inputs`]: the same inputs on every machine.
    Quick(u64),
    /// After this time: the faster the machine, the more inputs.
    Time(Duration),
}

impl Effort {
    /// What the environment asks for: the time in `MANGROVE_FUZZ_SECONDS`, or else `MANGROVE_TIMES` (1) quick runs.
    ///
    /// # Panics
    ///
    /// If one of them is set and is not a number.
    pub fn from_environment() -> Self {
        let number = |name: &str| {
            let text = std::env::var(name).ok()?;
            Some(text.parse::<f64>().unwrap_or_else(|error| panic!("{name}={text}: {error}")))
        };
        match number("MANGROVE_FUZZ_SECONDS") {
            Some(seconds) => Effort::Time(Duration::from_secs_f64(seconds)),
            None => Effort::Quick(number("MANGROVE_TIMES").unwrap_or(1.0) as u64),
        }
    }
}

/// How inputs are shown.
#[derive(Clone, Debug)]
pub struct Options {
    /// How many.
    pub effort: Effort,
    /// Where random numbers begin.
    pub seed: u64,
    /// How memory is counted.
    pub memory: Option<Memory>,
    /// What [`Target::time_max`] is multiplied by: for programs that are not optimized.
    pub patience: u32,
    /// Where each input is written before it is shown.
    pub trail: Option<PathBuf>,
    /// The driver calls this with the first finding of each kind of harm. A run may take hours, and may be stopped before it
    /// reports.
    pub on_finding: fn(&Target, &Finding),
}

/// An input that did harm.
#[derive(Clone, Debug)]
pub struct Finding {
    /// What it did.
    pub harm: String,
    /// The input.
    pub input: Vec<u8>,
}

/// The input that took most of something.
#[derive(Clone, Debug, Default)]
pub struct Extreme<T> {
    /// How much it took.
    pub amount: T,
    /// The input.
    pub input: Vec<u8>,
}

impl<T: PartialOrd> Extreme<T> {
    fn update(&mut self, amount: T, input: &[u8]) {
        if amount > self.amount {
            *self = Extreme { amount, input: input.to_vec() };
        }
    }
}

/// What one input did.
#[derive(Clone, Debug)]
pub struct Shown {
    /// Whether the target accepted it, or what it said in its panic.
    pub outcome: Result<bool, String>,
    /// The processor time of all threads of the process meanwhile.
    pub elapsed: Duration,
    /// The most bytes that the process held meanwhile, minus those that it held before. 0 if its allocator does not count.
    pub peak_bytes: usize,
}

impl Shown {
    /// Shows an input to a target.
    pub fn by(target: &Target, memory: Option<Memory>, input: &[u8]) -> Self {
        if let Some(memory) = memory {
            (memory.reset)();
        }
        let since = processor_time();
        let outcome = catch_unwind(AssertUnwindSafe(|| (target.run)(input)));
        let elapsed = processor_time().saturating_sub(since);
        let peak_bytes = memory.map_or(0, |memory| (memory.peak)());
        Shown { outcome: outcome.map_err(|panic| words(panic.as_ref()).to_owned()), elapsed, peak_bytes }
    }

    /// The harm that the input did, where it did any.
    pub fn harm(&self, target: &Target, patience: u32, input: &[u8]) -> Option<String> {
        let time_max = target.time_max * patience;
        match &self.outcome {
            Err(words) => Some(format!("panicked: {words}")),
            Ok(_) if self.elapsed > time_max => Some(format!("took longer than {time_max:?}")),
            // One of each size is kept: the smallest is not always of the same cause as the others.
            Ok(_) if self.peak_bytes > target.memory_max(input.len()) => {
                Some(format!("held more memory than it may ({} bytes of input)", input.len().next_power_of_two()))
            }
            Ok(_) => None,
        }
    }
}

/// What was shown.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// How many inputs.
    pub executions: u64,
    /// How many of them were accepted.
    pub accepted: u64,
    /// The input that took most memory.
    pub largest: Extreme<usize>,
    /// The input that took most processor time.
    pub longest: Extreme<Duration>,
    /// What did harm; of one kind of harm the first.
    pub findings: Vec<Finding>,
}

/// Where inputs are kept that were found, and a few to begin with.
pub fn corpus(target: &Target) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target.name)
}

/// The seeds of a target, and its corpus.
pub fn inputs(target: &Target) -> Vec<Vec<u8>> {
    let mut inputs = (target.seeds)();
    let mut paths: Vec<PathBuf> = std::fs::read_dir(corpus(target))
        .map(|entries| entries.filter_map(|entry| Some(entry.ok()?.path())).collect())
        .unwrap_or_default();
    paths.sort_unstable();
    inputs.extend(paths.iter().filter_map(|path| std::fs::read(path).ok()));
    inputs
}

/// Shows a target its seeds and corpus, and then mutations of them. On a thread with as much stack as those of the server.
///
/// # Panics
///
/// If there is no thread to be had.
pub fn drive(target: &'static Target, options: &Options) -> Report {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name(target.name.to_owned()).stack_size(STACK_BYTES);
        let driver = thread.spawn_scoped(scope, || Driver::new(target, options).run());
        driver.expect("the system has a thread").join().expect("panics of targets are caught")
    })
}

struct Driver<'a> {
    target: &'static Target,
    options: &'a Options,
    report: Report,
}

impl<'a> Driver<'a> {
    fn new(target: &'static Target, options: &'a Options) -> Self {
        Driver { target, options, report: Report::default() }
    }

    fn run(mut self) -> Report {
        let mut inputs = inputs(self.target);
        // What is made once, when the first input comes, is not that input's.
        let _ = catch_unwind(|| (self.target.run)(inputs.first().map_or(b"", Vec::as_slice)));
        for input in &inputs {
            self.show(input);
        }
        let mut is_wanted = self.more();
        let mut random = SmallRng::seed_from_u64(self.options.seed);
        while is_wanted() {
            let input = mutate(&mut random, &inputs, self.target.shape);
            // What is accepted is worth changing further; a bounded number of them.
            if self.show(&input) && input.len() < KEPT_BYTES_MAX {
                if inputs.len() < KEPT_COUNT_MAX {
                    inputs.push(input);
                } else {
                    let place = rand::Rng::random_range(&mut random, 0..inputs.len());
                    inputs[place] = input;
                }
            }
        }
        self.report
    }

    /// Returns true, call by call, as long as another mutation is to be shown.
    #[allow(clippy::disallowed_methods, reason = "a run for a given time needs the clock")]
    fn more(&self) -> Box<dyn FnMut() -> bool> {
        match self.options.effort {
            Effort::Quick(times) => {
                let mut left = self.target.quick_inputs * times;
                Box::new(move || {
                    let more = left > 0;
                    left = left.saturating_sub(1);
                    more
                })
            }
            Effort::Time(time) => {
                let end = Instant::now() + time;
                Box::new(move || Instant::now() < end)
            }
        }
    }

    /// Shows an input; returns true if it was accepted.
    fn show(&mut self, input: &[u8]) -> bool {
        if let Some(trail) = &self.options.trail {
            std::fs::write(trail, input).expect("the trail can be written");
        }
        let shown = Shown::by(self.target, self.options.memory, input);
        let is_accepted = shown.outcome == Ok(true);
        self.report.executions += 1;
        self.report.accepted += u64::from(is_accepted);
        self.report.longest.update(shown.elapsed, input);
        self.report.largest.update(shown.peak_bytes, input);
        if let Some(harm) = shown.harm(self.target, self.options.patience, input) {
            self.found(harm, input);
        }
        is_accepted
    }

    fn found(&mut self, harm: String, input: &[u8]) {
        match self.report.findings.iter_mut().find(|finding| finding.harm == harm) {
            // The shortest is the easiest to understand.
            Some(known) if input.len() < known.input.len() => known.input = input.to_vec(),
            Some(_) => {}
            None => {
                let finding = Finding { harm, input: input.to_vec() };
                (self.options.on_finding)(self.target, &finding);
                self.report.findings.push(finding);
            }
        }
    }
}

/// Inputs that are kept to be changed further.
const KEPT_COUNT_MAX: usize = 4_096;

/// And how long they may be.
const KEPT_BYTES_MAX: usize = 4_096;

/// The processor time of this process: what an input costs on whichever threads, however busy the machine is.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// What a panic said.
fn words(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("something that is no text")
}
