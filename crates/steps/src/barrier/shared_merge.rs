//! Merging of equal traversers by several threads.
//!
//! Each thread merges its own rows, as if it were alone. At the end, what the threads have merged is merged: a row for
//! each of their vertices, however many rows they met. A lock for each thread is nearly always free.
//!
//! ```text
//!  Open ──┬─ many rows of vertices and bulks ─► Sorting ─► Sending ─┬─► Open
//!         └─ others ─────────────────────────► Combining ───────────┘
//! ```
//!
//! If the rows are many and hold nothing but vertices and bulks, the end is worked off in parts (FLOW-49): first, a part
//! sorts the rows of each thread. Then each part merges a range of vertices of all threads and sends them, so that the
//! next hop from them is made on the same thread. Other rows are combined and sent by the home.

use std::sync::Arc;

use mangrove_flow::{Cursor, Detail, GroupId, HeldDetail, Output, Step};
use mangrove_graph::{Error, Result};
use parking_lot::{Mutex, MutexGuard};

use crate::barrier::merge::Merger;
use crate::barrier::per_thread::{HOME, Parts};
use crate::barrier::vertex_runs::VertexRuns;
use crate::rows::Rows;

/// The messages that one call of [`SharedMerger::combine`] merges.
const COMBINED_MESSAGES: usize = 32;

/// The fewest rows whose end is worked off in parts.
const PARTS_ROWS: usize = 1 << 12;

/// The rows that a part of the end sends, at least and at most.
const PART_ROWS: (usize, usize) = (1 << 10, 1 << 13);

/// As many entries or fewer are sorted by the home: other threads would save little time.
const SORTED_ENTRIES: usize = 1 << 12;

/// See the header of this file.
pub(crate) struct SharedMerger {
    mergers: Parts<Merger>,
    end: Mutex<End>,
}

/// How far the end is. Its lock is taken before those of mergers.
enum End {
    /// Threads add rows.
    Open,
    /// Parts sort the rows of threads. What is sorted is here.
    Sorting(VertexRuns),
    /// Parts send ranges.
    Sending(Vec<Arc<Mutex<VertexRuns>>>),
    /// The home merges the rows of all threads; so many mergers are done.
    Combining(usize),
}

/// A part of the end: the number of a merger to sort, or of a range to send.
#[derive(Debug)]
struct MergePart(usize);

impl HeldDetail for MergePart {
    fn bytes(&self) -> u64 {
        size_of::<MergePart>() as u64
    }
}

impl Default for SharedMerger {
    fn default() -> Self {
        SharedMerger::new(Merger::new(true))
    }
}

impl SharedMerger {
    /// Rows that the home has merged, for several threads.
    pub fn new(merged: Merger) -> Self {
        SharedMerger { mergers: Parts::new(merged, || Merger::new(true)), end: Mutex::new(End::Open) }
    }

