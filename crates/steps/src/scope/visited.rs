//! What the `dedup()`s in a loop's body have let through, over all of its iterations.
//!
//! Gremlin's `dedup()` remembers from one iteration to the next: `g.V(1).repeat(both().dedup()).emit()` meets every
//! vertex once and ends. But iterations are groups of their own, so that a barrier in the body sees one of
//! them at a time. This table knows of which loop a group is an iteration, and keeps what was seen by loop and
//! operator. A loop directly in the body of another counts as the outer one; inside a nested traversal that runs
//! for a row (`local()`, `where()` …) every row has a loop of its own, by its tag.
//!
//! A loop and the operators that gather in its body are at home on the same node, and one thread at a time runs a
//! query there, so nobody ever waits for the lock.

use mangrove_flow::topology::OpId;
use mangrove_flow::{GroupId, Output};
use parking_lot::Mutex;

use crate::barrier::dedup::Seen;
use crate::barrier::held::FastMap;
use crate::rows::Rows;

/// The table of one loop and the loops directly in its body.
#[derive(Default)]
pub struct Visited {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Of every living iteration: the group that entered the outermost loop.
    loops: FastMap<GroupId, GroupId>,
    seen: FastMap<GroupId, FastMap<OpId, Seen>>,
}

impl Visited {
    /// Whether no loop is running and nothing is remembered.
    pub fn is_empty(&self) -> bool {
        let state = self.state.lock();
        state.loops.is_empty() && state.seen.is_empty()
    }

    /// Learns that a group is an iteration of the loop that another one entered.
    pub fn iteration_begins(&self, entered: GroupId, iteration: GroupId) {
        let mut state = self.state.lock();
        let outermost = state.loops.get(&entered).copied().unwrap_or(entered);
        state.loops.insert(iteration, outermost);
    }

    /// Learns that an iteration is over.
    pub fn iteration_ends(&self, iteration: GroupId) {
        self.state.lock().loops.remove(&iteration);
    }

    /// Learns that a loop is over. Only the outermost one forgets: the next iteration of it enters the
    /// inner ones again.
    pub fn loop_ends(&self, entered: GroupId, out: &Output<'_, Rows>) {
        let mut state = self.state.lock();
        if state.loops.contains_key(&entered) {
            return;
        }
        for seen in state.seen.remove(&entered).into_iter().flat_map(|operators| operators.into_values()) {
            out.context().release(seen.bytes());
        }
    }

    /// What an operator in the body has seen of the loop that a group is an iteration of.
    pub fn with<R>(&self, iteration: GroupId, operator: OpId, change: impl FnOnce(&mut Seen) -> R) -> R {
        let mut state = self.state.lock();
        let outermost = state.loops.get(&iteration).copied().unwrap_or(iteration);
        change(state.seen.entry(outermost).or_default().entry(operator).or_default())
    }
}
