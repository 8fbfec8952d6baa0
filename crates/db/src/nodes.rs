//! Runs a query over several virtual nodes in one process, or with simulated helpers. For tests: compiled with the feature `virtual-nodes` only.

use std::sync::Arc;

use mangrove_flow::{NodeRuntime, OpId, QueryControl, ReadCredit, Sharers};
use mangrove_graph::{Error, Result, Share, Value};
use mangrove_plan::PhysicalPlan;
use mangrove_plan::physical::{Op, Pipeline, Stage};
use mangrove_steps::{Meter, Rows, build, detach};
use mangrove_virtual_nodes::{LateReader, Nodes, OwnedView, run_on_threads, run_with_helpers, run_with_late_reads};

use crate::options::Materialize;
use crate::query::instance::{context, unit};
use crate::query::settings::RunSettings;

/// Runs a plan over `count` nodes, each of which reads its own tablets only. The order in which messages arrive is
/// shuffled by `seed`. Returns the results, each with the number of times that it occurs.
pub(crate) fn run(
    plan: &PhysicalPlan,
    settings: &RunSettings<'_>,
    count: u16,
    seed: Option<u64>,
    materialize: Materialize,
) -> Result<Vec<(Value, u64)>> {
    let (runtimes, control) = runtimes(plan, settings, count)?;
    let mut nodes = Nodes::new(runtimes, seed);
    let mut results = Vec::new();
    for rows in nodes.run(unit(plan))? {
        results.extend(values(rows, settings, &control, materialize)?);
    }
    Ok(results)
}

/// The nodes of a run that is about to begin.
fn runtimes(
    plan: &PhysicalPlan,
    settings: &RunSettings<'_>,
    count: u16,
) -> Result<(Vec<NodeRuntime<Rows>>, Arc<QueryControl>)> {
    let control = QueryControl::new(settings.limits, settings.clock.clone(), settings.cancel.clone());
    let control = Arc::new(control.drawing_on(settings.budget));
    let requirements = Arc::new(plan.requirements.clone());
    let runtime = |index| {
        let share = Share { index, of: count };
        let view = Arc::new(OwnedView::new(settings.transaction.clone(), share));
        let built = build(plan, count, false)?;
        let mut runtime = NodeRuntime::new(index, count, built.topology, built.operators, control.clone());
        runtime.begin(context(plan, &requirements, settings, Vec::new(), view, share)?)?;
        Ok(runtime)
    };
    Ok(((0..count).map(runtime).collect::<Result<_>>()?, control))
}

/// How nodes are distributed over threads.
#[derive(Clone, Debug)]
pub struct NodeThreads {
    /// The nodes of each thread. Every node has one thread.
    pub owners: Vec<Vec<usize>>,
    /// True if a thread without work runs nodes of other threads.
    pub steals: bool,
}

/// Runs a plan over nodes on threads. Returns the results, and the number of turns in which a thread ran a node of
/// another one.
pub(crate) fn run_threaded(
    plan: &PhysicalPlan,
    settings: &RunSettings<'_>,
    threads: &NodeThreads,
    materialize: Materialize,
) -> Result<(Vec<(Value, u64)>, u64)> {
    let count: usize = threads.owners.iter().map(Vec::len).sum();
    let count = u16::try_from(count).map_err(|_| Error::invalid("there are too many virtual nodes"))?;
    let (runtimes, control) = runtimes(plan, settings, count)?;
    let outcome = run_on_threads(runtimes, &threads.owners, threads.steals, unit(plan))?;
    let mut results = Vec::new();
    for rows in outcome.results {
        results.extend(values(rows, settings, &control, materialize)?);
    }
    Ok((results, outcome.stolen_turns))
}

/// Runs a plan on one node with helpers, which take turns in an order that the seed chooses. All threads share what
/// they can. Returns the results, each with the number of times that it occurs.
pub(crate) fn run_helped(
    plan: &PhysicalPlan,
    settings: &RunSettings<'_>,
    seed: u64,
    materialize: Materialize,
) -> Result<Vec<(Value, u64)>> {
    run_in_turns(plan, settings, None, seed, materialize)
}

/// As [`run_helped`], over a view whose reads this reader completes.
pub(crate) fn run_late(
    plan: &PhysicalPlan,
    settings: &RunSettings<'_>,
    reader: &LateReader,
    seed: u64,
    materialize: Materialize,
) -> Result<Vec<(Value, u64)>> {
    run_in_turns(plan, settings, Some(reader), seed, materialize)
}

fn run_in_turns(
    plan: &PhysicalPlan,
    settings: &RunSettings<'_>,
    reader: Option<&LateReader>,
    seed: u64,
    materialize: Materialize,
) -> Result<Vec<(Value, u64)>> {
    let control = QueryControl::new(settings.limits, settings.clock.clone(), settings.cancel.clone());
    let control = Arc::new(control.drawing_on(settings.budget));
    let requirements = Arc::new(plan.requirements.clone());
    let built = build(plan, 1, false)?;
    // A late view may hold memory after the run. So do the answers that a `where()` keeps until the query ends, and the
    // sorted lists of a search for an edge.
    let has_scope = (0..built.topology.len()).any(|id| built.topology.is_scope(id as OpId));
    let frees_all = reader.is_none() && !has_scope && !searches(&plan.root);
    let mut home = NodeRuntime::new(0, 1, built.topology, built.operators, control.clone());
    home.begin(context(plan, &requirements, settings, Vec::new(), settings.view(), Share::ALL)?)?;
    // In every fourth run, messages wait in order everywhere.
    if !seed.is_multiple_of(4) {
        home.allow_any_order(built.any_order);
    }
    // In every fifth run, few reads are under way at a time.
    if seed.is_multiple_of(5) {
        home.limit_reads(ReadCredit { reads: 20, bytes: u64::MAX });
    }
    home.start(unit(plan))?;
    let sharers = Sharers { stealable: built.stealable, shares_all: true };
    let replica = || Ok(build(plan, 1, false)?.operators);
    let batches = match reader {
        None => run_with_helpers(&mut home, &sharers, replica, seed)?,
        Some(reader) => run_with_late_reads(&mut home, &sharers, replica, reader, seed)?,
    };
    let mut results = Vec::new();
    for rows in batches {
        results.extend(values(rows, settings, &control, materialize)?);
    }
    home.recycle();
    if frees_all && control.memory() > 0 {
        return Err(Error::bug("memory is charged after the run"));
    }
    Ok(results)
}

/// Returns true if a pipeline, or one nested in it, searches for edges.
fn searches(pipeline: &Pipeline) -> bool {
    pipeline.stages.iter().any(|Stage { operator, .. }| {
        let mut found = matches!(operator, Op::FollowTo { .. } | Op::HasEdgeTo { .. } | Op::Intersect { .. });
        operator.visit_nested(&mut |_, nested| found |= searches(nested));
        found
    })
}

/// The values of rows of results.
fn values(
    rows: Rows,
    settings: &RunSettings<'_>,
    control: &QueryControl,
    materialize: Materialize,
) -> Result<Vec<(Value, u64)>> {
    let mut meter = Meter::new(control);
    let bulks: Vec<u64> = (0..rows.len()).map(|row| rows.bulk(row)).collect();
    let values = rows.objects.into_values();
    let values = match materialize.detail(settings.transaction.is_read_only()) {
        None => values,
        Some(detail) => detach(values, &**settings.transaction, detail, &mut meter)?,
    };
    Ok(values.into_iter().zip(bulks).collect())
}
