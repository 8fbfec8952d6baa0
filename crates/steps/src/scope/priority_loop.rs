//! The loop scope with an order by a value: `repeat(…).with("policy", "by distance")`, a best-first search.
//!
//! The rows that enter the loop and those that come out of its body wait together, whatever their iterations. The row
//! with the least rank goes into the body first, in a group of its own. So the plan must not need an iteration as a
//! whole: no step of the body sees the whole stream.
//!
//! ```text
//!   port 0                  waiting: by rank, then in the order in which they came
//!  rows enter ───────────► [ 3, 3 ][ 5 ][ 8 ][ 8, 8 ] ─── as many as may be inside ───► body, tests
//!                              ▲                                                           │
//!                              └──────────────── port 2: rows that go on ──────────────────┘
//! ```
//!
//! Rows that came with one message, of one iteration, and that have the same rank go together: they are one entry.
//! Entries are not merged, because equal rows may have different iterations. The limit on instances bounds the entries
//! that are inside. If several are, the runtime lets the one with the least rank go first ([`mangrove_flow::Between`]).

use std::collections::BTreeMap;
use std::mem;

use mangrove_flow::{Batch as _, Cursor, GroupId, Operator, OuterTags, Output, Step, TagSet};
use mangrove_graph::{FastMap, Result};

use crate::barrier::shared_seen::Scratch;
use crate::context::execution::ExecutionContext;
use crate::rows::Rows;
use crate::rows::rank::{Priority, Rank};
use crate::scope::loop_shape::{BEFORE, BODY, EXIT, LoopShape, check_nesting};
use crate::scope::reached::Reached;

/// Rows that wait, of one iteration and with one rank.
struct Entry {
    rows: Rows,
    iteration: u32,
    /// Bytes charged while it waits (FLOW-17).
    charged: u64,
}

/// The loop of one group outside. Entries wait only while as many groups are inside as may be.
struct RunningLoop {
    waiting: BTreeMap<(Rank, u64), Entry>,
    /// The number of groups inside.
    inside: usize,
    /// The instances of the group outside, after its end has arrived.
    instances: Option<u32>,
    /// With `once`: the vertices that each instance has reached.
    reached: Reached,
}

impl RunningLoop {
    /// Drops all rows that wait, and releases their charge.
    fn drop_waiting(&mut self, out: &Output<'_, Rows>) {
        out.control().release(mem::take(&mut self.waiting).into_values().map(|entry| entry.charged).sum());
    }
}

/// The operator of a loop whose rows have an order by a value.
pub(crate) struct PriorityLoop {
    shape: LoopShape,
    priority: Priority,
    /// The computed column with the value, of rows that come out of the body. Rows that enter the loop have it in 0.
    column: usize,
    loops: FastMap<GroupId, RunningLoop>,
    /// By group inside: the group outside, and the number of the iteration.
    outside: FastMap<GroupId, (GroupId, u32)>,
    /// The number of entries so far.
    arrivals: u64,
    scratch: Scratch,
}

impl PriorityLoop {
    /// A loop whose rows `priority` orders. The value of rows out of the body is in a computed column.
    pub fn new(shape: LoopShape, priority: Priority, column: usize) -> Self {
        let (loops, outside) = Default::default();
        PriorityLoop { shape, priority, column, loops, outside, arrivals: 0, scratch: Scratch::default() }
    }

    fn state(&mut self, group: GroupId) -> &mut RunningLoop {
        self.loops.entry(group).or_insert_with(|| RunningLoop {
            waiting: BTreeMap::new(),
            inside: 0,
            instances: None,
            reached: Reached::new(false),
        })
    }

    /// Adds rows to those that wait. Their value is in a computed column.
    fn wait(
        &mut self,
        group: GroupId,
        iteration: u32,
        mut rows: Rows,
        column: usize,
        out: &Output<'_, Rows>,
    ) -> Result<()> {
        let ranks = self.priority.ranks(&rows, column);
        rows.computed.clear();
        let mut order: Vec<u32> = (0..rows.len() as u32).collect();
        order.sort_by(|a, b| ranks[*a as usize].cmp(&ranks[*b as usize]));
        let mut arrivals = self.arrivals;
        let state = self.state(group);
        for equal in order.chunk_by(|a, b| ranks[*a as usize] == ranks[*b as usize]) {
            let Some(rank) = equal.first().map(|row| ranks[*row as usize].clone()) else { continue };
            let rows = rows.take(equal);
            let charged = (rows.bytes() + rank.bytes()) as u64;
            out.control().charge(charged)?;
            arrivals += 1;
            state.waiting.insert((rank, arrivals), Entry { rows, iteration, charged });
        }
        self.arrivals = arrivals;
        Ok(())
    }

