//! `call()`: a service of the database for each row.

use mangrove_graph::{Error, Result, Value};
use mangrove_plan::logical::{Name, Operand};

use crate::environment::Environment;
use crate::row::RowOperator;
use crate::rows::{Column, Rows};

/// Calls a service once a row, and gives its results. A row that stands for several calls it once: what a service
/// answers does not depend on who asks.
pub struct CallService {
    service: Option<Name>,
    operands: Vec<(Name, Operand)>,
    arguments: Vec<(Name, Value)>,
}

impl CallService {
    /// With these arguments.
    pub fn new(service: Option<Name>, operands: Vec<(Name, Operand)>) -> Self {
        CallService { service, operands, arguments: Vec::new() }
    }
}

impl RowOperator for CallService {
    fn begin(&mut self, environment: &Environment) -> Result<()> {
        let resolve = |(name, value): &(Name, Operand)| Ok((name.clone(), environment.resolve(value)?));
        self.arguments = self.operands.iter().map(resolve).collect::<Result<_>>()?;
        Ok(())
    }

    fn apply(&mut self, rows: Rows, environment: &Environment) -> Result<Rows> {
        let services = environment.services.as_ref();
        let services =
            services.ok_or_else(|| Error::bug("a query that calls services has them in its surroundings"))?;
        let (mut from, mut results) = (Vec::new(), Vec::new());
        for row in 0..rows.len() as u32 {
            results.extend(services.call(self.service.as_deref(), &self.arguments)?);
            from.resize(results.len(), row);
        }
        Ok(rows.derive(&from, Column::from_values(results)))
    }
}
