//! Steps that reduce many objects to one: `count`, `sum`, `min`, `max`, `mean`, `fold`.

use std::cmp::Ordering;

use mangrove_graph::Value;
use mangrove_graph::compare::{comparable, is_number};
use mangrove_graph::numeric::{Operation, arithmetic, mean};
use mangrove_gremlin::{Argument, Scope};

use super::step::Step;
use super::{Outcome, Stream, Traverser, unsupported, values, wrong};

/// `fold(seed, operator)`
pub(crate) fn fold_from(step: &Step<'_>, input: Stream) -> Outcome<Stream> {
    let [Argument::Value(seed), Argument::Operator(operator)] = step.arguments else {
        return unsupported("fold() with these arguments");
    };
    let mut folded = seed.clone();
    let loops = input.first().map(|t| t.loops.clone()).unwrap_or_default();
    for t in input.iter().filter(|t| !t.is_unborn) {
        folded = super::sack::fold(*operator, &folded, &t.value)?;
    }
    Ok(vec![Traverser::new(folded, loops)])
}

/// A reducing step over the stream; its result begins a new path.
pub(crate) fn reduce(step: &Step<'_>, input: Stream) -> Outcome<Stream> {
    if !step.arguments.is_empty() && !is_global(step) {
        return unsupported(format!("{}() with arguments", step.name));
    }
    // The result keeps the loop counters of the stream: all its traversers are in one iteration.
    let loops = input.first().map(|t| t.loops.clone()).unwrap_or_default();
    let born = input.into_iter().filter(|t| !t.is_unborn).collect();
    let reduced = reduce_values(step.name, &values(born))?;
    Ok(reduced.into_iter().map(|value| Traverser::new(value, loops.clone())).collect())
}

fn is_global(step: &Step<'_>) -> bool {
    matches!(step.arguments, [Argument::Scope(Scope::Global)])
}

/// The reduction; `None` if there is no value to sum or compare.
pub(crate) fn reduce_values(name: &str, all: &[Value]) -> Outcome<Option<Value>> {
    match name {
        "count" => return Ok(Some(Value::I64(all.len() as i64))),
        "fold" => return Ok(Some(Value::list(all.to_vec()))),
        _ => {}
    }
    if all.is_empty() {
        return Ok(None);
    }
    // Nulls are ignored; the reduction of nulls alone is null.
    let present: Vec<&Value> = all.iter().filter(|v| !matches!(v, Value::Null)).collect();
    let Some((first, rest)) = present.split_first() else { return Ok(Some(Value::Null)) };
    if matches!(name, "sum" | "mean") && !is_number(first) {
        return wrong(format!("{name}() needs numbers, not a {}", first.type_name()));
    }
    let mut result = (*first).clone();
    for value in rest {
        result = match name {
            "sum" | "mean" => arithmetic(Operation::Add, &result, value)?,
            "min" => extreme(&result, value, Ordering::Less)?,
            _ => extreme(&result, value, Ordering::Greater)?,
        };
    }
    Ok(Some(if name == "mean" { mean(&result, present.len() as u64)? } else { result }))
}

/// The lesser or greater of two values; numbers get the wider of their types.
fn extreme(a: &Value, b: &Value, wanted: Ordering) -> Outcome<Value> {
    let Some(found) = comparable(b, a) else {
        return wrong(format!("a {} and a {} do not compare", a.type_name(), b.type_name()));
    };
    let (chosen, other) = if found == wanted { (b, a) } else { (a, b) };
    if !is_number(chosen) {
        return Ok(chosen.clone());
    }
    let zero = match other {
        Value::I8(_) => Value::I8(0),
        Value::I16(_) => Value::I16(0),
        Value::I32(_) => Value::I32(0),
        Value::I64(_) => Value::I64(0),
        Value::F32(_) => Value::F32(0.0),
        Value::F64(_) => Value::F64(0.0),
        other => return unsupported(format!("min() and max() of a {}", other.type_name())),
    };
    Ok(arithmetic(Operation::Add, chosen, &zero)?)
}
