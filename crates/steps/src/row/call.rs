//! `call()`: calls a service once for each row.
//!
//! Arguments that are traversals are computed columns, with a value for each row. A row that stands for several
//! traversers calls the service once, and each result stands for as many traversers. The service may read the graph
//! through the view of the query, and must keep the limits of the query.
//!
//! Results that come a batch at a time travel with the cursor of the message, so they are dropped with it when the rest of the
//! message is cancelled.

use mangrove_flow::{BATCH_ROWS, Cursor, Detail, GroupId, HeldDetail, Kernel, Output, Step};
use mangrove_graph::{Error, Result, Value};
use mangrove_plan::logical::{Name, Operand};
use mangrove_plan::physical::ComputedOperand;

use crate::context::execution::ExecutionContext;
use crate::context::type_name::a_type;
use crate::rows::{ObjectColumn, Remember, Rows};
use crate::services::{ResultBatches, ServiceCall, ServiceResults};

/// Calls a service once for each row. Its results take the place of the row.
pub(crate) struct CallService {
    service: Option<Name>,
    operands: Vec<(Option<Name>, ComputedOperand)>,
    arguments: Vec<(Option<Name>, CallArgument)>,
    remember: Remember,
}

/// The value of an argument. An argument without a name is a map of names and values.
enum CallArgument {
    /// The same value for all rows.
    Constant(Value),
    /// The index of a computed column.
    Computed(usize),
}

impl CallService {
    /// A call with these arguments.
    pub fn new(service: Option<Name>, operands: Vec<(Option<Name>, ComputedOperand)>, remember: Remember) -> Self {
        CallService { service, operands, arguments: Vec::new(), remember }
    }

    /// Returns the arguments for a row. An argument whose traversal has no result is left out.
    fn arguments(&self, rows: &Rows, row: usize) -> Result<Vec<(Name, Value)>> {
        let mut arguments = Vec::with_capacity(self.arguments.len());
        for (name, given) in &self.arguments {
            let value = match given {
                CallArgument::Constant(value) => Some(value),
                CallArgument::Computed(column) => rows.computed_value(*column, row),
            };
            match (name, value) {
                (_, None) => {}
                (Some(name), Some(value)) => arguments.push((name.clone(), value.clone())),
                (None, Some(Value::Map(entries))) => {
                    for (name, value) in entries.iter() {
                        let Value::String(name) = name else {
                            return Err(Error::invalid(format!(
                                "the names of the arguments of a service are strings, not {}",
                                a_type(name)
                            )));
                        };
                        arguments.push((name.clone(), value.clone()));
                    }
                }
                (None, Some(other)) => {
                    return Err(Error::invalid(format!("the arguments of a service are a map, not {}", a_type(other))));
                }
            }
        }
        Ok(arguments)
    }

    fn call(&self, rows: &Rows, row: usize, out: &Output<'_, Rows>) -> Result<ServiceResults> {
        let (context, arguments) = (out.context(), self.arguments(rows, row)?);
        let services = context.services.as_ref();
        let services = services.ok_or_else(|| Error::bug("a query that calls services has them in its context"))?;
        let (view, control, object) = (&*context.view, out.control_shared(), &rows.object(row));
        let call = ServiceCall { view, control, workers_max: context.workers_max, object, arguments: &arguments };
        services.call(self.service.as_deref(), &call)
    }

    /// Sends results, each with the number of the row that it takes the place of.
    fn send(
        &self,
        rows: &Rows,
        from: &[u32],
        results: Vec<Value>,
        group: GroupId,
        out: &mut Output<'_, Rows>,
    ) -> Result<()> {
        let mut made = rows.derive(from, ObjectColumn::from_values(results));
        made.remember(&self.remember);
        made.chunks().try_for_each(|chunk| out.emit(0, group, chunk))
    }
}

/// Results of the row at the cursor that have not been sent yet.
#[derive(Debug)]
struct OpenResults(Box<dyn ResultBatches>);

impl HeldDetail for OpenResults {
    fn bytes(&self) -> u64 {
        self.0.bytes()
    }
}

impl Kernel<Rows> for CallService {
    fn begin(&mut self, context: &ExecutionContext) -> Result<()> {
        let given = |(name, operand): &(Option<Name>, ComputedOperand)| {
            let given = match operand {
                ComputedOperand::Operand(operand) => CallArgument::Constant(context.resolve(operand as &Operand)?),
                ComputedOperand::Computed(column) => CallArgument::Computed(*column),
            };
            Ok((name.clone(), given))
        };
        self.arguments = self.operands.iter().map(given).collect::<Result<_>>()?;
        Ok(())
    }

    fn step(&mut self, rows: &mut Rows, at: &mut Cursor, group: GroupId, out: &mut Output<'_, Rows>) -> Result<Step> {
        let (mut from, mut results) = (Vec::new(), Vec::new());
        let mut row = at.row as usize;
        if let Some(mut open) = at.take_held::<OpenResults>() {
            let batch = open.0.next()?;
            if !batch.is_empty() {
                self.send(rows, &vec![at.row; batch.len()], batch, group, out)?;
                at.detail = Detail::Held(open);
                return Ok(Step::More);
            }
            row += 1;
        }
        while row < rows.len() && results.len() < BATCH_ROWS {
            out.control().check()?;
            match self.call(rows, row, out)? {
                ServiceResults::All(all) => results.extend(all),
                ServiceResults::Batches(batches) => {
                    self.send(rows, &from, results, group, out)?;
                    *at = Cursor { row: row as u32, detail: Detail::Held(Box::new(OpenResults(batches))) };
                    return Ok(Step::More);
                }
            }
            from.resize(results.len(), row as u32);
            row += 1;
        }
        self.send(rows, &from, results, group, out)?;
        at.go_to(row);
        Ok(if row < rows.len() { Step::More } else { Step::Done })
    }
}
