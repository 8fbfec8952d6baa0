//! Edges between two vertices that are both known: `both().where(eq("a"))`, `where(both().where(eq("a")))`.
//!
//! The other neighbors are not wanted, so no row is made of them. The operator searches the row's vertex among the
//! neighbors of the named one. That list is read once and sorted, because many rows share it. If the named vertex is a
//! hub that few rows ask about, its list would cost more than theirs; then the lists of the rows are walked.
//!
//! Over several nodes a node reads only the lists of its own vertices, so it always walks the lists of the rows. It
//! does so with a view that may be late, too: which lists are worth reading is known only when their lengths are.

use mangrove_flow::{BATCH_ROWS, Cursor, GroupId, Kernel, Output, Step};
use mangrove_graph::{Direction, ExpandCursor, ExpandRequest, Expansion, FastMap, GraphView, Need, Result, VertexId};
use mangrove_plan::logical::Name;
use mangrove_plan::physical::EdgeTo;

use crate::context::execution::ExecutionContext;
use crate::row::expand::{step_name, vertices};
use crate::row::sorted_lists::{SortedLists, distinct, named_vertices, times_in};
use crate::rows::{ObjectColumn, Remember, Rows};
use crate::values::names::LabelSets;

/// The rows that leave the operator for a row.
pub(crate) enum ClosingKind {
    /// One row for each edge, at the named vertex.
    Follow {
        /// True if the row stays at its vertex instead.
        stays: bool,
        /// The part of the vertices that paths remember.
        remember: Remember,
    },
    /// The row itself, if there is an edge, or (`negate`) if there is none.
    Test {
        /// True if rows without an edge pass.
        negate: bool,
    },
}

/// Searches for edges to the vertex that a name stands for.
pub(crate) struct Closing {
    direction: Direction,
    labels: LabelSets,
    name: Name,
    kind: ClosingKind,
    /// True if only the lists of the rows' own vertices may be read.
    near_only: bool,
    /// True if the view of this run may be late.
    is_late: bool,
    /// The lists of the named vertices, against the direction.
    lists: SortedLists,
    expansion: Expansion,
}

/// The list of a named vertex is read if it costs at most this many times as much as the lists of its rows.
const LIST_SHARE: u64 = 2;

impl Closing {
    /// A search along these edges. `near_only` is for several nodes.
    pub fn new(edge: &EdgeTo, kind: ClosingKind, near_only: bool) -> Self {
        let EdgeTo { direction, labels, name } = edge;
        Closing {
            direction: *direction,
            labels: LabelSets::along(labels.clone()),
            name: name.clone(),
            kind,
            near_only,
            is_late: false,
            lists: SortedLists::new(direction.reverse(), labels.clone()),
            expansion: Expansion::default(),
        }
    }

    /// The request of a walk along the rows' own lists.
    fn request(&mut self, view: &dyn GraphView) -> ExpandRequest {
        ExpandRequest {
            direction: self.direction,
            labels: self.labels.filter(view).clone(),
            edges: false,
            limit: BATCH_ROWS,
        }
    }

    /// Returns the number of edges from each vertex to its target.
    fn count(&mut self, from: &[VertexId], to: &[Option<VertexId>], out: &Output<'_, Rows>) -> Result<Vec<usize>> {
        let mut counts = vec![0; from.len()];
        if !self.near_only && !self.is_late {
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

    /// Returns the targets whose lists are kept already, or cost less than those of the rows that ask about them.
    fn worth_reading(
        &mut self,
        from: &[VertexId],
        to: &[Option<VertexId>],
        out: &Output<'_, Rows>,
    ) -> Result<Vec<VertexId>> {
        let context = out.context();
        let targets = distinct(to.iter().flatten().copied());
        let (mut known, missing): (Vec<_>, Vec<_>) = targets.into_iter().partition(|target| self.lists.has(*target));
        if missing.is_empty() {
            return Ok(known);
        }
        let view = &*context.view;
        let mut near = Vec::with_capacity(from.len());
        view.degrees(from, self.direction, self.labels.filter(view), &mut near)?;
        let mut asked: FastMap<VertexId, u64> = FastMap::default();
        for (target, degree) in to.iter().zip(near) {
            if let Some(target) = target {
                *asked.entry(*target).or_default() += degree;
            }
        }
        let degrees = self.lists.degrees(&missing, context)?;
        let costs_less =
            |(target, degree): &(VertexId, u64)| *degree <= LIST_SHARE * asked.get(target).copied().unwrap_or(0);
        known.extend(missing.into_iter().zip(degrees).filter(costs_less).map(|(target, _)| target));
        Ok(known)
    }

    /// Counts for some of the rows by walking the neighbors of their own vertices.
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
        let view = &*out.context().view;
        let request = self.request(view);
        let vertices: Vec<VertexId> = rows.iter().map(|row| from[*row]).collect();
        let (mut cursor, mut done) = (ExpandCursor::default(), false);
        while !done {
            out.control().check()?;
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

impl Kernel<Rows> for Closing {
    fn begin(&mut self, context: &ExecutionContext) -> Result<()> {
        self.is_late = context.view.late().is_some();
        Ok(())
    }

    fn needs<'a>(&'a mut self, rows: &'a Rows, _: &'a Cursor, context: &'a ExecutionContext) -> Result<Need<'a>> {
        let of = vertices(&rows.objects, step_name(self.direction, false))?;
        Ok(Need::Lists { of, request: self.request(&*context.view), from: ExpandCursor::default() })
    }

    fn recycle(&mut self) {
        self.lists.recycle();
    }

    fn step(&mut self, rows: &mut Rows, _: &mut Cursor, group: GroupId, out: &mut Output<'_, Rows>) -> Result<Step> {
        let mut rows = std::mem::take(rows);
        let from = vertices(&rows.objects, step_name(self.direction, false))?.into_owned();
        let to = named_vertices(&rows, &self.name, out.context());
        let counts = self.count(&from, &to, out)?;
        match &self.kind {
            ClosingKind::Test { negate } => {
                rows.computed.clear();
                out.emit(0, group, rows.filter(|_, row| (counts[row] > 0) != *negate))?;
            }
            ClosingKind::Follow { stays, remember } => {
                let (mut origins, mut ends) = (Vec::new(), Vec::new());
                for (row, (from, to)) in (0..).zip(from.into_iter().zip(to)) {
                    let Some(to) = to else { continue };
                    origins.extend(std::iter::repeat_n(row, counts[row as usize]));
                    ends.extend(std::iter::repeat_n(if *stays { from } else { to }, counts[row as usize]));
                }
                let mut found = rows.derive(&origins, ObjectColumn::Vertices(ends));
                found.remember(remember);
                for chunk in found.chunks() {
                    out.emit(0, group, chunk)?;
                }
            }
        }
        Ok(Step::Done)
    }
}
