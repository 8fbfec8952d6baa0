//! `mangrove stats`: figures of a database.
//!
//! One call of the service `mangrove.stats` returns them all: memory, transactions, garbage, log, plan cache and
//! executors. With `--watch` the call is repeated, and each figure that only grows is also shown as a rate since the
//! last call.

use std::io::{self, Write};
use std::time::Duration;

use mangrove::{Error, Parameters, Value};

use super::manage::{field, integer};
use crate::args::StatsArgs;
use crate::clock::Stopwatch;
use crate::connection::{Connection, Unnamed};
use crate::output::ResultFormat;
use crate::output::{TableColumn, render_table};
use crate::{Failure, output};

/// Prints the figures once, or repeatedly with `--watch`.
pub fn run(args: &StatsArgs) -> Result<(), Failure> {
    let pause = args.watch.map(pause).transpose()?;
    let target = &args.target;
    let mut connection = Connection::open(target.server(), &target.graph, &target.load, Unnamed::Refuse)?;
    let mut out = io::stdout().lock();
    let mut last: Option<(Value, Stopwatch)> = None;
    loop {
        let mut rows = connection.run("g.call('mangrove.stats')", &Parameters::new())?;
        let taken = Stopwatch::start();
        let row = rows.pop().ok_or_else(|| Error::bug("the service mangrove.stats gave no row"))?;
        if args.json {
            let format = if pause.is_some() { ResultFormat::Jsonl } else { ResultFormat::Json };
            output::print(&mut [Ok(row.clone())].into_iter(), format, &mut out)?;
        } else {
            let since = last.as_ref().map(|(row, when)| (row, when.elapsed().as_secs_f64()));
            print(&row, since, &mut out)?;
        }
        out.flush()?;
        let Some(pause) = pause else { return Ok(()) };
        last = Some((row, taken));
        std::thread::sleep(pause);
        if !args.json {
            writeln!(out)?;
        }
    }
}

fn pause(seconds: f64) -> Result<Duration, Error> {
    Duration::try_from_secs_f64(seconds).ok().filter(|pause| !pause.is_zero()).ok_or_else(|| {
        Error::invalid(format!("--watch {seconds}: write how many seconds are between two looks, as in 2"))
    })
}

/// A figure: its name, its path in the answer, and whether it only grows.
type StatsFigure = (&'static str, &'static [&'static str], bool);

const FIGURES: &[StatsFigure] = &[
    ("memory budget of the process, bytes", &["memory_budget", "limit"], false),
    ("memory budget: bytes in use", &["memory_budget", "used"], false),
    ("transactions running", &["transactions", "active"], false),
    ("commits", &["transactions", "commits"], true),
    ("ended without writes", &["transactions", "read_only"], true),
    ("retries after a conflict", &["transactions", "retries"], true),
    ("commits since the oldest snapshot", &["transactions", "oldest_snapshot_lag"], false),
    ("age of the oldest snapshot, ms", &["transactions", "oldest_snapshot_age_ms"], false),
    ("garbage: writes that wait to be collected", &["garbage", "queued_writes"], false),
    ("garbage: objects that readers may still hold", &["garbage", "in_limbo"], false),
    ("garbage: versions collected", &["garbage", "versions"], true),
    ("garbage: values collected", &["garbage", "values"], true),
    ("garbage: vertices collected", &["garbage", "vertices"], true),
    ("garbage: edges collected", &["garbage", "edges"], true),
    ("plans kept", &["plan_cache", "plans"], false),
    ("plans found in the cache", &["plan_cache", "hits"], true),
    ("plans made", &["plan_cache", "misses"], true),
    ("plans and texts that made room for others", &["plan_cache", "evictions"], true),
    ("plans: bytes", &["plan_cache", "bytes"], false),
    ("executor threads", &["executors", "threads"], false),
    ("executor threads that run a query", &["executors", "busy"], false),
    ("queries that wait for an executor", &["executors", "queued"], false),
    ("turns of queries on executors", &["executors", "turns"], true),
    ("log: bytes", &["durability", "log_bytes"], true),
    ("log: commits", &["durability", "log_commits"], true),
    ("log: batches, each with a sync", &["durability", "log_batches"], true),
    ("log: microseconds in syncs", &["durability", "sync_microseconds"], true),
    ("log: commits visible and not durable yet", &["durability", "lag"], false),
    ("log: bytes since the last checkpoint", &["durability", "log_bytes_since_checkpoint"], false),
    ("checkpoints", &["durability", "checkpoints"], true),
];

/// Prints figures as tables. `since` has the figures of some seconds ago, from which rates are computed.
pub fn print(row: &Value, since: Option<(&Value, f64)>, out: &mut dyn Write) -> Result<(), Failure> {
    writeln!(out, "{}", memory(row))?;
    let mut columns = vec![TableColumn::text("figure"), TableColumn::number("now")];
    columns.extend(since.map(|_| TableColumn::number("a second")));
    let mut rows = Vec::new();
    let mut add = |name: String, path: &[&str], grows: bool| {
        let Some(now) = at(row, path) else { return };
        let mut cells = vec![name, now.to_string()];
        if let Some((before, seconds)) = since {
            let before = at(before, path).filter(|_| grows && seconds > 0.0);
            cells.push(before.map_or(String::new(), |before| format!("{:.1}", (now - before) as f64 / seconds)));
        }
        rows.push(cells);
    };
    for (name, path, grows) in FIGURES {
        add((*name).to_owned(), path, *grows);
        if *name == "commits"
            && let Some(Value::Map(causes)) = field(row, "transactions").and_then(|row| field(row, "aborts"))
        {
            for (cause, _) in causes.iter() {
                let Value::String(cause) = cause else { continue };
                add(format!("aborts: {}", cause.replace('_', " ")), &["transactions", "aborts", cause], true);
            }
        }
    }
    writeln!(out, "{}", render_table(&columns, &rows))?;
    if let Some(words) = trouble(row) {
        writeln!(out, "{words}")?;
    }
    Ok(())
}

/// The memory by kind of record.
fn memory(row: &Value) -> String {
    let Some(Value::List(kinds)) = field(row, "memory") else { return String::new() };
    let number = |kind: &Value, name: &str| field(kind, name).and_then(integer).unwrap_or(0);
    let cells = |kind: &Value| {
        let name = match field(kind, "kind") {
            Some(Value::String(name)) => name.to_string(),
            _ => String::new(),
        };
        let (allocations, bytes) = (number(kind, "allocations"), number(kind, "bytes"));
        let each = if allocations > 0 { format!("{:.1}", bytes as f64 / allocations as f64) } else { String::new() };
        vec![name, allocations.to_string(), bytes.to_string(), each]
    };
    let columns = [
        TableColumn::text("memory"),
        TableColumn::number("allocations"),
        TableColumn::number("bytes"),
        TableColumn::number("bytes each"),
    ];
    render_table(&columns, &kinds.iter().map(cells).collect::<Vec<_>>())
}

/// The cause for which the graph refuses writes, or checkpoints fail; `None` if neither is so.
fn trouble(row: &Value) -> Option<String> {
    let durability = field(row, "durability")?;
    let text = |name| match field(durability, name) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    };
    let refusal = text("cause").map(|cause| format!("the graph takes no writes: {cause}"));
    refusal.or_else(|| text("checkpoint_trouble").map(|cause| format!("checkpoints fail: {cause}")))
}

/// The whole number at a path of names.
fn at(row: &Value, path: &[&str]) -> Option<i64> {
    path.iter().try_fold(row, |row, name| field(row, name)).and_then(integer)
}
