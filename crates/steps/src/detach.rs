//! Elements taken out of their snapshot, for a client to keep.
//!
//! Results leave the engine with ids, labels and (if asked for) properties in place of internal ids. All
//! elements of a batch of results, however deep they lie in collections, are read together: one pass
//! gathers them, the graph is read once a kind, and a second pass puts the finished elements in.

use std::sync::Arc;

use hashbrown::HashMap;
use mangrove_graph::compare::equivalent;
use mangrove_graph::{
    Detached, DetachedVertexProperty, EdgeId, GraphValue, GraphView, KeyId, PathValue, PropertyRow, PropertyValue,
    Result, Value, VertexId, VertexPropertyValue, property_id,
};
use mangrove_plan::logical::Name;

use crate::row::names::NameCache;

/// How much of an element is taken along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Id and label.
    Reference,
    /// Its properties, too.
    Properties,
    /// Its properties, too. A vertex property brings the meta-properties that it has now: the transaction may have written
    /// some since the property was read.
    Current,
}

/// Puts [`Value::Detached`] in place of every element and property in these values.
pub fn detach(values: Vec<Value>, view: &dyn GraphView, detail: Detail) -> Result<Vec<Value>> {
    let mut gathered = Gathered::default();
    values.iter().for_each(|value| gathered.visit(value));
    if gathered.is_empty() {
        return Ok(values);
    }
    let mut elements = Elements::read(gathered, view, detail)?;
    Ok(values.into_iter().map(|value| elements.replaced(&value).unwrap_or(value)).collect())
}

type FastMap<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// The elements of some values, each once, numbered in the order in which they are met.
#[derive(Default)]
struct Gathered {
    vertices: Numbered<VertexId>,
    edges: Numbered<EdgeId>,
    /// The vertices of vertex properties, whose ids are spelled from theirs.
    owners: Vec<VertexId>,
    /// Properties are no elements to read, but need to be replaced too.
    properties: bool,
    /// Whether there are map entries, which leave as maps.
    entries: bool,
}

struct Numbered<T> {
    places: FastMap<T, usize>,
    items: Vec<T>,
}

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Numbered { places: FastMap::default(), items: Vec::new() }
    }
}

impl<T: Copy + Eq + std::hash::Hash> Numbered<T> {
    fn add(&mut self, item: T) {
        let next = self.items.len();
        if *self.places.entry(item).or_insert(next) == next {
            self.items.push(item);
        }
    }
}

impl Gathered {
    fn visit(&mut self, value: &Value) {
        match value {
            Value::Vertex(id) => self.vertices.add(*id),
            Value::Edge(id) => self.edges.add(*id),
            Value::VertexProperty(property) => self.owners.push(property.vertex),
            Value::Property(_) => self.properties = true,
            Value::List(values) | Value::Set(values) => values.iter().for_each(|v| self.visit(v)),
            Value::Map(entries) => entries.iter().for_each(|(key, value)| {
                self.visit(key);
                self.visit(value);
            }),
            Value::Entry(entry) => {
                self.entries = true;
                self.visit(&entry.0);
                self.visit(&entry.1);
            }
            Value::BulkSet(members) => members.iter().for_each(|(value, _)| self.visit(value)),
            Value::Path(path) => path.objects.iter().for_each(|v| self.visit(v)),
            Value::Tree(tree) => tree.visit(&mut |key| self.visit(key)),
            Value::Graph(graph) => graph.vertices.iter().chain(&graph.edges).for_each(|v| self.visit(v)),
            _ => {}
        }
    }

    fn is_empty(&self) -> bool {
        self.vertices.items.is_empty()
            && self.edges.items.is_empty()
            && self.owners.is_empty()
            && !self.properties
            && !self.entries
    }
}

