//! What a name means to a row: a key of its map, a side effect, or a label of its path.

use mangrove_graph::Value;
use mangrove_gremlin::Pop;
use mangrove_plan::logical::Name;

use crate::environment::Environment;
use crate::path::newest_first;
use crate::rows::{Column, Rows};

/// The value of a name for a row; without a name, the row's object.
pub fn named_value(
    rows: &Rows,
    row: usize,
    name: Option<&Name>,
    pop: Option<Pop>,
    environment: &Environment,
) -> Option<Value> {
    let Some(name) = name else { return Some(rows.object(row)) };
    if let Column::Values(values) = &rows.objects
        && let Value::Map(entries) = &values[row]
        && let Some((_, value)) = entries.iter().find(|(k, _)| matches!(k, Value::String(k) if k == name))
    {
        return Some(value.clone());
    }
    if let Some(value) = environment.side_effects.get(name) {
        return Some(value);
    }
    let path = rows.path(row);
    let mut found = newest_first(&path).filter(|n| n.labels.contains(name)).map(|n| n.object.clone());
    match pop.unwrap_or(Pop::Last) {
        Pop::Last => found.next(),
        Pop::First => found.last(),
        Pop::All | Pop::Mixed => {
            let mut all: Vec<Value> = found.collect();
            all.reverse();
            match (all.len(), pop) {
                (0, _) => None,
                (1, Some(Pop::Mixed)) => all.pop(),
                _ => Some(Value::list(all)),
            }
        }
    }
}
