//! Intersection: neighbors of a row's vertex that are also neighbors of other known vertices. This step closes a ring
//! of a pattern.
//!
//! `both().as("d")` followed by `where(both().where(eq("a")))` makes a row of every neighbor and drops most of them.
//! Here the neighbors of each row are intersected with the sorted lists of the named vertices before rows are made, as
//! in worst-case optimal joins. So a triangle costs the common neighbors, and not every path to a third vertex.
//!
//! For one node only. Over several nodes each reads only the lists of its own vertices, so the steps are built one by
//! one.

use mangrove_flow::{BATCH_ROWS, Cursor, Detail, GroupId, HeldDetail, Kernel, Output, Part, Step};
use mangrove_graph::{Direction, Error, ExpandCursor, ExpandRequest, Expansion, GraphView, Need, Result, VertexId};
use mangrove_plan::logical::Name;
use mangrove_plan::physical::EdgeTo;

use crate::context::execution::ExecutionContext;
use crate::row::expand::make_vertices;
use crate::row::sorted_lists::{NEIGHBORS_MAX, SortedLists, distinct, named_vertices};
use crate::rows::elements::step_name;
use crate::rows::{ObjectColumn, Remember, Rows};
use crate::values::names::LabelSets;

/// Expands rows to the neighbors that have edges to the vertices of some names.
pub(crate) struct Intersect {
    direction: Direction,
    labels: LabelSets,
    /// The names whose vertices the neighbors must have edges to. The lists of a name hold the vertices that have such
    /// an edge.
    closings: Vec<(Name, SortedLists)>,
    remember: Remember,
    /// True if the view of this run may be late.
    is_late: bool,
    expansion: Expansion,
    /// The neighbors of one row that are left so far, sorted.
    run: Vec<VertexId>,
}

/// Rows that follow each other and whose lists fit into memory together, and how far they are expanded. A row whose
/// names do not all have a vertex is left out, because it expands to nothing.
#[derive(Debug, Default)]
struct RowsTogether {
    /// The rows, ascending, and their vertices.
    rows: Vec<u32>,
    vertices: Vec<VertexId>,
    /// For each closing, the vertex of every row that the row's neighbors must have an edge to.
    targets: Vec<Vec<VertexId>>,
    /// The first row of the batch that comes after them.
    end: u32,
    /// The position in the expansion; its row is an index of `rows`.
    cursor: ExpandCursor,
}

impl HeldDetail for RowsTogether {
    fn bytes(&self) -> u64 {
        (self.rows.len() * (size_of::<u32>() + (1 + self.targets.len()) * size_of::<VertexId>())) as u64
    }

    fn keep(&mut self, kept: &[u32]) {
        // The former number of each row that is left here, and its new number.
        let new = |row: u32| kept.binary_search(&row).ok();
        let first = self.cursor.row as usize;
        let left: Vec<usize> = (first..self.rows.len()).filter(|at| new(self.rows[*at]).is_some()).collect();
        self.vertices = left.iter().map(|at| self.vertices[*at]).collect();
        let of = |targets: &Vec<VertexId>| left.iter().map(|at| targets[*at]).collect();
        self.targets = self.targets.iter().map(of).collect();
        // The row at hand is left, so the position inside it holds.
        self.cursor.row = 0;
        self.end = kept.partition_point(|row| *row < self.end) as u32;
        self.rows = left.iter().filter_map(|at| new(self.rows[*at])).map(|row| row as u32).collect();
    }
}

impl RowsTogether {
    /// Leaves out the rows of the batch from this one on, which is after the row at hand.
    fn cut(&mut self, end: u32) {
        let count = self.rows.partition_point(|row| *row < end);
        self.rows.truncate(count);
        self.vertices.truncate(count);
        self.targets.iter_mut().for_each(|of| of.truncate(count));
        self.end = self.end.min(end);
    }
}

/// A row costs as much here as this many rows of most kernels, so messages with fewer rows are cut.
const ROW_WEIGHT: usize = 16;

/// The maximum number of neighbors that one step reads, in messages.
const CHUNKS_MAX: usize = 16;

/// If the list of a named vertex is this many times longer than the neighbors of a row, each neighbor is searched in
/// the list. Otherwise both are walked together.
const GALLOP: usize = 16;

