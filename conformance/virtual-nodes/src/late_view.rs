//! A view of a graph whose reads are late ([`LateReader`]).

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::ThreadId;

use mangrove_graph::view::{
    ExpandCursor, ExpandRequest, Expansion, GraphView, IndexInfo, IndexLookup, IndexRange, LabelFilter, LiveCounts,
    PropertyRow, ScanCursor, Share, ValueRows,
};
use mangrove_graph::{
    AdjacencyRequest, AdjacencyRuns, Catalog, Completions, Direction, EdgeId, ElementKind, Error, IndexId, KeyId,
    LabelSetId, LateReads, Need, Numbers, Result, Ticket, UserId, Value, ValueColumns, VertexId, Want,
};

use crate::late_reads::{Habits, Item, LateReader, items};

/// Another view, whose reads are late.
///
/// If an operator reads what it did not ask for, the view answers, as after a blocking read, and counts the read. A
/// strict view fails instead: such a read is a bug of the engine. The catalog, live counts and the cutting of scans are
/// always at hand.
pub struct LateView {
    whole: Arc<dyn GraphView>,
    reader: LateReader,
    is_strict: bool,
    blocking: AtomicUsize,
    /// The threads that have read.
    threads: Mutex<HashSet<ThreadId>>,
}

impl LateView {
    /// A view over another one. The seed fixes its choices.
    pub fn new(whole: Arc<dyn GraphView>, habits: Habits, seed: u64) -> Self {
        let reader = LateReader::new(habits, seed);
        LateView { whole, reader, is_strict: false, blocking: AtomicUsize::new(0), threads: Mutex::default() }
    }

    /// The same view; a read that was not asked for fails.
    #[must_use]
    pub fn strict(self) -> Self {
        LateView { is_strict: true, ..self }
    }

    /// The part that is asked.
    pub fn reader(&self) -> &LateReader {
        &self.reader
    }

    /// Returns the number of calls that read something for which nothing was asked.
    pub fn blocking(&self) -> usize {
        self.blocking.load(Ordering::Relaxed)
    }

    /// Returns the number of threads that have read.
    pub fn threads(&self) -> usize {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Notes a call. Of each of these lists, one item must be at hand.
    fn read(&self, call: &str, mut all: impl Iterator<Item = Vec<Item>>) -> Result<()> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner).insert(std::thread::current().id());
        match all.find(|any| !self.reader.is_at_hand(any)) {
            None => Ok(()),
            Some(missing) if self.is_strict => {
                Err(Error::bug(format!("{call} reads {missing:?}, which was not asked for")))
            }
            Some(_) => {
                self.blocking.fetch_add(1, Ordering::Relaxed);
                Ok(())
            }
        }
    }

    fn read_one(&self, call: &str, item: Item) -> Result<()> {
        self.read(call, std::iter::once(vec![item]))
    }

    fn read_vertex_values(&self, call: &str, vertices: &[VertexId], keys: Option<&[KeyId]>) -> Result<()> {
        self.read(call, vertices.iter().flat_map(|id| value_items(keys, |key| Item::VertexValues(*id, key))))
    }

    fn read_edge_values(&self, call: &str, edges: &[EdgeId], keys: Option<&[KeyId]>) -> Result<()> {
        self.read(call, edges.iter().flat_map(|id| value_items(keys, |key| Item::EdgeValues(*id, key))))
    }

    fn read_vertex_heads(&self, call: &str, vertices: &[VertexId]) -> Result<()> {
        self.read(call, vertices.iter().map(|id| vec![Item::VertexHead(*id)]))
    }

    fn read_edge_heads(&self, call: &str, edges: &[EdgeId]) -> Result<()> {
        self.read(call, edges.iter().map(|id| vec![Item::EdgeHead(*id)]))
    }

    /// Adds the heads of the ends of edges, as [`Need::EndHeads`] says.
    fn end_heads(&self, need: &Need<'_>, into: &mut Vec<Item>) -> Result<()> {
        match need {
            Need::EndHeads(edges) => {
                let (mut sources, mut targets) = (Vec::new(), Vec::new());
                self.whole.edge_ends(edges, &mut sources, &mut targets)?;
                into.extend(sources.into_iter().chain(targets).map(Item::VertexHead));
                Ok(())
            }
            Need::Several(needs) => needs.iter().try_for_each(|need| self.end_heads(need, into)),
            _ => Ok(()),
        }
    }
}

