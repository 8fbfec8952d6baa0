//! One running query: an instance of a plan over a transaction, on one node.

use std::sync::Arc;
use std::time::Duration;

use mangrove_flow::schedule::TURN_NANOS;
use mangrove_flow::{Leftovers, NodeRuntime, Progress, QueryControl, Wake};
#[cfg(feature = "arrow")]
use mangrove_graph::GraphView;
use mangrove_graph::{Error, Result, TraversalMetrics, Value};
use mangrove_steps::{ExecutionContext, Meter, Rows, SideEffects, Sizes, check_results, detach};
use smol_str::SmolStr;

use super::caller_time::{CallerTime, FIRST_MESSAGES, MESSAGES_PER_READING};
use super::helpers::{FIRST_UNITS, Helping, UNITS_PER_READING};
use super::instance::{PlanInstance, PlannedQuery};
use super::profile::{ResultCounts, RunFigures};
#[cfg(feature = "arrow")]
use super::result_columns::columns;
use super::settings::RunSettings;
use crate::gauges::{QueryFigures, QueryGauges};
use crate::options::Materialize;

/// A running query.
pub(crate) struct Execution {
    planned: Arc<PlannedQuery>,
    /// `None` when the query is complete.
    instance: Option<Box<PlanInstance>>,
    /// True if results are kept until the query is over, so that the query is charged for them.
    keeps_results: bool,
    /// True if results may be columns.
    #[cfg(feature = "arrow")]
    takes_columns: bool,
    /// True if elements that are results themselves stay ids, and map entries stay entries. Elements inside are detached.
    leaves_elements: bool,
    /// How executors may help; `None` if they may not, or do already.
    helping: Option<Helping>,
    /// The time at which the query was first looked at as one that may be heavy; 0 before.
    looked_at_nanos: u64,
    /// Where the figures of the query are shown.
    gauges: Option<Arc<QueryGauges>>,
}

/// The memory of a query that has ended, to be freed: values in operators, in queues and in side effects.
pub(crate) struct QueryRemains {
    _instance: Option<Box<PlanInstance>>,
    _values: Option<OwnValues>,
    _leftovers: Option<Leftovers>,
    are_large: bool,
}

/// The side effects and parameters of a query.
type OwnValues = (SideEffects, Vec<(SmolStr, Value)>);

/// Takes the values out of a context that belong to the query alone. The rest is shared and is released.
fn own_values(context: ExecutionContext) -> OwnValues {
    let ExecutionContext { side_effects, parameters, .. } = context;
    (side_effects, parameters)
}

/// The approximate number of bytes of values that are freed in the time that another thread takes to wake up.
const LARGE_BYTES: u64 = 256 << 10;

impl QueryRemains {
    /// Returns true if another thread should free them, because that takes long.
    pub fn are_large(&self) -> bool {
        self.are_large
    }
}

/// The outcome of a turn.
pub(crate) enum TurnOutcome {
    /// Some results, each with how many times it occurs.
    Results(Vec<(Value, u64)>),
    /// Some results, as columns ([`Execution::take_columns`]).
    #[cfg(feature = "arrow")]
    Columns(mangrove_arrow::Results),
    /// The turn is over, the query is not.
    Yielded,
    /// The query has nothing to do until a helper sends something ([`Execution::sleep`], [`Execution::wait`]).
    Waiting,
    /// The query is over.
    Complete,
}

impl Execution {
    /// Starts a plan.
    pub fn start(planned: Arc<PlannedQuery>, settings: &RunSettings<'_>, timed: bool) -> Result<Self> {
        let instance = if timed { planned.measured(settings)? } else { planned.instance(settings)? };
        Ok(Execution {
            planned,
            instance: Some(instance),
            keeps_results: false,
            #[cfg(feature = "arrow")]
            takes_columns: false,
            leaves_elements: false,
            helping: None,
            looked_at_nanos: 0,
            gauges: None,
        })
    }

