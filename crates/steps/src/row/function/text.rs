//! Functions of texts, and values as texts.
//!
//! Null stays null, except that it has no text of its own: `asString()` of it is an error. With `Scope.local` a
//! function is applied to every member of a list or set, which gives a list; anything that is neither text nor (locally) a list of texts is an
//! error, never taken for its text.

use std::fmt::Write as _;

use bigdecimal::BigDecimal;
use hashbrown::HashMap;
use mangrove_graph::{Detached, Error, Result, Value, numeric};
use mangrove_plan::function::TextFunction;

use super::{Given, check_text, class};
use crate::detach::{Detail, detach};
use crate::environment::Environment;
use crate::row::local::elements;
use crate::rows::Column;

/// Makes texts of values. Elements are shown by ids and labels, which are read for all values of a batch at once.
#[derive(Default)]
pub struct Texts {
    elements: HashMap<mangrove_graph::compare::Equivalent, Value, foldhash::fast::RandomState>,
}

impl Texts {
    /// For the values of a column.
    pub fn of_column(column: &Column, environment: &Environment) -> Result<Self> {
        let values: Vec<Value> = (0..column.len()).map(|row| column.get(row)).collect();
        Texts::of(values.iter(), environment)
    }

    /// For these values.
    pub fn of<'a>(values: impl Iterator<Item = &'a Value>, environment: &Environment) -> Result<Self> {
        let mut found = Vec::new();
        values.for_each(|value| gather(value, &mut found));
        let shown = detach(found.clone(), &*environment.view, Detail::Reference)?;
        Ok(Texts { elements: found.into_iter().map(mangrove_graph::compare::Equivalent).zip(shown).collect() })
    }

    /// Appends the text of a value.
    pub fn write(&self, value: &Value, text: &mut String) {
        let wrote = match value {
            Value::Null => text.write_str("null"),
            Value::Bool(value) => write!(text, "{value}"),
            Value::BigInt(value) => write!(text, "{value}"),
            Value::F32(value) => write_float(f64::from(*value), format!("{value:?}"), format!("{value:e}"), text),
            Value::F64(value) => write_float(*value, format!("{value:?}"), format!("{value:e}"), text),
            Value::Decimal(value) => write_decimal(value, text),
            Value::Char(value) => write!(text, "{value}"),
            Value::String(value) => text.write_str(value),
            Value::Uuid(value) => write!(text, "{value}"),
            Value::DateTime(moment) => {
                text.push_str(&without_empty_seconds(&moment.to_string()));
                Ok(())
            }
            Value::Tree(tree) => {
                self.write_map(&crate::row::local::branches(tree).collect::<Vec<_>>(), text);
                Ok(())
            }
            Value::Duration(_) | Value::Bytes(_) => {
                let literal = mangrove_gremlin::Argument::Value(value.clone()).to_string();
                let inner = literal.split_once(['\'', '"']).and_then(|(_, rest)| rest.rsplit_once(['\'', '"']));
                text.write_str(inner.map_or(&*literal, |(inner, _)| inner))
            }
            Value::List(values) | Value::Set(values) => {
                self.write_list(values.iter(), text);
                Ok(())
            }
            Value::BulkSet(values) => {
                let spelled =
                    values.iter().flat_map(|(value, n)| std::iter::repeat_n(value, usize::try_from(*n).unwrap_or(0)));
                self.write_list(spelled, text);
                Ok(())
            }
            Value::Path(path) => {
                text.push_str("path");
                self.write_list(path.objects.iter(), text);
                Ok(())
            }
            Value::Map(entries) => {
                self.write_map(entries, text);
                Ok(())
            }
            Value::Entry(entry) => {
                self.write(&entry.0, text);
                text.push('=');
                self.write(&entry.1, text);
                Ok(())
            }
            Value::Token(token) => write!(text, "{}", format!("{token:?}").to_lowercase()),
            Value::Direction(direction) => write!(text, "{}", format!("{direction:?}").to_uppercase()),
            Value::Detached(element) => {
                self.write_element(element, text);
                Ok(())
            }
            other => {
                match (numeric::integer(other), self.elements.get(&mangrove_graph::compare::Equivalent(other.clone())))
                {
                    (Some(number), _) => write!(text, "{number}"),
                    (None, Some(Value::Detached(element))) => {
                        self.write_element(element, text);
                        Ok(())
                    }
                    (None, _) => text.write_str(other.type_name()),
                }
            }
        };
        debug_assert!(wrote.is_ok(), "writing into a string does not fail");
    }

    fn write_list<'a>(&self, values: impl Iterator<Item = &'a Value>, text: &mut String) {
        text.push('[');
        for (at, value) in values.enumerate() {
            text.push_str(if at > 0 { ", " } else { "" });
            self.write(value, text);
        }
        text.push(']');
    }

    fn write_map(&self, entries: &[(Value, Value)], text: &mut String) {
        text.push('{');
        for (at, (key, value)) in entries.iter().enumerate() {
            text.push_str(if at > 0 { ", " } else { "" });
            self.write(key, text);
            text.push('=');
            self.write(value, text);
        }
        text.push('}');
    }

    fn write_element(&self, element: &Detached, text: &mut String) {
        match element {
            Detached::Vertex { id, .. } => {
                text.push_str("v[");
                self.write(id, text);
                text.push(']');
            }
            Detached::Edge { id, label, source, target, .. } => {
                text.push_str("e[");
                self.write(id, text);
                text.push_str("][");
                self.write(&source.0, text);
                text.push('-');
                text.push_str(label);
                text.push_str("->");
                self.write(&target.0, text);
                text.push(']');
            }
            Detached::VertexProperty(property) => self.write_property("vp", &property.key, &property.value, text),
            Detached::Property { key, value } => self.write_property("p", key, value, text),
        }
    }

    fn write_property(&self, kind: &str, key: &str, value: &Value, text: &mut String) {
        text.push_str(kind);
        text.push('[');
        text.push_str(key);
        text.push_str("->");
        self.write(value, text);
        text.push(']');
    }

    fn text(&self, value: &Value) -> Result<Value> {
        if matches!(value, Value::Null) {
            return Err(Error::evaluation("Can't parse null as String."));
        }
        let mut text = String::new();
        self.write(value, &mut text);
        Ok(Value::from(text))
    }
}

