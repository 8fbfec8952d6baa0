//! Functions of one object: the `Scope.local` forms of steps, `unfold`, `constant`, `loops`, columns of maps.

mod order;

use std::cmp::Ordering;
use std::sync::Arc;

use hashbrown::HashSet;
use mangrove_graph::compare::{self, Equivalent};
use mangrove_graph::{Error, ErrorKind, Result, Tree, Value, numeric};
use mangrove_gremlin::Column as MapColumn;
use mangrove_plan::logical::{Name, Operand, Reduction};

pub use order::LocalOrder;

use super::RowOperator;
use crate::environment::Environment;
use crate::lookup::column_slot;
use crate::rows::{Column, Rows};

/// The most members that a bulk set is spelled out into: 128 MiB of values, which no limit of the query's counts.
const SPELLED_OUT_MAX: u64 = 1 << 22;

/// The members of a collection: of lists, sets and paths their objects, of bulk sets each as often as it
/// counts, of maps the entries. `None` where the value is no collection.
pub fn elements(value: &Value) -> Result<Option<Vec<Value>>> {
    Ok(Some(match value {
        Value::List(values) | Value::Set(values) => values.to_vec(),
        Value::BulkSet(set) => spelled_out(set)?,
        Value::Map(entries) => entries.iter().map(|entry| Value::Entry(Arc::new(entry.clone()))).collect(),
        Value::Path(path) => path.objects.clone(),
        Value::Tree(tree) => branches(tree).map(|branch| Value::Entry(Arc::new(branch))).collect(),
        _ => return Ok(None),
    }))
}

/// A tree as the map it is: what is below each of its keys.
pub fn branches(tree: &Tree) -> impl Iterator<Item = (Value, Value)> {
    tree.branches.iter().map(|(key, below)| (key.clone(), Value::Tree(Arc::new(below.clone()))))
}

fn spelled_out(set: &[(Value, u64)]) -> Result<Vec<Value>> {
    let count = members(set);
    if count > SPELLED_OUT_MAX {
        return Err(Error::new(
            ErrorKind::MemoryLimit,
            format!("a collection of {count} objects is more than a step can hold; unfold() works on it one by one"),
        ));
    }
    Ok(set.iter().flat_map(|(value, count)| std::iter::repeat_n(value.clone(), *count as usize)).collect())
}

/// How many members a bulk set has.
fn members(set: &[(Value, u64)]) -> u64 {
    set.iter().fold(0_u64, |n, (_, count)| n.saturating_add(*count))
}

/// Applies a function to each object; rows for which it gives nothing are dropped.
fn map_objects(rows: Rows, mut function: impl FnMut(&Value) -> Result<Option<Value>>) -> Result<Rows> {
    let mut kept = Vec::with_capacity(rows.len());
    let mut made = Vec::with_capacity(rows.len());
    for row in 0..rows.len() {
        if let Some(value) = function(&rows.object(row))? {
            kept.push(row as u32);
            made.push(value);
        }
    }
    Ok(if kept.len() == rows.len() {
        rows.with_objects(Column::from_values(made))
    } else {
        rows.derive(&kept, Column::from_values(made))
    })
}

/// `count(local)`, `sum(local)`, ….
pub struct LocalReduce(pub Reduction);

impl RowOperator for LocalReduce {
    fn apply(&mut self, rows: Rows, _environment: &Environment) -> Result<Rows> {
        map_objects(rows, |object| reduce(self.0, object))
    }
}

/// What a reduction makes of a collection; of anything else, as of a collection of it alone.
fn reduce(reduction: Reduction, object: &Value) -> Result<Option<Value>> {
    let of: fn(&[(Value, u64)]) -> Result<Value> = match reduction {
        Reduction::Count => return Ok(Some(Value::I64(count(object)))),
        Reduction::Fold => return Ok(Some(Value::list(vec![object.clone()]))),
        Reduction::Sum => sum,
        Reduction::Mean => |values| numeric::mean(&sum(values)?, members(values)),
        Reduction::Min => |values| Ok(extreme(values, Ordering::Less)),
        Reduction::Max => |values| Ok(extreme(values, Ordering::Greater)),
    };
    let values: Vec<(Value, u64)> = match object {
        // A bulk set is reduced by its counts: it may stand for more values than memory holds.
        Value::BulkSet(set) => set.to_vec(),
        other => elements(other)?.unwrap_or_else(|| vec![other.clone()]).into_iter().map(|v| (v, 1)).collect(),
    };
    if values.is_empty() {
        return Ok(None);
    }
    // Nulls are skipped; where there is nothing else, the result is null.
    let present: Vec<(Value, u64)> = values.into_iter().filter(|(v, _)| !matches!(v, Value::Null)).collect();
    if present.is_empty() {
        return Ok(Some(Value::Null));
    }
    of(&present).map(Some)
}

