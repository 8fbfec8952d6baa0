//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use mangrove_bench::Suite;

use crate::console::args::ConsoleArgs;
use crate::export::ExportArgs;
use crate::generate::args::GenerateArgs;
use crate::load::args::LoadArgs;
use crate::quantity::{Size, TimeLimit};
use crate::settings::Given;
use crate::stats::StatsArgs;

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
    /// The server [default: where MANGROVE_LISTEN says, or ws://127.0.0.1:8182]
    #[arg(long)]
    pub url: Option<String>,
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
#[derive(Args, Debug, Default)]
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

    /// Which graph.
    #[command(flatten)]
    pub graph: GraphArgs,

    /// Load a file, or the files of a folder, first; may be given several times
    #[arg(long, value_name = "FILE")]
    pub load: Vec<PathBuf>,

    /// How to print the results
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,

    /// A value for a parameter of the script: JSON, or else a string; may be given several times
    #[arg(long = "param", value_name = "NAME=VALUE")]
    pub parameters: Vec<String>,

    /// How long the query may run: 30s, 500ms, none [default: none]
    #[arg(long, value_name = "TIME", env = "MANGROVE_EVALUATION_TIMEOUT")]
    pub evaluation_timeout: Option<TimeLimit>,
}

const QUERY_HELP: &str = "\
Examples:
  mangrove query 'g.inject(1, 2, 3).sum()'
  mangrove query --load modern.json \"g.V().hasLabel('person').valueMap('name', 'age')\"
  mangrove query --load modern.json --param who=marko --format json \"g.V().has('name', who).out()\"
  mangrove query --load modern.json \"g.V().out().out().explain()\"
  mangrove query --url ws://127.0.0.1:8182/gremlin 'g.V().count()'
  mangrove query --data graph/ 'g.V().count()'
  mangrove query --data graph/ -f changes.gremlin
  mangrove query --url ws://127.0.0.1:8182/gremlin -f inserts.gremlin --each
  mangrove query --data graph/ --format csv -o people.csv \"g.V().hasLabel('person').valueMap()\"

Statements end with `;`, or with a line where they are whole; `//` begins a comment. Several are one
transaction, with variables: a = g.addV('person').next(); g.V(a).property('name', 'ada'). One that
fails takes all of them back.

Without --url the query runs here, on the database that --data or the files that --load names.";

/// Which graph a management command is for: a server's, or one opened or loaded here.
#[derive(Args, Debug, Default)]
pub struct TargetArgs {
    /// A running server, as in ws://127.0.0.1:8182/gremlin
    #[arg(long, value_name = "URL", env = "MANGROVE_URL")]
    pub url: Option<String>,

    /// Which graph, where no server is named.
    #[command(flatten)]
    pub graph: GraphArgs,

    /// Load a file, or the files of a folder, first; may be given several times
    #[arg(long, value_name = "FILE", conflicts_with = "url")]
    pub load: Vec<PathBuf>,
}

const INDEX_HELP: &str = "\
Examples:
  mangrove index create --url ws://127.0.0.1:8182/gremlin --label person --key name --unique
  mangrove index create --url ws://127.0.0.1:8182/gremlin --key city --key age --ordered
  mangrove index list --url ws://127.0.0.1:8182/gremlin
  mangrove index drop --url ws://127.0.0.1:8182/gremlin --label person --key name

Scripts do the same by g.call('mangrove.index.create') and its like; g.call() lists them.";

const CONFIG_HELP: &str = "\
Examples:
  mangrove config get --url ws://127.0.0.1:8182/gremlin
  mangrove config set --url ws://127.0.0.1:8182/gremlin gc_workers=2
  mangrove config set --url ws://127.0.0.1:8182/gremlin memory_limit_bytes=4294967296

Settings last as long as the database's process; those that are to be so at every start belong among
those of `mangrove serve` (--gc-workers, or gc_workers in its configuration file). Scripts do the same
by g.call('mangrove.config').";

const INSPECT_HELP: &str = "\
Examples:
  mangrove inspect memory --url ws://127.0.0.1:8182/gremlin
  mangrove inspect memory --load network/ --map network/mapping.toml --format json
  mangrove inspect durability --url ws://127.0.0.1:8182/gremlin
  mangrove inspect log --data graph/ --format jsonl
  mangrove inspect manifest --data graph/";

