//! Expansion along edges: `out`, `in`, `both`, `outE`, `inE`, `bothE`, and from an edge to its ends.
//!
//! An expansion keeps its position, not a pointer, while it waits for its next call, and sends at most one message for
//! each call (FLOW-1).

use std::collections::VecDeque;

use mangrove_flow::{BATCH_ROWS, GroupId, Operator, Output, TagSet};
use mangrove_graph::{Direction, EdgeId, Error, ExpandCursor, ExpandRequest, Expansion, Result, Value, VertexId};
use mangrove_plan::logical::{EdgeEnd, Name};

use crate::context::execution::ExecutionContext;
use crate::row::operator::RowOperator;
use crate::rows::path::newest_first;
use crate::rows::{ObjectColumn, Remember, Rows, Tags};
use crate::values::fold::too_many;
use crate::values::names::LabelSets;

/// Returns the name of the step as the client writes it, for errors.
pub(super) fn step_name(direction: Direction, to_edges: bool) -> &'static str {
    match (direction, to_edges) {
        (Direction::Out, false) => "out()",
        (Direction::In, false) => "in()",
        (Direction::Both, false) => "both()",
        (Direction::Out, true) => "outE()",
        (Direction::In, true) => "inE()",
        (Direction::Both, true) => "bothE()",
    }
}

/// Returns the vertices of a column. If the column has another object, the error names the step and the object's kind.
pub(crate) fn vertices<'a>(objects: &'a ObjectColumn, step: &str) -> Result<std::borrow::Cow<'a, [VertexId]>> {
    match objects {
        ObjectColumn::Vertices(ids) => Ok(ids.as_slice().into()),
        ObjectColumn::Edges(ids) if ids.is_empty() => Ok(Vec::new().into()),
        ObjectColumn::Edges(_) => Err(wrong_kind(step, "a vertex", "edge")),
        ObjectColumn::Values(values) => values
            .iter()
            .map(|v| match v {
                Value::Vertex(id) => Ok(*id),
                other => Err(wrong_kind(step, "a vertex", other.type_name())),
            })
            .collect::<Result<Vec<_>>>()
            .map(Into::into),
    }
}

/// Returns the edges of a column. If the column has another object, the error names the step and the object's kind.
pub(crate) fn edges<'a>(objects: &'a ObjectColumn, step: &str) -> Result<std::borrow::Cow<'a, [EdgeId]>> {
    match objects {
        ObjectColumn::Edges(ids) => Ok(ids.as_slice().into()),
        ObjectColumn::Vertices(ids) if ids.is_empty() => Ok(Vec::new().into()),
        ObjectColumn::Vertices(_) => Err(wrong_kind(step, "an edge", "vertex")),
        ObjectColumn::Values(values) => values
            .iter()
            .map(|v| match v {
                Value::Edge(id) => Ok(*id),
                other => Err(wrong_kind(step, "an edge", other.type_name())),
            })
            .collect::<Result<Vec<_>>>()
            .map(Into::into),
    }
}

fn wrong_kind(step: &str, needed: &str, met: &str) -> Error {
    let article = if met.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    Error::evaluation(format!("{step} needs {needed} and met {article} {met}"))
}

/// Expands vertices to neighbors or edges. If a vertex has more neighbors than a message holds, the operator goes on at
/// its next call.
pub(crate) struct Expand {
    direction: Direction,
    labels: LabelSets,
    to_edges: bool,
    remember: Remember,
    /// The rows that are not expanded to the end, with the position in their expansion. The cursor is kept until the
    /// operator runs again, and goes on in the same order (GRAPH-3, GRAPH-4).
    pending: VecDeque<(GroupId, Rows, ExpandCursor)>,
    expansion: Expansion,
}

impl Expand {
    pub fn new(direction: Direction, labels: Vec<Name>, to_edges: bool, remember: Remember) -> Self {
        Expand {
            direction,
            labels: LabelSets::along(labels),
            to_edges,
            remember,
            pending: VecDeque::new(),
            expansion: Expansion::default(),
        }
    }

