//! How samples are drawn, and what from.

use super::locals::Numbered;

/// What must not be later than the time of the seed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TemporalOf {
    /// The sources of edges. Sources of a type without times are taken at any time.
    Vertices,
    /// The edges themselves. Edges of a type without times are taken at any time.
    Edges,
}

/// Which edges are taken, of those that are not too late.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TemporalStrategy {
    /// Any.
    Uniform,
    /// The last ones.
    Last,
}

/// The rule of temporal samples: no edge, or no vertex, is later than the seed that it is taken for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Temporal {
    /// What has times.
    pub of: TemporalOf,
    /// Which edges are taken.
    pub strategy: TemporalStrategy,
}

/// How samples are drawn.
#[derive(Clone, Debug, Default)]
pub struct SamplerOptions {
    /// By edge type: for each hop, how many incoming edges of a vertex are taken at most; `None`: all. Every type has the same
    /// number of hops.
    pub fanouts: Vec<Vec<Option<usize>>>,
    /// Whether an edge of a row may be taken again.
    pub replace: bool,
    /// Whether each seed has a tree of its own: then a vertex that is met from two seeds is in the sample twice.
    pub disjoint: bool,
    /// The rule of times, which needs disjoint trees.
    pub temporal: Option<Temporal>,
    /// Whether edges are taken by their weights, in types that have weights. An edge of weight 0 is never taken.
    pub weighted: bool,
    /// What all random numbers are a function of.
    pub seed: u64,
    /// How local numbers are found.
    pub numbered: Numbered,
}

impl SamplerOptions {
    /// The same fan-outs for so many edge types.
    pub fn of_fanouts(edge_types: usize, fanouts: &[usize]) -> Self {
        let of_type = fanouts.iter().map(|count| Some(*count)).collect();
        SamplerOptions { fanouts: vec![of_type; edge_types], ..SamplerOptions::default() }
    }
}

/// The seeds of a batch that have one vertex type.
#[derive(Clone, Copy, Debug)]
pub struct Seeds<'a> {
    /// The vertex type.
    pub vertex_type: usize,
    /// The numbers of the vertices. One that is given twice is in the sample twice.
    pub numbers: &'a [i64],
    /// For temporal samples, the time of each seed; `None`: that of its vertex.
    pub times: Option<&'a [i64]>,
}
