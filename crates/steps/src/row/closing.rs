//! Edges between two vertices that are both known: `both().where(eq("a"))`, `where(both().where(eq("a")))`.
//!
//! The other neighbors are not wanted, so no row is made of them. The operator searches the row's vertex among the
//! neighbors of the named one. That list is read once and sorted, because many rows share it. If the named vertex is a
//! hub that few rows ask about, its list would cost more than theirs; then the lists of the rows are walked.
//!
//! Over several nodes a node reads only the lists of its own vertices, so it always walks the lists of the rows. It
//! does so with a view that may be late, too: which lists are worth reading is known only when their lengths are.

use mangrove_flow::{BATCH_ROWS, Cursor, Detail, GroupId, Kernel, Output, Step};
use mangrove_graph::{Direction, ExpandCursor, ExpandRequest, Expansion, FastMap, GraphView, Need, Result, VertexId};
use mangrove_plan::logical::Name;
use mangrove_plan::physical::EdgeTo;

use crate::context::execution::ExecutionContext;
use crate::row::sorted_lists::{SortedLists, distinct, named_vertices, times_in};
use crate::rows::elements::{step_name, vertices};
use crate::rows::{ObjectColumn, Remember, Rows};
use crate::values::fold::too_many;
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

/// The neighbors that one step walks at most, in messages: about 200 µs. Most of them are not wanted, so the step may send
/// nothing. A hub is walked in several steps.
const CHUNKS_MAX: usize = 32;

/// The position of the edges found so far in the first word of a cursor. The number of the list is below.
const COUNT_SHIFT: u32 = 32;

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

    /// Returns the number of edges from each vertex to its target, for the rows from the cursor on that are done after
    /// this step, and the cursor after it.
    fn count(
        &mut self,
        from: &[VertexId],
        to: &[Option<VertexId>],
        at: &Cursor,
        out: &Output<'_, Rows>,
    ) -> Result<(Vec<usize>, Cursor)> {
        if !at.is_start() {
            // The runtime reads the clock only now and then, and these steps are long.
            out.control().check()?;
        }
        let first = at.row as usize;
        let (from, to) = (&from[first..], &to[first..]);
        if !self.near_only && !self.is_late {
            let worth_reading = self.worth_reading(from, to, out)?;
            self.lists.load(&worth_reading, out)?;
        }
        let mut counts = vec![0; from.len()];
        let mut rest = Vec::new();
        for (row, target) in to.iter().enumerate() {
            match target {
                Some(target) if self.lists.has(*target) => counts[row] = times_in(self.lists.of(*target), from[row]),
                Some(_) => rest.push(row),
                None => {}
            }
        }
        let mut walk = ExpandCursor::default();
        // Since the last step, the list of the row at hand may have been read.
        if let (Some(0), Detail::Words([list_and_count, position])) = (rest.first(), &at.detail) {
            (walk.list, walk.position) = (*list_and_count as u32, *position);
            counts[0] = (list_and_count >> COUNT_SHIFT) as usize;
        }
        let is_done = self.count_by_walking(from, to, &rest, &mut counts, &mut walk, out)?;
        let mut next = Cursor::default();
        match rest.get(walk.row as usize) {
            Some(row) if !is_done => {
                let count = u32::try_from(counts[*row]).map_err(|_| too_many())?;
                next.go_to(first + row);
                next.detail = Detail::Words([u64::from(walk.list) | u64::from(count) << COUNT_SHIFT, walk.position]);
                counts.truncate(*row);
            }
            _ => next.go_to(first + from.len()),
        }
        Ok((counts, next))
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

    /// Counts for some of the rows by walking the neighbors of their own vertices, from a cursor on, whose rows are
    /// indexes of `rows`. Returns true if all are counted.
    fn count_by_walking(
        &mut self,
        from: &[VertexId],
        to: &[Option<VertexId>],
        rows: &[usize],
        counts: &mut [usize],
        cursor: &mut ExpandCursor,
        out: &Output<'_, Rows>,
    ) -> Result<bool> {
        if rows.is_empty() {
            return Ok(true);
        }
        let view = &*out.context().view;
        let request = self.request(view);
        let vertices: Vec<VertexId> = rows.iter().map(|row| from[*row]).collect();
        for _ in 0..CHUNKS_MAX {
            self.expansion.clear();
            let is_done = view.expand(&vertices, &request, cursor, &mut self.expansion)?;
            for (at, neighbor) in self.expansion.row.iter().zip(&self.expansion.neighbor) {
                let row = rows[*at as usize];
                counts[row] += usize::from(to[row] == Some(*neighbor));
            }
            if is_done {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl Kernel<Rows> for Closing {
    fn begin(&mut self, context: &ExecutionContext) -> Result<()> {
        self.is_late = context.view.late().is_some();
        Ok(())
    }

    fn needs<'a>(&'a mut self, rows: &'a Rows, at: &'a Cursor, context: &'a ExecutionContext) -> Result<Need<'a>> {
        let of = vertices(&rows.objects, step_name(self.direction, false))?;
        let mut from = ExpandCursor { row: at.row, ..ExpandCursor::default() };
        if let Detail::Words([list_and_count, position]) = at.detail {
            (from.list, from.position) = (list_and_count as u32, position);
        }
        Ok(Need::Lists { of, request: self.request(&*context.view), from })
    }

    fn recycle(&mut self) {
        self.lists.recycle();
    }

    fn step(&mut self, input: &mut Rows, at: &mut Cursor, group: GroupId, out: &mut Output<'_, Rows>) -> Result<Step> {
        let from = vertices(&input.objects, step_name(self.direction, false))?.into_owned();
        let to = named_vertices(input, &self.name, out.context());
        let (counts, next) = self.count(&from, &to, at, out)?;
        let (first, until) = (at.row as usize, next.row as usize);
        let is_done = until == input.len();
        let mut rows = match first {
            0 if is_done => std::mem::take(input),
            _ => input.take(&(first as u32..until as u32).collect::<Vec<_>>()),
        };
        *at = next;
        match &self.kind {
            ClosingKind::Test { negate } => {
                rows.computed.clear();
                out.emit(0, group, rows.filter(|_, row| (counts[row] > 0) != *negate))?;
            }
            ClosingKind::Follow { stays, remember } => {
                let (mut origins, mut ends) = (Vec::new(), Vec::new());
                for (row, (from, to)) in (0..).zip(from.into_iter().zip(to).skip(first).take(until - first)) {
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
        Ok(if is_done { Step::Done } else { Step::More })
    }
}
