//! `all(P)`, `any(P)`, `none(P)`: filters of collections by a test of their members.

use mangrove_graph::{Result, Value};
use mangrove_plan::logical::Quantifier;

use crate::context::execution::ExecutionContext;
use crate::row::operator::RowOperator;
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

    fn hold(&self, object: &Value) -> bool {
        let passes = |value: &Value| self.test.holds(value);
        match object {
            Value::List(values) | Value::Set(values) => self.among(values.iter(), passes),
            Value::BulkSet(values) => self.among(values.iter().map(|(value, _)| value), passes),
            Value::Path(path) => self.among(path.objects.iter(), passes),
            _ => false,
        }
    }

    fn among<'a>(&self, mut values: impl Iterator<Item = &'a Value>, passes: impl Fn(&Value) -> bool) -> bool {
        match self.quantifier {
            Quantifier::All => values.all(passes),
            Quantifier::Any => values.any(passes),
            Quantifier::None => !values.any(passes),
        }
    }
}

impl RowOperator for TestMembers {
    fn begin(&mut self, context: &ExecutionContext) -> Result<()> {
        self.test.begin(context)
    }

    fn apply(&mut self, rows: Rows, _context: &ExecutionContext) -> Result<Rows> {
        Ok(rows.filter(|rows, row| self.hold(&rows.object(row))))
    }
}
