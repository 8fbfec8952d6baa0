//! Checkpoints: their duration, the bytes that they write for a number of changes, and their effect on commits.

use std::time::Instant;

use mangrove::{CheckpointReport, EdgeId, Result, VertexId};

use super::clients::{Client, Slice, run_beside, run_for};
use super::graph::Graph;
use super::system::{VERTICES_A_CLIENT, Work, client_of};
use super::{NAME, row};
use crate::harness::{REPETITION_COUNT, Timing, wrong};
use crate::report::{Growing, Metric, Row};
use crate::run_directory::RunDirectory;
use crate::suites::Context;

/// In the case of a few changed pages, this percentage of pages changes.
const FEW_PERCENT: usize = 1;

/// The size of a changed value in memory, in bytes.
const VALUE_BYTES: f64 = 8.0;

pub(super) fn run(context: &Context<'_>, run_directory: &RunDirectory, report: &mut Growing<'_>) -> Result<()> {
    if !context.options.wants("checkpoint", "local") {
        return Ok(());
    }
    let graph = Graph::load(context.options.scale, &run_directory.fresh("checkpoint"))?;
    let (vertices, edges) = (graph.vertex_of_each_page(), graph.edge_of_each_page());
    let few = ((vertices.len() + edges.len()) * FEW_PERCENT / 100).max(1).min(vertices.len());
    // The first change creates columns; this keeps it out of the rounds.
    graph.touch(&vertices, &edges, 0)?;
    checkpoint(&graph)?;
    case("checkpoint, 1 % of the pages changed", &graph, &vertices[..few], &[], report)?;
    case("checkpoint, all pages changed", &graph, &vertices, &edges, report)?;
    beside(context, &graph, &vertices, &edges, report)?;
    drop(graph);
    run_directory.clear()
}

fn checkpoint(graph: &Graph) -> Result<CheckpointReport> {
    let report = graph.database.checkpoint()?;
    report.ok_or_else(|| wrong("a checkpoint after changes has found none".to_owned()))
}

/// In each round, changes one value in each of these elements' pages and takes a checkpoint.
fn case(name: &str, graph: &Graph, vertices: &[VertexId], edges: &[EdgeId], report: &mut Growing<'_>) -> Result<()> {
    let (mut times, mut pages, mut bytes) = (Vec::new(), Vec::new(), Vec::new());
    for repetition in 0..REPETITION_COUNT {
        graph.touch(vertices, edges, 1 + repetition as i64)?;
        let start = Instant::now();
        let taken = checkpoint(graph)?;
        times.push(start.elapsed().as_nanos() as f64);
        pages.push(taken.pages as f64);
        bytes.push(taken.bytes as f64);
    }
    let changed = (vertices.len() + edges.len()) as f64;
    let (pages, bytes) = (Timing::of(pages), Timing::of(bytes));
    if pages.min < changed {
        return Err(wrong(format!("{changed} pages have changed and a checkpoint has {} of them", pages.min)));
    }
    report.push(Row::time(NAME, name, "local", Timing::of(times)));
    // A tablet may be written whole again, so more pages may be written than have changed.
    let written = row(name, "pages written", Metric::Count, pages.median, "").between(pages.min, pages.max);
    report.push(written.beside(changed));
    let written = row(name, "bytes written", Metric::Size, bytes.median, "B").between(bytes.min, bytes.max);
    report.push(written.with("values_changed", changed, "count").with("bytes_changed", changed * VALUE_BYTES, "B"));
    Ok(())
}

/// Small commits from as many clients as the options have threads, with and without a checkpoint.
fn beside(
    context: &Context<'_>,
    graph: &Graph,
    vertices: &[VertexId],
    edges: &[EdgeId],
    report: &mut Growing<'_>,
) -> Result<()> {
    const CASE: &str = "commits beside checkpoints";
    let count = (context.options.threads as u64).min(graph.vertices.len() as u64 / VERTICES_A_CLIENT);
    let client = |number| Client::new(client_of(&graph.database, Work::Properties(1), number));
    let mut clients: Vec<_> = (0..count).map(client).collect();
    run_for(&mut clients, 0.0)?;
    let (mut alone, mut with) = (Slice::default(), Slice::default());
    // The two alternate in rounds until both have had their time.
    for number in 0.. {
        graph.touch(vertices, edges, number)?;
        let (_, slice) = run_beside(&mut clients, || checkpoint(graph))?;
        let length = slice.seconds;
        add(&mut with, slice);
        add(&mut alone, run_for(&mut clients, length)?);
        if with.seconds >= context.options.seconds {
            break;
        }
    }
    for (name, quantile) in [("p50", 0.5), ("p99", 0.99), ("longest", 1.0)] {
        let of = |slice: &Slice| slice.latency.quantile(quantile) as f64;
        let time =
            |variant: &str, slice: &Slice| row(CASE, &format!("{name}, {variant}"), Metric::Time, of(slice), "ns");
        report.push(time("without", &alone));
        report.push(time("beside", &with).beside(of(&alone)));
    }
    report.push(row(CASE, "rate, beside", Metric::Rate, with.rate(), "commits/s").beside(alone.rate()));
    Ok(())
}

fn add(sum: &mut Slice, slice: Slice) {
    sum.latency.merge(&slice.latency);
    sum.seconds += slice.seconds;
}