const CHECKPOINT_HELP: &str = "\
Writers go on meanwhile. A database takes checkpoints by itself as its log grows; this is for before
a copy is made, or a restart that is to be quick.

Examples:
  mangrove checkpoint --url ws://127.0.0.1:8182/gremlin
  mangrove checkpoint --data graph/";

const VERIFY_HELP: &str = "\
Changes nothing. The exit code is 1 if anything is wrong; then the file and the place in it are named.
The database must not be open elsewhere.

Examples:
  mangrove verify --data graph/";

/// `mangrove checkpoint`.
#[derive(Args, Debug)]
#[command(after_help = CHECKPOINT_HELP)]
pub struct CheckpointArgs {
    /// Which graph.
    #[command(flatten)]
    pub target: TargetArgs,
    /// How to print what was written
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,
}

/// `mangrove verify`.
#[derive(Args, Debug)]
#[command(after_help = VERIFY_HELP)]
pub struct VerifyArgs {
    /// The database's directory
    #[arg(long, value_name = "DIR", env = "MANGROVE_DATA")]
    pub data: String,
}

const GRAPH_HELP: &str = "\
Examples:
  mangrove graph create --url ws://127.0.0.1:8182/gremlin books
  mangrove graph list --url ws://127.0.0.1:8182/gremlin
  mangrove graph drop --url ws://127.0.0.1:8182/gremlin books

A graph that is created has the traversal sources NAME and NAMEsi. It is kept below the server's
graphs_dir, or in memory with --memory. Scripts do the same by g.call('mangrove.graph.create').";

const USER_HELP: &str = "\
The users file is the one that the server's setting users_file names; a running server reads it again
within a second. Passwords are read from standard input, or asked for where that is a terminal, and
kept as Argon2 hashes.

Examples:
  mangrove user add --file users.toml ada --role '*=admin'
  mangrove user add --file users.toml web --role books=read --role carts=write <password.txt
  mangrove user grant --file users.toml web books=none
  mangrove user passwd --file users.toml ada
  mangrove user list --file users.toml";

/// A server.
#[derive(Args, Debug)]
pub struct ServerArgs {
    /// The server, as in ws://127.0.0.1:8182/gremlin
    #[arg(long, value_name = "URL", env = "MANGROVE_URL")]
    pub url: String,

    /// How to print the answer
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,
}

