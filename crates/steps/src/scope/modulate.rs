//! Fills computed columns: the value that each `by()` takes of each row, for the next operator (STEPS-9).
//!
//! A `by()` that is a key, a token or a degree is looked up at once. A `by()` that is a traversal runs in a branch scope. The
//! instances of this scope are not rows but *items*: the objects that the `by()` is applied to, of which a row may have
//! several (the objects of its path, the members of its list). Several traversals run one after the other, because a
//! later one may read what an earlier one put into a side effect. Batches leave in the order in which they came
//! (STEPS-6). With a limit on instances, the objects of a traversal enter some at a time, and batches run one after the
//! other. A heavy instance stays with the others, because the row that it belongs to may wait for several instances.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use mangrove_flow::{Batch as _, Cursor, GroupId, OpId, Operator, Output, QueryControl, Step, TagSet};
use mangrove_graph::{Error, FastMap, Need, Result, Value};
use mangrove_plan::physical::Over;

use crate::context::execution::ExecutionContext;
use crate::limits::meter::Meter;
use crate::limits::sizes::Sizes;
use crate::rows::named::named_values;
use crate::rows::path;
use crate::rows::{ComputedColumn, ObjectColumn, Rows, Tags};
use crate::scope::by_taker::{ByTaker, ITEM_BYTES};
use crate::scope::queue::{LeavingRows, WaitQueue};
use crate::values::collection::{elements, size};

/// The objects that one `by()` is applied to.
struct ByJob {
    by: usize,
    /// The row of each object, and its index among the objects of the row.
    items: Vec<(u32, u32)>,
    results: ComputedColumn,
}

/// The jobs of a batch: one for each `by()`, with its objects.
#[derive(Default)]
struct BatchJobs {
    jobs: Vec<ByJob>,
    inputs: Vec<Vec<Value>>,
    lengths: Vec<Option<u32>>,
}

struct ModulatedBatch {
    rows: Rows,
    jobs: Vec<ByJob>,
    /// The number of objects of each row, if they are gathered into a list.
    lengths: Vec<Option<u32>>,
    /// The jobs that need a pipeline, in order.
    due: VecDeque<DueJob>,
    /// True if the first of them has begun.
    has_begun: bool,
}

/// A job of which not all objects have entered their pipeline.
struct DueJob {
    job: usize,
    pipeline: usize,
    /// The index of the first object that has not entered.
    next: usize,
    /// The objects. The tags of the rows are those outside.
    rows: Rows,
}

/// The objects that a group inside works for.
#[derive(Clone, Copy)]
struct RunningJob {
    job: usize,
    /// The index of instance 0 among the objects of the job.
    first: usize,
}

/// Works out computed columns.
pub(crate) struct Modulate {
    over: Over,
    by: Vec<ByTaker>,
    /// For each `by()`, true if an unproductive object gives null.
    productive: Vec<bool>,
    pipelines: usize,
    inside: Range<OpId>,
    queue: WaitQueue<ModulatedBatch>,
    /// The job that each group inside works for.
    jobs: FastMap<GroupId, RunningJob>,
}

impl Modulate {
    /// Applies these `by()`s to the objects that `over` names. If `productive`, an unproductive object gives null.
    /// `inside` are the operators of the scope.
    pub fn new(over: Over, by: Vec<ByTaker>, productive: Vec<bool>, inside: Range<OpId>) -> Self {
        let pipelines = by.iter().filter(|t| matches!(t, ByTaker::Pipeline { .. })).count();
        Modulate { over, by, productive, pipelines, inside, queue: WaitQueue::default(), jobs: Default::default() }
    }

