//! Functions of one object: the `Scope.local` forms of steps, `unfold`, `constant`, `loops`, columns of maps.

mod order;

use std::cmp::Ordering;
use std::sync::Arc;

use hashbrown::HashSet;
use mangrove_flow::{BATCH_ROWS, GroupId, Operator, Output};
use mangrove_graph::compare::{Equivalent, watched};
use mangrove_graph::{Error, ErrorKind, Result, Tree, Value, numeric};
use mangrove_gremlin::Column as MapColumn;
use mangrove_plan::logical::{Name, Operand, Reduction};

pub use order::LocalOrder;

use super::RowOperator;
use super::map::MapOperator;
use crate::environment::Environment;
use crate::lookup::column_of;
use crate::meter::Meter;
use crate::rows::{Column, Remember, Rows};

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

/// How many members [`elements`] gives; 1 for what is no collection.
pub fn size(value: &Value) -> usize {
    usize::try_from(count(value)).unwrap_or(usize::MAX)
}

/// About what a member costs that is looked at for itself.
const MEMBER_BYTES: usize = size_of::<Value>();

/// `count(local)`, `sum(local)`, ….
pub struct LocalReduce(pub Reduction);

impl MapOperator for LocalReduce {
    fn map(
        &mut self,
        rows: &Rows,
        row: usize,
        _environment: &Environment,
        meter: &mut Meter<'_>,
    ) -> Result<Option<Value>> {
        reduce(self.0, &rows.object(row), meter)
    }
}

