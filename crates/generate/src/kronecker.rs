//! Kronecker graphs with labels and properties.
//!
//! The edges are those of the Graph500 (the R-MAT model). For every bit of the vertex number, an edge chooses one
//! quadrant of the adjacency matrix, with probabilities 0.57, 0.19, 0.19 and 0.05. Then vertex numbers are permuted, so
//! that a number says nothing about the degree. Degrees are heavy-tailed; parallel edges and self-loops are kept.
//!
//! A [`Schema`] says the labels and properties. Every vertex label has a percentage of the vertices, an edge gets its
//! label by the labels of its ends, and an element gets the properties of its label with random values. Functions of
//! the program may decide labels of edges and values instead. GDI's generator works the same way (Besta et al., "The
//! Graph Database Interface", §6.3 and its artifact).
//!
//! Vertices of a label have consecutive numbers, so shares are exact but for rounding. The position of a number in the
//! Kronecker graph is random. The number of edges is exactly `edge_factor << scale`. In an undirected graph each edge
//! comes in both directions, one after the other, with the same label and properties. Only the chunks in flight are in
//! memory.
//!
//! ```
//! use mangrove::Database;
//! use mangrove_generate::{CountingSink, MemorySink, kronecker::KroneckerSpec};
//!
//! # fn main() -> mangrove::Result<()> {
//! let database = Database::in_memory();
//! let mut memory = MemorySink::new(&database)?;
//! let mut silent = |_, _: &_| ();
//! let mut counted = CountingSink::new(&mut memory, &mut silent);
//! KroneckerSpec { scale: 10, ..KroneckerSpec::default() }.generate(&mut counted)?;
//! assert_eq!((counted.counts.vertices, counted.counts.edges), (1 << 10, 16 << 10));
//! memory.finish()?;
//! assert_eq!(database.query("g.E().count()")?.collect()?, vec![(16_i64 << 10).into()]);
//! # Ok(())
//! # }
//! ```

mod schema;
mod values;

use mangrove::{Error, Result};

use crate::parallel::in_order;
use crate::random::{Permutation, RandomStream, Weighted, domain};
use crate::sink::{GenerateProgress, GeneratedColumn, GeneratedEdges, GeneratedIds, GeneratedVertices, GraphSink};
use schema::CompiledSchema;
pub use schema::{EdgeType, OwnEdgeLabel, OwnValue, PropertyType, Schema, ValueType, VertexType};

/// The largest scale: a vertex number has 40 bits at most.
pub const SCALE_MAX: u32 = 40;
/// The largest edge factor.
pub const EDGE_FACTOR_MAX: u64 = 1 << 16;

/// The probabilities of the quadrants.
const QUADRANTS: [f64; 4] = [0.57, 0.19, 0.19, 0.05];
/// The number of bits of a vertex number that one draw decides.
const LEVELS: u32 = 4;

/// Vertices and edges of one chunk.
const CHUNK: u64 = 1 << 16;

/// The purposes of random numbers.
const EDGES: u64 = 1;
const NAMES: u64 = 2;
const VERTEX_VALUES: u64 = 3;
const EDGE_VALUES: u64 = 4;

/// A Kronecker graph.
#[derive(Clone, Debug)]
pub struct KroneckerSpec {
    /// The logarithm, base two, of the number of vertices.
    pub scale: u32,
    /// Edges per vertex.
    pub edge_factor: u64,
    /// Labels and properties.
    pub schema: Schema,
    /// True if each edge comes in both directions.
    pub undirected: bool,
    /// The seed of all random numbers.
    pub seed: u64,
    /// Threads that generate. The graph does not depend on their number.
    pub threads: usize,
}

impl Default for KroneckerSpec {
    /// Scale 16, edge factor 16, 20 labels, 13 property types, directed, seed 1, one thread.
    fn default() -> Self {
        KroneckerSpec {
            scale: 16,
            edge_factor: 16,
            schema: Schema::with_counts(20, 13),
            undirected: false,
            seed: 1,
            threads: 1,
        }
    }
}

impl KroneckerSpec {
    /// The number of vertices.
    pub fn vertex_count(&self) -> u64 {
        1 << self.scale
    }

    /// The number of edges.
    pub fn edge_count(&self) -> u64 {
        (self.edge_factor << self.scale) << u32::from(self.undirected)
    }

    /// Makes the graph. Fails if a number is out of its range, if the schema is inconsistent, or if the sink fails.
    pub fn generate(&self, sink: &mut dyn GraphSink) -> Result<()> {
        if !(1..=SCALE_MAX).contains(&self.scale) {
            return Err(Error::invalid(format!("the scale is {}; it is from 1 to {SCALE_MAX}", self.scale)));
        }
        if self.edge_factor > EDGE_FACTOR_MAX {
            let message = format!("the edge factor is {}; it is at most {EDGE_FACTOR_MAX}", self.edge_factor);
            return Err(Error::invalid(message));
        }
        let generator = KroneckerGenerator::new(self, self.schema.compile(self.vertex_count())?);
        generator.vertices(sink)?;
        generator.edges(sink)
    }
}

struct KroneckerGenerator<'a> {
    spec: &'a KroneckerSpec,
    schema: CompiledSchema,
    /// Draws the quadrants of [`LEVELS`] levels at once.
    cells: Weighted,
    names: Permutation,
}

