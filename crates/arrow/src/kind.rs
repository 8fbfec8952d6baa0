//! The type of a column while its values are read: what holds all of them.
//!
//! Every value has a kind ([`Kind::of`]), two kinds may have one that holds both ([`Kind::with`]), and a kind has an Arrow type
//! ([`Kind::data_type`]). A kind knows more than the type does: how many digits decimals need, for example.

use std::borrow::Cow;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields, TimeUnit};
use mangrove_graph::{Detached, Error, Result, Token, Value};
use num_traits::ToPrimitive;
use smol_str::SmolStr;

/// The most digits of a decimal column: what 128 bits hold.
pub(crate) const DECIMAL_DIGITS_MAX: u32 = 38;

/// The most values inside one result. Collections that share members may be small in memory and endless to read.
const INSIDE_MAX: usize = 1 << 26;

/// The bits of an integer column.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum IntBits {
    B8,
    B16,
    B32,
    B64,
}

/// What a column holds.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Kind {
    /// Nothing but nulls.
    Null,
    Bool,
    Int(IntBits),
    Float {
        double: bool,
    },
    /// Numbers with so many digits before the point, and after it.
    Decimal {
        before: u32,
        after: u32,
    },
    Text,
    Bytes,
    /// Points in time; `fine` if one has a part smaller than a microsecond.
    Time {
        fine: bool,
    },
    /// Lengths of time; `fine` as above.
    Span {
        fine: bool,
    },
    /// Ids of elements: integers, or text for ids of several types.
    Id {
        integers: bool,
    },
    /// Packed floats; with a width if all have the same.
    Vector(Option<usize>),
    List(Box<Kind>),
    /// Named parts. Those of elements may be missing (`open`); all maps have the same keys.
    Struct {
        fields: Vec<(SmolStr, Kind)>,
        open: bool,
    },
    Map(Box<Kind>, Box<Kind>),
}

impl Kind {
    /// The kind of one value.
    ///
    /// # Errors
    ///
    /// If members of a list or a map have no kind in common, or if the value is endless.
    pub(crate) fn of(value: &Value) -> Result<Kind> {
        let mut left = INSIDE_MAX;
        of_value(value, &mut left)
    }

    /// Returns true if it is at once clear that this kind holds a value: common members of lists are looked at, and no others.
    pub(crate) fn surely_holds(&self, value: &Value) -> bool {
        match (self, value) {
            (Kind::List(of), Value::List(items)) => items.iter().all(|item| of.surely_holds(item)),
            (Kind::Text, Value::String(_))
            | (Kind::Int(IntBits::B64), Value::I64(_))
            | (Kind::Int(IntBits::B32), Value::I32(_))
            | (Kind::Float { double: true }, Value::F64(_))
            | (Kind::Bool, Value::Bool(_)) => true,
            _ => false,
        }
    }

