//! Bulk load of people and their edges, from memory and from CSV files; and export to CSV and JSON lines.
//!
//! Beside the load from memory stands the construction of two static graphs from the same edges, one for each
//! direction. Beside the CSV files stands a loop that splits the same bytes at line ends and commas and parses their
//! integers.

use std::fs;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use mangrove::{Database, ExportFormat, ExportOptions, GraphView, LabelFilter, LoadOptions, Result, Share};

use super::Context;
use crate::csr::Csr;
use crate::harness::{measure_prepared, wrong};
use crate::options::{Options, Suite};
use crate::people::{self, PeopleContent, PeopleNames};
use crate::report::{Growing, Row};
use crate::social::{self, KNOWS};

const NAME: &str = Suite::Load.name();

/// The target of the design for edges from memory.
const EDGES_PER_SECOND_MIN: f64 = 5e6;
/// The target of the design for rows of CSV files.
const ROWS_PER_SECOND_MIN: f64 = 1.5e6;

pub(super) fn run(context: &Context<'_>, report: &mut Growing<'_>) -> Result<()> {
    let edges = social::edges(context.options.scale);
    let count = 1usize << context.options.scale.log_vertices();
    from_memory(context.options, count, &edges, report)?;
    from_csv(context.options, count, &edges, report)
}

/// The number of loads of a case.
pub(super) fn repetitions(options: &Options) -> usize {
    // A load takes seconds, where other operations take microseconds.
    if options.seconds == 0.0 { 1 } else { 3 }
}

fn from_memory(options: &Options, count: usize, edges: &[(u32, u32)], report: &mut Growing<'_>) -> Result<()> {
    let bare = measure_prepared(
        repetitions(options),
        || Ok(()),
        |()| {
            let incoming: Vec<_> = edges.iter().map(|&(source, target)| (target, source)).collect();
            let graphs = (Csr::new(count, edges), Csr::new(count, &incoming));
            if graphs.0.edge_count() != graphs.1.edge_count() {
                return Err(wrong("an edge has two ends".to_owned()));
            }
            Ok(())
        },
    )?;
    let vertices = measure_prepared(
        repetitions(options),
        || {
            let database = Database::in_memory();
            let batches = people::batches(&database, count, PeopleContent::TwoProperties);
            Ok((database, batches))
        },
        |(database, batches)| {
            let mut loader = database.bulk_load()?;
            people::load(&mut loader, PeopleNames::of(&database).person, &batches)?;
            loader.finish()?;
            check_counts(&database, count, 0)
        },
    )?;
    report.push(Row::rate(NAME, "vertices, id, 2 properties", "typed", vertices, count as f64, "vertices/s"));

    let edge_count = edges.len() as f64;
    let bare_row = Row::rate(NAME, "edges", "bare", bare, edge_count, "edges/s");
    let limit = bare_row.value;
    report.push(bare_row);
    let typed = measure_prepared(
        repetitions(options),
        || {
            let database = Database::in_memory();
            let knows = database.catalog().intern_label_text(KNOWS);
            let mut loader = database.bulk_load()?;
            let people = people::batches(&database, count, PeopleContent::Ids);
            let vertices = people::load(&mut loader, PeopleNames::of(&database).person, &people)?;
            let ends = social::ends(&vertices, edges);
            Ok((database, loader, knows, ends))
        },
        |(database, mut loader, knows, ends)| {
            social::load_edges(&mut loader, knows, &ends)?;
            loader.finish()?;
            check_counts(&database, count, edges.len())
        },
    )?;
    let row = Row::rate(NAME, "edges", "typed", typed, edge_count, "edges/s");
    report.push(row.beside(limit).aiming_at(EDGES_PER_SECOND_MIN));
    Ok(())
}

