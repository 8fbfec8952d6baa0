//! `barrier()`: waits for all rows of a group and sends them merged.
//!
//! If helpers have joined the run and the order of rows does not matter, threads merge the rows of a group together
//! (FLOW-29). With `normSack`, the sacks of all rows are added up at the end, so the rows stay at the home.

use std::sync::{Arc, Weak};

use mangrove_flow::{
    Cursor, Detail, GroupId, HeldDetail, Operator, Output, QueryControl, Shared, SharedState, Step, TagSet,
};
use mangrove_graph::{FastMap, Result, Value, numeric};
use parking_lot::Mutex;

use crate::barrier::merge::Merger;
use crate::barrier::shared_merge::SharedMerger;
use crate::rows::Rows;

/// The rows of each open group, merged by several threads.
type SharedGroups = Mutex<FastMap<GroupId, Arc<SharedMerger>>>;

/// The place of the rows.
enum Memory {
    /// One thread works on the query.
    Groups(FastMap<GroupId, Merger>),
    /// Several threads do.
    Shared(Arc<SharedGroups>),
    /// As `Shared`, on a helper: the operator at the home holds it.
    Joined(Weak<SharedGroups>),
}

/// See the header of this file.
pub(crate) struct Barrier {
    norm_sack: bool,
    /// True if several threads may work at it.
    may_share: bool,
    memory: Memory,
}

impl Barrier {
    /// With `norm_sack`, the sacks of each instance are scaled so that they add up to 1. `may_share` is for a barrier
    /// whose rows may come in any order, and whose groups are few.
    pub fn new(norm_sack: bool, may_share: bool) -> Self {
        Barrier { norm_sack, may_share: may_share && !norm_sack, memory: Memory::Groups(FastMap::default()) }
    }
}

/// Returns the rows of a group that threads merge.
fn rows_of(groups: &SharedGroups, group: GroupId) -> Arc<SharedMerger> {
    groups.lock().entry(group).or_default().clone()
}

/// The sum of the sacks of each instance of a group that has ended.
#[derive(Debug)]
struct SackTotals(FastMap<u32, Value>);

impl HeldDetail for SackTotals {
    fn bytes(&self) -> u64 {
        (self.0.len() * size_of::<(u32, Value)>()) as u64
    }
}

impl SackTotals {
    fn of(merger: &Merger, control: &QueryControl) -> Result<Self> {
        let mut totals: FastMap<u32, Value> = FastMap::default();
        for rows in merger.batches() {
            control.check()?;
            for (row, sack) in rows.sacks.iter().flatten().enumerate() {
                let share = numeric::times(sack, rows.bulk(row))?;
                match totals.entry(rows.tag(row)) {
                    hashbrown::hash_map::Entry::Vacant(index) => drop(index.insert(share)),
                    hashbrown::hash_map::Entry::Occupied(mut total) => {
                        *total.get_mut() = numeric::arithmetic(numeric::Operation::Add, total.get(), &share)?;
                    }
                }
            }
        }
        Ok(SackTotals(totals))
    }
}

/// Divides every sack by the sum of the sacks of its instance.
fn normalize(rows: &mut Rows, totals: &SackTotals) -> Result<()> {
    let Some(sacks) = rows.sacks.take() else { return Ok(()) };
    let divided = sacks.iter().enumerate().map(|(row, sack)| {
        let total = totals.0.get(&rows.tag(row)).unwrap_or(&Value::Null);
        // A share is a fraction: whole numbers are divided as doubles, large ones as decimals.
        let share = numeric::mean(sack, 1)?;
        numeric::arithmetic(numeric::Operation::Divide, &share, total)
    });
    rows.sacks = Some(divided.collect::<Result<_>>()?);
    Ok(())
}

impl Operator<Rows> for Barrier {
    fn recycle(&mut self) -> bool {
        let is_empty = match &self.memory {
            Memory::Groups(groups) => groups.is_empty(),
            Memory::Shared(groups) => groups.lock().is_empty(),
            Memory::Joined(_) => true,
        };
        if is_empty {
            self.memory = Memory::Groups(FastMap::default());
        }
        is_empty
    }

    fn cancelled(&mut self, group: GroupId, tags: Option<&TagSet>, out: &Output<'_, Rows>) {
        if tags.is_some() {
            return;
        }
        match &mut self.memory {
            Memory::Groups(groups) => {
                if let Some(mut merger) = groups.remove(&group) {
                    while merger.take_next(out).is_some() {}
                }
            }
            // A helper may still add rows. The end of the group drops all.
            Memory::Shared(_) | Memory::Joined(_) => {}
        }
    }

    fn share(&mut self) -> Option<Shared> {
        let Memory::Groups(groups) = &mut self.memory else { return None };
        if !self.may_share {
            return None;
        }
        let shared = |(group, merger)| (group, Arc::new(SharedMerger::new(merger)));
        let groups = Arc::new(Mutex::new(std::mem::take(groups).into_iter().map(shared).collect()));
        self.memory = Memory::Shared(groups.clone());
        Some(Shared { state: groups, from_port: 0 })
    }

    fn join(&mut self, state: &SharedState) {
        if let Ok(groups) = state.clone().downcast::<SharedGroups>() {
            self.memory = Memory::Joined(Arc::downgrade(&groups));
        }
    }

    fn receive(&mut self, _port: u8, group: GroupId, batch: Rows, out: &mut Output<'_, Rows>) -> Result<()> {
        match &mut self.memory {
            Memory::Groups(groups) => groups.entry(group).or_default().add(batch, out),
            Memory::Shared(groups) => rows_of(groups, group).add(batch, out),
            // If the state is gone, the run is over.
            Memory::Joined(groups) => groups.upgrade().map_or(Ok(()), |groups| rows_of(&groups, group).add(batch, out)),
        }
    }

    /// Each step sends one batch. With `norm_sack`, the cursor holds the sums of the sacks.
    fn finish_step(
        &mut self,
        _port: u8,
        group: GroupId,
        instances: u32,
        at: &mut Cursor,
        out: &mut Output<'_, Rows>,
    ) -> Result<Step> {
        match &mut self.memory {
            Memory::Groups(groups) => {
                if let Some(merger) = groups.get_mut(&group) {
                    let totals = match at.take_held::<SackTotals>() {
                        None if self.norm_sack => Some(Box::new(SackTotals::of(merger, out.control())?)),
                        held => held,
                    };
                    if let Some(mut rows) = merger.take_next(out) {
                        if let Some(totals) = &totals {
                            normalize(&mut rows, totals)?;
                        }
                        out.emit(0, group, rows)?;
                    }
                    if !merger.is_empty() {
                        at.detail = totals.map_or(Detail::Start, |totals| Detail::Held(totals));
                        return Ok(Step::More);
                    }
                    groups.remove(&group);
                }
            }
            Memory::Shared(groups) => {
                let rows = groups.lock().get(&group).cloned();
                if let Some(rows) = rows {
                    if let Some(next) = rows.take_next(out)
                        && !out.is_cancelled(group)
                    {
                        out.emit(0, group, next)?;
                    }
                    if !rows.is_empty() {
                        return Ok(Step::More);
                    }
                    groups.lock().remove(&group);
                }
            }
            Memory::Joined(_) => {}
        }
        out.finish_all(group, instances)?;
        Ok(Step::Done)
    }
}
