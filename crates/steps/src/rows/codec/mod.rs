//! The binary form of a batch, in which it is sent to other nodes.
//!
//! Numbers are LEB128 varints (signed ones zigzag). Ids, and numbers of a typed column, have eight bytes. A column is
//! written without a length: it has as many items as the batch has rows. Paths are written as a table of nodes, each after its predecessor, so
//! shared beginnings are written once and shared again by the reader.
//!
//! The form is for nodes of one version and is never stored. The reader does not trust it: every length is checked
//! against the bytes that are left. So a malformed message is an error, takes memory in proportion to its length, and
//! never panics.

mod value;

use mangrove_graph::codec::{Malformed, Reader, TOO_DEEP, put_text, put_varint};
use mangrove_graph::{EdgeId, Error, FastMap, NumberType, Result, Value, VertexId};

use self::value::{put_value, read_name, read_value};
use crate::rows::batch::{Loops, Rows, Tags};
use crate::rows::binding::BindingColumn;
use crate::rows::column::ObjectColumn;
use crate::rows::numbers::{NumberColumn, NumberSlice};
use crate::rows::path::{Path, PathNode};

const TAGS: u8 = 1;
const BULK: u8 = 1 << 1;
const PATHS: u8 = 1 << 2;
const LOOPS: u8 = 1 << 3;
const SACKS: u8 = 1 << 4;

const VERTICES: u8 = 0;
const EDGES: u8 = 1;
const VALUES: u8 = 2;
const UNSET: u8 = 3;
const NUMBERS: u8 = 4;

/// The types of numbers, by the byte that stands for each.
const NUMBER_TYPES: [NumberType; 6] =
    [NumberType::I8, NumberType::I16, NumberType::I32, NumberType::I64, NumberType::F32, NumberType::F64];

/// Appends a batch in its binary form.
pub(crate) fn encode_rows(rows: &Rows, out: &mut Vec<u8>) {
    put_varint(rows.len() as u64, out);
    let flag = |present: bool, bit: u8| if present { bit } else { 0 };
    out.push(
        flag(matches!(rows.tags, Tags::Many(_)), TAGS)
            | flag(rows.bulk.is_some(), BULK)
            | flag(rows.path.is_some(), PATHS)
            | flag(rows.loops.is_some(), LOOPS)
            | flag(rows.sacks.is_some(), SACKS),
    );
    put_column(&rows.objects, out);
    if let Tags::Many(tags) = &rows.tags {
        tags.iter().for_each(|tag| put_varint(u64::from(*tag), out));
    }
    if let Some(bulk) = &rows.bulk {
        bulk.iter().for_each(|n| put_varint(*n, out));
    }
    if let Some(paths) = &rows.path {
        put_paths(paths, out);
    }
    for loops in rows.loops.iter().flatten() {
        put_varint(loops.len() as u64, out);
        loops.iter().for_each(|n| put_varint(u64::from(*n), out));
    }
    rows.sacks.iter().flatten().for_each(|sack| put_value(sack, out));
    put_varint(rows.bindings.len() as u64, out);
    rows.bindings.iter().for_each(|column| put_binding(column, out));
    put_varint(rows.computed.len() as u64, out);
    rows.computed.iter().for_each(|column| put_options(column, out));
}

fn put_options(column: &[Option<Value>], out: &mut Vec<u8>) {
    for value in column {
        out.push(u8::from(value.is_some()));
        value.iter().for_each(|v| put_value(v, out));
    }
}

fn put_binding(column: &BindingColumn, out: &mut Vec<u8>) {
    match column {
        BindingColumn::Unset => out.push(UNSET),
        BindingColumn::Vertices(ids) => {
            out.push(VERTICES);
            put_words(ids.iter().map(|id| id.to_bits()), out);
        }
        BindingColumn::Edges(ids) => {
            out.push(EDGES);
            put_words(ids.iter().map(|id| id.to_bits()), out);
        }
        BindingColumn::Values(values) => {
            out.push(VALUES);
            put_options(values, out);
        }
    }
}

