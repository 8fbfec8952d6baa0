//! Columns of a row group: values made of stored values and levels.
//!
//! A column may have several stored parts (a list of groups has one for each field). Every part is read for the same
//! rows, then all are walked together, row by row. The definition level of an entry says how much of a path is there.
//! The repetition level says which list it continues.
//!
//! A value that a property cannot hold (text that is not UTF-8, a null in a list) rejects its row, not the file.

use std::sync::Arc;

use bigdecimal::BigDecimal;
use mangrove_graph::{DateTime, Duration, Error, Result, Value};
use num_bigint::BigInt;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader};
use parquet::data_type::{ByteArray, DataType, FixedLenByteArray, Int96};
use parquet::file::metadata::RowGroupMetaData;
use uuid::Uuid;

use super::pages::{PageBudget, Pages};
use super::schema::{Decode, Node, ParquetField, ParquetShape};
use super::{ParquetFile, damaged, decoding};

/// A value; [`Value::Null`] if there is none, or the reason why it cannot be kept.
pub(crate) type ParquetCell = std::result::Result<Value, &'static str>;

/// A column of a row group that is being read.
pub(crate) struct ParquetColumn<'f> {
    field: &'f ParquetField,
    shape: &'f ParquetShape,
    leaves: Vec<Leaf>,
}

/// A stored part of a column.
struct Leaf {
    reader: ColumnReader,
    decode: Decode,
    budget: PageBudget,
    definition_max: i16,
    definitions: Vec<i16>,
    repetitions: Vec<i16>,
    /// How many levels were read, and how many of them were used.
    levels: usize,
    at: usize,
    values: std::vec::IntoIter<ParquetCell>,
}

impl<'f> ParquetColumn<'f> {
    /// Begins a column.
    pub(crate) fn open(
        file: &'f ParquetFile,
        group: &RowGroupMetaData,
        field: &'f ParquetField,
        budget: &PageBudget,
    ) -> Result<Self> {
        let shape = field.shape.as_ref().map_err(Clone::clone)?;
        let leaves = field.leaves.clone().zip(&shape.decoders).map(|(at, decode)| {
            let chunk = group.columns().get(at).ok_or_else(|| damaged("a row group lacks a column"))?;
            let budget = budget.for_column();
            let pages = Pages::new(file.file.clone(), file.len, chunk, budget.clone()).map_err(|e| decoding(&e))?;
            let descriptor = chunk.column_descr_ptr();
            Ok(Leaf {
                definition_max: descriptor.max_def_level(),
                reader: get_column_reader(descriptor, Box::new(pages)),
                decode: *decode,
                budget,
                definitions: Vec::new(),
                repetitions: Vec::new(),
                levels: 0,
                at: 0,
                values: Vec::new().into_iter(),
            })
        });
        let column =
            ParquetColumn { field, shape, leaves: leaves.collect::<Result<_>>().map_err(|e| place(field, e))? };
        Ok(column)
    }

    /// Reads the values of the next rows. The row group must have that many more.
    pub(crate) fn read(&mut self, rows: usize) -> Result<Vec<ParquetCell>> {
        let field = self.field;
        self.read_cells(rows).map_err(|e| place(field, e))
    }

    fn read_cells(&mut self, rows: usize) -> Result<Vec<ParquetCell>> {
        self.leaves.iter_mut().try_for_each(|leaf| leaf.read(rows))?;
        let node = &self.shape.node;
        let cells = (0..rows).map(|_| {
            let cell = assemble(node, &mut self.leaves)?;
            let keeps = |value: &Value| match value {
                Value::List(_) | Value::Map(_) => value.is_storable(),
                _ => true,
            };
            Ok(cell.and_then(|value| {
                if keeps(&value) { Ok(value) } else { Err("it has a null inside, or is nested too deep") }
            }))
        });
        let cells = cells.collect::<Result<Vec<ParquetCell>>>()?;
        match self.leaves.iter().all(|leaf| leaf.at == leaf.levels) {
            true => Ok(cells),
            false => Err(damaged("its levels do not fit its rows")),
        }
    }
}

