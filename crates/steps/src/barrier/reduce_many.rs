//! `union(mean(), max(), count())` in one operator: several reductions of the same rows, and a row for each of them.
//!
//! The values of a message are read once: as an array if they are numbers of one type, whether they are the values of a
//! key or the objects of the rows. Results, types and errors are those of each reduction alone ([`Reduce`]). As with a
//! union, an instance that no row enters has no result ([`Reduced`]). An instance's results come in the order of the
//! reductions.
//!
//! [`Reduce`]: crate::barrier::reduce::Reduce

use std::sync::Arc;

use mangrove_flow::{Cursor, GroupId, Operator, Output, QueryControl, Shared, SharedState, Step, TagSet};
use mangrove_graph::{Error, Need, NumberType, Numbers, Result, Value, numeric};
use mangrove_plan::logical::{Name, Reduction};
use mangrove_plan::physical::Reduced;

use crate::barrier::numbers;
use crate::barrier::partial::{BatchStates, PartialReduction, ReduceKind, StatesByTag, add_batch, is_reduced};
use crate::barrier::per_thread::PerThread;
use crate::barrier::reduce::numbers_of;
use crate::computed::keys::read_numbers;
use crate::context::execution::ExecutionContext;
use crate::limits::meter::Meter;
use crate::row::operator::RowOperator;
use crate::row::property::Values;
use crate::rows::held::{ByInstance, send_results};
use crate::rows::{NumberSlice, Remember, Rows, Tags, needs};

/// The states of the reductions of an instance, in their order.
type States = Vec<PartialReduction>;

/// Reduces the same values in several ways.
pub(crate) struct ReduceMany {
    /// Reads the values of a key; `None`: the objects are reduced.
    values: Option<(Name, Values)>,
    /// True if an instance that had rows, but no values, has counts of 0.
    counts_nothing: bool,
    kinds: Vec<ReduceKind>,
    remember: Remember,
    /// True if several threads may work at it.
    may_share: bool,
    states: PerThread<ByInstance<States>>,
    numbers: Numbers,
}

/// The values of a batch.
struct BatchValues<'a> {
    /// Rows with the tags and bulks of the values. The values are their objects, if they are not in an array.
    rows: &'a Rows,
    numbers: Option<NumberSlice<'a>>,
    /// The row of each number; `None`: there is one for each row.
    row: Option<&'a [u32]>,
    /// The instances that have counts, though they may have no values.
    counted: Option<Tags>,
}

impl BatchValues<'_> {
    /// Adds the values to the states of a reduction.
    fn add_to(&self, states: &mut impl StatesByTag) -> Result<()> {
        if states.kind() == ReduceKind::Language(Reduction::Count) {
            match &self.counted {
                None => {}
                Some(Tags::One) => states.state(0).count(0)?,
                Some(Tags::Many(tags)) => tags.iter().try_for_each(|tag| states.state(*tag).count(0))?,
            }
        }
        match self.numbers {
            _ if self.rows.is_empty() => Ok(()),
            Some(read) => numbers::add_to_states(states, read, self.rows, |at| self.row.map_or(at, |r| r[at] as usize)),
            None => add_batch(states, self.rows),
        }
    }
}

/// The states of one of the reductions in a group.
struct StatesOfOne<'a> {
    number: usize,
    kinds: &'a [ReduceKind],
    states: &'a mut Vec<Option<States>>,
}

impl StatesByTag for StatesOfOne<'_> {
    fn kind(&self) -> ReduceKind {
        self.kinds[self.number]
    }

    fn state(&mut self, tag: u32) -> &mut PartialReduction {
        let new = || self.kinds.iter().map(|kind| PartialReduction::new(*kind)).collect();
        &mut ByInstance::entry(self.states, tag, new)[self.number]
    }
}

impl ReduceMany {
    /// `may_share` is for one whose rows come in no order, and whose groups are few.
    pub fn new(of: &Reduced, reductions: &[Reduction], remember: Remember, may_share: bool) -> Self {
        ReduceMany {
            values: of.key().map(|key| (key.clone(), Values::new(vec![key.clone()], false, false))),
            counts_nothing: matches!(of, Reduced::ValuesOfEach(_)),
            kinds: reductions.iter().map(|reduction| ReduceKind::Language(*reduction)).collect(),
            remember,
            may_share,
            states: PerThread::default(),
            numbers: Numbers::default(),
        }
    }

