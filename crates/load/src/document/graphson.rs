//! JSON documents: GraphSON in adjacency form, and JSON lines.
//!
//! Three forms are read. The members of the objects show which one it is, so no option is needed:
//!
//! - one vertex a line with its edges, as TinkerPop's `GraphSONWriter` writes whole graphs, in version 3, 2 or untyped;
//! - the same as one object (`wrapAdjacencyList`);
//! - JSON lines as our own export writes them: one vertex or one edge a line.
//!
//! The file is read twice, all vertices and then all edges, so that an edge may refer to a later vertex. Only `outE` is
//! read, because the other end of every edge repeats it under `inE`. Several threads parse lines, some hundred thousand
//! bytes at a time. Of a document that is one object, one vertex is in memory at a time. The options of the load limit
//! the length of both.
//!
//! The load stops at text that is not JSON, and at an object that is neither a vertex nor an edge: the file is damaged.
//! A vertex or an edge is rejected if its id exists already or an end does not exist.

use std::io::{BufRead, BufReader, Read};
use std::ops::Range;
use std::path::Path;

use mangrove_graph::{Error, ErrorKind, Result, UserId, Value};
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value as Json};

use super::edges::{DocumentEdge, load_by_ids};
use crate::input::{Bounded, ElementLength, Input, too_long};
use crate::parallel::in_order;
use crate::sink::{Cardinality, MultiPropertyRow, ValueWithMeta};
use crate::state::{BatchFile, EdgeBatches, LoadContext, Pass, RowOrigin, VertexBatches, VertexTable};
use crate::values::{damaged, read_plain_value, read_value};

type JsonObject = Map<String, Json>;

/// Bytes of lines that a thread parses at once.
const LINES_BYTES: usize = 256 * 1024;

/// Bytes at the start of a file that show its form.
const PEEK_BYTES: usize = 4 * 1024;

/// Loads the vertices of a file.
pub(crate) fn load_vertices(ctx: &mut LoadContext<'_>, file: usize, path: &Path) -> Result<()> {
    let pass = Pass { file, path };
    let mut batches = VertexBatches::new(BatchFile { pass, keeps_rows: true });
    each_object(ctx, &pass, |ctx, place, object| {
        let row = match VertexObject::of(object)? {
            Some(row) => row,
            None => return Ok(()),
        };
        let at = batches.open(ctx, row.label, None);
        let table = batches.at(at);
        // Read before the id is claimed: a damaged property stops the load and leaves no claim.
        let properties = row.properties()?;
        let values = |name: &str| {
            let found = properties.iter().find(|(key, _)| *key == name)?;
            found.1.first().map(|first| &first.value)
        };
        let claimed = table.claim_key(ctx, values).and_then(|()| table.claim_user_id(ctx, row.id));
        if let Err(reason) = claimed {
            ctx.rejects.remember(file, place.line);
            return ctx.reject_line(&pass, &place, &reason);
        }
        properties.into_iter().for_each(|(key, values)| set_property(table, key, values));
        batches.end_row(ctx, at, place)
    })?;
    batches.flush(ctx)
}

/// Loads the edges of a file whose vertices are loaded.
pub(crate) fn load_edges(ctx: &mut LoadContext<'_>, file: usize, path: &Path) -> Result<()> {
    load_by_ids(ctx, file, path, |ctx, ids| load_edges_with_ids(ctx, file, path, ids))
}

/// Loads the edges with ids, or those without. Returns true if there were others.
fn load_edges_with_ids(ctx: &mut LoadContext<'_>, file: usize, path: &Path, ids: bool) -> Result<bool> {
    let pass = Pass { file, path };
    let mut batches = EdgeBatches::new(BatchFile { pass, keeps_rows: true });
    let mut others = false;
    each_object(ctx, &pass, |ctx, place, object| {
        if ctx.rejects.contains(file, place.line) {
            return Ok(());
        }
        each_edge(object, |edge| {
            if edge.id.is_some() != ids {
                others = true;
                return Ok(());
            }
            match edge.load(ctx, &mut batches, place)? {
                Ok(()) => Ok(()),
                Err(reason) => ctx.reject_line(&pass, &place, &reason),
            }
        })
    })?;
    batches.flush(ctx)?;
    Ok(others)
}

