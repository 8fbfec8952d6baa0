//! GraphSON in adjacency form: one vertex a line, with its out-edges (as TinkerPop's `GraphSONWriter` writes
//! whole graphs), in version 3, 2 or untyped.
//!
//! The file is read twice: all vertices, then all edges, so that an edge may point forward. Only `outE` is
//! read, since the other end of every edge says the same again under `inE`. One line is in memory at a time.
//!
//! A line that is not JSON, or not a vertex, stops the load: the file is damaged or something else. A vertex
//! or edge that is whole but cannot be taken (its id exists, its target does not) is rejected.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::Arc;

use bigdecimal::BigDecimal;
use mangrove_graph::{Error, ErrorKind, Result, UserId, Value};
use num_bigint::BigInt;
use serde_json::{Map, Value as Json};
use uuid::Uuid;

use crate::batch::{EdgeBatches, VertexBatches, VertexTable};
use crate::context::{Context, Pass};
use crate::sink::{Cardinality, MultiProperty, MultiValue};
use crate::temporal;

type Object = Map<String, Json>;

/// Loads the vertices of a file.
pub(crate) fn load_vertices(ctx: &mut Context<'_>, file: usize, path: &Path) -> Result<()> {
    let mut batches = VertexBatches::default();
    let pass = Pass { file, path };
    each_line(ctx, &pass, |ctx, line, text, vertex| {
        let (id, label) = identity(vertex, "vertex")?;
        let at = batches.open(label);
        let table = batches.at(at);
        // Read before the id is claimed: damage stops the load, but in any order.
        let properties = properties(vertex)?;
        if let Err(reason) = ctx.claim_user_id(table, id) {
            ctx.rejects.remember(file, line);
            return ctx.reject(&pass, line, &reason, text);
        }
        properties.into_iter().for_each(|(key, values)| set_property(table, key, values));
        batches.end_row(at, ctx.sink, &mut ctx.ids)?;
        ctx.files[file].vertices += 1;
        Ok(())
    })?;
    batches.flush(ctx.sink, &mut ctx.ids)
}

/// Loads the edges of a file whose vertices are loaded.
pub(crate) fn load_edges(ctx: &mut Context<'_>, file: usize, path: &Path) -> Result<()> {
    let mut batches = EdgeBatches::default();
    let pass = Pass { file, path };
    each_line(ctx, &pass, |ctx, line, text, vertex| {
        if ctx.rejects.contains(file, line) {
            return Ok(());
        }
        let (id, _) = identity(vertex, "vertex")?;
        for (label, edges) in object(vertex.get("outE"), "outE")? {
            for edge in array(edges, "outE")? {
                let edge = edge.as_object().ok_or_else(|| damaged("an edge is not an object"))?;
                if let Err(reason) = load_edge(ctx, &mut batches, file, &id, label, edge)? {
                    ctx.reject(&pass, line, &reason, text)?;
                }
            }
        }
        Ok(())
    })?;
    batches.flush(ctx.sink)
}

fn load_edge(
    ctx: &mut Context<'_>,
    batches: &mut EdgeBatches,
    file: usize,
    source: &UserId,
    label: &str,
    edge: &Object,
) -> Result<Result<(), String>> {
    let target = id(edge.get("inV").ok_or_else(|| damaged("an edge has no inV"))?)?;
    let id = id(edge.get("id").ok_or_else(|| damaged("an edge has no id"))?)?;
    let mut properties = Vec::new();
    for (key, value) in object(edge.get("properties"), "properties")? {
        // Version 2 wraps each property in an object with its key.
        let inner = value.as_object().filter(|object| !object.contains_key("@type")).and_then(|o| o.get("value"));
        let unwrapped = inner.or_else(|| value.pointer("/@value/value")).unwrap_or(value);
        properties.push((key, read_value(unwrapped)?));
    }
    let (Some(from), Some(to)) = (ctx.vertex(source), ctx.vertex(&target)) else {
        return Ok(Err(format!("edge {id}: the target vertex {target} does not exist")));
    };
    if let Err(reason) = ctx.claim_edge_id(&id) {
        return Ok(Err(reason));
    }
    let at = batches.open(label);
    let table = batches.at(at);
    table.edge(from, to, Some(id));
    properties.into_iter().for_each(|(key, value)| table.columns.set_key(key, value));
    batches.end_row(at, ctx.sink)?;
    ctx.files[file].edges += 1;
    Ok(Ok(()))
}

