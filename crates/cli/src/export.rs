//! `mangrove export`.

mod remote;

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use mangrove::{Compression, Database, Error, ExportFormat, ExportOptions, ExportProgress, ExportReport};

use crate::args::GraphArgs;
use crate::clock::Stopwatch;
use crate::{Failure, graphs};

/// `mangrove export`.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub struct ExportArgs {
    /// Export from a running server, as in ws://127.0.0.1:8182/gremlin
    #[arg(long, value_name = "URL", env = "MANGROVE_URL", conflicts_with_all = ["load", "data"])]
    pub url: Option<String>,

    /// With --url: which of the server's traversal sources, one of each graph
    #[arg(long, value_name = "NAME", default_value = "g", requires = "url")]
    pub source: String,

    /// Which graph.
    #[command(flatten)]
    pub graph: GraphArgs,

    /// Load a file, or the files of a folder, and export that; may be given several times
    #[arg(long, value_name = "FILE")]
    pub load: Vec<PathBuf>,

    /// What to write [default: by the extension of --output]
    #[arg(long, value_enum)]
    pub format: Option<OutputFormat>,

    /// Only vertices and edges with these labels, and of edges only those between such vertices
    #[arg(long, value_name = "LABEL", value_delimiter = ',')]
    pub labels: Vec<String>,

    /// The file, compressed where its name ends in .gz, .zst or .bz2; for tables a new folder
    #[arg(short, long, value_name = "PATH")]
    pub output: PathBuf,

    /// How the files of a folder are compressed; of Parquet, its pages [default: none; of Parquet, snappy]
    #[arg(long, value_enum)]
    pub compress: Option<Packing>,

    /// With --format parquet: tables for SQL, with one column a property, of the widest type of its values. They may not load as
    /// an equal graph
    #[arg(long)]
    pub plain: bool,

    /// Files of a folder written at once [default: one a processor]
    #[arg(long, value_name = "COUNT")]
    pub threads: Option<NonZeroUsize>,
}

const HELP: &str = "\
An export is one snapshot of the graph, and what it writes `mangrove load` reads: docs/loading.md says what
each format keeps. What a format has no place for is counted and told. From a server, JSON lines are written as
the elements come; other formats are made of a copy of the graph in memory (--memory-limit).

Examples:
  mangrove export --data graph/ --format csv -o graph-csv/ --compress gzip
  mangrove export --data graph/ --format parquet -o graph-parquet/
  mangrove export --data graph/ --format parquet --plain -o graph-sql/
  mangrove export --data graph/ -o graph.graphml.gz
  mangrove export --data graph/ --labels person,knows -o friends.jsonl
  mangrove export --url ws://127.0.0.1:8182/gremlin -o graph.jsonl.zst
  mangrove export --load modern.json --format csv-neo4j -o modern/";

/// A format of files.
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

/// How files are compressed.
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

/// The format that the name of a file stands for.
fn format_of(path: &Path) -> Result<ExportFormat, Error> {
    let path = if Compression::of(path).is_some() { path.with_extension("") } else { path.to_owned() };
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default().to_ascii_lowercase();
    Ok(match extension.as_str() {
        "graphml" | "xml" => ExportFormat::GraphMl,
        "json" | "graphson" => ExportFormat::GraphSonAdjacency,
        "jsonl" | "ndjson" => ExportFormat::JsonLines,
        "csv" | "tsv" | "parquet" => {
            let format = if extension == "parquet" { "parquet" } else { "csv" };
            let message = format!(
                "{}: tables are a folder of files, one for each label: name a folder, and --format {format}",
                path.display()
            );
            return Err(Error::invalid(message));
        }
        _ => {
            let message =
                format!("{}: the extension names no format of one file; name one with --format", path.display());
            return Err(Error::invalid(message));
        }
    })
}

/// Writes a graph to files and says what they hold.
pub fn run(args: &ExportArgs) -> Result<(), Failure> {
    if args.url.is_none() && args.graph.data.is_none() && args.load.is_empty() {
        return Err(Error::invalid(
            "there is no graph to export: name its directory with --data, a running server with --url, or files with --load",
        )
        .into());
    }
    let format = args.format.map_or_else(|| format_of(&args.output), |format| Ok(format.into()))?;
    if args.compress.is_some() && !format.is_tables() {
        return Err(Error::invalid("one file is compressed by its name: let --output end in .gz, .zst or .bz2").into());
    }
    if args.plain && format != ExportFormat::Parquet {
        return Err(Error::invalid("--plain is for --format parquet only: other formats have no plain columns").into());
    }
    let stopwatch = Stopwatch::start();
    let bar = Bar::new();
    let outcome = match &args.url {
        Some(url) => remote::export(url, args, format, &bar),
        None => {
            // Files that are loaded as well become part of the graph in the directory.
            let missing = if args.load.is_empty() { graphs::Missing::ReadOnly } else { graphs::Missing::Refuse };
            let database = graphs::open(args.graph.data.as_deref(), args.graph.memory_limit, missing)?;
            if !args.load.is_empty() {
                graphs::load(&database, &args.load, &graphs::load_options(args.graph.map.as_deref())?)?;
            }
            write(&database, &args.labels, args, format, &bar)
        }
    };
    bar.0.finish_and_clear();
    let report = outcome?;
    println!("{}", summary(&report, &args.output, stopwatch.elapsed().as_secs_f64()));
    for loss in losses(&report).into_iter().chain(plain_changes(&report)) {
        eprintln!("{loss}");
    }
    Ok(())
}