/// A vertex of any of the three forms.
struct VertexObject<'v> {
    id: UserId,
    label: &'v str,
    object: &'v JsonObject,
    adjacency: bool,
}

impl<'v> VertexObject<'v> {
    /// Reads an object as a vertex; `None` if it is an edge.
    fn of(object: &'v JsonObject) -> Result<Option<Self>> {
        let (id, adjacency) = match (object.get("vertex"), object.get("id")) {
            (Some(id), None) => (id, false),
            (None, _) if object.contains_key("edge") || object.contains_key("from") => return Ok(None),
            (None, Some(id)) => (id, true),
            _ => return Err(damaged("a vertex has no id")),
        };
        let label = label(object)?.unwrap_or("vertex");
        Ok(Some(VertexObject { id: user_id(id, adjacency)?, label, object, adjacency }))
    }

    /// Each key with its values.
    fn properties(&self) -> Result<Vec<(&'v String, Vec<ValueWithMeta>)>> {
        let mut all = Vec::new();
        for (key, json) in object(self.object.get("properties"), "properties")? {
            let values = match self.adjacency {
                true => array(json, "a property")?
                    .iter()
                    .map(|json| vertex_property(json, read_value))
                    .collect::<Result<_>>()?,
                false => vec![ValueWithMeta { value: read_plain_value(json)?, meta: Vec::new() }],
            };
            all.push((key, values));
        }
        for (key, json) in object(self.object.get("multi"), "multi")? {
            if all.iter().any(|(other, _)| *other == key) {
                return Err(damaged(&format!("'{key}' is among both properties and multi")));
            }
            let values = array(json, "a property")?.iter().map(|json| vertex_property(json, read_plain_value));
            all.push((key, values.collect::<Result<_>>()?));
        }
        Ok(all)
    }
}

/// An edge of any of the three forms.
struct EdgeObject<'e> {
    id: Option<UserId>,
    label: &'e str,
    source: UserId,
    target: UserId,
    properties: Vec<(&'e str, Value)>,
}

/// Calls `each` with the edges of a vertex, or with the edge that the object is.
fn each_edge(owner: &JsonObject, mut each: impl FnMut(EdgeObject<'_>) -> Result<()>) -> Result<()> {
    if let Some(vertex) = VertexObject::of(owner)? {
        for (label, edges) in object(owner.get("outE"), "outE")? {
            for edge in array(edges, "outE")? {
                let edge = edge.get("@value").unwrap_or(edge);
                let edge = edge.as_object().ok_or_else(|| damaged("an edge is not an object"))?;
                let target = edge.get("inV").ok_or_else(|| damaged("an edge has no inV"))?;
                let mut properties = Vec::new();
                for (key, value) in object(edge.get("properties"), "properties")? {
                    // Version 2 wraps each property in an object with its key.
                    let inner =
                        value.as_object().filter(|object| !object.contains_key("@type")).and_then(|o| o.get("value"));
                    let unwrapped = inner.or_else(|| value.pointer("/@value/value")).unwrap_or(value);
                    properties.push((key.as_str(), read_value(unwrapped)?));
                }
                each(EdgeObject {
                    id: edge.get("id").map(|id| user_id(id, true)).transpose()?,
                    label,
                    source: vertex.id.clone(),
                    target: user_id(target, true)?,
                    properties,
                })?;
            }
        }
        return Ok(());
    }
    let end = |which: &str| {
        let json = owner.get(which).ok_or_else(|| damaged(&format!("an edge has no member '{which}'")))?;
        user_id(json, false)
    };
    let properties = object(owner.get("properties"), "properties")?;
    each(EdgeObject {
        id: owner.get("edge").filter(|id| !id.is_null()).map(|id| user_id(id, false)).transpose()?,
        label: label(owner)?.unwrap_or("edge"),
        source: end("from")?,
        target: end("to")?,
        properties: properties.map(|(key, json)| Ok((key.as_str(), read_plain_value(json)?))).collect::<Result<_>>()?,
    })
}

impl EdgeObject<'_> {
    fn load(
        self,
        ctx: &mut LoadContext<'_>,
        batches: &mut EdgeBatches<'_>,
        place: RowOrigin<'_>,
    ) -> Result<Result<(), String>> {
        let name = self.id.as_ref().map_or_else(String::new, |id| format!("edge {id}: "));
        let missing = |which: &str, id: &UserId| format!("{name}the {which} vertex {id} does not exist");
        let Some(source) = ctx.vertex(&self.source)? else { return Ok(Err(missing("source", &self.source))) };
        let Some(target) = ctx.vertex(&self.target)? else { return Ok(Err(missing("target", &self.target))) };
        let EdgeObject { id, label, properties, .. } = self;
        DocumentEdge { id, label, source, target, properties }.add(ctx, batches, place)
    }
}

