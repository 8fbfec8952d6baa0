//! Virtual nodes: several nodes of one query in one process, with every message between them serialized.
//!
//! This is how tests run what a cluster will. The nodes share nothing but frames of bytes ([`Nodes`]), and the view of each
//! node refuses to read what another node owns ([`OwnedView`]). A differential test that passes on one node and on several
//! therefore shows that each row was at its owner whenever an operator read the graph for it.
//!
//! For tests only: `mangrove` depends on this crate behind its feature `virtual-nodes`.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod nodes;
mod owned_view;

pub use nodes::Nodes;
pub use owned_view::OwnedView;
