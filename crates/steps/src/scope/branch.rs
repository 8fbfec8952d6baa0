//! The branch scope: one instance for each row.
//!
//! | steps | rows that leave the scope |
//! |---|---|
//! | `where(t)`, `not(t)`, `or(t, …)` | the rows that pass |
//! | `map`, `flatMap`, `local`, `coalesce`, `optional` | the results in place of the rows |
//! | `sideEffect` | the rows as they are |
//!
//! All instances of a message run together. An instance that is decided is cancelled alone, by its tag. Several
//! pipelines are tried one after the other; an instance that a pipeline has decided does not enter the next one. A
//! scope that writes is *serial*: it runs one instance at a time, so that each instance sees what the earlier ones
//! wrote. If the answer of a test depends on the object of a row alone, the test runs once for each object
//! ([`crate::scope::answers`]).
//!
//! If the client asks for an order between instances, each row is a batch of its own, so that the runtime orders
//! instances. If a value orders them, those with the least rank are also let in first.
//!
//! If a `limit()` may end the stream, a row that passes leaves at its first result. Otherwise the rows of a message leave
//! together.
//!
//! A heavy instance without a result may begin again in a group of its own (FLOW-44). Its row becomes a batch that is
//! *apart*, and the other rows of its message leave without it.
//!
//! ```text
//! a batch:  waiting ─► in pipeline 0 ─► … ─► in pipeline n-1 ─► done ─► released, in the order of arrival
//!              ▲   serial: the next row enters   │
//!              └─────────────────────────────────┘
//! ```

use std::ops::Range;

use std::collections::BTreeSet;

use mangrove_flow::{
    Apart, Batch as _, Cursor, GroupId, OpId, Operator, OuterTags, Output, QueryControl, Step, TagSet,
};
use mangrove_graph::{Error, Result};
use mangrove_plan::logical::FilterKind;
use mangrove_plan::physical::Merged;

use crate::rows::rank::{Priority, Rank};
use crate::rows::{ObjectColumn, Remember, Rows, Tags};
use crate::scope::answers::{AskedRows, TestAnswers};
use crate::scope::queue::{LeavingRows, WaitQueue};

/// The rows that leave the scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BranchKind {
    /// The rows that pass. The first result of a pipeline decides.
    Filter(FilterKind),
    /// The results of the first pipeline that has any.
    FlatMap {
        /// Only the first result.
        first: bool,
        /// The row itself if no pipeline has a result.
        otherwise_row: bool,
        /// Results have the paths and sacks that they got inside.
        inner_path: bool,
    },
    /// The rows. Results are dropped.
    SideEffect,
}

/// The most instances inside at a time if each row is a batch of its own and the client names no limit: the runtime
/// chooses among them before each message.
const EACH_APART_MAX: usize = 64;

/// The structure of a branch scope, fixed by the plan.
pub(crate) struct BranchShape {
    pub kind: BranchKind,
    pub pipelines: usize,
    /// The operators inside.
    pub inside: Range<OpId>,
    /// True if instances run one after the other.
    pub serial: bool,
    /// True if results leave in the order of the rows.
    pub ordered: bool,
    /// True if each row is a batch of its own.
    pub each_apart: bool,
    /// The value that orders these batches. A computed value is in column 0.
    pub priority: Option<Priority>,
    /// True if a heavy instance may begin again in a group of its own.
    pub may_begin_again: bool,
    /// The part of the results that paths remember.
    pub remember: Remember,
    /// True if the answer for a row depends on its object and on side effects alone.
    pub by_object: bool,
    /// Of a filter: true if a row leaves at its first result.
    pub passes_early: bool,
    /// The way in which a row enters that stands for several traversers.
    pub merged: Merged,
}

/// A batch that has arrived, with its progress.
struct WaitingBatch {
    rows: Rows,
    /// The place of its instance among those of the scope.
    rank: Option<Rank>,
    /// The rows that are inside, by their tags there.
    entered: Vec<u32>,
    /// The rows that enter; `None` for all.
    leaders: Option<Vec<u32>>,
    /// The index of the first of them that has not entered yet.
    next: u32,
    /// The number of traversers that each row stands for, if each traverser enters by itself; `rows` then has no bulks.
    times: Option<Vec<u64>>,
    /// The number of times that the row before `next` still has to enter.
    times_left: u64,
    /// The pipeline that `entered` are in.
    pipeline: usize,
    /// Rows that had a result.
    hit: TagSet,
    /// Rows that have become batches of their own.
    gone: TagSet,
    /// Rows that have left at their first result.
    passed: TagSet,
    /// Results, and the row that each came from; used only if order matters.
    kept: Rows,
    kept_of: Vec<u32>,
    /// Which rows were tested, and which follow the answer of another row.
    asked: AskedRows,
}

