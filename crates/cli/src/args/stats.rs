//! The command line of `mangrove stats`.

use clap::Args;

use super::TargetArgs;

/// `mangrove stats`.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub struct StatsArgs {
    /// The graph.
    #[command(flatten)]
    pub target: TargetArgs,

    /// Print JSON: one document, or with --watch one line each time
    #[arg(long)]
    pub json: bool,

    /// Print again after this many seconds, with rates a second, until the program is stopped
    #[arg(long, value_name = "SECONDS")]
    pub watch: Option<f64>,
}

const HELP: &str = "\
Examples:
  mangrove stats --url ws://127.0.0.1:8182/gremlin
  mangrove stats --url ws://127.0.0.1:8182/gremlin --watch 2
  mangrove stats --data graph/ --json

`mangrove inspect statistics` shows what plans are chosen by: vertices by label, degrees, entries of indexes.";
