//! The value of a name for a row, as `select()` and `where()` look it up: an entry of the row's map, else a side
//! effect, else a label of its path.

use mangrove_graph::Value;
use mangrove_gremlin::Pop;
use mangrove_plan::logical::{Lookup, Name};

use crate::context::execution::ExecutionContext;
use crate::rows::batch::Rows;
use crate::rows::column::ObjectColumn;
use crate::rows::path::newest_first;

/// Returns the value of a name for a row.
pub(crate) fn named_value(
    rows: &Rows,
    row: usize,
    name: &Name,
    pop: Option<Pop>,
    context: &ExecutionContext,
) -> Option<Value> {
    own_entry(rows, row, name).or_else(|| context.side_effects.get(name)).or_else(|| labeled(rows, row, name, pop))
}

/// Returns the values of a name for all rows that have one, with these rows; without a name, the objects of all rows.
/// As [`named_value`], with a single look-up of the side effect.
pub(crate) fn named_values(
    rows: &Rows,
    name: Option<&Name>,
    lookup: Lookup,
    context: &ExecutionContext,
) -> (Vec<u32>, Vec<Value>) {
    let Some(name) = name else { return ((0..rows.len() as u32).collect(), rows.objects.clone().into_values()) };
    let shared = match lookup {
        Lookup::Scope(_) => context.side_effects.get(name),
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

/// Returns the entry of a row's map under a name.
fn own_entry(rows: &Rows, row: usize, name: &Name) -> Option<Value> {
    let ObjectColumn::Values(values) = &rows.objects else { return None };
    let Value::Map(entries) = &values[row] else { return None };
    let (_, value) = entries.iter().find(|(key, _)| matches!(key, Value::String(key) if key == name))?;
    Some(value.clone())
}

/// Returns the objects of a row's path under a label.
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