impl WaitingBatch {
    /// A batch that has not entered. `times`: the number of traversers that each row stands for, if they enter one by
    /// one.
    fn new(rows: Rows, times: Option<Vec<u64>>) -> Self {
        WaitingBatch {
            rows,
            rank: None,
            entered: Vec::new(),
            leaders: None,
            next: 0,
            times,
            times_left: 0,
            pipeline: 0,
            hit: TagSet::default(),
            gone: TagSet::default(),
            passed: TagSet::default(),
            kept: Rows::of(ObjectColumn::Values(Vec::new())),
            kept_of: Vec::new(),
            asked: AskedRows::default(),
        }
    }

    /// Takes rows out, with the rows that follow their answers. Returns the numbers of all.
    fn take_out(&mut self, rows: Vec<u32>) -> Vec<u32> {
        rows.iter().for_each(|row| {
            self.gone.insert(*row);
        });
        let AskedRows { leaders, followers, .. } = &mut self.asked;
        leaders.retain(|leader| !self.gone.contains(*leader));
        let mut taken = rows;
        followers.retain(|(follower, leader)| {
            let stays = !self.gone.contains(*leader);
            if !stays {
                taken.push(*follower);
            }
            stays
        });
        taken.iter().for_each(|row| {
            self.gone.insert(*row);
        });
        taken
    }

    /// Takes a row out, with the rows that follow its answer, as a batch in the same pipeline.
    fn take_apart(&mut self, row: u32) -> WaitingBatch {
        let taken = self.take_out(vec![row]);
        let mut apart = WaitingBatch::new(self.rows.take(&taken), None);
        apart.leaders = self.leaders.as_ref().map(|_| vec![0]);
        (apart.next, apart.pipeline, apart.entered) = (1, self.pipeline, vec![0]);
        apart.asked = self.asked.of_leader(taken.len() as u32 - 1);
        apart
    }

    /// Returns the number of rows that enter, unless they are cancelled.
    fn count(&self) -> usize {
        self.leaders.as_ref().map_or(self.rows.len(), Vec::len)
    }

    /// Returns one of the rows that enter, by its index among them.
    fn entering(&self, index: u32) -> u32 {
        self.leaders.as_ref().map_or(index, |leaders| leaders[index as usize])
    }

    /// Returns true if rows are left that have not entered.
    fn has_more(&self) -> bool {
        (self.next as usize) < self.count() || self.times_left > 0
    }

    /// Chooses the rows that enter next, `at_once` of them at most. Leaves `entered` empty if all rows have entered or
    /// those left are cancelled.
    fn enter_next(&mut self, at_once: usize, group: GroupId, out: &Output<'_, Rows>) {
        self.entered.clear();
        if out.is_cancelled(group) {
            (self.next, self.times_left) = (self.count() as u32, 0);
            return;
        }
        let cancelled = out.cancelled_tags(group);
        // A leader works also for its followers. If they are all cancelled, it is cancelled inside.
        let is_any = self.leaders.is_some();
        let is_wanted =
            |row: u32| is_any || cancelled.as_ref().is_none_or(|tags| !tags.contains(self.rows.tag(row as usize)));
        if self.times_left > 0 {
            let row = self.entering(self.next - 1);
            if is_wanted(row) {
                self.times_left -= 1;
                self.entered.push(row);
                return;
            }
        }
        self.times_left = 0;
        // A result names a row by its tag, so the traversers of a row are inside one after the other.
        let at_once = if self.times.is_some() { 1 } else { at_once };
        let mut entered = Vec::with_capacity(at_once.min(self.count()));
        let mut next = self.next;
        while entered.len() < at_once && (next as usize) < self.count() {
            let row = self.entering(next);
            next += 1;
            if is_wanted(row) {
                entered.push(row);
            }
        }
        if let (Some(times), [row, ..]) = (&self.times, &entered[..]) {
            self.times_left = times[*row as usize] - 1;
        }
        (self.entered, self.next) = (entered, next);
    }
}

