//! `addE()`: makes edges.

use mangrove_graph::{Error, ErrorKind, Result, UserId, Value, VertexId};
use mangrove_plan::physical::{ComputedOperand, PropertyWrite};

use super::property::WrittenProperty;
use super::{Statement, ValueSource, WriteBarrier, WriteContext, for_each_traverser, label_set, results, user_id};
use crate::context::type_name::a_type;
use crate::rows::{ObjectColumn, Remember, Rows};

/// Makes edges.
pub(crate) type AddEdge = WriteBarrier<InsertEdges>;

/// The statement of [`AddEdge`].
pub(crate) struct InsertEdges {
    label: ComputedOperand,
    from: Option<ComputedOperand>,
    to: Option<ComputedOperand>,
    id: Option<ComputedOperand>,
    properties: Vec<PropertyWrite>,
}

impl AddEdge {
    /// An edge for each traverser. An end that is not given is the traverser's vertex; an operand is the id of a
    /// vertex; a computed column holds the vertex.
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
    fn write(&mut self, rows: Rows, ctx: &WriteContext<'_>) -> Result<Rows> {
        let label = ValueSource::new(&self.label, ctx.context)?;
        let from = NewEdgeEnd::new(self.from.as_ref(), "from()", ctx)?;
        let to = NewEdgeEnd::new(self.to.as_ref(), "to()", ctx)?;
        let id = self.id.as_ref().map(|id| ValueSource::new(id, ctx.context)).transpose()?;
        let properties: Vec<WrittenProperty<'_>> =
            self.properties.iter().map(|p| WrittenProperty::new(p, ctx)).collect::<Result<_>>()?;
        let mut edges = Vec::new();
        let rows_of = for_each_traverser(&rows, ctx, |row| {
            let labels = label_set(label.value(&rows, row, "the label of addE()")?, ctx)?;
            let id = id.as_ref().map(|id| user_id(id.value(&rows, row, "the id of an edge")?, ctx)).transpose()?;
            let (source, target) = (from.vertex(&rows, row, ctx)?, to.vertex(&rows, row, ctx)?);
            let edge = ctx.writer.insert_edge(source, target, labels, id)?;
            properties.iter().try_for_each(|p| p.to_edge(edge, &rows, row, ctx))?;
            edges.push(edge);
            Ok(())
        })?;
        Ok(results(&rows, &rows_of, ObjectColumn::Edges(edges)))
    }
}

/// An end of the new edges: the source of its vertices, and the name of its step.
struct NewEdgeEnd {
    source: EndSource,
    /// The name of the step, for errors.
    step: &'static str,
}

enum EndSource {
    /// The vertex of the traverser.
    Current,
    /// The same vertex for all rows.
    Vertex(VertexId),
    Computed(usize),
}

impl NewEdgeEnd {
    fn new(operand: Option<&ComputedOperand>, step: &'static str, ctx: &WriteContext<'_>) -> Result<Self> {
        let source = match operand {
            None => EndSource::Current,
            Some(ComputedOperand::Computed(column)) => EndSource::Computed(*column),
            Some(ComputedOperand::Operand(operand)) => match ctx.context.resolve(operand)? {
                Value::Vertex(vertex) => EndSource::Vertex(vertex),
                id => EndSource::Vertex(find(&id, step, ctx)?),
            },
        };
        Ok(NewEdgeEnd { source, step })
    }

    fn vertex(&self, rows: &Rows, row: usize, ctx: &WriteContext<'_>) -> Result<VertexId> {
        let step = self.step;
        match self.source {
            EndSource::Vertex(vertex) => Ok(vertex),
            EndSource::Current => match rows.object(row) {
                Value::Vertex(vertex) => Ok(vertex),
                Value::Null => Err(Error::evaluation(format!("addE() needs two vertices: say which with {step}"))),
                other => Err(Error::evaluation(format!(
                    "addE() needs two vertices, and the traverser is at {}: {step} must resolve to a Vertex or the \
                     ID of a Vertex \
                     present in the graph",
                    a_type(&other)
                ))),
            },
            EndSource::Computed(column) => match rows.computed_value(column, row) {
                Some(Value::Vertex(vertex)) => Ok(*vertex),
                Some(id) if UserId::from_value(id).is_some() => find(id, step, ctx),
                Some(other) => Err(Error::evaluation(format!(
                    "{step} of addE() must resolve to a Vertex or the ID of a Vertex present in the graph, and gives \
                     {}",
                    a_type(other)
                ))),
                None => Err(Error::evaluation(format!(
                    "{step} of addE() must resolve to a Vertex or the ID of a Vertex present in the graph, and gives \
                     nothing"
                ))),
            },
        }
    }
}

/// Returns the vertex of an id.
fn find(id: &Value, step: &str, ctx: &WriteContext<'_>) -> Result<VertexId> {
    let id = user_id(id, ctx).map_err(|error| error.context(format_args!("{step} of addE()")))?;
    let mut found = Vec::with_capacity(1);
    ctx.context.view.find_vertices(std::slice::from_ref(&id), &mut found)?;
    found.pop().flatten().ok_or_else(|| {
        Error::new(ErrorKind::NotFound, format!("{step} of addE() names the vertex with id {id}, which does not exist"))
    })
}
