//! GraphML as TinkerPop's `GraphMLWriter` writes it: labels are the data `labelV` and `labelE`, and every property has
//! a declared key.
//!
//! GraphML knows boolean, int, long, float, double and string. Values of other types are declared as strings, and the
//! attribute `mangrove.type` names their type; other readers ignore it. A key with several values has several data
//! elements. Meta-properties are left out and counted. A text with characters that XML cannot hold becomes typed JSON
//! (`any`), where they are escaped.
//!
//! The graph is read twice: first for the keys and types to declare, and then for the elements. Both passes read one
//! view, so every value has its declared key.
//!
//! Ids in a document are texts. The loader reads the plain form of a 64-bit number as that number. An id that would
//! load as another type is counted.

use std::io::Write;

use mangrove_graph::{Error, GraphView, PropertyRow, Result, Value};

use super::elements::{CatalogNames, Selection, by_key};
use super::kind::{ColumnKind, ColumnSchema, ColumnShape, Scalar};
use super::text::{write_scalar, write_values};
use super::{Counts, ExportTarget};
use crate::values::{plain_integer, write_value};

const HEAD: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\" \
     xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" xsi:schemaLocation=\"http://graphml.graphdrawing.org/xmlns \
     http://graphml.graphdrawing.org/xmlns/1.1/graphml.xsd\">\n";

/// Writes the graph.
pub(crate) fn write(view: &dyn GraphView, selection: &Selection, target: &mut ExportTarget<'_>) -> Result<Counts> {
    let mut names = CatalogNames::new(view.catalog());
    let (mut of_vertices, mut of_edges) = (ColumnSchema::default(), ColumnSchema::default());
    Selection::each_vertex(view, &selection.labels, &mut |row| {
        of_vertices.add_for_xml(row.properties);
        Ok(())
    })?;
    selection.each_edge(view, &selection.labels, &mut |row| {
        of_edges.add_for_xml(row.properties);
        Ok(())
    })?;
    target.losses.meta += of_vertices.with_meta;
    let mut text = Vec::from(HEAD);
    text.extend_from_slice(b"<key id=\"labelV\" for=\"node\" attr.name=\"labelV\" attr.type=\"string\"/>\n");
    text.extend_from_slice(b"<key id=\"labelE\" for=\"edge\" attr.name=\"labelE\" attr.type=\"string\"/>\n");
    declare(&mut text, &mut names, &mut of_vertices, 'n', "node")?;
    declare(&mut text, &mut names, &mut of_edges, 'e', "edge")?;
    text.extend_from_slice(b"<graph id=\"G\" edgedefault=\"directed\">\n");
    let mut counts = Counts::default();
    Selection::each_vertex(view, &selection.labels, &mut |row| {
        write_ids(&mut text, &[("<node id", row.id)], target)?;
        write_content(&mut text, "labelV", names.set(row.label), (&of_vertices, 'n'), row.properties)?;
        text.extend_from_slice(b"</node>\n");
        counts.vertices += 1;
        hand_over(&mut text, counts, target)
    })?;
    selection.each_edge(view, &selection.labels, &mut |row| {
        let ids = [("<edge id", row.id), (" source", row.source), (" target", row.target)];
        write_ids(&mut text, &ids, target)?;
        write_content(&mut text, "labelE", names.set(row.label), (&of_edges, 'e'), row.properties)?;
        text.extend_from_slice(b"</edge>\n");
        counts.edges += 1;
        hand_over(&mut text, counts, target)
    })?;
    text.extend_from_slice(b"</graph>\n</graphml>\n");
    target.out.write_all(&text)?;
    Ok(counts)
}

/// Begins an element that has these ids as attributes.
fn write_ids(text: &mut Vec<u8>, ids: &[(&str, &Value)], target: &mut ExportTarget<'_>) -> Result<()> {
    for (attribute, id) in ids {
        text.extend_from_slice(attribute.as_bytes());
        text.extend_from_slice(b"=\"");
        write_id(text, id, target)?;
        text.push(b'"');
    }
    text.push(b'>');
    Ok(())
}

/// Writes the label of an element, and its properties with the keys that a schema has declared under a letter.
fn write_content(
    text: &mut Vec<u8>,
    key: &str,
    label: &str,
    (schema, letter): (&ColumnSchema, char),
    properties: &[PropertyRow],
) -> Result<()> {
    write!(text, "<data key=\"{key}\">").expect("a buffer takes everything");
    escape(text, name_in_xml("label", label)?.as_bytes());
    text.extend_from_slice(b"</data>");
    write_data(text, schema, letter, properties)
}

/// Writes the text of a whole element, and reports the counts.
fn hand_over(text: &mut Vec<u8>, counts: Counts, target: &mut ExportTarget<'_>) -> Result<()> {
    target.out.write_all(text)?;
    text.clear();
    target.row(counts)
}

