//! The loop scope: `repeat()` with an instance an iteration.
//!
//! The body is one scope for the whole stream: tags of the surroundings go on inside, and a barrier in the
//! body sees all traversers of an iteration. Iterations run one after the other (breadth first): what one
//! leaves behind is merged where rows remember no path, so a walk through a dense graph holds at most a row
//! a vertex, and the first traverser to arrive came by a shortest way. Only `dedup()` remembers from one iteration to
//! the next (see [`crate::scope::visited`]).
//!
//! Where the plan says that nobody can tell how often and by which ways an object is come to (`once`), an instance goes on
//! from each vertex the first time only. The first time is the earliest iteration, so that nothing within reach is missed;
//! the loop is then a breadth-first search, and ends in a graph with cycles.
//!
//! Ports: 0 rows enter, 1 rows back from the tests before the body, 2 rows back from the body and the tests
//! behind it. Edges: 0 to the tests before the body, 1 to the body, 2 out.

use std::sync::Arc;

use hashbrown::HashSet;
use mangrove_flow::{Batch as _, GroupId, Operator, Output, QueryContext};
use mangrove_graph::{Result, Value, VertexId};
use mangrove_plan::logical::Operand;

use crate::barrier::held::FastMap;
use crate::barrier::merge::Merger;
use crate::environment::Environment;
use crate::nesting;
use crate::path;
use crate::rows::{Column, Rows};
use crate::scope::visited::Visited;
use crate::test::CompiledTest;

/// A test of a loop, with the values of its operands in this run.
pub enum LoopTest {
    /// Always.
    Always,
    /// After this many iterations.
    Times(Operand, i64),
    /// A test of the object.
    Test(CompiledTest),
    /// A boolean in this computed column.
    Computed(usize),
}

/// What is fixed about a loop.
pub struct Shape {
    /// When a row leaves.
    pub until: Option<LoopTest>,
    /// Tested before the body.
    pub until_first: bool,
    /// When a row is also emitted.
    pub emit: Option<LoopTest>,
    /// Tested before the body.
    pub emit_first: bool,
    /// Rows carry loop counters.
    pub loops: bool,
    /// An instance goes on from each vertex once.
    pub once: bool,
    /// How many of the newest objects of a path may be collections that one iteration made.
    pub collections_made: usize,
}

/// The loop of one group outside.
struct Loop {
    /// The iteration rows are in: its number and group.
    iteration: u32,
    inside: GroupId,
    /// What the iteration leaves behind.
    next: Merger,
    /// Instances outside, once the stream has ended.
    instances: Option<u32>,
    /// The vertices that were come to, by instance, where each counts once.
    reached: HashSet<(u32, VertexId), foldhash::fast::RandomState>,
}

/// About what an entry of the set of reached vertices costs.
const REACHED_BYTES: u64 = 24;

impl Loop {
    /// The rows that come to a vertex for the first time.
    fn admit(&mut self, rows: Rows, out: &Output<'_, Rows>) -> Result<Rows> {
        let before = self.reached.len();
        let mut is_new = |row: usize| match &rows.objects {
            Column::Vertices(vertices) => self.reached.insert((rows.tag(row), vertices[row])),
            Column::Edges(_) => true,
            Column::Values(values) => match &values[row] {
                Value::Vertex(vertex) => self.reached.insert((rows.tag(row), *vertex)),
                _ => true,
            },
        };
        let new: Vec<u32> = (0..rows.len()).filter(|row| is_new(*row)).map(|row| row as u32).collect();
        let rows = if new.len() == rows.len() { rows } else { rows.take(&new) };
        out.context().charge((self.reached.len() - before) as u64 * REACHED_BYTES)?;
        Ok(rows)
    }
}

/// A loop scope.
pub struct Repeat {
    shape: Shape,
    visited: Arc<Visited>,
    loops: FastMap<GroupId, Loop>,
    outside: FastMap<GroupId, GroupId>,
}

const BEFORE: usize = 0;
const BODY: usize = 1;
const EXIT: usize = 2;

impl Repeat {
    /// A loop of this shape; what `dedup()`s in its body have seen is in `visited`.
    pub fn new(shape: Shape, visited: Arc<Visited>) -> Self {
        Repeat { shape, visited, loops: FastMap::default(), outside: FastMap::default() }
    }

    fn state(&mut self, group: GroupId, out: &mut Output<'_, Rows>) -> &mut Loop {
        let (outside, visited) = (&mut self.outside, &self.visited);
        self.loops.entry(group).or_insert_with(|| {
            let inside = out.open_group(group);
            visited.iteration_begins(group, inside);
            outside.insert(inside, group);
            Loop { iteration: 0, inside, next: Merger::default(), instances: None, reached: HashSet::default() }
        })
    }

