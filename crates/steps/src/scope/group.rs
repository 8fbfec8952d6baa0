//! The group scope: `group()`, with one instance for each key.
//!
//! The second `by()` is the pipeline of the scope. Members enter as they arrive, so `group().by(k).by(count())` keeps
//! one number for each key and no members. When the stream has ended, each instance outside gets one map.

use std::sync::Arc;

use mangrove_flow::{
    BATCH_ROWS, Cursor, Detail, GroupId, HeldDetail, Operator, OuterTags, Output, QueryControl, Step, TagSet,
};
use mangrove_graph::{FastMap, Need, Result, Value};
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

/// An instance outside, one of its keys, and the first result of the key's members.
type GroupEntry = (u32, Value, Option<Value>);

/// The keys that the rows of one group outside have.
struct GroupMembers {
    scope_group: GroupId,
    table: KeyTable,
    /// The entry of each key.
    entries: Vec<GroupEntry>,
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

/// Entries that a step puts into maps.
const ENTRIES_AT_ONCE: usize = 1 << 12;

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
            let scope_group = out.open_group(group, OuterTags::Growing(Vec::new()));
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
        // A helper has read the keys of its rows.
        let found = match reader.filter(|_| batch.computed.is_empty()) {
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
                    *numbers,
                    |row| batch.tag(row),
                    new,
                    |row, key| {
                        members.push(row as u32);
                        tags.push(key);
                    },
                );
            }
            KeyValues::Values(_) | KeyValues::Objects(_) => {
                for row in 0..found.len() {
                    // An unproductive by() drops the row.
                    let Some(key) = found.value_ref(row) else { continue };
                    let tag = batch.tag(row);
                    members.push(row as u32);
                    tags.push(table.number(tag, &key, |key| {
                        held += sizes.pointed_to(key) as u64;
                        new(tag, key.clone())
                    }));
                }
            }
        }
        out.add_instances(*scope_group, entries[before..].iter().map(|(tag, ..)| *tag));
        let bytes = (entries.len() - before) as u64 * ENTRY_BYTES + held;
        *charged += bytes;
        out.control().charge(bytes)?;
        Ok((*scope_group, members, tags))
    }

    /// Begins to leave the scope after its end, for a group outside.
    fn ended(&mut self, group: GroupId) -> Option<Box<LeavingGroup>> {
        let GroupMembers { entries, charged, instances, .. } = self.groups.remove(&group)?;
        let maps = vec![Vec::new(); instances as usize];
        Some(Box::new(LeavingGroup { group, entries: entries.into_iter(), maps, next: 0, charged }))
    }

    /// Makes one map for each instance outside, and sends them or adds them to the side effect. Each step does a part.
    fn leave(&mut self, leaving: &mut LeavingGroup, out: &mut Output<'_, Rows>) -> Result<Step> {
        let (group, instances) = (leaving.group, leaving.maps.len() as u32);
        if leaving.fill_maps() == Step::More {
            return Ok(Step::More);
        }
        let step = match self.side_effect.clone() {
            None => self.send_maps(leaving, out)?,
            Some(name) if self.add_maps(leaving, &name, out)? == Step::More => Step::More,
            Some(_) => self.held.send_next(group, EXIT, out)?,
        };
        if step == Step::Done {
            out.finish(EXIT, group, instances)?;
        }
        Ok(step)
    }

    /// Sends the maps of the next instances.
    fn send_maps(&self, leaving: &mut LeavingGroup, out: &mut Output<'_, Rows>) -> Result<Step> {
        let (first, count) = (leaving.next, leaving.maps.len());
        let until = count.min(first + BATCH_ROWS);
        let maps = leaving.maps[first..until].iter_mut();
        let values: Vec<_> = maps.map(|map| Some(Value::map(std::mem::take(map)))).collect();
        nesting::check_made(values.iter().flatten(), out.control())?;
        let mut rows = rows_by_instance(values, first as u32, count as u32, out.context());
        rows.remember(&self.remember);
        // Each instance has an equal part of the charge.
        let part = (u128::from(leaving.charged) * (until - first) as u128 / (count - first).max(1) as u128) as u64;
        leaving.charged -= part;
        out.control().release(part);
        out.emit(EXIT, leaving.group, rows)?;
        leaving.next = until;
        Ok(if until < count { Step::More } else { Step::Done })
    }

    /// Adds entries of the next instances to the side effect, which stays charged for them until the query ends.
    fn add_maps(&mut self, leaving: &mut LeavingGroup, name: &Name, out: &Output<'_, Rows>) -> Result<Step> {
        let (is_over, cancelled) = (out.is_cancelled(leaving.group), out.cancelled_tags(leaving.group));
        let is_wanted = |tag: usize| !is_over && cancelled.as_ref().is_none_or(|tags| !tags.contains(tag as u32));
        let mut left = ENTRIES_AT_ONCE;
        let mut meter = Meter::new(out.control());
        while leaving.next < leaving.maps.len() {
            if left == 0 {
                return Ok(Step::More);
            }
            let map = &mut leaving.maps[leaving.next];
            if !is_wanted(leaving.next) {
                map.clear();
            }
            if !map.is_empty() {
                let rest = map.split_off(map.len().min(left));
                let some = std::mem::replace(map, rest);
                left -= some.len();
                out.control().check()?;
                nesting::check_all(some.iter().flat_map(|(key, value)| [key, value]), out.control())?;
                let (joining, shared) = (self.joining, &mut self.shared);
                let side_effects = &out.context().side_effects;
                side_effects.update(name, |old| add_entries(shared, old, some, name, joining, &mut meter))?;
            }
            if leaving.maps[leaving.next].is_empty() {
                leaving.next += 1;
            }
        }
        Ok(Step::Done)
    }
}

