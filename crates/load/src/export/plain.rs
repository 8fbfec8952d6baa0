//! Plain columns: one column a key, of a type that SQL tools have, at the price of an exact round trip.
//!
//! | the values of a key | the column |
//! |---|---|
//! | whole numbers of several widths | the widest |
//! | whole numbers and floats | double, if it holds every whole number exactly; else text |
//! | bigints, or whole numbers or bigints among decimals | decimal |
//! | times | timestamp in UTC |
//! | lists, or several values | list of what holds all items; a single value becomes a list of one |
//! | characters, durations, anything mixed otherwise | text; maps and sets as typed JSON |
//!
//! A decimal of more than 38 digits and a time that a timestamp cannot hold make the whole column text.
//!
//! A first pass over a table finds what the values under each key have in common. The values of each row are then
//! converted to the one kind of their key, before the writer of the format gets them. Every conversion is counted.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use bigdecimal::BigDecimal;
use mangrove_graph::{DateTime, KeyId, PropertyRow, Value};
use smol_str::SmolStr;

use super::PlainChanges;
use super::elements::by_key;
use super::kind::{ColumnKind, ColumnShape, Scalar};
use super::text::scalar_text;

/// The facts about all values under one key of a table.
#[derive(Clone, Debug)]
struct Common {
    /// The types of the values; for lists, of their items.
    scalars: BTreeSet<Scalar>,
    /// True if some element has several values, or a list.
    list: bool,
    /// True if a double holds every whole number exactly.
    exact: bool,
}

/// Names of columns that are not properties. SQL tools do not distinguish upper and lower case.
const RESERVED: [&str; 4] = ["id", "label", "src", "dst"];

/// The result of the first pass over a table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Looks(BTreeMap<KeyId, Common>);

/// The kind of the column of each key of a table.
#[derive(Clone, Debug, Default)]
pub(crate) struct PlainKinds(BTreeMap<KeyId, ColumnKind>);

impl Looks {
    /// Adds the properties of an element.
    pub(crate) fn add(&mut self, properties: &[PropertyRow]) {
        for values in by_key(properties) {
            let new = || Common { scalars: BTreeSet::new(), list: false, exact: true };
            let common = self.0.entry(values[0].key).or_insert_with(new);
            common.list |= is_listed(values);
            for_items(values, &mut |value| {
                common.scalars.insert(Scalar::of(value));
                common.exact &= is_exact(value);
            });
        }
    }

    /// Decides the columns, after all elements were added.
    pub(crate) fn decide(self) -> PlainKinds {
        PlainKinds(self.0.into_iter().map(|(key, common)| (key, common.kind())).collect())
    }
}

impl PlainKinds {
    /// The kind of the column of a key that was added.
    pub(crate) fn kind(&self, key: KeyId) -> ColumnKind {
        self.0[&key]
    }

    /// The values under one key of one element, as one value of the kind of the column.
    pub(crate) fn convert(&self, values: &[PropertyRow], changes: &mut PlainChanges) -> Value {
        convert_values(values, self.kind(values[0].key), changes)
    }
}

impl Common {
    fn kind(&self) -> ColumnKind {
        let mut scalars = self.scalars.iter().copied();
        let common = scalars.next().and_then(|first| scalars.try_fold(first, wider));
        let scalar = match common {
            Some(Scalar::F64) if !self.exact && self.scalars.len() > 1 => Scalar::String,
            Some(Scalar::BigInt) => Scalar::Decimal,
            None | Some(Scalar::Any | Scalar::Char | Scalar::Duration) => Scalar::String,
            Some(other) => other,
        };
        ColumnKind { shape: if self.list { ColumnShape::List } else { ColumnShape::One }, scalar }
    }
}

/// The values under one key of one element, as one value of a kind.
fn convert_values(values: &[PropertyRow], kind: ColumnKind, changes: &mut PlainChanges) -> Value {
    if kind.shape == ColumnShape::One {
        return convert(&values[0].value, kind.scalar, changes);
    }
    changes.lists += u64::from(!is_listed(values));
    let mut items = Vec::new();
    for_items(values, &mut |value| items.push(convert(value, kind.scalar, changes)));
    Value::list(items)
}

/// Returns true if an element has several values under a key, or a list.
fn is_listed(values: &[PropertyRow]) -> bool {
    values.len() > 1 || matches!(values[0].value, Value::List(_))
}

/// Calls `each` with every value under a key; for lists, with their items.
fn for_items(values: &[PropertyRow], each: &mut dyn FnMut(&Value)) {
    match values {
        [only] => match &only.value {
            Value::List(items) => items.iter().for_each(each),
            value => each(value),
        },
        several => several.iter().for_each(|property| each(&property.value)),
    }
}

