//! Transactions over the multi-version store.
//!
//! ```text
//! begin ──▶ read at the stable watermark, write under claims ──▶ commit: draw a timestamp,
//!   │                                                            replace claims by it, finish ──▶ wait for the
//!   └───────────────▶ conflict, rollback, drop: take claims back                                   watermark
//! ```
//!
//! - The *clock* ([`watermark`]) draws commit timestamps; the *stable watermark* is the largest timestamp at or
//!   below which every transaction has finished. A transaction reads at the watermark of its begin, so it
//!   never meets a half-installed commit: reads never wait and never abort.
//! - A commit is acknowledged when the watermark has passed its timestamp: whoever begins after that sees it.
//! - Write-write conflicts are found where they happen (`mangrove_store::write`); the first updater wins, the other
//!   is rolled back at once and says so from then on.
//! - Isolation is chosen by transaction ([`Isolation`]). Validation is being built: until it is there, serializable
//!   transactions get what snapshot transactions get.
//!
//! Three files to read: [`watermark`], `manager`, `transaction`.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod bulk;
mod collector;
mod counters;
mod manager;
mod settings;
mod snapshots;
mod transaction;
mod view;
pub mod watermark;

pub use bulk::BulkLoad;
pub use counters::{AbortCause, TransactionCounters};
pub use manager::{Isolation, TransactionManager, TransactionOptions};
pub use settings::Settings;
pub use transaction::{CommitInfo, Transaction};

// What a caller needs to write with.
pub use mangrove_store::{GarbageReport, IndexOptions, WriteCardinality};
