//! Prepared traversals, and the cache of them by their text.
//!
//! A [`Prepared`] is parsed and rewritten once. Its physical plan is made for its first run, and again for a run on
//! another database or with other indexes. If the order of its steps depends on statistics, newer ones make a new plan,
//! too. Traversals that differ only in literals share a plan. No lock is held while a text is parsed.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hashbrown::HashMap;
use mangrove_flow::QueryLimits;
use mangrove_flow::schedule::Tenant;
use mangrove_graph::statistics::Statistics;
use mangrove_graph::{Catalog, DateTime, Error, GraphView, IndexInfo, LabelSetId, Result, Value};
use mangrove_gremlin::{Bytecode, ParseOptions, Statement, Terminal};
use mangrove_plan::logical::{Configuration, Traversal};
use mangrove_plan::{Figures, GraphFacts, PlanOptions, UsableIndex, literals};
use parking_lot::Mutex;
use smol_str::SmolStr;

use super::instance::{DatabaseIdentity, PlannedQuery};
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

struct PreparedShape {
    source: SmolStr,
    configuration: Configuration,
    traversal: Traversal,
    rules: Vec<&'static str>,
    options: PlanOptions,
    answer: AnswerKind,
    calls_services: bool,
    uses_files: bool,
    /// True if the order of its steps is chosen by the statistics of a graph, or rows are estimated from them.
    uses_statistics: bool,
    /// The plan for the database and the indexes of the last run, with its instances.
    planned: Mutex<Option<Arc<PlannedQuery>>>,
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

    fn planned(source: &str, bytecode: &Bytecode, terminal: Terminal, mut options: PlanOptions) -> Result<Self> {
        let mut bytecode = bytecode.clone();
        let mut answer = AnswerKind::Results;
        if let Some(profiled) = steps_profiled(&bytecode) {
            bytecode.steps.truncate(profiled);
            answer = AnswerKind::Profile;
        }
        if terminal == Terminal::Explain {
            answer = AnswerKind::Explain;
        }
        options.estimate |= answer != AnswerKind::Results;
        terminal.apply(&mut bytecode);
        let compiled = mangrove_plan::compile(&bytecode)?;
        let (mut traversal, configuration) = (compiled.traversal, compiled.configuration);
        let rules = match options.rewrite {
            true => mangrove_plan::rules::rewrite(&mut traversal, &configuration),
            false => Vec::new(),
        };
        let source = source.into();
        let (calls_services, uses_files) = (traversal.calls_services(), traversal.uses_files());
        let uses_statistics =
            options.estimate || mangrove_plan::may_reorder(&traversal, &configuration, options.planner);
        let planned = Mutex::new(None);
        let shape = PreparedShape {
            source,
            configuration,
            traversal,
            rules,
            options,
            answer,
            calls_services,
            uses_files,
            uses_statistics,
            planned,
        };
        Ok(Prepared { shape: Arc::new(shape), lifted: Arc::default() })
    }

    /// Returns true if the traversal writes.
    pub fn is_mutating(&self) -> bool {
        self.shape.answer != AnswerKind::Explain && self.shape.traversal.is_mutating()
    }

    /// Returns true if the traversal calls services (`call()`).
    pub fn calls_services(&self) -> bool {
        self.shape.calls_services
    }

