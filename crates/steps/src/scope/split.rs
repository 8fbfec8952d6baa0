//! Splitting a stream into branches and merging it again: `union()`, `choose()` and `branch()`.
//!
//! No group is opened here: a barrier inside a branch sees the stream of all traversers, as TinkerPop has it. [`Split`]
//! sends each row into every branch, [`Switch`] into the branches whose option matches, and [`Merge`] joins the
//! streams.
//!
//! ```text
//!                    ┌─► branch 0 ─► port 0 ┐
//! rows ─► Split or ──┼─► branch 1 ─► port 1 ├─► Merge ─► rows
//!          Switch    └─ announcements ─► last port ┘
//! ```
//!
//! A barrier in a branch answers also for instances without rows (`count()` of nothing is 0). But an instance of which
//! no row reached the split has no result, and an option that no row took has none either. So if a branch has such a
//! barrier, the split *announces* which instances had rows, and the merge holds results back until their instance is
//! announced.

use std::collections::VecDeque;

use mangrove_flow::{Batch as _, Cursor, Detail, GroupId, Operator, Output, Step, TagSet};
use mangrove_graph::compare::watched;
use mangrove_graph::{Error, FastMap, Result, Value};
use mangrove_plan::logical::Operand;

use crate::context::execution::ExecutionContext;
use crate::rows::held::HeldRows;
use crate::rows::{ObjectColumn, Rows};
use crate::values::predicate::CompiledTest;

/// Announces to the merge which instances had rows, and in which branch.
#[derive(Default)]
struct Arrivals {
    seen: FastMap<(GroupId, Option<usize>), TagSet>,
}

impl Arrivals {
    /// Sends one row for every instance that is new in this branch along an edge that leads straight to the merge.
    /// `None` stands for all branches.
    fn announce(
        &mut self,
        edge: usize,
        branch: Option<usize>,
        group: GroupId,
        batch: &Rows,
        out: &mut Output<'_, Rows>,
    ) -> Result<()> {
        let seen = self.seen.entry((group, branch)).or_default();
        let new: Vec<u32> = (0..batch.len()).filter(|&row| seen.insert(batch.tag(row))).map(|row| row as u32).collect();
        if new.is_empty() {
            return Ok(());
        }
        let branch = branch.map_or(Value::Null, |branch| Value::I64(branch as i64));
        out.emit(edge, group, batch.derive(&new, ObjectColumn::Values(vec![branch; new.len()])))
    }

    fn forget(&mut self, group: GroupId) {
        self.seen.retain(|(of, _), _| *of != group);
    }
}

/// Sends every row into every branch.
pub(crate) struct Split {
    branches: usize,
    arrivals: Option<Arrivals>,
    /// True if all rows go through one branch, to its end, before any enters the next one.
    in_turn: bool,
    held: HeldRows,
}

impl Split {
    /// Splits into this many branches. With `announces`, the edge after theirs leads to the last port of the merge.
    /// With `in_turn`, a branch begins after the previous one has ended: it may read what that one put into a side
    /// effect.
    pub fn new(branches: usize, announces: bool, in_turn: bool) -> Self {
        Split { branches, arrivals: announces.then(Arrivals::default), in_turn, held: HeldRows::default() }
    }

    /// Sends a batch of a group that has ended into a branch. The last branch gets the batches that are held, the
    /// others get copies. Returns [`Step::Done`] if that was the last batch.
    fn send(&mut self, group: GroupId, branch: usize, index: usize, out: &mut Output<'_, Rows>) -> Result<Step> {
        // Edges leave in the opposite order of the branches (`build::scopes`).
        let edge = self.branches - 1 - branch;
        if branch + 1 == self.branches {
            return self.held.send_next(group, edge, out);
        }
        let mut copy = Rows::default();
        let has_more = self.held.change(group, index, out, |rows| {
            copy = rows.clone();
            Ok(())
        })?;
        out.emit(edge, group, copy)?;
        Ok(if has_more { Step::More } else { Step::Done })
    }
}

impl Operator<Rows> for Split {
    fn is_by_group(&self) -> bool {
        true
    }

    fn is_passing(&self) -> bool {
        self.arrivals.is_none() && !self.in_turn
    }

    fn recycle(&mut self) -> bool {
        self.held.is_empty() && self.arrivals.as_ref().is_none_or(|arrivals| arrivals.seen.is_empty())
    }

    fn cancelled(&mut self, group: GroupId, tags: Option<&TagSet>, out: &Output<'_, Rows>) {
        self.held.cancelled(group, tags, out);
    }

    fn receive(&mut self, _port: u8, group: GroupId, mut batch: Rows, out: &mut Output<'_, Rows>) -> Result<()> {
        batch.computed.clear();
        if let Some(arrivals) = &mut self.arrivals {
            arrivals.announce(self.branches, None, group, &batch, out)?;
        }
        if self.in_turn {
            return self.held.add(group, batch, out);
        }
        for edge in 1..self.branches {
            out.emit(edge, group, batch.clone())?;
        }
        out.emit(0, group, batch)
    }

