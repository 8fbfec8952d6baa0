//! Intersection: neighbors of a row's vertex that are also neighbors of other known vertices. This step closes a ring
//! of a pattern.
//!
//! `both().as("d")` followed by `where(both().where(eq("a")))` makes a row of every neighbor and drops most of them.
//! Here the neighbors of each row are intersected with the sorted lists of the named vertices before rows are made, as
//! in worst-case optimal joins. So a triangle costs the common neighbors, and not every path to a third vertex.
//!
//! For one node only. Over several nodes each reads only the lists of its own vertices, so the steps are built one by
//! one.

use std::collections::VecDeque;

use mangrove_flow::{BATCH_ROWS, GroupId, Operator, Output};
use mangrove_graph::{Direction, Error, ExpandCursor, ExpandRequest, Expansion, Result, VertexId};
use mangrove_plan::logical::Name;
use mangrove_plan::physical::EdgeTo;

use crate::row::expand::{drop_cancelled, step_name, vertices};
use crate::row::sorted_lists::{NEIGHBORS_MAX, SortedLists, distinct, named_vertices};
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
    pending: VecDeque<PendingRows>,
    expansion: Expansion,
    /// The neighbors of one row that are left so far, sorted.
    run: Vec<VertexId>,
}

/// Rows whose lists fit into memory together, and how far they are expanded.
struct PendingRows {
    group: GroupId,
    rows: Rows,
    /// For each closing, the vertex of every row that the row's neighbors must have an edge to.
    targets: Vec<Vec<VertexId>>,
    cursor: ExpandCursor,
}

/// The maximum number of neighbors that one call reads, in messages.
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
            pending: VecDeque::new(),
            expansion: Expansion::default(),
            run: Vec::new(),
        }
    }

    /// Queues rows in parts. The lists of a part have about [`NEIGHBORS_MAX`] neighbors at most, so that they are kept
    /// together; only a part of one row may have more. A row whose names do not all have a vertex is dropped, because
    /// it expands to nothing.
    fn enqueue(&mut self, group: GroupId, rows: &Rows, out: &Output<'_, Rows>) -> Result<()> {
        let context = out.context();
        let named: Vec<Vec<Option<VertexId>>> =
            self.closings.iter().map(|(name, _)| named_vertices(rows, name, context)).collect();
        let whole: Vec<u32> =
            (0..rows.len() as u32).filter(|row| named.iter().all(|of| of[*row as usize].is_some())).collect();
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
        let mut begin = 0;
        let mut cost = 0;
        for at in 0..=whole.len() {
            let is_full = at < whole.len() && cost + costs[at] > NEIGHBORS_MAX as u64;
            if at > begin && (is_full || at == whole.len()) {
                let targets = targets.iter().map(|of| of[begin..at].to_vec()).collect();
                let rows = rows.take(&whole[begin..at]);
                self.pending.push_back(PendingRows { group, rows, targets, cursor: ExpandCursor::default() });
                (begin, cost) = (at, 0);
            }
            cost += costs.get(at).copied().unwrap_or(0);
        }
        Ok(())
    }

    /// Expands the oldest queued rows further and sends the results. Asks to be called again if rows are left.
    fn advance(&mut self, out: &mut Output<'_, Rows>) -> Result<()> {
        let Some(pending) = self.pending.front_mut() else { return Ok(()) };
        let ObjectColumn::Vertices(ids) = &pending.rows.objects else {
            return Err(Error::bug("an expansion holds vertices only"));
        };
        for ((_, lists), targets) in self.closings.iter_mut().zip(&pending.targets) {
            lists.load(&distinct(targets.iter().copied()), out)?;
        }
        let view = &*out.context().view;
        let request = ExpandRequest {
            direction: self.direction,
            labels: self.labels.filter(view).clone(),
            edges: false,
            limit: BATCH_ROWS,
        };
        let (mut origins, mut found) = (Vec::new(), Vec::new());
        let mut done = false;
        for _ in 0..CHUNKS_MAX {
            self.expansion.clear();
            done = view.expand(ids, &request, &mut pending.cursor, &mut self.expansion)?;
            let mut neighbors = &self.expansion.neighbor[..];
            for rows in self.expansion.row.chunk_by(|a, b| a == b) {
                let (run, rest) = neighbors.split_at(rows.len());
                neighbors = rest;
                let row = rows[0];
                self.run.clear();
                self.run.extend_from_slice(run);
                self.run.sort();
                for ((_, lists), targets) in self.closings.iter().zip(&pending.targets) {
                    intersect(&mut self.run, lists.of(targets[row as usize]));
                }
                origins.extend(std::iter::repeat_n(row, self.run.len()));
                found.extend_from_slice(&self.run);
            }
            if done || found.len() >= BATCH_ROWS / 2 {
                break;
            }
        }
        let group = pending.group;
        let mut rows = pending.rows.derive(&origins, ObjectColumn::Vertices(found));
        if done {
            self.pending.pop_front();
        }
        if !self.pending.is_empty() {
            out.again();
        }
        rows.remember(&self.remember);
        for chunk in rows.chunks() {
            out.emit(0, group, chunk)?;
        }
        Ok(())
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

impl Operator<Rows> for Intersect {
    fn recycle(&mut self) -> bool {
        self.closings.iter_mut().for_each(|(_, lists)| lists.recycle());
        self.pending.is_empty()
    }

    fn receive(&mut self, _port: u8, group: GroupId, mut batch: Rows, out: &mut Output<'_, Rows>) -> Result<()> {
        let ids = vertices(&batch.objects, step_name(self.direction, false))?.into_owned();
        batch.objects = ObjectColumn::Vertices(ids);
        batch.computed.clear();
        self.enqueue(group, &batch, out)?;
        self.advance(out)
    }

    fn resume(&mut self, out: &mut Output<'_, Rows>) -> Result<()> {
        if let Some(pending) = self.pending.front_mut() {
            if out.is_cancelled(pending.group) {
                self.pending.pop_front();
            } else if let Some(tags) = out.cancelled_tags(pending.group)
                && let Some(left) = drop_cancelled(&mut pending.rows, &mut pending.cursor, tags)
            {
                let kept = |of: &Vec<VertexId>| left.iter().map(|row| of[*row as usize]).collect();
                pending.targets = pending.targets.iter().map(kept).collect();
            }
        }
        self.advance(out)
    }
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
