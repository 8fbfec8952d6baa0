//! Partial reductions: the state of `count()`, `sum()`, `min()`, `max()`, `mean()` or `fold()` while values come.

use mangrove_flow::Step;
use mangrove_graph::compare::watched::comparable;
use mangrove_graph::numeric::{self, Operation};
use mangrove_graph::{Error, FastMap, Result, Value};
use mangrove_plan::logical::Reduction;

use crate::context::type_name::a_type;
use crate::rows::held::ByInstance;
use crate::rows::{ObjectColumn, Rows, Tags};
use crate::values::fold::too_many;

/// A reduction: the values that it takes and how it joins them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReduceKind {
    /// A reduction of Gremlin.
    Language(Reduction),
    /// The second half of a count in two parts: a sum of counts, 0 if there are none.
    Total,
}

/// The state of a reduction.
pub(crate) enum PartialReduction {
    /// `count()`
    Count(u64),
    /// `sum()`; `None` if only nulls came so far.
    Sum(Option<Value>),
    /// `min()`, `max()`
    Extreme(Option<Value>),
    /// `mean()`
    Mean(Option<Value>, u64),
    /// `fold()`
    Fold(Vec<Value>),
}

impl PartialReduction {
    /// The state before any value.
    pub fn new(kind: ReduceKind) -> Self {
        match kind {
            ReduceKind::Language(Reduction::Count) | ReduceKind::Total => PartialReduction::Count(0),
            ReduceKind::Language(Reduction::Sum) => PartialReduction::Sum(None),
            ReduceKind::Language(Reduction::Min | Reduction::Max) => PartialReduction::Extreme(None),
            ReduceKind::Language(Reduction::Mean) => PartialReduction::Mean(None, 0),
            ReduceKind::Language(Reduction::Fold) => PartialReduction::Fold(Vec::new()),
        }
    }

    /// Adds a value that stands for `bulk` equal ones.
    pub fn add(&mut self, kind: ReduceKind, value: Value, bulk: u64) -> Result<()> {
        match self {
            PartialReduction::Count(count) => {
                let each = if kind == ReduceKind::Total { counted(&value)? } else { 1 };
                *count = each.checked_mul(bulk).and_then(|n| count.checked_add(n)).ok_or_else(too_many)?;
            }
            PartialReduction::Sum(sum) => add(sum, &value, bulk)?,
            PartialReduction::Mean(sum, count) => {
                if value != Value::Null {
                    add(sum, &value, bulk)?;
                    *count = count.checked_add(bulk).ok_or_else(too_many_for_mean)?;
                }
            }
            PartialReduction::Extreme(best) => {
                if value != Value::Null {
                    *best = Some(match best.take() {
                        None => value,
                        Some(old) => extreme(old, value, kind == ReduceKind::Language(Reduction::Max))?,
                    });
                }
            }
            PartialReduction::Fold(values) => {
                let times = usize::try_from(bulk).map_err(|_| Error::evaluation("fold() of too many values"))?;
                values.extend(std::iter::repeat_n(value, times));
            }
        }
        Ok(())
    }

    /// Returns true if nothing but nulls has come, and it is no count: its result is null, if it has one.
    pub fn is_null(&self) -> bool {
        match self {
            PartialReduction::Sum(value) | PartialReduction::Extreme(value) | PartialReduction::Mean(value, _) => {
                value.is_none()
            }
            PartialReduction::Count(_) | PartialReduction::Fold(_) => false,
        }
    }

    /// Adds to a count.
    pub fn count(&mut self, more: u64) -> Result<()> {
        match self {
            PartialReduction::Count(count) => {
                *count = count.checked_add(more).ok_or_else(too_many)?;
                Ok(())
            }
            _ => Err(Error::bug("only a count counts")),
        }
    }

    /// Returns the state as a value and a count, for [`PartialReduction::join`]. A fold has no such form.
    fn into_parts(self) -> Option<(Value, u64)> {
        match self {
            PartialReduction::Count(count) => Some((Value::Null, count)),
            PartialReduction::Sum(value) | PartialReduction::Extreme(value) => Some((value.unwrap_or(Value::Null), 1)),
            PartialReduction::Mean(sum, count) => Some((sum.unwrap_or(Value::Null), count)),
            PartialReduction::Fold(_) => None,
        }
    }

