//! How soon the memory of a graph algorithm is back after its query was killed, or its time was over.
//!
//! `cargo run --release -p mangrove --example interrupted_algorithms -- [SCALE] [ALGORITHM …]`
//!
//! The graph is a Kronecker graph of `2^SCALE` vertices (17) and 16 edges for each, in memory. Each algorithm runs with options that
//! make it take long, once for at most five seconds, and then it is ended at several points of that time: in turn by the flag that
//! `mangrove.kill` sets, and by a limit of time. Each run begins without a kept projection. What is measured is the time from the flag, or from
//! the limit, until the call has returned and the memory budget of the process has everything back.

#![expect(clippy::disallowed_methods, reason = "an example measures wall-clock time")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mangrove::registry::{ALGORITHMS, AlgorithmInfo};
use mangrove::{
    Database, DatabaseOptions, ErrorKind, MemoryBudget, Parameters, Purpose, QueryGauges, QueryLimits, QueryOptions,
    Result, UserId,
};
use mangrove_store::{BulkColumn, ColumnData};

/// Edges of each vertex.
const DEGREE: usize = 16;
/// The time of the first run, at most.
const TIME_MAX: Duration = Duration::from_secs(5);
/// The parts of that time after which an algorithm is ended.
const POINTS: [f64; 8] = [0.03, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95];
/// What the design allows.
const TARGET_MS: f64 = 100.0;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let scale = arguments.next().and_then(|scale| scale.parse().ok()).unwrap_or(17);
    let only: Vec<String> = arguments.collect();
    let budget = MemoryBudget::of(64 << 30);
    let database = graph(scale, &budget)?;
    println!("{:20} {:>9} {:>12} {:>12}  at", "algorithm", "run (ms)", "killed (ms)", "limit (ms)");
    let mut worst = 0.0_f64;
    for algorithm in ALGORITHMS.iter().filter(|one| only.is_empty() || only.iter().any(|name| name == one.name)) {
        let run = Run { database: &database, budget: &budget, script: &script(algorithm) };
        let whole = run.ended(TIME_MAX, true)?.whole;
        let mut found = [Ended::default(), Ended::default()];
        for point in POINTS {
            for (by_flag, most) in [true, false].into_iter().zip(&mut found) {
                let ended = run.ended(whole.mul_f64(point), by_flag)?;
                if ended.after_ms > most.after_ms {
                    *most = ended;
                }
            }
        }
        let [killed, limit] = &found;
        worst = worst.max(killed.after_ms).max(limit.after_ms);
        let at = if killed.after_ms > limit.after_ms { &killed.phase } else { &limit.phase };
        println!(
            "{:20} {:>9.0} {:>12.1} {:>12.1}  {at}",
            algorithm.name,
            whole.as_secs_f64() * 1e3,
            killed.after_ms,
            limit.after_ms
        );
    }
    println!("the longest: {worst:.1} ms; at most {TARGET_MS} are wanted");
    Ok(())
}

/// A Kronecker graph with weights, with the quadrants of Graph 500.
fn graph(scale: u32, budget: &MemoryBudget) -> Result<Database> {
    let options = DatabaseOptions { memory_budget: budget.clone(), ..DatabaseOptions::default() };
    let database = Database::with_options(&options);
    let (place, road) = (database.catalog().intern_label_text("place"), database.catalog().intern_label_text("road"));
    let weight = database.catalog().intern_key("weight");
    let mut state = 1_u64;
    let mut random = move |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let count = 1_usize << scale;
    let ids: Vec<UserId> = (0..count as i64).map(UserId::int).collect();
    let mut loader = database.bulk_load()?;
    let vertices = loader.vertices(place, count, Some(&ids), &[])?;
    for _ in 0..DEGREE {
        let mut ends = Vec::with_capacity(count);
        for _ in 0..count {
            let (mut from, mut to) = (0, 0);
            for _ in 0..scale {
                let (down, right) = match random(100) {
                    0..57 => (0, 0),
                    57..76 => (0, 1),
                    76..95 => (1, 0),
                    _ => (1, 1),
                };
                (from, to) = (from * 2 + down, to * 2 + right);
            }
            // The places of vertices of many edges are mixed.
            let mixed = |at: usize| at.wrapping_mul(0x9E37_79B1) & (count - 1);
            ends.push((vertices[mixed(from)], vertices[mixed(to)]));
        }
        let weights = (0..count).map(|_| 1.0 + random(255) as f64).collect();
        loader.edges(road, &ends, None, &[BulkColumn { key: weight, values: ColumnData::F64(weights) }])?;
    }
    loader.finish()?;
    Ok(database)
}

