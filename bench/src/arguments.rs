//! The command line of the benchmarks, used by `mangrove-bench` and by `mangrove bench`.

use std::path::PathBuf;

use clap::Args;
use mangrove::{Error, Result};

use crate::oltp::{Api, Choices, Level, Operations, Skew};
use crate::options::{AnalyticsChoices, Options, Scale, Suite};
use crate::queries::choices::QueryChoices;

/// The options beside the suites.
#[derive(Args, Clone, Debug)]
pub struct Arguments {
    /// The size of the graphs: tiny, small (2^14 vertices), medium (2^18), full (2^20), or the logarithm, as in 16.
    /// Social networks: small is LDBC's scale factor 0.03, medium 0.1, full 0.3
    #[arg(long, default_value = "medium")]
    scale: Scale,

    /// The time of each case in seconds, all repetitions together
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
    seconds: f64,

    /// The number of threads that run a case at the same time
    #[arg(long, default_value_t = 1)]
    threads: usize,

    /// Measure only cases with this text in their `case/variant`, such as `one hop/prepared`: for profiling
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,

    /// Transactions: the operations (default: those that the suite is named after)
    #[arg(long, value_enum)]
    ops: Option<Operations>,

    /// Transactions: the interfaces
    #[arg(long, value_enum, value_delimiter = ',', default_value = "typed,gremlin")]
    api: Vec<Api>,

    /// Transactions: the isolation levels
    #[arg(long, value_enum, value_delimiter = ',', default_value = "serializable,snapshot")]
    isolation: Vec<Level>,

    /// Transactions: the distribution of vertices: uniform, zipf, or zipf:EXPONENT
    #[arg(long, value_delimiter = ',', default_value = "uniform")]
    skew: Vec<Skew>,

    /// `locality`: seconds of updates before the measurement; `collection`: seconds of each of the two runs
    #[arg(long, value_name = "SECONDS")]
    churn: Option<f64>,

    /// Plot to this file, as SVG. `collection`: throughput and memory over time; `isolation`: the distribution of
    /// latencies; `scopes` and `policies`: ratios by parameters; `gdi`: times by scale, and in FILE-threads.svg and FILE-grid.svg
    /// (FILE without its ending) by threads and by the grid
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,

    /// `durability`: the directory for a temporary directory of the run (default: the system's temporary directory)
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,

    /// `durability`: also measure homes at this address, as s3://BUCKET/DIRECTORY; may be given several times. Objects of
    /// the run stay there, in directories bench-…
    #[arg(long, value_name = "ADDRESS")]
    home: Vec<String>,

    /// Queries: the numbers of executors, ascending. Each has a database of its own, with the same graph. `gdi`: the numbers of
    /// threads; those above the number of cores are left out
    #[arg(long, value_delimiter = ',', default_value = "1,2,4,8", value_name = "NUMBERS")]
    executors: Vec<usize>,

    /// Queries: the directory of the data sets of LDBC, as folders or archives. Without it, only generated networks
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,

    /// `analytics`: the directory with the programs of the GAP Benchmark Suite (bfs, pr, cc, sssp, tc, bc),
    /// which are measured beside ours
    #[arg(long, value_name = "DIR")]
    gap: Option<PathBuf>,

    /// `analytics`: also measure the graph of this file, with `source target` or `source target weight` in each line, as
    /// SNAP's; may be given several times
    #[arg(long, value_name = "FILE")]
    graph: Vec<PathBuf>,

    /// `gdi`: the logarithms of the numbers of vertices, ascending (default: three up to `--scale`, in steps of 2)
    #[arg(long, value_delimiter = ',', value_name = "LOGARITHMS")]
    scales: Vec<u32>,

    /// Also write the figures to this file, as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Also write the tables to the page of today in this directory: DIR/YYYY-MM-DD.md
    #[arg(long, value_name = "DIR")]
    page: Option<PathBuf>,
}

impl Arguments {
    /// Runs these suites (all, if none is named) and prints each row to standard error as soon as it is measured.
    /// Returns the table of all rows.
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
                homes: self.home,
            },
            queries: QueryChoices { executors: self.executors, data: self.data },
            analytics: AnalyticsChoices { gap: self.gap, graphs: self.graph, scales: self.scales },
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
