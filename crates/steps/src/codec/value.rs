//! The binary form of values: a byte for the type, then the content.

use std::sync::Arc;

use bigdecimal::BigDecimal;
use mangrove_graph::{
    DateTime, Detached, DetachedVertexProperty, Direction, Duration, EdgeId, GraphValue, KeyId, PathValue,
    PropertyOwner, PropertyValue, Result, Token, Tree, Value, VertexId, VertexPropertyValue,
};
use num_bigint::BigInt;
use smol_str::SmolStr;
use uuid::Uuid;

use super::bytes::{Reader, corrupt, put_bytes, put_signed, put_text, put_varint};

/// The byte that says which variant follows. Both directions use these names, so they cannot disagree.
mod kind {
    pub const NULL: u8 = 0;
    pub const FALSE: u8 = 1;
    pub const TRUE: u8 = 2;
    pub const I8: u8 = 3;
    pub const I16: u8 = 4;
    pub const I32: u8 = 5;
    pub const I64: u8 = 6;
    pub const BIG_INT: u8 = 7;
    pub const F32: u8 = 8;
    pub const F64: u8 = 9;
    pub const DECIMAL: u8 = 10;
    pub const CHAR: u8 = 11;
    pub const STRING: u8 = 12;
    pub const BYTES: u8 = 13;
    pub const UUID: u8 = 14;
    pub const DATE_TIME: u8 = 15;
    pub const DURATION: u8 = 16;
    pub const LIST: u8 = 17;
    pub const SET: u8 = 18;
    pub const MAP: u8 = 19;
    pub const BULK_SET: u8 = 20;
    pub const F32_ARRAY: u8 = 21;
    pub const VERTEX: u8 = 22;
    pub const EDGE: u8 = 23;
    pub const VERTEX_PROPERTY: u8 = 24;
    pub const PROPERTY: u8 = 25;
    pub const PATH: u8 = 26;
    pub const TOKEN: u8 = 27;
    pub const DIRECTION: u8 = 28;
    pub const DETACHED_VERTEX: u8 = 29;
    pub const DETACHED_EDGE: u8 = 30;
    pub const DETACHED_VERTEX_PROPERTY: u8 = 31;
    pub const DETACHED_PROPERTY: u8 = 32;
    pub const ENTRY: u8 = 33;
    pub const TREE: u8 = 34;
    pub const GRAPH: u8 = 35;
}

const TOKENS: [Token; 4] = [Token::Id, Token::Label, Token::Key, Token::Value];
const DIRECTIONS: [Direction; 3] = [Direction::Out, Direction::In, Direction::Both];

/// Appends a value.
pub fn put_value(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Bool(false) => out.push(kind::FALSE),
        Value::Bool(true) => out.push(kind::TRUE),
        Value::I8(n) => put_integer(kind::I8, i64::from(*n), out),
        Value::I16(n) => put_integer(kind::I16, i64::from(*n), out),
        Value::I32(n) => put_integer(kind::I32, i64::from(*n), out),
        Value::I64(n) => put_integer(kind::I64, *n, out),
        Value::BigInt(n) => {
            out.push(kind::BIG_INT);
            put_bytes(&n.to_signed_bytes_le(), out);
        }
        Value::F32(n) => put_fixed(kind::F32, &n.to_bits().to_le_bytes(), out),
        Value::F64(n) => put_fixed(kind::F64, &n.to_bits().to_le_bytes(), out),
        Value::Decimal(n) => {
            let (digits, exponent) = n.as_bigint_and_exponent();
            out.push(kind::DECIMAL);
            put_bytes(&digits.to_signed_bytes_le(), out);
            put_signed(exponent, out);
        }
        Value::Char(c) => {
            out.push(kind::CHAR);
            put_varint(u64::from(u32::from(*c)), out);
        }
        Value::String(text) => {
            out.push(kind::STRING);
            put_text(text, out);
        }
        Value::Bytes(bytes) => {
            out.push(kind::BYTES);
            put_bytes(bytes, out);
        }
        Value::Uuid(uuid) => put_fixed(kind::UUID, uuid.as_bytes(), out),
        Value::DateTime(time) => {
            put_integer(kind::DATE_TIME, time.seconds, out);
            put_varint(u64::from(time.nanos), out);
            put_signed(i64::from(time.offset_seconds), out);
        }
        Value::Duration(length) => {
            put_integer(kind::DURATION, length.seconds, out);
            put_varint(u64::from(length.nanos), out);
        }
        Value::F32Array(numbers) => {
            out.push(kind::F32_ARRAY);
            put_varint(numbers.len() as u64, out);
            numbers.iter().for_each(|n| out.extend_from_slice(&n.to_bits().to_le_bytes()));
        }
        Value::Token(token) => put_fixed(kind::TOKEN, &[*token as u8], out),
        Value::Direction(direction) => put_fixed(kind::DIRECTION, &[*direction as u8], out),
        Value::Vertex(id) => put_fixed(kind::VERTEX, &id.to_bits().to_le_bytes(), out),
        Value::Edge(id) => put_fixed(kind::EDGE, &id.to_bits().to_le_bytes(), out),
        Value::Detached(element) => put_detached(element, out),
        Value::VertexProperty(property) => put_vertex_property(property, out),
        Value::Property(property) => put_property(property, out),
        collection => put_collection(collection, out),
    }
}

