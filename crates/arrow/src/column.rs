//! A column while its values are read. Numbers, booleans and text are kept in the form of Arrow's buffers; other values as they
//! are, until the type of the column is known.
//!
//! A column that is read in several pieces knows what the earlier pieces held (`expected`), so the first value that does not go
//! with them is an error in its row.

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::types::{Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type};
use arrow_array::{ArrayRef, BooleanArray, PrimitiveArray, StringArray};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, NullBufferBuilder, OffsetBuffer, ScalarBuffer};
use arrow_schema::DataType;
use mangrove_graph::{Error, NumberType, Numbers, Result, Value};

use crate::build::{build, exact_float, nulls, too_large};
use crate::kind::{IntBits, Kind, of_id};
use crate::options::Mixed;
use crate::text::write_text;

/// The most bytes of text in a column of one batch.
const TEXT_BYTES_MAX: usize = i32::MAX as usize;

/// A column while it is read.
#[derive(Debug)]
pub(crate) struct Column {
    data: Data,
    valid: NullBufferBuilder,
    len: usize,
    /// What the pieces before held.
    expected: Kind,
    /// True if a row has several values under the key of the column, so that each row has a list.
    lists: bool,
    /// True if the column has ids of elements.
    ids: bool,
    mixed: Mixed,
}

#[derive(Debug)]
enum Data {
    Nulls,
    Bool(Vec<bool>),
    Int(IntBits, Vec<i64>),
    Float {
        double: bool,
        numbers: Vec<f64>,
    },
    Text {
        ends: Vec<i32>,
        bytes: Vec<u8>,
        is_mixed: bool,
    },
    /// `parts`: the bytes that the values point to.
    Other {
        kind: Kind,
        values: Vec<Value>,
        parts: usize,
    },
}

impl Data {
    fn other(kind: Kind, values: Vec<Value>) -> Self {
        let parts = values.iter().map(bytes_of_parts).sum();
        Data::Other { kind, values, parts }
    }
}

/// About the bytes that a value points to. A collection that stands in several values counts in each.
fn bytes_of_parts(value: &Value) -> usize {
    let all = |values: &[Value]| size_of_val(values) + values.iter().map(bytes_of_parts).sum::<usize>();
    match value {
        Value::String(text) if text.is_heap_allocated() => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        Value::F32Array(numbers) => size_of_val(&numbers[..]),
        Value::List(values) | Value::Set(values) => all(values),
        Value::Map(entries) => {
            let entry = |(key, value): &(Value, Value)| bytes_of_parts(key) + bytes_of_parts(value);
            size_of_val(&entries[..]) + entries.iter().map(entry).sum::<usize>()
        }
        _ => 0,
    }
}

impl Column {
    pub(crate) fn new(ids: bool, mixed: Mixed) -> Self {
        Column {
            data: Data::Nulls,
            valid: NullBufferBuilder::new(0),
            len: 0,
            expected: Kind::Null,
            lists: false,
            ids,
            mixed,
        }
    }

    /// The next piece of the same column.
    pub(crate) fn next_piece(&self) -> Self {
        Column { expected: self.kind(), lists: self.lists, ..Column::new(self.ids, self.mixed) }
    }

    /// The bytes of this piece.
    pub(crate) fn bytes(&self) -> usize {
        self.len / 8
            + match &self.data {
                Data::Nulls => 0,
                Data::Bool(values) => values.len(),
                Data::Int(_, numbers) => size_of_val(&numbers[..]),
                Data::Float { numbers, .. } => size_of_val(&numbers[..]),
                Data::Text { ends, bytes, .. } => size_of_val(&ends[..]) + bytes.len(),
                Data::Other { values, parts, .. } => size_of_val(&values[..]) + parts,
            }
    }

    /// Bytes of text in this piece.
    pub(crate) fn text_bytes(&self) -> usize {
        match &self.data {
            Data::Text { bytes, .. } => bytes.len(),
            _ => 0,
        }
    }

    /// Returns true if this piece has nothing but nulls.
    pub(crate) fn is_all_null(&self) -> bool {
        matches!(self.data, Data::Nulls)
    }

    /// Returns true if each row has a list of the values under the key of the column.
    pub(crate) fn has_lists(&self) -> bool {
        self.lists
    }