    /// Shows the figures of the query after each turn.
    pub fn shown_in(self, gauges: Option<Arc<QueryGauges>>) -> Self {
        if let Some((gauges, control)) = gauges.as_ref().zip(self.control()) {
            control.show_progress_in(gauges.progress.clone());
        }
        Execution { gauges, ..self }
    }

    /// Lets executors help when the query turns out to be heavy.
    pub fn helped_by(self, helping: Helping) -> Self {
        Execution { helping: Some(helping), ..self }
    }

    /// Opens the query for helpers if it is time to. Returns the units of work until the next look, at most `quota`.
    fn look_for_helpers(&mut self, quota: usize) -> Result<usize> {
        let units = self.units();
        if self.helping.is_some() && units >= FIRST_UNITS {
            self.open_if_heavy()?;
        }
        if self.helping.is_none() {
            return Ok(quota);
        }
        let next = FIRST_UNITS.checked_sub(units).filter(|left| *left > 0).unwrap_or(UNITS_PER_READING);
        Ok(quota.min(next as usize))
    }

    /// Opens the query for helpers if it has run for long enough since the first call, or if the last runs of its plan
    /// have.
    #[cold]
    fn open_if_heavy(&mut self) -> Result<()> {
        let Some(instance) = &mut self.instance else { return Ok(()) };
        let now = instance.runtime.control().clock().now_nanos();
        if self.looked_at_nanos == 0 {
            self.looked_at_nanos = now.max(1);
        }
        if now - self.looked_at_nanos < self.planned.last_helped.open_after_nanos() {
            return Ok(());
        }
        if let Some(helping) = &self.helping
            && helping.open(&self.planned, instance)?
        {
            self.helping = None;
        }
        Ok(())
    }

    /// After [`TurnOutcome::Waiting`], registers how to wake the query. Returns false if it must get another turn.
    pub fn sleep(&self, wake: Wake) -> bool {
        self.instance.as_ref().is_some_and(|instance| instance.runtime.sleep(wake))
    }

    /// After [`TurnOutcome::Waiting`], blocks this thread until the query goes on, but not for longer than this.
    pub fn wait(&self, at_most: Duration) {
        if let Some(instance) = &self.instance {
            instance.runtime.wait(at_most);
        }
    }

    /// With `true`, charges the query for its results, because the caller keeps them until the query is over.
    pub fn keeping_results(self, keeps_results: bool) -> Self {
        Execution { keeps_results, ..self }
    }

    /// From here on, elements that are results themselves stay ids, to be read through [`Execution::view`]. Elements inside
    /// collections are detached as the caller of a turn says.
    #[cfg(feature = "arrow")]
    pub fn leave_elements(&mut self) {
        self.leaves_elements = true;
    }

    /// From here on, results may be columns ([`TurnOutcome::Columns`]).
    #[cfg(feature = "arrow")]
    pub fn take_columns(&mut self) {
        self.takes_columns = true;
        if let Some(context) = self.instance.as_ref().and_then(|instance| instance.runtime.context()) {
            context.take_columns();
        }
    }

    /// The graph as the query sees it, until the query is complete.
    #[cfg(feature = "arrow")]
    pub fn view(&self) -> Option<&dyn GraphView> {
        Some(&*self.instance.as_ref()?.runtime.context()?.view)
    }

