//! Looks up the values that a `by()` takes of objects, a column at a time: property values, tokens, and the keys and
//! values of maps.
//!
//! The lookup of a column reads the graph once for all its vertices and once for all its edges. The returned
//! [`ComputedColumn`] has an entry for each object, in the same order. The entry is `None` if the object lacks the
//! value (the `by()` is *unproductive* for it). An object of a kind that can never have the value is a mistake in the
//! query: the lookup fails.

use mangrove_graph::{Error, GraphView, Result, Token, Value, ValueRows, vertex_property_id};
use mangrove_gremlin::Column as MapColumn;
use mangrove_plan::logical::Name;

use crate::context::execution::ExecutionContext;
use crate::context::type_name::a_type;
use crate::rows::current::current;
use crate::rows::kinds::Kinds;
use crate::rows::{ComputedColumn, ObjectColumn};
use crate::values::collection::branches;
use crate::values::names::NameCache;

/// `by("key")`: the value of an element's property, of a vertex property's meta-property, or of a map's entry. As in
/// TinkerPop, it fails for a vertex with several values under the key.
pub(crate) fn compute_key(objects: &ObjectColumn, key: &Name, context: &ExecutionContext) -> Result<ComputedColumn> {
    let view = &*context.view;
    let id = view.key_of(key);
    if let (ObjectColumn::Vertices(vertices), Some(id)) = (objects, id) {
        let mut values = ValueRows::default();
        view.vertex_values(vertices, id, &mut values)?;
        return only_values(values, vertices.len(), key);
    }
    if let (ObjectColumn::Edges(edges), Some(id)) = (objects, id) {
        let mut values = ValueRows::default();
        view.edge_values(edges, id, &mut values)?;
        return only_values(values, edges.len(), key);
    }
    let objects = current(objects, context)?;
    let kinds = Kinds::of(&objects);
    let mut column: ComputedColumn = vec![None; objects.len()];
    if let Some(id) = id {
        let mut values = ValueRows::default();
        view.vertex_values(&kinds.vertices.items, id, &mut values)?;
        for (at, value) in values.row.drain(..).zip(values.value.drain(..)) {
            put_only(&mut column, kinds.vertices.row(at as usize), value, key)?;
        }
        view.edge_values(&kinds.edges.items, id, &mut values)?;
        for (at, value) in values.row.into_iter().zip(values.value) {
            put_only(&mut column, kinds.edges.row(at as usize), value, key)?;
        }
    }
    for (row, object) in kinds.others() {
        column[row] = match object {
            Value::Map(entries) => {
                let named = |name: &Value| matches!(name, Value::String(text) if text == key);
                let found = entries.iter().find(|(name, _)| named(name)).map(|(_, value)| value.clone());
                // Like a Java map, it gives null for a missing key.
                Some(found.unwrap_or(Value::Null))
            }
            Value::Entry(entry) if matches!(&entry.0, Value::String(text) if text == key) => Some(entry.1.clone()),
            Value::Entry(_) => None,
            Value::VertexProperty(property) => {
                property.meta.iter().find(|(k, _)| Some(*k) == id).map(|(_, value)| value.clone())
            }
            other => {
                return Err(Error::evaluation(format!(
                    "by(\"{key}\") takes a property of an element or an entry of a map; here is {}",
                    a_type(other)
                )));
            }
        };
    }
    Ok(column)
}

