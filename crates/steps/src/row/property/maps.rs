//! Elements as maps: `valueMap()`, `propertyMap()`, `elementMap()`, and `by()` on their values. Values are read by
//! column.

use std::borrow::Cow;
use std::sync::Arc;

use mangrove_graph::{Direction, Error, GraphView, KeyId, Need, Result, Token, Value, ValueColumns, VertexId};
use mangrove_plan::logical::{MapTokens, Name};

use super::{MetProperty, read_properties, refuse_strangers};
use crate::context::execution::ExecutionContext;
use crate::context::type_name::a_type;
use crate::limits::meter::Meter;
use crate::row::operator::{RowOperator, SliceSize};
use crate::rows::current::current;
use crate::rows::kinds::Kinds;
use crate::rows::needs;
use crate::rows::path::PathNode;
use crate::rows::{ObjectColumn, Rows};
use crate::values::names::{NameCache, known_keys};

type Entries = Vec<(Value, Value)>;

/// The form of the values of a key.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ValueShape {
    /// A list, also if there is one value.
    List,
    /// The last value.
    Last,
}

/// Makes the maps of a batch. Values are read by column, and each map is made at its final size.
#[derive(Default)]
struct MapMaker {
    names: NameCache,
    columns: ValueColumns,
}

impl MapMaker {
    /// Makes the maps of the vertices. `head` adds the first `head_len` entries.
    fn vertices(
        &mut self,
        kinds: &Kinds<'_>,
        keys: Option<&[KeyId]>,
        shape: ValueShape,
        view: &dyn GraphView,
        (head_len, head): (usize, impl FnMut(usize, &mut Entries)),
        maps: &mut [Entries],
    ) -> Result<()> {
        let items = &kinds.vertices.items;
        if items.is_empty() {
            return Ok(());
        }
        self.columns.clear();
        view.vertex_columns(items, keys, &mut self.columns)?;
        self.fill(items.len(), shape, view, (head_len, head), |at| kinds.vertices.row(at), maps);
        Ok(())
    }

    /// As [`MapMaker::vertices`], for the edges.
    fn edges(
        &mut self,
        kinds: &Kinds<'_>,
        keys: Option<&[KeyId]>,
        view: &dyn GraphView,
        (head_len, head): (usize, impl FnMut(usize, &mut Entries)),
        maps: &mut [Entries],
    ) -> Result<()> {
        let items = &kinds.edges.items;
        if items.is_empty() {
            return Ok(());
        }
        self.columns.clear();
        view.edge_columns(items, keys, &mut self.columns)?;
        self.fill(items.len(), ValueShape::Last, view, (head_len, head), |at| kinds.edges.row(at), maps);
        Ok(())
    }

    fn fill(
        &mut self,
        count: usize,
        shape: ValueShape,
        view: &dyn GraphView,
        (head_len, mut head): (usize, impl FnMut(usize, &mut Entries)),
        row_of: impl Fn(usize) -> usize,
        maps: &mut [Entries],
    ) {
        let names: Vec<Value> = self.columns.keys().iter().map(|key| self.names.key_value(*key, view)).collect();
        self.columns.each_row(count, |at, values| {
            let mut map = Entries::with_capacity(head_len + values.key_count());
            head(at, &mut map);
            for (position, name) in names.iter().enumerate() {
                let Some(mut value) = values.next_of(position) else { continue };
                match shape {
                    ValueShape::Last => std::iter::from_fn(|| values.next_of(position)).for_each(|next| value = next),
                    ValueShape::List => {
                        let mut list = vec![value];
                        list.extend(std::iter::from_fn(|| values.next_of(position)));
                        value = Value::list(list);
                    }
                }
                map.push((name.clone(), value));
            }
            maps[row_of(at)] = map;
        });
    }

