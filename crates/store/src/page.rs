//! Pages and tablets: where elements are, which slots are free, and how a page loses its version words.
//!
//! | module | what it holds |
//! |---|---|
//! | `core` | the parts that pages of vertices and of edges share: slots, version words, generations, columns |
//! | `vertex_page`, `edge_page` | the two kinds of pages |
//! | `freeze` | taking the version words of a page away once all snapshots agree |
//! | `free_slots` | the account of free slots of a label set |
//! | `tablet` | a tablet: its pages and the pools that their records come from |
//! | `tasks` | the work of collectors in a tablet |
//! | `slot_set`, `name` | a set of slots; the name of a page, and the position of a slot |
//!
//! It stands on `memory`, `version`, `cell` and `adjacency`, and knows nothing of the store as a whole.

mod core;
mod edge_page;
mod free_slots;
mod freeze;
mod name;
mod slot_set;
mod tablet;
mod tasks;
mod vertex_page;

#[cfg(not(feature = "model"))]
pub(crate) use self::core::SECOND_LINE;
pub(crate) use self::core::{PAGE_SLOTS, PageCore};
pub(crate) use self::edge_page::EdgePage;
pub(crate) use self::free_slots::{FreeSlots, PagePosition, SlotPage};
pub(crate) use self::freeze::{Closing, Freezing};
pub use self::name::PageName;
pub(crate) use self::name::SlotPosition;
pub use self::slot_set::SlotSet;
pub(crate) use self::tablet::{Cursor, Tablet, page_core, roomiest, value_garbage};
pub(crate) use self::tasks::{TableName, Tasks};
pub(crate) use self::vertex_page::VertexPage;
