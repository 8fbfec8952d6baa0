//! Neighbor sampling for graph neural networks: from one moment of a graph, typed, in parallel.
//!
//! ```text
//! GraphView ──▶ TypedGraph: rows of incoming edges by edge type ──▶ Sampler: seeds, fan-outs ──▶ Sample: a small graph
//!     └───────────────────────────────────▶ features: the values of sampled vertices ──▶ one row-major array
//! ```
//!
//! A graph neural network learns from batches of *seeds*. A batch needs its seeds, some sources of their incoming edges,
//! some sources of those, and so on: a hop a layer. The *fan-out* of a hop says how many incoming edges of a vertex are taken
//! (Hamilton, Ying and Leskovec, *Inductive Representation Learning on Large Graphs*, 2017). The shape of a sample is that of
//! PyTorch Geometric's samplers, so its loaders and models read one without a change.
//!
//! | file | content |
//! |---|---|
//! | `rows` | the interface between the sampler and the graph that it reads |
//! | `numbers` | the numbers of the vertices of a type: 0, 1, 2, … without holes |
//! | `in_page` | the rows of a page, with weights and times |
//! | `typed_options`, `typed_graph` | which types there are; the graph in memory, and how it is refreshed |
//! | `draw` | which edges of a row are taken |
//! | `locals` | the numbers of the vertices of a sample |
//! | `options` | how samples are drawn, and from which vertices |
//! | `sampler`, `batch` | many batches side by side; one batch, hop by hop |
//! | `sample` | what is found, and both directions of it |
//! | `features` | values of many vertices or edges as one array |
//!
//! - **SAMPLE-1.** A random number is a function of the seed of the sampler, the number of the batch, the hop, the edge type, the
//!   tree and the vertex. So a sample does not depend on threads, nor on the batches before it.

mod batch;
mod draw;
pub mod features;
mod in_page;
mod locals;
mod numbers;
mod options;
pub mod rows;
mod sample;
mod sampler;
mod typed_graph;
mod typed_options;

pub(crate) use draw::row_random;
pub use locals::Numbered;
pub use options::{SamplerOptions, Seeds, Temporal, TemporalOf, TemporalStrategy};
pub use rows::{InRow, InRows};
pub use sample::Sample;
pub use sampler::Sampler;
pub use typed_graph::TypedGraph;
pub use typed_options::{EdgeType, TypedGraphOptions, VertexType};