/// The operator of a branch scope.
pub(crate) struct BranchScope {
    shape: BranchShape,
    queue: WaitQueue<WaitingBatch>,
    /// The batches that have not entered, if each row is a batch of its own and only some may be inside: by rank, then
    /// in the order in which they came.
    waiting: BTreeSet<(Option<Rank>, u64)>,
    /// The answers by vertex, if the answer depends on the object alone.
    answers: Option<TestAnswers>,
}

impl BranchScope {
    pub fn new(shape: BranchShape) -> Self {
        let answers = shape.by_object.then(TestAnswers::default);
        BranchScope { shape, queue: WaitQueue::default(), waiting: BTreeSet::new(), answers }
    }

    fn exit(&self) -> usize {
        self.shape.pipelines
    }

    /// Returns the most rows that may be inside at a time; `None` for no limit. Batches then run one after the other,
    /// unless each row is a batch of its own.
    fn at_once(&self, out: &Output<'_, Rows>) -> Option<usize> {
        if self.shape.serial {
            return Some(1);
        }
        let max = out.policy().instances_max.map(|max| max.get() as usize);
        max.or(self.shape.each_apart.then_some(EACH_APART_MAX))
    }

    /// Lets the next rows of a batch in: all of them, or as many as may be inside at a time. If there are none, the
    /// batch is done.
    fn enter_rows(&mut self, number: u64, out: &mut Output<'_, Rows>) -> Result<()> {
        let at_once = self.at_once(out);
        let Some((batch, group)) = self.queue.state(number) else { return Ok(()) };
        if let (Some(answers), 0) = (&mut self.answers, batch.next) {
            batch.asked = answers.ask(&batch.rows, &mut batch.hit, out.context());
            batch.leaders = Some(batch.asked.leaders.clone());
        }
        match at_once {
            Some(at_once) => batch.enter_next(at_once, group, out),
            None => {
                batch.entered = (0..batch.count() as u32).map(|index| batch.entering(index)).collect();
                batch.next = batch.count() as u32;
            }
        }
        batch.pipeline = 0;
        if batch.entered.is_empty() {
            self.queue.done(number);
            return Ok(());
        }
        self.enter_pipeline(number, out)
    }

    /// Opens a group for the rows in `entered` and sends them into the current pipeline of their batch.
    fn enter_pipeline(&mut self, number: u64, out: &mut Output<'_, Rows>) -> Result<()> {
        let (keeps_bulk, serial) = (self.shape.merged == Merged::Together, self.shape.serial);
        let Some((batch, group)) = self.queue.state(number) else { return Ok(()) };
        let edge = batch.pipeline;
        let mut inside = batch.rows.take(&batch.entered);
        let count = inside.len() as u32;
        let outer = match std::mem::replace(&mut inside.tags, Tags::Many((0..count).collect())) {
            Tags::One => OuterTags::One(0),
            // An instance that has begun to write goes on to its end (STEPS-7).
            Tags::Many(_) if serial => OuterTags::Each(vec![OuterTags::SEVERAL; count as usize]),
            Tags::Many(mut outer) => {
                batch.asked.mark_shared(&batch.rows, &batch.entered, &mut outer);
                OuterTags::Each(outer)
            }
        };
        if !keeps_bulk {
            inside.bulk = None;
        }
        let scope_group = match batch.rank.clone() {
            Some(rank) => out.open_ranked(group, outer, rank),
            None => out.open_group(group, outer),
        };
        self.queue.enter(scope_group, number);
        out.emit(edge, scope_group, inside)?;
        out.finish(edge, scope_group, count)
    }

    /// Makes a batch of each row of a message. `ranks` are those of the rows.
    fn wait_apart(
        &mut self,
        group: GroupId,
        rows: &Rows,
        ranks: Vec<Option<Rank>>,
        times: Option<&[u64]>,
        out: &mut Output<'_, Rows>,
    ) -> Result<()> {
        for (row, rank) in ranks.into_iter().enumerate() {
            let own = rows.take(&[row as u32]);
            let bytes = (own.bytes() + rank.as_ref().map_or(0, Rank::bytes)) as u64;
            let mut state = WaitingBatch::new(own, times.map(|times| vec![times[row]]));
            state.rank = rank.clone();
            let number = match self.shape.ordered {
                true => self.queue.push(group, state),
                false => self.queue.push_apart(group, state),
            };
            self.queue.charge(number, bytes, out)?;
            self.waiting.insert((rank, number));
        }
        Ok(())
    }

