//! Where the order of rows matters, so that several threads must not mix them up.

use mangrove_plan::logical::Reduction;
use mangrove_plan::physical::{Op, Pipeline, Role};

/// Whether the order of rows matters to what reads them, inside one instance of a scope.
///
/// The stream of a whole query has no order unless it is sorted. But the results of a nested traversal for one row come
/// in an order that users rely on: `union(label(), id()).fold()` is a pair, and `repeat(out()).emit().fold()` is a way.
#[derive(Clone, Copy)]
pub(super) struct OrderReader {
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
