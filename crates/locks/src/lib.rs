//! Locks with a rank. One table ([`rank`]) gives the order of locks in the crates up to the transactions, and debug
//! builds check it.
//!
//! A thread may wait for a lock only if all locks that it holds have a lower rank, which means that they stand earlier
//! in the table. Then no circle of threads can wait for one another. The rank of a lock is part of its type, so a field
//! says which row of the table it is:
//!
//! ```
//! use mangrove_locks::{Mutex, rank};
//!
//! let checkpoints: Mutex<u32, rank::CheckpointState> = Mutex::new(0);
//! let queue: Mutex<Vec<u32>, rank::LogQueue> = Mutex::default();
//! let number = checkpoints.lock();
//! queue.lock().push(*number);
//! ```
//!
//! - A lock that is tried ([`Mutex::try_lock`]) makes no thread wait, so it may have any rank. While it is held it
//!   counts.
//! - The locks of one rank are not held together: a thread that holds one of them does not wait for another.
//! - A `RwLock` counts as a mutex, for readers too: a reader that waits for a writer closes a circle as well as any
//!   other.
//!
//! In release builds (without `debug_assertions`) a rank takes no memory and a check no time. With the feature `model`
//! no order is checked.
//!
//! These locks have no rank:
//!
//! - Locks that are created and dropped within one function.
//! - Locks of the crates above the transactions, except the server's locks for creating and dropping graphs.
//! - The locks of the catalog (`mangrove_graph`). They are held for a look-up, and no other lock is taken under them.
//!
//! Existing crates do not serve. `tracing-mutex` finds circles in the orders that it has seen, with one node per lock.
//! It gives no order to read, and a graph has a latch for each column of each page. `lock-hierarchy` gives each lock a
//! level as a number, over the locks of std only. `ordered-locks` hands tokens through every function that locks. None
//! of them works over shuttle's mutex too.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod held;
#[cfg(feature = "model")]
pub mod model;
mod mutex;
pub mod rank;
mod rw_lock;

pub use held::Guard;
pub use mutex::Mutex;
pub use rank::Rank;
pub use rw_lock::RwLock;