fn place(field: &ParquetField, error: Error) -> Error {
    error.context(format!("column '{}'", field.name))
}

impl Leaf {
    fn read(&mut self, rows: usize) -> Result<()> {
        self.budget.begin_rows();
        self.definitions.clear();
        self.repetitions.clear();
        self.at = 0;
        let decode = self.decode;
        let (definitions, repetitions) = (&mut self.definitions, &mut self.repetitions);
        let read = match &mut self.reader {
            ColumnReader::BoolColumnReader(reader) => {
                read(reader, rows, definitions, repetitions, |truth| Ok(Value::Bool(truth)))
            }
            ColumnReader::Int32ColumnReader(reader) => {
                read(reader, rows, definitions, repetitions, |n| Ok(decode.int(i64::from(n), n as u32 as u64)))
            }
            ColumnReader::Int64ColumnReader(reader) => {
                read(reader, rows, definitions, repetitions, |n| Ok(decode.int(n, n as u64)))
            }
            ColumnReader::Int96ColumnReader(reader) => {
                read(reader, rows, definitions, repetitions, |time| Ok(Value::DateTime(int96(&time))))
            }
            ColumnReader::FloatColumnReader(reader) => {
                read(reader, rows, definitions, repetitions, |n| Ok(Value::F32(n)))
            }
            ColumnReader::DoubleColumnReader(reader) => {
                read(reader, rows, definitions, repetitions, |n| Ok(Value::F64(n)))
            }
            ColumnReader::ByteArrayColumnReader(reader) => {
                read(reader, rows, definitions, repetitions, |bytes: ByteArray| decode.bytes(bytes.data()))
            }
            ColumnReader::FixedLenByteArrayColumnReader(reader) => {
                read(reader, rows, definitions, repetitions, |bytes: FixedLenByteArray| decode.bytes(bytes.data()))
            }
        }?;
        self.levels = read.levels;
        self.values = read.values.into_iter();
        Ok(())
    }

    /// The definition level of the next entry; `None` at the end.
    fn definition(&self) -> Option<i16> {
        match self.definition_max {
            0 => (self.at < self.levels).then_some(0),
            _ => self.definitions.get(self.at).copied(),
        }
    }

    /// The repetition level of the next entry: 0 starts a new row, and stands for the end.
    fn repetition(&self) -> i16 {
        self.repetitions.get(self.at).copied().unwrap_or(0)
    }
}

/// The values that were read of a stored part.
struct Read {
    levels: usize,
    values: Vec<ParquetCell>,
}

fn read<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    rows: usize,
    definitions: &mut Vec<i16>,
    repetitions: &mut Vec<i16>,
    make: impl Fn(T::T) -> ParquetCell,
) -> Result<Read> {
    let mut stored = Vec::new();
    let outcome = reader.read_records(rows, Some(definitions), Some(repetitions), &mut stored);
    let (records, _, levels) = outcome.map_err(|e| decoding(&e))?;
    if records != rows {
        return Err(damaged("it has fewer rows than its row group"));
    }
    Ok(Read { levels, values: stored.into_iter().map(make).collect() })
}

