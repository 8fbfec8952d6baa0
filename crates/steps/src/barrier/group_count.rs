//! `groupCount()`: how often each key occurs in an instance, as a result or in a side effect.
//!
//! If helpers have joined the run and rows come in no order, each thread counts in tables of its own ([`PerThread`]).
//! When the group has ended, the home adds their counts up, some thousand keys in each step.

use std::sync::Arc;

use mangrove_flow::{Cursor, Detail, GroupId, Operator, Output, QueryControl, Shared, SharedState, Step, TagSet};
use mangrove_graph::{Error, Need, Result, Value};
use mangrove_plan::logical::Name;

use crate::barrier::per_thread::PerThread;
use crate::barrier::shared_map::SharedMap;
use crate::computed::keys::{KeyReader, KeySource, KeyTable, KeyValues};
use crate::context::execution::ExecutionContext;
use crate::limits::meter::Meter;
use crate::limits::nesting;
use crate::limits::sizes::Sizes;
use crate::rows::held::{ByInstance, HeldRows, send_results};
use crate::rows::{NumberSlice, ObjectColumn, Remember, Rows, Tags};

/// The counts of one instance, by key, in the order in which keys first came.
#[derive(Default)]
pub(crate) struct KeyCounts {
    table: KeyTable,
    entries: Vec<(Value, u64)>,
    /// The bytes that the keys point to.
    held: u64,
    /// Scratch: the entry of each row of a batch.
    indexes: Vec<u32>,
}

fn count(count: &mut u64, bulk: u64) -> Result<()> {
    *count = count
        .checked_add(bulk)
        .filter(|n| i64::try_from(*n).is_ok())
        .ok_or_else(|| Error::evaluation("long overflow: groupCount() needs more than 63 bits"))?;
    Ok(())
}

impl KeyCounts {
    fn add(&mut self, key: &Value, bulk: u64) -> Result<()> {
        let entries = &mut self.entries;
        let index = self.table.number(0, key, |key| {
            entries.push((key.clone(), 0));
            entries.len() as u32 - 1
        });
        count(&mut self.entries[index as usize].1, bulk)
    }

    /// Counts numbers, one for each row.
    fn add_numbers(&mut self, numbers: NumberSlice<'_>, bulk: impl Fn(usize) -> u64) -> Result<()> {
        self.indexes.clear();
        let (entries, indexes) = (&mut self.entries, &mut self.indexes);
        let new = |_, key| {
            entries.push((key, 0));
            entries.len() as u32 - 1
        };
        self.table.number_all(numbers, |_| 0, new, |_, index| indexes.push(index));
        let mut counted = self.indexes.iter().enumerate();
        counted.try_for_each(|(row, index)| count(&mut self.entries[*index as usize].1, bulk(row)))
    }

    /// Moves some counts of another thread here, and as many from `left`. Returns the bytes of the keys that were here
    /// before, and [`Step::More`] if counts are left there.
    fn join(&mut self, other: &mut KeyCounts, left: &mut usize) -> Result<(u64, Step)> {
        // The fewer keys move. Their table is of no use any more.
        if self.entries.len() < other.entries.len() {
            std::mem::swap(self, other);
        }
        other.table = KeyTable::default();
        let mut released = 0;
        while *left > 0
            && let Some((key, times)) = other.entries.pop()
        {
            *left -= 1;
            // Each key has an equal part of what all point to.
            let held = other.held / (other.entries.len() as u64 + 1);
            other.held -= held;
            let before = self.entries.len();
            self.add(&key, times)?;
            match self.entries.len() > before {
                true => self.held += held,
                false => released += ENTRY_BYTES + held,
            }
        }
        Ok((released, if other.entries.is_empty() { Step::Done } else { Step::More }))
    }

    /// Returns about how many bytes the counts take.
    fn bytes(&self) -> u64 {
        self.entries.len() as u64 * ENTRY_BYTES + self.held
    }

    fn into_value(self, meter: &mut Meter<'_>) -> Result<Value> {
        // The table makes room for the map.
        drop(self.table);
        let mut map = Vec::with_capacity(self.entries.len());
        for (key, count) in self.entries {
            meter.charge(size_of::<(Value, Value)>())?;
            map.push((key, Value::I64(count as i64)));
        }
        Ok(Value::map(map))
    }
}

/// The approximate bytes of a key.
const ENTRY_BYTES: u64 = 112;

/// The keys of other threads that a step adds.
const JOINED_KEYS: usize = 1 << 12;

