//! The loop scope: `repeat()`, with one group for each iteration.
//!
//! The body is one scope for the whole stream: the tags of the group outside go on inside, and a barrier in the body
//! sees all traversers of an iteration. Iterations run one after the other, breadth first. Rows that an iteration
//! leaves for the next one are merged if they remember no path, so a walk through a dense graph holds at most one row
//! for each vertex. Only `dedup()` remembers from one iteration to the next ([`crate::barrier::visited`]).
//!
//! If the client asks for another order between iterations, they *overlap*: rows go into the next iteration as they
//! come, unmerged, and the runtime orders the iterations. The end of an iteration still comes after the end of the one
//! before it. A limit on instances bounds the iterations that are open. Rows for the one after them wait, merged.
//!
//! ```text
//!  open: iteration 3 [its end was sent]  ─►  4  ─►  5  ─► rows that wait for 6, if the limit is 3
//! ```
//!
//! ```text
//!   port 0          edge 0            port 1 │ edge 1         port 2
//!  rows enter ─► tests before body ─► test ─►│──► body, tests after it ─► test ─► next iteration
//!                                       └────┴── edge 2: rows that leave or are emitted ──┘
//! ```
//!
//! If the plan says `once`, no client can observe how often and along which paths a vertex is reached. Then an instance
//! goes on from each vertex only the first time. The first time is the earliest iteration, so no vertex within reach is
//! missed. The loop is then a breadth-first search, and it ends also in a graph with cycles. If the search is for the
//! first arrival, rows may keep paths: those of the rows that go on are a tree of shortest paths.
//!
//! If helpers have joined the run, the rows that an iteration leaves and the vertices that were reached are shared with
//! the replicas (FLOW-29): each thread tests the rows that come out of the body on it, and merges those that go on. At the
//! end of the iteration, parts of that end merge what the threads have merged and let it into the next one (FLOW-49). Only the
//! home lets rows enter the loop, and begins iterations. Overlapping iterations are not shared.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use mangrove_flow::{Cursor, Detail, GroupId, Operator, OuterTags, Output, Shared, SharedState, Step, TagSet};
use mangrove_graph::{FastMap, Result};
use mangrove_plan::logical::Avoids;
use parking_lot::Mutex;

use crate::barrier::merge::Merger;
use crate::barrier::per_thread::{HOME, Threads};
use crate::barrier::shared_merge::SharedMerger;
use crate::barrier::shared_seen::{Scratch, SharedSeen};
use crate::barrier::visited::Visited;
use crate::context::execution::ExecutionContext;
use crate::rows::Rows;
use crate::scope::loop_shape::{BEFORE, BODY, EXIT, LoopShape, check_nesting};
use crate::scope::reached::Reached;

/// The loop of one group outside.
struct RunningLoop {
    /// The groups of the open iterations in their order. Only to the first of them an end was sent.
    open: VecDeque<GroupId>,
    /// The number of the iterations that have ended.
    ended: u32,
    /// The rows of the last open iteration that have not entered yet.
    entering: WaitingRows,
    /// The rows for the iteration after those that are open.
    next: WaitingRows,
    /// The instances of the group outside, after its end has arrived.
    instances: Option<u32>,
    /// With `once`: the vertices that each instance has reached.
    reached: Reached,
}

/// Rows that wait for an iteration.
enum WaitingRows {
    /// Of one thread.
    Own(Box<Merger>),
    /// Of several threads.
    Shared(Arc<SharedMerger>),
}

impl WaitingRows {
    fn new(is_shared: bool, may_share: bool) -> Self {
        if is_shared { WaitingRows::Shared(Arc::default()) } else { WaitingRows::Own(Box::new(Merger::new(may_share))) }
    }

    fn is_empty(&self) -> bool {
        match self {
            WaitingRows::Own(rows) => rows.is_empty(),
            WaitingRows::Shared(rows) => rows.is_empty(),
        }
    }

    fn add(&mut self, rows: Rows, out: &Output<'_, Rows>) -> Result<()> {
        match self {
            WaitingRows::Own(held) => held.add(rows, out),
            WaitingRows::Shared(held) => held.of(HOME).add(rows, out),
        }
    }

    fn clear(&mut self, out: &Output<'_, Rows>) {
        match self {
            WaitingRows::Own(rows) => rows.clear(out),
            WaitingRows::Shared(rows) => rows.clear(out),
        }
    }

