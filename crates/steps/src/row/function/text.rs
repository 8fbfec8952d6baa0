//! Functions of texts, and values as texts.
//!
//! Null stays null, but it has no text: `asString()` of it is an error. With `Scope.local` a function is applied to
//! every member of a list or set and gives a list. Any object that is neither a text nor (with `Scope.local`) a list of
//! texts is an error: it is never converted to a text implicitly.

use std::fmt::Write as _;

use bigdecimal::BigDecimal;
use mangrove_graph::{Detached, Error, FastMap, Result, Value, numeric};
use mangrove_plan::function::TextFunction;

use super::{ArgumentValue, check_members, check_text, class};
use crate::context::execution::Detail;
use crate::context::execution::ExecutionContext;
use crate::context::type_name::a_type;
use crate::detach::detach;
use crate::limits::meter::Meter;
use crate::rows::ObjectColumn;
use crate::values::collection::{self, MEMBER_BYTES, elements};

/// Makes texts of values. Elements are shown by ids and labels, which are read for all values of a batch at once.
#[derive(Default)]
pub(crate) struct Texts {
    elements: FastMap<mangrove_graph::compare::Equivalent, Value>,
}

/// Elements read at once.
const READ_AT_ONCE: usize = 1024;

impl Texts {
    /// The texts of the elements of a column, without those in collections.
    pub fn of_column(column: &ObjectColumn, context: &ExecutionContext, meter: &mut Meter<'_>) -> Result<Self> {
        let found = match column {
            ObjectColumn::Vertices(ids) => ids.iter().copied().map(Value::Vertex).collect(),
            ObjectColumn::Edges(ids) => ids.iter().copied().map(Value::Edge).collect(),
            ObjectColumn::Numbers(_) => Vec::new(),
            ObjectColumn::Values(values) => return Texts::of_objects(values.iter(), context, meter),
        };
        Texts::default().with(found, context, meter)
    }

