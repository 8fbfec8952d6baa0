//! The batched read interface: the content of a snapshot, some hundred elements at a time.
//!
//! | module | what it holds |
//! |---|---|
//! | `view` | [`StoreView`]: the graph as a snapshot sees it |
//! | `graph_view` | its methods as a [`GraphView`](mangrove_graph::GraphView), one line for each module below |
//! | `look_up`, `scan`, `expand` | finding elements by id, by label set, and along edges |
//! | `by_index` | searches in property indexes |
//! | `properties`, `columns`, `numbers` | reading values one by one, column by column, and as plain numbers |
//! | `runs` | adjacency in place, for whole-graph algorithms |
//! | `visibility` | the elements of a batch that the snapshot sees |
//! | `statistics` | the pass over all pages that makes the statistics of a snapshot |
//! | [`lists`] | the lists of a page of vertices, for checkpoints |
//! | `layout` | counts of packed adjacency, for reports |
//!
//! Readers change nothing and take no lock. One that asks what has changed in a list is the exception: with it begins the log of changes (STORE-38). Readers read
//! under a pin that lasts for one call at most. The laws of the interface are those of [`GraphView`](mangrove_graph::GraphView) (GRAPH-1 to GRAPH-5).

mod by_index;
mod columns;
mod expand;
mod filtered;
mod graph_view;
mod layout;
pub mod lists;
mod look_up;
mod numbers;
mod properties;
mod runs;
mod scan;
mod statistics;
pub(crate) mod view;
mod visibility;

pub use self::layout::AdjacencyLayout;
pub use self::statistics::StatisticsPass;
pub use self::view::StoreView;