    /// Expands the oldest queued rows by one message and sends it. Asks to be called again if rows are left.
    fn advance(&mut self, out: &mut Output<'_, Rows>) -> Result<()> {
        let Some((group, rows, cursor)) = self.pending.front_mut() else { return Ok(()) };
        let group = *group;
        let ids = match &rows.objects {
            ObjectColumn::Vertices(ids) => ids,
            _ => return Err(Error::bug("an expansion holds vertices only")),
        };
        let view = &*out.context().view;
        let request = ExpandRequest {
            direction: self.direction,
            labels: self.labels.filter(view).clone(),
            edges: self.to_edges,
            limit: BATCH_ROWS,
        };
        self.expansion.clear();
        let done = view.expand(ids, &request, cursor, &mut self.expansion)?;
        let objects = if self.to_edges {
            ObjectColumn::Edges(self.expansion.edge.clone())
        } else {
            ObjectColumn::Vertices(self.expansion.neighbor.clone())
        };
        let mut found = rows.derive(&self.expansion.row, objects);
        if done {
            self.pending.pop_front();
        }
        if !self.pending.is_empty() {
            out.again();
        }
        found.remember(&self.remember);
        for chunk in found.chunks() {
            out.emit(0, group, chunk)?;
        }
        Ok(())
    }
}

impl Operator<Rows> for Expand {
    fn recycle(&mut self) -> bool {
        self.pending.is_empty()
    }

    fn receive(&mut self, _port: u8, group: GroupId, mut batch: Rows, out: &mut Output<'_, Rows>) -> Result<()> {
        let ids = vertices(&batch.objects, step_name(self.direction, self.to_edges))?.into_owned();
        batch.objects = ObjectColumn::Vertices(ids);
        batch.computed.clear();
        self.pending.push_back((group, batch, ExpandCursor::default()));
        self.advance(out)
    }

    fn resume(&mut self, out: &mut Output<'_, Rows>) -> Result<()> {
        if let Some((group, rows, cursor)) = self.pending.front_mut() {
            if out.is_cancelled(*group) {
                self.pending.pop_front();
            } else if let Some(tags) = out.cancelled_tags(*group) {
                drop_cancelled(rows, cursor, tags);
            }
        }
        self.advance(out)
    }
}

/// Drops the rows of cancelled instances, also if such a row is being expanded. With them it drops the rows that are
/// expanded already. Returns the old indexes of the rows that are left. If no row waits for a cancelled instance,
/// nothing is dropped, and it returns `None`.
pub(super) fn drop_cancelled(rows: &mut Rows, cursor: &mut ExpandCursor, tags: &TagSet) -> Option<Vec<u32>> {
    let at = cursor.row as usize;
    let left: Vec<u32> = (at..rows.len()).filter(|row| !tags.contains(rows.tag(*row))).map(|row| row as u32).collect();
    if left.len() == rows.len() - at {
        return None;
    }
    *cursor = match left.first() {
        Some(first) if *first == cursor.row => ExpandCursor { row: 0, ..*cursor },
        _ => ExpandCursor::default(),
    };
    *rows = rows.take(&left);
    Some(left)
}

/// Counts the edges of vertices: one number for a batch, or one for each row if the batch has several instances.
pub(crate) struct Degrees {
    direction: Direction,
    labels: LabelSets,
}

impl Degrees {
    /// Counts in this direction along edges of these labels; no labels mean all.
    pub fn new(direction: Direction, labels: Vec<Name>) -> Self {
        Degrees { direction, labels: LabelSets::along(labels) }
    }
}

impl RowOperator for Degrees {
    fn apply(&mut self, rows: Rows, context: &ExecutionContext) -> Result<Rows> {
        let ids = vertices(&rows.objects, step_name(self.direction, false))?;
        let mut degrees = Vec::with_capacity(rows.len());
        let labels = self.labels.filter(&*context.view);
        context.view.degrees(&ids, self.direction, labels, &mut degrees)?;
        drop(ids);
        if rows.tags == Tags::One {
            let counts = degrees.iter().enumerate().map(|(row, degree)| degree.checked_mul(rows.bulk(row)));
            let total = counts.into_iter().try_fold(0_u64, |sum, count| sum.checked_add(count?));
            let total = total.and_then(|total| i64::try_from(total).ok()).ok_or_else(too_many)?;
            return Ok(Rows::of(ObjectColumn::Values(vec![Value::I64(total)])));
        }
        let values = degrees.into_iter().map(|d| Value::I64(d as i64)).collect();
        Ok(rows.with_objects(ObjectColumn::Values(values)))
    }
}

/// Goes from an edge to one of its ends, or to both.
pub(crate) struct EdgeVertex(pub EdgeEnd);

impl RowOperator for EdgeVertex {
    fn apply(&mut self, rows: Rows, context: &ExecutionContext) -> Result<Rows> {
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
