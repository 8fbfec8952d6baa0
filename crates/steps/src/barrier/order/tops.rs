//! The first rows of an `order()` with a limit that several threads have found.
//!
//! When a thread has enough rows to drop those beyond the limit, it merges its own into the first rows of all, and drops
//! what is beyond. So all threads together merge about as often as one thread alone, and drop rows by the same bar. A thread
//! that finds another one merging gathers more rows and tries again at its next message. It waits if it has many, or no bar
//! yet.

use mangrove_flow::{GroupId, Output, TagSet};
use mangrove_graph::{FastMap, Result, Value};
use parking_lot::Mutex;

use super::drop_cancelled;
use super::group::SortedGroup;
use super::sorter::RowSorter;
use crate::rows::Rows;

/// The first rows of each group. See the header of this file.
#[derive(Default)]
pub(super) struct Tops(Mutex<FastMap<GroupId, SortedGroup>>);

impl Tops {
    /// Adds the bar that one thread has found of a group.
    pub fn add_bar(&self, group: GroupId, bar: &Value, sorter: &RowSorter) {
        self.0.lock().entry(group).or_default().take_bar(Some(bar), sorter);
    }

    /// Lets a thread drop rows by the bar of a group, unless another thread merges now.
    pub fn show_bar(&self, group: GroupId, state: &mut SortedGroup, sorter: &RowSorter) {
        if let Some(tops) = self.0.try_lock() {
            state.take_bar(tops.get(&group).and_then(|top| top.bar.as_ref()), sorter);
        }
    }

    /// Merges the rows of a thread into those of all, and drops what is beyond the limit. Does nothing if another thread
    /// merges now, unless this one must drop rows first.
    pub fn cut(
        &self,
        group: GroupId,
        state: &mut SortedGroup,
        sorter: &mut RowSorter,
        out: &Output<'_, Rows>,
    ) -> Result<()> {
        let tops = if state.must_drop() { Some(self.0.lock()) } else { self.0.try_lock() };
        let Some(mut tops) = tops else { return Ok(()) };
        let top = tops.entry(group).or_default();
        top.join(state.take_rows(out.control()));
        top.cut(sorter, out)?;
        state.take_cut(top, sorter);
        Ok(())
    }

    /// Takes the rows of a group that has ended.
    pub fn take(&self, group: GroupId) -> Option<SortedGroup> {
        self.0.lock().remove(&group)
    }

    /// Drops rows that are cancelled. As [`drop_cancelled`].
    pub fn cancelled(&self, group: GroupId, tags: Option<(usize, &TagSet)>, out: &Output<'_, Rows>) {
        drop_cancelled(&mut self.0.lock(), group, tags, out);
    }

    pub fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }
}
