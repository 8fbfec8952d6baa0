//! The command line: the commands, and what several of them take. What a command alone takes is beside its code, or in the
//! modules below where several are of one kind.

mod manage;
mod query;
mod server;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use mangrove_bench::Suite;

use crate::connection::Server;
use crate::console::args::ConsoleArgs;
use crate::export::ExportArgs;
use crate::generate::args::GenerateArgs;
use crate::load::args::LoadArgs;
use crate::quantity::Size;
use crate::settings::Given;
use crate::stats::StatsArgs;

pub use self::manage::{
    CheckpointArgs, ConfigCommand, IndexCommand, InspectCommand, RuleArgs, SchemaCommand, VerifyArgs,
};
pub use self::query::{QueryArgs, RunArgs};
pub use self::server::{GraphCommand, KillArgs, QueriesArgs, ServerArgs, UserCommand};

use self::manage::{CONFIG_HELP, INDEX_HELP, INSPECT_HELP, SCHEMA_HELP};
use self::server::{GRAPH_HELP, USER_HELP};

/// A property-graph database that answers Gremlin on live, transactional data.
#[derive(Parser, Debug)]
#[command(name = "mangrove", version, max_term_width = 100, after_help = EXAMPLES)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const EXAMPLES: &str = "\
Examples:
  mangrove serve
  mangrove serve --load air-routes/ --map mappings/air-routes.toml
  mangrove serve --data graph/
  mangrove query 'g.inject(1, 2, 3).sum()'
  mangrove query --data graph/ 'g.V().count()'
  mangrove query --load modern.json \"g.V().hasLabel('person').values('name')\"
  mangrove query --data graph/ -f changes.gremlin
  mangrove console --data graph/
  mangrove load people.csv knows.csv --rejects bad-rows.csv
  mangrove export --data graph/ --format csv -o files/
  mangrove generate kronecker --scale 16 --query 'g.V().groupCount().by(label)'
  mangrove index create --url ws://127.0.0.1:8182/gremlin --label person --key name --unique
  mangrove inspect memory --load modern.json
  mangrove verify --data graph/

`mangrove help COMMAND` says more about each.";

/// What the program does.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Serve graphs to Gremlin clients over WebSocket
    Serve(ServeArgs),
    /// Run a Gremlin script, or a file of them, and print its results
    Query(QueryArgs),
    /// Talk Gremlin with a server or a graph: history, completion, tables, transactions
    Console(ConsoleArgs),
    /// Show how a database is doing: memory, transactions, garbage, log, plans
    Stats(StatsArgs),
    /// Create, drop and list the graphs of a running server
    #[command(subcommand, after_help = GRAPH_HELP)]
    Graph(GraphCommand),
    /// Add, remove and list the users of a server, and change their passwords and roles
    #[command(subcommand, after_help = USER_HELP)]
    User(UserCommand),
    /// Say whether a server takes requests
    Health(HealthArgs),
    /// List the queries that run on a server
    Queries(QueriesArgs),
    /// Stop a query that runs on a server
    Kill(KillArgs),
    /// Create, drop and list indexes
    #[command(subcommand, after_help = INDEX_HELP)]
    Index(IndexCommand),
    /// Make, drop and list the rules that everything committed keeps to
    #[command(subcommand, after_help = SCHEMA_HELP)]
    Schema(SchemaCommand),
    /// Read and change the settings of a running database
    #[command(subcommand, after_help = CONFIG_HELP)]
    Config(ConfigCommand),
    /// Write what has changed to a database's directory, so that its log is short
    Checkpoint(CheckpointArgs),
    /// Read all of a database and check it: every checksum, both directions of every edge, every index
    Verify(VerifyArgs),
    /// Look inside a graph
    #[command(subcommand, after_help = INSPECT_HELP)]
    Inspect(InspectCommand),
    /// Load files, say what became of every row, and optionally query the graph
    Load(LoadArgs),
    /// Write a graph to files
    Export(ExportArgs),
    /// Measure this program on this machine: transactions, reads, loads
    Bench(BenchArgs),
    /// Make a graph from a seed, in memory or in files
    Generate(GenerateArgs),
    /// Print what completes this program's command line in a shell
    #[command(hide = true)]
    Completions(CompletionsArgs),
    /// Print the manual page
    #[command(hide = true)]
    Man,
}

/// `mangrove health`.
#[derive(Args, Debug)]
pub struct HealthArgs {
    /// The server [default: the one that the environment and the configuration file start, with any certificate]
    #[arg(long)]
    pub url: Option<String>,

    /// The configuration file of the server
    #[arg(long, value_name = "FILE", env = "MANGROVE_CONFIG")]
    pub config: Option<PathBuf>,

    /// Take any certificate from the server of --url
    #[arg(long, requires = "url")]
    pub insecure: bool,
}

/// `mangrove completions`.
#[derive(Args, Debug)]
pub struct CompletionsArgs {
    /// The shell
    pub shell: clap_complete::Shell,
}

/// Which graph.
#[derive(Args, Debug, Clone, Default)]
pub struct GraphArgs {
    /// The directory the graph is kept in; what is committed there outlives any crash. `memory:` is a new, empty graph
    /// that is gone when the program ends [default: memory:]
    #[arg(long, value_name = "DIR", env = "MANGROVE_DATA")]
    pub data: Option<String>,

