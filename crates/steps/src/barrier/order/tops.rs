//! The first rows of an `order()` with a limit that several threads have found.
//!
//! When a thread has enough rows to drop those beyond the limit, it takes the first rows of all threads, merges its own
//! into them, and puts the first ones back. So all threads together merge about as often as one thread alone, and drop rows
//! by the same bar. No thread waits for the merge of another one: meanwhile, it finds no rows, and what it puts back is
//! merged by the next thread, or at the end of the group.

use mangrove_flow::{GroupId, Output, TagSet};
use mangrove_graph::{FastMap, Result, Value};
use parking_lot::Mutex;

use super::sorter::RowSorter;
use super::{SortedGroup, drop_cancelled};
use crate::rows::Rows;

/// The first rows of each group. See the header of this file.
#[derive(Default)]
pub(super) struct Tops(Mutex<FastMap<GroupId, SortedGroup>>);

impl Tops {
    /// Adds the bar that one thread has found of a group.
    pub fn add_bar(&self, group: GroupId, bar: &Value, sorter: &RowSorter) {
        self.0.lock().entry(group).or_default().take_bar(Some(bar), sorter);
    }

    /// Lets a thread drop rows by the bar of a group.
    pub fn show_bar(&self, group: GroupId, state: &mut SortedGroup, sorter: &RowSorter) {
        state.take_bar(self.0.lock().get(&group).and_then(|top| top.bar.as_ref()), sorter);
    }

    /// Merges the rows of a thread into those of all, and drops what is beyond the limit.
    pub fn cut(
        &self,
        group: GroupId,
        state: &mut SortedGroup,
        sorter: &mut RowSorter,
        out: &Output<'_, Rows>,
    ) -> Result<()> {
        state.add_run(sorter, out)?;
        let found = self.0.lock().get_mut(&group).map(SortedGroup::take_sorted);
        if let Some(found) = found {
            state.join(found);
        }
        state.cut(sorter, out)?;
        let mut tops = self.0.lock();
        let top = tops.entry(group).or_default();
        top.join(state.take_sorted());
        top.take_bar(state.bar.as_ref(), sorter);
        state.take_bar(top.bar.as_ref(), sorter);
        Ok(())
    }

    /// Takes the rows of a group that has ended.
    pub fn take(&self, group: GroupId) -> Option<SortedGroup> {
        self.0.lock().remove(&group)
    }

    /// Drops rows that are canceled. As [`drop_cancelled`].
    pub fn cancelled(&self, group: GroupId, tags: Option<(usize, &TagSet)>, out: &Output<'_, Rows>) {
        drop_cancelled(&mut self.0.lock(), group, tags, out);
    }

    pub fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }
}