    /// What this piece and the ones before hold.
    pub(crate) fn kind(&self) -> Kind {
        let kind = match &self.data {
            Data::Nulls => return self.expected.clone(),
            Data::Bool(_) => Kind::Bool,
            Data::Int(..) if self.ids => Kind::Id { integers: true },
            Data::Int(bits, _) => Kind::Int(*bits),
            Data::Float { double, .. } => Kind::Float { double: *double },
            Data::Text { is_mixed: true, .. } => return Kind::Text,
            Data::Text { .. } if self.ids => Kind::Id { integers: false },
            Data::Text { .. } => Kind::Text,
            Data::Other { kind, .. } => return kind.clone(),
        };
        // Checked when the first value came.
        self.expected.with(&kind).unwrap_or(Kind::Text)
    }

    /// The type that holds the column.
    pub(crate) fn data_type(&self) -> DataType {
        self.kind().data_type()
    }

    /// Appends nulls up to this length.
    pub(crate) fn pad(&mut self, len: usize) {
        let more = len.saturating_sub(self.len);
        if more == 0 {
            return;
        }
        self.valid.append_n_nulls(more);
        self.len = len;
        match &mut self.data {
            Data::Nulls => {}
            Data::Bool(values) => values.resize(len, false),
            Data::Int(_, values) => values.resize(len, 0),
            Data::Float { numbers, .. } => numbers.resize(len, 0.0),
            Data::Text { ends, bytes, .. } => ends.resize(len, bytes.len() as i32),
            Data::Other { values, .. } => values.resize(len, Value::Null),
        }
    }

    /// Appends a value, the one of row `row` of all results.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if no column holds it together with the values before.
    #[inline]
    pub(crate) fn push(&mut self, value: Value, name: &str, row: u64) -> Result<()> {
        if self.lists {
            let value = match value {
                Value::Null => Value::Null,
                one => Value::list(vec![one]),
            };
            return self.push_as_is(value, name, row);
        }
        self.push_as_is(value, name, row)
    }

    #[inline]
    fn push_as_is(&mut self, value: Value, name: &str, row: u64) -> Result<()> {
        match (&mut self.data, &value) {
            (Data::Int(_, numbers), Value::I64(number)) if self.ids => numbers.push(*number),
            (Data::Int(_, numbers), Value::I32(number)) if self.ids => numbers.push(i64::from(*number)),
            (Data::Int(IntBits::B64, numbers), Value::I64(number)) => numbers.push(*number),
            (Data::Int(IntBits::B32, numbers), Value::I32(number)) => numbers.push(i64::from(*number)),
            (Data::Float { double: true, numbers }, Value::F64(number)) => numbers.push(*number),
            (Data::Text { ends, bytes, .. }, Value::String(text)) if bytes.len() + text.len() <= TEXT_BYTES_MAX => {
                bytes.extend_from_slice(text.as_bytes());
                ends.push(bytes.len() as i32);
            }
            (Data::Bool(values), Value::Bool(is)) => values.push(*is),
            (Data::Other { kind, values, parts }, Value::List(_)) if !self.ids && kind.surely_holds(&value) => {
                *parts += bytes_of_parts(&value);
                values.push(value);
            }
            (_, Value::Null) => {
                self.pad(self.len + 1);
                return Ok(());
            }
            _ => return self.push_other(value, name, row),
        }
        self.valid.append_non_null();
        self.len += 1;
        Ok(())
    }

    /// Appends numbers of one type, at most one a row, whose rows count from `base` on. Returns false, and appends nothing, if
    /// the column has another form.
    pub(crate) fn extend_numbers(&mut self, base: usize, numbers: &Numbers) -> bool {
        let Some(kind) = numbers.kind else { return true };
        let bits = match kind {
            NumberType::I8 => Some(IntBits::B8),
            NumberType::I16 => Some(IntBits::B16),
            NumberType::I32 => Some(IntBits::B32),
            NumberType::I64 => Some(IntBits::B64),
            NumberType::F32 | NumberType::F64 => None,
        };
        if self.lists || self.ids {
            return false;
        }
        if matches!(self.data, Data::Nulls) && self.expected == Kind::Null {
            self.data = match bits {
                Some(bits) => Data::Int(bits, vec![0; self.len]),
                None => Data::Float { double: kind == NumberType::F64, numbers: vec![0.0; self.len] },
            };
        }
        match (&self.data, bits) {
            (Data::Int(of, _), Some(bits)) if *of == bits => {}
            (Data::Float { double, .. }, None) if *double == (kind == NumberType::F64) => {}
            _ => return false,
        }
        self.pad(base);
        let mut at = 0;
        while at < numbers.len() {
            // A run of rows that follow one another is appended at once.
            let begin = base + numbers.row[at] as usize;
            self.pad(begin);
            let run = numbers.row[at..].iter().zip(numbers.row[at]..).take_while(|(row, next)| **row == *next).count();
            match &mut self.data {
                Data::Int(_, all) => all.extend_from_slice(&numbers.integers[at..at + run]),
                Data::Float { numbers: all, .. } => all.extend_from_slice(&numbers.floats[at..at + run]),
                _ => return false,
            }
            self.valid.append_n_non_nulls(run);
            self.len += run;
            at += run;
        }
        true
    }