fn put_integer(kind: u8, n: i64, out: &mut Vec<u8>) {
    out.push(kind);
    put_signed(n, out);
}

fn put_fixed(kind: u8, bytes: &[u8], out: &mut Vec<u8>) {
    out.push(kind);
    out.extend_from_slice(bytes);
}

fn put_values(values: &[Value], out: &mut Vec<u8>) {
    put_varint(values.len() as u64, out);
    values.iter().for_each(|v| put_value(v, out));
}

fn put_collection(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::List(values) => {
            out.push(kind::LIST);
            put_values(values, out);
        }
        Value::Set(values) => {
            out.push(kind::SET);
            put_values(values, out);
        }
        Value::Map(entries) => {
            out.push(kind::MAP);
            put_varint(entries.len() as u64, out);
            for (key, value) in entries.iter() {
                put_value(key, out);
                put_value(value, out);
            }
        }
        Value::Entry(entry) => {
            out.push(kind::ENTRY);
            put_value(&entry.0, out);
            put_value(&entry.1, out);
        }
        Value::BulkSet(members) => {
            out.push(kind::BULK_SET);
            put_varint(members.len() as u64, out);
            for (value, count) in members.iter() {
                put_value(value, out);
                put_varint(*count, out);
            }
        }
        Value::Path(path) => {
            out.push(kind::PATH);
            put_values(&path.objects, out);
            put_varint(path.labels.len() as u64, out);
            for labels in &path.labels {
                put_varint(labels.len() as u64, out);
                labels.iter().for_each(|label| put_text(label, out));
            }
        }
        Value::Tree(tree) => {
            out.push(kind::TREE);
            put_tree(tree, out);
        }
        Value::Graph(graph) => {
            out.push(kind::GRAPH);
            put_values(&graph.vertices, out);
            put_values(&graph.edges, out);
        }
        // What is left is null (the enum may grow, and a test goes through all its variants).
        _ => out.push(kind::NULL),
    }
}

fn put_tree(tree: &Tree, out: &mut Vec<u8>) {
    put_varint(tree.branches.len() as u64, out);
    for (key, below) in &tree.branches {
        put_value(key, out);
        put_tree(below, out);
    }
}

fn put_keyed(values: &[(KeyId, Value)], out: &mut Vec<u8>) {
    put_varint(values.len() as u64, out);
    for (key, value) in values {
        put_varint(u64::from(key.0), out);
        put_value(value, out);
    }
}

fn put_named(values: &[(SmolStr, Value)], out: &mut Vec<u8>) {
    put_varint(values.len() as u64, out);
    for (name, value) in values {
        put_text(name, out);
        put_value(value, out);
    }
}

fn put_vertex_property(property: &VertexPropertyValue, out: &mut Vec<u8>) {
    put_fixed(kind::VERTEX_PROPERTY, &property.vertex.to_bits().to_le_bytes(), out);
    put_varint(u64::from(property.key.0), out);
    put_varint(u64::from(property.ordinal), out);
    put_value(&property.value, out);
    put_keyed(&property.meta, out);
}

fn put_property(property: &PropertyValue, out: &mut Vec<u8>) {
    out.push(kind::PROPERTY);
    match property.owner {
        PropertyOwner::Edge(edge) => put_fixed(0, &edge.to_bits().to_le_bytes(), out),
        PropertyOwner::VertexProperty(vertex, key, ordinal) => {
            put_fixed(1, &vertex.to_bits().to_le_bytes(), out);
            put_varint(u64::from(key.0), out);
            put_varint(u64::from(ordinal), out);
        }
    }
    put_varint(u64::from(property.key.0), out);
    put_value(&property.value, out);
}

