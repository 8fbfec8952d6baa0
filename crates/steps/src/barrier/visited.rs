//! The memory of the `dedup()`s in the body of a loop, over all of its iterations.
//!
//! Gremlin's `dedup()` remembers from one iteration to the next: `g.V(1).repeat(both().dedup()).emit()` meets every
//! vertex once and ends. But each iteration is a group of its own, so that a barrier in the body sees one at a time.
//! This table maps each iteration to its loop, and keeps what was seen by loop and operator. A loop directly in the
//! body of another one shares the memory of the outer loop. Inside a nested traversal that runs for each row
//! (`local()`, `where()` …), every row has a loop of its own, by its tag.
//!
//! A loop and the `dedup()`s in its body share the table by an `Arc`. Both are at home on the same node (FLOW-6). If
//! helpers have joined the run, their replicas of the `dedup()`s use the table, too; then the lock is held for a
//! look-up only.

use std::sync::Arc;

use mangrove_flow::topology::OpId;
use mangrove_flow::{GroupId, Output};
use parking_lot::Mutex;

use crate::barrier::seen::SeenRows;
use crate::barrier::shared_seen::{Scratch, SharedSeen};
use crate::rows::Rows;
use mangrove_graph::FastMap;

/// The table of one loop and the loops directly in its body.
#[derive(Default)]
pub(crate) struct Visited {
    state: Mutex<VisitedState>,
}

#[derive(Default)]
struct VisitedState {
    /// For each open iteration: the group that entered the outermost loop.
    loops: FastMap<GroupId, GroupId>,
    seen: FastMap<GroupId, FastMap<OpId, Seen>>,
    /// True if several threads work on the query.
    is_shared: bool,
}

/// What an operator has seen.
enum Seen {
    /// On one thread.
    Own(Box<SeenRows>),
    /// On several threads.
    Shared(Arc<SharedSeen>),
}

impl Seen {
    fn new(seen: SeenRows, is_shared: bool) -> Self {
        if is_shared { Seen::Shared(Arc::new(SharedSeen::new(seen))) } else { Seen::Own(Box::new(seen)) }
    }

    fn bytes(&self) -> u64 {
        match self {
            Seen::Own(seen) => seen.bytes(),
            Seen::Shared(seen) => seen.bytes(),
        }
    }
}

impl Visited {
    /// Ends a run. Returns true if no loop is running and nothing is remembered.
    pub fn recycle(&self) -> bool {
        let mut state = self.state.lock();
        state.is_shared = false;
        state.loops.is_empty() && state.seen.is_empty()
    }

    /// Lets several threads use the table from here on (FLOW-29).
    pub fn share(&self) {
        let mut state = self.state.lock();
        state.is_shared = true;
        for seen in state.seen.values_mut().flat_map(FastMap::values_mut) {
            if let Seen::Own(own) = seen {
                *seen = Seen::new(std::mem::take(&mut **own), true);
            }
        }
    }

    /// Notes that a group is an iteration of the loop that `entered` has entered.
    pub fn iteration_begins(&self, entered: GroupId, iteration: GroupId) {
        let mut state = self.state.lock();
        let outermost = state.loops.get(&entered).copied().unwrap_or(entered);
        state.loops.insert(iteration, outermost);
    }

    /// Notes that an iteration has ended.
    pub fn iteration_ends(&self, iteration: GroupId) {
        self.state.lock().loops.remove(&iteration);
    }

    /// Notes that a loop has ended. Only the outermost loop forgets, because its next iteration enters the inner ones
    /// again.
    pub fn loop_ends(&self, entered: GroupId, out: &Output<'_, Rows>) {
        let mut state = self.state.lock();
        if state.loops.contains_key(&entered) {
            return;
        }
        for seen in state.seen.remove(&entered).into_iter().flat_map(|operators| operators.into_values()) {
            out.control().release(seen.bytes());
        }
    }

    /// Returns the rows of an iteration that an operator in the body has not seen in its loop, and the bytes that
    /// remembering them adds.
    pub fn admit(
        &self,
        iteration: GroupId,
        operator: OpId,
        batch: Rows,
        computed: usize,
        scratch: &mut Scratch,
    ) -> (Rows, u64) {
        let shared = {
            let mut state = self.state.lock();
            let outermost = state.loops.get(&iteration).copied().unwrap_or(iteration);
            let is_shared = state.is_shared;
            let operators = state.seen.entry(outermost).or_default();
            match operators.entry(operator).or_insert_with(|| Seen::new(SeenRows::default(), is_shared)) {
                Seen::Own(seen) => return seen.admit(batch, computed),
                Seen::Shared(seen) => seen.clone(),
            }
        };
        shared.admit(batch, computed, scratch)
    }
}
