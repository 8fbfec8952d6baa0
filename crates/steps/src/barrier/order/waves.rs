//! A merge of sorted runs by several threads (FLOW-49).
//!
//! The runs are cut into parts ([`super::parts`]), which are handed out in *waves*. While threads merge the parts of a
//! wave, the rows of the wave before leave, in order. So the merge takes little more memory than the runs.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use mangrove_flow::{Batch as _, Cursor, Detail, GroupId, HeldDetail, Output, QueryControl, Step};
use mangrove_graph::{Error, Result};
use parking_lot::Mutex;

use super::parts::{PART_ROWS, cut};
use super::runs::{Criteria, Merge, Run};
use super::sorter::RowSorter;
use crate::rows::Rows;
use crate::values::element_order::{ElementIds, ElementOrder};

/// The parts of a wave: enough for a few threads of which some are slow.
const WAVE_PARTS: usize = 8;

/// Fewer rows are merged by the home alone.
const ROWS_MIN: usize = 2 * PART_ROWS;

/// See the header of this file.
pub(super) struct WaveMerge {
    /// The parts that have not been handed out.
    parts: VecDeque<Vec<Run>>,
    ids: Arc<ElementIds>,
    wave: Arc<Mutex<Wave>>,
}

/// The parts that have been handed out.
#[derive(Default)]
struct Wave {
    /// The merged rows of each part.
    rows: Vec<Vec<Rows>>,
    /// The bytes charged for these rows, and for the runs that they are made of.
    charged: u64,
}

/// A part that any thread may merge.
struct Part {
    number: usize,
    work: PartWork,
    ids: Arc<ElementIds>,
    wave: Arc<Mutex<Wave>>,
}

enum PartWork {
    Runs(Vec<Run>),
    Merge(Merge),
}

impl fmt::Debug for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Part").field("number", &self.number).finish_non_exhaustive()
    }
}

/// What it holds is charged as state of the operator.
impl HeldDetail for Part {
    fn bytes(&self) -> u64 {
        0
    }
}

impl WaveMerge {
    /// Returns true if runs are worth being merged by several threads.
    pub fn is_worth(runs: &[Run]) -> bool {
        runs.len() > 1 && runs.iter().map(Run::len).sum::<usize>() >= ROWS_MIN
    }

    /// A merge of runs without a limit. `ids` has the ids of the elements among their keys.
    pub fn new(runs: Vec<Run>, ids: ElementIds, sorter: &RowSorter, out: &Output<'_, Rows>) -> Result<Self> {
        let criteria = Criteria { sorter, elements: ElementOrder::new(&*out.context().view, &ids) };
        let parts = cut(runs, criteria, out.control())?.into();
        Ok(WaveMerge { parts, ids: Arc::new(ids), wave: Arc::default() })
    }

    /// After all parts of a wave are worked off: hands out the next wave, and returns the rows of the last one in order.
    /// Returns false with them if no part was left.
    pub fn next(&mut self, group: GroupId, out: &mut Output<'_, Rows>) -> (Vec<Rows>, bool) {
        let next: Vec<Vec<Run>> = self.parts.drain(..WAVE_PARTS.min(self.parts.len())).collect();
        let is_left = !next.is_empty();
        let mut wave = Wave { rows: (0..next.len()).map(|_| Vec::new()).collect(), charged: 0 };
        for (number, mut runs) in next.into_iter().enumerate() {
            // The wave has the charge, so that it can be released if the part is dropped.
            wave.charged += runs.iter_mut().map(Run::take_charge).sum::<u64>();
            let work = PartWork::Runs(runs);
            let part = Part { number, work, ids: self.ids.clone(), wave: self.wave.clone() };
            out.hand_out(group, Box::new(part));
        }
        let Wave { rows, charged } = std::mem::replace(&mut *self.wave.lock(), wave);
        out.control().release(charged);
        (rows.into_iter().flatten().collect(), is_left)
    }

    /// Releases the charge of what is left.
    pub fn close(mut self, control: &QueryControl) {
        let parts: u64 = self.parts.iter_mut().flatten().map(Run::take_charge).sum();
        control.release(self.wave.lock().charged + parts);
    }
}

/// Merges the next rows of the part that a cursor holds, as many as a message has. See
/// [`mangrove_flow::Operator::work_part`].
pub(super) fn work_on(at: &mut Cursor, sorter: &RowSorter, out: &Output<'_, Rows>) -> Result<Step> {
    let Some(part) = at.take_held::<Part>() else { return Err(Error::bug("a part of an order() is a merge")) };
    let Part { number, work, ids, wave } = *part;
    let criteria = Criteria { sorter, elements: ElementOrder::new(&*out.context().view, &ids) };
    let mut merge = match work {
        PartWork::Runs(runs) => Merge::new(runs, criteria).without_keys(),
        PartWork::Merge(merge) => merge,
    };
    if !merge.is_empty() {
        let rows = merge.next(criteria, out.control())?.rows;
        let bytes = rows.bytes() as u64;
        out.control().charge(bytes)?;
        let mut wave = wave.lock();
        wave.charged += bytes;
        wave.rows[number].push(rows);
    }
    if merge.is_empty() {
        return Ok(Step::Done);
    }
    at.detail = Detail::Held(Box::new(Part { number, work: PartWork::Merge(merge), ids, wave }));
    Ok(Step::More)
}