    /// As [`MapMaker::vertices`], for the vertex properties that computed column 0 lists.
    fn shown(
        &mut self,
        kinds: &Kinds<'_>,
        rows: &Rows,
        shape: ValueShape,
        view: &dyn GraphView,
        (head_len, mut head): (usize, impl FnMut(usize, &mut Entries)),
        maps: &mut [Entries],
    ) -> Result<()> {
        for at in 0..kinds.vertices.items.len() {
            let row = kinds.vertices.row(at);
            let properties = shown_properties(rows, row)?;
            let mut map = Entries::with_capacity(head_len + properties.len());
            head(at, &mut map);
            for property in properties {
                let Value::VertexProperty(property) = property else { continue };
                let (name, value) = (self.names.key_value(property.key, view), property.value.clone());
                match (map.iter_mut().find(|(known, _)| *known == name), shape) {
                    (Some((_, Value::List(list))), ValueShape::List) => Arc::make_mut(list).push(value),
                    (Some((_, known)), _) => *known = value,
                    (None, ValueShape::List) => map.push((name, Value::list(vec![value]))),
                    (None, ValueShape::Last) => map.push((name, value)),
                }
            }
            maps[row] = map;
        }
        Ok(())
    }

    /// Adds the meta-properties of vertex properties.
    fn meta(&mut self, kinds: &Kinds<'_>, keys: Option<&[KeyId]>, view: &dyn GraphView, maps: &mut [Entries]) {
        for (row, object) in kinds.others() {
            if let Value::VertexProperty(owner) = object {
                for (key, value) in owner.meta.iter().filter(|(key, _)| keys.is_none_or(|keys| keys.contains(key))) {
                    maps[row].push((self.names.key_value(*key, view), value.clone()));
                }
            }
        }
    }
}

/// `valueMap()`: for each key, a list of a vertex's values, or the value of an edge or vertex property.
pub(crate) struct ValueMap {
    keys: Vec<Name>,
    tokens: MapTokens,
    shown: bool,
    maker: MapMaker,
    slices: SliceSize,
}

impl ValueMap {
    /// A map of these keys (no keys mean all), after the requested tokens. With `shown`, computed column 0 lists the
    /// vertex properties to show.
    pub fn new(keys: Vec<Name>, tokens: MapTokens, shown: bool) -> Self {
        ValueMap { keys, tokens, shown, maker: MapMaker::default(), slices: SliceSize::default() }
    }
}

impl RowOperator for ValueMap {
    fn needs<'a>(&mut self, objects: &'a ObjectColumn, from: usize, context: &ExecutionContext) -> Result<Need<'a>> {
        let values = needs::values(objects, from, known_keys(&self.keys, &*context.view));
        let MapTokens { ids, labels } = self.tokens;
        Ok(if ids || labels { Need::all([needs::heads(objects, from), values]) } else { values })
    }

    fn slices(&mut self) -> Option<&mut SliceSize> {
        Some(&mut self.slices)
    }

    fn apply(&mut self, rows: Rows, context: &ExecutionContext, _: &mut Meter<'_>) -> Result<Rows> {
        let objects = current(&rows.objects, context)?;
        let kinds = Kinds::of(&objects);
        refuse_strangers(&kinds, "valueMap()")?;
        let view = &*context.view;
        let keys = known_keys(&self.keys, view);
        let keys = keys.as_deref();
        let mut maps = vec![Entries::new(); rows.len()];
        let MapTokens { ids, labels } = self.tokens;
        let tokens = usize::from(ids) + usize::from(labels);
        let mut heads = ElementHeads::default();
        if tokens > 0 {
            heads = ElementHeads::of(&kinds, context, &mut self.maker.names)?;
        }
        let put = |(id, label): &mut (Value, Value), map: &mut Entries| {
            map.extend(ids.then(|| (Value::Token(Token::Id), std::mem::take(id))));
            map.extend(labels.then(|| (Value::Token(Token::Label), std::mem::take(label))));
        };
        let head =
            |at: usize, map: &mut Entries| heads.vertices.get_mut(at).into_iter().for_each(|head| put(head, map));
        if self.shown {
            self.maker.shown(&kinds, &rows, ValueShape::List, view, (tokens, head), &mut maps)?;
        } else {
            self.maker.vertices(&kinds, keys, ValueShape::List, view, (tokens, head), &mut maps)?;
        }
        let head = |at: usize, map: &mut Entries| heads.edges.get_mut(at).into_iter().for_each(|head| put(head, map));
        self.maker.edges(&kinds, keys, view, (tokens, head), &mut maps)?;
        if tokens > 0 {
            put_property_tokens(&kinds, context, &mut maps)?;
            for (row, _) in kinds.others() {
                maps[row].retain(|(token, _)| is_asked_for(token, ids, labels));
            }
        }
        self.maker.meta(&kinds, keys, view, &mut maps);
        drop(kinds);
        drop(objects);
        Ok(rows.with_objects(into_column(maps)))
    }
}