/// The entries of a group outside that has ended.
#[derive(Debug)]
struct LeavingGroup {
    group: GroupId,
    /// The entries that are not in a map yet.
    entries: std::vec::IntoIter<GroupEntry>,
    /// The map of each instance outside.
    maps: Vec<Vec<(Value, Value)>>,
    /// The first instance whose map has not been sent or added.
    next: usize,
    /// Bytes charged for the entries.
    charged: u64,
}

impl HeldDetail for LeavingGroup {
    fn bytes(&self) -> u64 {
        // Charged as the entries were.
        0
    }
}

impl LeavingGroup {
    /// Puts the next entries into the maps of their instances. Returns [`Step::Done`] if none is left.
    fn fill_maps(&mut self) -> Step {
        for (tag, key, value) in self.entries.by_ref().take(ENTRIES_AT_ONCE) {
            // A key whose members gave no result is not in the map.
            if let (Some(map), Some(value)) = (self.maps.get_mut(tag as usize), value) {
                map.push((key, value));
            }
        }
        if self.entries.len() > 0 { Step::More } else { Step::Done }
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
    fn is_by_group(&self) -> bool {
        self.side_effect.is_none()
    }

    fn needs<'a>(
        &'a mut self,
        port: u8,
        batch: &'a Rows,
        context: &'a ExecutionContext,
        _: &Arc<QueryControl>,
    ) -> Result<Need<'a>> {
        Ok(if port == 0 { KeyReader::needs(&mut self.readers, batch, context) } else { Need::Nothing })
    }

    fn begin(&mut self, context: &ExecutionContext) -> Result<()> {
        context.side_effects.begin_map(self.side_effect.as_ref())
    }

    fn recycle(&mut self) -> bool {
        self.readers.iter_mut().for_each(KeyReader::recycle);
        self.shared.recycle();
        self.groups.is_empty() && self.outside.is_empty() && self.held.is_empty()
    }

    fn combine(
        &mut self,
        port: u8,
        mut batch: Rows,
        context: &ExecutionContext,
        _control: &Arc<QueryControl>,
    ) -> Result<Rows> {
        if let (0, Some(reader), None) = (port, self.readers.first_mut(), &self.side_effect) {
            batch.computed = vec![reader.read(&batch.objects, context)?.into_computed()];
        }
        Ok(batch)
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

    fn cancelled(&mut self, group: GroupId, tags: Option<&TagSet>, out: &Output<'_, Rows>) {
        self.held.cancelled(group, tags, out);
    }

    /// At the end of the scope, each step sends or adds a part of the maps; the cursor holds the rest.
    fn finish_step(
        &mut self,
        port: u8,
        group: GroupId,
        instances: u32,
        at: &mut Cursor,
        out: &mut Output<'_, Rows>,
    ) -> Result<Step> {
        if port == 0 {
            let keys = self.keys(group, out);
            keys.instances = instances;
            let (scope_group, count) = (keys.scope_group, keys.entries.len() as u32);
            out.finish(ENTER, scope_group, count)?;
            return Ok(Step::Done);
        }
        let leaving = match at.take_held::<LeavingGroup>() {
            Some(leaving) => Some(leaving),
            None => {
                out.close_group(group);
                self.outside.remove(&group).and_then(|outside| self.ended(outside))
            }
        };
        let Some(mut leaving) = leaving else { return Ok(Step::Done) };
        let step = self.leave(&mut leaving, out)?;
        if step == Step::More {
            at.detail = Detail::Held(leaving);
        }
        Ok(step)
    }
}
