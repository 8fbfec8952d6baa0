//! `aggregate()` and `cap()`: values that steps share.

use std::sync::Arc;

use mangrove_flow::{GroupId, Operator, Output};
use mangrove_graph::compare::Equivalent;
use mangrove_graph::{Error, Result, Value};
use mangrove_plan::logical::Name;

use crate::barrier::held::{HeldRows, rows_by_instance};
use crate::environment::Environment;
use crate::meter::Meter;
use crate::nesting;
use crate::rows::{Remember, Rows};
use crate::size::Sizes;
use crate::table::Table;

/// Adds computed column 0 of every row to a side effect when all rows have come, then lets the rows go on.
pub struct Aggregate {
    name: Name,
    held: HeldRows,
    /// Where in the bulk set each of its members is, as far as this operator has seen.
    places: Table<Equivalent, usize>,
}

/// About what a member of a bulk set costs, with its entry in the table of places.
const MEMBER_BYTES: usize = 104;

impl Aggregate {
    /// Adds to this side effect.
    pub fn new(name: Name) -> Self {
        Aggregate { name, held: HeldRows::default(), places: Table::default() }
    }
}

impl Operator<Rows> for Aggregate {
    fn begin(&mut self, environment: &Environment) -> Result<()> {
        let empty = || Value::BulkSet(Arc::new(Vec::new()));
        environment.side_effects.update(&self.name, |old| Ok(old.unwrap_or_else(empty)))
    }

    fn rest(&mut self) -> bool {
        self.places = Table::default();
        self.held.is_empty()
    }

    fn receive(&mut self, _port: u8, group: GroupId, batch: Rows, out: &mut Output<'_, Rows>) -> Result<()> {
        self.held.add(group, batch, out)
    }

    fn finish(&mut self, _port: u8, group: GroupId, instances: u32, out: &mut Output<'_, Rows>) -> Result<()> {
        if let Some(mut rows) = self.held.take(group, out) {
            // A side effect is charged for until the query ends. Values are measured before they have one holder more.
            let mut sizes = Sizes::default();
            let held: usize = rows.computed.iter().take(1).flatten().flatten().map(|value| sizes.behind(value)).sum();
            out.context().charge(held as u64)?;
            let values: Vec<_> =
                (0..rows.len()).filter_map(|r| Some((rows.computed_value(0, r)?.clone(), rows.bulk(r)))).collect();
            nesting::check_all(values.iter().map(|(value, _)| value), out.context())?;
            let (name, places) = (&self.name, &mut self.places);
            let reducer = out.surroundings().side_effects.reducer(name);
            let mut meter = Meter::new(out.context());
            out.surroundings().side_effects.update(name, |old| match old {
                Some(old) if reducer.is_some() => fold(reducer, old, values, &mut meter),
                Some(Value::Set(set)) => add_to_list(set, values, &mut meter).and_then(|list| as_set(list, &mut meter)),
                Some(Value::List(list)) => add_to_list(list, values, &mut meter),
                Some(Value::BulkSet(set)) => add_to_bulk_set(set, values, places, &mut meter),
                None => add_to_bulk_set(Arc::default(), values, places, &mut meter),
                Some(other) => Err(Error::evaluation(format!(
                    "aggregate(\"{name}\") needs a collection in the side effect and met a {}",
                    other.type_name()
                ))),
            })?;
            // What was charged for on the way, the side effect holds from now on.
            meter.keep()?;
            rows.computed.clear();
            for chunk in rows.chunks() {
                out.emit(0, group, chunk)?;
            }
        }
        out.finish_all(group, instances)
    }
}

