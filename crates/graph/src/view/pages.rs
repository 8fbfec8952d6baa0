//! The pages of vertices of a view: for readers that read a graph page by page, and later only what has changed.

use crate::ids::{LabelSetId, VertexId};
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
}

/// An edge that came to a list of a page, or left it. An edge of two vertices is in an outgoing and in an incoming list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ListChange {
    /// The slot, in its page, of the vertex whose list it is.
    pub slot: u16,
    /// Whether it is the list of outgoing or of incoming edges; not `Both`.
    pub direction: Direction,
    /// The label set of the edge.
    pub labels: LabelSetId,
    /// The other end of the edge.
    pub neighbor: VertexId,
    /// Whether the edge came.
    pub is_added: bool,
}
