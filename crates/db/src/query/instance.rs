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
//! statistics have chosen the order of a plan's steps, newer ones make a new plan. If a plan relies on facts about edges,
//! one more fact makes a new plan (PLAN-13).

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use mangrove_flow::{NodeRuntime, QueryControl};
use mangrove_graph::statistics::{Edition, Statistics};
use mangrove_graph::{Catalog, Error, ErrorKind, GraphView, IndexInfo, LabelSetId, Result, Share, Value};
use mangrove_plan::explain::with_literals;
use mangrove_plan::physical::Requirements;
use mangrove_plan::{CountGuard, CountValues, Figures, KnownConnections, PhysicalPlan};
use mangrove_steps::{DescribedOperator, ExecutionContext, Overlay, OverlayView, Rows, SideEffects, build};
use parking_lot::Mutex;
use smol_str::SmolStr;

use super::last_runs::{HelpedRuns, LastRuns};
use super::settings::{RunSettings, bind_parameters};

/// The maximum number of idle instances of a plan. More can run at a time; an instance that returns to a full list is
/// dropped.
const IDLE_MAX: usize = 8;

/// One run of an instance in this many is timed: reading the clock twice takes a twentieth of the lightest run.
const RUNS_PER_TIMED: u32 = 16;

/// An estimate of the bytes of an operator in a plan.
const PLAN_OPERATOR_BYTES: usize = 512;

/// An estimate of the bytes of an instance without its operators.
const INSTANCE_BYTES: usize = 2048;

/// An estimate of the bytes of an operator in an instance.
const INSTANCE_OPERATOR_BYTES: usize = 1024;

/// An estimate of the bytes that a step of a traversal will take in its plan and one instance of that.
pub(super) const PLANNED_STEP_BYTES: usize = PLAN_OPERATOR_BYTES + INSTANCE_OPERATOR_BYTES;

/// The maximum capacity of the list of parameters that an idle instance keeps.
const KEPT_PARAMETERS_MAX: usize = 64;

/// Orders are chosen by statistics if they have at most this many label sets of vertices. Names for very many would
/// take longer than a light query.
const PLANNED_LABEL_SETS_MAX: usize = 256;

/// Plans rely on facts about edges if these are about at most this many kinds of adjacency lists.
const PLANNED_LIST_KINDS_MAX: usize = 1_024;

/// The identity of an open database.
#[derive(Debug, Default)]
pub(crate) struct DatabaseIdentity {
    identity: Arc<()>,
    /// The newest statistics with the names of their labels, which all plans use.
    figures: Mutex<Option<Figures>>,
    /// The facts about edges with the names of their labels, which all plans use.
    connections: Mutex<Option<KnownConnections>>,
}

impl DatabaseIdentity {
    /// Statistics of the graph with the names of their labels, for the planner; `None` if there are too many names.
    pub fn figures(&self, statistics: Arc<Statistics>, catalog: &Catalog) -> Option<Figures> {
        if statistics.labels().len() > PLANNED_LABEL_SETS_MAX {
            return None;
        }
        let mut known = self.figures.lock();
        if let Some(known) = known.as_ref().filter(|known| Arc::ptr_eq(&known.statistics, &statistics)) {
            return Some(known.clone());
        }
        Some(known.insert(Figures::new(statistics, |set| names_of(set, catalog))).clone())
    }

    /// The facts about the edges of a view with the names of their labels, for the planner; `None` if the view offers
    /// none, or if there are too many names.
    pub fn connections(&self, view: &dyn GraphView) -> Option<KnownConnections> {
        let facts = view.connections()?;
        if facts.lists().len() > PLANNED_LIST_KINDS_MAX {
            return None;
        }
        let mut known = self.connections.lock();
        if let Some(known) = known.as_ref().filter(|known| known.epoch() == facts.epoch) {
            return Some(known.clone());
        }
        Some(known.insert(KnownConnections::new(facts, |set| names_of(set, view.catalog()))).clone())
    }
}

/// The names by which a filter takes a label set: those of its labels, and that of the whole set.
fn names_of(set: LabelSetId, catalog: &Catalog) -> Vec<SmolStr> {
    let labels = catalog.labels_of(set).into_iter().map(|label| catalog.label_name(label));
    labels.chain([catalog.label_set_name(set)]).collect()
}

/// What a plan was made for.
pub(crate) struct MadeFor {
    /// The database whose labels, keys and indexes the plan names. The reference is weak, because that database may
    /// keep the plan. It still prevents another database from getting the same address.
    database: Weak<()>,
    indexes: Vec<IndexInfo>,
    /// The edition of the statistics, or that there were none; `None` if the plan is the same for all statistics.
    statistics: Option<Option<Edition>>,
    /// The epoch of the facts about edges that the plan relies on; `None` if it relies on none.
    connection_epoch: Option<u64>,
    /// How many elements tests take with the values of its runs.
    values: Vec<CountGuard>,
}