/// For each key, the items that have its values.
fn value_items(keys: Option<&[KeyId]>, item: impl Fn(Option<KeyId>) -> Item) -> Vec<Vec<Item>> {
    match keys {
        None => vec![vec![item(None)]],
        Some(keys) => keys.iter().map(|key| vec![item(Some(*key)), item(None)]).collect(),
    }
}

impl LateReads for LateView {
    fn want(&self, need: &Need<'_>, ticket: Ticket, completions: &Arc<dyn Completions>) -> Result<Want> {
        let mut all = items(need);
        self.end_heads(need, &mut all)?;
        self.reader.want_items(all, ticket, completions)
    }

    fn forget(&self, ticket: Ticket) {
        self.reader.forget(ticket);
    }
}

impl GraphView for LateView {
    fn catalog(&self) -> &Catalog {
        self.whole.catalog()
    }

    fn late(&self) -> Option<&dyn LateReads> {
        Some(self)
    }

    fn key_of(&self, name: &str) -> Option<KeyId> {
        self.whole.key_of(name)
    }

    fn find_vertices(&self, ids: &[UserId], out: &mut Vec<Option<VertexId>>) -> Result<()> {
        self.read("find_vertices", ids.iter().map(|id| vec![Item::LookUp(ElementKind::Vertex, id.clone())]))?;
        self.whole.find_vertices(ids, out)
    }

    fn find_edges(&self, ids: &[UserId], out: &mut Vec<Option<EdgeId>>) -> Result<()> {
        self.read("find_edges", ids.iter().map(|id| vec![Item::LookUp(ElementKind::Edge, id.clone())]))?;
        self.whole.find_edges(ids, out)
    }

    fn retain_vertices(&self, ids: &mut Vec<VertexId>) -> Result<()> {
        self.read_vertex_heads("retain_vertices", ids)?;
        self.whole.retain_vertices(ids)
    }

    fn retain_edges(&self, ids: &mut Vec<EdgeId>) -> Result<()> {
        self.read_edge_heads("retain_edges", ids)?;
        self.whole.retain_edges(ids)
    }

    fn split_scan(
        &self,
        kind: ElementKind,
        labels: &LabelFilter,
        share: Share,
        cursor: &mut ScanCursor,
    ) -> Option<ScanCursor> {
        self.whole.split_scan(kind, labels, share, cursor)
    }

    fn scan_vertices(
        &self,
        labels: &LabelFilter,
        share: Share,
        cursor: &mut ScanCursor,
        limit: usize,
        out: &mut Vec<VertexId>,
    ) -> Result<bool> {
        self.read_one("scan_vertices", Item::Scan(ElementKind::Vertex))?;
        self.whole.scan_vertices(labels, share, cursor, limit, out)
    }

    fn scan_edges(
        &self,
        labels: &LabelFilter,
        share: Share,
        cursor: &mut ScanCursor,
        limit: usize,
        out: &mut Vec<EdgeId>,
    ) -> Result<bool> {
        self.read_one("scan_edges", Item::Scan(ElementKind::Edge))?;
        self.whole.scan_edges(labels, share, cursor, limit, out)
    }

