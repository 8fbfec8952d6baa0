//! Gremlin's steps as operators of the dataflow, and the building of a physical plan into a running one.
//!
//! [`build()`] turns a physical plan into a numbered topology with its operators. Batches of [`Rows`], columns of
//! traversers, flow between them. [`detach()`] makes results that a client can keep.
//!
//! | folder | holds |
//! |---|---|
//! | `limits` | what keeps a query within its memory and time |
//! | `overlay` | values of algorithms as properties that are not stored |
//! | `context` | the execution context, which the operators of a run share; random numbers |
//! | `values` | collections, folding, predicates, the order of elements, names |
//! | `rows` | batches of traversers, paths, the binary form, rows and states kept by group |
//! | `computed` | the values that a `by()` takes |
//! | `services` | what `call()` reaches: the interface of a service |
//! | `row` | operators without state: a batch in, a batch out; they may run on any node |
//! | `sample` | draws from a graph, for the estimates of plans |
//! | `barrier` | operators with state by scope instance; most send when an instance has ended |
//! | `algorithm` | `pageRank()`, `peerPressure()`, `connectedComponent()`, `shortestPath()` |
//! | `write` | operators that write, one statement for each group |
//! | `scope` | operators that open scopes, or split and merge a stream |
//! | `build` | numbers operators, and decides where the rows of each must be |
//!
//! Imports go from lower rows of this table to upper ones. The plan decides whether the path, bulk or loop counters of
//! a row exist at all: a column that no operator reads is not there. The invariants STEPS-1 to STEPS-13 stand in the
//! headers of the modules that keep them.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod algorithm;
mod barrier;
mod build;
mod computed;
mod context;
mod detach;
#[cfg(test)]
mod fake_view;
mod limits;
mod overlay;
mod row;
mod rows;
mod sample;
mod scope;
mod services;
mod values;
mod write;

pub use build::{Built, DescribedOperator, build, result_keys};
pub use context::execution::{Detail, ExecutionContext, Files, SideEffects};
pub use detach::detach;
pub use limits::meter::Meter;
pub use limits::nesting::check_results;
pub use limits::sizes::Sizes;
pub use overlay::{Overlay, OverlayView};
pub use rows::{ObjectColumn, Rows};
pub use sample::ViewSample;
pub use services::{ResultBatches, ServiceCall, ServiceResults, Services};
