//! Elements as maps: `valueMap()`, `elementMap()`, and `by()` on their values.

use std::sync::Arc;

use mangrove_graph::{Direction, Error, GraphView, Result, Token, Value, VertexId};
use mangrove_plan::logical::{MapTokens, Name};

use super::{Met, read_properties, refuse_strangers};
use crate::environment::Environment;
use crate::path::PathNode;
use crate::row::RowOperator;
use crate::row::kinds::Kinds;
use crate::row::names::{NameCache, known_keys};
use crate::rows::{Column, Rows};

type Entries = Vec<(Value, Value)>;

/// `valueMap()`: of a vertex a list a key, of an edge or vertex property a value a key.
pub struct ValueMap {
    keys: Vec<Name>,
    tokens: MapTokens,
    names: NameCache,
}

impl ValueMap {
    /// A map of these keys (none given: all), with the tokens first that are asked for.
    pub fn new(keys: Vec<Name>, tokens: MapTokens) -> Self {
        ValueMap { keys, tokens, names: NameCache::default() }
    }
}

impl RowOperator for ValueMap {
    fn apply(&mut self, rows: Rows, environment: &Environment) -> Result<Rows> {
        let kinds = Kinds::of(&rows.objects);
        refuse_strangers(&kinds, "valueMap()")?;
        let mut maps = vec![Entries::new(); rows.len()];
        if self.tokens != MapTokens::default() {
            put_tokens(&kinds, environment, &mut self.names, &mut maps)?;
            let MapTokens { ids, labels } = self.tokens;
            maps.iter_mut().for_each(|map| map.retain(|(token, _)| is_asked_for(token, ids, labels)));
        }
        // Lists grow here and become values when they are whole.
        let mut lists: Vec<(usize, Value, Vec<Value>)> = Vec::new();
        let view = &*environment.view;
        let keys = known_keys(&self.keys, view);
        read_properties(&kinds, keys.as_deref(), environment, |row, property| match property {
            Met::Vertex(_, p) => {
                let key = self.names.key_value(p.key, view);
                let same = lists.iter_mut().rev().take_while(|l| l.0 == row).find(|l| l.1 == key);
                match same {
                    Some((.., list)) => list.push(p.value),
                    None => lists.push((row, key, vec![p.value])),
                }
            }
            Met::Edge(_, p) => maps[row].push((self.names.key_value(p.key, view), p.value)),
            Met::Meta(_, key, value) => maps[row].push((self.names.key_value(key, view), value.clone())),
        })?;
        for (row, key, list) in lists {
            maps[row].push((key, Value::list(list)));
        }
        drop(kinds);
        Ok(rows.with_objects(into_column(maps)))
    }
}

/// `propertyMap()`: as [`ValueMap`], with the properties themselves for their values.
pub struct PropertyMap {
    keys: Vec<Name>,
    names: NameCache,
}

impl PropertyMap {
    /// A map of these keys; none given: all.
    pub fn new(keys: Vec<Name>) -> Self {
        PropertyMap { keys, names: NameCache::default() }
    }
}

impl RowOperator for PropertyMap {
    fn apply(&mut self, rows: Rows, environment: &Environment) -> Result<Rows> {
        let kinds = Kinds::of(&rows.objects);
        refuse_strangers(&kinds, "propertyMap()")?;
        let mut maps = vec![Entries::new(); rows.len()];
        let view = &*environment.view;
        let keys = known_keys(&self.keys, view);
        read_properties(&kinds, keys.as_deref(), environment, |row, property| {
            let (key, is_of_vertex) = match &property {
                Met::Vertex(_, p) => (p.key, true),
                Met::Edge(_, p) => (p.key, false),
                Met::Meta(_, key, _) => (*key, false),
            };
            let (key, object) = (self.names.key_value(key, view), property.into_object(&kinds));
            let map = &mut maps[row];
            match map.iter_mut().find(|(known, _)| *known == key) {
                Some((_, Value::List(list))) => Arc::make_mut(list).push(object),
                _ if is_of_vertex => map.push((key, Value::list(vec![object]))),
                _ => map.push((key, object)),
            }
        })?;
        drop(kinds);
        Ok(rows.with_objects(into_column(maps)))
    }
}

/// `elementMap()`: a value a key (the last of several), after id and label and, of an edge, its ends.
pub struct ElementMap {
    keys: Vec<Name>,
    names: NameCache,
}

