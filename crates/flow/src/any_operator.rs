//! An operator of either kind, as the runtime holds it.

use std::sync::Arc;

use mangrove_graph::{Error, Need, Result};

use crate::batch::Batch;
use crate::control::QueryControl;
use crate::cursor::{Cursor, Step};
use crate::group::GroupId;
use crate::kernel::{Kernel, Part};
use crate::operator::{Operator, Output, Shared, SharedState};

/// An operator as the runtime holds it.
pub enum AnyOperator<B: Batch> {
    /// Without state.
    Kernel(Box<dyn Kernel<B>>),
    /// With state.
    Stateful(Box<dyn Operator<B>>),
}

impl<B: Batch> AnyOperator<B> {
    /// An operator without state.
    pub fn kernel(kernel: impl Kernel<B> + 'static) -> Self {
        AnyOperator::Kernel(Box::new(kernel))
    }

    /// An operator with state.
    pub fn stateful(operator: impl Operator<B> + 'static) -> Self {
        AnyOperator::Stateful(Box::new(operator))
    }

    /// Returns true if it has no state.
    pub fn is_kernel(&self) -> bool {
        matches!(self, AnyOperator::Kernel(_))
    }

    /// Returns true if a helper uses its own replica, whether or not state is shared.
    pub(crate) fn is_local(&self) -> bool {
        match self {
            AnyOperator::Kernel(_) => true,
            AnyOperator::Stateful(operator) => operator.is_passing(),
        }
    }

    /// See [`Operator::is_by_group`]. A kernel has no state.
    pub(crate) fn is_by_group(&self) -> bool {
        match self {
            AnyOperator::Kernel(_) => true,
            AnyOperator::Stateful(operator) => operator.is_by_group(),
        }
    }

    /// See [`Operator::is_by_batch`].
    pub(crate) fn is_by_batch(&self) -> bool {
        match self {
            AnyOperator::Kernel(_) => false,
            AnyOperator::Stateful(operator) => operator.is_by_batch(),
        }
    }

    /// See [`Operator::share`].
    pub(crate) fn share(&mut self) -> Option<Shared> {
        match self {
            AnyOperator::Kernel(_) => None,
            AnyOperator::Stateful(operator) => operator.share(),
        }
    }

    /// See [`Operator::join`].
    pub(crate) fn join(&mut self, state: &SharedState) {
        match self {
            AnyOperator::Kernel(_) => {}
            AnyOperator::Stateful(operator) => operator.join(state),
        }
    }

    /// See [`Operator::keeps_rows`].
    pub(crate) fn keeps_rows(&self) -> bool {
        match self {
            AnyOperator::Kernel(_) => false,
            AnyOperator::Stateful(operator) => operator.is_passing() && operator.keeps_rows(),
        }
    }

    /// See [`Operator::flush`].
    pub(crate) fn flush(&mut self, out: &mut Output<'_, B>) -> Result<()> {
        match self {
            AnyOperator::Kernel(_) => Ok(()),
            AnyOperator::Stateful(operator) => operator.flush(out),
        }
    }

    /// See [`Operator::begin`].
    pub(crate) fn begin(&mut self, context: &B::Context) -> Result<()> {
        match self {
            AnyOperator::Kernel(kernel) => kernel.begin(context),
            AnyOperator::Stateful(operator) => operator.begin(context),
        }
    }

    /// See [`Operator::recycle`].
    pub(crate) fn recycle(&mut self) -> bool {
        match self {
            AnyOperator::Kernel(kernel) => {
                kernel.recycle();
                true
            }
            AnyOperator::Stateful(operator) => operator.recycle(),
        }
    }

    /// See [`Kernel::split`].
    pub(crate) fn split(
        &mut self,
        input: &mut B,
        at: &mut Cursor,
        rows_min: usize,
        context: &B::Context,
    ) -> Result<Option<Part<B>>> {
        match self {
            AnyOperator::Kernel(kernel) => kernel.split(input, at, rows_min, context),
            AnyOperator::Stateful(_) => Ok(None),
        }
    }

    /// See [`Operator::combine`].
    pub(crate) fn combine(
        &mut self,
        port: u8,
        batch: B,
        context: &B::Context,
        control: &Arc<QueryControl>,
    ) -> Result<B> {
        match self {
            AnyOperator::Kernel(_) => Ok(batch),
            AnyOperator::Stateful(operator) => operator.combine(port, batch, context, control),
        }
    }

    /// See [`Kernel::needs`] and [`Operator::needs`].
    pub(crate) fn needs<'a>(
        &'a mut self,
        port: u8,
        input: &'a B,
        at: &'a Cursor,
        context: &'a B::Context,
        control: &Arc<QueryControl>,
    ) -> Result<Need<'a>> {
        match self {
            AnyOperator::Kernel(kernel) => kernel.needs(input, at, context),
            AnyOperator::Stateful(operator) => operator.needs(port, input, context, control),
        }
    }

    /// Gives it a batch from the cursor on.
    pub(crate) fn step(
        &mut self,
        port: u8,
        group: GroupId,
        batch: &mut Option<B>,
        at: &mut Cursor,
        out: &mut Output<'_, B>,
    ) -> Result<Step> {
        match self {
            AnyOperator::Kernel(kernel) => match batch {
                Some(input) => kernel.step(input, at, group, out),
                None => Ok(Step::Done),
            },
            AnyOperator::Stateful(operator) => {
                batch.take().map_or(Ok(()), |batch| operator.receive(port, group, batch, out))?;
                Ok(Step::Done)
            }
        }
    }

    /// See [`Operator::finish_step`]. A kernel passes the end on.
    pub(crate) fn finish(
        &mut self,
        port: u8,
        group: GroupId,
        instances: u32,
        at: &mut Cursor,
        out: &mut Output<'_, B>,
    ) -> Result<Step> {
        match self {
            AnyOperator::Kernel(_) => {
                out.finish_all(group, instances)?;
                Ok(Step::Done)
            }
            AnyOperator::Stateful(operator) => operator.finish_step(port, group, instances, at, out),
        }
    }

    /// See [`Operator::work_part`].
    pub(crate) fn work_part(&mut self, group: GroupId, at: &mut Cursor, out: &mut Output<'_, B>) -> Result<Step> {
        match self {
            AnyOperator::Kernel(_) => Err(Error::bug("a kernel hands out no part of an end")),
            AnyOperator::Stateful(operator) => operator.work_part(group, at, out),
        }
    }
}
