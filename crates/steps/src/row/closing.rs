//! Edges between two vertices that are both known: `both().where(eq("a"))`, `where(both().where(eq("a")))`.
//!
//! Nobody wants the other neighbors, so they are not met: the row's vertex is looked for among the neighbors of the named
//! one, whose list is read once and sorted, since many rows share it. Where few rows have to do with a hub, its list would
//! cost more than theirs; then theirs are walked.
//!
//! Over several nodes a node reads the lists of its own vertices only: there the row's own list is always the one.

use mangrove_flow::{BATCH_ROWS, GroupId, Operator, Output};
use mangrove_graph::{Direction, ExpandCursor, ExpandRequest, Expansion, Result, VertexId};
use mangrove_plan::logical::Name;
use mangrove_plan::physical::EdgeTo;

use crate::barrier::held::FastMap;
use crate::row::expand::{step_name, vertices};
use crate::row::names::LabelSets;
use crate::row::sorted_lists::{SortedLists, distinct, named_vertices, times_in};
use crate::rows::{Column, Remember, Rows};

/// What becomes of a row.
pub enum Kind {
    /// One row for each edge, at the named vertex.
    Follow {
        /// The row stays where it is instead.
        stays: bool,
        /// What is remembered of where it is.
        remember: Remember,
    },
    /// The row itself, if there is an edge, or (`negate`) if there is none.
    Test {
        /// Rows without an edge pass.
        negate: bool,
    },
}

/// Looks for edges to the vertex that a name stands for.
pub struct Closing {
    direction: Direction,
    labels: LabelSets,
    name: Name,
    kind: Kind,
    /// Only the lists of the rows' own vertices may be read.
    near_only: bool,
    /// The lists of the named vertices, against the direction.
    lists: SortedLists,
    expansion: Expansion,
}

/// A list may cost so many times what the rows that ask for it would cost.
const LIST_SHARE: u64 = 2;

impl Closing {
    /// Along these edges; `near_only` over several nodes.
    pub fn new(edge: &EdgeTo, kind: Kind, near_only: bool) -> Self {
        let EdgeTo { direction, labels, name } = edge;
        Closing {
            direction: *direction,
            labels: LabelSets::along(labels.clone()),
            name: name.clone(),
            kind,
            near_only,
            lists: SortedLists::new(direction.reverse(), labels.clone()),
            expansion: Expansion::default(),
        }
    }

    /// How many edges lead from each vertex to its target.
    fn count(&mut self, from: &[VertexId], to: &[Option<VertexId>], out: &Output<'_, Rows>) -> Result<Vec<usize>> {
        let mut counts = vec![0; from.len()];
        if !self.near_only {
            let worth_reading = self.worth_reading(from, to, out)?;
            self.lists.load(&worth_reading, out)?;
        }
        let mut rest = Vec::new();
        for (row, target) in to.iter().enumerate() {
            match target {
                Some(target) if self.lists.has(*target) => counts[row] = times_in(self.lists.of(*target), from[row]),
                Some(_) => rest.push(row),
                None => {}
            }
        }
        self.count_by_walking(from, to, &rest, &mut counts, out)?;
        Ok(counts)
    }

    /// The targets whose lists are at hand, or cost less than those of the rows that ask for them.
    fn worth_reading(
        &mut self,
        from: &[VertexId],
        to: &[Option<VertexId>],
        out: &Output<'_, Rows>,
    ) -> Result<Vec<VertexId>> {
        let environment = out.surroundings();
        let targets = distinct(to.iter().flatten().copied());
        let (mut known, missing): (Vec<_>, Vec<_>) = targets.into_iter().partition(|target| self.lists.has(*target));
        if missing.is_empty() {
            return Ok(known);
        }
        let view = &*environment.view;
        let mut near = Vec::with_capacity(from.len());
        view.degrees(from, self.direction, self.labels.filter(view), &mut near)?;
        let mut asked: FastMap<VertexId, u64> = FastMap::default();
        for (target, degree) in to.iter().zip(near) {
            if let Some(target) = target {
                *asked.entry(*target).or_default() += degree;
            }
        }
        let degrees = self.lists.degrees(&missing, environment)?;
        let costs_less =
            |(target, degree): &(VertexId, u64)| *degree <= LIST_SHARE * asked.get(target).copied().unwrap_or(0);
        known.extend(missing.into_iter().zip(degrees).filter(costs_less).map(|(target, _)| target));
        Ok(known)
    }

    /// Counts for some of the rows by going through the neighbors of their own vertices.
    fn count_by_walking(
        &mut self,
        from: &[VertexId],
        to: &[Option<VertexId>],
        rows: &[usize],
        counts: &mut [usize],
        out: &Output<'_, Rows>,
    ) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let view = &*out.surroundings().view;
        let request = ExpandRequest {
            direction: self.direction,
            labels: self.labels.filter(view).clone(),
            edges: false,
            limit: BATCH_ROWS,
        };
        let vertices: Vec<VertexId> = rows.iter().map(|row| from[*row]).collect();
        let (mut cursor, mut done) = (ExpandCursor::default(), false);
        while !done {
            out.context().check()?;
            self.expansion.clear();
            done = view.expand(&vertices, &request, &mut cursor, &mut self.expansion)?;
            for (at, neighbor) in self.expansion.row.iter().zip(&self.expansion.neighbor) {
                let row = rows[*at as usize];
                counts[row] += usize::from(to[row] == Some(*neighbor));
            }
        }
        Ok(())
    }
}

impl Operator<Rows> for Closing {
    fn rest(&mut self) -> bool {
        self.lists.rest();
        true
    }

    fn receive(&mut self, _port: u8, group: GroupId, mut rows: Rows, out: &mut Output<'_, Rows>) -> Result<()> {
        let from = vertices(&rows.objects, step_name(self.direction, false))?.into_owned();
        let to = named_vertices(&rows, &self.name, out.surroundings());
        let counts = self.count(&from, &to, out)?;
        match &self.kind {
            Kind::Test { negate } => {
                rows.computed.clear();
                out.emit(0, group, rows.filter(|_, row| (counts[row] > 0) != *negate))
            }
            Kind::Follow { stays, remember } => {
                let (mut origins, mut ends) = (Vec::new(), Vec::new());
                for (row, (from, to)) in (0..).zip(from.into_iter().zip(to)) {
                    let Some(to) = to else { continue };
                    origins.extend(std::iter::repeat_n(row, counts[row as usize]));
                    ends.extend(std::iter::repeat_n(if *stays { from } else { to }, counts[row as usize]));
                }
                let mut found = rows.derive(&origins, Column::Vertices(ends));
                found.remember(remember);
                for chunk in found.chunks() {
                    out.emit(0, group, chunk)?;
                }
                Ok(())
            }
        }
    }
}
