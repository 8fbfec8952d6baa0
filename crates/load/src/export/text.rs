//! Values as the text of a field, in the form that [`crate::values::ColumnType::parse`] reads.

use std::io::Write;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use mangrove_graph::{PropertyRow, Result, Value};

use super::kind::{ColumnKind, ColumnShape, Scalar};
use crate::values::{temporal, write_string, write_value};

/// Writes the values under one key of one element. `kind` is their kind.
pub(crate) fn write_values(out: &mut Vec<u8>, kind: ColumnKind, values: &[PropertyRow]) -> Result<()> {
    match (kind.shape, &values[0].value) {
        (ColumnShape::One, value) => write_scalar(out, kind.scalar, value),
        (ColumnShape::List, Value::List(items)) => write_items(out, kind.scalar, items.iter()),
        _ => write_items(out, kind.scalar, values.iter().map(|property| &property.value)),
    }
}

/// Writes a list in brackets. Texts in it are JSON strings, so that they may hold commas and brackets.
fn write_items<'v>(out: &mut Vec<u8>, scalar: Scalar, items: impl Iterator<Item = &'v Value>) -> Result<()> {
    out.push(b'[');
    for (at, item) in items.enumerate() {
        if at > 0 {
            out.push(b',');
        }
        match item {
            Value::String(text) if scalar != Scalar::Any => write_string(out, text),
            // An empty value of bytes has no text, so it needs quotes.
            Value::Bytes(bytes) if scalar != Scalar::Any => write_string(out, &BASE64_STANDARD.encode(bytes)),
            Value::Char(character) if scalar != Scalar::Any => write_string(out, character.encode_utf8(&mut [0; 4])),
            item => write_scalar(out, scalar, item)?,
        }
    }
    out.push(b']');
    Ok(())
}

/// Writes one value.
pub(crate) fn write_scalar(out: &mut Vec<u8>, scalar: Scalar, value: &Value) -> Result<()> {
    let taken = "a buffer takes everything";
    match value {
        _ if scalar == Scalar::Any => return write_value(out, value),
        Value::String(text) => out.extend_from_slice(text.as_bytes()),
        Value::Bool(truth) => write!(out, "{truth}").expect(taken),
        Value::I8(number) => write!(out, "{number}").expect(taken),
        Value::I16(number) => write!(out, "{number}").expect(taken),
        Value::I32(number) => write!(out, "{number}").expect(taken),
        Value::I64(number) => write!(out, "{number}").expect(taken),
        Value::BigInt(number) => write!(out, "{number}").expect(taken),
        Value::Decimal(number) => write!(out, "{number}").expect(taken),
        Value::F32(number) => write!(out, "{number:?}").expect(taken),
        Value::F64(number) => write!(out, "{number:?}").expect(taken),
        Value::Char(character) => write!(out, "{character}").expect(taken),
        Value::Uuid(uuid) => write!(out, "{uuid}").expect(taken),
        Value::Bytes(bytes) => out.extend_from_slice(BASE64_STANDARD.encode(bytes).as_bytes()),
        Value::DateTime(time) => out.extend_from_slice(temporal::iso_text(*time).as_bytes()),
        Value::Duration(length) => out.extend_from_slice(temporal::duration_text(*length).as_bytes()),
        other => return write_value(out, other),
    }
    Ok(())
}

/// The text of one value.
pub(crate) fn scalar_text(value: &Value) -> String {
    let mut out = Vec::new();
    // A value that cannot be written has an empty text.
    let _ = write_scalar(&mut out, Scalar::of(value), value);
    String::from_utf8_lossy(&out).into_owned()
}
