//! [`GraphView`] of a transaction: the store's view at its snapshot, for as long as the transaction is alive.
//!
//! For a serializable transaction that may write, every read also adds to the read set the items that could change its
//! result (`tracking`). Immutable facts (labels, ids, the ends of edges) are read without an item.
//!
//! - **TXN-23.** A transaction offers the store's facts about edges (STORE-36) only if it is read-only. It then meets no
//!   edge but those of its snapshot, about which the facts are complete. A transaction that may write meets its own
//!   edges, too. A serializable one also meets edges of later commits (pre-reads), and a test that a plan leaves out
//!   could have read what it must be validated by.

use std::sync::Arc;

use mangrove_graph::connections::Connections;
use mangrove_graph::{
    AdjacencyRequest, AdjacencyRuns, Catalog, Direction, EdgeId, ElementId, ElementKind, ExpandCursor, ExpandRequest,
    Expansion, GraphChanges, GraphView, IndexId, IndexInfo, IndexLookup, IndexRange, KeyId, LabelFilter, LabelSetId,
    LiveCounts, Numbers, PropertyRow, Result, ScanCursor, Share, UserId, Value, ValueColumns, ValueRows, VertexId,
    VertexPage, edge_columns_of_rows, look_up_in_steps, vertex_columns_of_rows,
};

use mangrove_store::{Snapshot, StoreView};

use crate::access_set::{Item, Predicate};
use crate::tracking::{AddItem, lists, properties_of};
use crate::transaction::{PinnedView, Tracking, Transaction};

impl GraphView for Transaction {
    fn catalog(&self) -> &Catalog {
        self.store().catalog()
    }

    fn key_of(&self, name: &str) -> Option<KeyId> {
        let key = self.catalog().key(name);
        if key.is_none()
            && let Some(tracking) = self.tracking()
        {
            tracking.reads.lock().miss_key();
        }
        key
    }

    fn find_vertices(&self, ids: &[UserId], out: &mut Vec<Option<VertexId>>) -> Result<()> {
        let items = |row: usize, add: AddItem<'_>| Item::look_up(ElementKind::Vertex, &ids[row]).for_each(add);
        self.read_batch(ids.len(), out, items, |view, rows, out| view.find_vertices(&ids[rows], out))
    }

    fn find_edges(&self, ids: &[UserId], out: &mut Vec<Option<EdgeId>>) -> Result<()> {
        let items = |row: usize, add: AddItem<'_>| Item::look_up(ElementKind::Edge, &ids[row]).for_each(add);
        self.read_batch(ids.len(), out, items, |view, rows, out| view.find_edges(&ids[rows], out))
    }

    fn look_up_vertices(
        &self,
        ids: &[UserId],
        keys: &[KeyId],
        found: &mut Vec<Option<VertexId>>,
        values: &mut [ValueRows],
    ) -> Result<()> {
        match self.tracking() {
            None => self.view()?.look_up_vertices(ids, keys, found, values),
            Some(_) => look_up_in_steps(self, ids, keys, found, values),
        }
    }

    fn retain_vertices(&self, ids: &mut Vec<VertexId>) -> Result<()> {
        self.retain(ids, ElementId::Vertex, |view, ids| view.retain_vertices(ids))
    }

    fn retain_edges(&self, ids: &mut Vec<EdgeId>) -> Result<()> {
        self.retain(ids, ElementId::Edge, |view, ids| view.retain_edges(ids))
    }

    fn split_scan(
        &self,
        kind: ElementKind,
        labels: &LabelFilter,
        share: Share,
        cursor: &mut ScanCursor,
    ) -> Option<ScanCursor> {
        self.view().ok()?.split_scan(kind, labels, share, cursor)
    }

    fn scan_vertices(
        &self,
        labels: &LabelFilter,
        share: Share,
        cursor: &mut ScanCursor,
        limit: usize,
        out: &mut Vec<VertexId>,
    ) -> Result<bool> {
        self.track_scan(ElementKind::Vertex, labels, |set| Item::scan(ElementKind::Vertex, set));
        self.view()?.scan_vertices(labels, share, cursor, limit, out)
    }

