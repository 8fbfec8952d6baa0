//! `mangrove demo`: loads a sample graph, runs traversals of rising difficulty and two transactions, and prints tables
//! with timings. It succeeds only if every query runs and the transactions have the expected results.
//!
//! It is no program of its own, because linking a second one takes some minutes in release mode.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod sample;
mod transactions;
mod traversals;

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, Table};
use mangrove::{Database, LoadOptions, LoadReport, Mapping, Result};

use sample::Sample;

const MAPPING: &str = include_str!("../../mappings/us-flights.toml");

/// Runs the demo, and prints to `out`. The folder is the one that `demo/fetch.py` filled. Without it, or if it is empty, the
/// graph is generated.
///
/// # Errors
///
/// If a query fails, if a transaction has an unexpected result, or if `out` takes no more.
pub fn run(folder: Option<PathBuf>, out: &mut dyn Write) -> Result<()> {
    let sample = Sample::find(folder)?;
    writeln!(out, "{}\n", sample.description())?;
    let db = Database::in_memory();
    let report = load(&db, &sample)?;
    writeln!(out, "{}\n", load_table(&report))?;
    traversals::run(&db, out)?;
    transactions::run(&db, out)?;
    let bytes = db.memory().total_bytes();
    writeln!(
        out,
        "{bytes} bytes in memory, {} a vertex or edge. Done.",
        bytes / (report.vertices + report.edges).max(1)
    )?;
    Ok(())
}

fn load(db: &Database, sample: &Sample) -> Result<LoadReport> {
    let begin = now();
    let options = LoadOptions {
        mapping: Some(Mapping::parse(MAPPING)?),
        clock: Arc::new(move || begin.elapsed()),
        ..LoadOptions::default()
    };
    db.load(sample.files(), &options, &mut |_| {})
}

fn load_table(report: &LoadReport) -> String {
    let mut table = table(&["file", "vertices", "edges", "rejected rows"]);
    for file in &report.files {
        let name = file.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        table.add_row([name, file.vertices.to_string(), file.edges.to_string(), file.rejects.to_string()]);
    }
    let totals = [report.vertices, report.edges, report.rejects].map(|n| n.to_string());
    table.add_row([vec![format!("total, in {:.1} ms", report.seconds * 1e3)], totals.to_vec()].concat());
    numbers_right(&mut table, 1..4);
    table.to_string()
}

/// A table with a header.
fn table(columns: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_preset(UTF8_FULL_CONDENSED).set_header(columns);
    table
}

fn numbers_right(table: &mut Table, columns: impl IntoIterator<Item = usize>) {
    for at in columns {
        if let Some(column) = table.column_mut(at) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
}

/// The current time, for durations that are printed.
#[expect(clippy::disallowed_methods, reason = "a program at the edge: the figure is printed and nothing depends on it")]
fn now() -> Instant {
    Instant::now()
}

fn shown(elapsed: Duration) -> String {
    format!("{:.3} ms", elapsed.as_secs_f64() * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs the whole demo on the generated graph, which needs no network.
    #[test]
    fn the_demo_runs_on_the_generated_graph() {
        let mut printed = Vec::new();
        run(None, &mut printed).unwrap();
        let printed = String::from_utf8(printed).unwrap();
        assert!(printed.contains("GENERATED") && printed.ends_with("Done.\n"), "{printed}");
    }
}
