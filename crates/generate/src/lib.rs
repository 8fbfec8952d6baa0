//! Property graphs of any size, made from a seed.
//!
//! Three generators: [`kronecker`] makes graphs with the degree skew of the Graph500, and with the labels and
//! properties of a schema. [`social`] makes a social network with the labels of LDBC's. [`knowledge`] makes a graph
//! without a schema, like those extracted from encyclopedias. The spec of a generator has a method `generate`, which
//! hands batches to a [`GraphSink`]: a database in memory ([`MemorySink`]), files that `mangrove load` reads back
//! ([`CsvSink`], [`GraphsonSink`]), or no destination at all ([`NullSink`]). [`CountingSink`] counts elements on their
//! way and takes a digest.
//!
//! Invariants:
//!
//! 1. A spec determines the graph to the bit, and the order of the batches. The number of threads changes neither. A
//!    random number is a function of the seed, of its purpose, and of the number of a vertex or of a chunk (`random`).
//!    Any thread may make a chunk; chunks are handed over in order (`parallel`).
//! 2. Vertices are numbered from 0 in the order in which they are handed over. An edge is handed over after both its
//!    ends.
//! 3. A generator holds a few chunks at a time, and what its header says that it keeps.
//!
//! Not here: graphs that change over time, and generating on several machines (although a chunk depends on its number
//! only).

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod knowledge;
pub mod kronecker;
mod parallel;
pub mod random;
mod sink;
pub mod social;

pub use sink::count::{CountingSink, GraphCounts};
pub use sink::csv::CsvSink;
pub use sink::graphson::GraphsonSink;
pub use sink::memory::MemorySink;
pub use sink::{
    GenerateProgress, GeneratedColumn, GeneratedEdges, GeneratedIds, GeneratedValues, GeneratedVertices, GraphSink,
    NullSink,
};