/// A floating point number as Java writes it, of whose texts TinkerPop's are made: plain from 0.001 up to ten million, else
/// with an exponent. `plain` and `scientific` are Rust's forms of it.
fn write_float(value: f64, plain: String, scientific: String, text: &mut String) -> std::fmt::Result {
    if value.is_infinite() {
        return text.write_str(if value > 0.0 { "Infinity" } else { "-Infinity" });
    }
    match scientific.split_once('e') {
        Some((digits, exponent)) if value != 0.0 && !(1e-3..1e7).contains(&value.abs()) => {
            let point = if digits.contains('.') { "" } else { ".0" };
            write!(text, "{digits}{point}E{exponent}")
        }
        _ => text.write_str(&plain),
    }
}

/// A decimal as Java writes it: with an exponent if it is a multiple of ten, or too small for six places.
fn write_decimal(value: &BigDecimal, text: &mut String) -> std::fmt::Result {
    let (digits, scale) = value.as_bigint_and_exponent();
    let digits = digits.to_string();
    let (sign, digits) = digits.strip_prefix('-').map_or(("", &*digits), |digits| ("-", digits));
    let exponent = i128::from(digits.len() as i64 - 1) - i128::from(scale);
    if scale >= 0 && exponent >= -6 {
        return write!(text, "{}", value.to_plain_string());
    }
    let (first, rest) = digits.split_at(1);
    let point = if rest.is_empty() { "" } else { "." };
    write!(text, "{sign}{first}{point}{rest}E{exponent:+}")
}

