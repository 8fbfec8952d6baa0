//! Folding one value into another by an `Operator`, for `sack()`, `fold()` and side effects with a reducer; and the
//! error of a count that overflows.
//!
//! | case | result |
//! |---|---|
//! | null folded into a value | the value (`assign`: null) |
//! | a value folded into null | null for `sum`, `minus`, `mult`, `div`; otherwise the value |
//! | two numbers | a number in the wider of their types, also for `min` and `max` |

use std::sync::Arc;

use mangrove_graph::compare::watched;
use mangrove_graph::{Error, Result, Value, numeric};
use mangrove_gremlin::Operator;

use crate::context::type_name::a_type;
use crate::limits::meter::Meter;
use crate::values::collection::{self, Entries, distinct};

/// The error of a count that leaves its type.
pub(crate) fn too_many() -> Error {
    Error::evaluation("long overflow: count() needs more than 63 bits")
}

/// Folds `b` into `a`. A collection without another holder grows in place.
pub(crate) fn apply(operator: Operator, a: Value, b: &Value, meter: &mut Meter<'_>) -> Result<Value> {
    if matches!((operator, &a), (Operator::Sum | Operator::Minus | Operator::Mult | Operator::Div, Value::Null)) {
        return Ok(Value::Null);
    }
    if !matches!(operator, Operator::Assign) {
        match (&a, b) {
            (Value::Null, other) => return Ok(other.clone()),
            (_, Value::Null) => return Ok(a),
            _ => {}
        }
    }
    match operator {
        Operator::Sum => arithmetic(numeric::Operation::Add, &a, b, meter),
        Operator::Minus => arithmetic(numeric::Operation::Subtract, &a, b, meter),
        Operator::Mult => arithmetic(numeric::Operation::Multiply, &a, b, meter),
        Operator::Div => arithmetic(numeric::Operation::Divide, &a, b, meter),
        Operator::Min | Operator::Max => extreme(operator, &a, b),
        Operator::Assign => Ok(b.clone()),
        Operator::And => Ok(Value::Bool(truth(operator, &a)? && truth(operator, b)?)),
        Operator::Or => Ok(Value::Bool(truth(operator, &a)? || truth(operator, b)?)),
        Operator::AddAll => add_all(a, b, meter),
        Operator::SumLong => {
            let long = |value: &Value| {
                numeric::integer(value).map(Value::I64).ok_or_else(|| misfit(operator, "whole numbers", value))
            };
            numeric::arithmetic(numeric::Operation::Add, &long(&a)?, &long(b)?)
        }
    }
}

/// Returns the maximum number of bytes that a value grows by when `folded` is folded into it, besides what `folded`
/// itself holds.
pub(crate) fn growth(operator: Operator, folded: &Value) -> usize {
    match operator {
        Operator::AddAll => collection::size(folded).saturating_mul(2 * size_of::<Value>()),
        _ => 0,
    }
}

/// Computes with numbers. Numbers of many digits take time, so the limits are checked for each.
fn arithmetic(operation: numeric::Operation, a: &Value, b: &Value, meter: &mut Meter<'_>) -> Result<Value> {
    let result = numeric::arithmetic(operation, a, b)?;
    if matches!(result, Value::BigInt(_) | Value::Decimal(_)) {
        meter.charge(size_of::<Value>())?;
        meter.look()?;
    }
    Ok(result)
}

/// Folds `b` into `a` `times` times.
pub(crate) fn apply_times(operator: Operator, a: Value, b: &Value, times: u64, meter: &mut Meter<'_>) -> Result<Value> {
    match operator {
        // Idempotent.
        Operator::Min | Operator::Max | Operator::Assign | Operator::And | Operator::Or => apply(operator, a, b, meter),
        // A set or map does not take an equal member again.
        Operator::AddAll if matches!(a, Value::Map(_) | Value::Set(_)) => apply(operator, a, b, meter),
        Operator::Sum if !matches!(b, Value::Null) => apply(operator, a, &numeric::times(b, times)?, meter),
        _ => {
            let mut folded = a;
            for _ in 0..times {
                meter.pass(size_of::<Value>())?;
                folded = apply(operator, folded, b, meter)?;
            }
            Ok(folded)
        }
    }
}

fn extreme(operator: Operator, a: &Value, b: &Value) -> Result<Value> {
    let first = match watched::order(a, b) {
        std::cmp::Ordering::Greater => operator == Operator::Max,
        _ => operator == Operator::Min,
    };
    let (chosen, other) = if first { (a, b) } else { (b, a) };
    if chosen.is_number() && other.is_number() { Ok(numeric::widened(chosen, other)) } else { Ok(chosen.clone()) }
}

fn truth(operator: Operator, value: &Value) -> Result<bool> {
    match value {
        Value::Bool(truth) => Ok(*truth),
        other => Err(misfit(operator, "booleans", other)),
    }
}

/// Adds the members of a collection, or one value, to a collection.
fn add_all(a: Value, b: &Value, meter: &mut Meter<'_>) -> Result<Value> {
    match (a, b) {
        (Value::Map(entries), Value::Map(more)) => {
            let mut all = Entries::of(&entries, meter)?;
            more.iter().try_for_each(|(key, value)| all.put(key.clone(), value.clone(), meter))?;
            Ok(all.into_map())
        }
        (Value::List(members), _) => {
            let mut all = unshared(members, meter)?;
            add_members(&mut all, b, meter)?;
            Ok(Value::list(all))
        }
        (Value::Set(members), _) => {
            let mut all = unshared(members, meter)?;
            add_members(&mut all, b, meter)?;
            Ok(Value::Set(distinct(all, meter)?.into()))
        }
        (set @ Value::BulkSet(_), _) => {
            let mut all = Vec::new();
            add_members(&mut all, &set, meter)?;
            add_members(&mut all, b, meter)?;
            Ok(Value::list(all))
        }
        (other, _) => Err(misfit(Operator::AddAll, "collections", &other)),
    }
}

