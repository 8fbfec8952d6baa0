//! Measures hostile traversals: how long a kill takes, and how much memory they take beyond their limit.
//!
//! `cargo run --release -p mangrove --example hostile [vertices] [name]`
//!
//! Each traversal runs in a process of its own. First it runs to its end, or into its memory limit; its memory is the
//! growth of the resident set. Then it is killed at several moments. The program fails if a kill takes longer than
//! [`KILL_MAX`] or the memory grows beyond the limit and [`BESIDE_BYTES`].

#![expect(clippy::disallowed_methods, reason = "an example measures wall-clock time")]

use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mangrove::{Database, Parameters, QueryLimits, QueryOptions, Result, Value};

/// The memory limit of each traversal.
const LIMIT_BYTES: u64 = 256 << 20;
/// Memory beyond the limit: the messages on their way, and the allocator.
const BESIDE_BYTES: u64 = 64 << 20;
/// The longest time from a kill to the end of the traversal.
const KILL_MAX: Duration = Duration::from_millis(100);
/// The number of moments at which each traversal is killed.
const KILLS: u32 = 20;

const TRAVERSALS: &[(&str, &str)] = &[
    ("sort", "g.V().order().by('n').count()"),
    ("sort by two keys", "g.V().order().by('k').by('n', desc).values('n').max()"),
    ("sort of vertices", "g.V().order().count()"),
    ("sort with a limit", "g.V().order().by('n', desc).limit(100000).count()"),
    ("shuffle", "g.V().order().by(shuffle).count()"),
    ("fold", "g.V().fold().count(local)"),
    ("sort of a list", "g.V().values('n').fold().order(local).count(local)"),
    ("group", "g.V().group().by('n').by(count()).count(local)"),
    ("group of lists", "g.V().group().by('k').by(fold()).count(local)"),
    ("group of results", "g.V().group().by('n').by(values('k').fold()).unfold().count()"),
    ("group count", "g.V().groupCount().by('n').count(local)"),
    ("group count in a side effect", "g.V().groupCount('x').by('n').count()"),
    ("aggregate", "g.V().aggregate('x').count()"),
    ("aggregate, unfolded again", "g.V().aggregate('x').limit(1000).select('x').unfold().count()"),
    ("tree", "g.V().tree().count(local)"),
    ("subgraph", "g.E().subgraph('x').count()"),
    ("dedup", "g.V().dedup().by('n').count()"),
    ("barrier", "g.V().barrier().count()"),
    ("tail", "g.V().tail(500000).count()"),
    ("sample", "g.V().sample(500000).count()"),
    ("loop", "g.V().repeat(both()).times(4).count()"),
    ("loop with paths", "g.V().repeat(both()).times(6).path().count()"),
    ("product", "g.V().limit(3000).values('n').fold().as('l').product(select('l')).count(local)"),
    ("all of V for each", "g.V().local(__.V().limit(1)).count()"),
    ("sorted for each", "g.V().limit(100).local(__.V().order().by('n')).count()"),
    ("long texts", "g.V().values('n').fold().asString().conjoin('x').count(local)"),
    ("injected", "g.V().local(__.inject(1, 2, 3, 4, 5, 6, 7, 8).fold()).count()"),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let count = arguments.first().and_then(|count| count.parse().ok()).unwrap_or(1_000_000);
    if let Some(name) = arguments.get(1) {
        let script = TRAVERSALS.iter().find(|(known, _)| known == name).map(|(_, script)| script);
        return match script.map(|script| measure(name, script, count)) {
            Some(Ok(true)) => ExitCode::SUCCESS,
            Some(Ok(false)) => ExitCode::FAILURE,
            Some(Err(error)) => {
                eprintln!("{name}: {error}");
                ExitCode::FAILURE
            }
            None => {
                eprintln!("there is no traversal of the name {name}");
                ExitCode::FAILURE
            }
        };
    }
    println!("{:<30} {:>9} {:>10} {:>12} {:>12}", "traversal", "time/ms", "grown/MiB", "kill p50/ms", "kill max/ms");
    let this = std::env::current_exe().expect("a program knows its path");
    let runs = |name: &str| Command::new(&this).args([&count.to_string(), name]).status().is_ok_and(|s| s.success());
    let failed: Vec<_> = TRAVERSALS.iter().map(|(name, _)| *name).filter(|name| !runs(name)).collect();
    if failed.is_empty() {
        return ExitCode::SUCCESS;
    }
    eprintln!("beyond a bound: {}", failed.join(", "));
    ExitCode::FAILURE
}

