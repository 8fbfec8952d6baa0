//! The graphs of a server, and the database as its engine.
//!
//! [`registry`] knows the graphs by name, [`graph_directory`] their directories on disk. [`database`] implements the
//! engine's traits, [`services`] answers `call()`, and [`redactor`] keeps the paths of directories from clients that
//! may not know them, by the text search in [`redaction`]. Outside of this folder, only the contract of engines, the
//! scripts of `requests::program` and the metrics of graphs use the database crate.

pub mod database;
pub mod graph_directory;
pub mod redaction;
pub mod redactor;
pub mod registry;
pub mod services;