impl LoadContext<'_> {
    /// Rejects an object, or one of its edges.
    fn reject_line(&mut self, pass: &Pass<'_>, place: &RowOrigin<'_>, reason: &str) -> Result<()> {
        self.reject(pass, place.line, reason, place.text)?;
        self.rejects.keep(pass.file, pass.path, place.text)
    }
}

/// Calls `each` with the objects of a file, in their order.
fn each_object(
    ctx: &mut LoadContext<'_>,
    pass: &Pass<'_>,
    mut each: impl FnMut(&mut LoadContext<'_>, RowOrigin<'_>, &JsonObject) -> Result<()>,
) -> Result<()> {
    let mut reader = Bounded::buffered(Input::open(pass.path)?, ctx.element_bytes_max);
    if is_wrapped(reader.fill_buf()?) {
        each_wrapped(ctx, pass, reader, &mut each)?;
    } else {
        each_line(ctx, pass, reader, &mut each)?;
    }
    ctx.end_pass(pass);
    Ok(())
}

/// Returns true if the first member of the first object is the list of all vertices.
fn is_wrapped(front: &[u8]) -> bool {
    let mut front = front[..front.len().min(PEEK_BYTES)].trim_ascii_start();
    for token in [&b"{"[..], b"\"vertices\"", b":"] {
        match front.strip_prefix(token) {
            Some(rest) => front = rest.trim_ascii_start(),
            None => return false,
        }
    }
    true
}

type EachObject<'f> = dyn FnMut(&mut LoadContext<'_>, RowOrigin<'_>, &JsonObject) -> Result<()> + 'f;

/// Whole lines of a file.
struct LineChunk {
    text: Vec<u8>,
    /// The number of the first line.
    first: u64,
    /// Bytes of the file read so far, with these lines.
    bytes_taken: u64,
}

/// The lines that are not empty: number, range of the text, and the parsed object.
type ParsedLines = (LineChunk, Vec<(u64, Range<usize>, serde_json::Result<Json>)>);

