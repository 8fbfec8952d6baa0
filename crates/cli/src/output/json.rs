//! Results as JSON.
//!
//! Numbers of every size are JSON numbers. Values without a JSON form (`NaN`, infinities, UUIDs, dates, durations,
//! bytes in hexadecimal) are strings. A map whose keys are all names is an object; if it has both `T.id` and a property
//! `id`, the first is `id` and the second `id (property)`. Any other map is a list of `{"key", "value"}`. So is a tree,
//! and a multiset is a list of `{"value", "count"}`.

use std::io::Write;

use mangrove::{Detached, DetachedVertexProperty, OperatorMetrics, Tree, Value};
use serde_json::{Map, Number, Value as Json, json};
use smol_str::SmolStr;

use super::text::{direction_name, entry_names, labeled, text, token_name};
use crate::Failure;

/// Prints one document: an array with one result a line.
pub fn print_document(results: &mut super::Results<'_>, out: &mut dyn Write) -> Result<u64, Failure> {
    let mut count = 0;
    write!(out, "[")?;
    for result in results {
        write!(out, "{}\n  {}", if count == 0 { "" } else { "," }, json(&result?))?;
        count += 1;
    }
    writeln!(out, "{}]", if count == 0 { "" } else { "\n" })?;
    Ok(count)
}

/// Prints one document a line.
pub fn print_lines(results: &mut super::Results<'_>, out: &mut dyn Write) -> Result<u64, Failure> {
    let mut count = 0;
    for result in results {
        writeln!(out, "{}", json(&result?))?;
        count += 1;
    }
    Ok(count)
}

/// A value as JSON.
pub(super) fn json(value: &Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Bool(b) => Json::Bool(*b),
        Value::I8(n) => Json::from(*n),
        Value::I16(n) => Json::from(*n),
        Value::I32(n) => Json::from(*n),
        Value::I64(n) => Json::from(*n),
        Value::F32(x) => number(text(value), x.is_finite()),
        Value::F64(x) => number(text(value), x.is_finite()),
        Value::BigInt(_) | Value::Decimal(_) => number(text(value), true),
        Value::List(items) | Value::Set(items) => array(items),
        Value::BulkSet(items) => {
            items.iter().map(|(item, times)| json!({ "value": json(item), "count": times })).collect()
        }
        Value::Map(entries) => map(entries),
        Value::F32Array(items) => items.iter().map(|x| json(&Value::F32(*x))).collect(),
        Value::Path(path) => {
            let names = |names: &[SmolStr]| names.iter().map(|name| Json::from(name.as_str())).collect::<Json>();
            let (labels, objects): (Vec<Json>, Vec<Json>) =
                labeled(path).map(|(labels, object)| (names(labels), json(object))).unzip();
            json!({ "labels": labels, "objects": objects })
        }
        Value::Tree(tree) => branches(tree),
        Value::Graph(graph) => json!({ "vertices": array(&graph.vertices), "edges": array(&graph.edges) }),
        Value::Token(token) => Json::from(token_name(*token)),
        Value::Direction(direction) => Json::from(direction_name(*direction)),
        Value::Detached(element) => detached(element),
        Value::TraversalMetrics(metrics) => {
            json!({ "ms": metrics.nanos as f64 / 1e6, "operators": operators(&metrics.operators) })
        }
        other => Json::from(text(other)),
    }
}

/// A JSON number with all its digits.
fn number(text: String, is_finite: bool) -> Json {
    if is_finite { Json::Number(Number::from_string_unchecked(text)) } else { Json::from(text) }
}

fn array(items: &[Value]) -> Json {
    items.iter().map(json).collect()
}

fn map(entries: &[(Value, Value)]) -> Json {
    match entry_names(entries) {
        Some(names) => names.into_iter().zip(entries.iter().map(|(_, value)| json(value))).collect(),
        None => entries.iter().map(|(key, value)| json!({ "key": json(key), "value": json(value) })).collect(),
    }
}

