//! Prepared traversals.
//!
//! A [`Prepared`] is parsed and rewritten once. Its physical plan is made for its first run, and again for a run on
//! another database or with other indexes. If the order of its steps depends on statistics, newer ones make a new plan,
//! too. If estimates of a plan depend on the values of its run, other values may get a plan of their own. A plan may rely
//! on facts about edges, which only read-only transactions offer (PLAN-13). Other transactions then run plans of their
//! own. Traversals that differ only in literals share a [`PreparedShape`], if their literals pass its guards (PLAN-3).

use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;

use mangrove_flow::QueryLimits;
use mangrove_flow::schedule::Tenant;
use mangrove_graph::statistics::Statistics;
use mangrove_graph::{Catalog, GraphView, IdRule, IndexId, IndexInfo, IndexRange, KeyId, LabelSetId, Result, Value};
use mangrove_gremlin::{Bytecode, Terminal};
use mangrove_plan::literals::{Guard, Literals};
use mangrove_plan::logical::{Configuration, Traversal};
use mangrove_plan::{
    CountValues, GraphFacts, GraphSample, KnownConnections, PlanOptions, RunValues, TraversalEffects, UsableIndex,
};
use mangrove_steps::ViewSample;
use mangrove_store::Store;
use mangrove_txn::TransactionManager;
use parking_lot::Mutex;
use smol_str::SmolStr;

use super::instance::{DatabaseIdentity, MadeFor, PLANNED_STEP_BYTES, PlanFigures, PlannedQuery};
use crate::options::QueryOptions;

/// The answer that a run of a traversal gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnswerKind {
    /// The results of the traversal.
    Results,
    /// The plan of the traversal: `explain()`.
    Explain,
    /// The measurements of the plan's operators: `profile()`.
    Profile,
}

/// A traversal without its literals, rewritten, and its plan.
pub(super) struct PreparedShape {
    source: SmolStr,
    /// What the rewritten traversal relies on of the literals (PLAN-3).
    guards: Vec<Guard>,
    configuration: Configuration,
    traversal: Traversal,
    rules: Vec<&'static str>,
    options: PlanOptions,
    answer: AnswerKind,
    /// What the steps of the rewritten traversal do besides their results.
    effects: TraversalEffects,
    /// True if the order of its steps or filters may be chosen by the statistics of a graph, or rows are estimated from
    /// them.
    may_use_statistics: bool,
    /// True if a source may have a choice between indexes, of which statistics know the sizes.
    may_choose_indexes: bool,
    /// True if a plan may rely on facts about edges.
    may_use_connections: bool,
    /// The plans for the database and the indexes of the last run, with their instances: one for each way in which
    /// estimates depend on the values of a run.
    planned: Mutex<Vec<Arc<PlannedQuery>>>,
    /// If a plan may rely on facts about edges: the plans for transactions that offer none.
    planned_without_facts: Mutex<Vec<Arc<PlannedQuery>>>,
    /// The bytes of the rewritten traversal.
    own_bytes: usize,
    /// The figures of all its plans together.
    figures: Arc<PlanFigures>,
}

/// A traversal to be prepared.
pub(super) struct ToPrepare<'a> {
    /// The traversal source that it names.
    pub source: &'a str,
    /// The traversal without `explain()`, `profile()` and the literals that were taken out.
    pub bytecode: &'a Bytecode,
    pub answer: AnswerKind,
    /// The literals that were taken out.
    pub literals: &'a [Value],
    pub options: PlanOptions,
}

/// A traversal has at most so many plans for the values of a run, and one more for all other values.
const VALUE_PLANS_MAX: usize = 4;

/// An estimate of the bytes of a step: the step, its names, and the conditions in it.
const STEP_BYTES: usize = 640;

impl PreparedShape {
    /// Compiles and rewrites a traversal.
    pub fn new(given: &ToPrepare<'_>) -> Result<Self> {
        let literals = Literals::new(given.literals);
        let mut options = given.options;
        options.estimate |= given.answer != AnswerKind::Results;
        let compiled = mangrove_plan::compile_with(given.bytecode, &literals)?;
        let (mut traversal, configuration) = (compiled.traversal, compiled.configuration);
        let rules = match options.rewrite {
            true => mangrove_plan::rules::rewrite_with(&mut traversal, &configuration, &literals),
            false => Vec::new(),
        };
        let mut steps = 0;
        traversal.visit(&mut |_| steps += 1);
        let effects = traversal.effects();
        Ok(PreparedShape {
            source: given.source.into(),
            guards: literals.into_guards(),
            effects,
            may_use_statistics: options.estimate
                || mangrove_plan::may_reorder(&traversal, &configuration, options.planner)
                || mangrove_plan::may_order_filters(&traversal),
            may_choose_indexes: mangrove_plan::may_choose_indexes(&traversal),
            may_use_connections: options.use_connections && mangrove_plan::may_rely_on_connections(&traversal),
            configuration,
            traversal,
            rules,
            options,
            answer: given.answer,
            planned: Mutex::default(),
            planned_without_facts: Mutex::default(),
            own_bytes: size_of::<Self>() + steps * STEP_BYTES,
            figures: Arc::new(PlanFigures::expected(steps * PLANNED_STEP_BYTES)),
        })
    }

