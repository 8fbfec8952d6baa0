//! The algorithms, one a file. Each begins with what it computes, where it is from, and what it costs.
//!
//! `n` is the number of positions, `m` that of cells, `d` a degree. All results are the same for any number of threads.

pub mod all_shortest_paths;
pub mod betweenness;
pub mod bfs;
pub mod cdlp;
pub mod closeness;
pub mod coloring;
pub mod degree;
pub mod fast_rp;
pub mod forest;
pub mod hits;
pub mod independent_set;
pub mod k_core;
pub mod k_hop;
pub mod k_shortest_paths;
pub mod k_truss;
pub mod katz;
pub mod lcc;
pub mod least_reaching;
pub mod leiden;
pub mod louvain;
pub mod matching;
pub mod pagerank;
pub mod peer_pressure;
pub mod random_walks;
pub mod scc;
mod searches;
pub mod shortest_path;
pub mod similarity;
pub mod sssp;
pub mod triangles;
pub mod wcc;
