//! The command line of `mangrove changes`.

use clap::Args;
use mangrove::FeedPosition;

const CHANGES_HELP: &str = "\
Prints one JSON object a line for each change, and one with \"op\":\"commit\" after the changes of each
transaction, in the order of commits. \"at\" is the position of a line. To go on after it, give it as --from.

The graph must have been served with the setting feed = \"after\" or \"full\" (`mangrove serve --feed after`) when
the changes were made. With \"full\", lines also have the values before. The setting log_keep says how much of the
log is kept for readers after a checkpoint.

Examples:
  mangrove changes --data graph/
  mangrove changes --data graph/ --from 1002311.3 --limit 100
  mangrove changes --url ws://127.0.0.1:8182/gremlin --follow
  mangrove changes --url ws://127.0.0.1:8182/gremlin --source books --from 1002311 --plain";

/// `mangrove changes`.
#[derive(Args, Debug)]
#[command(after_help = CHANGES_HELP)]
pub struct ChangesArgs {
    /// The directory of a graph that no process has open to write; --url goes before it
    #[arg(long, value_name = "DIR", env = "MANGROVE_DATA", required_unless_present = "url")]
    pub data: Option<String>,

    /// The URL of a running server, as in ws://127.0.0.1:8182/gremlin
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,

    /// With --url: a traversal source of the graph
    #[arg(long, value_name = "NAME", default_value = "g", requires = "url")]
    pub source: String,

    /// Print what comes after this position: "at" of a line, as in 1002311.3, or a commit, as in 1002311 [default: all
    /// that the log has]
    #[arg(long, value_name = "POSITION")]
    pub from: Option<FeedPosition>,

    /// With --url: go on with the changes that are still to come
    #[arg(long, requires = "url")]
    pub follow: bool,

    /// Print at most this many lines
    #[arg(long, value_name = "COUNT")]
    pub limit: Option<u64>,

    /// Print values without their types, which is shorter: types cannot be told from it
    #[arg(long)]
    pub plain: bool,
}
