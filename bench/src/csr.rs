//! A static graph: the limit that adjacency is held against, and the reference its answers are compared with.

/// Compressed sparse rows with 64-bit targets. Invariant: `offsets` ascends from 0 to `targets.len()` and has one
/// entry more than there are vertices.
#[derive(Clone)]
pub struct Csr {
    offsets: Vec<u64>,
    targets: Vec<u64>,
}

impl Csr {
    /// The out-neighbors of each vertex, in the order of the edges.
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

    /// How many vertices.
    pub fn vertex_count(&self) -> usize {
        self.offsets.len() - 1
    }

    /// How many edges.
    pub fn edge_count(&self) -> usize {
        self.targets.len()
    }

    /// How many edges leave a vertex.
    #[inline]
    pub fn degree(&self, vertex: usize) -> u64 {
        self.offsets[vertex + 1] - self.offsets[vertex]
    }

    /// Where the edges of a vertex lead.
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