/// As [`compute_key`], for an order of work: takes the first of several values, and nothing of an object that cannot
/// have the key.
pub(crate) fn compute_priority(
    objects: &ObjectColumn,
    key: &Name,
    context: &ExecutionContext,
) -> Result<ComputedColumn> {
    let view = &*context.view;
    let id = view.key_of(key);
    let objects = current(objects, context)?;
    let kinds = Kinds::of(&objects);
    let mut column: ComputedColumn = vec![None; objects.len()];
    if let Some(id) = id {
        let mut values = ValueRows::default();
        view.vertex_values(&kinds.vertices.items, id, &mut values)?;
        for (at, value) in values.row.drain(..).zip(values.value.drain(..)) {
            column[kinds.vertices.row(at as usize)].get_or_insert(value);
        }
        view.edge_values(&kinds.edges.items, id, &mut values)?;
        for (at, value) in values.row.into_iter().zip(values.value) {
            column[kinds.edges.row(at as usize)].get_or_insert(value);
        }
    }
    for (row, object) in kinds.others() {
        let is_key = |name: &Value| matches!(name, Value::String(text) if text == key);
        column[row] = match object {
            Value::Map(entries) => entries.iter().find(|(name, _)| is_key(name)).map(|(_, value)| value.clone()),
            Value::Entry(entry) if is_key(&entry.0) => Some(entry.1.clone()),
            Value::VertexProperty(property) => {
                property.meta.iter().find(|(k, _)| Some(*k) == id).map(|(_, value)| value.clone())
            }
            _ => None,
        };
    }
    Ok(column)
}

/// Returns a column with the value of each row. Fails if a row has several.
fn only_values(values: ValueRows, rows: usize, key: &Name) -> Result<ComputedColumn> {
    let is_one_each = values.row.len() == rows && (0..).zip(&values.row).all(|(n, row)| n == *row);
    if is_one_each {
        return Ok(values.value.into_iter().map(Some).collect());
    }
    let mut column: ComputedColumn = vec![None; rows];
    for (row, value) in values.row.into_iter().zip(values.value) {
        put_only(&mut column, row as usize, value, key)?;
    }
    Ok(column)
}

/// Gives a row its value under a key. Fails if it has one already.
pub(crate) fn put_only(column: &mut ComputedColumn, row: usize, value: Value, key: &Name) -> Result<()> {
    match column[row].replace(value) {
        None => Ok(()),
        Some(_) => Err(Error::evaluation(format!(
            "by(\"{key}\") meets a vertex with several values under the key; by(values(\"{key}\")) takes the first, \
             by(values(\"{key}\").fold()) all"
        ))),
    }
}

/// Returns a token of each object: `by(T.id)`, `id()`, `by(T.label)`, `label()` and so on.
pub(crate) fn compute_token(
    objects: &ObjectColumn,
    token: Token,
    context: &ExecutionContext,
) -> Result<ComputedColumn> {
    let view = &*context.view;
    let kinds = Kinds::of(objects);
    let mut column: ComputedColumn = vec![None; objects.len()];
    let mut names = NameCache::default();
    match token {
        Token::Id => {
            let mut ids = Vec::new();
            view.vertex_user_ids(&kinds.vertices.items, &mut ids)?;
            for (at, id) in ids.drain(..).enumerate() {
                column[kinds.vertices.row(at)] = Some(id);
            }
            view.edge_user_ids(&kinds.edges.items, &mut ids)?;
            for (at, id) in ids.into_iter().enumerate() {
                column[kinds.edges.row(at)] = Some(id);
            }
        }
        Token::Label => {
            let mut sets = Vec::new();
            view.vertex_labels(&kinds.vertices.items, &mut sets)?;
            for (at, set) in sets.drain(..).enumerate() {
                column[kinds.vertices.row(at)] = Some(Value::String(names.label(set, view)));
            }
            view.edge_labels(&kinds.edges.items, &mut sets)?;
            for (at, set) in sets.into_iter().enumerate() {
                column[kinds.edges.row(at)] = Some(Value::String(names.label(set, view)));
            }
        }
        Token::Key | Token::Value if !kinds.vertices.is_empty() => return Err(no_token(token, "vertex")),
        Token::Key | Token::Value if !kinds.edges.is_empty() => return Err(no_token(token, "edge")),
        Token::Key | Token::Value => {}
    }
    property_tokens(&kinds, token, view, &mut names, &mut column)?;
    Ok(column)
}

