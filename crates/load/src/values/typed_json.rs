//! One value as JSON with its type: GraphSON 3, read and written.
//!
//! Texts and truth values are plain JSON. Other values are objects such as `{"@type": "g:Int32", "@value": 7}`. Plain
//! numbers are read, too (untyped GraphSON, JSON written by hand).
//!
//! Every value that a property can hold is read back as it was written. GraphSON has no type for packed arrays of
//! floats, so there is one of our own ([`FLOAT_ARRAY`]).
//!
//! Values are written as bytes into the caller's buffer, because exporters write millions of them.

use std::io::Write;
use std::sync::Arc;

use super::temporal;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bigdecimal::BigDecimal;
use mangrove_graph::{Error, ErrorKind, Result, Value};
use num_bigint::BigInt;
use serde_json::Value as Json;
use uuid::Uuid;

/// The type name of a packed array of 32-bit floats.
const FLOAT_ARRAY: &str = "mangrove:FloatArray";

/// The error for a document that is damaged.
pub(crate) fn damaged(what: &str) -> Error {
    Error::new(ErrorKind::Syntax, format!("damaged GraphSON: {what}"))
}

/// Writes a text as a JSON string.
pub(crate) fn write_string(out: &mut Vec<u8>, text: &str) {
    serde_json::to_writer(out, text).expect("a text becomes JSON, and a buffer takes it");
}

/// Writes a value that a property can hold. For any other the error names its type.
pub(crate) fn write_value(out: &mut Vec<u8>, value: &Value) -> Result<()> {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(truth) => out.extend_from_slice(if *truth { b"true" } else { b"false" }),
        Value::String(text) => write_string(out, text),
        Value::I8(number) => number_as(out, "gx:Byte", number),
        Value::I16(number) => number_as(out, "gx:Int16", number),
        Value::I32(number) => number_as(out, "g:Int32", number),
        Value::I64(number) => number_as(out, "g:Int64", number),
        Value::BigInt(number) => number_as(out, "gx:BigInteger", number),
        Value::Decimal(number) => number_as(out, "gx:BigDecimal", number),
        Value::F32(number) if number.is_finite() => number_as(out, "g:Float", Float(format!("{number:?}"))),
        Value::F64(number) if number.is_finite() => number_as(out, "g:Double", Float(format!("{number:?}"))),
        Value::F32(number) => text_as(out, "g:Float", java_float(f64::from(*number))),
        Value::F64(number) => text_as(out, "g:Double", java_float(*number)),
        Value::Char(character) => text_as(out, "gx:Char", character.encode_utf8(&mut [0; 4])),
        Value::Bytes(bytes) => text_as(out, "gx:ByteBuffer", &BASE64_STANDARD.encode(bytes)),
        Value::Uuid(uuid) => text_as(out, "g:UUID", &uuid.to_string()),
        Value::DateTime(time) => text_as(out, "gx:OffsetDateTime", &temporal::iso_text(*time)),
        Value::Duration(length) => text_as(out, "gx:Duration", &temporal::duration_text(*length)),
        Value::List(items) => return array_as(out, "g:List", items.iter()),
        Value::Set(items) => return array_as(out, "g:Set", items.iter()),
        Value::Map(entries) => return array_as(out, "g:Map", entries.iter().flat_map(|(key, value)| [key, value])),
        Value::F32Array(items) => {
            let items: Vec<Value> = items.iter().map(|number| Value::F32(*number)).collect();
            return array_as(out, FLOAT_ARRAY, items.iter());
        }
        other => return Err(Error::unsupported(format!("a {} cannot be written to a file", other.type_name()))),
    }
    Ok(())
}

/// As [`write_value`], with longs and doubles as plain numbers, for [`read_plain_value`].
pub(crate) fn write_plain_value(out: &mut Vec<u8>, value: &Value) -> Result<()> {
    match value {
        Value::I64(number) => write!(out, "{number}").expect("a buffer takes everything"),
        Value::F64(number) if number.is_finite() => write!(out, "{number:?}").expect("a buffer takes everything"),
        other => return write_value(out, other),
    }
    Ok(())
}

/// The text of a finite float, which is a JSON number.
struct Float(String);

impl std::fmt::Display for Float {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// Java's name of a float that is not finite.
fn java_float(number: f64) -> &'static str {
    match number {
        _ if number.is_nan() => "NaN",
        _ if number > 0.0 => "Infinity",
        _ => "-Infinity",
    }
}

