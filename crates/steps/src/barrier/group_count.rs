//! `groupCount()`: how often each key occurs.

use mangrove_flow::{GroupId, Operator, Output};
use mangrove_graph::compare::Equivalent;
use mangrove_graph::{Error, Result, Value};
use mangrove_plan::logical::Name;

use crate::barrier::held::{ByInstance, FastMap, HeldRows, rows_by_instance};
use crate::environment::Environment;
use crate::rows::{Remember, Rows};

/// Counts by key in the order in which keys first came.
#[derive(Default)]
pub struct Counts {
    places: FastMap<Equivalent, usize>,
    entries: Vec<(Value, u64)>,
}

impl Counts {
    fn add(&mut self, key: &Value, bulk: u64) -> Result<()> {
        let place = *self.places.entry(Equivalent(key.clone())).or_insert_with(|| {
            self.entries.push((key.clone(), 0));
            self.entries.len() - 1
        });
        let count = &mut self.entries[place].1;
        *count = count
            .checked_add(bulk)
            .filter(|n| i64::try_from(*n).is_ok())
            .ok_or_else(|| Error::evaluation("long overflow: groupCount() needs more than 63 bits"))?;
        Ok(())
    }

    fn into_value(self) -> Value {
        Value::map(self.entries.into_iter().map(|(key, count)| (key, Value::I64(count as i64))).collect())
    }
}

/// About what a key costs.
const ENTRY_BYTES: u64 = 112;

/// Counts rows by slot 0. With a side effect the counts go there and the rows go on.
pub struct GroupCount {
    side_effect: Option<Name>,
    remember: Remember,
    counts: ByInstance<Counts>,
    held: HeldRows,
}

impl GroupCount {
    /// Counts for the result, or for a side effect.
    pub fn new(side_effect: Option<Name>, remember: Remember) -> Self {
        GroupCount { side_effect, remember, counts: ByInstance::default(), held: HeldRows::default() }
    }
}

impl Operator<Rows> for GroupCount {
    fn begin(&mut self, environment: &Environment) -> Result<()> {
        environment.side_effects.begin_map(self.side_effect.as_ref())
    }

    fn rest(&mut self) -> bool {
        self.counts.is_empty() && self.held.is_empty()
    }

    fn receive(&mut self, _port: u8, group: GroupId, mut batch: Rows, out: &mut Output<'_, Rows>) -> Result<()> {
        let states = self.counts.group(group);
        let mut new = 0;
        for row in 0..batch.len() {
            // An unproductive by() drops the row.
            let Some(key) = batch.slot(0, row) else { continue };
            let counts = ByInstance::entry(states, batch.tag(row), Counts::default);
            let before = counts.entries.len();
            counts.add(key, batch.bulk(row))?;
            new += counts.entries.len() - before;
        }
        self.counts.charge(group, new as u64 * ENTRY_BYTES, out)?;
        if self.side_effect.is_some() {
            batch.slots.clear();
            self.held.add(group, batch, out)?;
        }
        Ok(())
    }

    fn finish(&mut self, _port: u8, group: GroupId, instances: u32, out: &mut Output<'_, Rows>) -> Result<()> {
        let states = self.counts.take(group, instances, out);
        if let Some(name) = &self.side_effect {
            for counts in states.into_iter().flatten() {
                out.surroundings().side_effects.update(name, |old| add_counts(old, counts, name))?;
            }
            for chunk in self.held.take(group, out).into_iter().flat_map(Rows::chunks) {
                out.emit(0, group, chunk)?;
            }
            return out.finish_all(group, instances);
        }
        let results = states.into_iter().map(|c| Some(c.unwrap_or_default().into_value())).collect();
        let mut rows = rows_by_instance(results, instances, out.surroundings());
        rows.remember(&self.remember);
        for chunk in rows.chunks() {
            out.emit(0, group, chunk)?;
        }
        out.finish_all(group, instances)
    }
}

fn add_counts(old: Option<Value>, more: Counts, name: &Name) -> Result<Value> {
    let mut counts = Counts::default();
    match old {
        None => {}
        Some(Value::Map(entries)) => {
            for (key, count) in entries.iter() {
                let count = mangrove_graph::numeric::integer(count).and_then(|n| u64::try_from(n).ok());
                let count =
                    count.ok_or_else(|| Error::evaluation(format!("the side effect `{name}` holds no counts")))?;
                counts.add(key, count)?;
            }
        }
        Some(other) => {
            return Err(Error::evaluation(format!(
                "groupCount(\"{name}\") needs a map in the side effect and met a {}",
                other.type_name()
            )));
        }
    }
    for (key, count) in &more.entries {
        counts.add(key, *count)?;
    }
    Ok(counts.into_value())
}