fn put_words(words: impl Iterator<Item = u64>, out: &mut Vec<u8>) {
    words.for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
}

fn put_column(column: &ObjectColumn, out: &mut Vec<u8>) {
    match column {
        ObjectColumn::Vertices(ids) => {
            out.push(VERTICES);
            put_words(ids.iter().map(|id| id.to_bits()), out);
        }
        ObjectColumn::Edges(ids) => {
            out.push(EDGES);
            put_words(ids.iter().map(|id| id.to_bits()), out);
        }
        ObjectColumn::Numbers(numbers) => {
            out.push(NUMBERS);
            put_numbers(numbers.slice(), out);
        }
        ObjectColumn::Values(values) => {
            out.push(VALUES);
            values.iter().for_each(|value| put_value(value, out));
        }
    }
}

fn put_numbers(numbers: NumberSlice<'_>, out: &mut Vec<u8>) {
    let byte = NUMBER_TYPES.iter().position(|kind| *kind == numbers.kind());
    out.push(byte.expect("the list has all types") as u8);
    match numbers {
        NumberSlice::Integers(_, numbers) => put_words(numbers.iter().map(|n| *n as u64), out),
        NumberSlice::Floats(_, numbers) => put_words(numbers.iter().map(|n| n.to_bits()), out),
    }
}

/// Nodes are numbered from 1 in the order of the table; 0 is the empty path.
fn put_paths(paths: &[Path], out: &mut Vec<u8>) {
    let mut numbers: FastMap<*const PathNode, u64> = Default::default();
    let mut table: Vec<&PathNode> = Vec::new();
    for path in paths {
        let known = |node: &&PathNode| numbers.contains_key(&std::ptr::from_ref(*node));
        let new: Vec<&PathNode> = crate::rows::path::newest_first(path).take_while(|node| !known(node)).collect();
        for node in new.into_iter().rev() {
            table.push(node);
            numbers.insert(std::ptr::from_ref(node), table.len() as u64);
        }
    }
    let number = |path: &Path| path.as_ref().map_or(0, |node| numbers[&std::sync::Arc::as_ptr(node)]);
    put_varint(table.len() as u64, out);
    for node in table {
        put_varint(number(&node.previous), out);
        put_value(&node.object, out);
        put_varint(node.labels.len() as u64, out);
        node.labels.iter().for_each(|label| put_text(label, out));
    }
    paths.iter().for_each(|path| put_varint(number(path), out));
}

/// Reads what [`encode_rows`] wrote.
pub(crate) fn decode_rows(bytes: &[u8]) -> Result<Rows> {
    read_rows(&mut Reader::new(bytes)).map_err(|malformed| match malformed.what {
        // A traversal can cause this error; no node of this version writes any other malformed message.
        TOO_DEEP => Error::evaluation(format!(
            "a value with more than {} collections in one another cannot travel between nodes",
            Value::NESTING_MAX
        )),
        _ => Error::bug(format!(
            "a message between nodes is damaged, or of another version of Mangrove: it has {malformed}"
        )),
    })
}

fn read_rows(reader: &mut Reader<'_>) -> Result<Rows, Malformed> {
    let count = reader.count()?;
    let flags = reader.byte()?;
    if flags & !(TAGS | BULK | PATHS | LOOPS | SACKS) != 0 {
        return Err(reader.malformed("unknown columns"));
    }
    let has = |bit: u8| flags & bit != 0;
    let objects = read_column(reader, count)?;
    let tags = match has(TAGS) {
        true => Tags::Many(reader.repeat(count, Reader::varint_u32)?),
        false => Tags::One,
    };
    let bulk = has(BULK).then(|| reader.repeat(count, Reader::varint)).transpose()?;
    let path = has(PATHS).then(|| read_paths(reader, count)).transpose()?;
    let loops = has(LOOPS).then(|| reader.repeat(count, read_loops)).transpose()?;
    let sacks = has(SACKS).then(|| reader.repeat(count, read_value)).transpose()?;
    let bindings = reader.count()?;
    let bindings = reader.repeat(bindings, |reader| read_binding(reader, count))?;
    let computed = reader.count()?;
    let computed = reader.repeat(computed, |reader| read_options(reader, count))?;
    reader.expect_end()?;
    Ok(Rows { tags, objects, bulk, path, bindings, loops, sacks, computed })
}