fn count(object: &Value) -> i64 {
    let size = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
    match object {
        Value::List(values) | Value::Set(values) => size(values.len()),
        Value::Map(entries) => size(entries.len()),
        Value::Path(path) => size(path.objects.len()),
        Value::Tree(tree) => size(tree.branches.len()),
        Value::BulkSet(set) => i64::try_from(members(set)).unwrap_or(i64::MAX),
        _ => 1,
    }
}

fn sum(values: &[(Value, u64)]) -> Result<Value> {
    let mut total: Option<Value> = None;
    for (value, times) in values {
        let share = numeric::times(value, *times)?;
        total = Some(match total {
            None => share,
            Some(total) => numeric::arithmetic(numeric::Operation::Add, &total, &share)?,
        });
    }
    total.ok_or_else(|| Error::bug("a sum of no values"))
}

/// The first of the values that no other lies `wanted` of, in the widest of their types. A NaN gives way to any
/// number, and its type does not count.
fn extreme(values: &[(Value, u64)], wanted: Ordering) -> Value {
    let nan = |v: &Value| matches!(v, Value::F32(n) if n.is_nan()) || matches!(v, Value::F64(n) if n.is_nan());
    let mut best = &values[0].0;
    for (value, _) in &values[1..] {
        if !nan(value) && (nan(best) || compare::order(value, best) == wanted) {
            best = value;
        }
    }
    values.iter().fold(best.clone(), |best, (other, _)| match best.is_number() && other.is_number() && !nan(other) {
        true => numeric::widened(&best, other),
        false => best,
    })
}

/// `dedup(local)`: the set of a collection's members. Where keys are given, maps are compared by their values, and of
/// those that are alike the first stays.
pub struct LocalDedup(pub Vec<Name>);

impl RowOperator for LocalDedup {
    fn apply(&mut self, rows: Rows, _environment: &Environment) -> Result<Rows> {
        map_objects(rows, |object| {
            let members = match object {
                Value::BulkSet(set) => set.iter().map(|(value, _)| value.clone()).collect(),
                other => elements(other)?.unwrap_or_else(|| vec![other.clone()]),
            };
            Ok(Some(Value::Set(distinct_by(members, |member| self.compared(member)).into())))
        })
    }
}

impl LocalDedup {
    /// What of a member is compared.
    fn compared(&self, member: &Value) -> Value {
        match member {
            Value::Map(entries) if !self.0.is_empty() => {
                let value = |key: &Name| {
                    let found = entries.iter().find(|(k, _)| matches!(k, Value::String(k) if k == key));
                    Value::list(found.map(|(_, value)| value.clone()).into_iter().collect())
                };
                Value::list(self.0.iter().map(value).collect())
            }
            other => other.clone(),
        }
    }
}

/// The values without repetition: of those that are equivalent by what `compared` takes of them, the first.
fn distinct_by(values: Vec<Value>, compared: impl Fn(&Value) -> Value) -> Vec<Value> {
    let mut seen: HashSet<Equivalent, foldhash::fast::RandomState> = HashSet::default();
    values.into_iter().filter(|value| seen.insert(Equivalent(compared(value)))).collect()
}

/// `limit(local)`, `range(local)`, `skip(local)`: a part of a collection, which stays a collection of its
/// kind (a bulk set and a path become lists). Other objects pass as they are.
pub struct LocalRange {
    operands: (Operand, Option<Operand>),
    low: u64,
    high: u64,
}

impl LocalRange {
    /// The positions from `low` up to and without `high`; a missing or negative `high` means to the end.
    pub fn new(low: Operand, high: Option<Operand>) -> Self {
        LocalRange { operands: (low, high), low: 0, high: 0 }
    }
}

impl RowOperator for LocalRange {
    fn begin(&mut self, environment: &Environment) -> Result<()> {
        let (low, high) = &self.operands;
        let low = environment.resolve_integer(low, "the lower end of a range")?;
        let high = high.as_ref().map(|h| environment.resolve_integer(h, "the upper end of a range")).transpose()?;
        self.low = u64::try_from(low).unwrap_or(0);
        self.high = high.and_then(|h| u64::try_from(h).ok()).unwrap_or(u64::MAX);
        Ok(())
    }

    fn apply(&mut self, rows: Rows, _environment: &Environment) -> Result<Rows> {
        map_objects(rows, |object| part(object, self.low, self.high).map(Some))
    }
}

/// `tail(local)`: the end of a collection. Other objects pass as they are.
pub struct LocalTail {
    operand: Operand,
    count: u64,
}

impl LocalTail {
    /// The last `count` members.
    pub fn new(operand: Operand) -> Self {
        LocalTail { operand, count: 0 }
    }
}

impl RowOperator for LocalTail {
    fn begin(&mut self, environment: &Environment) -> Result<()> {
        let count = environment.resolve_integer(&self.operand, "the length of a tail")?;
        self.count = u64::try_from(count).unwrap_or(0);
        Ok(())
    }

