//! How fast the database is, beside the limits of the machine it runs on.
//!
//! A figure alone says little: it depends on the machine, the hour and the data. So every run measures both
//! sides. Each *case* (a point read, one hop, an insert, …) is asked in several *variants*:
//!
//! | variant | what it is |
//! |---|---|
//! | `bare` | a hand-written loop over plain arrays and a hash map: no versions, no transactions, no ids to look up twice. The limit |
//! | `typed` | the embedded typed interface, one transaction an operation |
//! | `prepared` | Gremlin, prepared once, run with parameters |
//! | `text` | Gremlin as text with parameters, found in the plan cache |
//! | `server` | the same text over a WebSocket on the loopback interface |
//!
//! and reported beside the bare one and the target of the design (`DESIGN.md`, section 12).
//!
//! Invariants:
//!
//! 1. No variant is timed before its answers have been compared with those of the bare variant or of the
//!    generator; what was written while timing is counted afterwards.
//! 2. All inputs come from fixed seeds, and every input depends on the answer before it, so that operations
//!    cannot overlap unless a case says *batch* (see [`harness`]).
//! 3. A reported time is the median of repetitions, with the fastest and the slowest beside it.
//!
//! Not here: rivals (`bench/peers` measures most of them, each through its own client), analytics, which the database does not
//! have yet, and any assertion about time: tests only check that a run works and what it writes.
//!
//! Three files to read: [`harness`] (how time is taken), `ways` (how a question is asked), `suites/point.rs` (a suite).

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
mod report;
mod served;
mod social;
mod suites;
mod ways;

pub use arguments::Arguments;
pub use oltp::{Api, Choices, Level, Operations, Skew};
pub use options::{Options, Scale, Suite};
pub use report::{Figure, Metric, Report, Row};

use mangrove::Result;

/// Runs the suites that the options name. `each` is told of every row when it is measured.
pub fn run(options: &Options, each: &mut dyn FnMut(&Row)) -> Result<Report> {
    let mut report = Report::growing(environment::describe(), each);
    suites::run(options, &mut report)?;
    Ok(report.finish())
}
