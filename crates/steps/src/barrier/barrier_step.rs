//! `barrier()`: waits for all rows of a group and sends them merged. And merging between two hops, which gathers all rows
//! as long as they do not take much memory ([`Merger::pass`]).
//!
//! If helpers have joined the run and the order of rows does not matter, each thread merges rows of its own
//! ([`PerThread`]). When the group has ended, the home merges what the threads have merged. With `normSack`, the sacks of
//! all rows are added up at the end, so the rows stay at the home.

use mangrove_flow::{
    Cursor, Detail, GroupId, HeldDetail, Operator, Output, QueryControl, Shared, SharedState, Step, TagSet,
};
use mangrove_graph::{FastMap, Result, Value, numeric};

use crate::barrier::merge::{Merger, Worth};
use crate::barrier::per_thread::PerThread;
use crate::rows::Rows;

/// The messages of other threads that a step merges.
const COMBINED_MESSAGES: usize = 32;

/// See the header of this file.
pub(crate) struct Barrier {
    norm_sack: bool,
    /// True if rows may leave before all have come.
    passes: bool,
    worth: Worth,
    /// True if several threads may work at it.
    may_share: bool,
    groups: PerThread<FastMap<GroupId, Merger>>,
}

impl Barrier {
    /// With `norm_sack`, the sacks of each instance are scaled so that they add up to 1. `may_share` is for a barrier
    /// whose rows may come in any order, and whose groups are few.
    pub fn new(norm_sack: bool, may_share: bool) -> Self {
        let (worth, groups) = Default::default();
        Barrier { norm_sack, passes: false, worth, may_share: may_share && !norm_sack, groups }
    }

    /// A merge between two hops that several threads may work at.
    pub fn between_hops() -> Self {
        Barrier { passes: true, ..Barrier::new(false, true) }
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

/// Merges some rows of another thread with those of the home, and takes as many messages from `left`.
fn take_over(home: &mut Merger, other: &mut Merger, left: &mut usize, out: &Output<'_, Rows>) -> Result<Step> {
    if home.is_empty() {
        std::mem::swap(home, other);
    }
    while let Some(rows) = other.take_next(out)? {
        home.add(rows, out)?;
        *left -= 1;
        if *left == 0 {
            return Ok(Step::More);
        }
    }
    Ok(Step::Done)
}

impl Operator<Rows> for Barrier {
    fn is_by_group(&self) -> bool {
        true
    }

    fn recycle(&mut self) -> bool {
        self.worth = Worth::default();
        self.groups.recycle(FastMap::is_empty)
    }

    fn cancelled(&mut self, group: GroupId, tags: Option<&TagSet>, out: &Output<'_, Rows>) {
        if tags.is_some() {
            return;
        }
        // What a helper adds after this is dropped at the end of the group.
        self.groups.each(|groups| {
            if let Some(mut merger) = groups.remove(&group) {
                merger.clear(out);
            }
        });
    }

    fn share(&mut self) -> Option<Shared> {
        if self.may_share { self.groups.share() } else { None }
    }

    fn join(&mut self, state: &SharedState) {
        self.groups.join(state);
    }

    fn receive(&mut self, _port: u8, group: GroupId, batch: Rows, out: &mut Output<'_, Rows>) -> Result<()> {
        let Barrier { passes, worth, may_share, groups, .. } = self;
        groups.with(|groups| {
            let merger = groups.entry(group).or_insert_with(|| Merger::new(*may_share));
            if *passes { merger.pass(group, batch, worth, out) } else { merger.add(batch, out) }
        })
    }

    /// After a run of several threads, the first steps merge their rows. Then each step sends one batch. With
    /// `norm_sack`, the cursor holds the sums of the sacks.
    fn finish_step(
        &mut self,
        _port: u8,
        group: GroupId,
        instances: u32,
        at: &mut Cursor,
        out: &mut Output<'_, Rows>,
    ) -> Result<Step> {
        let Barrier { norm_sack, groups, .. } = self;
        let (is_cancelled, mut left) = (out.is_cancelled(group), COMBINED_MESSAGES);
        let combined = groups.combine(|home, other| {
            let Some(theirs) = other.get_mut(&group) else { return Ok(Step::Done) };
            if is_cancelled {
                theirs.clear(out);
            } else {
                let ours = home.entry(group).or_insert_with(|| Merger::new(true));
                if take_over(ours, theirs, &mut left, out)? == Step::More {
                    return Ok(Step::More);
                }
            }
            other.remove(&group);
            Ok(Step::Done)
        })?;
        if combined == Step::More {
            return Ok(Step::More);
        }
        let (rows, is_left) = groups.at_home(|groups| {
            let Some(merger) = groups.get_mut(&group) else { return Ok((None, false)) };
            let totals = match at.take_held::<SackTotals>() {
                None if *norm_sack => Some(Box::new(SackTotals::of(merger, out.control())?)),
                held => held,
            };
            let mut rows = merger.take_next(out)?;
            if let (Some(rows), Some(totals)) = (&mut rows, &totals) {
                normalize(rows, totals)?;
            }
            if merger.is_empty() {
                groups.remove(&group);
                return Ok((rows, false));
            }
            at.detail = totals.map_or(Detail::Start, |totals| Detail::Held(totals));
            Ok((rows, true))
        })?;
        if let Some(rows) = rows {
            out.emit(0, group, rows)?;
        }
        if is_left {
            return Ok(Step::More);
        }
        out.finish_all(group, instances)?;
        Ok(Step::Done)
    }
}
