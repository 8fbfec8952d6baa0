//! The command line of `mangrove query`, and what the console takes, too.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use mangrove::{Parameters, Result};

use super::{Format, GraphArgs};
use crate::connection::Server;
use crate::parameters;
use crate::quantity::TimeLimit;

/// How a script is run and its results are printed: what `query` and `console` have in common.
#[derive(Args, Debug)]
pub struct RunArgs {
    /// How to print results
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,

    /// A value for a parameter: JSON, or else a string; may be given several times
    #[arg(long = "param", value_name = "NAME=VALUE")]
    pub parameters: Vec<String>,

    /// How long a query may run: 30s, 500ms, none [default: none]
    #[arg(long, value_name = "TIME", env = "MANGROVE_EVALUATION_TIMEOUT")]
    pub evaluation_timeout: Option<TimeLimit>,
}

impl RunArgs {
    /// The parameters, read.
    pub fn parameters(&self) -> Result<Parameters> {
        parameters::parse(&self.parameters)
    }

    /// The time limit of each query; `None` for no limit.
    pub fn timeout(&self) -> Option<Duration> {
        self.evaluation_timeout.and_then(|limit| limit.duration())
    }
}

/// `mangrove query`.
#[derive(Args, Debug)]
#[command(after_help = QUERY_HELP)]
pub struct QueryArgs {
    /// The script, in Gremlin; `-` reads it from standard input
    #[arg(required_unless_present = "file")]
    pub script: Option<String>,

    /// Run the script in a file; `-` is standard input
    #[arg(short, long, value_name = "FILE", conflicts_with = "script")]
    pub file: Option<PathBuf>,

    /// Write the results to a file, which is there only when they all are
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Run each statement as a transaction of its own and print the results of each; without, all are one transaction,
    /// and the results are those of the last
    #[arg(long)]
    pub each: bool,

    /// Ask a running server, as in ws://127.0.0.1:8182/gremlin
    #[arg(long, value_name = "URL", env = "MANGROVE_URL", conflicts_with = "load")]
    pub url: Option<String>,

    /// With --url: which of the server's traversal sources `g` is, one of each graph [default: g]
    #[arg(long, value_name = "NAME", requires = "url")]
    pub source: Option<String>,

    /// Which graph.
    #[command(flatten)]
    pub graph: GraphArgs,

    /// Load a file, or the files of a folder, first; may be given several times
    #[arg(long, value_name = "FILE")]
    pub load: Vec<PathBuf>,

    /// How its results are printed, and what it is given.
    #[command(flatten)]
    pub run: RunArgs,
}

impl QueryArgs {
    /// The server, where one is named.
    pub fn server(&self) -> Option<Server<'_>> {
        self.url.as_deref().map(|url| Server { url, source: self.source.as_deref() })
    }
}

const QUERY_HELP: &str = "\
Examples:
  mangrove query 'g.inject(1, 2, 3).sum()'
  mangrove query --load modern.json \"g.V().hasLabel('person').valueMap('name', 'age')\"
  mangrove query --load modern.json --param who=marko --format json \"g.V().has('name', who).out()\"
  mangrove query --load modern.json \"g.V().out().out().explain()\"
  mangrove query --url ws://127.0.0.1:8182/gremlin 'g.V().count()'
  mangrove query --url ws://127.0.0.1:8182/gremlin --source books 'g.V().count()'
  mangrove query --data graph/ 'g.V().count()'
  mangrove query --data graph/ -f changes.gremlin
  mangrove query --url ws://127.0.0.1:8182/gremlin -f inserts.gremlin --each
  mangrove query --data graph/ --format csv -o people.csv \"g.V().hasLabel('person').valueMap()\"

Statements end with `;`, or with a line where they are whole; `//` begins a comment. Several are one
transaction, with variables: a = g.addV('person').next(); g.V(a).property('name', 'ada'). One that
fails takes all of them back.

Without --url the query runs here, on the database that --data or the files that --load names.";
