//! Values as text for people, and results as rows and columns of values.
//!
//! The table, CSV and JSON outputs all take the names of columns and keys from here, so that they agree.

use mangrove::{Detached, Direction, PathValue, Token, Tree, Value};
use mangrove_gremlin::ProfileTable;

/// Results as rows of cells.
pub struct Grid {
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The cells; `None` if a map has no such key.
    pub rows: Vec<Vec<Option<Value>>>,
}

/// The name of the only column of results that are not all maps.
const RESULT: &str = "result";

impl Grid {
    /// If all results are maps with names as keys, each name is a column. If all are vertices or all are edges, and
    /// some have properties, each property key is a column. Any other results are one column.
    pub fn new(results: &[Value]) -> Self {
        if let Some(rows) = results.iter().map(element_as_map).collect::<Option<Vec<Value>>>()
            && is_of_one_kind(results)
        {
            return Self::of_maps(&rows);
        }
        Self::of_maps(results)
    }

    fn of_maps(results: &[Value]) -> Self {
        let mut columns: Vec<String> = Vec::new();
        for result in results {
            let Some(names) = names(result) else { return Self::single(results) };
            for name in names {
                if !columns.contains(&name) {
                    columns.push(name);
                }
            }
        }
        if columns.is_empty() {
            return Self::single(results);
        }
        let rows = results.iter().map(|result| cells(result, &columns)).collect();
        Grid { columns, rows }
    }

    fn single(results: &[Value]) -> Self {
        let rows = results.iter().map(|result| vec![Some(result.clone())]).collect();
        Grid { columns: vec![RESULT.to_owned()], rows }
    }
}

/// Returns true if all elements are vertices or all are edges, and some have properties.
fn is_of_one_kind(elements: &[Value]) -> bool {
    let mut vertices = 0;
    let mut has_properties = false;
    for element in elements {
        let Value::Detached(element) = element else { return false };
        match &**element {
            Detached::Vertex { properties, .. } => {
                vertices += 1;
                has_properties |= !properties.is_empty();
            }
            Detached::Edge { properties, .. } => has_properties |= !properties.is_empty(),
            _ => return false,
        }
    }
    has_properties && (vertices == 0 || vertices == elements.len())
}

/// A vertex or an edge as a map: its id, label, ends and properties.
fn element_as_map(value: &Value) -> Option<Value> {
    let Value::Detached(element) = value else { return None };
    let mut entries: Vec<(Value, Value)> = Vec::new();
    match &**element {
        Detached::Vertex { id, label, properties } => {
            let label = Value::String(label.clone());
            entries.extend([(Value::Token(Token::Id), id.clone()), (Value::Token(Token::Label), label)]);
            for property in properties {
                let key = Value::String(property.key.clone());
                // The first two entries are the id and the label.
                match entries.iter_mut().skip(2).find(|(known, _)| *known == key) {
                    // Several values of one property share a cell.
                    Some((_, first)) => *first = Value::from(format!("{}, {}", text(first), text(&property.value))),
                    None => entries.push((key, property.value.clone())),
                }
            }
        }
        Detached::Edge { id, label, source, target, properties } => {
            let label = Value::String(label.clone());
            entries.extend([(Value::Token(Token::Id), id.clone()), (Value::Token(Token::Label), label)]);
            entries.extend([("from".into(), source.0.clone()), ("to".into(), target.0.clone())]);
            entries.extend(properties.iter().map(|(key, value)| (Value::String(key.clone()), value.clone())));
        }
        _ => return None,
    }
    Some(Value::map(entries))
}

/// The keys of a map, if all are names.
fn names(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::Map(entries) => entry_names(entries),
        _ => None,
    }
}

fn cells(map: &Value, columns: &[String]) -> Vec<Option<Value>> {
    let mut cells = vec![None; columns.len()];
    if let Value::Map(entries) = map {
        let names = entry_names(entries).unwrap_or_default();
        for (name, (_, value)) in names.iter().zip(entries.iter()) {
            if let Some(at) = columns.iter().position(|column| column == name) {
                cells[at] = Some(value.clone());
            }
        }
    }
    cells
}