    fn holds(test: Option<&LoopTest>, rows: &Rows, row: usize, iterations: u32) -> bool {
        match test {
            None => false,
            Some(LoopTest::Always) => true,
            Some(LoopTest::Times(_, times)) => i64::from(iterations) >= *times,
            Some(LoopTest::Test(test)) => test.holds(&rows.object(row)),
            Some(LoopTest::Computed(column)) => rows.computed_value(*column, row) == Some(&Value::Bool(true)),
        }
    }

    /// Lets leave what leaves here and emits what is emitted; returns the rows that go on.
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

    /// Sends the rows that a finished iteration left behind into the next one, or ends the loop.
    fn iteration_ended(&mut self, inside: GroupId, out: &mut Output<'_, Rows>) -> Result<()> {
        out.close_group(inside);
        self.visited.iteration_ends(inside);
        let Some(group) = self.outside.remove(&inside) else { return Ok(()) };
        let Some(state) = self.loops.get_mut(&group) else { return Ok(()) };
        let instances = state.instances.unwrap_or(1);
        let rows = state.next.take(out).filter(|_| !out.is_cancelled(group));
        let Some(rows) = rows else {
            out.context().release(state.reached.len() as u64 * REACHED_BYTES);
            self.loops.remove(&group);
            self.visited.loop_ends(group, out);
            return out.finish(EXIT, group, instances);
        };
        let inside = out.open_group(group);
        self.visited.iteration_begins(group, inside);
        self.outside.insert(inside, group);
        state.iteration += 1;
        state.inside = inside;
        for chunk in rows.chunks() {
            out.emit(BEFORE, inside, chunk)?;
        }
        out.finish(BEFORE, inside, instances)
    }
}

impl LoopTest {
    fn begin(&mut self, environment: &Environment) -> Result<()> {
        match self {
            LoopTest::Times(operand, times) => {
                *times = environment.resolve_integer(operand, "the argument of times()")?;
                Ok(())
            }
            LoopTest::Test(test) => test.begin(environment),
            LoopTest::Always | LoopTest::Computed(_) => Ok(()),
        }
    }
}

impl Operator<Rows> for Repeat {
    fn begin(&mut self, environment: &Environment) -> Result<()> {
        self.shape.until.iter_mut().chain(&mut self.shape.emit).try_for_each(|test| test.begin(environment))
    }

    fn rest(&mut self) -> bool {
        self.loops.is_empty() && self.outside.is_empty() && self.visited.is_empty()
    }

    fn receive(&mut self, port: u8, group: GroupId, mut batch: Rows, out: &mut Output<'_, Rows>) -> Result<()> {
        if port == 0 {
            for loops in batch.loops.iter_mut().flatten() {
                loops.push(0);
            }
            batch.computed.clear();
            let inside = self.state(group, out).inside;
            return out.emit(BEFORE, inside, batch);
        }
        let inside = group;
        let Some(&group) = self.outside.get(&inside) else { return Ok(()) };
        let Some(iteration) = self.loops.get(&group).map(|l| l.iteration) else { return Ok(()) };
        if let Some(tags) = out.cancelled_tags(group) {
            batch.discard(tags);
        }
        if port == 1 {
            let rows = self.test(batch, true, iteration, group, out)?;
            return out.emit(BODY, inside, rows);
        }
        if self.shape.collections_made > 0 {
            check_nesting(&batch, self.shape.collections_made, out.context())?;
        }
        if self.shape.once
            && let Some(state) = self.loops.get_mut(&group)
        {
            // The tests that were made of the rows go with them.
            batch = state.admit(batch, out)?;
        }
        let rows = self.test(batch, false, iteration + 1, group, out)?;
        match self.loops.get_mut(&group) {
            Some(state) if !rows.is_empty() => state.next.add(rows, out),
            _ => Ok(()),
        }
    }

    fn finish(&mut self, port: u8, group: GroupId, instances: u32, out: &mut Output<'_, Rows>) -> Result<()> {
        match port {
            0 => {
                let state = self.state(group, out);
                state.instances = Some(instances);
                let inside = state.inside;
                out.finish(BEFORE, inside, instances)
            }
            1 => out.finish(BODY, group, instances),
            _ => self.iteration_ended(group, out),
        }
    }
}

/// Fails for rows that carry a value on to the next iteration which nests too deep: as their object, in their sack, or
/// among the newest objects of their path.
fn check_nesting(rows: &Rows, newest: usize, context: &QueryContext) -> Result<()> {
    if let Column::Values(values) = &rows.objects {
        nesting::check_all(values, context)?;
    }
    nesting::check_all(rows.sacks.iter().flatten(), context)?;
    let objects = rows.path.iter().flatten().flat_map(|path| path::newest_first(path).take(newest));
    nesting::check_all(objects.map(|node| &node.object), context)
}