fn read_vertices(reader: &mut Reader<'_>, count: usize) -> Result<Vec<VertexId>, Malformed> {
    reader.repeat(count, |r| r.u64().map(VertexId::from_bits))
}

fn read_edges(reader: &mut Reader<'_>, count: usize) -> Result<Vec<EdgeId>, Malformed> {
    reader.repeat(count, |r| r.u64().map(EdgeId::from_bits))
}

fn read_binding(reader: &mut Reader<'_>, count: usize) -> Result<BindingColumn, Malformed> {
    Ok(match reader.byte()? {
        UNSET => BindingColumn::Unset,
        VERTICES => BindingColumn::Vertices(read_vertices(reader, count)?),
        EDGES => BindingColumn::Edges(read_edges(reader, count)?),
        VALUES => BindingColumn::Values(read_options(reader, count)?),
        _ => return Err(reader.malformed("an unknown kind of binding column")),
    })
}

fn read_column(reader: &mut Reader<'_>, count: usize) -> Result<ObjectColumn, Malformed> {
    Ok(match reader.byte()? {
        VERTICES => ObjectColumn::Vertices(read_vertices(reader, count)?),
        EDGES => ObjectColumn::Edges(read_edges(reader, count)?),
        NUMBERS => ObjectColumn::Numbers(read_numbers(reader, count)?),
        VALUES => ObjectColumn::Values(reader.repeat(count, read_value)?),
        _ => return Err(reader.malformed("an unknown kind of column")),
    })
}

fn read_numbers(reader: &mut Reader<'_>, count: usize) -> Result<NumberColumn, Malformed> {
    let byte = reader.byte()?;
    let kind = NUMBER_TYPES.get(usize::from(byte)).ok_or_else(|| reader.malformed("an unknown type of numbers"))?;
    let words = reader.repeat(count, Reader::u64)?;
    let column = match kind.is_float() {
        true => NumberColumn::of_floats(*kind, words.into_iter().map(f64::from_bits).collect()),
        false => NumberColumn::of_integers(*kind, words.into_iter().map(|n| n as i64).collect()),
    };
    column.ok_or_else(|| reader.malformed("a number that does not fit in its type"))
}

fn read_loops(reader: &mut Reader<'_>) -> Result<Loops, Malformed> {
    let count = reader.count()?;
    Ok(reader.repeat(count, Reader::varint_u32)?.into())
}

fn read_options(reader: &mut Reader<'_>, count: usize) -> Result<Vec<Option<Value>>, Malformed> {
    reader.repeat(count, |reader| match reader.byte()? {
        0 => Ok(None),
        1 => read_value(reader).map(Some),
        _ => Err(reader.malformed("a value that is neither there nor missing")),
    })
}

fn read_paths(reader: &mut Reader<'_>, count: usize) -> Result<Vec<Path>, Malformed> {
    let size = reader.count()?;
    let mut table: Vec<Path> = vec![None];
    let known = |table: &[Path], reader: &mut Reader<'_>| {
        let number = reader.varint()?;
        let node = usize::try_from(number).ok().and_then(|at| table.get(at));
        node.cloned().ok_or_else(|| reader.malformed("a path that goes on from an unknown node"))
    };
    for _ in 0..size {
        let previous = known(&table, reader)?;
        let object = read_value(reader)?;
        let labels = reader.count()?;
        let labels = reader.repeat(labels, read_name)?;
        table.push(PathNode::extend(previous, object, &labels));
    }
    reader.repeat(count, |reader| known(&table, reader))
}

#[cfg(test)]
mod tests;