/// The names of the keys of a map as columns or in JSON, all different; `None` if a key is no name.
///
/// A map may have both `T.id` and a property `id`: the token is `id`, and the property `id (property)`.
pub fn entry_names(entries: &[(Value, Value)]) -> Option<Vec<String>> {
    let reserved: Vec<String> = entries
        .iter()
        .filter(|(key, _)| !matches!(key, Value::String(_)))
        .filter_map(|(key, _)| key_name(key))
        .collect();
    let mut names: Vec<String> = Vec::with_capacity(entries.len());
    for (key, _) in entries {
        let mut name = key_name(key)?;
        let is_text = matches!(key, Value::String(_));
        while (is_text && reserved.contains(&name)) || names.contains(&name) {
            name.push_str(" (property)");
        }
        names.push(name);
    }
    Some(names)
}

/// The name of a key; `None` if it is no name.
fn key_name(key: &Value) -> Option<String> {
    match key {
        Value::String(name) => Some(name.to_string()),
        Value::Token(token) => Some(token_name(*token).to_owned()),
        Value::Direction(direction) => Some(direction_name(*direction).to_owned()),
        _ => None,
    }
}

/// The name of a token, without Gremlin's `T.`.
pub fn token_name(token: Token) -> &'static str {
    match token {
        Token::Id => "id",
        Token::Label => "label",
        Token::Key => "key",
        Token::Value => "value",
    }
}

/// The name of a direction.
pub fn direction_name(direction: Direction) -> &'static str {
    match direction {
        Direction::Out => "OUT",
        Direction::In => "IN",
        Direction::Both => "BOTH",
    }
}

/// A value as text.
pub fn text(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(b) => b.to_string(),
        Value::I8(n) => n.to_string(),
        Value::I16(n) => n.to_string(),
        Value::I32(n) => n.to_string(),
        Value::I64(n) => n.to_string(),
        Value::BigInt(n) => n.to_string(),
        Value::F32(x) => float(f64::from(*x), format!("{x:?}")),
        Value::F64(x) => float(*x, format!("{x:?}")),
        Value::Decimal(n) => n.to_string(),
        Value::Char(c) => c.to_string(),
        Value::String(s) => s.to_string(),
        Value::Bytes(bytes) => format!("0x{}", bytes.iter().map(|b| format!("{b:02x}")).collect::<String>()),
        Value::Uuid(id) => id.to_string(),
        Value::DateTime(time) => time.to_string(),
        Value::Duration(time) => time.to_string(),
        Value::List(items) => list(items),
        Value::Set(items) => format!("{{{}}}", joined(items.iter().map(text))),
        Value::Map(entries) => {
            format!("{{{}}}", joined(entries.iter().map(|(key, value)| format!("{}: {}", text(key), text(value)))))
        }
        Value::BulkSet(items) => format!("{{{}}}", joined(items.iter().map(|(item, n)| format!("{}×{n}", text(item))))),
        Value::F32Array(items) => format!("[{}]", joined(items.iter().map(f32::to_string))),
        Value::Vertex(id) => format!("v[{}]", id.external()),
        Value::Edge(id) => format!("e[{}]", id.external()),
        Value::VertexProperty(property) => format!("vp[{}]", text(&property.value)),
        Value::Property(property) => format!("p[{}]", text(&property.value)),
        Value::Path(path) => list(&path.objects),
        Value::Tree(tree) => branches(tree),
        Value::Graph(graph) => format!("graph of {} vertices, {} edges", graph.vertices.len(), graph.edges.len()),
        Value::Token(token) => token_name(*token).to_owned(),
        Value::Direction(direction) => direction_name(*direction).to_owned(),
        Value::Detached(element) => detached(element),
        Value::TraversalMetrics(metrics) => ProfileTable(metrics).to_string(),
        // A value that this program does not know is shown as its type.
        other => format!("({})", other.type_name()),
    }
}

/// A tree: each key, with its branches in braces.
fn branches(tree: &Tree) -> String {
    let branch = |(key, below): &(Value, Tree)| match below.branches.is_empty() {
        true => text(key),
        false => format!("{}: {}", text(key), branches(below)),
    };
    format!("{{{}}}", joined(tree.branches.iter().map(branch)))
}

