//! Graph algorithms on one moment of a graph, while writers go on.
//!
//! ```text
//! GraphView ──▶ Projection: 32-bit positions, rows of neighbors ──▶ algorithm, phase by phase, by a Team ──▶ a column of results
//! ```
//!
//! An algorithm reads its graph many times, and a view of a graph that changes pays for old versions at every read. So the
//! lists are read once, into a [`Projection`], and the view is not needed afterwards.
//!
//! | module | holds |
//! |---|---|
//! | `gang`, `sync` | phases of numbered parts, which helpers may join; their primitives |
//! | [`team`] | the threads that work on an algorithm |
//! | `gather` | sums of values at the cells of rows |
//! | `arrays` | arrays of an algorithm's state, which all threads fill and share |
//! | [`numbering`] | positions of vertices: small dense numbers |
//! | [`projection`], `page_rows`, `choice` | the neighbors of all vertices as positions; those of a page; which there are |
//! | `amend` | rows of a page after what commits have changed in them |
//! | [`cache`], [`named`] | the projections that a database keeps; those with names |
//! | `random` | random numbers that are a function of what they are for |
//! | `simple`, `ranked` | sorted rows, for algorithms that intersect them; of ranks by degree |
//! | `modularity` | levels of communities, and moves between them |
//! | `tally` | sums by small numbers |
//! | `worklist`, `greedy` | work that brings more work, without levels; decisions that wait for those of neighbors |
//! | [`algorithm`] | the algorithms, one a file |
//! | [`registry`] | the algorithms by name, with their options |
//! | [`sampling`] | samples of neighbors, and arrays of features, for graph neural networks |
//! | [`verify`] | for each algorithm another one, plain and sequential, that finds the same |
//!
//! `docs/design/analytics.md` explains the design.

#![deny(unsafe_code)]
#![warn(missing_docs)]

pub mod algorithm;
mod amend;
#[allow(unsafe_code)]
mod arrays;
pub mod cache;
mod choice;
mod directory;
#[allow(unsafe_code)]
mod gang;
#[allow(unsafe_code)]
mod gather;
mod greedy;
mod modularity;
pub mod named;
pub mod numbering;
mod page_rows;
pub mod projection;
mod random;
mod ranked;
pub mod registry;
pub mod sampling;
mod simple;
mod sync;
mod tally;
pub mod team;
pub mod verify;
mod worklist;

pub use numbering::Numbering;
pub use projection::{Orientation, Projection, ProjectionOptions, Refreshed};
pub use team::Team;
