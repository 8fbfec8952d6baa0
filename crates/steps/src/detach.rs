//! Detaching results: elements are replaced by copies with their ids, labels and properties, for a client to keep.
//!
//! All elements of a batch of results, however deep they lie in collections, are read together. A first pass gathers
//! them, the graph is read once for each kind, and a second pass replaces them. Copies are charged before they are
//! made.
//!
//! Several collections may hold the same collection: thirty times `project('a','b').by().by()` takes a few kilobytes
//! (STEPS-3). Both passes enter such a collection once, and all its holders get the same replacement, so the result
//! takes kilobytes, too.

use std::borrow::Cow;
use std::sync::Arc;

use mangrove_graph::compare::equivalent;
use mangrove_graph::{
    Detached, DetachedVertexProperty, EdgeId, Elements, Error, FastMap, FastSet, GraphValue, GraphView, KeyId, Need,
    PathValue, PropertyRow, PropertyValue, Result, Tree, Value, VertexId, VertexPropertyValue, vertex_property_id,
};
use mangrove_plan::logical::Name;

use crate::context::execution::Detail;
use crate::limits::meter::Meter;
use crate::rows::ObjectColumn;
use crate::values::names::NameCache;

/// Replaces every element and property in these values by a [`Value::Detached`]. The copies are charged to the meter.
pub fn detach(values: Vec<Value>, view: &dyn GraphView, detail: Detail, meter: &mut Meter<'_>) -> Result<Vec<Value>> {
    let mut gathered = Gathered::default();
    gathered.visit_all(&values, values.len(), meter)?;
    if gathered.is_empty() {
        return Ok(values);
    }
    let mut elements = ReadElements::read(gathered, view, detail, meter)?;
    // A shared collection is known by its address, so all values must live until the last one is replaced.
    let replaced = elements.replaced_all(values.iter(), values.len(), meter)?;
    Ok(replaced.unwrap_or(values))
}

/// Returns what [`detach`] reads for the objects of a column.
pub(crate) fn detach_needs<'a>(objects: &'a ObjectColumn, detail: Detail, meter: &mut Meter<'_>) -> Result<Need<'a>> {
    let (vertices, edges, owners) = match objects {
        ObjectColumn::Vertices(ids) => (Cow::Borrowed(&ids[..]), Cow::default(), Vec::new()),
        ObjectColumn::Edges(ids) => (Cow::default(), Cow::Borrowed(&ids[..]), Vec::new()),
        ObjectColumn::Numbers(_) => (Cow::default(), Cow::default(), Vec::new()),
        ObjectColumn::Values(values) => {
            let mut gathered = Gathered::default();
            gathered.visit_all(values, values.len(), meter)?;
            (gathered.vertices.items.into(), gathered.edges.items.into(), gathered.owners)
        }
    };
    let ends = Need::EndHeads(edges.clone());
    let whole = [Elements::Vertices(vertices), Elements::Edges(edges)];
    let values = whole.clone().map(|of| match detail {
        Detail::Reference => Need::Nothing,
        Detail::Properties | Detail::Current => Need::Values { of, keys: None },
    });
    let owners = [Need::Heads(Elements::Vertices(owners.into())), ends];
    Ok(Need::all(whole.map(Need::Heads).into_iter().chain(values).chain(owners)))
}

/// Elements whose properties are read at once.
const READ_AT_ONCE: usize = 1024;

const VALUE_BYTES: usize = size_of::<Value>();

/// Returns the address of a collection with several holders; `None` if it has one.
fn shared_address<T>(collection: &Arc<T>) -> Option<usize> {
    (Arc::strong_count(collection) > 1).then(|| Arc::as_ptr(collection).addr())
}

/// The elements in some values, each once, in the order in which they are met.
#[derive(Default)]
struct Gathered {
    vertices: Numbered<VertexId>,
    edges: Numbered<EdgeId>,
    /// The vertices of vertex properties: the id of a vertex property contains that of its vertex.
    owners: Vec<VertexId>,
    /// True if there are properties, which are replaced without being read.
    properties: bool,
    /// True if there are map entries, which are replaced by maps.
    entries: bool,
    /// The addresses of the shared collections that were met.
    met: FastSet<usize>,
}

struct Numbered<T> {
    indexes: FastMap<T, usize>,
    items: Vec<T>,
}

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Numbered { indexes: FastMap::default(), items: Vec::new() }
    }
}

