//! [`GraphView`] of a transaction: the store's view at its snapshot, as long as the transaction is alive.

use mangrove_graph::{
    AdjacencyRequest, AdjacencyRuns, Catalog, Direction, EdgeId, ExpandCursor, ExpandRequest, Expansion, GraphView,
    IndexId, IndexInfo, IndexRange, KeyId, LabelFilter, LabelSetId, Numbers, PropertyRow, Result, ScanCursor, Share,
    Statistics, UserId, Value, ValueRows, VertexId,
};

use crate::transaction::Transaction;

impl GraphView for Transaction {
    fn catalog(&self) -> &Catalog {
        self.store().catalog()
    }

    fn find_vertices(&self, ids: &[UserId], out: &mut Vec<Option<VertexId>>) -> Result<()> {
        self.view()?.find_vertices(ids, out)
    }

    fn find_edges(&self, ids: &[UserId], out: &mut Vec<Option<EdgeId>>) -> Result<()> {
        self.view()?.find_edges(ids, out)
    }

    fn retain_vertices(&self, ids: &mut Vec<VertexId>) -> Result<()> {
        self.view()?.retain_vertices(ids)
    }

    fn retain_edges(&self, ids: &mut Vec<EdgeId>) -> Result<()> {
        self.view()?.retain_edges(ids)
    }

    fn scan_vertices(
        &self,
        labels: &LabelFilter,
        share: Share,
        cursor: &mut ScanCursor,
        limit: usize,
        out: &mut Vec<VertexId>,
    ) -> Result<bool> {
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
        self.view()?.scan_edges_where(labels, key, range, share, cursor, limit, out)
    }

    fn count_vertices(&self, labels: &LabelFilter, share: Share) -> Result<u64> {
        self.view()?.count_vertices(labels, share)
    }

    fn count_edges(&self, labels: &LabelFilter, share: Share) -> Result<u64> {
        self.view()?.count_edges(labels, share)
    }

    fn expand(
        &self,
        vertices: &[VertexId],
        request: &ExpandRequest,
        cursor: &mut ExpandCursor,
        out: &mut Expansion,
    ) -> Result<bool> {
        self.view()?.expand(vertices, request, cursor, out)
    }

    fn for_each_adjacency(
        &self,
        request: &AdjacencyRequest,
        each: &mut dyn FnMut(&AdjacencyRuns<'_>) -> Result<()>,
    ) -> Result<()> {
        self.view()?.for_each_adjacency(request, each)
    }

    fn degrees(
        &self,
        vertices: &[VertexId],
        direction: Direction,
        labels: &LabelFilter,
        out: &mut Vec<u64>,
    ) -> Result<()> {
        self.view()?.degrees(vertices, direction, labels, out)
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
        self.view()?.vertex_values(vertices, key, out)
    }

    fn edge_values(&self, edges: &[EdgeId], key: KeyId, out: &mut ValueRows) -> Result<()> {
        self.view()?.edge_values(edges, key, out)
    }

    fn vertex_numbers(&self, vertices: &[VertexId], key: KeyId, out: &mut Numbers) -> Result<bool> {
        self.view()?.vertex_numbers(vertices, key, out)
    }

    fn edge_numbers(&self, edges: &[EdgeId], key: KeyId, out: &mut Numbers) -> Result<bool> {
        self.view()?.edge_numbers(edges, key, out)
    }

    fn vertex_properties(
        &self,
        vertices: &[VertexId],
        keys: Option<&[KeyId]>,
        out: &mut Vec<PropertyRow>,
    ) -> Result<()> {
        self.view()?.vertex_properties(vertices, keys, out)
    }

    fn edge_properties(&self, edges: &[EdgeId], keys: Option<&[KeyId]>, out: &mut Vec<PropertyRow>) -> Result<()> {
        self.view()?.edge_properties(edges, keys, out)
    }

    fn index_vertices(
        &self,
        index: IndexId,
        prefix: &[Value],
        range: &IndexRange,
        share: Share,
        out: &mut Vec<VertexId>,
    ) -> Result<()> {
        self.view()?.index_vertices(index, prefix, range, share, out)
    }

    fn vertex_indexes(&self) -> Vec<IndexInfo> {
        self.peek().vertex_indexes()
    }

    fn statistics(&self) -> Statistics {
        self.peek().statistics()
    }
}
