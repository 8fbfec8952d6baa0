//! Property graphs of any size, made from a seed.
//!
//! Three generators: [`kronecker`] makes graphs with the degree skew of the Graph500, and labels and properties as a
//! schema asks for them; [`social`] makes a social network with the vertex and edge kinds of LDBC's; [`knowledge`]
//! makes a graph without a schema, like the ones extracted from encyclopedias. Each has a spec whose `generate`
//! hands batches to a [`GraphSink`]: a database in memory ([`MemorySink`]), files that `mangrove load` reads back
//! ([`CsvSink`], [`GraphsonSink`]), or nothing at all ([`NullSink`]); [`CountingSink`] counts on the way and takes a digest.
//!
//! Invariants:
//!
//! 1. A spec without its number of threads determines the graph to the bit, and the batches in order. All
//!    randomness is a function of the seed, of what is drawn and of a number (of a vertex, of a chunk of edges),
//!    never of a thread (`random`); chunks are made by any thread and handed over in order (`parallel`).
//! 2. Vertices have numbers from 0 up in the order they are handed over, and an edge is handed over after both
//!    its ends.
//! 3. Memory is bounded by a few chunks, besides what each generator says it keeps.
//!
//! Not here: temporal graphs that change after they are made, and running on several machines (the chunks are
//! made for it: each is a function of its number).

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