    /// Returns the rows of a thread.
    pub fn of(&self, thread: usize) -> MutexGuard<'_, Merger> {
        self.mergers.of(thread)
    }

    /// Makes a step of the end: merges rows of different threads and sends them along an edge in `group`, or hands out
    /// parts of that. No thread may add rows between the first step and the last one. Fails if a bulk overflows.
    pub fn end_step(&self, edge: usize, group: GroupId, out: &mut Output<'_, Rows>) -> Result<Step> {
        let mut parts = 0;
        let rows = {
            let mut end = self.end.lock();
            if matches!(*end, End::Open) {
                *end = self.begin_end(&mut parts, out)?;
            }
            match &mut *end {
                // Other threads sort first.
                End::Sorting(_) if parts > 0 => None,
                End::Sorting(sorted) => {
                    let ranges = std::mem::take(sorted).ranges(PART_ROWS.0, PART_ROWS.1);
                    parts = ranges.len();
                    *end = End::Sending(ranges.into_iter().map(|range| Arc::new(Mutex::new(range))).collect());
                    None
                }
                // A part that was dropped has left its range.
                End::Sending(ranges) => match ranges.iter().find(|range| !range.lock().is_empty()) {
                    Some(range) => range.lock().take_next(out.context().requirements.one_bulk, out.control())?,
                    None => None,
                },
                End::Combining(done) => {
                    if !self.combine(done, out)? {
                        return Ok(Step::More);
                    }
                    self.mergers.of(HOME).take_next(out)?
                }
                End::Open => None,
            }
        };
        (0..parts).for_each(|part| out.hand_out(group, Box::new(MergePart(part))));
        if let Some(rows) = rows {
            out.emit(edge, group, rows)?;
        }
        if parts > 0 || !self.is_empty() {
            return Ok(Step::More);
        }
        *self.end.lock() = End::Open;
        Ok(Step::Done)
    }

    /// Chooses how the end is worked off. Sets the number of parts that other threads sort.
    fn begin_end(&self, parts: &mut usize, out: &Output<'_, Rows>) -> Result<End> {
        let (mut rows, mut entries, mut have_runs) = (0, 0, true);
        for merger in self.mergers.all() {
            let merger = merger.lock();
            rows += merger.len();
            entries += merger.entries();
            have_runs &= merger.is_empty() || merger.has_runs();
        }
        if rows < PARTS_ROWS || !have_runs {
            return Ok(End::Combining(HOME + 1));
        }
        let mut sorted = VertexRuns::default();
        if entries > SORTED_ENTRIES {
            // The threads with the lowest numbers have rows.
            *parts = self.mergers.all().iter().rposition(|merger| !merger.lock().is_empty()).map_or(0, |last| last + 1);
        } else {
            for merger in self.mergers.all() {
                let mut merger = merger.lock();
                if !merger.is_empty() {
                    sorted.add(merger.take_runs(out)?);
                }
            }
        }
        Ok(End::Sorting(sorted))
    }

    /// Works on a part of the end that [`SharedMerger::end_step`] has handed out.
    pub fn work_part(&self, edge: usize, group: GroupId, at: &mut Cursor, out: &mut Output<'_, Rows>) -> Result<Step> {
        let Some(part) = at.take_held::<MergePart>() else { return Err(Error::bug("a part of a merge is a number")) };
        let range = match &*self.end.lock() {
            End::Sending(ranges) => ranges.get(part.0).cloned(),
            End::Open | End::Sorting(_) | End::Combining(_) => None,
        };
        let Some(range) = range else {
            self.sort(part.0, out)?;
            return Ok(Step::Done);
        };
        let (rows, is_last) = {
            let mut range = range.lock();
            (range.take_next(out.context().requirements.one_bulk, out.control())?, range.is_empty())
        };
        if let Some(rows) = rows {
            out.emit(edge, group, rows)?;
        }
        at.detail = Detail::Held(part);
        Ok(if is_last { Step::Done } else { Step::More })
    }

    /// Sorts the rows of a thread.
    fn sort(&self, merger: usize, out: &Output<'_, Rows>) -> Result<()> {
        let Some(merger) = self.mergers.all().get(merger) else { return Ok(()) };
        let mut runs = merger.lock().take_runs(out)?;
        match &mut *self.end.lock() {
            End::Sorting(sorted) => sorted.add(runs),
            End::Open | End::Sending(_) | End::Combining(_) => runs.clear(out.control()),
        }
        Ok(())
    }

    /// Merges rows of different threads into those of the home. Returns false if it must be called again.
    fn combine(&self, done: &mut usize, out: &Output<'_, Rows>) -> Result<bool> {
        let mut left = COMBINED_MESSAGES;
        let mut all = self.mergers.of(HOME);
        while let Some(next) = self.mergers.all().get(*done) {
            let mut next = next.lock();
            if all.is_empty() {
                std::mem::swap(&mut *all, &mut *next);
            }
            while let Some(rows) = next.take_next(out)? {
                all.add(rows, out)?;
                left -= 1;
                if left == 0 {
                    return Ok(false);
                }
            }
            *done += 1;
        }
        Ok(true)
    }

    /// Drops all rows. An end that has begun goes on, without rows.
    pub fn clear(&self, out: &Output<'_, Rows>) {
        let mut end = self.end.lock();
        self.mergers.all().iter().for_each(|merger| merger.lock().clear(out));
        match &mut *end {
            End::Sorting(sorted) => sorted.clear(out.control()),
            End::Sending(ranges) => ranges.iter().for_each(|range| range.lock().clear(out.control())),
            End::Open | End::Combining(_) => {}
        }
    }

    /// Returns true if no row is left.
    pub fn is_empty(&self) -> bool {
        let is_sent = match &*self.end.lock() {
            End::Sorting(sorted) => sorted.is_empty(),
            End::Sending(ranges) => ranges.iter().all(|range| range.lock().is_empty()),
            End::Open | End::Combining(_) => true,
        };
        is_sent && self.mergers.all().iter().all(|merger| merger.lock().is_empty())
    }
}
