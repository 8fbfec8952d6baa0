//! Arrays as values of properties and ids.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowDictionaryKeyType, ArrowPrimitiveType, Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type,
    Decimal256Type, DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType, DurationSecondType,
    Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, Field, TimeUnit};
use bigdecimal::BigDecimal;
use mangrove_graph::{DateTime, Duration, Error, Result, Value};
use num_bigint::BigInt;
use smol_str::SmolStr;

/// A value, or why it cannot be kept.
type Decoded = Result<Value, String>;

/// The name of the metadata of a field that says what its bytes mean.
const EXTENSION: &str = "ARROW:extension:name";

/// Fails if values of a field cannot be loaded.
///
/// # Errors
///
/// `Unsupported`: names the type and the way out.
pub fn check_type(field: &Field) -> Result<()> {
    check(field.data_type()).map_err(|(of, way)| {
        Error::unsupported(format!("the column '{}' has the Arrow type {of}, which is not loaded; {way}", field.name()))
    })
}

fn check(of: &DataType) -> Result<(), (&DataType, &'static str)> {
    match of {
        DataType::Null
        | DataType::Boolean
        | DataType::Int8
        | DataType::Int16
        | DataType::Int32
        | DataType::Int64
        | DataType::UInt8
        | DataType::UInt16
        | DataType::UInt32
        | DataType::UInt64
        | DataType::Float16
        | DataType::Float32
        | DataType::Float64
        | DataType::Decimal32(..)
        | DataType::Decimal64(..)
        | DataType::Decimal128(..)
        | DataType::Decimal256(..)
        | DataType::Utf8
        | DataType::LargeUtf8
        | DataType::Utf8View
        | DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::FixedSizeBinary(_)
        | DataType::Date32
        | DataType::Date64
        | DataType::Timestamp(..)
        | DataType::Duration(_) => Ok(()),
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => check(item.data_type()),
        DataType::Dictionary(_, values) => check(values),
        DataType::Struct(fields) => fields.iter().try_for_each(|field| check(field.data_type())),
        DataType::Map(entries, _) => check(entries.data_type()),
        DataType::Time32(_) | DataType::Time64(_) => Err((of, "cast it to a duration since midnight, or to text")),
        DataType::Interval(_) => Err((of, "cast it to a duration, or to text")),
        DataType::RunEndEncoded(..) => Err((of, "decode the runs before the load")),
        DataType::ListView(_) | DataType::LargeListView(_) => Err((of, "cast it to a list")),
        _ => Err((of, "cast it to another type, or leave the column out")),
    }
}

/// The values of an array, one a row; null where there is none. The field says what fixed-size binary means: a UUID, if it has the
/// extension type `arrow.uuid`.
///
/// # Errors
///
/// `Unsupported` as [`check_type`]. A single value that cannot be kept is an error in its place.
pub fn values(field: &Field, array: &dyn Array) -> Result<Vec<Decoded>> {
    check_type(field)?;
    decode(field, array)
}

/// Calls `one` with each row that is not null.
fn each(array: &dyn Array, one: impl Fn(usize) -> Decoded) -> Vec<Decoded> {
    match array.nulls() {
        None => (0..array.len()).map(one).collect(),
        Some(nulls) => (0..array.len()).map(|at| if nulls.is_null(at) { Ok(Value::Null) } else { one(at) }).collect(),
    }
}

fn numbers<T: ArrowPrimitiveType>(array: &dyn Array, one: impl Fn(T::Native) -> Value) -> Vec<Decoded> {
    let numbers = array.as_primitive::<T>().values();
    each(array, |at| Ok(one(numbers[at])))
}

fn times<T: ArrowPrimitiveType<Native = i64>>(array: &dyn Array, per_second: i64, offset_seconds: i32) -> Vec<Decoded> {
    let nanos_per_unit = 1_000_000_000 / per_second;
    numbers::<T>(array, |number| {
        Value::DateTime(DateTime {
            seconds: number.div_euclid(per_second),
            nanos: (number.rem_euclid(per_second) * nanos_per_unit) as u32,
            offset_seconds,
        })
    })
}

fn spans<T: ArrowPrimitiveType<Native = i64>>(array: &dyn Array, per_second: i64) -> Vec<Decoded> {
    let nanos_per_unit = 1_000_000_000 / per_second;
    numbers::<T>(array, |number| {
        Value::Duration(Duration {
            seconds: number.div_euclid(per_second),
            nanos: (number.rem_euclid(per_second) * nanos_per_unit) as u32,
        })
    })
}

fn decimals<T: ArrowPrimitiveType>(array: &dyn Array, scale: i8, whole: impl Fn(T::Native) -> BigInt) -> Vec<Decoded> {
    numbers::<T>(array, |number| Value::Decimal(Arc::new(BigDecimal::new(whole(number), i64::from(scale)))))
}

/// The offset of a time zone that is one: `+02:00`. Other zones have no offset of their own, and UTC stands for them.
fn offset_seconds(zone: Option<&str>) -> i32 {
    let Some(zone) = zone.filter(|zone| zone.starts_with(['+', '-'])) else { return 0 };
    DateTime::parse(&format!("2000-01-01T00:00{zone}")).map_or(0, |time| time.offset_seconds)
}

