//! The command lines of `mangrove index`, `schema`, `config`, `inspect`, `checkpoint`, `verify`, `backup` and `restore`,
//! which work on one graph: a graph of a server, or one that this program opens.

use clap::{Args, Subcommand};

use super::TargetArgs;
use crate::output::ResultFormat;

pub const INDEX_HELP: &str = "\
Examples:
  mangrove index create --url ws://127.0.0.1:8182/gremlin --label person --key name --unique
  mangrove index create --url ws://127.0.0.1:8182/gremlin --key city --key age --ordered
  mangrove index create --url ws://127.0.0.1:8182/gremlin --edges --label knows --key since --ordered
  mangrove index list --url ws://127.0.0.1:8182/gremlin
  mangrove index drop --url ws://127.0.0.1:8182/gremlin --label person --key name

An index finds vertices, or edges, by their properties. It is built while transactions run. Scripts do the same
with g.call('mangrove.index.create'); g.call() lists all services.";

pub const SCHEMA_HELP: &str = "\
A rule is checked at every commit. It cannot be created while something in the graph breaks it. See
docs/schema.md.

Examples:
  mangrove schema require --url ws://127.0.0.1:8182/gremlin --label person --key email
  mangrove schema type --url ws://127.0.0.1:8182/gremlin --label person --key age integer
  mangrove schema ends --url ws://127.0.0.1:8182/gremlin --label works person:company person:school
  mangrove schema list --url ws://127.0.0.1:8182/gremlin
  mangrove schema drop --url ws://127.0.0.1:8182/gremlin 3

Scripts do the same with g.call('mangrove.schema.require') and the other mangrove.schema services.";

pub const CONFIG_HELP: &str = "\
Examples:
  mangrove config get --url ws://127.0.0.1:8182/gremlin
  mangrove config set --url ws://127.0.0.1:8182/gremlin gc_workers=2
  mangrove config set --url ws://127.0.0.1:8182/gremlin memory_limit_bytes=4294967296

A change lasts until the process ends. To make it permanent, set it where `mangrove serve` is started
(--gc-workers, or gc_workers in the configuration file). Scripts do the same with
g.call('mangrove.config').";

pub const INSPECT_HELP: &str = "\
Examples:
  mangrove inspect memory --url ws://127.0.0.1:8182/gremlin
  mangrove inspect memory --load network/ --map network/mapping.toml --format json
  mangrove inspect statistics --url ws://127.0.0.1:8182/gremlin
  mangrove inspect statistics --data graph/ --label person --edge knows --histogram
  mangrove inspect durability --url ws://127.0.0.1:8182/gremlin
  mangrove inspect log --data graph/ --format jsonl
  mangrove inspect manifest --data graph/
  mangrove inspect packs --data graph/";

const CHECKPOINT_HELP: &str = "\
Writers are not stopped. A database takes checkpoints by itself as its log grows. Take one by hand
before you copy the directory, or before a restart that should be quick.

Examples:
  mangrove checkpoint --url ws://127.0.0.1:8182/gremlin
  mangrove checkpoint --data graph/
  mangrove checkpoint --data graph/ --topology true
  mangrove checkpoint --data graph/ --parquet";

const VERIFY_HELP: &str = "\
Nothing is changed. If anything is wrong, the exit code is 1 and the error names the file and the
position in it. No other program may have the directory open. The graph of an object store may be open;
a pin keeps what is read meanwhile.

Examples:
  mangrove verify --data graph/
  mangrove verify --data backups/
  mangrove verify --data s3://bucket/graph";

const BACKUP_HELP: &str = "\
The first backup copies the whole graph, later ones what was written since. A backup is one line in
--to, and what it needs. The graph of a directory must not be open; a server backs its graph up with
--url. The graph of an object store may be open.

A place is a directory, s3://BUCKET/DIRECTORY, or file:/PATH for a directory of objects. --to DIR is
a directory of objects, too.

