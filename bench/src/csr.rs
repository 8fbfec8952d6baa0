//! A static graph: the lower limit for the time of adjacency reads, and the reference for their answers.

/// Compressed sparse rows with 64-bit targets. Invariant: `offsets` ascends from 0 to `targets.len()`, and its length
/// is the number of vertices plus one.
#[derive(Clone)]
pub struct Csr {
    offsets: Vec<u64>,
    targets: Vec<u64>,
}

impl Csr {
    /// Builds the lists of out-neighbors; each list keeps the order of the edges.
    pub fn new(vertex_count: usize, edges: &[(u32, u32)]) -> Self {
        let mut offsets = vec![0u64; vertex_count + 1];
        for &(source, _) in edges {
            offsets[source as usize + 1] += 1;
        }
        for v in 0..vertex_count {
            offsets[v + 1] += offsets[v];
        }
        let mut next = offsets.clone();
        let mut targets = vec![0; edges.len()];
        for &(source, target) in edges {
            let place = &mut next[source as usize];
            targets[*place as usize] = u64::from(target);
            *place += 1;
        }
        Csr { offsets, targets }
    }

    /// The number of vertices.
    pub fn vertex_count(&self) -> usize {
        self.offsets.len() - 1
    }

    /// The number of edges.
    pub fn edge_count(&self) -> usize {
        self.targets.len()
    }

    /// The number of edges that leave a vertex.
    #[inline]
    pub fn degree(&self, vertex: usize) -> u64 {
        self.offsets[vertex + 1] - self.offsets[vertex]
    }

    /// The targets of a vertex's edges.
    #[inline]
    pub fn neighbors(&self, vertex: usize) -> &[u64] {
        &self.targets[self.offsets[vertex] as usize..self.offsets[vertex + 1] as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_hold_the_targets_in_order() {
        let csr = Csr::new(4, &[(2, 1), (0, 3), (2, 2), (2, 1)]);
        assert_eq!((csr.vertex_count(), csr.edge_count()), (4, 4));
        assert_eq!(csr.neighbors(2), [1, 2, 1]);
        assert_eq!((csr.degree(0), csr.degree(1), csr.degree(3)), (1, 0, 0));
    }
}