    /// Returns the objects of every row, by the `by()` that is applied to them.
    fn jobs(&self, rows: &Rows, context: &ExecutionContext, meter: &mut Meter<'_>) -> Result<BatchJobs> {
        let BatchJobs { mut jobs, mut inputs, mut lengths } = BatchJobs::default();
        let mut add = |by: usize, (items, values): (Vec<(u32, u32)>, Vec<Value>)| {
            jobs.push(ByJob { by, results: vec![None; items.len()], items });
            inputs.push(values);
        };
        match &self.over {
            Over::Current => {
                for by in 0..self.by.len() {
                    let items = (0..rows.len() as u32).map(|r| (r, by as u32)).collect();
                    add(by, (items, rows.objects.clone().into_values()));
                }
            }
            Over::Names(names) => {
                for (item, (name, lookup)) in names.iter().enumerate() {
                    let (named, values) = named_values(rows, name.as_ref(), *lookup, context, meter)?;
                    let items = named.into_iter().map(|row| (row, item as u32)).collect();
                    add(item % self.by.len(), (items, values));
                }
            }
            Over::PathObjects(_) | Over::TreeObjects | Over::Elements | Over::MapValues => {
                let rotates = matches!(self.over, Over::PathObjects(_) | Over::TreeObjects);
                let mut split = vec![(Vec::new(), Vec::new()); self.by.len()];
                for row in 0..rows.len() {
                    let parts = self.part_count(rows, row);
                    meter.charge(parts.saturating_mul(size_of::<Value>() + self.by.len() * ITEM_BYTES))?;
                    let objects = self.parts(rows, row)?;
                    let count = objects.as_ref().map(Vec::len);
                    lengths.push(count.map(|count| count as u32));
                    for (item, object) in objects.into_iter().flatten().enumerate() {
                        let takers = if rotates { item % split.len()..item % split.len() + 1 } else { 0..split.len() };
                        for by in takers {
                            split[by].0.push((row as u32, item as u32));
                            split[by].1.push(object.clone());
                        }
                    }
                }
                for (by, gathered) in split.into_iter().enumerate() {
                    add(by, gathered);
                }
            }
        }
        Ok(BatchJobs { jobs, inputs, lengths })
    }

    /// Returns the maximum number of objects of a row that are gathered into a list.
    fn part_count(&self, rows: &Rows, row: usize) -> usize {
        match &self.over {
            Over::PathObjects(_) | Over::TreeObjects => path::newest_first(&rows.path(row)).count(),
            _ => size(&rows.object(row)),
        }
    }

    /// Returns the objects of a row that are gathered into a list; `None` if the row's object is no collection.
    fn parts(&self, rows: &Rows, row: usize) -> Result<Option<Vec<Value>>> {
        match (&self.over, rows.object(row)) {
            (Over::PathObjects(segment), _) => Ok(Some(path::segment(&rows.path(row), segment)?.objects)),
            (Over::TreeObjects, _) => Ok(Some(path::objects(&rows.path(row)))),
            (Over::MapValues, Value::Map(entries)) => Ok(Some(entries.iter().map(|(_, v)| v.clone()).collect())),
            (_, object) => elements(&object),
        }
    }

    /// Returns the computed columns of rows whose `by()`s take the objects themselves. None of them needs a pipeline.
    fn of_objects(&mut self, rows: &Rows, context: &ExecutionContext) -> Result<Option<Vec<ComputedColumn>>> {
        let columns = match &self.over {
            Over::Current => self.by.len(),
            Over::Names(names) if names.iter().all(|(name, _)| name.is_none()) => names.len(),
            _ => return Ok(None),
        };
        let mut computed = Vec::with_capacity(columns);
        for by in (0..self.by.len()).cycle().take(columns) {
            let Some(mut column) = self.by[by].take(&rows.objects, context)? else { return Ok(None) };
            if self.productive[by] {
                make_productive(&mut column);
            }
            computed.push(column);
        }
        Ok(Some(computed))
    }

    /// Sends rows on at once, with their computed columns, if no `by()` needs a pipeline.
    fn pass(&mut self, group: GroupId, mut rows: Rows, out: &mut Output<'_, Rows>) -> Result<()> {
        let context = out.context();
        if let Some(computed) = self.of_objects(&rows, context)? {
            rows.computed = computed;
            return out.emit(0, group, rows);
        }
        let mut meter = Meter::new(out.control());
        let BatchJobs { mut jobs, inputs, lengths } = self.jobs(&rows, context, &mut meter)?;
        meter.charge(jobs.iter().map(|job| job.items.len() * ITEM_BYTES).sum())?;
        for (job, values) in jobs.iter_mut().zip(inputs).filter(|(_, values)| !values.is_empty()) {
            let objects = ObjectColumn::from_values(values);
            let taken = self.by[job.by].take_all(&objects, context, &mut meter)?;
            job.results = taken.ok_or_else(|| Error::bug("no by() needs a pipeline"))?;
            if self.productive[job.by] {
                make_productive(&mut job.results);
            }
        }
        let batch = ModulatedBatch { rows, jobs, lengths, due: VecDeque::new(), has_begun: true };
        let rows = with_computed(batch, &self.over, &mut meter)?;
        drop(meter);
        out.emit(0, group, rows)
    }

