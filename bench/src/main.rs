//! The program `mangrove-bench`: runs suites, prints a table and, on request, writes the figures as JSON.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::Parser;
use mangrove_bench::{Arguments, Suite};

#[global_allocator]
static ALLOCATOR: mangrove_allocator::Allocator = mangrove_allocator::Allocator;

/// Measure the database beside the limits of this machine
#[derive(Parser, Debug)]
#[command(name = "mangrove-bench", max_term_width = 100)]
struct Cli {
    /// The suites to run; all of them by default
    #[arg(long, value_enum, value_delimiter = ',')]
    suite: Vec<Suite>,

    #[command(flatten)]
    arguments: Arguments,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    match cli.arguments.run(cli.suite) {
        Ok(table) => {
            println!("{table}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {}", error.message());
            ExitCode::FAILURE
        }
    }
}
