//! The command line of the benchmarks, for whatever program runs them.

use std::path::PathBuf;

use clap::Args;
use mangrove::{Error, Result};

use crate::oltp::{Api, Choices, Level, Operations, Skew};
use crate::options::{Options, Scale, Suite};

/// What can be said beside the suites.
#[derive(Args, Clone, Debug)]
pub struct Arguments {
    /// How large the graphs are: tiny, small (2^14 vertices), medium (2^18), full (2^20), or the logarithm, as in 16
    #[arg(long, default_value = "medium")]
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

    /// Transactions: whose operations (default: those the suite is named after)
    #[arg(long, value_enum)]
    ops: Option<Operations>,

    /// Transactions: through which interfaces
    #[arg(long, value_enum, value_delimiter = ',', default_value = "typed,gremlin")]
    api: Vec<Api>,

    /// Transactions: at which isolation levels
    #[arg(long, value_enum, value_delimiter = ',', default_value = "serializable,snapshot")]
    isolation: Vec<Level>,

    /// Transactions: how vertices are picked: uniform, zipf, or zipf:EXPONENT
    #[arg(long, value_delimiter = ',', default_value = "uniform")]
    skew: Vec<Skew>,

    /// `locality`: how long the graph is updated; `collection`: how long each of the two runs is
    #[arg(long, value_name = "SECONDS")]
    churn: Option<f64>,

    /// `collection`: draw throughput and memory over time, as SVG
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,

    /// `durability`: where to write, in a directory that goes with the run (default: where temporary files are)
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,

    /// Write the figures to this file, too
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Write the tables to the page of today in this directory, too: DIR/YYYY-MM-DD.md
    #[arg(long, value_name = "DIR")]
    page: Option<PathBuf>,
}

impl Arguments {
    /// Runs these suites (all, if none is named) and prints rows to standard error while they are measured; the table of
    /// all of them.
    pub fn run(self, suites: Vec<Suite>) -> Result<String> {
        let options = Options {
            suites: if suites.is_empty() { Suite::ALL.to_vec() } else { suites },
            scale: self.scale,
            seconds: self.seconds,
            threads: self.threads,
            only: self.only,
            choices: Choices {
                operations: self.ops,
                apis: self.api,
                levels: self.isolation,
                skews: self.skew,
                churn_seconds: self.churn.unwrap_or(Choices::default().churn_seconds),
                plot: self.plot,
                directory: self.dir,
            },
        };
        options.check()?;
        let report = crate::run(&options, &mut |row| eprintln!("{row}"))?;
        if let Some(path) = self.json {
            std::fs::write(&path, report.to_json()?).map_err(|e| Error::from(e).context(path.display()))?;
        }
        if let Some(directory) = self.page {
            let path = crate::page::write(&directory, &report, &options)?;
            eprintln!("wrote {}", path.display());
        }
        Ok(report.table())
    }
}