fn each_line(
    ctx: &mut LoadContext<'_>,
    pass: &Pass<'_>,
    mut reader: BufReader<Bounded>,
    each: &mut EachObject<'_>,
) -> Result<()> {
    let mut next = 1;
    let (length, bytes_max) = (reader.get_ref().element(), ctx.element_bytes_max);
    in_order(
        ctx.threads,
        || {
            let lines = next_lines(&mut reader, next, &length, bytes_max)?;
            next += lines.as_ref().map_or(0, |(_, count)| *count);
            Ok(lines.map(|(lines, _)| lines))
        },
        |lines, deliver| {
            let objects = parse_lines(&lines);
            deliver((lines, objects));
            Ok(())
        },
        |(lines, objects): ParsedLines| {
            for (line, range, parsed) in objects {
                let place = |e: Error| e.context(format!("line {line}"));
                let parsed = parsed.map_err(|e| place(damaged(&format!("not JSON: {e}"))))?;
                let object = vertex_or_edge(&parsed).map_err(place)?;
                // Errors of the sink and of rejects name their place themselves.
                each(ctx, RowOrigin { line, text: lines.text[range].trim_ascii_end() }, object)
                    .map_err(|e| if e.kind() == ErrorKind::Syntax { place(e) } else { e })?;
                ctx.row(pass, lines.bytes_taken)?;
            }
            Ok(())
        },
    )
}

/// Reads lines of about [`LINES_BYTES`] bytes, and returns their number.
fn next_lines(
    reader: &mut BufReader<Bounded>,
    first: u64,
    length: &ElementLength,
    bytes_max: u64,
) -> Result<Option<(LineChunk, u64)>> {
    let (mut text, mut count) = (Vec::with_capacity(LINES_BYTES + LINES_BYTES / 4), 0);
    while text.len() < LINES_BYTES {
        length.end();
        let taken = reader.by_ref().take(bytes_max.saturating_add(1)).read_until(b'\n', &mut text)?;
        if taken == 0 {
            break;
        }
        if taken as u64 > bytes_max {
            let error = Error::new(ErrorKind::Syntax, too_long("line", bytes_max));
            return Err(error.context(format!("line {}", first + count)));
        }
        count += 1;
    }
    let bytes_taken = reader.get_ref().input().bytes_taken();
    Ok((count > 0).then_some((LineChunk { text, first, bytes_taken }, count)))
}

fn parse_lines(lines: &LineChunk) -> Vec<(u64, Range<usize>, serde_json::Result<Json>)> {
    let (mut parsed, mut begin) = (Vec::new(), 0);
    for (number, line) in (lines.first..).zip(lines.text.split_inclusive(|byte| *byte == b'\n')) {
        let range = begin..begin + line.len();
        begin = range.end;
        let line = if number == 1 { line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line) } else { line };
        if !line.trim_ascii().is_empty() {
            parsed.push((number, range, serde_json::from_slice(line)));
        }
    }
    parsed
}

fn vertex_or_edge(json: &Json) -> Result<&JsonObject> {
    // Version 2 may write the vertex itself as a typed value.
    let object = match json.get("@value") {
        Some(inner) => inner.as_object(),
        None => json.as_object(),
    };
    object.ok_or_else(|| damaged("not an object"))
}

/// Calls `each` with the vertices of a document that is one object, with one of them in memory at a time.
fn each_wrapped(
    ctx: &mut LoadContext<'_>,
    pass: &Pass<'_>,
    reader: BufReader<Bounded>,
    each: &mut EachObject<'_>,
) -> Result<()> {
    let mut failure = None;
    let mut number = 0;
    let (taken_bytes, length) = (reader.get_ref().input().counter(), reader.get_ref().element());
    let take = |json: Json| {
        number += 1;
        length.end();
        let place = |e: Error| if e.kind() == ErrorKind::Syntax { e.context(format!("vertex {number}")) } else { e };
        let text = if ctx.rejects.keeps_rows() { json.to_string() } else { String::new() };
        let taken = vertex_or_edge(&json)
            .and_then(|object| each(ctx, RowOrigin { line: number, text: text.as_bytes() }, object))
            .map_err(place)
            .and_then(|()| ctx.row(pass, taken_bytes.get()));
        taken.map_err(|e| failure = Some(e))
    };
    let mut deserializer = serde_json::Deserializer::from_reader(reader);
    let read = WrappedDocument { take }.deserialize(&mut deserializer).and_then(|()| deserializer.end());
    match (failure, read) {
        (Some(failure), _) => Err(failure),
        (None, Err(e)) if e.is_io() => Err(damaged(&e.to_string()).context(format!("after vertex {number}"))),
        (None, Err(e)) => Err(damaged(&format!("not JSON: {e}"))),
        (None, Ok(())) => Ok(()),
    }
}