    /// Does about `quota` units of work, or runs until there are results. A query that is complete releases its
    /// transaction, and must get no further turn.
    pub fn turn(&mut self, quota: usize, materialize: Materialize) -> Result<TurnOutcome> {
        let quota = self.look_for_helpers(quota)?;
        let Some(instance) = &mut self.instance else { return Ok(TurnOutcome::Complete) };
        let progress = instance.runtime.run(quota);
        if let Some(gauges) = &self.gauges {
            show(&instance.runtime, gauges);
        }
        match progress.map_err(|error| self.planned.placed(error, &instance.runtime))? {
            Progress::Complete => {
                self.complete();
                Ok(TurnOutcome::Complete)
            }
            Progress::Yielded => Ok(TurnOutcome::Yielded),
            Progress::Waiting => Ok(TurnOutcome::Waiting),
            Progress::Idle => Err(Error::bug("the dataflow has stopped before its end: an end-of-stream is missing")),
            Progress::Results => match instance.runtime.take_results() {
                Some(rows) => {
                    #[cfg(feature = "arrow")]
                    let rows = match self.takes_columns {
                        false => rows,
                        true => match columns(rows, self.planned.result_keys.as_ref(), &instance.runtime, materialize)?
                        {
                            Ok(columns) => return Ok(TurnOutcome::Columns(columns)),
                            Err(rows) => rows,
                        },
                    };
                    let results = results(rows, &instance.runtime, materialize, self.leaves_elements)?;
                    if self.keeps_results {
                        instance.runtime.control().charge(bytes(&results))?;
                    }
                    Ok(TurnOutcome::Results(results))
                }
                None => Ok(TurnOutcome::Yielded),
            },
        }
    }

    /// The limits and the state of the query, for the thread that reads its results; `None` when the query is complete.
    pub fn control(&self) -> Option<Arc<QueryControl>> {
        self.instance.as_ref().map(|instance| instance.runtime.control_shared())
    }

    /// Ends the query at once. It releases its transaction and everything that is shared. Dropping the returned remains
    /// may take long.
    pub fn end(mut self) -> QueryRemains {
        let mut instance = self.instance.take();
        let control = instance.as_ref().map(|instance| instance.runtime.control());
        let are_large = control.is_some_and(|control| control.memory() >= LARGE_BYTES || control.has_leftovers());
        let leftovers = control.map(QueryControl::take_leftovers);
        let values = instance.as_mut().and_then(|instance| instance.runtime.take_context()).map(own_values);
        QueryRemains { _instance: instance, _values: values, _leftovers: leftovers, are_large }
    }

    fn complete(&mut self) {
        let nanos = match self.looked_at_nanos {
            0 => 0,
            looked_at => self.now_nanos().saturating_sub(looked_at),
        };
        self.planned.last_helped.add(nanos, self.instance.as_ref().and_then(|instance| instance.runtime.was_cut()));
        if let Some(instance) = self.instance.take_if(|instance| instance.descriptions.is_empty()) {
            self.planned.complete(instance);
        }
    }

    fn units(&self) -> u64 {
        self.instance.as_ref().map_or(0, |instance| instance.runtime.units())
    }

    fn messages(&self) -> u64 {
        self.instance.as_ref().map_or(0, |instance| instance.runtime.messages())
    }

    /// Runs for about `messages` messages on this thread, but for no longer than a caller's thread should (DB-8). Hands
    /// results to `accept`. Returns true when the query is over.
    pub fn run_inline(
        &mut self,
        messages: usize,
        time: &mut CallerTime,
        materialize: Materialize,
        accept: &mut dyn FnMut(Vec<(Value, u64)>) -> Result<()>,
    ) -> Result<bool> {
        let begin = self.messages();
        let (first, until) = (begin + FIRST_MESSAGES, begin + messages as u64);
        loop {
            let so_far = self.messages();
            if so_far >= until || so_far >= first && time.is_over(self.now_nanos()) {
                self.planned.last_runs.add(true);
                return Ok(false);
            }
            let look_at = if so_far < first { first } else { so_far + MESSAGES_PER_READING };
            match self.turn((look_at.min(until) - so_far) as usize, materialize)? {
                TurnOutcome::Results(batch) => {
                    time.stop(|| self.now_nanos());
                    accept(batch)?;
                }
                TurnOutcome::Yielded => {}
                #[cfg(feature = "arrow")]
                TurnOutcome::Columns(_) => return Err(no_columns()),
                // An executor waits better.
                TurnOutcome::Waiting => return Ok(false),
                TurnOutcome::Complete => {
                    self.planned.last_runs.add(false);
                    return Ok(true);
                }
            }
        }
    }

    /// Returns true if the query should begin on an executor, because it is expected to be heavy.
    pub fn begins_on_executor(&self) -> bool {
        self.planned.last_runs.were_all()
    }