    fn scan_edges(
        &self,
        labels: &LabelFilter,
        share: Share,
        cursor: &mut ScanCursor,
        limit: usize,
        out: &mut Vec<EdgeId>,
    ) -> Result<bool> {
        self.track_scan(ElementKind::Edge, labels, |set| Item::scan(ElementKind::Edge, set));
        self.view()?.scan_edges(labels, share, cursor, limit, out)
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
        self.track_values(ElementKind::Vertex, labels, key, range);
        self.view()?.scan_vertices_where(labels, key, range, share, cursor, limit, out)
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
        self.track_values(ElementKind::Edge, labels, key, range);
        self.view()?.scan_edges_where(labels, key, range, share, cursor, limit, out)
    }

    fn count_vertices(&self, labels: &LabelFilter, share: Share) -> Result<u64> {
        self.track_scan(ElementKind::Vertex, labels, |set| Item::scan(ElementKind::Vertex, set));
        self.view_for_counts()?.count_vertices(labels, share)
    }

    fn count_edges(&self, labels: &LabelFilter, share: Share) -> Result<u64> {
        self.track_scan(ElementKind::Edge, labels, |set| Item::scan(ElementKind::Edge, set));
        self.view_for_counts()?.count_edges(labels, share)
    }

    fn expand(
        &self,
        vertices: &[VertexId],
        request: &ExpandRequest,
        cursor: &mut ExpandCursor,
        out: &mut Expansion,
    ) -> Result<bool> {
        self.read_lists(vertices, request, cursor, out)
    }

