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

pub mod barrier;
pub mod build;
pub mod codec;
pub mod detach;
pub mod element_order;
pub mod environment;
pub mod keys;
pub mod lookup;
pub mod meter;
pub mod nesting;
pub mod operator;
pub mod path;
pub mod random;
pub mod row;
pub mod rows;
pub mod scope;
pub mod services;
pub mod sink;
pub mod size;
pub mod table;
mod test;

pub use build::{Built, build};
pub use environment::{Environment, SideEffects};
pub use rows::{Column, Rows, Tags};
