//! `by()` in its forms.

use mangrove_graph::{Result, Value};
use mangrove_gremlin::{Argument, Order};

use super::arguments::{child, describe, misfit, name, unbound};
use super::groups::{Call, Modulator};
use crate::logical::{By, Name, OrderBy, Segment};

const FORMS: &str = "nothing, a key, a token (T.id), a column (keys, values) or a traversal";

/// All `by()`s of a step, in order.
pub(super) fn by(call: &mut Call<'_>) -> Result<Vec<By>> {
    call.take("by").iter().map(one).collect()
}

/// The only `by()` of a step that takes one. `step` is the name of the step in TinkerPop's message.
pub(super) fn single_by(call: &mut Call<'_>, step: &str) -> Result<Option<By>> {
    let found = call.take("by");
    match found.as_slice() {
        [] => Ok(None),
        [modulator] => one(modulator).map(Some),
        [_, second, ..] => {
            Err(second.site.unsupported(format_args!("{step} step can only have one by modulator; remove this one")))
        }
    }
}

/// One `by()` that gives a value.
pub(super) fn one(modulator: &Modulator<'_>) -> Result<By> {
    match modulator.arguments {
        [] => Ok(By::Identity),
        [argument] => value(modulator, argument),
        given => Err(misfit(&modulator.site, FORMS, given)),
    }
}

fn value(modulator: &Modulator<'_>, argument: &Argument) -> Result<By> {
    Ok(match argument {
        Argument::Value(Value::String(key)) => By::Key(key.clone()),
        Argument::Value(Value::Token(token)) => By::Token(*token),
        Argument::Column(column) => By::Column(*column),
        Argument::Traversal(_) => By::Traversal(Box::new(child(&modulator.site, argument)?)),
        Argument::Parameter(parameter) => return Err(unbound(&modulator.site, parameter, "a key in by()")),
        Argument::Order(order) => {
            return Err(modulator
                .site
                .unsupported(format_args!("Order.{} belongs in a by() of order()", order.name())));
        }
        other => return Err(modulator.site.invalid(format_args!("takes {FORMS}, not {}", describe(other)))),
    })
}

/// One `by()` of `order()`: the part that is compared, and the direction.
pub(super) fn order_by(modulator: &Modulator<'_>) -> Result<OrderBy> {
    let (by, order) = match modulator.arguments {
        [] => (By::Identity, Order::Asc),
        [Argument::Order(order)] => (By::Identity, *order),
        [argument] => (value(modulator, argument)?, Order::Asc),
        [argument, Argument::Order(order)] => (value(modulator, argument)?, *order),
        given => {
            return Err(misfit(&modulator.site, "what is compared and Order.asc, Order.desc or Order.shuffle", given));
        }
    };
    Ok(OrderBy { by, order })
}

/// `from(label)` and `to(label)` of a step that reads paths.
pub(super) fn segment(call: &mut Call<'_>) -> Result<Segment> {
    let mut label = |which: &str| -> Result<Option<Name>> {
        match call.take_one(which)? {
            None => Ok(None),
            Some(modulator) => match modulator.arguments {
                [label] => name(&modulator.site, label, "a step label").map(Some),
                given => Err(misfit(&modulator.site, "a step label", given)),
            },
        }
    };
    Ok(Segment { from: label("from")?, to: label("to")? })
}