    /// With `in_turn`, each step sends one batch into a branch. The row of the cursor is the number of the branch, and
    /// its detail that of the batch.
    fn finish_step(
        &mut self,
        _port: u8,
        group: GroupId,
        instances: u32,
        at: &mut Cursor,
        out: &mut Output<'_, Rows>,
    ) -> Result<Step> {
        if let (Some(arrivals), true) = (&mut self.arrivals, at.is_start()) {
            arrivals.forget(group);
        }
        if !self.in_turn {
            out.finish_all(group, instances)?;
            return Ok(Step::Done);
        }
        let branch = at.row as usize;
        let index = if let Detail::Words([index, _]) = at.detail { index } else { 0 };
        if self.send(group, branch, index as usize, out)? == Step::More {
            at.detail = Detail::Words([index + 1, 0]);
            return Ok(Step::More);
        }
        out.finish(self.branches - 1 - branch, group, instances)?;
        if branch + 1 < self.branches {
            at.go_to(branch + 1);
            return Ok(Step::More);
        }
        if self.arrivals.is_some() {
            out.finish(self.branches, group, instances)?;
        }
        Ok(Step::Done)
    }
}

/// The condition under which a row takes an option.
pub(crate) enum OptionMatch {
    /// The deciding computed column is this boolean.
    Is(bool),
    /// It equals the value of this operand.
    Equals(Operand, Value),
    /// It passes.
    Passes(CompiledTest),
    /// No other option matches.
    Otherwise,
    /// The computed column is unproductive.
    Unproductive,
    /// Whatever the computed column holds.
    Always,
}

impl OptionMatch {
    /// Returns true if the option itself matches the decision. Options that depend on others do not.
    fn matches(&self, decision: Option<&Value>) -> bool {
        match (self, decision) {
            (OptionMatch::Is(truth), Some(value)) => *value == Value::Bool(*truth),
            (OptionMatch::Equals(_, option), Some(value)) => watched::equal(value, option),
            (OptionMatch::Passes(test), Some(value)) => test.holds(value),
            (OptionMatch::Unproductive, None) => true,
            _ => false,
        }
    }
}

/// Sends each row into the first option that matches computed column 0, or into every one. Edge `options.len()` leads
/// rows without an option past the branches.
pub(crate) struct Switch {
    options: Vec<OptionMatch>,
    every: bool,
    arrivals: Option<Arrivals>,
}

impl Switch {
    /// Tries these options in order. With `every`, a row goes into all that match. With `announces`, the last edge
    /// leads to the last port of the merge.
    pub fn new(options: Vec<OptionMatch>, every: bool, announces: bool) -> Self {
        Switch { options, every, arrivals: announces.then(Arrivals::default) }
    }

    /// Returns the edge for a row that takes one option.
    fn choose(&self, decision: Option<&Value>) -> usize {
        let position = |f: &dyn Fn(&OptionMatch) -> bool| self.options.iter().position(f);
        // An unproductive decision is not a value without an option: it takes no `Otherwise`.
        let otherwise = |when: &OptionMatch| decision.is_some() && matches!(when, OptionMatch::Otherwise);
        position(&|when| when.matches(decision)).or_else(|| position(&otherwise)).unwrap_or(self.options.len())
    }

    /// Adds a row to the route of every edge that it takes.
    fn route(&self, decision: Option<&Value>, row: u32, routes: &mut [Vec<u32>]) {
        if !self.every {
            return routes[self.choose(decision)].push(row);
        }
        let none = !self.options.iter().any(|when| when.matches(decision));
        for (when, route) in self.options.iter().zip(routes) {
            let taken = match when {
                OptionMatch::Always => true,
                OptionMatch::Otherwise => none,
                when => when.matches(decision),
            };
            if taken {
                route.push(row);
            }
        }
    }
}

impl Operator<Rows> for Switch {
    fn is_by_group(&self) -> bool {
        true
    }

    fn is_passing(&self) -> bool {
        self.arrivals.is_none()
    }

    fn begin(&mut self, context: &ExecutionContext) -> Result<()> {
        self.options.iter_mut().try_for_each(|option| match option {
            OptionMatch::Equals(operand, value) => {
                *value = context.resolve(operand)?;
                Ok(())
            }
            OptionMatch::Passes(test) => test.begin(context),
            OptionMatch::Is(_) | OptionMatch::Otherwise | OptionMatch::Unproductive | OptionMatch::Always => Ok(()),
        })
    }

    fn recycle(&mut self) -> bool {
        self.arrivals.as_ref().is_none_or(|arrivals| arrivals.seen.is_empty())
    }

