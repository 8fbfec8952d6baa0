//! The part of an object that a `by()` takes, and the operator that looks it up where the object is.

use mangrove_flow::BATCH_ROWS;
use mangrove_graph::{Need, Result, Value};
use mangrove_gremlin::Column as MapColumn;
use mangrove_plan::logical::Name;

use crate::computed::degrees::DegreeReader;
use crate::computed::lookup::{compute_key, compute_map_column, compute_priority, compute_token};
use crate::context::execution::ExecutionContext;
use crate::limits::meter::Meter;
use crate::row::operator::RowOperator;
use crate::rows::{ComputedColumn, ObjectColumn, Rows, needs};
use crate::values::predicate::CompiledTest;

/// The approximate bytes of an item while its result is pending.
pub(super) const ITEM_BYTES: usize = size_of::<(u32, u32)>() + size_of::<Option<Value>>();

/// The part of an object that a `by()` takes.
pub(crate) enum ByTaker {
    /// The object itself.
    Identity,
    /// The value of a key.
    Key(Name),
    /// The first value of a key, of any object.
    Priority(Name),
    /// The value of a token.
    Token(mangrove_graph::Token),
    /// Keys or values of a map.
    Column(MapColumn),
    /// The degree of a vertex.
    Degree(DegreeReader),
    /// The result of a test.
    Test(CompiledTest),
    /// The first result of a pipeline of the scope.
    Pipeline {
        /// The number of the pipeline.
        number: usize,
        /// True if only the existence of a result is wanted.
        exists: bool,
    },
}

impl ByTaker {
    /// Returns what it reads of the objects from a row on.
    pub(super) fn needs<'a>(&mut self, objects: &'a ObjectColumn, from: usize, context: &ExecutionContext) -> Need<'a> {
        match self {
            ByTaker::Key(key) | ByTaker::Priority(key) => {
                needs::values(objects, from, Some(context.view.key_of(key).into_iter().collect()))
            }
            ByTaker::Token(_) => needs::heads(objects, from),
            ByTaker::Degree(degrees) => degrees.needs(objects, from, context),
            ByTaker::Identity | ByTaker::Column(_) | ByTaker::Test(_) | ByTaker::Pipeline { .. } => Need::Nothing,
        }
    }

    /// As [`ByTaker::needs`], of objects that are gathered.
    pub(super) fn needs_among(&mut self, objects: &[Value], context: &ExecutionContext) -> Need<'static> {
        match self {
            ByTaker::Key(key) | ByTaker::Priority(key) => {
                needs::values_among(objects, Some(context.view.key_of(key).into_iter().collect()))
            }
            ByTaker::Token(_) => needs::heads_among(objects),
            ByTaker::Degree(degrees) => degrees.needs_among(objects, context),
            ByTaker::Identity | ByTaker::Column(_) | ByTaker::Test(_) | ByTaker::Pipeline { .. } => Need::Nothing,
        }
    }

    /// Returns the values that it takes of objects; `None` if a pipeline must run for them.
    pub(super) fn take(
        &mut self,
        objects: &ObjectColumn,
        context: &ExecutionContext,
    ) -> Result<Option<ComputedColumn>> {
        Ok(Some(match self {
            ByTaker::Identity => objects.clone().into_values().into_iter().map(Some).collect(),
            ByTaker::Key(key) => compute_key(objects, key, context)?,
            ByTaker::Priority(key) => compute_priority(objects, key, context)?,
            ByTaker::Token(token) => compute_token(objects, *token, context)?,
            ByTaker::Column(column) => compute_map_column(objects, *column)?,
            ByTaker::Degree(degrees) => {
                degrees.read(objects, context)?.iter().map(|degree| Some(Value::I64(*degree as i64))).collect()
            }
            ByTaker::Test(test) => {
                (0..objects.len()).map(|row| Some(Value::Bool(test.holds(&objects.get(row))))).collect()
            }
            ByTaker::Pipeline { .. } => return Ok(None),
        }))
    }

    /// As [`ByTaker::take`], for any number of objects: a message of them at a time.
    pub(super) fn take_all(
        &mut self,
        objects: &ObjectColumn,
        context: &ExecutionContext,
        meter: &mut Meter<'_>,
    ) -> Result<Option<ComputedColumn>> {
        if objects.len() <= BATCH_ROWS || matches!(self, ByTaker::Pipeline { .. }) {
            return self.take(objects, context);
        }
        let mut all = Vec::with_capacity(objects.len());
        for from in (0..objects.len()).step_by(BATCH_ROWS) {
            let rows: Vec<u32> = (from as u32..objects.len().min(from + BATCH_ROWS) as u32).collect();
            meter.pass(rows.len() * ITEM_BYTES)?;
            let Some(column) = self.take(&objects.gather(&rows), context)? else { return Ok(None) };
            all.extend(column);
        }
        Ok(Some(all))
    }
}

/// Replaces each object by the part that a taker takes of it, and drops unproductive rows. A look-up of a key becomes
/// this operator if it must run on the node that owns the object.
pub(crate) struct ByLookup(pub ByTaker);

impl RowOperator for ByLookup {
    fn needs<'a>(&mut self, objects: &'a ObjectColumn, from: usize, context: &ExecutionContext) -> Result<Need<'a>> {
        Ok(self.0.needs(objects, from, context))
    }

    fn apply(&mut self, rows: Rows, context: &ExecutionContext, _: &mut Meter<'_>) -> Result<Rows> {
        let column = match &mut self.0 {
            ByTaker::Identity | ByTaker::Test(_) => return Ok(rows),
            taker => match taker.take(&rows.objects, context)? {
                Some(column) => column,
                None => return Ok(rows),
            },
        };
        let kept: Vec<u32> = (0..rows.len() as u32).filter(|r| column[*r as usize].is_some()).collect();
        let values = column.into_iter().flatten().collect();
        Ok(rows.derive(&kept, ObjectColumn::from_values(values)))
    }
}