impl MadeFor {
    pub fn new(
        database: &DatabaseIdentity,
        indexes: Vec<IndexInfo>,
        statistics: Option<Option<Edition>>,
        connection_epoch: Option<u64>,
        values: Vec<CountGuard>,
    ) -> Self {
        MadeFor { database: Arc::downgrade(&database.identity), indexes, statistics, connection_epoch, values }
    }
}

/// A physical plan with its idle instances, for one database and one set of indexes. Before a run,
/// [`PlannedQuery::is_for`] must be true for its database and indexes.
pub(crate) struct PlannedQuery {
    made_for: MadeFor,
    pub plan: PhysicalPlan,
    /// Whether the last runs took so long that they left the threads of their callers.
    pub last_runs: LastRuns,
    /// When the last runs could use helpers.
    pub last_helped: HelpedRuns,
    requirements: Arc<Requirements>,
    // Boxed, because instances are large and are moved.
    #[expect(clippy::vec_box, reason = "instances are moved, and large")]
    idle: Mutex<Vec<Box<PlanInstance>>>,
    /// The most instances that were idle at one time, at least 1.
    idle_most: AtomicUsize,
    /// The number of operators, with nested ones.
    operators: usize,
    /// The bytes of the plan and its instances, as they are counted in the figures.
    bytes: AtomicUsize,
    figures: Arc<PlanFigures>,
    /// The keys of maps that may be left as columns.
    #[cfg(feature = "arrow")]
    pub result_keys: Option<Arc<[SmolStr]>>,
}

/// The figures of a traversal's plans, added up.
#[derive(Debug, Default)]
pub(crate) struct PlanFigures {
    /// What its plans are expected to take, before there are any.
    expected_bytes: usize,
    /// An estimate of the bytes of its plans and their instances.
    of_plans: AtomicUsize,
    /// How often the plan was found in the cache.
    pub hits: AtomicU64,
    /// The number of complete runs that were timed: one in [`RUNS_PER_TIMED`] of each instance.
    timed_runs: AtomicU64,
    /// The time from their begin to their last result, in nanoseconds.
    timed_nanos: AtomicU64,
}

impl PlanFigures {
    /// The figures of a plan that is to be made, and expected to take so many bytes.
    pub fn expected(bytes: usize) -> Self {
        PlanFigures { expected_bytes: bytes, ..PlanFigures::default() }
    }

    /// An estimate of the bytes of its plans and their instances.
    pub fn bytes(&self) -> usize {
        match self.of_plans.load(Ordering::Relaxed) {
            0 => self.expected_bytes,
            bytes => bytes,
        }
    }

    /// The mean time of a run in microseconds; `None` if none was timed.
    pub fn mean_micros(&self) -> Option<f64> {
        let (runs, nanos) = (self.timed_runs.load(Ordering::Relaxed), self.timed_nanos.load(Ordering::Relaxed));
        (runs > 0).then(|| nanos as f64 / runs as f64 / 1000.0)
    }

    fn add_run(&self, nanos: u64) {
        self.timed_nanos.fetch_add(nanos, Ordering::Relaxed);
        self.timed_runs.fetch_add(1, Ordering::Relaxed);
    }
}

impl PlannedQuery {
    /// A plan, which keeps these figures.
    pub fn new(made_for: MadeFor, plan: PhysicalPlan, figures: Arc<PlanFigures>) -> Self {
        let requirements = Arc::new(plan.requirements.clone());
        let operators = plan.root.operator_count();
        let planned = PlannedQuery {
            made_for,
            #[cfg(feature = "arrow")]
            result_keys: mangrove_steps::result_keys(&plan).map(Arc::from),
            plan,
            last_runs: LastRuns::default(),
            last_helped: HelpedRuns::default(),
            requirements,
            idle: Mutex::default(),
            idle_most: AtomicUsize::new(1),
            operators,
            bytes: AtomicUsize::new(0),
            figures,
        };
        planned.show_bytes(1);
        planned
    }

    /// Returns true if the plan was made with statistics.
    pub fn has_statistics(&self) -> bool {
        self.made_for.statistics.flatten().is_some()
    }

    /// Returns true if the plan was made for this database with these indexes, with statistics of this edition, and with
    /// facts about edges of this epoch, which was read after the snapshot of the run was taken (PLAN-13).
    pub fn is_for(
        &self,
        database: &DatabaseIdentity,
        indexes: &[IndexInfo],
        edition: &dyn Fn() -> Option<Edition>,
        connection_epoch: Option<u64>,
    ) -> bool {
        std::ptr::eq(self.made_for.database.as_ptr(), Arc::as_ptr(&database.identity))
            && self.made_for.indexes == indexes
            && self.made_for.statistics.is_none_or(|made_for| made_for == edition())
            && self.made_for.connection_epoch.is_none_or(|made_for| Some(made_for) == connection_epoch)
    }

