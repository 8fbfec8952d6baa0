//! `all(P)`, `any(P)`, `none(P)`: filters of collections by a test of their members.

use mangrove_graph::{Result, Value};
use mangrove_plan::logical::Quantifier;

use crate::context::execution::ExecutionContext;
use crate::limits::meter::Meter;
use crate::row::map::{MapOperator, ValueTarget};
use crate::rows::Rows;
use crate::values::predicate::CompiledTest;

/// Keeps collections of whose members all, any or none pass a test. An object that is no collection is dropped,
/// whatever the quantifier.
pub(crate) struct TestMembers {
    quantifier: Quantifier,
    test: CompiledTest,
}

impl TestMembers {
    pub fn new(quantifier: Quantifier, test: CompiledTest) -> Self {
        TestMembers { quantifier, test }
    }

    fn hold(&self, object: &Value, meter: &mut Meter<'_>) -> Result<bool> {
        match object {
            Value::List(values) | Value::Set(values) => self.among(values.iter(), meter),
            Value::BulkSet(values) => self.among(values.iter().map(|(value, _)| value), meter),
            Value::Path(path) => self.among(path.objects.iter(), meter),
            _ => Ok(false),
        }
    }

    fn among<'a>(&self, values: impl Iterator<Item = &'a Value>, meter: &mut Meter<'_>) -> Result<bool> {
        // The result of the test that decides: the first member with it ends the search.
        let deciding = self.quantifier != Quantifier::All;
        for value in values {
            meter.pass(size_of::<Value>())?;
            if self.test.holds(value) == deciding {
                return Ok(self.quantifier == Quantifier::Any);
            }
        }
        Ok(self.quantifier != Quantifier::Any)
    }
}

/// A collection may have millions of members, so the limits are checked on the way.
impl MapOperator for TestMembers {
    fn begin(&mut self, context: &ExecutionContext) -> Result<()> {
        self.test.begin(context)
    }

    fn map(
        &mut self,
        rows: &Rows,
        row: usize,
        _context: &ExecutionContext,
        meter: &mut Meter<'_>,
    ) -> Result<Option<Value>> {
        Ok(self.hold(&rows.object(row), meter)?.then_some(Value::Null))
    }

    fn target(&self) -> ValueTarget {
        ValueTarget::Nothing
    }
}
