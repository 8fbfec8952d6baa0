//! Load balancing over virtual nodes with a thread each (Banyan, figure 7d).
//!
//! `cargo run --release -p mangrove --example skewed_tablets [vertices] [repetitions]`
//!
//! A graph has 64 tablets, and two threads work on one query at a time. A thread runs the operators that read its
//! tablets, and all messages between tablets of different bundles are frames of bytes. A bundle is a virtual node of 16
//! tablets, the unit that moves.
//!
//! | case | tablets of the two threads | stealing |
//! |---|---|---|
//! | skewed | 48, 16 | off |
//! | rebalanced | 32, 32 | off |
//! | skewed, stealing | 48, 16 | on: a thread without work runs a bundle of the other |
//!
//! The program checks all answers, takes the cases in turn, and prints medians. The last column compares a case with
//! the skewed one. Two threads can reach 1.5 at most: 48 of 64 tablets are 0.75 of the work, and 32 are 0.5.
//!
//! In the paper, tablets move while queries arrive. Here a query has its distribution from its begin to its end, because
//! the virtual nodes have no migration. Stealing is that of this test runner. The executors of the database share work
//! in another way (`mangrove_flow::Helper`).

#![expect(clippy::disallowed_methods, reason = "an example measures wall-clock time")]

use std::process::ExitCode;
use std::time::Instant;

use mangrove::{Database, DatabaseOptions, NodeThreads, Parameters, QueryOptions, Result, Transaction, Value};

const TABLETS: u16 = 64;

/// Edges of each vertex.
const DEGREE: usize = 8;

/// The question: two hops from every vertex.
const TEXT: &str = "g.V().out('next').out('next').has('k', 3).count()";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<usize>());
    let (vertices, repetitions) = match (arguments.next(), arguments.next()) {
        (None, None) => (100_000, 11),
        (Some(Ok(vertices)), None) => (vertices, 11),
        (Some(Ok(vertices)), Some(Ok(repetitions))) => (vertices, repetitions),
        _ => {
            eprintln!("usage: skewed_tablets [vertices] [repetitions], both whole numbers");
            return ExitCode::FAILURE;
        }
    };
    match run(vertices.max(1), repetitions.max(1)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", error.message());
            ExitCode::FAILURE
        }
    }
}

fn run(vertices: usize, repetitions: usize) -> Result<()> {
    let database = graph(vertices)?;
    let transaction = database.begin_read()?;
    let prepared = database.prepare(TEXT)?;
    let (parameters, options) = (Parameters::new(), QueryOptions::default());
    let expected = transaction.run_with(&prepared, &parameters, &options)?.collect_bulked()?;
    let threads =
        |owners: [&[usize]; 2], steals| NodeThreads { owners: owners.map(<[usize]>::to_vec).to_vec(), steals };
    let cases = [
        ("skewed", threads([&[0, 1, 2], &[3]], false)),
        ("rebalanced", threads([&[0, 1], &[2, 3]], false)),
        ("skewed, stealing", threads([&[0, 1, 2], &[3]], true)),
        ("rebalanced, stealing", threads([&[0, 1], &[2, 3]], true)),
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
