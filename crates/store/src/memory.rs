//! Where the store's memory goes, and what of it waits to be used again.
//!
//! The lowest layer of the store: it knows elements by their ids only. The structures come from `mangrove_reclaim`, whose
//! memory is counted here by kind.

mod accounting;
mod limbo;
mod log_queue;
mod reclaimed;
mod write_log;

pub use self::accounting::{Memory, MemoryReport, MemoryRow, RecordKind};
#[cfg(all(test, not(feature = "model")))]
pub(crate) use self::limbo::release_boxes;
pub(crate) use self::limbo::{Garbage, Limbo, Space};
pub use self::log_queue::Backlog;
pub(crate) use self::log_queue::{BEHIND_WRITES, Queue};
pub use self::reclaimed::GarbageReport;
pub(crate) use self::reclaimed::Reclaimed;
pub use self::write_log::Write;

/// An array that grows while readers use it, counted under a kind.
pub(crate) type ChunkedArray<T, const BASE_LOG2: u32> = mangrove_reclaim::ChunkedArray<T, RecordKind, BASE_LOG2>;
/// Records handed out by number, counted under a kind.
pub(crate) type Pool<T, const BASE_LOG2: u32> = mangrove_reclaim::Pool<T, RecordKind, BASE_LOG2>;
/// Rows of entries handed out by number, counted under a kind.
pub(crate) type Arena<T, const LOG2: u32> = mangrove_reclaim::Arena<T, RecordKind, LOG2>;
