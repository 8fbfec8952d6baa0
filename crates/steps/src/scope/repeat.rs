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
//! missed. The loop is then a breadth-first search, and it ends also in a graph with cycles.

use std::collections::VecDeque;
use std::sync::Arc;

use hashbrown::HashSet;
use mangrove_flow::{Cursor, Detail, GroupId, Operator, OuterTags, Output, QueryControl, Step, TagSet};
use mangrove_graph::{FastMap, FastSet, Result, Value, VertexId};
use mangrove_plan::logical::Operand;

use crate::barrier::merge::Merger;
use crate::barrier::visited::Visited;
use crate::context::execution::ExecutionContext;
use crate::limits::nesting;
use crate::rows::held::are_worth_a_pass;
use crate::rows::path;
use crate::rows::{BindingColumn, ObjectColumn, Rows};
use crate::values::predicate::CompiledTest;

/// The condition under which a row leaves the loop, or is emitted. Operands have their values of the current run.
pub(crate) enum LoopCondition {
    /// For every row.
    Always,
    /// After this many iterations.
    Times(Operand, i64),
    /// A test of the object.
    Test(CompiledTest),
    /// A boolean in this computed column.
    Computed(usize),
}

/// The structure of a loop, fixed by the plan.
pub(crate) struct LoopShape {
    /// The condition under which a row leaves the loop.
    pub until: Option<LoopCondition>,
    /// True if `until` is tested before the body.
    pub until_first: bool,
    /// The condition under which a row is also emitted.
    pub emit: Option<LoopCondition>,
    /// True if `emit` is tested before the body.
    pub emit_first: bool,
    /// True if an instance goes on from each vertex only once.
    pub once: bool,
    /// True if an iteration begins with the first rows for it.
    pub overlaps: bool,
    /// The maximum number of collections that one iteration adds to a path: so many of its newest objects are checked
    /// for their nesting.
    pub collections_made: usize,
}

/// The loop of one group outside.
struct RunningLoop {
    /// The groups of the open iterations in their order. Only to the first of them an end was sent.
    open: VecDeque<GroupId>,
    /// The number of the iterations that have ended.
    ended: u32,
    /// The rows of the last open iteration that have not entered yet.
    entering: Merger,
    /// The rows for the iteration after those that are open.
    next: Merger,
    /// The instances of the group outside, after its end has arrived.
    instances: Option<u32>,
    /// With `once`: the vertices that each instance has reached.
    reached: FastSet<(u32, VertexId)>,
    /// The instances that were cancelled since what they reached was forgotten.
    cancelled: usize,
}

/// The approximate bytes of an entry of the set of reached vertices.
const REACHED_BYTES: u64 = 24;

impl RunningLoop {
    /// Returns the rows that reach a vertex for the first time.
    fn admit(&mut self, rows: Rows, out: &Output<'_, Rows>) -> Result<Rows> {
        let before = self.reached.len();
        let mut is_new = |row: usize| match &rows.objects {
            ObjectColumn::Vertices(vertices) => self.reached.insert((rows.tag(row), vertices[row])),
            ObjectColumn::Edges(_) => true,
            ObjectColumn::Values(values) => match &values[row] {
                Value::Vertex(vertex) => self.reached.insert((rows.tag(row), *vertex)),
                _ => true,
            },
        };
        let new: Vec<u32> = (0..rows.len()).filter(|row| is_new(*row)).map(|row| row as u32).collect();
        let rows = if new.len() == rows.len() { rows } else { rows.take(&new) };
        out.control().charge((self.reached.len() - before) as u64 * REACHED_BYTES)?;
        Ok(rows)
    }
}

/// The operator of a loop scope.
pub(crate) struct LoopScope {
    shape: LoopShape,
    visited: Arc<Visited>,
    loops: FastMap<GroupId, RunningLoop>,
    /// By the group of an iteration: the group outside, and the number of the iteration.
    outside: FastMap<GroupId, (GroupId, u32)>,
}

