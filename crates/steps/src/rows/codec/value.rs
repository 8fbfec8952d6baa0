//! The binary form of values in a batch: one byte for the type, then the content. The header of the codec lists the
//! checks of the reader.

use std::sync::Arc;

use mangrove_graph::codec::{Malformed, Reader, put_scalar, put_text, put_varint, read_scalar};
use mangrove_graph::{
    Detached, DetachedVertexProperty, Direction, EdgeId, GraphValue, KeyId, OperatorMetrics, PathValue, PropertyOwner,
    PropertyValue, Token, TraversalMetrics, Tree, Value, VertexId, VertexPropertyValue,
};
use smol_str::SmolStr;

/// The type bytes of values that are no scalars. Writer and reader use these names, so they cannot disagree.
mod kind {
    pub const NULL: u8 = 0;
    pub const LIST: u8 = 17;
    pub const SET: u8 = 18;
    pub const MAP: u8 = 19;
    pub const BULK_SET: u8 = 21;
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
    pub const TRAVERSAL_METRICS: u8 = 36;
}

const TOKENS: [Token; 4] = [Token::Id, Token::Label, Token::Key, Token::Value];
const DIRECTIONS: [Direction; 3] = [Direction::Out, Direction::In, Direction::Both];

/// Appends a value.
pub(crate) fn put_value(value: &Value, out: &mut Vec<u8>) {
    if put_scalar(value, out) {
        return;
    }
    match value {
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
        Value::TraversalMetrics(metrics) => {
            out.push(kind::TRAVERSAL_METRICS);
            put_varint(metrics.nanos, out);
            put_operators(&metrics.operators, out);
        }
        // Only null is left. The enum may grow, and a test goes through all of its variants.
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

fn put_operators(operators: &[OperatorMetrics], out: &mut Vec<u8>) {
    put_varint(operators.len() as u64, out);
    for operator in operators {
        put_text(&operator.id, out);
        put_text(&operator.name, out);
        put_varint(operator.nanos, out);
        put_varint(operator.counts.len() as u64, out);
        for (name, count) in &operator.counts {
            put_text(name, out);
            put_varint(*count, out);
        }
        put_named(&operator.annotations, out);
        put_operators(&operator.nested, out);
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
pub(crate) fn read_value(reader: &mut Reader<'_>) -> Result<Value, Malformed> {
    let tag = reader.byte()?;
    if let Some(scalar) = read_scalar(tag, reader)? {
        return Ok(scalar);
    }
    Ok(match tag {
        kind::NULL => Value::Null,
        kind::VERTEX => Value::Vertex(VertexId::from_bits(reader.u64()?)),
        kind::EDGE => Value::Edge(EdgeId::from_bits(reader.u64()?)),
        kind::TOKEN => Value::Token(one_of(&TOKENS, reader)?),
        kind::DIRECTION => Value::Direction(one_of(&DIRECTIONS, reader)?),
        deeper => reader.nested(|reader| read_collection(deeper, reader))?,
    })
}

fn one_of<T: Copy>(all: &[T], reader: &mut Reader<'_>) -> Result<T, Malformed> {
    all.get(usize::from(reader.byte()?)).copied().ok_or_else(|| reader.malformed("an unknown token"))
}

fn read_values(reader: &mut Reader<'_>) -> Result<Vec<Value>, Malformed> {
    let count = reader.count()?;
    reader.repeat(count, read_value)
}

/// Reads a label, or the name of a key.
pub(crate) fn read_name(reader: &mut Reader<'_>) -> Result<SmolStr, Malformed> {
    reader.text().map(SmolStr::new)
}

fn read_key(reader: &mut Reader<'_>) -> Result<KeyId, Malformed> {
    reader.varint_u32().map(KeyId)
}

/// Reads a value that holds other values, within the depth that the reader allows.
fn read_collection(kind: u8, reader: &mut Reader<'_>) -> Result<Value, Malformed> {
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
                return Err(reader.malformed("a path with labels for other objects"));
            }
            let labels = reader.repeat(count, |r| {
                let count = r.count()?;
                r.repeat(count, read_name)
            })?;
            Value::Path(Arc::new(PathValue { objects, labels }))
        }
        kind::VERTEX_PROPERTY => Value::VertexProperty(Arc::new(VertexPropertyValue {
            vertex: VertexId::from_bits(reader.u64()?),
            key: read_key(reader)?,
            ordinal: reader.varint_u32()?,
            value: read_value(reader)?,
            meta: read_pairs(reader, read_key)?.into(),
        })),
        kind::PROPERTY => Value::Property(Arc::new(read_property(reader)?)),
        kind::TREE => Value::Tree(read_tree(reader)?.into()),
        kind::GRAPH => Value::Graph(GraphValue { vertices: read_values(reader)?, edges: read_values(reader)? }.into()),
        kind::TRAVERSAL_METRICS => {
            let metrics = TraversalMetrics { nanos: reader.varint()?, operators: read_operators(reader)? };
            Value::TraversalMetrics(Arc::new(metrics))
        }
        other => Value::Detached(Arc::new(read_detached(other, reader)?)),
    })
}

