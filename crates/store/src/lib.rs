//! The multi-version property graph in memory.
//!
//! A store consists of tablets, and a tablet of pages. A page has up to 1,024 vertices or edges of one label set, with
//! typed columns for their properties and, for vertices, tables of adjacency lists. Version information is transient.
//! Elements that all snapshots see have none, and are scanned and expanded at the speed of a static array.
//!
//! The folders, lowest layer first. Each uses only those above it in this table:
//!
//! | folder | what it holds |
//! |---|---|
//! | `sizes` | the sizes at which structures take another form: options that tests make small |
//! | `memory` | accounting of memory, garbage that waits for readers, logs that wait for collection |
//! | `version` | version words and the one visibility function: read this first |
//! | `connections` | which label sets edges have connected: facts that plans rely on |
//! | `change_log` | what commits have done to edges, for readers that keep lists of their own |
//! | `cell` | property values: newest in place, older ones on an undo chain |
//! | `adjacency` | adjacency lists: descriptor words, packed runs, headers, tails |
//! | `page` | pages of vertices and edges, free slots, tablets; freezing |
//! | `index` | from ids and from property values to elements |
//! | [`schema`] | the rules that commits are checked by |
//! | `store` | [`Store`]: all tablets and indexes, and how an element is found |
//! | `write` | how transactions claim versions, and how claims are finalized: read this second |
//! | `read` | the batched read interface |
//! | `load` | bulk load, [`image`]s of pages for checkpoints, and [`restore`] |
//! | `garbage` | from the log of a finished transaction to free records, packed lists and frozen pages |
//!
//! Not here: timestamps, the commit protocol and isolation (`txn`, which also lends threads to the collector),
//! durability (`durable`), and when memory may be used again (`mangrove_reclaim`). `docs/design/store.md` has layouts
//! and protocols, and lists the invariants STORE-n.
//!
//! Shared mutable state consists of atomics, `OnceLock`, locks, and the structures of `mangrove_reclaim`.

#![deny(unsafe_code)]
#![warn(missing_docs)]

mod adjacency;
mod cell;
mod change_log;
mod connections;
mod garbage;
mod index;
mod load;
mod memory;
mod page;
mod read;
pub mod schema;
mod sizes;
mod store;
mod version;
mod write;

pub use cell::{Content, MultiProperty, MultiValue};
pub use garbage::{Effort, RunningTransactions};
pub use index::{INDEX_KEYS_MAX, IndexOptions, IndexReport};
pub use load::{BulkColumn, BulkLoader, ColumnData, image, restore};
pub use memory::{Backlog, GarbageReport, MemoryReport, MemoryRow, RecordKind, Write};
pub use read::{AdjacencyLayout, StatisticsPass, StoreView, lists};
pub use sizes::StoreSizes;
pub use store::{Store, StoreOptions};
pub use version::installing::Announced;
pub use version::{ClaimStatus, STATEMENT_MAX, Snapshot, Watch, claim};
pub use write::changes::{ChangeVisitor, ChangedElement, ChangedProperty, user_id_hash};
pub use write::redo::Redo;
pub use write::{WriteCardinality, Writer};