/// `propertyMap()`: as [`ValueMap`], with properties instead of values.
pub(crate) struct PropertyMap {
    keys: Vec<Name>,
    shown: bool,
    names: NameCache,
    slices: SliceSize,
}

impl PropertyMap {
    /// A map of these keys; no keys mean all. With `shown`, computed column 0 lists the vertex properties to show.
    pub fn new(keys: Vec<Name>, shown: bool) -> Self {
        PropertyMap { keys, shown, names: NameCache::default(), slices: SliceSize::default() }
    }
}

impl RowOperator for PropertyMap {
    fn needs<'a>(&mut self, objects: &'a ObjectColumn, from: usize, context: &ExecutionContext) -> Result<Need<'a>> {
        Ok(needs::values(objects, from, known_keys(&self.keys, &*context.view)))
    }

    fn slices(&mut self) -> Option<&mut SliceSize> {
        Some(&mut self.slices)
    }

    fn apply(&mut self, rows: Rows, context: &ExecutionContext, _: &mut Meter<'_>) -> Result<Rows> {
        let objects = current(&rows.objects, context)?;
        let mut kinds = Kinds::of(&objects);
        refuse_strangers(&kinds, "propertyMap()")?;
        let mut maps = vec![Entries::new(); rows.len()];
        let view = &*context.view;
        if self.shown {
            for row in (0..kinds.vertices.items.len()).map(|at| kinds.vertices.row(at)) {
                for property in shown_properties(&rows, row)? {
                    if let Value::VertexProperty(p) = property {
                        put_property(&mut maps[row], self.names.key_value(p.key, view), property.clone(), true);
                    }
                }
            }
            kinds.vertices.items = Cow::Borrowed(&[]);
        }
        let keys = known_keys(&self.keys, view);
        read_properties(&kinds, keys.as_deref(), context, |row, property| {
            let (key, is_of_vertex) = match &property {
                MetProperty::Vertex(_, p) => (p.key, true),
                MetProperty::Edge(_, p) => (p.key, false),
                MetProperty::Meta(_, key, _) => (*key, false),
            };
            put_property(&mut maps[row], self.names.key_value(key, view), property.into_object(&kinds), is_of_vertex);
        })?;
        drop(kinds);
        drop(objects);
        Ok(rows.with_objects(into_column(maps)))
    }
}

/// Adds a property to a `propertyMap()`. A vertex may have several under a key.
fn put_property(map: &mut Entries, key: Value, property: Value, is_of_vertex: bool) {
    match map.iter_mut().find(|(known, _)| *known == key) {
        Some((_, Value::List(list))) => Arc::make_mut(list).push(property),
        _ if is_of_vertex => map.push((key, Value::list(vec![property]))),
        _ => map.push((key, property)),
    }
}

/// Returns the vertex properties that the map of a row shows.
fn shown_properties(rows: &Rows, row: usize) -> Result<&[Value]> {
    match rows.computed_value(0, row) {
        Some(Value::List(properties)) => Ok(properties),
        _ => Err(Error::bug("the properties that a map shows are a list in computed column 0")),
    }
}

/// `elementMap()`: id, label, the ends of an edge, and one value for each key (the last of several).
pub(crate) struct ElementMap {
    keys: Vec<Name>,
    shown: bool,
    maker: MapMaker,
    slices: SliceSize,
}