fn decode(field: &Field, array: &dyn Array) -> Result<Vec<Decoded>> {
    Ok(match field.data_type() {
        DataType::Null => vec![Ok(Value::Null); array.len()],
        DataType::Boolean => {
            let booleans = array.as_boolean();
            each(array, |at| Ok(Value::Bool(booleans.value(at))))
        }
        DataType::Int8 => numbers::<Int8Type>(array, Value::I8),
        DataType::Int16 => numbers::<Int16Type>(array, Value::I16),
        DataType::Int32 => numbers::<Int32Type>(array, Value::I32),
        DataType::Int64 => numbers::<Int64Type>(array, Value::I64),
        DataType::UInt8 => numbers::<UInt8Type>(array, |number| Value::I16(number.into())),
        DataType::UInt16 => numbers::<UInt16Type>(array, |number| Value::I32(number.into())),
        DataType::UInt32 => numbers::<UInt32Type>(array, |number| Value::I64(number.into())),
        DataType::UInt64 => numbers::<UInt64Type>(array, |number| match i64::try_from(number) {
            Ok(number) => Value::I64(number),
            Err(_) => Value::BigInt(Arc::new(number.into())),
        }),
        DataType::Float16 => numbers::<Float16Type>(array, |number| Value::F32(number.into())),
        DataType::Float32 => numbers::<Float32Type>(array, Value::F32),
        DataType::Float64 => numbers::<Float64Type>(array, Value::F64),
        DataType::Decimal32(_, scale) => decimals::<Decimal32Type>(array, *scale, BigInt::from),
        DataType::Decimal64(_, scale) => decimals::<Decimal64Type>(array, *scale, BigInt::from),
        DataType::Decimal128(_, scale) => decimals::<Decimal128Type>(array, *scale, BigInt::from),
        DataType::Decimal256(_, scale) => {
            decimals::<Decimal256Type>(array, *scale, |number| BigInt::from_signed_bytes_le(&number.to_le_bytes()))
        }
        DataType::Utf8 => {
            let texts = array.as_string::<i32>();
            each(array, |at| Ok(Value::from(texts.value(at))))
        }
        DataType::LargeUtf8 => {
            let texts = array.as_string::<i64>();
            each(array, |at| Ok(Value::from(texts.value(at))))
        }
        DataType::Utf8View => {
            let texts = array.as_string_view();
            each(array, |at| Ok(Value::from(texts.value(at))))
        }
        DataType::Binary => {
            let all = array.as_binary::<i32>();
            each(array, |at| Ok(Value::Bytes(all.value(at).into())))
        }
        DataType::LargeBinary => {
            let all = array.as_binary::<i64>();
            each(array, |at| Ok(Value::Bytes(all.value(at).into())))
        }
        DataType::BinaryView => {
            let all = array.as_binary_view();
            each(array, |at| Ok(Value::Bytes(all.value(at).into())))
        }
        DataType::FixedSizeBinary(width) => {
            let all = array.as_fixed_size_binary();
            let are_uuids = *width == 16 && field.metadata().get(EXTENSION).is_some_and(|name| name == "arrow.uuid");
            each(array, |at| match <[u8; 16]>::try_from(all.value(at)) {
                Ok(bytes) if are_uuids => Ok(Value::from(uuid::Uuid::from_bytes(bytes))),
                _ => Ok(Value::Bytes(all.value(at).into())),
            })
        }
        DataType::Date32 => numbers::<Date32Type>(array, |days| {
            Value::DateTime(DateTime { seconds: i64::from(days) * 86_400, nanos: 0, offset_seconds: 0 })
        }),
        DataType::Date64 => times::<Date64Type>(array, 1_000, 0),
        DataType::Timestamp(unit, zone) => {
            let offset = offset_seconds(zone.as_deref());
            match unit {
                TimeUnit::Second => times::<TimestampSecondType>(array, 1, offset),
                TimeUnit::Millisecond => times::<TimestampMillisecondType>(array, 1_000, offset),
                TimeUnit::Microsecond => times::<TimestampMicrosecondType>(array, 1_000_000, offset),
                TimeUnit::Nanosecond => times::<TimestampNanosecondType>(array, 1_000_000_000, offset),
            }
        }
        DataType::Duration(unit) => match unit {
            TimeUnit::Second => spans::<DurationSecondType>(array, 1),
            TimeUnit::Millisecond => spans::<DurationMillisecondType>(array, 1_000),
            TimeUnit::Microsecond => spans::<DurationMicrosecondType>(array, 1_000_000),
            TimeUnit::Nanosecond => spans::<DurationNanosecondType>(array, 1_000_000_000),
        },
        DataType::List(item) => {
            let lists = array.as_list::<i32>();
            each_list(array, item, |at| lists.value(at))?
        }
        DataType::LargeList(item) => {
            let lists = array.as_list::<i64>();
            each_list(array, item, |at| lists.value(at))?
        }
        DataType::FixedSizeList(item, _) => {
            let lists = array.as_fixed_size_list();
            match item.data_type() {
                DataType::Float32 => each(array, |at| {
                    let members = lists.value(at);
                    match members.null_count() {
                        0 => Ok(Value::F32Array(members.as_primitive::<Float32Type>().values()[..].into())),
                        _ => Err(NULL_MEMBER.to_owned()),
                    }
                }),
                _ => each_list(array, item, |at| lists.value(at))?,
            }
        }
        DataType::Dictionary(key, of) => {
            let of = Field::new(field.name(), (**of).clone(), true).with_metadata(field.metadata().clone());
            match **key {
                DataType::Int8 => dictionary::<Int8Type>(&of, array)?,
                DataType::Int16 => dictionary::<Int16Type>(&of, array)?,
                DataType::Int32 => dictionary::<Int32Type>(&of, array)?,
                DataType::Int64 => dictionary::<Int64Type>(&of, array)?,
                DataType::UInt8 => dictionary::<UInt8Type>(&of, array)?,
                DataType::UInt16 => dictionary::<UInt16Type>(&of, array)?,
                DataType::UInt32 => dictionary::<UInt32Type>(&of, array)?,
                _ => dictionary::<UInt64Type>(&of, array)?,
            }
        }
        DataType::Struct(fields) => {
            let all = array.as_struct();
            let columns = fields.iter().zip(all.columns()).map(|(field, column)| decode(field, column));
            let mut columns = columns.collect::<Result<Vec<_>>>()?;
            let names: Vec<SmolStr> = fields.iter().map(|field| field.name().as_str().into()).collect();
            let mut maps = Vec::with_capacity(array.len());
            for at in 0..array.len() {
                maps.push(if array.is_null(at) { Ok(Value::Null) } else { struct_of(&names, &mut columns, at) });
            }
            maps
        }
        DataType::Map(entries, _) => {
            let maps = array.as_map();
            let mut all = Vec::with_capacity(array.len());
            for at in 0..array.len() {
                all.push(if array.is_null(at) {
                    Ok(Value::Null)
                } else {
                    map_of(entries.data_type(), &(Arc::new(maps.value(at)) as ArrayRef))?
                });
            }
            all
        }
        other => return Err(Error::bug(format!("the type {other} was not refused"))),
    })
}

