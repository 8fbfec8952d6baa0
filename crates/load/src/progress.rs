//! The reports of a load to its caller: progress on the way, and a report at the end.

use std::path::{Path, PathBuf};

/// The progress of a load. Every pass over a file counts (an untyped column costs one more), so `bytes_read` ascends to
/// `bytes_total` and reaches it. The total may grow once: only while reading a GraphML file does the loader find that
/// it has edges with and without ids, which takes another pass.
#[derive(Clone, Copy, Debug)]
pub struct LoadProgress<'a> {
    /// Bytes read so far, over all passes.
    pub bytes_read: u64,
    /// Bytes that all passes together read.
    pub bytes_total: u64,
    /// Rows (lines of a table, vertices and edges of a document) read so far, over all passes.
    pub rows: u64,
    /// The file being read.
    pub file: &'a Path,
}

/// How many elements an upsert created, changed and found unchanged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UpsertCounts {
    /// Elements that were not in the graph.
    pub created: u64,
    /// Elements that were in the graph with other values.
    pub updated: u64,
    /// Elements that were in the graph as the files have them.
    pub unchanged: u64,
}

impl UpsertCounts {
    fn add(&mut self, other: Self) {
        self.created += other.created;
        self.updated += other.updated;
        self.unchanged += other.unchanged;
    }

    /// The sum of the counts of files.
    pub(crate) fn sum(files: &[FileReport]) -> Self {
        let mut sum = UpsertCounts::default();
        files.iter().for_each(|file| sum.add(file.upserts));
        sum
    }
}

/// The report of a load about one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileReport {
    /// The file.
    pub path: PathBuf,
    /// Vertices loaded from it.
    pub vertices: u64,
    /// Edges loaded from it.
    pub edges: u64,
    /// Values that it has for vertices of other files.
    pub values: u64,
    /// The outcomes of an upsert for these vertices and edges. All zero in a plain load, where all are new.
    pub upserts: UpsertCounts,
    /// Rows rejected.
    pub rejects: u64,
    /// Columns whose inferred type is text because of a few of their fields.
    pub texts: Vec<TextColumn>,
}

/// A column whose inferred type is text because of a few of its fields. The other fields have one other type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextColumn {
    /// The property.
    pub property: String,
    /// The type of the other fields.
    pub otherwise: &'static str,
    /// How many fields do not have that type.
    pub count: u64,
    /// How many fields the column has.
    pub fields: u64,
    /// The line of the first of them.
    pub line: u64,
    /// The first of these fields, or its beginning.
    pub sample: String,
}

/// The most rows in [`LoadReport::rejected`].
pub const REJECTS_REPORTED_MAX: usize = 1000;

/// A row that was not loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RejectedRow {
    /// The file, or the name of the table.
    pub path: PathBuf,
    /// Its line; in files without lines and in tables of programs, the number of the row, from 1 on.
    pub line: u64,
    /// Why it was not loaded.
    pub reason: String,
}

/// The result of a load.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoadReport {
    /// Vertices loaded.
    pub vertices: u64,
    /// Edges loaded.
    pub edges: u64,
    /// The outcomes of an upsert for them. All zero in a plain load.
    pub upserts: UpsertCounts,
    /// Rows rejected.
    pub rejects: u64,
    /// The first rejected rows, at most [`REJECTS_REPORTED_MAX`].
    pub rejected: Vec<RejectedRow>,
    /// Each file, in the order given.
    pub files: Vec<FileReport>,
    /// Files in the given folders that were not loaded, because the mapping skips them or has no rule for them, or
    /// because their extensions name no format.
    pub skipped: Vec<PathBuf>,
    /// How long it took, by [`crate::LoadOptions::clock`].
    pub seconds: f64,
}