    /// The kind that holds what both hold; `None` if there is none.
    pub(crate) fn with(&self, other: &Kind) -> Option<Kind> {
        use Kind::*;
        Some(match (self, other) {
            (Null, kind) | (kind, Null) => kind.clone(),
            (Int(a), Int(b)) => Int(if a == b { *a } else { IntBits::B64 }),
            (Float { double: a }, Float { double: b }) => Float { double: *a || *b },
            (Int(_), Float { .. }) | (Float { .. }, Int(_)) => Float { double: true },
            (Decimal { before, after }, Int(_)) | (Int(_), Decimal { before, after }) => {
                Decimal { before: (*before).max(19), after: *after }
            }
            (Decimal { before: b1, after: a1 }, Decimal { before: b2, after: a2 }) => {
                Decimal { before: *b1.max(b2), after: *a1.max(a2) }
            }
            (Time { fine: a }, Time { fine: b }) => Time { fine: *a || *b },
            (Span { fine: a }, Span { fine: b }) => Span { fine: *a || *b },
            (Id { integers: a }, Id { integers: b }) => Id { integers: *a && *b },
            (Vector(a), Vector(b)) => Vector(if a == b { *a } else { None }),
            (Vector(_), List(of)) | (List(of), Vector(_)) => List(Box::new(of.with(&Float { double: false })?)),
            (List(a), List(b)) => List(Box::new(a.with(b)?)),
            (Struct { fields: a, open: true }, Struct { fields: b, open: true }) => {
                Struct { fields: all_fields(a, b)?, open: true }
            }
            (Struct { fields: a, open: false }, Struct { fields: b, open: false }) if same_names(a, b) => {
                Struct { fields: all_fields(a, b)?, open: false }
            }
            (Struct { fields: a, open: false }, Struct { fields: b, open: false }) => {
                Map(Box::new(Text), Box::new(common(a.iter().chain(b).map(|(_, kind)| kind))?))
            }
            (Map(key, value), Struct { fields, open: false }) | (Struct { fields, open: false }, Map(key, value)) => {
                let values = common(fields.iter().map(|(_, kind)| kind))?;
                // An empty map has no keys that could be other than text.
                let key = if fields.is_empty() { (**key).clone() } else { key.with(&Text)? };
                Map(Box::new(key), Box::new(value.with(&values)?))
            }
            (Map(k1, v1), Map(k2, v2)) => Map(Box::new(k1.with(k2)?), Box::new(v1.with(v2)?)),
            (a, b) if a == b => a.clone(),
            _ => return None,
        })
    }

    /// The Arrow type that holds it.
    pub(crate) fn data_type(&self) -> DataType {
        let item = |kind: &Kind| Arc::new(Field::new("item", kind.data_type(), true));
        let unit = |fine: bool| if fine { TimeUnit::Nanosecond } else { TimeUnit::Microsecond };
        match self {
            Kind::Null => DataType::Null,
            Kind::Bool => DataType::Boolean,
            Kind::Int(IntBits::B8) => DataType::Int8,
            Kind::Int(IntBits::B16) => DataType::Int16,
            Kind::Int(IntBits::B32) => DataType::Int32,
            Kind::Int(IntBits::B64) | Kind::Id { integers: true } => DataType::Int64,
            Kind::Float { double: false } => DataType::Float32,
            Kind::Float { double: true } => DataType::Float64,
            Kind::Decimal { before, after } if before + after <= DECIMAL_DIGITS_MAX => {
                DataType::Decimal128(DECIMAL_DIGITS_MAX as u8, *after as i8)
            }
            Kind::Decimal { .. } | Kind::Text | Kind::Id { integers: false } => DataType::Utf8,
            Kind::Bytes => DataType::Binary,
            Kind::Time { fine } => DataType::Timestamp(unit(*fine), Some("UTC".into())),
            Kind::Span { fine } => DataType::Duration(unit(*fine)),
            Kind::Vector(Some(width)) if i32::try_from(*width).is_ok_and(|width| width > 0) => {
                DataType::FixedSizeList(item(&Kind::Float { double: false }), *width as i32)
            }
            Kind::Vector(_) => DataType::List(item(&Kind::Float { double: false })),
            Kind::List(of) => DataType::List(item(of)),
            Kind::Struct { fields, .. } => {
                let fields = fields.iter().map(|(name, kind)| Field::new(name.as_str(), kind.data_type(), true));
                DataType::Struct(fields.collect::<Vec<_>>().into())
            }
            Kind::Map(key, value) => {
                let fields: Fields =
                    vec![Field::new("key", key.data_type(), false), Field::new("value", value.data_type(), true)]
                        .into();
                DataType::Map(Arc::new(Field::new("entries", DataType::Struct(fields), false)), false)
            }
        }
    }
}

fn same_names(a: &[(SmolStr, Kind)], b: &[(SmolStr, Kind)]) -> bool {
    a.len() == b.len() && a.iter().all(|(name, _)| b.iter().any(|(other, _)| other == name))
}