/// A date and time in ISO 8601 as Java writes it: without seconds where they are zero, and fractions of three, six or nine
/// digits.
fn without_empty_seconds(text: &str) -> String {
    let Some((date, time)) = text.split_once('T') else { return text.to_owned() };
    let zone = time.find(['Z', '+', '-']).unwrap_or(time.len());
    let (clock, zone) = time.split_at(zone);
    let clock = match clock.split_once('.') {
        Some((clock, fraction)) => format!("{clock}.{fraction:0<width$}", width = fraction.len().next_multiple_of(3)),
        None => clock.strip_suffix(":00").filter(|clock| clock.len() == 5).unwrap_or(clock).to_owned(),
    };
    format!("{date}T{clock}{zone}")
}

/// The elements and properties in a value.
fn gather(value: &Value, found: &mut Vec<Value>) {
    match value {
        Value::Vertex(_) | Value::Edge(_) | Value::VertexProperty(_) | Value::Property(_) => found.push(value.clone()),
        Value::List(values) | Value::Set(values) => values.iter().for_each(|v| gather(v, found)),
        Value::BulkSet(values) => values.iter().for_each(|(v, _)| gather(v, found)),
        Value::Path(path) => path.objects.iter().for_each(|v| gather(v, found)),
        Value::Map(entries) => entries.iter().for_each(|(key, value)| {
            gather(key, found);
            gather(value, found);
        }),
        Value::Entry(entry) => {
            gather(&entry.0, found);
            gather(&entry.1, found);
        }
        Value::Tree(tree) => crate::row::local::branches(tree).for_each(|(key, below)| {
            gather(&key, found);
            gather(&below, found);
        }),
        _ => {}
    }
}

/// A function of a text, or of the texts in a list.
pub(super) fn apply(
    function: TextFunction,
    local: bool,
    object: &Value,
    given: &[Given<'_>],
    texts: &Texts,
) -> Result<Value> {
    let one = |value: &Value| match (function, value) {
        (TextFunction::AsString, value) => texts.text(value),
        (_, Value::Null) => Ok(Value::Null),
        (_, Value::String(text)) => of_text(function, text, given),
        (_, Value::Char(c)) => of_text(function, &c.to_string(), given),
        (_, other) => Err(misfit(function, local, other)),
    };
    match object {
        Value::List(_) | Value::Set(_) | Value::BulkSet(_) | Value::Path(_) if local => {
            let members = elements(object)?.unwrap_or_default();
            let made: Vec<Value> = members.iter().map(one).collect::<Result<_>>()?;
            Ok(Value::list(made))
        }
        value => one(value),
    }
}

fn misfit(function: TextFunction, local: bool, found: &Value) -> Error {
    let name = function.name();
    let message = if local {
        format!("The {name}(local) step can only take string or list of strings, encountered {}", class(found))
    } else {
        format!("The {name}() step can only take string as argument, encountered {}", class(found))
    };
    Error::evaluation(message)
}

fn of_text(function: TextFunction, text: &str, given: &[Given<'_>]) -> Result<Value> {
    let argument = |at: usize| given.get(at).and_then(|given| given.value());
    Ok(match function {
        TextFunction::AsString => Value::from(text),
        TextFunction::Length => Value::I32(i32::try_from(text.encode_utf16().count()).unwrap_or(i32::MAX)),
        TextFunction::ToLower => Value::from(text.to_lowercase()),
        TextFunction::ToUpper => Value::from(text.to_uppercase()),
        TextFunction::Trim => Value::from(text.trim_matches(is_space)),
        TextFunction::TrimStart => Value::from(text.trim_start_matches(is_space)),
        TextFunction::TrimEnd => Value::from(text.trim_end_matches(is_space)),
        TextFunction::Replace => match (string(function, argument(0))?, string(function, argument(1))?) {
            (Some(old), Some(new)) if !old.is_empty() => {
                let found = text.matches(old).count();
                check_text("replace", text.len().saturating_add(found.saturating_mul(new.len())))?;
                Value::from(text.replace(old, new))
            }
            // Without something to look for, or to put there, nothing is replaced.
            _ => Value::from(text),
        },
        TextFunction::Split => Value::list(split(text, string(function, argument(0))?)),
        TextFunction::Substring => substring(text, argument(0), argument(1))?,
    })
}

/// What Java calls white space: a space that keeps words together is none.
fn is_space(c: char) -> bool {
    (c.is_whitespace() && !matches!(c, '\u{a0}' | '\u{2007}' | '\u{202f}')) || matches!(c, '\u{1c}'..='\u{1f}')
}

fn string(function: TextFunction, value: Option<&Value>) -> Result<Option<&str>> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(Error::invalid(format!(
            "{}() takes strings as arguments, not a {}",
            function.name(),
            other.type_name()
        ))),
    }
}