Examples:
  mangrove backup --data graph/ --to backups/
  mangrove backup --data graph/ --to s3://bucket/backups --keep 30
  mangrove backup --url ws://127.0.0.1:8182/gremlin --to /var/backups/graph
  mangrove backup --to backups/ --list";

const RESTORE_HELP: &str = "\
A restored graph is a new database: it has an id of its own, and the source is left as it is. The
target is empty before. --at is a time, the number of a commit, or `newest`. A home keeps the states
of the time that its owner says, a directory those since its last checkpoint, a backup those since
its checkpoint.

Examples:
  mangrove restore --from backups/ --to graph/
  mangrove restore --from s3://bucket/graph --at 2026-11-28T18:00:00Z --to s3://bucket/graph-before
  mangrove restore --from backups/ --at 4711 --to graph/";

/// `mangrove backup`.
#[derive(Args, Debug)]
#[command(after_help = BACKUP_HELP)]
pub struct BackupArgs {
    /// The graph: a directory that no other program has open, s3://BUCKET/DIRECTORY, or file:/PATH
    #[arg(long, value_name = "PLACE", env = "MANGROVE_DATA", required_unless_present_any = ["url", "list"])]
    pub data: Option<String>,
    /// Let a running server back its graph up, as in ws://127.0.0.1:8182/gremlin; --to is as the server sees it
    #[arg(long, value_name = "URL", conflicts_with = "list")]
    pub url: Option<String>,
    /// With --url: the traversal source of the server that names the graph [default: g]
    #[arg(long, value_name = "NAME", requires = "url")]
    pub source: Option<String>,
    /// Where the backups are
    #[arg(long, value_name = "PLACE")]
    pub to: String,
    /// Delete all backups but the newest so many
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    pub keep: Option<u64>,
    /// List the backups, and take none
    #[arg(long, conflicts_with = "keep")]
    pub list: bool,
    /// How to print the result
    #[arg(long, value_enum, default_value_t = ResultFormat::Table)]
    pub format: ResultFormat,
}

/// `mangrove restore`.
#[derive(Args, Debug)]
#[command(after_help = RESTORE_HELP)]
pub struct RestoreArgs {
    /// Backups, or a graph: a directory that no other program has open, s3://BUCKET/DIRECTORY, or file:/PATH
    #[arg(long, value_name = "PLACE")]
    pub from: String,
    /// The moment: a time as in 2026-11-28T18:00:00Z, the number of a commit, or newest
    #[arg(long, value_name = "MOMENT", default_value = "newest")]
    pub at: String,
    /// An empty place: a directory, s3://BUCKET/DIRECTORY, or file:/PATH
    #[arg(long, value_name = "PLACE")]
    pub to: String,
}

/// `mangrove checkpoint`.
#[derive(Args, Debug)]
#[command(after_help = CHECKPOINT_HELP)]
pub struct CheckpointArgs {
    /// The graph.
    #[command(flatten)]
    pub target: TargetArgs,
    /// Whether this checkpoint and later ones have the edges of each vertex in a form that other programs can read [default: as
    /// the last checkpoint]
    #[arg(long, value_name = "BOOL")]
    pub topology: Option<bool>,
    /// Write the elements of each label set as a Parquet file
    #[arg(long)]
    pub parquet: bool,
    /// How to print the result
    #[arg(long, value_enum, default_value_t = ResultFormat::Table)]
    pub format: ResultFormat,
}

/// `mangrove verify`.
#[derive(Args, Debug)]
#[command(after_help = VERIFY_HELP)]
pub struct VerifyArgs {
    /// The directory of the database, backups, s3://BUCKET/DIRECTORY, or file:/PATH
    #[arg(long, value_name = "PLACE", env = "MANGROVE_DATA")]
    pub data: String,
}

