//! Measures the database beside the limits of the machine.
//!
//! A figure alone says little: it depends on the machine, the hour and the data. So every run measures the database and
//! its limit. Each *case* (a point read, one hop, an insert, …) runs in several *variants*:
//!
//! | variant | meaning |
//! |---|---|
//! | `bare` | a hand-written loop over plain arrays and a hash map: no versions, no transactions, no look-up of ids. The limit |
//! | `typed` | the embedded typed interface, one transaction an operation |
//! | `prepared` | Gremlin, prepared once, run with parameters |
//! | `text` | Gremlin as text with parameters, found in the plan cache |
//! | `server` | the same text over a WebSocket on the loopback interface |
//!
//! A row shows a variant beside the bare one and beside the target of the design.
//!
//! Invariants:
//!
//! 1. No variant is timed before its answers have been compared with those of the bare variant or of the generator.
//!    The writes of a variant while it was timed are counted afterwards.
//! 2. All inputs come from fixed seeds, and every input depends on the answer before it. So operations cannot overlap
//!    unless a case says *batch* (see [`harness`]).
//! 3. A reported time is the median of repetitions, with the fastest and the slowest beside it.
//!
//! Not here: other databases (`bench/peers` measures them, each through its own client), and assertions about time: tests
//! check only that a run works and what it writes.
//!
//! Three files to read first: [`harness`] (how time is taken), `ways` (how a query is run), `suites/point.rs` (a
//! suite).

#![forbid(unsafe_code)]
#![warn(missing_docs)]
#![allow(clippy::disallowed_methods, reason = "the benchmarks are where time is taken")]

mod arguments;
mod client;
mod csr;
mod environment;
pub mod harness;
mod kronecker;
mod oltp;
mod options;
mod page;
mod people;
pub mod plot;
mod queries;
mod report;
mod run_directory;
mod served;
mod social;
mod suites;
mod ways;

pub use arguments::Arguments;
pub use oltp::{Api, Choices, Level, Operations, Skew};
pub use options::{AnalyticsChoices, Options, Scale, Suite};
pub use queries::choices::QueryChoices;
pub use report::{Figure, Metric, Report, Row};

use mangrove::Result;

/// Runs the suites that the options name. Calls `each` with every row when it is measured.
pub fn run(options: &Options, each: &mut dyn FnMut(&Row)) -> Result<Report> {
    let mut report = Report::growing(environment::describe(), each);
    suites::run(options, &mut report)?;
    Ok(report.finish())
}
