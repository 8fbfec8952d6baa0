//! Policies of scopes: `with("policy", …)` and `with("maxInstances", n)`, of the traversal source and of steps.
//!
//! A policy that cannot be kept is an error that names the way out. Only the source may name a policy for scopes of
//! which some keep their own order; `explain()` shows which.

use std::num::NonZeroU32;

use mangrove_graph::{Error, Result, Value};
use mangrove_gremlin::Argument;

use super::arguments::{describe, integer, misfit, name};
use super::groups::Call;
use super::site::Site;
use crate::interleaving::Interleaving;
use crate::logical::{
    ChooseOn, Configuration, InstanceOrder, PriorityOf, ScopePolicy, Step, StepNode, Traversal, WorkOrder, WorkOrders,
};
use crate::purity::reason_against_overlap;

const POLICY: &str = "policy";
const INSTANCES_MAX: &str = "maxInstances";

/// The names of the options.
pub(super) const OPTIONS: [&str; 2] = [POLICY, INSTANCES_MAX];

/// Reads one of the [`OPTIONS`] into a policy.
pub(super) fn read(policy: &mut ScopePolicy, site: &Site<'_>, key: &str, value: &Argument) -> Result<()> {
    if key == POLICY {
        let orders = match value {
            Argument::Value(Value::String(text)) => WorkOrders::of_text(text),
            _ => None,
        };
        policy.orders = Some(orders.ok_or_else(|| {
            site.invalid(format_args!(
                "a policy is \"dfs\", \"bfs\" or \"fifo\", or two of them, such as \"bfs/dfs\": the order between \
                 instances and the order of the steps inside; the order between instances may be a value, as in \
                 \"by age\", \"by age desc/dfs\" or \"by sack()\", or \"fair\", by which instances share time; \
                 not {}",
                describe(value)
            ))
        })?);
    } else {
        let max = integer(value).and_then(|max| u32::try_from(max).ok()).and_then(NonZeroU32::new);
        policy.instances_max = Some(max.ok_or_else(|| {
            site.invalid(format_args!(
                "{INSTANCES_MAX} is the most instances of a scope that are inside at a time, a number from 1, not {}",
                describe(value)
            ))
        })?);
    }
    Ok(())
}

/// Takes the policy that the `with()`s of a step ask for. `steps` are those that the step has become.
pub(super) fn of_step(call: &mut Call<'_>, steps: &mut [StepNode]) -> Result<()> {
    for modulator in call.take("with") {
        let site = &modulator.site;
        let (key, value) = match modulator.arguments {
            [key] => (name(site, key, "an option")?, None),
            [key, value] => (name(site, key, "an option")?, Some(value)),
            given => return Err(misfit(site, "an option and its value", given)),
        };
        if !OPTIONS.contains(&&*key) {
            let near = mangrove_gremlin::suggest(&key, OPTIONS.into_iter());
            return Err(site.unsupported(format_args!("`{}` has no option `{key}`{near}", call.site.name)));
        }
        let Some(value) = value else { return Err(misfit(site, "an option and its value", modulator.arguments)) };
        let Some(node) = steps.last_mut().filter(|node| has_instances(&node.step)) else {
            return Err(no_scope(site, call.site.name));
        };
        read(&mut node.policy, site, &key, value)?;
    }
    Ok(())
}

/// Fails if one of the options stands at a step that takes other options.
pub(super) fn refuse(site: &Site<'_>, key: &str, step: &str) -> Result<()> {
    if OPTIONS.contains(&key) { Err(no_scope(site, step)) } else { Ok(()) }
}

fn no_scope(site: &Site<'_>, step: &str) -> Error {
    let why = match step {
        "union" => "its branches see the whole stream, so there are no instances",
        _ => "it opens no scope of its own",
    };
    site.unsupported(format_args!(
        "`{step}` cannot have a policy or a limit on instances: {why}. Such a with() belongs after a step with a \
         nested traversal for each traverser, such as where(t), map(t) or local(t), after repeat(t), or at the \
         traversal source"
    ))
}

/// Returns true if the step opens scope instances, the policy of which it may name.
fn has_instances(step: &Step) -> bool {
    match step {
        Step::FilterTraversal(_, nested) | Step::Coalesce(nested) => !nested.is_empty(),
        Step::Map { .. } | Step::LocalTraversal(_) | Step::SideEffect(_) | Step::Optional(_) | Step::Repeat(_) => true,
        Step::Choose(choose) => !matches!(choose.on, ChooseOn::Test(_)),
        _ => false,
    }
}

/// Fails if the traversal cannot keep a policy that it names.
pub(super) fn check(traversal: &Traversal, configuration: &Configuration) -> Result<()> {
    let of_sack = |policy: &ScopePolicy| policy.priority().is_some_and(|priority| priority.of == PriorityOf::Sack);
    let mut orders = configuration.policy.orders.as_ref().map(|_| None);
    let mut reads_sack = of_sack(&configuration.policy);
    traversal.visit(&mut |node| {
        if node.policy.orders.is_some() {
            orders = Some(node.position);
            reads_sack |= of_sack(&node.policy);
        }
    });
    let Some(position) = orders else { return Ok(()) };
    if reads_sack && configuration.sack.is_none() {
        return Err(refused(position, "traversers have no sack; withSack() gives them one".to_owned()));
    }
    let why = match () {
        () if traversal.is_mutating() => Some("the traversal writes"),
        () if Interleaving::of(traversal).shows() => Some("a side effect shows the order of traversers"),
        () => None,
    };
    if let Some(why) = why {
        return Err(refused(position, format!("{why}, so its steps run in a fixed order; leave the policy out")));
    }
    let mut refusal = None;
    traversal.visit(&mut |node| {
        if let (Step::Repeat(repeat), Some(orders)) = (&node.step, &node.policy.orders)
            && orders.between != InstanceOrder::Work(WorkOrder::Bfs)
            && let Some(why) = reason_against_overlap(repeat, configuration.sack.as_ref(), configuration.one_bulk)
        {
            let way_out = format!("use \"bfs\", or \"bfs/{}\"", orders.inside.name());
            refusal = refusal.take().or(Some(refused(
                node.position,
                format!("the iterations of `repeat` run one after the other, because {why}; {way_out}"),
            )));
        }
    });
    refusal.map_or(Ok(()), Err)
}

fn refused(position: Option<mangrove_gremlin::Position>, what: String) -> Error {
    let place = position.map(|at| format!(" at line {}, column {}", at.line, at.column)).unwrap_or_default();
    Error::unsupported(format!("`with(\"{POLICY}\", …)`{place}: {what}"))
}
