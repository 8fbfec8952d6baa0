//! A deterministic simulation of a run with helpers: one thread runs the home and the helpers in turns that a seed
//! chooses.
//!
//! The threads of a run act on one another through the board, between two messages. The simulation chooses which of
//! them works off the next messages. It lets one of them stall for long stretches, because uniform choice hardly ever
//! does. A thread that sleeps gets no turn until it is woken; if all sleep before the run is complete, the simulation
//! fails. Two calls of the board inside one meeting of the home with its helpers are not interleaved with others; tests
//! with real threads do that.
//!
//! With late reads, the simulation also chooses when the view completes one. If every thread sleeps, the view must
//! have a read to complete.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mangrove_flow::{AnyOperator, Batch, Helper, HelperStatus, NodeRuntime, Progress, Sharers};
use mangrove_graph::{Error, Result};
use rand::prelude::*;
use rand::rngs::SmallRng;

use crate::late_reads::LateReader;

/// A thread of the simulation.
struct Thread<B: Batch> {
    is_awake: Arc<AtomicBool>,
    /// It found nothing to do in its last turn. It sleeps at its next turn.
    is_idle: bool,
    /// `None` for the home.
    helper: Option<Helper<B>>,
}

impl<B: Batch> Thread<B> {
    fn new(helper: Option<Helper<B>>) -> Self {
        Thread { is_awake: Arc::new(AtomicBool::new(true)), is_idle: false, helper }
    }
}

/// The most helpers of a simulated run.
const HELPERS_MAX: usize = 4;

/// A run that takes more turns is stuck: its threads stay awake and do nothing.
const TURNS_MAX: u64 = 10_000_000;

/// Runs a query that has started to its end, with one to four helpers, in turns that the seed chooses. `replica` makes
/// the operators of a helper. Returns the results.
///
/// # Errors
///
/// The error of the run, or a bug if every thread sleeps before the query is complete.
pub fn run_with_helpers<B: Batch>(
    home: &mut NodeRuntime<B>,
    sharers: &Sharers,
    replica: impl FnMut() -> Result<Vec<AnyOperator<B>>>,
    seed: u64,
) -> Result<Vec<B>> {
    simulate(home, sharers, replica, None, seed)
}

/// As [`run_with_helpers`], for a run whose view is this reader.
///
/// # Errors
///
/// As [`run_with_helpers`].
pub fn run_with_late_reads<B: Batch>(
    home: &mut NodeRuntime<B>,
    sharers: &Sharers,
    replica: impl FnMut() -> Result<Vec<AnyOperator<B>>>,
    reader: &LateReader,
    seed: u64,
) -> Result<Vec<B>> {
    simulate(home, sharers, replica, Some(reader), seed)
}

fn simulate<B: Batch>(
    home: &mut NodeRuntime<B>,
    sharers: &Sharers,
    mut replica: impl FnMut() -> Result<Vec<AnyOperator<B>>>,
    reader: Option<&LateReader>,
    seed: u64,
) -> Result<Vec<B>> {
    let mut random = SmallRng::seed_from_u64(seed);
    // The view is slow in some runs and fast in others.
    let completes = [0.0, 0.05, 0.3, 0.8].choose(&mut random).copied().unwrap_or_default();
    let mut results = Vec::new();
    let mut threads = vec![Thread::new(None)];
    // The run is opened in its middle.
    let mut turns_to_open = random.random_range(0..10);
    let mut stalled: Option<(usize, u32)> = None;
    for turn in 0_u64.. {
        if turn > TURNS_MAX {
            return Err(Error::bug("a run makes no progress, and its threads do not sleep"));
        }
        if turns_to_open == 0 {
            let run = home.open(sharers.clone());
            for _ in 0..random.random_range(1..=HELPERS_MAX) {
                threads.push(Thread::new(Some(Helper::new(&run, replica()?))));
            }
        }
        turns_to_open -= 1;
        if let Some(reader) = reader
            && random.random_bool(completes)
        {
            reader.complete_one();
        }
        let awake: Vec<usize> = (0..threads.len()).filter(|at| threads[*at].is_awake.load(Ordering::Relaxed)).collect();
        if awake.is_empty() {
            if reader.is_some_and(LateReader::complete_one) {
                continue;
            }
            return Err(Error::bug("every thread of a run sleeps before the run is complete"));
        }
        if stalled.is_none() && random.random_ratio(1, 50) {
            stalled = Some((random.random_range(0..threads.len()), random.random_range(1..200)));
        }
        let mut able = awake.clone();
        if let Some((thread, turns)) = &mut stalled {
            able.retain(|at| at != thread || awake.len() == 1);
            *turns -= 1;
        }
        stalled = stalled.filter(|(_, turns)| *turns > 0);
        let Some(&at) = able.choose(&mut random) else { continue };
        if std::mem::take(&mut threads[at].is_idle) {
            // Others may have had turns since.
            let is_awake = threads[at].is_awake.clone();
            let wake = Box::new(move || is_awake.store(true, Ordering::Relaxed));
            let sleeps = match &threads[at].helper {
                Some(helper) => helper.sleep(wake),
                None => home.sleep(wake),
            };
            threads[at].is_awake.store(!sleeps, Ordering::Relaxed);
            continue;
        }
        let quota = random.random_range(1..4);
        threads[at].is_idle = match &mut threads[at].helper {
            Some(helper) => {
                let status = helper.part_of_turn(quota, random.random_bool(0.3));
                matches!(status, HelperStatus::Idle | HelperStatus::Full)
            }
            None => match home.run(quota)? {
                Progress::Results => {
                    results.extend(home.take_results());
                    false
                }
                Progress::Complete => break,
                Progress::Yielded => false,
                Progress::Waiting => true,
                Progress::Idle => return Err(Error::bug("an end-of-stream is missing")),
            },
        };
    }
    home.close();
    Ok(results)
}
