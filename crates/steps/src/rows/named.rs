//! The value of a name for a row, as `select()` and `where()` look it up: an entry of the row's map, else a side
//! effect, else the row's object under that label.

use std::borrow::Cow;

use mangrove_graph::{Result, Value};
use mangrove_gremlin::Pop;
use mangrove_plan::logical::{Lookup, Name};

use crate::context::execution::ExecutionContext;
use crate::limits::meter::Meter;
use crate::rows::batch::Rows;
use crate::rows::binding::BindingColumn;
use crate::rows::column::ObjectColumn;
use crate::rows::path::newest_first;

/// The values of one name for the rows of a batch.
pub(crate) struct NamedValues<'a> {
    rows: &'a Rows,
    name: &'a Name,
    lookup: Lookup,
    /// The value of the side effect, if the name is looked for there and stands for one.
    side_effect: Option<Value>,
    /// True if the plan gave the label a binding column.
    is_bound: bool,
    /// Its binding column, if some row of the batch has an object there.
    binding: Option<&'a BindingColumn>,
}

impl<'a> NamedValues<'a> {
    /// Finds out where a name is looked up.
    pub fn of(rows: &'a Rows, name: &'a Name, lookup: Lookup, context: &ExecutionContext) -> Self {
        let side_effect = match lookup {
            Lookup::Scope(_) => context.side_effects.get(name),
            Lookup::Path => None,
        };
        let number = context.requirements.binding(name);
        let binding = number.and_then(|number| rows.binding(number));
        NamedValues { rows, name, lookup, side_effect, is_bound: number.is_some(), binding }
    }

    /// Returns the binding column if it holds the value of every row: no row has a map, and there is no side effect.
    pub fn column(&self) -> Option<&'a BindingColumn> {
        let may_be_maps = self.lookup != Lookup::Path && matches!(self.rows.objects, ObjectColumn::Values(_));
        self.binding.filter(|_| self.side_effect.is_none() && !may_be_maps)
    }

    /// Returns the value for a row, if it has one. Maps and paths may be long: the limits are checked on the way.
    pub fn get(&self, row: usize, meter: &mut Meter<'_>) -> Result<Option<Cow<'_, Value>>> {
        let pop = match self.lookup {
            Lookup::Path => return self.labeled(row, None, meter),
            Lookup::Scope(pop) => pop,
        };
        match self.own_entry(row, meter)?.or(self.side_effect.as_ref()) {
            Some(value) => Ok(Some(Cow::Borrowed(value))),
            None => self.labeled(row, pop, meter),
        }
    }

    /// Returns the entry of a row's map under the name.
    fn own_entry(&self, row: usize, meter: &mut Meter<'_>) -> Result<Option<&'a Value>> {
        let ObjectColumn::Values(values) = &self.rows.objects else { return Ok(None) };
        let Value::Map(entries) = &values[row] else { return Ok(None) };
        meter.pass(size_of_val(&entries[..]))?;
        let entry = entries.iter().find(|(key, _)| matches!(key, Value::String(key) if key == self.name));
        Ok(entry.map(|(_, value)| value))
    }

    /// Returns the object of a row under the label, or several of them, as `pop` chooses.
    fn labeled(&self, row: usize, pop: Option<Pop>, meter: &mut Meter<'_>) -> Result<Option<Cow<'a, Value>>> {
        if self.is_bound {
            // The plan binds a label only if nothing but its newest object is read.
            return Ok(match self.binding {
                None => None,
                Some(BindingColumn::Values(values)) => values[row].as_ref().map(Cow::Borrowed),
                Some(column) => column.get(row).map(Cow::Owned),
            });
        }
        let Some(path) = self.rows.path.as_ref().and_then(|paths| paths.get(row)) else { return Ok(None) };
        // Newest first.
        let mut found: Vec<&'a Value> = Vec::new();
        for node in newest_first(path) {
            meter.pass(size_of::<Value>())?;
            if node.labels.contains(self.name) {
                match pop.unwrap_or(Pop::Last) {
                    Pop::Last => return Ok(Some(Cow::Borrowed(&node.object))),
                    Pop::First => found.clear(),
                    Pop::All | Pop::Mixed => meter.charge(size_of::<Value>())?,
                }
                found.push(&node.object);
            }
        }
        Ok(match (&found[..], pop) {
            ([], _) => None,
            ([one], Some(Pop::First | Pop::Mixed)) => Some(Cow::Borrowed(*one)),
            _ => Some(Cow::Owned(Value::list(found.into_iter().rev().cloned().collect()))),
        })
    }
}

/// Returns the values of a name for all rows that have one, with these rows; without a name, the objects of all rows.
pub(crate) fn named_values(
    rows: &Rows,
    name: Option<&Name>,
    lookup: Lookup,
    context: &ExecutionContext,
    meter: &mut Meter<'_>,
) -> Result<(Vec<u32>, Vec<Value>)> {
    let Some(name) = name else { return Ok(((0..rows.len() as u32).collect(), rows.objects.clone().into_values())) };
    let named = NamedValues::of(rows, name, lookup, context);
    let (mut kept, mut values) = (Vec::with_capacity(rows.len()), Vec::with_capacity(rows.len()));
    for row in 0..rows.len() {
        if let Some(value) = named.get(row, meter)? {
            kept.push(row as u32);
            values.push(value.into_owned());
        }
    }
    Ok((kept, values))
}