    /// Adds the state of a reduction of other rows.
    pub fn join(&mut self, kind: ReduceKind, value: Value, count: u64) -> Result<()> {
        match self {
            PartialReduction::Count(_) => self.count(count),
            PartialReduction::Mean(sum, known) => {
                add(sum, &value, 1)?;
                *known = known.checked_add(count).ok_or_else(too_many_for_mean)?;
                Ok(())
            }
            PartialReduction::Sum(_) | PartialReduction::Extreme(_) => self.add(kind, value, 1),
            PartialReduction::Fold(_) => Err(Error::bug("a fold has no parts")),
        }
    }

    /// Adds the state of a reduction of rows of another thread. Of values that are kept, moves as many as `left`, and takes
    /// them from it. Returns [`Step::More`] if some are left there.
    pub fn take_over(&mut self, kind: ReduceKind, other: &mut PartialReduction, left: &mut usize) -> Result<Step> {
        if let (PartialReduction::Fold(ours), PartialReduction::Fold(theirs)) = (&mut *self, &mut *other) {
            // The fewer values move.
            if ours.len() < theirs.len() {
                std::mem::swap(ours, theirs);
            }
            let moved = theirs.len().min(*left);
            *left -= moved;
            ours.extend(theirs.drain(theirs.len() - moved..));
            return Ok(if theirs.is_empty() { Step::Done } else { Step::More });
        }
        let theirs = std::mem::replace(other, PartialReduction::new(kind));
        if let Some((value, count)) = theirs.into_parts() {
            self.join(kind, value, count)?;
        }
        Ok(Step::Done)
    }

    /// Returns the result.
    pub fn result(self) -> Result<Value> {
        Ok(match self {
            PartialReduction::Count(count) => Value::I64(i64::try_from(count).map_err(|_| too_many())?),
            PartialReduction::Sum(value) | PartialReduction::Extreme(value) => value.unwrap_or(Value::Null),
            PartialReduction::Mean(None, _) => Value::Null,
            PartialReduction::Mean(Some(sum), count) => numeric::mean(&sum, count)?,
            PartialReduction::Fold(values) => Value::list(values),
        })
    }
}

fn too_many_for_mean() -> Error {
    Error::evaluation("mean() of more than 2^64 values")
}

/// Returns the number in a value that is a count.
fn counted(value: &Value) -> Result<u64> {
    let number = numeric::integer(value).and_then(|n| u64::try_from(n).ok());
    number.ok_or_else(|| Error::bug("a count is a number from 0 up"))
}

/// Returns the number of traversers (or the sum of counts) that a batch of one instance stands for.
pub(super) fn count_batch(kind: ReduceKind, batch: &Rows) -> Result<u64> {
    let mut total = 0_u64;
    match (&batch.bulk, &batch.objects) {
        (None, _) if kind != ReduceKind::Total => total = batch.len() as u64,
        (Some(bulks), _) if kind != ReduceKind::Total => {
            for bulk in bulks {
                total = total.checked_add(*bulk).ok_or_else(too_many)?;
            }
        }
        (_, objects) => {
            for row in 0..objects.len() {
                let count = counted(&objects.get(row))?.checked_mul(batch.bulk(row));
                total = count.and_then(|n| total.checked_add(n)).ok_or_else(too_many)?;
            }
        }
    }
    Ok(total)
}

fn add(sum: &mut Option<Value>, value: &Value, bulk: u64) -> Result<()> {
    if *value == Value::Null {
        return Ok(());
    }
    let value = numeric::times(value, bulk)?;
    *sum = Some(match sum.take() {
        None => value,
        Some(old) => numeric::arithmetic(Operation::Add, &old, &value)?,
    });
    Ok(())
}

/// Returns the better of two values, the old one if they are equal. Numbers get the wider of both types.
fn extreme(old: Value, new: Value, largest: bool) -> Result<Value> {
    use mangrove_graph::compare::is_number;
    // NaN compares with nothing, so a number beside it wins.
    let order = comparable(&new, &old);
    if order.is_none() && is_number(&new) && is_number(&old) {
        let old_is_nan = matches!(numeric::to_f64(&old), Some(f) if f.is_nan());
        return Ok(if old_is_nan { new } else { old });
    }
    let order = order.ok_or_else(|| {
        let step = if largest { "max()" } else { "min()" };
        Error::evaluation(format!("{step} cannot compare {} with {}", a_type(&new), a_type(&old)))
    })?;
    let better = if largest { order.is_gt() } else { order.is_lt() };
    let (best, other) = if better { (new, old) } else { (old, new) };
    Ok(if is_number(&best) && is_number(&other) { numeric::widened(&best, &other) } else { best })
}