impl<T: Copy + Eq + std::hash::Hash> Numbered<T> {
    fn add(&mut self, item: T) {
        let next = self.items.len();
        if *self.indexes.entry(item).or_insert(next) == next {
            self.items.push(item);
        }
    }
}

impl Gathered {
    fn visit(&mut self, value: &Value, meter: &mut Meter<'_>) -> Result<()> {
        match value {
            Value::Vertex(id) => self.vertices.add(*id),
            Value::Edge(id) => self.edges.add(*id),
            Value::VertexProperty(property) => self.owners.push(property.vertex),
            Value::Property(_) => self.properties = true,
            Value::List(values) | Value::Set(values) if self.is_new(values) => {
                self.visit_all(values.iter(), values.len(), meter)?;
            }
            Value::Map(entries) if self.is_new(entries) => {
                self.visit_all(entries.iter().flat_map(|(key, value)| [key, value]), 2 * entries.len(), meter)?;
            }
            Value::Entry(entry) if self.is_new(entry) => {
                self.entries = true;
                self.visit_all([&entry.0, &entry.1], 2, meter)?;
            }
            Value::BulkSet(members) if self.is_new(members) => {
                self.visit_all(members.iter().map(|(value, _)| value), members.len(), meter)?;
            }
            Value::Path(path) if self.is_new(path) => self.visit_all(&path.objects, path.objects.len(), meter)?,
            Value::Tree(tree) if self.is_new(tree) => {
                let keys = keys(tree, meter)?;
                self.visit_all(keys.iter().copied(), keys.len(), meter)?;
            }
            Value::Graph(graph) if self.is_new(graph) => {
                let elements = graph.vertices.iter().chain(&graph.edges);
                self.visit_all(elements, graph.vertices.len() + graph.edges.len(), meter)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn visit_all<'v>(
        &mut self,
        values: impl IntoIterator<Item = &'v Value>,
        count: usize,
        meter: &mut Meter<'_>,
    ) -> Result<()> {
        meter.pass(count.saturating_mul(VALUE_BYTES))?;
        values.into_iter().try_for_each(|value| self.visit(value, meter))
    }

    /// Returns true if a collection was not met before.
    fn is_new<T>(&mut self, collection: &Arc<T>) -> bool {
        shared_address(collection).is_none_or(|address| self.met.insert(address))
    }

    fn is_empty(&self) -> bool {
        self.vertices.items.is_empty()
            && self.edges.items.is_empty()
            && self.owners.is_empty()
            && !self.properties
            && !self.entries
    }
}

/// The gathered elements with their ids, labels and properties.
struct ReadElements<'a> {
    view: &'a dyn GraphView,
    names: NameCache,
    /// True if vertex properties keep their meta-properties.
    properties: bool,
    vertex_indexes: FastMap<VertexId, usize>,
    /// The id and label of each vertex.
    references: Vec<(Value, Name)>,
    vertices: Vec<Value>,
    edge_indexes: FastMap<EdgeId, usize>,
    edges: Vec<Value>,
    /// The current properties of the owners of vertex properties, if they may differ from the held ones.
    current: FastMap<(VertexId, KeyId, u32), PropertyRow>,
    /// The replacements of shared collections, by address.
    made: FastMap<usize, Option<Value>>,
}

impl<'a> ReadElements<'a> {
    fn read(mut gathered: Gathered, view: &'a dyn GraphView, detail: Detail, meter: &mut Meter<'_>) -> Result<Self> {
        // Ends of edges and owners of properties need only ids and labels. They are read with those of the other
        // vertices, which come first.
        let whole = gathered.vertices.items.len();
        let (mut sources, mut targets) = (Vec::new(), Vec::new());
        view.edge_ends(&gathered.edges.items, &mut sources, &mut targets)?;
        let ends = sources.len() + targets.len() + gathered.owners.len();
        meter.charge((gathered.vertices.items.len() + ends).saturating_mul(REFERENCE_BYTES))?;
        let references = sources.iter().chain(&targets).chain(&gathered.owners);
        references.for_each(|vertex| gathered.vertices.add(*vertex));

        let mut elements = ReadElements {
            view,
            names: NameCache::default(),
            properties: detail != Detail::Reference,
            vertex_indexes: gathered.vertices.indexes,
            references: Vec::new(),
            vertices: Vec::new(),
            edge_indexes: gathered.edges.indexes,
            edges: Vec::new(),
            current: FastMap::default(),
            made: FastMap::default(),
        };
        if detail == Detail::Current {
            elements.read_current(&gathered.owners, meter)?;
        }
        elements.read_references(&gathered.vertices.items)?;
        for vertices in gathered.vertices.items[..whole].chunks(READ_AT_ONCE) {
            elements.read_vertices(vertices, meter)?;
        }
        let (mut edges, mut ends) = (&gathered.edges.items[..], sources.iter().copied().zip(targets));
        while !edges.is_empty() {
            let (some, rest) = edges.split_at(edges.len().min(READ_AT_ONCE));
            elements.read_edges(some, &mut ends, meter)?;
            edges = rest;
        }
        Ok(elements)
    }

