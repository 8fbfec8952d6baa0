//! Values, user ids and the content under a property key as bytes.
//!
//! [`mangrove_graph::codec`] has the bytes of scalars. This module adds lists, sets and maps, absence, and several
//! values under one key.

use std::sync::Arc;

use mangrove_graph::codec::{Malformed, Reader, put_scalar, put_signed, put_text, put_varint, read_scalar, scalar};
use mangrove_graph::{IntId, KeyId, UserId, Value};
use mangrove_store::{Content, MultiProperty, MultiValue};
use uuid::Uuid;

const LIST: u8 = 17;
const SET: u8 = 18;
const MAP: u8 = 19;
/// In place of the tag of a value: the key has no value, or several ([`put_content`]).
const ABSENT: u8 = 0;
const MULTI: u8 = 32;
const _: () = assert!(
    scalar::is_free(LIST)
        && scalar::is_free(SET)
        && scalar::is_free(MAP)
        && scalar::is_free(ABSENT)
        && scalar::is_free(MULTI)
);

const ID_INT: u8 = 1;
const ID_NARROW_INT: u8 = 2;
const ID_STRING: u8 = 3;
const ID_UUID: u8 = 4;

/// Appends a value. It must be storable ([`Value::is_storable`]), as every value in the store is.
pub fn put_value(value: &Value, out: &mut Vec<u8>) {
    if put_scalar(value, out) {
        return;
    }
    match value {
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
    let unknown = reader.malformed("a value of an unknown kind");
    let tag = reader.byte()?;
    match read_scalar(tag, reader)? {
        Some(scalar) => Ok(scalar),
        None => reader.nested(|reader| match tag {
            LIST => Ok(Value::List(Arc::new(read_values(reader)?))),
            SET => Ok(Value::Set(Arc::new(read_values(reader)?))),
            MAP => {
                let count = reader.count()?;
                let entries = reader.repeat(count, |reader| Ok((read_value(reader)?, read_value(reader)?)))?;
                Ok(Value::Map(Arc::new(entries)))
            }
            _ => Err(unknown),
        }),
    }
}

fn read_values(reader: &mut Reader<'_>) -> Result<Vec<Value>, Malformed> {
    let count = reader.count()?;
    reader.repeat(count, read_value)
}

/// Appends the content under a key: nothing, one value, or several with ordinals and meta-properties.
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

/// Reads the bytes of [`put_content`].
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

/// Appends a user id.
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

/// Reads the bytes of [`put_user_id`].
pub fn read_user_id(reader: &mut Reader<'_>) -> Result<UserId, Malformed> {
    let unknown = reader.malformed("an id of an unknown kind");
    Ok(match reader.byte()? {
        tag @ (ID_INT | ID_NARROW_INT) => UserId::Int(IntId { number: reader.signed()?, narrow: tag == ID_NARROW_INT }),
        ID_STRING => UserId::String(reader.text()?.into()),
        ID_UUID => UserId::Uuid(Uuid::from_bytes(reader.array()?)),
        _ => return Err(unknown),
    })
}
