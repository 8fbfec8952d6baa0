//! Filling an empty store at once, and taking it out again, page by page.
//!
//! | module | what it holds |
//! |---|---|
//! | `bulk` | a loader that fills pages which no transaction sees yet |
//! | `pack` | making packed adjacency of the edges that were loaded |
//! | [`image`] | pages as a snapshot sees them: what a checkpoint keeps |
//! | [`restore`] | a store made of page images and of the log after them |
//! | `rules` | checking the rows of a bulk load against the schema |

pub(crate) mod bulk;
pub mod image;
mod pack;
pub mod restore;
mod rules;

pub use self::bulk::{BulkColumn, BulkLoader, ColumnData};
