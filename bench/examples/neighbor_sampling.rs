//! How fast neighbors are sampled and features are gathered.
//!
//! Usage: `neighbor_sampling [SCALE | FILE]`. A number: a Kronecker graph of that scale, 18 by default, each edge in both directions. A file: a line
//! for each edge, two numbers. Results do not depend on the number of threads; times do.
//!
//! A row of the table is an epoch over all vertices in batches of 1,024 seeds: the fastest of five. With two threads, batches are drawn side
//! by side.

#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods, reason = "the benchmarks are where time is taken")]

use std::process::ExitCode;
use std::time::Instant;

use mangrove::analytics::sampling::features::{self, FeatureOptions};
use mangrove::analytics::sampling::{Numbered, Sampler, SamplerOptions, Seeds, TypedGraphOptions};
use mangrove::{Database, Direction, Epoch, Error, Result, Transaction, Value, VertexId};
use mangrove_generate::MemorySink;
use mangrove_generate::kronecker::KroneckerSpec;

#[global_allocator]
static ALLOCATOR: mangrove_allocator::Allocator = mangrove_allocator::Allocator;

/// Seeds of a batch.
const BATCH: usize = 1_024;
const RUNS: usize = 5;

fn main() -> ExitCode {
    let argument = std::env::args().nth(1).unwrap_or_else(|| "18".into());
    match run(&argument) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", error.message());
            ExitCode::FAILURE
        }
    }
}

/// A graph, and whether edges must be read in both directions.
fn graph(argument: &str) -> Result<(Database, Direction)> {
    let database = Database::in_memory();
    if let Ok(scale) = argument.parse() {
        let mut sink = MemorySink::new(&database)?;
        KroneckerSpec { scale, ..KroneckerSpec::default() }.generate(&mut sink)?;
        sink.finish()?;
        return Ok((database, Direction::Both));
    }
    let text = std::fs::read_to_string(argument).map_err(|error| Error::invalid(format!("{argument}: {error}")))?;
    let not_numbers = || Error::invalid(format!("{argument}: a line is not two numbers"));
    let edges = text.lines().map(|line| {
        let mut numbers = line.split_whitespace().map(str::parse::<usize>);
        match (numbers.next(), numbers.next()) {
            (Some(Ok(source)), Some(Ok(target))) => Ok((source, target)),
            _ => Err(not_numbers()),
        }
    });
    let edges = edges.collect::<Result<Vec<_>>>()?;
    let count = edges.iter().map(|(source, target)| source.max(target) + 1).max().unwrap_or(0);
    let transaction = database.begin()?;
    let vertices = insert(&database, &transaction, count)?;
    let ends: Vec<_> = edges.iter().map(|(source, target)| (vertices[*source], vertices[*target])).collect();
    transaction.insert_edges(database.catalog().intern_label_text("edge"), &ends)?;
    transaction.commit()?;
    Ok((database, Direction::Both))
}

/// Inserts so many vertices without properties.
fn insert(database: &Database, transaction: &Transaction, count: usize) -> Result<Vec<VertexId>> {
    let label = database.catalog().intern_label_text("vertex");
    (0..count).map(|_| transaction.insert_vertex(label, None)).collect()
}

fn run(argument: &str) -> Result<()> {
    let (database, direction) = graph(argument)?;
    let mut types = TypedGraphOptions::default();
    let all = mangrove::analytics::sampling::VertexType { name: "all".into(), label: None, time: None };
    types.vertex_types.push(all);
    types.edge_type(0, "all", 0);
    types.edge_types[0].label = None;
    types.edge_types[0].direction = direction;
    for threads in [1, 2] {
        let begin = Instant::now();
        let epoch = database.begin_epoch(&types, threads)?;
        let seconds = begin.elapsed().as_secs_f64();
        let (vertices, edges) = (epoch.graph().vertex_count(0), epoch.graph().edge_count(0));
        println!(
            "typed graph, {threads} threads: {vertices} vertices, {edges} edges, {} bytes, {:.1} ms",
            epoch.graph().bytes(),
            seconds * 1e3
        );
    }
    let epoch = database.begin_epoch(&types, 1)?;
    for fanouts in [[15, 10], [10, 5]] {
        for (disjoint, numbered) in [(false, Numbered::Array), (false, Numbered::Hash), (true, Numbered::BySize)] {
            for threads in [1, 2] {
                let options = SamplerOptions { disjoint, numbered, ..SamplerOptions::of_fanouts(1, &fanouts) };
                sampling(&epoch, options, &fanouts, threads)?;
            }
        }
    }
    one_large_batch(&epoch)?;
    gathering()
}

