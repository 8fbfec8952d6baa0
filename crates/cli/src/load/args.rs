//! The command line of `mangrove load`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::args::GraphArgs;
use crate::quantity::Size;

/// `mangrove load`.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub struct LoadArgs {
    /// The files, compressed or not; a folder stands for the files in it, `-` for standard input (name its --format)
    #[arg(required_unless_present_any = ["nodes", "relationships"], value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// CSV files of vertices, of which the first line of the first is the header of all; may be given several times
    #[arg(long, value_name = "[LABEL=]FILE,…")]
    pub nodes: Vec<String>,

    /// CSV files of edges, likewise
    #[arg(long, value_name = "[TYPE=]FILE,…")]
    pub relationships: Vec<String>,

    /// With --upsert: load into the graph of a running server, as in ws://127.0.0.1:8182/gremlin. The files are read here
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,

    /// With --url: which of the server's traversal sources `g` is, one of each graph [default: g]
    #[arg(long, value_name = "NAME", requires = "url")]
    pub source: Option<String>,

    /// Which graph.
    #[command(flatten)]
    pub graph: GraphArgs,

    /// The format of every file [default: by extension]
    #[arg(long, value_enum)]
    pub format: Option<InputFormat>,

    /// Between the fields of tables [default: the mapping's, or detected]
    #[arg(long, value_name = "CHARACTER")]
    pub delimiter: Option<char>,

    /// Between the elements of arrays in tables [default: the mapping's, or a semicolon]
    #[arg(long, value_name = "CHARACTER")]
    pub array_delimiter: Option<char>,

    /// Threads that parse; what is loaded does not depend on it [default: one a processor, at most 8]
    #[arg(long, value_name = "COUNT")]
    pub threads: Option<NonZeroUsize>,

    /// Load into a graph that need not be empty: what is there already is replaced
    #[arg(long)]
    pub upsert: bool,

    /// With --upsert: find the vertices of a label by this property (or these) instead of by id; may be given several times
    #[arg(long = "key", value_name = "LABEL.KEY[,KEY]", requires = "upsert")]
    pub keys: Vec<String>,

    /// With --upsert: tell edges of a label between the same vertices apart by this property (or these); may be given several
    /// times
    #[arg(long = "edge-key", value_name = "LABEL.KEY[,KEY]", requires = "upsert")]
    pub edge_keys: Vec<String>,

    /// Read and check the files, and say how each column is read and what the rows would be; write nothing but --rejects
    #[arg(long, conflicts_with = "queries")]
    pub dry_run: bool,

    /// With --upsert: go on with a load that was stopped, which is to run it again
    #[arg(long)]
    pub resume: bool,

    /// Write rejected rows to this file, with their place and the reason; the rows as they were stand in the folder
    /// FILE.rows, to be mended and loaded with --upsert, the same mapping and the same keys
    #[arg(long, value_name = "FILE")]
    pub rejects: Option<PathBuf>,

    /// How many rows may be rejected before the load stops [default: 1000]
    #[arg(long, value_name = "COUNT")]
    pub max_rejects: Option<u64>,

    /// How long an element of a file may be, which is in memory whole: a line of a table or of JSON, a node or an edge of
    /// GraphML, a vertex of GraphSON [default: 64MiB]
    #[arg(long, value_name = "SIZE")]
    pub max_element_size: Option<Size>,

    /// A Gremlin script to run on the graph afterwards; may be given several times
    #[arg(long = "query", value_name = "SCRIPT")]
    pub queries: Vec<String>,
}

const HELP: &str = "\
With --data the graph is kept in a directory, which must have none yet; a load that is interrupted
leaves it empty. With --upsert there may be a graph: vertices are found by id (or by --key, or the key in
their mapping), edges by id, by source, label, target and --edge-key, or else by what they hold. What could not be found
again is refused. Batches are committed one by one, and a load that was interrupted is run again.
With --url a running server's graph takes the batches while others use it.
Without --data, what is loaded is gone when the program ends: then `load` checks files and
says what became of their rows.

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

/// What a file to be loaded is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum InputFormat {
    /// A table: CSV, TSV and their kin
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

impl From<InputFormat> for mangrove::Format {
    fn from(format: InputFormat) -> Self {
        match format {
            InputFormat::Csv => mangrove::Format::Table,
            InputFormat::Graphson | InputFormat::Jsonl => mangrove::Format::GraphSon,
            InputFormat::Graphml => mangrove::Format::GraphMl,
            InputFormat::Parquet => mangrove::Format::Parquet,
        }
    }
}
