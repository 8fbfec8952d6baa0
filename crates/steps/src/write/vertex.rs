//! `addV()`: makes vertices.

use mangrove_graph::Result;
use mangrove_plan::physical::{ComputedOperand, PropertyWrite};

use super::property::WrittenProperty;
use super::{Statement, ValueSource, WriteBarrier, WriteContext, for_each_traverser, label_set, results, user_id};
use crate::rows::{ObjectColumn, Remember, Rows};

/// Makes vertices.
pub(crate) type AddVertex = WriteBarrier<InsertVertices>;

/// The statement of [`AddVertex`].
pub(crate) struct InsertVertices {
    label: ComputedOperand,
    id: Option<ComputedOperand>,
    properties: Vec<PropertyWrite>,
}

impl AddVertex {
    /// Makes a vertex for each traverser, with a label, an id (`None`: an automatic one) and properties.
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
    fn write(&mut self, rows: Rows, ctx: &WriteContext<'_>) -> Result<Rows> {
        let label = ValueSource::new(&self.label, ctx.context)?;
        let id = self.id.as_ref().map(|id| ValueSource::new(id, ctx.context)).transpose()?;
        let properties: Vec<WrittenProperty<'_>> =
            self.properties.iter().map(|p| WrittenProperty::new(p, ctx)).collect::<Result<_>>()?;
        let mut vertices = Vec::new();
        let from = for_each_traverser(&rows, ctx, |row| {
            let labels = label_set(label.value(&rows, row, "the label of addV()")?, ctx)?;
            let id = id.as_ref().map(|id| user_id(id.value(&rows, row, "the id of a vertex")?, ctx)).transpose()?;
            let vertex = ctx.writer.insert_vertex(labels, id)?;
            properties.iter().try_for_each(|p| p.to_vertex(vertex, &rows, row, ctx))?;
            vertices.push(vertex);
            Ok(())
        })?;
        Ok(results(&rows, &from, ObjectColumn::Vertices(vertices)))
    }
}
