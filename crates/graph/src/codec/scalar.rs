//! The scalar values of Gremlin as bytes: all values that a property may hold and that contain no other value.

use std::sync::Arc;

use bigdecimal::BigDecimal;
use num_bigint::BigInt;
use uuid::Uuid;

use super::{Malformed, Reader, put_bytes, put_signed, put_text, put_varint};
use crate::{DateTime, Duration, Value};

// GRAPH-9: these numbers are in files.
const FALSE: u8 = 1;
const TRUE: u8 = 2;
const I8: u8 = 3;
const I16: u8 = 4;
const I32: u8 = 5;
const I64: u8 = 6;
const BIG_INT: u8 = 7;
const F32: u8 = 8;
const F64: u8 = 9;
const DECIMAL: u8 = 10;
const CHAR: u8 = 11;
const STRING: u8 = 12;
const BYTES: u8 = 13;
const UUID: u8 = 14;
const DATE_TIME: u8 = 15;
const DURATION: u8 = 16;
const F32_ARRAY: u8 = 20;

/// Returns true if the surrounding format may use a tag for something that is no scalar.
pub const fn is_free(tag: u8) -> bool {
    !matches!(tag, FALSE..=DURATION | F32_ARRAY)
}

/// Appends a scalar with its tag and returns true. If the value is no scalar, appends nothing and returns false.
pub fn put_scalar(value: &Value, out: &mut Vec<u8>) -> bool {
    match value {
        Value::Bool(v) => out.push(if *v { TRUE } else { FALSE }),
        Value::I8(v) => put_integer(I8, i64::from(*v), out),
        Value::I16(v) => put_integer(I16, i64::from(*v), out),
        Value::I32(v) => put_integer(I32, i64::from(*v), out),
        Value::I64(v) => put_integer(I64, *v, out),
        Value::BigInt(v) => {
            out.push(BIG_INT);
            put_bytes(&v.to_signed_bytes_le(), out);
        }
        Value::F32(v) => put_fixed(F32, &v.to_bits().to_le_bytes(), out),
        Value::F64(v) => put_fixed(F64, &v.to_bits().to_le_bytes(), out),
        Value::Decimal(v) => {
            let (digits, exponent) = v.as_bigint_and_exponent();
            put_integer(DECIMAL, exponent, out);
            put_bytes(&digits.to_signed_bytes_le(), out);
        }
        Value::Char(v) => {
            out.push(CHAR);
            put_varint(u64::from(*v), out);
        }
        Value::String(v) => {
            out.push(STRING);
            put_text(v, out);
        }
        Value::Bytes(v) => {
            out.push(BYTES);
            put_bytes(v, out);
        }
        Value::Uuid(v) => put_fixed(UUID, v.as_bytes(), out),
        Value::DateTime(v) => {
            put_integer(DATE_TIME, v.seconds, out);
            put_varint(u64::from(v.nanos), out);
            put_signed(i64::from(v.offset_seconds), out);
        }
        Value::Duration(v) => {
            put_integer(DURATION, v.seconds, out);
            put_varint(u64::from(v.nanos), out);
        }
        Value::F32Array(v) => {
            out.push(F32_ARRAY);
            put_varint(v.len() as u64, out);
            v.iter().for_each(|n| out.extend_from_slice(&n.to_bits().to_le_bytes()));
        }
        _ => return false,
    }
    true
}

fn put_integer(tag: u8, n: i64, out: &mut Vec<u8>) {
    out.push(tag);
    put_signed(n, out);
}

fn put_fixed(tag: u8, bytes: &[u8], out: &mut Vec<u8>) {
    out.push(tag);
    out.extend_from_slice(bytes);
}

/// Reads the scalar whose tag was just read; `None` if the tag is free.
pub fn read_scalar(tag: u8, reader: &mut Reader<'_>) -> Result<Option<Value>, Malformed> {
    Ok(Some(match tag {
        FALSE => Value::Bool(false),
        TRUE => Value::Bool(true),
        I8 => Value::I8(read_narrow(reader)?),
        I16 => Value::I16(read_narrow(reader)?),
        I32 => Value::I32(read_narrow(reader)?),
        I64 => Value::I64(reader.signed()?),
        BIG_INT => Value::BigInt(Arc::new(BigInt::from_signed_bytes_le(reader.bytes()?))),
        F32 => Value::F32(f32::from_bits(reader.u32()?)),
        F64 => Value::F64(f64::from_bits(reader.u64()?)),
        DECIMAL => {
            let exponent = reader.signed()?;
            let digits = BigInt::from_signed_bytes_le(reader.bytes()?);
            Value::Decimal(Arc::new(BigDecimal::new(digits, exponent)))
        }
        CHAR => {
            let at = reader.malformed("a character that is none");
            Value::Char(char::from_u32(reader.varint_u32()?).ok_or(at)?)
        }
        STRING => Value::String(reader.text()?.into()),
        BYTES => Value::Bytes(reader.bytes()?.into()),
        UUID => Value::Uuid(Uuid::from_bytes(reader.array()?)),
        DATE_TIME => Value::DateTime(DateTime {
            seconds: reader.signed()?,
            nanos: read_nanos(reader)?,
            offset_seconds: read_narrow(reader)?,
        }),
        DURATION => Value::Duration(Duration { seconds: reader.signed()?, nanos: read_nanos(reader)? }),
        F32_ARRAY => {
            let count = reader.count()?;
            Value::F32Array(reader.repeat(count, |reader| reader.u32().map(f32::from_bits))?.into())
        }
        _ => return Ok(None),
    }))
}

fn read_narrow<T: TryFrom<i64>>(reader: &mut Reader<'_>) -> Result<T, Malformed> {
    let at = reader.malformed("an integer too large for its type");
    T::try_from(reader.signed()?).map_err(|_| at)
}

fn read_nanos(reader: &mut Reader<'_>) -> Result<u32, Malformed> {
    let at = reader.malformed("more nanoseconds than a second has");
    reader.varint_u32().and_then(|nanos| if nanos < 1_000_000_000 { Ok(nanos) } else { Err(at) })
}
