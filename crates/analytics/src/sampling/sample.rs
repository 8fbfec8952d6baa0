//! What a sampler finds: a small graph of local numbers, with the numbers that its vertices and edges have in the whole graph.

use mangrove_graph::{Error, Result};

/// A sample: the vertices that were met, by type, and the edges that were taken, by type.
///
/// The *local number* of a vertex is its place among those of its type. Seeds are the first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// By vertex type: by local number, the number of the vertex.
    pub vertices: Vec<Vec<i64>>,
    /// By edge type: the local number of the source of each edge.
    pub sources: Vec<Vec<i64>>,
    /// By edge type: the local number of the target of each edge.
    pub targets: Vec<Vec<i64>>,
    /// By edge type: the number of each edge.
    pub edges: Vec<Vec<i64>>,
    /// By vertex type: by local number, the tree of the vertex: the place of its seed among all seeds. `None` unless trees are disjoint.
    pub trees: Option<Vec<Vec<i64>>>,
    /// By vertex type: the number of seeds, and then for each hop how many vertices were met in it for the first time.
    pub vertices_of_hops: Vec<Vec<usize>>,
    /// By edge type: for each hop the number of edges.
    pub edges_of_hops: Vec<Vec<usize>>,
}

impl Sample {
    /// The number of edges of all types.
    pub fn edge_count(&self) -> usize {
        self.edges.iter().map(Vec::len).sum()
    }

    /// The same sample with every edge in both directions. `reverse` says by edge type which type has the edges in the other direction: itself,
    /// if both ends have one type. An edge type without an entry stays as it is. Between the same two vertices remains one edge of a type,
    /// that of the least number among those of its type, before those of the other type. Edges are in the order of targets and
    /// sources. There are no edges of hops.
    ///
    /// # Errors
    ///
    /// If `reverse` has no entry for each edge type, or names a type that does not exist.
    pub fn both_directions(&self, reverse: &[Option<usize>]) -> Result<Sample> {
        let types = self.edges.len();
        if reverse.len() != types || reverse.iter().flatten().any(|of| *of >= types) {
            return Err(Error::invalid(format!(
                "the reverse types are to be given for {types} edge types, and name only those: {reverse:?}"
            )));
        }
        let mut both = self.clone();
        for (at, other) in reverse.iter().enumerate() {
            let Some(other) = *other else { continue };
            let own =
                (0..self.edges[at].len()).map(|e| (self.targets[at][e], self.sources[at][e], 0, self.edges[at][e]));
            let turned = (0..self.edges[other].len())
                .map(|e| (self.sources[other][e], self.targets[other][e], 1, self.edges[other][e]));
            let mut all: Vec<(i64, i64, u8, i64)> = own.chain(turned).collect();
            all.sort_unstable();
            all.dedup_by_key(|(target, source, ..)| (*target, *source));
            both.targets[at] = all.iter().map(|(target, ..)| *target).collect();
            both.sources[at] = all.iter().map(|(_, source, ..)| *source).collect();
            both.edges[at] = all.iter().map(|(.., edge)| *edge).collect();
        }
        both.edges_of_hops = vec![Vec::new(); types];
        Ok(both)
    }
}
