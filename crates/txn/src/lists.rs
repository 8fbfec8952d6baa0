//! Reading lists of edges for a serializable transaction, as `tracking` says, with what is different about them: one call
//! reads as many of a batch's rows as its limit allows, and may end in the middle of one.
//!
//! So portions are short: what is looked up of all their rows beforehand, whether they were read before, is of use only
//! for those that the call comes to.

use mangrove_graph::{ElementKind, ExpandCursor, ExpandRequest, Expansion, GraphView, Result, VertexId};
use mangrove_store::access_set::Item;
use mangrove_store::{StoreView, Watch};

use crate::status::StatusAt;
use crate::sync::between_steps;
use crate::tracking::{ATTEMPTS_LATER, AddItem, Output, lists};
use crate::transaction::{Tracking, Transaction};

/// Rows that are read together at a later moment.
const PORTION_ROWS: usize = 64;

/// The lists to be read.
#[derive(Clone, Copy)]
struct Lists<'a> {
    vertices: &'a [VertexId],
    request: &'a ExpandRequest,
}

impl<'a> Lists<'a> {
    /// The same up to a row.
    fn up_to(self, row: usize) -> Self {
        Lists { vertices: &self.vertices[..row], ..self }
    }

    fn items_of(&self, row: usize, add: AddItem<'_>) {
        lists(self.vertices[row], self.request.direction, &self.request.labels, add);
    }

    /// The items of the rows from one on, up to where the cursor is: its row among them if it has begun.
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

/// Whether something of the cursor's row may have been read.
fn is_within_row(cursor: &ExpandCursor) -> bool {
    (cursor.list, cursor.position) != (0, 0)
}

impl Transaction {
    /// Expands; see [`GraphView::expand`].
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
        if !self.is_behind(tracking)
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

    /// Reads at the begin. Nothing, and with nothing read, where there are newer versions that had better be read.
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

    /// Reads at one later moment, the last timestamp published. Nothing, and with nothing read, where one of the rows was
    /// read before, so that it has a moment already, or where they would not hold still.
    fn lists_later(
        &self,
        tracking: &Tracking,
        lists: Lists<'_>,
        cursor: &mut ExpandCursor,
        out: &mut Expansion,
    ) -> Result<Option<bool>> {
        let (start, mark, first) = (*cursor, out.mark(), cursor.row as usize);
        let behind_last = ExpandCursor { row: lists.vertices.len() as u32, list: 0, position: 0 };
        if !tracking.pre_reads || is_within_row(&start) {
            return Ok(None);
        }
        let items = lists.items_to(first, &behind_last);
        let Some(begun) = tracking.begin_new(&items, self.memory_budget())? else { return Ok(None) };
        let moment = self.shared.recent.published();
        for _ in 0..ATTEMPTS_LATER {
            let status = StatusAt::new(&self.shared.status);
            let watch = Watch::reading_at(moment, &status);
            let is_done = lists.expand(&*self.view_at(self.snapshot().watched(&watch))?, cursor, out)?;
            if !watch.must_repeat() {
                between_steps();
                let relied_on = watch.used_newer().then(|| status.relied_on());
                self.track_as_read(tracking, &lists.items_to(first, cursor), begun, moment, relied_on);
                return Ok(Some(is_done));
            }
            out.take_back(mark);
            *cursor = start;
        }
        Ok(None)
    }

    /// Reads each row at its moment.
    fn lists_by_row(
        &self,
        tracking: &Tracking,
        lists: Lists<'_>,
        cursor: &mut ExpandCursor,
        out: &mut Expansion,
    ) -> Result<bool> {
        while !lists.is_at_end(cursor) {
            let (start, row) = (*cursor, cursor.row as usize);
            // Ends with this row, whose number stays.
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