    fn enter(&mut self, group: GroupId, rows: Rows, out: &mut Output<'_, Rows>) -> Result<()> {
        let context = out.context();
        let mut meter = Meter::new(out.control());
        let BatchJobs { mut jobs, inputs, lengths } = self.jobs(&rows, context, &mut meter)?;
        let mut due: VecDeque<DueJob> = VecDeque::new();
        for (at, (job, values)) in jobs.iter_mut().zip(inputs).enumerate() {
            if values.is_empty() {
                continue;
            }
            let objects = ObjectColumn::from_values(values);
            job.results = match (self.by[job.by].take_all(&objects, context, &mut meter)?, &self.by[job.by]) {
                (Some(column), _) => column,
                (None, ByTaker::Pipeline { number, .. }) => {
                    let from: Vec<u32> = job.items.iter().map(|(row, _)| *row).collect();
                    let mut inside = rows.derive(&from, objects);
                    inside.bulk = None;
                    due.push_back(DueJob { job: at, pipeline: *number, next: 0, rows: inside });
                    vec![None; from.len()]
                }
                (None, _) => return Err(Error::bug("only a pipeline's results are waited for")),
            };
        }
        let items: usize = jobs.iter().map(|job| job.items.len()).sum();
        let bytes = rows.bytes() + items * ITEM_BYTES;
        let number = self.queue.push(group, ModulatedBatch { rows, jobs, lengths, due, has_begun: false });
        drop(meter);
        self.queue.charge(number, bytes as u64, out)?;
        if out.policy().instances_max.is_none() || self.queue.head() == Some(number) {
            self.next_job(number, out)?;
        }
        Ok(())
    }

