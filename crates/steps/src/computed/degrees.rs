//! Degrees of vertices, read for all objects of a column at once.

use mangrove_graph::{Direction, Need, Result, Value};
use mangrove_plan::physical::Degree;

use crate::context::execution::ExecutionContext;
use crate::rows::elements::{step_name, vertices};
use crate::rows::{ObjectColumn, needs};
use crate::values::names::LabelSets;

/// Reads the degrees of vertices.
pub(crate) struct DegreeReader {
    direction: Direction,
    labels: LabelSets,
    /// The name of the step that a client wrote, for errors.
    step: &'static str,
    /// A vertex without edges counts as much as one with a single edge.
    optional: bool,
    degrees: Vec<u64>,
}

impl DegreeReader {
    pub fn new(degree: &Degree) -> Self {
        DegreeReader {
            direction: degree.direction,
            labels: LabelSets::along(degree.labels.clone()),
            step: step_name(degree.direction, degree.to_edges),
            optional: degree.optional,
            degrees: Vec::new(),
        }
    }

    /// Returns what it reads of the objects from a row on.
    pub fn needs<'a>(&mut self, objects: &'a ObjectColumn, from: usize, context: &ExecutionContext) -> Need<'a> {
        let (direction, labels) = (self.direction, self.labels.filter(&*context.view).clone());
        needs::vertices(objects, from, |of| Need::Degrees { of, direction, labels })
    }

    /// As [`DegreeReader::needs`], of objects that are gathered.
    pub fn needs_among(&mut self, objects: &[Value], context: &ExecutionContext) -> Need<'static> {
        let (direction, labels) = (self.direction, self.labels.filter(&*context.view).clone());
        Need::Degrees { of: needs::vertices_among(objects).into(), direction, labels }
    }

    /// Returns the degree of each object. Fails if one is no vertex.
    pub fn read(&mut self, objects: &ObjectColumn, context: &ExecutionContext) -> Result<&[u64]> {
        let ids = vertices(objects, self.step)?;
        self.degrees.clear();
        let labels = self.labels.filter(&*context.view);
        context.view.degrees(&ids, self.direction, labels, &mut self.degrees)?;
        if self.optional {
            self.degrees.iter_mut().for_each(|degree| *degree = (*degree).max(1));
        }
        Ok(&self.degrees)
    }

    /// As [`DegreeReader::read`], into an array of the integers that `count()` gives.
    pub fn read_integers(
        &mut self,
        objects: &ObjectColumn,
        context: &ExecutionContext,
        integers: &mut Vec<i64>,
    ) -> Result<()> {
        integers.clear();
        // No vertex has 2^63 edges.
        integers.extend(self.read(objects, context)?.iter().map(|degree| *degree as i64));
        Ok(())
    }
}
