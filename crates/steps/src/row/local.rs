//! Steps that look at one object alone: the `Scope.local` forms of steps, `unfold()`, `constant()`, `loops()`, and the
//! keys and values of maps.
//!
//! They do not read the graph. A step that makes a collection charges its members before it makes them.

mod order;

use std::cmp::Ordering;
use std::sync::Arc;

use mangrove_flow::{BATCH_ROWS, Cursor, Detail, GroupId, Kernel, Output, Step};
use mangrove_graph::compare::{Equivalent, watched};
use mangrove_graph::{Error, Result, Tree, Value, numeric};
use mangrove_gremlin::Column as MapColumn;
use mangrove_plan::logical::{Name, Operand, Reduction};

pub(crate) use order::LocalOrder;

use crate::computed::lookup::column_of;
use crate::context::execution::ExecutionContext;
use crate::limits::meter::Meter;
use crate::limits::table::PartitionedTable;
use crate::row::map::MapOperator;
use crate::row::operator::RowOperator;
use crate::rows::{ObjectColumn, Remember, Rows};
use crate::values::collection::{MEMBER_BYTES, count, distinct_size, elements, expanded, members, size};

/// `count(local)`, `sum(local)`, ….
pub(crate) struct LocalReduce(pub Reduction);

impl MapOperator for LocalReduce {
    fn map(
        &mut self,
        rows: &Rows,
        row: usize,
        _context: &ExecutionContext,
        meter: &mut Meter<'_>,
    ) -> Result<Option<Value>> {
        reduce(self.0, &rows.object(row), meter)
    }
}

