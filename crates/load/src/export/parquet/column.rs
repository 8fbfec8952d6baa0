//! A column of a Parquet file: its type, and its values until they are written.

use std::io::{self, Write};

use bigdecimal::BigDecimal;
use mangrove_graph::{DateTime, Error, ErrorKind, PropertyRow, Result, Value};
use num_bigint::BigInt;
use parquet::basic::{LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FixedLenByteArray, FixedLenByteArrayType, FloatType,
    Int32Type, Int64Type,
};
use parquet::errors::ParquetError;
use parquet::file::writer::SerializedRowGroupWriter;
use parquet::schema::types::{GroupTypeBuilder, Type, TypePtr};

use crate::export::kind::{ColumnKind, ColumnShape, Scalar};
use crate::export::text::write_scalar;

/// The most digits of a decimal: what 16 bytes hold.
const DECIMAL_DIGITS: u64 = 38;

pub(super) fn failed(error: ParquetError) -> Error {
    match error {
        ParquetError::External(source) if source.is::<io::Error>() => Error::new(ErrorKind::Io, source.to_string()),
        other => Error::new(ErrorKind::Io, format!("the Parquet file cannot be written: {other}")),
    }
}

/// The facts about all values of a column that decide its stored type.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts {
    /// True if all points in time are in UTC and are a 64-bit number of whole microseconds.
    pub(super) micros: bool,
    /// The same for nanoseconds.
    pub(super) nanos: bool,
    /// The most digits before and after the point of a decimal.
    digits: (u64, u64),
}

impl Facts {
    pub(super) const NONE: Facts = Facts { micros: true, nanos: true, digits: (0, 0) };

    pub(super) fn add(&mut self, value: &Value) {
        match value {
            Value::DateTime(time) => {
                self.micros &= time.offset_seconds == 0 && time.nanos % 1000 == 0 && ticks(*time, 1_000_000).is_some();
                self.nanos &= time.offset_seconds == 0 && ticks(*time, 1_000_000_000).is_some();
            }
            Value::Decimal(number) => {
                let (digits, scale) = number.as_bigint_and_exponent();
                let after = u64::try_from(scale).unwrap_or(0);
                let length = digits.magnitude().to_string().len() as i128;
                let before = u64::try_from(length - i128::from(scale)).unwrap_or(0);
                self.digits = (self.digits.0.max(before), self.digits.1.max(after));
            }
            Value::List(items) => items.iter().for_each(|item| self.add(item)),
            _ => {}
        }
    }
}

/// A point in time as a number of ticks since 1970; `None` if it does not fit 64 bits.
fn ticks(time: DateTime, per_second: i64) -> Option<i64> {
    let within = i64::from(time.nanos) / (1_000_000_000 / per_second);
    time.seconds.checked_mul(per_second)?.checked_add(within)
}

/// The stored type of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stored {
    Bool,
    /// An integer of this many bits.
    Int(i8),
    F32,
    F64,
    /// Ticks since 1970; this many are a second.
    Time(i64),
    Decimal {
        scale: u64,
        digits: u64,
    },
    Bytes,
    Uuid,
    /// As the text of a CSV field.
    Text(Scalar),
}

impl Stored {
    pub(super) fn of(scalar: Scalar, facts: Facts) -> Self {
        let (before, after) = facts.digits;
        match scalar {
            Scalar::Bool => Stored::Bool,
            Scalar::I8 => Stored::Int(8),
            Scalar::I16 => Stored::Int(16),
            Scalar::I32 => Stored::Int(32),
            Scalar::I64 => Stored::Int(64),
            Scalar::F32 => Stored::F32,
            Scalar::F64 => Stored::F64,
            Scalar::Bytes => Stored::Bytes,
            Scalar::Uuid => Stored::Uuid,
            Scalar::DateTime if facts.micros => Stored::Time(1_000_000),
            Scalar::DateTime if facts.nanos => Stored::Time(1_000_000_000),
            Scalar::Decimal if before.saturating_add(after) <= DECIMAL_DIGITS => {
                Stored::Decimal { scale: after, digits: (before + after).max(1) }
            }
            other => Stored::Text(other),
        }
    }

    /// Returns true if the file itself names the type of the values.
    pub(super) fn is_natural(self) -> bool {
        !matches!(self, Stored::Text(scalar) if scalar != Scalar::String)
    }

