//! Types of columns: their names in headers and mappings, and how the text of a field becomes a value.
//!
//! How the type of an untyped column is found is in `inference`.

use std::sync::Arc;

use super::file_id::FileId;
use super::temporal;
use super::temporal::TimeFormat;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bigdecimal::BigDecimal;
use mangrove_graph::{Error, Result, Value};
use num_bigint::BigInt;
use uuid::Uuid;

/// Separates the elements of a list if neither header nor mapping names another character.
pub(crate) const LIST_SEPARATOR: char = ';';

/// The names that [`ColumnType::from_name`] knows, for messages.
const NAMES: &str = "string, bool, byte, short, int, long, bigint, float, double, decimal, char, uuid, date, \
                     datetime, millis, duration, bytes, any, or one of these with [] for a list";

/// The type of a column.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum ColumnType {
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
    Uuid,
    DateTime(TimeFormat),
    /// A point in time that is stored as a 64-bit integer: milliseconds since 1970-01-01 UTC.
    Millis(TimeFormat),
    Duration,
    /// In base 64.
    Bytes,
    /// A value as typed JSON (GraphSON 3): any value that a property can hold.
    Any,
    /// An id: a whole number in plain decimal form is a long, other text is a string.
    Id,
    /// A list. In brackets, commas separate the elements (`[1,2]`), lists nest, and an element may be a JSON string in
    /// quotes. Without brackets, the character given separates them.
    List(Box<ColumnType>, char),
}

