//! Results on standard output.
//!
//! [`table`](self) and CSV know their columns only when they have seen every result, so they hold all of
//! them; JSON is written as results come.

mod csv;
mod json;
mod table;
mod text;

use std::io::Write;
use std::time::Duration;

use mangrove::Value;

use crate::Failure;
use crate::args::Format;

pub use table::{Column, render as render_table};

/// Results as they come, from here or from a server.
pub type Results<'a> = dyn Iterator<Item = mangrove::Result<Value>> + 'a;

/// Prints results; returns how many there were.
pub fn print(results: &mut Results<'_>, format: Format, out: &mut dyn Write) -> Result<u64, Failure> {
    match format {
        Format::Table => table::print(&results.collect::<mangrove::Result<Vec<_>>>()?, out),
        Format::Csv => csv::print(&results.collect::<mangrove::Result<Vec<_>>>()?, out),
        Format::Json => json::print_document(results, out),
        Format::Jsonl => json::print_lines(results, out),
    }
}

/// How many results in how long.
pub fn summary(count: u64, elapsed: Duration) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} result{plural} in {:.2} ms", elapsed.as_secs_f64() * 1e3)
}
