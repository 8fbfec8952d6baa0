//! Expansion along edges: `out`, `in`, `both`, `outE`, `inE`, `bothE`, and from an edge to its ends.
//!
//! An expansion keeps its position, not a pointer, while it waits for its next step, and sends at most one message in
//! each step (FLOW-1).

use std::borrow::Cow;

use mangrove_flow::{BATCH_ROWS, Cursor, Detail, GroupId, Kernel, Output, Step};
use mangrove_graph::{
    Direction, Error, ExpandCursor, ExpandRequest, Expansion, GraphView, Need, Result, Value, VertexId,
};
use mangrove_plan::logical::{EdgeEnd, Name};

use crate::context::execution::ExecutionContext;
use crate::limits::meter::Meter;
use crate::row::operator::RowOperator;
use crate::rows::elements::{edges, step_name, vertices};
use crate::rows::needs;
use crate::rows::path::newest_first;
use crate::rows::{ObjectColumn, Remember, Rows};
use crate::values::names::LabelSets;

/// Expands vertices to neighbors or edges. If a vertex has more neighbors than a message holds, the next step goes on.
pub(crate) struct Expand {
    direction: Direction,
    labels: LabelSets,
    to_edges: bool,
    remember: Remember,
    expansion: Expansion,
}

impl Expand {
    pub fn new(direction: Direction, labels: Vec<Name>, to_edges: bool, remember: Remember) -> Self {
        Expand { direction, labels: LabelSets::along(labels), to_edges, remember, expansion: Expansion::default() }
    }

    fn request(&mut self, view: &dyn GraphView) -> ExpandRequest {
        request(self.direction, &mut self.labels, self.to_edges, view)
    }
}

/// Asks for as many neighbors, or edges, as a message holds.
pub(super) fn request(
    direction: Direction,
    labels: &mut LabelSets,
    to_edges: bool,
    view: &dyn GraphView,
) -> ExpandRequest {
    ExpandRequest { direction, labels: labels.filter(view).clone(), edges: to_edges, limit: BATCH_ROWS }
}

/// The neighbors of one vertex after which a step ends if that shows a heavy instance.
const FIRST_NEIGHBORS: usize = BATCH_ROWS / 8;

/// Finds neighbors of vertices from the cursor on, as many as a message holds. Returns true if there are no more.
pub(super) fn expand(
    vertices: &[VertexId],
    request: &mut ExpandRequest,
    cursor: &mut ExpandCursor,
    found: &mut Expansion,
    group: GroupId,
    out: &Output<'_, Rows>,
) -> Result<bool> {
    let view = &*out.context().view;
    if out.looks_for_heavy(group) {
        let first = cursor.row;
        request.limit = FIRST_NEIGHBORS;
        if view.expand(vertices, request, cursor, found)? {
            return Ok(true);
        }
        if cursor.row == first {
            return Ok(false);
        }
        request.limit = BATCH_ROWS;
    }
    view.expand(vertices, request, cursor, found)
}

/// Makes the objects of rows a column of vertices, and drops the computed columns.
pub(super) fn make_vertices(rows: &mut Rows, step: &str) -> Result<()> {
    if let Cow::Owned(ids) = vertices(&rows.objects, step)? {
        rows.objects = ObjectColumn::Vertices(ids);
    }
    rows.computed.clear();
    Ok(())
}

/// Returns the position of an expansion that a cursor holds. An expansion goes on in the same order (GRAPH-3, GRAPH-4).
pub(super) fn expand_cursor(at: &Cursor) -> ExpandCursor {
    match at.detail {
        Detail::Words([list, position]) => ExpandCursor { row: at.row, list: list as u32, position },
        Detail::Start | Detail::Held(_) => ExpandCursor { row: at.row, ..ExpandCursor::default() },
    }
}

