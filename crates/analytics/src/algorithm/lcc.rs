//! Local clustering coefficients: how many of the edges that the neighbors of a vertex may have among them are there.
//!
//! As Graphalytics defines it (LDBC Graphalytics 1.0, section 2.3.6). Neighbors are the other ends of edges of both directions, each
//! once. Of `d` neighbors, `d · (d − 1)` edges are possible: in an undirected graph an edge counts for both directions. With
//! fewer than two neighbors the coefficient is 0.
//!
//! Each vertex intersects its neighbors with the row of each of them, by a merge, or by searches if one row is much shorter. Work
//! O(Σ d² ) at worst; memory 8 bytes a position and 4 a cell for each of two sets of sorted rows.

use mangrove_graph::Result;

use crate::projection::Projection;
use crate::simple::{SimpleRows, common};
use crate::team::Team;

/// The coefficient of every position.
pub fn run(projection: &Projection, team: &Team) -> Result<Vec<f64>> {
    let neighbors = SimpleRows::of(projection, true, team)?;
    let directed = projection.is_directed().then(|| SimpleRows::of(projection, false, team)).transpose()?;
    let outgoing = directed.as_ref().unwrap_or(&neighbors);
    let parts = projection.parts();
    let mut coefficients = vec![0.0; projection.positions()];
    team.map_slices(parts, &mut coefficients, |part, coefficients| {
        for (at, coefficient) in parts[part].clone().zip(coefficients) {
            let row = neighbors.row(at as u32);
            let possible = row.len() as f64 * (row.len() as f64 - 1.0);
            if row.len() > 1 {
                let there: u64 = row.iter().map(|other| common(row, outgoing.row(*other))).sum();
                *coefficient = there as f64 / possible;
            }
        }
    })?;
    Ok(coefficients)
}
