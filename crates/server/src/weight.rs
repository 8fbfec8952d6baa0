//! About how many bytes a result takes on the wire.
//!
//! A batch is a number of results, and a result may be a text of megabytes or a list of a million of them: to bound what
//! waits for a client, results are weighed. Shared parts weigh each time, as they are written each time.

use mangrove_graph::{Detached, DetachedVertexProperty, Value};

/// What a number, a type and their like take, in the formats taken together.
const SCALAR: u64 = 16;

/// How often a value of a multiset is written out at the most: those that are not are counted.
const WRITTEN_OUT_MAX: u64 = 1 << 20;

/// The weight of a value.
pub fn weight(value: &Value) -> u64 {
    SCALAR
        + match value {
            Value::String(text) => text.len() as u64,
            Value::Bytes(bytes) => bytes.len() as u64,
            Value::BigInt(n) => n.bits() / 3,
            Value::Decimal(n) => n.as_bigint_and_exponent().0.bits() / 3,
            Value::F32Array(items) => items.len() as u64 * SCALAR,
            Value::List(items) | Value::Set(items) => items.iter().map(weight).sum(),
            Value::Map(entries) => entries.iter().map(|(key, value)| weight(key) + weight(value)).sum(),
            Value::Entry(entry) => weight(&entry.0) + weight(&entry.1),
            Value::BulkSet(entries) => {
                let written = |(value, bulk): &(Value, u64)| weight(value).saturating_mul((*bulk).min(WRITTEN_OUT_MAX));
                entries.iter().map(written).fold(0, u64::saturating_add)
            }
            Value::Path(path) => path.objects.iter().map(weight).sum(),
            Value::Detached(element) => element_weight(element),
            _ => 0,
        }
}

fn element_weight(element: &Detached) -> u64 {
    let property = |key: &str, value: &Value| SCALAR + key.len() as u64 + weight(value);
    match element {
        Detached::Vertex { id, label, properties } => {
            weight(id) + label.len() as u64 + properties.iter().map(property_weight).sum::<u64>()
        }
        Detached::Edge { id, label, source, target, properties } => {
            let end = |(id, label): &(Value, smol_str::SmolStr)| weight(id) + label.len() as u64;
            let properties = properties.iter().map(|(key, value)| property(key, value));
            weight(id) + label.len() as u64 + end(source) + end(target) + properties.sum::<u64>()
        }
        Detached::VertexProperty(vertex_property) => property_weight(vertex_property),
        Detached::Property { key, value } => property(key, value),
    }
}

fn property_weight(property: &DetachedVertexProperty) -> u64 {
    let meta = property.meta.iter().map(|(key, value)| SCALAR + key.len() as u64 + weight(value));
    weight(&property.id) + property.key.len() as u64 + weight(&property.value) + meta.sum::<u64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_often_weighs_often() {
        let text = Value::from("x".repeat(1_000));
        assert_eq!(weight(&text), 1_016);
        assert!(weight(&Value::list(vec![text.clone(), text.clone()])) > 2_000);
        assert!(weight(&Value::BulkSet(vec![(text, 1_000)].into())) > 1_000_000);
        assert_eq!(weight(&Value::BulkSet(vec![(Value::Null, u64::MAX)].into())), SCALAR + SCALAR * WRITTEN_OUT_MAX);
    }
}
