//! Barriers: operators that keep state by scope instance. Most send only when an instance has ended.
//!
//! They run at the home of the group (FLOW-6). The rows and states that they hold are charged to the query until they
//! are dropped (FLOW-17).
//! State by group is in [`crate::rows::held`].
//!
//! | modules | steps |
//! |---|---|
//! | [`reduce`], [`reduce_values`], [`reduce_many`], [`fold_into`], with [`partial`] and [`numbers`] | `count()`, `sum()`, `min()`, `max()`, `mean()`, `fold()` |
//! | [`order`], [`range`], [`sample`], [`time_limit`] | `order()`, `limit()`, `range()`, `tail()`, `sample()`, `coin()`, `timeLimit()` |
//! | [`dedup`], [`seen`], [`seen_key`], [`element_set`], [`shared_seen`], [`shared_bits`], [`known_keys`], [`visited`] | `dedup()` |
//! | [`barrier_step`], [`merge`], [`passing_merge`], [`shared_merge`], [`vertex_bulks`], `vertex_runs`, `sort_by_id` | `barrier()`, and merging of equal traversers |
//! | [`pattern_count`] | counts of patterns without rows |
//! | [`group_count`], [`tree`], [`side_effect`], [`subgraph`], [`shared_map`] | `groupCount()`, `tree()`, `aggregate()`, `cap()`, `subgraph()` |
//! | [`inject`] | `inject()` |
//! | [`join`] | a hash join of two walks |
//!
//! [`per_thread`] holds the state of those that several threads work at.

pub(crate) mod barrier_step;
pub(crate) mod dedup;
pub(crate) mod element_set;
pub(crate) mod fold_into;
pub(crate) mod group_count;
pub(crate) mod inject;
pub(crate) mod join;
pub(crate) mod known_keys;
pub(crate) mod merge;
pub(crate) mod numbers;
pub(crate) mod order;
pub(crate) mod partial;
pub(crate) mod passing_merge;
pub(crate) mod pattern_count;
pub(crate) mod per_thread;
pub(crate) mod range;
pub(crate) mod reduce;
pub(crate) mod reduce_many;
pub(crate) mod reduce_values;
pub(crate) mod sample;
pub(crate) mod seen;
pub(crate) mod seen_key;
pub(crate) mod shared_bits;
pub(crate) mod shared_map;
pub(crate) mod shared_merge;
pub(crate) mod shared_seen;
pub(crate) mod side_effect;
mod sort_by_id;
pub(crate) mod subgraph;
pub(crate) mod time_limit;
pub(crate) mod tree;
pub(crate) mod vertex_bulks;
mod vertex_runs;
pub(crate) mod visited;
