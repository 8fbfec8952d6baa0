//! `aggregate()` adds values to a side effect, and `cap()` sends the values of side effects.
//!
//! Both wait for the end of a group. The rows of cancelled instances add nothing (STEPS-5). A side effect stays charged
//! until the query ends.

use std::sync::Arc;

use mangrove_flow::{Cursor, Detail, GroupId, Operator, Output, Step, TagSet};
use mangrove_graph::compare::Equivalent;
use mangrove_graph::{Error, Result, Value};
use mangrove_plan::logical::Name;

use crate::context::execution::ExecutionContext;
use crate::context::type_name::a_type;
use crate::limits::meter::Meter;
use crate::limits::nesting;
use crate::limits::sizes::Sizes;
use crate::limits::table::PartitionedTable;
use crate::rows::held::{ByInstance, HeldRows, send_results};
use crate::rows::{Remember, Rows};
use crate::values::collection::{distinct, push_times};

/// Adds computed column 0 of every row to a side effect when all rows have come, then lets the rows go on.
pub(crate) struct Aggregate {
    name: Name,
    held: HeldRows,
    /// The indexes of the members of the bulk set that this operator has seen. These are the first `len()` members.
    indexes: PartitionedTable<Equivalent, usize>,
}

/// The approximate bytes of a member of a bulk set, with its entry in the table of indexes.
const MEMBER_BYTES: usize = 104;

impl Aggregate {
    pub fn new(name: Name) -> Self {
        Aggregate { name, held: HeldRows::default(), indexes: PartitionedTable::default() }
    }
}

impl Operator<Rows> for Aggregate {
    fn begin(&mut self, context: &ExecutionContext) -> Result<()> {
        let empty = || Value::BulkSet(Arc::new(Vec::new()));
        context.side_effects.update(&self.name, |old| Ok(old.unwrap_or_else(empty)))
    }

    fn recycle(&mut self) -> bool {
        self.indexes = PartitionedTable::default();
        self.held.is_empty()
    }

    fn cancelled(&mut self, group: GroupId, tags: Option<&TagSet>, out: &Output<'_, Rows>) {
        self.held.cancelled(group, tags, out);
    }

    fn receive(&mut self, _port: u8, group: GroupId, batch: Rows, out: &mut Output<'_, Rows>) -> Result<()> {
        self.held.add(group, batch, out)
    }

    /// Each step adds one batch; after that, each step sends one, and the detail of the cursor is no more at its start.
    fn finish_step(
        &mut self,
        _port: u8,
        group: GroupId,
        instances: u32,
        at: &mut Cursor,
        out: &mut Output<'_, Rows>,
    ) -> Result<Step> {
        if let Detail::Start = at.detail {
            if self.add_next(group, at, out)? == Step::More {
                return Ok(Step::More);
            }
            at.detail = Detail::Words([0; 2]);
        }
        if self.held.send_next(group, 0, out)? == Step::More {
            return Ok(Step::More);
        }
        out.finish_all(group, instances)?;
        Ok(Step::Done)
    }
}

impl Aggregate {
    /// Adds the values of the next batch to the side effect, or of all batches if they must be added together.
    fn add_next(&mut self, group: GroupId, at: &mut Cursor, out: &Output<'_, Rows>) -> Result<Step> {
        let (name, side_effects) = (self.name.clone(), &out.context().side_effects);
        // These are added in time that grows with the new values alone.
        let adds_some = side_effects.reducer(&name).is_none()
            && side_effects.with(&name, |old| matches!(old, None | Some(Value::BulkSet(_) | Value::List(_))));
        let mut values = Vec::new();
        loop {
            let has_more = self.held.change(group, at.row as usize, out, |rows| take_values(rows, &mut values, out))?;
            at.row += 1;
            if !has_more || adds_some {
                self.add(values, out)?;
                return Ok(if has_more { Step::More } else { Step::Done });
            }
            out.control().check()?;
        }
    }

    /// Adds values to the side effect. They are charged.
    fn add(&mut self, values: Vec<(Value, u64)>, out: &Output<'_, Rows>) -> Result<()> {
        nesting::check_all(values.iter().map(|(value, _)| value), out.control())?;
        let (name, indexes) = (&self.name, &mut self.indexes);
        let reducer = out.context().side_effects.reducer(name);
        let mut meter = Meter::new(out.control());
        out.context().side_effects.update(name, |old| match (old, reducer) {
            (Some(old), Some(reducer)) => fold(reducer, old, values, &mut meter),
            (Some(Value::Set(set)), None) => {
                add_to_list(set, values, &mut meter).and_then(|list| as_set(list, &mut meter))
            }
            (Some(Value::List(list)), None) => add_to_list(list, values, &mut meter),
            (Some(Value::BulkSet(set)), None) => add_to_bulk_set(set, values, indexes, &mut meter),
            (None, _) => add_to_bulk_set(Arc::default(), values, indexes, &mut meter),
            (Some(other), None) => Err(Error::evaluation(format!(
                "aggregate(\"{name}\") needs a collection in the side effect and met {}",
                a_type(&other)
            ))),
        })?;
        // The side effect holds the charged values from now on.
        meter.keep()
    }
}

