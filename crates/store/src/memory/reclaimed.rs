//! Counters of what waits to be reclaimed and what was, for reports.

use mangrove_reclaim::sync::AtomicU64;

/// What was reclaimed since the store was made.
#[derive(Debug, Default)]
pub(crate) struct Reclaimed {
    pub(crate) versions: AtomicU64,
    pub(crate) values: AtomicU64,
    pub(crate) vertices: AtomicU64,
    pub(crate) edges: AtomicU64,
    pub(crate) cells: AtomicU64,
    pub(crate) tables: AtomicU64,
    pub(crate) pages: AtomicU64,
}

/// What waits to be reclaimed, and what was, since the store was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GarbageReport {
    /// Writes of commits that a running snapshot may look behind.
    pub queued_writes: u64,
    /// Tasks that are ready.
    pub tasks: u64,
    /// Things unlinked that wait for readers to leave.
    pub in_limbo: u64,
    /// Older versions of properties reclaimed.
    pub versions: u64,
    /// Records of the value region reclaimed.
    pub values: u64,
    /// Slots of vertices reclaimed.
    pub vertices: u64,
    /// Slots of edges reclaimed.
    pub edges: u64,
    /// Cells of adjacency lists dropped.
    pub cells: u64,
    /// Adjacency tables compacted.
    pub tables: u64,
    /// Pages that lost their version words.
    pub pages: u64,
}