fn all_fields(a: &[(SmolStr, Kind)], b: &[(SmolStr, Kind)]) -> Option<Vec<(SmolStr, Kind)>> {
    let mut all = a.to_vec();
    for (name, kind) in b {
        match all.iter_mut().find(|(other, _)| other == name) {
            Some((_, one)) => *one = one.with(kind)?,
            None => all.push((name.clone(), kind.clone())),
        }
    }
    Some(all)
}

fn common<'k>(kinds: impl Iterator<Item = &'k Kind>) -> Option<Kind> {
    let mut all = Kind::Null;
    for kind in kinds {
        all = all.with(kind)?;
    }
    Some(all)
}

fn of_all<'v>(values: impl Iterator<Item = &'v Value>, left: &mut usize) -> Result<Kind> {
    let mut all = Kind::Null;
    for value in values {
        let kind = of_value(value, left)?;
        all = all.with(&kind).ok_or_else(|| unlike_members(&all, &kind))?;
    }
    Ok(all)
}

/// The error for a collection whose members have no type in common.
fn unlike_members(a: &Kind, b: &Kind) -> Error {
    Error::invalid(format!("a collection has members of the types {} and {}", a.data_type(), b.data_type()))
}

/// A number with so many bits before the point has at most so many digits there.
fn digits(number: &num_bigint::BigInt) -> u32 {
    let text = number.magnitude().to_string();
    if text == "0" { 0 } else { text.len() as u32 }
}

fn of_value(value: &Value, left: &mut usize) -> Result<Kind> {
    *left = left.checked_sub(1).ok_or_else(|| {
        Error::invalid(format!("a result has more than {INSIDE_MAX} values inside it; return its parts as rows"))
    })?;
    Ok(match value {
        Value::Null => Kind::Null,
        Value::Bool(_) => Kind::Bool,
        Value::I8(_) => Kind::Int(IntBits::B8),
        Value::I16(_) => Kind::Int(IntBits::B16),
        Value::I32(_) => Kind::Int(IntBits::B32),
        Value::I64(_) => Kind::Int(IntBits::B64),
        Value::BigInt(number) => Kind::Decimal { before: digits(number), after: 0 },
        Value::F32(_) => Kind::Float { double: false },
        Value::F64(_) => Kind::Float { double: true },
        Value::Decimal(number) => {
            let number = number.normalized();
            let (mantissa, scale) = number.as_bigint_and_exponent();
            let (digits, scale) = (i64::from(digits(&mantissa)), scale.clamp(-1_000_000, 1_000_000));
            let part = |digits: i64| digits.max(0).to_u32().unwrap_or(u32::MAX / 2);
            Kind::Decimal { before: part(digits - scale), after: part(scale) }
        }
        Value::Bytes(_) => Kind::Bytes,
        Value::DateTime(time) => Kind::Time { fine: time.nanos % 1_000 != 0 },
        Value::Duration(span) => Kind::Span { fine: span.nanos % 1_000 != 0 },
        Value::F32Array(numbers) => Kind::Vector(Some(numbers.len())),
        Value::List(values) | Value::Set(values) => Kind::List(Box::new(of_all(values.iter(), left)?)),
        Value::BulkSet(values) => Kind::List(Box::new(of_all(values.iter().map(|(value, _)| value), left)?)),
        Value::Path(path) => Kind::List(Box::new(of_all(path.objects.iter(), left)?)),
        Value::Map(entries) => of_entries(entries, left)?,
        Value::Entry(entry) => of_entries(std::slice::from_ref(&**entry), left)?,
        Value::Detached(_) => {
            let mut fields: Vec<(SmolStr, Kind)> = Vec::new();
            for Part { name, value, is_id } in parts(value).unwrap_or_default() {
                let kind = if is_id { of_id(&value) } else { of_value(&value, left)? };
                fields.push((name, kind));
            }
            Kind::Struct { fields, open: true }
        }
        // Text, and what is shown as text.
        _ => Kind::Text,
    })
}

/// The kind of the id of an element.
pub(crate) fn of_id(id: &Value) -> Kind {
    Kind::Id { integers: matches!(id, Value::I8(_) | Value::I16(_) | Value::I32(_) | Value::I64(_)) }
}

