//! Memory that readers may still hold: when it may be freed or used again, and the lock-free structures built on that.
//!
//! | module | what it holds |
//! |---|---|
//! | [`epoch`] | pins of threads and grace periods: read this first |
//! | `limbo` | unlinked things that wait for their grace period; `retired` is memory among them |
//! | `epoch_cell` | boxes and arrays that are replaced while readers use them |
//! | `record`, `pool` | records that are handed out by number, cleared, and used again |
//! | `chunked`, `arena` | arrays that grow while readers use them; rows of entries whose memory is given back |
//! | `number_set` | the free rows of an arena |
//! | `ledger` | in debug builds: the numbers that pools and arenas have handed out |
//! | `once`, `append_map` | arrays and maps that are made while readers use them, and then stay |
//! | `accounting` | how these structures report their memory to their owner |
//! | [`sync`] | the concurrency primitives, which model tests replace |
//! | [`mod@prefetch`], [`text`] | small functions with `unsafe` inside: loading ahead, and short UTF-8 |
//!
//! This crate knows nothing of graphs, versions or transactions. It holds nearly all `unsafe` of Mangrove. Its only
//! dependency in Mangrove is the crate of the locks, so Miri and the models can run it alone. One public function is
//! `unsafe` to call: [`RecordCell::clear`].
//!
//! The invariants are RECLAIM-1 to RECLAIM-8, each in the header of the module that keeps it.

#![deny(unsafe_code)]
#![warn(missing_docs)]

mod accounting;
mod append_map;
mod arena;
mod chunked;
pub mod epoch;
mod epoch_cell;
mod ledger;
mod limbo;
mod number_set;
mod once;
mod pool;
pub mod prefetch;
mod record;
mod retired;
pub mod sync;
pub mod text;

pub use accounting::Accounting;
pub use append_map::AppendMap;
pub use arena::Arena;
pub use chunked::ChunkedArray;
pub use epoch::{Grace, Pin};
pub use epoch_cell::{EpochCell, EpochSlice, Guarded};
pub use limbo::{Limbo, RELEASED_TOGETHER, Unlinked};
pub use once::{CellArrays, OnceCells, OnceSlice};
pub use pool::{FreeList, Pool, Usage};
pub use record::RecordCell;
pub use retired::Retired;
