//! A query from its text to its results: prepared, planned, run, read.
//!
//! ```text
//! Prepared ──plan──▶ Planned ──instance──▶ Execution ──▶ ResultStream      on the thread that reads the results
//!                                              └───────▶ shared::run       on the database's executors
//! ```
//!
//! Nothing here knows a database: a query is run with a transaction and with [`settings::RunSettings`].

pub(crate) mod execution;
pub(crate) mod instance;
pub(crate) mod prepared;
mod profile;
pub(crate) mod settings;
pub(crate) mod shared;
pub(crate) mod stream;
