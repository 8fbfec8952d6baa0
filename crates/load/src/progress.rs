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

/// What a load took from one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileReport {
    /// The file.
    pub path: PathBuf,
    /// Vertices loaded from it.
    pub vertices: u64,
    /// Edges loaded from it.
    pub edges: u64,
    /// Rows rejected.
    pub rejects: u64,
}

/// What a load did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoadReport {
    /// Vertices loaded.
    pub vertices: u64,
    /// Edges loaded.
    pub edges: u64,
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