    fn take_results(&mut self, scope_group: GroupId, results: Rows, out: &mut Output<'_, Rows>) -> Result<()> {
        let Some(number) = self.queue.batch_of(scope_group) else { return Ok(()) };
        let exit = self.exit();
        let shape = &self.shape;
        let Some((batch, group)) = self.queue.state(number) else { return Ok(()) };
        let first_only = !matches!(shape.kind, BranchKind::FlatMap { first: false, .. });
        let mut kept: Vec<u32> = Vec::with_capacity(results.len());
        let mut origin: Vec<u32> = Vec::with_capacity(results.len());
        for at in 0..results.len() {
            let tag = results.tag(at);
            let Some(&row) = batch.entered.get(tag as usize) else {
                return Err(Error::bug("a scope gave a result for an instance that it does not have"));
            };
            // FLOW-44: its instance has begun again.
            if batch.gone.contains(row) {
                continue;
            }
            let is_first = batch.hit.insert(row);
            if first_only && is_first && shape.kind != BranchKind::SideEffect {
                out.cancel_tag(scope_group, shape.inside.clone(), tag);
            }
            if is_first || !first_only {
                kept.push(at as u32);
                origin.push(row);
            }
        }
        if shape.passes_early {
            origin.iter().for_each(|row| {
                batch.passed.insert(*row);
            });
            let passed = batch.rows.take(&origin);
            return out.emit(exit, group, passed);
        }
        let BranchKind::FlatMap { inner_path, .. } = shape.kind else { return Ok(()) };
        let rows = join(&batch.rows, &results, &kept, &origin, inner_path, shape);
        if !shape.ordered {
            return out.emit(exit, group, rows);
        }
        let bytes = rows.bytes() as u64;
        batch.kept.append(rows);
        batch.kept_of.extend(origin);
        self.queue.charge(number, bytes, out)
    }

    /// Handles the end of a group inside. Undecided rows go on to the next pipeline; otherwise the next rows enter, or
    /// the batch is done.
    fn pipeline_ended(&mut self, scope_group: GroupId, out: &mut Output<'_, Rows>) -> Result<()> {
        let Some(number) = self.queue.batch_of(scope_group) else { return Ok(()) };
        let pipelines = self.shape.pipelines;
        self.queue.leave(scope_group);
        out.close_group(scope_group);
        let Some((batch, _)) = self.queue.state(number) else { return Ok(()) };
        batch.pipeline += 1;
        let WaitingBatch { hit, gone, entered, .. } = batch;
        entered.retain(|row| !hit.contains(*row) && !gone.contains(*row));
        if batch.pipeline < pipelines && !batch.entered.is_empty() {
            return self.enter_pipeline(number, out);
        }
        if batch.has_more() {
            self.enter_rows(number, out)?;
            if self.queue.is_inside(number) {
                return Ok(());
            }
        }
        self.learn(number, out)?;
        self.queue.done(number);
        Ok(())
    }

    /// Gives the followers the answers of their leaders, and keeps the answers (STEPS-4).
    fn learn(&mut self, number: u64, out: &mut Output<'_, Rows>) -> Result<()> {
        let (Some(answers), Some((batch, group))) = (&mut self.answers, self.queue.state(number)) else {
            return Ok(());
        };
        for (row, leader) in &batch.asked.followers {
            if batch.hit.contains(*leader) {
                batch.hit.insert(*row);
            }
        }
        // STEPS-4: a row of a cancelled instance may have no result only because it was dropped.
        if out.is_cancelled(group) {
            return Ok(());
        }
        if let Some(cancelled) = out.cancelled_tags(group) {
            batch.asked.leaders.retain(|row| !cancelled.contains(batch.rows.tag(*row as usize)));
        }
        answers.learn(&batch.rows, &batch.asked, &batch.hit, out)
    }

