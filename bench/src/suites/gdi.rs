//! The analytical workloads of the GDI paper (Besta and others, *The Graph Database Interface*, 2023): Figure 6, on graphs of growing scale
//! and on growing numbers of threads, and the grid of section 6.6 ([`grid`]).
//!
//! The graphs are as those of the paper's artifact: Kronecker, edge factor 16, with five labels of vertices, fifteen of edges, and
//! thirteen properties. Each workload is a transaction of its own. Algorithms run on the projection of the last commit (`live`): the time has the
//! look for what has changed, and the first projection has a row of its own. BI2 is a prepared traversal.
//!
//! Two things differ from the paper: components are found completely, where it ends after five rounds, and there are no neural networks.

mod graph;
mod grid;
mod workload;

use std::path::{Path, PathBuf};

use mangrove::Result;

use super::Context;
use super::analytics::team_of;
use crate::harness::{measure_runs, wrong};
use crate::options::{EDGE_FACTOR, Suite};
use crate::plot::{Axes, Line, Panel, svg};
use crate::report::{Growing, Row};
use workload::{Subject, Workload};

const NAME: &str = Suite::Gdi.name();

/// A time in nanoseconds, of a workload on a graph of a scale, on some threads.
struct Point {
    workload: Workload,
    scale: u32,
    threads: usize,
    nanos: f64,
}

pub(super) fn run(context: &Context<'_>, report: &mut Growing<'_>) -> Result<()> {
    let scales = context.options.analytics.scales(context.options.scale);
    let threads = thread_counts(&context.options.queries.executors);
    let mut points = Vec::new();
    for &scale in &scales {
        let wants = |workload: Workload| {
            threads.iter().any(|threads| {
                context.options.wants(&named(&workload.to_string(), scale, *threads), workload.variant())
            })
        };
        if Workload::ALL.into_iter().any(wants) {
            eprintln!("{NAME}: generating, loading and checking scale {scale}");
            measure(context, report, scale, &threads, &mut points)?;
        }
    }
    let note = "Components are found completely, where the paper ends after five rounds. `live` looks for changes in the last projection.";
    report.note(NAME, note.to_owned());
    let grid = grid::run(context, report, scales[0])?;
    let Some(path) = &context.options.choices.plot else { return Ok(()) };
    write(path, &by_scale(&points, &threads))?;
    write(&beside(path, "threads"), &by_threads(&points, &scales))?;
    write(&beside(path, "grid"), &grid)
}

/// The numbers of threads that the machine has cores for.
fn thread_counts(asked: &[usize]) -> Vec<usize> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let fitting: Vec<usize> = asked.iter().copied().filter(|threads| *threads <= cores).collect();
    if fitting.is_empty() { vec![1] } else { fitting }
}

fn named(what: &str, scale: u32, threads: usize) -> String {
    format!("{what}, scale {scale}, {threads} {}", if threads == 1 { "thread" } else { "threads" })
}

fn measure(
    context: &Context<'_>,
    report: &mut Growing<'_>,
    scale: u32,
    threads: &[usize],
    points: &mut Vec<Point>,
) -> Result<()> {
    let subject = Subject::new(graph::of_paper(scale, EDGE_FACTOR as u64)?)?;
    let edges = subject.loaded.facts.edge_count as f64;
    subject.check(&team_of(1)?.0)?;
    let first = Workload::ALL.map(|workload| subject.run(workload, 0, 1, &mangrove::analytics::Team::alone()));
    for &threads in threads {
        let (team, _executors) = team_of(threads)?;
        let case = named("new projection", scale, threads);
        if context.options.wants(&case, "undirected") {
            let timing = measure_runs(context.options.seconds, &mut |_| subject.project(&team))?;
            report.push(Row::time(NAME, &case, "undirected", timing).with("edges", edges, "edges"));
        }
        for (workload, first) in Workload::ALL.into_iter().zip(&first) {
            let case = named(&workload.to_string(), scale, threads);
            if !context.options.wants(&case, workload.variant()) {
                continue;
            }
            // The answer is that of one thread, which was compared with another algorithm's.
            if first.as_ref().ok() != Some(&subject.run(workload, 0, threads, &team)?) {
                return Err(wrong(format!("{NAME}: {case} has another answer than one thread")));
            }
            let run = &mut |run| subject.run(workload, run, threads, &team);
            let timing = measure_runs(context.options.seconds, run)?;
            points.push(Point { workload, scale, threads, nanos: timing.median });
            report.push(Row::time(NAME, &case, workload.variant(), timing).with("edges", edges, "edges"));
        }
    }
    Ok(())
}

/// Times by the number of vertices, a panel for each workload and a line for each number of threads.
fn by_scale(points: &[Point], threads: &[usize]) -> String {
    let line = |workload: Workload, threads: usize| Line {
        name: format!("{threads} {}", if threads == 1 { "thread" } else { "threads" }),
        points: points
            .iter()
            .filter(|point| (point.workload, point.threads) == (workload, threads))
            .map(|point| (f64::from(point.scale).exp2(), point.nanos / 1e6))
            .collect(),
    };
    let panel = |workload: Workload| Panel {
        title: format!("{workload}, ms"),
        lines: threads.iter().map(|threads| line(workload, *threads)).collect(),
    };
    svg("vertices", Axes::Logarithmic, &Workload::ALL.map(panel))
}

/// How many times faster than on one thread, a panel for each workload and a line for each scale.
fn by_threads(points: &[Point], scales: &[u32]) -> String {
    let line = |workload: Workload, scale: u32| {
        let of = || points.iter().filter(move |point| (point.workload, point.scale) == (workload, scale));
        let alone = of().find(|point| point.threads == 1).map(|point| point.nanos);
        let speedup = |point: &Point| alone.map(|alone| (point.threads as f64, alone / point.nanos));
        Line { name: format!("scale {scale}"), points: of().filter_map(speedup).collect() }
    };
    let panel = |workload: Workload| Panel {
        title: format!("{workload}, times faster than one thread"),
        lines: scales.iter().map(|scale| line(workload, *scale)).collect(),
    };
    svg("threads", Axes::Linear, &Workload::ALL.map(panel))
}

/// The path of a further plot: `figure.svg` becomes `figure-WHAT.svg`.
fn beside(path: &Path, what: &str) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!("{stem}-{what}.svg"))
}

fn write(path: &Path, svg: &str) -> Result<()> {
    std::fs::write(path, svg).map_err(|error| mangrove::Error::from(error).context(path.display()))
}
