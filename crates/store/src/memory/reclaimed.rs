//! Figures of garbage that waits and of garbage that was collected, for reports.
//!
//! Collectors add to the counts. No decision depends on them.

use mangrove_reclaim::sync::AtomicU64;

/// Counts of the garbage that was collected since the store was made. [`GarbageReport`] explains the fields.
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

/// Counts of garbage that waits, and of garbage that was collected since the store was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GarbageReport {
    /// Waiting: writes in the logs of commits.
    pub queued_writes: u64,
    /// Waiting: tasks of tablets that a collector may work off.
    pub tasks: u64,
    /// Waiting: unlinked memory and records whose grace period is not over.
    pub in_limbo: u64,
    /// Collected: older versions of properties.
    pub versions: u64,
    /// Collected: records of the value region.
    pub values: u64,
    /// Collected: slots of vertices.
    pub vertices: u64,
    /// Collected: slots of edges.
    pub edges: u64,
    /// Collected: cells of adjacency lists.
    pub cells: u64,
    /// Compacted adjacency tables.
    pub tables: u64,
    /// Frozen pages.
    pub pages: u64,
}
