//! The batched read interface: what a snapshot sees, some hundred elements at a time.
//!
//! | module | what it holds |
//! |---|---|
//! | `view` | [`StoreView`]: the graph as a snapshot sees it |
//! | `look_up`, `scan`, `expand` | from ids, from label sets, and along edges |
//! | `properties`, `columns`, `numbers` | values of properties, one by one, column by column, and as plain numbers |
//! | `runs` | adjacency as it lies in memory, for whole-graph algorithms |
//! | `visibility` | which of a batch of elements the snapshot sees |
//! | `layout` | how much adjacency is packed, for reports |
//!
//! Everything here reads under a pin that lasts for one call, and takes no lock.

mod columns;
mod expand;
mod layout;
mod look_up;
mod numbers;
mod properties;
mod runs;
mod scan;
pub(crate) mod view;
mod visibility;

pub use self::layout::AdjacencyLayout;
pub use self::view::StoreView;