/// A tree: its keys, each with its branches.
fn branches(tree: &Tree) -> Json {
    tree.branches.iter().map(|(key, below)| json!({ "key": json(key), "value": branches(below) })).collect()
}

/// The answer to `profile()`: what each operator did, with the operators in its scope.
fn operators(all: &[OperatorMetrics]) -> Json {
    all.iter()
        .map(|operator| {
            let counts: Map<String, Json> =
                operator.counts.iter().map(|(name, count)| (name.to_string(), Json::from(*count))).collect();
            json!({
                "id": operator.id.as_str(),
                "name": operator.name.as_str(),
                "ms": operator.nanos as f64 / 1e6,
                "counts": counts,
                "annotations": object(&operator.annotations),
                "operators": operators(&operator.nested),
            })
        })
        .collect()
}

fn detached(element: &Detached) -> Json {
    match element {
        Detached::Vertex { id, label, properties } => {
            let mut by_key = Map::new();
            for property in properties {
                let values = by_key.entry(property.key.as_str()).or_insert_with(|| Json::Array(Vec::new()));
                if let Json::Array(values) = values {
                    values.push(property_value(property));
                }
            }
            json!({ "id": json(id), "label": label.as_str(), "properties": by_key })
        }
        Detached::Edge { id, label, source, target, properties } => json!({
            "id": json(id),
            "label": label.as_str(),
            "source": { "id": json(&source.0), "label": source.1.as_str() },
            "target": { "id": json(&target.0), "label": target.1.as_str() },
            "properties": object(properties),
        }),
        Detached::VertexProperty(property) => {
            let mut shown = json!({ "id": json(&property.id), "key": property.key.as_str() });
            shown["value"] = json(&property.value);
            if !property.meta.is_empty() {
                shown["properties"] = object(&property.meta);
            }
            shown
        }
        Detached::Property { key, value } => json!({ "key": key.as_str(), "value": json(value) }),
    }
}

/// A value of a vertex property, or an object if it has meta-properties.
fn property_value(property: &DetachedVertexProperty) -> Json {
    if property.meta.is_empty() {
        return json(&property.value);
    }
    json!({ "value": json(&property.value), "properties": object(&property.meta) })
}

fn object(properties: &[(SmolStr, Value)]) -> Json {
    Json::Object(properties.iter().map(|(key, value)| (key.to_string(), json(value))).collect())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use mangrove::Token;

    use super::*;

    fn check(value: &Value, expected: &str) {
        assert_eq!(json(value).to_string(), expected);
    }

    #[test]
    fn numbers_are_numbers() {
        check(&Value::F64(2.0), "2.0");
        check(&Value::I64(i64::MAX), "9223372036854775807");
        check(&Value::F64(f64::INFINITY), "\"Infinity\"");
        check(&Value::F64(1e300), "1e300");
    }

    #[test]
    fn maps_are_objects_where_their_keys_are_names() {
        let entry = |key: Value| (key, Value::I32(1));
        check(&Value::map(vec![entry(Value::from("a")), entry(Value::Token(Token::Id))]), r#"{"a":1,"id":1}"#);
        check(&Value::map(vec![entry(Value::I32(5))]), r#"[{"key":5,"value":1}]"#);
        let twice = vec![entry(Value::from("id")), entry(Value::Token(Token::Id))];
        check(&Value::map(twice), r#"{"id (property)":1,"id":1}"#);
    }

    #[test]
    fn a_vertex_has_lists_of_values() {
        let property = |value: i32, meta: Vec<(SmolStr, Value)>| DetachedVertexProperty {
            id: Value::I32(0),
            key: "n".into(),
            value: Value::I32(value),
            meta,
        };
        let properties = vec![property(1, Vec::new()), property(2, vec![("since".into(), Value::I32(2009))])];
        let vertex = Detached::Vertex { id: Value::from("a"), label: "x".into(), properties };
        check(
            &Value::Detached(Arc::new(vertex)),
            r#"{"id":"a","label":"x","properties":{"n":[1,{"value":2,"properties":{"since":2009}}]}}"#,
        );
    }
}