/// Folds values into a side effect that was given a reducer. What takes a whole collection (`assign`, `addAll`) is
/// given all values in one.
fn fold(
    reducer: Option<mangrove_gremlin::Operator>,
    mut folded: Value,
    values: Vec<(Value, u64)>,
    meter: &mut Meter<'_>,
) -> Result<Value> {
    use mangrove_gremlin::Operator::{AddAll, Assign};
    match reducer {
        None => Ok(folded),
        Some(operator @ (AddAll | Assign)) => {
            let collection = add_to_list(Arc::default(), values, meter)?;
            crate::operator::apply(operator, folded, &collection, meter)
        }
        Some(operator) => {
            for (value, times) in values {
                folded = crate::operator::apply_times(operator, folded, &value, times, meter)?;
            }
            Ok(folded)
        }
    }
}

fn as_set(list: Value, meter: &mut Meter<'_>) -> Result<Value> {
    match list {
        Value::List(values) => {
            Ok(Value::Set(crate::row::function::distinct(Arc::unwrap_or_clone(values), meter)?.into()))
        }
        other => Ok(other),
    }
}

/// Adds values to a list, each as often as it counts.
fn add_to_list(list: Arc<Vec<Value>>, values: Vec<(Value, u64)>, meter: &mut Meter<'_>) -> Result<Value> {
    let count = values.iter().fold(0_u64, |n, (_, times)| n.saturating_add(*times));
    meter.charge(usize::try_from(count).unwrap_or(usize::MAX).saturating_mul(size_of::<Value>()))?;
    let mut list = Arc::unwrap_or_clone(list);
    for (value, times) in values {
        let times = usize::try_from(times).map_err(|_| Error::evaluation("aggregate() of too many values"))?;
        list.extend(std::iter::repeat_n(value, times));
    }
    Ok(Value::list(list))
}

/// Adds values to a bulk set: equal ones are counted together. `places` says where each of its first members
/// is; members only come, so what others have added since is at its end.
fn add_to_bulk_set(
    set: Arc<Vec<(Value, u64)>>,
    values: Vec<(Value, u64)>,
    places: &mut Table<Equivalent, usize>,
    meter: &mut Meter<'_>,
) -> Result<Value> {
    let mut entries = Arc::unwrap_or_clone(set);
    let known = places.len();
    for (at, (value, _)) in entries.iter().enumerate().skip(known) {
        meter.pass(MEMBER_BYTES)?;
        places.get_or_insert_with(Equivalent(value.clone()), || at);
    }
    for (value, times) in values {
        let before = entries.len();
        let (&mut place, _) = places.get_or_insert_with(Equivalent(value.clone()), || {
            entries.push((value, 0));
            entries.len() - 1
        });
        if entries.len() > before {
            meter.charge(MEMBER_BYTES)?;
        }
        let count = &mut entries[place].1;
        *count = count
            .checked_add(times)
            .ok_or_else(|| Error::evaluation("long overflow: aggregate() of more than 2^64 values"))?;
    }
    Ok(Value::BulkSet(Arc::new(entries)))
}

/// The values of side effects, when all rows have come: one row an instance.
pub struct Cap {
    names: Vec<Name>,
    remember: Remember,
}

impl Cap {
    /// One name gives its value, several a map.
    pub fn new(names: Vec<Name>, remember: Remember) -> Self {
        Cap { names, remember }
    }

    fn value(&self, environment: &Environment) -> Result<Value> {
        let get = |name: &Name| {
            environment.side_effects.get(name).ok_or_else(|| {
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
    fn rest(&mut self) -> bool {
        true
    }

    fn receive(&mut self, _port: u8, _group: GroupId, _batch: Rows, _out: &mut Output<'_, Rows>) -> Result<()> {
        Ok(())
    }

    fn finish(&mut self, _port: u8, group: GroupId, instances: u32, out: &mut Output<'_, Rows>) -> Result<()> {
        let environment = out.surroundings();
        let value = self.value(environment)?;
        nesting::check_made([&value], out.context())?;
        let values = vec![Some(value); instances as usize];
        let mut rows = rows_by_instance(values, instances, environment);
        rows.remember(&self.remember);
        for chunk in rows.chunks() {
            out.emit(0, group, chunk)?;
        }
        out.finish_all(group, instances)
    }
}