    /// Returns true if the plan serves these literals (PLAN-3).
    pub fn admits(&self, literals: &[Value]) -> bool {
        self.guards.iter().all(|guard| guard.admits(literals))
    }

    /// An estimate of the bytes that it takes, with its plan and the instances of that. Before it is planned, they are
    /// counted with what they usually take.
    pub fn bytes(&self) -> usize {
        let guards = self.guards.capacity() * size_of::<Guard>();
        self.own_bytes + guards + self.figures.bytes()
    }

    /// What the plan relies on of the literals.
    pub fn guards(&self) -> &[Guard] {
        &self.guards
    }

    /// The figures of all its plans together.
    pub fn figures(&self) -> &PlanFigures {
        &self.figures
    }

    /// The traversal source that it names.
    pub fn source(&self) -> &str {
        &self.source
    }
}

/// A parsed traversal, to be run many times with different parameters. Cloning is cheap.
#[derive(Clone)]
pub struct Prepared {
    shape: Arc<PreparedShape>,
    /// The literals that were taken out of the traversal before it was planned.
    lifted: Arc<[Value]>,
}

/// The steps that the profile is about, if the traversal asks for it: those before `profile()`, or before
/// `profile("p").cap("p")`, which gives the same.
fn steps_profiled(bytecode: &Bytecode) -> Option<usize> {
    let last = bytecode.steps.len().checked_sub(1)?;
    match &bytecode.steps[..] {
        [.., profile] if profile.name == "profile" && profile.arguments.is_empty() => Some(last),
        [.., profile, cap]
            if profile.name == "profile"
                && cap.name == "cap"
                && profile.arguments.len() == 1
                && profile.arguments == cap.arguments =>
        {
            Some(last - 1)
        }
        _ => None,
    }
}

/// The traversal whose results a terminal takes, and the answer that is asked for.
pub(super) fn without_terminal(bytecode: &Bytecode, terminal: Terminal) -> (Cow<'_, Bytecode>, AnswerKind) {
    let mut bytecode = Cow::Borrowed(bytecode);
    let mut answer = AnswerKind::Results;
    if let Some(profiled) = steps_profiled(&bytecode) {
        bytecode.to_mut().steps.truncate(profiled);
        answer = AnswerKind::Profile;
    }
    if terminal == Terminal::Explain {
        answer = AnswerKind::Explain;
    }
    if terminal.has_steps() {
        terminal.apply(bytecode.to_mut());
    }
    (bytecode, answer)
}

impl Prepared {
    /// Prepares bytecode. The terminal step says how results are taken, or asks for the plan.
    pub fn new(bytecode: &Bytecode, terminal: Terminal) -> Result<Self> {
        Self::of_source("g", bytecode, terminal)
    }

    /// As [`Self::new`], planned with these optimizations only. Tests compare the answers of plans with and without an
    /// optimization.
    pub fn with_options(bytecode: &Bytecode, terminal: Terminal, options: PlanOptions) -> Result<Self> {
        Self::planned("g", bytecode, terminal, options)
    }

    pub(crate) fn of_source(source: &str, bytecode: &Bytecode, terminal: Terminal) -> Result<Self> {
        Self::planned(source, bytecode, terminal, PlanOptions::default())
    }

    fn planned(source: &str, bytecode: &Bytecode, terminal: Terminal, options: PlanOptions) -> Result<Self> {
        let (bytecode, answer) = without_terminal(bytecode, terminal);
        let given = ToPrepare { source, bytecode: &bytecode, answer, literals: &[], options };
        Ok(Prepared { shape: Arc::new(PreparedShape::new(&given)?), lifted: Arc::default() })
    }