    fn read_current(&mut self, owners: &[VertexId], meter: &mut Meter<'_>) -> Result<()> {
        for owners in owners.chunks(READ_AT_ONCE) {
            let mut rows = Vec::new();
            self.view.vertex_properties(owners, None, &mut rows)?;
            meter.charge(rows.len() * size_of::<((VertexId, KeyId, u32), PropertyRow)>())?;
            self.current.extend(rows.into_iter().map(|now| ((owners[now.row as usize], now.key, now.ordinal), now)));
        }
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

    /// Reads the next vertices.
    fn read_vertices(&mut self, vertices: &[VertexId], meter: &mut Meter<'_>) -> Result<()> {
        let first = self.vertices.len();
        let mut rows = Vec::new();
        if self.properties {
            self.view.vertex_properties(vertices, None, &mut rows)?;
        }
        let meta: usize = rows.iter().map(|row| row.meta.len() * META_BYTES).sum();
        meter.charge(vertices.len() * size_of::<Detached>() + rows.len() * PROPERTY_BYTES + meta)?;
        let mut properties: Vec<Vec<DetachedVertexProperty>> = Vec::new();
        properties.resize_with(vertices.len(), Vec::new);
        for PropertyRow { row, key, ordinal, value, meta } in rows {
            let owner = row as usize;
            let property = self.vertex_property(first + owner, (key, ordinal), &value, &meta);
            properties[owner].push(property);
        }
        let made = properties.into_iter().zip(&self.references[first..]).map(|(properties, (id, label))| {
            detached(Detached::Vertex { id: id.clone(), label: label.clone(), properties })
        });
        self.vertices.extend(made);
        Ok(())
    }

    /// Reads the next edges; `ends` has their ends next.
    fn read_edges(
        &mut self,
        edges: &[EdgeId],
        ends: &mut impl Iterator<Item = (VertexId, VertexId)>,
        meter: &mut Meter<'_>,
    ) -> Result<()> {
        let (mut ids, mut labels, mut rows) = (Vec::new(), Vec::new(), Vec::new());
        self.view.edge_user_ids(edges, &mut ids)?;
        self.view.edge_labels(edges, &mut labels)?;
        if self.properties {
            self.view.edge_properties(edges, None, &mut rows)?;
        }
        meter.charge(edges.len() * size_of::<Detached>() + rows.len() * META_BYTES)?;
        let mut properties: Vec<Vec<(Name, Value)>> = vec![Vec::new(); edges.len()];
        for property in rows {
            let key = self.names.key(property.key, self.view);
            properties[property.row as usize].push((key, property.value));
        }
        for (((id, label), properties), (source, target)) in ids.into_iter().zip(labels).zip(properties).zip(ends) {
            let reference = |end: VertexId| self.references[self.vertex_indexes[&end]].clone();
            let (source, target) = (reference(source), reference(target));
            let label = self.names.label(label, self.view);
            self.edges.push(detached(Detached::Edge { id, label, source, target, properties }));
        }
        Ok(())
    }

    /// Returns a property of the vertex at an index.
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
            id: vertex_property_id(&self.references[owner].0, &key, ordinal),
            meta: meta.iter().map(|(key, value)| (self.names.key(*key, self.view), value.clone())).collect(),
            value: value.clone(),
            key,
        }
    }

