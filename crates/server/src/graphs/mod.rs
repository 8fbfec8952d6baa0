//! The graphs of a server, and the database as its engine.
//!
//! [`registry`] knows the graphs by name, [`graph_directory`] their directories on disk. [`database`] implements the
//! engine's traits, [`services`] answers `call()`, and [`redactor`] keeps the paths of directories from clients that
//! may not know them, by the text search in [`redaction`]. Beside the script engine in `requests::program`, only this
//! folder uses the database crate.

pub mod database;
pub mod graph_directory;
pub mod redaction;
pub mod redactor;
pub mod registry;
pub mod services;
