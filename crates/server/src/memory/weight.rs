//! The weight of a value: an estimate of its bytes on the wire, before it is written.
//!
//! A batch is a number of results, and one result may be a text of megabytes or a list of a million of them. So the
//! server weighs results to bound what waits for a client. Shared parts weigh each time they occur, as they are written
//! each time.

use mangrove_graph::{Detached, DetachedVertexProperty, OperatorMetrics, Tree, Value};

/// The weight of a number or a type code, in bytes, as a compromise between the encodings.
const SCALAR: u64 = 16;

/// The most repetitions of a value of a multiset that an encoding writes out.
const WRITTEN_OUT_MAX: u64 = 1 << 20;

/// The saturating sum of weights: a multiset of multisets may weigh more than `u64::MAX`.
fn sum(weights: impl Iterator<Item = u64>) -> u64 {
    weights.fold(0, u64::saturating_add)
}

/// The weight of a value, in bytes.
pub fn weight(value: &Value) -> u64 {
    let content = match value {
        Value::String(text) => text.len() as u64,
        Value::Bytes(bytes) => bytes.len() as u64,
        Value::BigInt(n) => n.bits() / 3,
        Value::Decimal(n) => n.as_bigint_and_exponent().0.bits() / 3,
        Value::F32Array(items) => items.len() as u64 * SCALAR,
        Value::List(items) | Value::Set(items) => sum(items.iter().map(weight)),
        Value::Map(entries) => sum(entries.iter().flat_map(|(key, value)| [weight(key), weight(value)])),
        Value::Entry(entry) => weight(&entry.0).saturating_add(weight(&entry.1)),
        Value::BulkSet(entries) => {
            let written = |(value, bulk): &(Value, u64)| weight(value).saturating_mul((*bulk).min(WRITTEN_OUT_MAX));
            sum(entries.iter().map(written))
        }
        Value::Path(path) => {
            let labels = path.labels.iter().flatten().map(|label| SCALAR + label.len() as u64);
            sum(path.objects.iter().map(weight).chain(labels))
        }
        Value::Tree(tree) => tree_weight(tree),
        Value::Graph(graph) => sum(graph.vertices.iter().chain(&graph.edges).map(weight)),
        Value::Detached(element) => element_weight(element),
        Value::TraversalMetrics(metrics) => {
            sum(metrics.flat().into_iter().map(|(_, operator)| operator_weight(operator)))
        }
        _ => 0,
    };
    content.saturating_add(SCALAR)
}

fn tree_weight(tree: &Tree) -> u64 {
    sum(tree.branches.iter().map(|(key, below)| weight(key).saturating_add(SCALAR).saturating_add(tree_weight(below))))
}

/// The weight of the metrics of an operator, without those that are nested in it.
fn operator_weight(operator: &OperatorMetrics) -> u64 {
    let texts = [operator.id.len() as u64, operator.name.len() as u64, SCALAR];
    let counts = operator.counts.iter().map(|(name, _)| SCALAR + name.len() as u64);
    let annotations = operator.annotations.iter().map(|(name, value)| property_weight(name, value));
    sum(texts.into_iter().chain(counts).chain(annotations))
}

fn element_weight(element: &Detached) -> u64 {
    match element {
        Detached::Vertex { id, label, properties } => {
            sum([weight(id), label.len() as u64].into_iter().chain(properties.iter().map(vertex_property_weight)))
        }
        Detached::Edge { id, label, source, target, properties } => {
            let ends = [weight(&source.0), source.1.len() as u64, weight(&target.0), target.1.len() as u64];
            let properties = properties.iter().map(|(key, value)| property_weight(key, value));
            sum([weight(id), label.len() as u64].into_iter().chain(ends).chain(properties))
        }
        Detached::VertexProperty(property) => vertex_property_weight(property),
        Detached::Property { key, value } => property_weight(key, value),
    }
}

fn vertex_property_weight(property: &DetachedVertexProperty) -> u64 {
    let meta = property.meta.iter().map(|(key, value)| property_weight(key, value));
    sum([weight(&property.id), property_weight(&property.key, &property.value)].into_iter().chain(meta))
}

fn property_weight(key: &str, value: &Value) -> u64 {
    sum([SCALAR, key.len() as u64, weight(value)].into_iter())
}

#[cfg(test)]
mod tests {
    use mangrove_graph::PathValue;

    use super::*;

    #[test]
    fn what_is_written_often_weighs_often() {
        let text = Value::from("x".repeat(1_000));
        assert_eq!(weight(&text), 1_016);
        assert!(weight(&Value::list(vec![text.clone(), text.clone()])) > 2_000);
        assert!(weight(&Value::BulkSet(vec![(text.clone(), 1_000)].into())) > 1_000_000);
        let label = "x".repeat(1_000);
        let path = PathValue { objects: vec![1.into(); 2], labels: vec![vec![label.into()]; 2] };
        assert!(weight(&Value::Path(path.into())) > 2_000);
        let tree = Tree { branches: vec![(text.clone(), Tree { branches: vec![(text, Tree::default())] })] };
        assert!(weight(&Value::Tree(tree.into())) > 2_000);
        let many = |value| Value::BulkSet(vec![(value, u64::MAX)].into());
        assert_eq!(weight(&many(Value::Null)), SCALAR + SCALAR * WRITTEN_OUT_MAX);
        assert_eq!(weight(&many(many(many(many(Value::Null))))), u64::MAX);
    }
}
