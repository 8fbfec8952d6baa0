//! The branch scope: an instance a row.
//!
//! `where(t)`, `not(t)`, `or(t, …)`: rows pass or not. `map`, `flatMap`, `local`, `coalesce`, `optional`:
//! results take the rows' places. `sideEffect`: rows go on as they are. All instances of a message run
//! together; one that is decided is cancelled alone, by its tag. Several pipelines are tried one after the other, each
//! by the instances that none before has decided. A scope that writes runs one instance
//! after the other, so that each sees what the one before wrote. A test whose answer depends on a row's object alone is
//! asked once an object ([`crate::scope::known`]).

use std::ops::Range;

use mangrove_flow::{Batch as _, GroupId, OpId, Operator, Output, TagSet};
use mangrove_graph::{Error, Result};
use mangrove_plan::logical::FilterKind;
use mangrove_plan::physical::Merged;

use crate::rows::{Column, Remember, Rows, Tags};
use crate::scope::known::{Asked, Known};
use crate::scope::queue::WaitQueue;

/// What comes out of the scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Rows, if the pipelines decide so: the first result of one decides.
    Filter(FilterKind),
    /// Results of the first pipeline that has any, tried in turn.
    FlatMap {
        /// Only the first result.
        first: bool,
        /// The row itself where there is none.
        otherwise_row: bool,
        /// Inner steps belong to the path.
        inner_path: bool,
    },
    /// Rows; results are dropped.
    SideEffect,
}

/// What is fixed about a scope.
pub struct Shape {
    /// What comes out.
    pub kind: Kind,
    /// How many pipelines.
    pub pipelines: usize,
    /// The operators inside.
    pub inside: Range<OpId>,
    /// One instance after the other.
    pub serial: bool,
    /// Results come out in the order of the rows.
    pub ordered: bool,
    /// What is remembered of results.
    pub remember: Remember,
    /// Whether a row passes depends on its object alone (and on side effects).
    pub by_object: bool,
    /// How rows enter that stand for several traversers.
    pub merged: Merged,
}

/// A batch that entered.
struct Batch {
    rows: Rows,
    /// The rows that are inside now, by their tag there.
    entered: Vec<u32>,
    /// The first row that has not entered yet.
    next: u32,
    /// How many traversers each row stands for, where they enter apart: the rows then count one each.
    times: Option<Vec<u64>>,
    /// How often the row before `next` has to enter once more.
    times_left: u64,
    /// Which pipeline they are in.
    pipeline: usize,
    /// Rows that had a result.
    hit: TagSet,
    /// Results, and the row each came from: kept only where order matters.
    kept: Rows,
    kept_of: Vec<u32>,
    /// Rows that have the answers of others.
    asked: Asked,
}

impl Batch {
    /// Chooses the one row that enters next; none where all have, or the work for those that have not is no longer wanted.
    fn enter_next(&mut self, group: GroupId, out: &Output<'_, Rows>) {
        self.entered.clear();
        if out.is_cancelled(group) {
            (self.next, self.times_left) = (self.rows.len() as u32, 0);
            return;
        }
        let cancelled = out.cancelled_tags(group);
        let is_wanted = |row: u32| cancelled.is_none_or(|tags| !tags.contains(self.rows.tag(row as usize)));
        if self.times_left > 0 && is_wanted(self.next - 1) {
            self.times_left -= 1;
            self.entered.push(self.next - 1);
            return;
        }
        let row = (self.next..self.rows.len() as u32).find(|row| is_wanted(*row));
        self.next = row.map_or(self.rows.len() as u32, |row| row + 1);
        self.times_left = row.and_then(|row| Some(self.times.as_ref()?[row as usize] - 1)).unwrap_or(0);
        self.entered.extend(row);
    }
}

/// A branch scope.
pub struct Local {
    shape: Shape,
    queue: WaitQueue<Batch>,
    /// What is known of objects, where the answer depends on them alone.
    known: Option<Known>,
}

impl Local {
    /// A scope of this shape.
    pub fn new(shape: Shape) -> Self {
        let known = shape.by_object.then(Known::default);
        Local { shape, queue: WaitQueue::default(), known }
    }

    fn exit(&self) -> usize {
        self.shape.pipelines
    }