    /// A traversal of this shape with these literals, which its guards admit.
    pub(super) fn of_shape(shape: Arc<PreparedShape>, lifted: Arc<[Value]>) -> Self {
        debug_assert!(shape.admits(&lifted));
        Prepared { shape, lifted }
    }

    /// Returns true if the traversal writes.
    pub fn is_mutating(&self) -> bool {
        self.shape.answer != AnswerKind::Explain && self.shape.effects.is_mutating
    }

    /// Returns true if the traversal calls services (`call()`).
    pub fn calls_services(&self) -> bool {
        self.shape.effects.calls_services
    }

    /// Returns true if the traversal reads or writes files (`io()`).
    pub(crate) fn uses_files(&self) -> bool {
        self.shape.effects.uses_files
    }

    /// The traversal source it names.
    pub fn source(&self) -> &str {
        &self.shape.source
    }

    /// Returns true if the answer to `profile()` is a map.
    pub(crate) fn has_metrics_as_map(&self) -> bool {
        self.shape.configuration.metrics_as_map
    }

    pub(crate) fn answer(&self) -> AnswerKind {
        self.shape.answer
    }

    pub(super) fn shape(&self) -> &Arc<PreparedShape> {
        &self.shape
    }

    /// The literals that are no part of the plan, by number.
    pub(crate) fn lifted(&self) -> &Arc<[Value]> {
        &self.lifted
    }

    /// The limits of a run: those of its options, and the time limit that the traversal names.
    pub(crate) fn limits(&self, options: &QueryOptions) -> QueryLimits {
        // 0 names no limit.
        let named = self.shape.configuration.timeout_millis.filter(|ms| *ms > 0).map(|ms| ms.saturating_mul(1_000_000));
        let time_nanos = match (options.limits.time_nanos, named) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        QueryLimits { time_nanos, ..options.limits }
    }

    /// The most threads that work on a run: the smaller number of its options and of the traversal; 0 names none.
    pub(crate) fn workers_max(&self, options: &QueryOptions) -> usize {
        match (options.workers_max, self.shape.configuration.workers_max.unwrap_or(0)) {
            (0, named) => named,
            (given, 0) => given,
            (given, named) => given.min(named),
        }
    }

    /// The tenant that the traversal names, with `with("tenant", name)`.
    pub fn tenant(&self) -> Option<&str> {
        self.shape.configuration.tenant.as_deref()
    }

    /// The tenant of a run: that of its options, or else the one that the traversal names.
    pub(crate) fn tenant_of(&self, options: &QueryOptions) -> Tenant {
        match self.tenant() {
            Some(named) if options.tenant == Tenant::default() => Tenant::new(named),
            _ => options.tenant.clone(),
        }
    }

    /// The plan of a run on the graph of a database, as a transaction sees it. If several plans suit, the oldest serves.
    pub(crate) fn plan(&self, graph: &GraphToPlan<'_>) -> Result<Arc<PlannedQuery>> {
        let GraphToPlan { database, statistics, manager, view, .. } = *graph;
        let indexes = view.indexes();
        let shape = &*self.shape;
        // Read after the snapshot of the transaction was taken (PLAN-13).
        let epoch = if shape.may_use_connections { view.connection_epoch() } else { None };
        let planned = match shape.may_use_connections && epoch.is_none() {
            true => &shape.planned_without_facts,
            false => &shape.planned,
        };
        let mut cached = planned.lock();
        let edition = || statistics().map(|statistics| statistics.edition());
        let is_current = |planned: &PlannedQuery| planned.is_for(database, &indexes, &edition, epoch);
        let suits = |planned: &PlannedQuery| is_current(planned) && planned.suits(&self.lifted, graph);
        if let Some(planned) = cached.iter().find(|planned| suits(planned)) {
            return Ok(planned.clone());
        }
        cached.retain(|planned| is_current(planned));
        let may_choose_indexes = shape.may_choose_indexes && indexes.len() > 1;
        let statistics = if shape.may_use_statistics || may_choose_indexes { statistics() } else { None };
        let sizes = if may_choose_indexes { manager.store().index_sizes() } else { Vec::new() };
        let edition = statistics.as_ref().map(|statistics| statistics.edition());
        let counts = Counts { store: manager.store().clone(), statistics: statistics.clone() };
        // The last plan is made without values, and suits all of them.
        let (values, sample) = match cached.len() < VALUE_PLANS_MAX {
            true => (RunValues::new(self.lifted.clone(), Box::new(counts)), self.sample(graph, statistics.is_some())),
            false => (RunValues::default(), GraphSample::default()),
        };
        let facts = GraphFacts {
            indexes: usable_indexes(&indexes, view.catalog()),
            sizes,
            figures: statistics.and_then(|statistics| database.figures(statistics, view.catalog())),
            connections: epoch.and_then(|_| database.connections(view)),
            values,
            sample,
        };
        let epoch = facts.connections.as_ref().map(KnownConnections::epoch);
        let plan = mangrove_plan::lower_with(&shape.traversal, &shape.configuration, &facts, shape.options)?;
        let connection_epoch = epoch.filter(|_| plan.uses_connections);
        let edition = plan.uses_statistics.then_some(edition);
        let made_for = MadeFor::new(database, indexes, edition, connection_epoch, facts.values.guards());
        manager.ask_values(&facts.values.lacking());
        let planned = Arc::new(PlannedQuery::new(made_for, plan, shape.figures.clone()));
        cached.push(planned.clone());
        Ok(planned)
    }

