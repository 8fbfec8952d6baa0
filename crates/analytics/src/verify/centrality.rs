//! How important a vertex is.

use super::vertices;
use crate::projection::Projection;

/// Ranks by pushing along outgoing edges. With `spread`, lost rank goes to all vertices.
pub fn pagerank(projection: &Projection, damping: f64, rounds: u32, spread: bool) -> Vec<f64> {
    let count = projection.vertex_count() as f64;
    let mut ranks = vec![0.0; projection.positions()];
    vertices(projection).for_each(|at| ranks[at as usize] = 1.0 / count);
    for _ in 0..rounds {
        let mut next = vec![0.0; ranks.len()];
        let mut lost = 0.0;
        for at in vertices(projection) {
            let row = projection.outgoing(at);
            row.iter().for_each(|other| next[*other as usize] += ranks[at as usize] / row.len() as f64);
            if row.is_empty() && spread {
                lost += ranks[at as usize];
            }
        }
        for at in vertices(projection) {
            ranks[at as usize] = (1.0 - damping) / count + damping * (next[at as usize] + lost / count);
        }
    }
    ranks
}