/// Counts rows by computed column 0, or by a key of their objects. With a side effect the counts go there and the rows
/// go on.
pub(crate) struct GroupCount {
    side_effect: Option<Name>,
    remember: Remember,
    /// The reader of the key; `None` if the key is in computed column 0.
    readers: Vec<KeyReader>,
    /// True if several threads may work at it.
    may_share: bool,
    counts: PerThread<ByInstance<KeyCounts>>,
    held: HeldRows,
    shared: SharedMap,
}

impl GroupCount {
    /// Counts into the result, or into a side effect. `may_share` is for one whose rows come in no order, and whose
    /// groups are few.
    pub fn new(side_effect: Option<Name>, taken: KeySource, remember: Remember, may_share: bool) -> Self {
        let (counts, held, shared) = Default::default();
        let may_share = may_share && side_effect.is_none();
        GroupCount { side_effect, remember, readers: taken.readers(), may_share, counts, held, shared }
    }
}

/// Counts the keys of a batch.
fn add_keys(
    counts: &mut ByInstance<KeyCounts>,
    group: GroupId,
    keys: &KeyValues<'_>,
    batch: &Rows,
    out: &Output<'_, Rows>,
) -> Result<()> {
    let states = counts.group(group);
    let (mut new, mut sizes) = (0, Sizes::default());
    match (keys, &batch.tags) {
        (KeyValues::Numbers(numbers), Tags::One) => {
            let counts = ByInstance::entry(states, 0, KeyCounts::default);
            let before = counts.entries.len();
            counts.add_numbers(*numbers, |row| batch.bulk(row))?;
            new = (counts.entries.len() - before) as u64 * ENTRY_BYTES;
        }
        _ => {
            for row in 0..batch.len() {
                // An unproductive by() drops the row.
                let Some(key) = keys.value_ref(row) else { continue };
                let counts = ByInstance::entry(states, batch.tag(row), KeyCounts::default);
                let before = counts.entries.len();
                // Measured before the count becomes one more holder.
                let held = sizes.pointed_to(&key) as u64;
                counts.add(&key, batch.bulk(row))?;
                if counts.entries.len() > before {
                    counts.held += held;
                    new += ENTRY_BYTES + held;
                }
            }
        }
    }
    counts.charge(group, new, out)
}

impl Operator<Rows> for GroupCount {
    fn is_by_group(&self) -> bool {
        self.side_effect.is_none()
    }

