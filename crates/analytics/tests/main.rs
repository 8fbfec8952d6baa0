//! All integration tests of this crate in one program, since every program links the whole crate and all that it uses.
//! Tests that need a process of their own are other programs (`Cargo.toml` says why).

mod beside_writer;
mod centrality;
mod common;
mod community;
mod features;
mod graphalytics;
mod kernels;
mod memory;
mod paths;
mod projections;
mod registry;
mod sampling;
mod similarity;
mod structure;
