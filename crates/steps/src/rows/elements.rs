//! A column as vertices or as edges, for operators that need one kind of object; and the error if it holds another.

use std::borrow::Cow;

use mangrove_graph::{Direction, EdgeId, Error, Result, Value, VertexId};

use crate::rows::{NumberColumn, ObjectColumn};

/// Returns the name of the step as the client writes it, for errors.
pub(crate) fn step_name(direction: Direction, to_edges: bool) -> &'static str {
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
pub(crate) fn vertices<'a>(objects: &'a ObjectColumn, step: &str) -> Result<Cow<'a, [VertexId]>> {
    match objects {
        ObjectColumn::Vertices(ids) => Ok(ids.as_slice().into()),
        ObjectColumn::Edges(ids) if ids.is_empty() => Ok(Vec::new().into()),
        ObjectColumn::Edges(_) => Err(wrong_kind(step, "a vertex", "edge")),
        ObjectColumn::Numbers(numbers) => no_elements(numbers, |kind| wrong_kind(step, "a vertex", kind)),
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
pub(crate) fn edges<'a>(objects: &'a ObjectColumn, step: &str) -> Result<Cow<'a, [EdgeId]>> {
    match objects {
        ObjectColumn::Edges(ids) => Ok(ids.as_slice().into()),
        ObjectColumn::Vertices(ids) if ids.is_empty() => Ok(Vec::new().into()),
        ObjectColumn::Vertices(_) => Err(wrong_kind(step, "an edge", "vertex")),
        ObjectColumn::Numbers(numbers) => no_elements(numbers, |kind| wrong_kind(step, "an edge", kind)),
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

/// Returns no elements if there are no numbers either. Otherwise fails with the error for the type of the first.
fn no_elements<'a, T: Clone>(numbers: &NumberColumn, error: impl FnOnce(&str) -> Error) -> Result<Cow<'a, [T]>> {
    match numbers.slice().values().next() {
        None => Ok(Vec::new().into()),
        Some(number) => Err(error(number.type_name())),
    }
}

fn wrong_kind(step: &str, needed: &str, met: &str) -> Error {
    let article = if met.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    Error::evaluation(format!("{step} needs {needed} and met {article} {met}"))
}