/// Gathered elements with what the graph says of them.
struct Elements<'a> {
    view: &'a dyn GraphView,
    names: NameCache,
    /// Whether meta-properties go with vertex properties.
    properties: bool,
    vertex_places: FastMap<VertexId, usize>,
    /// Id and label of each vertex.
    references: Vec<(Value, Name)>,
    vertices: Vec<Value>,
    edge_places: FastMap<EdgeId, usize>,
    edges: Vec<Value>,
    /// The properties that the owners of vertex properties have now, where that may be others than are held.
    current: FastMap<(VertexId, KeyId, u32), PropertyRow>,
}

impl<'a> Elements<'a> {
    fn read(mut gathered: Gathered, view: &'a dyn GraphView, detail: Detail) -> Result<Self> {
        // Of the ends of edges and the owners of properties only ids and labels are needed. They are read
        // with those of the other vertices, which stand in front.
        let whole = gathered.vertices.items.len();
        let (mut sources, mut targets) = (Vec::new(), Vec::new());
        view.edge_ends(&gathered.edges.items, &mut sources, &mut targets)?;
        let references = sources.iter().chain(&targets).chain(&gathered.owners);
        references.for_each(|vertex| gathered.vertices.add(*vertex));

        let mut elements = Elements {
            view,
            names: NameCache::default(),
            properties: detail != Detail::Reference,
            vertex_places: gathered.vertices.places,
            references: Vec::new(),
            vertices: Vec::new(),
            edge_places: gathered.edges.places,
            edges: Vec::new(),
            current: FastMap::default(),
        };
        if detail == Detail::Current {
            elements.read_current(&gathered.owners)?;
        }
        elements.read_references(&gathered.vertices.items)?;
        elements.read_vertices(&gathered.vertices.items[..whole])?;
        elements.read_edges(&gathered.edges.items, &sources, &targets)?;
        Ok(elements)
    }

    fn read_current(&mut self, owners: &[VertexId]) -> Result<()> {
        let mut rows = Vec::new();
        self.view.vertex_properties(owners, None, &mut rows)?;
        let current = rows.into_iter().map(|now| ((owners[now.row as usize], now.key, now.ordinal), now));
        self.current = current.collect();
        Ok(())
    }

    fn read_references(&mut self, vertices: &[VertexId]) -> Result<()> {
        let (mut ids, mut labels) = (Vec::new(), Vec::new());
        self.view.vertex_user_ids(vertices, &mut ids)?;
        self.view.vertex_labels(vertices, &mut labels)?;
        let labels = labels.into_iter().map(|label| self.names.label(label, self.view));
        self.references = ids.into_iter().zip(labels).collect();
        Ok(())
    }

    fn read_vertices(&mut self, vertices: &[VertexId]) -> Result<()> {
        let mut rows = Vec::new();
        if self.properties {
            self.view.vertex_properties(vertices, None, &mut rows)?;
        }
        let mut properties: Vec<Vec<DetachedVertexProperty>> = Vec::new();
        properties.resize_with(vertices.len(), Vec::new);
        for PropertyRow { row, key, ordinal, value, meta } in rows {
            let owner = row as usize;
            let property = self.vertex_property(owner, (key, ordinal), &value, &meta);
            properties[owner].push(property);
        }
        let made = properties.into_iter().zip(&self.references).map(|(properties, (id, label))| {
            detached(Detached::Vertex { id: id.clone(), label: label.clone(), properties })
        });
        self.vertices = made.collect();
        Ok(())
    }

    fn read_edges(&mut self, edges: &[EdgeId], sources: &[VertexId], targets: &[VertexId]) -> Result<()> {
        let (mut ids, mut labels, mut rows) = (Vec::new(), Vec::new(), Vec::new());
        self.view.edge_user_ids(edges, &mut ids)?;
        self.view.edge_labels(edges, &mut labels)?;
        if self.properties {
            self.view.edge_properties(edges, None, &mut rows)?;
        }
        let mut properties: Vec<Vec<(Name, Value)>> = vec![Vec::new(); edges.len()];
        for property in rows {
            let key = self.names.key(property.key, self.view);
            properties[property.row as usize].push((key, property.value));
        }
        for (at, (id, properties)) in ids.into_iter().zip(properties).enumerate() {
            let reference = |end: &VertexId| self.references[self.vertex_places[end]].clone();
            let (source, target) = (reference(&sources[at]), reference(&targets[at]));
            let label = self.names.label(labels[at], self.view);
            self.edges.push(detached(Detached::Edge { id, label, source, target, properties }));
        }
        Ok(())
    }

