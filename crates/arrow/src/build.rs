//! Values become an array of a given type. Every value must fit as it is: nothing is rounded and nothing is cut.

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, BooleanBuilder, LargeBinaryBuilder, LargeStringBuilder, StringBuilder};
use arrow_array::types::{
    ArrowPrimitiveType, Decimal128Type, DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType,
    DurationSecondType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use arrow_array::{
    ArrayRef, FixedSizeListArray, LargeListArray, ListArray, MapArray, NullArray, PrimitiveArray, StructArray,
    new_null_array,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, FieldRef, Fields, TimeUnit};
use bigdecimal::BigDecimal;
use mangrove_graph::{Error, Result, Value};
use num_traits::ToPrimitive;

use crate::kind::{key_name, parts};
use crate::text::write_text;

/// A value, or a part of one.
pub(crate) type Cell<'v> = Cow<'v, Value>;

/// The most elements of an array whose offsets have 32 bits.
const OFFSET_MAX: usize = i32::MAX as usize;

/// An array of the values, of this type.
///
/// # Errors
///
/// `InvalidArgument` if a value does not fit the type, `Unsupported` if no value can be given that type.
pub(crate) fn build(values: &[Cell<'_>], target: &DataType) -> Result<ArrayRef> {
    Ok(match target {
        DataType::Null => match values.iter().find(|value| ***value != Value::Null) {
            None => Arc::new(NullArray::new(values.len())),
            Some(value) => return Err(misfit(value, target)),
        },
        DataType::Boolean => {
            let mut booleans = BooleanBuilder::with_capacity(values.len());
            for value in values {
                match &**value {
                    Value::Null => booleans.append_null(),
                    Value::Bool(is) => booleans.append_value(*is),
                    other => return Err(misfit(other, target)),
                }
            }
            Arc::new(booleans.finish())
        }
        DataType::Int8 => primitive::<Int8Type>(values, target, |v| integer(v)?.to_i8())?,
        DataType::Int16 => primitive::<Int16Type>(values, target, |v| integer(v)?.to_i16())?,
        DataType::Int32 => primitive::<Int32Type>(values, target, |v| integer(v)?.to_i32())?,
        DataType::Int64 => primitive::<Int64Type>(values, target, integer)?,
        DataType::UInt8 => primitive::<UInt8Type>(values, target, |v| integer(v)?.to_u8())?,
        DataType::UInt16 => primitive::<UInt16Type>(values, target, |v| integer(v)?.to_u16())?,
        DataType::UInt32 => primitive::<UInt32Type>(values, target, |v| integer(v)?.to_u32())?,
        DataType::UInt64 => primitive::<UInt64Type>(values, target, |v| match v {
            Value::BigInt(number) => number.to_u64(),
            other => integer(other)?.to_u64(),
        })?,
        DataType::Float32 => primitive::<Float32Type>(values, target, |v| match v {
            Value::F32(number) => Some(*number),
            _ => None,
        })?,
        DataType::Float64 => primitive::<Float64Type>(values, target, float)?,
        DataType::Decimal128(digits, after) => {
            let array = primitives::<Decimal128Type>(values, target, |v| decimal(v, *digits, *after))?;
            Arc::new(array.with_precision_and_scale(*digits, *after).map_err(arrow)?)
        }
        DataType::Utf8 => {
            let mut texts = StringBuilder::with_capacity(values.len(), 0);
            let mut text = String::new();
            for value in values {
                match text_of(value, &mut text)? {
                    None => texts.append_null(),
                    Some(text) => texts.append_value(check_room(texts.values_slice().len(), text)?),
                }
            }
            Arc::new(texts.finish())
        }
        DataType::LargeUtf8 => {
            let mut texts = LargeStringBuilder::with_capacity(values.len(), 0);
            let mut text = String::new();
            for value in values {
                texts.append_option(text_of(value, &mut text)?);
            }
            Arc::new(texts.finish())
        }
        DataType::Binary => {
            let mut all = BinaryBuilder::with_capacity(values.len(), 0);
            for value in values {
                match bytes_of(value, target)? {
                    None => all.append_null(),
                    Some(bytes) => all.append_value(check_room(all.values_slice().len(), bytes)?),
                }
            }
            Arc::new(all.finish())
        }
        DataType::LargeBinary => {
            let mut all = LargeBinaryBuilder::with_capacity(values.len(), 0);
            for value in values {
                all.append_option(bytes_of(value, target)?);
            }
            Arc::new(all.finish())
        }
        DataType::Timestamp(unit, zone) => {
            let of = |v: &Value| match v {
                Value::DateTime(time) => in_unit(time.seconds, time.nanos, *unit),
                _ => None,
            };
            let zone = zone.clone();
            match unit {
                TimeUnit::Second => {
                    Arc::new(primitives::<TimestampSecondType>(values, target, of)?.with_timezone_opt(zone))
                }
                TimeUnit::Millisecond => {
                    Arc::new(primitives::<TimestampMillisecondType>(values, target, of)?.with_timezone_opt(zone))
                }
                TimeUnit::Microsecond => {
                    Arc::new(primitives::<TimestampMicrosecondType>(values, target, of)?.with_timezone_opt(zone))
                }
                TimeUnit::Nanosecond => {
                    Arc::new(primitives::<TimestampNanosecondType>(values, target, of)?.with_timezone_opt(zone))
                }
            }
        }
        DataType::Duration(unit) => {
            let of = |v: &Value| match v {
                Value::Duration(span) => in_unit(span.seconds, span.nanos, *unit),
                _ => None,
            };
            match unit {
                TimeUnit::Second => primitive::<DurationSecondType>(values, target, of)?,
                TimeUnit::Millisecond => primitive::<DurationMillisecondType>(values, target, of)?,
                TimeUnit::Microsecond => primitive::<DurationMicrosecondType>(values, target, of)?,
                TimeUnit::Nanosecond => primitive::<DurationNanosecondType>(values, target, of)?,
            }
        }
        DataType::List(item) => {
            let Members { members, ends, valid } = members(values, target)?;
            let offsets = OffsetBuffer::from_lengths(lengths(&ends));
            Arc::new(
                ListArray::try_new(item.clone(), offsets, build(&members, item.data_type())?, valid).map_err(arrow)?,
            )
        }
        DataType::LargeList(item) => {
            let Members { members, ends, valid } = members(values, target)?;
            let offsets = OffsetBuffer::from_lengths(lengths(&ends));
            let members = build(&members, item.data_type())?;
            Arc::new(LargeListArray::try_new(item.clone(), offsets, members, valid).map_err(arrow)?)
        }
        DataType::FixedSizeList(item, width) => fixed_lists(values, item, *width, target)?,
        DataType::Struct(fields) => structs(values, fields, target)?,
        DataType::Map(entries, is_sorted) => maps(values, entries, *is_sorted, target)?,
        other => {
            return Err(Error::unsupported(format!(
                "no value of a graph becomes the Arrow type {other}; docs/arrow.md lists the types"
            )));
        }
    })
}

/// An error of the Arrow library: lengths and types that do not agree, which this crate rules out.
pub(crate) fn arrow(error: arrow_schema::ArrowError) -> Error {
    Error::bug(format!("Arrow refuses an array: {error}"))
}

fn misfit(value: &Value, target: &DataType) -> Error {
    let mut text = String::new();
    if write_text(&mut text, value).is_err() {
        text.clear();
    }
    let short: String = text.chars().take(60).collect();
    Error::invalid(format!("the {} {short} does not fit the type {target}", value.type_name()))
}

fn primitives<T: ArrowPrimitiveType>(
    values: &[Cell<'_>],
    target: &DataType,
    one: impl Fn(&Value) -> Option<T::Native>,
) -> Result<PrimitiveArray<T>> {
    let item = |value: &Cell<'_>| match &**value {
        Value::Null => Ok(None),
        value => one(value).map(Some).ok_or_else(|| misfit(value, target)),
    };
    values.iter().map(item).collect()
}

fn primitive<T: ArrowPrimitiveType>(
    values: &[Cell<'_>],
    target: &DataType,
    one: impl Fn(&Value) -> Option<T::Native>,
) -> Result<ArrayRef> {
    Ok(Arc::new(primitives::<T>(values, target, one)?))
}

fn integer(value: &Value) -> Option<i64> {
    Some(match value {
        Value::I8(number) => i64::from(*number),
        Value::I16(number) => i64::from(*number),
        Value::I32(number) => i64::from(*number),
        Value::I64(number) => *number,
        Value::BigInt(number) => number.to_i64()?,
        _ => return None,
    })
}

/// A number as a float; `None` if no float is equal to it.
fn float(value: &Value) -> Option<f64> {
    match value {
        Value::F32(number) => Some(f64::from(*number)),
        Value::F64(number) => Some(*number),
        other => exact_float(integer(other)?),
    }
}

/// The float that is equal to an integer.
pub(crate) fn exact_float(number: i64) -> Option<f64> {
    let float = number as f64;
    // The bound is 2^63: a float of that size is no 64-bit integer, though converting back gives the largest one.
    (float < 9_223_372_036_854_775_808.0 && float as i64 == number).then_some(float)
}

fn decimal(value: &Value, digits: u8, after: i8) -> Option<i128> {
    let number = match value {
        Value::Decimal(number) => number.normalized(),
        Value::BigInt(number) => BigDecimal::from((**number).clone()),
        other => BigDecimal::from(integer(other)?),
    };
    let (mantissa, scale) = number.as_bigint_and_exponent();
    let shift = i64::from(after).checked_sub(scale)?;
    // A shorter number would be rounded, and one of so many digits cannot fit.
    let shift = u32::try_from(shift).ok().filter(|shift| *shift <= 2 * u32::from(u8::MAX))?;
    let whole = mantissa * num_bigint::BigInt::from(10).pow(shift);
    let whole = whole.to_i128()?;
    (whole.unsigned_abs() < 10_u128.checked_pow(u32::from(digits))?).then_some(whole)
}

/// Seconds and nanoseconds as a number of a unit; `None` if it is no whole number, or too large.
fn in_unit(seconds: i64, nanos: u32, unit: TimeUnit) -> Option<i64> {
    let per_second: i64 = match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    };
    let nanos_per_unit = 1_000_000_000 / per_second;
    let nanos = i64::from(nanos);
    if nanos % nanos_per_unit != 0 {
        return None;
    }
    let whole = i128::from(seconds) * i128::from(per_second) + i128::from(nanos / nanos_per_unit);
    i64::try_from(whole).ok()
}

/// The text of a value, which may be kept in `made`; `None` of null.
fn text_of<'t>(value: &'t Cell<'_>, made: &'t mut String) -> Result<Option<&'t str>> {
    match &**value {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text)),
        other => {
            made.clear();
            write_text(made, other)?;
            Ok(Some(made))
        }
    }
}

