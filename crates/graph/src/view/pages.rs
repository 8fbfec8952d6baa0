//! The pages of vertices of a view: for readers that read a graph page by page, and later only what has changed.

use crate::ids::{EdgeId, KeyId, LabelSetId, VertexId};
use crate::value::Direction;
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
    /// asked for such changes ([`GraphView::list_changes`](crate::GraphView::list_changes)).
    pub edges_written: Option<u64>,
}

/// What a commit has done to an edge in a list of a page. An edge is in two lists: among the outgoing edges of one vertex, and among the incoming
/// ones of another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ListChange {
    /// The slot, in its page, of the vertex whose list it is.
    pub slot: u16,
    /// Whether it is the list of outgoing or of incoming edges; not `Both`.
    pub direction: Direction,
    /// The other end of the edge.
    pub neighbor: VertexId,
    /// The edge.
    pub edge: EdgeId,
    /// What was done.
    pub kind: ListChangeKind,
}

/// What a commit has done to an edge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ListChangeKind {
    /// It added the edge, which has these labels.
    Added(LabelSetId),
    /// It removed the edge, which had these labels.
    Removed(LabelSetId),
    /// It wrote or removed the edge's property under this key.
    Wrote(KeyId),
}
