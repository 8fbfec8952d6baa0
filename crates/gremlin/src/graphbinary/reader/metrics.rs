//! Reading the answer to `profile()`, in the form that `writer/metrics.rs` writes.

use mangrove_graph::{OperatorMetrics, Result, TraversalMetrics, Value};
use smol_str::SmolStr;

use super::super::code;
use super::{Reader, VALUE_SIZE_MIN};

impl Reader<'_> {
    /// Metrics after their type code.
    pub(super) fn traversal_metrics(&mut self) -> Result<TraversalMetrics> {
        Ok(TraversalMetrics { nanos: self.count("a duration")?, operators: self.operators()? })
    }

    fn operators(&mut self) -> Result<Vec<OperatorMetrics>> {
        /// The smallest: empty texts, maps and list, and the duration.
        const OPERATOR_SIZE_MIN: usize = VALUE_SIZE_MIN + 5 * 4 + 8;
        let length = self.length(OPERATOR_SIZE_MIN)?;
        let mut operators = Vec::with_capacity(self.room_for(length));
        for _ in 0..length {
            match [self.byte()?, self.byte()?] {
                [code::METRICS, code::PRESENT] => operators.push(self.nested(Self::operator)?),
                [other, _] => return Err(self.malformed(&format!("type {other:#04x} in place of metrics"))),
            }
        }
        Ok(operators)
    }

    fn operator(&mut self) -> Result<OperatorMetrics> {
        Ok(OperatorMetrics {
            id: self.string()?,
            name: self.string()?,
            nanos: self.count("a duration")?,
            counts: self.figures(|reader| match reader.detached_value()? {
                Value::I64(count) if count >= 0 => Ok(count.unsigned_abs()),
                Value::I64(count) => Err(reader.malformed(&format!("a count of {count}"))),
                other => Err(reader.malformed(&format!("a {} in place of a count", other.type_name()))),
            })?,
            annotations: self.figures(Self::detached_value)?,
            nested: self.operators()?,
        })
    }

    /// A map with strings as keys.
    fn figures<T>(&mut self, read: impl Fn(&mut Self) -> Result<T>) -> Result<Vec<(SmolStr, T)>> {
        let length = self.length(2 * VALUE_SIZE_MIN)?;
        let mut figures = Vec::with_capacity(self.room_for(length));
        for _ in 0..length {
            match self.detached_value()? {
                Value::String(name) => figures.push((name, read(self)?)),
                other => return Err(self.malformed(&format!("a {} in place of a name", other.type_name()))),
            }
        }
        Ok(figures)
    }
}