    /// Lets batches begin that are rows of their own, as many as there is room for. Returns true if one of them is done
    /// already.
    fn admit(&mut self, out: &mut Output<'_, Rows>) -> Result<bool> {
        let max = self.at_once(out).unwrap_or(usize::MAX);
        let mut is_any_done = false;
        while self.queue.inside_count() < max
            && let Some((_, number)) = self.waiting.pop_first()
        {
            self.enter_rows(number, out)?;
            is_any_done |= !self.queue.is_inside(number);
        }
        Ok(is_any_done)
    }

    /// Releases batches that are done. If the number of instances is limited, lets others begin.
    fn release(&mut self, out: &mut Output<'_, Rows>) -> Result<Step> {
        let exit = self.exit();
        loop {
            let shape = &self.shape;
            if self.queue.release(exit, out, |batch, control| leaving(batch, shape, control))? == Step::More {
                return Ok(Step::More);
            }
            if self.shape.each_apart {
                if self.admit(out)? {
                    continue;
                }
                return Ok(Step::Done);
            }
            let head = self.queue.head().filter(|_| self.at_once(out).is_some());
            match head {
                Some(head) if self.queue.state(head).is_some_and(|(batch, _)| batch.next == 0) => {
                    self.enter_rows(head, out)?;
                }
                _ => return Ok(Step::Done),
            }
        }
    }
}

/// Returns the results with the other columns of the rows that they come from.
fn join(rows: &Rows, results: &Rows, kept: &[u32], origin: &[u32], inner_path: bool, shape: &BranchShape) -> Rows {
    let mut joined = rows.derive(origin, results.objects.gather(kept));
    if shape.merged == Merged::Together {
        // The row entered with its bulk, so the bulks of its results count all its traversers.
        joined.bulk = results.bulk.as_ref().map(|bulks| kept.iter().map(|k| bulks[*k as usize]).collect());
    } else if results.bulk.is_some() {
        let bulks = kept.iter().zip(origin);
        joined.bulk =
            Some(bulks.map(|(k, o)| results.bulk(*k as usize).saturating_mul(rows.bulk(*o as usize))).collect());
    }
    if inner_path {
        // A result is the same traverser further on, with its sack, path and bindings (STEPS-11).
        joined.sacks = results.sacks.as_ref().map(|sacks| kept.iter().map(|k| sacks[*k as usize].clone()).collect());
        joined.path = results.path.as_ref().map(|_| kept.iter().map(|k| results.path(*k as usize)).collect());
        joined.bindings = results.bindings.iter().map(|column| column.gather(kept)).collect();
    } else {
        joined.remember(&shape.remember);
    }
    joined
}

/// Returns the rows that leave the scope when a batch is done.
fn leaving(batch: WaitingBatch, shape: &BranchShape, control: &QueryControl) -> Result<LeavingRows> {
    let WaitingBatch { rows, hit, gone, passed, mut kept, mut kept_of, .. } = batch;
    let is_gone = |row: u32| gone.contains(row) || passed.contains(row);
    let rows = match shape.kind {
        BranchKind::Filter(kind) => {
            rows.filter(|_, row| !is_gone(row as u32) && hit.contains(row as u32) == (kind != FilterKind::None))
        }
        BranchKind::SideEffect if gone.is_empty() => rows,
        BranchKind::SideEffect => rows.filter(|_, row| !is_gone(row as u32)),
        BranchKind::FlatMap { otherwise_row, .. } => {
            if otherwise_row {
                let missed: Vec<u32> = (0..rows.len() as u32).filter(|r| !hit.contains(*r) && !is_gone(*r)).collect();
                kept.append(rows.take(&missed));
                kept_of.extend(missed);
            }
            return LeavingRows::by_key(kept, |at| kept_of[at as usize], control);
        }
    };
    Ok(LeavingRows::of_one_batch(rows))
}

impl Operator<Rows> for BranchScope {
    fn is_by_group(&self) -> bool {
        !self.shape.serial
    }

    fn is_by_batch(&self) -> bool {
        !self.shape.serial && !self.shape.each_apart
    }

    fn recycle(&mut self) -> bool {
        if let Some(answers) = &mut self.answers {
            answers.clear();
        }
        self.queue.is_empty() && self.waiting.is_empty()
    }

    fn cancelled(&mut self, group: GroupId, tags: Option<&TagSet>, out: &Output<'_, Rows>) {
        self.queue.cancelled(group, tags, out);
    }