    /// Returns true if tests take about as many elements with these literals as with those that the plan was made for.
    /// With others it would have the same results, and might be slow.
    pub fn suits(&self, literals: &[Value], counter: &dyn CountValues) -> bool {
        self.made_for.values.iter().all(|guard| guard.admits(literals, counter))
    }

    /// Shows the bytes of the plan with so many instances.
    fn show_bytes(&self, instances: usize) {
        let instance = INSTANCE_BYTES + self.operators * INSTANCE_OPERATOR_BYTES;
        let bytes = size_of::<Self>() + self.operators * PLAN_OPERATOR_BYTES + instances * instance;
        let before = self.bytes.swap(bytes, Ordering::Relaxed);
        self.figures.of_plans.fetch_add(bytes.wrapping_sub(before), Ordering::Relaxed);
    }

    /// An instance that has begun a run: an idle one, or else a new one.
    pub fn instance(&self, settings: &RunSettings<'_>) -> Result<Box<PlanInstance>> {
        let idle = self.idle.lock().pop();
        let mut instance = match idle {
            Some(mut instance) => {
                instance.runtime.control_mut().renew(
                    settings.limits,
                    settings.clock,
                    settings.cancel,
                    settings.interrupt,
                );
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
        if instance.begun_at_nanos > 0 {
            let now = instance.runtime.control().clock().now_nanos();
            self.figures.add_run(now.saturating_sub(instance.begun_at_nanos));
        }
        // The parts of the run are released before the lock is taken, because that may end the transaction.
        if !instance.recycle() {
            return;
        }
        let mut idle = self.idle.lock();
        if idle.len() < IDLE_MAX {
            idle.push(instance);
        }
        // Each number of instances is reached for the first time once, so runs hardly ever write here.
        if idle.len() > self.idle_most.load(Ordering::Relaxed) {
            self.idle_most.store(idle.len(), Ordering::Relaxed);
            self.show_bytes(idle.len());
        }
    }
}

impl Drop for PlannedQuery {
    fn drop(&mut self) {
        self.figures.of_plans.fetch_sub(*self.bytes.get_mut(), Ordering::Relaxed);
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
    /// The number of runs that it has begun.
    runs: u32,
    /// The time at which the run began, if it is timed; else 0.
    begun_at_nanos: u64,
}

impl PlanInstance {
    fn new(plan: &PhysicalPlan, settings: &RunSettings<'_>, described: bool) -> Result<Self> {
        let built = build(plan, 1, described)?;
        let control = QueryControl::new(settings.limits, settings.clock.clone(), settings.cancel.clone());
        let control = control.drawing_on(settings.budget).asking(settings.interrupt.cloned());
        let runtime = NodeRuntime::new(0, 1, built.topology, built.operators, Arc::new(control));
        Ok(PlanInstance {
            runtime,
            stealable: built.stealable,
            any_order: built.any_order,
            descriptions: built.descriptions,
            parameters: Vec::new(),
            runs: 0,
            begun_at_nanos: 0,
        })
    }

    fn begin(
        &mut self,
        plan: &PhysicalPlan,
        requirements: &Arc<Requirements>,
        settings: &RunSettings<'_>,
    ) -> Result<()> {
        let is_timed = self.runs.is_multiple_of(RUNS_PER_TIMED);
        self.begun_at_nanos = if is_timed { settings.clock.now_nanos().max(1) } else { 0 };
        self.runs = self.runs.wrapping_add(1);
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
    mut view: Arc<dyn GraphView>,
    share: Share,
) -> Result<ExecutionContext> {
    bind_parameters(settings.parameters, settings.ids, &**settings.transaction, &mut room)?;
    let mut overlay = None;
    if !plan.computed_keys.is_empty() {
        let made = Arc::new(Overlay::new(view, &plan.computed_keys)?);
        view = Arc::new(OverlayView::new(made.clone()));
        overlay = Some(made);
    }
    let context = ExecutionContext {
        view,
        writer: (!settings.transaction.is_read_only()).then(|| settings.transaction.clone()),
        parameters: room,
        lifted: settings.lifted.clone(),
        share,
        ids: settings.ids,
        requirements: requirements.clone(),
        side_effects: SideEffects::default(),
        overlay,
        workers_max: settings.workers_max,
        services: settings.services.clone(),
        files: settings.files.clone(),
        results: settings.materialize.detail(settings.transaction.is_read_only()),
        columns: std::sync::atomic::AtomicBool::new(false),
    };
    context.seed(plan)?;
    Ok(context)
}

/// The row that a query starts with.
pub(crate) fn unit(plan: &PhysicalPlan) -> Rows {
    Rows::unit(plan.requirements.path != mangrove_plan::physical::PathRequirement::None, plan.requirements.loops)
}