/// Epochs over all vertices.
fn sampling(epoch: &Epoch, options: SamplerOptions, fanouts: &[usize], threads: usize) -> Result<()> {
    let what = format!("{fanouts:?}, {:?}, disjoint {}", options.numbered, options.disjoint);
    let sampler = Sampler::new(options)?;
    let numbers = shuffled(epoch.graph().vertex_count(0));
    let batches: Vec<Vec<Seeds<'_>>> =
        numbers.chunks(BATCH).map(|numbers| vec![Seeds { vertex_type: 0, numbers, times: None }]).collect();
    let (mut best, mut edges, mut vertices) = (f64::INFINITY, 0, 0);
    for _ in 0..RUNS {
        let begin = Instant::now();
        (edges, vertices) = (0, 0);
        for (nth, some) in batches.chunks(8).enumerate() {
            for sample in epoch.sample_many(&sampler, nth as u64 * 8, some, threads)? {
                edges += sample.edge_count();
                vertices += sample.vertices[0].len();
            }
        }
        best = best.min(begin.elapsed().as_secs_f64());
    }
    println!(
        "sampling {what}, {threads} threads: {:.1} M edges/s, {:.1} ns an edge; a batch has {} edges, {} vertices, {:.2} ms",
        edges as f64 / best / 1e6,
        best / edges as f64 * 1e9,
        edges / batches.len(),
        vertices / batches.len(),
        best / batches.len() as f64 * 1e3
    );
    Ok(())
}

/// All vertices in an order that has nothing to do with their numbers.
fn shuffled(count: usize) -> Vec<i64> {
    let mut numbers: Vec<i64> = (0..count as i64).collect();
    let mut state = 1_u64;
    for at in (1..count).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        numbers.swap(at, ((state >> 33) as usize) % (at + 1));
    }
    numbers
}

/// One batch whose hops are drawn side by side.
fn one_large_batch(epoch: &Epoch) -> Result<()> {
    let numbers = shuffled(epoch.graph().vertex_count(0));
    let numbers = &numbers[..numbers.len().min(16 * BATCH)];
    for seeds in [BATCH, 16 * BATCH] {
        let seeds = [Seeds { vertex_type: 0, numbers: &numbers[..numbers.len().min(seeds)], times: None }];
        for threads in [1, 2] {
            let sampler = Sampler::new(SamplerOptions::of_fanouts(1, &[15, 10]))?;
            let (mut best, mut edges) = (f64::INFINITY, 0);
            for batch in 0..4 * RUNS as u64 {
                let begin = Instant::now();
                edges = epoch.sample(&sampler, batch, &seeds, threads)?.edge_count();
                best = best.min(begin.elapsed().as_secs_f64());
            }
            println!(
                "one batch of {} seeds, [15, 10], {threads} threads: {:.1} M edges/s",
                seeds[0].numbers.len(),
                edges as f64 / best / 1e6
            );
        }
    }
    Ok(())
}

/// Features of vertices in a random order.
fn gathering() -> Result<()> {
    const COUNT: usize = 1 << 16;
    for width in [1, 16, 128, 1_024] {
        let database = Database::in_memory();
        let transaction = database.begin()?;
        let vertices = insert(&database, &transaction, COUNT)?;
        let before = database.memory().total_bytes();
        let value = |nth: usize| match width {
            1 => Value::F32(nth as f32),
            _ => Value::F32Array(vec![nth as f32; width].into()),
        };
        let values: Vec<_> = vertices.iter().enumerate().map(|(nth, vertex)| (*vertex, value(nth))).collect();
        transaction.set_vertex_property("x", &values)?;
        drop(values);
        transaction.commit()?;
        let memory = database.memory().total_bytes() - before;
        let read = database.begin_read()?;
        let mut order = vertices.clone();
        shuffled(COUNT).iter().enumerate().for_each(|(to, from)| order[to] = vertices[*from as usize]);
        let key = read.view().key_of("x").ok_or_else(|| Error::invalid("the key is missing"))?;
        for threads in [1, 2] {
            let team = database.team_of(&mangrove::Tenant::default(), threads)?;
            let mut best = f64::INFINITY;
            for _ in 0..RUNS {
                let begin = Instant::now();
                features::of_vertices(read.view(), &order, key, FeatureOptions::default(), &team)?;
                best = best.min(begin.elapsed().as_secs_f64());
            }
            println!(
                "features of width {width}, {threads} threads: {:.1} ns a vertex, {:.3} ns a float; the values take {} bytes a vertex",
                best / COUNT as f64 * 1e9,
                best / (COUNT * width) as f64 * 1e9,
                memory / COUNT as u64
            );
        }
    }
    Ok(())
}