    /// With a limit on instances: lets the batch begin that is then at the head. Returns true if there is one.
    fn begin_head(&mut self, out: &mut Output<'_, Rows>) -> Result<bool> {
        let head = self.queue.head().filter(|_| out.policy().instances_max.is_some());
        match head {
            Some(head) if self.queue.state(head).is_some_and(|(batch, _)| !batch.has_begun) => {
                self.next_job(head, out)?;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Sends the objects of the next job into its pipeline. If there is none, the batch is done.
    fn next_job(&mut self, number: u64, out: &mut Output<'_, Rows>) -> Result<()> {
        let Some((batch, group)) = self.queue.state(number) else { return Ok(()) };
        batch.has_begun = true;
        let Some(DueJob { job, pipeline, next: first, rows }) = batch.due.pop_front() else {
            self.queue.done(number);
            return Ok(());
        };
        let max = out.policy().instances_max.map_or(rows.len(), |max| max.get() as usize);
        let next = rows.len().min(first + max);
        let mut inside = if next - first == rows.len() {
            rows
        } else {
            let inside = rows.take(&(first as u32..next as u32).collect::<Vec<_>>());
            if next < rows.len() {
                batch.due.push_front(DueJob { job, pipeline, next, rows });
            }
            inside
        };
        let count = inside.len() as u32;
        let outer = std::mem::replace(&mut inside.tags, Tags::Many((0..count).collect()));
        let scope_group = out.open_group(group, outer.into_outer());
        self.queue.enter(scope_group, number);
        self.jobs.insert(scope_group, RunningJob { job, first });
        for chunk in inside.chunks() {
            out.control().check()?;
            out.emit(pipeline, scope_group, chunk)?;
        }
        out.finish(pipeline, scope_group, count)
    }

    fn take_results(&mut self, scope_group: GroupId, rows: Rows, out: &mut Output<'_, Rows>) -> Result<()> {
        let (Some(number), Some(&running)) = (self.queue.batch_of(scope_group), self.jobs.get(&scope_group)) else {
            return Ok(());
        };
        let inside = self.inside.clone();
        let Some((batch, _)) = self.queue.state(number) else { return Ok(()) };
        let job = &mut batch.jobs[running.job];
        let exists = matches!(self.by[job.by], ByTaker::Pipeline { exists: true, .. });
        let (mut sizes, mut held) = (Sizes::default(), 0);
        for row in 0..rows.len() {
            let tag = rows.tag(row);
            let Some(result) = job.results.get_mut(running.first + tag as usize) else { continue };
            if result.is_none() {
                held +=
                    if exists { 0 } else { rows.objects.values().get(row).map_or(0, |value| sizes.pointed_to(value)) };
                *result = Some(if exists { Value::Bool(true) } else { rows.object(row) });
                out.cancel_tag(scope_group, inside.clone(), tag);
            }
        }
        self.queue.charge(number, held as u64, out)
    }

    fn pipeline_ended(&mut self, scope_group: GroupId, out: &mut Output<'_, Rows>) -> Result<()> {
        out.close_group(scope_group);
        let (Some(number), Some(job)) = (self.queue.leave(scope_group), self.jobs.remove(&scope_group)) else {
            return Ok(());
        };
        let Some((batch, _)) = self.queue.state(number) else { return Ok(()) };
        let rest = batch.due.front().filter(|due| due.job == job.job);
        let unanswered = rest.map_or(usize::MAX, |due| due.next);
        let job = &mut batch.jobs[job.job];
        if matches!(self.by[job.by], ByTaker::Pipeline { exists: true, .. }) {
            // Objects that have not entered get their answers later.
            let until = job.results.len().min(unanswered);
            job.results[..until].iter_mut().for_each(|r| {
                r.get_or_insert(Value::Bool(false));
            });
        }
        self.next_job(number, out)
    }

    fn release(&mut self, out: &mut Output<'_, Rows>) -> Result<Step> {
        loop {
            let (over, productive) = (&self.over, &self.productive);
            let step = self.queue.release(self.pipelines, out, |mut batch, control| {
                let jobs = batch.jobs.iter_mut().filter(|job| productive[job.by]);
                jobs.for_each(|job| make_productive(&mut job.results));
                let rows = with_computed(batch, over, &mut Meter::new(control))?;
                Ok(LeavingRows::of_one_batch(rows))
            })?;
            if step == Step::More || !self.begin_head(out)? {
                return Ok(step);
            }
        }
    }
}

/// Replaces missing values by null.
fn make_productive(column: &mut ComputedColumn) {
    column.iter_mut().filter(|value| value.is_none()).for_each(|nothing| *nothing = Some(Value::Null));
}

impl ByJob {
    /// Calls `put` with the row, the index in the row and the result of each object. The values that `put` makes are
    /// charged before.
    fn put_results(self, meter: &mut Meter<'_>, mut put: impl FnMut(usize, usize, Option<Value>)) -> Result<()> {
        for ((row, item), result) in self.items.into_iter().zip(self.results) {
            meter.charge(ITEM_BYTES)?;
            put(row as usize, item as usize, result);
        }
        Ok(())
    }
}

/// Returns the rows with their computed columns.
fn with_computed(batch: ModulatedBatch, over: &Over, meter: &mut Meter<'_>) -> Result<Rows> {
    let ModulatedBatch { mut rows, jobs, lengths, .. } = batch;
    let count = rows.len();
    // Lists that are filled with nothing before the results come.
    let nothings = lengths.iter().flatten().map(|length| *length as usize * size_of::<Option<Value>>()).sum();
    rows.computed = match over {
        Over::Current | Over::Names(_) => {
            let mut computed = Vec::with_capacity(jobs.len());
            for job in jobs {
                let mut column: ComputedColumn = vec![None; count];
                job.put_results(meter, |row, _, result| column[row] = result)?;
                computed.push(column);
            }
            computed
        }
        Over::PathObjects(_) | Over::TreeObjects => {
            meter.charge(nothings)?;
            let mut lists: Vec<Option<Vec<Option<Value>>>> =
                lengths.iter().map(|l| l.map(|l| vec![None; l as usize])).collect();
            for job in jobs {
                job.put_results(meter, |row, item, result| {
                    if let Some(list) = &mut lists[row] {
                        list[item] = result;
                    }
                })?;
            }
            // One unproductive by() makes a whole path unproductive; a tree lacks only that branch.
            let gathered = |list: Vec<Option<Value>>| match over {
                Over::TreeObjects => Some(list.into_iter().flatten().collect()),
                _ => list.into_iter().collect::<Option<Vec<_>>>(),
            };
            vec![lists.into_iter().map(|list| gathered(list?).map(Value::list)).collect()]
        }
        Over::Elements => {
            let mut computed = Vec::with_capacity(jobs.len());
            for job in jobs {
                meter.charge(nothings)?;
                // A list for each: empty if the by() was unproductive.
                let nothing = Value::list(Vec::new());
                let mut lists: Vec<Option<Vec<Value>>> =
                    lengths.iter().map(|l| l.map(|l| vec![nothing.clone(); l as usize])).collect();
                job.put_results(meter, |row, item, result| {
                    if let (Some(list), Some(result)) = (&mut lists[row], result) {
                        list[item] = Value::list(vec![result]);
                    }
                })?;
                computed.push(lists.into_iter().map(|l| l.map(Value::list)).collect());
            }
            computed
        }
        Over::MapValues => {
            // Pairs of index and value, without the entries whose by() was unproductive.
            let mut lists: Vec<Option<Vec<Value>>> = lengths.iter().map(|l| l.map(|_| Vec::new())).collect();
            for job in jobs {
                job.put_results(meter, |row, item, result| {
                    if let (Some(list), Some(result)) = (&mut lists[row], result) {
                        list.push(Value::List(Arc::new(vec![Value::I64(item as i64), result])));
                    }
                })?;
            }
            vec![lists.into_iter().map(|l| l.map(Value::list)).collect()]
        }
    };
    Ok(rows)
}

impl Operator<Rows> for Modulate {
    fn is_by_group(&self) -> bool {
        true
    }

    fn is_by_batch(&self) -> bool {
        true
    }

    fn needs<'a>(
        &'a mut self,
        port: u8,
        batch: &'a Rows,
        context: &'a ExecutionContext,
        control: &Arc<QueryControl>,
    ) -> Result<Need<'a>> {
        let reads = |taker: &ByTaker| {
            matches!(taker, ByTaker::Key(_) | ByTaker::Priority(_) | ByTaker::Token(_) | ByTaker::Degree(_))
        };
        if port > 0 || !self.by.iter().any(reads) {
            return Ok(Need::Nothing);
        }
        if let Over::Current = self.over {
            return Ok(Need::all(self.by.iter_mut().map(|taker| taker.needs(&batch.objects, 0, context))));
        }
        let BatchJobs { jobs, inputs, .. } = self.jobs(batch, context, &mut Meter::new(control))?;
        let needs = jobs.iter().zip(&inputs).map(|(job, values)| self.by[job.by].needs_among(values, context));
        Ok(Need::all(needs))
    }

    fn begin(&mut self, context: &ExecutionContext) -> Result<()> {
        self.by.iter_mut().try_for_each(|taker| match taker {
            ByTaker::Test(test) => test.begin(context),
            _ => Ok(()),
        })
    }

    /// Without a pipeline it works row by row, so helpers do that themselves.
    fn is_passing(&self) -> bool {
        self.pipelines == 0
    }

    fn recycle(&mut self) -> bool {
        self.queue.is_empty() && self.jobs.is_empty()
    }

    fn cancelled(&mut self, group: GroupId, tags: Option<&TagSet>, out: &Output<'_, Rows>) {
        self.queue.cancelled(group, tags, out);
    }

    fn receive(&mut self, port: u8, group: GroupId, batch: Rows, out: &mut Output<'_, Rows>) -> Result<()> {
        if port > 0 {
            return self.take_results(group, batch, out);
        }
        if self.pipelines == 0 {
            return self.pass(group, batch, out);
        }
        self.enter(group, batch, out)?;
        // The batch may be done already. No batch follows it, so at most its own rows leave.
        if !self.queue.is_releasing() {
            while self.release(out)? == Step::More {}
        }
        Ok(())
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
