//! The pages of vertices of a view: for readers that read a graph page by page, and later only what has changed.

use crate::ids::{EdgeId, KeyId, LabelSetId, VertexId};
use crate::view::request::ScanCursor;

/// A page of vertices: up to [`PAGE_SLOTS`](crate::PAGE_SLOTS) of them, whose ids follow one another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VertexPage {
    /// The id of the page's first slot, in its first generation.
    pub first: VertexId,
    /// A scan of this page alone, or a walk over its lists.
    pub pages: ScanCursor,
    /// The timestamp of the last commit that added or removed a vertex of the page, or an edge of one; `None` if the view does
    /// not know. It may be that of a later commit than those that the view shows.
    pub changed: Option<u64>,
    /// As `changed`, of the last commit that wrote a property of an edge of one of the vertices; `None` if the view does not know, as before it was
    /// asked for such changes ([`GraphView::changes_since`](crate::GraphView::changes_since)).
    pub edges_written: Option<u64>,
}

/// What commits have done to the edges and the vertices of a graph, in any order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct GraphChanges {
    /// What was done to edges.
    pub edges: Vec<EdgeChange>,
    /// A vertex at least of each page to which vertices came, which vertices left, or in which something has changed that is not known. Such a page is
    /// to be read again.
    pub vertices: Vec<VertexId>,
}

/// What a commit has done to an edge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EdgeChange {
    /// The edge.
    pub edge: EdgeId,
    /// The vertex that it leads from.
    pub source: VertexId,
    /// The vertex that it leads to.
    pub target: VertexId,
    /// What was done.
    pub kind: EdgeChangeKind,
}

/// How a commit has changed an edge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EdgeChangeKind {
    /// It added the edge, which has these labels.
    Added(LabelSetId),
    /// It removed the edge, which had these labels.
    Removed(LabelSetId),
    /// It wrote or removed the edge's property under this key.
    Wrote(KeyId),
}
