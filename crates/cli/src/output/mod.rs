//! Results on standard output.
//!
//! [`table`](self) and CSV know their columns only when they have seen every result, so they hold all of
//! them; JSON is written as results come.

mod csv;
mod json;
mod table;
mod text;

use std::io::Write;

use mangrove::ResultStream;

use crate::Failure;
use crate::args::Format;

pub use table::{Column, render as render_table};

/// Prints results; returns how many there were.
pub fn print(results: ResultStream, format: Format, out: &mut dyn Write) -> Result<u64, Failure> {
    match format {
        Format::Table => table::print(&results.collect()?, out),
        Format::Csv => csv::print(&results.collect()?, out),
        Format::Json => json::print_document(results, out),
        Format::Jsonl => json::print_lines(results, out),
    }
}
