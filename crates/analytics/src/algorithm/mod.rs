//! The algorithms, one a file. Each begins with what it computes, where it is from, and what it costs.
//!
//! `n` is the number of positions, `m` that of cells, `d` a degree. All results are the same for any number of threads.

pub mod bfs;
pub mod cdlp;
pub mod coloring;
pub mod forest;
pub mod k_core;
pub mod k_truss;
pub mod lcc;
pub mod leiden;
pub mod louvain;
pub mod matching;
pub mod pagerank;
pub mod scc;
pub mod sssp;
pub mod triangles;
pub mod wcc;
