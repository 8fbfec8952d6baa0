//! One running query: an instance of a plan over a transaction, on one node.

use std::sync::Arc;

use mangrove_flow::{Leftovers, NodeRuntime, Progress, QueryControl};
use mangrove_graph::{Error, Result, Value};
use mangrove_steps::{Detail, ExecutionContext, Meter, Rows, SideEffects, Sizes, check_results, detach};
use smol_str::SmolStr;

use super::instance::{Instance, Planned};
use super::settings::RunSettings;
use crate::options::Materialize;

/// A running query.
pub(crate) struct Execution {
    planned: Arc<Planned>,
    /// Gone when the query is complete.
    instance: Option<Box<Instance>>,
    /// Results are kept until the query is over: it is charged for them.
    keeps_results: bool,
}

/// What a query that has ended leaves to be dropped: values in operators, in queues and in side effects.
pub(crate) struct Remains {
    _instance: Option<Box<Instance>>,
    _values: Option<OwnValues>,
    _leftovers: Option<Leftovers>,
    are_large: bool,
}

/// The side effects and parameters of a query.
type OwnValues = (SideEffects, Vec<(SmolStr, Value)>);

/// The part of a run's context that belongs to the query alone; the rest is shared and is released.
fn own_values(context: ExecutionContext) -> OwnValues {
    let ExecutionContext { side_effects, parameters, .. } = context;
    (side_effects, parameters)
}

/// How many bytes of values are freed in about the time that another thread takes to wake up.
const LARGE_BYTES: u64 = 256 << 10;

impl Remains {
    /// Returns true if freeing them takes so long that another thread should do it.
    pub fn are_large(&self) -> bool {
        self.are_large
    }
}

/// How far a turn came.
pub(crate) enum Turn {
    /// Some results, each with how many times it occurs.
    Results(Vec<(Value, u64)>),
    /// The turn is over and the query is not.
    Yielded,
    /// The query is over.
    Complete,
}

impl Execution {
    /// Starts a plan.
    pub fn start(planned: Arc<Planned>, settings: &RunSettings<'_>, timed: bool) -> Result<Self> {
        let instance = if timed { planned.measured(settings)? } else { planned.instance(settings)? };
        Ok(Execution { planned, instance: Some(instance), keeps_results: false })
    }

    /// Says that results are kept until the query is over: it is charged for them.
    pub fn keeping_results(self, keeps_results: bool) -> Self {
        Execution { keeps_results, ..self }
    }

    /// Runs for about `quota` messages, or until there are results. A query that is complete lets go of its
    /// transaction; after that there is no other turn.
    pub fn turn(&mut self, quota: usize, materialize: Materialize) -> Result<Turn> {
        let Some(instance) = &mut self.instance else { return Ok(Turn::Complete) };
        let progress = instance.runtime.run(quota);
        match progress.map_err(|error| self.planned.placed(error, &instance.runtime))? {
            Progress::Complete => {
                self.complete();
                Ok(Turn::Complete)
            }
            Progress::Yielded => Ok(Turn::Yielded),
            Progress::Idle => Err(Error::bug("the dataflow has stopped before its end: an end-of-stream is missing")),
            Progress::Results => match instance.runtime.take_results() {
                Some(rows) => {
                    let results = results(rows, &instance.runtime, materialize)?;
                    if self.keeps_results {
                        instance.runtime.control().charge(bytes(&results))?;
                    }
                    Ok(Turn::Results(results))
                }
                None => Ok(Turn::Yielded),
            },
        }
    }

    /// Limits and state of the query, for the thread that reads its results; `None` when the query is complete.
    pub fn control(&self) -> Option<Arc<QueryControl>> {
        self.instance.as_ref().map(|instance| instance.runtime.control_shared())
    }

    /// Ends the query where it is: it lets go of its transaction, and of all else that is not its own, at once. What it
    /// leaves is to be dropped, which may take long.
    pub fn end(mut self) -> Remains {
        let mut instance = self.instance.take();
        let control = instance.as_ref().map(|instance| instance.runtime.control());
        let are_large = control.is_some_and(|control| control.memory() >= LARGE_BYTES || control.has_leftovers());
        let leftovers = control.map(QueryControl::take_leftovers);
        let values = instance.as_mut().and_then(|instance| instance.runtime.take_context()).map(own_values);
        Remains { _instance: instance, _values: values, _leftovers: leftovers, are_large }
    }

    fn complete(&mut self) {
        if let Some(instance) = self.instance.take_if(|instance| instance.descriptions.is_empty()) {
            self.planned.complete(instance);
        }
    }

    fn messages(&self) -> u64 {
        self.instance.as_ref().map_or(0, |instance| instance.runtime.messages())
    }

    /// Runs for about `messages` messages on this thread; true when the query is over.
    pub fn run_inline(
        &mut self,
        messages: usize,
        materialize: Materialize,
        accept: &mut dyn FnMut(Vec<(Value, u64)>) -> Result<()>,
    ) -> Result<bool> {
        let until = self.messages() + messages as u64;
        loop {
            let so_far = self.messages();
            if so_far >= until {
                return Ok(false);
            }
            match self.turn((until - so_far) as usize, materialize)? {
                Turn::Results(batch) => accept(batch)?,
                Turn::Yielded => {}
                Turn::Complete => return Ok(true),
            }
        }
    }

    /// What the operators of a measured query did, as a table.
    pub fn profile(&self) -> String {
        let Some(instance) = &self.instance else { return String::new() };
        let (runtime, control) = (&instance.runtime, instance.runtime.control());
        super::profile::table(
            &instance.descriptions,
            &runtime.stats(),
            runtime.scope_counts(),
            control.elapsed_nanos(),
            control.memory_peak(),
        )
    }
}

/// About how many bytes results take.
pub(crate) fn bytes(results: &[(Value, u64)]) -> u64 {
    let mut sizes = Sizes::default();
    let pointed_to: usize = results.iter().map(|(value, _)| sizes.pointed_to(value)).sum();
    (size_of_val(results) + pointed_to) as u64
}

fn results(rows: Rows, runtime: &NodeRuntime<Rows>, materialize: Materialize) -> Result<Vec<(Value, u64)>> {
    let Rows { objects, bulk, .. } = rows;
    let values = objects.into_values();
    check_results(&values, runtime.control())?;
    let context = runtime.context();
    let context = || context.as_ref().ok_or_else(|| Error::bug("a query has its context until it is complete"));
    let mut meter = Meter::new(runtime.control());
    let values = match materialize {
        Materialize::References => values,
        Materialize::Tokens => detach(values, &*context()?.view, Detail::Reference, &mut meter)?,
        Materialize::Properties => {
            let context = context()?;
            let detail = if context.writer.is_some() { Detail::Current } else { Detail::Properties };
            detach(values, &*context.view, detail, &mut meter)?
        }
    };
    Ok(match bulk {
        None => values.into_iter().map(|v| (v, 1)).collect(),
        Some(bulk) => values.into_iter().zip(bulk).collect(),
    })
}