/// Writes a graph that is open here.
fn write(
    database: &Database,
    labels: &[String],
    args: &ExportArgs,
    format: ExportFormat,
    bar: &Bar,
) -> Result<ExportReport, Error> {
    let mut options = ExportOptions::new(format);
    options.labels = labels.iter().map(|label| label.as_str().into()).collect();
    options.compression = args.compress.map(|packing| match packing {
        Packing::Gzip => Compression::Gzip,
        Packing::Zstd => Compression::Zstd,
        Packing::Bzip2 => Compression::Bzip2,
    });
    options.plain = args.plain;
    options.threads = args.threads.or_else(|| std::thread::available_parallelism().ok()).unwrap_or(NonZeroUsize::MIN);
    database.export(&args.output, &options, &mut |progress| {
        bar.show(progress);
        Ok(())
    })
}

/// How much in how long.
fn summary(report: &ExportReport, path: &Path, seconds: f64) -> String {
    let ExportReport { vertices, edges, .. } = report;
    let rate = if seconds > 0.0 { (vertices + edges) as f64 / seconds } else { 0.0 };
    let path = path.display();
    format!("{vertices} vertices and {edges} edges to {path} in {seconds:.3} s: {rate:.0} a second")
}

/// What the format had no place for.
fn losses(report: &ExportReport) -> Vec<String> {
    let losses = report.losses;
    let counts = [
        (losses.meta, "values without their meta-properties, which this format has no place for"),
        (losses.ids, "ids that load as ids of another type, because this format has no types of ids"),
        (losses.values, "values that load as values of another type, because this format has no such type"),
    ];
    let lost = counts.into_iter().filter(|(count, _)| *count > 0);
    lost.map(|(count, what)| format!("lost: {count} {what}; graphson and jsonl keep everything")).collect()
}

/// What plain columns changed.
fn plain_changes(report: &ExportReport) -> Vec<String> {
    let plain = report.losses.plain;
    let counts = [
        (plain.widened, "numbers are of a wider type, with the same values"),
        (plain.offsets, "times are in UTC without the offset they had"),
        (plain.texts, "values are text, because plain columns have no type for them"),
        (plain.lists, "single values are lists of one, because other elements have lists"),
        (plain.names, "columns are named otherwise than their properties"),
    ];
    let changed = counts.into_iter().filter(|(count, _)| *count > 0);
    changed.map(|(count, what)| format!("plain: {count} {what}")).collect()
}

struct Bar(ProgressBar);

impl Bar {
    fn new() -> Self {
        let style = ProgressStyle::with_template("{spinner} {msg}  {elapsed}")
            .expect("the template is a constant that a test renders");
        Bar(ProgressBar::new_spinner().with_style(style))
    }

    fn show(&self, progress: ExportProgress) {
        if self.0.is_hidden() {
            return;
        }
        let ExportProgress { vertices, edges } = progress;
        let rate = (vertices + edges) as f64 / self.0.elapsed().as_secs_f64().max(0.001);
        self.0.set_message(format!("{vertices} vertices and {edges} edges: {rate:.0} a second"));
        self.0.tick();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_has_a_valid_template() {
        Bar::new().show(ExportProgress { vertices: 1, edges: 2 });
    }

    #[test]
    fn extensions_name_formats_below_how_a_file_is_packed() {
        assert_eq!(format_of(Path::new("a.xml.gz")).unwrap(), ExportFormat::GraphMl);
        assert_eq!(format_of(Path::new("a.json")).unwrap(), ExportFormat::GraphSonAdjacency);
        assert_eq!(format_of(Path::new("a.jsonl.zst")).unwrap(), ExportFormat::JsonLines);
        assert!(format_of(Path::new("a/b")).unwrap_err().message().contains("--format"));
    }

    #[test]
    fn losses_are_told_with_the_way_out() {
        let mut report = ExportReport::default();
        assert!(losses(&report).is_empty());
        report.losses.meta = 3;
        assert!(losses(&report)[0].starts_with("lost: 3 values") && losses(&report)[0].contains("jsonl"));
    }
}