    /// Reads the values of a batch, and calls `add` with them for each reduction, by its number.
    fn read(
        &mut self,
        mut batch: Rows,
        context: &ExecutionContext,
        control: &QueryControl,
        mut add: impl FnMut(&[ReduceKind], &mut PerThread<ByInstance<States>>, usize, &BatchValues<'_>) -> Result<()>,
    ) -> Result<()> {
        let ReduceMany { values, counts_nothing, kinds, states, numbers, .. } = self;
        let counted = (*counts_nothing && !batch.is_empty()).then(|| batch.tags.clone());
        let mut is_read = false;
        if let Some((key, values)) = values {
            is_read = read_numbers(&batch.objects, key, context, numbers)?;
            if !is_read {
                batch = values.apply(batch, context, &mut Meter::new(control))?;
            }
        }
        let found = if is_read {
            let none = NumberSlice::Integers(NumberType::I64, &[]);
            let read = NumberSlice::of(numbers).unwrap_or(none);
            BatchValues { rows: &batch, numbers: Some(read), row: Some(&numbers.row), counted }
        } else {
            BatchValues { rows: &batch, numbers: numbers_of(&batch, numbers), row: None, counted }
        };
        (0..kinds.len()).try_for_each(|number| add(kinds, states, number, &found))
    }
}

/// Adds states of a helper to those of a group.
fn join(kinds: &[ReduceKind], states: &mut Vec<Option<States>>, batch: &Rows) -> Result<()> {
    let numbers = batch.computed.first().ok_or_else(|| Error::bug("a state has the number of its reduction"))?;
    (0..batch.len()).try_for_each(|row| {
        let number = numbers[row].as_ref().and_then(numeric::integer).and_then(|number| usize::try_from(number).ok());
        let number = number.filter(|number| *number < kinds.len());
        let number = number.ok_or_else(|| Error::bug("a state is that of one of the reductions"))?;
        let mut of_one = StatesOfOne { number, kinds, states };
        of_one.state(batch.tag(row)).join(kinds[number], batch.object(row), batch.bulk(row))
    })
}

impl Operator<Rows> for ReduceMany {
    fn is_by_group(&self) -> bool {
        true
    }

    fn needs<'a>(
        &'a mut self,
        _: u8,
        batch: &'a Rows,
        context: &'a ExecutionContext,
        _: &Arc<QueryControl>,
    ) -> Result<Need<'a>> {
        Ok(match &self.values {
            Some((key, _)) if !is_reduced(batch) => {
                needs::values(&batch.objects, 0, Some(context.view.key_of(key).into_iter().collect()))
            }
            _ => Need::Nothing,
        })
    }

    fn recycle(&mut self) -> bool {
        self.states.recycle(ByInstance::is_empty)
    }

    fn share(&mut self) -> Option<Shared> {
        if self.may_share { self.states.share() } else { None }
    }

    fn join(&mut self, state: &SharedState) {
        self.states.join(state);
    }

    /// Each state becomes a row, with the number of its reduction in computed column 0.
    fn combine(
        &mut self,
        _port: u8,
        batch: Rows,
        context: &ExecutionContext,
        control: &Arc<QueryControl>,
    ) -> Result<Rows> {
        let mut all = BatchStates::new(ReduceKind::Total).into_rows();
        self.read(batch, context, control, |kinds, _, number, found| {
            let mut states = BatchStates::new(kinds[number]);
            found.add_to(&mut states)?;
            let rows = states.into_rows();
            all.append(Rows { computed: vec![vec![Some(Value::I64(number as i64)); rows.len()]], ..rows });
            Ok(())
        })?;
        Ok(all)
    }

    fn cancelled(&mut self, group: GroupId, tags: Option<&TagSet>, out: &Output<'_, Rows>) {
        self.states.cancelled(group, tags, out);
    }

    fn receive(&mut self, _port: u8, group: GroupId, batch: Rows, out: &mut Output<'_, Rows>) -> Result<()> {
        if is_reduced(&batch) {
            let ReduceMany { kinds, states, .. } = self;
            return states.with(|states| join(kinds, states.group(group), &batch));
        }
        self.read(batch, out.context(), out.control(), |kinds, states, number, found| {
            states.with(|states| {
                let before = states.group(group).len();
                found.add_to(&mut StatesOfOne { number, kinds, states: states.group(group) })?;
                let new = states.group(group).len() - before;
                let bytes = new * kinds.len() * size_of::<PartialReduction>();
                if bytes > 0 { states.charge(group, bytes as u64, out) } else { Ok(()) }
            })
        })
    }

    /// After a run of several threads, the first steps join their states. Then each step sends the results of some
    /// instances.
    fn finish_step(
        &mut self,
        _port: u8,
        group: GroupId,
        instances: u32,
        at: &mut Cursor,
        out: &mut Output<'_, Rows>,
    ) -> Result<Step> {
        let ReduceMany { counts_nothing, kinds, remember, states, .. } = self;
        let join = |ours: &mut States, theirs: &mut States| {
            // None of them keeps values, so each moves at once.
            for ((kind, ours), theirs) in kinds.iter().zip(ours).zip(theirs) {
                if ours.take_over(*kind, theirs, &mut 0)? == Step::More {
                    return Ok((0, Step::More));
                }
            }
            Ok((0, Step::Done))
        };
        if states.combine_states(group, out, join)? == Step::More {
            return Ok(Step::More);
        }
        states.at_home(|states| {
            send_results(states, (group, instances), at, remember, out, |states, _| {
                // Values of keys are never null.
                let has_result = |state: &PartialReduction| !*counts_nothing || !state.is_null();
                let with_result = states.into_iter().flatten().filter(has_result);
                with_result.map(PartialReduction::result).collect::<Result<Vec<_>>>()
            })
        })
    }
}