impl ElementMap {
    /// A map of these keys; no keys mean all. With `shown`, computed column 0 lists the vertex properties to show.
    pub fn new(keys: Vec<Name>, shown: bool) -> Self {
        ElementMap { keys, shown, maker: MapMaker::default(), slices: SliceSize::default() }
    }
}

impl RowOperator for ElementMap {
    fn needs<'a>(&mut self, objects: &'a ObjectColumn, from: usize, context: &ExecutionContext) -> Result<Need<'a>> {
        let values = needs::values(objects, from, known_keys(&self.keys, &*context.view));
        Ok(Need::all([needs::heads(objects, from), needs::edges(objects, from, Need::EndHeads), values]))
    }

    fn slices(&mut self) -> Option<&mut SliceSize> {
        Some(&mut self.slices)
    }

    fn apply(&mut self, rows: Rows, context: &ExecutionContext, _: &mut Meter<'_>) -> Result<Rows> {
        let objects = current(&rows.objects, context)?;
        let kinds = Kinds::of(&objects);
        refuse_strangers(&kinds, "elementMap()")?;
        let view = &*context.view;
        let keys = known_keys(&self.keys, view);
        let keys = keys.as_deref();
        let mut maps = vec![Entries::new(); rows.len()];
        let ElementHeads { mut vertices, mut edges } = ElementHeads::of(&kinds, context, &mut self.maker.names)?;
        let mut ends = ends(&kinds, context, &mut self.maker.names)?;
        let put = |(id, label): &mut (Value, Value), map: &mut Entries| {
            map.push((Value::Token(Token::Id), std::mem::take(id)));
            map.push((Value::Token(Token::Label), std::mem::take(label)));
        };
        let head = |at: usize, map: &mut Entries| put(&mut vertices[at], map);
        if self.shown {
            self.maker.shown(&kinds, &rows, ValueShape::Last, view, (2, head), &mut maps)?;
        } else {
            self.maker.vertices(&kinds, keys, ValueShape::Last, view, (2, head), &mut maps)?;
        }
        let head = |at: usize, map: &mut Entries| {
            put(&mut edges[at], map);
            let (source, target) = std::mem::take(&mut ends[at]);
            map.push((Value::Direction(Direction::In), target));
            map.push((Value::Direction(Direction::Out), source));
        };
        self.maker.edges(&kinds, keys, view, (4, head), &mut maps)?;
        put_property_tokens(&kinds, context, &mut maps)?;
        self.maker.meta(&kinds, keys, view, &mut maps);
        drop(kinds);
        drop(objects);
        Ok(rows.with_objects(into_column(maps)))
    }
}

/// Returns true if a token is asked for and is the id, or the label (of a vertex property, the key).
fn is_asked_for(token: &Value, ids: bool, labels: bool) -> bool {
    match token {
        Value::Token(Token::Id) => ids,
        _ => labels,
    }
}

fn into_column(maps: Vec<Entries>) -> ObjectColumn {
    ObjectColumn::Values(maps.into_iter().map(Value::map).collect())
}

/// The ids and labels of the elements of a batch.
#[derive(Default)]
struct ElementHeads {
    vertices: Vec<(Value, Value)>,
    edges: Vec<(Value, Value)>,
}

impl ElementHeads {
    fn of(kinds: &Kinds<'_>, context: &ExecutionContext, names: &mut NameCache) -> Result<Self> {
        let view = &*context.view;
        let vertices = ids_and_labels(view, names, &kinds.vertices.items)?;
        let (mut ids, mut labels) = (Vec::new(), Vec::new());
        view.edge_user_ids(&kinds.edges.items, &mut ids)?;
        view.edge_labels(&kinds.edges.items, &mut labels)?;
        let labels = labels.into_iter().map(|label| Value::String(names.label(label, view)));
        Ok(ElementHeads { vertices, edges: ids.into_iter().zip(labels).collect() })
    }
}

