//! The command line of `mangrove load`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::GraphArgs;
use crate::quantity::Size;

/// `mangrove load`.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub struct LoadArgs {
    /// The files to load, compressed or not. A folder stands for the files in it, `-` for standard input (name its
    /// --format)
    #[arg(required_unless_present_any = ["nodes", "relationships"], value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// CSV files of vertices; the first line of the first file is the header of all. May be given several times
    #[arg(long, value_name = "[LABEL=]FILE,…")]
    pub nodes: Vec<String>,

    /// CSV files of edges; the first line of the first file is the header of all. May be given several times
    #[arg(long, value_name = "[TYPE=]FILE,…")]
    pub relationships: Vec<String>,

    /// With --upsert: load into a graph of a running server, as in ws://127.0.0.1:8182/gremlin. The files are read on
    /// this machine
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,

    /// With --url: the traversal source of the server, which selects the graph [default: g]
    #[arg(long, value_name = "NAME", requires = "url")]
    pub source: Option<String>,

    /// The graph.
    #[command(flatten)]
    pub graph: GraphArgs,

    /// The format of every file [default: by extension]
    #[arg(long, value_enum)]
    pub format: Option<InputFormat>,

    /// The character between the fields of tables [default: the mapping's, or detected]
    #[arg(long, value_name = "CHARACTER")]
    pub delimiter: Option<char>,

    /// The character between the elements of lists in tables [default: the mapping's, or a semicolon]
    #[arg(long, value_name = "CHARACTER")]
    pub array_delimiter: Option<char>,

    /// The number of threads that parse; the result does not depend on it [default: one per processor, at most 8]
    #[arg(long, value_name = "COUNT")]
    pub threads: Option<NonZeroUsize>,

    /// Load into a graph that need not be empty: change the elements that are there already, and add the others
    #[arg(long)]
    pub upsert: bool,

    /// With --upsert: find the vertices of a label by this property, or these, instead of by id; may be given several
    /// times
    #[arg(long = "key", value_name = "LABEL.KEY[,KEY]", requires = "upsert")]
    pub keys: Vec<String>,

    /// With --upsert: distinguish edges of a label between the same vertices by this property, or these; may be given
    /// several times
    #[arg(long = "edge-key", value_name = "LABEL.KEY[,KEY]", requires = "upsert")]
    pub edge_keys: Vec<String>,

    /// Read and check the files, and show how each column is read and what the rows would become. Only --rejects is
    /// written
    #[arg(long, conflicts_with = "queries")]
    pub dry_run: bool,

    /// With --upsert: continue a load that was stopped, by running it again
    #[arg(long)]
    pub resume: bool,

    /// Write rejected rows to this file, each with file, line and reason. The folder FILE.rows has the rows in their
    /// original form: correct them there and load them with --upsert, the same mapping and the same keys
    #[arg(long, value_name = "FILE")]
    pub rejects: Option<PathBuf>,

    /// The number of rows that may be rejected before the load stops; 0: the first one stops it [default: 1000]
    #[arg(long, value_name = "COUNT")]
    pub max_rejects: Option<u64>,

    /// The largest size of an element, which is in memory whole: a line of a table or of JSON, a node or an edge of
    /// GraphML, a vertex of GraphSON [default: 64MiB]
    #[arg(long, value_name = "SIZE")]
    pub max_element_size: Option<Size>,

    /// A Gremlin script to run on the loaded graph; may be given several times
    #[arg(long = "query", value_name = "SCRIPT")]
    pub queries: Vec<String>,
}

const HELP: &str = "\
With --data DIR, the graph is kept in a directory that has no graph yet. A load that is interrupted
leaves the directory empty. Without --data, the graph ends with the program: use this to check files, or
to query them with --query.

With --upsert, the graph need not be empty. Vertices are found by id, by --key, or by the key in their
mapping; edges by id, or by source, label, target and --edge-key, or else by their properties. A load
that could not find its vertices again is refused. Batches are committed one by one, so after an
interruption run the load again. With --url, a running server takes the batches while others use it.

docs/loading.md describes the formats, headers and mappings.

Examples:
  mangrove load people.csv knows.csv --data graph/
  mangrove load people.csv.gz knows.csv.gz
  zcat dump.jsonl.gz | mangrove load - --format jsonl
  mangrove load --nodes=Person=header.csv,part1.csv,part2.csv --relationships=KNOWS=knows.csv
  mangrove load person.parquet knows.parquet --data graph/
  mangrove load ldbc/ --map ldbc-snb --data graph/
  mangrove load changed.csv --upsert --key person.email --data graph/
  mangrove load changed.csv --upsert --url ws://127.0.0.1:8182/gremlin
  mangrove load payments.csv --upsert --edge-key paid.number --data graph/
  mangrove load air-routes/ --map mappings/air-routes.toml --rejects bad-rows.csv
  mangrove load people.csv knows.csv --dry-run
  mangrove load modern.json --query 'g.V().groupCount().by(label)'";

/// The format of files to load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum InputFormat {
    /// A table: CSV, TSV, or with another delimiter
    Csv,
    /// GraphSON, one vertex a line or all in one document
    Graphson,
    /// One vertex or one edge a line
    Jsonl,
    /// GraphML
    Graphml,
    /// A table in Parquet
    Parquet,
}

impl From<InputFormat> for mangrove::LoadFormat {
    fn from(format: InputFormat) -> Self {
        match format {
            InputFormat::Csv => mangrove::LoadFormat::Table,
            InputFormat::Graphson | InputFormat::Jsonl => mangrove::LoadFormat::GraphSon,
            InputFormat::Graphml => mangrove::LoadFormat::GraphMl,
            InputFormat::Parquet => mangrove::LoadFormat::Parquet,
        }
    }
}
