//! The command line: the commands, and the arguments that several of them take. Each other file has the arguments of
//! one command, or of commands of one kind. Doc comments here are the texts of `--help`.

mod algo;
mod changes;
mod console;
mod demo;
mod export;
mod generate;
mod load;
mod manage;
mod query;
mod server;
mod stats;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use mangrove_bench::Suite;

use crate::quantity::Size;
use crate::settings::Given;

pub use self::algo::AlgoArgs;
pub use self::changes::ChangesArgs;
pub use self::console::ConsoleArgs;
pub use self::demo::DemoArgs;
pub use self::export::{ExportArgs, Packing};
pub use self::generate::{CommonArgs, GenerateArgs, GeneratorKind, KnowledgeArgs, KroneckerArgs};
pub use self::load::LoadArgs;
pub use self::manage::{
    BackupArgs, CheckpointArgs, ConfigCommand, IndexCommand, InspectCommand, RestoreArgs, RuleArgs, SchemaCommand,
    VerifyArgs,
};
pub use self::query::{QueryArgs, RunArgs};
pub use self::server::{GraphCommand, KillArgs, PromoteArgs, QueriesArgs, ServerArgs, UserCommand};
pub use self::stats::StatsArgs;

use self::manage::{CONFIG_HELP, INDEX_HELP, INSPECT_HELP, SCHEMA_HELP};
use self::server::{GRAPH_HELP, USER_HELP};

/// A property-graph database that answers Gremlin on live, transactional data.
#[derive(Parser, Debug)]
#[command(name = "mangrove", version, max_term_width = 100, after_help = EXAMPLES)]
pub struct Cli {
    /// The command to run.
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
  mangrove backup --data graph/ --to backups/
  mangrove verify --data graph/
  mangrove changes --data graph/
  mangrove algo pagerank --data graph/ --top 10

`mangrove help COMMAND` shows the options of a command, with examples.";

/// The commands of the program.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Serve graphs to Gremlin clients over WebSocket and HTTP
    Serve(ServeArgs),
    /// Run a Gremlin script, or a file of them, and print its results
    Query(QueryArgs),
    /// Type Gremlin to a server or a graph, with history, completion, tables and transactions
    Console(ConsoleArgs),
    /// Show figures of a database: memory, transactions, garbage, log, plans
    Stats(StatsArgs),
    /// Run a graph algorithm, as PageRank or shortest paths, and print a value for each vertex
    Algo(AlgoArgs),
    /// Show what mangrove does: load a sample graph, run traversals and two transactions
    Demo(DemoArgs),
    /// Create, drop and list the graphs of a running server
    #[command(subcommand, after_help = GRAPH_HELP)]
    Graph(GraphCommand),
    /// Add, remove and list the users of a server, and change their passwords and roles
    #[command(subcommand, after_help = USER_HELP)]
    User(UserCommand),
    /// Check whether a server takes requests: exit code 0 if it does, 1 if not
    Health(HealthArgs),
    /// List the running queries of a server
    Queries(QueriesArgs),
    /// Stop a running query of a server
    Kill(KillArgs),
    /// Create, drop and list property indexes
    #[command(subcommand, after_help = INDEX_HELP)]
    Index(IndexCommand),
    /// Create, drop and list schema rules, which every commit must keep
    #[command(subcommand, after_help = SCHEMA_HELP)]
    Schema(SchemaCommand),
    /// Read and change the settings of a running database
    #[command(subcommand, after_help = CONFIG_HELP)]
    Config(ConfigCommand),
    /// Take a checkpoint: write all changes to the data files, so that recovery need not read the log
    Checkpoint(CheckpointArgs),
    /// Make a server that follows the owner of its graph the owner
    Promote(PromoteArgs),
    /// Print the changes of a graph in the order of their commits, as JSON lines
    Changes(ChangesArgs),
    /// Copy a graph to a place of backups: what was written since the last backup
    Backup(BackupArgs),
    /// Make a new database of a graph as it was at a moment, from backups or from its own files
    Restore(RestoreArgs),
    /// Check a database: every checksum, both directions of every edge, every index
    Verify(VerifyArgs),
    /// Look inside a graph: its memory, log, checkpoints and files
    #[command(subcommand, after_help = INSPECT_HELP)]
    Inspect(InspectCommand),
    /// Load files into a graph, report what was loaded and rejected, and optionally query it
    Load(LoadArgs),
    /// Write a graph to files
    Export(ExportArgs),
    /// Run benchmarks of this program on this machine
    Bench(BenchArgs),
    /// Generate a graph from a seed, in memory, in a database or in files
    Generate(GenerateArgs),
    /// Print the script that completes this command line in a shell
    #[command(hide = true)]
    Completions(CompletionsArgs),
    /// Print the manual page
    #[command(hide = true)]
    Man,
}

/// `mangrove health`.
#[derive(Args, Debug)]
pub struct HealthArgs {
    /// The URL of the server, as in ws://127.0.0.1:8182/gremlin [default: the server that the environment and the
    /// configuration file describe, with any certificate]
    #[arg(long)]
    pub url: Option<String>,

    /// The configuration file of the server
    #[arg(long, value_name = "FILE", env = "MANGROVE_CONFIG")]
    pub config: Option<PathBuf>,

    /// With --url: accept any certificate of the server
    #[arg(long, requires = "url")]
    pub insecure: bool,
}

