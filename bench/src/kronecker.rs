//! The edges of Kronecker graphs, from the generator of `mangrove generate kronecker`.

use mangrove::Result;
use mangrove_generate::kronecker::{KroneckerSpec, Schema};
use mangrove_generate::{GeneratedEdges, GeneratedVertices, GraphSink};

/// Collects the ends of edges.
struct Ends(Vec<(u32, u32)>);

impl GraphSink for Ends {
    fn vertices(&mut self, _: GeneratedVertices) -> Result<()> {
        Ok(())
    }

    fn edges(&mut self, batch: GeneratedEdges) -> Result<()> {
        self.0.extend(batch.ends.iter().map(|&(source, target)| (source as u32, target as u32)));
        Ok(())
    }
}

/// The edges of a graph of `2^scale` vertices, by vertex numbers.
pub fn edges(scale: u32, edge_factor: usize, seed: u64) -> Vec<(u32, u32)> {
    assert!((1..=32).contains(&scale), "vertices are numbered by 32 bits");
    let spec = KroneckerSpec {
        scale,
        edge_factor: edge_factor as u64,
        schema: Schema::with_counts(1, 0),
        undirected: false,
        seed,
        threads: 1,
    };
    let mut ends = Ends(Vec::with_capacity(edge_factor << scale));
    spec.generate(&mut ends).expect("the scale is in range, and nothing else could be refused");
    ends.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_skewed_graph() {
        let graph = edges(10, 16, 7);
        assert_eq!(graph, edges(10, 16, 7));
        assert_eq!(graph.len(), 16 << 10);
        let mut degrees = vec![0; 1 << 10];
        graph.iter().for_each(|&(source, _)| degrees[source as usize] += 1);
        degrees.sort_unstable();
        assert!(degrees[1023] > 160, "the largest degree is ten times the mean or more: {}", degrees[1023]);
        assert!(degrees[512] < 16, "most degrees are below the mean");
    }
}
