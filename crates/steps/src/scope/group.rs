//! The group scope: `group()`, with one instance for each key.
//!
//! The second `by()` is the pipeline of the scope. Members enter as they arrive, so `group().by(k).by(count())` keeps
//! one number for each key and no members. When the stream has ended, each instance outside gets one map.

use mangrove_flow::{GroupId, Operator, Output};
use mangrove_graph::{FastMap, Result, Value};
use mangrove_gremlin::Operator as FoldOperator;
use mangrove_gremlin::Operator::AddAll;
use mangrove_plan::logical::Name;

use crate::barrier::shared_map::SharedMap;
use crate::computed::keys::{KeyReader, KeySource, KeyTable, KeyValues};
use crate::context::execution::ExecutionContext;
use crate::limits::meter::Meter;
use crate::limits::nesting;
use crate::limits::sizes::Sizes;
use crate::rows::held::{HeldRows, rows_by_instance};
use crate::rows::{Remember, Rows, Tags};
use crate::values::fold;

/// The keys that the rows of one group outside have.
struct GroupMembers {
    scope_group: GroupId,
    table: KeyTable,
    /// For each key: the instance outside, the key, and the first result of its members.
    entries: Vec<(u32, Value, Option<Value>)>,
    /// Bytes charged for the keys and results.
    charged: u64,
    /// The instances of the group outside, after its end has arrived.
    instances: u32,
}

/// Groups rows by computed column 0, or by a key of their objects.
pub(crate) struct GroupScope {
    side_effect: Option<Name>,
    /// The reader of the key; `None` if the key is in computed column 0.
    readers: Vec<KeyReader>,
    /// The operator that joins two numbers under one key of a side effect.
    joining: Option<FoldOperator>,
    remember: Remember,
    groups: FastMap<GroupId, GroupMembers>,
    outside: FastMap<GroupId, GroupId>,
    held: HeldRows,
    shared: SharedMap,
}

/// The approximate bytes of a key, without the state of its members in the scope.
const ENTRY_BYTES: u64 = 160;

const ENTER: usize = 0;
const EXIT: usize = 1;

impl GroupScope {
    /// Groups into the result, or into a side effect.
    pub fn new(side_effect: Option<Name>, taken: KeySource, joining: Option<FoldOperator>, remember: Remember) -> Self {
        let (groups, outside, held, shared) = Default::default();
        GroupScope { side_effect, readers: taken.readers(), joining, remember, groups, outside, held, shared }
    }

    fn keys(&mut self, group: GroupId, out: &mut Output<'_, Rows>) -> &mut GroupMembers {
        let outside = &mut self.outside;
        self.groups.entry(group).or_insert_with(|| {
            let scope_group = out.open_group(group);
            outside.insert(scope_group, group);
            GroupMembers { scope_group, table: KeyTable::default(), entries: Vec::new(), charged: 0, instances: 0 }
        })
    }

    fn enter(&mut self, group: GroupId, mut batch: Rows, out: &mut Output<'_, Rows>) -> Result<()> {
        let mut readers = std::mem::take(&mut self.readers);
        let entered = self.enter_by(readers.first_mut(), group, &mut batch, out);
        self.readers = readers;
        let (scope_group, members, tags) = entered?;
        let mut inside = if members.len() == batch.len() { batch } else { batch.take(&members) };
        inside.computed.clear();
        inside.tags = Tags::Many(tags);
        out.emit(ENTER, scope_group, inside)
    }

    /// Finds the key of each row. Returns the group inside, the rows that have a key, and their tags inside.
    fn enter_by(
        &mut self,
        reader: Option<&mut KeyReader>,
        group: GroupId,
        batch: &mut Rows,
        out: &mut Output<'_, Rows>,
    ) -> Result<(GroupId, Vec<u32>, Vec<u32>)> {
        let found = match reader {
            None => KeyValues::Values(std::mem::take(&mut batch.computed).into_iter().next().unwrap_or_default()),
            Some(reader) => reader.read(&batch.objects, out.context())?,
        };
        let GroupMembers { scope_group, table, entries, charged, .. } = self.keys(group, out);
        let before = entries.len();
        let mut members = Vec::with_capacity(batch.len());
        let mut tags = Vec::with_capacity(batch.len());
        let (mut sizes, mut held) = (Sizes::default(), 0);
        let mut new = |tag, key| {
            entries.push((tag, key, None));
            entries.len() as u32 - 1
        };
        match &found {
            KeyValues::Numbers(numbers) => {
                table.number_all(
                    numbers,
                    |row| batch.tag(row),
                    new,
                    |row, key| {
                        members.push(row as u32);
                        tags.push(key);
                    },
                );
            }
            KeyValues::Values(column) => {
                for (row, key) in column.iter().enumerate() {
                    // An unproductive by() drops the row.
                    let Some(key) = key else { continue };
                    let tag = batch.tag(row);
                    members.push(row as u32);
                    tags.push(table.number(tag, key, |key| {
                        held += sizes.pointed_to(key) as u64;
                        new(tag, key.clone())
                    }));
                }
            }
        }
        let bytes = (entries.len() - before) as u64 * ENTRY_BYTES + held;
        *charged += bytes;
        out.control().charge(bytes)?;
        Ok((*scope_group, members, tags))
    }

