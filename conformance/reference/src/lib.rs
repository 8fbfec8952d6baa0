//! Compares the engine with TinkerPop itself: TinkerGraph 3.8.1, in a process of its own, which runs the same scripts.
//!
//! The differential test of `conformance/oracle` compares the engine with this project's own interpreter, which may
//! share its misunderstandings. Here the reference is TinkerPop's implementation, in two ways:
//!
//! - A *corpus* ([`corpus`]) of scripts written by hand, by area (arithmetic, comparison, dates, merges, …), with
//!   recorded answers of the reference, every value with its type. A test compares the engine with the record, so it
//!   needs no Java. `run.sh` runs the scripts on the reference again and reports where the record is wrong.
//! - *Random cases* ([`cases`]): the graphs and traversals of `conformance/oracle`, run on both sides.
//!
//! An intended difference has a name and a reason in [`known`]; docs/gremlin.md lists those that users may meet. If
//! [`rephrase`] has a rephrased script for a random case, the two sides must agree on that. Errors are not compared
//! with each other: both sides must fail, or neither.
//!
//! [`reference`](mod@reference) is the process, [`notation`] the text form of values, [`engine`] the engine's side.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod cases;
pub mod corpus;
pub mod engine;
pub mod known;
pub mod notation;
pub mod reference;
pub mod rephrase;

/// The answer of a side: results in their notation, or an error.
pub type Answer = Result<Vec<String>, String>;
