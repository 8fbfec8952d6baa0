//! Peer pressure clustering: each vertex joins the cluster that most of the vertices that point at it vote for.
//!
//! TinkerPop's form of it (Gilbert, Reinhardt and Shah, 2007). At the beginning each vertex is a cluster of its own. In a round
//! every vertex has a vote of its own strength for the cluster that it is in, and one along each of its incoming edges: for the
//! cluster, and of the strength, of the vertex at the other end. It joins the cluster with the largest sum of votes. Of equal
//! sums the least cluster counts, by the order of the labels. If no vote has a strength above 0, it goes back to its own cluster.
//! It ends after a number of rounds, or when no vertex changes its cluster.
//!
//! Votes for one cluster are added in the order of the row, so sums do not depend on threads.
//!
//! Work O(m log d) a round; memory 24 bytes a position, and a row a thread.

use mangrove_graph::Result;

use super::cdlp::in_rounds;
use crate::projection::Projection;
use crate::team::Team;

/// The cluster of every position after at most so many rounds. At the beginning each position has the label that `labels` says;
/// `strengths` says how much its votes count.
///
/// # Errors
///
/// If the query of the team has ended.
pub fn run(projection: &Projection, labels: &[u64], strengths: &[f64], rounds: u32, team: &Team) -> Result<Vec<u64>> {
    in_rounds(projection, labels.to_vec(), rounds, team, |at, known, votes| {
        votes.push((known[at], strengths[at]));
        let neighbors = projection.incoming(at as u32).iter().map(|other| *other as usize);
        votes.extend(neighbors.map(|other| (known[other], strengths[other])));
        elected(votes).unwrap_or(labels[at])
    })
}

/// The label with the largest sum of votes above 0; the least of several.
fn elected(votes: &mut [(u64, f64)]) -> Option<u64> {
    // A stable sort: the votes for one label stay in the order of the row.
    votes.sort_by_key(|(label, _)| *label);
    let mut best: Option<(f64, u64)> = None;
    for same in votes.chunk_by(|one, other| one.0 == other.0) {
        let sum: f64 = same.iter().map(|(_, strength)| strength).sum();
        if sum > best.map_or(0.0, |(most, _)| most) {
            best = Some((sum, same[0].0));
        }
    }
    best.map(|(_, label)| label)
}