    /// The texts of the elements among these values, without those in collections.
    pub fn of_objects<'a>(
        values: impl Iterator<Item = &'a Value>,
        context: &ExecutionContext,
        meter: &mut Meter<'_>,
    ) -> Result<Self> {
        Texts::default().with(values.filter(|value| is_element(value)).cloned().collect(), context, meter)
    }

    /// The texts of the elements among these values and in their collections.
    pub fn of<'a>(
        mut values: impl Iterator<Item = &'a Value>,
        context: &ExecutionContext,
        meter: &mut Meter<'_>,
    ) -> Result<Self> {
        let mut found = Vec::new();
        values.try_for_each(|value| gather(value, &mut found, meter))?;
        let mut texts = Texts::default();
        for some in found.chunks(READ_AT_ONCE) {
            texts.read(some, context, meter)?;
        }
        Ok(texts)
    }

    fn with(mut self, elements: Vec<Value>, context: &ExecutionContext, meter: &mut Meter<'_>) -> Result<Self> {
        self.read(&elements, context, meter)?;
        Ok(self)
    }

    fn read(&mut self, elements: &[Value], context: &ExecutionContext, meter: &mut Meter<'_>) -> Result<()> {
        let shown = detach(elements.to_vec(), &*context.view, Detail::Reference, meter)?;
        self.elements.extend(elements.iter().cloned().map(mangrove_graph::compare::Equivalent).zip(shown));
        Ok(())
    }

    /// Appends the text of a value.
    pub fn write(&self, value: &Value, text: &mut TextWriter<'_, '_>) -> Result<()> {
        match value {
            Value::Null => text.push_str("null"),
            Value::Bool(value) => text.push(value),
            Value::BigInt(value) => text.push(value),
            Value::F32(value) => {
                text.push_str(&float_text(f64::from(*value), format!("{value:?}"), &format!("{value:e}")))
            }
            Value::F64(value) => text.push_str(&float_text(*value, format!("{value:?}"), &format!("{value:e}"))),
            Value::Decimal(value) => text.push_str(&decimal_text(value)),
            Value::Char(value) => text.push(value),
            Value::String(value) => text.push_str(value),
            Value::Uuid(value) => text.push(value),
            Value::DateTime(moment) => text.push_str(&without_empty_seconds(&moment.to_string())),
            Value::Tree(tree) => self.write_map(collection::branches(tree), text),
            Value::Duration(_) | Value::Bytes(_) => {
                let literal = mangrove_gremlin::Argument::Value(value.clone()).to_string();
                let inner = literal.split_once(['\'', '"']).and_then(|(_, rest)| rest.rsplit_once(['\'', '"']));
                text.push_str(inner.map_or(&*literal, |(inner, _)| inner))
            }
            Value::List(values) | Value::Set(values) => self.write_list(values.iter(), text),
            Value::BulkSet(values) => {
                let spelled =
                    values.iter().flat_map(|(value, n)| std::iter::repeat_n(value, usize::try_from(*n).unwrap_or(0)));
                self.write_list(spelled, text)
            }
            Value::Path(path) => {
                text.push_str("path")?;
                self.write_list(path.objects.iter(), text)
            }
            Value::Map(entries) => self.write_map(entries.iter().cloned(), text),
            Value::Entry(entry) => {
                self.write(&entry.0, text)?;
                text.push_str("=")?;
                self.write(&entry.1, text)
            }
            Value::Token(token) => text.push_str(&format!("{token:?}").to_lowercase()),
            Value::Direction(direction) => text.push_str(&format!("{direction:?}").to_uppercase()),
            Value::Detached(element) => self.write_element(element, text),
            other => {
                match (numeric::integer(other), self.elements.get(&mangrove_graph::compare::Equivalent(other.clone())))
                {
                    (Some(number), _) => text.push(&number),
                    (None, Some(Value::Detached(element))) => self.write_element(element, text),
                    (None, _) => text.push_str(other.type_name()),
                }
            }
        }
    }

    fn write_list<'a>(&self, values: impl Iterator<Item = &'a Value>, text: &mut TextWriter<'_, '_>) -> Result<()> {
        text.push_str("[")?;
        for (at, value) in values.enumerate() {
            text.push_str(if at > 0 { ", " } else { "" })?;
            self.write(value, text)?;
        }
        text.push_str("]")
    }

    fn write_map(&self, entries: impl Iterator<Item = (Value, Value)>, text: &mut TextWriter<'_, '_>) -> Result<()> {
        text.push_str("{")?;
        for (at, (key, value)) in entries.enumerate() {
            text.push_str(if at > 0 { ", " } else { "" })?;
            self.write(&key, text)?;
            text.push_str("=")?;
            self.write(&value, text)?;
        }
        text.push_str("}")
    }

    fn write_element(&self, element: &Detached, text: &mut TextWriter<'_, '_>) -> Result<()> {
        match element {
            Detached::Vertex { id, .. } => {
                text.push_str("v[")?;
                self.write(id, text)?;
                text.push_str("]")
            }
            Detached::Edge { id, label, source, target, .. } => {
                text.push_str("e[")?;
                self.write(id, text)?;
                text.push_str("][")?;
                self.write(&source.0, text)?;
                text.push_str("-")?;
                text.push_str(label)?;
                text.push_str("->")?;
                self.write(&target.0, text)?;
                text.push_str("]")
            }
            Detached::VertexProperty(property) => self.write_property("vp", &property.key, &property.value, text),
            Detached::Property { key, value } => self.write_property("p", key, value, text),
        }
    }

    fn write_property(&self, kind: &str, key: &str, value: &Value, text: &mut TextWriter<'_, '_>) -> Result<()> {
        for part in [kind, "[", key, "->"] {
            text.push_str(part)?;
        }
        self.write(value, text)?;
        text.push_str("]")
    }

    fn text(&self, value: &Value, meter: &mut Meter<'_>) -> Result<Value> {
        if matches!(value, Value::Null) {
            return Err(Error::evaluation("Can't parse null as String."));
        }
        let mut text = TextWriter::new("asString", meter);
        self.write(value, &mut text)?;
        Ok(text.into_value())
    }
}

/// A text that grows. Each part is charged before it is added, and the length is limited.
pub(crate) struct TextWriter<'a, 'm> {
    step: &'static str,
    text: String,
    meter: &'a mut Meter<'m>,
}

impl<'a, 'm> TextWriter<'a, 'm> {
    /// A text that this step makes.
    pub fn new(step: &'static str, meter: &'a mut Meter<'m>) -> Self {
        TextWriter { step, text: String::new(), meter }
    }

