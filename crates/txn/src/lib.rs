//! Transactions over the multi-version store: begin, read, write, validate, commit, roll back.
//!
//! ```text
//! begin ──▶ read at the stable watermark, ──▶ enter validation: draw a timestamp, ──▶ validate ──▶ stamp the claims,
//!   │       write under claims               publish the write set (one step)          │         wait for the watermark
//!   └─────────────┴── conflict, rollback, drop ───────────────┴────────────────────────┴──▶ take the claims back
//! ```
//!
//! - The *clock* (`recent`) draws commit timestamps. The *stable watermark* is the largest timestamp at or below which
//!   every transaction has finished. A transaction reads at the watermark of its begin, so it never sees half of a
//!   commit.
//! - A commit is acknowledged when the watermark has passed its timestamp. Every transaction that begins after that
//!   sees it.
//! - The store finds write-write conflicts at the moment of the write (`mangrove_store::write`). The first updater
//!   wins. The other transaction is rolled back at once, and every later call on it reports the conflict.
//! - A serializable transaction that may write keeps its read set, may read the writes of validating writers
//!   (*optimistic pre-read*), and validates its reads before it commits. Read-only and snapshot transactions do none of
//!   this. They never wait for a writer and never abort because of a read.
//!
//! | module | what it holds |
//! |---|---|
//! | `options`, `settings`, `manager`, `transaction` | begin; reads and writes of one transaction |
//! | `shared` | the state that the manager, its transactions and the collector share |
//! | `status` | the status table (TST): the state of each running transaction |
//! | `recent`, `outcome`, `history` | the table of recent commits (RCT): clock, write sets, outcomes, watermark; merged older write sets |
//! | `access_set` | items, and sets of them: the reads and the writes of a transaction, in one vocabulary |
//! | `reads`, `tracking`, `lists`, `view` | read sets and how they are filled; pre-read |
//! | `commit`, `validation` | from the entry into validation to the end |
//! | `log` | the traits that a commit log implements |
//! | `follower`, `following` | redoing the commits of another process while transactions read; refusing other writes |
//! | `expiry` | the expiry of transactions that are too old |
//! | `collector`, `workers` | the rounds of garbage collection; the threads that run rounds |
//! | `statistics`, `refresh` | the newest statistics of the graph; their refresh in the rounds of collectors |
//! | `schema` | making a schema rule while transactions run |
//! | `memory` | the memory that a read set and a log of writes draw from the budget |
//! | `sharded_arc` | reference counting without one shared counter |
//! | `sync` | the concurrency primitives, exchangeable for a model checker's |
//!
//! Locks: `mangrove_locks::rank` has their order. Only a transaction's log of writes is held while the store is read or
//! written.
//!
//! Invariants carry names (**TXN-n**). Each is defined in the header of the module that owns the data, and cited where
//! code keeps it. `docs/design/transactions.md` tells the whole protocol and its proof.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod access_set;
mod bulk;
mod collector;
mod commit;
mod counters;
mod expiry;
mod follower;
mod following;
mod history;
mod lists;
mod log;
mod manager;
mod memory;
mod options;
mod outcome;
mod reads;
mod recent;
mod refresh;
mod schema;
mod settings;
mod sharded_arc;
mod shared;
mod statistics;
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
pub use follower::Follower;
pub use log::{CommitLog, IndexChange, PreparedCommit, Watermarks};
pub use manager::TransactionManager;
pub use options::{Isolation, TransactionOptions};
pub use recent::RecentOptions;
pub use settings::Settings;
pub use sharded_arc::{ShardHandle, ShardedArc};
pub use statistics::{COUNTED_VALUES_MAX, DatedStatistics};
pub use transaction::{CommitInfo, Transaction};
pub use workers::GC_WORKERS_MAX;

// The types of the store that a caller needs for writing.
pub use mangrove_store::{GarbageReport, IndexOptions, WriteCardinality};
