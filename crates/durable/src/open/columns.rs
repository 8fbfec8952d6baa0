//! Open columns: the elements of each label set as a Parquet file.
//!
//! ```text
//! open/HHHHHHHH-INC-C.parquet
//! ```
//!
//! `INC` and `C` are incarnation and counter, as in the names of packs (LOG-28), and share their numbers (LOG-33). `HHHHHHHH` is
//! the CRC32C of the rest of the name, without the extension.
//!
//! How elements become Parquet is not known here: the program that opens the graph gives it a [`ColumnsFormat`]. A checkpoint with open columns
//! writes a file for each label set that has elements, all from its snapshot. The manifest names them with the
//! timestamp of that snapshot. Later checkpoints without open columns go on to name the same files.
//!
//! - **LOG-102.** All files of the open columns of a manifest are of one snapshot. They have every element of it.

use std::fmt::Debug;
use std::io::Write;

use mangrove_graph::{ElementKind, GraphView, LabelSetId, Result};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The directory of open columns.
pub const OPEN_DIR: &str = "open";

/// Writes files of open columns.
pub trait ColumnsFormat: Debug + Send + Sync {
    /// Calls `file` with each table that the view has, and a function that writes its file. The function returns the number of
    /// rows.
    ///
    /// # Errors
    ///
    /// If the view or the receiver of the bytes fails.
    fn each_table(&self, view: &dyn GraphView, of: ColumnsOrigin, file: &mut WriteTable<'_>) -> Result<()>;
}

/// Begins the file of a table, and calls the function that writes it.
pub type WriteTable<'w> = dyn FnMut(ColumnsTable, &mut WriteRows<'_>) -> Result<()> + 'w;

/// Writes the rows of a table. Returns their number.
pub type WriteRows<'r> = dyn FnMut(&mut (dyn Write + Send)) -> Result<u64> + 'r;

/// The elements of one kind and one label set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ColumnsTable {
    /// Vertices or edges.
    pub kind: ElementKind,
    /// Their label set.
    pub labels: LabelSetId,
}

/// What the files of open columns say about where they come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ColumnsOrigin {
    /// The database.
    pub database: Uuid,
    /// The timestamp of the snapshot.
    pub at_ts: u64,
}

/// The open columns of a graph.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ManifestColumns {
    /// The timestamp of the snapshot that the files show (LOG-102).
    pub at_ts: u64,
    /// A file for each label set that has elements.
    pub files: Vec<ManifestColumnsFile>,
}

/// A file of open columns.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ManifestColumnsFile {
    /// Its path, or the name of its object.
    pub path: String,
    /// Of vertices or of edges: `vertices`, `edges`.
    pub elements: String,
    /// The labels of its elements, as Gremlin shows them: with `::` between several.
    pub label: String,
    /// The number of their label set.
    pub label_set: u32,
    /// The number of its rows.
    pub rows: u64,
    /// Its length in bytes.
    pub bytes: u64,
    /// The CRC32C of all of it.
    pub crc32c: u32,
}

impl ManifestColumnsFile {
    /// The table that the file has.
    pub fn table(&self) -> ColumnsTable {
        let kind = if self.elements == ElementKind::Edge.plural() { ElementKind::Edge } else { ElementKind::Vertex };
        ColumnsTable { kind, labels: LabelSetId(self.label_set) }
    }
}

/// The path of the file with these numbers.
pub(crate) fn columns_path(incarnation: u64, counter: u64) -> String {
    let rest = format!("{incarnation:016x}-{counter:016x}");
    format!("{OPEN_DIR}/{:08x}-{rest}.parquet", crc32c::crc32c(rest.as_bytes()))
}

/// Returns true if a path is one that [`columns_path`] makes.
pub(crate) fn is_columns_path(path: &str) -> bool {
    columns_owner(path).is_some()
}

/// The incarnation in a path that [`columns_path`] makes; `None` for other paths.
pub(crate) fn columns_owner(path: &str) -> Option<u64> {
    let name = path.strip_prefix(OPEN_DIR)?.strip_prefix('/')?.strip_suffix(".parquet")?;
    let (incarnation, counter) = name.split_once('-')?.1.split_once('-')?;
    let number = |text: &str| u64::from_str_radix(text, 16).ok();
    let (incarnation, counter) = (number(incarnation)?, number(counter)?);
    (columns_path(incarnation, counter) == path).then_some(incarnation)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_known_again() {
        let path = columns_path(12, 402);
        assert!(path.starts_with("open/") && path.ends_with("-000000000000000c-0000000000000192.parquet"), "{path}");
        assert!(is_columns_path(&path));
        for other in [
            path.replace("192", "193"),
            path.replace("open", "pack"),
            path.replace(".parquet", ""),
            path.replace(".parquet", "/../x.parquet"),
            "open/../wal/x-1-2.parquet".to_owned(),
            String::new(),
        ] {
            assert!(!is_columns_path(&other), "{other}");
        }
    }
}