fn of_entries(entries: &[(Value, Value)], left: &mut usize) -> Result<Kind> {
    let mut fields: Vec<(SmolStr, Kind)> = Vec::with_capacity(entries.len());
    for (key, value) in entries {
        match key_name(key) {
            Some(name) if fields.iter().all(|(other, _)| other != name) => {
                fields.push((name.into(), of_value(value, left)?));
            }
            _ => {
                let keys = of_all(entries.iter().map(|(key, _)| key), left)?;
                let values = of_all(entries.iter().map(|(_, value)| value), left)?;
                return Ok(Kind::Map(Box::new(keys), Box::new(values)));
            }
        }
    }
    Ok(Kind::Struct { fields, open: false })
}

/// The name that a key of a map gives a column; `None` if it is no name.
pub(crate) fn key_name(key: &Value) -> Option<&str> {
    Some(match key {
        Value::String(text) => text,
        Value::Token(Token::Id) => "id",
        Value::Token(Token::Label) => "label",
        Value::Token(Token::Key) => "key",
        Value::Token(Token::Value) => "value",
        Value::Direction(mangrove_graph::Direction::Out) => "OUT",
        Value::Direction(mangrove_graph::Direction::In) => "IN",
        Value::Direction(mangrove_graph::Direction::Both) => "BOTH",
        _ => return None,
    })
}

/// A named part of an element or a property.
pub(crate) struct Part<'v> {
    pub(crate) name: SmolStr,
    pub(crate) value: Cow<'v, Value>,
    pub(crate) is_id: bool,
}

/// The parts of a detached element or property, each name once; `None` of other values.
pub(crate) fn parts(value: &Value) -> Option<Vec<Part<'_>>> {
    let Value::Detached(element) = value else { return None };
    let mut all = Vec::new();
    let id = |name: &str, id| Part { name: name.into(), value: Cow::Borrowed(id), is_id: true };
    let text =
        |name: &str, text: &SmolStr| Part { name: name.into(), value: Cow::Owned(text.clone().into()), is_id: false };
    let properties: Vec<(&SmolStr, &Value)> = match &**element {
        Detached::Vertex { id: own, label, properties } => {
            all.extend([id("id", own), text("label", label)]);
            properties.iter().map(|property| (&property.key, &property.value)).collect()
        }
        Detached::Edge { id: own, label, source, target, properties } => {
            all.extend([id("id", own), text("label", label), id("src", &source.0), id("dst", &target.0)]);
            properties.iter().map(|(key, value)| (key, value)).collect()
        }
        Detached::VertexProperty(property) => {
            all.push(text("key", &property.key));
            all.push(Part { name: "value".into(), value: Cow::Borrowed(&property.value), is_id: false });
            Vec::new()
        }
        Detached::Property { key, value } => {
            all.push(text("key", key));
            all.push(Part { name: "value".into(), value: Cow::Borrowed(value), is_id: false });
            Vec::new()
        }
    };
    let heads = all.len();
    for (at, (key, value)) in properties.iter().enumerate() {
        if properties[..at].iter().any(|(other, _)| other == key) {
            continue;
        }
        let name = free_name(key, |name| all[..heads].iter().any(|head| head.name == name));
        let mut several = properties[at + 1..].iter().filter(|(other, _)| other == key).peekable();
        let value = match several.peek() {
            None => Cow::Borrowed(*value),
            Some(_) => Cow::Owned(Value::list(
                std::iter::once(*value).chain(several.map(|(_, value)| *value)).cloned().collect(),
            )),
        };
        all.push(Part { name, value, is_id: false });
    }
    Some(all)
}

/// The name of a column for a key: the key itself, or with `_property` after it if the name is taken.
pub(crate) fn free_name(key: &str, taken: impl Fn(&str) -> bool) -> SmolStr {
    let mut name = SmolStr::from(key);
    while taken(&name) {
        name = with_ending(&name);
    }
    name
}

fn with_ending(name: &str) -> SmolStr {
    format!("{name}_property").into()
}