/// `mangrove completions`.
#[derive(Args, Debug)]
pub struct CompletionsArgs {
    /// The shell
    pub shell: clap_complete::Shell,
}

/// A graph that this program opens.
#[derive(Args, Debug, Clone, Default)]
pub struct GraphArgs {
    /// The directory of the graph. Commits to it survive a crash. `memory:` is a new, empty graph that ends with the
    /// program [default: memory:]
    #[arg(long, value_name = "DIR", env = "MANGROVE_DATA")]
    pub data: Option<String>,

    /// Refuse writes while the graph uses this much memory, as in 512MB or 4GiB
    #[arg(long, value_name = "SIZE", env = "MANGROVE_MEMORY_LIMIT")]
    pub memory_limit: Option<Size>,

    /// A mapping: what the columns of loaded tables mean, if their headers do not say it. A file, or the name of a
    /// mapping that comes with the program, as ldbc-snb (see mappings/README.md)
    #[arg(long, value_name = "FILE", env = "MANGROVE_MAP")]
    pub map: Option<PathBuf>,
}

/// `mangrove serve`.
#[derive(Args, Clone, Debug, Default)]
#[command(after_help = SERVE_HELP)]
pub struct ServeArgs {
    /// A configuration file (TOML) with settings and named graphs. Flags win over the environment, and the environment
    /// over the file
    #[arg(long, value_name = "FILE", env = "MANGROVE_CONFIG")]
    pub config: Option<PathBuf>,

    /// Print all settings, with the source of each, and exit
    #[arg(long)]
    pub print_config: bool,

    /// Load a file, or the files of a folder, into the main graph at start if it is empty; may be given several times
    #[arg(long, value_name = "FILE")]
    pub load: Vec<PathBuf>,

    /// All other settings.
    #[command(flatten)]
    pub settings: Given,
}

const SERVE_HELP: &str = "\
Clients connect to ws://ADDRESS/gremlin. http://ADDRESS/health says whether the server is up;
http://ADDRESS/metrics has figures for Prometheus. Logs go to standard error. The main graph has two
traversal sources: transactions of `g` are serializable, those of `gsi` have snapshot isolation.

With --data DIR, an acknowledged commit survives a crash: the server answers after the disk has synced
the log, and commits that wait at the same time share a sync. With `memory:`, the default, nothing is
written; a commit takes microseconds, and the graph ends with the process. --load fills the graph if
it is empty, and is ignored otherwise.

To let other machines in (--listen 0.0.0.0:8182), set up TLS (--tls-certificate, --tls-key) and users
(--users-file, see `mangrove user`), or say --allow-remote.

At SIGINT or SIGTERM the server takes no new requests, lets running ones finish for --drain-seconds,
takes a checkpoint and exits. At SIGHUP it reads its settings again.

Sizes are numbers of bytes or have a unit, as 512MB or 4GiB. Times have a unit, as 500ms or 30s.

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

/// The graph of a command: one of a server, or one that this program opens or loads.
#[derive(Args, Debug, Default)]
pub struct TargetArgs {
    /// Use a graph of a running server, as in ws://127.0.0.1:8182/gremlin
    #[arg(long, value_name = "URL", env = "MANGROVE_URL")]
    pub url: Option<String>,

    /// With --url: the traversal source of the server that `g` stands for, which selects the graph [default: g]
    #[arg(long, value_name = "NAME", requires = "url")]
    pub source: Option<String>,

    /// The graph, if no server is named.
    #[command(flatten)]
    pub graph: GraphArgs,

    /// Load a file, or the files of a folder, into the graph first; may be given several times
    #[arg(long, value_name = "FILE", conflicts_with = "url")]
    pub load: Vec<PathBuf>,
}

impl TargetArgs {
    /// The server, where one is named.
    pub fn server(&self) -> Option<ServerAddress<'_>> {
        self.url.as_deref().map(|url| ServerAddress { url, source: self.source.as_deref() })
    }
}

/// A running server, and the traversal source that names one of its graphs.
#[derive(Clone, Copy, Debug)]
pub struct ServerAddress<'a> {
    /// Its URL.
    pub url: &'a str,
    /// The traversal source; `None`: `g`.
    pub source: Option<&'a str>,
}

/// `mangrove bench`.
#[derive(Args, Debug)]
#[command(after_help = BENCH_HELP)]
pub struct BenchArgs {
    /// The suites to run
    #[arg(required = true, value_enum, value_name = "SUITE")]
    pub suites: Vec<Suite>,

    /// The arguments of the benchmarks.
    #[command(flatten)]
    pub arguments: mangrove_bench::Arguments,
}

const BENCH_HELP: &str = "\
Every suite makes its own graph (in memory; `durability` in --dir) and checks its answers. The suites khop,
lsqb, is, ic, cq, grasper and barriers also read LDBC's data sets from --data. Use a release build on a machine that
does nothing else.

Examples:
  mangrove bench linkbench --scale 18 --threads 2
  mangrove bench read-intensive write-intensive --ops lbv --api typed --skew zipf:0.99
  mangrove bench lbv --isolation serializable --json lbv.json
  mangrove bench collection --churn 60 --threads 2 --plot collection.svg
  mangrove bench durability --dir /var/tmp --json durability.json
  mangrove bench khop lsqb ic --data DIR --executors 1,2,4 --json queries.json
  mangrove bench isolation --seconds 10 --plot isolation.svg";

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        super::Cli::command().debug_assert();
    }
}