fn bytes_of<'t>(value: &'t Cell<'_>, target: &DataType) -> Result<Option<&'t [u8]>> {
    match &**value {
        Value::Null => Ok(None),
        Value::Bytes(bytes) => Ok(Some(bytes)),
        other => Err(misfit(other, target)),
    }
}

/// Fails if an array of text or bytes would grow over what its offsets can say.
fn check_room<T: AsRef<[u8]> + ?Sized>(before: usize, more: &T) -> Result<&T> {
    match before + more.as_ref().len() <= OFFSET_MAX {
        true => Ok(more),
        false => Err(too_large()),
    }
}

/// The error for a batch with more bytes or members in one column than 32-bit offsets can say.
pub(crate) fn too_large() -> Error {
    Error::invalid(
        "a column of one batch has more than 2 GiB of text, or 2 billion members; take smaller batches (batch_rows)",
    )
}

/// The members of lists.
struct Members<'v> {
    members: Vec<Cell<'v>>,
    /// By row, the number of members up to its last.
    ends: Vec<usize>,
    valid: Option<NullBuffer>,
}

fn lengths(ends: &[usize]) -> impl Iterator<Item = usize> + '_ {
    ends.iter().scan(0, |before, end| Some(end - std::mem::replace(before, *end)))
}

fn members<'v>(values: &'v [Cell<'_>], target: &DataType) -> Result<Members<'v>> {
    let (mut members, mut ends) = (Vec::new(), Vec::with_capacity(values.len()));
    for value in values {
        match &**value {
            Value::Null => {}
            Value::List(list) | Value::Set(list) => members.extend(list.iter().map(Cow::Borrowed)),
            Value::BulkSet(list) => {
                for (value, times) in list.iter() {
                    let times = usize::try_from(*times).ok().filter(|times| *times <= OFFSET_MAX - members.len());
                    members.extend(std::iter::repeat_n(Cow::Borrowed(value), times.ok_or_else(too_large)?));
                }
            }
            Value::Path(path) => members.extend(path.objects.iter().map(Cow::Borrowed)),
            Value::F32Array(numbers) => members.extend(numbers.iter().map(|number| Cow::Owned(Value::F32(*number)))),
            other => return Err(misfit(other, target)),
        }
        if members.len() > OFFSET_MAX {
            return Err(too_large());
        }
        ends.push(members.len());
    }
    Ok(Members { members, ends, valid: validity(values) })
}

/// Which values are not null; `None` if all are.
fn validity(values: &[Cell<'_>]) -> Option<NullBuffer> {
    let is_there = |value: &Cell<'_>| **value != Value::Null;
    (!values.iter().all(is_there)).then(|| values.iter().map(is_there).collect::<Vec<bool>>().into())
}

fn fixed_lists(values: &[Cell<'_>], item: &FieldRef, width: i32, target: &DataType) -> Result<ArrayRef> {
    let width_of = usize::try_from(width).map_err(|_| Error::invalid(format!("{target} has a negative width")))?;
    let mut floats = Vec::with_capacity(values.len() * width_of);
    let are_floats = *item.data_type() == DataType::Float32;
    let mut members = Vec::new();
    for value in values {
        match &**value {
            Value::Null if are_floats => floats.resize(floats.len() + width_of, 0.0),
            Value::Null => members.extend((0..width_of).map(|_| Cow::Owned(Value::Null))),
            Value::F32Array(numbers) if are_floats && numbers.len() == width_of => floats.extend_from_slice(numbers),
            Value::List(list) if are_floats && list.len() == width_of => {
                for member in list.iter() {
                    match member {
                        Value::F32(number) => floats.push(*number),
                        other => return Err(misfit(other, item.data_type())),
                    }
                }
            }
            Value::List(list) if list.len() == width_of => members.extend(list.iter().map(Cow::Borrowed)),
            other => return Err(misfit(other, target)),
        }
    }
    let members: ArrayRef = match are_floats {
        true => Arc::new(PrimitiveArray::<Float32Type>::from_iter_values(floats)),
        false => build(&members, item.data_type())?,
    };
    let valid = validity(values);
    if width_of == 0 {
        let array = FixedSizeListArray::try_new_with_length(item.clone(), width, members, valid, values.len());
        return Ok(Arc::new(array.map_err(arrow)?));
    }
    Ok(Arc::new(FixedSizeListArray::try_new(item.clone(), width, members, valid).map_err(arrow)?))
}

fn structs(values: &[Cell<'_>], fields: &Fields, target: &DataType) -> Result<ArrayRef> {
    let mut columns: Vec<Vec<Cell<'_>>> = fields.iter().map(|_| Vec::with_capacity(values.len())).collect();
    for (row, value) in values.iter().enumerate() {
        match &**value {
            Value::Null => {}
            Value::Map(entries) => {
                take_entries(entries, fields, &mut columns).ok_or_else(|| misfit(value, target))?;
            }
            Value::Entry(entry) => {
                let entries = std::slice::from_ref(&**entry);
                take_entries(entries, fields, &mut columns).ok_or_else(|| misfit(value, target))?;
            }
            Value::Detached(_) => {
                for part in parts(value).unwrap_or_default() {
                    let at = fields.iter().position(|field| *field.name() == *part.name);
                    columns[at.ok_or_else(|| misfit(value, target))?].push(part.value);
                }
            }
            other => return Err(misfit(other, target)),
        }
        // What has no value under a name has null there.
        columns.iter_mut().for_each(|column| column.resize(row + 1, Cow::Owned(Value::Null)));
    }
    let columns = columns.iter().zip(fields).map(|(column, field)| build(column, field.data_type()));
    let columns = columns.collect::<Result<Vec<_>>>()?;
    let valid = validity(values);
    let array = StructArray::try_new_with_length(fields.clone(), columns, valid, values.len());
    Ok(Arc::new(array.map_err(arrow)?))
}

fn maps(values: &[Cell<'_>], entries: &FieldRef, is_sorted: bool, target: &DataType) -> Result<ArrayRef> {
    let DataType::Struct(fields) = entries.data_type() else {
        return Err(Error::invalid(format!("{target} is no type of maps: its entries are not a struct")));
    };
    let [key, value] = &fields[..] else {
        return Err(Error::invalid(format!("{target} is no type of maps: its entries are not keys and values")));
    };
    let (mut keys, mut held, mut ends) = (Vec::new(), Vec::new(), Vec::with_capacity(values.len()));
    for map in values {
        let of = match &**map {
            Value::Null => &[][..],
            Value::Map(entries) => &entries[..],
            Value::Entry(entry) => std::slice::from_ref(&**entry),
            other => return Err(misfit(other, target)),
        };
        if let Some((null, _)) = of.iter().find(|(key, _)| *key == Value::Null) {
            return Err(misfit(null, key.data_type()).context("a key of a map"));
        }
        keys.extend(of.iter().map(|(key, _)| Cow::Borrowed(key)));
        held.extend(of.iter().map(|(_, value)| Cow::Borrowed(value)));
        if keys.len() > OFFSET_MAX {
            return Err(too_large());
        }
        ends.push(keys.len());
    }
    let columns = vec![build(&keys, key.data_type())?, build(&held, value.data_type())?];
    let all = StructArray::try_new(fields.clone(), columns, None).map_err(arrow)?;
    let offsets = OffsetBuffer::from_lengths(lengths(&ends));
    let array = MapArray::try_new(entries.clone(), offsets, all, validity(values), is_sorted);
    Ok(Arc::new(array.map_err(arrow)?))
}

/// Puts the values of a map under the fields of the same names. `None` if there is no such field.
fn take_entries<'v>(entries: &'v [(Value, Value)], fields: &Fields, columns: &mut [Vec<Cell<'v>>]) -> Option<()> {
    for (at, (key, value)) in entries.iter().enumerate() {
        let name = key_name(key)?;
        // Maps of one query mostly have their keys in the same order.
        let is_here = fields.get(at).is_some_and(|field| field.name() == name);
        let at = if is_here { at } else { fields.iter().position(|field| field.name() == name)? };
        columns[at].push(Cow::Borrowed(value));
    }
    Some(())
}

/// An array of nothing but nulls, under a field of this type.
pub(crate) fn nulls(target: &DataType, rows: usize) -> ArrayRef {
    new_null_array(target, rows)
}
