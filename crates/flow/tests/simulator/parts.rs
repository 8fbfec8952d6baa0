//! An operator whose end is worked off in parts (FLOW-49), and what its runs must find.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
#[cfg(not(feature = "model"))]
use std::sync::Mutex;

use mangrove_flow::{Cursor, Detail, GroupId, HeldDetail, Operator, Output, Shared, SharedState, Step};
use mangrove_graph::{Error, Result};
#[cfg(feature = "model")]
use shuttle::sync::Mutex;

use crate::toys::Numbers;

/// How often each number of each instance has come.
type Counts = BTreeMap<(u32, i64), u64>;

/// Sends each number of an instance once, after all have come, and then how many rows of the instance came, as a
/// negative number.
///
/// In an open run, threads share what has come (FLOW-29), and the end is worked off in two waves of parts. A part sends
/// the numbers with one remainder. In the second wave, the end sends numbers itself, too.
pub struct Tally {
    shared: Arc<Mutex<HashMap<GroupId, Counts>>>,
    /// At the home: how many rows of each instance came, by group.
    ended: HashMap<GroupId, BTreeMap<u32, u64>>,
    is_open: bool,
    /// Each part fails.
    fails: bool,
}

/// The remainder of the numbers of a part.
#[derive(Debug)]
struct Remainder(i64);

impl HeldDetail for Remainder {
    fn bytes(&self) -> u64 {
        8
    }
}

/// Numbers with different remainders when divided by this are in different parts.
const PARTS: i64 = 6;

/// The remainders of the parts of each wave. The end of the second one works off the others.
const WAVES: [&[i64]; 2] = [&[0, 1, 2], &[3, 4]];

/// The numbers that one step of a part sends.
const STEP_NUMBERS: usize = 10;

/// The charge of a number.
const NUMBER_BYTES: u64 = 16;

impl Tally {
    pub fn new(fails: bool) -> Self {
        Tally { shared: Arc::default(), ended: HashMap::new(), is_open: false, fails }
    }

    /// Takes numbers of a group with this remainder, at most `most` of them.
    fn take(&self, group: GroupId, remainder: i64, most: usize, out: &Output<'_, Numbers>) -> Numbers {
        let mut groups = self.shared.lock().unwrap();
        let Some(counts) = groups.get_mut(&group) else { return Numbers::default() };
        let all = counts.keys().copied();
        let taken: Vec<(u32, i64)> = all.filter(|(_, n)| n.rem_euclid(PARTS) == remainder).take(most).collect();
        counts.retain(|number, _| taken.binary_search(number).is_err());
        out.control().release(taken.len() as u64 * NUMBER_BYTES);
        Numbers(taken)
    }

    fn send_all(&self, group: GroupId, remainder: i64, out: &mut Output<'_, Numbers>) -> Result<()> {
        let numbers = self.take(group, remainder, usize::MAX, out);
        out.emit(0, group, numbers)
    }
}

impl Operator<Numbers> for Tally {
    fn share(&mut self) -> Option<Shared> {
        self.is_open = true;
        Some(Shared { state: self.shared.clone(), from_port: 0 })
    }

    fn join(&mut self, state: &SharedState) {
        self.shared = state.clone().downcast().expect("the state of the same operator");
    }

    fn receive(&mut self, _: u8, group: GroupId, batch: Numbers, out: &mut Output<'_, Numbers>) -> Result<()> {
        let mut groups = self.shared.lock().unwrap();
        let counts = groups.entry(group).or_default();
        let before = counts.len();
        batch.0.into_iter().for_each(|number| *counts.entry(number).or_default() += 1);
        out.control().charge((counts.len() - before) as u64 * NUMBER_BYTES)
    }

    fn finish_step(
        &mut self,
        _: u8,
        group: GroupId,
        instances: u32,
        at: &mut Cursor,
        out: &mut Output<'_, Numbers>,
    ) -> Result<Step> {
        let wave = if let Detail::Words([wave, _]) = at.detail { wave as usize } else { 0 };
        if out.is_cancelled(group) {
            self.ended.remove(&group);
            (0..PARTS).for_each(|remainder| drop(self.take(group, remainder, usize::MAX, out)));
        } else if wave == 0 {
            let mut rows = BTreeMap::new();
            for ((tag, _), count) in self.shared.lock().unwrap().get(&group).into_iter().flatten() {
                *rows.entry(*tag).or_default() += count;
            }
            self.ended.insert(group, rows);
        }
        if self.is_open && wave < WAVES.len() && !out.is_cancelled(group) {
            if wave > 0 {
                self.check_parts(group, WAVES[wave - 1]);
                self.send_all(group, PARTS - 1, out)?;
            }
            WAVES[wave].iter().for_each(|remainder| out.hand_out(group, Box::new(Remainder(*remainder))));
            at.detail = Detail::Words([wave as u64 + 1, 0]);
            return Ok(Step::More);
        }
        if wave == 0 {
            (0..PARTS).try_for_each(|remainder| self.send_all(group, remainder, out))?;
        }
        let left = self.shared.lock().unwrap().remove(&group).unwrap_or_default();
        assert!(left.is_empty(), "the end goes on before a part of it is worked off");
        let rows = self.ended.remove(&group).unwrap_or_default();
        out.emit(0, group, Numbers(rows.into_iter().map(|(tag, count)| (tag, -(count as i64))).collect()))?;
        out.finish_all(group, instances)?;
        Ok(Step::Done)
    }

    fn work_part(&mut self, group: GroupId, at: &mut Cursor, out: &mut Output<'_, Numbers>) -> Result<Step> {
        if self.fails {
            return Err(Error::invalid("a part has failed"));
        }
        let part = at.take_held::<Remainder>().expect("a part of this operator");
        let numbers = self.take(group, part.0, STEP_NUMBERS, out);
        let step = if numbers.0.len() == STEP_NUMBERS { Step::More } else { Step::Done };
        at.detail = Detail::Held(part);
        out.emit(0, group, numbers)?;
        Ok(step)
    }
}

impl Tally {
    /// Fails unless no number with these remainders is left.
    fn check_parts(&self, group: GroupId, remainders: &[i64]) {
        let groups = self.shared.lock().unwrap();
        let mut left = groups.get(&group).into_iter().flat_map(|counts| counts.keys());
        let is_left = left.any(|(_, n)| remainders.contains(&n.rem_euclid(PARTS)));
        assert!(!is_left, "the end goes on before a part of it is worked off");
    }
}

/// What [`Tally`] makes of the numbers of an instance.
pub fn tallied(numbers: impl IntoIterator<Item = i64>) -> Vec<i64> {
    let all: Vec<i64> = numbers.into_iter().collect();
    let distinct: std::collections::BTreeSet<i64> = all.iter().copied().collect();
    distinct.into_iter().chain([-(all.len() as i64)]).collect()
}