    /// Lets the next rows of a batch in: all of them, or one where instances run in turn.
    fn enter_rows(&mut self, number: u64, out: &mut Output<'_, Rows>) -> Result<()> {
        let serial = self.shape.serial;
        let Some((batch, group)) = self.queue.state(number) else { return Ok(()) };
        if serial {
            batch.enter_next(group, out);
            if batch.entered.is_empty() {
                return self.batch_done(number, out);
            }
        } else {
            batch.entered = (0..batch.rows.len() as u32).collect();
            batch.next = batch.rows.len() as u32;
        }
        batch.pipeline = 0;
        if let Some(known) = &mut self.known {
            batch.asked = known.ask(&batch.rows, &mut batch.hit, out.surroundings());
            batch.entered.clone_from(&batch.asked.leaders);
            if batch.entered.is_empty() {
                return self.batch_done(number, out);
            }
        }
        self.enter_pipeline(number, out)
    }

    /// Opens a group for the rows in `entered` and sends them into the pipeline they are due for.
    fn enter_pipeline(&mut self, number: u64, out: &mut Output<'_, Rows>) -> Result<()> {
        let keeps_bulk = self.shape.merged == Merged::Together;
        let Some((batch, group)) = self.queue.state(number) else { return Ok(()) };
        let edge = batch.pipeline;
        let mut inside = batch.rows.take(&batch.entered);
        let count = inside.len() as u32;
        inside.tags = Tags::Many((0..count).collect());
        if !keeps_bulk {
            inside.bulk = None;
        }
        let scope_group = out.open_group(group);
        self.queue.enter(scope_group, number);
        out.emit(edge, scope_group, inside)?;
        out.finish(edge, scope_group, count)
    }

    fn take_results(&mut self, scope_group: GroupId, results: Rows, out: &mut Output<'_, Rows>) -> Result<()> {
        let Some(number) = self.queue.batch_of(scope_group) else { return Ok(()) };
        let exit = self.exit();
        let shape = &self.shape;
        let Some((batch, group)) = self.queue.state(number) else { return Ok(()) };
        let first_only = !matches!(shape.kind, Kind::FlatMap { first: false, .. });
        let mut kept: Vec<u32> = Vec::with_capacity(results.len());
        let mut origin: Vec<u32> = Vec::with_capacity(results.len());
        for at in 0..results.len() {
            let tag = results.tag(at);
            let Some(&row) = batch.entered.get(tag as usize) else {
                return Err(Error::bug("a scope gave a result for an instance that it has not"));
            };
            let is_first = batch.hit.insert(row);
            if first_only && is_first && shape.kind != Kind::SideEffect {
                out.cancel_tag(scope_group, shape.inside.clone(), tag);
            }
            if is_first || !first_only {
                kept.push(at as u32);
                origin.push(row);
            }
        }
        let Kind::FlatMap { inner_path, .. } = shape.kind else { return Ok(()) };
        let rows = join(&batch.rows, &results, &kept, &origin, inner_path, shape);
        if !shape.ordered {
            return out.emit(exit, group, rows);
        }
        let bytes = rows.bytes() as u64;
        batch.kept.append(rows);
        batch.kept_of.extend(origin);
        self.queue.charge(number, bytes, out)
    }

    /// A group inside has ended at one pipeline: the rows go on to the next one, the next rows enter, or the
    /// batch is done.
    fn pipeline_ended(&mut self, scope_group: GroupId, out: &mut Output<'_, Rows>) -> Result<()> {
        let Some(number) = self.queue.batch_of(scope_group) else { return Ok(()) };
        let pipelines = self.shape.pipelines;
        self.queue.leave(scope_group);
        out.close_group(scope_group);
        let Some((batch, _)) = self.queue.state(number) else { return Ok(()) };
        batch.pipeline += 1;
        let Batch { hit, entered, .. } = batch;
        entered.retain(|row| !hit.contains(*row));
        if batch.pipeline < pipelines && !batch.entered.is_empty() {
            return self.enter_pipeline(number, out);
        }
        if (batch.next as usize) < batch.rows.len() || batch.times_left > 0 {
            return self.enter_rows(number, out);
        }
        self.learn(number, out)?;
        self.batch_done(number, out)
    }

    /// Gives the rows that follow others their answers, and keeps what was found out. Nothing was, where the work for the
    /// group is no longer wanted: what has no result then may only have been dropped.
    fn learn(&mut self, number: u64, out: &mut Output<'_, Rows>) -> Result<()> {
        let (Some(known), Some((batch, group))) = (&mut self.known, self.queue.state(number)) else { return Ok(()) };
        for (row, leader) in &batch.asked.followers {
            if batch.hit.contains(*leader) {
                batch.hit.insert(*row);
            }
        }
        if out.is_cancelled(group) { Ok(()) } else { known.learn(&batch.rows, &batch.asked, &batch.hit, out) }
    }

