//! The command line of `mangrove export`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use mangrove::ExportFormat;

use super::GraphArgs;

/// `mangrove export`.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub struct ExportArgs {
    /// Export a graph of a running server, as in ws://127.0.0.1:8182/gremlin
    #[arg(long, value_name = "URL", env = "MANGROVE_URL", conflicts_with_all = ["load", "data"])]
    pub url: Option<String>,

    /// With --url: the traversal source of the server, which selects the graph
    #[arg(long, value_name = "NAME", default_value = "g", requires = "url")]
    pub source: String,

    /// The graph.
    #[command(flatten)]
    pub graph: GraphArgs,

    /// Load a file, or the files of a folder, and export that; may be given several times
    #[arg(long, value_name = "FILE")]
    pub load: Vec<PathBuf>,

    /// The format [default: by the extension of --output]
    #[arg(long, value_enum)]
    pub format: Option<OutputFormat>,

    /// Export only elements with these labels, and of edges only those between such vertices
    #[arg(long, value_name = "LABEL", value_delimiter = ',')]
    pub labels: Vec<String>,

    /// The file to write, compressed if its name ends in .gz, .zst or .bz2. For tables, a new folder
    #[arg(short, long, value_name = "PATH")]
    pub output: PathBuf,

    /// Compress the files of a folder, or the pages of Parquet files [default: none; for Parquet, snappy]
    #[arg(long, value_enum)]
    pub compress: Option<Packing>,

    /// With --format parquet: write tables for SQL, with one column a property, of the widest type of its values. They
    /// may not load as an equal graph
    #[arg(long)]
    pub plain: bool,

    /// The number of files of a folder that are written at once [default: one per processor]
    #[arg(long, value_name = "COUNT")]
    pub threads: Option<NonZeroUsize>,
}

const HELP: &str = "\
An export is one snapshot of the graph, and `mangrove load` reads its files. docs/loading.md says what each
format keeps; what it cannot keep is counted and reported. From a server, JSON lines are written as the
elements arrive. Other formats need a copy of the graph in memory (--memory-limit bounds it).

Examples:
  mangrove export --data graph/ --format csv -o graph-csv/ --compress gzip
  mangrove export --data graph/ --format parquet -o graph-parquet/
  mangrove export --data graph/ --format parquet --plain -o graph-sql/
  mangrove export --data graph/ -o graph.graphml.gz
  mangrove export --data graph/ --labels person,knows -o friends.jsonl
  mangrove export --url ws://127.0.0.1:8182/gremlin -o graph.jsonl.zst
  mangrove export --load modern.json --format csv-neo4j -o modern/";

/// The format of exported files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// A folder of CSV files, one a label, with typed headers
    Csv,
    /// A folder of CSV files as Neo4j's importer takes them
    CsvNeo4j,
    /// A folder of Parquet files, one a label
    Parquet,
    /// GraphML, as TinkerPop writes it
    Graphml,
    /// GraphSON 3, one JSON document with all vertices
    Graphson,
    /// GraphSON 3, one vertex a line with its edges, as TinkerPop's io() writes it
    GraphsonAdjacency,
    /// One vertex or one edge a line
    Jsonl,
}

/// The compression of exported files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Packing {
    /// .gz
    Gzip,
    /// .zst
    Zstd,
    /// .bz2
    Bzip2,
}

impl From<OutputFormat> for ExportFormat {
    fn from(format: OutputFormat) -> Self {
        match format {
            OutputFormat::Csv => ExportFormat::Csv,
            OutputFormat::CsvNeo4j => ExportFormat::CsvNeo4j,
            OutputFormat::Parquet => ExportFormat::Parquet,
            OutputFormat::Graphml => ExportFormat::GraphMl,
            OutputFormat::Graphson => ExportFormat::GraphSon,
            OutputFormat::GraphsonAdjacency => ExportFormat::GraphSonAdjacency,
            OutputFormat::Jsonl => ExportFormat::JsonLines,
        }
    }
}
