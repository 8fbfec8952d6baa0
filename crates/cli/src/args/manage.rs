//! The command lines of `mangrove index`, `schema`, `config`, `inspect`, `checkpoint` and `verify`: one graph, a server's or one opened
//! here.

use clap::{Args, Subcommand};

use super::{Format, TargetArgs};

pub const INDEX_HELP: &str = "\
Examples:
  mangrove index create --url ws://127.0.0.1:8182/gremlin --label person --key name --unique
  mangrove index create --url ws://127.0.0.1:8182/gremlin --key city --key age --ordered
  mangrove index list --url ws://127.0.0.1:8182/gremlin
  mangrove index drop --url ws://127.0.0.1:8182/gremlin --label person --key name

Scripts do the same by g.call('mangrove.index.create') and its like; g.call() lists them.";

pub const SCHEMA_HELP: &str = "\
A rule holds for everything that is committed from now on, and is refused where something in the
graph breaks it. docs/schema.md says more.

Examples:
  mangrove schema require --url ws://127.0.0.1:8182/gremlin --label person --key email
  mangrove schema type --url ws://127.0.0.1:8182/gremlin --label person --key age integer
  mangrove schema ends --url ws://127.0.0.1:8182/gremlin --label works person:company person:school
  mangrove schema list --url ws://127.0.0.1:8182/gremlin
  mangrove schema drop --url ws://127.0.0.1:8182/gremlin 3

Scripts do the same by g.call('mangrove.schema.require') and its like.";

pub const CONFIG_HELP: &str = "\
Examples:
  mangrove config get --url ws://127.0.0.1:8182/gremlin
  mangrove config set --url ws://127.0.0.1:8182/gremlin gc_workers=2
  mangrove config set --url ws://127.0.0.1:8182/gremlin memory_limit_bytes=4294967296

Settings last as long as the database's process; those that are to be so at every start belong among
those of `mangrove serve` (--gc-workers, or gc_workers in its configuration file). Scripts do the same
by g.call('mangrove.config').";

pub const INSPECT_HELP: &str = "\
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
        /// Answer ranges, too: the same as --kind ordered
        #[arg(long, conflicts_with = "kind")]
        ordered: bool,
        /// What it answers: `hash` equality, `ordered` ranges, too [default: hash]
        #[arg(long, value_name = "KIND", value_parser = ["hash", "ordered"])]
        kind: Option<String>,
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

/// What a rule of the schema is about.
#[derive(Args, Debug)]
pub struct RuleArgs {
    /// Which graph.
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
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,
}

/// `mangrove schema`.
#[derive(Subcommand, Debug)]
pub enum SchemaCommand {
    /// Make a rule: vertices (or edges) with a label have a property
    Require(RuleArgs),
    /// Make a rule: the values of a property are of a type
    Type {
        /// What it is about.
        #[command(flatten)]
        rule: RuleArgs,
        /// The type: string, integer (of any width), long, number, boolean, datetime, uuid and so on
        #[arg(value_name = "TYPE")]
        value_type: String,
    },
    /// Make a rule: edges of a label lead from vertices with some labels to vertices with others
    Ends {
        /// Which graph.
        #[command(flatten)]
        target: TargetArgs,
        /// The label of the edges
        #[arg(long)]
        label: String,
        /// Labels that such an edge may join, as in person:company
        #[arg(required = true, value_name = "FROM:TO")]
        pairs: Vec<String>,
        /// How to print the rule
        #[arg(long, value_enum, default_value_t = Format::Table)]
        format: Format,
    },
    /// Drop the rule with a number
    Drop {
        /// Its number, as `mangrove schema list` shows it
        id: u32,
        /// Which graph.
        #[command(flatten)]
        target: TargetArgs,
        /// How to print the rule
        #[arg(long, value_enum, default_value_t = Format::Table)]
        format: Format,
    },
    /// List the rules
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
