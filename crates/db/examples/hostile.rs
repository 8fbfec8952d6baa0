//! Measures hostile traversals: how long a kill takes, and how much memory they take beyond their limit.
//!
//! `cargo run --release -p mangrove --example hostile [vertices] [kills]`
//!
//! Each traversal runs in a process of its own. First it runs to its end, or into its memory limit; its memory is the
//! growth of the resident set. Then it is killed at moments spread over that time. The report has a row for each
//! traversal, the distribution of all kills together, and each kill that took longer than [`KILL_MAX`]. The program fails
//! if there is one, or if memory grew beyond the limit and [`BESIDE_BYTES`].

#![expect(clippy::disallowed_methods, reason = "an example measures wall-clock time")]

use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mangrove::{Database, ErrorKind, Parameters, QueryLimits, QueryOptions, Result, Value};

/// The memory limit of each traversal.
const LIMIT_BYTES: u64 = 256 << 20;
/// Memory beyond the limit: the messages on their way, and the allocator.
const BESIDE_BYTES: u64 = 64 << 20;
/// The longest time from a kill to the end of the traversal.
const KILL_MAX: Duration = Duration::from_millis(100);
/// The number of moments at which each traversal is killed. With all traversals, there are more than a thousand.
const KILLS: u32 = 40;

/// The first word of the line in which the process of a traversal tells its parent the times of its kills: pairs of the
/// moment of the kill and the time to the end of the traversal, in milliseconds.
const KILLS_LINE: &str = "kills:";

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
    let number = |at: usize| arguments.get(at).and_then(|text: &String| text.parse().ok());
    let (count, kills) = (number(0).unwrap_or(1_000_000), number(1).map_or(KILLS, |kills| kills as u32).max(1));
    if let Some(name) = arguments.get(2) {
        return child(name, count, kills);
    }
    println!("{count} vertices, {} MiB a traversal, {kills} kills of each", LIMIT_BYTES >> 20);
    println!("{:<30} {:>9} {:>10} {:>12} {:>12}", "traversal", "time/ms", "grown/MiB", "kill p50/ms", "kill max/ms");
    let this = std::env::current_exe().expect("a program knows its path");
    let (mut all, mut failed) = (Vec::new(), Vec::new());
    for (name, _) in TRAVERSALS {
        let output = Command::new(&this).args([&*count.to_string(), &*kills.to_string(), name]).output();
        let Ok(output) = output else {
            failed.push(*name);
            continue;
        };
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            match line.strip_prefix(KILLS_LINE) {
                Some(times) => all.extend(pairs(times).map(|(moment, took)| (*name, moment, took))),
                None => println!("{line}"),
            }
        }
        eprint!("{}", String::from_utf8_lossy(&output.stderr));
        if !output.status.success() {
            failed.push(*name);
        }
    }
    summarize(&mut all);
    if failed.is_empty() {
        return ExitCode::SUCCESS;
    }
    eprintln!("beyond a bound: {}", failed.join(", "));
    ExitCode::FAILURE
}

/// The process of one traversal.
fn child(name: &str, count: usize, kills: u32) -> ExitCode {
    let script = TRAVERSALS.iter().find(|(known, _)| *known == name).map(|(_, script)| script);
    match script.map(|script| measure(name, script, count, kills)) {
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
    }
}

/// The pairs of numbers of a line.
fn pairs(line: &str) -> impl Iterator<Item = (f64, f64)> {
    let numbers: Vec<f64> = line.split_whitespace().filter_map(|text| text.parse().ok()).collect();
    numbers.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect::<Vec<_>>().into_iter()
}

/// Prints the distribution of all kills, and those that took too long.
fn summarize(all: &mut [(&str, f64, f64)]) {
    all.sort_unstable_by(|a, b| a.2.total_cmp(&b.2));
    let Some(last) = all.len().checked_sub(1) else { return };
    let quantile = |share: f64| all[(last as f64 * share).round() as usize].2;
    let [middle, high, longest] = [0.5, 0.99, 1.0].map(quantile);
    println!("all {} kills: p50 {middle:.1} ms, p99 {high:.1} ms, longest {longest:.1} ms", all.len());
    let limit = KILL_MAX.as_secs_f64() * 1e3;
    let late: Vec<_> = all.iter().rev().filter(|(_, _, took)| *took > limit).collect();
    println!("kills that took longer than {limit:.0} ms: {}", late.len());
    for (name, moment, took) in late {
        println!("  {name}, killed after {moment:.0} ms: {took:.1} ms");
    }
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
fn measure(name: &str, script: &str, count: usize, kills: u32) -> Result<bool> {
    let database = graph(count)?;
    run(&database, "g.V().limit(1)", &Arc::default())?;
    let before = memory("VmRSS:");
    let _ = std::fs::write("/proc/self/clear_refs", "5");
    let begin = Instant::now();
    let outcome = run(&database, script, &Arc::default());
    let took = begin.elapsed();
    let grown = memory("VmHWM:").saturating_sub(before);
    let mut late: Vec<(Duration, Duration)> = Vec::new();
    for kill in 1..=kills {
        let cancel = Arc::new(AtomicBool::new(false));
        let after = took * kill / (kills + 1);
        let killed = std::thread::scope(|scope| {
            let killer = scope.spawn(|| {
                std::thread::sleep(after);
                cancel.store(true, Ordering::Relaxed);
                Instant::now()
            });
            let outcome = run(&database, script, &cancel);
            let ended = Instant::now();
            let killed = killer.join().map(|killed| ended.saturating_duration_since(killed)).ok();
            // A run that has ended by itself, or in its memory limit, says nothing about kills.
            killed.filter(|_| outcome.is_err_and(|error| error.kind() == ErrorKind::Cancelled))
        });
        late.extend(killed.map(|killed| (after, killed)));
    }
    let millis = |time: Duration| time.as_secs_f64() * 1e3;
    let times: Vec<String> =
        late.iter().map(|(moment, took)| format!("{:.3} {:.3}", millis(*moment), millis(*took))).collect();
    println!("{KILLS_LINE} {}", times.join(" "));
    late.sort_unstable_by_key(|(_, took)| *took);
    let at = |at: usize| late.get(at).map_or(Duration::ZERO, |(_, took)| *took);
    let (middle, longest) = (at(late.len() / 2), at(late.len().saturating_sub(1)));
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