fn put_detached(element: &Detached, out: &mut Vec<u8>) {
    match element {
        Detached::Vertex { id, label, properties } => {
            out.push(kind::DETACHED_VERTEX);
            put_value(id, out);
            put_text(label, out);
            put_varint(properties.len() as u64, out);
            properties.iter().for_each(|property| put_detached_property(property, out));
        }
        Detached::Edge { id, label, source, target, properties } => {
            out.push(kind::DETACHED_EDGE);
            for (id, label) in [(id, label), (&source.0, &source.1), (&target.0, &target.1)] {
                put_value(id, out);
                put_text(label, out);
            }
            put_named(properties, out);
        }
        Detached::VertexProperty(property) => {
            out.push(kind::DETACHED_VERTEX_PROPERTY);
            put_detached_property(property, out);
        }
        Detached::Property { key, value } => {
            out.push(kind::DETACHED_PROPERTY);
            put_text(key, out);
            put_value(value, out);
        }
    }
}

fn put_detached_property(property: &DetachedVertexProperty, out: &mut Vec<u8>) {
    put_value(&property.id, out);
    put_text(&property.key, out);
    put_value(&property.value, out);
    put_named(&property.meta, out);
}

/// Reads a value.
pub fn read_value(reader: &mut Reader<'_>) -> Result<Value> {
    let out_of_range = |_| corrupt("an integer out of its type's range");
    Ok(match reader.byte()? {
        kind::NULL => Value::Null,
        kind::FALSE => Value::Bool(false),
        kind::TRUE => Value::Bool(true),
        kind::I8 => Value::I8(reader.signed()?.try_into().map_err(out_of_range)?),
        kind::I16 => Value::I16(reader.signed()?.try_into().map_err(out_of_range)?),
        kind::I32 => Value::I32(reader.signed()?.try_into().map_err(out_of_range)?),
        kind::I64 => Value::I64(reader.signed()?),
        kind::BIG_INT => Value::BigInt(Arc::new(BigInt::from_signed_bytes_le(reader.sized()?))),
        kind::F32 => Value::F32(f32::from_bits(u32::from_le_bytes(reader.array()?))),
        kind::F64 => Value::F64(f64::from_bits(reader.u64()?)),
        kind::DECIMAL => {
            let digits = BigInt::from_signed_bytes_le(reader.sized()?);
            Value::Decimal(Arc::new(BigDecimal::new(digits, reader.signed()?)))
        }
        kind::CHAR => {
            Value::Char(char::from_u32(reader.u32()?).ok_or_else(|| corrupt("a number that is no character"))?)
        }
        kind::STRING => Value::String(reader.text()?),
        kind::BYTES => Value::Bytes(reader.sized()?.into()),
        kind::UUID => Value::Uuid(Uuid::from_bytes(reader.array()?)),
        kind::DATE_TIME => {
            let (seconds, nanos) = (reader.signed()?, nanos(reader)?);
            Value::DateTime(DateTime {
                seconds,
                nanos,
                offset_seconds: reader.signed()?.try_into().map_err(out_of_range)?,
            })
        }
        kind::DURATION => Value::Duration(Duration { seconds: reader.signed()?, nanos: nanos(reader)? }),
        kind::F32_ARRAY => {
            let count = reader.count()?;
            let number = |reader: &mut Reader<'_>| Ok(f32::from_bits(u32::from_le_bytes(reader.array()?)));
            Value::F32Array(reader.repeat(count, number)?.into())
        }
        kind::VERTEX => Value::Vertex(VertexId::from_bits(reader.u64()?)),
        kind::EDGE => Value::Edge(EdgeId::from_bits(reader.u64()?)),
        kind::TOKEN => Value::Token(one_of(&TOKENS, reader)?),
        kind::DIRECTION => Value::Direction(one_of(&DIRECTIONS, reader)?),
        deeper => reader.nested(|reader| read_collection(deeper, reader))?,
    })
}

fn nanos(reader: &mut Reader<'_>) -> Result<u32> {
    reader
        .u32()
        .and_then(|n| if n < 1_000_000_000 { Ok(n) } else { Err(corrupt("more nanoseconds than a second has")) })
}

fn one_of<T: Copy>(all: &[T], reader: &mut Reader<'_>) -> Result<T> {
    all.get(usize::from(reader.byte()?)).copied().ok_or_else(|| corrupt("an unknown token"))
}