    /// Appends a part.
    pub fn push_str(&mut self, part: &str) -> Result<()> {
        check_text(self.step, self.text.len() + part.len())?;
        // Charged twice: for the growing text, and for the value that it becomes.
        self.meter.charge(2 * part.len())?;
        self.text.push_str(part);
        Ok(())
    }

    /// Counts bytes that were read but not added.
    fn pass(&mut self, bytes: usize) -> Result<()> {
        self.meter.pass(bytes)
    }

    /// Appends a short text.
    fn push(&mut self, part: &impl std::fmt::Display) -> Result<()> {
        let before = self.text.len();
        write!(self.text, "{part}").map_err(|_| Error::bug("writing into a string does not fail"))?;
        self.meter.charge(2 * (self.text.len() - before))?;
        check_text(self.step, self.text.len())
    }

    /// Returns the text as a value.
    pub fn into_value(self) -> Value {
        Value::from(self.text)
    }
}

/// Writes a floating-point number as Java, and so TinkerPop, does: plain from 0.001 up to ten million, otherwise with
/// an exponent. `plain` and `scientific` are Rust's forms of it.
fn float_text(value: f64, plain: String, scientific: &str) -> String {
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    match scientific.split_once('e') {
        Some((digits, exponent)) if value != 0.0 && !(1e-3..1e7).contains(&value.abs()) => {
            let point = if digits.contains('.') { "" } else { ".0" };
            format!("{digits}{point}E{exponent}")
        }
        _ => plain,
    }
}

/// Writes a decimal as Java does: with an exponent if it is a multiple of ten, or too small for six digits after the
/// point.
fn decimal_text(value: &BigDecimal) -> String {
    let (digits, scale) = value.as_bigint_and_exponent();
    let digits = digits.to_string();
    let (sign, digits) = digits.strip_prefix('-').map_or(("", &*digits), |digits| ("-", digits));
    let exponent = i128::from(digits.len() as i64 - 1) - i128::from(scale);
    if scale >= 0 && exponent >= -6 {
        return value.to_plain_string();
    }
    let (first, rest) = digits.split_at(1);
    let point = if rest.is_empty() { "" } else { "." };
    format!("{sign}{first}{point}{rest}E{exponent:+}")
}

/// Writes a date and time in ISO 8601 as Java does: without seconds if they are zero, and with fractions of three, six
/// or nine digits.
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

/// Returns true if the text of a value needs a read of the graph.
fn is_element(value: &Value) -> bool {
    matches!(value, Value::Vertex(_) | Value::Edge(_) | Value::VertexProperty(_) | Value::Property(_))
}

/// Returns true if there may be elements in a value.
pub(crate) fn is_collection(value: &Value) -> bool {
    matches!(
        value,
        Value::List(_)
            | Value::Set(_)
            | Value::BulkSet(_)
            | Value::Path(_)
            | Value::Map(_)
            | Value::Entry(_)
            | Value::Tree(_)
    )
}

/// Returns the elements and properties in a value.
fn gather(value: &Value, found: &mut Vec<Value>, meter: &mut Meter<'_>) -> Result<()> {
    meter.pass(MEMBER_BYTES)?;
    match value {
        element if is_element(element) => {
            meter.charge(MEMBER_BYTES)?;
            found.push(value.clone());
            Ok(())
        }
        Value::List(values) | Value::Set(values) => values.iter().try_for_each(|v| gather(v, found, meter)),
        Value::BulkSet(values) => values.iter().try_for_each(|(v, _)| gather(v, found, meter)),
        Value::Path(path) => path.objects.iter().try_for_each(|v| gather(v, found, meter)),
        Value::Map(entries) => entries.iter().try_for_each(|(key, value)| {
            gather(key, found, meter)?;
            gather(value, found, meter)
        }),
        Value::Entry(entry) => {
            gather(&entry.0, found, meter)?;
            gather(&entry.1, found, meter)
        }
        Value::Tree(tree) => collection::branches(tree).try_for_each(|(key, below)| {
            gather(&key, found, meter)?;
            gather(&below, found, meter)
        }),
        _ => Ok(()),
    }
}