/// Fills in the tokens of vertex properties and properties. Fails for any other object that is not a vertex or edge.
fn property_tokens(
    kinds: &Kinds<'_>,
    token: Token,
    view: &dyn GraphView,
    names: &mut NameCache,
    column: &mut ComputedColumn,
) -> Result<()> {
    // The id of a vertex property contains that of its vertex. All are read at once.
    let mut owner_ids = Vec::new();
    if token == Token::Id {
        let owners: Vec<_> = kinds
            .others()
            .filter_map(|(_, object)| match object {
                Value::VertexProperty(property) => Some(property.vertex),
                _ => None,
            })
            .collect();
        view.vertex_user_ids(&owners, &mut owner_ids)?;
    }
    let mut owner_ids = owner_ids.into_iter();
    for (row, object) in kinds.others() {
        column[row] = Some(match (object, token) {
            (Value::VertexProperty(property), Token::Id) => {
                let owner = owner_ids.next().ok_or_else(|| Error::bug("the view gave fewer ids than vertices"))?;
                vertex_property_id(&owner, &names.key(property.key, view), property.ordinal)
            }
            (Value::VertexProperty(property), Token::Label | Token::Key) => names.key_value(property.key, view),
            (Value::VertexProperty(property), Token::Value) => property.value.clone(),
            (Value::Property(property), Token::Key) => names.key_value(property.key, view),
            (Value::Property(property), Token::Value) => property.value.clone(),
            (other, _) => return Err(no_token(token, other.type_name())),
        });
    }
    Ok(())
}

/// The error for an object of a kind that never has the token.
fn no_token(token: Token, kind: &str) -> Error {
    Error::evaluation(match token {
        Token::Id => format!("only vertices, edges and vertex properties have an id; here is a {kind}"),
        Token::Label => format!("only vertices, edges and vertex properties have a label; here is a {kind}"),
        Token::Key => format!("only properties have a key; here is a {kind}"),
        Token::Value => format!("only properties have a value(); here is a {kind}: use values() for an element's"),
    })
}

/// `by(keys)` and `by(values)`: the keys or values of maps, of the entries of a map after `unfold()`, of trees, and of
/// paths (labels and objects).
pub(crate) fn compute_map_column(objects: &ObjectColumn, column: MapColumn) -> Result<ComputedColumn> {
    (0..objects.len()).map(|row| column_of(&objects.get(row), column).map(Some)).collect()
}