    fn to_type(self, name: &str, repetition: Repetition) -> Result<Type> {
        let (physical, logical) = match self {
            Stored::Bool => (Physical::BOOLEAN, None),
            Stored::Int(64) => (Physical::INT64, None),
            Stored::Int(32) => (Physical::INT32, None),
            Stored::Int(bits) => (Physical::INT32, Some(LogicalType::integer(bits, true))),
            Stored::F32 => (Physical::FLOAT, None),
            Stored::F64 => (Physical::DOUBLE, None),
            Stored::Time(1_000_000) => (Physical::INT64, Some(LogicalType::timestamp(true, TimeUnit::MICROS))),
            Stored::Time(_) => (Physical::INT64, Some(LogicalType::timestamp(true, TimeUnit::NANOS))),
            Stored::Decimal { scale, digits } => {
                (Physical::FIXED_LEN_BYTE_ARRAY, Some(LogicalType::decimal(scale as i32, digits as i32)))
            }
            Stored::Bytes => (Physical::BYTE_ARRAY, None),
            Stored::Uuid => (Physical::FIXED_LEN_BYTE_ARRAY, Some(LogicalType::Uuid)),
            Stored::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        };
        let mut builder =
            Type::primitive_type_builder(name, physical).with_repetition(repetition).with_logical_type(logical);
        if physical == Physical::FIXED_LEN_BYTE_ARRAY {
            builder = builder.with_length(16);
        }
        if let Stored::Decimal { scale, digits } = self {
            builder = builder.with_precision(digits as i32).with_scale(scale as i32);
        }
        builder.build().map_err(failed)
    }
}

/// A column, and its values that are not written yet.
pub(super) struct Column {
    pub(super) name: String,
    pub(super) stored: Stored,
    /// REQUIRED: every row has one value. OPTIONAL: one or none. REPEATED: a list or none.
    repetition: Repetition,
    definitions: Vec<i16>,
    repetitions: Vec<i16>,
    values: Values,
}

/// Values of one stored type.
pub(super) enum Values {
    Bool(Vec<bool>),
    I32(Vec<i32>),
    I64(Vec<i64>),
    F32(Vec<f32>),
    F64(Vec<f64>),
    Bytes(Vec<ByteArray>),
    Fixed(Vec<FixedLenByteArray>),
}

impl Column {
    pub(super) fn new(name: String, stored: Stored, repetition: Repetition) -> Self {
        let values = match stored {
            Stored::Bool => Values::Bool(Vec::new()),
            Stored::Int(64) | Stored::Time(_) => Values::I64(Vec::new()),
            Stored::Int(_) => Values::I32(Vec::new()),
            Stored::F32 => Values::F32(Vec::new()),
            Stored::F64 => Values::F64(Vec::new()),
            Stored::Bytes | Stored::Text(_) => Values::Bytes(Vec::new()),
            Stored::Uuid | Stored::Decimal { .. } => Values::Fixed(Vec::new()),
        };
        Column { name, stored, repetition, definitions: Vec::new(), repetitions: Vec::new(), values }
    }

    /// The declaration of the column in the file.
    pub(super) fn to_type(&self) -> Result<Type> {
        if self.repetition != Repetition::REPEATED {
            return self.stored.to_type(&self.name, self.repetition);
        }
        let element = self.stored.to_type("element", Repetition::REQUIRED)?;
        let list = group("list", element).with_repetition(Repetition::REPEATED).build().map_err(failed)?;
        let outer = group(&self.name, list).with_repetition(Repetition::OPTIONAL);
        outer.with_logical_type(Some(LogicalType::List)).build().map_err(failed)
    }

    /// Adds a row without a value.
    pub(super) fn nothing(&mut self) {
        self.definitions.push(0);
        self.repetitions.push(0);
    }

    /// Adds a row with one value, to a column with one or none.
    pub(super) fn one(&mut self, value: &Value) -> Result<usize> {
        self.definitions.push(1);
        self.push(value)
    }

    /// Adds a row with the values under one key. Returns about how many bytes it takes.
    pub(super) fn add(&mut self, kind: ColumnKind, values: &[PropertyRow]) -> Result<usize> {
        let mut bytes = 0;
        match (kind.shape, &values[0].value) {
            (ColumnShape::One, value) => {
                self.definitions.push(1);
                bytes = self.push(value)?;
            }
            (ColumnShape::List, Value::List(items)) => bytes = self.list(items)?,
            _ => {
                for (at, property) in values.iter().enumerate() {
                    bytes += self.item(at, &property.value)?;
                }
            }
        }
        Ok(bytes)
    }

    /// Adds a row with a list, to a column of lists.
    pub(super) fn list(&mut self, items: &[Value]) -> Result<usize> {
        if items.is_empty() {
            self.definitions.push(1);
            self.repetitions.push(0);
        }
        let mut bytes = 0;
        for (at, item) in items.iter().enumerate() {
            bytes += self.item(at, item)?;
        }
        Ok(bytes)
    }

