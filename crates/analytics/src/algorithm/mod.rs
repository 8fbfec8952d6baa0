//! The algorithms, one a file. Each begins with what it computes, where it is from, and what it costs.
//!
//! `n` is the number of positions, `m` that of cells, `d` a degree. All results are the same for any number of threads.

pub mod bfs;
pub mod cdlp;
pub mod lcc;
pub mod least_reaching;
pub mod pagerank;
pub mod peer_pressure;
pub mod sssp;
pub mod wcc;
