//! `mangrove export`: writes a graph to files. `remote` does it for a graph of a server.

mod remote;

use std::num::NonZeroUsize;
use std::path::Path;

use indicatif::{ProgressBar, ProgressStyle};
use mangrove::{Compression, Database, Error, ExportFormat, ExportOptions, ExportProgress, ExportReport};

use crate::Failure;
use crate::args::{ExportArgs, Packing};
use crate::clock::Stopwatch;
use crate::connection::graphs;

/// The format that the extension of a file names.
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

/// Writes a graph to files and prints what they hold.
pub fn run(args: &ExportArgs) -> Result<(), Failure> {
    if args.url.is_none() && args.graph.data.is_none() && args.load.is_empty() {
        return Err(Error::invalid(
            "there is no graph to export: name its directory with --data, a running server with --url, or files with \
             --load",
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
    let bar = ExportBar::new();
    let outcome = match &args.url {
        Some(url) => remote::export(url, args, format, &bar),
        None => {
            // Loaded files become part of the graph, which is therefore opened for writing.
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

/// Writes a graph that is open in this process.
fn write(
    database: &Database,
    labels: &[String],
    args: &ExportArgs,
    format: ExportFormat,
    bar: &ExportBar,
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

/// The line with counts, time and rate.
fn summary(report: &ExportReport, path: &Path, seconds: f64) -> String {
    let ExportReport { vertices, edges, .. } = report;
    let rate = if seconds > 0.0 { (vertices + edges) as f64 / seconds } else { 0.0 };
    let path = path.display();
    format!("{vertices} vertices and {edges} edges to {path} in {seconds:.3} s: {rate:.0} a second")
}

/// Lines about what the format could not hold.
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

/// Lines about what plain columns changed.
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

struct ExportBar(ProgressBar);

impl ExportBar {
    fn new() -> Self {
        let style = ProgressStyle::with_template("{spinner} {msg}  {elapsed}")
            .expect("the template is a constant that a test renders");
        ExportBar(ProgressBar::new_spinner().with_style(style))
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
        ExportBar::new().show(ExportProgress { vertices: 1, edges: 2 });
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