/// Edges of one label in a chunk.
#[derive(Default)]
struct EdgeGroup {
    ends: Vec<(u64, u64)>,
    /// The numbers of the edges in the order of drawing. Values are functions of these numbers.
    numbers: Vec<u64>,
}

impl<'a> KroneckerGenerator<'a> {
    fn new(spec: &'a KroneckerSpec, schema: CompiledSchema) -> Self {
        let quadrant = |cell: usize, level: u32| QUADRANTS[cell >> (2 * level) & 3];
        let weight = |cell| (0..LEVELS).map(|level| quadrant(cell, level)).product();
        let weights: Vec<f64> = (0..1 << (2 * LEVELS)).map(weight).collect();
        let names = Permutation::new(domain(spec.seed, NAMES), spec.scale);
        KroneckerGenerator { spec, schema, cells: Weighted::new(&weights), names }
    }

    fn vertices(&self, sink: &mut dyn GraphSink) -> Result<()> {
        let total = self.spec.vertex_count();
        // Chunks do not cross labels.
        let chunks: Vec<(usize, u64, u64)> = (0..self.schema.vertices.len())
            .flat_map(|label| {
                let range = self.schema.range(label);
                let end = range.end;
                range.step_by(CHUNK as usize).map(move |first| (label, first, end.min(first + CHUNK)))
            })
            .collect();
        let seed = domain(self.spec.seed, VERTEX_VALUES);
        let make = |chunk: usize| {
            let (label, first, end) = chunks[chunk];
            let vertex = &self.schema.vertices[label];
            let numbers: Vec<u64> = (first..end).collect();
            GeneratedVertices {
                table: vertex.label.clone(),
                label: vertex.label.clone(),
                first,
                len: numbers.len(),
                ids: GeneratedIds::Numbers,
                columns: self.columns(&vertex.properties, seed, &numbers),
            }
        };
        in_order(self.spec.threads, chunks.len(), make, |_, batch| {
            let done = batch.first + batch.len as u64;
            sink.vertices(batch)?;
            sink.progress(GenerateProgress { stage: "vertices", done, total });
            Ok(())
        })
    }

    fn edges(&self, sink: &mut dyn GraphSink) -> Result<()> {
        let drawn = self.spec.edge_factor << self.spec.scale;
        let chunks = usize::try_from(drawn.div_ceil(CHUNK)).map_err(|_| Error::invalid("the graph is too large"))?;
        let make = |chunk: usize| self.edge_chunk(chunk as u64 * CHUNK, drawn.min((chunk as u64 + 1) * CHUNK));
        in_order(self.spec.threads, chunks, make, |chunk, batches| {
            batches.into_iter().try_for_each(|batch| sink.edges(batch))?;
            let done = drawn.min((chunk as u64 + 1) * CHUNK);
            sink.progress(GenerateProgress { stage: "edges", done, total: drawn });
            Ok(())
        })
    }

    fn edge_chunk(&self, first: u64, end: u64) -> Vec<GeneratedEdges> {
        let mut random = RandomStream::new(domain(self.spec.seed, EDGES), first);
        let mut groups: Vec<EdgeGroup> = Vec::new();
        groups.resize_with(self.schema.edges.len(), EdgeGroup::default);
        for number in first..end {
            let (source, target) = self.cell(&mut random);
            let ends = (self.names.apply(source), self.names.apply(target));
            let group = &mut groups[self.schema.edge_label(ends.0, ends.1)];
            group.ends.push(ends);
            group.numbers.push(number);
            if self.spec.undirected {
                group.ends.push((ends.1, ends.0));
                group.numbers.push(number);
            }
        }
        let seed = domain(self.spec.seed, EDGE_VALUES);
        let batch = |(label, group): (usize, EdgeGroup)| {
            let edge = &self.schema.edges[label];
            let columns = self.columns(&edge.properties, seed, &group.numbers);
            GeneratedEdges { label: edge.label.clone(), tables: None, ends: group.ends, columns }
        };
        groups.into_iter().enumerate().filter(|(_, group)| !group.ends.is_empty()).map(batch).collect()
    }

    /// Draws the ends of one edge, before the permutation of vertex numbers.
    #[inline]
    fn cell(&self, random: &mut RandomStream) -> (u64, u64) {
        let (mut row, mut column, mut left) = (0, 0, self.spec.scale);
        while left > 0 {
            // Levels are independent, so if fewer than four are left, the first ones of the draw serve.
            let levels = left.min(LEVELS);
            let cell = self.cells.draw(random) as u64 >> (2 * (LEVELS - levels));
            for level in (0..levels).rev() {
                let quadrant = cell >> (2 * level);
                row = row << 1 | (quadrant >> 1 & 1);
                column = column << 1 | (quadrant & 1);
            }
            left -= levels;
        }
        (row, column)
    }

    /// The columns of properties, given by their positions in the schema, for the elements with these numbers.
    fn columns(&self, properties: &[usize], seed: u64, numbers: &[u64]) -> Vec<GeneratedColumn> {
        let column = |&position: &usize| {
            let property = &self.schema.properties[position];
            GeneratedColumn::new(
                property.key.as_str(),
                values::values(property, domain(seed, position as u64), numbers),
            )
        };
        properties.iter().map(column).collect()
    }
}