impl ColumnType {
    /// The type of this name, in upper or lower case. `[]` after a name makes a list.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        if let Some(element) = name.strip_suffix("[]") {
            return Some(ColumnType::List(Box::new(Self::from_name(element)?), LIST_SEPARATOR));
        }
        Some(match name.to_ascii_lowercase().as_str() {
            "bytes" => ColumnType::Bytes,
            "any" => ColumnType::Any,
            "bool" | "boolean" => ColumnType::Bool,
            "byte" | "int8" => ColumnType::I8,
            "short" | "int16" => ColumnType::I16,
            "int" | "int32" | "integer" => ColumnType::I32,
            "long" | "int64" => ColumnType::I64,
            "bigint" => ColumnType::BigInt,
            "float" => ColumnType::F32,
            "double" => ColumnType::F64,
            "decimal" => ColumnType::Decimal,
            "char" => ColumnType::Char,
            "string" => ColumnType::String,
            "uuid" => ColumnType::Uuid,
            "date" | "datetime" | "localdatetime" | "timestamp" | "zoneddatetime" => {
                ColumnType::DateTime(TimeFormat::Auto)
            }
            "millis" => ColumnType::Millis(TimeFormat::Auto),
            "duration" => ColumnType::Duration,
            _ => return None,
        })
    }

    /// The type of this name, or an error that lists the names.
    pub(crate) fn named(name: &str) -> Result<Self> {
        let bare = name.trim_end_matches("[]").to_ascii_lowercase();
        if matches!(bare.as_str(), "point" | "time" | "localtime") {
            return Err(Error::unsupported(format!(
                "the type '{name}' has no counterpart here; leave the column out (:IGNORE, or skip in a mapping) or \
                 load it as a string"
            )));
        }
        Self::from_name(name).ok_or_else(|| Error::invalid(format!("'{name}' is not a type; the types are {NAMES}")))
    }

    /// The same type reading points in time in this format.
    pub(crate) fn with_format(self, format: TimeFormat) -> Self {
        match self {
            ColumnType::DateTime(_) => ColumnType::DateTime(format),
            ColumnType::Millis(_) => ColumnType::Millis(format),
            ColumnType::List(element, separator) => ColumnType::List(Box::new(element.with_format(format)), separator),
            other => other,
        }
    }

    /// The same type with this separator between the elements of a list.
    pub(crate) fn with_separator(self, separator: char) -> Self {
        match self {
            ColumnType::List(element, _) => ColumnType::List(element, separator),
            other => other,
        }
    }

    /// The name in messages.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            ColumnType::Bool => "boolean",
            ColumnType::I8 => "byte",
            ColumnType::I16 => "short",
            ColumnType::I32 => "int",
            ColumnType::I64 => "long",
            ColumnType::BigInt => "bigint",
            ColumnType::F32 => "float",
            ColumnType::F64 => "double",
            ColumnType::Decimal => "decimal",
            ColumnType::Char => "char",
            ColumnType::String => "string",
            ColumnType::Uuid => "uuid",
            ColumnType::DateTime(_) | ColumnType::Millis(_) => "date",
            ColumnType::Duration => "duration",
            ColumnType::Bytes => "bytes",
            ColumnType::Any => "any (typed JSON)",
            ColumnType::Id => "id",
            ColumnType::List(..) => "list",
        }
    }

    /// The name in a typed header.
    pub(crate) fn full_name(&self) -> String {
        match self {
            ColumnType::Millis(_) => "millis".to_owned(),
            ColumnType::List(element, _) => format!("{}[]", element.full_name()),
            other => other.name().to_owned(),
        }
    }

    /// The value of a field; `None` if the text is not of the type. Except for strings and characters, space around the
    /// text is ignored.
    pub(crate) fn parse(&self, field: &str) -> Option<Value> {
        let text = field.trim();
        Some(match self {
            ColumnType::String => Value::String(field.into()),
            ColumnType::Char => Value::Char(single(field.chars())?),
            ColumnType::Bool => Value::Bool(boolean(text)?),
            ColumnType::I8 => Value::I8(text.parse().ok()?),
            ColumnType::I16 => Value::I16(text.parse().ok()?),
            ColumnType::I32 => Value::I32(text.parse().ok()?),
            ColumnType::I64 => Value::I64(text.parse().ok()?),
            ColumnType::BigInt => Value::BigInt(Arc::new(text.parse::<BigInt>().ok()?)),
            ColumnType::F32 => Value::F32(text.parse().ok()?),
            ColumnType::F64 => Value::F64(text.parse().ok()?),
            ColumnType::Decimal => Value::Decimal(Arc::new(text.parse::<BigDecimal>().ok()?)),
            ColumnType::Uuid => Value::Uuid(uuid(text)?),
            ColumnType::DateTime(format) => Value::DateTime(format.parse(text)?),
            ColumnType::Millis(format) => Value::I64(format.parse(text)?.epoch_millis()?),
            ColumnType::Duration => Value::Duration(temporal::duration(text)?),
            ColumnType::Id => FileId::parse(text).to_user_id().to_value(),
            ColumnType::Bytes => Value::Bytes(BASE64_STANDARD.decode(text).ok()?.into()),
            ColumnType::Any => return any(text),
            ColumnType::List(element, separator) => {
                Value::list(list_items(text, *separator).map(|item| element.parse_item(item)).collect::<Option<_>>()?)
            }
        })
    }

    /// The value of an empty field in quotes: `Null` for types without an empty value.
    pub(crate) fn empty(&self) -> Value {
        match self {
            ColumnType::String => Value::string(""),
            ColumnType::Bytes => Value::Bytes(Arc::new([])),
            _ => Value::Null,
        }
    }

    /// As [`ColumnType::parse`], for an element of a list, which may stand in quotes.
    fn parse_item(&self, item: &str) -> Option<Value> {
        let trimmed = item.trim();
        let quoted = trimmed.len() >= 2 && trimmed.starts_with('"') && trimmed.ends_with('"');
        match self {
            ColumnType::Any => self.parse(item),
            _ if quoted => match serde_json::from_str::<String>(trimmed) {
                Ok(text) => self.parse(&text),
                Err(_) => self.parse(item),
            },
            _ => self.parse(item),
        }
    }
}

/// A value from typed JSON; `None` also if a property cannot hold it.
fn any(text: &str) -> Option<Value> {
    let json = serde_json::from_str::<serde_json::Value>(text).ok()?;
    crate::values::typed_json::read_value(&json).ok().filter(Value::is_storable)
}

fn single(mut characters: impl Iterator<Item = char>) -> Option<char> {
    let first = characters.next()?;
    characters.next().is_none().then_some(first)
}

/// A truth value, in upper or lower case.
pub(crate) fn boolean(text: &str) -> Option<bool> {
    match text {
        _ if text.eq_ignore_ascii_case("true") => Some(true),
        _ if text.eq_ignore_ascii_case("false") => Some(false),
        _ => None,
    }
}