/// The next value of a shape. The outer error means that levels contradict each other: the file is damaged.
fn assemble(node: &Node, leaves: &mut [Leaf]) -> Result<ParquetCell> {
    match node {
        Node::Leaf(at) => {
            let leaf = &mut leaves[*at];
            let defined = leaf.definition() == Some(leaf.definition_max);
            leaf.at += 1;
            match defined {
                true => leaf.values.next().ok_or_else(ended),
                false => Ok(Ok(Value::Null)),
            }
        }
        Node::Optional { definition, inner, first } => {
            if leaves[*first].definition().ok_or_else(ended)? >= *definition {
                return assemble(inner, leaves);
            }
            pass(inner, leaves);
            Ok(Ok(Value::Null))
        }
        Node::List { definition, repetition, element, first } => {
            if leaves[*first].definition().ok_or_else(ended)? < *definition {
                pass(element, leaves);
                return Ok(Ok(Value::list(Vec::new())));
            }
            let (mut items, mut spoiled) = (Vec::new(), None);
            loop {
                match assemble(element, leaves)? {
                    Ok(item) => items.push(item),
                    Err(reason) => spoiled = Some(reason),
                }
                if leaves[*first].repetition() != *repetition {
                    return Ok(spoiled.map_or_else(|| Ok(Value::list(items)), Err));
                }
            }
        }
        Node::Map { definition, repetition, key, value, first } => {
            if leaves[*first].definition().ok_or_else(ended)? < *definition {
                pass(key, leaves);
                pass(value, leaves);
                return Ok(Ok(Value::map(Vec::new())));
            }
            let (mut entries, mut spoiled) = (Vec::new(), None);
            loop {
                match (assemble(key, leaves)?, assemble(value, leaves)?) {
                    (Ok(key), Ok(value)) => set_entry(&mut entries, key, value),
                    (Err(reason), _) | (_, Err(reason)) => spoiled = Some(reason),
                }
                if leaves[*first].repetition() != *repetition {
                    return Ok(spoiled.map_or_else(|| Ok(Value::map(entries)), Err));
                }
            }
        }
        Node::Group(fields) => {
            let (mut entries, mut spoiled) = (Vec::with_capacity(fields.len()), None);
            for (name, field) in fields {
                match assemble(field, leaves)? {
                    // A field of a group without a value is left out.
                    Ok(Value::Null) => {}
                    Ok(value) => set_entry(&mut entries, Value::string(name.as_str()), value),
                    Err(reason) => spoiled = Some(reason),
                }
            }
            Ok(spoiled.map_or_else(|| Ok(Value::map(entries)), Err))
        }
    }
}

fn ended() -> Error {
    damaged("its levels do not fit its values")
}

/// Skips the entry that stands for a missing value.
fn pass(node: &Node, leaves: &mut [Leaf]) {
    match node {
        Node::Leaf(at) => leaves[*at].at += 1,
        Node::Optional { inner: node, .. } | Node::List { element: node, .. } => pass(node, leaves),
        Node::Map { key, value, .. } => {
            pass(key, leaves);
            pass(value, leaves);
        }
        Node::Group(fields) => fields.iter().for_each(|(_, field)| pass(field, leaves)),
    }
}

/// Sets an entry of a map. A later value replaces an earlier one of an equal key.
fn set_entry(entries: &mut Vec<(Value, Value)>, key: Value, value: Value) {
    match entries.iter_mut().find(|(other, _)| mangrove_graph::compare::equivalent(other, &key)) {
        Some((_, old)) => *old = value,
        None => entries.push((key, value)),
    }
}

impl Decode {
    /// The value of an integer, given as signed number and as stored bits.
    fn int(self, number: i64, bits: u64) -> Value {
        match self {
            Decode::I8 => Value::I8(number as i8),
            Decode::I16 => Value::I16(number as i16),
            Decode::U8 => Value::I16(i16::from(bits as u8)),
            Decode::U16 => Value::I32(i32::from(bits as u16)),
            Decode::U32 => Value::I64(i64::from(bits as u32)),
            Decode::U64 => match i64::try_from(bits) {
                Ok(number) => Value::I64(number),
                Err(_) => Value::BigInt(Arc::new(BigInt::from(bits))),
            },
            Decode::I32 => Value::I32(number as i32),
            Decode::Decimal { scale } => Value::Decimal(Arc::new(BigDecimal::new(number.into(), scale))),
            Decode::Date => Value::DateTime(DateTime { seconds: number * 86_400, nanos: 0, offset_seconds: 0 }),
            Decode::Timestamp { per_second } => Value::DateTime(DateTime {
                seconds: number.div_euclid(per_second),
                nanos: (number.rem_euclid(per_second) * (1_000_000_000 / per_second)) as u32,
                offset_seconds: 0,
            }),
            _ => Value::I64(number),
        }
    }