/// Returns the members of a collection: a copy if it has another holder.
fn unshared(members: Arc<Vec<Value>>, meter: &mut Meter<'_>) -> Result<Vec<Value>> {
    if Arc::strong_count(&members) > 1 {
        meter.charge(members.len() * size_of::<Value>())?;
    }
    Ok(Arc::unwrap_or_clone(members))
}

/// Appends the members of a collection, or a value that is no collection.
fn add_members(all: &mut Vec<Value>, more: &Value, meter: &mut Meter<'_>) -> Result<()> {
    meter.charge(collection::size(more).saturating_mul(2 * size_of::<Value>()))?;
    match collection::elements(more)? {
        Some(members) => all.extend(members),
        None => all.push(more.clone()),
    }
    Ok(())
}

fn misfit(operator: Operator, wanted: &str, found: &Value) -> Error {
    Error::evaluation(format!("Operator.{} folds {wanted}, and meets {}", operator.name(), a_type(found)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::meter::limited_control;
    use mangrove_graph::ErrorKind;

    #[track_caller]
    fn check(operator: Operator, a: impl Into<Value>, b: impl Into<Value>, expected: impl Into<Value>) {
        let control = limited_control(u64::MAX, None);
        assert_eq!(apply(operator, a.into(), &b.into(), &mut Meter::new(&control)).unwrap(), expected.into());
    }

    #[test]
    fn numbers_meet_in_the_wider_type() {
        check(Operator::Sum, 127_i8, 1_i8, 128_i16);
        check(Operator::Max, 29, 0.5, 29.0);
        check(Operator::Min, 1_i64, 2, 1_i64);
        check(Operator::Div, 2, 4.0, 0.5);
    }

    #[test]
    fn null_changes_nothing_and_is_no_sum_to_begin_with() {
        check(Operator::Sum, 3, Value::Null, 3);
        check(Operator::Sum, Value::Null, 3, Value::Null);
        check(Operator::Max, Value::Null, 3, 3);
        check(Operator::Max, 3, Value::Null, 3);
        check(Operator::Assign, 3, Value::Null, Value::Null);
    }

    #[test]
    fn collections_grow_and_nothing_else_does() {
        check(Operator::AddAll, vec![1.into()], vec![2.into()], vec![1.into(), 2.into()]);
        check(Operator::AddAll, vec![1.into()], 2, vec![1.into(), 2.into()]);
        let control = limited_control(u64::MAX, None);
        let mut meter = Meter::new(&control);
        assert!(apply(Operator::AddAll, 1.into(), &2.into(), &mut meter).is_err());
        assert!(apply(Operator::And, true.into(), &2.into(), &mut meter).is_err());
    }

    /// A list and a map of so many members.
    fn large(members: i32) -> [Value; 2] {
        let list = Value::list((0..members).map(Value::I32).collect());
        [list, Value::map((0..members).map(|n| (Value::I32(n), Value::Null)).collect())]
    }

    #[test]
    fn collections_are_charged_before_they_grow() {
        for (a, b) in large(100_000).into_iter().zip(large(100_000)) {
            let control = limited_control(1 << 20, None);
            let kept = a.clone();
            let error = apply(Operator::AddAll, a, &b, &mut Meter::new(&control)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::MemoryLimit);
            assert!(control.memory_peak() < 20 << 20, "{}", control.memory_peak());
            drop(kept);
        }
    }

    #[test]
    fn maps_and_sets_are_looked_at_in_pieces() {
        let [list, map] = large(100_000);
        let set = Value::Set(Arc::new((0..100_000).map(Value::I32).collect()));
        for (a, b) in [(map.clone(), map), (set, list)] {
            // In proportion to the members, and no more often: nothing is quadratic.
            let looks = |looks| {
                let control = limited_control(u64::MAX, Some(looks));
                apply(Operator::AddAll, a.clone(), &b, &mut Meter::new(&control)).map(drop)
            };
            assert_eq!(looks(50).unwrap_err().kind(), ErrorKind::Timeout);
            looks(2_000).unwrap();
        }
    }

    #[test]
    fn a_list_that_nothing_else_holds_grows_where_it_is() {
        let control = limited_control(u64::MAX, Some(200));
        let mut list = Value::list((0..100_000).map(Value::I32).collect());
        for n in 0..10_000 {
            list = apply(Operator::AddAll, list, &n.into(), &mut Meter::new(&control)).unwrap();
        }
        assert_eq!(collection::size(&list), 110_000);
        assert!(control.memory_peak() < 1 << 20, "{}", control.memory_peak());
    }

    #[test]
    fn a_power_of_a_big_number_has_a_limit() {
        let control = limited_control(u64::MAX, None);
        let mut meter = Meter::new(&control);
        let mut number = apply(Operator::Mult, Value::I64(i64::MAX), &Value::BigInt(Arc::new(2.into())), &mut meter);
        for _ in 0..40 {
            number = number.and_then(|n| apply(Operator::Mult, n.clone(), &n, &mut meter));
        }
        assert!(number.unwrap_err().message().contains("digits"));
    }
}
