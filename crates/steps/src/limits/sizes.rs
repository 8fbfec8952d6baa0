//! The memory that values hold, so that a query can be charged for them.

use std::sync::Arc;

use mangrove_graph::{
    Detached, DetachedVertexProperty, FastMap, OperatorMetrics, PathValue, TraversalMetrics, Tree, Value,
};

/// Measures the values of one batch, in bytes.
///
/// A shared collection is in memory once, so each of its holders counts an equal part of it. The number of holders of a
/// string is not known: a long string counts once in a batch, a short one for each of its holders. The values must stay
/// alive while a `Sizes` is in use, because it knows them by address.
#[derive(Default)]
pub struct Sizes {
    /// The bytes of the shared values that were measured, by address; 0 for a long string.
    known: FastMap<usize, usize>,
}

/// The bytes of a value itself, without what it points to.
const VALUE_BYTES: usize = size_of::<Value>();

/// A string of at least this many bytes counts once in a batch.
const LONG_TEXT_BYTES: usize = 256;

impl Sizes {
    /// Returns the bytes of a value, with its part of what it points to.
    pub fn whole(&mut self, value: &Value) -> usize {
        VALUE_BYTES + self.pointed_to(value)
    }

    /// Returns the bytes of these values.
    pub fn all<'a>(&mut self, values: impl IntoIterator<Item = &'a Value>) -> usize {
        values.into_iter().map(|value| self.whole(value)).sum()
    }

    /// Returns a value's part of the bytes that it points to.
    pub fn pointed_to(&mut self, value: &Value) -> usize {
        match value {
            Value::String(text) if text.is_heap_allocated() => self.text(text),
            Value::List(members) | Value::Set(members) => self.part(members, |sizes, members| sizes.all(&**members)),
            Value::Map(entries) => self.part(entries, |sizes, entries| {
                entries.iter().map(|(key, value)| sizes.whole(key) + sizes.whole(value)).sum()
            }),
            Value::Entry(entry) => self.part(entry, |sizes, entry| sizes.whole(&entry.0) + sizes.whole(&entry.1)),
            Value::BulkSet(members) => self.part(members, |sizes, members| {
                members.iter().map(|(value, _)| size_of::<u64>() + sizes.whole(value)).sum()
            }),
            Value::Path(path) => self.part(path, Sizes::path),
            Value::Tree(tree) => self.part(tree, Sizes::tree),
            Value::Graph(graph) => {
                self.part(graph, |sizes, graph| sizes.all(graph.vertices.iter().chain(&graph.edges)))
            }
            Value::Bytes(content) => content.len() / Arc::strong_count(content),
            Value::F32Array(numbers) => numbers.len() * size_of::<f32>() / Arc::strong_count(numbers),
            Value::BigInt(number) => number.bits() as usize / 8 / Arc::strong_count(number),
            Value::Decimal(number) => number.digits() as usize / 2 / Arc::strong_count(number),
            Value::VertexProperty(property) => self.part(property, |sizes, property| {
                VALUE_BYTES + sizes.whole(&property.value) + sizes.all(property.meta.iter().map(|(_, value)| value))
            }),
            Value::Property(property) => {
                self.part(property, |sizes, property| VALUE_BYTES + sizes.whole(&property.value))
            }
            Value::Detached(element) => self.part(element, Sizes::element),
            Value::TraversalMetrics(metrics) => self.part(metrics, Sizes::metrics),
            _ => 0,
        }
    }

    /// Returns the bytes of a text; 0 for a long text that was measured before.
    fn text(&mut self, text: &str) -> usize {
        match text.len() {
            length if length < LONG_TEXT_BYTES => length,
            length if self.known.insert(text.as_ptr() as usize, 0).is_none() => length,
            _ => 0,
        }
    }

    /// Returns one holder's part of a shared value.
    fn part<T>(&mut self, shared: &Arc<T>, measure: impl FnOnce(&mut Self, &T) -> usize) -> usize {
        let holders = Arc::strong_count(shared);
        if holders == 1 {
            return measure(self, shared);
        }
        let address = Arc::as_ptr(shared) as usize;
        let size = match self.known.get(&address) {
            Some(size) => *size,
            None => {
                let size = measure(self, shared);
                self.known.insert(address, size);
                size
            }
        };
        size / holders
    }

    fn path(&mut self, path: &PathValue) -> usize {
        let labels = path.labels.iter().map(|of_one| size_of_val(of_one) + size_of_val(of_one.as_slice()));
        labels.sum::<usize>() + self.all(&path.objects)
    }

    fn tree(&mut self, tree: &Tree) -> usize {
        tree.branches.iter().map(|(key, below)| self.whole(key) + size_of::<Tree>() + self.tree(below)).sum()
    }

    fn metrics(&mut self, metrics: &TraversalMetrics) -> usize {
        let operators = metrics.flat().into_iter().map(|(_, operator)| {
            let annotations = operator.annotations.iter().map(|(_, value)| VALUE_BYTES + self.whole(value));
            let figures = size_of_val(operator.counts.as_slice()) + annotations.sum::<usize>();
            size_of::<OperatorMetrics>() + operator.name.len() + figures
        });
        operators.sum()
    }

    fn element(&mut self, element: &Detached) -> usize {
        size_of::<Detached>()
            + match element {
                Detached::Vertex { id, properties, .. } => {
                    self.pointed_to(id)
                        + properties.iter().map(|property| self.vertex_property(property)).sum::<usize>()
                }
                Detached::Edge { id, properties, .. } => {
                    self.pointed_to(id)
                        + properties.iter().map(|(_, value)| VALUE_BYTES + self.whole(value)).sum::<usize>()
                }
                Detached::VertexProperty(property) => self.vertex_property(property),
                Detached::Property { value, .. } => self.pointed_to(value),
            }
    }

    fn vertex_property(&mut self, property: &DetachedVertexProperty) -> usize {
        let meta: usize = property.meta.iter().map(|(_, value)| VALUE_BYTES + self.whole(value)).sum();
        size_of::<DetachedVertexProperty>() + self.pointed_to(&property.value) + meta
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn long() -> Value {
        Value::from("a".repeat(10_000))
    }

    #[test]
    fn nested_values_count() {
        let inner = || Value::list(vec![long(), Value::map(vec![(1.into(), long())])]);
        let path = Value::Path(Arc::new(PathValue { labels: vec![vec![]], objects: vec![long()] }));
        let size = Sizes::default().whole(&Value::list(vec![inner(), inner(), path]));
        assert!((50_000..51_000).contains(&size), "{size}");
    }

    #[test]
    fn holders_share_the_bytes_of_a_collection() {
        let list = Value::list(vec![1.into(); 1_000]);
        let holders = vec![list.clone(); 99];
        let size = Sizes::default().all(holders.iter().chain([&list]));
        let alone = 100 * size_of::<Value>() + 1_000 * size_of::<Value>();
        assert!(size.abs_diff(alone) < 200, "{size} of {alone}");
        let text = long();
        let size = Sizes::default().all(&vec![text; 100]);
        assert_eq!(size, 100 * size_of::<Value>() + 10_000);
    }
}
