//! Community detection by label propagation: each vertex takes the label that most of its neighbors have.
//!
//! The synchronous form of Graphalytics (Raghavan, Albert and Kumara 2007; LDBC Graphalytics 1.0, section 2.3.3): all vertices
//! look at the labels of the last round; of equally frequent labels the least counts; in a directed graph a neighbor by both
//! directions counts twice. It ends after a number of rounds, or when no label changes.
//!
//! Work O(m log d) a round; memory 16 bytes a position, and a row a thread.

use mangrove_graph::Result;

use crate::projection::Projection;
use crate::team::Team;

/// The label of every position after at most so many rounds. At the beginning each position has the label that `labels` says: their order
/// decides between equally frequent ones.
pub fn run(projection: &Projection, labels: Vec<u64>, rounds: u32, team: &Team) -> Result<Vec<u64>> {
    in_rounds(projection, labels, rounds, team, |at, known, seen| {
        let of = |other: &u32| known[*other as usize];
        seen.extend(projection.outgoing(at as u32).iter().map(of));
        if projection.is_directed() {
            seen.extend(projection.incoming(at as u32).iter().map(of));
        }
        most_frequent(seen).unwrap_or(known[at])
    })
}

/// Rounds in which every position chooses its label by those of the round before, until no label changes. `choose` has the position, the
/// labels, and an empty array.
pub(super) fn in_rounds<T>(
    projection: &Projection,
    labels: Vec<u64>,
    rounds: u32,
    team: &Team,
    choose: impl Fn(usize, &[u64], &mut Vec<T>) -> u64 + Sync,
) -> Result<Vec<u64>> {
    let parts = projection.parts();
    let (mut last, mut next) = (labels.clone(), labels);
    team.count_in("rounds", u64::from(rounds));
    for _ in 0..rounds {
        let known = &last;
        let changed = team.map_slices(parts, &mut *next, |part, next| {
            let (mut changed, mut seen) = (false, Vec::new());
            for (at, next) in parts[part].clone().zip(next) {
                seen.clear();
                *next = choose(at, known, &mut seen);
                changed |= *next != known[at];
            }
            changed
        })?;
        std::mem::swap(&mut last, &mut next);
        team.advance(1);
        if !changed.contains(&true) {
            break;
        }
    }
    Ok(last)
}

/// The most frequent label; the least of several.
fn most_frequent(labels: &mut [u64]) -> Option<u64> {
    labels.sort_unstable();
    let mut best: Option<(usize, u64)> = None;
    for same in labels.chunk_by(|one, other| one == other) {
        if best.is_none_or(|(count, _)| same.len() > count) {
            best = Some((same.len(), same[0]));
        }
    }
    best.map(|(_, label)| label)
}