/// A call that takes long.
fn script(algorithm: &AlgorithmInfo) -> String {
    let mut options = Vec::new();
    for option in algorithm.all_options() {
        let value = match option.name {
            "source" => "1",
            "target" => "77",
            "weight" => "'weight'",
            "rounds" => "100000",
            "tolerance" => "0",
            "limit" => "1000000000",
            "dimensions" => "256",
            "weights" => "[1, 1, 1, 1, 1, 1, 1, 1]",
            "k" if algorithm.name == "k_shortest_paths" => "20000",
            "k" => "6",
            "steps" => "40",
            _ => continue,
        };
        options.push(format!("{}: {value}", option.name));
    }
    // An empty map has a colon.
    let options = if options.is_empty() { ":".to_owned() } else { options.join(", ") };
    format!("g.call('mangrove.algo.{}', [{options}]).count()", algorithm.name)
}

/// The end of a run.
#[derive(Default)]
struct Ended {
    /// How long the call took.
    whole: Duration,
    /// The time from the flag or the limit until the memory was back; 0 if the call had ended before.
    after_ms: f64,
    /// What the algorithm did then.
    phase: String,
}

struct Run<'a> {
    database: &'a Database,
    budget: &'a MemoryBudget,
    script: &'a str,
}

impl Run<'_> {
    /// What queries and projections hold. The plan of the query stays, for the next run.
    fn held_bytes(&self) -> u64 {
        self.budget.used_for(Purpose::Queries) + self.budget.used_for(Purpose::Projections)
    }

    /// Runs the script, and ends it after some time.
    fn ended(&self, after: Duration, by_flag: bool) -> Result<Ended> {
        self.database.projections().clear();
        let before = self.held_bytes();
        let (cancel, gauges) = (Arc::new(AtomicBool::new(false)), Arc::new(QueryGauges::default()));
        let time_nanos = (!by_flag).then(|| u64::try_from(after.as_nanos()).unwrap_or(u64::MAX));
        let limits = QueryLimits { time_nanos, memory_bytes: u64::MAX };
        let options =
            QueryOptions { cancel: cancel.clone(), gauges: Some(gauges.clone()), limits, ..QueryOptions::default() };
        let prepared = self.database.prepare(self.script)?;
        let is_over = AtomicBool::new(false);
        let begun = Instant::now();
        std::thread::scope(|scope| {
            let watch = scope.spawn(|| {
                while begun.elapsed() < after && !is_over.load(Ordering::Relaxed) {
                    std::thread::sleep(Duration::from_micros(200).min(after.saturating_sub(begun.elapsed())));
                }
                let phase = gauges.read().progress.map_or_else(String::new, |shown| {
                    format!("{}: {} of {} {}", shown.phase, shown.done, shown.all, shown.unit)
                });
                let ended = begun.elapsed();
                if by_flag {
                    cancel.store(true, Ordering::Relaxed);
                }
                (ended, phase)
            });
            let outcome = self.database.run_shared(&prepared, &Parameters::new(), &options, &mut |_| Ok(()));
            let whole = begun.elapsed();
            is_over.store(true, Ordering::Relaxed);
            let (told, phase) = watch.join().expect("the thread only waits");
            match outcome {
                Ok(()) => {}
                Err(error) if matches!(error.kind(), ErrorKind::Cancelled | ErrorKind::Timeout) => {}
                Err(error) => return Err(error),
            }
            self.database.projections().clear();
            while self.held_bytes() > before {
                std::thread::sleep(Duration::from_micros(50));
            }
            let from = if by_flag { told } else { after };
            let after_ms = if whole > from { (begun.elapsed() - from).as_secs_f64() * 1e3 } else { 0.0 };
            Ok(Ended { whole, after_ms, phase })
        })
    }
}
