//! Reads of adjacency lists for a serializable transaction.
//!
//! They follow the rules of `tracking`, with one difference: a call reads as many rows of a batch as its limit allows,
//! and may end in the middle of a row. Before a portion of rows is pre-read, the read set is asked for all of them.
//! That is wasted for rows that the call does not reach, so portions are short.
//!
//! When a call succeeds, every row of which it has read a part is in the read set.

use mangrove_graph::{ElementKind, ExpandCursor, ExpandRequest, Expansion, GraphView, Result, VertexId};
use mangrove_store::{StoreView, Watch};

use crate::access_set::Item;
use crate::status::ClaimStatusAt;
use crate::sync::between_steps;
use crate::tracking::{ATTEMPTS_LATER, AddItem, BatchOutput, lists};
use crate::transaction::{Tracking, Transaction};

/// Rows that are pre-read together.
const PORTION_ROWS: usize = 64;

/// The lists to be read. A row is all lists of one vertex that the request asks for.
#[derive(Clone, Copy)]
struct Lists<'a> {
    vertices: &'a [VertexId],
    request: &'a ExpandRequest,
}

impl<'a> Lists<'a> {
    /// The same lists, up to a row.
    fn up_to(self, row: usize) -> Self {
        Lists { vertices: &self.vertices[..row], ..self }
    }

    /// Calls `add` with the items that a read of a row depends on.
    fn items_of(&self, row: usize, add: AddItem<'_>) {
        lists(self.vertices[row], self.request.direction, &self.request.labels, add);
    }

    /// The items of the rows from `first` to the cursor, including the row of the cursor if the cursor is within it.
    fn items_to(&self, first: usize, cursor: &ExpandCursor) -> Vec<Item> {
        let end = cursor.row as usize + usize::from(is_within_row(cursor));
        let mut items = Vec::new();
        (first..end.min(self.vertices.len())).for_each(|row| self.items_of(row, &mut |item| items.push(item)));
        items
    }

    fn is_at_end(&self, cursor: &ExpandCursor) -> bool {
        cursor.row as usize >= self.vertices.len()
    }

    fn expand(&self, view: &StoreView<'_>, cursor: &mut ExpandCursor, out: &mut Expansion) -> Result<bool> {
        view.expand(self.vertices, self.request, cursor, out)
    }
}

/// Returns true if something of the cursor's row may have been read.
fn is_within_row(cursor: &ExpandCursor) -> bool {
    (cursor.list, cursor.position) != (0, 0)
}

impl Transaction {
    /// Expands vertices, as [`GraphView::expand`] describes. Tries the begin for all rows at first, unless newer commits
    /// can be pre-read. Then it goes by portions: pre-read, at the begin, or row by row, whichever is possible first.
    pub(crate) fn read_lists(
        &self,
        vertices: &[VertexId],
        request: &ExpandRequest,
        cursor: &mut ExpandCursor,
        out: &mut Expansion,
    ) -> Result<bool> {
        let Some(tracking) = self.tracking() else { return self.view()?.expand(vertices, request, cursor, out) };
        self.check_alive()?;
        tracking.reads.lock().name_labels(ElementKind::Edge, &request.labels);
        let lists = Lists { vertices, request };
        if !self.has_newer_commits(tracking)
            && let Some(is_done) = self.lists_at_begin(tracking, lists, cursor, out)?
        {
            return Ok(is_done);
        }
        while !lists.is_at_end(cursor) {
            let portion = lists.up_to(vertices.len().min(cursor.row as usize + PORTION_ROWS));
            let is_done = match self.lists_later(tracking, portion, cursor, out)? {
                Some(is_done) => is_done,
                None => match self.lists_at_begin(tracking, portion, cursor, out)? {
                    Some(is_done) => is_done,
                    None => self.lists_by_row(tracking, portion, cursor, out)?,
                },
            };
            if !is_done || (out.len() >= request.limit && !lists.is_at_end(cursor)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Reads at the begin. Returns `None`, with nothing read, if there are newer versions, which must be pre-read.
    fn lists_at_begin(
        &self,
        tracking: &Tracking,
        lists: Lists<'_>,
        cursor: &mut ExpandCursor,
        out: &mut Expansion,
    ) -> Result<Option<bool>> {
        let (start, mark) = (*cursor, out.mark());
        let mut is_done = false;
        let read = |view: &StoreView<'_>| {
            is_done = lists.expand(view, cursor, out)?;
            Ok(())
        };
        let Some(begun) = self.read_at_begin(tracking, read)? else {
            out.take_back(mark);
            *cursor = start;
            return Ok(None);
        };
        let end = cursor.row as usize + usize::from(is_within_row(cursor));
        let mut reads = tracking.reads.lock();
        let rows = start.row as usize..end.min(lists.vertices.len());
        reads.reserve(rows.len());
        rows.for_each(|row| lists.items_of(row, &mut |item| reads.add(item, begun)));
        Ok(Some(is_done))
    }

    /// Pre-reads at the last published timestamp. Returns `None`, with nothing read, if one of the rows was read
    /// before, or if claims changed under the read again and again.
    fn lists_later(
        &self,
        tracking: &Tracking,
        lists: Lists<'_>,
        cursor: &mut ExpandCursor,
        out: &mut Expansion,
    ) -> Result<Option<bool>> {
        let (start, mark, first) = (*cursor, out.mark(), cursor.row as usize);
        let after_last = ExpandCursor { row: lists.vertices.len() as u32, list: 0, position: 0 };
        if !tracking.pre_reads || is_within_row(&start) {
            return Ok(None);
        }
        let items = lists.items_to(first, &after_last);
        let Some(begun) = tracking.begin_new(&items, self.memory_budget())? else { return Ok(None) };
        let read_ts = self.shared.recent.published();
        for _ in 0..ATTEMPTS_LATER {
            let status = ClaimStatusAt::new(&self.shared.status);
            let watch = Watch::reading_at(read_ts, &status);
            let is_done = lists.expand(&*self.view_at(self.snapshot().watched(&watch))?, cursor, out)?;
            if !watch.must_repeat() {
                between_steps();
                let relied_on = watch.used_newer().then(|| status.relied_on());
                self.track_as_read(tracking, &lists.items_to(first, cursor), begun, read_ts, relied_on);
                return Ok(Some(is_done));
            }
            out.take_back(mark);
            *cursor = start;
        }
        Ok(None)
    }

    /// Reads each row at its own read timestamp.
    fn lists_by_row(
        &self,
        tracking: &Tracking,
        lists: Lists<'_>,
        cursor: &mut ExpandCursor,
        out: &mut Expansion,
    ) -> Result<bool> {
        while !lists.is_at_end(cursor) {
            let (start, row) = (*cursor, cursor.row as usize);
            // The list ends with this row, so that the row keeps its number.
            let one = lists.up_to(row + 1);
            let mut is_row_done = false;
            let read = |view: &StoreView<'_>, out: &mut Expansion| {
                *cursor = start;
                is_row_done = one.expand(view, cursor, out)?;
                Ok(())
            };
            self.read_row(tracking, |add| one.items_of(row, add), out, read)?;
            if !is_row_done || (out.len() >= lists.request.limit && !lists.is_at_end(cursor)) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
