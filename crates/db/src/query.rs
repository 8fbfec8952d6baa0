//! A query from its text to its results: it is prepared, planned, run, and its results are read.
//!
//! ```text
//! Prepared ──plan──▶ Planned ──instance──▶ Execution ──▶ ResultStream      on the thread that reads the results
//!                                              └───────▶ shared::run       on executors
//! ```
//!
//! Nothing here uses `Database`: [`settings::RunSettings`] has the transaction of a query and all else that its run
//! needs.

pub(crate) mod caller_time;
pub(crate) mod execution;
pub(crate) mod helpers;
pub(crate) mod instance;
mod last_runs;
pub(crate) mod plans;
pub(crate) mod prepared;
pub(crate) mod profile;
#[cfg(feature = "arrow")]
mod result_columns;
pub(crate) mod settings;
pub(crate) mod shared;
pub(crate) mod stream;
