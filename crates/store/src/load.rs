//! Filling an empty store without transactions, and reading a store out page by page.
//!
//! | module | what it holds |
//! |---|---|
//! | `bulk` | the bulk loader, which fills pages that no transaction sees yet |
//! | `staged` | pages that are filled and not published yet |
//! | `pack` | packed adjacency from the edges that were loaded |
//! | [`image`] | pages as a snapshot sees them, for checkpoints |
//! | [`restore`] | a store from page images and from the log after them |
//! | `rules`, `unique` | checking a bulk load against the schema, and against unique indexes |
//!
//! Loading publishes pages only when they are complete, as the base that every snapshot sees. Nothing here claims a
//! version.

pub(crate) mod bulk;
pub mod image;
mod pack;
pub mod restore;
mod rules;
mod staged;
mod unique;

pub use self::bulk::{BulkColumn, BulkLoader, ColumnData};
