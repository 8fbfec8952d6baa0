//! Of what kind the values under a key are, for formats that say so once a column.
//!
//! A column has one type; a property key has none. So the values of a label are looked through once, and every kind
//! met under a key becomes a column of its own: almost always one. Where a key holds an int here and
//! a text there, two columns have its name, and a row has a value in one of them.

use std::collections::BTreeMap;

use mangrove_graph::{KeyId, PropertyRow, Value};

use super::elements::by_key;

/// What one value is.
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
    /// Anything: written as typed JSON.
    Any,
}

/// How many values there are.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Shape {
    One,
    /// One value, which is a list.
    List,
    /// Several values under one key.
    Several,
}

/// What a column holds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Kind {
    pub(crate) shape: Shape,
    pub(crate) scalar: Scalar,
}

impl Scalar {
    /// What a value is.
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

    /// The scalar that all values are; [`Scalar::Any`] where they differ.
    fn of_all<'v>(mut values: impl Iterator<Item = &'v Value>) -> Self {
        let Some(first) = values.next() else { return Scalar::Any };
        let first = Scalar::of(first);
        if values.all(|value| Scalar::of(value) == first) { first } else { Scalar::Any }
    }

    /// Its name in a header.
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

impl Kind {
    /// The kind of what stands under one key of one element.
    pub(crate) fn of(values: &[PropertyRow]) -> Self {
        match values {
            [only] => match &only.value {
                Value::List(items) => match Scalar::of_all(items.iter()) {
                    // A list of anything, or an empty one, is itself anything.
                    Scalar::Any => Kind { shape: Shape::One, scalar: Scalar::Any },
                    scalar => Kind { shape: Shape::List, scalar },
                },
                value => Kind { shape: Shape::One, scalar: Scalar::of(value) },
            },
            several => {
                Kind { shape: Shape::Several, scalar: Scalar::of_all(several.iter().map(|property| &property.value)) }
            }
        }
    }

    /// Its name in a header: `int`, `int[](single)` (one list), `int[](list)` (several values).
    pub(crate) fn name(self) -> String {
        let suffix = match self.shape {
            Shape::One => "",
            Shape::List => "[](single)",
            Shape::Several => "[](list)",
        };
        format!("{}{suffix}", self.scalar.name())
    }
}

/// The columns of a label.
#[derive(Clone, Debug, Default)]
pub(crate) struct Schema {
    /// With their positions, once sealed.
    columns: BTreeMap<(KeyId, Kind), usize>,
    /// Values with meta-properties.
    pub(crate) with_meta: u64,
}

impl Schema {
    /// Takes the properties of an element into account.
    pub(crate) fn add(&mut self, properties: &[PropertyRow]) {
        for values in by_key(properties) {
            self.add_kind(values, Kind::of(values));
        }
    }

    /// Takes what stands under one key of an element into account, as this kind.
    pub(crate) fn add_kind(&mut self, values: &[PropertyRow], kind: Kind) {
        self.columns.entry((values[0].key, kind)).or_insert(0);
        self.with_meta += values.iter().filter(|property| !property.meta.is_empty()).count() as u64;
    }

    /// The columns in their order: keys as they were interned, and the kinds of each.
    pub(crate) fn columns(&self) -> impl Iterator<Item = (KeyId, Kind)> {
        self.columns.keys().copied()
    }

    /// Numbers the columns by their order, once all is looked through.
    pub(crate) fn seal(&mut self) {
        self.columns.values_mut().enumerate().for_each(|(at, number)| *number = at);
    }

    /// The column of a key and a kind, both looked through.
    pub(crate) fn position_of(&self, key: KeyId, kind: Kind) -> usize {
        self.columns[&(key, kind)]
    }

    /// Whether a key has columns of several kinds.
    pub(crate) fn is_mixed(&self, key: KeyId) -> bool {
        self.columns.range((key, FIRST)..=(key, LAST)).nth(1).is_some()
    }
}

const FIRST: Kind = Kind { shape: Shape::One, scalar: Scalar::Bool };
const LAST: Kind = Kind { shape: Shape::Several, scalar: Scalar::Any };

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column_type::ColumnType;

    /// What a header is written with is what a header is read by.
    #[test]
    fn every_name_is_a_type_of_columns() {
        use Scalar::*;
        let all =
            [Bool, I8, I16, I32, I64, BigInt, F32, F64, Decimal, Char, String, Bytes, Uuid, DateTime, Duration, Any];
        for scalar in all {
            let read = ColumnType::from_name(scalar.name()).unwrap();
            // What messages call it differs for two: the first word is the same.
            assert!(scalar == Bool || scalar.name().starts_with(read.name().split(' ').next().unwrap()), "{read:?}");
        }
        assert_eq!(all.last(), Some(&LAST.scalar), "none was added behind");
    }
}
