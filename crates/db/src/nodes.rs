//! Runs a query over several virtual nodes in one process. For tests: compiled with the feature `virtual-nodes` only.

use std::sync::Arc;

use mangrove_flow::{NodeRuntime, QueryControl};
use mangrove_graph::{Result, Share, Value};
use mangrove_plan::PhysicalPlan;
use mangrove_steps::{Detail, Meter, build, detach};
use mangrove_virtual_nodes::{Nodes, OwnedView};

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
    let control = QueryControl::new(settings.limits, settings.clock.clone(), settings.cancel.clone());
    let control = Arc::new(control.drawing_on(settings.budget));
    let requirements = Arc::new(plan.requirements.clone());
    let runtimes = (0..count).map(|index| {
        let share = Share { index, of: count };
        let view = Arc::new(OwnedView::new(settings.transaction.clone(), share));
        let built = build(plan, count, false)?;
        let mut runtime = NodeRuntime::new(index, count, built.topology, built.operators, control.clone());
        runtime.begin(context(plan, &requirements, settings, Vec::new(), view, share)?)?;
        Ok(runtime)
    });
    let mut nodes = Nodes::new(runtimes.collect::<Result<_>>()?, seed);
    let mut results = Vec::new();
    for rows in nodes.run(unit(plan))? {
        let mut meter = Meter::new(&control);
        let bulks: Vec<u64> = (0..rows.len()).map(|row| rows.bulk(row)).collect();
        let values = match materialize {
            Materialize::References => rows.objects.into_values(),
            Materialize::Tokens => {
                detach(rows.objects.into_values(), &**settings.transaction, Detail::Reference, &mut meter)?
            }
            Materialize::Properties => {
                detach(rows.objects.into_values(), &**settings.transaction, Detail::Properties, &mut meter)?
            }
        };
        results.extend(values.into_iter().zip(bulks));
    }
    Ok(results)
}
