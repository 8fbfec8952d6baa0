//! State by group: what stateful operators have in common.
//!
//! Whatever is held here is charged to the query while it is held, and given back when its group is taken.

use hashbrown::HashMap;
use mangrove_flow::{BATCH_ROWS, Batch, GroupId, Output};
use mangrove_graph::Result;

use crate::environment::Environment;
use crate::rows::{Column, Rows, Tags};

/// A hash map with the workspace's hasher.
pub type FastMap<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// Something for each instance of each group.
pub struct ByInstance<T> {
    groups: FastMap<GroupId, Vec<Option<T>>>,
    charged: FastMap<GroupId, u64>,
}

impl<T> Default for ByInstance<T> {
    fn default() -> Self {
        ByInstance { groups: FastMap::default(), charged: FastMap::default() }
    }
}

impl<T> ByInstance<T> {
    /// Whether no group has any.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty() && self.charged.is_empty()
    }

    /// The states of a group, by tag; made where it is new.
    pub fn group(&mut self, group: GroupId) -> &mut Vec<Option<T>> {
        self.groups.entry(group).or_default()
    }

    /// The state of one instance; made where it is new.
    pub fn entry(states: &mut Vec<Option<T>>, tag: u32, make: impl FnOnce() -> T) -> &mut T {
        let at = tag as usize;
        if states.len() <= at {
            states.resize_with(at + 1, || None);
        }
        states[at].get_or_insert_with(make)
    }

    /// Charges the query for what the states of a group hold besides themselves, until they are taken.
    pub fn charge(&mut self, group: GroupId, bytes: u64, out: &Output<'_, Rows>) -> Result<()> {
        out.context().charge(bytes)?;
        *self.charged.entry(group).or_default() += bytes;
        Ok(())
    }

    /// Takes the states of a group out: one entry an instance, whether it had rows or not.
    pub fn take(&mut self, group: GroupId, instances: u32, out: &Output<'_, Rows>) -> Vec<Option<T>> {
        out.context().release(self.charged.remove(&group).unwrap_or(0));
        let mut states = self.groups.remove(&group).unwrap_or_default();
        states.resize_with((instances as usize).max(states.len()), || None);
        states
    }

    /// As [`ByInstance::take`], without the states of instances that have been cancelled meanwhile.
    pub fn take_wanted(&mut self, group: GroupId, instances: u32, out: &Output<'_, Rows>) -> Vec<Option<T>> {
        let mut states = self.take(group, instances, out);
        if out.is_cancelled(group) {
            states.clear();
        }
        if let Some(tags) = out.cancelled_tags(group) {
            (0..).zip(&mut states).filter(|(tag, _)| tags.contains(*tag)).for_each(|(_, state)| *state = None);
        }
        states
    }
}

/// Rows that an operator keeps until their group has ended, with the memory they are charged for.
#[derive(Default)]
pub struct HeldRows {
    groups: FastMap<GroupId, Held>,
}

struct Held {
    rows: Rows,
    charged: u64,
    /// With more rows than this, [`HeldRows::thin`] cuts.
    full_at: usize,
}

impl HeldRows {
    /// Whether no rows are held.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Keeps rows.
    pub fn add(&mut self, group: GroupId, rows: Rows, out: &Output<'_, Rows>) -> Result<()> {
        let bytes = rows.bytes() as u64;
        out.context().charge(bytes)?;
        match self.groups.get_mut(&group) {
            Some(held) => {
                held.rows.append(rows);
                held.charged += bytes;
            }
            None => {
                self.groups.insert(group, Held { rows, charged: bytes, full_at: BATCH_ROWS });
            }
        }
        Ok(())
    }

    /// Lets `cut` drop rows that will not be needed, whenever twice as many are held as the last cut left:
    /// so each row is looked at a few times only, however many come.
    pub fn thin(
        &mut self,
        group: GroupId,
        out: &Output<'_, Rows>,
        cut: impl FnOnce(&Rows) -> Result<Rows>,
    ) -> Result<()> {
        let Some(held) = self.groups.get_mut(&group).filter(|held| held.rows.len() > held.full_at) else {
            return Ok(());
        };
        let rows = cut(&held.rows)?;
        let bytes = rows.bytes() as u64;
        out.context().release(held.charged);
        *held = Held { full_at: (rows.len() * 2).max(BATCH_ROWS), charged: bytes, rows };
        out.context().charge(bytes)
    }

    /// The rows of a group that has ended, but for those of instances that have been cancelled meanwhile.
    pub fn take(&mut self, group: GroupId, out: &Output<'_, Rows>) -> Option<Rows> {
        let Held { mut rows, charged, .. } = self.groups.remove(&group)?;
        out.context().release(charged);
        if let Some(tags) = out.cancelled_tags(group) {
            rows.discard(tags);
        }
        (!out.is_cancelled(group)).then_some(rows)
    }
}

/// One row for each instance that has a value. The values are new objects with paths of their own.
pub fn rows_by_instance(values: Vec<Option<mangrove_graph::Value>>, instances: u32, environment: &Environment) -> Rows {
    if instances == 1 && values.len() == 1 {
        let objects: Vec<_> = values.into_iter().flatten().collect();
        return rows_of_one(objects, environment);
    }
    let mut tags = Vec::with_capacity(values.len());
    let mut objects = Vec::with_capacity(values.len());
    for (tag, value) in values.into_iter().enumerate() {
        if let Some(value) = value {
            tags.push(tag as u32);
            objects.push(value);
        }
    }
    let is_one = instances <= 1 && tags.iter().all(|t| *t == 0);
    let mut rows = rows_of_one(objects, environment);
    if !is_one {
        rows.tags = Tags::Many(tags);
    }
    rows
}

/// Rows of instance 0 with paths of their own.
fn rows_of_one(objects: Vec<mangrove_graph::Value>, environment: &Environment) -> Rows {
    let count = objects.len();
    let mut rows = Rows::of(Column::from_values(objects));
    rows.path = environment.paths().then(|| vec![None; count]);
    rows.loops = environment.requirements.loops.then(|| vec![Default::default(); count]);
    rows.sacks = environment.fresh_sacks(count);
    rows
}