    /// Sends the next rows into an iteration. After [`Step::Done`] none is left.
    fn enter(&mut self, inside: GroupId, out: &mut Output<'_, Rows>) -> Result<Step> {
        match self {
            WaitingRows::Own(rows) => {
                if let Some(next) = rows.take_next(out)? {
                    out.emit(BEFORE, inside, next)?;
                }
                Ok(if rows.is_empty() { Step::Done } else { Step::More })
            }
            WaitingRows::Shared(rows) => rows.end_step(BEFORE, inside, out),
        }
    }

    /// Returns the rows in a form for several threads.
    fn shared(&mut self) -> Arc<SharedMerger> {
        let shared = match self {
            WaitingRows::Own(rows) => Arc::new(SharedMerger::new(std::mem::take(&mut **rows))),
            WaitingRows::Shared(rows) => return rows.clone(),
        };
        *self = WaitingRows::Shared(shared.clone());
        shared
    }
}

/// An iteration, as the threads of an open run see it.
struct Iteration {
    /// The group outside the loop.
    group: GroupId,
    number: u32,
    /// The rows that enter it.
    entering: Arc<SharedMerger>,
    next: Arc<SharedMerger>,
    reached: Arc<SharedSeen>,
}

/// The iterations of an open run, by their groups.
#[derive(Default)]
struct SharedLoops {
    iterations: Mutex<FastMap<GroupId, Arc<Iteration>>>,
    threads: Threads,
}

impl SharedLoops {
    /// The last of the open iterations of a loop begins.
    fn begin(&self, group: GroupId, state: &mut RunningLoop) {
        let (entering, next, reached) = (state.entering.shared(), state.next.shared(), state.reached.shared());
        let Some(inside) = state.open.back() else { return };
        let number = state.ended + state.open.len() as u32 - 1;
        self.iterations.lock().insert(*inside, Arc::new(Iteration { group, number, entering, next, reached }));
    }

    fn get(&self, inside: GroupId) -> Option<Arc<Iteration>> {
        self.iterations.lock().get(&inside).cloned()
    }

    fn end(&self, inside: GroupId) {
        self.iterations.lock().remove(&inside);
    }
}

/// The operator of a loop scope.
pub(crate) struct LoopScope {
    shape: LoopShape,
    visited: Arc<Visited>,
    loops: FastMap<GroupId, RunningLoop>,
    /// By the group of an iteration: the group outside, and the number of the iteration.
    outside: FastMap<GroupId, (GroupId, u32)>,
    /// True if several threads may work at it.
    may_share: bool,
    /// In an open run: its iterations.
    shared: Option<Arc<SharedLoops>>,
    /// On a helper: those of the home, and the number of the helper's thread.
    joined: Option<(Weak<SharedLoops>, usize)>,
    scratch: Scratch,
}

impl LoopScope {
    /// A loop whose `dedup()`s in the body share `visited`. `may_share` is for one whose rows may come in any order,
    /// and that few groups enter.
    pub fn new(shape: LoopShape, visited: Arc<Visited>, may_share: bool) -> Self {
        let (loops, outside) = Default::default();
        let (shared, joined, scratch) = (None, None, Scratch::default());
        let may_share = may_share && !shape.overlaps;
        LoopScope { shape, visited, loops, outside, may_share, shared, joined, scratch }
    }

    fn state(&mut self, group: GroupId, out: &mut Output<'_, Rows>) -> &mut RunningLoop {
        let (outside, visited, shared) = (&mut self.outside, &self.visited, &self.shared);
        let may_share = self.may_share;
        self.loops.entry(group).or_insert_with(|| {
            let inside = out.open_group(group, OuterTags::Same);
            visited.iteration_begins(group, inside);
            outside.insert(inside, (group, 0));
            let none = || WaitingRows::new(shared.is_some(), may_share);
            let (entering, next) = (none(), none());
            let (open, reached) = (VecDeque::from([inside]), Reached::new(shared.is_some()));
            let mut state = RunningLoop { open, ended: 0, entering, next, instances: None, reached };
            if let Some(shared) = shared {
                shared.begin(group, &mut state);
            }
            state
        })
    }

    /// Opens the iteration after those that are open.
    fn open_iteration(&mut self, group: GroupId, out: &mut Output<'_, Rows>) -> Option<GroupId> {
        let state = self.loops.get_mut(&group)?;
        let inside = out.open_group(group, OuterTags::Same);
        self.visited.iteration_begins(group, inside);
        self.outside.insert(inside, (group, state.ended + state.open.len() as u32));
        state.open.push_back(inside);
        if let Some(shared) = &self.shared {
            shared.begin(group, state);
        }
        Some(inside)
    }