    fn detached_vertex_property(&mut self, property: &VertexPropertyValue) -> Value {
        let owner = self.vertex_indexes[&property.vertex];
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

    /// Returns the value with its elements replaced; `None` if it has none and can stay as it is.
    fn replaced(&mut self, value: &Value, meter: &mut Meter<'_>) -> Result<Option<Value>> {
        match value {
            Value::Vertex(id) => Ok(Some(self.vertices[self.vertex_indexes[id]].clone())),
            Value::Edge(id) => Ok(Some(self.edges[self.edge_indexes[id]].clone())),
            Value::VertexProperty(property) => {
                meter.charge(size_of::<Detached>() + property.meta.len() * META_BYTES)?;
                Ok(Some(self.detached_vertex_property(property)))
            }
            Value::Property(property) => {
                meter.charge(size_of::<Detached>())?;
                Ok(Some(self.detached_property(property)))
            }
            Value::List(values) => self.once(values, meter, |elements, meter| {
                Ok(elements.replaced_all(values.iter(), values.len(), meter)?.map(Value::list))
            }),
            Value::Set(values) => self.once(values, meter, |elements, meter| {
                Ok(elements.replaced_all(values.iter(), values.len(), meter)?.map(|values| Value::Set(values.into())))
            }),
            Value::Map(entries) => self.once(entries, meter, |elements, meter| {
                let flat = entries.iter().flat_map(|(key, value)| [key, value]);
                Ok(elements.replaced_all(flat, 2 * entries.len(), meter)?.map(|flat| Value::map(pairs(flat))))
            }),
            Value::Entry(entry) => self.once(entry, meter, |elements, meter| {
                let flat = elements.replaced_all([&entry.0, &entry.1].into_iter(), 2, meter)?;
                Ok(Some(Value::map(pairs(flat.unwrap_or_else(|| vec![entry.0.clone(), entry.1.clone()])))))
            }),
            Value::BulkSet(members) => self.once(members, meter, |elements, meter| {
                let values = members.iter().map(|(value, _)| value);
                let Some(values) = elements.replaced_all(values, members.len(), meter)? else { return Ok(None) };
                let counts = members.iter().map(|(_, count)| *count);
                Ok(Some(Value::BulkSet(Arc::new(values.into_iter().zip(counts).collect()))))
            }),
            Value::Path(path) => self.once(path, meter, |elements, meter| {
                let objects = elements.replaced_all(path.objects.iter(), path.objects.len(), meter)?;
                let labels = || path.labels.clone();
                Ok(objects.map(|objects| Value::Path(Arc::new(PathValue { objects, labels: labels() }))))
            }),
            Value::Tree(tree) => self.once(tree, meter, |elements, meter| {
                let old = keys(tree, meter)?;
                let Some(new) = elements.replaced_all(old.iter().copied(), old.len(), meter)? else { return Ok(None) };
                let mut new = new.into_iter();
                let tree = tree.with_keys(&mut |old| new.next().unwrap_or_else(|| old.clone()));
                Ok(Some(Value::Tree(Arc::new(tree))))
            }),
            Value::Graph(graph) => self.once(graph, meter, |elements, meter| {
                let mut all = |values: &Vec<Value>| {
                    let replaced = elements.replaced_all(values.iter(), values.len(), meter)?;
                    Ok::<_, Error>(replaced.unwrap_or_else(|| values.clone()))
                };
                Ok(Some(Value::Graph(Arc::new(GraphValue {
                    vertices: all(&graph.vertices)?,
                    edges: all(&graph.edges)?,
                }))))
            }),
            _ => Ok(None),
        }
    }

    /// Returns the replacement of a collection. That of a shared collection is made once.
    fn once<T>(
        &mut self,
        collection: &Arc<T>,
        meter: &mut Meter<'_>,
        make: impl FnOnce(&mut Self, &mut Meter<'_>) -> Result<Option<Value>>,
    ) -> Result<Option<Value>> {
        let Some(address) = shared_address(collection) else { return make(self, meter) };
        if let Some(made) = self.made.get(&address) {
            return Ok(made.clone());
        }
        let made = make(self, meter)?;
        self.made.insert(address, made.clone());
        Ok(made)
    }

    /// Returns these `count` values with their elements replaced; `None` if they have none.
    fn replaced_all<'v>(
        &mut self,
        values: impl Iterator<Item = &'v Value> + Clone,
        count: usize,
        meter: &mut Meter<'_>,
    ) -> Result<Option<Vec<Value>>> {
        meter.pass(count.saturating_mul(VALUE_BYTES))?;
        let mut all = None;
        for (at, value) in values.clone().enumerate() {
            let new = self.replaced(value, meter)?;
            if all.is_none() && new.is_some() {
                meter.charge(count.saturating_mul(VALUE_BYTES))?;
                let mut before = Vec::with_capacity(count);
                before.extend(values.clone().take(at).cloned());
                all = Some(before);
            }
            if let Some(all) = &mut all {
                all.push(new.unwrap_or_else(|| value.clone()));
            }
        }
        Ok(all)
    }
}

/// The approximate bytes of the id and label of a vertex.
const REFERENCE_BYTES: usize = size_of::<(Value, Name)>() + size_of::<(VertexId, usize)>();

/// The approximate bytes of a vertex property, with the text of its id and without its value, which is shared with the
/// graph.
const PROPERTY_BYTES: usize = size_of::<DetachedVertexProperty>() + 32;

/// The approximate bytes of a meta-property or of a property of an edge.
const META_BYTES: usize = size_of::<(Name, Value)>();

/// Returns the entries of a map from its keys and values by turns.
fn pairs(flat: Vec<Value>) -> Vec<(Value, Value)> {
    let mut flat = flat.into_iter();
    std::iter::from_fn(|| Some((flat.next()?, flat.next()?))).collect()
}

/// Returns the keys of a tree on all levels.
fn keys<'t>(tree: &'t Tree, meter: &mut Meter<'_>) -> Result<Vec<&'t Value>> {
    meter.charge(tree.size() * size_of::<&Value>())?;
    let mut keys = Vec::new();
    tree.visit(&mut |key| keys.push(key));
    Ok(keys)
}

fn detached(element: Detached) -> Value {
    Value::Detached(Arc::new(element))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_view::{Modern, modern};
    use crate::limits::meter::limited_control;

    fn detach_with(values: Vec<Value>, g: &Modern, detail: Detail, memory_bytes: u64) -> Result<Vec<Value>> {
        detach(values, &*g.view, detail, &mut Meter::new(&limited_control(memory_bytes, None)))
    }

    fn detached_all(values: Vec<Value>, g: &Modern, detail: Detail) -> Vec<Value> {
        detach_with(values, g, detail, u64::MAX).unwrap()
    }

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
            assert_eq!(detached_all(values, &g, detail), expected);
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
        assert_eq!(detached_all(values, &g, Detail::Properties), with(josh(true), knows(true)));
    }

