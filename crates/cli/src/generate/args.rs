//! The command line of `mangrove generate`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::quantity::Size;

/// `mangrove generate`.
#[derive(Args, Debug)]
#[command(after_help = GENERATE_HELP)]
pub struct GenerateArgs {
    /// Which kind of graph.
    #[command(subcommand)]
    pub kind: Kind,
}

const GENERATE_HELP: &str = "\
One seed makes one graph, with any number of threads. Without --out the graph is made in memory,
where --query asks it; with --out it is written to files that `mangrove load` and `mangrove serve`
read. Printed are the numbers of vertices (V), edges (E), their property values (VP, EP), and the
bytes of these values.

Examples:
  mangrove generate kronecker --scale 16
  mangrove generate kronecker --scale 18 --edge-factor 8 --labels 40 --undirected --check
  mangrove generate kronecker --scale 12 --schema shop.toml --out shop/
  mangrove generate kronecker --scale 16 --data graph/
  mangrove generate social --scale-factor 0.1 --out network/
  mangrove generate knowledge --entities 5000 --query 'g.V().limit(1).valueMap()'
  mangrove load shop/ --map shop/mapping.toml --query 'g.V().groupCount().by(label)'";

/// Which kind of graph.
#[derive(Subcommand, Debug)]
pub enum Kind {
    /// A Kronecker graph with the Graph500's skew, and labels and properties as asked for
    Kronecker(KroneckerArgs),
    /// A social network with the vertex and edge kinds, dates and correlations of LDBC's
    Social(SocialArgs),
    /// A graph without a schema, like the ones extracted from encyclopedias
    Knowledge(KnowledgeArgs),
}

/// What all kinds are told.
#[derive(Args, Debug)]
pub struct CommonArgs {
    /// What determines everything random
    #[arg(long, default_value_t = 1)]
    pub seed: u64,

    /// How many threads generate [default: as many as there are processors]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,

    /// Write files to this folder, which is made or must be empty, instead of making the graph in memory
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,

    /// Make the graph in this directory, as a database that lasts, instead of in memory
    #[arg(long, value_name = "DIR", env = "MANGROVE_DATA", conflicts_with = "out")]
    pub data: Option<String>,

    /// Count again what the database has: what it was given, or what it loads from the files
    #[arg(long)]
    pub check: bool,

    /// A Gremlin script to run on the graph in memory; may be given several times
    #[arg(long = "query", value_name = "SCRIPT", conflicts_with = "out")]
    pub queries: Vec<String>,

    /// Give up when the graph uses this much memory, as in 512MB or 4GiB
    #[arg(long, value_name = "SIZE", env = "MANGROVE_MEMORY_LIMIT")]
    pub memory_limit: Option<Size>,
}

/// `mangrove generate kronecker`.
#[derive(Args, Debug)]
#[command(after_help = KRONECKER_HELP)]
pub struct KroneckerArgs {
    /// The logarithm, base two, of the number of vertices
    #[arg(long, default_value_t = 16)]
    pub scale: u32,

    /// Edges a vertex
    #[arg(long, value_name = "COUNT", default_value_t = 16)]
    pub edge_factor: u64,

    /// How many labels there are: the larger half of vertices, the others of edges
    #[arg(long, value_name = "COUNT", default_value_t = 20, conflicts_with = "schema")]
    pub labels: usize,

    /// How many property types there are
    #[arg(long, value_name = "COUNT", default_value_t = 13, conflicts_with = "schema")]
    pub ptypes: usize,

    /// Labels, their shares, and properties with types and sizes, in TOML (see docs/generators.md)
    #[arg(long, value_name = "FILE")]
    pub schema: Option<PathBuf>,

    /// Make each edge in both directions
    #[arg(long)]
    pub undirected: bool,

    /// What all kinds are told.
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
    /// How many persons
    #[arg(long, value_name = "COUNT", default_value_t = 1528, conflicts_with = "scale_factor")]
    pub persons: u64,

    /// As many persons as LDBC's generator makes for this scale factor: 0.1 has 1,528, 1 has 9,892
    #[arg(long, value_name = "FACTOR")]
    pub scale_factor: Option<f64>,

    /// What all kinds are told.
    #[command(flatten)]
    pub common: CommonArgs,
}

const SOCIAL_HELP: &str = "\
Labels, property keys and files have LDBC's names; ids are the property `id`, dates are
milliseconds. It is not LDBC's generator, and results on its graphs are not LDBC results.

Examples:
  mangrove generate social --persons 500 --query \"g.V().hasLabel('Person').limit(3).valueMap()\"
  mangrove generate kronecker --scale 16 --data graph/
  mangrove generate social --scale-factor 1 --threads 4 --out network/
  mangrove serve --load network/ --map network/mapping.toml";

/// `mangrove generate knowledge`.
#[derive(Args, Debug)]
#[command(after_help = KNOWLEDGE_HELP)]
pub struct KnowledgeArgs {
    /// How many vertices
    #[arg(long, value_name = "COUNT", default_value_t = 10_000)]
    pub entities: u64,

    /// How many property keys there are to choose from
    #[arg(long, value_name = "COUNT", default_value_t = 5_000)]
    pub keys: usize,

    /// What all kinds are told.
    #[command(flatten)]
    pub common: CommonArgs,
}

const KNOWLEDGE_HELP: &str = "\
Files are GraphSON, since no table fits free keys and values of several types.

Examples:
  mangrove generate knowledge --query 'g.V().properties().key().groupCount().order(local).by(values)'
  mangrove generate knowledge --entities 100000 --seed 7 --out encyclopedia/
  mangrove serve --load encyclopedia/graph.json";
