//! One running query: a plan made into operators over a transaction, on one node.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use mangrove_flow::clock::Clock;
use mangrove_flow::{Limits, NodeRuntime, Progress, QueryContext};
use mangrove_graph::view::Share;
use mangrove_graph::{Error, GraphView, Result, Value};
use mangrove_gremlin::Parameters;
use mangrove_plan::PhysicalPlan;
use mangrove_plan::physical::PathRequirement;
use mangrove_steps::detach::detach;
use mangrove_steps::environment::{Services, Surroundings};
use mangrove_steps::{Environment, Rows, SideEffects, build};

use crate::stream::Materialize;

/// What a query is run with.
pub(crate) struct Setting {
    pub transaction: Arc<mangrove_txn::Transaction>,
    pub parameters: Arc<Vec<(smol_str::SmolStr, Value)>>,
    pub limits: Limits,
    pub clock: Arc<dyn Clock>,
    pub cancel: Arc<AtomicBool>,
    /// What `call()` reaches, where the query calls anything.
    pub services: Option<Arc<dyn Services>>,
}

/// A running query.
pub(crate) struct Execution {
    runtime: NodeRuntime<Rows>,
    descriptions: Vec<(usize, String)>,
    context: Arc<QueryContext>,
    transaction: Arc<mangrove_txn::Transaction>,
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
    view: &dyn GraphView,
) -> Result<Arc<Vec<(smol_str::SmolStr, Value)>>> {
    let bound = parameters.iter().map(|(name, value)| Ok((name.clone(), attach(value, view)?)));
    Ok(Arc::new(bound.collect::<Result<_>>()?))
}

/// A detached vertex or edge becomes the element of its id; what is no longer there matches nothing.
fn attach(value: &Value, view: &dyn GraphView) -> Result<Value> {
    use mangrove_graph::{Detached, UserId};
    let Value::Detached(detached) = value else { return Ok(value.clone()) };
    let user_id = |id: &Value| {
        UserId::from_value(id).ok_or_else(|| Error::invalid(format!("a {} is no id of an element", id.type_name())))
    };
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
        Detached::VertexProperty(_) | Detached::Property { .. } => {
            Err(Error::invalid("a property cannot be a parameter; give its element and key"))
        }
    }
}

/// The surroundings of a plan's operators on one node.
pub(crate) fn environment(
    plan: &PhysicalPlan,
    setting: &Setting,
    view: Arc<dyn GraphView>,
    share: Share,
) -> Environment {
    Environment::new(Surroundings {
        view,
        writer: (!setting.transaction.is_read_only()).then(|| setting.transaction.clone()),
        parameters: setting.parameters.clone(),
        share,
        requirements: Arc::new(plan.requirements.clone()),
        side_effects: Arc::new(SideEffects::default()),
        services: setting.services.clone(),
    })
}

/// The row a query starts with.
pub(crate) fn unit(plan: &PhysicalPlan) -> Rows {
    Rows::unit(plan.requirements.path != PathRequirement::None, plan.requirements.loops)
}

impl Execution {
    /// Makes a plan's operators and starts it.
    pub fn start(plan: &PhysicalPlan, setting: &Setting, timed: bool) -> Result<Self> {
        let environment = environment(plan, setting, setting.transaction.clone(), Share::ALL);
        let built = build(plan, &environment, 1, timed)?;
        let context = Arc::new(QueryContext::new(setting.limits, setting.clock.clone(), setting.cancel.clone()));
        let mut runtime = NodeRuntime::new(0, 1, built.topology, built.operators, context.clone());
        if timed {
            runtime.measure_time();
        }
        runtime.start(unit(plan))?;
        Ok(Execution { runtime, descriptions: built.descriptions, context, transaction: setting.transaction.clone() })
    }

    /// Runs for about `quota` messages, or until there are results.
    pub fn turn(&mut self, quota: usize, materialize: Materialize) -> Result<Turn> {
        match self.runtime.run(quota)? {
            Progress::Complete => Ok(Turn::Complete),
            Progress::Yielded => Ok(Turn::Yielded),
            Progress::Idle => Err(Error::bug("the dataflow has stopped before its end: an end-of-stream is missing")),
            Progress::Results => match self.runtime.take_results() {
                Some(rows) => Ok(Turn::Results(self.results(rows, materialize)?)),
                None => Ok(Turn::Yielded),
            },
        }
    }

    /// Runs for about `messages` messages on this thread; true when the query is over.
    pub fn run_inline(
        &mut self,
        messages: usize,
        materialize: Materialize,
        accept: &mut dyn FnMut(Vec<(Value, u64)>) -> Result<()>,
    ) -> Result<bool> {
        let until = self.runtime.messages() + messages as u64;
        while self.runtime.messages() < until {
            match self.turn((until - self.runtime.messages()) as usize, materialize)? {
                Turn::Results(batch) => accept(batch)?,
                Turn::Yielded => {}
                Turn::Complete => return Ok(true),
            }
        }
        Ok(false)
    }

    fn results(&self, rows: Rows, materialize: Materialize) -> Result<Vec<(Value, u64)>> {
        let Rows { objects, bulk, .. } = rows;
        let values = objects.into_values();
        let values = match materialize {
            Materialize::References => values,
            Materialize::Tokens => detach(values, &*self.transaction, false)?,
            Materialize::Properties => detach(values, &*self.transaction, true)?,
        };
        Ok(match bulk {
            None => values.into_iter().map(|v| (v, 1)).collect(),
            Some(bulk) => values.into_iter().zip(bulk).collect(),
        })
    }

    /// What the operators did, as a table.
    pub fn profile(&self) -> String {
        crate::profile::table(
            &self.descriptions,
            &self.runtime.stats(),
            self.runtime.scope_counts(),
            self.context.elapsed_nanos(),
            self.context.memory_peak(),
        )
    }
}