/// Reduces values, of which there is one at least, each taken as often as its count says.
type ReduceMembers = fn(&[(Value, u64)], &mut Meter<'_>) -> Result<Value>;

/// Reduces the members of a collection; any other object counts as a collection of itself alone. Returns `None` for an
/// empty collection, except that its count is 0.
fn reduce(reduction: Reduction, object: &Value, meter: &mut Meter<'_>) -> Result<Option<Value>> {
    let reduced: ReduceMembers = match reduction {
        Reduction::Count => return Ok(Some(Value::I64(count(object)))),
        Reduction::Fold => return Ok(Some(Value::list(vec![object.clone()]))),
        Reduction::Sum => sum,
        Reduction::Mean => |values, meter| numeric::mean(&sum(values, meter)?, members(values)),
        Reduction::Min => |values, meter| extreme(values, Ordering::Less, meter),
        Reduction::Max => |values, meter| extreme(values, Ordering::Greater, meter),
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
    // Nulls are skipped. If there is nothing else, the result is null.
    let present: Vec<(Value, u64)> = values.into_iter().filter(|(v, _)| !matches!(v, Value::Null)).collect();
    if present.is_empty() {
        return Ok(Some(Value::Null));
    }
    reduced(&present, meter).map(Some)
}

/// Returns the sum of values, each taken as often as its count says. There must be a value.
fn sum(values: &[(Value, u64)], meter: &mut Meter<'_>) -> Result<Value> {
    let mut total: Option<Value> = None;
    for (value, times) in values {
        meter.pass(MEMBER_BYTES)?;
        let share = numeric::times(value, *times)?;
        total = Some(match total {
            None => share,
            Some(total) => numeric::arithmetic(numeric::Operation::Add, &total, &share)?,
        });
    }
    total.ok_or_else(|| Error::bug("a sum of no values"))
}

/// Returns the first of the smallest (or largest) values, converted to the widest type among the values. Any number
/// beats a NaN, whose type does not count. There must be a value.
fn extreme(values: &[(Value, u64)], wanted: Ordering, meter: &mut Meter<'_>) -> Result<Value> {
    let nan = |v: &Value| matches!(v, Value::F32(n) if n.is_nan()) || matches!(v, Value::F64(n) if n.is_nan());
    let mut best = &values[0].0;
    for (value, _) in &values[1..] {
        meter.pass(MEMBER_BYTES)?;
        if !nan(value) && (nan(best) || watched::order(value, best) == wanted) {
            best = value;
        }
    }
    let mut widened = best.clone();
    for (other, _) in values {
        meter.pass(MEMBER_BYTES)?;
        if widened.is_number() && other.is_number() && !nan(other) {
            widened = numeric::widened(&widened, other);
        }
    }
    Ok(widened)
}

/// `dedup(local)`: the set of a collection's members. With keys, members that are maps are compared by their values
/// under these keys, and the first of equal ones stays.
pub(crate) struct LocalDedup(pub Vec<Name>);

impl MapOperator for LocalDedup {
    fn map(
        &mut self,
        rows: &Rows,
        row: usize,
        _context: &ExecutionContext,
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
    /// Returns the compared part of a member.
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

/// Returns the values without repetitions: of values whose `compared` parts are equivalent, the first.
fn distinct_by(values: Vec<Value>, compared: impl Fn(&Value) -> Value, meter: &mut Meter<'_>) -> Result<Vec<Value>> {
    let mut seen = PartitionedTable::<Equivalent>::default();
    let mut kept = Vec::new();
    for value in values {
        meter.charge(3 * MEMBER_BYTES)?;
        if seen.insert(Equivalent(compared(&value))) {
            kept.push(value);
        }
    }
    Ok(kept)
}

/// `limit(local)`, `range(local)`, `skip(local)`: a part of a collection, of the same kind (of a bulk set or path, a
/// list). Other objects stay as they are.
pub(crate) struct LocalRange {
    operands: (Operand, Option<Operand>),
    low: u64,
    high: u64,
}

impl LocalRange {
    /// The positions `low..high`. A missing or negative `high` means the end.
    pub fn new(low: Operand, high: Option<Operand>) -> Self {
        LocalRange { operands: (low, high), low: 0, high: 0 }
    }
}

impl MapOperator for LocalRange {
    fn begin(&mut self, context: &ExecutionContext) -> Result<()> {
        let (low, high) = &self.operands;
        let low = context.resolve_integer(low, "the lower end of a range")?;
        let high = high.as_ref().map(|h| context.resolve_integer(h, "the upper end of a range")).transpose()?;
        self.low = u64::try_from(low).unwrap_or(0);
        self.high = high.and_then(|h| u64::try_from(h).ok()).unwrap_or(u64::MAX);
        Ok(())
    }

    fn map(
        &mut self,
        rows: &Rows,
        row: usize,
        _context: &ExecutionContext,
        meter: &mut Meter<'_>,
    ) -> Result<Option<Value>> {
        part(&rows.object(row), self.low, self.high, meter).map(Some)
    }
}

/// `tail(local)`: the last members of a collection. Other objects stay as they are.
pub(crate) struct LocalTail {
    operand: Operand,
    count: u64,
}

impl LocalTail {
    /// The last members; the operand is their number.
    pub fn new(operand: Operand) -> Self {
        LocalTail { operand, count: 0 }
    }
}

impl MapOperator for LocalTail {
    fn begin(&mut self, context: &ExecutionContext) -> Result<()> {
        let count = context.resolve_integer(&self.operand, "the length of a tail")?;
        self.count = u64::try_from(count).unwrap_or(0);
        Ok(())
    }

    fn map(
        &mut self,
        rows: &Rows,
        row: usize,
        _context: &ExecutionContext,
        meter: &mut Meter<'_>,
    ) -> Result<Option<Value>> {
        let object = rows.object(row);
        let size = u64::try_from(count(&object)).unwrap_or(0);
        part(&object, size.saturating_sub(self.count), u64::MAX, meter).map(Some)
    }
}

/// Returns the members at the positions `low..high` of a collection; of any other object, the object.
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
        Value::BulkSet(set) => Value::list(expanded(&bulk_part(set, low, high))?),
        other => other.clone(),
    })
}

/// Returns the members at the positions `low..high` of a bulk set, with their counts. A member takes as many positions
/// as it counts.
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

/// `select(keys)` and `select(values)`: the keys or values of a map, tree or path.
pub(crate) struct SelectColumn(pub MapColumn);

impl MapOperator for SelectColumn {
    fn map(
        &mut self,
        rows: &Rows,
        row: usize,
        _context: &ExecutionContext,
        meter: &mut Meter<'_>,
    ) -> Result<Option<Value>> {
        let object = rows.object(row);
        meter.charge(size(&object).saturating_mul(MEMBER_BYTES))?;
        column_of(&object, self.0).map(Some)
    }
}

/// `unfold()`: one row for each member of a collection. Other objects stay as they are. If a collection has more
/// members than a message holds, the next step goes on.
pub(crate) struct Unfold {
    /// The part of the members that paths remember.
    pub remember: Remember,
}

/// Rows whose collections are not unfolded to the end.
struct FoldedRows<'a> {
    rows: &'a Rows,
    /// The first row with members left, and the index of the first of them.
    row: usize,
    member: usize,
}

