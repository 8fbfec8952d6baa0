//! The policies of scopes, and which scopes may let a heavy instance begin again in a group of its own.
//!
//! A scope keeps the order of its work where something reads it: no result depends on a policy, but for the order of a
//! stream that nothing sorts. If the source names the policy, `explain()` says why a scope does not keep it. If the
//! step names it, that is an error.

use mangrove_graph::{Error, Result};

use super::Lowering;
use super::order::Chain;
use crate::explain::describe;
use crate::logical::{InstanceOrder, Repeat, Step, StepNode, Traversal, WorkOrder, WorkOrders};
use crate::physical::{
    LocalKind, LocalScope, LoopTest, Merged, Op, OrderReader, Pipeline, RepeatScope, Scheduling, Stage,
};
use crate::purity::reason_against_overlap;

const READ_OUTSIDE: &str = "the order of its results is read";
const READ_INSIDE: &str = "the order of its steps is read";
const TOGETHER: &str = "instances of a message leave together";
const SEES_ITERATION: &str = "a step of its body sees all traversers of an iteration";

impl Lowering<'_> {
    /// A branch scope with an instance for each row. If its traversals write, instances run one after the other, since
    /// each must see the writes of the instances before it.
    pub(super) fn scope(&self, kind: LocalKind, traversals: &[Traversal], chain: &Chain) -> LocalScope {
        LocalScope {
            kind,
            serial: traversals.iter().any(Traversal::is_mutating),
            ordered: chain.ordered,
            by_object: false,
            passes_early: false,
            merged: Merged::AsOne,
            scheduling: Scheduling::default(),
            stays_together: self.reason_to_stay(traversals, chain.ordered),
        }
    }

    /// Returns why no instance of a scope may begin again in a group of its own; `None` if one may. Its traversals then
    /// run twice for the instance, and its results leave after those of later rows.
    fn reason_to_stay(&self, traversals: &[Traversal], is_ordered: bool) -> Option<&'static str> {
        match () {
            () if is_ordered => Some("results leave in the order of the rows"),
            () if self.mutating => Some("the traversal writes"),
            () if self.interleaving.shows() => Some("a side effect shows the order of the rows"),
            () if traversals.iter().any(|nested| nested.effects().uses_side_effects) => {
                Some("its steps share side effects")
            }
            () if self.requirements.seed.is_some() => Some("a seed fixes the order of random numbers"),
            () => None,
        }
    }

    /// Gives the scopes that a step has become the step's policy, and where that leaves the choice, the policy of the
    /// source.
    pub(super) fn set_policies(&self, stages: &mut [Stage], node: &StepNode) -> Result<()> {
        let policy = node.policy.or(&self.configuration.policy);
        let scheduling = Scheduling { policy, is_of_step: !node.policy.is_default(), fixed_by: None };
        for stage in stages {
            match (&mut stage.operator, &node.step) {
                (Op::Local(scope), _) => scope.scheduling = scheduling.clone(),
                (Op::Modulate(modulate), _) if modulate.has_scope() => {
                    modulate.scheduling = scheduling.clone();
                    if scheduling.policy.priority().is_some() {
                        modulate.scheduling.fix(TOGETHER);
                    }
                }
                (Op::Repeat(scope), Step::Repeat(repeat)) => self.set_policy_of_loop(scope, repeat, &scheduling)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn set_policy_of_loop(&self, scope: &mut RepeatScope, repeat: &Repeat, scheduling: &Scheduling) -> Result<()> {
        scope.scheduling = scheduling.clone();
        let (sack, one_bulk) = (self.configuration.sack.as_ref(), self.configuration.one_bulk);
        if scope.overlaps()
            && let Some(why) = reason_against_overlap(repeat, sack, one_bulk)
        {
            scope.scheduling.fix(why);
        }
        if let Some(asked) = scope.scheduling.policy.orders.clone()
            && asked.priority().is_some()
            && scope.body.keeps_state()
        {
            if scheduling.is_of_step {
                let left = WorkOrders { between: InstanceOrder::Work(WorkOrder::Bfs), ..asked.clone() };
                return Err(refused("repeat", &asked, Some(&left), SEES_ITERATION));
            }
            scope.scheduling.fix(SEES_ITERATION);
        }
        // With a bound, a vertex that is met deep first would hide its shorter way.
        let is_bounded = matches!(scope.until, Some(LoopTest::Times(_)));
        scope.once &= !(scope.overlaps() && is_bounded);
        Ok(())
    }
}

/// Takes the orders of work away from the scopes of a pipeline where something reads the order, and lets their heavy
/// instances stay. `reader` reads the output of the pipeline. Fails if the step of such a scope names the policy.
pub(super) fn keep_read_orders(pipeline: &mut Pipeline, reader: OrderReader) -> Result<()> {
    let readers = reader.of_stages(pipeline);
    for (stage, reader) in pipeline.stages.iter_mut().zip(readers) {
        if let Some(asked) = scheduling(&mut stage.operator).map(|scheduling| scheduling.clone())
            && let Some(orders) = &asked.policy.orders
        {
            let (left, why) = left_of(&stage.operator, orders, reader);
            if let (Some(why), true) = (why, asked.is_of_step) {
                return Err(refused(&describe(&stage.operator), orders, left.as_ref(), why));
            }
            if let Some(scheduling) = scheduling(&mut stage.operator) {
                scheduling.policy.orders = left;
                scheduling.fixed_by = why.or(asked.fixed_by);
            }
        }
        if let Op::Local(scope) = &mut stage.operator
            && reader.order_matters
        {
            scope.stays_together = scope.stays_together.or(Some(READ_OUTSIDE));
        }
        let mut outcome = Ok(());
        // The operator cannot be read while its pipelines change, so the readers are found first.
        let mut readers = Vec::new();
        stage.operator.visit_nested(&mut |purpose, _| readers.push(reader.of_nested(&stage.operator, purpose)));
        let mut readers = readers.into_iter();
        stage.operator.visit_nested_mut(&mut |_, nested| {
            if let (Ok(()), Some(reader)) = (&outcome, readers.next()) {
                outcome = keep_read_orders(nested, reader);
            }
        });
        outcome?;
    }
    Ok(())
}

fn scheduling(operator: &mut Op) -> Option<&mut Scheduling> {
    match operator {
        Op::Local(scope) => Some(&mut scope.scheduling),
        Op::Modulate(modulate) => Some(&mut modulate.scheduling),
        Op::Repeat(repeat) => Some(&mut repeat.scheduling),
        _ => None,
    }
}

/// Returns what a scope keeps of the orders of work, and why it does not keep all.
fn left_of(operator: &Op, orders: &WorkOrders, reader: OrderReader) -> (Option<WorkOrders>, Option<&'static str>) {
    // The results of a by() are found by their objects, in whatever order they come.
    if reader.order_matters && !matches!(operator, Op::Modulate(_)) {
        return (None, Some(READ_OUTSIDE));
    }
    if orders.inside == WorkOrder::Dfs {
        return (Some(orders.clone()), None);
    }
    let mut is_read = false;
    operator.visit_nested(&mut |purpose, nested| {
        is_read = is_read || reader.of_nested(operator, purpose).matters_in(nested);
    });
    if is_read {
        (Some(WorkOrders { inside: WorkOrder::Dfs, ..orders.clone() }), Some(READ_INSIDE))
    } else {
        (Some(orders.clone()), None)
    }
}

fn refused(scope: &str, asked: &WorkOrders, left: Option<&WorkOrders>, why: &str) -> Error {
    let way_out = match left {
        Some(left) => format!("use \"{left}\""),
        None => "leave the policy out".to_owned(),
    };
    Error::unsupported(format!(
        "`with(\"policy\", \"{asked}\")` of \"{scope}\": {why}, so it must not change; {way_out}"
    ))
}