/// The visitor of the object with all vertices. `take` gets each vertex and returns whether to go on.
struct WrappedDocument<F> {
    take: F,
}

impl<'de, F: FnMut(Json) -> Result<(), ()>> DeserializeSeed<'de> for WrappedDocument<F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, F: FnMut(Json) -> Result<(), ()>> Visitor<'de> for WrappedDocument<F> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object with the member 'vertices'")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        while let Some(member) = map.next_key::<String>()? {
            if member == "vertices" {
                map.next_value_seed(WrappedVertices { take: &mut self.take })?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

struct WrappedVertices<'f, F> {
    take: &'f mut F,
}

impl<'de, F: FnMut(Json) -> Result<(), ()>> DeserializeSeed<'de> for WrappedVertices<'_, F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, F: FnMut(Json) -> Result<(), ()>> Visitor<'de> for WrappedVertices<'_, F> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a list of vertices")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<(), A::Error> {
        while let Some(vertex) = sequence.next_element::<Json>()? {
            (self.take)(vertex).map_err(|()| A::Error::custom("stopped"))?;
        }
        Ok(())
    }
}

fn label(object: &JsonObject) -> Result<Option<&str>> {
    let Some(label) = object.get("label") else { return Ok(None) };
    label.as_str().map(Some).ok_or_else(|| damaged("a label is not a string"))
}

/// Reads an id. A plain number is an int if it fits in GraphSON, and a long in JSON lines.
fn user_id(json: &Json, graphson: bool) -> Result<UserId> {
    let value = if graphson { read_value(json)? } else { read_plain_value(json)? };
    UserId::from_value(&value)
        .ok_or_else(|| damaged(&format!("an id is an integer, a string or a UUID, not a {}", value.type_name())))
}

/// The entries of an object; none if it is absent.
fn object<'v>(json: Option<&'v Json>, what: &str) -> Result<impl Iterator<Item = (&'v String, &'v Json)>> {
    let object = match json {
        None => None,
        Some(json) => Some(json.as_object().ok_or_else(|| damaged(&format!("{what} is not an object")))?),
    };
    Ok(object.into_iter().flatten())
}

fn array<'v>(json: &'v Json, what: &str) -> Result<&'v Vec<Json>> {
    json.as_array().ok_or_else(|| damaged(&format!("{what} does not hold a list")))
}

fn vertex_property(json: &Json, read: fn(&Json) -> Result<Value>) -> Result<ValueWithMeta> {
    let outer = json.as_object().ok_or_else(|| damaged("a vertex property is not an object"))?;
    let object_form = match outer.get("@value") {
        Some(inner) => inner.as_object().ok_or_else(|| damaged("a vertex property is not an object"))?,
        None => outer,
    };
    let value = read(object_form.get("value").ok_or_else(|| damaged("a vertex property has no value"))?)?;
    let meta = object(object_form.get("properties"), "the properties of a property")?
        .map(|(key, value)| Ok((key.as_str().into(), read_value(value)?)))
        .collect::<Result<_>>()?;
    Ok(ValueWithMeta { value, meta })
}

fn set_property(table: &mut VertexTable, key: &str, mut values: Vec<ValueWithMeta>) {
    match values.as_slice() {
        [] => {}
        [only] if only.meta.is_empty() => {
            let only = values.pop().expect("it has one");
            table.columns.set_key(key, only.value);
        }
        _ => {
            let row = table.row();
            table.multi.push(MultiPropertyRow { row, key: key.into(), cardinality: Cardinality::List, values });
        }
    }
}
