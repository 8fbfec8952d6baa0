//! Values, ids and what a cell holds.

use std::sync::Arc;

use bigdecimal::BigDecimal;
use mangrove_graph::ids::IntId;
use mangrove_graph::{DateTime, Duration, KeyId, UserId, Value};
use mangrove_store::{Content, MultiProperty, MultiValue};
use num_bigint::BigInt;
use uuid::Uuid;

use super::bytes::{Malformed, Reader, put_bytes, put_signed, put_text, put_varint};

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
const LIST: u8 = 17;
const SET: u8 = 18;
const MAP: u8 = 19;
const F32_ARRAY: u8 = 20;
/// In place of a value: a key has none, or several (see [`put_content`]).
const ABSENT: u8 = 0;
const MULTI: u8 = 32;

const ID_INT: u8 = 1;
const ID_NARROW_INT: u8 = 2;
const ID_STRING: u8 = 3;
const ID_UUID: u8 = 4;

/// Appends a value. It must be storable ([`Value::is_storable`]), as everything in the store is.
pub fn put_value(value: &Value, out: &mut Vec<u8>) {
    let mut signed = |tag: u8, n: i64| {
        out.push(tag);
        put_signed(n, out);
    };
    match value {
        Value::Bool(v) => out.push(if *v { TRUE } else { FALSE }),
        Value::I8(v) => signed(I8, i64::from(*v)),
        Value::I16(v) => signed(I16, i64::from(*v)),
        Value::I32(v) => signed(I32, i64::from(*v)),
        Value::I64(v) => signed(I64, *v),
        Value::BigInt(v) => {
            out.push(BIG_INT);
            put_bytes(&v.to_signed_bytes_le(), out);
        }
        Value::F32(v) => {
            out.push(F32);
            out.extend_from_slice(&v.to_bits().to_le_bytes());
        }
        Value::F64(v) => {
            out.push(F64);
            out.extend_from_slice(&v.to_bits().to_le_bytes());
        }
        Value::Decimal(v) => {
            let (digits, exponent) = v.as_bigint_and_exponent();
            signed(DECIMAL, exponent);
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
        Value::Uuid(v) => {
            out.push(UUID);
            out.extend_from_slice(v.as_bytes());
        }
        Value::DateTime(v) => {
            signed(DATE_TIME, v.seconds);
            put_varint(u64::from(v.nanos), out);
            put_signed(i64::from(v.offset_seconds), out);
        }
        Value::Duration(v) => {
            signed(DURATION, v.seconds);
            put_varint(u64::from(v.nanos), out);
        }
        Value::List(v) => put_values(LIST, v, out),
        Value::Set(v) => put_values(SET, v, out),
        Value::Map(v) => {
            out.push(MAP);
            put_varint(v.len() as u64, out);
            for (key, value) in v.iter() {
                put_value(key, out);
                put_value(value, out);
            }
        }
        Value::F32Array(v) => {
            out.push(F32_ARRAY);
            put_varint(v.len() as u64, out);
            v.iter().for_each(|n| out.extend_from_slice(&n.to_bits().to_le_bytes()));
        }
        other => unreachable!("the store holds no {}", other.type_name()),
    }
}

fn put_values(tag: u8, values: &[Value], out: &mut Vec<u8>) {
    out.push(tag);
    put_varint(values.len() as u64, out);
    values.iter().for_each(|value| put_value(value, out));
}

/// Reads a value.
pub fn read_value(reader: &mut Reader<'_>) -> Result<Value, Malformed> {
    read_nested(reader, 0)
}

fn read_nested(reader: &mut Reader<'_>, depth: u32) -> Result<Value, Malformed> {
    if depth > Value::NESTING_MAX {
        return Err(reader.malformed("collections nested too deep"));
    }
    let at = reader.malformed("a value of an unknown kind");
    Ok(match reader.byte()? {
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
        LIST => Value::List(Arc::new(read_values(reader, depth)?)),
        SET => Value::Set(Arc::new(read_values(reader, depth)?)),
        MAP => {
            let count = reader.count()?;
            let entries = (0..count).map(|_| Ok((read_nested(reader, depth + 1)?, read_nested(reader, depth + 1)?)));
            Value::Map(Arc::new(entries.collect::<Result<_, Malformed>>()?))
        }
        F32_ARRAY => {
            let count = reader.count()?;
            let numbers = (0..count).map(|_| Ok(f32::from_bits(reader.u32()?)));
            Value::F32Array(numbers.collect::<Result<Vec<_>, Malformed>>()?.into())
        }
        _ => return Err(at),
    })
}

fn read_values(reader: &mut Reader<'_>, depth: u32) -> Result<Vec<Value>, Malformed> {
    let count = reader.count()?;
    (0..count).map(|_| read_nested(reader, depth + 1)).collect()
}

fn read_narrow<T: TryFrom<i64>>(reader: &mut Reader<'_>) -> Result<T, Malformed> {
    let at = reader.malformed("an integer too large for its type");
    T::try_from(reader.signed()?).map_err(|_| at)
}

fn read_nanos(reader: &mut Reader<'_>) -> Result<u32, Malformed> {
    let at = reader.malformed("more nanoseconds than a second has");
    reader.varint_u32().and_then(|nanos| if nanos < 1_000_000_000 { Ok(nanos) } else { Err(at) })
}

/// Appends what an element has under a key: nothing, a value, or several with ordinals and meta-properties.
pub fn put_content(content: &Content, out: &mut Vec<u8>) {
    match content {
        Content::Absent => out.push(ABSENT),
        Content::One(value) => put_value(value, out),
        Content::Multi(multi) => {
            out.push(MULTI);
            put_varint(multi.values.len() as u64, out);
            for one in &multi.values {
                put_varint(u64::from(one.ordinal), out);
                put_value(&one.value, out);
                put_varint(one.meta.len() as u64, out);
                for (key, value) in one.meta.iter() {
                    put_varint(u64::from(key.0), out);
                    put_value(value, out);
                }
            }
        }
    }
}

/// Reads what [`put_content`] has written.
pub fn read_content(reader: &mut Reader<'_>) -> Result<Content, Malformed> {
    let mut ahead = reader.clone();
    match ahead.byte()? {
        ABSENT => {
            *reader = ahead;
            Ok(Content::Absent)
        }
        MULTI => {
            *reader = ahead;
            let count = reader.count()?;
            let values = (0..count).map(|_| read_multi_value(reader)).collect::<Result<_, _>>()?;
            Ok(Content::Multi(Arc::new(MultiProperty { values })))
        }
        _ => Ok(Content::One(read_value(reader)?)),
    }
}

fn read_multi_value(reader: &mut Reader<'_>) -> Result<MultiValue, Malformed> {
    let ordinal = reader.varint_u32()?;
    let value = read_value(reader)?;
    let count = reader.count()?;
    let meta = (0..count).map(|_| Ok((KeyId(reader.varint_u32()?), read_value(reader)?)));
    Ok(MultiValue { ordinal, value, meta: Arc::new(meta.collect::<Result<_, Malformed>>()?) })
}

/// Appends an id that a user chose.
pub fn put_user_id(id: &UserId, out: &mut Vec<u8>) {
    match id {
        UserId::Int(IntId { number, narrow }) => {
            out.push(if *narrow { ID_NARROW_INT } else { ID_INT });
            put_signed(*number, out);
        }
        UserId::String(text) => {
            out.push(ID_STRING);
            put_text(text, out);
        }
        UserId::Uuid(uuid) => {
            out.push(ID_UUID);
            out.extend_from_slice(uuid.as_bytes());
        }
    }
}

/// Reads an id that a user chose.
pub fn read_user_id(reader: &mut Reader<'_>) -> Result<UserId, Malformed> {
    let at = reader.malformed("an id of an unknown kind");
    Ok(match reader.byte()? {
        tag @ (ID_INT | ID_NARROW_INT) => UserId::Int(IntId { number: reader.signed()?, narrow: tag == ID_NARROW_INT }),
        ID_STRING => UserId::String(reader.text()?.into()),
        ID_UUID => UserId::Uuid(Uuid::from_bytes(reader.array()?)),
        _ => return Err(at),
    })
}
