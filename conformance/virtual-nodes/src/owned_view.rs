//! The view of one node. It refuses to read elements in tablets of another node's share.
//!
//! Scans, counts and index reads take the share as an argument, and the view does not check it. If an operator passed a
//! wrong one, rows would be missing or repeated in the results.

use std::sync::Arc;

use mangrove_graph::view::{
    ExpandCursor, ExpandRequest, Expansion, GraphView, IndexInfo, IndexLookup, IndexRange, LabelFilter, LiveCounts,
    PropertyRow, ScanCursor, Share, ValueRows,
};
use mangrove_graph::{
    AdjacencyRequest, AdjacencyRuns, Catalog, Direction, EdgeId, Error, IndexId, KeyId, LabelSetId, Numbers, Result,
    TabletId, UserId, Value, ValueColumns, VertexId, forward_view,
};

/// The view of a whole graph, restricted to the share of one node.
///
/// A read of an element of another node is a bug of the engine and fails with one. Every node may find any element by
/// its user id, and read user ids of all elements and labels of all vertices. A reference to an element consists of
/// these: `elementMap()` of an edge shows both of its ends. A cluster would store them with the edge, or fetch them
/// with it.
pub struct OwnedView {
    whole: Arc<dyn GraphView>,
    share: Share,
}

impl OwnedView {
    /// The view of the node that owns `share`.
    pub fn new(whole: Arc<dyn GraphView>, share: Share) -> Self {
        OwnedView { whole, share }
    }

    /// Fails if one of these tablets belongs to another node.
    fn own(&self, mut tablets: impl Iterator<Item = TabletId>) -> Result<()> {
        if tablets.all(|t| self.share.takes(t)) {
            return Ok(());
        }
        Err(Error::bug(format!("node {} was sent what another node owns", self.share.index)))
    }

    fn own_vertices(&self, ids: &[VertexId]) -> Result<()> {
        self.own(ids.iter().map(|v| v.tablet()))
    }

    fn own_edges(&self, ids: &[EdgeId]) -> Result<()> {
        self.own(ids.iter().map(|e| e.tablet()))
    }
}

/// Methods of [`GraphView`] that forward to the whole view, after a check that the node owns the elements of the first
/// argument.
macro_rules! forward {
    (own_vertices: $(fn $name:ident($ids:ident: $first:ty, $($argument:ident: $type:ty),*) -> $result:ty;)*) => {
        $(fn $name(&self, $ids: $first, $($argument: $type),*) -> $result {
            self.own_vertices($ids)?;
            self.whole.$name($ids, $($argument),*)
        })*
    };
    (own_edges: $(fn $name:ident($ids:ident: $first:ty, $($argument:ident: $type:ty),*) -> $result:ty;)*) => {
        $(fn $name(&self, $ids: $first, $($argument: $type),*) -> $result {
            self.own_edges($ids)?;
            self.whole.$name($ids, $($argument),*)
        })*
    };
}

