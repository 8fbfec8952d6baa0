//! Plans and their instances.
//!
//! A run of a plan needs an *instance* of it: its operators, numbered and connected, with the queues between them.
//! Making an instance costs more than a light query, so instances are recycled: a complete query leaves its instance to
//! the next one. An instance keeps only parts that are costly to make. `flow::runtime` lists them, and every operator
//! reports whether it is in its first state again. The transaction, parameters, side effects, limits and charges belong
//! to one run. If a run fails or is cancelled, or if its results are not read to their end, rows may be left in
//! operators, and the instance is dropped.
//!
//! An instance is valid for one database and one set of indexes, because operators keep numbers of labels and keys. If
//! statistics have chosen the order of a plan's steps, newer ones make a new plan.

use std::sync::{Arc, Weak};

use mangrove_flow::{NodeRuntime, QueryControl};
use mangrove_graph::{Error, ErrorKind, GraphView, IndexInfo, Result, Share, Value};
use mangrove_plan::PhysicalPlan;
use mangrove_plan::explain::with_literals;
use mangrove_plan::physical::Requirements;
use mangrove_steps::{DescribedOperator, ExecutionContext, Rows, SideEffects, build};
use parking_lot::Mutex;
use smol_str::SmolStr;

use super::last_runs::{HelpedRuns, LastRuns};
use super::settings::{RunSettings, bind_parameters};

/// The maximum number of idle instances of a plan. More can run at a time; an instance that returns to a full list is
/// dropped.
const IDLE_MAX: usize = 8;

/// The maximum capacity of the list of parameters that an idle instance keeps.
const KEPT_PARAMETERS_MAX: usize = 64;

/// The identity of an open database.
#[derive(Debug, Default)]
pub(crate) struct DatabaseIdentity(Arc<()>);

/// A physical plan with its idle instances, for one database and one set of indexes. Before a run,
/// [`PlannedQuery::is_for`] must be true for its database and indexes.
pub(crate) struct PlannedQuery {
    /// The database whose labels, keys and indexes the plan names. The reference is weak, because that database may
    /// keep the plan. It still prevents another database from getting the same address.
    database: Weak<()>,
    indexes: Vec<IndexInfo>,
    /// The snapshot of the statistics that the plan depends on.
    statistics_as_of: Option<u64>,
    pub plan: PhysicalPlan,
    /// Whether the last runs took so long that they left the threads of their callers.
    pub last_runs: LastRuns,
    /// When the last runs could use helpers.
    pub last_helped: HelpedRuns,
    requirements: Arc<Requirements>,
    // Boxed, because instances are large and are moved.
    #[expect(clippy::vec_box, reason = "instances are moved, and large")]
    idle: Mutex<Vec<Box<PlanInstance>>>,
}

impl PlannedQuery {
    pub fn new(
        database: &DatabaseIdentity,
        indexes: Vec<IndexInfo>,
        statistics_as_of: Option<u64>,
        plan: PhysicalPlan,
    ) -> Self {
        let requirements = Arc::new(plan.requirements.clone());
        PlannedQuery {
            database: Arc::downgrade(&database.0),
            indexes,
            statistics_as_of,
            plan,
            last_runs: LastRuns::default(),
            last_helped: HelpedRuns::default(),
            requirements,
            idle: Mutex::default(),
        }
    }

    /// Returns true if the plan was made with statistics.
    pub fn has_statistics(&self) -> bool {
        self.statistics_as_of.is_some()
    }

    /// Returns true if the plan was made for this database with these indexes, and with statistics of this snapshot.
    pub fn is_for(&self, database: &DatabaseIdentity, indexes: &[IndexInfo], statistics_as_of: Option<u64>) -> bool {
        std::ptr::eq(self.database.as_ptr(), Arc::as_ptr(&database.0))
            && self.indexes == indexes
            && self.statistics_as_of == statistics_as_of
    }

    /// An instance that has begun a run: an idle one, or else a new one.
    pub fn instance(&self, settings: &RunSettings<'_>) -> Result<Box<PlanInstance>> {
        let idle = self.idle.lock().pop();
        let mut instance = match idle {
            Some(mut instance) => {
                instance.runtime.control_mut().renew(settings.limits, settings.clock, settings.cancel);
                instance
            }
            None => Box::new(PlanInstance::new(&self.plan, settings, false)?),
        };
        instance.begin(&self.plan, &self.requirements, settings)?;
        Ok(instance)
    }

    /// A new instance that has begun a run, measures its operators, and has their descriptions.
    pub fn measured(&self, settings: &RunSettings<'_>) -> Result<Box<PlanInstance>> {
        let mut instance = Box::new(PlanInstance::new(&self.plan, settings, true)?);
        instance.runtime.measure_time();
        instance.begin(&self.plan, &self.requirements, settings)?;
        Ok(instance)
    }