fn from_csv(options: &Options, count: usize, edges: &[(u32, u32)], report: &mut Growing<'_>) -> Result<()> {
    let folder = Folder::create()?;
    let files = write_csv(&folder.0, count, edges)?;
    let rows = (count + edges.len()) as f64;
    let expected = edges.iter().map(|&(source, target)| u64::from(source) + u64::from(target)).sum::<u64>();
    let bare = measure_prepared(
        repetitions(options),
        || Ok(()),
        |()| match sum_of_fields(&files[1])? {
            sum if sum == expected => sum_of_fields(&files[0]).map(drop),
            sum => Err(wrong(format!("the files of edges add up to {sum}, not to {expected}"))),
        },
    )?;
    let bare = Row::rate(NAME, "CSV", "bare", bare, rows, "rows/s");
    let limit = bare.value;
    report.push(bare);
    let loaded = measure_prepared(
        repetitions(options),
        || Ok(Database::in_memory()),
        |database| {
            database.load(&files, &LoadOptions::default(), &mut |_| {})?;
            check_counts(&database, count, edges.len())
        },
    )?;
    report.push(Row::rate(NAME, "CSV", "load", loaded, rows, "rows/s").beside(limit).aiming_at(ROWS_PER_SECOND_MIN));
    let database = Database::in_memory();
    database.load(&files, &LoadOptions::default(), &mut |_| {})?;
    for (format, name) in [(ExportFormat::Csv, "CSV"), (ExportFormat::JsonLines, "JSON lines")] {
        let exported = measure_prepared(repetitions(options), Folder::create, |target| {
            let mut how = ExportOptions::new(format);
            how.threads = options.threads.try_into().unwrap_or(how.threads);
            let report = database.export(&target.0.join("graph"), &how, &mut |_| Ok(()))?;
            match (report.vertices, report.edges) == (count as u64, edges.len() as u64) {
                true => Ok(()),
                false => Err(wrong(format!("{report:?} of {count} vertices and {} edges", edges.len()))),
            }
        })?;
        report.push(Row::rate(NAME, name, "export", exported, rows, "rows/s"));
    }
    Ok(())
}

/// Returns an error if the graph has other numbers of vertices and edges than these.
pub(super) fn check_counts(database: &Database, vertices: usize, edges: usize) -> Result<()> {
    let transaction = database.begin_read()?;
    let view: &dyn GraphView = transaction.view();
    let found = (view.count_vertices(&LabelFilter::Any, Share::ALL)?, view.count_edges(&LabelFilter::Any, Share::ALL)?);
    if found != (vertices as u64, edges as u64) {
        return Err(wrong(format!("{vertices} vertices and {edges} edges were loaded and {found:?} found")));
    }
    Ok(())
}

/// A folder that is removed when this is dropped.
pub(super) struct Folder(pub(super) PathBuf);

impl Folder {
    pub(super) fn create() -> Result<Self> {
        // A number of its own, because a process may run the suite several times at once.
        static FOLDERS: AtomicU32 = AtomicU32::new(0);
        let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("mangrove-bench-{}-{number}", std::process::id()));
        fs::create_dir_all(&path)?;
        Ok(Folder(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // If this fails, the folder stays until the system clears its temporary files.
        drop(fs::remove_dir_all(&self.0));
    }
}

/// Writes the people and their edges as two CSV files. Returns the path of the people, then that of the edges.
fn write_csv(folder: &Path, count: usize, edges: &[(u32, u32)]) -> Result<Vec<PathBuf>> {
    let (people, knows) = (folder.join("people.csv"), folder.join("knows.csv"));
    let mut out = BufWriter::new(fs::File::create(&people)?);
    writeln!(out, "id:ID,born:long,name:string,:LABEL")?;
    for n in 0..count as u64 {
        writeln!(out, "{n},{},{},person", people::born(n), people::name(n))?;
    }
    out.flush()?;
    let mut out = BufWriter::new(fs::File::create(&knows)?);
    writeln!(out, ":START_ID,:END_ID,:TYPE")?;
    for (source, target) in edges {
        writeln!(out, "{source},{target},knows")?;
    }
    out.flush()?;
    Ok(vec![people, knows])
}

/// The bare variant of CSV: the sum over all lines of the first two fields, as far as they begin with digits.
fn sum_of_fields(path: &Path) -> Result<u64> {
    let bytes = fs::read(path)?;
    let number = |field: &[u8]| {
        let digits = field.iter().map(|byte| byte.wrapping_sub(b'0'));
        digits.take_while(|digit| *digit < 10).fold(0u64, |n, digit| n.wrapping_mul(10).wrapping_add(u64::from(digit)))
    };
    let lines = bytes.split(|byte| *byte == b'\n');
    Ok(lines.map(|line| line.split(|byte| *byte == b',').take(2).map(number).sum::<u64>()).sum())
}
