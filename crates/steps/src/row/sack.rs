//! `sack()`: reads the value that every traverser carries, or folds into it; and two other steps that look at one row:
//! `fail()` and `select(traversal)`.

use std::borrow::Cow;

use mangrove_graph::compare::watched;
use mangrove_graph::{Error, Result, Value};
use mangrove_gremlin::{Operator, Pop};
use mangrove_plan::logical::{Lookup, Name};

use crate::context::execution::ExecutionContext;
use crate::limits::meter::Meter;
use crate::row::map::{MapOperator, ValueTarget};
use crate::row::operator::RowOperator;
use crate::rows::named::NamedValues;
use crate::rows::{ObjectColumn, Rows};
use crate::values::fold;

/// `sack()`: the sack becomes the object.
pub(crate) struct SackOf;

impl RowOperator for SackOf {
    fn apply(&mut self, rows: Rows, _context: &ExecutionContext, _: &mut Meter<'_>) -> Result<Rows> {
        let sacks = rows.sacks.clone().unwrap_or_else(|| vec![Value::Null; rows.len()]);
        Ok(rows.with_objects(ObjectColumn::from_values(sacks)))
    }
}

/// `sack(operator)`: computed column 0 is folded into the sack. An unproductive `by()` drops the row.
pub(crate) struct FoldSack(pub Operator);

impl MapOperator for FoldSack {
    fn map(
        &mut self,
        rows: &Rows,
        row: usize,
        _context: &ExecutionContext,
        meter: &mut Meter<'_>,
    ) -> Result<Option<Value>> {
        let Some(value) = rows.computed_value(0, row) else { return Ok(None) };
        let sack = rows.sacks.as_ref().map_or(Value::Null, |sacks| sacks[row].clone());
        fold::apply(self.0, sack, value, meter).map(Some)
    }

    fn target(&self) -> ValueTarget {
        ValueTarget::Sack
    }
}

/// `fail()`: the first row ends the query.
pub(crate) struct Fail(pub Name);

impl RowOperator for Fail {
    fn apply(&mut self, rows: Rows, _context: &ExecutionContext, _: &mut Meter<'_>) -> Result<Rows> {
        if rows.is_empty() { Ok(rows) } else { Err(Error::evaluation(format!("fail() was reached: {}", self.0))) }
    }
}

/// `select(traversal)`: the value of the map under the key in computed column 0; a name that is no key of it may be a
/// side effect or a label.
pub(crate) struct SelectKey(
    /// Selects among several objects under a label.
    pub Option<Pop>,
);

impl RowOperator for SelectKey {
    fn apply(&mut self, rows: Rows, context: &ExecutionContext, meter: &mut Meter<'_>) -> Result<Rows> {
        let mut kept = Vec::with_capacity(rows.len());
        let mut values = Vec::with_capacity(rows.len());
        for row in 0..rows.len() {
            let Some(key) = rows.computed_value(0, row) else { continue };
            let in_map = match rows.object(row) {
                Value::Map(entries) => {
                    meter.pass(size_of_val(&entries[..]))?;
                    watched::value_of(&entries, key).cloned()
                }
                _ => None,
            };
            let value = match (in_map, key) {
                (None, Value::String(name)) => {
                    let named = NamedValues::of(&rows, name, Lookup::Scope(self.0), context);
                    named.get(row, meter)?.map(Cow::into_owned)
                }
                (in_map, _) => in_map,
            };
            if let Some(value) = value {
                kept.push(row as u32);
                values.push(value);
            }
        }
        Ok(rows.derive(&kept, ObjectColumn::from_values(values)))
    }
}