    /// Adds a step to an error of a run: an evaluation error that names no step gets the name of the step that caused
    /// it, as in `explain()`.
    pub fn placed(&self, error: Error, runtime: &NodeRuntime<Rows>) -> Error {
        if error.kind() != ErrorKind::Evaluation || error.message().contains("()") {
            return error;
        }
        // Built again for the descriptions, which only measured instances have.
        let built = build(&self.plan, 1, true).ok();
        let descriptions = built.map(|built| built.descriptions).unwrap_or_default();
        match runtime.failed_operator().and_then(|id| descriptions.get(usize::from(id))) {
            // The message of `fail()` is a text of the query and stays as it is.
            Some(operator) if operator.text == "fail" => error,
            Some(operator) => error.within(with_literals(&operator.text, &lifted(runtime))),
            None => error,
        }
    }

    /// Takes back the instance of a query that is complete, and keeps it for another run if it can be used again.
    pub fn complete(&self, mut instance: Box<PlanInstance>) {
        // The parts of the run are released before the lock is taken, because that may end the transaction.
        if !instance.recycle() {
            return;
        }
        let mut idle = self.idle.lock();
        if idle.len() < IDLE_MAX {
            idle.push(instance);
        }
    }
}

/// The literals of a run that were lifted out of its plan.
fn lifted(runtime: &NodeRuntime<Rows>) -> Arc<[Value]> {
    runtime.context().map(|context| context.lifted.clone()).unwrap_or_default()
}

/// An instance of a plan on one node. It is used by one run at a time.
pub(crate) struct PlanInstance {
    pub runtime: NodeRuntime<Rows>,
    /// For each operator, true if any thread may work off its messages.
    pub stealable: Arc<[bool]>,
    /// For each operator, true if the order does not matter in which it works off messages.
    any_order: Arc<[bool]>,
    /// A description of each operator, if the instance is measured.
    pub descriptions: Vec<DescribedOperator>,
    /// An empty list, whose capacity the parameters of the next run use.
    parameters: Vec<(SmolStr, Value)>,
}

impl PlanInstance {
    fn new(plan: &PhysicalPlan, settings: &RunSettings<'_>, described: bool) -> Result<Self> {
        let built = build(plan, 1, described)?;
        let control = QueryControl::new(settings.limits, settings.clock.clone(), settings.cancel.clone());
        let control = control.drawing_on(settings.budget);
        let runtime = NodeRuntime::new(0, 1, built.topology, built.operators, Arc::new(control));
        Ok(PlanInstance {
            runtime,
            stealable: built.stealable,
            any_order: built.any_order,
            descriptions: built.descriptions,
            parameters: Vec::new(),
        })
    }

    fn begin(
        &mut self,
        plan: &PhysicalPlan,
        requirements: &Arc<Requirements>,
        settings: &RunSettings<'_>,
    ) -> Result<()> {
        let room = std::mem::take(&mut self.parameters);
        let context = context(plan, requirements, settings, room, settings.view(), Share::ALL)?;
        self.runtime.begin(context)?;
        if self.runtime.reads_late() {
            self.runtime.allow_any_order(self.any_order.clone());
        }
        self.runtime.start(unit(plan))
    }

    /// Releases the run. Returns false if the instance cannot be used again.
    fn recycle(&mut self) -> bool {
        let (context, is_clean) = self.runtime.recycle();
        self.runtime.control().give_back();
        let Some(ExecutionContext { mut parameters, .. }) = context else { return false };
        parameters.clear();
        if parameters.capacity() <= KEPT_PARAMETERS_MAX {
            self.parameters = parameters;
        }
        is_clean && self.descriptions.is_empty()
    }
}

/// The execution context of a plan's operators on one node. `room` becomes its list of parameters.
pub(crate) fn context(
    plan: &PhysicalPlan,
    requirements: &Arc<Requirements>,
    settings: &RunSettings<'_>,
    mut room: Vec<(SmolStr, Value)>,
    view: Arc<dyn GraphView>,
    share: Share,
) -> Result<ExecutionContext> {
    bind_parameters(settings.parameters, settings.ids, &**settings.transaction, &mut room)?;
    let context = ExecutionContext {
        view,
        writer: (!settings.transaction.is_read_only()).then(|| settings.transaction.clone()),
        parameters: room,
        lifted: settings.lifted.clone(),
        share,
        ids: settings.ids,
        requirements: requirements.clone(),
        side_effects: SideEffects::default(),
        services: settings.services.clone(),
        files: settings.files.clone(),
        results: settings.materialize.detail(settings.transaction.is_read_only()),
    };
    context.seed(plan)?;
    Ok(context)
}

/// The row that a query starts with.
pub(crate) fn unit(plan: &PhysicalPlan) -> Rows {
    Rows::unit(plan.requirements.path != mangrove_plan::physical::PathRequirement::None, plan.requirements.loops)
}