/// Adds the id, key and value of vertex properties to their maps.
fn put_property_tokens(kinds: &Kinds<'_>, context: &ExecutionContext, maps: &mut [Entries]) -> Result<()> {
    if kinds.are_elements() {
        return Ok(());
    }
    let (rows, properties): (Vec<usize>, Vec<Value>) = kinds.others().map(|(row, value)| (row, value.clone())).unzip();
    let properties = ObjectColumn::Values(properties);
    for token in [Token::Id, Token::Key, Token::Value] {
        let column = crate::computed::lookup::compute_token(&properties, token, context)?;
        for (row, value) in rows.iter().zip(column) {
            maps[*row].extend(value.map(|value| (Value::Token(token), value)));
        }
    }
    Ok(())
}

/// Returns the id and label of each vertex.
fn ids_and_labels(view: &dyn GraphView, names: &mut NameCache, vertices: &[VertexId]) -> Result<Vec<(Value, Value)>> {
    let (mut ids, mut labels) = (Vec::new(), Vec::new());
    view.vertex_user_ids(vertices, &mut ids)?;
    view.vertex_labels(vertices, &mut labels)?;
    Ok(ids.into_iter().zip(labels).map(|(id, label)| (id, Value::String(names.label(label, view)))).collect())
}

/// Returns the sources and targets of edges as maps of their ids and labels.
fn ends(kinds: &Kinds<'_>, context: &ExecutionContext, names: &mut NameCache) -> Result<Vec<(Value, Value)>> {
    let view = &*context.view;
    let (mut sources, mut targets) = (Vec::new(), Vec::new());
    view.edge_ends(&kinds.edges.items, &mut sources, &mut targets)?;
    let mut references = |vertices: &[VertexId]| -> Result<Vec<Value>> {
        let reference =
            |(id, label)| Value::map(vec![(Value::Token(Token::Id), id), (Value::Token(Token::Label), label)]);
        Ok(ids_and_labels(view, names, vertices)?.into_iter().map(reference).collect())
    };
    Ok(references(&sources)?.into_iter().zip(references(&targets)?).collect())
}

/// Replaces the values of a map by the values that a `by()` made from them.
///
/// Computed column 0 of a row is a list of pairs `[index, value]`: the index of an entry and its new value. An entry
/// without a pair, because the `by()` was unproductive, is left out.
pub(crate) struct ReplaceMapValues;

impl RowOperator for ReplaceMapValues {
    fn apply(&mut self, mut rows: Rows, context: &ExecutionContext, _: &mut Meter<'_>) -> Result<Rows> {
        let mut maps = Vec::with_capacity(rows.len());
        for row in 0..rows.len() {
            let Some(Value::List(pairs)) = rows.computed_value(0, row) else {
                return Err(Error::bug("the new values of a map are a list in computed column 0"));
            };
            maps.push(replaced(&rows.object(row), pairs)?);
        }
        if context.whole_paths()
            && let Some(paths) = &mut rows.path
        {
            // The `by()` belongs to the step that made the map, so the path gets one object, not two.
            for (path, map) in paths.iter_mut().zip(&maps) {
                let renewed = |node: Arc<PathNode>| PathNode::extend(node.previous.clone(), map.clone(), &node.labels);
                *path = path.take().and_then(renewed);
            }
        }
        Ok(rows.with_objects(ObjectColumn::Values(maps)))
    }
}

