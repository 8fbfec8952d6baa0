//! The kinds of values under a key, for formats that give each column one type.
//!
//! A property key has no type. So the values of a label are read once before they are written, and every kind of value
//! under a key gets a column. Nearly always that is one column. If a key holds an int in one vertex and a text in
//! another, two columns have its name, and a row has a value in one of them.

use std::collections::BTreeMap;

use mangrove_graph::{KeyId, PropertyRow, Value};

use super::elements::by_key;

/// The type of one value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Scalar {
    Bool,
    I8,
    I16,
    I32,
    I64,
    BigInt,
    F32,
    F64,
    Decimal,
    Char,
    String,
    Bytes,
    Uuid,
    DateTime,
    Duration,
    /// Any value, written as typed JSON.
    Any,
}

/// The shape of the values under one key of one element.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum ColumnShape {
    /// One value. A list of mixed values, or an empty one, is a value of type [`Scalar::Any`].
    One,
    /// One value, which is a list of values of one type.
    List,
    /// Several values under one key.
    Several,
}

/// The kind of the values in a column: single values, lists or several values, and their type.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct ColumnKind {
    pub(crate) shape: ColumnShape,
    pub(crate) scalar: Scalar,
}

impl Scalar {
    /// The type of a value.
    pub(crate) fn of(value: &Value) -> Self {
        match value {
            Value::Bool(_) => Scalar::Bool,
            Value::I8(_) => Scalar::I8,
            Value::I16(_) => Scalar::I16,
            Value::I32(_) => Scalar::I32,
            Value::I64(_) => Scalar::I64,
            Value::BigInt(_) => Scalar::BigInt,
            Value::F32(_) => Scalar::F32,
            Value::F64(_) => Scalar::F64,
            Value::Decimal(_) => Scalar::Decimal,
            Value::Char(_) => Scalar::Char,
            Value::String(_) => Scalar::String,
            Value::Bytes(_) => Scalar::Bytes,
            Value::Uuid(_) => Scalar::Uuid,
            Value::DateTime(_) => Scalar::DateTime,
            Value::Duration(_) => Scalar::Duration,
            _ => Scalar::Any,
        }
    }

    /// The type that all values have; [`Scalar::Any`] if they differ.
    fn of_all<'v>(mut values: impl Iterator<Item = &'v Value>) -> Self {
        let Some(first) = values.next() else { return Scalar::Any };
        let first = Scalar::of(first);
        if values.all(|value| Scalar::of(value) == first) { first } else { Scalar::Any }
    }

    /// The name of the type in a header.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Scalar::Bool => "bool",
            Scalar::I8 => "byte",
            Scalar::I16 => "short",
            Scalar::I32 => "int",
            Scalar::I64 => "long",
            Scalar::BigInt => "bigint",
            Scalar::F32 => "float",
            Scalar::F64 => "double",
            Scalar::Decimal => "decimal",
            Scalar::Char => "char",
            Scalar::String => "string",
            Scalar::Bytes => "bytes",
            Scalar::Uuid => "uuid",
            Scalar::DateTime => "datetime",
            Scalar::Duration => "duration",
            Scalar::Any => "any",
        }
    }
}

impl ColumnKind {
    /// The kind of the values under one key of one element.
    pub(crate) fn of(values: &[PropertyRow]) -> Self {
        match values {
            [only] => match &only.value {
                Value::List(items) => match Scalar::of_all(items.iter()) {
                    Scalar::Any => ColumnKind { shape: ColumnShape::One, scalar: Scalar::Any },
                    scalar => ColumnKind { shape: ColumnShape::List, scalar },
                },
                value => ColumnKind { shape: ColumnShape::One, scalar: Scalar::of(value) },
            },
            several => ColumnKind {
                shape: ColumnShape::Several,
                scalar: Scalar::of_all(several.iter().map(|property| &property.value)),
            },
        }
    }

    /// The name of the kind in a header: `int`, `int[](single)` (one list), `int[](list)` (several values).
    pub(crate) fn name(self) -> String {
        let suffix = match self.shape {
            ColumnShape::One => "",
            ColumnShape::List => "[](single)",
            ColumnShape::Several => "[](list)",
        };
        format!("{}{suffix}", self.scalar.name())
    }
}

/// The columns of a label.
#[derive(Clone, Debug, Default)]
pub(crate) struct ColumnSchema {
    /// The columns, with their positions after [`seal`](Self::seal).
    columns: BTreeMap<(KeyId, ColumnKind), usize>,
    /// The number of values with meta-properties.
    pub(crate) with_meta: u64,
}

impl ColumnSchema {
    /// Adds the columns that the properties of an element need.
    pub(crate) fn add(&mut self, properties: &[PropertyRow]) {
        for values in by_key(properties) {
            self.add_kind(values, ColumnKind::of(values));
        }
    }

    /// Adds the column that the values under one key need, as this kind.
    pub(crate) fn add_kind(&mut self, values: &[PropertyRow], kind: ColumnKind) {
        self.columns.entry((values[0].key, kind)).or_insert(0);
        self.with_meta += values.iter().filter(|property| !property.meta.is_empty()).count() as u64;
    }

    /// The columns in their order: keys as they were interned, and the kinds of each.
    pub(crate) fn columns(&self) -> impl Iterator<Item = (KeyId, ColumnKind)> {
        self.columns.keys().copied()
    }

    /// Numbers the columns in their order, after all elements were added.
    pub(crate) fn seal(&mut self) {
        self.columns.values_mut().enumerate().for_each(|(at, number)| *number = at);
    }

    /// The position of the column of a key and a kind that were added.
    pub(crate) fn position_of(&self, key: KeyId, kind: ColumnKind) -> usize {
        self.columns[&(key, kind)]
    }

    /// Returns true if a key has columns of several kinds.
    pub(crate) fn is_mixed(&self, key: KeyId) -> bool {
        self.columns.range((key, FIRST)..=(key, LAST)).nth(1).is_some()
    }
}

/// The first and the last kind, in the order of kinds.
const FIRST: ColumnKind = ColumnKind { shape: ColumnShape::One, scalar: Scalar::Bool };
const LAST: ColumnKind = ColumnKind { shape: ColumnShape::Several, scalar: Scalar::Any };

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::ColumnType;

    /// Every name that is written to a header is read as the same type.
    #[test]
    fn every_name_is_a_type_of_columns() {
        use Scalar::*;
        let all =
            [Bool, I8, I16, I32, I64, BigInt, F32, F64, Decimal, Char, String, Bytes, Uuid, DateTime, Duration, Any];
        for scalar in all {
            let read = ColumnType::from_name(scalar.name()).unwrap();
            // Two types have longer names in messages; the first word is the same.
            assert!(scalar == Bool || scalar.name().starts_with(read.name().split(' ').next().unwrap()), "{read:?}");
        }
        assert_eq!(all.last(), Some(&LAST.scalar), "none was added after it");
    }
}