impl FoldedRows<'_> {
    /// Returns rows for the next members, at most as many as a message holds.
    fn unfold(&mut self, meter: &mut Meter<'_>) -> Result<Rows> {
        let (mut from, mut made) = (Vec::new(), Vec::new());
        // A bulk set gives each of its values once, with its count multiplied into the bulk. The column of bulks is
        // made when the first bulk set is met.
        let mut bulks: Option<Vec<u64>> = None;
        while self.row < self.rows.len() && made.len() < BATCH_ROWS {
            let object = self.rows.object(self.row);
            let until = distinct_size(&object).min(self.member + BATCH_ROWS - made.len());
            for at in self.member..until {
                meter.charge(2 * MEMBER_BYTES)?;
                if let Value::Tree(tree) = &object {
                    // The part of the tree below is copied.
                    charge_tree(&tree.branches[at].1, meter)?;
                }
                let (member, count) = member_at(&object, at);
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
        let mut unfolded = self.rows.derive(&from, ObjectColumn::from_values(made));
        unfolded.bulk = bulks.or(unfolded.bulk);
        Ok(unfolded)
    }
}

/// Charges for a copy of a tree.
fn charge_tree(tree: &Tree, meter: &mut Meter<'_>) -> Result<()> {
    meter.charge(size_of_val(&tree.branches[..]))?;
    tree.branches.iter().try_for_each(|(_, below)| charge_tree(below, meter))
}

/// Returns a member of a collection; of a bulk set, with its count. A value that is no collection is its own only
/// member.
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

impl Kernel<Rows> for Unfold {
    fn step(&mut self, rows: &mut Rows, at: &mut Cursor, group: GroupId, out: &mut Output<'_, Rows>) -> Result<Step> {
        let ObjectColumn::Values(_) = &rows.objects else {
            let mut rows = std::mem::take(rows);
            rows.computed.clear();
            rows.remember(&self.remember);
            out.emit(0, group, rows)?;
            return Ok(Step::Done);
        };
        let member = if let Detail::Words([member, _]) = at.detail { member as usize } else { 0 };
        let mut folded = FoldedRows { rows, row: at.row as usize, member };
        let mut unfolded = folded.unfold(&mut Meter::new(out.control()))?;
        let (row, member) = (folded.row, folded.member);
        unfolded.remember(&self.remember);
        out.emit(0, group, unfolded)?;
        *at = Cursor { row: row as u32, detail: Detail::Words([member as u64, 0]) };
        Ok(if row < rows.len() { Step::More } else { Step::Done })
    }
}

/// `constant()`: replaces each object by a value.
pub(crate) struct Constant {
    operand: Operand,
    value: Value,
}

impl Constant {
    pub fn new(operand: Operand) -> Self {
        Constant { operand, value: Value::Null }
    }
}

impl RowOperator for Constant {
    fn begin(&mut self, context: &ExecutionContext) -> Result<()> {
        self.value = context.resolve(&self.operand)?;
        Ok(())
    }

    fn apply(&mut self, rows: Rows, _context: &ExecutionContext, _: &mut Meter<'_>) -> Result<Rows> {
        let objects = ObjectColumn::from_values(vec![self.value.clone(); rows.len()]);
        Ok(rows.with_objects(objects))
    }
}

/// `loops()`: the number of iterations of a loop that a traverser has completed.
pub(crate) struct LoopsOf(
    /// The index of the loop, the outermost first; `None` for the innermost.
    pub Option<usize>,
);

impl RowOperator for LoopsOf {
    fn apply(&mut self, rows: Rows, _context: &ExecutionContext, _: &mut Meter<'_>) -> Result<Rows> {
        let counter = |row: usize| {
            let loops = rows.loops.as_ref()?.get(row)?;
            self.0.map_or(loops.last(), |depth| loops.get(depth)).copied()
        };
        let counters: Option<Vec<Value>> =
            (0..rows.len()).map(|row| counter(row).map(|n| Value::I32(i32::try_from(n).unwrap_or(i32::MAX)))).collect();
        let Some(counters) = counters else {
            return Err(Error::evaluation("loops() counts iterations: use it inside repeat(), until() or emit()"));
        };
        Ok(rows.with_objects(ObjectColumn::Values(counters)))
    }
}

#[cfg(test)]
mod tests;
