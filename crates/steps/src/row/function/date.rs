//! Functions of dates: `asDate()`, `dateAdd()`, `dateDiff()`. None reads the clock.

use mangrove_graph::{DateTime, Error, Result, Value, numeric};
use mangrove_plan::function::DateUnit;

use super::{ArgumentValue, class};
use crate::context::type_name::a_type;

/// Converts a text in ISO 8601, or milliseconds since 1970, to a date.
pub(super) fn to_date(object: &Value) -> Result<Value> {
    let date = match object {
        Value::DateTime(date) => Some(*date),
        Value::String(text) => DateTime::parse(text),
        Value::BigInt(millis) => i64::try_from(&**millis).ok().map(DateTime::from_epoch_millis),
        number => numeric::integer(number).map(DateTime::from_epoch_millis),
    };
    date.map(Value::DateTime).ok_or_else(|| {
        Error::evaluation(match object {
            Value::Null => "Can't parse null as OffsetDateTime.".to_owned(),
            Value::String(text) => {
                format!("Can't parse {text} as OffsetDateTime; write ISO 8601, such as 2020-01-31T12:00:00Z")
            }
            other => format!("Can't parse type {} as OffsetDateTime.", class(other)),
        })
    })
}

/// Adds the given number of units to a date.
pub(super) fn add(object: &Value, unit: DateUnit, given: &[ArgumentValue<'_>]) -> Result<Value> {
    let date = needed(object, "dateAdd")?;
    let number = given.first().and_then(|given| given.value()).and_then(numeric::integer);
    let number = number.ok_or_else(|| Error::invalid("dateAdd() takes a whole number"))?;
    let seconds = number.checked_mul(unit.seconds()).and_then(|more| date.seconds.checked_add(more));
    let seconds = seconds.ok_or_else(|| Error::evaluation("long overflow: dateAdd() leaves the range of dates"))?;
    Ok(Value::DateTime(DateTime { seconds, ..date }))
}

/// Returns the milliseconds between a date and the argument; null stands for 1970.
pub(super) fn difference(object: &Value, given: &[ArgumentValue<'_>]) -> Result<Value> {
    let date = needed(object, "dateDiff")?;
    let other = match given.first().and_then(|given| given.value()) {
        None | Some(Value::Null) => DateTime::from_epoch_millis(0),
        Some(other) => needed(other, "dateDiff")?,
    };
    let nanos = |date: DateTime| i128::from(date.seconds) * 1_000_000_000 + i128::from(date.nanos);
    // A part of a millisecond is cut off, on either side of zero.
    let difference = i64::try_from((nanos(date) - nanos(other)) / 1_000_000).ok();
    difference.map(Value::I64).ok_or_else(|| Error::evaluation("long overflow: the dates lie too far apart"))
}

/// Returns the date that a value is. Fails for any other value; the error names the step.
fn needed(value: &Value, step: &str) -> Result<DateTime> {
    match value {
        Value::DateTime(date) => Ok(*date),
        other => {
            Err(Error::evaluation(format!("{step}() needs a date; here is {}: asDate() makes one", a_type(other))))
        }
    }
}