    /// Refuse writes while the graph uses this much memory, as in 512MB or 4GiB
    #[arg(long, value_name = "SIZE", env = "MANGROVE_MEMORY_LIMIT")]
    pub memory_limit: Option<Size>,

    /// What the columns of tables mean, where their headers do not say: a file, or the name of a mapping that comes with the
    /// program, as ldbc-snb (see mappings/README.md)
    #[arg(long, value_name = "FILE", env = "MANGROVE_MAP")]
    pub map: Option<PathBuf>,
}

/// `mangrove serve`.
#[derive(Args, Clone, Debug, Default)]
#[command(after_help = SERVE_HELP)]
pub struct ServeArgs {
    /// A configuration file (TOML): several named graphs, and what the flags say. Flags win over the
    /// environment, the environment over the file
    #[arg(long, value_name = "FILE", env = "MANGROVE_CONFIG")]
    pub config: Option<PathBuf>,

    /// Print the settings that count, with where each comes from, and end
    #[arg(long)]
    pub print_config: bool,

    /// Load a file, or the files of a folder, at start; may be given several times
    #[arg(long, value_name = "FILE")]
    pub load: Vec<PathBuf>,

    /// All other settings.
    #[command(flatten)]
    pub settings: Given,
}

const SERVE_HELP: &str = "\
The graph has the traversal sources `g`, whose transactions are serializable, and `gsi`, whose have
snapshot isolation. Clients connect to ws://ADDRESS/gremlin; http://ADDRESS/health says whether the
server is up, http://ADDRESS/metrics is for Prometheus. Logs go to standard error. With --data, what a
client is told is committed survives a crash; --load fills an empty directory, and is passed over
where there is a graph. At SIGINT or SIGTERM the server takes no more requests, lets those that run
finish for --drain-seconds, takes a checkpoint and ends.

Other machines are let in (--listen 0.0.0.0:8182) where there are TLS (--tls-certificate, --tls-key)
and users (--users-file, see `mangrove user`), or with --allow-remote.

How durable a graph is follows from where it is. In a directory (`local`) a commit is answered when it
is in the log and the disk has synced it; commits that wait at the same time share a sync. In memory
(`memory:`, the default) nothing is written: a commit takes microseconds, and the graph is gone with
the process.

Examples:
  mangrove serve
  mangrove serve --data graph/
  mangrove serve --listen 127.0.0.1:8183 --load modern.json --evaluation-timeout 5s
  mangrove serve --config mangrove.toml --print-config

A configuration file:
  listen = \"0.0.0.0:8182\"
  tls_certificate = \"server.pem\"           # beside the configuration file
  tls_key = \"server.key\"
  users_file = \"users.toml\"
  graphs_dir = \"graphs\"
  [graphs.modern]
  load = [\"tinkerpop-modern.json\"]
  sources = { gmodern = \"serializable\", gmodern_si = \"snapshot\" }";

/// Which graph a management command is for: a server's, or one opened or loaded here.
#[derive(Args, Debug, Default)]
pub struct TargetArgs {
    /// A running server, as in ws://127.0.0.1:8182/gremlin
    #[arg(long, value_name = "URL", env = "MANGROVE_URL")]
    pub url: Option<String>,

    /// With --url: which of the server's traversal sources `g` is, one of each graph [default: g]
    #[arg(long, value_name = "NAME", requires = "url")]
    pub source: Option<String>,

    /// Which graph, where no server is named.
    #[command(flatten)]
    pub graph: GraphArgs,

    /// Load a file, or the files of a folder, first; may be given several times
    #[arg(long, value_name = "FILE", conflicts_with = "url")]
    pub load: Vec<PathBuf>,
}

impl TargetArgs {
    /// The server, where one is named.
    pub fn server(&self) -> Option<Server<'_>> {
        self.url.as_deref().map(|url| Server { url, source: self.source.as_deref() })
    }
}

/// `mangrove bench`.
#[derive(Args, Debug)]
#[command(after_help = BENCH_HELP)]
pub struct BenchArgs {
    /// What to measure
    #[arg(required = true, value_enum, value_name = "SUITE")]
    pub suites: Vec<Suite>,

    /// How.
    #[command(flatten)]
    pub arguments: mangrove_bench::Arguments,
}

const BENCH_HELP: &str = "\
Every suite makes its own graph (in memory, `durability` in --dir) and checks its answers. Use a release build on a quiet
machine.

Examples:
  mangrove bench linkbench --scale 18 --threads 2
  mangrove bench read-intensive write-intensive --ops lbv --api typed --skew zipf:0.99
  mangrove bench lbv --isolation serializable --json lbv.json
  mangrove bench collection --churn 60 --threads 2 --plot collection.svg
  mangrove bench durability --dir /var/tmp --json durability.json";

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A table to read
    Table,
    /// One JSON document: an array of results
    Json,
    /// A JSON document a line
    Jsonl,
    /// Comma-separated values with a header
    Csv,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        super::Cli::command().debug_assert();
    }
}
