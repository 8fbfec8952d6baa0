//! The state that all parts of one load share: the sink, the ids met so far, rejects, counts and progress.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mangrove_graph::{Interrupt, Result, UserId, VertexId};

use foldhash::fast::RandomState;
use hashbrown::HashSet;
use smol_str::SmolStr;

use super::id_map::{IdMap, IdSet, SpaceId};
use super::owned::OwnedValues;
use super::rejects::Rejects;
use crate::input::cannot_read;
use crate::options::LoadOptions;
use crate::plan::{GLOBAL_SPACE, Identities};
use crate::progress::{FileReport, LoadProgress};
use crate::sink::{ElementKey, LoadSink, Upserted, VertexIdentity};
use crate::source::RowSource;
use crate::values::FileId;

/// Rows between two calls of the progress callback.
const PROGRESS_ROWS: u64 = 8 * 1024;

/// The shared state of one load. It belongs to the thread that called `load`.
pub(crate) struct LoadContext<'a> {
    pub(crate) sink: &'a mut dyn LoadSink,
    progress: &'a mut dyn FnMut(LoadProgress<'_>),
    /// Shared with the threads that parse rows of edges, while they do.
    pub(crate) ids: Arc<IdMap>,
    /// The id space of user ids.
    pub(crate) global: SpaceId,
    edge_ids: IdSet,
    /// LOAD-7: the keys, with their values, of the vertices of this load.
    vertex_keys: HashSet<(ElementKey, SmolStr), RandomState>,
    /// LOAD-7: label, source, target and key values of the edges of this load.
    edge_keys: HashSet<(SmolStr, VertexId, VertexId, SmolStr), RandomState>,
    /// How an upsert recognizes vertices and edges.
    pub(crate) identities: Identities,
    /// Values that wait for their vertices.
    pub(crate) owned: OwnedValues,
    pub(crate) rejects: Rejects,
    /// By file, the rows that a program hands over, until they are read.
    pub(crate) sources: Vec<Option<Box<dyn RowSource + 'a>>>,
    pub(crate) files: Vec<FileReport>,
    /// True for an upsert.
    pub(crate) upsert: bool,
    /// Threads that parse.
    pub(crate) threads: NonZeroUsize,
    /// The most bytes of an element or a line.
    pub(crate) element_bytes_max: u64,
    /// What the load asks while it runs.
    interrupt: Option<Interrupt>,
    /// The size of each file in bytes, as it was when the pass was announced.
    sizes: Vec<u64>,
    bytes_total: u64,
    /// Bytes of the passes that have ended.
    bytes_done: u64,
    /// The rows that were counted so far.
    rows: u64,
}

/// One pass over one file.
#[derive(Clone, Copy)]
pub(crate) struct Pass<'p> {
    /// The position of the file in the list of the load.
    pub(crate) file: usize,
    pub(crate) path: &'p Path,
}

