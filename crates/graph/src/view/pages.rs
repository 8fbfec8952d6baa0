//! The pages of vertices of a view: for readers that read a graph page by page, and later only the pages that have changed.

use crate::ids::VertexId;
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
