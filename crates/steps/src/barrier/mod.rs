//! Operators that keep state by scope instance.

pub mod dedup;
pub mod fold_into;
pub mod group_count;
pub mod held;
pub mod inject;
pub mod merge;
pub mod order;
pub mod range;
pub mod reduce;
pub mod reduce_values;
pub mod sample;
pub mod shared_map;
pub mod side_effect;
pub mod subgraph;
pub mod time_limit;
pub mod tree;
pub mod write;
