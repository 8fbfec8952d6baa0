//! Recovery: the time to open a directory, in total and by phase, by the size of the checkpointed graph and by the
//! length of the log.
//!
//! Every opening finds its files in the page cache, so this measures the database's work, not the disk.

use std::path::Path;
use std::time::Instant;

use mangrove::{Database, RecoveryPhase, Result};
use parking_lot::Mutex;

use super::clients::{Client, run_for};
use super::graph::Graph;
use super::row;
use super::system::{VERTICES_A_CLIENT, Work, client_of};
use crate::harness::{Timing, wrong};
use crate::options::Scale;
use crate::report::{Growing, Metric, Row};
use crate::run_directory::{RunDirectory, bytes_in, without_checkpoints};
use crate::suites::Context;

/// The smallest graph, as the logarithm of its number of vertices, and the step to the next.
const LOG_MIN: u32 = 12;
const LOG_STEP: usize = 2;

/// The target of the design, in edges recovered a second.
const EDGES_A_SECOND_MIN: f64 = 2e6;

/// Openings of each directory.
const OPENING_COUNT: usize = 3;

/// Commits in the log, and edges in each commit. The number of commits is at most the number of vertices.
const TAILS: [(u64, u64); 4] = [(1_000, 1), (10_000, 1), (100_000, 1), (10_000, 256)];

/// Concurrent clients that write the log, so that commits share syncs.
const WRITERS: u64 = 16;

const PHASES: [(RecoveryPhase, &str); 6] = [
    (RecoveryPhase::Checkpoint, "reading the checkpoint"),
    (RecoveryPhase::Log, "the log"),
    (RecoveryPhase::Checking, "checking"),
    (RecoveryPhase::Packing, "packing adjacency"),
    (RecoveryPhase::Ids, "the index of ids"),
    (RecoveryPhase::Indexes, "property indexes"),
];

pub(super) fn run(context: &Context<'_>, run_directory: &RunDirectory, report: &mut Growing<'_>) -> Result<()> {
    let largest = context.options.scale.log_vertices();
    let mut scales: Vec<_> = (LOG_MIN..largest).step_by(LOG_STEP).collect();
    scales.push(largest);
    for log in scales {
        by_size(context, run_directory, log, report)?;
    }
    for tail in TAILS {
        by_log(context, run_directory, tail, report)?;
    }
    Ok(())
}

fn by_size(context: &Context<'_>, run_directory: &RunDirectory, log: u32, report: &mut Growing<'_>) -> Result<()> {
    let case = format!("recovery, 2^{log} vertices");
    if !context.options.wants(&case, "local") {
        return Ok(());
    }
    let directory = run_directory.fresh("recovery");
    let graph = Graph::load(Scale::Log(log), &directory)?;
    let expected = Expected { edges: graph.edges.len() as u64, commits: 0 };
    drop(graph);
    let openings = Openings::of(&directory, expected)?;
    openings.report(&case, expected.edges as f64, report);
    let bytes = bytes_in(&directory)? as f64;
    report.push(row(&case, "size on the disk", Metric::Size, bytes, "B"));
    run_directory.clear()
}

fn by_log(
    context: &Context<'_>,
    run_directory: &RunDirectory,
    (commits, edges): (u64, u64),
    report: &mut Growing<'_>,
) -> Result<()> {
    // A run over a tiny graph writes a short log.
    let commits = commits.min(1 << context.options.scale.log_vertices());
    let work = Work::Edges(edges);
    let case = format!("recovery, log of {commits} commits, {}", work.name());
    if !context.options.wants(&case, "local") {
        return Ok(());
    }
    let directory = run_directory.fresh("recovery");
    let graph = Graph::load(Scale::Log(LOG_MIN), &directory)?;
    let before = graph.edges.len() as u64;
    let writers = WRITERS.min(graph.vertices.len() as u64 / VERTICES_A_CLIENT);
    let mut clients: Vec<_> =
        (0..writers).map(|number| Client::new(client_of(&graph.database, work, number))).collect();
    let done = |clients: &[Client]| clients.iter().map(|client| client.done).sum::<u64>();
    // Each round is one commit of each client.
    while done(&clients) < commits {
        run_for(&mut clients, 0.0)?;
    }
    let commits = done(&clients);
    drop((clients, graph));
    let expected = Expected { edges: before + commits * edges, commits };
    let openings = Openings::of(&directory, expected)?;
    openings.report(&case, expected.edges as f64, report);
    run_directory.clear()
}

