//! The command line of `mangrove console`.

use clap::Args;

use crate::args::{RunArgs, TargetArgs};

/// `mangrove console`.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub struct ConsoleArgs {
    /// Which graph; without any of these, a new, empty one in memory.
    #[command(flatten)]
    pub target: TargetArgs,

    /// How results are printed, and what scripts are given.
    #[command(flatten)]
    pub run: RunArgs,

    /// Keep no history of what is typed
    #[arg(long)]
    pub no_history: bool,
}

const HELP: &str = "\
Type Gremlin; a statement goes on on the next line while a bracket or a quote is open or it ends with a
point. Results have names: a = g.addV('person').next(), then g.V(a). Several statements in one input
are one transaction. :help lists the commands of the console: :begin, :commit, :rollback, :explain,
:profile, :format, :labels, :stats and others.

What is typed is kept in $XDG_STATE_HOME/mangrove/history (~/.local/state/mangrove/history).

Where standard input is no terminal, statements are read from it and their results printed; the first
error ends it with the exit code 1.

Examples:
  mangrove console
  mangrove console --data graph/
  mangrove console --load air-routes/ --map mappings/air-routes.toml
  mangrove console --url ws://127.0.0.1:8182/gremlin
  MANGROVE_PASSWORD=… mangrove console --url wss://ada@graph.example/gremlin
  echo 'g.V().count()' | mangrove console --data graph/ --format csv";
