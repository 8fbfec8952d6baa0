//! Operators that look at a batch and give a batch.

pub mod call;
pub mod closing;
pub mod current;
pub mod expand;
#[cfg(test)]
pub mod fake_view;
pub mod filter;
pub mod formula;
pub mod function;
pub mod intersect;
pub mod kinds;
pub mod local;
pub mod map;
pub mod members;
pub mod names;
pub mod one_by_one;
pub mod paths;
pub mod property;
pub mod sack;
pub mod sorted_lists;
pub mod source;

use mangrove_flow::{GroupId, Operator, Output};
use mangrove_graph::Result;

use crate::environment::Environment;
use crate::rows::{Remember, Rows};

/// An operator without state: what it gives depends on the batch alone (and on the graph's snapshot).
///
/// The rows it gives carry the tags, bulk, path and loops of the rows they come from ([`Rows::derive`],
/// [`Rows::filter`], [`Rows::with_objects`]), in their order, and no computed columns. It does not extend paths:
/// the adapter does, by the plan's word.
pub trait RowOperator: Send {
    /// Looks up what depends on the run, such as the values of parameters.
    fn begin(&mut self, environment: &Environment) -> Result<()> {
        let _ = environment;
        Ok(())
    }

    /// Works on one batch.
    fn apply(&mut self, rows: Rows, environment: &Environment) -> Result<Rows>;
}

/// Runs a [`RowOperator`] in the dataflow.
pub struct RowAdapter<T> {
    /// The operator.
    pub operator: T,
    /// What it remembers of its objects.
    pub remember: Remember,
}

impl<T: RowOperator> Operator<Rows> for RowAdapter<T> {
    fn begin(&mut self, environment: &Environment) -> Result<()> {
        self.operator.begin(environment)
    }

    fn rest(&mut self) -> bool {
        true
    }

    fn receive(&mut self, _port: u8, group: GroupId, batch: Rows, out: &mut Output<'_, Rows>) -> Result<()> {
        let mut rows = self.operator.apply(batch, out.surroundings())?;
        rows.remember(&self.remember);
        for chunk in rows.chunks() {
            out.emit(0, group, chunk)?;
        }
        Ok(())
    }
}
