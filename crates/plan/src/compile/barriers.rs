//! Barriers: steps that read their whole input before they have a result.

use mangrove_graph::Result;
use mangrove_gremlin::{Argument, Order, Scope};

use super::arguments::{count, misfit, name, names};
use super::filters::take_local;
use super::groups::Call;
use super::modulators::{by, one, order_by, single_by};
use super::site::Site;
use crate::logical::{By, LocalFunction, Name, OrderBy, Reduction, Step, StepNode, Traversal};

/// `count`, `sum`, `min`, `max`, `mean`, of the stream or of one object.
pub(super) fn reduce(call: &mut Call<'_>, reduction: Reduction) -> Result<Step> {
    let local = take_local(call);
    match call.arguments {
        [] if local => Ok(Step::Local(LocalFunction::Reduce(reduction))),
        [] => {
            refuse_in_loop(&call.site)?;
            Ok(Step::Reduce(reduction))
        }
        given => Err(misfit(&call.site, "nothing or a scope", given)),
    }
}

/// `fold()`.
pub(super) fn fold(call: &Call<'_>) -> Result<Step> {
    match call.arguments {
        [] => {
            refuse_in_loop(&call.site)?;
            Ok(Step::Reduce(Reduction::Fold))
        }
        [seed, Argument::Operator(operator)] => {
            refuse_in_loop(&call.site)?;
            Ok(Step::FoldInto(super::arguments::operand(&call.site, seed)?, *operator))
        }
        given => Err(misfit(&call.site, "nothing, or a seed and an operator", given)),
    }
}

/// `order()`, of the stream or of one object. Without `by()`, the objects themselves, ascending.
pub(super) fn order(call: &mut Call<'_>) -> Result<Step> {
    let local = take_local(call);
    if !call.arguments.is_empty() {
        return Err(misfit(&call.site, "nothing or a scope; what is compared goes into by()", call.arguments));
    }
    let mut criteria = call.take("by").iter().map(order_by).collect::<Result<Vec<_>>>()?;
    if criteria.is_empty() {
        criteria.push(OrderBy { by: By::Identity, order: Order::Asc });
    }
    Ok(if local { Step::Local(LocalFunction::Order(criteria)) } else { Step::Order(criteria) })
}

/// `group()`: the first `by()` is the key, the second makes the value from the members.
pub(super) fn group(call: &mut Call<'_>) -> Result<Step> {
    let side_effect = side_effect(call)?;
    let by = call.take("by");
    if let Some(third) = by.get(2) {
        return Err(third.site.unsupported(
            "The key and value traversals for group()-step have already been set; group() takes at most two by()",
        ));
    }
    let mut by = by.iter().map(one);
    let key = by.next().transpose()?.unwrap_or(By::Identity);
    Ok(Step::Group { side_effect, key, value: by.next().transpose()? })
}

/// `groupCount()`.
pub(super) fn group_count(call: &mut Call<'_>) -> Result<Step> {
    let side_effect = side_effect(call)?;
    Ok(Step::GroupCount { side_effect, key: single_by(call, "GroupCount")?.unwrap_or(By::Identity) })
}

fn side_effect(call: &Call<'_>) -> Result<Option<Name>> {
    match call.arguments {
        [] => {
            refuse_in_loop(&call.site)?;
            Ok(None)
        }
        [key] => name(&call.site, key, "the name of a side effect").map(Some),
        given => Err(misfit(&call.site, "nothing or the name of a side effect", given)),
    }
}

/// `aggregate("x")`. Clients of 3.7 also send two forms that 3.8 has dropped: a scope as first argument, of which the
/// local one means `local(aggregate("x"))`, and `store("x")` with the same meaning.
pub(super) fn aggregate(call: &mut Call<'_>) -> Result<Step> {
    let (lazy, key) = match call.arguments {
        [Argument::Scope(scope), key] if call.site.name == "aggregate" => (*scope == Scope::Local, key),
        [key] => (call.site.name == "store", key),
        given => return Err(misfit(&call.site, "the name of a side effect", given)),
    };
    let name = name(&call.site, key, "the name of a side effect")?;
    let step = Step::Aggregate { name, by: single_by(call, "Aggregate")?.unwrap_or(By::Identity) };
    Ok(match lazy {
        true => {
            let node = StepNode::new(step, call.site.position);
            Step::LocalTraversal(Traversal { steps: vec![node] })
        }
        false => step,
    })
}

/// `tree()` and `tree("x")`.
pub(super) fn tree(call: &mut Call<'_>) -> Result<Step> {
    let side_effect = side_effect(call)?;
    Ok(Step::Tree { side_effect, by: by(call)? })
}

/// `subgraph("x")`.
pub(super) fn subgraph(call: &Call<'_>) -> Result<Step> {
    match call.arguments {
        [key] => name(&call.site, key, "the name of a side effect").map(Step::Subgraph),
        given => Err(misfit(&call.site, "the name of a side effect", given)),
    }
}

/// `cap("x", …)`.
pub(super) fn cap(call: &Call<'_>) -> Result<Step> {
    refuse_in_loop(&call.site)?;
    let names = names(&call.site, call.arguments, "the name of a side effect")?;
    if names.is_empty() {
        return Err(misfit(&call.site, "one or more names of side effects", call.arguments));
    }
    Ok(Step::Cap(names))
}

/// `barrier()`. The engine decides how many traversers it holds.
pub(super) fn barrier(call: &Call<'_>) -> Result<Step> {
    match call.arguments {
        [] => Ok(Step::Barrier { norm_sack: false }),
        [Argument::NormSack] => Ok(Step::Barrier { norm_sack: true }),
        [size] => count(&call.site, size).map(|_| Step::Barrier { norm_sack: false }),
        given => Err(misfit(&call.site, "nothing or a number", given)),
    }
}

/// Fails for a reduction that is a step of the body of a loop, as in TinkerPop. Nested deeper, as in `map()`, it is
/// accepted.
fn refuse_in_loop(site: &Site<'_>) -> Result<()> {
    match site.parent() {
        Some(parent) if parent.name == "repeat" => Err(site.unsupported(
            "The parent of a reducing/supplying barrier can not be repeat()-step; nest it in map(…) or local(…), or \
             move it after the loop",
        )),
        _ => Ok(()),
    }
}