    /// Handles the end of the scope: makes one map for each instance outside.
    fn leave(&mut self, group: GroupId, out: &mut Output<'_, Rows>) -> Result<()> {
        let Some(keys) = self.groups.remove(&group) else { return Ok(()) };
        // A side effect stays charged until the query ends.
        out.control().release(if self.side_effect.is_some() { 0 } else { keys.charged });
        let instances = keys.instances;
        let mut maps: Vec<Vec<(Value, Value)>> = vec![Vec::new(); instances as usize];
        for (tag, key, value) in keys.entries {
            // A key whose members gave no result is not in the map.
            if let (Some(map), Some(value)) = (maps.get_mut(tag as usize), value) {
                map.push((key, value));
            }
        }
        if let Some(name) = &self.side_effect {
            let cancelled = out.cancelled_tags(group).cloned();
            let is_wanted = |tag: u32| cancelled.as_ref().is_none_or(|tags| !tags.contains(tag));
            let is_over = out.is_cancelled(group);
            let mut meter = Meter::new(out.control());
            let joining = self.joining;
            let shared = &mut self.shared;
            for (_, map) in (0..).zip(maps).filter(|(tag, _)| !is_over && is_wanted(*tag)) {
                out.control().check()?;
                nesting::check_all(map.iter().flat_map(|(key, value)| [key, value]), out.control())?;
                let side_effects = &out.context().side_effects;
                side_effects.update(name, |old| add_entries(shared, old, map, name, joining, &mut meter))?;
            }
            drop(meter);
            for chunk in self.held.take(group, out).into_iter().flat_map(Rows::chunks) {
                out.emit(EXIT, group, chunk)?;
            }
            return out.finish(EXIT, group, instances);
        }
        let values: Vec<_> = maps.into_iter().map(|m| Some(Value::map(m))).collect();
        nesting::check_made(values.iter().flatten(), out.control())?;
        let mut rows = rows_by_instance(values, instances, out.context());
        rows.remember(&self.remember);
        for chunk in rows.chunks() {
            out.emit(EXIT, group, chunk)?;
        }
        out.finish(EXIT, group, instances)
    }
}

/// Adds entries to the map of a side effect.
fn add_entries(
    shared: &mut SharedMap,
    old: Option<Value>,
    more: Vec<(Value, Value)>,
    name: &Name,
    joining: Option<FoldOperator>,
    meter: &mut Meter<'_>,
) -> Result<Value> {
    let mut entries = shared.of(old, "group", name, meter)?;
    for (key, value) in more {
        entries.put(key, value, |there, value| join(joining, there, value, meter))?;
    }
    Ok(entries.into_value())
}

/// Joins two values under one key. Lists are concatenated; numbers that a reduction made are joined by its operator;
/// any other value replaces the old one.
fn join(joining: Option<FoldOperator>, there: Value, value: Value, meter: &mut Meter<'_>) -> Result<Value> {
    match (there, value, joining) {
        (lists @ Value::List(_), more @ Value::List(_), _) => fold::apply(AddAll, lists, &more, meter),
        (there, value, Some(operator)) => fold::apply(operator, there, &value, meter),
        (_, value, None) => Ok(value),
    }
}

impl Operator<Rows> for GroupScope {
    fn begin(&mut self, context: &ExecutionContext) -> Result<()> {
        context.side_effects.begin_map(self.side_effect.as_ref())
    }

    fn recycle(&mut self) -> bool {
        self.readers.iter_mut().for_each(KeyReader::recycle);
        self.shared.recycle();
        self.groups.is_empty() && self.outside.is_empty() && self.held.is_empty()
    }

    fn receive(&mut self, port: u8, group: GroupId, batch: Rows, out: &mut Output<'_, Rows>) -> Result<()> {
        if port == 0 {
            if self.side_effect.is_some() {
                let mut kept = batch.clone();
                kept.computed.clear();
                self.held.add(group, kept, out)?;
            }
            return self.enter(group, batch, out);
        }
        let Some(keys) = self.outside.get(&group).and_then(|outside| self.groups.get_mut(outside)) else {
            return Ok(());
        };
        let (mut sizes, mut held) = (Sizes::default(), 0);
        for row in 0..batch.len() {
            if let Some((_, _, value @ None)) = keys.entries.get_mut(batch.tag(row) as usize) {
                held += batch.objects.values().get(row).map_or(0, |value| sizes.pointed_to(value)) as u64;
                *value = Some(batch.object(row));
            }
        }
        keys.charged += held;
        out.control().charge(held)
    }

    fn finish(&mut self, port: u8, group: GroupId, instances: u32, out: &mut Output<'_, Rows>) -> Result<()> {
        if port == 0 {
            let keys = self.keys(group, out);
            keys.instances = instances;
            let (scope_group, count) = (keys.scope_group, keys.entries.len() as u32);
            return out.finish(ENTER, scope_group, count);
        }
        out.close_group(group);
        match self.outside.remove(&group) {
            Some(outside) => self.leave(outside, out),
            None => Ok(()),
        }
    }
}