/// The parts between separators; without one between spaces, with an empty one the characters. Separators beside each
/// other, and those in front, are as one, but behind the last one there is an empty part.
fn split(text: &str, separator: Option<&str>) -> Vec<Value> {
    match separator {
        None => text.split_whitespace().map(Value::from).collect(),
        Some("") if text.is_empty() => vec![Value::from("")],
        Some("") => text.chars().map(|c| Value::from(c.to_string())).collect(),
        Some(separator) => {
            let last = text.ends_with(separator).then_some("");
            text.split(separator).filter(|part| !part.is_empty()).chain(last).map(Value::from).collect()
        }
    }
}

/// The characters from one position up to another; a negative one counts from the end.
fn substring(text: &str, from: Option<&Value>, to: Option<&Value>) -> Result<Value> {
    let characters: Vec<char> = text.chars().collect();
    let length = i64::try_from(characters.len()).unwrap_or(i64::MAX);
    let position = |value: &Value| {
        let number = numeric::integer(value)
            .ok_or_else(|| Error::invalid(format!("substring() takes whole numbers, not a {}", value.type_name())))?;
        let from_start = if number < 0 { number.saturating_add(length) } else { number };
        Ok::<i64, Error>(from_start.clamp(0, length))
    };
    let from = from.map_or(Ok(0), position)?;
    let to = to.map_or(Ok(length), position)?;
    let (from, to) = (usize::try_from(from).unwrap_or(0), usize::try_from(to).unwrap_or(0));
    Ok(Value::from(characters.get(from..to).unwrap_or_default().iter().collect::<String>()))
}

/// All texts one after the other; nulls and traversals without a result add nothing. Nothing but nulls is null.
pub(super) fn concat(object: &Value, given: &[Given<'_>]) -> Result<Value> {
    let mut all: Option<String> = None;
    for value in std::iter::once(Some(object)).chain(given.iter().map(|given| given.value())).flatten() {
        match value {
            Value::Null => {}
            Value::String(text) => {
                let all = all.get_or_insert_default();
                check_text("concat", all.len() + text.len())?;
                all.push_str(text);
            }
            Value::Char(c) => all.get_or_insert_default().push(*c),
            other => {
                return Err(Error::evaluation(format!(
                    "String concat() can only take string as argument, encountered {}",
                    class(other)
                )));
            }
        }
    }
    Ok(all.map_or(Value::Null, Value::from))
}

/// A text or a list turned round; anything else is its own reverse.
pub(super) fn reverse(object: &Value) -> Result<Value> {
    Ok(match object {
        Value::String(text) => Value::from(text.chars().rev().collect::<String>()),
        Value::List(_) | Value::Set(_) | Value::BulkSet(_) | Value::Path(_) => {
            let mut members = elements(object)?.unwrap_or_default();
            members.reverse();
            Value::list(members)
        }
        other => other.clone(),
    })
}
