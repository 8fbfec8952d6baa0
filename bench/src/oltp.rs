//! Transaction workloads: many small transactions from several threads, and what became of them.
//!
//! ```text
//! template (gdi.toml, lbv.toml) ─┐
//! graph ── draw: which, on what ─┴─▶ session: typed │ gremlin │ server ─▶ driver: threads, time ─▶ record
//! ```
//!
//! - [`template`]: what transactions do: operations and mixes of two papers, as data.
//! - [`graph`]: what they do it to: a Kronecker graph with labels and properties, loaded afresh for each run.
//! - [`draw`], [`skew`]: which template comes next and which vertices it is about.
//! - [`session`], [`typed`]: the interfaces they go through.
//! - [`driver`]: threads, slices of time, [`histogram`]s; [`statistics`]: intervals.
//! - [`beside`]: small transactions beside a heavy one.
//! - [`plot`]: lines over time.
//! - [`audit`]: what must be true of the graph afterwards.
//!
//! Invariants:
//!
//! 1. One template is one transaction. One that meets a conflict has failed: it is counted by cause and not tried
//!    again, so throughput counts only what was carried out.
//! 2. Templates that only read run in read-only transactions.
//! 3. No figure is reported of a run whose audit has failed: after every run both directions of every edge agree,
//!    and commits and aborts add up to the transactions that were counted here.

pub mod audit;
pub mod beside;
pub mod choices;
pub mod draw;
pub mod driver;
pub mod graph;
pub mod histogram;
pub mod plot;
pub mod session;
pub mod skew;
pub mod statistics;
pub mod template;
pub mod typed;

pub use choices::{Choices, Level};
pub use session::Api;
pub use skew::Skew;
pub use template::Operations;
