//! The experts: Gremlin's step families as dataflow operators, and what a plan becomes before it runs.
//!
//! [`build`] turns a physical plan into a numbered topology with its operators. What flows are [`Rows`]:
//! columns of traversers. Operators come in three kinds, each with its folder:
//!
//! - [`row`] operators look at a batch and give a batch ([`row::RowOperator`]); they have no state and may
//!   run on any node;
//! - [`barrier`] operators keep state by scope instance and speak when an instance has ended;
//! - [`scope`] operators open scopes: an instance a row, an iteration, or a group key.
//!
//! Whether a row's path, bulk or loop counters exist at all is the plan's decision: a column nobody reads
//! is not there.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod barrier;
mod build;
mod computed;
mod context;
mod detach;
#[cfg(test)]
mod fake_view;
mod limits;
mod row;
mod rows;
mod scope;
mod services;
mod values;
mod write;

pub use build::{Built, build};
pub use context::execution::{ExecutionContext, Files, SideEffects};
pub use detach::{Detail, detach};
pub use limits::meter::Meter;
pub use limits::nesting::check_results;
pub use limits::sizes::Sizes;
pub use rows::{Column, Rows, Tags};
pub use services::{ServiceCall, Services};
