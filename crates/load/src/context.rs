//! What all parts of one load share: where elements go, the ids met so far, rejects, counts and progress.

use std::io;
use std::path::{Path, PathBuf};

use mangrove_graph::{Error, ErrorKind, Result, UserId, VertexId};

use crate::batch::VertexTable;
use crate::id_map::{FileId, IdMap, IdSet, SpaceId};
use crate::plan::GLOBAL_SPACE;
use crate::progress::{FileReport, Progress};
use crate::reject::Rejects;
use crate::sink::Sink;

/// Rows between two calls of the progress callback.
const PROGRESS_ROWS: u64 = 8 * 1024;

/// See the module.
pub(crate) struct Context<'a> {
    pub(crate) sink: &'a mut dyn Sink,
    progress: &'a mut dyn FnMut(Progress<'_>),
    pub(crate) ids: IdMap,
    /// The space of ids that users see.
    pub(crate) global: SpaceId,
    edge_ids: IdSet,
    pub(crate) rejects: Rejects,
    pub(crate) files: Vec<FileReport>,
    bytes_total: u64,
    /// Bytes of the passes that are finished.
    bytes_done: u64,
    rows: u64,
}

/// One pass over one file.
pub(crate) struct Pass<'p> {
    pub(crate) file: usize,
    pub(crate) path: &'p Path,
}

impl<'a> Context<'a> {
    pub(crate) fn new(
        sink: &'a mut dyn Sink,
        progress: &'a mut dyn FnMut(Progress<'_>),
        rejects: Rejects,
        files: &[PathBuf],
    ) -> Self {
        let mut ids = IdMap::default();
        let global = ids.space(GLOBAL_SPACE);
        let report = |path: &PathBuf| FileReport { path: path.clone(), vertices: 0, edges: 0, rejects: 0 };
        Context {
            sink,
            progress,
            ids,
            global,
            edge_ids: IdSet::default(),
            rejects,
            files: files.iter().map(report).collect(),
            bytes_total: 0,
            bytes_done: 0,
            rows: 0,
        }
    }

    /// Announces a pass over a file, for the total.
    pub(crate) fn expect_pass(&mut self, path: &Path) -> Result<()> {
        self.bytes_total += std::fs::metadata(path).map_err(|e| cannot_read(path, &e))?.len();
        Ok(())
    }

    /// Counts a row; `bytes` of the pass are read.
    pub(crate) fn row(&mut self, pass: &Pass<'_>, bytes: u64) {
        self.rows += 1;
        if self.rows.is_multiple_of(PROGRESS_ROWS) {
            self.report(pass, bytes);
        }
    }

    /// Ends a pass that read so many bytes.
    pub(crate) fn end_pass(&mut self, pass: &Pass<'_>, bytes: u64) {
        self.bytes_done += bytes;
        self.report(pass, 0);
    }

    fn report(&mut self, pass: &Pass<'_>, bytes: u64) {
        (self.progress)(Progress {
            bytes_read: self.bytes_done + bytes,
            bytes_total: self.bytes_total,
            rows: self.rows,
            file: pass.path,
        });
    }

    /// Rejects a row.
    pub(crate) fn reject(&mut self, pass: &Pass<'_>, line: u64, reason: &str, row: &[u8]) -> Result<()> {
        self.files[pass.file].rejects += 1;
        self.rejects.add(pass.path, line, reason, row)
    }

    /// Makes a vertex known by the id users will see, in the global space; `Err` has the reason where it is
    /// taken.
    pub(crate) fn claim_user_id(&mut self, table: &mut VertexTable, id: UserId) -> Result<(), String> {
        let key = FileId::from(&id);
        if !self.ids.claim(self.global, &key) {
            return Err(format!("a vertex with the id {key} exists already"));
        }
        table.claim(self.global, key);
        table.user_id(id);
        Ok(())
    }

    /// Claims the id of an edge; `Err` has the reason where it is taken.
    pub(crate) fn claim_edge_id(&mut self, id: &UserId) -> Result<(), String> {
        let key = FileId::from(id);
        if self.edge_ids.claim(&key) { Ok(()) } else { Err(format!("an edge with the id {key} exists already")) }
    }

    /// The vertex that users see under an id.
    pub(crate) fn vertex(&self, id: &UserId) -> Option<VertexId> {
        self.ids.get_id(self.global, &FileId::from(id))
    }
}

/// Puts the name of the file in front of an error that was met in it.
pub(crate) fn in_file(path: &Path) -> impl FnOnce(Error) -> Error + '_ {
    move |error| error.context(path.display())
}

/// The error for a file that cannot be read.
pub(crate) fn cannot_read(path: &Path, error: &io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("cannot read {}: {error}", path.display()))
}