    fn batch_done(&mut self, number: u64, out: &mut Output<'_, Rows>) -> Result<()> {
        self.queue.done(number);
        self.release(out)?;
        self.start_next(out)
    }

    fn release(&mut self, out: &mut Output<'_, Rows>) -> Result<()> {
        let exit = self.exit();
        let shape = &self.shape;
        self.queue.release(exit, out, |batch, group, out| {
            for chunk in leaving(batch, shape).chunks() {
                out.emit(exit, group, chunk)?;
            }
            Ok(())
        })
    }

    /// Where instances run in turn, the batch that is now at the head begins.
    fn start_next(&mut self, out: &mut Output<'_, Rows>) -> Result<()> {
        if self.shape.serial
            && let Some(head) = self.queue.head()
            && self.queue.state(head).is_some_and(|(batch, _)| batch.next == 0)
        {
            return self.enter_rows(head, out);
        }
        Ok(())
    }
}

/// Results in the place of the rows they come from.
fn join(rows: &Rows, results: &Rows, kept: &[u32], origin: &[u32], inner_path: bool, shape: &Shape) -> Rows {
    let mut joined = rows.derive(origin, results.objects.gather(kept));
    if shape.merged == Merged::Together {
        // The results count what went in.
        joined.bulk = results.bulk.as_ref().map(|bulks| kept.iter().map(|k| bulks[*k as usize]).collect());
    } else if results.bulk.is_some() {
        let bulks = kept.iter().zip(origin);
        joined.bulk =
            Some(bulks.map(|(k, o)| results.bulk(*k as usize).saturating_mul(rows.bulk(*o as usize))).collect());
    }
    if inner_path {
        // The results are the same traversers further on, with what they carry.
        joined.sacks = results.sacks.as_ref().map(|sacks| kept.iter().map(|k| sacks[*k as usize].clone()).collect());
        joined.path = results.path.as_ref().map(|_| kept.iter().map(|k| results.path(*k as usize)).collect());
    } else {
        joined.remember(&shape.remember);
    }
    joined
}

/// What leaves the scope when a batch is done.
fn leaving(batch: Batch, shape: &Shape) -> Rows {
    let Batch { rows, hit, mut kept, mut kept_of, .. } = batch;
    match shape.kind {
        Kind::Filter(kind) => rows.filter(|_, row| hit.contains(row as u32) == (kind != FilterKind::None)),
        Kind::SideEffect => rows.filter(|_, _| true),
        Kind::FlatMap { otherwise_row, .. } => {
            if otherwise_row {
                let missed: Vec<u32> = (0..rows.len() as u32).filter(|r| !hit.contains(*r)).collect();
                kept.append(rows.take(&missed));
                kept_of.extend(missed);
            }
            let mut order: Vec<u32> = (0..kept.len() as u32).collect();
            order.sort_by_key(|at| kept_of[*at as usize]);
            kept.take(&order)
        }
    }
}

impl Operator<Rows> for Local {
    fn rest(&mut self) -> bool {
        if let Some(known) = &mut self.known {
            known.clear();
        }
        self.queue.is_empty()
    }

    fn receive(&mut self, port: u8, group: GroupId, mut batch: Rows, out: &mut Output<'_, Rows>) -> Result<()> {
        if port > 0 {
            return self.take_results(group, batch, out);
        }
        batch.computed.clear();
        let times = if self.shape.merged == Merged::Apart { batch.bulk.take() } else { None };
        let bytes = batch.bytes() as u64;
        let state = Batch {
            rows: batch,
            entered: Vec::new(),
            next: 0,
            times,
            times_left: 0,
            pipeline: 0,
            hit: TagSet::default(),
            kept: Rows::of(Column::Values(Vec::new())),
            kept_of: Vec::new(),
            asked: Asked::default(),
        };
        let number = self.queue.push(group, state);
        self.queue.charge(number, bytes, out)?;
        // Where instances run in turn, so do batches.
        if !self.shape.serial || self.queue.head() == Some(number) {
            return self.enter_rows(number, out);
        }
        Ok(())
    }

    fn finish(&mut self, port: u8, group: GroupId, instances: u32, out: &mut Output<'_, Rows>) -> Result<()> {
        if port > 0 {
            return self.pipeline_ended(group, out);
        }
        self.queue.end(group, instances);
        self.release(out)
    }
}