impl Kernel<Rows> for Expand {
    fn needs<'a>(&'a mut self, rows: &'a Rows, at: &'a Cursor, context: &'a ExecutionContext) -> Result<Need<'a>> {
        let of = vertices(&rows.objects, step_name(self.direction, self.to_edges))?;
        Ok(Need::Lists { of, request: self.request(&*context.view), from: expand_cursor(at) })
    }

    fn step(&mut self, rows: &mut Rows, at: &mut Cursor, group: GroupId, out: &mut Output<'_, Rows>) -> Result<Step> {
        make_vertices(rows, step_name(self.direction, self.to_edges))?;
        let ObjectColumn::Vertices(ids) = &rows.objects else {
            return Err(Error::bug("an expansion holds vertices only"));
        };
        let mut cursor = expand_cursor(at);
        let mut request = self.request(&*out.context().view);
        self.expansion.clear();
        let done = expand(ids, &mut request, &mut cursor, &mut self.expansion, group, out)?;
        let objects = if self.to_edges {
            ObjectColumn::Edges(self.expansion.edge.clone())
        } else {
            ObjectColumn::Vertices(self.expansion.neighbor.clone())
        };
        let mut found = rows.derive(&self.expansion.row, objects);
        found.remember(&self.remember);
        for chunk in found.chunks() {
            out.emit(0, group, chunk)?;
        }
        if done {
            return Ok(Step::Done);
        }
        *at = Cursor { row: cursor.row, detail: Detail::Words([cursor.list.into(), cursor.position]) };
        Ok(Step::More)
    }
}

/// Goes from an edge to one of its ends, or to both.
pub(crate) struct EdgeVertex(pub EdgeEnd);

impl RowOperator for EdgeVertex {
    fn needs<'a>(&mut self, objects: &'a ObjectColumn, from: usize, _: &ExecutionContext) -> Result<Need<'a>> {
        Ok(needs::edges(objects, from, Need::Ends))
    }

    fn apply(&mut self, rows: Rows, context: &ExecutionContext, _: &mut Meter<'_>) -> Result<Rows> {
        let step = match self.0 {
            EdgeEnd::Source => "outV()",
            EdgeEnd::Target => "inV()",
            EdgeEnd::Both => "bothV()",
            EdgeEnd::Other => "otherV()",
        };
        let ids = edges(&rows.objects, step)?;
        let (mut sources, mut targets) = (Vec::with_capacity(ids.len()), Vec::with_capacity(ids.len()));
        context.view.edge_ends(&ids, &mut sources, &mut targets)?;
        drop(ids);
        match self.0 {
            EdgeEnd::Source => Ok(rows.with_objects(ObjectColumn::Vertices(sources))),
            EdgeEnd::Target => Ok(rows.with_objects(ObjectColumn::Vertices(targets))),
            EdgeEnd::Both => {
                let twice: Vec<u32> = (0..sources.len() as u32).flat_map(|r| [r, r]).collect();
                let both = sources.into_iter().zip(targets).flat_map(|(s, t)| [s, t]).collect();
                Ok(rows.derive(&twice, ObjectColumn::Vertices(both)))
            }
            EdgeEnd::Other => {
                let others = (0..sources.len()).map(|r| other_end(&rows, r, sources[r], targets[r]));
                let others = others.collect::<Result<_>>()?;
                Ok(rows.with_objects(ObjectColumn::Vertices(others)))
            }
        }
    }
}

/// Returns the end of the edge that the row did not come from, according to its path.
fn other_end(rows: &Rows, row: usize, source: VertexId, target: VertexId) -> Result<VertexId> {
    let path = rows.path(row);
    let came_from = newest_first(&path).find_map(|node| match node.object {
        Value::Vertex(v) => Some(v),
        _ => None,
    });
    match came_from {
        Some(v) if v == source => Ok(target),
        Some(v) if v == target => Ok(source),
        _ => Err(Error::evaluation(
            "otherV() needs an edge that was reached from one of its vertices (outE(), inE(), bothE())",
        )),
    }
}
