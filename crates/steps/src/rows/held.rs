//! Rows and states that operators keep by group.
//!
//! Everything held here is charged to the query, and released when its group is taken (FLOW-17). The
//! container of an operator must be empty before the operator serves another run (FLOW-4).
//!
//! - **STEPS-5.** When a group ends, the rows and states of its cancelled instances are left out: a step that fills a
//!   side effect must not add them.

use mangrove_flow::{BATCH_ROWS, Batch, Cursor, GroupId, Output};
use mangrove_graph::{FastMap, Result};

use crate::context::execution::ExecutionContext;
use crate::rows::batch::{Rows, Tags};
use crate::rows::column::ObjectColumn;

/// A state for each instance of each group.
pub(crate) struct ByInstance<T> {
    groups: FastMap<GroupId, Vec<Option<T>>>,
    charged: FastMap<GroupId, u64>,
}

impl<T> Default for ByInstance<T> {
    fn default() -> Self {
        ByInstance { groups: FastMap::default(), charged: FastMap::default() }
    }
}

impl<T> ByInstance<T> {
    /// Returns true if no group has a state or a charge.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty() && self.charged.is_empty()
    }

    /// Returns the states of a group, by tag.
    pub fn group(&mut self, group: GroupId) -> &mut Vec<Option<T>> {
        self.groups.entry(group).or_default()
    }

    /// Returns the state of an instance, making it if it is new.
    pub fn entry(states: &mut Vec<Option<T>>, tag: u32, make: impl FnOnce() -> T) -> &mut T {
        let at = tag as usize;
        if states.len() <= at {
            states.resize_with(at + 1, || None);
        }
        states[at].get_or_insert_with(make)
    }

    /// Charges the query for bytes that the states of a group hold, until they are taken.
    pub fn charge(&mut self, group: GroupId, bytes: u64, out: &Output<'_, Rows>) -> Result<()> {
        out.control().charge(bytes)?;
        *self.charged.entry(group).or_default() += bytes;
        Ok(())
    }

    /// Takes the states of a group: one entry for each instance, with or without rows (FLOW-5).
    pub fn take(&mut self, group: GroupId, instances: u32, out: &Output<'_, Rows>) -> Vec<Option<T>> {
        out.control().release(self.charged.remove(&group).unwrap_or(0));
        let mut states = self.groups.remove(&group).unwrap_or_default();
        states.resize_with((instances as usize).max(states.len()), || None);
        states
    }

    /// As [`ByInstance::take`], without the states of cancelled instances (STEPS-5).
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

/// Rows that an operator keeps until their group has ended.
#[derive(Default)]
pub(crate) struct HeldRows {
    groups: FastMap<GroupId, HeldGroup>,
}

struct HeldGroup {
    rows: Rows,
    charged: u64,
    /// [`HeldRows::thin`] cuts if there are more rows than this.
    full_at: usize,
}

impl HeldRows {
    /// Returns true if no rows are held.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Keeps rows of a group.
    pub fn add(&mut self, group: GroupId, rows: Rows, out: &Output<'_, Rows>) -> Result<()> {
        let bytes = rows.bytes() as u64;
        out.control().charge(bytes)?;
        match self.groups.get_mut(&group) {
            Some(held) => {
                held.rows.append(rows);
                held.charged += bytes;
            }
            None => {
                self.groups.insert(group, HeldGroup { rows, charged: bytes, full_at: BATCH_ROWS });
            }
        }
        Ok(())
    }

    /// Lets `cut` drop unneeded rows whenever twice as many are held as the last cut left. So each row is copied only a
    /// few times, however many come.
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
        out.control().release(held.charged);
        *held = HeldGroup { full_at: (rows.len() * 2).max(BATCH_ROWS), charged: bytes, rows };
        out.control().charge(bytes)
    }

    /// Takes the rows of a group that has ended, without those of cancelled instances (STEPS-5).
    pub fn take(&mut self, group: GroupId, out: &Output<'_, Rows>) -> Option<Rows> {
        let HeldGroup { mut rows, charged, .. } = self.groups.remove(&group)?;
        out.control().release(charged);
        if let Some(tags) = out.cancelled_tags(group) {
            rows.discard(tags, &mut Cursor::default());
        }
        (!out.is_cancelled(group)).then_some(rows)
    }
}

/// Returns one row for each instance that has a value. The values are new objects with empty paths and no bindings
/// (STEPS-11).
pub(crate) fn rows_by_instance(
    values: Vec<Option<mangrove_graph::Value>>,
    instances: u32,
    context: &ExecutionContext,
) -> Rows {
    if instances == 1 && values.len() == 1 {
        let objects: Vec<_> = values.into_iter().flatten().collect();
        return rows_of_one(objects, context);
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
    let mut rows = rows_of_one(objects, context);
    if !is_one {
        rows.tags = Tags::Many(tags);
    }
    rows
}

/// Returns rows of instance 0 with empty paths and no bindings.
fn rows_of_one(objects: Vec<mangrove_graph::Value>, context: &ExecutionContext) -> Rows {
    let count = objects.len();
    let mut rows = Rows::of(ObjectColumn::from_values(objects));
    rows.path = context.paths().then(|| vec![None; count]);
    rows.loops = context.requirements.loops.then(|| vec![Default::default(); count]);
    rows.sacks = context.fresh_sacks(count);
    rows
}
