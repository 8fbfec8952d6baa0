//! Numbers of one type, as objects of rows: eight bytes a row instead of a [`Value`] of 32.
//!
//! - **STEPS-12.** A column of numbers stands for the same values in a mixed column: any operator may meet one, and its
//!   results do not depend on which of the two it meets. `values(key)` makes columns of numbers only before operators
//!   that read them as arrays (`build::numbers`), because each of the others would make the values again.

use mangrove_graph::{NumberType, Numbers, Value};

/// Numbers of one type, borrowed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum NumberSlice<'a> {
    /// Integers of this type.
    Integers(NumberType, &'a [i64]),
    /// Floats of this type.
    Floats(NumberType, &'a [f64]),
}

impl<'a> NumberSlice<'a> {
    /// Returns numbers that were read from a graph; `None` if there are none.
    pub fn of(numbers: &'a Numbers) -> Option<Self> {
        Some(match numbers.kind? {
            kind if kind.is_float() => NumberSlice::Floats(kind, &numbers.floats),
            kind => NumberSlice::Integers(kind, &numbers.integers),
        })
    }

    /// Returns the number of numbers.
    pub fn len(self) -> usize {
        match self {
            NumberSlice::Integers(_, numbers) => numbers.len(),
            NumberSlice::Floats(_, numbers) => numbers.len(),
        }
    }

    /// Returns the type of all numbers.
    pub fn kind(self) -> NumberType {
        match self {
            NumberSlice::Integers(kind, _) | NumberSlice::Floats(kind, _) => kind,
        }
    }

    /// Returns a number as a value of its type.
    pub fn value(self, at: usize) -> Value {
        match self {
            NumberSlice::Integers(kind, numbers) => kind.integer(numbers[at]),
            NumberSlice::Floats(kind, numbers) => kind.float(numbers[at]),
        }
    }

    /// Returns all numbers as values of their type.
    pub fn values(self) -> impl Iterator<Item = Value> {
        (0..self.len()).map(move |at| self.value(at))
    }
}

/// The numbers of a column.
#[derive(Clone, Debug, PartialEq)]
enum Array {
    Integers(Vec<i64>),
    Floats(Vec<f64>),
}

/// Numbers of one type, one for each row.
///
/// Invariant: the array is one of floats if and only if the type is a float type, and each number fits in the type.
#[derive(Clone, Debug, PartialEq)]
pub struct NumberColumn {
    kind: NumberType,
    array: Array,
}

impl NumberColumn {
    /// A column of these integers. Returns `None` if the type is a float type or if a number does not fit in it.
    pub(crate) fn of_integers(kind: NumberType, numbers: Vec<i64>) -> Option<Self> {
        let (low, high) = match kind {
            NumberType::I8 => (i8::MIN.into(), i8::MAX.into()),
            NumberType::I16 => (i16::MIN.into(), i16::MAX.into()),
            NumberType::I32 => (i32::MIN.into(), i32::MAX.into()),
            NumberType::I64 => (i64::MIN, i64::MAX),
            NumberType::F32 | NumberType::F64 => return None,
        };
        let fit = numbers.iter().all(|n| (low..=high).contains(n));
        fit.then_some(NumberColumn { kind, array: Array::Integers(numbers) })
    }

    /// A column of these floats. Returns `None` if the type is an integer type. Numbers that do not fit are rounded.
    pub(crate) fn of_floats(kind: NumberType, mut numbers: Vec<f64>) -> Option<Self> {
        match kind {
            NumberType::F32 => numbers.iter_mut().for_each(|n| *n = f64::from(*n as f32)),
            NumberType::F64 => {}
            NumberType::I8 | NumberType::I16 | NumberType::I32 | NumberType::I64 => return None,
        }
        Some(NumberColumn { kind, array: Array::Floats(numbers) })
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.slice().len()
    }

    /// Returns true if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the numbers as they are read from a graph, one for each row.
    pub fn into_numbers(self) -> Numbers {
        if self.is_empty() {
            return Numbers::default();
        }
        let row = (0..self.len() as u32).collect();
        match self.array {
            Array::Integers(integers) => Numbers { row, kind: Some(self.kind), integers, floats: Vec::new() },
            Array::Floats(floats) => Numbers { row, kind: Some(self.kind), integers: Vec::new(), floats },
        }
    }

    /// Returns the numbers.
    pub(crate) fn slice(&self) -> NumberSlice<'_> {
        match &self.array {
            Array::Integers(numbers) => NumberSlice::Integers(self.kind, numbers),
            Array::Floats(numbers) => NumberSlice::Floats(self.kind, numbers),
        }
    }

    /// Returns the bytes of the column.
    pub(crate) fn bytes(&self) -> usize {
        self.len() * size_of::<i64>()
    }

    /// Returns the numbers of these rows.
    pub(crate) fn gather(&self, rows: &[u32]) -> NumberColumn {
        let array = match &self.array {
            Array::Integers(numbers) => Array::Integers(rows.iter().map(|&row| numbers[row as usize]).collect()),
            Array::Floats(numbers) => Array::Floats(rows.iter().map(|&row| numbers[row as usize]).collect()),
        };
        NumberColumn { kind: self.kind, array }
    }

    /// Appends a column of the same type. Gives a column of another type back.
    pub(crate) fn append(&mut self, other: NumberColumn) -> Result<(), NumberColumn> {
        match (&mut self.array, other) {
            (Array::Integers(a), NumberColumn { kind, array: Array::Integers(b) }) if kind == self.kind => a.extend(b),
            (Array::Floats(a), NumberColumn { kind, array: Array::Floats(b) }) if kind == self.kind => a.extend(b),
            (_, other) => return Err(other),
        }
        Ok(())
    }
}

impl From<NumberSlice<'_>> for NumberColumn {
    /// A copy of the numbers.
    fn from(numbers: NumberSlice<'_>) -> Self {
        let array = match numbers {
            NumberSlice::Integers(_, numbers) => Array::Integers(numbers.to_vec()),
            NumberSlice::Floats(_, numbers) => Array::Floats(numbers.to_vec()),
        };
        NumberColumn { kind: numbers.kind(), array }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn integers(kind: NumberType, numbers: &[i64]) -> NumberColumn {
        NumberColumn::of_integers(kind, numbers.to_vec()).unwrap()
    }

    fn values(column: &NumberColumn) -> Vec<Value> {
        column.slice().values().collect()
    }

    #[test]
    fn a_column_has_one_type_and_keeps_it() {
        let mut column = integers(NumberType::I16, &[1, -2, 3]);
        assert_eq!(values(&column.gather(&[2, 0])), vec![Value::I16(3), Value::I16(1)]);
        column.append(integers(NumberType::I16, &[4])).unwrap();
        assert_eq!((column.len(), column.bytes()), (4, 32));
        let long = integers(NumberType::I64, &[5]);
        assert_eq!(column.append(long.clone()), Err(long));
        let float = NumberColumn::of_floats(NumberType::F32, vec![0.1]).unwrap();
        assert_eq!(values(&float), vec![Value::F32(0.1)]);
        assert!(column.append(float).is_err());
        assert_eq!(values(&column), [1, -2, 3, 4].map(Value::I16));
    }

    #[test]
    fn numbers_fit_in_their_type() {
        assert_eq!(NumberColumn::of_integers(NumberType::I8, vec![127, 128]), None);
        assert_eq!(NumberColumn::of_integers(NumberType::F64, vec![1]), None);
        assert_eq!(NumberColumn::of_floats(NumberType::I64, vec![1.0]), None);
    }
}
