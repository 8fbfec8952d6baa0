//! One file a label, for formats that are tables: which files there are, and the threads that write several at once.
//!
//! A file is named after its content, as `vertices_person.csv` and `edges_knows.csv`. Characters that file systems or
//! patterns treat specially become `_`, and names that become equal get a number. The label itself stands in the file.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use mangrove_graph::{ElementKind, Error, ErrorKind, GraphView, Result};

use super::elements::Selection;
use super::kind::ColumnSchema;
use super::output::ExportFile;
#[cfg(feature = "parquet")]
use super::parquet;
use super::table::{ExportTable, TablesExport, id_kind};
use super::{Counts, ExportFormat, ExportOptions, ExportProgress, ExportReport, ExportTarget, Losses, csv};

/// Writes the tables of a graph into a folder, which is made or must be empty.
pub(crate) fn write(
    view: &dyn GraphView,
    selection: &Selection,
    folder: &Path,
    options: &ExportOptions,
    progress: &mut dyn FnMut(ExportProgress) -> Result<()>,
) -> Result<ExportReport> {
    #[cfg(not(feature = "parquet"))]
    if options.format == ExportFormat::Parquet {
        return Err(Error::unsupported(
            "this program was built without Parquet (the feature `parquet` of mangrove-load)",
        ));
    }
    #[cfg(feature = "parquet")]
    if options.format == ExportFormat::Parquet {
        parquet::codec(options.compression)?;
    }
    prepare_folder(folder)?;
    let tables = list(view, selection, folder, options)?;
    let setting = TablesExport {
        view,
        selection,
        options,
        vertex_ids: id_kind(view, selection, options.plain, ElementKind::Vertex)?,
        edge_ids: id_kind(view, selection, options.plain, ElementKind::Edge)?,
    };
    let next = AtomicUsize::new(0);
    let shared = Mutex::new(Shared { counts: Counts::default(), losses: Losses::default(), failure: None });
    let work = |tell: &mut dyn FnMut(Counts) -> Result<()>| {
        // Relaxed: the counter only gives each worker tables of its own; the tables were there before the threads.
        while let Some(table) = tables.get(next.fetch_add(1, Ordering::Relaxed)) {
            if shared.lock().expect("no holder panics").failure.is_some() {
                return;
            }
            let outcome = write_table(&setting, table, &shared, tell);
            let mut shared = shared.lock().expect("no holder panics");
            match outcome {
                Ok(losses) => shared.losses.add(losses),
                Err(e) => {
                    shared.failure.get_or_insert(e);
                }
            }
        }
    };
    let others = options.threads.get().min(tables.len().max(1)) - 1;
    std::thread::scope(|scope| {
        for _ in 0..others {
            scope.spawn(|| work(&mut |_| Ok(())));
        }
        // The progress callback is called on the caller's thread only.
        work(progress);
    });
    let Shared { counts, losses, failure } = shared.into_inner().expect("no holder panics");
    match failure {
        Some(failure) => Err(failure),
        None => {
            progress(counts)?;
            Ok(ExportReport { vertices: counts.vertices, edges: counts.edges, losses })
        }
    }
}

/// The state that the workers share.
struct Shared {
    counts: Counts,
    losses: Losses,
    failure: Option<Error>,
}

fn write_table(
    setting: &TablesExport<'_>,
    table: &ExportTable,
    shared: &Mutex<Shared>,
    tell: &mut dyn FnMut(Counts) -> Result<()>,
) -> Result<Losses> {
    let mut before = Counts::default();
    let mut add = |counts: Counts| {
        let mut shared = shared.lock().expect("no holder panics");
        shared.counts.vertices += counts.vertices - before.vertices;
        shared.counts.edges += counts.edges - before.edges;
        before = counts;
        match &shared.failure {
            // Another worker failed, and its error is the one that is returned.
            Some(_) => Err(Error::new(ErrorKind::Cancelled, "another table failed")),
            None => Ok(shared.counts),
        }
    };
    let mut progress = |counts: Counts| add(counts).and_then(&mut *tell);
    #[cfg(feature = "parquet")]
    if setting.options.format == ExportFormat::Parquet {
        // Rows are gathered into row groups, so `target` has no stream of its own.
        let mut nowhere = std::io::sink();
        let mut target = ExportTarget { out: &mut nowhere, losses: Losses::default(), progress: &mut progress };
        let (output, counts) = parquet::write(setting, table, ExportFile::create(&table.path)?, &mut target)?;
        (target.progress)(counts)?;
        output.finish()?;
        return Ok(target.losses);
    }
    let schema = schema(setting, table)?;
    let mut output = ExportFile::create(&table.path)?;
    let mut target = ExportTarget { out: &mut output, losses: Losses::default(), progress: &mut progress };
    let counts = csv::write(setting, table, &schema, &mut target)?;
    let losses = target.losses;
    (target.progress)(counts)?;
    output.finish()?;
    Ok(losses)
}

/// Reads the properties of a table to find its columns.
fn schema(setting: &TablesExport<'_>, table: &ExportTable) -> Result<ColumnSchema> {
    let mut schema = ColumnSchema::default();
    let labels = Selection::only(table.set);
    match table.kind {
        ElementKind::Vertex => Selection::each_vertex(setting.view, &labels, &mut |row| {
            schema.add(row.properties);
            Ok(())
        }),
        ElementKind::Edge => setting.selection.each_edge(setting.view, &labels, &mut |row| {
            schema.add(row.properties);
            Ok(())
        }),
    }?;
    schema.seal();
    Ok(schema)
}

fn prepare_folder(folder: &Path) -> Result<()> {
    let failed = |e: std::io::Error| Error::new(ErrorKind::Io, format!("cannot write {}: {e}", folder.display()));
    std::fs::create_dir_all(folder).map_err(failed)?;
    if std::fs::read_dir(folder).map_err(failed)?.next().is_some() {
        let message = format!(
            "{} is not empty: files of another export would be loaded together with this one; name a new folder",
            folder.display()
        );
        return Err(Error::invalid(message));
    }
    Ok(())
}

fn list(
    view: &dyn GraphView,
    selection: &Selection,
    folder: &Path,
    options: &ExportOptions,
) -> Result<Vec<ExportTable>> {
    let mut taken = HashSet::new();
    let mut tables = Vec::new();
    let extension = match (options.format, options.compression) {
        // Parquet compresses inside, so its extension does not change.
        (ExportFormat::Parquet, _) => "parquet".to_owned(),
        (_, None) => "csv".to_owned(),
        (_, Some(packed)) => format!("csv.{}", packed.extension()),
    };
    for kind in [ElementKind::Vertex, ElementKind::Edge] {
        for set in selection.sets(view, kind)? {
            let label = view.catalog().label_set_name(set);
            let safe: String =
                label.chars().map(|c| if c.is_alphanumeric() || c == '-' { c } else { '_' }).take(100).collect();
            let stem = match kind {
                ElementKind::Vertex => format!("vertices_{safe}"),
                ElementKind::Edge => format!("edges_{safe}"),
            };
            let name = (1..)
                .map(|number| if number == 1 { stem.clone() } else { format!("{stem}_{number}") })
                .find(|name| taken.insert(name.to_lowercase()))
                .expect("some number is free");
            tables.push(ExportTable { set, label, kind, path: folder.join(format!("{name}.{extension}")) });
        }
    }
    Ok(tables)
}
