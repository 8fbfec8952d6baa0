//! Counts of a graph as a block of a pack, for readers that plan their reads before they have any.
//!
//! The block is JSON: of each label set of vertices how many there are, and of each direction and label set of their edges how
//! many edges, how many vertices with at least one, the largest degree, the sum of the squares of the degrees, and the degrees by
//! powers of two. All are exact for the snapshot of the checkpoint that wrote the block.

use mangrove_graph::statistics::Statistics;
use mangrove_graph::{Direction, Error, Result};
use mangrove_store::{Snapshot, StatisticsPass, Store};
use serde::{Deserialize, Serialize};

use crate::codec::Malformed;

/// Descriptors and edges that are looked at between two pauses.
const LOOKED_AT_A_TIME: usize = 1 << 16;
/// Sums of squares are floats; above 2⁵³ they depend on the order of the sum.
const SQUARES_TOLERANCE: f64 = 1e-9;

/// The counts of a graph.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct GraphCounts {
    /// The timestamp of the snapshot.
    pub(crate) at_ts: u64,
    /// By label set, ascending.
    pub(crate) vertices: Vec<VertexCounts>,
}

/// The vertices of a label set.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct VertexCounts {
    pub(crate) label_set: u32,
    pub(crate) count: u64,
    /// Their edges: outgoing ones first, then by label set.
    pub(crate) edges: Vec<EdgeCounts>,
}

/// The edges of the vertices of a label set, in one direction, with one label set.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct EdgeCounts {
    /// `out` or `in`.
    pub(crate) direction: String,
    pub(crate) label_set: u32,
    pub(crate) count: u64,
    /// Vertices with at least one.
    pub(crate) vertices: u64,
    pub(crate) largest_degree: u64,
    pub(crate) squares: f64,
    /// How many vertices have the degree 0, and how many one from 2ᵏ⁻¹ on and below 2ᵏ, for k from 1 on. Empty if a graph has very many
    /// kinds of edges.
    pub(crate) degrees: Vec<u64>,
}

impl GraphCounts {
    /// Counts what a snapshot shows. `pause` is called meanwhile; its error ends the count.
    pub(crate) fn of(store: &Store, at_ts: u64, pause: &mut dyn FnMut() -> Result<()>) -> Result<Self> {
        let (view, mut pass) = (store.view(Snapshot::committed(at_ts)), StatisticsPass::new());
        while !pass.step(&view, LOOKED_AT_A_TIME) {
            pause()?;
        }
        Ok(Self::from(&pass.finish(store, at_ts)))
    }

    /// The block.
    pub(crate) fn text(&self) -> Result<Vec<u8>> {
        serde_json::to_vec(self).map_err(|error| Error::bug(format!("the counts of a graph as text: {error}")))
    }

    /// Reads a block.
    pub(crate) fn read(text: &[u8]) -> std::result::Result<Self, Malformed> {
        serde_json::from_slice(text).map_err(|_| Malformed { at: 0, what: "expected the counts of a graph as JSON" })
    }

    /// The first difference from the counts of the same snapshot, as text. When they were made is left out: a checkpoint without
    /// changes writes none.
    pub(crate) fn difference(&self, expected: &GraphCounts) -> Option<String> {
        let key = |counts: &VertexCounts| (counts.label_set, counts.count);
        for at in 0..self.vertices.len().max(expected.vertices.len()) {
            let (found, right) = (self.vertices.get(at), expected.vertices.get(at));
            if found.map(key) != right.map(key) {
                return Some(format!(
                    "it has {:?} vertices of a label set, and not {:?}",
                    found.map(key),
                    right.map(key)
                ));
            }
            let edges = found.zip(right).into_iter().flat_map(|(found, right)| pairs(&found.edges, &right.edges));
            for (found, right) in edges {
                if !found.zip(right).is_some_and(|(found, right)| found.is_near(right)) {
                    return Some(format!("it has {found:?}, and not {right:?}"));
                }
            }
        }
        None
    }
}

fn pairs<'c, T>(found: &'c [T], right: &'c [T]) -> impl Iterator<Item = (Option<&'c T>, Option<&'c T>)> {
    (0..found.len().max(right.len())).map(move |at| (found.get(at), right.get(at)))
}

impl EdgeCounts {
    fn is_near(&self, other: &EdgeCounts) -> bool {
        (self.squares - other.squares).abs() <= SQUARES_TOLERANCE * other.squares
            && EdgeCounts { squares: other.squares, ..self.clone() } == *other
    }
}

impl From<&Statistics> for GraphCounts {
    fn from(statistics: &Statistics) -> Self {
        let of_label = |label: &mangrove_graph::statistics::LabelStatistics| VertexCounts {
            label_set: label.label.0,
            count: label.vertices,
            edges: label
                .tables()
                .iter()
                .map(|degrees| EdgeCounts {
                    direction: if degrees.table.direction == Direction::In { "in" } else { "out" }.to_owned(),
                    label_set: degrees.table.label.0,
                    count: degrees.edges,
                    vertices: degrees.sources,
                    largest_degree: degrees.max_degree,
                    squares: degrees.squares,
                    degrees: degrees.buckets.iter().map(|bucket| bucket.count).collect(),
                })
                .collect(),
        };
        // A label set that had vertices, and has none, is no difference between two graphs.
        let with_vertices = statistics.labels().iter().filter(|label| label.vertices > 0);
        GraphCounts { at_ts: statistics.as_of, vertices: with_vertices.map(of_label).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts() -> GraphCounts {
        let edges = |direction: &str, label_set| EdgeCounts {
            direction: direction.to_owned(),
            label_set,
            count: 9,
            vertices: 3,
            largest_degree: 4,
            squares: 29.0,
            degrees: vec![2, 0, 2, 1],
        };
        let vertices = |label_set| VertexCounts { label_set, count: 5, edges: vec![edges("out", 2), edges("in", 2)] };
        GraphCounts { at_ts: 7, vertices: vec![vertices(1), vertices(3)] }
    }

    #[test]
    fn counts_are_read_as_they_were_written() {
        let text = counts().text().unwrap();
        assert_eq!(GraphCounts::read(&text).unwrap(), counts());
        assert!(GraphCounts::read(&text[..text.len() - 1]).is_err());
    }

    #[test]
    fn every_difference_is_found() {
        let right = counts();
        assert_eq!(right.difference(&GraphCounts { at_ts: 9, ..counts() }), None, "the time does not count");
        let changes: [fn(&mut GraphCounts); 7] = [
            |counts| drop(counts.vertices.pop()),
            |counts| counts.vertices[0].count += 1,
            |counts| counts.vertices[1].label_set += 1,
            |counts| drop(counts.vertices[1].edges.pop()),
            |counts| counts.vertices[0].edges[1].direction = "out".to_owned(),
            |counts| counts.vertices[0].edges[0].squares += 1.0,
            |counts| counts.vertices[1].edges[1].degrees[2] = 3,
        ];
        for change in changes {
            let mut wrong = counts();
            change(&mut wrong);
            assert!(wrong.difference(&right).is_some() && right.difference(&wrong).is_some(), "{wrong:?}");
        }
    }
}
