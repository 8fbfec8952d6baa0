//! How far a load is, and what it did.

use std::path::{Path, PathBuf};

/// How far a load is. Every pass over a file counts (typing an untyped column takes one more), so bytes
/// read ascend to the total and reach it. The total may grow once: a GraphML file that has edges with and
/// without ids is found to need another pass.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// Bytes read so far, over all passes.
    pub bytes_read: u64,
    /// Bytes all passes will have read.
    pub bytes_total: u64,
    /// Rows (lines of a table, vertices and edges of a document) read so far, over all passes.
    pub rows: u64,
    /// The file being read.
    pub file: &'a Path,
}

/// What became of the elements of an upsert.
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

/// What a load took from one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileReport {
    /// The file.
    pub path: PathBuf,
    /// Vertices loaded from it.
    pub vertices: u64,
    /// Edges loaded from it.
    pub edges: u64,
    /// Values that it gives to vertices of other files.
    pub values: u64,
    /// What became of these vertices and edges, of an upsert; of a plain load all are new, and nothing is counted here.
    pub upserts: UpsertCounts,
    /// Rows rejected.
    pub rejects: u64,
    /// Columns whose type the load found out, and that are text because of some of their fields.
    pub texts: Vec<TextColumn>,
}

/// A column that is text because of some of its fields; the others have another type.
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
    /// The line of the first.
    pub line: u64,
    /// The first of these fields, or its beginning.
    pub sample: String,
}

/// What a load did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoadReport {
    /// Vertices loaded.
    pub vertices: u64,
    /// Edges loaded.
    pub edges: u64,
    /// What became of them, of an upsert.
    pub upserts: UpsertCounts,
    /// Rows rejected.
    pub rejects: u64,
    /// Each file, in the order given.
    pub files: Vec<FileReport>,
    /// Files of the given directories that were left out, because the mapping says so or has no rule for
    /// them.
    pub skipped: Vec<PathBuf>,
    /// How long it took by [`crate::LoadOptions::clock`].
    pub seconds: f64,
}