/// An element in Gremlin's notation: `v[1]`, `e[7][1-knows->2]`.
fn detached(element: &Detached) -> String {
    match element {
        Detached::Vertex { id, .. } => format!("v[{}]", text(id)),
        Detached::Edge { id, label, source, target, .. } => {
            format!("e[{}][{}-{label}->{}]", text(id), text(&source.0), text(&target.0))
        }
        Detached::VertexProperty(property) => format!("vp[{}->{}]", property.key, text(&property.value)),
        Detached::Property { key, value } => format!("p[{key}->{}]", text(value)),
    }
}

/// The shortest text that reads as the same number, with its point (1.0) or exponent.
fn float(x: f64, shortest: String) -> String {
    match x {
        f64::INFINITY => "Infinity".to_owned(),
        f64::NEG_INFINITY => "-Infinity".to_owned(),
        _ => shortest,
    }
}

fn list(items: &[Value]) -> String {
    format!("[{}]", joined(items.iter().map(text)))
}

fn joined(items: impl Iterator<Item = String>) -> String {
    items.collect::<Vec<_>>().join(", ")
}

/// The labels and objects of a path, for JSON.
pub fn labeled(path: &PathValue) -> impl Iterator<Item = (&[smol_str::SmolStr], &Value)> {
    path.labels.iter().map(Vec::as_slice).zip(&path.objects)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn elements_are_in_gremlins_notation() {
        let vertex = |id: i32| (Value::I32(id), "person".into());
        let edge = Detached::Edge {
            id: Value::I32(7),
            label: "knows".into(),
            source: vertex(1),
            target: vertex(2),
            properties: Vec::new(),
        };
        assert_eq!(text(&Value::Detached(Arc::new(edge))), "e[7][1-knows->2]");
        assert_eq!(text(&Value::list(vec![Value::F64(2.0), Value::F64(0.5), Value::from("x")])), "[2.0, 0.5, x]");
        assert_eq!(text(&Value::F64(f64::NAN)), "NaN");
        assert_eq!(text(&Value::map(vec![(Value::Token(Token::Id), Value::I32(1))])), "{id: 1}");
    }

    #[test]
    fn an_id_and_a_property_of_that_name_are_two_columns() {
        let map = Value::map(vec![("id".into(), Value::I32(7)), (Value::Token(Token::Id), Value::I32(1))]);
        let property = |key: &str| mangrove::DetachedVertexProperty {
            id: Value::I32(0),
            key: key.into(),
            value: Value::I32(7),
            meta: Vec::new(),
        };
        let vertex =
            Detached::Vertex { id: Value::I32(1), label: "a".into(), properties: vec![property("id"), property("x")] };
        for (result, columns) in [
            (map, vec!["id (property)", "id"]),
            (Value::Detached(Arc::new(vertex)), vec!["id", "label", "id (property)", "x"]),
        ] {
            let grid = Grid::new(&[result]);
            assert_eq!(grid.columns, columns);
            let cell = |name: &str| grid.rows[0][columns.iter().position(|column| *column == name).unwrap()].clone();
            assert_eq!((cell("id"), cell("id (property)")), (Some(Value::I32(1)), Some(Value::I32(7))));
        }
    }

    #[test]
    fn maps_become_columns_only_if_all_results_are_maps() {
        let map = |key: &str, n: i32| Value::map(vec![(Value::from(key), Value::I32(n))]);
        let grid = Grid::new(&[map("a", 1), map("b", 2)]);
        assert_eq!(grid.columns, ["a", "b"]);
        assert_eq!(grid.rows[1], [None, Some(Value::I32(2))]);
        assert_eq!(Grid::new(&[map("a", 1), Value::I32(2)]).columns, ["result"]);
        let keyed_by_number = Value::map(vec![(Value::I32(1), Value::I32(2))]);
        assert_eq!(Grid::new(&[keyed_by_number]).columns, ["result"]);
        assert_eq!(Grid::new(&[Value::map(Vec::new())]).columns, ["result"]);
    }
}