    /// The value of bytes.
    fn bytes(self, bytes: &[u8]) -> ParquetCell {
        Ok(match self {
            Decode::String => Value::String(std::str::from_utf8(bytes).map_err(|_| "it is not valid UTF-8")?.into()),
            Decode::Decimal { scale } => {
                Value::Decimal(Arc::new(BigDecimal::new(BigInt::from_signed_bytes_be(bytes), scale)))
            }
            Decode::Uuid => Value::Uuid(Uuid::from_slice(bytes).map_err(|_| "a UUID has 16 bytes")?),
            Decode::F16 => {
                let bits = bytes.try_into().map_err(|_| "a half-precision float has two bytes")?;
                Value::F32(half_float(u16::from_le_bytes(bits)))
            }
            Decode::Interval => interval(bytes)?,
            _ => Value::Bytes(bytes.into()),
        })
    }
}

/// A time stored as nanoseconds of a day and a Julian day number.
fn int96(time: &Int96) -> DateTime {
    const EPOCH: i64 = 2_440_588;
    let [low, high, day] = time.data() else { return DateTime::from_epoch_millis(0) };
    let nanos = (u64::from(*high) << 32 | u64::from(*low)) as i64;
    let days = i64::from(*day as i32) - EPOCH;
    DateTime {
        seconds: days * 86_400 + nanos.div_euclid(1_000_000_000),
        nanos: nanos.rem_euclid(1_000_000_000) as u32,
        offset_seconds: 0,
    }
}

/// An interval of months, days and milliseconds.
fn interval(bytes: &[u8]) -> ParquetCell {
    let parts: &[u8; 12] = bytes.try_into().map_err(|_| "an interval has 12 bytes")?;
    let part = |at: usize| u32::from_le_bytes([parts[at], parts[at + 1], parts[at + 2], parts[at + 3]]);
    if part(0) != 0 {
        return Err("it has months, which have no fixed length");
    }
    let seconds = i64::from(part(4)) * 86_400 + i64::from(part(8) / 1000);
    Ok(Value::Duration(Duration { seconds, nanos: part(8) % 1000 * 1_000_000 }))
}

/// A float of 16 bits: a sign, five bits of exponent, ten of fraction.
fn half_float(bits: u16) -> f32 {
    let sign = if bits & 0x8000 == 0 { 1.0 } else { -1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 0x1f), f32::from(bits & 0x3ff));
    sign * match exponent {
        0 => fraction * 2_f32.powi(-24),
        31 if fraction == 0.0 => f32::INFINITY,
        31 => f32::NAN,
        _ => (1024.0 + fraction) * 2_f32.powi(exponent - 25),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_floats() {
        for (bits, number) in [
            (0x0000, 0.0),
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x7bff, 65504.0),
            (0x0001, 5.960_464_5e-8),
            (0x3555, 0.333_251_95),
        ] {
            assert_eq!(half_float(bits), number);
        }
        assert!(half_float(0x7e00).is_nan() && half_float(0xfc00) == f32::NEG_INFINITY);
    }

    #[test]
    fn times_before_the_epoch_round_down() {
        let time = |decode: Decode, number| decode.int(number, number as u64);
        let at = |seconds, nanos| Value::DateTime(DateTime { seconds, nanos, offset_seconds: 0 });
        assert_eq!(time(Decode::Timestamp { per_second: 1000 }, -1), at(-1, 999_000_000));
        assert_eq!(time(Decode::Timestamp { per_second: 1_000_000_000 }, 1_000_000_001), at(1, 1));
        assert_eq!(time(Decode::Date, -1), at(-86_400, 0));
        let mut old = Int96::new();
        old.set_data(5, 0, 2_440_589);
        assert_eq!(Value::DateTime(int96(&old)), at(86_400, 5));
    }
}
