//! What all parts of one load share: where elements go, the ids met so far, rejects, counts and progress.

use std::io;
use std::num::NonZeroUsize;
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
    /// Whether elements that exist already are replaced instead of rejected.
    upsert: bool,
    /// How many threads parse.
    pub(crate) threads: NonZeroUsize,
    /// The size of each file.
    sizes: Vec<u64>,
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
        upsert: bool,
        threads: NonZeroUsize,
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
            upsert,
            threads,
            sizes: vec![0; files.len()],
            bytes_total: 0,
            bytes_done: 0,
            rows: 0,
        }
    }

    /// Announces a pass over a file, for the total.
    pub(crate) fn expect_pass(&mut self, file: usize, path: &Path) -> Result<()> {
        self.sizes[file] = std::fs::metadata(path).map_err(|e| cannot_read(path, &e))?.len();
        self.bytes_total += self.sizes[file];
        Ok(())
    }

    /// Counts a row; `bytes` of the file are taken in this pass.
    pub(crate) fn row(&mut self, pass: &Pass<'_>, bytes: u64) -> Result<()> {
        self.rows(pass, 1, bytes)
    }

    /// Counts rows; `bytes` of the file are taken in this pass.
    pub(crate) fn rows(&mut self, pass: &Pass<'_>, rows: u64, bytes: u64) -> Result<()> {
        let told = self.rows / PROGRESS_ROWS;
        self.rows += rows;
        if self.rows / PROGRESS_ROWS > told {
            // A file may grow while it is read.
            self.report(pass, bytes.min(self.sizes[pass.file]));
            self.sink.holds(self.ids.bytes() + self.edge_ids.bytes())?;
        }
        Ok(())
    }

    /// Ends a pass.
    pub(crate) fn end_pass(&mut self, pass: &Pass<'_>) {
        self.bytes_done += self.sizes[pass.file];
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
        if !self.claim(self.global, &key) {
            return Err(format!("a vertex with the id {key} exists already"));
        }
        table.claim(self.global, key);
        table.user_id(id);
        Ok(())
    }

    /// Claims an id in a space; false where it is taken. Where elements are replaced, none is.
    pub(crate) fn claim(&mut self, space: SpaceId, id: &FileId) -> bool {
        self.ids.claim(space, id) || self.upsert
    }

    /// Claims the id of an edge; `Err` has the reason where it is taken.
    pub(crate) fn claim_edge_id(&mut self, id: &UserId) -> Result<(), String> {
        let key = FileId::from(id);
        if self.upsert || self.edge_ids.claim(&key) {
            Ok(())
        } else {
            Err(format!("an edge with the id {key} exists already"))
        }
    }

    /// The vertex that users see under an id: one of this load, or one that the sink has.
    pub(crate) fn vertex(&mut self, id: &UserId) -> Result<Option<VertexId>> {
        match self.ids.get_id(self.global, &FileId::from(id)) {
            None => self.find(GLOBAL_SPACE, id),
            found => Ok(found),
        }
    }

    /// Whether a vertex of this load has an id that users see, and another one may not.
    pub(crate) fn is_taken(&self, id: &UserId) -> bool {
        !self.upsert && self.ids.get_id(self.global, &FileId::from(id)).is_some()
    }

    /// A vertex that is no part of this load.
    pub(crate) fn find(&mut self, space: &str, id: &UserId) -> Result<Option<VertexId>> {
        if self.upsert { self.sink.find(space, id) } else { Ok(None) }
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