    #[test]
    fn values_without_elements_are_not_copied() {
        let g = modern();
        let list = Arc::new(vec![Value::I32(1)]);
        let made = detached_all(vec![g.josh.into(), Value::List(list.clone())], &g, Detail::Reference);
        assert!(matches!(&made[1], Value::List(same) if Arc::ptr_eq(same, &list)));
    }

    /// The value takes a few kilobytes. A reader that follows every reference would meet 2^60 values in it.
    #[test]
    fn shared_values_stay_shared() {
        let g = modern();
        let wraps: [fn(Value) -> Value; 5] = [
            |v| Value::list(vec![v.clone(), v]),
            |v| Value::map(vec![("a".into(), v.clone()), ("b".into(), v)]),
            |v| Value::BulkSet(Arc::new(vec![(v.clone(), 1), (v, 1)])),
            |v| Value::Path(Arc::new(PathValue { labels: vec![vec![]; 2], objects: vec![v.clone(), v] })),
            |v| Value::Tree(Arc::new(Tree { branches: vec![(v.clone(), Tree::default()), (v, Tree::default())] })),
        ];
        for wrap in wraps {
            let deep = (0..60).fold(Value::from(g.josh), |value, _| wrap(value));
            let made = detach_with(vec![deep.clone(), deep], &g, Detail::Properties, 64 << 10).unwrap();
            let bytes = crate::limits::sizes::Sizes::default().all(&made);
            assert!(bytes < 32 << 10, "{} of {bytes} bytes", made[0].type_name());
            let mut inside = &made[0];
            while let Value::List(values) = inside {
                inside = &values[1];
            }
            assert!(matches!(inside, Value::Detached(_)) || made[0].type_name() != "list", "{}", inside.type_name());
        }
    }

    #[test]
    fn made_values_have_a_limit() {
        let g = modern();
        let many = |value: Value| vec![Value::list(vec![value; 100_000])];
        // The references to one vertex share one copy; each vertex property gets a copy of its own.
        detach_with(many(g.josh.into()), &g, Detail::Properties, 8 << 20).unwrap();
        assert!(detach_with(many(g.nick(1)), &g, Detail::Properties, 8 << 20).is_err());
    }
}
