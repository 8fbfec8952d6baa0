//! The observations of a reader, to be compared with the model at the reader's moment.

use std::collections::BTreeMap;

use mangrove::{Direction, IndexRange, Value};

use crate::model::{Model, Tag};
use crate::names::Outcome;

/// An answer of the graph.
#[derive(Debug)]
pub enum Observed {
    /// Whether a vertex exists.
    Vertex { tag: Tag, is_there: bool },
    /// The values of a key of a vertex.
    Values { tag: Tag, key: usize, values: Vec<Value> },
    /// The value of a key of an edge that is there.
    EdgeValue { tag: Tag, key: usize, value: Option<Value> },
    /// The edges of a vertex in one direction.
    Edges { tag: Tag, direction: Direction, label: Option<usize>, edges: Vec<Tag> },
    /// The vertices at the other ends of the edges of a vertex, by a traversal.
    Neighbors { tag: Tag, direction: Direction, neighbors: Vec<Tag> },
    /// The number of edges of a vertex in one direction.
    Degree { tag: Tag, direction: Direction, degree: u64 },
    /// The vertex with an id.
    ById { id: i64, found: Option<Tag> },
    /// All vertices of a label.
    Vertices { label: Option<usize>, vertices: Vec<Tag> },
    /// All edges of a label.
    AllEdges { label: Option<usize>, edges: Vec<Tag> },
    /// The vertices that have a value in a range, by a scan.
    Having(Having),
    /// The same by an index.
    Indexed(Having),
    /// The edges that have a value in a range, by an index.
    IndexedEdges(Having),
    /// The numbers of vertices and of edges.
    Counts { vertices: u64, edges: u64 },
}

/// The vertices of a label, or the edges of one, that have a value in a range.
#[derive(Debug)]
pub struct Having {
    pub label: Option<usize>,
    pub key: usize,
    pub range: IndexRange,
    pub found: Vec<Tag>,
}

impl Observed {
    /// Compares it with the model at a moment.
    pub fn check(&self, model: &Model, ts: u64) -> Outcome<()> {
        match self {
            Observed::Vertex { tag, is_there } => self.agree(is_there, &model.vertex(*tag, ts).is_some()),
            Observed::Values { tag, key, values } => {
                let found = model.vertex(*tag, ts).and_then(|vertex| vertex.properties.get(key));
                self.agree(values, found.unwrap_or(&Vec::new()))
            }
            Observed::EdgeValue { tag, key, value } => {
                let found = model.edge(*tag, ts).and_then(|edge| edge.properties.get(key));
                self.agree(&value.as_ref(), &found)
            }
            Observed::Edges { tag, direction, label, edges } => {
                let all = model.edges_of(*tag, *direction, ts).into_iter();
                let expected =
                    all.filter(|(_, edge)| label.is_none_or(|label| edge.label == label)).map(|(tag, _)| tag);
                self.same(edges, expected.collect())
            }
            Observed::Neighbors { tag, direction, neighbors } => {
                let other = |(_, edge): (Tag, &crate::model::Edge)| match direction {
                    Direction::Out => edge.to,
                    _ => edge.from,
                };
                self.same(neighbors, model.edges_of(*tag, *direction, ts).into_iter().map(other).collect())
            }
            Observed::Degree { tag, direction, degree } => {
                self.agree(degree, &(model.edges_of(*tag, *direction, ts).len() as u64))
            }
            Observed::ById { id, found } => {
                let expected = model.vertices(ts).find(|(_, vertex)| vertex.id == *id).map(|(tag, _)| tag);
                self.agree(found, &expected)
            }
            Observed::Vertices { label, vertices } => {
                let all = model.vertices(ts).filter(|(_, vertex)| label.is_none_or(|label| vertex.label == label));
                self.same(vertices, all.map(|(tag, _)| tag).collect())
            }
            Observed::AllEdges { label, edges } => {
                let all = model.edges(ts).filter(|(_, edge)| label.is_none_or(|label| edge.label == label));
                self.same(edges, all.map(|(tag, _)| tag).collect())
            }
            Observed::Having(Having { label, key, range, found })
            | Observed::Indexed(Having { label, key, range, found }) => {
                let all = model.vertices(ts).filter(|(_, vertex)| {
                    label.is_none_or(|label| vertex.label == label)
                        && vertex.properties.get(key).into_iter().flatten().any(|value| range.holds(value))
                });
                self.same(found, all.map(|(tag, _)| tag).collect())
            }
            Observed::IndexedEdges(Having { label, key, range, found }) => {
                let all = model.edges(ts).filter(|(_, edge)| {
                    label.is_none_or(|label| edge.label == label)
                        && edge.properties.get(key).is_some_and(|value| range.holds(value))
                });
                self.same(found, all.map(|(tag, _)| tag).collect())
            }
            Observed::Counts { vertices, edges } => {
                self.agree(&(*vertices, *edges), &(model.vertices(ts).count() as u64, model.edges(ts).count() as u64))
            }
        }
    }

    fn agree<T: PartialEq + std::fmt::Debug>(&self, found: &T, expected: &T) -> Outcome<()> {
        if found == expected {
            return Ok(());
        }
        Err(format!("{self:x?}\n  found    {found:x?}\n  expected {expected:x?}"))
    }

    /// Compares tags as multisets: each as often as expected.
    fn same(&self, found: &[Tag], expected: Vec<Tag>) -> Outcome<()> {
        let mut surplus: BTreeMap<Tag, i64> = BTreeMap::new();
        found.iter().for_each(|tag| *surplus.entry(*tag).or_default() += 1);
        expected.iter().for_each(|tag| *surplus.entry(*tag).or_default() -= 1);
        let list = |wanted: fn(&i64) -> bool| -> Vec<String> {
            let some = surplus.iter().filter(|(_, times)| wanted(times)).take(5);
            some.map(|(tag, times)| format!("{tag:x} ({times:+})")).collect()
        };
        let (twice, never) = (list(|times| *times > 0), list(|times| *times < 0));
        if twice.is_empty() && never.is_empty() {
            return Ok(());
        }
        let what = format!("{self:x?}").chars().take(200).collect::<String>();
        Err(format!(
            "{what}\n  {} found, {} expected; too often {twice:?}, too seldom {never:?}",
            found.len(),
            expected.len()
        ))
    }
}