    fn receive(&mut self, port: u8, group: GroupId, mut batch: Rows, out: &mut Output<'_, Rows>) -> Result<()> {
        if port > 0 {
            return self.take_results(group, batch, out);
        }
        let ranks = match self.shape.priority {
            Some(priority) => priority.ranks(&batch, 0).into_iter().map(Some).collect(),
            None if self.shape.each_apart => vec![None; batch.len()],
            None => Vec::new(),
        };
        batch.computed.clear();
        let times = if self.shape.merged == Merged::Apart { batch.bulk.take() } else { None };
        if self.shape.each_apart {
            self.wait_apart(group, &batch, ranks, times.as_deref(), out)?;
            self.admit(out)?;
            if !self.queue.is_releasing() {
                while self.release(out)? == Step::More {}
            }
            return Ok(());
        }
        let bytes = batch.bytes() as u64;
        let number = self.queue.push(group, WaitingBatch::new(batch, times));
        self.queue.charge(number, bytes, out)?;
        // If the number of instances is limited, batches run one after the other, too.
        if self.at_once(out).is_none() || self.queue.head() == Some(number) {
            self.enter_rows(number, out)?;
            // The batch may be done already. No batch follows it, so at most its own rows leave.
            if !self.queue.is_releasing() {
                while self.release(out)? == Step::More {}
            }
        }
        Ok(())
    }

    fn set_apart(&mut self, inside: GroupId, tag: u32, out: &mut Output<'_, Rows>) -> Result<Apart> {
        let may_begin_again = self.shape.may_begin_again && self.at_once(out).is_none();
        let Some(number) = self.queue.batch_of(inside) else { return Ok(Apart::Stays) };
        let Some((batch, group)) = self.queue.state(number) else { return Ok(Apart::Stays) };
        let Some(&row) = batch.entered.get(tag as usize) else { return Ok(Apart::Stays) };
        if !may_begin_again || batch.entered.len() == 1 || batch.gone.contains(row) || batch.times.is_some() {
            return Ok(Apart::Stays);
        }
        if batch.hit.contains(row) {
            return Ok(Apart::HasResults);
        }
        if out.has_other_home(group) {
            let has_gone = self.send_instances_home(inside, &[tag], out)?;
            return Ok(if has_gone { Apart::BeginsAgain } else { Apart::Stays });
        }
        let apart = batch.take_apart(row);
        let bytes = apart.rows.bytes() as u64;
        let apart = self.queue.push_apart(group, apart);
        self.queue.charge(apart, bytes, out)?;
        out.cancel_tag(inside, self.shape.inside.clone(), tag);
        self.enter_pipeline(apart, out)?;
        Ok(Apart::BeginsAgain)
    }

    fn send_instances_home(&mut self, inside: GroupId, tags: &[u32], out: &mut Output<'_, Rows>) -> Result<bool> {
        let may_begin_again = self.shape.may_begin_again && self.at_once(out).is_none();
        let Some(number) = self.queue.batch_of(inside) else { return Ok(false) };
        let Some((batch, group)) = self.queue.state(number) else { return Ok(false) };
        if !may_begin_again || batch.times.is_some() || !out.has_other_home(group) {
            return Ok(false);
        }
        let row_of = |tag: &u32| batch.entered.get(*tag as usize).map(|row| (*tag, *row));
        let may_go = |(_, row): &(u32, u32)| !batch.gone.contains(*row) && !batch.hit.contains(*row);
        let (tags, rows): (Vec<u32>, Vec<u32>) = tags.iter().filter_map(row_of).filter(may_go).unzip();
        if rows.is_empty() {
            return Ok(false);
        }
        let taken = batch.take_out(rows);
        let gone = batch.rows.take(&taken);
        tags.into_iter().for_each(|tag| out.cancel_tag(inside, self.shape.inside.clone(), tag));
        out.send_home(group, gone);
        Ok(true)
    }

    /// Batches leave in steps; the row of the cursor is 1 after the first one.
    fn finish_step(
        &mut self,
        port: u8,
        group: GroupId,
        instances: u32,
        at: &mut Cursor,
        out: &mut Output<'_, Rows>,
    ) -> Result<Step> {
        if at.is_start() {
            at.row = 1;
            if port > 0 {
                self.pipeline_ended(group, out)?;
            } else {
                self.queue.end(group, instances);
            }
        }
        self.release(out)
    }
}
