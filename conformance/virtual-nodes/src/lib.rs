//! Virtual nodes: several nodes of one query in one process, with every message between them serialized.
//!
//! Tests run queries on virtual nodes as a cluster will run them. The nodes share nothing but frames of bytes
//! ([`Nodes`]). The view of a node refuses to read data of another node ([`OwnedView`]). If a differential test passes
//! on one node and on several, every row was at its owner whenever an operator read the graph for it.
//!
//! [`run_on_threads`] runs the nodes of a query on threads, each with a share of the nodes.
//!
//! [`run_with_helpers`] runs a query of one node with helpers, in an order of turns that a seed chooses.
//!
//! [`run_with_late_reads`] does so with a view whose reads are late ([`LateView`], or [`LateReader`] for batches that are
//! no graph).
//!
//! For tests only: `mangrove` depends on this crate behind its feature `virtual-nodes`.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod helpers;
mod late_reads;
mod late_view;
mod nodes;
mod owned_view;
mod threads;

pub use helpers::{run_with_helpers, run_with_late_reads};
pub use late_reads::{Habits, LateReader, ReadCounts};
pub use late_view::LateView;
pub use nodes::Nodes;
pub use owned_view::OwnedView;
pub use threads::{ThreadsOutcome, run_on_threads};
