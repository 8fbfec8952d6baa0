//! Results on standard output.
//!
//! Tables and CSV need all results to know their columns, so they hold all of them. JSON is written as results arrive.

mod csv;
mod json;
pub mod plan;
mod table;
mod text;

use std::io::Write;
use std::time::Duration;

use clap::ValueEnum;
use mangrove::Value;

use crate::Failure;

pub use table::{TableColumn, render as render_table};

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ResultFormat {
    /// A table to read
    Table,
    /// One JSON document: an array of results
    Json,
    /// A JSON document a line
    Jsonl,
    /// Comma-separated values with a header
    Csv,
}

/// Results in the order in which they arrive.
pub type Results<'a> = dyn Iterator<Item = mangrove::Result<Value>> + 'a;

/// Prints results and returns their number.
pub fn print(results: &mut Results<'_>, format: ResultFormat, out: &mut dyn Write) -> Result<u64, Failure> {
    match format {
        ResultFormat::Table => table::print(&results.collect::<mangrove::Result<Vec<_>>>()?, out),
        ResultFormat::Csv => csv::print(&results.collect::<mangrove::Result<Vec<_>>>()?, out),
        ResultFormat::Json => json::print_document(results, out),
        ResultFormat::Jsonl => json::print_lines(results, out),
    }
}

/// The line with the number of results and the time.
pub fn summary(count: u64, elapsed: Duration) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} result{plural} in {:.2} ms", elapsed.as_secs_f64() * 1e3)
}
