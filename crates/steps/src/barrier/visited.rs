//! The memory of the `dedup()`s in the body of a loop, over all of its iterations.
//!
//! Gremlin's `dedup()` remembers from one iteration to the next: `g.V(1).repeat(both().dedup()).emit()` meets every
//! vertex once and ends. But each iteration is a group of its own, so that a barrier in the body sees one at a time.
//! This table maps each iteration to its loop, and keeps what was seen by loop and operator. A loop directly in the
//! body of another one shares the memory of the outer loop. Inside a nested traversal that runs for each row
//! (`local()`, `where()` …), every row has a loop of its own, by its tag.
//!
//! A loop and the `dedup()`s in its body share the table by an `Arc`. Both are at home on the same node (FLOW-6), and
//! one thread at a time runs a query there, so the lock is never contended.

use mangrove_flow::topology::OpId;
use mangrove_flow::{GroupId, Output};
use parking_lot::Mutex;

use crate::barrier::seen::SeenRows;
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
    seen: FastMap<GroupId, FastMap<OpId, SeenRows>>,
}

impl Visited {
    /// Returns true if no loop is running and nothing is remembered.
    pub fn is_empty(&self) -> bool {
        let state = self.state.lock();
        state.loops.is_empty() && state.seen.is_empty()
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

    /// Runs `change` on the rows that an operator in the body has seen in the loop of an iteration.
    pub fn with<R>(&self, iteration: GroupId, operator: OpId, change: impl FnOnce(&mut SeenRows) -> R) -> R {
        let mut state = self.state.lock();
        let outermost = state.loops.get(&iteration).copied().unwrap_or(iteration);
        change(state.seen.entry(outermost).or_default().entry(operator).or_default())
    }
}
