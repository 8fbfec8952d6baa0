//! `addV()`.

use mangrove_graph::Result;
use mangrove_plan::physical::{ComputedOperand, PropertyWrite};

use super::property::Write;
use super::{Scene, Source, Statement, WriteBarrier, for_each_traverser, label_set, results, user_id};
use crate::rows::{Column, Remember, Rows};

/// Makes vertices.
pub type AddVertex = WriteBarrier<InsertVertices>;

/// The statement of [`AddVertex`].
pub struct InsertVertices {
    label: ComputedOperand,
    id: Option<ComputedOperand>,
    properties: Vec<PropertyWrite>,
}

impl AddVertex {
    /// A vertex for each traverser, with this label, id (`None`: an automatic one) and properties.
    pub fn new(
        label: ComputedOperand,
        id: Option<ComputedOperand>,
        properties: Vec<PropertyWrite>,
        remember: Remember,
    ) -> Self {
        WriteBarrier::of(InsertVertices { label, id, properties }, remember)
    }
}

impl Statement for InsertVertices {
    fn write(&mut self, rows: Rows, scene: &Scene<'_>) -> Result<Rows> {
        let label = Source::new(&self.label, scene.environment)?;
        let id = self.id.as_ref().map(|id| Source::new(id, scene.environment)).transpose()?;
        let properties: Vec<Write<'_>> = self.properties.iter().map(|p| Write::new(p, scene)).collect::<Result<_>>()?;
        let mut vertices = Vec::new();
        let from = for_each_traverser(&rows, scene, |row| {
            let labels = label_set(label.value(&rows, row, "the label of addV()")?, scene)?;
            let id = id.as_ref().map(|id| user_id(id.value(&rows, row, "the id of a vertex")?, scene)).transpose()?;
            let vertex = scene.writer.insert_vertex(labels, id)?;
            properties.iter().try_for_each(|p| p.to_vertex(vertex, &rows, row, scene))?;
            vertices.push(vertex);
            Ok(())
        })?;
        Ok(results(&rows, &from, Column::Vertices(vertices)))
    }
}