    /// Lets as many entries in as there is room for.
    fn admit(&mut self, group: GroupId, out: &mut Output<'_, Rows>) -> Result<()> {
        let Some(state) = self.loops.get_mut(&group) else { return Ok(()) };
        if out.is_cancelled(group) {
            state.drop_waiting(out);
        }
        let inside_max = out.policy().instances_max.map_or(usize::MAX, |max| max.get() as usize);
        while state.inside < inside_max
            && let Some(((rank, _), Entry { rows, iteration, charged })) = state.waiting.pop_first()
        {
            out.control().release(charged);
            // No step of the body makes something of an instance without rows.
            let known = || (0..rows.len()).map(|row| rows.tag(row) + 1).max().unwrap_or(1);
            let instances = state.instances.unwrap_or_else(known);
            let inside = out.open_ranked(group, OuterTags::Same, rank);
            self.outside.insert(inside, (group, iteration));
            state.inside += 1;
            out.emit(BEFORE, inside, rows)?;
            out.finish(BEFORE, inside, instances)?;
        }
        Ok(())
    }

    /// Ends the loop of a group if its end has come and nothing of it is inside.
    fn end_if_done(&mut self, group: GroupId, out: &mut Output<'_, Rows>) -> Result<()> {
        let Some(RunningLoop { instances: Some(instances), inside: 0, reached, .. }) = self.loops.get(&group) else {
            return Ok(());
        };
        out.control().release(reached.bytes());
        let instances = *instances;
        self.loops.remove(&group);
        out.finish(EXIT, group, instances)
    }
}

impl Operator<Rows> for PriorityLoop {
    fn begin(&mut self, context: &ExecutionContext) -> Result<()> {
        self.shape.begin(context)
    }

    fn recycle(&mut self) -> bool {
        self.arrivals = 0;
        self.scratch.forget_sets();
        self.loops.is_empty() && self.outside.is_empty()
    }

    fn receive(&mut self, port: u8, group: GroupId, mut batch: Rows, out: &mut Output<'_, Rows>) -> Result<()> {
        if port == 0 {
            for loops in batch.loops.iter_mut().flatten() {
                loops.push(0);
            }
            self.wait(group, 0, batch, 0, out)?;
            return self.admit(group, out);
        }
        let inside = group;
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
        let rows = self.shape.test(batch, false, iteration + 1, group, out)?;
        self.wait(group, iteration + 1, rows, self.column, out)?;
        self.admit(group, out)
    }

    /// Forgets what cancelled instances have reached. Their rows are dropped when they enter the body, in a group that
    /// is cancelled for them, too (FLOW-40).
    fn cancelled(&mut self, group: GroupId, tags: Option<&TagSet>, out: &Output<'_, Rows>) {
        let Some(state) = self.loops.get_mut(&group) else { return };
        if tags.is_none() {
            state.drop_waiting(out);
        }
        state.reached.cancelled(group, tags, out);
    }

    fn finish_step(
        &mut self,
        port: u8,
        group: GroupId,
        instances: u32,
        _: &mut Cursor,
        out: &mut Output<'_, Rows>,
    ) -> Result<Step> {
        match port {
            0 => {
                self.state(group).instances = Some(instances);
                self.end_if_done(group, out)?;
            }
            1 => out.finish(BODY, group, instances)?,
            _ => {
                out.close_group(group);
                let Some((outside, _)) = self.outside.remove(&group) else { return Ok(Step::Done) };
                if let Some(state) = self.loops.get_mut(&outside) {
                    state.inside -= 1;
                }
                self.admit(outside, out)?;
                self.end_if_done(outside, out)?;
            }
        }
        Ok(Step::Done)
    }
}