    fn receive(&mut self, _port: u8, group: GroupId, mut batch: Rows, out: &mut Output<'_, Rows>) -> Result<()> {
        if batch.computed.is_empty() {
            return Err(Error::bug("choose() has a computed column to decide by"));
        }
        let mut routes: Vec<Vec<u32>> = vec![Vec::new(); self.options.len() + 1];
        for row in 0..batch.len() {
            self.route(batch.computed_value(0, row), row as u32, &mut routes);
        }
        batch.computed.clear();
        for (edge, rows) in routes.iter().enumerate() {
            if rows.is_empty() {
                continue;
            }
            let taken = batch.take(rows);
            if let Some(arrivals) = &mut self.arrivals {
                arrivals.announce(self.options.len() + 1, Some(edge), group, &taken, out)?;
            }
            out.emit(edge, group, taken)?;
        }
        Ok(())
    }

    fn finish(&mut self, _port: u8, group: GroupId, instances: u32, out: &mut Output<'_, Rows>) -> Result<()> {
        if let Some(arrivals) = &mut self.arrivals {
            arrivals.forget(group);
        }
        out.finish_all(group, instances)
    }
}

/// Merges branches: one port for each, and one more for announcements.
pub(crate) struct Merge {
    ports: u32,
    announced: bool,
    groups: FastMap<GroupId, MergingGroup>,
}

#[derive(Default)]
struct MergingGroup {
    ended: u32,
    /// The announced instances, by branch + 1; index 0 is for all branches.
    arrived: Vec<TagSet>,
    /// Rows of instances that are not announced yet, with their ports and the bytes that are charged for them.
    held: VecDeque<(u8, Rows, u64)>,
}

impl MergingGroup {
    fn arrive(&mut self, branch: usize, tag: u32) {
        if self.arrived.len() <= branch {
            self.arrived.resize_with(branch + 1, TagSet::default);
        }
        self.arrived[branch].insert(tag);
    }

    fn has_arrived(&self, port: u8, tag: u32) -> bool {
        let at = |branch: usize| self.arrived.get(branch).is_some_and(|tags| tags.contains(tag));
        at(0) || at(usize::from(port) + 1)
    }
}

impl Merge {
    /// Merges this many ports. With `announced`, the last one receives the announcements.
    pub fn new(ports: usize, announced: bool) -> Self {
        Merge { ports: ports as u32, announced, groups: FastMap::default() }
    }
}

impl Operator<Rows> for Merge {
    fn is_by_group(&self) -> bool {
        true
    }

    fn is_passing(&self) -> bool {
        !self.announced
    }

    fn recycle(&mut self) -> bool {
        self.groups.is_empty()
    }

    fn cancelled(&mut self, group: GroupId, tags: Option<&TagSet>, out: &Output<'_, Rows>) {
        let Some(state) = self.groups.get_mut(&group).filter(|_| tags.is_none()) else { return };
        for (_, _, charged) in state.held.drain(..) {
            out.control().release(charged);
        }
    }

    fn receive(&mut self, port: u8, group: GroupId, batch: Rows, out: &mut Output<'_, Rows>) -> Result<()> {
        if !self.announced {
            return out.emit(0, group, batch);
        }
        let state = self.groups.entry(group).or_default();
        if u32::from(port) + 1 == self.ports {
            for row in 0..batch.len() {
                let branch = match batch.object(row) {
                    Value::I64(branch) => usize::try_from(branch).map_or(0, |branch| branch + 1),
                    _ => 0,
                };
                state.arrive(branch, batch.tag(row));
            }
            return Ok(());
        }
        let known = |row: &u32| state.has_arrived(port, batch.tag(*row as usize));
        let (now, later): (Vec<u32>, Vec<u32>) = (0..batch.len() as u32).partition(known);
        if !later.is_empty() {
            let later = batch.take(&later);
            let bytes = later.bytes() as u64;
            out.control().charge(bytes)?;
            state.held.push_back((port, later, bytes));
        }
        if now.len() == batch.len() { out.emit(0, group, batch) } else { out.emit(0, group, batch.take(&now)) }
    }

    /// After the last end, each step sends one of the held batches; the row of the cursor is then 1.
    fn finish_step(
        &mut self,
        _port: u8,
        group: GroupId,
        instances: u32,
        at: &mut Cursor,
        out: &mut Output<'_, Rows>,
    ) -> Result<Step> {
        let state = self.groups.entry(group).or_default();
        if at.is_start() {
            state.ended += 1;
            at.row = 1;
        }
        if state.ended < self.ports {
            return Ok(Step::Done);
        }
        if let Some((port, rows, charged)) = state.held.pop_front() {
            out.control().release(charged);
            let arrived = rows.filter(|rows, row| state.has_arrived(port, rows.tag(row)));
            out.emit(0, group, arrived)?;
        }
        if !state.held.is_empty() {
            return Ok(Step::More);
        }
        self.groups.remove(&group);
        out.finish_all(group, instances)?;
        Ok(Step::Done)
    }
}