/// A cycle of vertices with a chord from each. Each has a number `n` of its own, and one of ten numbers `k`.
fn graph(count: usize) -> Result<Database> {
    let database = Database::in_memory();
    let catalog = database.catalog();
    let transaction = database.begin()?;
    let ids: Vec<_> = (0..count as i64).map(Into::into).collect();
    let vertices = transaction.insert_vertices(catalog.intern_label_text("node"), &ids)?;
    let numbered = |of: fn(usize) -> usize| -> Vec<_> {
        vertices.iter().zip(0..).map(|(vertex, number)| (*vertex, Value::I64(of(number) as i64))).collect()
    };
    transaction.set_vertex_property("n", &numbered(|number| number.wrapping_mul(0x9E37_79B9) % (1 << 31)))?;
    transaction.set_vertex_property("k", &numbered(|number| number % 10))?;
    for (label, step) in [("next", 1), ("chord", 7)] {
        let ends: Vec<_> = (0..count).map(|at| (vertices[at], vertices[(at + step) % count])).collect();
        transaction.insert_edges(catalog.intern_label_text(label), &ends)?;
    }
    transaction.commit()?;
    Ok(database)
}

/// Returns a field of the process's memory in bytes.
fn memory(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with(field));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok()).unwrap_or(0) << 10
}

/// Runs a traversal until it ends, fails or is cancelled.
fn run(database: &Database, script: &str, cancel: &Arc<AtomicBool>) -> Result<()> {
    let limits = QueryLimits { memory_bytes: LIMIT_BYTES, ..QueryLimits::default() };
    let options = QueryOptions { limits, cancel: cancel.clone(), ..QueryOptions::default() };
    database.run_with(&database.prepare(script)?, &Parameters::new(), &options)?.collect().map(drop)
}

/// Measures a traversal and prints the figures. Returns true if they are within the bounds.
fn measure(name: &str, script: &str, count: usize) -> Result<bool> {
    let database = graph(count)?;
    run(&database, "g.V().limit(1)", &Arc::default())?;
    let before = memory("VmRSS:");
    let _ = std::fs::write("/proc/self/clear_refs", "5");
    let begin = Instant::now();
    let outcome = run(&database, script, &Arc::default());
    let took = begin.elapsed();
    let grown = memory("VmHWM:").saturating_sub(before);
    let mut late: Vec<Duration> = Vec::new();
    for kill in 1..=KILLS {
        let cancel = Arc::new(AtomicBool::new(false));
        let after = took * kill / (KILLS + 1);
        let killed = std::thread::scope(|scope| {
            let killer = scope.spawn(|| {
                std::thread::sleep(after);
                cancel.store(true, Ordering::Relaxed);
                Instant::now()
            });
            let _ = run(&database, script, &cancel);
            let ended = Instant::now();
            killer.join().map_or(Duration::ZERO, |killed| ended.saturating_duration_since(killed))
        });
        late.push(killed);
    }
    late.sort_unstable();
    let millis = |time: Duration| time.as_secs_f64() * 1e3;
    let (middle, longest) = (late[late.len() / 2], late[late.len() - 1]);
    let ended = outcome.map_or_else(|error| format!("  {:?}", error.kind()), |()| String::new());
    println!(
        "{name:<30} {:>9.0} {:>10} {:>12.1} {:>12.1}{ended}",
        millis(took),
        grown >> 20,
        millis(middle),
        millis(longest)
    );
    Ok(longest <= KILL_MAX && grown <= LIMIT_BYTES + BESIDE_BYTES)
}
