//! The command line of `mangrove query`, and the options that `mangrove console` shares with it.
//!
//! Doc comments of arguments are the texts of `--help`, so they have no period at the end.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use mangrove::{Parameters, Result};

use super::GraphArgs;
use super::ServerAddress;
use crate::output::ResultFormat;
use crate::output::plan::PlanFormat;
use crate::parameters;
use crate::quantity::TimeLimit;
use crate::question::Question;

/// How a script is run and its results are printed, for `query` and `console`.
#[derive(Args, Debug)]
pub struct RunArgs {
    /// How to print results
    #[arg(long, value_enum, default_value_t = ResultFormat::Table)]
    pub format: ResultFormat,

    /// A parameter of the script: a JSON value, or else a string; may be given several times
    #[arg(long = "param", value_name = "NAME=VALUE")]
    pub parameters: Vec<String>,

    /// The time limit of a query, as in 30s or 500ms [default: none]
    #[arg(long, value_name = "TIME", env = "MANGROVE_EVALUATION_TIMEOUT")]
    pub evaluation_timeout: Option<TimeLimit>,
}

impl RunArgs {
    /// The parsed parameters. Fails if one is not `NAME=VALUE`.
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
    /// The script, in Gremlin; `-` is standard input
    #[arg(required_unless_present = "file")]
    pub script: Option<String>,

    /// Run the script in this file; `-` is standard input
    #[arg(short, long, value_name = "FILE", conflicts_with = "script")]
    pub file: Option<PathBuf>,

    /// Write the results to this file, which appears only when all of them are written
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Run each statement as a transaction of its own and print the results of each. Without it, all statements are one
    /// transaction, and only the results of the last are printed
    #[arg(long)]
    pub each: bool,

    /// Show the plan of the traversal instead of running it
    #[arg(long, value_enum, value_name = "FORMAT", num_args = 0..=1, require_equals = true, default_missing_value = "tree",
          conflicts_with_all = ["each", "profile", "format"])]
    pub explain: Option<PlanFormat>,

    /// Run the traversal, and show what each operator of its plan did instead of the results
    #[arg(long, value_enum, value_name = "FORMAT", num_args = 0..=1, require_equals = true, default_missing_value = "tree",
          conflicts_with_all = ["each", "format"])]
    pub profile: Option<PlanFormat>,

    /// Run it on a running server, as in ws://127.0.0.1:8182/gremlin
    #[arg(long, value_name = "URL", env = "MANGROVE_URL", conflicts_with = "load")]
    pub url: Option<String>,

    /// With --url: the traversal source of the server that `g` stands for, which selects the graph [default: g]
    #[arg(long, value_name = "NAME", requires = "url")]
    pub source: Option<String>,

    /// The graph.
    #[command(flatten)]
    pub graph: GraphArgs,

    /// Load a file, or the files of a folder, into the graph first; may be given several times
    #[arg(long, value_name = "FILE")]
    pub load: Vec<PathBuf>,

    /// How it is run and its results are printed.
    #[command(flatten)]
    pub run: RunArgs,
}

impl QueryArgs {
    /// The question about the traversal, and the format of the answer; `None` if its results are asked for.
    pub fn question(&self) -> Option<(Question, PlanFormat)> {
        let explain = self.explain.map(|format| (Question::Explain, format));
        explain.or(self.profile.map(|format| (Question::Profile, format)))
    }

    /// The address of the server; `None` without `--url`.
    pub fn server(&self) -> Option<ServerAddress<'_>> {
        self.url.as_deref().map(|url| ServerAddress { url, source: self.source.as_deref() })
    }
}

const QUERY_HELP: &str = "\
Examples:
  mangrove query 'g.inject(1, 2, 3).sum()'
  mangrove query --load modern.json \"g.V().hasLabel('person').valueMap('name', 'age')\"
  mangrove query --load modern.json --param who=marko --format json \"g.V().has('name', who).out()\"
  mangrove query --load modern.json --explain \"g.V().out().out()\"
  mangrove query --data graph/ --profile \"g.V().hasLabel('person').out('knows').count()\"
  mangrove query --data graph/ --profile=dot \"g.V().out().out().count()\" | dot -Tsvg > plan.svg
  mangrove query --url ws://127.0.0.1:8182/gremlin 'g.V().count()'
  mangrove query --url ws://127.0.0.1:8182/gremlin --source books 'g.V().count()'
  mangrove query --data graph/ 'g.V().count()'
  mangrove query --data graph/ -f changes.gremlin
  mangrove query --url ws://127.0.0.1:8182/gremlin -f inserts.gremlin --each
  mangrove query --data graph/ --format csv -o people.csv \"g.V().hasLabel('person').valueMap()\"

A statement ends with `;`, or at the end of a line if it is complete. `//` begins a comment. Several
statements are one transaction and may use variables: a = g.addV('person').next();
g.V(a).property('name', 'ada'). If one fails, all are rolled back.

Without --url, the query runs in this program, on the database of --data or the files of --load.";