impl ElementMap {
    /// A map of these keys; none given: all.
    pub fn new(keys: Vec<Name>) -> Self {
        ElementMap { keys, names: NameCache::default() }
    }
}

impl RowOperator for ElementMap {
    fn apply(&mut self, rows: Rows, environment: &Environment) -> Result<Rows> {
        let kinds = Kinds::of(&rows.objects);
        refuse_strangers(&kinds, "elementMap()")?;
        let mut maps = vec![Entries::new(); rows.len()];
        put_tokens(&kinds, environment, &mut self.names, &mut maps)?;
        put_ends(&kinds, environment, &mut self.names, &mut maps)?;
        let view = &*environment.view;
        let keys = known_keys(&self.keys, view);
        read_properties(&kinds, keys.as_deref(), environment, |row, property| {
            let (key, value) = match property {
                Met::Vertex(_, p) | Met::Edge(_, p) => (p.key, p.value),
                Met::Meta(_, key, value) => (key, value.clone()),
            };
            put(&mut maps[row], self.names.key_value(key, view), value);
        })?;
        drop(kinds);
        Ok(rows.with_objects(into_column(maps)))
    }
}

/// Whether a token is an id or what says of what kind the element is, and is asked for.
fn is_asked_for(token: &Value, ids: bool, labels: bool) -> bool {
    match token {
        Value::Token(Token::Id) => ids,
        _ => labels,
    }
}

fn into_column(maps: Vec<Entries>) -> Column {
    Column::Values(maps.into_iter().map(Value::map).collect())
}

/// Puts an entry into a map, in place of an older one under the same key.
fn put(map: &mut Entries, key: Value, value: Value) {
    match map.iter_mut().find(|(k, _)| *k == key) {
        Some(entry) => entry.1 = value,
        None => map.push((key, value)),
    }
}

fn put_token(map: &mut Entries, token: Token, value: Value) {
    map.push((Value::Token(token), value));
}

/// Id and label of elements; id, key and value of vertex properties.
fn put_tokens(kinds: &Kinds<'_>, environment: &Environment, names: &mut NameCache, maps: &mut [Entries]) -> Result<()> {
    let view = &*environment.view;
    let vertices = ids_and_labels(view, names, &kinds.vertices.items)?;
    for (at, (id, label)) in vertices.into_iter().enumerate() {
        let map = &mut maps[kinds.vertices.row(at)];
        put_token(map, Token::Id, id);
        put_token(map, Token::Label, label);
    }
    let (mut ids, mut labels) = (Vec::new(), Vec::new());
    view.edge_user_ids(&kinds.edges.items, &mut ids)?;
    view.edge_labels(&kinds.edges.items, &mut labels)?;
    for (at, (id, label)) in ids.into_iter().zip(labels).enumerate() {
        let map = &mut maps[kinds.edges.row(at)];
        put_token(map, Token::Id, id);
        put_token(map, Token::Label, Value::String(names.label(label, view)));
    }
    let (rows, properties): (Vec<usize>, Vec<Value>) =
        kinds.others.iter().map(|(row, value)| (*row, (*value).clone())).unzip();
    let properties = Column::Values(properties);
    for token in [Token::Id, Token::Key, Token::Value] {
        let slot = crate::lookup::token_slot(&properties, token, environment)?;
        for (row, value) in rows.iter().zip(slot) {
            maps[*row].extend(value.map(|value| (Value::Token(token), value)));
        }
    }
    Ok(())
}

/// Id and label of each vertex.
fn ids_and_labels(view: &dyn GraphView, names: &mut NameCache, vertices: &[VertexId]) -> Result<Vec<(Value, Value)>> {
    let (mut ids, mut labels) = (Vec::new(), Vec::new());
    view.vertex_user_ids(vertices, &mut ids)?;
    view.vertex_labels(vertices, &mut labels)?;
    Ok(ids.into_iter().zip(labels).map(|(id, label)| (id, Value::String(names.label(label, view)))).collect())
}