    /// Takes the rows that an iteration leaves for the next one. They enter at once if iterations overlap and there is
    /// room; otherwise they wait.
    fn go_on(&mut self, group: GroupId, iteration: u32, rows: Rows, out: &mut Output<'_, Rows>) -> Result<()> {
        let Some(state) = self.loops.get_mut(&group).filter(|_| !rows.is_empty()) else { return Ok(()) };
        let place = (iteration + 1).saturating_sub(state.ended) as usize;
        if let Some(inside) = state.open.get(place) {
            return out.emit(BEFORE, *inside, rows);
        }
        let open_max = match (self.shape.overlaps, out.policy().instances_max) {
            (false, _) => 1,
            (true, None) => usize::MAX,
            (true, Some(max)) => max.get() as usize,
        };
        // Rows that wait come first.
        if state.open.len() >= open_max || !state.next.is_empty() || !state.entering.is_empty() {
            return state.next.add(rows, out);
        }
        match self.open_iteration(group, out) {
            Some(inside) => out.emit(BEFORE, inside, rows),
            None => Ok(()),
        }
    }

    /// Works on rows of an iteration that several threads work on. `thread` is the number of this one.
    fn receive_shared(
        &mut self,
        thread: usize,
        port: u8,
        inside: GroupId,
        mut batch: Rows,
        loops: &SharedLoops,
        out: &mut Output<'_, Rows>,
    ) -> Result<()> {
        let Some(iteration) = loops.get(inside) else { return Ok(()) };
        let group = iteration.group;
        if port == 1 {
            let mut rows = self.shape.test(batch, true, iteration.number, group, out)?;
            rows.computed.clear();
            return out.emit(BODY, inside, rows);
        }
        if self.shape.collections_made > 0 {
            check_nesting(&batch, self.shape.collections_made, out.control())?;
        }
        if self.shape.once {
            batch = Reached::sharing(iteration.reached.clone()).admit(batch, &mut self.scratch, out)?;
        }
        let mut rows = self.shape.test(batch, false, iteration.number + 1, group, out)?;
        rows.computed.clear();
        iteration.next.of(thread).add(rows, out)
    }

    /// Handles the end of an iteration, which is the first of those that are open: lets rows that wait into a new one, or
    /// ends the loop. Returns the group outside if the loop goes on.
    fn iteration_ended(&mut self, inside: GroupId, out: &mut Output<'_, Rows>) -> Result<Option<GroupId>> {
        out.close_group(inside);
        self.visited.iteration_ends(inside);
        if let Some(shared) = &self.shared {
            shared.end(inside);
        }
        let Some((group, _)) = self.outside.remove(&inside) else { return Ok(None) };
        let Some(state) = self.loops.get_mut(&group) else { return Ok(None) };
        state.open.pop_front();
        state.ended += 1;
        if out.is_cancelled(group) {
            state.next.clear(out);
        }
        if state.next.is_empty() && state.open.is_empty() {
            let instances = state.instances.unwrap_or(1);
            out.control().release(state.reached.bytes());
            self.loops.remove(&group);
            self.visited.loop_ends(group, out);
            out.finish(EXIT, group, instances)?;
            return Ok(None);
        }
        if !state.next.is_empty() {
            std::mem::swap(&mut state.entering, &mut state.next);
            self.open_iteration(group, out);
        }
        Ok(Some(group))
    }

    /// Sends the next rows that wait into the last iteration, and after the last ones the end of the first one.
    fn enter(&mut self, group: GroupId, out: &mut Output<'_, Rows>) -> Result<Step> {
        let Some(state) = self.loops.get_mut(&group) else { return Ok(Step::Done) };
        let (Some(first), Some(last)) = (state.open.front().copied(), state.open.back().copied()) else {
            return Ok(Step::Done);
        };
        if state.entering.enter(last, out)? == Step::More {
            return Ok(Step::More);
        }
        out.finish(BEFORE, first, state.instances.unwrap_or(1))?;
        Ok(Step::Done)
    }
}

impl Operator<Rows> for LoopScope {
    fn is_by_group(&self) -> bool {
        true
    }

    fn begin(&mut self, context: &ExecutionContext) -> Result<()> {
        self.shape.begin(context)
    }

    fn share(&mut self) -> Option<Shared> {
        if !self.may_share {
            return None;
        }
        let shared = Arc::new(SharedLoops::default());
        self.loops.iter_mut().for_each(|(group, state)| shared.begin(*group, state));
        self.shared = Some(shared.clone());
        // Rows enter the loop at port 0, which opens a group.
        Some(Shared { state: shared, from_port: 1 })
    }