/// Applies a function to a text, or to the texts in a list.
pub(super) fn apply(
    function: TextFunction,
    local: bool,
    object: &Value,
    given: &[ArgumentValue<'_>],
    texts: &Texts,
    meter: &mut Meter<'_>,
) -> Result<Value> {
    let one = |value: &Value, meter: &mut Meter<'_>| match (function, value) {
        (TextFunction::AsString, value) => texts.text(value, meter),
        (_, Value::Null) => Ok(Value::Null),
        (_, Value::String(text)) => of_text(function, text, given, meter),
        (_, Value::Char(c)) => of_text(function, &c.to_string(), given, meter),
        (_, other) => Err(misfit(function, local, other)),
    };
    match object {
        Value::List(_) | Value::Set(_) | Value::BulkSet(_) | Value::Path(_) if local => {
            meter.charge(collection::size(object).saturating_mul(2 * MEMBER_BYTES))?;
            let members = elements(object)?.unwrap_or_default();
            let made: Vec<Value> = members.iter().map(|member| one(member, meter)).collect::<Result<_>>()?;
            Ok(Value::list(made))
        }
        value => one(value, meter),
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

fn of_text(function: TextFunction, text: &str, given: &[ArgumentValue<'_>], meter: &mut Meter<'_>) -> Result<Value> {
    let argument = |at: usize| given.get(at).and_then(|given| given.value());
    // The result of a long text may be short, and it is made again for each row, so reading it counts, too.
    meter.pass(text.len())?;
    let mut part = |part: &str| {
        meter.charge(part.len())?;
        Ok(Value::from(part))
    };
    match function {
        TextFunction::AsString => part(text),
        TextFunction::Length => Ok(Value::I32(i32::try_from(text.encode_utf16().count()).unwrap_or(i32::MAX))),
        TextFunction::ToLower => by_words("toLower", text, str::to_lowercase, meter),
        TextFunction::ToUpper => by_words("toUpper", text, str::to_uppercase, meter),
        TextFunction::Trim => part(text.trim_matches(is_space)),
        TextFunction::TrimStart => part(text.trim_start_matches(is_space)),
        TextFunction::TrimEnd => part(text.trim_end_matches(is_space)),
        TextFunction::Replace => match (string(function, argument(0))?, string(function, argument(1))?) {
            (Some(old), Some(new)) if !old.is_empty() => replace(text, old, new, meter),
            // Without a text to search or to insert, nothing is replaced.
            _ => part(text),
        },
        TextFunction::Split => split(text, string(function, argument(0))?, meter),
        TextFunction::Substring => substring(text, argument(0), argument(1), meter),
    }
}

/// Bytes of a text processed between two checks of the limits.
const PIECE_BYTES: usize = 64 << 10;

/// Changes the case of a text, in pieces that end with a space, because the case of a letter may depend on its word.
fn by_words(step: &'static str, text: &str, change: impl Fn(&str) -> String, meter: &mut Meter<'_>) -> Result<Value> {
    let mut changed = TextWriter::new(step, meter);
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.bytes().skip(PIECE_BYTES).position(|byte| byte == b' ');
        let (piece, after) = rest.split_at(end.map_or(rest.len(), |at| PIECE_BYTES + at + 1));
        changed.push_str(&change(piece))?;
        rest = after;
    }
    Ok(changed.into_value())
}

fn replace(text: &str, old: &str, new: &str, meter: &mut Meter<'_>) -> Result<Value> {
    let mut found = 0_usize;
    for part in text.matches(old) {
        meter.pass(part.len())?;
        found += 1;
    }
    let bytes = (text.len() - found * old.len()).saturating_add(found.saturating_mul(new.len()));
    check_text("replace", bytes)?;
    let mut replaced = TextWriter::new("replace", meter);
    let mut after = 0;
    for (at, _) in text.match_indices(old) {
        replaced.pass(old.len())?;
        replaced.push_str(&text[after..at])?;
        replaced.push_str(new)?;
        after = at + old.len();
    }
    replaced.push_str(&text[after..])?;
    Ok(replaced.into_value())
}

/// Returns true for white space as Java has it, without non-breaking spaces.
fn is_space(c: char) -> bool {
    (c.is_whitespace() && !matches!(c, '\u{a0}' | '\u{2007}' | '\u{202f}')) || matches!(c, '\u{1c}'..='\u{1f}')
}

fn string(function: TextFunction, value: Option<&Value>) -> Result<Option<&str>> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => {
            Err(Error::invalid(format!("{}() takes strings as arguments, not {}", function.name(), a_type(other))))
        }
    }
}