    /// The query has ended on an executor, after so much CPU time in turns before its last one.
    pub fn ended_after(&self, nanos: u64) {
        if nanos < TURN_NANOS {
            self.planned.last_runs.add(false);
        }
    }

    fn now_nanos(&self) -> u64 {
        self.instance.as_ref().map_or(0, |instance| instance.runtime.control().clock().now_nanos())
    }

    /// The measurements of the operators. `results` are those that the query has given.
    pub fn profile(&self, results: &ResultCounts) -> TraversalMetrics {
        let Some(instance) = &self.instance else { return TraversalMetrics::default() };
        let (runtime, control) = (&instance.runtime, instance.runtime.control());
        let (scope_groups, scope_groups_peak, instances_cancelled) = runtime.scope_counts();
        let helpers = runtime.helper_stats();
        let run = RunFigures {
            nanos: control.elapsed_nanos(),
            scope_groups,
            scope_groups_peak,
            instances_cancelled,
            instances_set_apart: runtime.set_apart_count(),
            memory_peak_bytes: control.memory_peak(),
            parcels: helpers.parcels,
            helper_nanos: helpers.nanos,
        };
        super::profile::metrics(&instance.descriptions, &runtime.stats(), results, &run)
    }
}

/// The error for columns that nothing takes.
#[cfg(feature = "arrow")]
pub(super) fn no_columns() -> Error {
    Error::bug("results are columns only for a reader that takes columns")
}

/// Shows what the home of a query knows of it.
fn show(runtime: &NodeRuntime<Rows>, gauges: &QueryGauges) {
    let (scope_groups, scope_groups_peak, instances_cancelled) = runtime.scope_counts();
    gauges.show(&QueryFigures {
        parcels: runtime.parcels_taken(),
        messages: runtime.messages(),
        memory_bytes: runtime.control().memory(),
        memory_peak_bytes: runtime.control().memory_peak(),
        scope_groups,
        scope_groups_peak,
        instances_cancelled,
        lanes: runtime.lane_count(),
        ..QueryFigures::default()
    });
}

/// Returns the approximate size of results in bytes.
pub(crate) fn bytes(results: &[(Value, u64)]) -> u64 {
    let mut sizes = Sizes::default();
    let pointed_to: usize = results.iter().map(|(value, _)| sizes.pointed_to(value)).sum();
    (size_of_val(results) + pointed_to) as u64
}

/// Returns true if all values are vertices, or all are edges.
fn are_elements(values: &[Value]) -> bool {
    values.iter().all(|value| matches!(value, Value::Vertex(_)))
        || values.iter().all(|value| matches!(value, Value::Edge(_)))
}

fn results(
    rows: Rows,
    runtime: &NodeRuntime<Rows>,
    materialize: Materialize,
    leaves_elements: bool,
) -> Result<Vec<(Value, u64)>> {
    let Rows { objects, bulk, .. } = rows;
    let values = objects.into_values();
    check_results(&values, runtime.control())?;
    let context = runtime.context().ok_or_else(|| Error::bug("a query has its context until it is complete"))?;
    let values = match materialize.detail(context.writer.is_none()) {
        None => values,
        Some(_) if leaves_elements && are_elements(&values) => values,
        Some(detail) if leaves_elements && values.iter().all(|value| matches!(value, Value::Entry(_))) => {
            let parts = values.iter().flat_map(|value| match value {
                Value::Entry(entry) => vec![entry.0.clone(), entry.1.clone()],
                _ => Vec::new(),
            });
            let mut parts =
                detach(parts.collect(), &*context.view, detail, &mut Meter::new(runtime.control()))?.into_iter();
            std::iter::from_fn(|| Some(Value::Entry(Arc::new((parts.next()?, parts.next()?))))).collect()
        }
        Some(detail) => detach(values, &*context.view, detail, &mut Meter::new(runtime.control()))?,
    };
    Ok(match bulk {
        None => values.into_iter().map(|v| (v, 1)).collect(),
        Some(bulk) => values.into_iter().zip(bulk).collect(),
    })
}