fn replaced(map: &Value, pairs: &[Value]) -> Result<Value> {
    let Value::Map(entries) = map else {
        return Err(Error::bug(format!("values of a map are replaced, but here is {}", a_type(map))));
    };
    let entry = |pair: &Value| {
        let Value::List(pair) = pair else { return None };
        let [index, value] = pair.as_slice() else { return None };
        let index = usize::try_from(mangrove_graph::numeric::integer(index)?).ok()?;
        Some((entries.get(index)?.0.clone(), value.clone()))
    };
    let made: Option<Entries> = pairs.iter().map(entry).collect();
    made.map(Value::map).ok_or_else(|| Error::bug("the new values of a map are pairs of a position and a value"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_view::{Modern, context_of, context_with, modern};
    use crate::limits::meter::limited_control;
    use crate::rows::path;
    use mangrove_plan::physical::{PathRequirement, Requirements};

    fn run(graph: &Modern, mut operator: impl RowOperator, objects: Vec<Value>) -> Result<Vec<Value>> {
        let rows = Rows::of(ObjectColumn::from_values(objects));
        Ok(operator
            .apply(rows, &context_of(graph), &mut Meter::new(&limited_control(u64::MAX, None)))?
            .objects
            .into_values())
    }

    fn token(token: Token, value: impl Into<Value>) -> (Value, Value) {
        (Value::Token(token), value.into())
    }

    fn entry(key: &str, value: impl Into<Value>) -> (Value, Value) {
        (key.into(), value.into())
    }

    #[test]
    fn value_maps_list_the_values_of_vertices_only() {
        let g = modern();
        let maps = run(
            &g,
            ValueMap::new(Vec::new(), MapTokens::default(), false),
            vec![g.marko.into(), g.knows.into(), g.nick(1)],
        )
        .unwrap();
        let marko = Value::map(vec![
            entry("name", vec!["marko".into()]),
            entry("age", vec![29.into()]),
            entry("nick", vec!["m".into(), "mk".into()]),
        ]);
        let knows = Value::map(vec![entry("weight", 0.5)]);
        assert_eq!(maps, vec![marko, knows, Value::map(vec![entry("since", 2001)])]);
        let maps = run(
            &g,
            ValueMap::new(vec!["age".into()], MapTokens { ids: true, labels: true }, false),
            vec![g.josh.into(), g.lop.into()],
        )
        .unwrap();
        let josh = vec![token(Token::Id, 2_i64), token(Token::Label, "person"), entry("age", vec![32.into()])];
        let lop = vec![token(Token::Id, 3_i64), token(Token::Label, "software")];
        assert_eq!(maps, vec![Value::map(josh), Value::map(lop)]);
        assert!(run(&g, ValueMap::new(Vec::new(), MapTokens::default(), false), vec![1.into()]).is_err());
    }

    #[test]
    fn element_maps_have_the_ends_of_edges_and_the_last_of_several_values() {
        let g = modern();
        let maps = run(
            &g,
            ElementMap::new(vec!["nick".into(), "weight".into()], false),
            vec![g.created.into(), g.marko.into(), g.nick(1)],
        )
        .unwrap();
        let end = |id: i64, label: &str| Value::map(vec![token(Token::Id, id), token(Token::Label, label)]);
        let created = vec![
            token(Token::Id, 102_i64),
            token(Token::Label, "created"),
            (Value::Direction(Direction::In), end(3, "software")),
            (Value::Direction(Direction::Out), end(2, "person")),
            entry("weight", 1.0),
        ];
        let marko = vec![token(Token::Id, 1_i64), token(Token::Label, "person"), entry("nick", "mk")];
        let nick = vec![token(Token::Id, "1:nick:1"), token(Token::Key, "nick"), token(Token::Value, "mk")];
        assert_eq!(maps, vec![Value::map(created), Value::map(marko), Value::map(nick)]);
    }

    #[test]
    fn new_values_take_the_place_of_old_ones_in_map_and_path() {
        let g = modern();
        let context = context_with(&g, Requirements { path: PathRequirement::Full, ..Requirements::default() });
        let map = Value::map(vec![entry("a", 1), entry("b", 2)]);
        let mut rows = Rows::of(ObjectColumn::Values(vec![map.clone()]));
        let start = PathNode::extend(None, g.marko.into(), &[]);
        rows.path = Some(vec![PathNode::extend(start, map, &["m".into()])]);
        let pair = Value::list(vec![Value::I64(1), Value::from("two")]);
        rows.computed = vec![vec![Some(Value::list(vec![pair]))]];
        let rows = ReplaceMapValues.apply(rows, &context, &mut Meter::new(&limited_control(u64::MAX, None))).unwrap();
        let made = Value::map(vec![entry("b", "two")]);
        assert_eq!(rows.object(0), made);
        let path = path::to_value(&rows.path(0));
        assert_eq!(path.objects, vec![g.marko.into(), made]);
        assert_eq!(path.labels, vec![vec![], vec![Name::from("m")]]);
    }
}