/// Target and source of edges, as maps of their id and label.
fn put_ends(kinds: &Kinds<'_>, environment: &Environment, names: &mut NameCache, maps: &mut [Entries]) -> Result<()> {
    let view = &*environment.view;
    let (mut sources, mut targets) = (Vec::new(), Vec::new());
    view.edge_ends(&kinds.edges.items, &mut sources, &mut targets)?;
    for (direction, vertices) in [(Direction::In, targets), (Direction::Out, sources)] {
        for (at, (id, label)) in ids_and_labels(view, names, &vertices)?.into_iter().enumerate() {
            let end = vec![(Value::Token(Token::Id), id), (Value::Token(Token::Label), label)];
            maps[kinds.edges.row(at)].push((Value::Direction(direction), Value::map(end)));
        }
    }
    Ok(())
}

/// Puts what a `by()` made of a map's values in their place.
///
/// Slot 0 of a row is a list of `[index, value]` pairs: the position of an entry and its new value. Entries
/// without a pair (the `by()` was unproductive) are left out.
pub struct ReplaceMapValues;

impl RowOperator for ReplaceMapValues {
    fn apply(&mut self, mut rows: Rows, environment: &Environment) -> Result<Rows> {
        let mut maps = Vec::with_capacity(rows.len());
        for row in 0..rows.len() {
            let Some(Value::List(pairs)) = rows.slot(0, row) else {
                return Err(Error::bug("the new values of a map are a list in slot 0"));
            };
            maps.push(replaced(&rows.object(row), pairs)?);
        }
        if environment.whole_paths()
            && let Some(paths) = &mut rows.path
        {
            // The step made the map and the `by()` belongs to it: one object of the path, not two.
            for (path, map) in paths.iter_mut().zip(&maps) {
                let renewed = |node: Arc<PathNode>| PathNode::extend(node.previous.clone(), map.clone(), &node.labels);
                *path = path.take().and_then(renewed);
            }
        }
        Ok(rows.with_objects(Column::Values(maps)))
    }
}

fn replaced(map: &Value, pairs: &[Value]) -> Result<Value> {
    let Value::Map(entries) = map else {
        return Err(Error::bug(format!("values of a map are replaced, but here is a {}", map.type_name())));
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
    use crate::path;
    use crate::row::fake_view::{Modern, environment_of, environment_with, modern};
    use mangrove_plan::physical::{PathRequirement, Requirements};

    fn run(graph: &Modern, mut operator: impl RowOperator, objects: Vec<Value>) -> Result<Vec<Value>> {
        let rows = Rows::of(Column::from_values(objects));
        Ok(operator.apply(rows, &environment_of(graph))?.objects.into_values())
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
        let maps =
            run(&g, ValueMap::new(Vec::new(), MapTokens::default()), vec![g.marko.into(), g.knows.into(), g.nick(1)])
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
            ValueMap::new(vec!["age".into()], MapTokens { ids: true, labels: true }),
            vec![g.josh.into(), g.lop.into()],
        )
        .unwrap();
        let josh = vec![token(Token::Id, 2_i64), token(Token::Label, "person"), entry("age", vec![32.into()])];
        let lop = vec![token(Token::Id, 3_i64), token(Token::Label, "software")];
        assert_eq!(maps, vec![Value::map(josh), Value::map(lop)]);
        assert!(run(&g, ValueMap::new(Vec::new(), MapTokens::default()), vec![1.into()]).is_err());
    }

    #[test]
    fn element_maps_have_the_ends_of_edges_and_the_last_of_several_values() {
        let g = modern();
        let maps = run(
            &g,
            ElementMap::new(vec!["nick".into(), "weight".into()]),
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
        let environment = environment_with(&g, Requirements { path: PathRequirement::Full, ..Requirements::default() });
        let map = Value::map(vec![entry("a", 1), entry("b", 2)]);
        let mut rows = Rows::of(Column::Values(vec![map.clone()]));
        let start = PathNode::extend(None, g.marko.into(), &[]);
        rows.path = Some(vec![PathNode::extend(start, map, &["m".into()])]);
        let pair = Value::list(vec![Value::I64(1), Value::from("two")]);
        rows.slots = vec![vec![Some(Value::list(vec![pair]))]];
        let rows = ReplaceMapValues.apply(rows, &environment).unwrap();
        let made = Value::map(vec![entry("b", "two")]);
        assert_eq!(rows.object(0), made);
        let path = path::to_value(&rows.path(0));
        assert_eq!(path.objects, vec![g.marko.into(), made]);
        assert_eq!(path.labels, vec![vec![], vec![Name::from("m")]]);
    }
}
