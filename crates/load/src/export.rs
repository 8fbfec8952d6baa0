//! Graphs into files: the other way round from loading.
//!
//! An export reads one [`GraphView`], so it is one snapshot however long it takes and whatever writers do. Elements are
//! fetched and written a batch at a time; no format needs the graph, or even the edges of one vertex, in memory.
//! What is exported loads again as an equal graph, ids and types of values included. Where a format has no place
//! for something (meta-properties in GraphML), the rest is written and [`ExportReport`] says how much was lost.
//!
//! [`write_from`] writes the formats that are one stream; [`export`] writes all of them to a path, tables as one file
//! a label, several at once, compressed by extension. [`export_elements`] writes what another program sent.

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
mod tables;
mod text;

#[cfg(feature = "parquet")]
pub(crate) use text::scalar_text;

pub use crate::input::Compression;
pub use received::{TakeElement, export_elements};

use elements::Selection;
use output::Output;

/// Elements between two calls of the progress callback.
const PROGRESS_ROWS: u64 = 8 * 1024;

/// How a graph is written.
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
    /// Whether it is a folder with a file a label, instead of one file.
    pub fn is_tables(self) -> bool {
        matches!(self, ExportFormat::Csv | ExportFormat::CsvNeo4j | ExportFormat::Parquet)
    }
}

/// How a graph is written to a path.
#[derive(Clone, Debug)]
pub struct ExportOptions {
    /// The format.
    pub format: ExportFormat,
    /// Only vertices and edges with one of these labels, and of edges those between such vertices; none: everything.
    pub labels: Vec<SmolStr>,
    /// How the files of a folder are compressed (of Parquet their pages; `None`: with snappy). A single file says so by its
    /// extension.
    pub compression: Option<Compression>,
    /// Files written at once.
    pub threads: NonZeroUsize,
    /// Of Parquet: one column a key, of types that SQL tools have, instead of columns that load as what was exported.
    pub plain: bool,
}

impl ExportOptions {
    /// Everything, in a format.
    pub fn new(format: ExportFormat) -> Self {
        ExportOptions { format, labels: Vec::new(), compression: None, threads: NonZeroUsize::MIN, plain: false }
    }
}

/// What an export wrote.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExportReport {
    /// Vertices written.
    pub vertices: u64,
    /// Edges written.
    pub edges: u64,
    /// What the format has no place for.
    pub losses: Losses,
}

/// What a format has no place for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Values of vertices whose meta-properties were left out.
    pub meta: u64,
    /// Ids that load as ids of another type: texts of digits and UUIDs, where ids have no types.
    pub ids: u64,
    /// Values that load as values of another type.
    pub values: u64,
    /// What plain columns changed.
    pub plain: PlainChanges,
}

/// What plain columns changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlainChanges {
    /// Numbers stored as a wider type of number, with the same value.
    pub widened: u64,
    /// Points in time whose offset from UTC was dropped; the moments are the same.
    pub offsets: u64,
    /// Values stored as text, because plain columns have no type for them or those of their key.
    pub texts: u64,
    /// Single values stored as lists of one, because other elements have lists under the key.
    pub lists: u64,
    /// Properties whose column has another name, because theirs means another column.
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

/// How far an export is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExportProgress {
    /// Vertices written so far.
    pub vertices: u64,
    /// Edges written so far.
    pub edges: u64,
}

pub(crate) use ExportProgress as Counts;

/// Where a format's writer writes, and whom it tells.
pub(crate) struct Target<'t> {
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

impl Target<'_> {
    /// Counts an element. An error of the callback ends the export: that is how one is canceled.
    pub(crate) fn row(&mut self, counts: Counts) -> Result<()> {
        match (counts.vertices + counts.edges).is_multiple_of(PROGRESS_ROWS) {
            true => (self.progress)(counts),
            false => Ok(()),
        }
    }
}

/// Writes a graph, or its elements with one of these labels (none: all), to a stream.
///
/// `progress` is called now and then; an error it returns ends the export.
pub fn write_from(
    view: &dyn GraphView,
    labels: &[SmolStr],
    format: ExportFormat,
    out: &mut dyn Write,
    progress: &mut dyn FnMut(ExportProgress) -> Result<()>,
) -> Result<ExportReport> {
    let selection = Selection::new(view, labels)?;
    let mut target = Target { out, losses: Losses::default(), progress };
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
/// `progress` is called now and then, on the caller's thread; an error it returns ends the export.
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
    let mut output = Output::create(path)?;
    let report = write_from(view, &options.labels, options.format, &mut output, progress)?;
    output.finish()?;
    Ok(report)
}
