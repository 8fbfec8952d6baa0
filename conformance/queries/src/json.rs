//! Converts values to JSON and back: the form in which parameters and answers are published.

use mangrove::{Detached, Parameters, Value};
use serde_json::{Number, Value as Json};

use crate::set::JsonParameters;

/// Converts a result. Sets become lists, elements become their ids, and keys of maps become texts. A float that is not
/// finite becomes null.
///
/// # Panics
///
/// On a value that no query of the sets returns.
pub fn to_json(value: &Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Bool(b) => (*b).into(),
        Value::I32(n) => (*n).into(),
        Value::I64(n) => (*n).into(),
        Value::F64(x) => Number::from_f64(*x).map_or(Json::Null, Json::Number),
        Value::String(s) => s.as_str().into(),
        Value::List(values) | Value::Set(values) => values.iter().map(to_json).collect(),
        Value::Map(entries) => entries.iter().map(|(key, value)| (key_text(key), to_json(value))).collect(),
        Value::Path(path) => path.objects.iter().map(to_json).collect(),
        Value::Detached(detached) => element(detached),
        other => panic!("no query of these sets returns a {}", other.type_name()),
    }
}

/// Converts the key of a map to text.
fn key_text(key: &Value) -> String {
    match to_json(key) {
        Json::String(text) => text,
        other => other.to_string(),
    }
}

/// An element as its id, a property as key and value.
fn element(detached: &Detached) -> Json {
    match detached {
        Detached::Vertex { id, .. } | Detached::Edge { id, .. } => to_json(id),
        Detached::VertexProperty(property) => property_json(&property.key, &property.value),
        Detached::Property { key, value } => property_json(key, value),
    }
}

fn property_json(key: &str, value: &Value) -> Json {
    Json::Array(vec![key.into(), to_json(value)])
}

/// Converts the parameters of a run.
///
/// # Panics
///
/// As [`from_json`].
pub fn bound(parameters: &JsonParameters) -> Parameters {
    parameters.iter().map(|(name, value)| (name.as_str().into(), from_json(value))).collect()
}

/// Converts a parameter.
///
/// # Panics
///
/// On numbers that are neither 64-bit integers nor floats.
pub fn from_json(json: &Json) -> Value {
    match json {
        Json::Null => Value::Null,
        Json::Bool(b) => (*b).into(),
        Json::Number(number) => match number.as_i64() {
            Some(integer) => integer.into(),
            None => number.as_f64().expect("a number is an integer or a float").into(),
        },
        Json::String(text) => text.as_str().into(),
        Json::Array(values) => values.iter().map(from_json).collect::<Vec<_>>().into(),
        Json::Object(entries) => {
            let entries = entries.iter().map(|(key, value)| (key.as_str().into(), from_json(value)));
            Value::Map(std::sync::Arc::new(entries.collect()))
        }
    }
}
