//! Conversions and dates: `asString`, `asNumber`, `asBool`, `asDate`, `dateAdd`, `dateDiff`.

use mangrove_graph::numeric::{integer, to_f64};
use mangrove_graph::{DateTime, Value};
use mangrove_gremlin::Argument;

use super::step::{Step, number};
use super::{Outcome, unsupported, wrong};

/// A value as text: numbers as Java writes them, with an exponent below 0.001 and from 10,000,000 on.
pub(crate) fn text_of(value: &Value) -> Outcome<String> {
    Ok(match value {
        Value::String(text) => text.to_string(),
        Value::Bool(truth) => truth.to_string(),
        Value::F32(number) => with_exponent(f64::from(*number), format!("{number:?}"), format!("{number:E}")),
        Value::F64(number) => with_exponent(*number, format!("{number:?}"), format!("{number:E}")),
        Value::Null => return wrong("null has no text"),
        // As Java writes it: seconds are left out if they are zero.
        Value::DateTime(moment) => moment.to_string().replacen(":00Z", "Z", 1),
        other => match integer(other) {
            Some(number) => number.to_string(),
            None => return unsupported(format!("the text of a {}", other.type_name())),
        },
    })
}

fn with_exponent(number: f64, plain: String, scientific: String) -> String {
    if number.is_infinite() {
        return if number > 0.0 { "Infinity".into() } else { "-Infinity".into() };
    }
    if number == 0.0 || number.is_nan() || (1e-3..1e7).contains(&number.abs()) {
        return plain;
    }
    if scientific.contains('.') { scientific } else { scientific.replacen('E', ".0E", 1) }
}

/// `asNumber()` and `asNumber(type)`: fractions are truncated; a number out of range is an error.
pub(crate) fn as_number(step: &Step<'_>, value: &Value) -> Outcome<Option<Value>> {
    let parsed = match value {
        Value::Null => return Ok(Some(Value::Null)),
        Value::String(text) => match (text.parse::<i32>(), text.parse::<i64>(), text.parse::<f64>()) {
            (Ok(number), _, _) => Value::I32(number),
            (_, Ok(number), _) => Value::I64(number),
            (_, _, Ok(number)) if text.starts_with(|c: char| c.is_ascii_digit() || c == '-') => {
                // The narrowest type in which the number is written the same way.
                let single = number as f32;
                if format!("{single:e}") == format!("{number:e}") { Value::F32(single) } else { Value::F64(number) }
            }
            _ => return wrong(format!("{text} is no number")),
        },
        other if to_f64(other).is_some() => other.clone(),
        other => return wrong(format!("a {} is no number", other.type_name())),
    };
    let Some(argument) = step.arguments.first() else { return Ok(Some(parsed)) };
    let Argument::Type(name) = argument else { return unsupported(format!("asNumber({argument:?})")) };
    let whole = || match (integer(&parsed), to_f64(&parsed)) {
        (Some(number), _) => Ok(number),
        (None, Some(number)) if number.is_finite() => Ok(number.trunc() as i64),
        _ => wrong("no whole number is as large"),
    };
    let fits = |made: Option<Value>| match made {
        Some(made) => Ok(Some(made)),
        None => wrong(format!("the number does not fit into {name}")),
    };
    match name.as_str() {
        "BYTE" => fits(i8::try_from(whole()?).ok().map(Value::I8)),
        "SHORT" => fits(i16::try_from(whole()?).ok().map(Value::I16)),
        "INT" => fits(i32::try_from(whole()?).ok().map(Value::I32)),
        "LONG" => Ok(Some(Value::I64(whole()?))),
        "FLOAT" => Ok(to_f64(&parsed).map(|number| Value::F32(number as f32))),
        "DOUBLE" => Ok(to_f64(&parsed).map(Value::F64)),
        other => unsupported(format!("asNumber({other})")),
    }
}

/// `asBool()`
pub(crate) fn as_bool(value: &Value) -> Outcome<Option<Value>> {
    let truth = match value {
        Value::Bool(truth) => *truth,
        Value::String(text) if text.eq_ignore_ascii_case("true") => true,
        Value::String(text) if text.eq_ignore_ascii_case("false") => false,
        other => match to_f64(other) {
            Some(number) => number != 0.0 && !number.is_nan(),
            None => return wrong(format!("a {} is neither true nor false", other.type_name())),
        },
    };
    Ok(Some(Value::Bool(truth)))
}

/// `asDate()`: ISO text, or milliseconds since 1970.
pub(crate) fn as_date(value: &Value) -> Outcome<Option<Value>> {
    let date = match value {
        Value::DateTime(date) => Some(*date),
        Value::String(text) => DateTime::parse(text),
        other => integer(other).map(DateTime::from_epoch_millis),
    };
    match date {
        Some(date) => Ok(Some(Value::DateTime(date))),
        None => wrong(format!("a {} is no date", value.type_name())),
    }
}

/// `dateAdd(unit, number)`
pub(crate) fn date_add(step: &Step<'_>, value: &Value) -> Outcome<Option<Value>> {
    let [Argument::DateUnit(unit), count] = step.arguments else { return unsupported("dateAdd() like this") };
    let seconds = match unit.as_str() {
        "second" => 1,
        "minute" => 60,
        "hour" => 3_600,
        _ => 86_400,
    };
    let Value::DateTime(date) = value else { return wrong(format!("a {} is no date", value.type_name())) };
    Ok(Some(Value::DateTime(DateTime { seconds: date.seconds + number(count)? * seconds, ..*date })))
}

/// `dateDiff(date)`: milliseconds from the argument to the object.
pub(crate) fn date_difference(value: &Value, other: &Value) -> Outcome<Option<Value>> {
    let millis = |value: &Value| match value {
        Value::DateTime(date) => Ok(date.epoch_millis().unwrap_or(i64::MAX)),
        other => wrong(format!("a {} is no date", other.type_name())),
    };
    Ok(Some(Value::I64(millis(value)? - millis(other)?)))
}