    fn join(&mut self, state: &SharedState) {
        let shared = state.clone().downcast::<SharedLoops>().ok();
        self.joined = shared.map(|loops| (Arc::downgrade(&loops), loops.threads.join()));
    }

    fn recycle(&mut self) -> bool {
        self.shared = None;
        self.scratch.forget_sets();
        self.loops.is_empty() && self.outside.is_empty() && self.visited.recycle()
    }

    fn receive(&mut self, port: u8, group: GroupId, mut batch: Rows, out: &mut Output<'_, Rows>) -> Result<()> {
        if port == 0 {
            for loops in batch.loops.iter_mut().flatten() {
                loops.push(0);
            }
            batch.computed.clear();
            // The first iteration is open until the end has come.
            let Some(inside) = self.state(group, out).open.front().copied() else { return Ok(()) };
            let avoids = self.shape.avoids;
            if avoids != Avoids::Nothing
                && let Some(state) = self.loops.get_mut(&group)
            {
                state.reached.avoid(avoids, &batch, &mut self.scratch, out)?;
            }
            return out.emit(BEFORE, inside, batch);
        }
        let inside = group;
        if let Some((joined, thread)) = &self.joined {
            // If the state is gone, the run is over.
            let (Some(loops), thread) = (joined.upgrade(), *thread) else { return Ok(()) };
            return self.receive_shared(thread, port, inside, batch, &loops, out);
        }
        if let Some(loops) = self.shared.clone() {
            return self.receive_shared(HOME, port, inside, batch, &loops, out);
        }
        let Some(&(group, iteration)) = self.outside.get(&inside) else { return Ok(()) };
        if port == 1 {
            let mut rows = self.shape.test(batch, true, iteration, group, out)?;
            rows.computed.clear();
            return out.emit(BODY, inside, rows);
        }
        if self.shape.collections_made > 0 {
            check_nesting(&batch, self.shape.collections_made, out.control())?;
        }
        if self.shape.once
            && let Some(state) = self.loops.get_mut(&group)
        {
            batch = state.reached.admit(batch, &mut self.scratch, out)?;
        }
        let mut rows = self.shape.test(batch, false, iteration + 1, group, out)?;
        rows.computed.clear();
        self.go_on(group, iteration, rows, out)
    }

    /// Forgets what cancelled instances have reached. Their rows are dropped when they enter the next iteration, whose
    /// group is cancelled for them, too (FLOW-40).
    fn cancelled(&mut self, group: GroupId, tags: Option<&TagSet>, out: &Output<'_, Rows>) {
        let Some(state) = self.loops.get_mut(&group) else { return };
        if tags.is_none() {
            [&mut state.entering, &mut state.next].into_iter().for_each(|rows| rows.clear(out));
        }
        state.reached.cancelled(group, tags, out);
    }

    /// At the end of an iteration, each step sends one batch of the rows that wait; the cursor holds the group outside.
    fn finish_step(
        &mut self,
        port: u8,
        group: GroupId,
        instances: u32,
        at: &mut Cursor,
        out: &mut Output<'_, Rows>,
    ) -> Result<Step> {
        match port {
            0 => {
                let state = self.state(group, out);
                state.instances = Some(instances);
                if let Some(inside) = state.open.front().copied() {
                    out.finish(BEFORE, inside, instances)?;
                }
            }
            1 => out.finish(BODY, group, instances)?,
            _ => {
                let outside = match at.detail {
                    Detail::Words([outside, _]) => Some(GroupId::from_bits(outside)),
                    _ => self.iteration_ended(group, out)?,
                };
                let Some(outside) = outside else { return Ok(Step::Done) };
                at.detail = Detail::Words([outside.to_bits(), 0]);
                return self.enter(outside, out);
            }
        }
        Ok(Step::Done)
    }

    /// Parts of an end let rows into an iteration.
    fn work_part(&mut self, inside: GroupId, at: &mut Cursor, out: &mut Output<'_, Rows>) -> Result<Step> {
        let joined = self.joined.as_ref().and_then(|(loops, _)| loops.upgrade());
        // If the state is gone, the run is over.
        let iteration = self.shared.clone().or(joined).and_then(|loops| loops.get(inside));
        iteration.map_or(Ok(Step::Done), |iteration| iteration.entering.work_part(BEFORE, inside, at, out))
    }
}