/// Declares the keys of a schema: the id of the key of column `n` is the letter, then `n`.
fn declare(
    text: &mut Vec<u8>,
    names: &mut CatalogNames<'_>,
    schema: &mut ColumnSchema,
    letter: char,
    element: &str,
) -> Result<()> {
    schema.seal();
    for (at, (key, kind)) in schema.columns().enumerate() {
        write!(text, "<key id=\"{letter}{at}\" for=\"{element}\" attr.name=\"").expect("a buffer takes everything");
        escape(text, name_in_xml("property key", names.key(key))?.as_bytes());
        let (known, own) = match kind {
            ColumnKind { shape: ColumnShape::List, scalar } => ("string", Some(format!("{}[]", scalar.name()))),
            ColumnKind { scalar, .. } => match scalar {
                Scalar::Bool => ("boolean", None),
                Scalar::I32 => ("int", None),
                Scalar::I64 => ("long", None),
                Scalar::F32 => ("float", None),
                Scalar::F64 => ("double", None),
                Scalar::String => ("string", None),
                other => ("string", Some(other.name().to_owned())),
            },
        };
        write!(text, "\" attr.type=\"{known}\"").expect("a buffer takes everything");
        if let Some(own) = own {
            write!(text, " mangrove.type=\"{own}\"").expect("a buffer takes everything");
        }
        text.extend_from_slice(b"/>\n");
    }
    Ok(())
}

/// Checks that XML can hold a label or a key.
fn name_in_xml<'n>(what: &str, name: &'n str) -> Result<&'n str> {
    match name.chars().find(|character| !is_xml(*character)) {
        None => Ok(name),
        Some(character) => Err(Error::unsupported(format!(
            "the {what} {name:?} has the character U+{:04X}, which XML cannot hold; export to another format than \
             GraphML",
            u32::from(character)
        ))),
    }
}

/// Writes the values of an element, each as a data element with the key of its column.
fn write_data(text: &mut Vec<u8>, schema: &ColumnSchema, letter: char, properties: &[PropertyRow]) -> Result<()> {
    let mut field = Vec::new();
    for values in by_key(properties) {
        let kind = kind_in_xml(values);
        let at = schema.position_of(values[0].key, kind);
        for property in values {
            field.clear();
            match kind.shape {
                ColumnShape::List => write_values(&mut field, kind, values)?,
                _ => write_scalar(&mut field, kind.scalar, &property.value)?,
            }
            write!(text, "<data key=\"{letter}{at}\">").expect("a buffer takes everything");
            escape(text, &field);
            text.extend_from_slice(b"</data>");
        }
    }
    Ok(())
}

impl ColumnSchema {
    fn add_for_xml(&mut self, properties: &[PropertyRow]) {
        for values in by_key(properties) {
            self.add_kind(values, kind_in_xml(values));
        }
    }
}

/// The kind of values in a document: texts with characters that XML cannot hold are `any`.
fn kind_in_xml(values: &[PropertyRow]) -> ColumnKind {
    let kind = ColumnKind::of(values);
    let illegal = |value: &Value| match value {
        Value::String(text) => !text.chars().all(is_xml),
        Value::Char(character) => !is_xml(*character) || character.is_whitespace(),
        _ => false,
    };
    let any = match &values[0].value {
        // Texts in lists are JSON strings. JSON escapes all of these characters but U+FFFE and U+FFFF, and `escape`
        // does these.
        Value::List(_) => false,
        _ => values.iter().any(|property| illegal(&property.value)),
    };
    if any { ColumnKind { scalar: Scalar::Any, ..kind } } else { kind }
}

/// Returns true if XML can hold the character.
fn is_xml(character: char) -> bool {
    matches!(character, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}

/// Writes an id as a text. Counts it as a loss if it would not load as the same id.
fn write_id(text: &mut Vec<u8>, id: &Value, target: &mut ExportTarget<'_>) -> Result<()> {
    let mut field = Vec::new();
    match id {
        Value::String(id) => field.extend_from_slice(id.as_bytes()),
        Value::I32(number) => write!(field, "{number}").expect("a buffer takes everything"),
        Value::I64(number) => write!(field, "{number}").expect("a buffer takes everything"),
        Value::Uuid(uuid) => write!(field, "{uuid}").expect("a buffer takes everything"),
        other => write_value(&mut field, other)?,
    }
    let same = match id {
        Value::I32(_) | Value::I64(_) => true,
        Value::String(id) => {
            plain_integer(&field).is_none() && field.trim_ascii() == field.as_slice() && id.chars().all(is_xml)
        }
        _ => false,
    };
    target.losses.ids += u64::from(!same);
    escape(text, &field);
    Ok(())
}

/// Writes a text into an element or an attribute.
fn escape(out: &mut Vec<u8>, text: &[u8]) {
    // All fields are written as UTF-8, so nothing is replaced.
    for character in String::from_utf8_lossy(text).chars() {
        match character {
            '&' => out.extend_from_slice(b"&amp;"),
            '<' => out.extend_from_slice(b"&lt;"),
            '>' => out.extend_from_slice(b"&gt;"),
            '"' => out.extend_from_slice(b"&quot;"),
            // A parser turns every line end into LF, and into a space in an attribute.
            '\r' => out.extend_from_slice(b"&#13;"),
            '\n' => out.extend_from_slice(b"&#10;"),
            '\t' => out.extend_from_slice(b"&#9;"),
            // Line ends in XML 1.1, which some parsers also accept in 1.0.
            '\u{85}' => out.extend_from_slice(b"&#133;"),
            '\u{2028}' => out.extend_from_slice(b"&#8232;"),
            _ if is_xml(character) => out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
            // XML cannot hold the character. In JSON this is its escape. An id with such a character was counted as a
            // loss.
            _ => write!(out, "\\u{:04x}", u32::from(character)).expect("a buffer takes everything"),
        }
    }
}
