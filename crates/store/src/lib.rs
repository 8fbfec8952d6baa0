//! The multi-version property graph in memory.
//!
//! A store is tablets of pages: 1,024 vertices or edges of one label set each, with typed columns for their
//! properties and, for vertices, tables of adjacency lists. Version information is transient: what was loaded
//! in bulk carries none, and is scanned and expanded at the speed of a static array.
//!
//! | module | what it holds |
//! |---|---|
//! | [`version`] | version words and the one visibility function: read this first |
//! | `page`, `edge_page`, `tablet`, `free_places`, `store` | where elements are, go, and how they are found |
//! | `column`, `cell` | property values: newest in place, older ones on an undo chain |
//! | `adjacency`, `tail` | lists: descriptor words, packed runs, headers, tails |
//! | `id_index`, `property_index`, `index_build` | from ids and values to elements |
//! | [`write`](mod@write), `unique`, `ending` | what transactions claim, and how claims end: read this second |
//! | [`footprint`] | what transactions read and wrote, to be compared |
//! | `redo` | what a commit leaves, to be done again elsewhere |
//! | `view`, `look_up`, `scan`, `expand`, `properties`, `element` | the batched read interface |
//! | `predicate`, `numbers`, `runs` | tests of cells, cells as plain numbers, adjacency in place |
//! | [`bulk`], `pack` | loading an empty graph without transactions |
//! | [`image`], [`restore`] | pages as a checkpoint has them, and a store made of them again |
//! | [`epoch`], `limbo` | pins and grace periods: when what was unlinked may be used again |
//! | `garbage`, `reclaim`, `compaction`, `settle` | from a log to free records, packed lists and clean pages |
//! | `memory`, `segments`, `arena`, `append_map`, `prefetch` | accounting and building blocks |
//! | `sizes` | at what sizes structures take another form: options that tests make small |
//!
//! Not here: timestamps, the commit protocol and isolation (`txn`), which also lends threads to the collection of
//! garbage; durability. Layouts and invariants are drawn up in `docs/design/store.md`.
//!
//! All shared mutable state is atomics, `OnceLock` and `parking_lot` locks. Lock order: an id index shard,
//! a list latch, a placement turn, a property index shard: none is held while another is taken, but for a collector's
//! turn in a tablet, which comes before all of them. `unsafe` is in `epoch` and its users `limbo` and `reclaim`, and in
//! `prefetch` and `text`.

#![deny(unsafe_code)]
#![warn(missing_docs)]

mod adjacency;
mod append_map;
mod arena;
pub mod bulk;
mod cell;
mod column;
mod columns;
mod compaction;
mod edge_page;
mod element;
mod ending;
pub mod epoch;
mod expand;
pub mod footprint;
mod free_places;
mod garbage;
mod id_index;
pub mod image;
mod index_build;
mod installing;
mod layout;
mod limbo;
mod look_up;
mod memory;
#[cfg(feature = "model")]
pub mod model;
mod numbers;
mod once;
mod pack;
mod page;
mod predicate;
mod prefetch;
mod properties;
mod property_index;
mod reclaim;
mod redo;
pub mod restore;
mod runs;
mod scan;
pub mod schema;
mod segments;
mod settle;
mod sight;
mod sizes;
mod sparse;
mod store;
mod sync;
mod tablet;
mod tail;
mod text;
mod undo;
mod unique;
pub mod version;
mod view;
pub mod write;

pub use bulk::{BulkColumn, BulkLoader, ColumnData};
pub use cell::{Content, MultiProperty, MultiValue};
pub use compaction::Effort;
pub use garbage::{Backlog, GarbageReport};
pub use installing::Announced;
pub use layout::AdjacencyLayout;
pub use memory::{MemoryReport, MemoryRow, RecordKind};
pub use property_index::{INDEX_KEYS_MAX, IndexOptions, IndexReport};
pub use reclaim::Horizon;
pub use redo::Redo;
pub use sizes::StoreSizes;
pub use store::{Store, StoreOptions};
pub use version::{ClaimStatus, Snapshot, Watch};
pub use view::StoreView;
pub use write::{Write, WriteCardinality, Writer};
