//! `addE()`.

use mangrove_graph::{Error, ErrorKind, Result, UserId, Value, VertexId};
use mangrove_plan::physical::{ComputedOperand, PropertyWrite};

use super::property::Write;
use super::{Scene, Source, Statement, WriteBarrier, for_each_traverser, label_set, results, user_id};
use crate::rows::{Column, Remember, Rows};

/// Makes edges.
pub type AddEdge = WriteBarrier<InsertEdges>;

/// The statement of [`AddEdge`].
pub struct InsertEdges {
    label: ComputedOperand,
    from: Option<ComputedOperand>,
    to: Option<ComputedOperand>,
    id: Option<ComputedOperand>,
    properties: Vec<PropertyWrite>,
}

impl AddEdge {
    /// An edge for each traverser. An end that is not given is the traverser's vertex; one given as an
    /// operand is the vertex of that id; one given as a computed column is the vertex in it.
    pub fn new(
        label: ComputedOperand,
        ends: [Option<ComputedOperand>; 2],
        id: Option<ComputedOperand>,
        properties: Vec<PropertyWrite>,
        remember: Remember,
    ) -> Self {
        let [from, to] = ends;
        WriteBarrier::of(InsertEdges { label, from, to, id, properties }, remember)
    }
}

impl Statement for InsertEdges {
    fn write(&mut self, rows: Rows, scene: &Scene<'_>) -> Result<Rows> {
        let label = Source::new(&self.label, scene.environment)?;
        let from = End::new(self.from.as_ref(), "from()", scene)?;
        let to = End::new(self.to.as_ref(), "to()", scene)?;
        let id = self.id.as_ref().map(|id| Source::new(id, scene.environment)).transpose()?;
        let properties: Vec<Write<'_>> = self.properties.iter().map(|p| Write::new(p, scene)).collect::<Result<_>>()?;
        let mut edges = Vec::new();
        let rows_of = for_each_traverser(&rows, scene, |row| {
            let labels = label_set(label.value(&rows, row, "the label of addE()")?, scene)?;
            let id = id.as_ref().map(|id| user_id(id.value(&rows, row, "the id of an edge")?, scene)).transpose()?;
            let (source, target) = (from.vertex(&rows, row, scene)?, to.vertex(&rows, row, scene)?);
            let edge = scene.writer.insert_edge(source, target, labels, id)?;
            properties.iter().try_for_each(|p| p.to_edge(edge, &rows, row, scene))?;
            edges.push(edge);
            Ok(())
        })?;
        Ok(results(&rows, &rows_of, Column::Edges(edges)))
    }
}

/// Where an end of the new edges comes from.
struct End {
    source: EndSource,
    /// The step that says so, for messages.
    step: &'static str,
}

enum EndSource {
    /// The traverser's vertex.
    Current,
    /// The same vertex for all.
    Vertex(VertexId),
    Computed(usize),
}

impl End {
    fn new(operand: Option<&ComputedOperand>, step: &'static str, scene: &Scene<'_>) -> Result<Self> {
        let source = match operand {
            None => EndSource::Current,
            Some(ComputedOperand::Computed(column)) => EndSource::Computed(*column),
            Some(ComputedOperand::Operand(operand)) => match scene.environment.resolve(operand)? {
                Value::Vertex(vertex) => EndSource::Vertex(vertex),
                id => EndSource::Vertex(find(&id, step, scene)?),
            },
        };
        Ok(End { source, step })
    }

    fn vertex(&self, rows: &Rows, row: usize, scene: &Scene<'_>) -> Result<VertexId> {
        let step = self.step;
        match self.source {
            EndSource::Vertex(vertex) => Ok(vertex),
            EndSource::Current => match rows.object(row) {
                Value::Vertex(vertex) => Ok(vertex),
                Value::Null => Err(Error::evaluation(format!("addE() needs two vertices: say which with {step}"))),
                other => Err(Error::evaluation(format!(
                    "addE() needs two vertices, and the traverser is at a {}: {step} must resolve to a Vertex or the ID of a Vertex \
                     present in the graph",
                    other.type_name()
                ))),
            },
            EndSource::Computed(column) => match rows.computed_value(column, row) {
                Some(Value::Vertex(vertex)) => Ok(*vertex),
                Some(id) if UserId::from_value(id).is_some() => find(id, step, scene),
                Some(other) => Err(Error::evaluation(format!(
                    "{step} of addE() must resolve to a Vertex or the ID of a Vertex present in the graph, and gives a {}",
                    other.type_name()
                ))),
                None => Err(Error::evaluation(format!(
                    "{step} of addE() must resolve to a Vertex or the ID of a Vertex present in the graph, and gives \
                     nothing"
                ))),
            },
        }
    }
}

/// The vertex of an id.
fn find(id: &Value, step: &str, scene: &Scene<'_>) -> Result<VertexId> {
    let id = user_id(id, scene).map_err(|error| error.context(format_args!("{step} of addE()")))?;
    let mut found = Vec::with_capacity(1);
    scene.environment.view.find_vertices(std::slice::from_ref(&id), &mut found)?;
    found.pop().flatten().ok_or_else(|| {
        Error::new(ErrorKind::NotFound, format!("{step} of addE() names the vertex with id {id}, which does not exist"))
    })
}
