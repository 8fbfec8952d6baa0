//! State by group: what stateful operators have in common.

use hashbrown::HashMap;
use mangrove_flow::{Batch, GroupId, Output};
use mangrove_graph::Result;

use crate::rows::{Column, Rows, Tags};

/// A hash map with the workspace's hasher.
pub type FastMap<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// Something for each instance of each group.
pub struct ByInstance<T> {
    groups: FastMap<GroupId, Vec<Option<T>>>,
}

impl<T> Default for ByInstance<T> {
    fn default() -> Self {
        ByInstance { groups: FastMap::default() }
    }
}

impl<T> ByInstance<T> {
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

    /// Takes the states of a group out: one entry an instance, whether it had rows or not.
    pub fn take(&mut self, group: GroupId, instances: u32) -> Vec<Option<T>> {
        let mut states = self.groups.remove(&group).unwrap_or_default();
        states.resize_with((instances as usize).max(states.len()), || None);
        states
    }
}

/// Rows that an operator keeps until their group has ended, with the memory they are charged for.
#[derive(Default)]
pub struct HeldRows {
    groups: FastMap<GroupId, (Rows, u64)>,
}

impl HeldRows {
    /// Keeps rows.
    pub fn add(&mut self, group: GroupId, rows: Rows, out: &Output<'_, Rows>) -> Result<()> {
        let bytes = rows.bytes() as u64;
        out.context().charge(bytes)?;
        match self.groups.get_mut(&group) {
            Some((held, charged)) => {
                held.append(rows);
                *charged += bytes;
            }
            None => {
                self.groups.insert(group, (rows, bytes));
            }
        }
        Ok(())
    }

    /// The rows of a group that has ended.
    pub fn take(&mut self, group: GroupId, out: &Output<'_, Rows>) -> Option<Rows> {
        let (rows, bytes) = self.groups.remove(&group)?;
        out.context().release(bytes);
        Some(rows)
    }
}

/// One row for each instance that has a value. The values are new objects with paths of their own.
pub fn rows_by_instance(values: Vec<Option<mangrove_graph::Value>>, instances: u32, paths: bool, loops: bool) -> Rows {
    let mut tags = Vec::with_capacity(values.len());
    let mut objects = Vec::with_capacity(values.len());
    for (tag, value) in values.into_iter().enumerate() {
        if let Some(value) = value {
            tags.push(tag as u32);
            objects.push(value);
        }
    }
    let count = objects.len();
    let mut rows = Rows::of(Column::from_values(objects));
    if instances > 1 || tags.iter().any(|t| *t > 0) {
        rows.tags = Tags::Many(tags);
    }
    rows.path = paths.then(|| vec![None; count]);
    rows.loops = loops.then(|| vec![Default::default(); count]);
    rows
}