fn number_as(out: &mut Vec<u8>, kind: &str, number: impl std::fmt::Display) {
    write!(out, r#"{{"@type":"{kind}","@value":{number}}}"#).expect("a buffer takes everything");
}

fn text_as(out: &mut Vec<u8>, kind: &str, text: &str) {
    write!(out, r#"{{"@type":"{kind}","@value":"#).expect("a buffer takes everything");
    write_string(out, text);
    out.push(b'}');
}

fn array_as<'v>(out: &mut Vec<u8>, kind: &str, items: impl Iterator<Item = &'v Value>) -> Result<()> {
    write!(out, r#"{{"@type":"{kind}","@value":["#).expect("a buffer takes everything");
    for (at, item) in items.enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write_value(out, item)?;
    }
    out.extend_from_slice(b"]}");
    Ok(())
}

/// Reads a value, typed (`{"@type": …, "@value": …}`) or plain. A plain whole number is an int if it fits and else a
/// long; any other plain number is a double.
pub(crate) fn read_value(json: &Json) -> Result<Value> {
    Ok(match json {
        Json::Null => Value::Null,
        Json::Bool(truth) => Value::Bool(*truth),
        Json::String(text) => Value::string(text.as_str()),
        Json::Number(number) => plain_number(number)?,
        Json::Array(items) => Value::list(items.iter().map(read_value).collect::<Result<_>>()?),
        Json::Object(object) => match (object.get("@type"), object.get("@value")) {
            (Some(Json::String(kind)), value) => typed(kind, value.unwrap_or(&Json::Null))?,
            _ => {
                let entries = object.iter().map(|(key, value)| Ok((Value::string(key.as_str()), read_value(value)?)));
                Value::map(entries.collect::<Result<_>>()?)
            }
        },
    })
}

/// As [`read_value`], but a plain whole number is a long, as in the JSON lines that an export writes.
pub(crate) fn read_plain_value(json: &Json) -> Result<Value> {
    match json {
        Json::Number(number) => Ok(number.as_i64().map_or(plain_number(number)?, Value::I64)),
        other => read_value(other),
    }
}

fn plain_number(number: &serde_json::Number) -> Result<Value> {
    if let Some(whole) = number.as_i64() {
        return Ok(i32::try_from(whole).map_or(Value::I64(whole), Value::I32));
    }
    let real = number.as_f64().filter(|real| real.is_finite());
    real.map(Value::F64).ok_or_else(|| damaged(&format!("{number} is not a double")))
}

fn typed(kind: &str, json: &Json) -> Result<Value> {
    let text = match json {
        Json::String(text) => text.clone(),
        Json::Number(number) => number.to_string(),
        _ => String::new(),
    };
    let value = match kind {
        "g:Int32" => text.parse().ok().map(Value::I32),
        "g:Int64" => text.parse().ok().map(Value::I64),
        // Rust reads Java's names of floats that are not finite (`NaN`, `Infinity`).
        "g:Float" => text.parse().ok().map(Value::F32),
        "g:Double" => text.parse().ok().map(Value::F64),
        "gx:Byte" => text.parse().ok().map(Value::I8),
        "gx:Int16" => text.parse().ok().map(Value::I16),
        "gx:BigInteger" => text.parse::<BigInt>().ok().map(|number| Value::BigInt(Arc::new(number))),
        "gx:BigDecimal" => text.parse::<BigDecimal>().ok().map(|number| Value::Decimal(Arc::new(number))),
        "gx:ByteBuffer" => BASE64_STANDARD.decode(&text).ok().map(|bytes| Value::Bytes(bytes.into())),
        "gx:Char" => text.parse().ok().map(Value::Char),
        "g:UUID" => Uuid::try_parse(&text).ok().map(Value::Uuid),
        "g:Date" | "g:Timestamp" => {
            text.parse().ok().map(|millis| Value::DateTime(mangrove_graph::DateTime::from_epoch_millis(millis)))
        }
        "gx:OffsetDateTime" | "gx:Instant" | "gx:LocalDate" | "gx:LocalDateTime" | "gx:ZonedDateTime" => {
            temporal::iso(&text).map(Value::DateTime)
        }
        "gx:Duration" => temporal::duration(&text).map(Value::Duration),
        "g:List" | "g:Set" | "g:Map" | FLOAT_ARRAY => return collection(kind, json),
        _ => return Err(damaged(&format!("the type {kind} cannot be stored in a property"))),
    };
    value.ok_or_else(|| damaged(&format!("{json} is not of the type {kind}")))
}

fn collection(kind: &str, json: &Json) -> Result<Value> {
    let items = json.as_array().ok_or_else(|| damaged(&format!("a {kind} is not a list")))?;
    let values = items.iter().map(read_value).collect::<Result<Vec<_>>>()?;
    if kind == "g:List" {
        return Ok(Value::list(values));
    }
    if kind == "g:Set" {
        let mut distinct: Vec<Value> = Vec::with_capacity(values.len());
        for value in values {
            if !distinct.iter().any(|other| mangrove_graph::compare::equivalent(other, &value)) {
                distinct.push(value);
            }
        }
        return Ok(Value::Set(Arc::new(distinct)));
    }
    if kind == FLOAT_ARRAY {
        let number = |value: &Value| if let Value::F32(number) = value { Some(*number) } else { None };
        let numbers: Option<Vec<f32>> = values.iter().map(number).collect();
        let numbers = numbers.ok_or_else(|| damaged(&format!("a {kind} holds something other than a g:Float")))?;
        return Ok(Value::F32Array(numbers.into()));
    }
    if values.len() % 2 != 0 {
        return Err(damaged("a g:Map has a key without a value"));
    }
    let mut values = values.into_iter();
    let entries = std::iter::from_fn(|| Some((values.next()?, values.next()?))).collect();
    Ok(Value::map(entries))
}