const BEFORE: usize = 0;
const BODY: usize = 1;
const EXIT: usize = 2;

impl LoopScope {
    /// A loop whose `dedup()`s in the body share `visited`.
    pub fn new(shape: LoopShape, visited: Arc<Visited>) -> Self {
        LoopScope { shape, visited, loops: FastMap::default(), outside: FastMap::default() }
    }

    fn state(&mut self, group: GroupId, out: &mut Output<'_, Rows>) -> &mut RunningLoop {
        let (outside, visited) = (&mut self.outside, &self.visited);
        self.loops.entry(group).or_insert_with(|| {
            let inside = out.open_group(group, OuterTags::Same);
            visited.iteration_begins(group, inside);
            outside.insert(inside, (group, 0));
            let (entering, next) = Default::default();
            let (open, reached) = (VecDeque::from([inside]), HashSet::default());
            RunningLoop { open, ended: 0, entering, next, instances: None, reached, cancelled: 0 }
        })
    }

    /// Opens the iteration after those that are open.
    fn open_iteration(&mut self, group: GroupId, out: &mut Output<'_, Rows>) -> Option<GroupId> {
        let state = self.loops.get_mut(&group)?;
        let inside = out.open_group(group, OuterTags::Same);
        self.visited.iteration_begins(group, inside);
        self.outside.insert(inside, (group, state.ended + state.open.len() as u32));
        state.open.push_back(inside);
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

    fn holds(test: Option<&LoopCondition>, rows: &Rows, row: usize, iterations: u32) -> bool {
        match test {
            None => false,
            Some(LoopCondition::Always) => true,
            Some(LoopCondition::Times(_, times)) => i64::from(iterations) >= *times,
            Some(LoopCondition::Test(test)) => test.holds(&rows.object(row)),
            Some(LoopCondition::Computed(column)) => rows.computed_value(*column, row) == Some(&Value::Bool(true)),
        }
    }

    /// Sends the rows that leave the loop here and the rows that are emitted. Returns the rows that go on.
    fn test(
        &self,
        rows: Rows,
        before: bool,
        iterations: u32,
        group: GroupId,
        out: &mut Output<'_, Rows>,
    ) -> Result<Rows> {
        let until = (self.shape.until_first == before).then_some(self.shape.until.as_ref()).flatten();
        let emit = (self.shape.emit_first == before).then_some(self.shape.emit.as_ref()).flatten();
        let (mut leaving, mut staying) = (Vec::new(), Vec::new());
        for row in 0..rows.len() {
            if Self::holds(until, &rows, row, iterations) {
                leaving.push(row as u32);
                continue;
            }
            if Self::holds(emit, &rows, row, iterations) {
                leaving.push(row as u32);
            }
            staying.push(row as u32);
        }
        let mut gone = rows.take(&leaving);
        gone.computed.clear();
        for loops in gone.loops.iter_mut().flatten() {
            loops.pop();
        }
        out.emit(EXIT, group, gone)?;
        let mut rows = if staying.len() == rows.len() { rows } else { rows.take(&staying) };
        rows.computed.clear();
        Ok(rows)
    }

    /// Handles the end of an iteration, which is the first of those that are open: lets rows that wait into a new one, or
    /// ends the loop. Returns the group outside if the loop goes on.
    fn iteration_ended(&mut self, inside: GroupId, out: &mut Output<'_, Rows>) -> Result<Option<GroupId>> {
        out.close_group(inside);
        self.visited.iteration_ends(inside);
        let Some((group, _)) = self.outside.remove(&inside) else { return Ok(None) };
        let Some(state) = self.loops.get_mut(&group) else { return Ok(None) };
        state.open.pop_front();
        state.ended += 1;
        if out.is_cancelled(group) {
            while state.next.take_next(out).is_some() {}
        }
        if state.next.is_empty() && state.open.is_empty() {
            let instances = state.instances.unwrap_or(1);
            out.control().release(state.reached.len() as u64 * REACHED_BYTES);
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
        if let Some(rows) = state.entering.take_next(out) {
            out.emit(BEFORE, last, rows)?;
        }
        if !state.entering.is_empty() {
            return Ok(Step::More);
        }
        out.finish(BEFORE, first, state.instances.unwrap_or(1))?;
        Ok(Step::Done)
    }
}

impl LoopCondition {
    fn begin(&mut self, context: &ExecutionContext) -> Result<()> {
        match self {
            LoopCondition::Times(operand, times) => {
                *times = context.resolve_integer(operand, "the argument of times()")?;
                Ok(())
            }
            LoopCondition::Test(test) => test.begin(context),
            LoopCondition::Always | LoopCondition::Computed(_) => Ok(()),
        }
    }
}

impl Operator<Rows> for LoopScope {
    fn begin(&mut self, context: &ExecutionContext) -> Result<()> {
        self.shape.until.iter_mut().chain(&mut self.shape.emit).try_for_each(|test| test.begin(context))
    }

    fn recycle(&mut self) -> bool {
        self.loops.is_empty() && self.outside.is_empty() && self.visited.is_empty()
    }

    fn receive(&mut self, port: u8, group: GroupId, mut batch: Rows, out: &mut Output<'_, Rows>) -> Result<()> {
        if port == 0 {
            for loops in batch.loops.iter_mut().flatten() {
                loops.push(0);
            }
            batch.computed.clear();
            // The first iteration is open until the end has come.
            let Some(inside) = self.state(group, out).open.front().copied() else { return Ok(()) };
            return out.emit(BEFORE, inside, batch);
        }
        let inside = group;
        let Some(&(group, iteration)) = self.outside.get(&inside) else { return Ok(()) };
        if port == 1 {
            let rows = self.test(batch, true, iteration, group, out)?;
            return out.emit(BODY, inside, rows);
        }
        if self.shape.collections_made > 0 {
            check_nesting(&batch, self.shape.collections_made, out.control())?;
        }
        if self.shape.once
            && let Some(state) = self.loops.get_mut(&group)
        {
            // The results of the tests stay with their rows.
            batch = state.admit(batch, out)?;
        }
        let rows = self.test(batch, false, iteration + 1, group, out)?;
        self.go_on(group, iteration, rows, out)
    }

    /// Forgets what cancelled instances have reached. Their rows are dropped when they enter the next iteration, whose
    /// group is cancelled for them, too (FLOW-40).
    fn cancelled(&mut self, group: GroupId, tags: Option<&TagSet>, out: &Output<'_, Rows>) {
        let Some(state) = self.loops.get_mut(&group) else { return };
        let before = state.reached.len();
        match tags {
            None => {
                for merger in [&mut state.entering, &mut state.next] {
                    while merger.take_next(out).is_some() {}
                }
                state.reached.clear();
            }
            Some(tags) => {
                state.cancelled += tags.len();
                let Some(all) = out.cancelled_tags(group).filter(|_| are_worth_a_pass(state.cancelled, before)) else {
                    return;
                };
                state.cancelled = 0;
                state.reached.retain(|(tag, _)| !all.contains(*tag));
            }
        }
        out.control().release((before - state.reached.len()) as u64 * REACHED_BYTES);
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
}

/// Fails if a row would carry a value that nests too deep into the next iteration: as its object, in its sack, under a
/// label, or among the newest objects of its path.
fn check_nesting(rows: &Rows, newest: usize, control: &QueryControl) -> Result<()> {
    if let ObjectColumn::Values(values) = &rows.objects {
        nesting::check_all(values, control)?;
    }
    nesting::check_all(rows.sacks.iter().flatten(), control)?;
    nesting::check_all(rows.bindings.iter().flat_map(BindingColumn::values), control)?;
    let objects = rows.path.iter().flatten().flat_map(|path| path::newest_first(path).take(newest));
    nesting::check_all(objects.map(|node| &node.object), control)
}
