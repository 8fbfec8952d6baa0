//! The program `mangrove-bench`: runs suites, prints a table and, on request, writes the figures as JSON.

#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use mangrove::{Error, Result};
use mangrove_bench::{Options, Scale, Suite};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Measure the database beside the limits of this machine
#[derive(Parser, Debug)]
#[command(name = "mangrove-bench", max_term_width = 100)]
struct Arguments {
    /// The suites to run; all of them by default
    #[arg(long, value_enum, value_delimiter = ',')]
    suite: Vec<Suite>,

    /// How large the graphs are
    #[arg(long, value_enum, default_value_t = Scale::Medium)]
    scale: Scale,

    /// How long each case is timed
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
    seconds: f64,

    /// How many threads do the same thing at once
    #[arg(long, default_value_t = 1)]
    threads: usize,

    /// Measure only what has this text in its `case/variant`, as in `one hop/prepared`: for profiling
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,

    /// Write the figures to this file, too
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

fn main() -> ExitCode {
    match run(Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", error.message());
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: Arguments) -> Result<()> {
    let suites = if arguments.suite.is_empty() { Suite::ALL.to_vec() } else { arguments.suite };
    let options = Options {
        suites,
        scale: arguments.scale,
        seconds: arguments.seconds,
        threads: arguments.threads,
        only: arguments.only,
    };
    options.check()?;
    let report = mangrove_bench::run(&options, &mut |row| eprintln!("{row}"))?;
    println!("{}", report.table());
    let Some(path) = arguments.json else { return Ok(()) };
    std::fs::write(&path, report.to_json()?).map_err(|e| Error::from(e).context(path.display()))
}