impl Intersect {
    /// Expands along edges of these labels, to neighbors that have all these edges.
    pub fn new(direction: Direction, labels: Vec<Name>, closings: &[EdgeTo], remember: Remember) -> Self {
        let lists = |edge: &EdgeTo| SortedLists::new(edge.direction.reverse(), edge.labels.clone());
        Intersect {
            direction,
            labels: LabelSets::along(labels),
            closings: closings.iter().map(|edge| (edge.name.clone(), lists(edge))).collect(),
            remember,
            is_late: false,
            expansion: Expansion::default(),
            run: Vec::new(),
        }
    }

    fn request(&mut self, view: &dyn GraphView) -> ExpandRequest {
        ExpandRequest {
            direction: self.direction,
            labels: self.labels.filter(view).clone(),
            edges: false,
            limit: BATCH_ROWS,
        }
    }

    /// Chooses the rows from one on that are expanded together. Their lists have about [`NEIGHBORS_MAX`] neighbors at
    /// most, so that they are kept together; only the lists of a single row may have more.
    fn choose(&mut self, rows: &Rows, from: usize, context: &ExecutionContext) -> Result<RowsTogether> {
        let ObjectColumn::Vertices(ids) = &rows.objects else {
            return Err(Error::bug("an expansion holds vertices only"));
        };
        let named: Vec<Vec<Option<VertexId>>> =
            self.closings.iter().map(|(name, _)| named_vertices(rows, name, context)).collect();
        let whole: Vec<u32> =
            (from..rows.len()).filter(|row| named.iter().all(|of| of[*row].is_some())).map(|row| row as u32).collect();
        let mut costs = vec![0_u64; whole.len()];
        let mut targets: Vec<Vec<VertexId>> = Vec::with_capacity(named.len());
        for ((_, lists), of) in self.closings.iter_mut().zip(named) {
            let of: Vec<VertexId> = whole.iter().filter_map(|row| of[*row as usize]).collect();
            let each = distinct(of.iter().copied());
            let degrees = lists.degrees(&each, context)?;
            let mut last = None;
            for (cost, target) in costs.iter_mut().zip(&of) {
                if last != Some(*target) {
                    *cost += each.binary_search(target).map_or(0, |at| degrees[at]);
                }
                last = Some(*target);
            }
            targets.push(of);
        }
        let mut left = NEIGHBORS_MAX as u64;
        let fits = |cost: &&u64| left.checked_sub(**cost).map(|rest| left = rest).is_some();
        let count = costs.iter().take_while(fits).count().max(1).min(whole.len());
        targets.iter_mut().for_each(|of| of.truncate(count));
        Ok(RowsTogether {
            vertices: whole[..count].iter().map(|row| ids[*row as usize]).collect(),
            targets,
            end: whole.get(count).copied().unwrap_or(rows.len() as u32),
            rows: whole[..count].to_vec(),
            cursor: ExpandCursor::default(),
        })
    }

    /// Expands rows further. Returns the neighbors found with their rows, and whether the rows are done.
    fn expand(
        &mut self,
        together: &mut RowsTogether,
        out: &Output<'_, Rows>,
    ) -> Result<(Vec<u32>, Vec<VertexId>, bool)> {
        for ((_, lists), targets) in self.closings.iter_mut().zip(&together.targets) {
            lists.load(&distinct(targets.iter().copied()), out)?;
        }
        let view = &*out.context().view;
        let request = self.request(view);
        let (mut origins, mut found) = (Vec::new(), Vec::new());
        let mut done = false;
        for _ in 0..CHUNKS_MAX {
            self.expansion.clear();
            done = view.expand(&together.vertices, &request, &mut together.cursor, &mut self.expansion)?;
            let mut neighbors = &self.expansion.neighbor[..];
            for rows in self.expansion.row.chunk_by(|a, b| a == b) {
                let (run, rest) = neighbors.split_at(rows.len());
                neighbors = rest;
                let at = rows[0] as usize;
                self.run.clear();
                self.run.extend_from_slice(run);
                self.run.sort();
                for ((_, lists), targets) in self.closings.iter().zip(&together.targets) {
                    intersect(&mut self.run, lists.of(targets[at]));
                }
                origins.extend(std::iter::repeat_n(together.rows[at], self.run.len()));
                found.extend_from_slice(&self.run);
            }
            if done || found.len() >= BATCH_ROWS / 2 {
                break;
            }
        }
        Ok((origins, found, done))
    }
}

impl Kernel<Rows> for Intersect {
    fn begin(&mut self, context: &ExecutionContext) -> Result<()> {
        self.is_late = context.view.late().is_some();
        Ok(())
    }

