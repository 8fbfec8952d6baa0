//! A loop whose rounds threads share, and whose rows enter a round in parts of an end (FLOW-49).

use std::collections::HashMap;
use std::sync::Arc;
#[cfg(not(feature = "model"))]
use std::sync::Mutex;

use mangrove_flow::{
    Batch, Cursor, Detail, GroupId, HeldDetail, Operator, OuterTags, Output, Shared, SharedState, Step,
};
use mangrove_graph::Result;
#[cfg(feature = "model")]
use shuttle::sync::Mutex;

use crate::toys::Numbers;

/// A part of the end of a round: rows, and the edge along which they leave.
#[derive(Debug)]
struct Leaving(usize, Numbers);

impl HeldDetail for Leaving {
    fn bytes(&self) -> u64 {
        self.1.bytes() as u64
    }
}

/// A round of [`Rounds`]: the group outside, the number of the round, and the rows for the next one.
struct Round {
    outside: GroupId,
    number: u32,
    next: Vec<(u32, i64)>,
}

/// The rounds that are open, by their groups.
type SharedRounds = Mutex<HashMap<GroupId, Round>>;

/// A loop: rows go through the pipeline inside [`ROUNDS`] times. Threads share the rows that return (FLOW-29); rows
/// enter at the home, but those of later rounds in parts of an end (FLOW-49).
pub struct Rounds {
    is_open: bool,
    shared: Arc<SharedRounds>,
    /// The first round of each group that has entered.
    first: HashMap<GroupId, GroupId>,
}

const ROUNDS: u32 = 3;

impl Rounds {
    pub fn new() -> Self {
        Rounds { is_open: false, shared: Arc::new(Mutex::new(HashMap::new())), first: HashMap::new() }
    }

    fn open(&self, outside: GroupId, number: u32, out: &mut Output<'_, Numbers>) -> GroupId {
        let inside = out.open_group(outside, OuterTags::Same);
        self.shared.lock().unwrap().insert(inside, Round { outside, number, next: Vec::new() });
        inside
    }
}

impl Operator<Numbers> for Rounds {
    fn share(&mut self) -> Option<Shared> {
        self.is_open = true;
        Some(Shared { state: self.shared.clone(), from_port: 1 })
    }

    fn join(&mut self, state: &SharedState) {
        self.shared = state.clone().downcast().expect("the state of the same operator");
    }

    fn receive(&mut self, port: u8, group: GroupId, batch: Numbers, out: &mut Output<'_, Numbers>) -> Result<()> {
        if port == 0 {
            let inside = match self.first.get(&group) {
                Some(inside) => *inside,
                None => self.open(group, 1, out),
            };
            self.first.insert(group, inside);
            return out.emit(0, inside, batch);
        }
        let mut rounds = self.shared.lock().unwrap();
        rounds.get_mut(&group).expect("a round is open until its group has ended").next.extend(batch.0);
        Ok(())
    }

    fn finish_step(
        &mut self,
        port: u8,
        group: GroupId,
        instances: u32,
        at: &mut Cursor,
        out: &mut Output<'_, Numbers>,
    ) -> Result<Step> {
        if let Detail::Words([edge, to]) = at.detail {
            out.finish(edge as usize, GroupId::from_bits(to), instances)?;
            return Ok(Step::Done);
        }
        if port == 0 {
            let inside = self.first.remove(&group).expect("a row has entered");
            out.finish(0, inside, instances)?;
            return Ok(Step::Done);
        }
        let round = self.shared.lock().unwrap().remove(&group).expect("a round ends once");
        out.close_group(group);
        let is_last = round.number == ROUNDS;
        let (edge, to) =
            if is_last { (1, round.outside) } else { (0, self.open(round.outside, round.number + 1, out)) };
        for rows in round.next.chunks(if self.is_open { 100 } else { 1_000 }) {
            let rows = Numbers(rows.to_vec());
            if self.is_open {
                out.hand_out(to, Box::new(Leaving(edge, rows)));
            } else {
                out.emit(edge, to, rows)?;
            }
        }
        if self.is_open && !round.next.is_empty() {
            at.detail = Detail::Words([edge as u64, to.to_bits()]);
            return Ok(Step::More);
        }
        out.finish(edge, to, instances)?;
        Ok(Step::Done)
    }

    fn work_part(&mut self, group: GroupId, at: &mut Cursor, out: &mut Output<'_, Numbers>) -> Result<Step> {
        let Leaving(edge, rows) = *at.take_held().expect("a part of this operator");
        out.emit(edge, group, rows)?;
        Ok(Step::Done)
    }
}
