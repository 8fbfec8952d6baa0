//! `drop()`.

use hashbrown::HashSet;
use mangrove_graph::{EdgeId, Error, PropertyOwner, PropertyValue, Result, Value, VertexId, VertexPropertyValue};

use super::{CHECK_EVERY, Scene, Statement, WriteBarrier};
use crate::row::kinds::Kinds;
use crate::rows::{Remember, Rows};

/// Deletes the element or property that each traverser is at; a vertex goes with its edges. Nothing comes
/// out.
pub type Drop = WriteBarrier<Deletions>;

/// The statement of [`Drop`].
pub struct Deletions;

impl Default for Drop {
    fn default() -> Self {
        WriteBarrier::of(Deletions, Remember::default())
    }
}

impl Statement for Deletions {
    /// Properties go before edges and edges before vertices, so that nothing is written to what this
    /// statement has deleted. What is gone already is passed over.
    fn write(&mut self, rows: Rows, scene: &Scene<'_>) -> Result<Rows> {
        let kinds = Kinds::of(&rows.objects);
        let stranger = |v: &&Value| !matches!(v, Value::VertexProperty(_) | Value::Property(_));
        if let Some(other) = kinds.others.iter().map(|(_, v)| *v).find(stranger) {
            return Err(Error::evaluation(format!(
                "drop() deletes vertices, edges and properties; here is a {}",
                other.type_name()
            )));
        }
        delete_properties(&kinds, scene)?;
        for (at, edge) in kinds.edges.items.iter().enumerate() {
            check_now_and_then(at, scene)?;
            scene.writer.delete_edge(*edge)?;
        }
        for (at, vertex) in kinds.vertices.items.iter().enumerate() {
            check_now_and_then(at, scene)?;
            scene.writer.delete_vertex(*vertex)?;
        }
        Ok(rows.take(&[]))
    }
}

fn check_now_and_then(at: usize, scene: &Scene<'_>) -> Result<()> {
    if at.is_multiple_of(CHECK_EVERY) { scene.context.check() } else { Ok(()) }
}

fn delete_properties(kinds: &Kinds<'_>, scene: &Scene<'_>) -> Result<()> {
    let living = Owners::living(kinds, scene)?;
    for (_, property) in &kinds.others {
        match property {
            Value::VertexProperty(property) => delete_vertex_property(property, &living, scene)?,
            Value::Property(property) => delete_property(property, &living, scene)?,
            _ => {}
        }
    }
    Ok(())
}

fn delete_vertex_property(property: &VertexPropertyValue, living: &Owners, scene: &Scene<'_>) -> Result<()> {
    if !living.vertices.contains(&property.vertex) {
        return Ok(());
    }
    scene.writer.remove_vertex_property(property.vertex, property.key, Some(property.ordinal))
}

fn delete_property(property: &PropertyValue, living: &Owners, scene: &Scene<'_>) -> Result<()> {
    match property.owner {
        PropertyOwner::Edge(edge) if living.edges.contains(&edge) => {
            scene.writer.remove_edge_property(edge, property.key)
        }
        PropertyOwner::VertexProperty(vertex, key, ordinal) if living.vertices.contains(&vertex) => {
            scene.writer.remove_meta_property(vertex, key, ordinal, property.key)
        }
        _ => Ok(()),
    }
}

/// The owners of properties that are still there.
struct Owners {
    vertices: HashSet<VertexId, foldhash::fast::RandomState>,
    edges: HashSet<EdgeId, foldhash::fast::RandomState>,
}

impl Owners {
    fn living(kinds: &Kinds<'_>, scene: &Scene<'_>) -> Result<Self> {
        let (mut vertices, mut edges) = (Vec::new(), Vec::new());
        for (_, value) in &kinds.others {
            match value {
                Value::VertexProperty(property) => vertices.push(property.vertex),
                Value::Property(property) => match property.owner {
                    PropertyOwner::Edge(edge) => edges.push(edge),
                    PropertyOwner::VertexProperty(vertex, ..) => vertices.push(vertex),
                },
                _ => {}
            }
        }
        let view = &scene.environment.view;
        view.retain_vertices(&mut vertices)?;
        view.retain_edges(&mut edges)?;
        Ok(Owners { vertices: vertices.into_iter().collect(), edges: edges.into_iter().collect() })
    }
}
