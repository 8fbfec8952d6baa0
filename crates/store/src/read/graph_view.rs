//! [`GraphView`] of a [`StoreView`]: each method opens a pin and hands its batch to the module that reads it.
//!
//! Every call is pinned from its beginning to its end and no longer. The memory that it finds stays until it returns. A
//! cursor that it leaves is a position and holds no memory.

use std::sync::Arc;

use mangrove_graph::{
    AdjacencyRequest, AdjacencyRuns, Catalog, Direction, EdgeId, ElementId, ElementKind, Error, ErrorKind,
    ExpandCursor, ExpandRequest, Expansion, GraphChanges, GraphView, IndexId, IndexInfo, IndexLookup, IndexRange,
    KeyId, LabelFilter, LabelSetId, LiveCounts, Numbers, PropertyRow, Result, ScanCursor, Share, UserId, Value,
    ValueColumns, ValueRows, VertexId, VertexPage, check_value_outputs,
};
use mangrove_reclaim::epoch;

use crate::index::PropertyIndex;
use crate::read::look_up::look_up;
use crate::read::view::{LOOK_AHEAD, StoreView};
use crate::read::{by_index, columns, expand, numbers, properties, runs, scan};

impl GraphView for StoreView<'_> {
    fn catalog(&self) -> &Catalog {
        self.store.catalog()
    }

    fn find_vertices(&self, ids: &[UserId], out: &mut Vec<Option<VertexId>>) -> Result<()> {
        look_up(self, &epoch::pin(), ids, &[], &mut [], |found| out.push(found));
        Ok(())
    }

    fn find_edges(&self, ids: &[UserId], out: &mut Vec<Option<EdgeId>>) -> Result<()> {
        look_up(self, &epoch::pin(), ids, &[], &mut [], |found| out.push(found));
        Ok(())
    }

    fn look_up_vertices(
        &self,
        ids: &[UserId],
        keys: &[KeyId],
        found: &mut Vec<Option<VertexId>>,
        values: &mut [ValueRows],
    ) -> Result<()> {
        check_value_outputs(keys, values)?;
        look_up(self, &epoch::pin(), ids, keys, values, |vertex| found.push(vertex));
        Ok(())
    }

    fn retain_vertices(&self, ids: &mut Vec<VertexId>) -> Result<()> {
        self.retain(|visible| ids.retain(|id| visible(ElementId::Vertex(*id))));
        Ok(())
    }

    fn retain_edges(&self, ids: &mut Vec<EdgeId>) -> Result<()> {
        self.retain(|visible| ids.retain(|id| visible(ElementId::Edge(*id))));
        Ok(())
    }

    fn split_scan(
        &self,
        kind: ElementKind,
        labels: &LabelFilter,
        share: Share,
        cursor: &mut ScanCursor,
    ) -> Option<ScanCursor> {
        scan::split(self, kind, labels, share, cursor)
    }

    fn scan_vertices(
        &self,
        labels: &LabelFilter,
        share: Share,
        cursor: &mut ScanCursor,
        limit: usize,
        out: &mut Vec<VertexId>,
    ) -> Result<bool> {
        let _pin = epoch::pin();
        Ok(scan::vertices(self, labels, share, cursor, limit, out))
    }

    fn scan_edges(
        &self,
        labels: &LabelFilter,
        share: Share,
        cursor: &mut ScanCursor,
        limit: usize,
        out: &mut Vec<EdgeId>,
    ) -> Result<bool> {
        let _pin = epoch::pin();
        Ok(scan::edges(self, labels, share, cursor, limit, out))
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
        let _pin = epoch::pin();
        Ok(scan::vertices_where(self, scan::ValueFilter { labels, key, range }, share, cursor, limit, out))
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
        let _pin = epoch::pin();
        Ok(scan::edges_where(self, scan::ValueFilter { labels, key, range }, share, cursor, limit, out))
    }

    fn count_vertices(&self, labels: &LabelFilter, share: Share) -> Result<u64> {
        let _pin = epoch::pin();
        Ok(scan::count(self, labels, share, |tablet| tablet.vertices.iter().map(|page| &page.core)))
    }

    fn count_edges(&self, labels: &LabelFilter, share: Share) -> Result<u64> {
        let _pin = epoch::pin();
        Ok(scan::count(self, labels, share, |tablet| tablet.edges.iter().map(|page| &page.core)))
    }

    fn expand(
        &self,
        vertices: &[VertexId],
        request: &ExpandRequest,
        cursor: &mut ExpandCursor,
        out: &mut Expansion,
    ) -> Result<bool> {
        let _pin = epoch::pin();
        Ok(expand::expand(self, vertices, request, cursor, out))
    }

    fn for_each_adjacency(
        &self,
        request: &AdjacencyRequest,
        each: &mut dyn FnMut(&AdjacencyRuns<'_>) -> Result<()>,
    ) -> Result<()> {
        runs::for_each(self, request, each)
    }

    fn vertex_pages(&self, labels: &LabelFilter, out: &mut Vec<VertexPage>) -> Result<()> {
        scan::vertex_pages(self, labels, out);
        Ok(())
    }

    fn shown_commit(&self) -> Option<u64> {
        (self.snapshot.txn == 0).then_some(self.snapshot.begin_ts)
    }

    fn changes_since(&self, since: u64, with_properties: bool, most: usize, out: &mut GraphChanges) -> Result<bool> {
        Ok(scan::changes_since(self, since, with_properties, most, out))
    }

    fn edges_changed(&self) -> Option<u64> {
        Some(scan::edges_changed(self.store))
    }

    fn degrees(
        &self,
        vertices: &[VertexId],
        direction: Direction,
        labels: &LabelFilter,
        out: &mut Vec<u64>,
    ) -> Result<()> {
        let _pin = epoch::pin();
        expand::degrees(self, vertices, direction, labels, out);
        Ok(())
    }

    fn edge_ends(&self, edges: &[EdgeId], sources: &mut Vec<VertexId>, targets: &mut Vec<VertexId>) -> Result<()> {
        let pin = epoch::pin();
        for (row, &id) in edges.iter().enumerate() {
            if let Some(&ahead) = edges.get(row + LOOK_AHEAD)
                && let Some((_, page)) = self.store.edge_page(ahead)
            {
                page.prefetch_ends(ahead.offset(), &pin);
            }
            let (_, page) = self
                .store
                .edge_page(id)
                .ok_or_else(|| Error::new(ErrorKind::NotFound, format!("{id:?} is not an edge of this graph")))?;
            let (source, target) = page.ends(id.offset(), &pin);
            sources.push(source);
            targets.push(target);
        }
        Ok(())
    }

    fn vertex_labels(&self, vertices: &[VertexId], out: &mut Vec<LabelSetId>) -> Result<()> {
        let _pin = epoch::pin();
        vertices.iter().try_for_each(|&id| {
            out.push(self.existing_slot(ElementId::Vertex(id))?.core.label);
            Ok(())
        })
    }

    fn edge_labels(&self, edges: &[EdgeId], out: &mut Vec<LabelSetId>) -> Result<()> {
        let _pin = epoch::pin();
        edges.iter().try_for_each(|&id| {
            out.push(self.existing_slot(ElementId::Edge(id))?.core.label);
            Ok(())
        })
    }

    fn vertex_user_ids(&self, vertices: &[VertexId], out: &mut Vec<Value>) -> Result<()> {
        self.push_user_ids(vertices.iter().map(|id| (ElementId::Vertex(*id), id.external())), out)
    }

    fn edge_user_ids(&self, edges: &[EdgeId], out: &mut Vec<Value>) -> Result<()> {
        self.push_user_ids(edges.iter().map(|id| (ElementId::Edge(*id), id.external())), out)
    }

    fn vertex_values(&self, vertices: &[VertexId], key: KeyId, out: &mut ValueRows) -> Result<()> {
        let pin = epoch::pin();
        properties::values(self, &pin, vertices, key, out);
        Ok(())
    }

    fn edge_values(&self, edges: &[EdgeId], key: KeyId, out: &mut ValueRows) -> Result<()> {
        let pin = epoch::pin();
        properties::values(self, &pin, edges, key, out);
        Ok(())
    }

    fn vertex_numbers(&self, vertices: &[VertexId], key: KeyId, out: &mut Numbers) -> Result<bool> {
        let pin = epoch::pin();
        Ok(numbers::numbers(self, &pin, vertices, key, out))
    }

    fn edge_numbers(&self, edges: &[EdgeId], key: KeyId, out: &mut Numbers) -> Result<bool> {
        let pin = epoch::pin();
        Ok(numbers::numbers(self, &pin, edges, key, out))
    }

    fn vertex_properties(
        &self,
        vertices: &[VertexId],
        keys: Option<&[KeyId]>,
        out: &mut Vec<PropertyRow>,
    ) -> Result<()> {
        let pin = epoch::pin();
        properties::rows(self, &pin, vertices, keys, out);
        Ok(())
    }

    fn edge_properties(&self, edges: &[EdgeId], keys: Option<&[KeyId]>, out: &mut Vec<PropertyRow>) -> Result<()> {
        let pin = epoch::pin();
        properties::rows(self, &pin, edges, keys, out);
        Ok(())
    }

    fn vertex_columns(&self, vertices: &[VertexId], keys: Option<&[KeyId]>, out: &mut ValueColumns) -> Result<()> {
        let pin = epoch::pin();
        columns::columns(self, &pin, vertices, keys, out);
        Ok(())
    }

    fn edge_columns(&self, edges: &[EdgeId], keys: Option<&[KeyId]>, out: &mut ValueColumns) -> Result<()> {
        let pin = epoch::pin();
        columns::columns(self, &pin, edges, keys, out);
        Ok(())
    }

    fn indexes(&self) -> Vec<IndexInfo> {
        let usable = |index: &&Arc<PropertyIndex>| index.usable_at(self.snapshot.begin_ts);
        self.store.indexes.load().iter().filter(usable).map(|index| index.info.clone()).collect()
    }

    fn index_vertices(
        &self,
        index: IndexId,
        prefix: &[Value],
        range: &IndexRange,
        share: Share,
        out: &mut Vec<VertexId>,
    ) -> Result<()> {
        self.intersect_vertices(&[IndexLookup { index, prefix, range }], share, out)
    }

    fn index_edges(
        &self,
        index: IndexId,
        prefix: &[Value],
        range: &IndexRange,
        share: Share,
        out: &mut Vec<EdgeId>,
    ) -> Result<()> {
        self.intersect_edges(&[IndexLookup { index, prefix, range }], share, out)
    }

    fn intersect_vertices(&self, lookups: &[IndexLookup<'_>], share: Share, out: &mut Vec<VertexId>) -> Result<()> {
        by_index::search(self, lookups, share, usize::MAX, out).map(|_| ())
    }

    fn find_few_vertices(
        &self,
        lookups: &[IndexLookup<'_>],
        share: Share,
        most: usize,
        out: &mut Vec<VertexId>,
    ) -> Result<bool> {
        by_index::search_few(self, lookups, share, most, out)
    }

    fn intersect_edges(&self, lookups: &[IndexLookup<'_>], share: Share, out: &mut Vec<EdgeId>) -> Result<()> {
        by_index::search(self, lookups, share, usize::MAX, out).map(|_| ())
    }

    fn live_counts(&self) -> LiveCounts {
        scan::live_counts(self.store)
    }
}