    /// A property of the vertex at a place.
    fn vertex_property(
        &mut self,
        owner: usize,
        (key, ordinal): (KeyId, u32),
        value: &Value,
        meta: &[(KeyId, Value)],
    ) -> DetachedVertexProperty {
        let key = self.names.key(key, self.view);
        let meta = if self.properties { meta } else { &[] };
        DetachedVertexProperty {
            id: property_id::vertex_property_id(&self.references[owner].0, &key, ordinal),
            meta: meta.iter().map(|(key, value)| (self.names.key(*key, self.view), value.clone())).collect(),
            value: value.clone(),
            key,
        }
    }

    fn detached_vertex_property(&mut self, property: &VertexPropertyValue) -> Value {
        let owner = self.vertex_places[&property.vertex];
        let name = (property.key, property.ordinal);
        let now = self.current.get(&(property.vertex, property.key, property.ordinal));
        let meta = match now.filter(|now| equivalent(&now.value, &property.value)) {
            Some(now) => now.meta.clone(),
            None => property.meta.clone(),
        };
        detached(Detached::VertexProperty(self.vertex_property(owner, name, &property.value, &meta)))
    }

    fn detached_property(&mut self, property: &PropertyValue) -> Value {
        detached(Detached::Property { key: self.names.key(property.key, self.view), value: property.value.clone() })
    }

    /// The value with its elements replaced; `None` where it has none, so that it may stay as it is.
    fn replaced(&mut self, value: &Value) -> Option<Value> {
        match value {
            Value::Vertex(id) => Some(self.vertices[self.vertex_places[id]].clone()),
            Value::Edge(id) => Some(self.edges[self.edge_places[id]].clone()),
            Value::VertexProperty(property) => Some(self.detached_vertex_property(property)),
            Value::Property(property) => Some(self.detached_property(property)),
            Value::List(values) => self.replaced_all(values).map(Value::list),
            Value::Set(values) => self.replaced_all(values).map(|v| Value::Set(v.into())),
            Value::Map(entries) => {
                let flat: Vec<Value> = entries.iter().flat_map(|(k, v)| [k.clone(), v.clone()]).collect();
                let mut flat = self.replaced_all(&flat)?.into_iter();
                let pairs = std::iter::from_fn(|| Some((flat.next()?, flat.next()?)));
                Some(Value::map(pairs.collect()))
            }
            Value::Entry(entry) => {
                let pair = [entry.0.clone(), entry.1.clone()];
                let mut pair = self.replaced_all(&pair).unwrap_or_else(|| pair.to_vec()).into_iter();
                Some(Value::map(pair.next().zip(pair.next()).into_iter().collect()))
            }
            Value::BulkSet(members) => {
                let (values, counts): (Vec<Value>, Vec<u64>) = members.iter().cloned().unzip();
                let values = self.replaced_all(&values)?;
                Some(Value::BulkSet(Arc::new(values.into_iter().zip(counts).collect())))
            }
            Value::Path(path) => {
                let objects = self.replaced_all(&path.objects)?;
                Some(Value::Path(Arc::new(PathValue { objects, labels: path.labels.clone() })))
            }
            Value::Tree(tree) => {
                let mut keys = Vec::new();
                tree.visit(&mut |key| keys.push(key.clone()));
                let mut keys = self.replaced_all(&keys)?.into_iter();
                Some(Value::Tree(Arc::new(tree.with_keys(&mut |old| keys.next().unwrap_or_else(|| old.clone())))))
            }
            Value::Graph(graph) => {
                let all = |elements: &mut Self, values: &[Value]| {
                    elements.replaced_all(values).unwrap_or_else(|| values.to_vec())
                };
                let vertices = all(self, &graph.vertices);
                Some(Value::Graph(Arc::new(GraphValue { vertices, edges: all(self, &graph.edges) })))
            }
            _ => None,
        }
    }

