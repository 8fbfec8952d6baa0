//! Steps that use the sacks of traversers, and steps that choose at random.

use mangrove_graph::{Result, Value};
use mangrove_gremlin::{Argument, Pop};

use super::arguments::{child, count, misfit, operand};
use super::filters::take_local;
use super::groups::Call;
use super::modulators::{by, single_by};
use crate::literals::Fact;
use crate::logical::{By, LocalFunction, Name, Operand, Step};

/// `sack()` and `sack(operator)`.
pub(super) fn sack(call: &mut Call<'_>) -> Result<Step> {
    match call.arguments {
        [] => Ok(Step::Sack),
        [Argument::Operator(operator)] => {
            Ok(Step::FoldSack(*operator, single_by(call, "Sack")?.unwrap_or(By::Identity)))
        }
        given => Err(misfit(&call.site, "nothing or an operator, such as Operator.sum", given)),
    }
}

/// `sample(n)` and `sample(local, n)`.
pub(super) fn sample(call: &mut Call<'_>) -> Result<Step> {
    let local = take_local(call);
    let number = match call.arguments {
        [number] => count(&call.site, number)?,
        given => return Err(misfit(&call.site, "how many are taken", given)),
    };
    if local {
        return Ok(Step::Local(LocalFunction::Sample(number)));
    }
    let one = Operand::Literal(Value::F64(1.0));
    let constant = crate::logical::Traversal {
        steps: vec![crate::logical::StepNode::new(Step::Constant(one), call.site.position)],
    };
    let weight = single_by(call, "Sample")?.unwrap_or_else(|| By::Traversal(Box::new(constant)));
    Ok(Step::Sample(number, weight))
}

/// `coin(probability)`.
pub(super) fn coin(call: &Call<'_>) -> Result<Step> {
    match call.arguments {
        [Argument::Value(value)] if !value.is_number() => {
            Err(misfit(&call.site, "a probability from 0 to 1", call.arguments))
        }
        [Argument::Lifted(number)] if !call.site.literals.ask(*number, Fact::Number) => {
            Err(misfit(&call.site, "a probability from 0 to 1", call.arguments))
        }
        [probability] => Ok(Step::Coin(operand(&call.site, probability)?)),
        given => Err(misfit(&call.site, "a probability from 0 to 1", given)),
    }
}

/// `fail()` and `fail(message)`.
pub(super) fn fail(call: &Call<'_>) -> Result<Step> {
    match call.arguments {
        [] => Ok(Step::Fail(Name::new("fail() step triggered"))),
        [message] => Ok(Step::Fail(super::arguments::name(&call.site, message, "a message")?)),
        given => Err(misfit(&call.site, "nothing or a message", given)),
    }
}

/// `select(traversal)`: a traversal returns the key.
pub(super) fn select_key(call: &mut Call<'_>, pop: Option<Pop>, key: &Argument) -> Result<Step> {
    let key = Box::new(child(&call.site, key)?);
    Ok(Step::SelectKey { pop, key, by: by(call)? })
}