/// What a reduction makes of a collection; of anything else, as of a collection of it alone.
fn reduce(reduction: Reduction, object: &Value, meter: &mut Meter<'_>) -> Result<Option<Value>> {
    let of: fn(&[(Value, u64)]) -> Result<Value> = match reduction {
        Reduction::Count => return Ok(Some(Value::I64(count(object)))),
        Reduction::Fold => return Ok(Some(Value::list(vec![object.clone()]))),
        Reduction::Sum => sum,
        Reduction::Mean => |values| numeric::mean(&sum(values)?, members(values)),
        Reduction::Min => |values| Ok(extreme(values, Ordering::Less)),
        Reduction::Max => |values| Ok(extreme(values, Ordering::Greater)),
    };
    meter.charge(distinct_size(object).saturating_mul(3 * MEMBER_BYTES))?;
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

/// As [`size`], with equal members of a bulk set counted once.
fn distinct_size(object: &Value) -> usize {
    match object {
        Value::BulkSet(set) => set.len(),
        other => size(other),
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
        if !nan(value) && (nan(best) || watched::order(value, best) == wanted) {
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

impl MapOperator for LocalDedup {
    fn map(
        &mut self,
        rows: &Rows,
        row: usize,
        _environment: &Environment,
        meter: &mut Meter<'_>,
    ) -> Result<Option<Value>> {
        let object = rows.object(row);
        meter.charge(distinct_size(&object).saturating_mul(MEMBER_BYTES))?;
        let members = match &object {
            Value::BulkSet(set) => set.iter().map(|(value, _)| value.clone()).collect(),
            other => elements(other)?.unwrap_or_else(|| vec![other.clone()]),
        };
        let distinct = distinct_by(members, |member| self.compared(member), meter)?;
        Ok(Some(Value::Set(distinct.into())))
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
fn distinct_by(values: Vec<Value>, compared: impl Fn(&Value) -> Value, meter: &mut Meter<'_>) -> Result<Vec<Value>> {
    let mut seen: HashSet<Equivalent, foldhash::fast::RandomState> = HashSet::default();
    let mut kept = Vec::new();
    for value in values {
        meter.charge(3 * MEMBER_BYTES)?;
        if seen.insert(Equivalent(compared(&value))) {
            kept.push(value);
        }
    }
    Ok(kept)
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

impl MapOperator for LocalRange {
    fn begin(&mut self, environment: &Environment) -> Result<()> {
        let (low, high) = &self.operands;
        let low = environment.resolve_integer(low, "the lower end of a range")?;
        let high = high.as_ref().map(|h| environment.resolve_integer(h, "the upper end of a range")).transpose()?;
        self.low = u64::try_from(low).unwrap_or(0);
        self.high = high.and_then(|h| u64::try_from(h).ok()).unwrap_or(u64::MAX);
        Ok(())
    }

    fn map(
        &mut self,
        rows: &Rows,
        row: usize,
        _environment: &Environment,
        meter: &mut Meter<'_>,
    ) -> Result<Option<Value>> {
        part(&rows.object(row), self.low, self.high, meter).map(Some)
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

impl MapOperator for LocalTail {
    fn begin(&mut self, environment: &Environment) -> Result<()> {
        let count = environment.resolve_integer(&self.operand, "the length of a tail")?;
        self.count = u64::try_from(count).unwrap_or(0);
        Ok(())
    }

    fn map(
        &mut self,
        rows: &Rows,
        row: usize,
        _environment: &Environment,
        meter: &mut Meter<'_>,
    ) -> Result<Option<Value>> {
        let object = rows.object(row);
        let size = u64::try_from(count(&object)).unwrap_or(0);
        part(&object, size.saturating_sub(self.count), u64::MAX, meter).map(Some)
    }
}

/// The members of a collection from `low` up to and without `high`.
fn part(object: &Value, low: u64, high: u64, meter: &mut Meter<'_>) -> Result<Value> {
    let most = usize::try_from(high.saturating_sub(low)).unwrap_or(usize::MAX);
    meter.charge(size(object).min(most).saturating_mul(2 * MEMBER_BYTES))?;
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

impl MapOperator for SelectColumn {
    fn map(
        &mut self,
        rows: &Rows,
        row: usize,
        _environment: &Environment,
        meter: &mut Meter<'_>,
    ) -> Result<Option<Value>> {
        let object = rows.object(row);
        meter.charge(size(&object).saturating_mul(MEMBER_BYTES))?;
        column_of(&object, self.0).map(Some)
    }
}

/// `unfold()`: the members of collections, a row each. Other objects pass as they are. A collection may have more members
/// than a message holds: the operator then goes on where it stopped when it is called again.
#[derive(Default)]
pub struct Unfold {
    remember: Remember,
    rest: Option<Folded>,
}

/// Rows whose collections are not wholly unfolded.
struct Folded {
    group: GroupId,
    rows: Rows,
    /// What the query is charged for the rows.
    charged: u64,
    /// The first row that has members left, and the first of these.
    row: usize,
    member: usize,
}

impl Unfold {
    /// `remember` says what it remembers of the members.
    pub fn new(remember: Remember) -> Self {
        Unfold { remember, rest: None }
    }

    fn advance(&mut self, mut work: Folded, out: &mut Output<'_, Rows>) -> Result<()> {
        let mut unfolded = work.unfold(&mut Meter::new(out.context()))?;
        unfolded.remember(&self.remember);
        let group = work.group;
        if work.row < work.rows.len() {
            if work.charged == 0 {
                work.charged = mangrove_flow::Batch::bytes(&work.rows) as u64;
                out.context().charge(work.charged)?;
            }
            self.rest = Some(work);
            out.again();
        } else {
            out.context().release(work.charged);
        }
        out.emit(0, group, unfolded)
    }
}

impl Folded {
    /// The next members, as many as a message holds.
    fn unfold(&mut self, meter: &mut Meter<'_>) -> Result<Rows> {
        let (mut from, mut made) = (Vec::new(), Vec::new());
        // A bulk set gives each of its values once, for as many traversers as it counts.
        let mut bulks: Option<Vec<u64>> = None;
        while self.row < self.rows.len() && made.len() < BATCH_ROWS {
            let object = self.rows.object(self.row);
            let until = distinct_size(&object).min(self.member + BATCH_ROWS - made.len());
            for at in self.member..until {
                let (member, count) = member_at(&object, at);
                meter.charge(2 * MEMBER_BYTES)?;
                if let Some(count) = count {
                    let bulks = bulks.get_or_insert_with(|| from.iter().map(|&r| self.rows.bulk(r as usize)).collect());
                    bulks.push(self.rows.bulk(self.row).saturating_mul(count));
                } else if let Some(bulks) = &mut bulks {
                    bulks.push(self.rows.bulk(self.row));
                }
                from.push(self.row as u32);
                made.push(member);
            }
            (self.row, self.member) = match until == distinct_size(&object) {
                true => (self.row + 1, 0),
                false => (self.row, until),
            };
        }
        let mut unfolded = self.rows.derive(&from, Column::from_values(made));
        unfolded.bulk = bulks.or(unfolded.bulk);
        Ok(unfolded)
    }
}

/// A member of a collection, with its count where it is one of a bulk set. What is no collection is its only member.
fn member_at(object: &Value, at: usize) -> (Value, Option<u64>) {
    let entry = |key: &Value, value: Value| Value::Entry(Arc::new((key.clone(), value)));
    match object {
        Value::BulkSet(set) => (set[at].0.clone(), Some(set[at].1)),
        Value::List(values) | Value::Set(values) => (values[at].clone(), None),
        Value::Map(entries) => (entry(&entries[at].0, entries[at].1.clone()), None),
        Value::Path(path) => (path.objects[at].clone(), None),
        Value::Tree(tree) => {
            let (key, below) = &tree.branches[at];
            (entry(key, Value::Tree(Arc::new(below.clone()))), None)
        }
        other => (other.clone(), None),
    }
}

impl Operator<Rows> for Unfold {
    fn rest(&mut self) -> bool {
        self.rest.is_none()
    }

    fn receive(&mut self, _port: u8, group: GroupId, mut batch: Rows, out: &mut Output<'_, Rows>) -> Result<()> {
        if let Column::Values(_) = &batch.objects {
            return self.advance(Folded { group, rows: batch, charged: 0, row: 0, member: 0 }, out);
        }
        batch.computed.clear();
        batch.remember(&self.remember);
        out.emit(0, group, batch)
    }

    fn resume(&mut self, out: &mut Output<'_, Rows>) -> Result<()> {
        let Some(mut work) = self.rest.take() else { return Ok(()) };
        if out.is_cancelled(work.group) {
            out.context().release(work.charged);
            return Ok(());
        }
        if let Some(tags) = out.cancelled_tags(work.group) {
            while work.row < work.rows.len() && tags.contains(work.rows.tag(work.row)) {
                (work.row, work.member) = (work.row + 1, 0);
            }
        }
        self.advance(work, out)
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
