//! The command line of `mangrove console`.

use clap::Args;

use super::{RunArgs, TargetArgs};

/// `mangrove console`.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub struct ConsoleArgs {
    /// The graph; without any of these options, a new, empty one in memory.
    #[command(flatten)]
    pub target: TargetArgs,

    /// How scripts are run and results are printed.
    #[command(flatten)]
    pub run: RunArgs,

    /// Do not keep a history of inputs
    #[arg(long)]
    pub no_history: bool,
}

const HELP: &str = "\
Type Gremlin. A statement continues on the next line while a bracket or a quote is open, or if the line
ends with a point. Variables hold results: a = g.addV('person').next(), then g.V(a). Several statements
in one input are one transaction. :help lists the commands of the console: :begin, :commit, :rollback,
:explain, :profile, :format, :labels, :stats and others. Ctrl-C stops a running query.

Inputs are kept in $XDG_STATE_HOME/mangrove/history (~/.local/state/mangrove/history).

If standard input is not a terminal, the console reads statements from it and prints their results; the
first error ends it with the exit code 1.

Examples:
  mangrove console
  mangrove console --data graph/
  mangrove console --load air-routes/ --map mappings/air-routes.toml
  mangrove console --url ws://127.0.0.1:8182/gremlin
  MANGROVE_PASSWORD=… mangrove console --url wss://ada@graph.example/gremlin
  echo 'g.V().count()' | mangrove console --data graph/ --format csv";
