//! Merging of rows on their way from one hop to the next.
//!
//! The operator gathers some thousands of rows and sends them merged, in the order of their vertices. The next hop then
//! reads the lists of the store page by page, and each list once, not once for every row. Rows with bulks replace equal
//! rows, and nothing else changes.

use mangrove_flow::{GroupId, Operator, Output};
use mangrove_graph::{FastMap, Result};

use crate::barrier::merge::{Merger, Worth};
use crate::rows::Rows;

/// See the header of this file. A thread merges its own rows.
pub(crate) struct PassingMerge {
    /// True if the rows may leave in any order.
    any_order: bool,
    groups: FastMap<GroupId, Merger>,
    worth: Worth,
}

impl PassingMerge {
    /// With `any_order`, the rows may leave in any order.
    pub fn new(any_order: bool) -> Self {
        PassingMerge { any_order, groups: FastMap::default(), worth: Worth::default() }
    }
}

impl Operator<Rows> for PassingMerge {
    fn is_by_group(&self) -> bool {
        true
    }

    fn is_passing(&self) -> bool {
        true
    }

    fn keeps_rows(&self) -> bool {
        self.groups.values().any(|merger| !merger.is_empty())
    }

    fn flush(&mut self, out: &mut Output<'_, Rows>) -> Result<()> {
        for (group, merger) in &mut self.groups {
            merger.give(*group, &mut self.worth, out)?;
        }
        self.groups.clear();
        Ok(())
    }

    fn recycle(&mut self) -> bool {
        self.worth = Worth::default();
        self.groups.is_empty()
    }

    fn receive(&mut self, _port: u8, group: GroupId, batch: Rows, out: &mut Output<'_, Rows>) -> Result<()> {
        let merger = self.groups.entry(group).or_insert_with(|| Merger::new(self.any_order));
        merger.pass(group, batch, &mut self.worth, out)
    }

    fn finish(&mut self, _port: u8, group: GroupId, instances: u32, out: &mut Output<'_, Rows>) -> Result<()> {
        if let Some(mut merger) = self.groups.remove(&group) {
            merger.give(group, &mut self.worth, out)?;
        }
        out.finish_all(group, instances)
    }
}
