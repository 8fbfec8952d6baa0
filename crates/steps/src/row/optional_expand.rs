//! Expansion along edges that keeps rows without edges: `optional(out())`, `optional(inE())`.
//!
//! The results are those of [`Expand`](crate::row::expand::Expand), and a row without any of them is a result itself, at
//! its place among the others. A row whose expansion takes several steps has a result before it is done. So the cursor
//! says whether the row at hand has had one ([`HAS_RESULT`]).

use mangrove_flow::{Cursor, Detail, GroupId, Kernel, Output, Step};
use mangrove_graph::{
    Direction, Error, ExpandCursor, ExpandRequest, Expansion, GraphView, Need, Result, Value, VertexId,
};
use mangrove_plan::logical::Name;

use crate::context::execution::ExecutionContext;
use crate::row::expand::{expand, expand_cursor, make_vertices, request};
use crate::rows::elements::{step_name, vertices};
use crate::rows::{ObjectColumn, Remember, Rows};
use crate::values::names::LabelSets;

/// The bit of a cursor's first word that says that the row at hand has had a result. The number of an adjacency list is
/// below it.
const HAS_RESULT: u64 = 1 << 63;

/// Expands vertices to neighbors or edges, and passes on the vertices that have none.
pub(crate) struct OptionalExpand {
    direction: Direction,
    labels: LabelSets,
    to_edges: bool,
    remember: Remember,
    expansion: Expansion,
    results: Results,
}

impl OptionalExpand {
    pub fn new(direction: Direction, labels: Vec<Name>, to_edges: bool, remember: Remember) -> Self {
        let (labels, expansion, results) = (LabelSets::along(labels), Expansion::default(), Results::default());
        OptionalExpand { direction, labels, to_edges, remember, expansion, results }
    }

    fn request(&mut self, view: &dyn GraphView) -> ExpandRequest {
        request(self.direction, &mut self.labels, self.to_edges, view)
    }

    /// Makes the objects of the results, in their order.
    fn objects(&self, ids: &[VertexId]) -> ObjectColumn {
        let Results { row, moved, .. } = &self.results;
        let mut found = 0..;
        let mut next_found = || found.next().unwrap_or_default();
        if !self.to_edges {
            let object = |(row, moved): (&u32, &bool)| match moved {
                true => self.expansion.neighbor[next_found()],
                false => ids[*row as usize],
            };
            return ObjectColumn::Vertices(row.iter().zip(moved).map(object).collect());
        }
        if self.expansion.is_empty() {
            return ObjectColumn::Vertices(row.iter().map(|row| ids[*row as usize]).collect());
        }
        let object = |(row, moved): (&u32, &bool)| match moved {
            true => Value::Edge(self.expansion.edge[next_found()]),
            false => Value::Vertex(ids[*row as usize]),
        };
        ObjectColumn::Values(row.iter().zip(moved).map(object).collect())
    }
}

impl Kernel<Rows> for OptionalExpand {
    fn needs<'a>(&'a mut self, rows: &'a Rows, at: &'a Cursor, context: &'a ExecutionContext) -> Result<Need<'a>> {
        let of = vertices(&rows.objects, step_name(self.direction, self.to_edges))?;
        Ok(Need::Lists { of, request: self.request(&*context.view), from: position(at).0 })
    }

    fn step(&mut self, rows: &mut Rows, at: &mut Cursor, group: GroupId, out: &mut Output<'_, Rows>) -> Result<Step> {
        make_vertices(rows, step_name(self.direction, self.to_edges))?;
        let ObjectColumn::Vertices(ids) = &rows.objects else {
            return Err(Error::bug("an expansion holds vertices only"));
        };
        let (mut cursor, has_result) = position(at);
        let first = cursor.row + u32::from(has_result);
        let mut request = self.request(&*out.context().view);
        self.expansion.clear();
        let done = expand(ids, &mut request, &mut cursor, &mut self.expansion, group, out)?;
        // The row at hand is not decided yet: its first neighbor may come in the next step.
        let decided = if done { ids.len() as u32 } else { cursor.row };
        let undecided = self.results.join(first, decided, &self.expansion.row);
        let found = if self.results.stay == 0 {
            let objects = match self.to_edges {
                true => ObjectColumn::Edges(self.expansion.edge.clone()),
                false => ObjectColumn::Vertices(self.expansion.neighbor.clone()),
            };
            let mut found = rows.derive(&self.expansion.row, objects);
            found.remember(&self.remember);
            found
        } else {
            let found = rows.derive(&self.results.row, self.objects(ids));
            remember_moved(found, &self.results.moved, &self.remember)
        };
        for chunk in found.chunks() {
            out.emit(0, group, chunk)?;
        }
        if done {
            return Ok(Step::Done);
        }
        let has_result = if undecided > cursor.row { HAS_RESULT } else { 0 };
        *at = Cursor { row: cursor.row, detail: Detail::Words([u64::from(cursor.list) | has_result, cursor.position]) };
        Ok(Step::More)
    }
}

/// Returns the position of an expansion that a cursor holds, and whether the row at hand has had a result.
fn position(at: &Cursor) -> (ExpandCursor, bool) {
    // A list has a number of 32 bits, so the mark does not reach the position.
    let has_result = matches!(at.detail, Detail::Words([list, _]) if list & HAS_RESULT != 0);
    (expand_cursor(at), has_result)
}

/// The rows that the results of one step come from.
#[derive(Default)]
struct Results {
    /// The input row of each result, ascending.
    row: Vec<u32>,
    /// For each result, true if it is a neighbor or an edge, false if it is the row itself.
    moved: Vec<bool>,
    /// The number of results that are rows themselves.
    stay: usize,
}

impl Results {
    /// Puts the rows from `first` on that are `decided` and have no neighbor among the rows with neighbors, which
    /// ascend. Returns the first row that has had no result.
    fn join(&mut self, first: u32, decided: u32, with_neighbors: &[u32]) -> u32 {
        self.row.clear();
        self.moved.clear();
        self.stay = 0;
        let mut next = first;
        for run in with_neighbors.chunk_by(|a, b| a == b) {
            self.stay_up_to(run[0], &mut next);
            self.row.extend_from_slice(run);
            self.moved.resize(self.row.len(), true);
            next = run[0] + 1;
        }
        self.stay_up_to(decided, &mut next);
        next
    }

    /// Makes the rows from `next` up to another one results.
    fn stay_up_to(&mut self, end: u32, next: &mut u32) {
        if *next < end {
            self.stay += (end - *next) as usize;
            self.row.extend(*next..end);
            self.moved.resize(self.row.len(), false);
            *next = end;
        }
    }
}

/// Adds their objects to the paths and bindings of the rows that have moved.
fn remember_moved(rows: Rows, moved: &[bool], remember: &Remember) -> Rows {
    if !remember.objects && remember.bindings.is_empty() {
        return rows;
    }
    let (gone, stayed): (Vec<u32>, Vec<u32>) = (0..rows.len() as u32).partition(|row| moved[*row as usize]);
    let mut all = rows.take(&gone);
    all.remember(remember);
    all.append(rows.take(&stayed));
    // The place of each row among those that have moved, or after them among those that have stayed.
    let (mut next_gone, mut next_stayed) = (0, gone.len() as u32);
    let place = moved.iter().map(|moved| {
        let next = if *moved { &mut next_gone } else { &mut next_stayed };
        *next += 1;
        *next - 1
    });
    let places: Vec<u32> = place.collect();
    all.take(&places)
}