impl GraphView for OwnedView {
    forward_view! { |this| this.whole =>
        fn catalog() -> &Catalog;
        fn key_of(name: &str) -> Option<KeyId>;
        fn find_vertices(ids: &[UserId], out: &mut Vec<Option<VertexId>>) -> Result<()>;
        fn find_edges(ids: &[UserId], out: &mut Vec<Option<EdgeId>>) -> Result<()>;
        fn scan_vertices(labels: &LabelFilter, share: Share, cursor: &mut ScanCursor, limit: usize, out: &mut Vec<VertexId>) -> Result<bool>;
        fn scan_edges(labels: &LabelFilter, share: Share, cursor: &mut ScanCursor, limit: usize, out: &mut Vec<EdgeId>) -> Result<bool>;
        fn scan_vertices_where(labels: &LabelFilter, key: KeyId, range: &IndexRange, share: Share, cursor: &mut ScanCursor, limit: usize, out: &mut Vec<VertexId>) -> Result<bool>;
        fn scan_edges_where(labels: &LabelFilter, key: KeyId, range: &IndexRange, share: Share, cursor: &mut ScanCursor, limit: usize, out: &mut Vec<EdgeId>) -> Result<bool>;
        fn count_vertices(labels: &LabelFilter, share: Share) -> Result<u64>;
        fn count_edges(labels: &LabelFilter, share: Share) -> Result<u64>;
        fn vertex_labels(vertices: &[VertexId], out: &mut Vec<LabelSetId>) -> Result<()>;
        fn vertex_user_ids(vertices: &[VertexId], out: &mut Vec<Value>) -> Result<()>;
        fn edge_user_ids(edges: &[EdgeId], out: &mut Vec<Value>) -> Result<()>;
        fn indexes() -> Vec<IndexInfo>;
        fn index_vertices(index: IndexId, prefix: &[Value], range: &IndexRange, share: Share, out: &mut Vec<VertexId>) -> Result<()>;
        fn index_edges(index: IndexId, prefix: &[Value], range: &IndexRange, share: Share, out: &mut Vec<EdgeId>) -> Result<()>;
        fn intersect_vertices(lookups: &[IndexLookup<'_>], share: Share, out: &mut Vec<VertexId>) -> Result<()>;
        fn find_few_vertices(lookups: &[IndexLookup<'_>], share: Share, most: usize, out: &mut Vec<VertexId>) -> Result<bool>;
        fn intersect_edges(lookups: &[IndexLookup<'_>], share: Share, out: &mut Vec<EdgeId>) -> Result<()>;
        fn live_counts() -> LiveCounts;
    }

    forward! { own_vertices:
        fn expand(vertices: &[VertexId], request: &ExpandRequest, cursor: &mut ExpandCursor, out: &mut Expansion) -> Result<bool>;
        fn degrees(vertices: &[VertexId], direction: Direction, labels: &LabelFilter, out: &mut Vec<u64>) -> Result<()>;
        fn vertex_values(vertices: &[VertexId], key: KeyId, out: &mut ValueRows) -> Result<()>;
        fn vertex_numbers(vertices: &[VertexId], key: KeyId, out: &mut Numbers) -> Result<bool>;
        fn vertex_properties(vertices: &[VertexId], keys: Option<&[KeyId]>, out: &mut Vec<PropertyRow>) -> Result<()>;
        fn vertex_columns(vertices: &[VertexId], keys: Option<&[KeyId]>, out: &mut ValueColumns) -> Result<()>;
    }

    forward! { own_edges:
        fn edge_ends(edges: &[EdgeId], sources: &mut Vec<VertexId>, targets: &mut Vec<VertexId>) -> Result<()>;
        fn edge_labels(edges: &[EdgeId], out: &mut Vec<LabelSetId>) -> Result<()>;
        fn edge_values(edges: &[EdgeId], key: KeyId, out: &mut ValueRows) -> Result<()>;
        fn edge_numbers(edges: &[EdgeId], key: KeyId, out: &mut Numbers) -> Result<bool>;
        fn edge_properties(edges: &[EdgeId], keys: Option<&[KeyId]>, out: &mut Vec<PropertyRow>) -> Result<()>;
        fn edge_columns(edges: &[EdgeId], keys: Option<&[KeyId]>, out: &mut ValueColumns) -> Result<()>;
    }

    fn retain_vertices(&self, ids: &mut Vec<VertexId>) -> Result<()> {
        ids.retain(|v| self.share.takes(v.tablet()));
        self.whole.retain_vertices(ids)
    }

    fn retain_edges(&self, ids: &mut Vec<EdgeId>) -> Result<()> {
        ids.retain(|e| self.share.takes(e.tablet()));
        self.whole.retain_edges(ids)
    }

    fn for_each_adjacency(
        &self,
        request: &AdjacencyRequest,
        each: &mut dyn FnMut(&AdjacencyRuns<'_>) -> Result<()>,
    ) -> Result<()> {
        if request.share != self.share {
            return Err(Error::bug(format!("node {} was asked for another node's share", self.share.index)));
        }
        self.whole.for_each_adjacency(request, each)
    }
}