const NULL_MEMBER: &str = "a list has a missing member, and a property cannot keep that";

/// Lists, each decoded by itself.
fn each_list(array: &dyn Array, item: &Field, list: impl Fn(usize) -> ArrayRef) -> Result<Vec<Decoded>> {
    let mut all = Vec::with_capacity(array.len());
    for at in 0..array.len() {
        if array.is_null(at) {
            all.push(Ok(Value::Null));
            continue;
        }
        let members: Result<Vec<Value>, String> = decode(item, &list(at))?.into_iter().collect();
        all.push(members.and_then(|members| match members.contains(&Value::Null) {
            true => Err(NULL_MEMBER.to_owned()),
            false => Ok(Value::list(members)),
        }));
    }
    Ok(all)
}

fn dictionary<K: ArrowDictionaryKeyType>(of: &Field, array: &dyn Array) -> Result<Vec<Decoded>> {
    let dictionary = array.as_dictionary::<K>();
    let values = decode(of, dictionary.values())?;
    let key = |at: usize| dictionary.key(at).and_then(|key| values.get(key).cloned()).unwrap_or(Ok(Value::Null));
    Ok((0..array.len()).map(key).collect())
}

/// The parts of a struct that are there, as a map.
fn struct_of(names: &[SmolStr], columns: &mut [Vec<Decoded>], at: usize) -> Decoded {
    let mut entries = Vec::with_capacity(names.len());
    for (name, column) in names.iter().zip(columns) {
        match std::mem::replace(&mut column[at], Ok(Value::Null))? {
            Value::Null => {}
            value => entries.push((Value::String(name.clone()), value)),
        }
    }
    Ok(Value::map(entries))
}

/// The entries of a map. An entry without a value is left out, and of two equal keys the later one counts.
fn map_of(of: &DataType, entries: &ArrayRef) -> Result<Decoded> {
    let DataType::Struct(fields) = of else { return Err(Error::bug("the entries of a map are a struct")) };
    let (Some(key), Some(value)) = (fields.first(), fields.get(1)) else {
        return Err(Error::bug("the entries of a map have keys and values"));
    };
    let entries = entries.as_struct();
    let (keys, values) = (decode(key, entries.column(0))?, decode(value, entries.column(1))?);
    let mut map: Vec<(Value, Value)> = Vec::with_capacity(keys.len());
    for (key, value) in keys.into_iter().zip(values) {
        let (key, value) = match (key, value) {
            (Ok(key), Ok(value)) => (key, value),
            (Err(reason), _) | (_, Err(reason)) => return Ok(Err(reason)),
        };
        if value == Value::Null || key == Value::Null {
            continue;
        }
        match map.iter_mut().find(|(other, _)| mangrove_graph::compare::equivalent(other, &key)) {
            Some((_, old)) => *old = value,
            None => map.push((key, value)),
        }
    }
    Ok(Ok(Value::map(map)))
}
