//! `drop()`: deletes elements and properties.

use mangrove_graph::{
    EdgeId, Error, FastSet, PropertyOwner, PropertyValue, Result, Value, VertexId, VertexPropertyValue,
};

use super::{CHECK_EVERY, Statement, WriteBarrier, WriteContext};
use crate::context::type_name::a_type;
use crate::rows::kinds::Kinds;
use crate::rows::{Remember, Rows};

/// Deletes the object of each traverser; a vertex with its edges. The step has no results.
pub(crate) type Drop = WriteBarrier<Deletions>;

/// The statement of [`Drop`].
pub(crate) struct Deletions;

impl Default for Drop {
    fn default() -> Self {
        WriteBarrier::of(Deletions, Remember::default())
    }
}

impl Statement for Deletions {
    /// Deletes properties before edges and edges before vertices, so that it never writes to an element that it has
    /// deleted. Objects that are deleted already are skipped.
    fn write(&mut self, rows: Rows, ctx: &WriteContext<'_>) -> Result<Rows> {
        let kinds = Kinds::of(&rows.objects);
        let stranger = |v: &&Value| !matches!(v, Value::VertexProperty(_) | Value::Property(_));
        if let Some(other) = kinds.others().map(|(_, v)| v).find(stranger) {
            return Err(Error::evaluation(format!(
                "drop() deletes vertices, edges and properties; here is {}",
                a_type(other)
            )));
        }
        delete_properties(&kinds, ctx)?;
        for (at, edge) in kinds.edges.items.iter().enumerate() {
            check_now_and_then(at, ctx)?;
            ctx.writer.delete_edge(*edge)?;
        }
        for (at, vertex) in kinds.vertices.items.iter().enumerate() {
            check_now_and_then(at, ctx)?;
            ctx.writer.delete_vertex(*vertex)?;
        }
        Ok(rows.take(&[]))
    }
}

fn check_now_and_then(at: usize, ctx: &WriteContext<'_>) -> Result<()> {
    if at.is_multiple_of(CHECK_EVERY) { ctx.control.check() } else { Ok(()) }
}

fn delete_properties(kinds: &Kinds<'_>, ctx: &WriteContext<'_>) -> Result<()> {
    let living = PropertyOwners::living(kinds, ctx)?;
    for (_, property) in kinds.others() {
        match property {
            Value::VertexProperty(property) => delete_vertex_property(property, &living, ctx)?,
            Value::Property(property) => delete_property(property, &living, ctx)?,
            _ => {}
        }
    }
    Ok(())
}

fn delete_vertex_property(
    property: &VertexPropertyValue,
    living: &PropertyOwners,
    ctx: &WriteContext<'_>,
) -> Result<()> {
    if !living.vertices.contains(&property.vertex) {
        return Ok(());
    }
    ctx.writer.remove_vertex_property(property.vertex, property.key, Some(property.ordinal))
}

fn delete_property(property: &PropertyValue, living: &PropertyOwners, ctx: &WriteContext<'_>) -> Result<()> {
    match property.owner {
        PropertyOwner::Edge(edge) if living.edges.contains(&edge) => {
            ctx.writer.remove_edge_property(edge, property.key)
        }
        PropertyOwner::VertexProperty(vertex, key, ordinal) if living.vertices.contains(&vertex) => {
            ctx.writer.remove_meta_property(vertex, key, ordinal, property.key)
        }
        _ => Ok(()),
    }
}

/// Returns the owners of properties that still exist.
struct PropertyOwners {
    vertices: FastSet<VertexId>,
    edges: FastSet<EdgeId>,
}

impl PropertyOwners {
    fn living(kinds: &Kinds<'_>, ctx: &WriteContext<'_>) -> Result<Self> {
        let (mut vertices, mut edges) = (Vec::new(), Vec::new());
        for (_, value) in kinds.others() {
            match value {
                Value::VertexProperty(property) => vertices.push(property.vertex),
                Value::Property(property) => match property.owner {
                    PropertyOwner::Edge(edge) => edges.push(edge),
                    PropertyOwner::VertexProperty(vertex, ..) => vertices.push(vertex),
                },
                _ => {}
            }
        }
        let view = &ctx.context.view;
        view.retain_vertices(&mut vertices)?;
        view.retain_edges(&mut edges)?;
        Ok(PropertyOwners { vertices: vertices.into_iter().collect(), edges: edges.into_iter().collect() })
    }
}