    fn scan_vertices_where(
        &self,
        labels: &LabelFilter,
        key: KeyId,
        range: &IndexRange,
        share: Share,
        cursor: &mut ScanCursor,
        limit: usize,
        out: &mut Vec<VertexId>,
    ) -> Result<bool> {
        self.read_one("scan_vertices_where", Item::Scan(ElementKind::Vertex))?;
        self.whole.scan_vertices_where(labels, key, range, share, cursor, limit, out)
    }

    fn scan_edges_where(
        &self,
        labels: &LabelFilter,
        key: KeyId,
        range: &IndexRange,
        share: Share,
        cursor: &mut ScanCursor,
        limit: usize,
        out: &mut Vec<EdgeId>,
    ) -> Result<bool> {
        self.read_one("scan_edges_where", Item::Scan(ElementKind::Edge))?;
        self.whole.scan_edges_where(labels, key, range, share, cursor, limit, out)
    }

    fn count_vertices(&self, labels: &LabelFilter, share: Share) -> Result<u64> {
        self.read_one("count_vertices", Item::Count(ElementKind::Vertex))?;
        self.whole.count_vertices(labels, share)
    }

    fn count_edges(&self, labels: &LabelFilter, share: Share) -> Result<u64> {
        self.read_one("count_edges", Item::Count(ElementKind::Edge))?;
        self.whole.count_edges(labels, share)
    }

    fn expand(
        &self,
        vertices: &[VertexId],
        request: &ExpandRequest,
        cursor: &mut ExpandCursor,
        out: &mut Expansion,
    ) -> Result<bool> {
        let left = vertices.iter().skip(cursor.row as usize);
        self.read("expand", left.map(|vertex| vec![Item::List(*vertex, request.direction)]))?;
        self.whole.expand(vertices, request, cursor, out)
    }

