//! Kronecker graphs: the edges of the R-MAT model with the Graph500's parameters.
//!
//! Each edge picks one quadrant of the adjacency matrix per bit of the vertex number, with probabilities
//! A, B, C and D; the numbers are permuted afterwards, so that nothing can be learned from them. Degrees follow a
//! power law; parallel edges and self-loops are kept, as a property graph would.

use crate::random::{Random, mix};

/// Probabilities of three quadrants in 1/100; the fourth is the rest.
const A: u64 = 57;
const B: u64 = 19;
const C: u64 = 19;

/// The edges of a graph of `2^scale` vertices, by number.
pub fn edges(scale: u32, edge_factor: usize, seed: u64) -> Vec<(u32, u32)> {
    let vertex_count = 1u32 << scale;
    let mut names: Vec<u32> = (0..vertex_count).collect();
    Random::new(mix(seed)).shuffle(&mut names);
    let mut random = Random::new(seed);
    let name = |(source, target): (u32, u32)| (names[source as usize], names[target as usize]);
    (0..vertex_count as usize * edge_factor).map(|_| name(cell(scale, &mut random))).collect()
}

fn cell(scale: u32, random: &mut Random) -> (u32, u32) {
    let (mut row, mut column) = (0, 0);
    for _ in 0..scale {
        let quadrant = random.below(100);
        let (down, right) = match quadrant {
            q if q < A => (0, 0),
            q if q < A + B => (0, 1),
            q if q < A + B + C => (1, 0),
            _ => (1, 1),
        };
        (row, column) = (row << 1 | down, column << 1 | right);
    }
    (row, column)
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
