//! `barrier()`: waits for all rows of a group and sends them merged. And merging between two hops, which gathers all rows
//! as long as they do not take much memory ([`Merger::pass`]).
//!
//! If helpers have joined the run and the order of rows does not matter, threads merge the rows of a group together
//! (FLOW-29), and also its end (FLOW-49). With `normSack`, the sacks of all rows are added up at the end, so the rows
//! stay at the home.

use std::sync::{Arc, Weak};

use mangrove_flow::{
    Cursor, Detail, GroupId, HeldDetail, Operator, Output, QueryControl, Shared, SharedState, Step, TagSet,
};
use mangrove_graph::{FastMap, Result, Value, numeric};
use parking_lot::Mutex;

use crate::barrier::merge::{Merger, Worth};
use crate::barrier::per_thread::{HOME, Threads};
use crate::barrier::shared_merge::SharedMerger;
use crate::rows::Rows;

/// The rows of each open group, merged by several threads.
#[derive(Default)]
struct SharedGroups {
    groups: Mutex<FastMap<GroupId, Arc<SharedMerger>>>,
    threads: Threads,
}

/// The place of the rows.
enum Memory {
    /// One thread works on the query.
    Groups(FastMap<GroupId, Merger>),
    /// Several threads do.
    Shared(Arc<SharedGroups>),
    /// As `Shared`, on a helper: the operator at the home holds it. And the number of the helper's thread.
    Joined(Weak<SharedGroups>, usize),
}

/// See the header of this file.
pub(crate) struct Barrier {
    norm_sack: bool,
    /// True if rows may leave before all have come.
    passes: bool,
    worth: Worth,
    /// True if several threads may work at it.
    may_share: bool,
    memory: Memory,
}

impl Barrier {
    /// With `norm_sack`, the sacks of each instance are scaled so that they add up to 1. `may_share` is for a barrier
    /// whose rows may come in any order, and whose groups are few.
    pub fn new(norm_sack: bool, may_share: bool) -> Self {
        let (worth, memory) = (Worth::default(), Memory::Groups(FastMap::default()));
        Barrier { norm_sack, passes: false, worth, may_share: may_share && !norm_sack, memory }
    }

    /// A merge between two hops that several threads may work at.
    pub fn between_hops() -> Self {
        Barrier { passes: true, ..Barrier::new(false, true) }
    }
}

/// Where rows go when they come.
struct Gatherer<'a> {
    passes: bool,
    worth: &'a mut Worth,
    group: GroupId,
}

impl Gatherer<'_> {
    fn add(self, merger: &mut Merger, rows: Rows, out: &mut Output<'_, Rows>) -> Result<()> {
        if self.passes { merger.pass(self.group, rows, self.worth, out) } else { merger.add(rows, out) }
    }
}

impl SharedGroups {
    /// Returns the rows of a group that threads merge.
    fn rows_of(&self, group: GroupId) -> Arc<SharedMerger> {
        self.groups.lock().entry(group).or_default().clone()
    }
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
        for rows in merger.with_sacks() {
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
    fn is_by_group(&self) -> bool {
        true
    }

    fn recycle(&mut self) -> bool {
        let is_empty = match &self.memory {
            Memory::Groups(groups) => groups.is_empty(),
            Memory::Shared(shared) => shared.groups.lock().is_empty(),
            Memory::Joined(..) => true,
        };
        self.worth = Worth::default();
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
                    merger.clear(out);
                }
            }
            // A helper may still add rows. The end of the group drops all.
            Memory::Shared(_) | Memory::Joined(..) => {}
        }
    }

    fn share(&mut self) -> Option<Shared> {
        let Memory::Groups(groups) = &mut self.memory else { return None };
        if !self.may_share {
            return None;
        }
        let shared = |(group, merger)| (group, Arc::new(SharedMerger::new(merger)));
        let groups = Mutex::new(std::mem::take(groups).into_iter().map(shared).collect());
        let state = Arc::new(SharedGroups { groups, threads: Threads::default() });
        self.memory = Memory::Shared(state.clone());
        self.worth = Worth::of_heavy();
        Some(Shared { state, from_port: 0 })
    }

    fn join(&mut self, state: &SharedState) {
        if let Ok(shared) = state.clone().downcast::<SharedGroups>() {
            self.memory = Memory::Joined(Arc::downgrade(&shared), shared.threads.join());
            self.worth = Worth::of_heavy();
        }
    }

    fn receive(&mut self, _port: u8, group: GroupId, batch: Rows, out: &mut Output<'_, Rows>) -> Result<()> {
        let gatherer = Gatherer { passes: self.passes, worth: &mut self.worth, group };
        match &mut self.memory {
            Memory::Groups(groups) => {
                gatherer.add(groups.entry(group).or_insert_with(|| Merger::new(self.may_share)), batch, out)
            }
            Memory::Shared(shared) => gatherer.add(&mut shared.rows_of(group).of(HOME), batch, out),
            // If the state is gone, the run is over.
            Memory::Joined(shared, thread) => match shared.upgrade() {
                Some(shared) => gatherer.add(&mut shared.rows_of(group).of(*thread), batch, out),
                None => Ok(()),
            },
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
                    if let Some(mut rows) = merger.take_next(out)? {
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
            Memory::Shared(shared) => {
                let rows = shared.groups.lock().get(&group).cloned();
                if let Some(rows) = rows {
                    if out.is_cancelled(group) {
                        rows.clear(out);
                    }
                    if rows.end_step(0, group, out)? == Step::More {
                        return Ok(Step::More);
                    }
                    shared.groups.lock().remove(&group);
                }
            }
            Memory::Joined(..) => {}
        }
        out.finish_all(group, instances)?;
        Ok(Step::Done)
    }

    fn work_part(&mut self, group: GroupId, at: &mut Cursor, out: &mut Output<'_, Rows>) -> Result<Step> {
        let shared = match &self.memory {
            Memory::Groups(_) => None,
            Memory::Shared(shared) => Some(shared.clone()),
            // If the state is gone, the run is over.
            Memory::Joined(shared, _) => shared.upgrade(),
        };
        let rows = shared.and_then(|shared| shared.groups.lock().get(&group).cloned());
        rows.map_or(Ok(Step::Done), |rows| rows.work_part(0, group, at, out))
    }
}