    fn replaced_all(&mut self, values: &[Value]) -> Option<Vec<Value>> {
        let replaced: Vec<Option<Value>> = values.iter().map(|value| self.replaced(value)).collect();
        if replaced.iter().all(Option::is_none) {
            return None;
        }
        Some(replaced.into_iter().zip(values).map(|(new, old)| new.unwrap_or_else(|| old.clone())).collect())
    }
}

fn detached(element: Detached) -> Value {
    Value::Detached(Arc::new(element))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::fake_view::modern;

    fn josh(properties: bool) -> Value {
        let property = |key: &str, value: Value| DetachedVertexProperty {
            id: format!("2:{key}").into(),
            key: key.into(),
            value,
            meta: vec![],
        };
        let all = vec![property("name", "josh".into()), property("age", 32.into())];
        detached(Detached::Vertex {
            id: 2_i64.into(),
            label: "person".into(),
            properties: if properties { all } else { vec![] },
        })
    }

    fn knows(properties: bool) -> Value {
        detached(Detached::Edge {
            id: 101_i64.into(),
            label: "knows".into(),
            source: (1_i64.into(), "person".into()),
            target: (2_i64.into(), "person".into()),
            properties: if properties { vec![("weight".into(), 0.5.into())] } else { vec![] },
        })
    }

    fn nick(meta: bool) -> Value {
        detached(Detached::VertexProperty(DetachedVertexProperty {
            id: "1:nick:1".into(),
            key: "nick".into(),
            value: "mk".into(),
            meta: if meta { vec![("since".into(), 2001.into())] } else { vec![] },
        }))
    }

    #[test]
    fn elements_leave_with_or_without_their_properties() {
        let g = modern();
        for properties in [true, false] {
            let values = vec![g.josh.into(), g.knows.into(), g.nick(1), g.weight(), 1.into()];
            let weight = detached(Detached::Property { key: "weight".into(), value: 0.5.into() });
            let expected = vec![josh(properties), knows(properties), nick(properties), weight, 1.into()];
            let detail = if properties { Detail::Properties } else { Detail::Reference };
            assert_eq!(detach(values, &*g.view, detail).unwrap(), expected);
        }
    }

    #[test]
    fn elements_are_found_however_deep_they_lie() {
        let g = modern();
        let plain = Value::list(vec![1.into()]);
        let with = |josh: Value, edge: Value| {
            let path = PathValue { objects: vec![josh.clone(), 1.into()], labels: vec![vec!["a".into()], vec![]] };
            vec![
                Value::map(vec![
                    (josh.clone(), Value::list(vec![plain.clone(), edge.clone()])),
                    ("k".into(), 1.into()),
                ]),
                Value::BulkSet(Arc::new(vec![(josh.clone(), 3)])),
                Value::Path(Arc::new(path)),
                Value::Set(vec![edge, josh].into()),
                plain.clone(),
            ]
        };
        let values = with(g.josh.into(), g.knows.into());
        assert_eq!(detach(values, &*g.view, Detail::Properties).unwrap(), with(josh(true), knows(true)));
    }

    #[test]
    fn values_without_elements_are_not_copied() {
        let g = modern();
        let list = Arc::new(vec![Value::I32(1)]);
        let made = detach(vec![g.josh.into(), Value::List(list.clone())], &*g.view, Detail::Reference).unwrap();
        assert!(matches!(&made[1], Value::List(same) if Arc::ptr_eq(same, &list)));
    }
}