fn read_values(reader: &mut Reader<'_>) -> Result<Vec<Value>> {
    let count = reader.count()?;
    reader.repeat(count, read_value)
}

fn read_key(reader: &mut Reader<'_>) -> Result<KeyId> {
    reader.u32().map(KeyId)
}

/// Reads a value that holds other values.
fn read_collection(kind: u8, reader: &mut Reader<'_>) -> Result<Value> {
    Ok(match kind {
        kind::LIST => Value::list(read_values(reader)?),
        kind::SET => Value::Set(read_values(reader)?.into()),
        kind::MAP => {
            let count = reader.count()?;
            Value::map(reader.repeat(count, |r| Ok((read_value(r)?, read_value(r)?)))?)
        }
        kind::ENTRY => Value::Entry(Arc::new((read_value(reader)?, read_value(reader)?))),
        kind::BULK_SET => {
            let count = reader.count()?;
            Value::BulkSet(reader.repeat(count, |r| Ok((read_value(r)?, r.varint()?)))?.into())
        }
        kind::PATH => {
            let objects = read_values(reader)?;
            let count = reader.count()?;
            if count != objects.len() {
                return Err(corrupt("a path with labels for other objects"));
            }
            let labels = reader.repeat(count, |r| {
                let count = r.count()?;
                r.repeat(count, Reader::text)
            })?;
            Value::Path(Arc::new(PathValue { objects, labels }))
        }
        kind::VERTEX_PROPERTY => Value::VertexProperty(Arc::new(VertexPropertyValue {
            vertex: VertexId::from_bits(reader.u64()?),
            key: read_key(reader)?,
            ordinal: reader.u32()?,
            value: read_value(reader)?,
            meta: read_pairs(reader, read_key)?.into(),
        })),
        kind::PROPERTY => Value::Property(Arc::new(read_property(reader)?)),
        kind::TREE => Value::Tree(read_tree(reader)?.into()),
        kind::GRAPH => Value::Graph(GraphValue { vertices: read_values(reader)?, edges: read_values(reader)? }.into()),
        other => Value::Detached(Arc::new(read_detached(other, reader)?)),
    })
}

fn read_tree(reader: &mut Reader<'_>) -> Result<Tree> {
    let count = reader.count()?;
    let branch = |reader: &mut Reader<'_>| Ok((read_value(reader)?, reader.nested(read_tree)?));
    Ok(Tree { branches: reader.repeat(count, branch)? })
}

fn read_pairs<'a, K>(reader: &mut Reader<'a>, key: fn(&mut Reader<'a>) -> Result<K>) -> Result<Vec<(K, Value)>> {
    let count = reader.count()?;
    reader.repeat(count, |reader| Ok((key(reader)?, read_value(reader)?)))
}

fn read_property(reader: &mut Reader<'_>) -> Result<PropertyValue> {
    let owner = match reader.byte()? {
        0 => PropertyOwner::Edge(EdgeId::from_bits(reader.u64()?)),
        1 => PropertyOwner::VertexProperty(VertexId::from_bits(reader.u64()?), read_key(reader)?, reader.u32()?),
        _ => return Err(corrupt("a property of nothing known")),
    };
    Ok(PropertyValue { owner, key: read_key(reader)?, value: read_value(reader)? })
}

fn read_detached(kind: u8, reader: &mut Reader<'_>) -> Result<Detached> {
    Ok(match kind {
        kind::DETACHED_VERTEX => {
            let (id, label) = (read_value(reader)?, reader.text()?);
            let count = reader.count()?;
            Detached::Vertex { id, label, properties: reader.repeat(count, read_detached_property)? }
        }
        kind::DETACHED_EDGE => Detached::Edge {
            id: read_value(reader)?,
            label: reader.text()?,
            source: (read_value(reader)?, reader.text()?),
            target: (read_value(reader)?, reader.text()?),
            properties: read_pairs(reader, Reader::text)?,
        },
        kind::DETACHED_VERTEX_PROPERTY => Detached::VertexProperty(read_detached_property(reader)?),
        kind::DETACHED_PROPERTY => Detached::Property { key: reader.text()?, value: read_value(reader)? },
        _ => return Err(corrupt("a value of an unknown type")),
    })
}

fn read_detached_property(reader: &mut Reader<'_>) -> Result<DetachedVertexProperty> {
    Ok(DetachedVertexProperty {
        id: read_value(reader)?,
        key: reader.text()?,
        value: read_value(reader)?,
        meta: read_pairs(reader, Reader::text)?,
    })
}