/// Returns the parts between separators: without a separator between spaces, with an empty one each character. Adjacent
/// and leading separators count as one; after a trailing one there is an empty part.
fn split(text: &str, separator: Option<&str>, meter: &mut Meter<'_>) -> Result<Value> {
    match separator {
        None => parts(text.split_whitespace(), meter),
        Some("") if text.is_empty() => Ok(Value::list(vec![Value::from("")])),
        Some("") => parts(text.char_indices().map(|(at, c)| &text[at..at + c.len_utf8()]), meter),
        Some(separator) => {
            let mut all = Vec::new();
            for part in text.split(separator) {
                // A text of separators only has no parts, but reading it takes time.
                meter.pass(separator.len())?;
                if !part.is_empty() {
                    add_part(part, &mut all, meter)?;
                }
            }
            if text.ends_with(separator) {
                add_part("", &mut all, meter)?;
            }
            Ok(Value::list(all))
        }
    }
}

/// Returns the parts of a text as values.
fn parts<'a>(mut parts: impl Iterator<Item = &'a str>, meter: &mut Meter<'_>) -> Result<Value> {
    let mut all = Vec::new();
    parts.try_for_each(|part| add_part(part, &mut all, meter))?;
    Ok(Value::list(all))
}

fn add_part(part: &str, all: &mut Vec<Value>, meter: &mut Meter<'_>) -> Result<()> {
    check_members("split", all.len() + 1)?;
    meter.charge(MEMBER_BYTES + part.len())?;
    all.push(Value::from(part));
    Ok(())
}

/// Returns the characters between two positions. A negative position counts from the end.
fn substring(text: &str, from: Option<&Value>, to: Option<&Value>, meter: &mut Meter<'_>) -> Result<Value> {
    let length = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
    let position = |value: &Value| {
        let number = numeric::integer(value)
            .ok_or_else(|| Error::invalid(format!("substring() takes whole numbers, not {}", a_type(value))))?;
        let from_start = if number < 0 { number.saturating_add(length) } else { number };
        Ok::<i64, Error>(from_start.clamp(0, length))
    };
    let from = from.map_or(Ok(0), position)?;
    let to = to.map_or(Ok(length), position)?;
    let (from, to) = (usize::try_from(from).unwrap_or(0), usize::try_from(to).unwrap_or(0));
    let byte = |position: usize| text.char_indices().nth(position).map_or(text.len(), |(at, _)| at);
    let part = text.get(byte(from)..byte(to)).unwrap_or_default();
    meter.charge(part.len())?;
    Ok(Value::from(part))
}

/// Concatenates texts. Nulls and traversals without a result add nothing. If there are only nulls, the result is null.
pub(super) fn concat(object: &Value, given: &[ArgumentValue<'_>], meter: &mut Meter<'_>) -> Result<Value> {
    let mut all = TextWriter::new("concat", meter);
    let mut is_null = true;
    for value in std::iter::once(Some(object)).chain(given.iter().map(|given| given.value())).flatten() {
        match value {
            Value::Null => continue,
            Value::String(text) => all.push_str(text)?,
            Value::Char(c) => all.push(c)?,
            other => {
                return Err(Error::evaluation(format!(
                    "String concat() can only take string as argument, encountered {}",
                    class(other)
                )));
            }
        }
        is_null = false;
    }
    Ok(if is_null { Value::Null } else { all.into_value() })
}

/// Reverses a text or a list; any other value is its own reverse.
pub(super) fn reverse(object: &Value, meter: &mut Meter<'_>) -> Result<Value> {
    Ok(match object {
        Value::String(text) => {
            let mut reversed = TextWriter::new("reverse", meter);
            text.chars().rev().try_for_each(|c| reversed.push_str(c.encode_utf8(&mut [0; 4])))?;
            reversed.into_value()
        }
        Value::List(_) | Value::Set(_) | Value::BulkSet(_) | Value::Path(_) => {
            meter.charge(collection::size(object).saturating_mul(MEMBER_BYTES))?;
            let mut members = elements(object)?.unwrap_or_default();
            members.reverse();
            Value::list(members)
        }
        other => other.clone(),
    })
}