    /// Draws from the newest commits, in a transaction of their own: a choice of a plan is no read of the transaction that
    /// the traversal runs in.
    fn sample(&self, graph: &GraphToPlan<'_>, has_statistics: bool) -> GraphSample {
        let reads_late = graph.view.late().is_some();
        let reader = if has_statistics && !reads_late { graph.manager.begin_read().ok() } else { None };
        reader.map_or_else(GraphSample::default, |reader| {
            GraphSample::new(Rc::new(ViewSample::new(Arc::new(reader), self.lifted.clone(), graph.ids)))
        })
    }

    /// One of its plans as text.
    pub(crate) fn explain(&self, planned: &PlannedQuery) -> String {
        let plan = &planned.plan;
        let rules = [&self.shape.rules[..], &plan.rules].concat();
        let mut text = if rules.is_empty() { String::new() } else { format!("rules: {}\n", rules.join("; ")) };
        text.push_str(&mangrove_plan::explain::explain(plan));
        text
    }
}

/// What is known about a graph while a plan for it is made.
#[derive(Clone, Copy)]
pub(crate) struct GraphToPlan<'a> {
    pub database: &'a DatabaseIdentity,
    /// Returns the statistics of the graph.
    pub statistics: &'a dyn Fn() -> Option<Arc<Statistics>>,
    pub manager: &'a TransactionManager,
    pub view: &'a dyn GraphView,
    /// How values are read as ids.
    pub ids: IdRule,
}

/// What is counted of values: the entries of the indexes of a store, and the values in statistics.
struct Counts {
    store: Arc<Store>,
    statistics: Option<Arc<Statistics>>,
}

impl CountValues for Counts {
    fn entries(&self, index: IndexId, prefix: &[Value], range: &IndexRange) -> Option<u64> {
        self.store.expected_entries(index, prefix, range)
    }

    fn values(&self, labels: &[LabelSetId], key: KeyId, range: &IndexRange) -> Option<u64> {
        counted_values(self.statistics.as_deref()?, labels, key, range)
    }

    fn key(&self, name: &str) -> Option<KeyId> {
        self.store.catalog().key(name)
    }
}

/// A run looks counts up in the newest statistics, for which its plan was made.
impl CountValues for GraphToPlan<'_> {
    fn entries(&self, index: IndexId, prefix: &[Value], range: &IndexRange) -> Option<u64> {
        self.manager.store().expected_entries(index, prefix, range)
    }

    fn values(&self, labels: &[LabelSetId], key: KeyId, range: &IndexRange) -> Option<u64> {
        counted_values(&*(self.statistics)()?, labels, key, range)
    }

    fn key(&self, name: &str) -> Option<KeyId> {
        self.view.catalog().key(name)
    }
}

/// About how many values in a range the vertices of label sets have; `None` if those of a label set are not counted.
fn counted_values(statistics: &Statistics, labels: &[LabelSetId], key: KeyId, range: &IndexRange) -> Option<u64> {
    let count = |label: &LabelSetId| Some(statistics.values_of(*label, key)?.expected(range));
    Some(labels.iter().map(count).sum::<Option<f64>>()?.round() as u64)
}

/// Indexes with the names that plans look for.
fn usable_indexes(indexes: &[IndexInfo], catalog: &Catalog) -> Vec<UsableIndex> {
    let named = |info: &IndexInfo| UsableIndex {
        label: info.label.map(|l| catalog.label_name(l)),
        keys: info.keys.iter().map(|&key| catalog.key_name(key)).collect(),
        info: info.clone(),
    };
    indexes.iter().map(named).collect()
}
