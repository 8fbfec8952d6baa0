//! Sacks: folded, read, and merged at a barrier; and the operators that fold.

use std::cmp::Ordering;

use mangrove_graph::Value;
use mangrove_graph::compare::{equivalent, order};
use mangrove_graph::numeric::{Operation, arithmetic, integer, to_f64, widened};
use mangrove_gremlin::{Argument, Operator};

use super::local::members;
use super::step::Step;
use super::{Interpreter, Merging, Outcome, Stream, Traverser, unsupported, wrong};

impl Interpreter<'_> {
    /// `sack()` reads. `sack(operator).by(…)` folds, and drops a traverser whose `by` is unproductive.
    pub(crate) fn sack(&mut self, step: &Step<'_>, t: Traverser) -> Outcome<Stream> {
        let sack = t.sack.clone().unwrap_or(Value::Null);
        match step.arguments {
            [] => Ok(vec![t.moved_to(sack)]),
            [Argument::Operator(operator)] => {
                let by = step.by.first().copied().unwrap_or(&[]);
                let Some(more) = self.by(by, &t)? else { return Ok(Vec::new()) };
                let sack = Some(fold(*operator, &sack, &more)?);
                Ok(vec![Traverser { sack, ..t }])
            }
            other => unsupported(format!("sack({other:?})")),
        }
    }

    /// `barrier()` merges traversers on the same object, and their sacks by the source's merge operator.
    /// `barrier(normSack)` makes sacks fractions of their sum.
    pub(crate) fn barrier(&mut self, step: &Step<'_>, input: Stream) -> Outcome<Stream> {
        let mut out = match self.source.merge_sacks {
            Some(operator) => merged(operator, input)?,
            None => input,
        };
        if self.source.one_bulk {
            // A traverser that meets an equal one here is merged with it.
            let mut seen: Stream = Vec::new();
            for t in out {
                if !seen.iter().any(|known| equivalent(&known.value, &t.value)) {
                    seen.push(t);
                }
            }
            out = seen;
        }
        if self.merging == Merging::Clustered {
            out = clustered(out);
        }
        if matches!(step.arguments, [Argument::NormSack]) {
            let share = |t: &Traverser| t.sack.as_ref().and_then(to_f64).unwrap_or(0.0);
            let sum: f64 = out.iter().map(share).sum();
            for t in &mut out {
                t.sack = Some(Value::F64(share(t) / sum));
            }
        }
        Ok(out)
    }
}

/// Equal traversers become adjacent, at the position of the first.
fn clustered(input: Stream) -> Stream {
    let mut clusters: Vec<Stream> = Vec::new();
    for t in input {
        match clusters.iter_mut().find(|cluster| equivalent(&cluster[0].value, &t.value)) {
            Some(cluster) => cluster.push(t),
            None => clusters.push(vec![t]),
        }
    }
    clusters.into_iter().flatten().collect()
}

/// Every traverser keeps its bulk, and all share one sack from here on.
fn merged(operator: Operator, input: Stream) -> Outcome<Stream> {
    let mut out: Stream = Vec::new();
    for t in &input {
        let mut sack: Option<Value> = None;
        for other in input.iter().filter(|other| equivalent(&other.value, &t.value)) {
            let more = other.sack.clone().unwrap_or(Value::Null);
            sack = Some(match sack {
                None => more,
                Some(sack) => fold(operator, &sack, &more)?,
            });
        }
        out.push(Traverser { sack, ..t.clone() });
    }
    Ok(out)
}

/// Folds `b` into `a`. Null counts as absent, but arithmetic does not begin with a null.
pub(crate) fn fold(operator: Operator, a: &Value, b: &Value) -> Outcome<Value> {
    if operator == Operator::Assign {
        return Ok(b.clone());
    }
    if matches!((a, operator), (Value::Null, Operator::Sum | Operator::Minus | Operator::Mult | Operator::Div)) {
        return Ok(Value::Null);
    }
    if let (Value::Null, other) | (other, Value::Null) = (a, b) {
        return Ok(other.clone());
    }
    let truth = |value: &Value| match value {
        Value::Bool(truth) => Ok(*truth),
        other => wrong(format!("a {} is neither true nor false", other.type_name())),
    };
    Ok(match operator {
        Operator::Sum => arithmetic(Operation::Add, a, b)?,
        Operator::Minus => arithmetic(Operation::Subtract, a, b)?,
        Operator::Mult => arithmetic(Operation::Multiply, a, b)?,
        Operator::Div => arithmetic(Operation::Divide, a, b)?,
        Operator::And => Value::Bool(truth(a)? & truth(b)?),
        Operator::Or => Value::Bool(truth(a)? | truth(b)?),
        Operator::SumLong => match (integer(a), integer(b)) {
            (Some(a), Some(b)) => arithmetic(Operation::Add, &Value::I64(a), &Value::I64(b))?,
            _ => return wrong("sumLong adds whole numbers"),
        },
        Operator::Min | Operator::Max => {
            let wanted = if operator == Operator::Min { Ordering::Less } else { Ordering::Greater };
            let (chosen, other) = if order(b, a) == wanted { (b, a) } else { (a, b) };
            if to_f64(chosen).is_some() && to_f64(other).is_some() { widened(chosen, other) } else { chosen.clone() }
        }
        Operator::AddAll => return add_all(a, b),
        Operator::Assign => b.clone(),
    })
}

/// Folds values one after the other; an operator that takes collections receives all values in one.
pub(crate) fn fold_all(operator: Operator, mut folded: Value, values: Vec<Value>) -> Outcome<Value> {
    if matches!(operator, Operator::AddAll | Operator::Assign) {
        return fold(operator, &folded, &Value::list(values));
    }
    for value in &values {
        folded = fold(operator, &folded, value)?;
    }
    Ok(folded)
}

/// A collection with the members of another one, or with one more member; a map with the entries of another one.
fn add_all(a: &Value, b: &Value) -> Outcome<Value> {
    if let (Value::Map(entries), Value::Map(more)) = (a, b) {
        let mut all: Vec<(Value, Value)> = entries.to_vec();
        all.retain(|(key, _)| !more.iter().any(|(other, _)| equivalent(key, other)));
        all.extend(more.iter().cloned());
        return Ok(Value::map(all));
    }
    let Some(mut all) = members(a) else { return wrong(format!("addAll folds collections, not a {}", a.type_name())) };
    all.extend(members(b).unwrap_or_else(|| vec![b.clone()]));
    if !matches!(a, Value::Set(_)) {
        return Ok(Value::list(all));
    }
    let mut distinct: Vec<Value> = Vec::new();
    for value in all {
        if !distinct.iter().any(|known| equivalent(known, &value)) {
            distinct.push(value);
        }
    }
    Ok(Value::Set(distinct.into()))
}
