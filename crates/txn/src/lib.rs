//! Transactions over the multi-version store.
//!
//! ```text
//! begin ──▶ read at the stable watermark, ──▶ enter validation: draw a timestamp, ──▶ validate ──▶ stamp the claims,
//!   │       write under claims               publish the write set (one step)          │         wait for the watermark
//!   └─────────────┴── conflict, rollback, drop ───────────────┴────────────────────────┴──▶ take the claims back
//! ```
//!
//! - The *clock* ([`RecentOptions`], `recent`) draws commit timestamps; the *stable watermark* is the largest timestamp
//!   at or below which every transaction has finished. A transaction reads at the watermark of its begin, so it
//!   never meets a half-installed commit.
//! - A commit is acknowledged when the watermark has passed its timestamp: whoever begins after that sees it.
//! - Write-write conflicts are found where they happen (`mangrove_store::Writer`); the first updater wins, the other
//!   is rolled back at once and says so from then on.
//! - Serializable transactions that may write keep what they read, may read what validating writers wrote
//!   (optimistic pre-read), and validate before they commit. Read-only and snapshot transactions do none of that, never
//!   wait for writers and never abort because of what they read.
//!
//! | module | what it holds |
//! |---|---|
//! | `options`, `settings`, `manager`, `transaction` | begin; reads and writes of one transaction |
//! | `shared` | what the manager, transactions and collector share |
//! | `status` | TST: what each running transaction is doing |
//! | `recent`, `outcome`, `history` | RCT: clock, recent write sets and outcomes, watermark; what was written before those |
//! | `reads`, `tracking`, `lists`, `view` | read sets and how they come about; pre-read |
//! | `commit`, `validation` | from the entry into validation to the end |
//! | `log` | what a commit log is told, and who waits for it |
//! | `hold` | who uses what all share |
//! | `held` | what a transaction's read set and log of writes take of the memory budget |
//! | `expiry` | which transactions are too old |
//! | `collector`, `workers` | what a round of garbage collection does; the threads that work rounds |
//! | `sync` | the primitives, exchangeable for a model checker's |
//!
//! The protocol, with its proof and invariants, is in `docs/design/transactions.md`. Lock order: a transaction's log,
//! its read set, the trimming of the ring, the ordered step, a ring entry, the history; none is held while the store is read or written, but the log's.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod bulk;
mod collector;
mod commit;
mod counters;
mod expiry;
mod held;
mod history;
mod hold;
mod lists;
mod log;
mod manager;
mod options;
mod outcome;
mod reads;
mod recent;
mod schema;
mod settings;
mod shared;
mod status;
mod sync;
mod tracking;
mod transaction;
mod validation;
mod view;
mod workers;

pub use bulk::BulkLoad;
pub use commit::Validating;
pub use counters::{AbortCause, TransactionCounters};
pub use hold::{Hold, Holds};
pub use log::{CommitLog, IndexChange, PreparedCommit, Watermarks};
pub use manager::TransactionManager;
pub use options::{Isolation, TransactionOptions};
pub use recent::RecentOptions;
pub use settings::Settings;
pub use transaction::{CommitInfo, Transaction};
pub use workers::GC_WORKERS_MAX;

// What a caller needs to write with.
pub use mangrove_store::{GarbageReport, IndexOptions, WriteCardinality};
