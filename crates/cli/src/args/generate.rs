//! The command line of `mangrove generate`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::quantity::Size;

/// `mangrove generate`.
#[derive(Args, Debug)]
#[command(after_help = GENERATE_HELP)]
pub struct GenerateArgs {
    /// The generator.
    #[command(subcommand)]
    pub kind: GeneratorKind,
}

const GENERATE_HELP: &str = "\
The same options and the same seed make the same graph, with any number of threads. Without --out and
--data the graph is made in memory, where --query can query it. With --out it is written to files that
`mangrove load` and `mangrove serve` read. The program prints the numbers of vertices (V), edges (E),
their property values (VP, EP), and the bytes of these values. docs/generators.md describes the graphs.

Examples:
  mangrove generate kronecker --scale 16
  mangrove generate kronecker --scale 18 --edge-factor 8 --labels 40 --undirected --check
  mangrove generate kronecker --scale 12 --schema shop.toml --out shop/
  mangrove generate kronecker --scale 16 --data graph/
  mangrove generate social --scale-factor 0.1 --out network/
  mangrove generate knowledge --entities 5000 --query 'g.V().limit(1).valueMap()'
  mangrove load shop/ --map shop/mapping.toml --query 'g.V().groupCount().by(label)'";

/// The generators.
#[derive(Subcommand, Debug)]
pub enum GeneratorKind {
    /// A Kronecker graph with the degree skew of the Graph500, and with labels and properties
    Kronecker(KroneckerArgs),
    /// A social network with the labels, dates and correlations of LDBC's
    Social(SocialArgs),
    /// A graph without a schema, like those extracted from encyclopedias
    Knowledge(KnowledgeArgs),
}

/// Options of all generators.
#[derive(Args, Debug)]
pub struct CommonArgs {
    /// The seed of everything random
    #[arg(long, default_value_t = 1)]
    pub seed: u64,

    /// The number of threads that generate [default: one per processor]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,

    /// Write the graph to files in this folder, which is created or must be empty
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,

    /// Make the graph as a database in this directory
    #[arg(long, value_name = "DIR", env = "MANGROVE_DATA", conflicts_with = "out")]
    pub data: Option<String>,

    /// Count the elements in the finished database, or in a database that loads the files, and compare them with the
    /// generator's counts
    #[arg(long)]
    pub check: bool,

    /// A Gremlin script to run on the graph in memory; may be given several times
    #[arg(long = "query", value_name = "SCRIPT", conflicts_with = "out")]
    pub queries: Vec<String>,

    /// Stop with an error when the graph uses this much memory, as in 512MB or 4GiB
    #[arg(long, value_name = "SIZE", env = "MANGROVE_MEMORY_LIMIT")]
    pub memory_limit: Option<Size>,
}

/// `mangrove generate kronecker`.
#[derive(Args, Debug)]
#[command(after_help = KRONECKER_HELP)]
pub struct KroneckerArgs {
    /// The number of vertices as a power of two: 16 is 65,536 vertices
    #[arg(long, default_value_t = 16)]
    pub scale: u32,

    /// Edges per vertex
    #[arg(long, value_name = "COUNT", default_value_t = 16)]
    pub edge_factor: u64,

    /// The number of labels: half of them, rounded up, for vertices, the others for edges
    #[arg(long, value_name = "COUNT", default_value_t = 20, conflicts_with = "schema")]
    pub labels: usize,

    /// The number of property keys
    #[arg(long, value_name = "COUNT", default_value_t = 13, conflicts_with = "schema")]
    pub ptypes: usize,

    /// A TOML file with labels, their shares, and properties with types and sizes (see below and docs/generators.md)
    #[arg(long, value_name = "FILE")]
    pub schema: Option<PathBuf>,

    /// Make each edge in both directions
    #[arg(long)]
    pub undirected: bool,

    /// Options of all generators.
    #[command(flatten)]
    pub common: CommonArgs,
}

const KRONECKER_HELP: &str = "\
Examples:
  mangrove generate kronecker --scale 16 --query 'g.E().groupCount().by(label)'
  mangrove generate kronecker --scale 20 --threads 4 --check
  mangrove generate kronecker --scale 12 --schema shop.toml --seed 7 --out shop/

A schema:
  [[property]]
  key = \"name\"
  type = \"string\"            # bool, int, long, double or string
  size = 16                  # bytes, of strings
  [[vertex]]
  label = \"Person\"
  share = 80                 # percent
  properties = [\"name\"]
  [[vertex]]
  label = \"Company\"
  share = 20
  [[edge]]                   # the first that fits the ends
  label = \"worksAt\"
  from = \"Person\"
  to = \"Company\"
  [[edge]]
  label = \"knows\"";

/// `mangrove generate social`.
#[derive(Args, Debug)]
#[command(after_help = SOCIAL_HELP)]
pub struct SocialArgs {
    /// The number of persons
    #[arg(long, value_name = "COUNT", default_value_t = 1528, conflicts_with = "scale_factor")]
    pub persons: u64,

    /// As many persons as LDBC's generator makes at this scale factor: 0.1 has 1,528, 1 has 9,892
    #[arg(long, value_name = "FACTOR")]
    pub scale_factor: Option<f64>,

    /// Options of all generators.
    #[command(flatten)]
    pub common: CommonArgs,
}

const SOCIAL_HELP: &str = "\
Labels, property keys and files have the names of LDBC's. Ids are the property `id`; dates are
milliseconds since 1970. This is not LDBC's generator, and results on its graphs are not LDBC results.

Examples:
  mangrove generate social --persons 500 --query \"g.V().hasLabel('Person').limit(3).valueMap()\"
  mangrove generate social --scale-factor 0.1 --data graph/
  mangrove generate social --scale-factor 1 --threads 4 --out network/
  mangrove serve --load network/ --map network/mapping.toml";

/// `mangrove generate knowledge`.
#[derive(Args, Debug)]
#[command(after_help = KNOWLEDGE_HELP)]
pub struct KnowledgeArgs {
    /// The number of vertices
    #[arg(long, value_name = "COUNT", default_value_t = 10_000)]
    pub entities: u64,

    /// The number of property keys to choose from
    #[arg(long, value_name = "COUNT", default_value_t = 5_000)]
    pub keys: usize,

    /// Options of all generators.
    #[command(flatten)]
    pub common: CommonArgs,
}

const KNOWLEDGE_HELP: &str = "\
Files are GraphSON, because a table cannot hold free keys with values of several types.

Examples:
  mangrove generate knowledge --query 'g.V().properties().key().groupCount().order(local).by(values)'
  mangrove generate knowledge --entities 100000 --seed 7 --out encyclopedia/
  mangrove serve --load encyclopedia/graph.json";