    /// Appends the values of a row under one key, of which there are several.
    pub(crate) fn push_several(&mut self, values: Vec<Value>, name: &str, row: u64) -> Result<()> {
        self.become_lists();
        self.push_as_is(Value::list(values), name, row)
    }

    /// Gives each row a list of its values.
    pub(crate) fn become_lists(&mut self) {
        if self.lists {
            return;
        }
        let kind = Kind::List(Box::new(self.kind()));
        let listed = |value: Value| if value == Value::Null { value } else { Value::list(vec![value]) };
        let values = self.take_values().into_iter().map(listed).collect();
        self.lists = true;
        self.expected = kind.clone();
        self.data = Data::other(kind, values);
    }

    /// Appends a value that is not of the form of the column.
    fn push_other(&mut self, value: Value, name: &str, row: u64) -> Result<()> {
        if !matches!(self.data, Data::Text { is_mixed: true, .. }) {
            let kind = if self.ids { Ok(of_id(&value)) } else { Kind::of(&value) };
            match kind {
                Ok(kind) => {
                    let before = self.kind();
                    let is_wide = match before.with(&kind) {
                        Some(both) => self.widen(both)?,
                        None => false,
                    };
                    if !is_wide {
                        self.become_text(&before, &kind, name, row)?;
                    }
                }
                Err(_) if self.mixed == Mixed::Text => self.make_text(true)?,
                Err(error) => return Err(placed(error, name, row)),
            }
        }
        if !self.append(&value)? {
            // An integer that no float is equal to.
            let (before, kind) = (self.kind(), Kind::Int(IntBits::B64));
            self.become_text(&before, &kind, name, row)?;
            self.append(&value)?;
        }
        self.valid.append_non_null();
        self.len += 1;
        Ok(())
    }

    /// Gives the column the form for a kind that holds all of its values. Returns false if the column has integers that no float
    /// is equal to.
    fn widen(&mut self, to: Kind) -> Result<bool> {
        match (&mut self.data, to) {
            (Data::Bool(_), Kind::Bool) => {}
            (Data::Int(bits, _), Kind::Int(to)) => *bits = to,
            (Data::Int(..), Kind::Id { integers: true }) => {}
            (Data::Float { double, .. }, Kind::Float { double: to }) => *double = to,
            (Data::Text { .. }, Kind::Text | Kind::Id { integers: false }) => {}
            (Data::Other { kind, .. }, to) => {
                if *kind != to {
                    *kind = to;
                }
            }
            (Data::Int(_, numbers), Kind::Float { .. }) => {
                let floats: Option<Vec<f64>> = numbers.iter().map(|number| exact_float(*number)).collect();
                let Some(numbers) = floats else { return Ok(false) };
                self.data = Data::Float { double: true, numbers };
            }
            (Data::Nulls, Kind::Bool) => self.data = Data::Bool(vec![false; self.len]),
            (Data::Nulls, Kind::Int(bits)) => self.data = Data::Int(bits, vec![0; self.len]),
            (Data::Nulls, Kind::Id { integers: true }) => self.data = Data::Int(IntBits::B64, vec![0; self.len]),
            (Data::Nulls, Kind::Float { double }) => self.data = Data::Float { double, numbers: vec![0.0; self.len] },
            (_, Kind::Text | Kind::Id { integers: false }) => self.make_text(false)?,
            (_, kind) => self.data = Data::other(kind, self.take_values()),
        }
        Ok(true)
    }

