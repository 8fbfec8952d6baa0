//! Queries of papers and of LDBC, each on several numbers of executors.
//!
//! ```text
//! network: generated, or LDBC's files ─┬─▶ one database for each number of executors ─┐
//!                                      └─▶ reference graph ──▶ expected answers        ├─▶ turns: check, time, report
//! query sets (conformance/queries) ── text, parameters (drawn, if the network is generated) ┘
//! ```
//!
//! - [`choices`]: the numbers of executors, and the directory of the data sets.
//! - [`network`], [`data`]: the graphs, and the data sets of the directory.
//! - [`drawn`]: parameters for generated networks, by seed and by selectivity.
//! - [`asked`]: a query with its parameters and its expected answers.
//! - [`station`]: a query prepared on one database, and its runs.
//! - [`turns`]: the time of a query at each number of executors, and the ceiling of the machine.
//! - [`forms`]: the times of several texts of one question, by parameters.
//!
//! Texts of queries stand in `conformance/queries/sets`, and nowhere here. The expected answers are published ones where
//! there are some. Otherwise they come from the reference of that crate: loops over maps, which share no code with the
//! engine.
//!
//! Not here: transactions (`oltp`), and short queries beside heavy ones (`suites/isolation.rs`).

pub mod asked;
pub mod choices;
pub mod data;
pub mod drawn;
pub mod forms;
pub mod network;
pub mod station;
pub mod turns;
