//! Garbage collection: from the log of a finished transaction to free records, packed lists and frozen pages.
//!
//! | module | what it holds |
//! |---|---|
//! | `collect` | versions cut off, elements taken apart, pages frozen, and what left limbo given back |
//! | `compaction` | adjacency tables packed anew |
//!
//! It runs on the threads of committers (for what they wrote themselves) and of collectors. Nothing here takes a lock
//! that readers wait for.

mod collect;
pub(crate) mod compaction;

pub use self::collect::RunningTransactions;
pub use self::compaction::Effort;
