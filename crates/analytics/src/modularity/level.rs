//! The weighted graph of a level: the graph itself, or communities as vertices.

use std::ops::Range;

use mangrove_graph::{Error, Result};

use crate::projection::Projection;
use crate::ranked::cut;
use crate::tally::Tally;
use crate::team::Team;

/// The number of no vertex of a level.
pub(crate) const NO_VERTEX: u32 = u32::MAX;
/// Members of a community between two looks whether the query has ended.
const MEMBERS_A_CHECK: usize = 1 << 10;

/// A graph without directions, with weights.
#[derive(Debug)]
pub(crate) struct Level<'p> {
    rows: Rows<'p>,
    /// The weight of the edges of each vertex, a loop twice.
    pub(super) strengths: Vec<f64>,
    /// The strength of all vertices.
    pub(super) total: f64,
    /// Vertices in ranges of about equal work.
    parts: Vec<Range<usize>>,
}

/// The edges of a level. Each is in the rows of both ends.
#[derive(Debug)]
enum Rows<'p> {
    /// A loop is in its row twice. In a directed projection, a row is the outgoing and the incoming edges.
    Graph(&'p Projection),
    /// A loop is in its row once, with twice its weight. No vertex has two cells for the same other end.
    Communities { offsets: Vec<usize>, cells: Vec<u32>, weights: Vec<f64> },
}

impl<'p> Level<'p> {
    /// The first level.
    ///
    /// # Errors
    ///
    /// If a weight is negative or no number, or if the query of the team has ended.
    pub(crate) fn of(projection: &'p Projection, team: &Team) -> Result<Self> {
        let parts = projection.parts().to_vec();
        let mut level =
            Level { rows: Rows::Graph(projection), strengths: vec![0.0; projection.positions()], total: 0.0, parts };
        let mut strengths = std::mem::take(&mut level.strengths);
        let misfits = team.map_slices(&level.parts, &mut *strengths, |part, strengths| {
            let mut misfit = None;
            for (at, strength) in level.parts[part].clone().zip(strengths) {
                level.for_each_cell(at as u32, |_, weight| {
                    if !(weight.is_finite() && weight >= 0.0) {
                        misfit = Some(weight);
                    }
                    *strength += weight;
                });
            }
            misfit
        })?;
        if let Some(weight) = misfits.into_iter().flatten().next() {
            return Err(Error::invalid(format!(
                "an edge has the weight {weight}; modularity needs finite weights of at least 0"
            )));
        }
        level.total = strengths.iter().sum();
        level.strengths = strengths;
        Ok(level)
    }

    /// The number of vertices. In the first level, that of positions.
    pub(crate) fn len(&self) -> usize {
        self.strengths.len()
    }

    /// The number of vertices with edges.
    pub(crate) fn edged(&self) -> usize {
        (0..self.len() as u32).filter(|at| self.degree(*at) > 0).count()
    }

    /// Returns true if an edge has a weight above 0.
    pub(crate) fn has_weights(&self) -> bool {
        self.total > 0.0
    }

    /// Ranges of vertices that are about equally much work. They ascend and have all vertices.
    pub(super) fn parts(&self) -> &[Range<usize>] {
        &self.parts
    }

    /// The number of cells of a row.
    #[inline]
    pub(crate) fn degree(&self, at: u32) -> usize {
        match &self.rows {
            Rows::Graph(projection) if projection.is_directed() => {
                projection.outgoing(at).len() + projection.incoming(at).len()
            }
            Rows::Graph(projection) => projection.outgoing(at).len(),
            Rows::Communities { offsets, .. } => offsets[at as usize + 1] - offsets[at as usize],
        }
    }

    /// Calls `each` with the other end and the weight of every cell of a row.
    #[inline]
    pub(super) fn for_each_cell(&self, at: u32, mut each: impl FnMut(u32, f64)) {
        let mut row = |cells: &[u32], weights: &[f64]| match weights.len() == cells.len() {
            true => cells.iter().zip(weights).for_each(|(other, weight)| each(*other, *weight)),
            false => cells.iter().for_each(|other| each(*other, 1.0)),
        };
        match &self.rows {
            Rows::Graph(projection) => {
                row(projection.outgoing(at), projection.outgoing_weights(at));
                if projection.is_directed() {
                    row(projection.incoming(at), projection.incoming_weights(at));
                }
            }
            Rows::Communities { offsets, cells, weights } => {
                let range = offsets[at as usize]..offsets[at as usize + 1];
                row(&cells[range.clone()], &weights[range]);
            }
        }
    }

