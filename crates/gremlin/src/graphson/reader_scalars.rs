//! Reading GraphSON: values without parts.
//!
//! Numbers are converted from their text, so none loses digits. A client that cannot write a number (not a number,
//! infinity, in JavaScript integers beyond 53 bits) writes a string; both are read.

use std::str::FromStr;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bigdecimal::BigDecimal;
use mangrove_graph::{DateTime, Result, Value};
use num_bigint::BigInt;
use uuid::Uuid;

use super::json::{Json, JsonKind, text};
use super::moment;
use crate::limits::{DECIMAL_SCALE_MAX, NUMBER_LENGTH_MAX};

/// The value of a type without parts; `None` if the type is another.
pub(super) fn scalar(type_name: &str, content: &Json<'_>) -> Result<Option<Value>> {
    if !type_name.starts_with('g') {
        return Ok(None);
    }
    Ok(Some(match type_name {
        "g:Int32" => Value::I32(whole(content, "an int (32 bits)")?),
        "g:Int64" => Value::I64(whole(content, "a long (64 bits)")?),
        "gx:Int16" => Value::I16(whole(content, "a short (16 bits)")?),
        "gx:Byte" => Value::I8(whole(content, "a byte (-128 to 127)")?),
        "gx:BigInteger" => Value::BigInt(Arc::new(whole(content, "a whole number")?)),
        "g:Float" => Value::F32(float(content, f32::is_infinite)?),
        "g:Double" => Value::F64(float(content, f64::is_infinite)?),
        "gx:BigDecimal" => decimal(content, digits(content)?)?,
        "g:UUID" => Value::Uuid(parsed(content, "a UUID", |text| Uuid::parse_str(text).ok())?),
        "gx:Char" => Value::Char(parsed(content, "one character", |text| {
            let mut characters = text.chars();
            characters.next().filter(|_| characters.next().is_none())
        })?),
        "gx:ByteBuffer" => Value::Bytes(parsed(content, "bytes in base64", |text| STANDARD.decode(text).ok())?.into()),
        "g:Date" | "g:Timestamp" => {
            Value::DateTime(DateTime::from_epoch_millis(whole(content, "milliseconds since 1970")?))
        }
        "gx:Instant" | "gx:OffsetDateTime" | "gx:ZonedDateTime" => {
            Value::DateTime(parsed(content, "a date and time in ISO 8601", moment::read)?)
        }
        "gx:Duration" => Value::Duration(parsed(content, "a length of time in ISO 8601", moment::read_duration)?),
        "g:String" => Value::string(text(content)?),
        "g:Boolean" => match content.kind {
            JsonKind::Bool(value) => Value::Bool(value),
            _ => return Err(content.malformed(&format!("{} in place of a boolean", content.kind_name()))),
        },
        _ => return Ok(None),
    }))
}

/// A number without a type: an int, a long or a big integer by its size; a double if it has a fraction or an exponent.
pub(super) fn untyped_number(json: &Json<'_>, text: &str) -> Result<Value> {
    check_length(json, text)?;
    if text.contains(['.', 'e', 'E']) {
        return float(json, f64::is_infinite).map(Value::F64);
    }
    if let Ok(n) = text.parse() {
        return Ok(Value::I32(n));
    }
    match text.parse() {
        Ok(n) => Ok(Value::I64(n)),
        Err(_) => Ok(Value::BigInt(Arc::new(whole::<BigInt>(json, "a whole number")?))),
    }
}

/// The text of a number, which may be in a string.
fn digits<'j>(json: &'j Json<'_>) -> Result<&'j str> {
    let digits = match &json.kind {
        JsonKind::Number(digits) => digits,
        JsonKind::String(digits) => digits.as_ref(),
        _ => return Err(json.malformed(&format!("{} in place of a number", json.kind_name()))),
    };
    check_length(json, digits)?;
    Ok(digits)
}

fn check_length(json: &Json<'_>, digits: &str) -> Result<()> {
    match digits.len() <= NUMBER_LENGTH_MAX {
        true => Ok(()),
        false => {
            Err(json
                .malformed(&format!("a number has {} characters; at most {NUMBER_LENGTH_MAX} are read", digits.len())))
        }
    }
}

fn whole<T: FromStr>(json: &Json<'_>, what: &str) -> Result<T> {
    digits(json)?.parse().map_err(|_| json.malformed(&format!("this is not {what}")))
}

fn float<T: FromStr + Copy>(json: &Json<'_>, is_infinite: fn(T) -> bool) -> Result<T> {
    let digits = digits(json)?;
    // Rust would also read other words.
    let word = matches!(digits, "NaN" | "Infinity" | "-Infinity");
    let plain = digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E'));
    match digits.parse::<T>() {
        Ok(n) if word || (plain && !is_infinite(n)) => Ok(n),
        Ok(_) if plain => Err(json.malformed("this number is too large for its type; send it as a gx:BigDecimal")),
        _ => Err(json.malformed("this is no number")),
    }
}

fn decimal(json: &Json<'_>, digits: &str) -> Result<Value> {
    let number = BigDecimal::from_str(digits).map_err(|_| json.malformed("this is no decimal"))?;
    let (_, scale) = number.as_bigint_and_exponent();
    if scale.unsigned_abs() > DECIMAL_SCALE_MAX.unsigned_abs() {
        return Err(json.malformed(&format!("the scale of a decimal must lie within ±{DECIMAL_SCALE_MAX}")));
    }
    Ok(Value::Decimal(Arc::new(number)))
}

fn parsed<T>(json: &Json<'_>, what: &str, parse: impl Fn(&str) -> Option<T>) -> Result<T> {
    parse(text(json)?).ok_or_else(|| json.malformed(&format!("this is not {what}")))
}
