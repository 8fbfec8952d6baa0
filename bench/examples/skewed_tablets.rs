//! Load balancing over virtual nodes with a thread each (Banyan, figure 7d).
//!
//! `cargo run --release -p mangrove-bench --example skewed_tablets -- [--vertices N] [--repetitions N] [--plot FILE]`
//!
//! A graph has 64 tablets, and two threads work on one query at a time. A thread runs the operators that read its
//! tablets, and all messages between tablets of different bundles are frames of bytes. A bundle is a virtual node of 16
//! tablets, the unit that moves.
//!
//! | case | tablets of the two threads | stealing |
//! |---|---|---|
//! | 48, 16 | skewed | off |
//! | 32, 32 | rebalanced | off |
//! | 48, 16, steals | skewed | on: a thread without work runs a bundle of the other |
//! | 32, 32, steals | rebalanced | on |
//!
//! The program checks all answers, takes the cases in turn, prints medians, and draws how much faster the runs of each case are
//! (SVG) if a file is named. The last column compares a case with
//! the skewed one. Two threads can reach 1.5 at most: 48 of 64 tablets are 0.75 of the work, and 32 are 0.5.
//!
//! In the paper, tablets move while queries arrive. Here a query has its distribution from its begin to its end, because
//! the virtual nodes have no migration. Stealing is that of this test runner. The executors of the database share work
//! in another way (`mangrove_flow::Helper`).

#![expect(clippy::disallowed_methods, reason = "an example measures wall-clock time")]

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use mangrove::{Database, DatabaseOptions, NodeThreads, Parameters, QueryOptions, Result, Transaction, Value};
use mangrove_bench::plot::{BoxPlot, boxes_svg};

const TABLETS: u16 = 64;

/// Edges of each vertex.
const DEGREE: usize = 8;

/// The question: two hops from every vertex.
const TEXT: &str = "g.V().out('next').out('next').has('k', 3).count()";

/// Measures load balancing over virtual nodes with a thread each
#[derive(Parser)]
struct Arguments {
    /// The vertices of the graph; each has eight edges
    #[arg(long, value_name = "COUNT", default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..))]
    vertices: u32,
    /// The runs of each case
    #[arg(long, value_name = "COUNT", default_value_t = 11, value_parser = clap::value_parser!(u32).range(1..))]
    repetitions: u32,
    /// Draws how much faster the runs of each case are than skewed ones, as SVG
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", error.message());
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<()> {
    let (vertices, repetitions) = (arguments.vertices as usize, arguments.repetitions as usize);
    let database = graph(vertices)?;
    let transaction = database.begin_read()?;
    let prepared = database.prepare(TEXT)?;
    let (parameters, options) = (Parameters::new(), QueryOptions::default());
    let expected = transaction.run_with(&prepared, &parameters, &options)?.collect_bulked()?;
    let threads =
        |owners: [&[usize]; 2], steals| NodeThreads { owners: owners.map(<[usize]>::to_vec).to_vec(), steals };
    let cases = [
        ("48, 16", threads([&[0, 1, 2], &[3]], false)),
        ("32, 32", threads([&[0, 1], &[2, 3]], false)),
        ("48, 16, steals", threads([&[0, 1, 2], &[3]], true)),
        ("32, 32, steals", threads([&[0, 1], &[2, 3]], true)),
    ];
    println!("{vertices} vertices, {DEGREE} edges each, {TABLETS} tablets; {TEXT}");
    let shares = (0..4).map(|index| share(&transaction, index)).collect::<Result<Vec<_>>>()?;
    println!("vertices of the bundles of 16 tablets: {shares:?}");
    let mut times = vec![Vec::with_capacity(repetitions); cases.len()];
    let mut stolen = vec![0; cases.len()];
    for round in 0..repetitions {
        for turn in 0..cases.len() {
            let at = (round + turn) % cases.len();
            let begin = Instant::now();
            let (found, turns) = transaction.run_on_threads(&prepared, &parameters, &options, &cases[at].1)?;
            times[at].push(begin.elapsed().as_secs_f64() * 1e3);
            stolen[at] += turns;
            if found != expected {
                return Err(mangrove::Error::bug(format!("{}: {found:?} instead of {expected:?}", cases[at].0)));
            }
        }
    }
    let median = |times: &mut Vec<f64>| {
        times.sort_unstable_by(f64::total_cmp);
        times[times.len() / 2]
    };
    let medians: Vec<f64> = times.iter_mut().map(median).collect();
    println!(
        "{:<22} {:>10} {:>10} {:>10} {:>14} {:>8}",
        "case", "median/ms", "min/ms", "max/ms", "stolen turns", "faster"
    );
    for (at, (name, _)) in cases.iter().enumerate() {
        let (least, most) = (times[at][0], times[at][repetitions - 1]);
        println!(
            "{name:<22} {:>10.2} {least:>10.2} {most:>10.2} {:>14.1} {:>7.2}x",
            medians[at],
            stolen[at] as f64 / repetitions as f64,
            medians[0] / medians[at]
        );
    }
    if let Some(path) = &arguments.plot {
        let faster = |times: &Vec<f64>| times.iter().map(|time| medians[0] / time).collect();
        let boxes =
            cases.iter().zip(&times).map(|((name, _), times)| BoxPlot { name: (*name).into(), values: faster(times) });
        std::fs::write(path, boxes_svg("median time if skewed : time of a run", &boxes.collect::<Vec<_>>()))
            .map_err(|error| mangrove::Error::from(error).context(path.display()))?;
    }
    Ok(())
}

/// The number of vertices of a bundle.
fn share(transaction: &Transaction, index: u16) -> Result<u64> {
    transaction.view().count_vertices(&mangrove::LabelFilter::Any, mangrove::Share { index, of: 4 })
}

/// Vertices with eight edges each, whose ends are spread over the graph. Each has a number `k` below ten.
fn graph(count: usize) -> Result<Database> {
    let database = Database::with_options(&DatabaseOptions { tablet_count: TABLETS, ..DatabaseOptions::default() });
    let catalog = database.catalog();
    let transaction = database.begin()?;
    let ids: Vec<_> = (0..count as i64).map(Into::into).collect();
    let vertices = transaction.insert_vertices(catalog.intern_label_text("node"), &ids)?;
    let numbers: Vec<_> = vertices.iter().zip(0..).map(|(vertex, n)| (*vertex, Value::I64(n % 10))).collect();
    transaction.set_vertex_property("k", &numbers)?;
    for step in 1..=DEGREE {
        let end = |at: usize| vertices[at.wrapping_mul(0x9E37_79B9).wrapping_add(step * 7_919) % count];
        let ends: Vec<_> = (0..count).map(|at| (vertices[at], end(at))).collect();
        transaction.insert_edges(catalog.intern_label_text("next"), &ends)?;
    }
    transaction.commit()?;
    Ok(database)
}