impl<'a> LoadContext<'a> {
    pub(crate) fn new(
        sink: &'a mut dyn LoadSink,
        progress: &'a mut dyn FnMut(LoadProgress<'_>),
        rejects: Rejects,
        files: &[PathBuf],
        identities: Option<Identities>,
        options: &LoadOptions,
    ) -> Self {
        let mut ids = IdMap::default();
        let global = ids.space(GLOBAL_SPACE);
        let report = |path: &PathBuf| FileReport { path: path.clone(), ..FileReport::default() };
        LoadContext {
            sink,
            progress,
            ids: Arc::new(ids),
            global,
            edge_ids: IdSet::default(),
            vertex_keys: HashSet::default(),
            edge_keys: HashSet::default(),
            upsert: identities.is_some(),
            identities: identities.unwrap_or_default(),
            owned: OwnedValues::default(),
            rejects,
            sources: Vec::new(),
            files: files.iter().map(report).collect(),
            threads: options.threads,
            element_bytes_max: options.element_bytes_max,
            interrupt: options.interrupt.clone(),
            sizes: vec![0; files.len()],
            bytes_total: 0,
            bytes_done: 0,
            rows: 0,
        }
    }

    /// Announces the pass over a table of a program, which has about so many bytes.
    pub(crate) fn expect_source(&mut self, file: usize, bytes: u64) {
        self.sizes[file] = bytes;
        self.bytes_total += bytes;
    }

    /// Announces a pass over a file, which adds its size to the total.
    pub(crate) fn expect_pass(&mut self, file: usize, path: &Path) -> Result<()> {
        self.sizes[file] = std::fs::metadata(path).map_err(|e| cannot_read(path, &e))?.len();
        self.bytes_total += self.sizes[file];
        Ok(())
    }

    /// Fails with `Cancelled` if the load is to end.
    pub(crate) fn check_interrupt(&self) -> Result<()> {
        self.interrupt.as_ref().map_or(Ok(()), |interrupt| interrupt.check("the load"))
    }

    /// Counts a row. `bytes` of the file were read so far in this pass.
    pub(crate) fn row(&mut self, pass: &Pass<'_>, bytes: u64) -> Result<()> {
        self.rows(pass, 1, bytes)
    }

    /// Counts rows. `bytes` of the file were read so far in this pass. Every [`PROGRESS_ROWS`] rows, the caller gets
    /// the progress, and the sink the bytes that the load holds (LOAD-1).
    /// An interrupt ends the load there.
    pub(crate) fn rows(&mut self, pass: &Pass<'_>, rows: u64, bytes: u64) -> Result<()> {
        let reported = self.rows / PROGRESS_ROWS;
        self.rows += rows;
        if self.rows / PROGRESS_ROWS > reported {
            self.check_interrupt()?;
            // A file may grow while it is read; progress never exceeds the total.
            self.report(pass, bytes.min(self.sizes[pass.file]));
            let keys = self.vertex_keys.allocation_size() + self.edge_keys.allocation_size();
            self.sink.holds(self.ids.bytes() + self.edge_ids.bytes() + self.owned.bytes() + keys as u64)?;
        }
        Ok(())
    }

    /// Ends a pass.
    pub(crate) fn end_pass(&mut self, pass: &Pass<'_>) {
        self.bytes_done += self.sizes[pass.file];
        self.report(pass, 0);
    }

    fn report(&mut self, pass: &Pass<'_>, bytes: u64) {
        (self.progress)(LoadProgress {
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

    /// The map of ids, to be changed. No thread looks ids up at that time: rows of edges of a plain load add none.
    pub(crate) fn ids_mut(&mut self) -> &mut IdMap {
        Arc::get_mut(&mut self.ids).expect("the map is shared only while rows of edges of a plain load are read")
    }

    /// Claims an id in an id space. Returns false if it is taken.
    pub(crate) fn claim(&mut self, space: SpaceId, id: &FileId) -> bool {
        self.ids_mut().claim(space, id)
    }

    /// Claims the id of an edge. `Err` has the reason if it is taken.
    pub(crate) fn claim_edge_id(&mut self, id: &UserId) -> Result<(), String> {
        let key = FileId::from(id);
        match self.edge_ids.claim(&key) {
            true => Ok(()),
            false => Err(format!("an edge with the id {key} exists already")),
        }
    }

    /// LOAD-7: returns true if an earlier vertex of this load has these values of a key; else remembers the values.
    pub(crate) fn meets_again(&mut self, key: &ElementKey, values: &SmolStr) -> bool {
        !self.vertex_keys.insert((key.clone(), values.clone()))
    }

    /// LOAD-7: claims the key of an edge. `Err` has the reason if it is taken.
    pub(crate) fn claim_edge_key(
        &mut self,
        label: &SmolStr,
        (source, target): (VertexId, VertexId),
        values: SmolStr,
    ) -> Result<(), String> {
        match self.edge_keys.insert((label.clone(), source, target, values)) {
            true => Ok(()),
            false => Err(format!("another row of this load is the edge '{label}' with the same ends and the same key")),
        }
    }

    /// Counts the outcome of handing a vertex of a file to the sink. `Err` has the reason if the sink refused it.
    pub(crate) fn count_vertex<T>(&mut self, file: usize, outcome: Upserted<T>) -> Result<T, String> {
        let report = &mut self.files[file];
        let kept = count(report, outcome)?;
        report.vertices += 1;
        Ok(kept)
    }

    /// Counts the outcome of handing an edge of a file to the sink. `Err` has the reason if the sink refused it.
    pub(crate) fn count_edge<T>(&mut self, file: usize, outcome: Upserted<T>) -> Result<T, String> {
        let report = &mut self.files[file];
        let kept = count(report, outcome)?;
        report.edges += 1;
        Ok(kept)
    }

    /// The vertex with a user id: one of this load, or else one of the sink.
    pub(crate) fn vertex(&mut self, id: &UserId) -> Result<Option<VertexId>> {
        match self.ids.get_id(self.global, &FileId::from(id)) {
            None => self.find(GLOBAL_SPACE, id),
            found => Ok(found),
        }
    }

    /// Returns true if a vertex of this load has a user id.
    pub(crate) fn is_taken(&self, id: &UserId) -> bool {
        self.ids.get_id(self.global, &FileId::from(id)).is_some()
    }

    /// A vertex of the graph that no file of the load has. The sink of a plain load has none.
    pub(crate) fn find(&mut self, space: &str, id: &UserId) -> Result<Option<VertexId>> {
        for (identity, id) in self.identities.of_space(space, id) {
            // A look-up by a key may take a scan.
            self.check_interrupt()?;
            if let Some(found) = self.sink.find(&identity, &id)? {
                // Finding a vertex by a key may take a scan, so the result is kept.
                if matches!(identity, VertexIdentity::Key(_)) {
                    let ids = self.ids_mut();
                    let space = ids.space(space);
                    ids.resolve(space, FileId::from(&id), found);
                }
                return Ok(Some(found));
            }
        }
        Ok(None)
    }
}

fn count<T>(report: &mut FileReport, outcome: Upserted<T>) -> Result<T, String> {
    match outcome {
        Upserted::Created(element) => {
            report.upserts.created += 1;
            Ok(element)
        }
        Upserted::Updated(element) => {
            report.upserts.updated += 1;
            Ok(element)
        }
        Upserted::Unchanged(element) => {
            report.upserts.unchanged += 1;
            Ok(element)
        }
        Upserted::Refused(reason) => Err(reason),
    }
}
