//! Transaction workloads: many small transactions from several threads, and their outcomes.
//!
//! ```text
//! template (gdi.toml, lbv.toml) ─┐
//! graph ── draw: which, on what ─┴─▶ session: typed │ gremlin │ server ─▶ driver: threads, time ─▶ record
//! ```
//!
//! - [`template`]: operations of transactions, and mixes of two papers, as data.
//! - [`graph`]: the graph: Kronecker, with labels and properties, loaded afresh for each run.
//! - [`draw`], [`skew`]: choose the next template, and the vertices for it.
//! - [`session`], [`typed`]: the interfaces that run templates.
//! - [`driver`]: threads, time slices, [`histogram`]s; [`statistics`]: intervals.
//! - [`beside`]: small transactions beside a heavy one.
//! - [`audit`]: checks the graph afterwards.
//!
//! Invariants:
//!
//! 1. One template is one transaction. A transaction that meets a conflict has failed: it is counted by cause and is
//!    not retried. So throughput counts only transactions that committed.
//! 2. Templates that only read run in read-only transactions.
//! 3. If the audit fails, the run reports no figures. After every run both directions of every edge must agree, and the
//!    database's commits and aborts must add up to the transactions counted here.

pub mod audit;
pub mod beside;
pub mod choices;
pub mod draw;
pub mod driver;
pub mod graph;
pub mod histogram;
pub mod session;
pub mod skew;
pub mod statistics;
pub mod template;
pub mod typed;

pub use choices::{Choices, Level};
pub use session::Api;
pub use skew::Skew;
pub use template::Operations;
