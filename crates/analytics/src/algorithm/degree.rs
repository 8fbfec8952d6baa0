//! The number of edges of each vertex: the lengths of its rows.
//!
//! Work O(n); memory 8 bytes a position.

use mangrove_graph::Result;

use crate::projection::Projection;
use crate::team::Team;

/// The edges of a vertex. In an undirected projection, both numbers are those of all its edges.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Degree {
    /// The number of outgoing edges.
    pub outgoing: u32,
    /// The number of incoming edges.
    pub incoming: u32,
}

impl Degree {
    /// The sum of the two: a loop counts twice.
    pub fn both(&self) -> u64 {
        u64::from(self.outgoing) + u64::from(self.incoming)
    }
}

/// The degree of every position; 0 for holes.
///
/// # Errors
///
/// If the query of the team has ended.
pub fn run(projection: &Projection, team: &Team) -> Result<Vec<Degree>> {
    let parts = projection.parts();
    let mut degrees = vec![Degree::default(); projection.positions()];
    team.map_slices(parts, &mut *degrees, |part, degrees| {
        for (at, degree) in parts[part].clone().zip(degrees) {
            let at = at as u32;
            *degree = Degree { outgoing: projection.out_degree(at), incoming: projection.incoming(at).len() as u32 };
        }
    })?;
    Ok(degrees)
}
