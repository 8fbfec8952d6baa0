//! `all(P)`, `any(P)`, `none(P)`: collections by a test of their members.

use mangrove_graph::{Result, Value};
use mangrove_plan::logical::Quantifier;

use super::RowOperator;
use crate::environment::Environment;
use crate::rows::Rows;
use crate::test::CompiledTest;

/// Keeps collections so many of whose members pass. What is no collection has no members to speak of and does not come
/// through, whatever the quantifier.
pub struct Members {
    quantifier: Quantifier,
    test: CompiledTest,
}

impl Members {
    /// So many must pass this test.
    pub fn new(quantifier: Quantifier, test: CompiledTest) -> Self {
        Members { quantifier, test }
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

impl RowOperator for Members {
    fn begin(&mut self, environment: &Environment) -> Result<()> {
        self.test.begin(environment)
    }

    fn apply(&mut self, rows: Rows, _environment: &Environment) -> Result<Rows> {
        Ok(rows.filter(|rows, row| self.hold(&rows.object(row))))
    }
}