    /// The modularity of communities: numbers below that of the vertices.
    pub(crate) fn modularity(&self, communities: &[u32], resolution: f64, team: &Team) -> Result<f64> {
        if self.total <= 0.0 {
            return Ok(0.0);
        }
        let within = team.map_parts(self.parts.len(), |part| {
            let mut within = 0.0;
            for at in self.parts[part].clone() {
                self.for_each_cell(at as u32, |other, weight| {
                    if communities[other as usize] == communities[at] {
                        within += weight;
                    }
                });
            }
            within
        })?;
        let mut strengths = vec![0.0; self.len()];
        communities.iter().zip(&self.strengths).for_each(|(at, strength)| strengths[*at as usize] += strength);
        // In the order of the parts (ALGO-2).
        let within: f64 = within.iter().sum();
        let expected: f64 = strengths.iter().map(|strength| (strength / self.total).powi(2)).sum();
        Ok(within / self.total - resolution * expected)
    }

    /// The level whose vertices are the communities of this one, and the vertex there of each vertex here: they are numbered in the
    /// order of their first members. Vertices without edges have [`NO_VERTEX`].
    pub(crate) fn joined(&self, communities: &[u32], team: &Team) -> Result<(Level<'static>, Vec<u32>)> {
        let (mut numbers, mut of_communities, mut count) =
            (vec![NO_VERTEX; self.len()], vec![NO_VERTEX; self.len()], 0);
        for (at, community) in communities.iter().enumerate() {
            if self.degree(at as u32) > 0 {
                let number = &mut of_communities[*community as usize];
                if *number == NO_VERTEX {
                    *number = count;
                    count += 1;
                }
                numbers[at] = *number;
            }
        }
        drop(of_communities);
        let count = count as usize;
        let (starts, members) = self.members(&numbers, count);
        let works = |at: usize| members[starts[at]..starts[at + 1]].iter().map(|member| self.degree(*member) as u64);
        let parts = cut((0..count).map(|at| works(at).sum::<u64>()));
        let checker = team.checker();
        let of_parts = team.map_parts(parts.len(), |part| {
            let (mut lengths, mut cells, mut weights) = (Vec::new(), Vec::new(), Vec::new());
            let (mut tally, mut row) = (Tally::default(), Vec::new());
            for at in parts[part].clone() {
                tally.clear(works(at).sum::<u64>().min(count as u64) as usize);
                for (number, member) in members[starts[at]..starts[at + 1]].iter().enumerate() {
                    // A community may be half the graph. What it lacks then is not used: the look below fails, too.
                    if number % MEMBERS_A_CHECK == MEMBERS_A_CHECK - 1 && checker.check().is_err() {
                        break;
                    }
                    self.for_each_cell(*member, |other, weight| tally.add(numbers[other as usize], weight));
                }
                row.clear();
                row.extend(tally.sums());
                row.sort_unstable_by_key(|(other, _)| *other);
                lengths.push(row.len());
                cells.extend(row.iter().map(|(other, _)| *other));
                weights.extend(row.iter().map(|(_, weight)| *weight));
            }
            (lengths, cells, weights)
        })?;
        let (mut offsets, mut cells, mut weights, mut end) = (vec![0], Vec::new(), Vec::new(), 0);
        for (lengths, of_cells, of_weights) in of_parts {
            team.check()?;
            cells.extend_from_slice(&of_cells);
            weights.extend_from_slice(&of_weights);
            offsets.extend(lengths.into_iter().map(|length| {
                end += length;
                end
            }));
        }
        let mut strengths = vec![0.0; count];
        let joined = members.iter().map(|member| (numbers[*member as usize], self.strengths[*member as usize]));
        joined.for_each(|(number, strength)| strengths[number as usize] += strength);
        let parts = cut((0..count).map(|at| (offsets[at + 1] - offsets[at]) as u64));
        let rows = Rows::Communities { offsets, cells, weights };
        Ok((Level { rows, strengths, total: self.total, parts }, numbers))
    }

    /// The members of each numbered community, and where they begin.
    fn members(&self, numbers: &[u32], count: usize) -> (Vec<usize>, Vec<u32>) {
        let mut starts = vec![0; count + 2];
        let numbered = || numbers.iter().enumerate().filter(|(_, number)| **number != NO_VERTEX);
        numbered().for_each(|(_, number)| starts[*number as usize + 2] += 1);
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let mut members = vec![0; starts[count + 1]];
        for (at, number) in numbered() {
            let next = &mut starts[*number as usize + 1];
            members[*next] = at as u32;
            *next += 1;
        }
        starts.pop();
        (starts, members)
    }
}
