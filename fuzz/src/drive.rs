//! Shows inputs to a target, on any toolchain, and reports the findings.
//!
//! The driver reads the corpus and writes only the trail. A target may use temporary files.
//!
//! An input that aborts the process (a stack overflow, an allocation that fails) ends the driver, too. The same seed
//! makes the same inputs. With [`Options::trail`], each input is written to a file before it is shown, so the file then
//! holds the last one.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rand::SeedableRng;
use rand::rngs::SmallRng;
use rustix::time::{ClockId, clock_gettime};

use crate::mutate::mutate;
use crate::{STACK_BYTES, Target};

/// The two operations of an allocator that counts the bytes it holds.
#[derive(Clone, Copy, Debug)]
pub struct MemoryCounter {
    /// Begins a new count.
    pub reset: fn(),
    /// Returns the most bytes held since the count began, less those held when it began.
    pub peak: fn() -> usize,
}

/// When the driver stops.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Effort {
    /// After this many times [`Target::quick_inputs`]: the same inputs on every machine.
    Quick(u64),
    /// After this time: a faster machine shows more inputs.
    Time(Duration),
}

impl Effort {
    /// The effort that the environment asks for: the time in `MANGROVE_FUZZ_SECONDS`, or else `MANGROVE_TIMES` quick
    /// runs (default 1).
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

/// The options of a run.
#[derive(Clone, Debug)]
pub struct Options {
    /// When the run stops.
    pub effort: Effort,
    /// The seed of the random numbers.
    pub seed: u64,
    /// The counter of memory; without it, a run checks only the time.
    pub memory: Option<MemoryCounter>,
    /// A factor for [`Target::time_max`], for programs without optimization.
    pub patience: u32,
    /// The file to which each input is written before it is shown.
    pub trail: Option<PathBuf>,
    /// Called with the first finding of each kind of harm. A run may take hours, and may be stopped before it reports.
    pub on_finding: fn(&Target, &Finding),
}

/// An input that did harm.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The harm in words: the message of the panic, or the limit that the input exceeded.
    pub harm: String,
    /// The input.
    pub input: Vec<u8>,
}

/// The input that took the most of a resource.
#[derive(Clone, Debug, Default)]
pub struct Extreme<T> {
    /// The amount.
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

/// The effect of one input.
#[derive(Clone, Debug)]
pub struct Shown {
    /// True if the target accepted the input; the error is the message of its panic.
    pub outcome: Result<bool, String>,
    /// The processor time of all threads of the process meanwhile.
    pub elapsed: Duration,
    /// The most bytes that the process held meanwhile, less those held before. 0 if its allocator does not count.
    pub peak_bytes: usize,
}

impl Shown {
    /// Shows an input to a target.
    pub fn by(target: &Target, memory: Option<MemoryCounter>, input: &[u8]) -> Self {
        if let Some(memory) = memory {
            (memory.reset)();
        }
        let since = processor_time();
        let outcome = catch_unwind(AssertUnwindSafe(|| (target.run)(input)));
        let elapsed = processor_time().saturating_sub(since);
        let peak_bytes = memory.map_or(0, |memory| (memory.peak)());
        Shown { outcome: outcome.map_err(|panic| words(panic.as_ref()).to_owned()), elapsed, peak_bytes }
    }

    /// The harm that the input did, if any.
    pub fn harm(&self, target: &Target, patience: u32, input: &[u8]) -> Option<String> {
        let time_max = target.time_max * patience;
        match &self.outcome {
            Err(words) => Some(format!("panicked: {words}")),
            Ok(_) if self.elapsed > time_max => Some(format!("took longer than {time_max:?}")),
            // One finding of each size is kept: the smallest may have another cause than the others.
            Ok(_) if self.peak_bytes > target.memory_max(input.len()) => {
                Some(format!("held more memory than it may ({} bytes of input)", input.len().next_power_of_two()))
            }
            Ok(_) => None,
        }
    }
}

/// The results of a run.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The number of inputs.
    pub executions: u64,
    /// The number of accepted inputs.
    pub accepted: u64,
    /// The input that took the most memory.
    pub largest: Extreme<usize>,
    /// The input that took the most processor time.
    pub longest: Extreme<Duration>,
    /// The first finding of each kind of harm.
    pub findings: Vec<Finding>,
}

/// The folder of the inputs that are kept for a target.
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

/// Shows a target its seeds and corpus, and then mutations of them, on a thread with a stack as large as the server's.
///
/// # Panics
///
/// If no thread can be started.
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
        // The first input pays for lazy initialization, which should not count.
        let _ = catch_unwind(|| (self.target.run)(inputs.first().map_or(b"", Vec::as_slice)));
        for input in &inputs {
            self.show(input);
        }
        let mut is_wanted = self.more();
        let mut random = SmallRng::seed_from_u64(self.options.seed);
        while is_wanted() {
            let input = mutate(&mut random, &inputs, self.target.shape);
            // Accepted inputs are worth further mutations; their number is bounded.
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

    /// Returns a function that returns true as long as another mutation is to be shown. Each of its calls counts one
    /// mutation.
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

    /// Shows an input. Returns true if it was accepted.
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

    /// Keeps an input as a finding. For each kind of harm, only the shortest input is kept.
    fn found(&mut self, harm: String, input: &[u8]) {
        match self.report.findings.iter_mut().find(|finding| finding.harm == harm) {
            // The shortest input is the easiest to understand.
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

/// The largest number of inputs kept for further mutations.
const KEPT_COUNT_MAX: usize = 4_096;

/// An input of this many bytes or more is not kept for further mutations.
const KEPT_BYTES_MAX: usize = 4_096;

/// The processor time of this process: the cost of an input on all threads, however busy the machine is.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// The message of a panic.
fn words(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("something that is no text")
}
