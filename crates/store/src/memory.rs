//! Accounting of the store's memory, and garbage on its way to free memory.
//!
//! | module | what it holds |
//! |---|---|
//! | `accounting` | counters of memory by kind, and the limit |
//! | `write_log` | the entries of a transaction's log |
//! | `log_queue` | logs of commits that wait until every snapshot has passed them |
//! | `limbo` | unlinked memory and records that wait for their grace period |
//! | `reclaimed` | figures of both |
//!
//! This is the lowest layer of the store, and knows elements by their ids only. The structures come from
//! `mangrove_reclaim`; here their memory is counted by kind.

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
pub(crate) use self::log_queue::{BEHIND_WRITES, LogQueue, SHARDS};
pub use self::reclaimed::GarbageReport;
pub(crate) use self::reclaimed::Reclaimed;
pub use self::write_log::Write;

/// An array that grows while readers use it. Its memory counts under a [`RecordKind`].
pub(crate) type ChunkedArray<T, const BASE_LOG2: u32> = mangrove_reclaim::ChunkedArray<T, RecordKind, BASE_LOG2>;
/// Records that are handed out by number. Their memory counts under a [`RecordKind`].
pub(crate) type Pool<T, const BASE_LOG2: u32> = mangrove_reclaim::Pool<T, RecordKind, BASE_LOG2>;
/// Rows of entries that are handed out by number. Their memory counts under a [`RecordKind`].
pub(crate) type Arena<T, const LOG2: u32> = mangrove_reclaim::Arena<T, RecordKind, LOG2>;
