//! Finding elements by their ids.

use mangrove_graph::{EdgeId, ElementKind, Elements, Need, Result, UserId, Value, VertexId};

use super::by_index::keep_first;
use crate::context::execution::ExecutionContext;
use crate::rows::ObjectColumn;

/// What a look-up of ids reads.
pub(super) fn needs<'a>(kind: ElementKind, ids: &[Value], context: &ExecutionContext) -> Need<'a> {
    let here = match kind {
        ElementKind::Vertex => Elements::Vertices(ids.iter().filter_map(as_vertex).collect()),
        ElementKind::Edge => Elements::Edges(ids.iter().filter_map(as_edge).collect()),
    };
    let user_ids = ids.iter().filter_map(|id| context.ids.read(id)).collect();
    Need::all([Need::Heads(here), Need::LookUp { kind, ids: user_ids }])
}

/// Returns the elements of these ids that this node owns, in the order of the ids. A value that is no id names none.
pub(super) fn find(
    kind: ElementKind,
    ids: &[Value],
    distinct: bool,
    user_ids: &mut Vec<UserId>,
    context: &ExecutionContext,
) -> Result<ObjectColumn> {
    let (view, share) = (&context.view, context.share);
    user_ids.clear();
    user_ids.extend(ids.iter().filter_map(|id| context.ids.read(id)));
    Ok(match kind {
        ElementKind::Vertex => {
            let mut here: Vec<VertexId> = ids.iter().filter_map(as_vertex).collect();
            view.retain_vertices(&mut here)?;
            let mut found = Vec::with_capacity(user_ids.len());
            view.find_vertices(user_ids, &mut found)?;
            here.extend(found.into_iter().flatten());
            here.retain(|v| share.takes(v.tablet()));
            if distinct {
                keep_first(&mut here);
            }
            ObjectColumn::Vertices(here)
        }
        ElementKind::Edge => {
            let mut here: Vec<EdgeId> = ids.iter().filter_map(as_edge).collect();
            view.retain_edges(&mut here)?;
            let mut found = Vec::with_capacity(user_ids.len());
            view.find_edges(user_ids, &mut found)?;
            here.extend(found.into_iter().flatten());
            here.retain(|e| share.takes(e.tablet()));
            if distinct {
                keep_first(&mut here);
            }
            ObjectColumn::Edges(here)
        }
    })
}

/// Adds the ids in a value. A list, such as a parameter may be, adds its members.
pub(super) fn spread(value: Value, into: &mut Vec<Value>) {
    match value {
        Value::List(values) | Value::Set(values) => values.iter().for_each(|v| spread(v.clone(), into)),
        value => into.push(value),
    }
}

fn as_vertex(value: &Value) -> Option<VertexId> {
    match value {
        Value::Vertex(id) => Some(*id),
        _ => None,
    }
}

fn as_edge(value: &Value) -> Option<EdgeId> {
    match value {
        Value::Edge(id) => Some(*id),
        _ => None,
    }
}