    /// Appends a value to the form, which is wide enough. Returns false for an integer that no float is equal to. The caller
    /// counts the value.
    fn append(&mut self, value: &Value) -> Result<bool> {
        match (&mut self.data, value) {
            (Data::Bool(values), Value::Bool(is)) => values.push(*is),
            (Data::Int(_, numbers), value) => match integer(value) {
                Some(number) => numbers.push(number),
                None => return Err(Error::bug("a column of integers takes integers")),
            },
            (Data::Float { numbers, .. }, value) => match (value, integer(value)) {
                (Value::F32(number), _) => numbers.push(f64::from(*number)),
                (Value::F64(number), _) => numbers.push(*number),
                (_, number) => match number.and_then(exact_float) {
                    Some(number) => numbers.push(number),
                    None => return Ok(false),
                },
            },
            (Data::Text { ends, bytes, .. }, value) => push_text(ends, bytes, value)?,
            (Data::Other { values, parts, .. }, value) => {
                *parts += bytes_of_parts(value);
                values.push(value.clone());
            }
            (Data::Bool(_) | Data::Nulls, _) => return Err(Error::bug("the column was not made wide enough")),
        }
        Ok(true)
    }

    /// Two kinds clash: the column becomes text if the options say so.
    fn become_text(&mut self, before: &Kind, kind: &Kind, name: &str, row: u64) -> Result<()> {
        if self.mixed == Mixed::Text {
            return self.make_text(true);
        }
        let (before, kind) = (before.data_type(), kind.data_type());
        Err(Error::invalid(format!(
            "the column '{name}' has values of the types {before} and {kind}, which no Arrow type holds together; the first \
             {kind} that does not fit is in row {row}, counted from 0; convert the values in the query, or make such columns \
             text (mixed = text)"
        )))
    }

    fn make_text(&mut self, is_mixed: bool) -> Result<()> {
        let (mut ends, mut bytes) = (Vec::with_capacity(self.len), Vec::new());
        for value in self.take_values() {
            match value {
                Value::Null => ends.push(bytes.len() as i32),
                value => push_text(&mut ends, &mut bytes, &value)?,
            }
        }
        self.data = Data::Text { ends, bytes, is_mixed };
        Ok(())
    }

    /// The validity of the rows so far, which stays.
    fn validity(&self) -> Option<NullBuffer> {
        self.valid.finish_cloned()
    }

    /// Takes the values out, nulls included. The validity stays.
    fn take_values(&mut self) -> Vec<Value> {
        let valid = self.validity();
        let is_null = |at: usize| valid.as_ref().is_some_and(|valid| valid.is_null(at));
        let or_null = |at: usize, value: Value| if is_null(at) { Value::Null } else { value };
        match std::mem::replace(&mut self.data, Data::Nulls) {
            Data::Nulls => vec![Value::Null; self.len],
            Data::Bool(values) => values.into_iter().enumerate().map(|(at, is)| or_null(at, Value::Bool(is))).collect(),
            Data::Int(bits, numbers) => {
                let value = |number: i64| match bits {
                    IntBits::B8 => Value::I8(number as i8),
                    IntBits::B16 => Value::I16(number as i16),
                    IntBits::B32 => Value::I32(number as i32),
                    IntBits::B64 => Value::I64(number),
                };
                let value = |number: i64| if self.ids { Value::I64(number) } else { value(number) };
                numbers.into_iter().enumerate().map(|(at, number)| or_null(at, value(number))).collect()
            }
            Data::Float { double, numbers } => {
                let value = |number: f64| if double { Value::F64(number) } else { Value::F32(number as f32) };
                numbers.into_iter().enumerate().map(|(at, number)| or_null(at, value(number))).collect()
            }
            Data::Text { ends, bytes, .. } => {
                let start = |at: usize| if at == 0 { 0 } else { ends[at - 1] as usize };
                let text = |at: usize| String::from_utf8_lossy(&bytes[start(at)..ends[at] as usize]).into_owned();
                (0..ends.len()).map(|at| or_null(at, Value::from(text(at)))).collect()
            }
            Data::Other { values, .. } => values,
        }
    }