fn read_tree(reader: &mut Reader<'_>) -> Result<Tree, Malformed> {
    let count = reader.count()?;
    let branch = |reader: &mut Reader<'_>| Ok((read_value(reader)?, reader.nested(read_tree)?));
    Ok(Tree { branches: reader.repeat(count, branch)? })
}

fn read_operators(reader: &mut Reader<'_>) -> Result<Vec<OperatorMetrics>, Malformed> {
    let count = reader.count()?;
    reader.repeat(count, |reader| {
        let (id, name, nanos) = (read_name(reader)?, read_name(reader)?, reader.varint()?);
        let counts = reader.count()?;
        let counts = reader.repeat(counts, |reader| Ok((read_name(reader)?, reader.varint()?)))?;
        let annotations = read_pairs(reader, read_name)?;
        Ok(OperatorMetrics { id, name, nanos, counts, annotations, nested: reader.nested(read_operators)? })
    })
}

fn read_pairs<'a, K>(
    reader: &mut Reader<'a>,
    key: fn(&mut Reader<'a>) -> Result<K, Malformed>,
) -> Result<Vec<(K, Value)>, Malformed> {
    let count = reader.count()?;
    reader.repeat(count, |reader| Ok((key(reader)?, read_value(reader)?)))
}

fn read_property(reader: &mut Reader<'_>) -> Result<PropertyValue, Malformed> {
    let owner = match reader.byte()? {
        0 => PropertyOwner::Edge(EdgeId::from_bits(reader.u64()?)),
        1 => PropertyOwner::VertexProperty(VertexId::from_bits(reader.u64()?), read_key(reader)?, reader.varint_u32()?),
        _ => return Err(reader.malformed("a property of nothing known")),
    };
    Ok(PropertyValue { owner, key: read_key(reader)?, value: read_value(reader)? })
}

fn read_detached(kind: u8, reader: &mut Reader<'_>) -> Result<Detached, Malformed> {
    Ok(match kind {
        kind::DETACHED_VERTEX => {
            let (id, label) = (read_value(reader)?, read_name(reader)?);
            let count = reader.count()?;
            Detached::Vertex { id, label, properties: reader.repeat(count, read_detached_property)? }
        }
        kind::DETACHED_EDGE => Detached::Edge {
            id: read_value(reader)?,
            label: read_name(reader)?,
            source: (read_value(reader)?, read_name(reader)?),
            target: (read_value(reader)?, read_name(reader)?),
            properties: read_pairs(reader, read_name)?,
        },
        kind::DETACHED_VERTEX_PROPERTY => Detached::VertexProperty(read_detached_property(reader)?),
        kind::DETACHED_PROPERTY => Detached::Property { key: read_name(reader)?, value: read_value(reader)? },
        _ => return Err(reader.malformed("a value of an unknown type")),
    })
}

fn read_detached_property(reader: &mut Reader<'_>) -> Result<DetachedVertexProperty, Malformed> {
    Ok(DetachedVertexProperty {
        id: read_value(reader)?,
        key: read_name(reader)?,
        value: read_value(reader)?,
        meta: read_pairs(reader, read_name)?,
    })
}
