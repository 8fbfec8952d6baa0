//! Values as text, for columns that hold values of several types: JSON, with text on the outermost level as it is.

use std::fmt::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use mangrove_graph::{Result, Tree, Value};

use crate::kind::{key_name, parts};

/// The most bytes of the text of one value. Collections that share members may be small in memory and endless as text.
const TEXT_BYTES_MAX: usize = 1 << 28;

/// Appends a value as text.
///
/// # Errors
///
/// If the text is longer than 256 MiB.
pub(crate) fn write_text(out: &mut String, value: &Value) -> Result<()> {
    match plain(value) {
        Some(text) => out.push_str(&text),
        None => write_json(out, value, out.len() + TEXT_BYTES_MAX)?,
    }
    Ok(())
}

/// The text of a scalar that is no number and no boolean.
fn plain(value: &Value) -> Option<String> {
    Some(match value {
        Value::String(text) => text.to_string(),
        Value::Char(character) => character.to_string(),
        Value::Uuid(id) => id.to_string(),
        Value::DateTime(time) => time.to_string(),
        Value::Duration(span) => span.to_string(),
        Value::Bytes(bytes) => STANDARD.encode(bytes),
        Value::Token(_) | Value::Direction(_) => key_name(value).unwrap_or_default().to_owned(),
        _ => return None,
    })
}

fn write_json(out: &mut String, value: &Value, end: usize) -> Result<()> {
    if out.len() > end {
        return Err(mangrove_graph::Error::invalid(format!(
            "a result is longer than {TEXT_BYTES_MAX} bytes as text; return its parts as rows"
        )));
    }
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(is) => write_to(out, is),
        Value::I8(number) => write_to(out, number),
        Value::I16(number) => write_to(out, number),
        Value::I32(number) => write_to(out, number),
        Value::I64(number) => write_to(out, number),
        Value::BigInt(number) => write_to(out, number),
        Value::Decimal(number) => write_to(out, number),
        Value::F32(number) if number.is_finite() => write_to(out, number),
        Value::F64(number) if number.is_finite() => write_to(out, number),
        Value::F32(number) => quote(out, &number.to_string()),
        Value::F64(number) => quote(out, &number.to_string()),
        Value::List(values) | Value::Set(values) => write_list(out, values.iter(), end)?,
        Value::BulkSet(values) => {
            let all = values.iter().flat_map(|(value, times)| (0..*times).map(move |_| value));
            write_list(out, all, end)?;
        }
        Value::Path(path) => write_list(out, path.objects.iter(), end)?,
        Value::F32Array(numbers) => {
            let numbers: Vec<Value> = numbers.iter().map(|number| Value::F32(*number)).collect();
            write_list(out, numbers.iter(), end)?;
        }
        Value::Map(entries) => write_map(out, entries.iter().map(|(key, value)| (key, value)), end)?,
        Value::Entry(entry) => write_map(out, std::iter::once((&entry.0, &entry.1)), end)?,
        Value::Tree(tree) => write_tree(out, tree, end)?,
        Value::Graph(graph) => {
            out.push_str("{\"vertices\":");
            write_list(out, graph.vertices.iter(), end)?;
            out.push_str(",\"edges\":");
            write_list(out, graph.edges.iter(), end)?;
            out.push('}');
        }
        Value::Detached(_) => {
            let parts: Vec<(Value, Value)> = parts(value)
                .unwrap_or_default()
                .into_iter()
                .map(|part| (part.name.into(), part.value.into_owned()))
                .collect();
            write_map(out, parts.iter().map(|(key, value)| (key, value)), end)?;
        }
        other => match plain(other) {
            Some(text) => quote(out, &text),
            None => quote(out, &format!("{other:?}")),
        },
    }
    Ok(())
}

fn write_to(out: &mut String, shown: &dyn std::fmt::Display) {
    write!(out, "{shown}").expect("a string takes all text");
}

fn write_list<'v>(out: &mut String, values: impl Iterator<Item = &'v Value>, end: usize) -> Result<()> {
    out.push('[');
    for (at, value) in values.enumerate() {
        if at > 0 {
            out.push(',');
        }
        write_json(out, value, end)?;
    }
    out.push(']');
    Ok(())
}

fn write_map<'v>(out: &mut String, entries: impl Iterator<Item = (&'v Value, &'v Value)>, end: usize) -> Result<()> {
    out.push('{');
    for (at, (key, value)) in entries.enumerate() {
        if at > 0 {
            out.push(',');
        }
        write_key(out, key)?;
        write_json(out, value, end)?;
    }
    out.push('}');
    Ok(())
}

/// Keys of JSON are text.
fn write_key(out: &mut String, key: &Value) -> Result<()> {
    let mut text = String::new();
    write_text(&mut text, key)?;
    quote(out, &text);
    out.push(':');
    Ok(())
}

fn write_tree(out: &mut String, tree: &Tree, end: usize) -> Result<()> {
    if out.len() > end {
        return write_json(out, &Value::Null, end);
    }
    out.push('{');
    for (at, (key, below)) in tree.branches.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        write_key(out, key)?;
        write_tree(out, below, end)?;
    }
    out.push('}');
    Ok(())
}

fn quote(out: &mut String, text: &str) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            other if (other as u32) < 0x20 => write_to(out, &format_args!("\\u{:04x}", other as u32)),
            other => out.push(other),
        }
    }
    out.push('"');
}