    fn apply(&mut self, rows: Rows, _environment: &Environment) -> Result<Rows> {
        map_objects(rows, |object| {
            let size = u64::try_from(count(object)).unwrap_or(0);
            part(object, size.saturating_sub(self.count), u64::MAX).map(Some)
        })
    }
}

/// The members of a collection from `low` up to and without `high`.
fn part(object: &Value, low: u64, high: u64) -> Result<Value> {
    let range = |len: usize| {
        let high = usize::try_from(high).unwrap_or(usize::MAX).min(len);
        usize::try_from(low).unwrap_or(usize::MAX).min(high)..high
    };
    Ok(match object {
        Value::List(values) => Value::list(values[range(values.len())].to_vec()),
        Value::Set(values) => Value::Set(values[range(values.len())].to_vec().into()),
        Value::Map(entries) => Value::map(entries[range(entries.len())].to_vec()),
        Value::Path(path) => Value::list(path.objects[range(path.objects.len())].to_vec()),
        Value::BulkSet(set) => Value::list(spelled_out(&bulk_part(set, low, high))?),
        other => other.clone(),
    })
}

/// The members of a bulk set from `low` up to and without `high`, still with their counts.
fn bulk_part(set: &[(Value, u64)], low: u64, high: u64) -> Vec<(Value, u64)> {
    let mut from = 0_u64;
    let mut kept = Vec::new();
    for (value, count) in set {
        let to = from.saturating_add(*count);
        let taken = to.min(high).saturating_sub(from.max(low));
        if taken > 0 {
            kept.push((value.clone(), taken));
        }
        from = to;
    }
    kept
}

/// `select(keys)`, `select(values)`.
pub struct SelectColumn(pub MapColumn);

impl RowOperator for SelectColumn {
    fn apply(&mut self, rows: Rows, _environment: &Environment) -> Result<Rows> {
        let values = column_slot(&rows.objects, self.0)?.into_iter().flatten().collect();
        Ok(rows.with_objects(Column::from_values(values)))
    }
}

/// `unfold()`: the members of collections, a row each. Other objects pass as they are.
pub struct Unfold;

impl RowOperator for Unfold {
    fn apply(&mut self, rows: Rows, _environment: &Environment) -> Result<Rows> {
        let Column::Values(objects) = &rows.objects else { return Ok(rows.filter(|_, _| true)) };
        let (mut from, mut made) = (Vec::new(), Vec::new());
        // A bulk set gives each of its values once, for as many traversers as it counts.
        let mut bulks: Option<Vec<u64>> = None;
        for (row, object) in objects.iter().enumerate() {
            match object {
                Value::BulkSet(set) => {
                    let bulks = bulks.get_or_insert_with(|| from.iter().map(|&r| rows.bulk(r as usize)).collect());
                    bulks.extend(set.iter().map(|(_, count)| rows.bulk(row).saturating_mul(*count)));
                    made.extend(set.iter().map(|(value, _)| value.clone()));
                }
                other => {
                    made.extend(elements(other)?.unwrap_or_else(|| vec![other.clone()]));
                    if let Some(bulks) = &mut bulks {
                        bulks.resize(made.len(), rows.bulk(row));
                    }
                }
            }
            from.resize(made.len(), row as u32);
        }
        let mut unfolded = rows.derive(&from, Column::from_values(made));
        unfolded.bulk = bulks.or(unfolded.bulk);
        Ok(unfolded)
    }
}

/// `constant()`.
pub struct Constant {
    operand: Operand,
    value: Value,
}

impl Constant {
    /// Of this value.
    pub fn new(operand: Operand) -> Self {
        Constant { operand, value: Value::Null }
    }
}

impl RowOperator for Constant {
    fn begin(&mut self, environment: &Environment) -> Result<()> {
        self.value = environment.resolve(&self.operand)?;
        Ok(())
    }

    fn apply(&mut self, rows: Rows, _environment: &Environment) -> Result<Rows> {
        let objects = Column::from_values(vec![self.value.clone(); rows.len()]);
        Ok(rows.with_objects(objects))
    }
}

/// `loops()`: how many iterations of a loop a traverser has completed.
pub struct LoopsOf(
    /// Which of the nested loops, the outermost first; `None`: the innermost.
    pub Option<usize>,
);

impl RowOperator for LoopsOf {
    fn apply(&mut self, rows: Rows, _environment: &Environment) -> Result<Rows> {
        let counter = |row: usize| {
            let loops = rows.loops.as_ref()?.get(row)?;
            self.0.map_or(loops.last(), |depth| loops.get(depth)).copied()
        };
        let counters: Option<Vec<Value>> =
            (0..rows.len()).map(|row| counter(row).map(|n| Value::I32(i32::try_from(n).unwrap_or(i32::MAX)))).collect();
        let Some(counters) = counters else {
            return Err(Error::evaluation("loops() counts iterations: use it inside repeat(), until() or emit()"));
        };
        Ok(rows.with_objects(Column::Values(counters)))
    }
}

#[cfg(test)]
mod tests;
