//! Writes a graph to files.
//!
//! An export reads one [`GraphView`], so it is one snapshot, however long it takes and whatever writers do meanwhile.
//! Elements are fetched and written a batch at a time. No format needs the whole graph, or even all edges of one
//! vertex, in memory.
//!
//! - **LOAD-5.** An exported graph loads as an equal graph, with the same ids and the same types of values. A value
//!   that a format cannot hold (meta-properties in GraphML) is left out or changed, and counted in
//!   [`ExportReport::losses`].
//!
//! [`write_from`] writes the formats that are one stream. [`export`] writes all formats to a path: a table is one file
//! a label, and several files are written at once. [`export_elements`] writes elements that another program sent.
//! `write_columns` writes the Parquet files that checkpoints have for other programs.

use std::io::Write;
use std::num::NonZeroUsize;
use std::path::Path;

use mangrove_graph::{Error, GraphView, Result};
use smol_str::SmolStr;

mod csv;
mod elements;
mod graphml;
mod graphson;
mod json_lines;
mod kind;
mod output;
#[cfg(feature = "parquet")]
mod parquet;
#[cfg(feature = "parquet")]
mod plain;
mod received;
mod table;
mod tables;
mod text;

#[cfg(feature = "parquet")]
pub(crate) use text::scalar_text;

pub use crate::input::Compression;
#[cfg(feature = "parquet")]
pub use parquet::open::{ColumnsIds, ColumnsTable, columns_tables, compare_columns, write_columns};
pub use parquet::rows::write_rows;
pub use received::{TakeElement, export_elements};

use elements::Selection;
use output::ExportFile;

/// Elements between two calls of the progress callback.
const PROGRESS_ROWS: u64 = 8 * 1024;

/// The format of an export.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ExportFormat {
    /// GraphML as TinkerPop's `io()` writes it.
    GraphMl,
    /// GraphSON 3 as one JSON document: TinkerPop's `wrapAdjacencyList`.
    GraphSon,
    /// GraphSON 3 as TinkerPop's `io()` writes it: one vertex a line, with its edges.
    GraphSonAdjacency,
    /// One vertex or one edge a line.
    JsonLines,
    /// A folder of CSV files, one a label, with typed headers.
    Csv,
    /// A folder of CSV files as Neo4j's importer takes them.
    CsvNeo4j,
    /// A folder of Parquet files, one a label, with columns of the types of their values.
    Parquet,
}

impl ExportFormat {
    /// Returns true if the format is a folder with one file a label, not one file.
    pub fn is_tables(self) -> bool {
        matches!(self, ExportFormat::Csv | ExportFormat::CsvNeo4j | ExportFormat::Parquet)
    }
}

/// Options of an export to a path.
#[derive(Clone, Debug)]
pub struct ExportOptions {
    /// The format.
    pub format: ExportFormat,
    /// Only vertices with one of these labels are written, and edges with one of them whose ends are written, too. If
    /// it is empty, everything is written.
    pub labels: Vec<SmolStr>,
    /// The compression of the files of a folder; of the pages in Parquet files (`None`: snappy). The extension of a
    /// single file names its compression.
    pub compression: Option<Compression>,
    /// The number of files that are written at once.
    pub threads: NonZeroUsize,
    /// For Parquet: one column a key, of a type that SQL tools have. The files do not load as an equal graph then.
    pub plain: bool,
}

impl ExportOptions {
    /// Options that write the whole graph in a format.
    pub fn new(format: ExportFormat) -> Self {
        ExportOptions { format, labels: Vec::new(), compression: None, threads: NonZeroUsize::MIN, plain: false }
    }
}

/// The result of an export.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExportReport {
    /// Vertices written.
    pub vertices: u64,
    /// Edges written.
    pub edges: u64,
    /// The values that the format could not hold.
    pub losses: Losses,
}

/// The counts of values that a format could not hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Values of vertices whose meta-properties were left out.
    pub meta: u64,
    /// Ids that load as ids of another type, because the format has no types of ids: texts of digits, and UUIDs.
    pub ids: u64,
    /// Values that load as values of another type.
    pub values: u64,
    /// The values that plain columns changed.
    pub plain: PlainChanges,
}