/// Goes over the lines of a file, each the JSON object of a vertex.
fn each_line(
    ctx: &mut Context<'_>,
    pass: &Pass<'_>,
    mut vertex: impl FnMut(&mut Context<'_>, u64, &[u8], &Object) -> Result<()>,
) -> Result<()> {
    let mut reader = BufReader::new(File::open(pass.path)?);
    let (mut text, mut line, mut bytes) = (Vec::new(), 0_u64, 0_u64);
    loop {
        text.clear();
        let taken = reader.read_until(b'\n', &mut text)?;
        if taken == 0 {
            break;
        }
        line += 1;
        bytes += taken as u64;
        if text.trim_ascii().is_empty() {
            continue;
        }
        let place = |e: Error| e.context(format!("line {line}"));
        let parsed: Json = serde_json::from_slice(&text).map_err(|e| place(damaged(&format!("not JSON: {e}"))))?;
        // Version 2 may write the vertex itself as a typed value.
        let object = match parsed.get("@value") {
            Some(inner) => inner.as_object(),
            None => parsed.as_object(),
        };
        let object = object.ok_or_else(|| place(damaged("not an object")))?;
        if object.contains_key("vertices") {
            let message = "the whole graph is one object; write it one vertex a line (wrapAdjacencyList(false))";
            return Err(place(damaged(message)));
        }
        // Errors of sink and rejects have their own place.
        vertex(ctx, line, text.trim_ascii_end(), object)
            .map_err(|e| if e.kind() == ErrorKind::Syntax { place(e) } else { e })?;
        ctx.row(pass, bytes);
    }
    ctx.end_pass(pass, bytes);
    Ok(())
}

fn damaged(what: &str) -> Error {
    Error::new(ErrorKind::Syntax, format!("damaged GraphSON: {what}"))
}

fn identity<'v>(vertex: &'v Object, what: &str) -> Result<(UserId, &'v str)> {
    let id = id(vertex.get("id").ok_or_else(|| damaged(&format!("a {what} has no id")))?)?;
    let label = match vertex.get("label") {
        Some(label) => label.as_str().ok_or_else(|| damaged("a label is not a string"))?,
        None => "vertex",
    };
    Ok((id, label))
}

fn id(json: &Json) -> Result<UserId> {
    let value = read_value(json)?;
    UserId::from_value(&value)
        .ok_or_else(|| damaged(&format!("an id is an integer, a string or a UUID, not a {}", value.type_name())))
}

/// An object's entries; none where it is absent.
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

/// A vertex's properties: each key with its values.
fn properties(vertex: &Object) -> Result<Vec<(&String, Vec<MultiValue>)>> {
    object(vertex.get("properties"), "properties")?
        .map(|(key, values)| {
            let values = array(values, "a property")?.iter().map(vertex_property).collect::<Result<_>>()?;
            Ok((key, values))
        })
        .collect()
}

fn vertex_property(json: &Json) -> Result<MultiValue> {
    let outer = json.as_object().ok_or_else(|| damaged("a vertex property is not an object"))?;
    let object_form = match outer.get("@value") {
        Some(inner) => inner.as_object().ok_or_else(|| damaged("a vertex property is not an object"))?,
        None => outer,
    };
    let value = read_value(object_form.get("value").ok_or_else(|| damaged("a vertex property has no value"))?)?;
    let meta = object(object_form.get("properties"), "the properties of a property")?
        .map(|(key, value)| Ok((key.as_str().into(), read_value(value)?)))
        .collect::<Result<_>>()?;
    Ok(MultiValue { value, meta })
}

fn set_property(table: &mut VertexTable, key: &str, mut values: Vec<MultiValue>) {
    match values.as_slice() {
        [] => {}
        [only] if only.meta.is_empty() => {
            let only = values.pop().expect("it has one");
            table.columns.set_key(key, only.value);
        }
        _ => {
            let row = table.row();
            table.multi.push(MultiProperty { row, key: key.into(), cardinality: Cardinality::List, values });
        }
    }
}

