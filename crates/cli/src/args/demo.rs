//! The command line of `mangrove demo`.

use std::path::PathBuf;

use clap::Args;

/// `mangrove demo`.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub struct DemoArgs {
    /// The directory with airports.csv, routes.csv and states.csv [default: the demo generates a graph like it]
    pub directory: Option<PathBuf>,
}

const HELP: &str = "\
Nothing is written, and the graph is gone afterwards. `make demo` in a checkout downloads the files.

Examples:
  mangrove demo
  mangrove demo target/demo";