/// Returns the keys or values of one object.
pub(crate) fn column_of(object: &Value, column: MapColumn) -> Result<Value> {
    Ok(match (object, column) {
        (Value::Entry(entry), MapColumn::Keys) => entry.0.clone(),
        (Value::Entry(entry), MapColumn::Values) => entry.1.clone(),
        (Value::Map(entries), MapColumn::Keys) => {
            Value::Set(entries.iter().map(|(k, _)| k.clone()).collect::<Vec<_>>().into())
        }
        (Value::Map(entries), MapColumn::Values) => Value::list(entries.iter().map(|(_, v)| v.clone()).collect()),
        (Value::Tree(tree), MapColumn::Keys) => {
            Value::Set(tree.branches.iter().map(|(k, _)| k.clone()).collect::<Vec<_>>().into())
        }
        (Value::Tree(tree), MapColumn::Values) => Value::list(branches(tree).map(|(_, below)| below).collect()),
        (Value::Path(path), MapColumn::Keys) => {
            let labels = |of: &Vec<Name>| Value::Set(of.iter().cloned().map(Value::String).collect::<Vec<_>>().into());
            Value::list(path.labels.iter().map(labels).collect())
        }
        (Value::Path(path), MapColumn::Values) => Value::list(path.objects.clone()),
        (other, _) => {
            return Err(Error::evaluation(format!(
                "only maps, trees and paths have {}; here is {}",
                column.name(),
                a_type(other)
            )));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_view::{context_of, modern};
    use mangrove_graph::PathValue;
    use std::sync::Arc;

    #[test]
    fn a_key_is_taken_of_elements_maps_and_vertex_properties() {
        let g = modern();
        let context = context_of(&g);
        let map = Value::map(vec![(Value::from("name"), Value::I32(5)), (Value::from("x"), Value::Null)]);
        let objects = ObjectColumn::Values(vec![map, g.marko.into(), g.knows.into(), g.nick(1)]);
        let column = |key: &str| compute_key(&objects, &key.into(), &context).unwrap();
        assert_eq!(column("name"), vec![Some(Value::I32(5)), Some("marko".into()), None, None]);
        let error = compute_key(&objects, &"nick".into(), &context).unwrap_err();
        assert!(error.message().contains("several values under the key"), "{error}");
        assert_eq!(column("since"), vec![Some(Value::Null), None, None, Some(Value::I32(2001))]);
        assert_eq!(column("x"), vec![Some(Value::Null), None, None, None]);
        let error = compute_key(&ObjectColumn::Values(vec![Value::I32(1)]), &"k".into(), &context).unwrap_err();
        assert!(error.message().contains("by(\"k\")") && error.message().contains("an int"), "{error}");
        assert!(compute_key(&ObjectColumn::Values(vec![g.weight()]), &"k".into(), &context).is_err());
    }

    #[test]
    fn tokens_belong_to_their_kinds() {
        let g = modern();
        let context = context_of(&g);
        let of =
            |objects: &[Value], token| compute_token(&ObjectColumn::from_values(objects.to_vec()), token, &context);
        let elements = [g.josh.into(), g.created.into(), g.nick(1), g.nick(0)];
        let some = |values: Vec<Value>| values.into_iter().map(Some).collect::<ComputedColumn>();
        assert_eq!(
            of(&elements, Token::Id).unwrap(),
            some(vec![2_i64.into(), 102_i64.into(), "1:nick:1".into(), "1:nick".into()])
        );
        assert_eq!(
            of(&elements, Token::Label).unwrap(),
            some(vec!["person".into(), "created".into(), "nick".into(), "nick".into()])
        );
        assert_eq!(of(&[g.nick(1), g.weight()], Token::Key).unwrap(), some(vec!["nick".into(), "weight".into()]));
        assert_eq!(of(&[g.nick(1), g.weight()], Token::Value).unwrap(), some(vec!["mk".into(), 0.5.into()]));
        assert!(of(&elements, Token::Key).is_err());
        assert!(of(&[g.weight()], Token::Id).is_err());
        assert!(of(&[Value::I32(1)], Token::Label).is_err());
    }

    #[test]
    fn columns_of_maps_entries_and_paths() {
        let of = |value, column| {
            compute_map_column(&ObjectColumn::Values(vec![value]), column).map(|mut column| column.remove(0).unwrap())
        };
        let map = Value::map(vec![("a".into(), 1.into()), ("b".into(), 2.into())]);
        assert_eq!(of(map.clone(), MapColumn::Keys).unwrap(), Value::Set(vec!["a".into(), "b".into()].into()));
        assert_eq!(of(map, MapColumn::Values).unwrap(), Value::list(vec![1.into(), 2.into()]));
        let entry = Value::Entry(Arc::new(("a".into(), 1.into())));
        assert_eq!(of(entry.clone(), MapColumn::Keys).unwrap(), "a".into());
        assert_eq!(of(entry, MapColumn::Values).unwrap(), 1.into());
        let path = PathValue { objects: vec![1.into()], labels: vec![vec!["x".into()]] };
        let labels = Value::list(vec![Value::Set(vec!["x".into()].into())]);
        assert_eq!(of(Value::Path(Arc::new(path)), MapColumn::Keys).unwrap(), labels);
        assert!(of(1.into(), MapColumn::Keys).is_err());
    }
}
