//! One running query: an instance of a plan over a transaction, on one node.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use mangrove_flow::clock::Clock;
use mangrove_flow::{Leftovers, NodeRuntime, Progress, QueryControl, QueryLimits};
use mangrove_graph::{Error, GraphView, IdRule, MemoryBudget, Result, Value};
use mangrove_gremlin::Parameters;
use mangrove_steps::Meter;
use mangrove_steps::Sizes;
use mangrove_steps::{Detail, detach};
use mangrove_steps::{ExecutionContext, Rows, SideEffects, check_results};
use mangrove_steps::{Files, Services};
use smol_str::SmolStr;

use crate::instance::{Instance, Planned};
use crate::stream::Materialize;

/// What a query is run with.
pub(crate) struct RunSettings<'a> {
    pub transaction: &'a Arc<mangrove_txn::Transaction>,
    pub parameters: &'a Parameters,
    /// The literals that were taken out of the traversal before it was planned.
    pub lifted: &'a Arc<[Value]>,
    pub ids: IdRule,
    pub limits: QueryLimits,
    pub budget: &'a MemoryBudget,
    pub clock: &'a Arc<dyn Clock>,
    pub cancel: &'a Arc<AtomicBool>,
    /// What `call()` reaches, where the query calls anything.
    pub services: Option<Arc<dyn Services>>,
    /// What `io()` reaches, where the query reads or writes files.
    pub files: Option<Arc<dyn Files>>,
}

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

/// Parameters as operators look them up. Elements among them become references to the elements.
pub(crate) fn bind_parameters(
    parameters: &Parameters,
    ids: IdRule,
    view: &dyn GraphView,
    into: &mut Vec<(smol_str::SmolStr, Value)>,
) -> Result<()> {
    parameters.iter().try_for_each(|(name, value)| {
        into.push((name.clone(), attach(value, ids, view)?));
        Ok(())
    })
}

/// A detached vertex or edge, also one in a list or a set, becomes the element of its id; what is no longer there matches
/// nothing. A property stays as it is: its value can be compared with, and a variable that nobody uses may hold one.
fn attach(value: &Value, ids: IdRule, view: &dyn GraphView) -> Result<Value> {
    use mangrove_graph::Detached;
    let is_detached = |item: &Value| matches!(item, Value::Detached(_));
    let detached = match value {
        Value::Detached(detached) => detached,
        Value::List(items) if items.iter().any(is_detached) => {
            return Ok(Value::list(items.iter().map(|item| attach(item, ids, view)).collect::<Result<_>>()?));
        }
        Value::Set(items) if items.iter().any(is_detached) => {
            let items = items.iter().map(|item| attach(item, ids, view)).collect::<Result<Vec<_>>>()?;
            return Ok(Value::list(items));
        }
        _ => return Ok(value.clone()),
    };
    let user_id =
        |id: &Value| ids.read(id).ok_or_else(|| Error::invalid(format!("a {} is no id of an element", id.type_name())));
    match &**detached {
        Detached::Vertex { id, .. } => {
            let mut found = Vec::new();
            view.find_vertices(&[user_id(id)?], &mut found)?;
            Ok(found.pop().flatten().map_or(Value::Null, Value::Vertex))
        }
        Detached::Edge { id, .. } => {
            let mut found = Vec::new();
            view.find_edges(&[user_id(id)?], &mut found)?;
            Ok(found.pop().flatten().map_or(Value::Null, Value::Edge))
        }
        Detached::VertexProperty(_) | Detached::Property { .. } => Ok(value.clone()),
    }
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
        crate::profile::table(
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