    fn for_each_adjacency(
        &self,
        request: &AdjacencyRequest,
        each: &mut dyn FnMut(&AdjacencyRuns<'_>) -> Result<()>,
    ) -> Result<()> {
        self.read_one("for_each_adjacency", Item::AllLists)?;
        self.whole.for_each_adjacency(request, each)
    }

    fn degrees(
        &self,
        vertices: &[VertexId],
        direction: Direction,
        labels: &LabelFilter,
        out: &mut Vec<u64>,
    ) -> Result<()> {
        self.read("degrees", vertices.iter().map(|vertex| vec![Item::Degree(*vertex, direction)]))?;
        self.whole.degrees(vertices, direction, labels, out)
    }

    fn edge_ends(&self, edges: &[EdgeId], sources: &mut Vec<VertexId>, targets: &mut Vec<VertexId>) -> Result<()> {
        self.read("edge_ends", edges.iter().map(|edge| vec![Item::Ends(*edge)]))?;
        self.whole.edge_ends(edges, sources, targets)
    }

    fn vertex_labels(&self, vertices: &[VertexId], out: &mut Vec<LabelSetId>) -> Result<()> {
        self.read_vertex_heads("vertex_labels", vertices)?;
        self.whole.vertex_labels(vertices, out)
    }

    fn edge_labels(&self, edges: &[EdgeId], out: &mut Vec<LabelSetId>) -> Result<()> {
        self.read_edge_heads("edge_labels", edges)?;
        self.whole.edge_labels(edges, out)
    }

    fn vertex_user_ids(&self, vertices: &[VertexId], out: &mut Vec<Value>) -> Result<()> {
        self.read_vertex_heads("vertex_user_ids", vertices)?;
        self.whole.vertex_user_ids(vertices, out)
    }

    fn edge_user_ids(&self, edges: &[EdgeId], out: &mut Vec<Value>) -> Result<()> {
        self.read_edge_heads("edge_user_ids", edges)?;
        self.whole.edge_user_ids(edges, out)
    }

    fn vertex_values(&self, vertices: &[VertexId], key: KeyId, out: &mut ValueRows) -> Result<()> {
        self.read_vertex_values("vertex_values", vertices, Some(&[key]))?;
        self.whole.vertex_values(vertices, key, out)
    }

    fn edge_values(&self, edges: &[EdgeId], key: KeyId, out: &mut ValueRows) -> Result<()> {
        self.read_edge_values("edge_values", edges, Some(&[key]))?;
        self.whole.edge_values(edges, key, out)
    }

    fn vertex_numbers(&self, vertices: &[VertexId], key: KeyId, out: &mut Numbers) -> Result<bool> {
        self.read_vertex_values("vertex_numbers", vertices, Some(&[key]))?;
        self.whole.vertex_numbers(vertices, key, out)
    }

    fn edge_numbers(&self, edges: &[EdgeId], key: KeyId, out: &mut Numbers) -> Result<bool> {
        self.read_edge_values("edge_numbers", edges, Some(&[key]))?;
        self.whole.edge_numbers(edges, key, out)
    }

    fn vertex_properties(
        &self,
        vertices: &[VertexId],
        keys: Option<&[KeyId]>,
        out: &mut Vec<PropertyRow>,
    ) -> Result<()> {
        self.read_vertex_values("vertex_properties", vertices, keys)?;
        self.whole.vertex_properties(vertices, keys, out)
    }

    fn edge_properties(&self, edges: &[EdgeId], keys: Option<&[KeyId]>, out: &mut Vec<PropertyRow>) -> Result<()> {
        self.read_edge_values("edge_properties", edges, keys)?;
        self.whole.edge_properties(edges, keys, out)
    }

    fn vertex_columns(&self, vertices: &[VertexId], keys: Option<&[KeyId]>, out: &mut ValueColumns) -> Result<()> {
        self.read_vertex_values("vertex_columns", vertices, keys)?;
        self.whole.vertex_columns(vertices, keys, out)
    }

    fn edge_columns(&self, edges: &[EdgeId], keys: Option<&[KeyId]>, out: &mut ValueColumns) -> Result<()> {
        self.read_edge_values("edge_columns", edges, keys)?;
        self.whole.edge_columns(edges, keys, out)
    }

    fn indexes(&self) -> Vec<IndexInfo> {
        self.whole.indexes()
    }

    fn index_edges(
        &self,
        index: IndexId,
        prefix: &[Value],
        range: &IndexRange,
        share: Share,
        out: &mut Vec<EdgeId>,
    ) -> Result<()> {
        self.read_one("index_edges", Item::Index(index))?;
        self.whole.index_edges(index, prefix, range, share, out)
    }

    fn index_vertices(
        &self,
        index: IndexId,
        prefix: &[Value],
        range: &IndexRange,
        share: Share,
        out: &mut Vec<VertexId>,
    ) -> Result<()> {
        self.read_one("index_vertices", Item::Index(index))?;
        self.whole.index_vertices(index, prefix, range, share, out)
    }

    fn intersect_vertices(&self, lookups: &[IndexLookup<'_>], share: Share, out: &mut Vec<VertexId>) -> Result<()> {
        self.read("intersect_vertices", lookups.iter().map(|lookup| vec![Item::Index(lookup.index)]))?;
        self.whole.intersect_vertices(lookups, share, out)
    }

    fn find_few_vertices(
        &self,
        lookups: &[IndexLookup<'_>],
        share: Share,
        most: usize,
        out: &mut Vec<VertexId>,
    ) -> Result<bool> {
        self.read("find_few_vertices", lookups.iter().map(|lookup| vec![Item::Index(lookup.index)]))?;
        self.whole.find_few_vertices(lookups, share, most, out)
    }

    fn intersect_edges(&self, lookups: &[IndexLookup<'_>], share: Share, out: &mut Vec<EdgeId>) -> Result<()> {
        self.read("intersect_edges", lookups.iter().map(|lookup| vec![Item::Index(lookup.index)]))?;
        self.whole.intersect_edges(lookups, share, out)
    }

    fn live_counts(&self) -> LiveCounts {
        self.whole.live_counts()
    }
}