    /// First the lengths of lists, by which rows are chosen, then the lists of these rows.
    fn needs<'a>(&'a mut self, rows: &'a Rows, at: &'a Cursor, context: &'a ExecutionContext) -> Result<Need<'a>> {
        let view = &*context.view;
        let Detail::Held(held) = &at.detail else {
            let degrees = self.closings.iter_mut().map(|(name, lists)| {
                let named = named_vertices(rows, name, context);
                lists.degree_needs(distinct(named.into_iter().skip(at.row as usize).flatten()), view)
            });
            return Ok(Need::all(degrees));
        };
        let Some(together) = (&**held as &dyn std::any::Any).downcast_ref::<RowsTogether>() else {
            return Ok(Need::Nothing);
        };
        let request = self.request(view);
        let lists = self.closings.iter_mut().zip(&together.targets);
        let lists = lists.map(|((_, lists), targets)| lists.list_needs(distinct(targets.iter().copied()), view));
        let own = Need::Lists { of: together.vertices.as_slice().into(), request, from: together.cursor };
        Ok(Need::all(lists.chain([own])))
    }

    fn recycle(&mut self) {
        self.closings.iter_mut().for_each(|(_, lists)| lists.recycle());
    }

    fn split(
        &mut self,
        rows: &mut Rows,
        at: &mut Cursor,
        rows_min: usize,
        _: &ExecutionContext,
    ) -> Result<Option<Part<Rows>>> {
        let part = Part::cut_off(rows, at, rows_min.div_ceil(ROW_WEIGHT));
        if part.is_some()
            && let Some(mut together) = at.take_held::<RowsTogether>()
        {
            together.cut(rows.len() as u32);
            at.detail = Detail::Held(together);
        }
        Ok(part)
    }

    fn step(&mut self, rows: &mut Rows, at: &mut Cursor, group: GroupId, out: &mut Output<'_, Rows>) -> Result<Step> {
        make_vertices(rows, step_name(self.direction, false))?;
        let mut together = match at.take_held::<RowsTogether>() {
            Some(together) => together,
            None => {
                let chosen = Box::new(self.choose(rows, at.row as usize, out.context())?);
                if self.is_late
                    && let Some(first) = chosen.rows.first()
                {
                    *at = Cursor { row: *first, detail: Detail::Held(chosen) };
                    return Ok(Step::More);
                }
                chosen
            }
        };
        let (origins, neighbors, done) = self.expand(&mut together, out)?;
        let mut found = rows.derive(&origins, ObjectColumn::Vertices(neighbors));
        found.remember(&self.remember);
        for chunk in found.chunks() {
            out.emit(0, group, chunk)?;
        }
        if done {
            at.go_to(together.end as usize);
            return Ok(if (at.row as usize) < rows.len() { Step::More } else { Step::Done });
        }
        let row = together.rows.get(together.cursor.row as usize).copied().unwrap_or(together.end);
        *at = Cursor { row, detail: Detail::Held(together) };
        Ok(Step::More)
    }
}

/// Keeps the vertices of `run` that are in the list, each as often as it was in `run`. Both must be sorted.
fn intersect(run: &mut Vec<VertexId>, mut list: &[VertexId]) {
    if run.len().saturating_mul(GALLOP) < list.len() {
        return run.retain(|vertex| list.binary_search(vertex).is_ok());
    }
    run.retain(|vertex| {
        while let [first, rest @ ..] = list
            && first < vertex
        {
            list = rest;
        }
        list.first() == Some(vertex)
    });
}

#[cfg(test)]
mod tests {
    use mangrove_graph::TabletId;
    use proptest::prelude::*;

    use super::*;

    fn list(slots: &[u64]) -> Vec<VertexId> {
        let mut list: Vec<_> = slots.iter().map(|slot| VertexId::new(TabletId(0), *slot)).collect();
        list.sort();
        list
    }

    proptest! {
        #[test]
        fn an_intersection_keeps_repetitions(
            run in prop::collection::vec(0..40_u64, 0..30),
            other in prop::collection::vec(0..40_u64, 0..600),
        ) {
            let (run, other) = (list(&run), list(&other));
            let mut kept = run.clone();
            intersect(&mut kept, &other);
            let expected: Vec<_> = run.into_iter().filter(|vertex| other.contains(vertex)).collect();
            prop_assert_eq!(kept, expected);
        }
    }
}