    /// Returns true if the traversal reads or writes files (`io()`).
    pub(crate) fn uses_files(&self) -> bool {
        self.shape.uses_files
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

    /// The plan for the graph of a database as a transaction sees it. `statistics` returns those of the graph.
    pub(crate) fn plan(
        &self,
        database: &DatabaseIdentity,
        statistics: &dyn Fn() -> Option<Arc<Statistics>>,
        view: &dyn GraphView,
    ) -> Result<Arc<PlannedQuery>> {
        let indexes = view.indexes();
        let statistics = if self.shape.uses_statistics { statistics() } else { None };
        let as_of = statistics.as_ref().map(|statistics| statistics.as_of);
        let mut cached = self.shape.planned.lock();
        if let Some(planned) = &*cached
            && planned.is_for(database, &indexes, as_of)
        {
            return Ok(planned.clone());
        }
        let facts = facts(&indexes, statistics, view.catalog());
        let plan =
            mangrove_plan::lower_with(&self.shape.traversal, &self.shape.configuration, &facts, self.shape.options)?;
        Ok(cached.insert(Arc::new(PlannedQuery::new(database, indexes, as_of, plan))).clone())
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

/// Orders are chosen by statistics if they have at most this many label sets of vertices.
const PLANNED_LABEL_SETS_MAX: usize = 256;

/// The facts of a graph that the planner uses.
fn facts(indexes: &[IndexInfo], statistics: Option<Arc<Statistics>>, catalog: &Catalog) -> GraphFacts {
    let named = |info: &IndexInfo| UsableIndex {
        label: info.label.map(|l| catalog.label_name(l)),
        keys: info.keys.iter().map(|&key| catalog.key_name(key)).collect(),
        info: info.clone(),
    };
    let labels_of = |set: LabelSetId| {
        // A filter takes a set by one of its labels, or by the name of the whole set.
        let labels = catalog.labels_of(set).into_iter().map(|label| catalog.label_name(label));
        labels.chain([catalog.label_set_name(set)]).collect()
    };
    // Names for very many label sets would take longer than a light query.
    let is_small = |statistics: &Arc<Statistics>| statistics.labels().len() <= PLANNED_LABEL_SETS_MAX;
    let figures = statistics.filter(is_small).map(|statistics| Figures::new(statistics, labels_of));
    GraphFacts { indexes: indexes.iter().map(named).collect(), figures }
}

/// The maximum number of scripts in the cache. The oldest entry is evicted first.
const PLANS_MAX: usize = 1024;

/// Longer scripts, in bytes, are not cached: they are data, not queries.
const CACHED_SCRIPT_BYTES_MAX: usize = 16 << 10;

/// Prepared scripts by their text.
#[derive(Default)]
pub(crate) struct PlanCache {
    plans: Mutex<CachedPlans>,
    hits: AtomicU64,
    misses: AtomicU64,
}

/// The size of the plan cache, and how well it is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlanCacheReport {
    /// The number of plans in the cache.
    pub plans: u64,
    /// The number of look-ups that found a plan.
    pub hits: u64,
    /// The number of look-ups that had to parse a text or compile bytecode.
    pub misses: u64,
}

#[derive(Default)]
struct CachedPlans {
    by_text: HashMap<Arc<str>, (Option<Bytecode>, Prepared), foldhash::fast::RandomState>,
    in_order: VecDeque<Arc<str>>,
}

impl PlanCache {
    /// Its size, hits and misses.
    pub fn report(&self) -> PlanCacheReport {
        PlanCacheReport {
            plans: self.plans.lock().by_text.len() as u64,
            hits: self.hits.load(Ordering::Relaxed),
            misses: self.misses.load(Ordering::Relaxed),
        }
    }

    /// The prepared script, from the cache if it is there.
    pub fn script(&self, script: &str) -> Result<Prepared> {
        if let Some((None, prepared)) = self.plans.lock().by_text.get(script) {
            self.hits.fetch_add(1, Ordering::Relaxed);
            return Ok(prepared.clone());
        }
        self.misses.fetch_add(1, Ordering::Relaxed);
        let (prepared, volatile) = prepare_script(script)?;
        if !volatile {
            self.keep(script, None, &prepared);
        }
        Ok(prepared)
    }

    /// The prepared traversal, from the cache if it is there. Traversals that differ only in literals share a plan,
    /// unless the plan depends on the literals. Each keeps its own literals. A traversal with `profile()` is planned
    /// with its literals, because the profile shows them.
    pub fn bytecode(&self, bytecode: &Bytecode) -> Result<Prepared> {
        let lifted = if steps_profiled(bytecode).is_some() { None } else { literals::lift(bytecode) };
        let Some(lifted) = lifted else { return self.exactly(bytecode) };
        match self.exactly(&lifted.bytecode) {
            Ok(Prepared { shape, .. }) => Ok(Prepared { shape, lifted: lifted.values.into() }),
            // Preparing it with its literals gives an error in terms of the traversal as it was written.
            Err(_) => Prepared::new(bytecode, Terminal::None),
        }
    }

    /// The prepared traversal with exactly these literals. It is looked up by its script. A few values of different
    /// types have the same script, so the bytecode is compared, too.
    fn exactly(&self, bytecode: &Bytecode) -> Result<Prepared> {
        let script = bytecode.to_string();
        if let Some((Some(known), prepared)) = self.plans.lock().by_text.get(script.as_str())
            && known == bytecode
        {
            self.hits.fetch_add(1, Ordering::Relaxed);
            return Ok(prepared.clone());
        }
        self.misses.fetch_add(1, Ordering::Relaxed);
        let prepared = Prepared::new(bytecode, Terminal::None)?;
        self.keep(&script, Some(bytecode.clone()), &prepared);
        Ok(prepared)
    }

    fn keep(&self, script: &str, bytecode: Option<Bytecode>, prepared: &Prepared) {
        if script.len() > CACHED_SCRIPT_BYTES_MAX {
            return;
        }
        let text: Arc<str> = script.into();
        let mut plans = self.plans.lock();
        if plans.by_text.insert(text.clone(), (bytecode, prepared.clone())).is_none() {
            plans.in_order.push_back(text);
        }
        while plans.by_text.len() > PLANS_MAX {
            let Some(oldest) = plans.in_order.pop_front() else { break };
            plans.by_text.remove(&oldest);
        }
    }
}

/// Prepares one statement. Returns true with it if its text has another meaning each time (`datetime()`, `UUID()`), so
/// that it must not be cached.
fn prepare_script(script: &str) -> Result<(Prepared, bool)> {
    let (source, bytecode, terminal, volatile) = parse_traversal(script)?;
    Ok((Prepared::of_source(&source, &bytecode, terminal)?, volatile))
}

/// Prepares one statement for the answer to `explain()`.
pub(crate) fn prepare_to_explain(script: &str) -> Result<Prepared> {
    let (source, mut bytecode, terminal, _) = parse_traversal(script)?;
    terminal.apply(&mut bytecode);
    Prepared::of_source(&source, &bytecode, Terminal::Explain)
}

/// The source, the steps and the terminal step of a traversal, and whether its text has another meaning each time.
fn parse_traversal(script: &str) -> Result<(SmolStr, Bytecode, Terminal, bool)> {
    match mangrove_gremlin::parse_one(script, &parse_options())? {
        Statement::Traversal { source, bytecode, terminal, volatile } => Ok((source, bytecode, terminal, volatile)),
        Statement::Transaction { .. } => Err(Error::unsupported(
            "g.tx() belongs to a session; in a program, begin a transaction with Database::begin",
        )),
        Statement::Value(_) | Statement::Variable(_) => {
            Err(Error::unsupported("a value alone is no traversal; write g.inject(…) to have it as a result"))
        }
    }
}

/// Parse options with the current time for `datetime()` and a source of random UUIDs for `UUID()`.
pub(crate) fn parse_options() -> ParseOptions {
    ParseOptions { now: now(), fresh_uuid: Some(uuid::Uuid::new_v4()), ..ParseOptions::default() }
}

#[expect(clippy::disallowed_methods, reason = "datetime() without an argument asks for the wall clock")]
fn now() -> Option<DateTime> {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).ok()?;
    Some(DateTime { seconds: i64::try_from(since.as_secs()).ok()?, nanos: since.subsec_nanos(), offset_seconds: 0 })
}