/// Moves the values out of computed column 0 of some rows, with the number of traversers that each stands for. Charges
/// what the values point to: the side effect will hold it.
fn take_values(rows: &mut Rows, values: &mut Vec<(Value, u64)>, out: &Output<'_, Rows>) -> Result<()> {
    let Some(column) = std::mem::take(&mut rows.computed).into_iter().next() else { return Ok(()) };
    // Measured before the side effect becomes one more holder.
    let mut sizes = Sizes::default();
    let held: usize = column.iter().flatten().map(|value| sizes.pointed_to(value)).sum();
    out.control().charge(held as u64)?;
    values.extend((0..).zip(column).filter_map(|(row, value)| Some((value?, rows.bulk(row)))));
    Ok(())
}

/// Folds values into a side effect with a reducer. Reducers that take a collection (`assign`, `addAll`) get all values
/// in one.
fn fold(
    reducer: mangrove_gremlin::Operator,
    mut folded: Value,
    values: Vec<(Value, u64)>,
    meter: &mut Meter<'_>,
) -> Result<Value> {
    use mangrove_gremlin::Operator::{AddAll, Assign};
    match reducer {
        operator @ (AddAll | Assign) => {
            let collection = add_to_list(Arc::default(), values, meter)?;
            crate::values::fold::apply(operator, folded, &collection, meter)
        }
        operator => {
            for (value, times) in values {
                folded = crate::values::fold::apply_times(operator, folded, &value, times, meter)?;
            }
            Ok(folded)
        }
    }
}

/// Returns the distinct members of a list, as a set.
fn as_set(list: Value, meter: &mut Meter<'_>) -> Result<Value> {
    match list {
        Value::List(values) => Ok(Value::Set(distinct(Arc::unwrap_or_clone(values), meter)?.into())),
        other => Ok(other),
    }
}

/// Adds values to a list, each as often as it counts.
fn add_to_list(list: Arc<Vec<Value>>, values: Vec<(Value, u64)>, meter: &mut Meter<'_>) -> Result<Value> {
    let count = values.iter().fold(0_u64, |n, (_, times)| n.saturating_add(*times));
    let copied = if Arc::strong_count(&list) > 1 { list.len() } else { 0 };
    let count = usize::try_from(count).unwrap_or(usize::MAX).saturating_add(copied);
    meter.charge(count.saturating_mul(size_of::<Value>()))?;
    let mut list = Arc::unwrap_or_clone(list);
    for (value, times) in values {
        push_times(&mut list, value, times, meter)?;
    }
    Ok(Value::list(list))
}

/// Adds values to a bulk set, which counts equivalent values together. `indexes` has the indexes of its first members.
/// Members are never removed, so the members that other operators have added since are at the end.
fn add_to_bulk_set(
    set: Arc<Vec<(Value, u64)>>,
    values: Vec<(Value, u64)>,
    indexes: &mut PartitionedTable<Equivalent, usize>,
    meter: &mut Meter<'_>,
) -> Result<Value> {
    if Arc::strong_count(&set) > 1 {
        meter.charge(size_of_val(&set[..]))?;
    }
    let mut entries = Arc::unwrap_or_clone(set);
    let known = indexes.len();
    for (at, (value, _)) in entries.iter().enumerate().skip(known) {
        meter.pass(MEMBER_BYTES)?;
        indexes.get_or_insert_with(Equivalent(value.clone()), || at);
    }
    for (value, times) in values {
        let before = entries.len();
        let (&mut index, _) = indexes.get_or_insert_with(Equivalent(value.clone()), || {
            entries.push((value, 0));
            entries.len() - 1
        });
        if entries.len() > before {
            meter.charge(MEMBER_BYTES)?;
        }
        let count = &mut entries[index].1;
        *count = count
            .checked_add(times)
            .ok_or_else(|| Error::evaluation("long overflow: aggregate() of more than 2^64 values"))?;
    }
    Ok(Value::BulkSet(Arc::new(entries)))
}

/// Sends the values of side effects when a group has ended: one row for each instance.
pub(crate) struct Cap {
    names: Vec<Name>,
    remember: Remember,
    /// Nothing: every instance has the same result.
    states: ByInstance<()>,
}

impl Cap {
    /// Sends the value of one name, or a map from several names to their values.
    pub fn new(names: Vec<Name>, remember: Remember) -> Self {
        Cap { names, remember, states: ByInstance::default() }
    }

    /// Returns the value or map to be sent. Fails if no side effect has a name.
    fn value(&self, context: &ExecutionContext) -> Result<Value> {
        let get = |name: &Name| {
            context.side_effects.get(name).ok_or_else(|| {
                Error::evaluation(format!(
                    "the side-effect key does not exist: cap(\"{name}\") finds no step or withSideEffect() of that name"
                ))
            })
        };
        match &self.names[..] {
            [name] => get(name),
            names => {
                let entries = names.iter().map(|n| Ok((Value::String(n.clone()), get(n)?)));
                Ok(Value::map(entries.collect::<Result<_>>()?))
            }
        }
    }
}

impl Operator<Rows> for Cap {
    fn recycle(&mut self) -> bool {
        true
    }

    fn receive(&mut self, _port: u8, _group: GroupId, _batch: Rows, _out: &mut Output<'_, Rows>) -> Result<()> {
        Ok(())
    }

    fn finish_step(
        &mut self,
        _port: u8,
        group: GroupId,
        instances: u32,
        at: &mut Cursor,
        out: &mut Output<'_, Rows>,
    ) -> Result<Step> {
        let value = self.value(out.context())?;
        let Cap { remember, states, .. } = self;
        send_results(states, (group, instances), at, remember, out, |_, _| Ok(Some(value.clone())))
    }
}
