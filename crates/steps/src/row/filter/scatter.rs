//! Reads what one condition tests, of all objects of a batch at once, and sets the flags of those that pass.

use mangrove_graph::{GraphView, LabelSetId, Result, Value, ValueRows, vertex_property_id};
use mangrove_plan::logical::Name;

use crate::rows::kinds::Kinds;
use crate::values::names::NameCache;
use crate::values::predicate::CompiledTest;

/// Sets the flag of every vertex and edge to the result of `holds` for its label set.
pub(super) fn scatter_labels(
    kinds: &Kinds<'_>,
    view: &dyn GraphView,
    passes: &mut [bool],
    mut holds: impl FnMut(LabelSetId) -> bool,
) -> Result<()> {
    let mut sets = Vec::with_capacity(kinds.vertices.items.len().max(kinds.edges.items.len()));
    view.vertex_labels(&kinds.vertices.items, &mut sets)?;
    for (at, set) in sets.drain(..).enumerate() {
        passes[kinds.vertices.row(at)] = holds(set);
    }
    view.edge_labels(&kinds.edges.items, &mut sets)?;
    for (at, set) in sets.drain(..).enumerate() {
        passes[kinds.edges.row(at)] = holds(set);
    }
    Ok(())
}

/// Sets the flag of every vertex property to the result of `holds` for its label, which is its key.
pub(super) fn scatter_keys(
    kinds: &Kinds<'_>,
    view: &dyn GraphView,
    names: &mut NameCache,
    passes: &mut [bool],
    holds: impl Fn(&Name) -> bool,
) {
    for (row, object) in kinds.others() {
        if let Value::VertexProperty(property) = object {
            passes[row] = holds(&names.key(property.key, view));
        }
    }
}

/// Returns true if a test holds for the text of a label set. The test runs once for each set; `known` keeps the result.
pub(super) fn label_passes(
    set: LabelSetId,
    test: &CompiledTest,
    known: &mut Vec<Option<bool>>,
    view: &dyn GraphView,
    names: &mut NameCache,
) -> bool {
    let at = set.0 as usize;
    if known.len() <= at {
        known.resize(at + 1, None);
    }
    *known[at].get_or_insert_with(|| test.holds(&Value::String(names.label(set, view))))
}

/// Sets the flag of every vertex, edge and vertex property to the result of the test for its id.
pub(super) fn scatter_ids(
    kinds: &Kinds<'_>,
    view: &dyn GraphView,
    names: &mut NameCache,
    test: &CompiledTest,
    passes: &mut [bool],
) -> Result<()> {
    let mut ids = Vec::new();
    view.vertex_user_ids(&kinds.vertices.items, &mut ids)?;
    for (at, id) in ids.drain(..).enumerate() {
        passes[kinds.vertices.row(at)] = test.holds(&id);
    }
    view.edge_user_ids(&kinds.edges.items, &mut ids)?;
    for (at, id) in ids.drain(..).enumerate() {
        passes[kinds.edges.row(at)] = test.holds(&id);
    }
    let properties: Vec<_> = kinds
        .others()
        .filter_map(|(row, object)| match object {
            Value::VertexProperty(property) => Some((row, property)),
            _ => None,
        })
        .collect();
    let owners: Vec<_> = properties.iter().map(|(_, property)| property.vertex).collect();
    view.vertex_user_ids(&owners, &mut ids)?;
    for ((row, property), owner) in properties.into_iter().zip(&ids) {
        let key = names.key(property.key, view);
        passes[row] = test.holds(&vertex_property_id(owner, &key, property.ordinal));
    }
    Ok(())
}

/// Sets the flag of every element that has a value under the key for which `holds` is true. The values of a vertex
/// property are its meta-properties.
pub(super) fn scatter_values(
    kinds: &Kinds<'_>,
    key: &Name,
    view: &dyn GraphView,
    values: &mut ValueRows,
    passes: &mut [bool],
    holds: impl Fn(&Value) -> bool,
) -> Result<()> {
    // No key has this name, so no element has a value under it.
    let Some(key) = view.key_of(key) else { return Ok(()) };
    if !kinds.vertices.is_empty() {
        values.clear();
        view.vertex_values(&kinds.vertices.items, key, values)?;
        for (at, value) in values.row.iter().zip(&values.value) {
            passes[kinds.vertices.row(*at as usize)] |= holds(value);
        }
    }
    if !kinds.edges.is_empty() {
        values.clear();
        view.edge_values(&kinds.edges.items, key, values)?;
        for (at, value) in values.row.iter().zip(&values.value) {
            passes[kinds.edges.row(*at as usize)] |= holds(value);
        }
    }
    for (row, object) in kinds.others() {
        if let Value::VertexProperty(property) = object {
            passes[row] = property.meta.iter().any(|(k, value)| *k == key && holds(value));
        }
    }
    Ok(())
}