    fn for_each_adjacency(
        &self,
        request: &AdjacencyRequest,
        each: &mut dyn FnMut(&AdjacencyRuns<'_>) -> Result<()>,
    ) -> Result<()> {
        // Every list of all those vertices: a change of one of them changes one of these scans.
        self.track_scan(ElementKind::Vertex, &request.vertices, |set| Item::scan(ElementKind::Vertex, set));
        self.track_scan(ElementKind::Edge, &request.labels, |set| Item::scan(ElementKind::Edge, set));
        self.check_alive()?;
        // The walk pins one page at a time, since it may take long.
        self.view_unchecked().for_each_adjacency(request, &mut |runs| {
            self.check_not_expired()?;
            each(runs)
        })?;
        // If the transaction expired, the walk may have missed elements of pages that were collected.
        self.check_not_expired()
    }

    fn vertex_pages(&self, labels: &LabelFilter, out: &mut Vec<VertexPage>) -> Result<()> {
        // What a page shows is read by a scan or a walk.
        self.view()?.vertex_pages(labels, out)
    }

    fn shown_commit(&self) -> Option<u64> {
        // A transaction that may write sees its own changes, too, and pre-reads of later commits.
        self.is_read_only().then(|| self.begin_ts())
    }

    fn changes_since(&self, since: u64, with_properties: bool, most: usize, out: &mut GraphChanges) -> Result<bool> {
        match self.is_read_only() {
            true => self.view()?.changes_since(since, with_properties, most, out),
            // As for `shown_commit`.
            false => Ok(false),
        }
    }

    fn edges_changed(&self) -> Option<u64> {
        self.view().ok()?.edges_changed()
    }

    fn degrees(
        &self,
        vertices: &[VertexId],
        direction: Direction,
        labels: &LabelFilter,
        out: &mut Vec<u64>,
    ) -> Result<()> {
        self.track_labels(ElementKind::Edge, labels);
        let items = |row: usize, add: AddItem<'_>| lists(vertices[row], direction, labels, add);
        self.read_batch(vertices.len(), out, items, |view, rows, out| {
            view.degrees(&vertices[rows], direction, labels, out)
        })
    }

    fn edge_ends(&self, edges: &[EdgeId], sources: &mut Vec<VertexId>, targets: &mut Vec<VertexId>) -> Result<()> {
        self.view()?.edge_ends(edges, sources, targets)
    }

    fn vertex_labels(&self, vertices: &[VertexId], out: &mut Vec<LabelSetId>) -> Result<()> {
        self.view()?.vertex_labels(vertices, out)
    }

    fn edge_labels(&self, edges: &[EdgeId], out: &mut Vec<LabelSetId>) -> Result<()> {
        self.view()?.edge_labels(edges, out)
    }

    fn vertex_user_ids(&self, vertices: &[VertexId], out: &mut Vec<Value>) -> Result<()> {
        self.view()?.vertex_user_ids(vertices, out)
    }

    fn edge_user_ids(&self, edges: &[EdgeId], out: &mut Vec<Value>) -> Result<()> {
        self.view()?.edge_user_ids(edges, out)
    }

    fn vertex_values(&self, vertices: &[VertexId], key: KeyId, out: &mut ValueRows) -> Result<()> {
        let items = |row: usize, add: AddItem<'_>| add(Item::cell(ElementId::Vertex(vertices[row]), key));
        self.read_batch(vertices.len(), out, items, |view, rows, out| view.vertex_values(&vertices[rows], key, out))
    }

    fn edge_values(&self, edges: &[EdgeId], key: KeyId, out: &mut ValueRows) -> Result<()> {
        let items = |row: usize, add: AddItem<'_>| add(Item::cell(ElementId::Edge(edges[row]), key));
        self.read_batch(edges.len(), out, items, |view, rows, out| view.edge_values(&edges[rows], key, out))
    }

    fn vertex_numbers(&self, vertices: &[VertexId], key: KeyId, out: &mut Numbers) -> Result<bool> {
        let items = |add: AddItem<'_>| vertices.iter().for_each(|&id| add(Item::cell(ElementId::Vertex(id), key)));
        self.read_numbers(items, out, |view, out| view.vertex_numbers(vertices, key, out))
    }

    fn edge_numbers(&self, edges: &[EdgeId], key: KeyId, out: &mut Numbers) -> Result<bool> {
        let items = |add: AddItem<'_>| edges.iter().for_each(|&id| add(Item::cell(ElementId::Edge(id), key)));
        self.read_numbers(items, out, |view, out| view.edge_numbers(edges, key, out))
    }

    fn vertex_properties(
        &self,
        vertices: &[VertexId],
        keys: Option<&[KeyId]>,
        out: &mut Vec<PropertyRow>,
    ) -> Result<()> {
        let items = |row: usize, add: AddItem<'_>| properties_of(ElementId::Vertex(vertices[row]), keys, add);
        self.read_batch(vertices.len(), out, items, |view, rows, out| {
            view.vertex_properties(&vertices[rows], keys, out)
        })
    }

    fn edge_properties(&self, edges: &[EdgeId], keys: Option<&[KeyId]>, out: &mut Vec<PropertyRow>) -> Result<()> {
        let items = |row: usize, add: AddItem<'_>| properties_of(ElementId::Edge(edges[row]), keys, add);
        self.read_batch(edges.len(), out, items, |view, rows, out| view.edge_properties(&edges[rows], keys, out))
    }

    fn vertex_columns(&self, vertices: &[VertexId], keys: Option<&[KeyId]>, out: &mut ValueColumns) -> Result<()> {
        match self.tracking() {
            None => self.view()?.vertex_columns(vertices, keys, out),
            Some(_) => vertex_columns_of_rows(self, vertices, keys, out),
        }
    }

    fn edge_columns(&self, edges: &[EdgeId], keys: Option<&[KeyId]>, out: &mut ValueColumns) -> Result<()> {
        match self.tracking() {
            None => self.view()?.edge_columns(edges, keys, out),
            Some(_) => edge_columns_of_rows(self, edges, keys, out),
        }
    }

    fn index_vertices(
        &self,
        index: IndexId,
        prefix: &[Value],
        range: &IndexRange,
        share: Share,
        out: &mut Vec<VertexId>,
    ) -> Result<()> {
        self.track_index(index, prefix, range);
        self.view()?.index_vertices(index, prefix, range, share, out)
    }

    fn index_edges(
        &self,
        index: IndexId,
        prefix: &[Value],
        range: &IndexRange,
        share: Share,
        out: &mut Vec<EdgeId>,
    ) -> Result<()> {
        self.track_index(index, prefix, range);
        self.view()?.index_edges(index, prefix, range, share, out)
    }

    fn intersect_vertices(&self, lookups: &[IndexLookup<'_>], share: Share, out: &mut Vec<VertexId>) -> Result<()> {
        lookups.iter().for_each(|lookup| self.track_index(lookup.index, lookup.prefix, lookup.range));
        self.view()?.intersect_vertices(lookups, share, out)
    }

    fn find_few_vertices(
        &self,
        lookups: &[IndexLookup<'_>],
        share: Share,
        most: usize,
        out: &mut Vec<VertexId>,
    ) -> Result<bool> {
        let is_complete = self.view()?.find_few_vertices(lookups, share, most, out)?;
        // Nothing depends on a search that was given up.
        if is_complete {
            lookups.iter().for_each(|lookup| self.track_index(lookup.index, lookup.prefix, lookup.range));
        }
        Ok(is_complete)
    }

    fn intersect_edges(&self, lookups: &[IndexLookup<'_>], share: Share, out: &mut Vec<EdgeId>) -> Result<()> {
        lookups.iter().for_each(|lookup| self.track_index(lookup.index, lookup.prefix, lookup.range));
        self.view()?.intersect_edges(lookups, share, out)
    }

    fn indexes(&self) -> Vec<IndexInfo> {
        self.view_unchecked().indexes()
    }

    fn live_counts(&self) -> LiveCounts {
        self.view_unchecked().live_counts()
    }

    fn connection_epoch(&self) -> Option<u64> {
        // TXN-23.
        if self.is_read_only() { self.store().connection_epoch() } else { None }
    }

    fn connections(&self) -> Option<Arc<Connections>> {
        if self.is_read_only() { self.store().connections() } else { None }
    }
}

impl Transaction {
    /// The graph as [`Transaction::view`] shows it. If the transaction has written nothing, the store is told that it
    /// has no own writes: it then knows most counts without looking at the elements.
    fn view_for_counts(&self) -> Result<PinnedView<'_>> {
        self.check_alive()?;
        match self.has_writes() {
            true => self.view(),
            false => self.view_at(Snapshot::committed(self.begin_ts())),
        }
    }

    fn retain<T: Copy + PartialEq>(
        &self,
        ids: &mut Vec<T>,
        element: fn(T) -> ElementId,
        retain: impl Fn(&StoreView<'_>, &mut Vec<T>) -> Result<()>,
    ) -> Result<()> {
        if self.tracking().is_none() {
            return retain(&*self.view()?, ids);
        }
        let mut kept: Vec<bool> = Vec::with_capacity(ids.len());
        let items = |row: usize, add: AddItem<'_>| add(Item::existence(element(ids[row])));
        self.read_batch(ids.len(), &mut kept, items, |view, rows, kept| {
            let mut left = ids[rows.clone()].to_vec();
            retain(view, &mut left)?;
            let mut left = left.into_iter().peekable();
            kept.extend(ids[rows].iter().map(|id| left.next_if_eq(id).is_some()));
            Ok(())
        })?;
        let mut kept = kept.into_iter();
        ids.retain(|_| kept.next().expect("an answer for every id"));
        Ok(())
    }

    /// Adds the items that a search for values in a range may miss.
    fn track_values(&self, kind: ElementKind, labels: &LabelFilter, key: KeyId, range: &IndexRange) {
        if self.tracking().is_some_and(Tracking::sets_newer) {
            // The search may miss an element itself, so the insertion of the element must be a conflict.
            self.track_scan(kind, labels, |set| Item::scan(kind, set));
        }
        match range {
            IndexRange::Equal(values) => {
                values.iter().for_each(|value| self.track_scan(kind, labels, |set| Item::value(kind, key, set, value)));
            }
            IndexRange::Between { .. } => {
                self.track_predicate(|| Predicate { kind, labels: labels.clone(), key, range: range.clone() });
            }
        }
    }

    /// Adds the values that an index search asks for: every write that changes its result writes one of them.
    fn track_index(&self, index: IndexId, prefix: &[Value], range: &IndexRange) {
        if self.tracking().is_none() {
            return;
        }
        // A search in an index that does not exist reads nothing.
        let Some(info) = self.view_unchecked().indexes().into_iter().find(|info| info.id == index) else { return };
        let labels = match info.label {
            None => LabelFilter::Any,
            Some(label) => LabelFilter::Sets(self.catalog().label_sets_with_any(&[label]).into()),
        };
        for (key, value) in info.keys.iter().zip(prefix) {
            self.track_values(info.element, &labels, *key, &IndexRange::Equal(vec![value.clone()]));
        }
        if let Some(key) = info.keys.get(prefix.len()) {
            self.track_values(info.element, &labels, *key, range);
        }
    }
}
