//! Numbers of one type as plain arrays, for sums and comparisons over a property.
//!
//! A [`Value`] is 32 bytes with a tag to test. Most properties that are numbers have the same type in every element,
//! and are read eight bytes at a time instead. Integers of all widths are held as `i64` and floats as `f64`, both
//! exactly. [`Numbers::kind`] names their original type, since a sum has the type of its summands.

use crate::value::Value;

/// The types that [`Numbers`] holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberType {
    /// [`Value::I8`]
    I8,
    /// [`Value::I16`]
    I16,
    /// [`Value::I32`]
    I32,
    /// [`Value::I64`]
    I64,
    /// [`Value::F32`]
    F32,
    /// [`Value::F64`]
    F64,
}

impl NumberType {
    /// The type of a value, if it is one of these.
    pub fn of(value: &Value) -> Option<Self> {
        Some(match value {
            Value::I8(_) => NumberType::I8,
            Value::I16(_) => NumberType::I16,
            Value::I32(_) => NumberType::I32,
            Value::I64(_) => NumberType::I64,
            Value::F32(_) => NumberType::F32,
            Value::F64(_) => NumberType::F64,
            _ => return None,
        })
    }

    /// Returns true for a float type.
    pub fn is_float(self) -> bool {
        matches!(self, NumberType::F32 | NumberType::F64)
    }

    /// A value of this integer type. The number must fit in the type.
    pub fn integer(self, number: i64) -> Value {
        match self {
            NumberType::I8 => Value::I8(number as i8),
            NumberType::I16 => Value::I16(number as i16),
            NumberType::I32 => Value::I32(number as i32),
            _ => Value::I64(number),
        }
    }

    /// A value of this float type. The number must fit in the type.
    pub fn float(self, number: f64) -> Value {
        match self {
            NumberType::F32 => Value::F32(number as f32),
            _ => Value::F64(number),
        }
    }
}

/// Numbers of one type with the input rows they belong to. An input row has as many entries as it has values.
///
/// Either `integers` or `floats` is parallel to `row`, and the other is empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Numbers {
    /// The type; `None` if and only if there are no numbers.
    pub kind: Option<NumberType>,
    /// The input row each belongs to, ascending.
    pub row: Vec<u32>,
    /// Integers of every width.
    pub integers: Vec<i64>,
    /// Floats of both widths.
    pub floats: Vec<f64>,
}

impl Numbers {
    /// Forgets the content and keeps the memory.
    pub fn clear(&mut self) {
        self.kind = None;
        self.row.clear();
        self.integers.clear();
        self.floats.clear();
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.row.len()
    }

    /// Returns true if there are no entries.
    pub fn is_empty(&self) -> bool {
        self.row.is_empty()
    }

    /// The number at a position, as a value of its type.
    pub fn value(&self, at: usize) -> Option<Value> {
        let kind = self.kind?;
        match kind.is_float() {
            true => self.floats.get(at).map(|n| kind.float(*n)),
            false => self.integers.get(at).map(|n| kind.integer(*n)),
        }
    }

    /// Appends a value and returns true, if it is a number of the type held so far. Otherwise appends nothing and
    /// returns false.
    pub fn push(&mut self, row: u32, value: &Value) -> bool {
        let Some(kind) = NumberType::of(value).filter(|kind| self.kind.is_none_or(|k| k == *kind)) else {
            return false;
        };
        match value {
            Value::F32(n) => self.floats.push(f64::from(*n)),
            Value::F64(n) => self.floats.push(*n),
            other => self.integers.extend(crate::numeric::integer(other)),
        }
        self.kind = Some(kind);
        self.row.push(row);
        true
    }

    /// Keeps the first `len` entries.
    pub fn truncate(&mut self, len: usize) {
        self.row.truncate(len);
        self.integers.truncate(len);
        self.floats.truncate(len);
        if len == 0 {
            self.kind = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_type_at_a_time() {
        let mut numbers = Numbers::default();
        assert!(numbers.push(3, &Value::I16(-7)) && numbers.push(3, &Value::I16(9)));
        for other in [Value::I32(1), Value::F64(1.0), Value::from("1"), Value::Null] {
            assert!(!numbers.push(4, &other), "{other:?}");
        }
        assert_eq!(
            (numbers.value(0), numbers.value(1), numbers.value(2)),
            (Some(Value::I16(-7)), Some(9_i16.into()), None)
        );
        numbers.truncate(1);
        assert_eq!((numbers.len(), numbers.kind), (1, Some(NumberType::I16)));
        numbers.clear();
        assert!(numbers.is_empty() && numbers.push(0, &Value::F32(0.1)) && numbers.push(1, &Value::F32(-0.0)));
        assert_eq!(numbers.value(0), Some(Value::F32(0.1)));
        assert!(matches!(numbers.value(1), Some(Value::F32(n)) if n.is_sign_negative()));
    }
}