/// `mangrove graph`.
#[derive(Subcommand, Debug)]
pub enum GraphCommand {
    /// Create a graph
    Create {
        /// Its name: a letter, then letters, digits and underscores
        name: String,
        /// In memory: it is gone when the server ends
        #[arg(long)]
        memory: bool,
        /// Refuse writes while it uses this much memory [default: the server's]
        #[arg(long, value_name = "SIZE")]
        memory_limit: Option<Size>,
        /// A traversal source and its isolation level, serializable or snapshot; may be given several times [default: NAME
        /// and NAMEsi]
        #[arg(long = "source", value_name = "NAME=LEVEL")]
        sources: Vec<String>,
        /// Where.
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Drop a graph that was created, with its files
    Drop {
        /// Its name
        name: String,
        /// Where.
        #[command(flatten)]
        server: ServerArgs,
    },
    /// List the graphs
    List {
        /// Where.
        #[command(flatten)]
        server: ServerArgs,
    },
}

/// `mangrove queries`.
#[derive(Args, Debug)]
pub struct QueriesArgs {
    /// Where.
    #[command(flatten)]
    pub server: ServerArgs,
}

/// `mangrove kill`.
#[derive(Args, Debug)]
pub struct KillArgs {
    /// Its number, as `mangrove queries` shows it
    pub id: u64,
    /// Where.
    #[command(flatten)]
    pub server: ServerArgs,
}

/// `mangrove user`.
#[derive(Subcommand, Debug)]
pub enum UserCommand {
    /// Add a user; the file is made if it is not there
    Add {
        /// The name
        name: String,
        /// A role on a graph, as in books=read; `*` is every graph that is not named; may be given several times
        #[arg(long = "role", value_name = "GRAPH=ROLE")]
        roles: Vec<String>,
        /// Where.
        #[command(flatten)]
        file: UsersFileArgs,
    },
    /// Remove a user
    Remove {
        /// The name
        name: String,
        /// Where.
        #[command(flatten)]
        file: UsersFileArgs,
    },
    /// List the users and their roles
    List {
        /// Where.
        #[command(flatten)]
        file: UsersFileArgs,
        /// How to print them
        #[arg(long, value_enum, default_value_t = Format::Table)]
        format: Format,
    },
    /// Change a user's password
    Passwd {
        /// The name
        name: String,
        /// Where.
        #[command(flatten)]
        file: UsersFileArgs,
    },
    /// Give a user roles: read, write or admin, or `none` to take one away
    Grant {
        /// The name
        name: String,
        /// The roles
        #[arg(required = true, value_name = "GRAPH=ROLE")]
        roles: Vec<String>,
        /// Where.
        #[command(flatten)]
        file: UsersFileArgs,
    },
}

/// Which users.
#[derive(Args, Debug)]
pub struct UsersFileArgs {
    /// The users file
    #[arg(long, value_name = "FILE", env = "MANGROVE_USERS_FILE")]
    pub file: PathBuf,
}

/// `mangrove index`.
#[derive(Subcommand, Debug)]
pub enum IndexCommand {
    /// Create an index while transactions go on
    Create {
        /// Which graph.
        #[command(flatten)]
        target: TargetArgs,
        /// Of vertices with this label [default: of all]
        #[arg(long)]
        label: Option<String>,
        /// The property; several make a composite index, most significant first
        #[arg(long = "key", value_name = "KEY", required = true)]
        keys: Vec<String>,
        /// Answer ranges, too
        #[arg(long)]
        ordered: bool,
        /// Refuse a second vertex with the same values
        #[arg(long)]
        unique: bool,
        /// How to print the index
        #[arg(long, value_enum, default_value_t = Format::Table)]
        format: Format,
    },
    /// Drop the index with a number, or the one on a label and keys
    Drop {
        /// Which graph.
        #[command(flatten)]
        target: TargetArgs,
        /// Its number, as `mangrove index list` shows it
        #[arg(long, conflicts_with_all = ["label", "keys"], required_unless_present = "keys")]
        id: Option<u32>,
        /// Its label
        #[arg(long)]
        label: Option<String>,
        /// Its property; several for a composite one
        #[arg(long = "key", value_name = "KEY")]
        keys: Vec<String>,
        /// How to print the index
        #[arg(long, value_enum, default_value_t = Format::Table)]
        format: Format,
    },
    /// List the indexes with their sizes
    List {
        /// Which graph.
        #[command(flatten)]
        target: TargetArgs,
        /// How to print them
        #[arg(long, value_enum, default_value_t = Format::Table)]
        format: Format,
    },
}

/// `mangrove config`.
#[derive(Subcommand, Debug)]
pub enum ConfigCommand {
    /// Show the settings
    Get {
        /// Which graph.
        #[command(flatten)]
        target: TargetArgs,
        /// How to print them
        #[arg(long, value_enum, default_value_t = Format::Table)]
        format: Format,
    },
    /// Change settings for everybody, from now on
    Set {
        /// Which graph.
        #[command(flatten)]
        target: TargetArgs,
        /// As in garbage_collection=false or gc_workers=2
        #[arg(required = true, value_name = "NAME=VALUE")]
        settings: Vec<String>,
        /// How to print them
        #[arg(long, value_enum, default_value_t = Format::Table)]
        format: Format,
    },
}

/// `mangrove inspect`.
#[derive(Subcommand, Debug)]
pub enum InspectCommand {
    /// What the graph's memory goes into, by kind of record
    Memory {
        /// Which graph.
        #[command(flatten)]
        target: TargetArgs,
        /// How to print it
        #[arg(long, value_enum, default_value_t = Format::Table)]
        format: Format,
    },
    /// The state of the log and of the checkpoints
    Durability {
        /// Which graph.
        #[command(flatten)]
        target: TargetArgs,
        /// How to print it
        #[arg(long, value_enum, default_value_t = Format::Table)]
        format: Format,
    },
    /// The records of a database's log that the newest checkpoint does not cover
    Log {
        /// The database's directory, not open elsewhere
        #[arg(long, value_name = "DIR", env = "MANGROVE_DATA")]
        data: String,
        /// How to print them
        #[arg(long, value_enum, default_value_t = Format::Table)]
        format: Format,
    },
    /// The newest manifest of a database, as JSON: which files the graph is made of
    Manifest {
        /// The database's directory, not open elsewhere
        #[arg(long, value_name = "DIR", env = "MANGROVE_DATA")]
        data: String,
    },
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