/// A UUID: hyphens may stand anywhere, braces around it are optional.
fn uuid(text: &str) -> Option<Uuid> {
    let inner = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or(text);
    match Uuid::try_parse(inner) {
        Ok(uuid) => Some(uuid),
        Err(_) => Uuid::try_parse(&inner.replace('-', "")).ok(),
    }
}

/// The texts of the elements of a list field, as [`ColumnType::List`] says.
pub(crate) fn list_items(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let bracketed = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let (mut rest, separator) = match bracketed {
        Some(inner) => (Some(inner), ','),
        None => (Some(text), separator),
    };
    if rest.is_some_and(|text| text.trim().is_empty()) {
        rest = None;
    }
    std::iter::from_fn(move || {
        let text = rest?;
        let mut depth = 0_usize;
        // A quote opens a string only at the start of an element, at any depth.
        let (mut quoted, mut escaped, mut begins) = (false, false, bracketed.is_some());
        for (at, character) in text.char_indices() {
            if quoted {
                match character {
                    _ if escaped => escaped = false,
                    '\\' => escaped = true,
                    '"' => quoted = false,
                    _ => {}
                }
                continue;
            }
            match character {
                '"' if begins => quoted = true,
                '[' | '{' => depth += 1,
                ']' | '}' => depth = depth.saturating_sub(1),
                _ if character == separator && depth == 0 => {
                    rest = Some(&text[at + separator.len_utf8()..]);
                    return Some(&text[..at]);
                }
                _ => {}
            }
            begins = bracketed.is_some()
                && (matches!(character, '[' | '{' | ',' | ':') || (begins && character.is_whitespace()));
        }
        rest = None;
        Some(text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_any_case_and_lists() {
        assert_eq!(ColumnType::from_name("STRING"), Some(ColumnType::String));
        assert_eq!(ColumnType::from_name("Int"), Some(ColumnType::I32));
        let list = |element| ColumnType::List(Box::new(element), ';');
        assert_eq!(ColumnType::from_name("long[][]"), Some(list(list(ColumnType::I64))));
        assert!(
            ColumnType::named("strng").unwrap_err().message().contains("'strng' is not a type; the types are string")
        );
    }

    #[test]
    fn fields_become_values() {
        let parse = |name: &str, text: &str| ColumnType::from_name(name).unwrap().parse(text);
        assert_eq!(parse("int", " 7 "), Some(Value::I32(7)));
        assert_eq!(parse("int", "2147483648"), None);
        assert_eq!(parse("long", "x"), None);
        assert_eq!(parse("float", "1.5"), Some(Value::F32(1.5)));
        assert_eq!(parse("bool", "TRUE"), Some(Value::Bool(true)));
        assert_eq!(parse("bool", "1"), None);
        assert_eq!(parse("char", "é"), Some(Value::Char('é')));
        assert_eq!(parse("char", "ab"), None);
        assert_eq!(parse("string", " a "), Some(Value::string(" a ")));
        assert_eq!(parse("millis", "20100214153210447"), Some(Value::I64(1_266_161_530_447)));
        let same = parse("uuid", "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11");
        assert!(same.is_some());
        assert_eq!(parse("uuid", "{a0eebc99-9c0b4ef8-bb6d6bb9-bd380a11}"), same);
    }

    #[test]
    fn lists_with_separators_and_brackets() {
        let parse = |name: &str, text: &str| ColumnType::from_name(name).unwrap().parse(text);
        let ints = |numbers: &[i64]| Value::list(numbers.iter().map(|n| Value::I64(*n)).collect());
        assert_eq!(parse("string[]", "si;en"), Some(Value::list(vec!["si".into(), "en".into()])));
        assert_eq!(parse("long[]", "[10, 5]"), Some(ints(&[10, 5])));
        assert_eq!(parse("long[]", "[]"), Some(ints(&[])));
        assert_eq!(parse("long[][]", "[[10,8],[6]]"), Some(Value::list(vec![ints(&[10, 8]), ints(&[6])])));
        assert_eq!(parse("long[]", "1;x"), None);
    }
}