/// The values that plain columns changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlainChanges {
    /// Numbers stored as a wider type of number, with the same value.
    pub widened: u64,
    /// Points in time whose offset from UTC was dropped. They are the same points in time.
    pub offsets: u64,
    /// Values stored as text, because plain columns have no type for them or for the values of their key.
    pub texts: u64,
    /// Single values stored as lists of one, because other elements have lists under the key.
    pub lists: u64,
    /// Properties whose column has another name than their key, because that name means another column.
    pub names: u64,
}

impl PlainChanges {
    fn add(&mut self, other: PlainChanges) {
        self.widened += other.widened;
        self.offsets += other.offsets;
        self.texts += other.texts;
        self.lists += other.lists;
        self.names += other.names;
    }
}

/// The progress of an export.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExportProgress {
    /// Vertices written so far.
    pub vertices: u64,
    /// Edges written so far.
    pub edges: u64,
}

pub(crate) use ExportProgress as Counts;

/// The output of the writer of a format: the stream, the counts of losses, and the progress callback.
pub(crate) struct ExportTarget<'t> {
    pub(crate) out: &'t mut dyn Write,
    pub(crate) losses: Losses,
    progress: &'t mut dyn FnMut(ExportProgress) -> Result<()>,
}

impl Losses {
    fn add(&mut self, other: Losses) {
        self.meta += other.meta;
        self.ids += other.ids;
        self.values += other.values;
        self.plain.add(other.plain);
    }
}

impl ExportTarget<'_> {
    /// Reports progress every [`PROGRESS_ROWS`] elements. An error of the callback ends the export: that is how the
    /// caller cancels it.
    pub(crate) fn row(&mut self, counts: Counts) -> Result<()> {
        match (counts.vertices + counts.edges).is_multiple_of(PROGRESS_ROWS) {
            true => (self.progress)(counts),
            false => Ok(()),
        }
    }
}

/// Writes a graph to a stream, or its elements with one of these labels if there are any.
///
/// `progress` is called from time to time. An error that it returns ends the export.
pub fn write_from(
    view: &dyn GraphView,
    labels: &[SmolStr],
    format: ExportFormat,
    out: &mut dyn Write,
    progress: &mut dyn FnMut(ExportProgress) -> Result<()>,
) -> Result<ExportReport> {
    let selection = Selection::new(view, labels)?;
    let mut target = ExportTarget { out, losses: Losses::default(), progress };
    let counts = match format {
        ExportFormat::GraphMl => graphml::write(view, &selection, &mut target),
        ExportFormat::GraphSon => graphson::write(view, &selection, true, &mut target),
        ExportFormat::GraphSonAdjacency => graphson::write(view, &selection, false, &mut target),
        ExportFormat::JsonLines => json_lines::write(view, &selection, &mut target),
        ExportFormat::Csv | ExportFormat::CsvNeo4j | ExportFormat::Parquet => {
            Err(Error::invalid("a table is a file in a folder: export to a path instead of a stream"))
        }
    }?;
    target.out.flush()?;
    (target.progress)(counts)?;
    Ok(ExportReport { vertices: counts.vertices, edges: counts.edges, losses: target.losses })
}

/// Writes a graph to a path: a file, whose extension says how it is compressed, or a new folder.
///
/// `progress` is called from time to time on the caller's thread. An error that it returns ends the export.
pub fn export(
    view: &dyn GraphView,
    path: &Path,
    options: &ExportOptions,
    progress: &mut dyn FnMut(ExportProgress) -> Result<()>,
) -> Result<ExportReport> {
    if options.plain && options.format != ExportFormat::Parquet {
        return Err(Error::invalid("only Parquet has plain columns; export as Parquet, or without `plain`"));
    }
    if options.format.is_tables() {
        let selection = Selection::new(view, &options.labels)?;
        return tables::write(view, &selection, path, options, progress);
    }
    let mut output = ExportFile::create(path)?;
    let report = write_from(view, &options.labels, options.format, &mut output, progress)?;
    output.finish()?;
    Ok(report)
}
