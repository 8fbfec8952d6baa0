//! The options of a load: files, formats, limits, keys of an upsert.
//!
//! Plain data. Defaults are here; what they mean is decided in `plan` and `load`.

use std::fmt;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use mangrove_graph::{ElementKind, Error, Interrupt, Result};

use crate::input::{ELEMENT_BYTES_MAX_DEFAULT, unpacked_name};
use crate::mapping::Mapping;
use crate::sink::UpsertKeys;

/// Default of [`LoadOptions::max_rejects`].
pub const MAX_REJECTS_DEFAULT: u64 = 1000;

/// The maximum number of threads that parse by default. One thread takes the parsed parts; more threads than this would
/// only hold memory.
const THREADS_DEFAULT_MAX: NonZeroUsize = NonZeroUsize::new(8).expect("eight is not zero");

/// The format of a file to load.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LoadFormat {
    /// Rows of text: `.csv`, `.tsv`, and any file that a mapping has a rule for. `.dat` and `.txt` only if the caller
    /// names the file.
    Table,
    /// JSON: GraphSON in adjacency form (one vertex a line, or all in one object), or one vertex or edge a line.
    /// `.json`, `.jsonl`, `.ndjson`, `.graphson`.
    GraphSon,
    /// GraphML: `.graphml`, `.xml`.
    GraphMl,
    /// Columns with types: `.parquet`.
    Parquet,
}

impl LoadFormat {
    /// Returns true if the rows of a file are all vertices or all edges.
    pub(crate) fn is_table(self) -> bool {
        matches!(self, LoadFormat::Table | LoadFormat::Parquet)
    }

    /// The format that the extension of a path names, not counting one for compression. `by_name`: the caller named the
    /// file; in a folder, `.dat` and `.txt` may be anything.
    pub(crate) fn of(path: &Path, by_name: bool) -> Option<Self> {
        let path = unpacked_name(path);
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        Some(match extension.as_str() {
            "csv" | "tsv" => LoadFormat::Table,
            "dat" | "txt" if by_name => LoadFormat::Table,
            "json" | "jsonl" | "ndjson" | "graphson" => LoadFormat::GraphSon,
            "graphml" | "xml" => LoadFormat::GraphMl,
            "parquet" => LoadFormat::Parquet,
            _ => return None,
        })
    }
}

/// How to load.
#[derive(Clone)]
pub struct LoadOptions {
    /// The meaning of the columns of tables whose headers do not say it.
    pub mapping: Option<Mapping>,
    /// The format of every file; `None`: each file's extension names it.
    pub format: Option<LoadFormat>,
    /// Separates the fields of tables; `None`: the mapping names it, or it is detected.
    pub delimiter: Option<char>,
    /// Separates the elements of lists if neither mapping nor header names a separator; `None`: a semicolon.
    pub array_delimiter: Option<char>,
    /// Groups of files with a label, of which the first may have the header of all.
    pub groups: Vec<FileGroup>,
    /// The file that rejected rows are written to; `None`: they are only counted.
    pub rejects: Option<PathBuf>,
    /// If set, the load is an upsert: elements that are in the graph already are changed instead of rejected, and ends
    /// of edges may be vertices of the graph. The sink must support it.
    pub upsert: Option<UpsertKeys>,
    /// The number of rows that may be rejected before the load stops. With 0 the first bad row stops it.
    pub max_rejects: u64,
    /// Threads that parse. The result does not depend on their number (LOAD-4).
    pub threads: NonZeroUsize,
    /// The most bytes of an element: a line of a table or of JSON, a node or an edge of GraphML, a vertex of GraphSON.
    /// An element is in memory whole, and a compressed file of some megabytes may hold one of gigabytes.
    pub element_bytes_max: u64,
    /// What the load asks the program while it runs: whether it is to end. The thread of the caller asks every few thousand rows,
    /// and often when lists are packed. The load then fails with `Cancelled`.
    pub interrupt: Option<Interrupt>,
    /// The time since a fixed point, for the report.
    pub clock: Arc<dyn Fn() -> Duration + Send + Sync>,
}

impl Default for LoadOptions {
    fn default() -> Self {
        LoadOptions {
            mapping: None,
            format: None,
            delimiter: None,
            array_delimiter: None,
            groups: Vec::new(),
            rejects: None,
            upsert: None,
            max_rejects: MAX_REJECTS_DEFAULT,
            threads: std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN).min(THREADS_DEFAULT_MAX),
            element_bytes_max: ELEMENT_BYTES_MAX_DEFAULT,
            interrupt: None,
            clock: Arc::new(|| Duration::ZERO),
        }
    }
}

impl LoadOptions {
    /// Asks the interrupt. Fails with `Cancelled` if the load is to end.
    pub fn check_interrupt(&self) -> Result<()> {
        self.interrupt.as_ref().map_or(Ok(()), |interrupt| interrupt.check("the load"))
    }
}

impl fmt::Debug for LoadOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoadOptions")
            .field("mapping", &self.mapping.is_some())
            .field("format", &self.format)
            .field("delimiter", &self.delimiter)
            .field("rejects", &self.rejects)
            .field("upsert", &self.upsert.is_some())
            .field("max_rejects", &self.max_rejects)
            .field("threads", &self.threads)
            .field("element_bytes_max", &self.element_bytes_max)
            .finish_non_exhaustive()
    }
}

/// A group of files of one label, as Neo4j's importer takes them (`--nodes=Person=header.csv,part1.csv,part2.csv`). The
/// first line of the first file is the header of all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileGroup {
    /// The label. Nodes have it in addition to those of a label column.
    pub label: Option<String>,
    /// The kind of the elements in the files.
    pub kind: ElementKind,
    /// At least one.
    pub files: Vec<PathBuf>,
}

impl FileGroup {
    /// Parses `Label=file,file` or `file,file`. A colon separates several labels.
    pub fn parse(text: &str, kind: ElementKind) -> Result<Self> {
        let (label, files) = match text.split_once('=') {
            Some((label, files)) => (Some(label.replace(':', "::")), files),
            None => (None, text),
        };
        let files: Vec<PathBuf> = files.split(',').filter(|file| !file.is_empty()).map(PathBuf::from).collect();
        if files.is_empty() || label.as_ref().is_some_and(String::is_empty) {
            return Err(Error::invalid(format!("'{text}' names no files: write LABEL=HEADER.csv,PART.csv")));
        }
        Ok(FileGroup { label, kind, files })
    }
}
