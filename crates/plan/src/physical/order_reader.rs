//! Where the order of rows matters, so that neither several threads nor a policy may mix them up.

use super::{LocalKind, Op, Pipeline, Purpose, Role};
use crate::logical::Reduction;

/// Whether the order of rows matters to what reads them, inside one instance of a scope.
///
/// The stream of a whole query has no order unless it is sorted. But the results of a nested traversal for one row come
/// in an order that users rely on: `union(label(), id()).fold()` is a pair, and `repeat(out()).emit().fold()` is a way.
#[derive(Clone, Copy, Debug)]
pub struct OrderReader {
    /// True inside a pipeline that runs for each row by itself.
    is_for_each_row: bool,
    /// True if the order of the rows at this point matters.
    pub order_matters: bool,
}

impl OrderReader {
    /// The reader of a stream that is no single row's.
    pub const STREAM: OrderReader = OrderReader { is_for_each_row: false, order_matters: false };

    /// The reader of the results of a pipeline that runs for each row by itself.
    pub fn for_each_row(order_matters: bool) -> Self {
        OrderReader { is_for_each_row: true, order_matters }
    }

    /// Returns the reader of the results of a pipeline nested in an operator. This is the reader of the operator's own
    /// results.
    pub fn of_nested(self, operator: &Op, purpose: Purpose<'_>) -> Self {
        match purpose {
            // A by() takes the first result.
            Purpose::FirstResult => OrderReader::for_each_row(true),
            Purpose::Existence | Purpose::Until | Purpose::Emit => OrderReader::for_each_row(false),
            Purpose::Scope => OrderReader::for_each_row(match operator {
                Op::Local(scope) => match &scope.kind {
                    LocalKind::Filter(..) => false,
                    LocalKind::SideEffect(_) => true,
                    LocalKind::FlatMap { first, .. } => *first || self.order_matters,
                },
                _ => true,
            }),
            // The members of a key come from the whole stream.
            Purpose::Members => OrderReader::STREAM,
            Purpose::Branch
            | Purpose::Option(_)
            | Purpose::Body
            | Purpose::Ordered
            | Purpose::Instead
            | Purpose::Otherwise => self,
        }
    }

    /// Returns true if the order of rows matters anywhere in a pipeline whose output `self` reads, or in pipelines
    /// nested in it.
    pub fn matters_in(self, pipeline: &Pipeline) -> bool {
        self.order_matters
            || self.of_stages(pipeline).into_iter().zip(&pipeline.stages).any(|(reader, stage)| {
                let mut matters = reader.order_matters;
                stage.operator.visit_nested(&mut |purpose, nested| {
                    matters = matters || reader.of_nested(&stage.operator, purpose).matters_in(nested);
                });
                matters
            })
    }

    /// Returns the reader of each stage's output in a pipeline whose output `self` reads.
    pub fn of_stages(self, pipeline: &Pipeline) -> Vec<Self> {
        let mut reader = self;
        let mut readers: Vec<Self> = Vec::with_capacity(pipeline.stages.len());
        for stage in pipeline.stages.iter().rev() {
            readers.push(reader);
            let order_matters = match &stage.operator {
                Op::Reduce(Reduction::Fold) | Op::FoldInto { .. } => self.is_for_each_row,
                operator if operator.role() == Role::Reduction => false,
                operator if operator.reads_order() => self.is_for_each_row,
                _ => reader.order_matters,
            };
            reader = OrderReader { order_matters, ..self };
        }
        readers.reverse();
        readers
    }
}