/// The contents that an opening must find.
#[derive(Clone, Copy)]
struct Expected {
    edges: u64,
    commits: u64,
}

/// The times of several openings of a directory, in nanoseconds.
struct Openings {
    whole: Timing,
    /// By [`PHASES`].
    phases: Vec<Timing>,
    checkpoint_bytes: f64,
    log_bytes: f64,
    commits: f64,
}

impl Openings {
    fn of(directory: &Path, expected: Expected) -> Result<Self> {
        let (mut whole, mut phases) = (Vec::new(), vec![Vec::new(); PHASES.len()]);
        let mut found = None;
        for _ in 0..OPENING_COUNT {
            let (start, begun) = (Instant::now(), Mutex::new([None; PHASES.len()]));
            let progress = |progress: mangrove::RecoveryProgress| {
                if let Some(phase_index) = PHASES.iter().position(|(phase, _)| *phase == progress.phase) {
                    begun.lock()[phase_index].get_or_insert_with(Instant::now);
                }
            };
            let database =
                Database::open_with_progress(&directory.to_string_lossy(), &without_checkpoints(), &progress)?;
            let end = Instant::now();
            whole.push((end - start).as_nanos() as f64);
            spent(start, end, &begun.into_inner()).into_iter().zip(&mut phases).for_each(|(time, of)| of.push(time));
            let summary = database.recovery().ok_or_else(|| wrong("nothing was recovered".to_owned()))?;
            let (edges, commits) = (summary.graph.edges, summary.commits_replayed);
            if (edges, commits) != (expected.edges, expected.commits) {
                let (left, right) = (expected.edges, expected.commits);
                let message = format!("{edges} edges and {commits} commits are recovered, not {left} and {right}");
                return Err(wrong(message));
            }
            found = Some((summary.checkpoint_bytes as f64, summary.log.bytes as f64));
        }
        let (checkpoint_bytes, log_bytes) = found.expect("a directory is opened several times");
        let phases = phases.into_iter().map(Timing::of).collect();
        Ok(Openings { whole: Timing::of(whole), phases, checkpoint_bytes, log_bytes, commits: expected.commits as f64 })
    }

    fn report(self, case: &str, edges: f64, report: &mut Growing<'_>) {
        let Openings { whole, phases, checkpoint_bytes, log_bytes, commits } = self;
        report.push(Row::time(super::NAME, case, "opening", whole));
        let rate = Row::rate(super::NAME, case, "edges", whole, edges, "edges/s").aiming_at(EDGES_A_SECOND_MIN);
        let rate = rate.with("edges", edges, "count").with("checkpoint_bytes", checkpoint_bytes, "B");
        report.push(rate.with("log_bytes", log_bytes, "B").with("commits", commits, "count"));
        for ((phase, name), timing) in PHASES.into_iter().zip(phases) {
            if phase == RecoveryPhase::Log && commits > 0.0 && timing.min > 0.0 {
                report.push(Row::rate(super::NAME, case, "commits replayed", timing, commits, "commits/s"));
            }
            if timing.max > 0.0 {
                report.push(Row::time(super::NAME, case, name, timing));
            }
        }
    }
}

/// The duration of each phase: from its first message to the first message of the next phase that has one, or to the
/// end. The time before the first message belongs to the first phase.
fn spent(start: Instant, end: Instant, begun: &[Option<Instant>]) -> Vec<f64> {
    let mut times = vec![0.0; begun.len()];
    let said: Vec<_> =
        begun.iter().enumerate().filter_map(|(phase_index, begun)| Some((phase_index, (*begun)?))).collect();
    for (at, &(phase_index, begun)) in said.iter().enumerate() {
        let from = if at == 0 { start } else { begun };
        let to = said.get(at + 1).map_or(end, |&(_, next)| next);
        times[phase_index] = to.saturating_duration_since(from).as_nanos() as f64;
    }
    times
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn phases_fill_the_whole_time_and_silent_ones_none_of_it() {
        let start = Instant::now();
        let after = |millis| start + Duration::from_millis(millis);
        let times = spent(start, after(10), &[Some(after(1)), None, Some(after(4)), Some(after(9))]);
        assert_eq!(times, [4e6, 0.0, 5e6, 1e6]);
    }
}