    fn item(&mut self, at: usize, value: &Value) -> Result<usize> {
        self.definitions.push(2);
        self.repetitions.push(i16::from(at > 0));
        self.push(value)
    }

    pub(super) fn push(&mut self, value: &Value) -> Result<usize> {
        let unlike = || Error::bug(format!("a {} in a column of {:?}", value.type_name(), self.stored));
        match (&mut self.values, value) {
            (Values::Bool(values), Value::Bool(truth)) => values.push(*truth),
            (Values::I32(values), Value::I8(number)) => values.push(i32::from(*number)),
            (Values::I32(values), Value::I16(number)) => values.push(i32::from(*number)),
            (Values::I32(values), Value::I32(number)) => values.push(*number),
            (Values::I64(values), Value::I64(number)) => values.push(*number),
            // A narrow integer id in a column of longs.
            (Values::I64(values), Value::I32(number)) => values.push((*number).into()),
            (Values::I64(values), Value::DateTime(time)) => {
                let Stored::Time(per_second) = self.stored else { return Err(unlike()) };
                values.push(ticks(*time, per_second).ok_or_else(unlike)?);
            }
            (Values::F32(values), Value::F32(number)) => values.push(*number),
            (Values::F64(values), Value::F64(number)) => values.push(*number),
            (Values::Fixed(values), Value::Uuid(uuid)) => values.push(ByteArray::from(uuid.as_bytes().to_vec()).into()),
            (Values::Fixed(values), Value::Decimal(number)) => {
                let Stored::Decimal { scale, .. } = self.stored else { return Err(unlike()) };
                values.push(ByteArray::from(decimal(number, scale).ok_or_else(unlike)?.to_vec()).into());
            }
            (Values::Bytes(values), value) => {
                let mut text = Vec::new();
                match (self.stored, value) {
                    (Stored::Bytes, Value::Bytes(bytes)) => text.extend_from_slice(bytes),
                    (Stored::Text(scalar), value) => write_scalar(&mut text, scalar, value)?,
                    _ => return Err(unlike()),
                }
                let bytes = text.len();
                values.push(text.into());
                return Ok(bytes + 32);
            }
            _ => return Err(unlike()),
        }
        Ok(16)
    }

    /// Writes the gathered values.
    pub(super) fn write<W: Write + Send>(&mut self, group: &mut SerializedRowGroupWriter<'_, W>) -> Result<()> {
        let (definitions, repetitions) = (std::mem::take(&mut self.definitions), std::mem::take(&mut self.repetitions));
        let levels = Levels {
            definitions: (self.repetition != Repetition::REQUIRED).then_some(&definitions),
            repetitions: (self.repetition == Repetition::REPEATED).then_some(&repetitions),
        };
        match &mut self.values {
            Values::Bool(values) => write_values::<BoolType, W>(group, values, levels),
            Values::I32(values) => write_values::<Int32Type, W>(group, values, levels),
            Values::I64(values) => write_values::<Int64Type, W>(group, values, levels),
            Values::F32(values) => write_values::<FloatType, W>(group, values, levels),
            Values::F64(values) => write_values::<DoubleType, W>(group, values, levels),
            Values::Bytes(values) => write_values::<ByteArrayType, W>(group, values, levels),
            Values::Fixed(values) => write_values::<FixedLenByteArrayType, W>(group, values, levels),
        }
    }
}

/// A group of one field.
fn group(name: &str, field: Type) -> GroupTypeBuilder<'_> {
    Type::group_type_builder(name).with_fields(vec![TypePtr::new(field)])
}

#[derive(Clone, Copy)]
struct Levels<'l> {
    definitions: Option<&'l Vec<i16>>,
    repetitions: Option<&'l Vec<i16>>,
}

fn write_values<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: &mut Vec<T::T>,
    levels: Levels<'_>,
) -> Result<()> {
    let column = group.next_column().map_err(failed)?;
    let mut column = column.ok_or_else(|| Error::bug("a row group has a column for each of the schema's"))?;
    let (definitions, repetitions) = (levels.definitions.map(Vec::as_slice), levels.repetitions.map(Vec::as_slice));
    column.typed::<T>().write_batch(values, definitions, repetitions).map_err(failed)?;
    column.close().map_err(failed)?;
    values.clear();
    Ok(())
}

/// A decimal at a scale as a whole number of 16 bytes, highest byte first.
fn decimal(number: &BigDecimal, scale: u64) -> Option<[u8; 16]> {
    let (digits, own) = number.as_bigint_and_exponent();
    let up = u32::try_from(i128::from(scale) - i128::from(own)).ok()?;
    let scaled: BigInt = digits * BigInt::from(10).pow(up);
    i128::try_from(scaled).ok().map(i128::to_be_bytes)
}
