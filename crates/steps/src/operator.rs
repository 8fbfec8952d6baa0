//! `Operator`: how one value is folded into another, by `sack()`, `fold()` and side effects with a reducer.
//!
//! Null folded into a value leaves the value. A value folded into null is the value with `min`, `max` and the others, and null
//! with the four of arithmetic. Numbers meet in the wider of their types,
//! with `min` and `max` too, whose result has that type whichever side it is from.

use mangrove_flow::QueryContext;
use mangrove_graph::{Error, Result, Value, compare, numeric};
use mangrove_gremlin::Operator;

use crate::row::function::put;

/// `b` folded into `a`.
pub fn apply(operator: Operator, a: &Value, b: &Value) -> Result<Value> {
    if matches!((operator, a), (Operator::Sum | Operator::Minus | Operator::Mult | Operator::Div, Value::Null)) {
        return Ok(Value::Null);
    }
    if let (Value::Null, other) | (other, Value::Null) = (a, b)
        && !matches!(operator, Operator::Assign)
    {
        return Ok(other.clone());
    }
    match operator {
        Operator::Sum => numeric::arithmetic(numeric::Operation::Add, a, b),
        Operator::Minus => numeric::arithmetic(numeric::Operation::Subtract, a, b),
        Operator::Mult => numeric::arithmetic(numeric::Operation::Multiply, a, b),
        Operator::Div => numeric::arithmetic(numeric::Operation::Divide, a, b),
        Operator::Min | Operator::Max => extreme(operator, a, b),
        Operator::Assign => Ok(b.clone()),
        Operator::And => Ok(Value::Bool(truth(operator, a)? && truth(operator, b)?)),
        Operator::Or => Ok(Value::Bool(truth(operator, a)? || truth(operator, b)?)),
        Operator::AddAll => add_all(a, b),
        Operator::SumLong => {
            let long = |value: &Value| {
                numeric::integer(value).map(Value::I64).ok_or_else(|| misfit(operator, "whole numbers", value))
            };
            numeric::arithmetic(numeric::Operation::Add, &long(a)?, &long(b)?)
        }
    }
}

/// As [`apply`], for a value that is met several times.
pub fn apply_times(operator: Operator, a: &Value, b: &Value, times: u64, context: &QueryContext) -> Result<Value> {
    match operator {
        // Once is as good as often.
        Operator::Min | Operator::Max | Operator::Assign | Operator::And | Operator::Or => apply(operator, a, b),
        Operator::Sum if !matches!(b, Value::Null) => apply(operator, a, &numeric::times(b, times)?),
        _ => {
            let mut folded = a.clone();
            for _ in 0..times {
                context.check()?;
                folded = apply(operator, &folded, b)?;
            }
            Ok(folded)
        }
    }
}

fn extreme(operator: Operator, a: &Value, b: &Value) -> Result<Value> {
    let first = match compare::order(a, b) {
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

/// A collection with the members of another one, or with one value more.
fn add_all(a: &Value, b: &Value) -> Result<Value> {
    match (a, b) {
        (Value::Map(entries), Value::Map(more)) => {
            let mut all = entries.to_vec();
            more.iter().for_each(|(key, value)| put(&mut all, key.clone(), value.clone()));
            Ok(Value::map(all))
        }
        (Value::List(_) | Value::Set(_) | Value::BulkSet(_), _) => {
            let mut all = crate::row::local::elements(a)?.unwrap_or_default();
            all.extend(crate::row::local::elements(b)?.unwrap_or_else(|| vec![b.clone()]));
            Ok(if matches!(a, Value::Set(_)) {
                Value::Set(crate::row::function::distinct(all).into())
            } else {
                Value::list(all)
            })
        }
        (other, _) => Err(misfit(Operator::AddAll, "collections", other)),
    }
}

fn misfit(operator: Operator, wanted: &str, found: &Value) -> Error {
    Error::evaluation(format!("Operator.{} folds {wanted}, and meets a {}", operator.name(), found.type_name()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(operator: Operator, a: impl Into<Value>, b: impl Into<Value>, expected: impl Into<Value>) {
        assert_eq!(apply(operator, &a.into(), &b.into()).unwrap(), expected.into());
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
        assert!(apply(Operator::AddAll, &1.into(), &2.into()).is_err());
        assert!(apply(Operator::And, &true.into(), &2.into()).is_err());
    }
}