/// A value, typed (`{"@type": …, "@value": …}`) or plain: integers are ints where they fit and longs
/// otherwise, other numbers are doubles.
fn read_value(json: &Json) -> Result<Value> {
    Ok(match json {
        Json::Null => Value::Null,
        Json::Bool(truth) => Value::Bool(*truth),
        Json::String(text) => Value::string(text.as_str()),
        Json::Number(number) => plain_number(number)?,
        Json::Array(items) => Value::list(items.iter().map(read_value).collect::<Result<_>>()?),
        Json::Object(object) => match (object.get("@type"), object.get("@value")) {
            (Some(Json::String(kind)), value) => typed(kind, value.unwrap_or(&Json::Null))?,
            _ => {
                let entries = object.iter().map(|(key, value)| Ok((Value::string(key.as_str()), read_value(value)?)));
                Value::map(entries.collect::<Result<_>>()?)
            }
        },
    })
}

fn plain_number(number: &serde_json::Number) -> Result<Value> {
    if let Some(whole) = number.as_i64() {
        return Ok(i32::try_from(whole).map_or(Value::I64(whole), Value::I32));
    }
    let real = number.as_f64().filter(|real| real.is_finite());
    real.map(Value::F64).ok_or_else(|| damaged(&format!("{number} is not a double")))
}

fn typed(kind: &str, json: &Json) -> Result<Value> {
    let text = match json {
        Json::String(text) => text.clone(),
        Json::Number(number) => number.to_string(),
        _ => String::new(),
    };
    let value = match kind {
        "g:Int32" => text.parse().ok().map(Value::I32),
        "g:Int64" => text.parse().ok().map(Value::I64),
        // Java's names for what is not a number (`NaN`, `Infinity`) are Rust's too.
        "g:Float" => text.parse().ok().map(Value::F32),
        "g:Double" => text.parse().ok().map(Value::F64),
        "gx:Byte" => text.parse().ok().map(Value::I8),
        "gx:Int16" => text.parse().ok().map(Value::I16),
        "gx:BigInteger" => text.parse::<BigInt>().ok().map(|number| Value::BigInt(Arc::new(number))),
        "gx:BigDecimal" => text.parse::<BigDecimal>().ok().map(|number| Value::Decimal(Arc::new(number))),
        "gx:Char" => text.parse().ok().map(Value::Char),
        "g:UUID" => Uuid::try_parse(&text).ok().map(Value::Uuid),
        "g:Date" | "g:Timestamp" => {
            text.parse().ok().map(|millis| Value::DateTime(mangrove_graph::DateTime::from_epoch_millis(millis)))
        }
        "gx:OffsetDateTime" | "gx:Instant" | "gx:LocalDate" | "gx:LocalDateTime" | "gx:ZonedDateTime" => {
            temporal::iso(&text).map(Value::DateTime)
        }
        "gx:Duration" => temporal::duration(&text).map(Value::Duration),
        "g:List" | "g:Set" | "g:Map" => return collection(kind, json),
        _ => return Err(damaged(&format!("the type {kind} cannot be stored in a property"))),
    };
    value.ok_or_else(|| damaged(&format!("{json} is not of the type {kind}")))
}

fn collection(kind: &str, json: &Json) -> Result<Value> {
    let items = json.as_array().ok_or_else(|| damaged(&format!("a {kind} is not a list")))?;
    let values = items.iter().map(read_value).collect::<Result<Vec<_>>>()?;
    if kind == "g:List" {
        return Ok(Value::list(values));
    }
    if kind == "g:Set" {
        let mut distinct: Vec<Value> = Vec::with_capacity(values.len());
        for value in values {
            if !distinct.iter().any(|other| mangrove_graph::compare::equivalent(other, &value)) {
                distinct.push(value);
            }
        }
        return Ok(Value::Set(Arc::new(distinct)));
    }
    if values.len() % 2 != 0 {
        return Err(damaged("a g:Map has a key without a value"));
    }
    let mut values = values.into_iter();
    let entries = std::iter::from_fn(|| Some((values.next()?, values.next()?))).collect();
    Ok(Value::map(entries))
}
