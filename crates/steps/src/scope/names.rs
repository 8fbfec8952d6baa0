//! What a name means to a row: a key of its map, a side effect, or a label of its path.

use mangrove_graph::Value;
use mangrove_gremlin::Pop;
use mangrove_plan::logical::{Lookup, Name};

use crate::environment::Environment;
use crate::path::newest_first;
use crate::rows::{Column, Rows};

/// The value of a name for a row: of its map, else of the side effects, else of its path.
pub fn named_value(rows: &Rows, row: usize, name: &Name, pop: Option<Pop>, environment: &Environment) -> Option<Value> {
    own_entry(rows, row, name).or_else(|| environment.side_effects.get(name)).or_else(|| labeled(rows, row, name, pop))
}

/// The value of a name for every row that it has one for, with the row's number; without a name, the row's object. As
/// [`named_value`], with one look at the side effects.
pub fn named_values(
    rows: &Rows,
    name: Option<&Name>,
    lookup: Lookup,
    environment: &Environment,
) -> (Vec<u32>, Vec<Value>) {
    let Some(name) = name else { return ((0..rows.len() as u32).collect(), rows.objects.clone().into_values()) };
    let shared = match lookup {
        Lookup::Scope(_) => environment.side_effects.get(name),
        Lookup::Path => None,
    };
    let value = |row: usize| match lookup {
        Lookup::Scope(pop) => {
            own_entry(rows, row, name).or_else(|| shared.clone()).or_else(|| labeled(rows, row, name, pop))
        }
        Lookup::Path => labeled(rows, row, name, None),
    };
    (0..rows.len()).filter_map(|row| Some((row as u32, value(row)?))).unzip()
}

/// The entry of a row's map under a name.
fn own_entry(rows: &Rows, row: usize, name: &Name) -> Option<Value> {
    let Column::Values(values) = &rows.objects else { return None };
    let Value::Map(entries) = &values[row] else { return None };
    let (_, value) = entries.iter().find(|(key, _)| matches!(key, Value::String(key) if key == name))?;
    Some(value.clone())
}

/// What a row's path has under a label.
fn labeled(rows: &Rows, row: usize, name: &Name, pop: Option<Pop>) -> Option<Value> {
    let path = rows.path.as_ref()?.get(row)?;
    let mut found = newest_first(path).filter(|n| n.labels.contains(name)).map(|n| n.object.clone());
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