/// `mangrove index`.
#[derive(Subcommand, Debug)]
pub enum IndexCommand {
    /// Create an index while transactions go on
    Create {
        /// The graph.
        #[command(flatten)]
        target: TargetArgs,
        /// Index edges, not vertices
        #[arg(long)]
        edges: bool,
        /// Index elements with this label only [default: all vertices, or all edges]
        #[arg(long)]
        label: Option<String>,
        /// The property key; several make a composite index, in this order
        #[arg(long = "key", value_name = "KEY", required = true)]
        keys: Vec<String>,
        /// Short for --kind ordered
        #[arg(long, conflicts_with = "kind")]
        ordered: bool,
        /// `hash` finds equal values, `ordered` also ranges [default: hash]
        #[arg(long, value_name = "KIND", value_parser = ["hash", "ordered"])]
        kind: Option<String>,
        /// Refuse a second element with the same values
        #[arg(long)]
        unique: bool,
        /// How to print the index
        #[arg(long, value_enum, default_value_t = ResultFormat::Table)]
        format: ResultFormat,
    },
    /// Drop an index, named by its number or by its label and keys
    Drop {
        /// The graph.
        #[command(flatten)]
        target: TargetArgs,
        /// Its number, as `mangrove index list` shows it
        #[arg(long, conflicts_with_all = ["edges", "label", "keys"], required_unless_present = "keys")]
        id: Option<u32>,
        /// It is an index of edges, not of vertices
        #[arg(long)]
        edges: bool,
        /// Its label
        #[arg(long)]
        label: Option<String>,
        /// Its property key; several for a composite index
        #[arg(long = "key", value_name = "KEY")]
        keys: Vec<String>,
        /// How to print the index
        #[arg(long, value_enum, default_value_t = ResultFormat::Table)]
        format: ResultFormat,
    },
    /// List the indexes with their sizes
    List {
        /// The graph.
        #[command(flatten)]
        target: TargetArgs,
        /// How to print the answer
        #[arg(long, value_enum, default_value_t = ResultFormat::Table)]
        format: ResultFormat,
    },
}

/// The subject of a rule of the schema.
#[derive(Args, Debug)]
pub struct RuleArgs {
    /// The graph.
    #[command(flatten)]
    pub target: TargetArgs,
    /// Vertices, or edges, with this label
    #[arg(long)]
    pub label: String,
    /// The property
    #[arg(long)]
    pub key: String,
    /// Of edges, not of vertices
    #[arg(long)]
    pub edges: bool,
    /// How to print the rule
    #[arg(long, value_enum, default_value_t = ResultFormat::Table)]
    pub format: ResultFormat,
}

/// `mangrove schema`.
#[derive(Subcommand, Debug)]
pub enum SchemaCommand {
    /// Make a rule: vertices (or edges) with a label have a property
    Require(RuleArgs),
    /// Make a rule: the values of a property are of a type
    Type {
        /// The property that the rule is about.
        #[command(flatten)]
        rule: RuleArgs,
        /// The type: string, integer (of any width), long, number, boolean, datetime, uuid and so on
        #[arg(value_name = "TYPE")]
        value_type: String,
    },
    /// Make a rule: edges of a label lead from vertices with some labels to vertices with others
    Ends {
        /// The graph.
        #[command(flatten)]
        target: TargetArgs,
        /// The label of the edges
        #[arg(long)]
        label: String,
        /// Labels that such an edge may join, as in person:company
        #[arg(required = true, value_name = "FROM:TO")]
        pairs: Vec<String>,
        /// How to print the rule
        #[arg(long, value_enum, default_value_t = ResultFormat::Table)]
        format: ResultFormat,
    },
    /// Drop a rule, named by its number
    Drop {
        /// Its number, as `mangrove schema list` shows it
        id: u32,
        /// The graph.
        #[command(flatten)]
        target: TargetArgs,
        /// How to print the rule
        #[arg(long, value_enum, default_value_t = ResultFormat::Table)]
        format: ResultFormat,
    },
    /// List the rules
    List {
        /// The graph.
        #[command(flatten)]
        target: TargetArgs,
        /// How to print the answer
        #[arg(long, value_enum, default_value_t = ResultFormat::Table)]
        format: ResultFormat,
    },
}