    fn needs<'a>(
        &'a mut self,
        _: u8,
        batch: &'a Rows,
        context: &'a ExecutionContext,
        _: &Arc<QueryControl>,
    ) -> Result<Need<'a>> {
        Ok(KeyReader::needs(&mut self.readers, batch, context))
    }

    fn begin(&mut self, context: &ExecutionContext) -> Result<()> {
        context.side_effects.begin_map(self.side_effect.as_ref())
    }

    fn recycle(&mut self) -> bool {
        self.readers.iter_mut().for_each(KeyReader::recycle);
        self.shared.recycle();
        self.counts.recycle(ByInstance::is_empty) && self.held.is_empty()
    }

    fn share(&mut self) -> Option<Shared> {
        if self.may_share { self.counts.share() } else { None }
    }

    fn join(&mut self, state: &SharedState) {
        self.counts.join(state);
    }

    fn combine(
        &mut self,
        _port: u8,
        mut batch: Rows,
        context: &ExecutionContext,
        _control: &Arc<QueryControl>,
    ) -> Result<Rows> {
        // With a side effect, the rows themselves go on.
        if self.side_effect.is_some() {
            return Ok(batch);
        }
        let keys = match self.readers.first_mut() {
            None => std::mem::take(&mut batch.computed).into_iter().next().map(KeyValues::Values),
            Some(reader) => Some(reader.read(&batch.objects, context)?),
        };
        let keys = keys.ok_or_else(|| Error::bug("groupCount() has a computed column or a key"))?;
        let mut table = KeyTable::default();
        let mut counts: Vec<(u32, Value, u64)> = Vec::new();
        for row in 0..batch.len() {
            let Some(key) = keys.value_ref(row) else { continue };
            let tag = batch.tag(row);
            let index = table.number(tag, &key, |key| {
                counts.push((tag, key.clone(), 0));
                counts.len() as u32 - 1
            });
            count(&mut counts[index as usize].2, batch.bulk(row))?;
        }
        let mut rows = Rows::of(ObjectColumn::Values(vec![Value::Null; counts.len()]));
        rows.tags = Tags::Many(counts.iter().map(|(tag, ..)| *tag).collect());
        rows.bulk = Some(counts.iter().map(|(.., bulk)| *bulk).collect());
        rows.computed = vec![counts.into_iter().map(|(_, key, _)| Some(key)).collect()];
        Ok(rows)
    }

    fn cancelled(&mut self, group: GroupId, tags: Option<&TagSet>, out: &Output<'_, Rows>) {
        self.counts.cancelled(group, tags, out);
        self.held.cancelled(group, tags, out);
    }

    fn receive(&mut self, _port: u8, group: GroupId, mut batch: Rows, out: &mut Output<'_, Rows>) -> Result<()> {
        // A helper has read the keys of its rows.
        let reader = if batch.computed.is_empty() { self.readers.first_mut() } else { None };
        let keys = match reader {
            None => std::mem::take(&mut batch.computed).into_iter().next().map(KeyValues::Values),
            Some(reader) => Some(reader.read(&batch.objects, out.context())?),
        };
        let keys = keys.ok_or_else(|| Error::bug("groupCount() has a computed column or a key"))?;
        self.counts.with(|counts| add_keys(counts, group, &keys, &batch, out))?;
        drop(keys);
        if self.side_effect.is_some() {
            self.held.add(group, batch, out)?;
        }
        Ok(())
    }

    /// After a run of several threads, the first steps join their counts. Then each step sends the results of some
    /// instances. With a side effect, each step adds the counts of some instances;
    /// after that, each step sends one batch, and the detail of the cursor is no more at its start.
    fn finish_step(
        &mut self,
        _port: u8,
        group: GroupId,
        instances: u32,
        at: &mut Cursor,
        out: &mut Output<'_, Rows>,
    ) -> Result<Step> {
        let GroupCount { side_effect, remember, counts, .. } = self;
        let Some(name) = side_effect.clone() else {
            let mut left = JOINED_KEYS;
            if counts.combine_states(group, out, |ours, theirs| ours.join(theirs, &mut left))? == Step::More {
                return Ok(Step::More);
            }
            return counts.at_home(|counts| {
                send_results(counts, (group, instances), at, remember, out, |counts, meter| {
                    counts.unwrap_or_default().into_value(meter).map(Some)
                })
            });
        };
        if let Detail::Start = at.detail {
            if self.add_next(group, instances, &name, at, out)? == Step::More {
                return Ok(Step::More);
            }
            at.detail = Detail::Words([0; 2]);
        }
        if self.held.send_next(group, 0, out)? == Step::More {
            return Ok(Step::More);
        }
        out.finish_all(group, instances)?;
        Ok(Step::Done)
    }
}

impl GroupCount {
    /// Adds the counts of the next instances to the side effect.
    fn add_next(
        &mut self,
        group: GroupId,
        instances: u32,
        name: &Name,
        at: &mut Cursor,
        out: &Output<'_, Rows>,
    ) -> Result<Step> {
        let taken = self.counts.at_home(|counts| Ok(counts.take_next_wanted(group, at.row, instances, out)))?;
        at.row += taken.states.len() as u32;
        for counts in taken.states.into_iter().flatten() {
            out.control().check()?;
            nesting::check_all(counts.entries.iter().map(|(key, _)| key), out.control())?;
            // A side effect stays charged until the query ends.
            out.control().charge(counts.bytes())?;
            let (shared, mut meter) = (&mut self.shared, Meter::new(out.control()));
            let side_effects = &out.context().side_effects;
            side_effects.update(name, |old| add_counts(shared, old, counts, name, &mut meter))?;
        }
        out.control().release(taken.charged);
        Ok(if taken.is_last { Step::Done } else { Step::More })
    }
}

fn add_counts(
    shared: &mut SharedMap,
    old: Option<Value>,
    more: KeyCounts,
    name: &Name,
    meter: &mut Meter<'_>,
) -> Result<Value> {
    let mut entries = shared.of(old, "groupCount", name, meter)?;
    for (key, times) in more.entries {
        meter.pass(ENTRY_BYTES as usize)?;
        entries.put(key, Value::I64(times as i64), |there, _| {
            let known = mangrove_graph::numeric::integer(&there).and_then(|n| u64::try_from(n).ok());
            let mut known =
                known.ok_or_else(|| Error::evaluation(format!("the side effect `{name}` holds no counts")))?;
            count(&mut known, times)?;
            Ok(Value::I64(known as i64))
        })?;
    }
    Ok(entries.into_value())
}