/// The type that holds the values of both; `None`: only text does.
fn wider(a: Scalar, b: Scalar) -> Option<Scalar> {
    let (narrow, wide) = (a.min(b), a.max(b));
    let integer = |scalar| (Scalar::I8..=Scalar::I64).contains(&scalar);
    match (narrow, wide) {
        (a, b) if a == b => Some(a),
        (a, b) if integer(a) && integer(b) => Some(b),
        (a, Scalar::F32 | Scalar::F64) if integer(a) || a == Scalar::F32 => Some(Scalar::F64),
        (a, Scalar::BigInt) if integer(a) => Some(Scalar::BigInt),
        (a, Scalar::Decimal) if integer(a) || a == Scalar::BigInt => Some(Scalar::Decimal),
        _ => None,
    }
}

/// Returns true if a value is no whole number, or one that a double holds exactly.
fn is_exact(value: &Value) -> bool {
    integer(value).is_none_or(|number| i128::from(number) == number as f64 as i128)
}

fn integer(value: &Value) -> Option<i64> {
    match value {
        Value::I8(number) => Some((*number).into()),
        Value::I16(number) => Some((*number).into()),
        Value::I32(number) => Some((*number).into()),
        Value::I64(number) => Some(*number),
        _ => None,
    }
}

/// Converts a value to the type of its column.
fn convert(value: &Value, target: Scalar, changes: &mut PlainChanges) -> Value {
    if let Value::DateTime(time) = value
        && target == Scalar::DateTime
    {
        changes.offsets += u64::from(time.offset_seconds != 0);
        return Value::DateTime(DateTime { offset_seconds: 0, ..*time });
    }
    if Scalar::of(value) == target {
        return value.clone();
    }
    if let Some(number) = widened(value, target) {
        changes.widened += 1;
        return number;
    }
    changes.texts += 1;
    Value::string(scalar_text(value))
}

/// Converts a number to a wider type of number.
fn widened(value: &Value, target: Scalar) -> Option<Value> {
    let whole = integer(value);
    Some(match (target, value) {
        (Scalar::I16, _) => Value::I16(whole?.try_into().ok()?),
        (Scalar::I32, _) => Value::I32(whole?.try_into().ok()?),
        (Scalar::I64, _) => Value::I64(whole?),
        (Scalar::F64, Value::F32(number)) => Value::F64((*number).into()),
        (Scalar::F64, _) => Value::F64(whole? as f64),
        (Scalar::Decimal, Value::BigInt(number)) => Value::Decimal(Arc::new(BigDecimal::from((**number).clone()))),
        (Scalar::Decimal, _) => Value::Decimal(Arc::new(BigDecimal::from(whole?))),
        _ => return None,
    })
}

/// The names of the columns of these keys: the keys themselves, unless another column has the name.
pub(crate) fn column_names(keys: &[SmolStr], changes: &mut PlainChanges) -> Vec<String> {
    let mut taken: HashSet<String> = RESERVED.map(str::to_owned).into();
    // Every key that can have its own name gets it, whatever the order of the keys.
    let own: Vec<bool> = keys.iter().map(|key| taken.insert(key.to_lowercase())).collect();
    let named = keys.iter().zip(own).map(|(key, own)| match own {
        true => key.to_string(),
        false => {
            changes.names += 1;
            free_name(key, &mut taken)
        }
    });
    named.collect()
}

fn free_name(key: &str, taken: &mut HashSet<String>) -> String {
    let mut name = format!("{key}_property");
    let mut number = 1_u64;
    while !taken.insert(name.to_lowercase()) {
        number += 1;
        name = format!("{key}_property_{number}");
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_holds_the_values_of_two_types() {
        use Scalar::*;
        for (a, b, expected) in [
            (I32, I64, Some(I64)),
            (I8, I16, Some(I16)),
            (I64, F32, Some(F64)),
            (F32, F64, Some(F64)),
            (I64, BigInt, Some(BigInt)),
            (BigInt, Decimal, Some(Decimal)),
            (I32, Decimal, Some(Decimal)),
            (F64, Decimal, None),
            (BigInt, F64, None),
            (Bool, I32, None),
            (I64, String, None),
            (DateTime, Duration, None),
        ] {
            assert_eq!((wider(a, b), wider(b, a)), (expected, expected), "{a:?} and {b:?}");
        }
    }

    #[test]
    fn columns_never_have_one_name() {
        let keys = ["id", "ID_property", "age", "Age", "src", "größe: cm"].map(SmolStr::new);
        let mut changes = PlainChanges::default();
        let names = column_names(&keys, &mut changes);
        assert_eq!(names, ["id_property_2", "ID_property", "age", "Age_property", "src_property", "größe: cm"]);
        assert_eq!(changes.names, 3);
    }
}