/// `mangrove config`.
#[derive(Subcommand, Debug)]
pub enum ConfigCommand {
    /// Show the settings
    Get {
        /// The graph.
        #[command(flatten)]
        target: TargetArgs,
        /// How to print the answer
        #[arg(long, value_enum, default_value_t = ResultFormat::Table)]
        format: ResultFormat,
    },
    /// Change settings of the running database, for all clients
    Set {
        /// The graph.
        #[command(flatten)]
        target: TargetArgs,
        /// A setting and its new value, as in garbage_collection=false or gc_workers=2
        #[arg(required = true, value_name = "NAME=VALUE")]
        settings: Vec<String>,
        /// How to print the answer
        #[arg(long, value_enum, default_value_t = ResultFormat::Table)]
        format: ResultFormat,
    },
}

/// `mangrove inspect`.
#[derive(Subcommand, Debug)]
pub enum InspectCommand {
    /// Show the memory of the graph, by kind of record
    Memory {
        /// The graph.
        #[command(flatten)]
        target: TargetArgs,
        /// How to print it
        #[arg(long, value_enum, default_value_t = ResultFormat::Table)]
        format: ResultFormat,
    },
    /// Show how many elements there are, and how degrees are distributed
    ///
    /// The figures are exact for a snapshot, whose age is in the first row. The first look makes them.
    Statistics {
        /// The graph.
        #[command(flatten)]
        target: TargetArgs,
        /// Only vertices with this label
        #[arg(long)]
        label: Option<String>,
        /// Only edges with this label
        #[arg(long, value_name = "LABEL")]
        edge: Option<String>,
        /// Also how many vertices have degrees from each power of two on, and which values are frequent
        #[arg(long)]
        histogram: bool,
        /// Also which part of the edges leads to vertices of each label
        #[arg(long)]
        ends: bool,
        /// Also how many pairs of edges the vertices with --label have, by the labels of the edges
        #[arg(long, requires = "label")]
        walks: bool,
        /// Also where edges may lead, and whether a vertex has at most one: facts that plans may rely on
        #[arg(long)]
        connections: bool,
        /// Count anew, and do not show what was counted before
        #[arg(long)]
        refresh: bool,
        /// How to print it
        #[arg(long, value_enum, default_value_t = ResultFormat::Table)]
        format: ResultFormat,
    },
    /// Show the state of the log and of the checkpoints
    Durability {
        /// The graph.
        #[command(flatten)]
        target: TargetArgs,
        /// How to print it
        #[arg(long, value_enum, default_value_t = ResultFormat::Table)]
        format: ResultFormat,
    },
    /// Show the commits in the log that are newer than the newest checkpoint
    Log {
        /// The directory of the database, which no other program may have open; backups, s3://BUCKET/DIRECTORY, or file:/PATH
        #[arg(long, value_name = "PLACE", env = "MANGROVE_DATA")]
        data: String,
        /// How to print the answer
        #[arg(long, value_enum, default_value_t = ResultFormat::Table)]
        format: ResultFormat,
    },
    /// Print the newest manifest as JSON: the packs that the graph consists of
    Manifest {
        /// The directory of the database, which no other program may have open; backups, s3://BUCKET/DIRECTORY, or file:/PATH
        #[arg(long, value_name = "PLACE", env = "MANGROVE_DATA")]
        data: String,
    },
    /// List the packs of the newest checkpoint, and how much of each counts
    Packs {
        /// The directory of the database, which no other program may have open; backups, s3://BUCKET/DIRECTORY, or file:/PATH
        #[arg(long, value_name = "PLACE", env = "MANGROVE_DATA")]
        data: String,
        /// List the blocks of the packs instead
        #[arg(long)]
        blocks: bool,
        /// How to print the answer
        #[arg(long, value_enum, default_value_t = ResultFormat::Table)]
        format: ResultFormat,
    },
}
