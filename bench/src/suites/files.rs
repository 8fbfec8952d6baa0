//! Loading of files in every format, parsed by one thread and by more.
//!
//! The graph is people with two properties and their edges, exported in each format by the program itself. Beside each
//! load stands the least work of any loader of text: it reads the same bytes and finds their line ends (`bare`).
//! Figures are rows (vertices and edges) a second; those for programs also have megabytes a second.

use std::fs;
use std::path::{Path, PathBuf};

use mangrove::{Database, ExportFormat, ExportOptions, LoadOptions, Result};

use super::Context;
use super::load::{Folder, check_counts, repetitions};
use crate::harness::{measure_prepared, wrong};
use crate::options::{Options, Suite};
use crate::people::{self, PeopleContent, PeopleNames};
use crate::report::{Growing, Row};
use crate::social::{self, KNOWS};

const NAME: &str = Suite::Files.name();

/// The target of the design, for one thread.
const ROWS_PER_SECOND_MIN: f64 = 1.5e6;

const FORMATS: [(&str, &str, ExportFormat); 5] = [
    ("CSV", "csv", ExportFormat::Csv),
    ("Parquet", "parquet", ExportFormat::Parquet),
    ("JSON lines", "graph.jsonl", ExportFormat::JsonLines),
    ("GraphSON", "graph.json", ExportFormat::GraphSonAdjacency),
    ("GraphML", "graph.graphml", ExportFormat::GraphMl),
];

pub(super) fn run(context: &Context<'_>, report: &mut Growing<'_>) -> Result<()> {
    let options = context.options;
    let edges = social::edges(options.scale);
    let graph = Graph { vertices: 1 << options.scale.log_vertices(), edges: edges.len() };
    let folder = Folder::create()?;
    let database = graph.database(&edges)?;
    for (name, file, format) in FORMATS {
        let path = folder.0.join(file);
        let mut how = ExportOptions::new(format);
        how.threads = options.threads.try_into().unwrap_or(how.threads);
        database.export(&path, &how, &mut |_| Ok(()))?;
        graph.measure(options, name, &path, report)?;
    }
    Ok(())
}

struct Graph {
    vertices: usize,
    edges: usize,
}

impl Graph {
    fn database(&self, edges: &[(u32, u32)]) -> Result<Database> {
        let database = Database::in_memory();
        let people = people::batches(&database, self.vertices, PeopleContent::TwoProperties);
        let knows = database.catalog().intern_label_text(KNOWS);
        let mut loader = database.bulk_load()?;
        let vertices = people::load(&mut loader, PeopleNames::of(&database).person, &people)?;
        social::load_edges(&mut loader, knows, &social::ends(&vertices, edges))?;
        loader.finish()?;
        Ok(database)
    }

    fn measure(&self, options: &Options, name: &str, path: &Path, report: &mut Growing<'_>) -> Result<()> {
        let files = files_of(path)?;
        let bytes = files.iter().map(|file| Ok(fs::metadata(file)?.len())).sum::<Result<u64>>()?;
        let rows = (self.vertices + self.edges) as f64;
        let row = |variant: &str, timing: crate::harness::Timing| {
            let rate = timing.median;
            let mut row = Row::rate(NAME, name, variant, timing, rows, "rows/s");
            row.details.push(("throughput".to_owned(), bytes as f64 * 1e3 / rate, "MB/s"));
            row
        };
        let bare = measure_prepared(
            repetitions(options),
            || Ok(()),
            |()| match files.iter().map(|file| count_lines(file)).sum::<Result<u64>>()? {
                0 => Err(wrong(format!("{name} without a line"))),
                _ => Ok(()),
            },
        )?;
        let bare = row("bare", bare);
        let limit = bare.value;
        report.push(bare);
        let mut threads = vec![1, 2, options.threads];
        threads.sort_unstable();
        threads.dedup();
        for threads in threads {
            let mut how = LoadOptions::default();
            how.threads = threads.try_into().unwrap_or(how.threads);
            let loaded = measure_prepared(
                repetitions(options),
                || Ok(Database::in_memory()),
                |database| {
                    database.load(&[path.to_owned()], &how, &mut |_| {})?;
                    check_counts(&database, self.vertices, self.edges)
                },
            )?;
            let row = row(&format!("load, {threads} threads"), loaded).beside(limit);
            report.push(if name == "CSV" && threads == 1 { row.aiming_at(ROWS_PER_SECOND_MIN) } else { row });
        }
        Ok(())
    }
}

/// A file, or the files of a folder.
fn files_of(path: &Path) -> Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    Ok(fs::read_dir(path)?.map(|entry| entry.map(|entry| entry.path())).collect::<std::io::Result<_>>()?)
}

/// Reads a file and finds its line ends, or the bytes of that value if the format is not text.
fn count_lines(path: &Path) -> Result<u64> {
    let bytes = fs::read(path)?;
    Ok(memchr::memchr_iter(b'\n', &bytes).count() as u64)
}