/// The states of a reduction, by instance.
pub(super) trait StatesByTag {
    /// Returns the reduction.
    fn kind(&self) -> ReduceKind;

    /// Returns the state of an instance, making it if it is new.
    fn state(&mut self, tag: u32) -> &mut PartialReduction;
}

/// The states of a group, which an operator keeps until the group ends.
pub(super) struct GroupStates<'a> {
    /// The reduction.
    pub kind: ReduceKind,
    /// The state of each instance.
    pub states: &'a mut Vec<Option<PartialReduction>>,
}

impl StatesByTag for GroupStates<'_> {
    fn kind(&self) -> ReduceKind {
        self.kind
    }

    fn state(&mut self, tag: u32) -> &mut PartialReduction {
        ByInstance::entry(self.states, tag, || PartialReduction::new(self.kind))
    }
}

/// The states of the rows of one batch, by instance: what a helper sends home instead of the rows.
pub(super) struct BatchStates {
    kind: ReduceKind,
    /// The position of the state of each instance.
    positions: FastMap<u32, usize>,
    tags: Vec<u32>,
    states: Vec<PartialReduction>,
}

impl BatchStates {
    pub fn new(kind: ReduceKind) -> Self {
        BatchStates { kind, positions: FastMap::default(), tags: Vec::new(), states: Vec::new() }
    }

    /// Returns a row for each state. Its object is the value of the state, its bulk the count. An empty computed column
    /// tells these rows from others ([`is_reduced`]).
    pub fn into_rows(self) -> Rows {
        let parts = self.states.into_iter().filter_map(PartialReduction::into_parts);
        let (values, counts): (Vec<Value>, Vec<u64>) = parts.unzip();
        Rows {
            tags: Tags::Many(self.tags),
            computed: vec![vec![None; values.len()]],
            bulk: Some(counts),
            ..Rows::of(ObjectColumn::Values(values))
        }
    }
}

impl StatesByTag for BatchStates {
    fn kind(&self) -> ReduceKind {
        self.kind
    }

    fn state(&mut self, tag: u32) -> &mut PartialReduction {
        // Rows of an instance mostly follow one another.
        let at = match self.tags.last() {
            Some(last) if *last == tag => self.tags.len() - 1,
            _ => *self.positions.entry(tag).or_insert_with(|| {
                self.tags.push(tag);
                self.states.push(PartialReduction::new(self.kind));
                self.tags.len() - 1
            }),
        };
        &mut self.states[at]
    }
}

/// Adds the objects of a batch to the states of a reduction that keeps no values.
pub(super) fn add_batch(states: &mut impl StatesByTag, batch: &Rows) -> Result<()> {
    let kind = states.kind();
    let counts = kind == ReduceKind::Language(Reduction::Count);
    if batch.tags == Tags::One && (counts || kind == ReduceKind::Total) {
        return states.state(0).count(count_batch(kind, batch)?);
    }
    (0..batch.len()).try_for_each(|row| {
        // Counting reads no object.
        let value = if counts { Value::Null } else { batch.object(row) };
        states.state(batch.tag(row)).add(kind, value, batch.bulk(row))
    })
}

/// Returns true if a helper has reduced the batch: each row is a state. Such a batch has a computed column. A batch that
/// no helper has reduced has none when it reaches a reduction (STEPS-9).
pub(super) fn is_reduced(batch: &Rows) -> bool {
    !batch.computed.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_of_more_values_than_can_be_counted_is_an_error() {
        let kind = ReduceKind::Language(Reduction::Mean);
        let mut partial = PartialReduction::new(kind);
        partial.add(kind, Value::F64(0.0), u64::MAX).unwrap();
        assert!(partial.add(kind, Value::F64(0.0), 1).unwrap_err().message().contains("mean()"));
    }
}