    /// The column as an array of a type. Its first row is row `first` of all results.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if a value does not fit the type.
    pub(crate) fn finish(mut self, target: &DataType, name: &str, first: u64) -> Result<ArrayRef> {
        if matches!(self.data, Data::Nulls) {
            return Ok(nulls(target, self.len));
        }
        self.check_text(target, name)?;
        let valid = self.validity();
        Ok(match (std::mem::replace(&mut self.data, Data::Nulls), target) {
            (Data::Bool(values), DataType::Boolean) => Arc::new(BooleanArray::new(BooleanBuffer::from(values), valid)),
            (Data::Int(_, numbers), DataType::Int64) => {
                Arc::new(PrimitiveArray::<Int64Type>::new(ScalarBuffer::from(numbers), valid))
            }
            (Data::Int(IntBits::B32, numbers), DataType::Int32) => {
                let numbers = numbers.into_iter().map(|number| number as i32).collect::<Vec<_>>();
                Arc::new(PrimitiveArray::<Int32Type>::new(numbers.into(), valid))
            }
            (Data::Int(IntBits::B16, numbers), DataType::Int16) => {
                let numbers = numbers.into_iter().map(|number| number as i16).collect::<Vec<_>>();
                Arc::new(PrimitiveArray::<Int16Type>::new(numbers.into(), valid))
            }
            (Data::Int(IntBits::B8, numbers), DataType::Int8) => {
                let numbers = numbers.into_iter().map(|number| number as i8).collect::<Vec<_>>();
                Arc::new(PrimitiveArray::<Int8Type>::new(numbers.into(), valid))
            }
            (Data::Float { numbers, .. }, DataType::Float64) => {
                Arc::new(PrimitiveArray::<Float64Type>::new(ScalarBuffer::from(numbers), valid))
            }
            (Data::Float { double: false, numbers }, DataType::Float32) => {
                let numbers = numbers.into_iter().map(|number| number as f32).collect::<Vec<_>>();
                Arc::new(PrimitiveArray::<Float32Type>::new(numbers.into(), valid))
            }
            (Data::Text { ends, bytes, .. }, DataType::Utf8) => {
                let mut offsets = Vec::with_capacity(ends.len() + 1);
                offsets.push(0);
                offsets.extend_from_slice(&ends);
                let text = StringArray::try_new(OffsetBuffer::new(offsets.into()), Buffer::from(bytes), valid);
                Arc::new(text.map_err(crate::build::arrow)?)
            }
            (data, target) => {
                self.data = data;
                let values = self.take_values();
                let cells: Vec<Cow<'_, Value>> = values.iter().map(Cow::Borrowed).collect();
                build(&cells, target).map_err(|error| {
                    // Says which row it is. Only now, because rows are built faster together.
                    let bad = cells.iter().position(|cell| build(std::slice::from_ref(cell), target).is_err());
                    match bad {
                        Some(at) => error
                            .context(format!("row {}, counted from 0", first + at as u64))
                            .context(format!("the column '{name}'"))
                            .and(
                                "A stream takes its types from its first batch: take the results as a whole, give a schema, or \
                                 convert the values in the query",
                            ),
                        None => error.context(format!("the column '{name}'")),
                    }
                })?
            }
        })
    }

    /// Fails if values that are no text would become text, and the options do not say so.
    fn check_text(&self, target: &DataType, name: &str) -> Result<()> {
        let is_text_type = matches!(target, DataType::Utf8 | DataType::LargeUtf8);
        let of = self.data_type();
        let is_text_kind = of == DataType::Utf8 || matches!(self.data, Data::Other { kind: Kind::Decimal { .. }, .. });
        if !is_text_type || is_text_kind || self.mixed == Mixed::Text || self.ids {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "the column '{name}' has values of the type {of}, and should be {target}; convert the values in the query, or make \
             such columns text (mixed = text)"
        )))
    }
}

/// Adds column and row to an error about one value.
fn placed(error: Error, name: &str, row: u64) -> Error {
    error
        .context(format!("row {row}, counted from 0"))
        .context(format!("the column '{name}'"))
        .and("Convert the values in the query")
}

fn integer(value: &Value) -> Option<i64> {
    Some(match value {
        Value::I8(number) => i64::from(*number),
        Value::I16(number) => i64::from(*number),
        Value::I32(number) => i64::from(*number),
        Value::I64(number) => *number,
        _ => return None,
    })
}

fn push_text(ends: &mut Vec<i32>, bytes: &mut Vec<u8>, value: &Value) -> Result<()> {
    if let Value::String(text) = value {
        bytes.extend_from_slice(text.as_bytes());
    } else {
        let mut text = String::new();
        write_text(&mut text, value)?;
        bytes.extend_from_slice(text.as_bytes());
    }
    if bytes.len() > TEXT_BYTES_MAX {
        return Err(too_large());
    }
    ends.push(bytes.len() as i32);
    Ok(())
}
