//! Filters, and the steps that choose from the whole stream: `dedup`, `limit`, `order`.

use std::cmp::Ordering;

use mangrove_graph::compare::{equal, equivalent, order};
use mangrove_graph::{Token, Value};
use mangrove_gremlin::{Argument, Bytecode, Instruction, Order};

use super::by::round_robin;
use super::predicate::{operands, passes, passes_with};
use super::step::{Step, string};
use super::{Interpreter, Outcome, Stream, Traverser, unsupported};

impl Interpreter<'_> {
    pub(crate) fn has(&mut self, step: &Step<'_>, t: &Traverser) -> Outcome<bool> {
        match step.name {
            "hasLabel" => self.token_among(Token::Label, step, t),
            "hasId" => self.token_among(Token::Id, step, t),
            "hasKey" => self.token_among(Token::Key, step, t),
            "hasValue" => self.token_among(Token::Value, step, t),
            "hasNot" => Ok(self.properties_of(&t.value, &[string(step.argument(0)?)?])?.is_empty()),
            _ => match step.arguments {
                [Argument::Value(Value::String(key))] => {
                    Ok(!self.properties_of(&t.value, std::slice::from_ref(key))?.is_empty())
                }
                [Argument::Value(Value::Token(token)), test] => {
                    let value = self.token(*token, &t.value)?;
                    self.argument_matches(test, &value)
                }
                [Argument::Value(Value::String(key)), test] => self.any_value_matches(key, test, t),
                [label, Argument::Value(Value::String(key)), test] => {
                    let found = self.token(Token::Label, &t.value)?;
                    Ok(self.argument_matches(label, &found)? && self.any_value_matches(key, test, t)?)
                }
                other => unsupported(format!("has({other:?})")),
            },
        }
    }

    /// Returns true if the token's value matches one of the arguments.
    fn token_among(&mut self, token: Token, step: &Step<'_>, t: &Traverser) -> Outcome<bool> {
        let value = self.token(token, &t.value)?;
        for argument in step.arguments {
            let found = match argument {
                Argument::Value(Value::List(list)) => list.iter().any(|v| equal(v, &value)),
                argument => self.argument_matches(argument, &value)?,
            };
            if found {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn any_value_matches(&mut self, key: &str, test: &Argument, t: &Traverser) -> Outcome<bool> {
        for property in self.properties_of(&t.value, &[key.into()])? {
            let value = self.key_and_value(&property)?.1;
            if self.argument_matches(test, &value)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    pub(crate) fn connective(&mut self, step: &Step<'_>, t: &Traverser) -> Outcome<bool> {
        if step.arguments.is_empty() {
            return unsupported("infix and() and or()");
        }
        let stop_at = step.name == "or";
        for at in 0..step.arguments.len() {
            if self.where_child(step.traversal(at)?, t)? == stop_at {
                return Ok(stop_at);
            }
        }
        Ok(!stop_at)
    }

    pub(crate) fn where_step(&mut self, step: &Step<'_>, t: &Traverser) -> Outcome<bool> {
        match step.arguments {
            [Argument::Traversal(child)] => self.where_child(child, t),
            [Argument::Predicate(p)] if step.name == "filter" => passes(p, &t.value),
            [Argument::Predicate(p)] => self.where_predicate(step, t, &t.value, p),
            [start, Argument::Predicate(p)] => match self.scope(&string(start)?, t) {
                Some(value) => self.where_predicate(step, t, &value, p),
                None => Ok(false),
            },
            other => unsupported(format!("where({other:?})")),
        }
    }

    /// `where(P)` compares the values of labels and side effects, both after their `by`. If an operand has no value, also
    /// one that the result does not depend on, the traverser does not pass.
    fn where_predicate(
        &mut self,
        step: &Step<'_>,
        t: &Traverser,
        left: &Value,
        predicate: &mangrove_gremlin::Predicate,
    ) -> Outcome<bool> {
        let Some(left) = self.by(round_robin(&step.by, 0), &t.holding(left.clone()))? else { return Ok(false) };
        let mut values = Vec::new();
        for operand in operands(predicate) {
            let Some(value) = self.scope(&string(operand)?, t) else { return Ok(false) };
            let Some(value) = self.by(round_robin(&step.by, 1), &t.holding(value))? else { return Ok(false) };
            values.push((operand, value));
        }
        passes_with(predicate, &left, &mut |operand| {
            let known = values.iter().find(|(known, _)| std::ptr::eq(*known, operand));
            Ok(known.expect("every operand has a value").1.clone())
        })
    }

    /// A child of `where` or `match`: `as("a")` at its beginning is its start; `as("b")` at its end is the value it
    /// must reach.
    pub(crate) fn where_child(&mut self, child: &Bytecode, t: &Traverser) -> Outcome<bool> {
        if let [only] = child.steps.as_slice()
            && matches!(only.name.as_str(), "and" | "or" | "not")
        {
            return self.where_connective(only, t);
        }
        let label_of = |i: Option<&Instruction>| match i {
            Some(i) if i.name == "as" => i.arguments.first().map(string).transpose(),
            _ => Ok(None),
        };
        let (start, end) = (label_of(child.steps.first())?, label_of(child.steps.last())?);
        let start_count = usize::from(start.is_some());
        let end = end.filter(|_| child.steps.len() > start_count);
        let begin = match &start {
            None => t.clone(),
            Some(label) => match self.scope(label, t) {
                Some(value) => t.holding(value),
                None => return Ok(false),
            },
        };
        let until = child.steps.len() - usize::from(end.is_some());
        let inner = Bytecode { source: Vec::new(), steps: child.steps[start_count..until].to_vec() };
        let reached = self.local_child(&inner, &begin)?;
        match end {
            None => Ok(!reached.is_empty()),
            Some(label) => match self.scope(&label, t) {
                Some(target) => Ok(reached.iter().any(|r| equal(&r.value, &target))),
                None => Ok(false),
            },
        }
    }

    fn where_connective(&mut self, instruction: &Instruction, t: &Traverser) -> Outcome<bool> {
        // The first operand that decides the result ends the test.
        let stop_at = instruction.name != "and";
        for argument in &instruction.arguments {
            if self.where_child(super::step::traversal(argument)?, t)? == stop_at {
                return Ok(instruction.name == "or");
            }
        }
        Ok(instruction.name != "or")
    }

    /// `none(P)` passes collections without a member that passes, and drops all other objects.
    pub(crate) fn none_of(&mut self, step: &Step<'_>, t: &Traverser) -> Outcome<bool> {
        let (Argument::Predicate(p), Some(members)) = (step.argument(0)?, super::local::members(&t.value)) else {
            return Ok(false);
        };
        for member in members {
            if passes(p, &member)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// `dedup()` keeps the first of equivalent objects. With labels it compares their objects, with `by` its values.
    pub(crate) fn dedup(&mut self, step: &Step<'_>, input: Stream) -> Outcome<Stream> {
        let labels = step.names()?;
        let mut seen = self.met.remove(&step.at).unwrap_or_default();
        let kept = self.filter(input, |this, t| {
            let subjects = if labels.is_empty() {
                vec![t.value.clone()]
            } else {
                match labels.iter().map(|l| this.scope(l, t)).collect() {
                    Some(subjects) => subjects,
                    None => return Ok(false),
                }
            };
            let mut key = Vec::new();
            for subject in subjects {
                let on = if labels.is_empty() { t.clone() } else { t.holding(subject) };
                match this.by(round_robin(&step.by, 0), &on)? {
                    Some(made) => key.push(made),
                    None => return Ok(false),
                }
            }
            let same = |old: &Vec<Value>| old.iter().zip(&key).all(|(a, b)| equivalent(a, b));
            let is_new = !seen.iter().any(same);
            if is_new {
                seen.push(key);
            }
            Ok(is_new)
        });
        // In a loop, the object is met again.
        self.met.insert(step.at, seen);
        kept
    }

    /// `order()` is stable. It drops a traverser if a `by` is unproductive for it.
    pub(crate) fn order(&mut self, step: &Step<'_>, input: Stream) -> Outcome<Stream> {
        let mut keyed = Vec::new();
        for t in input {
            if let Some(key) = self.order_key(step, &t)? {
                keyed.push((key, t));
            }
        }
        keyed.sort_by(|(a, _), (b, _)| compare_keys(a, b));
        Ok(keyed.into_iter().map(|(_, t)| t).collect())
    }

    /// `order(local)`: a list of the members, or a map with sorted entries.
    pub(crate) fn order_local(&mut self, step: &Step<'_>, t: &Traverser) -> Outcome<Option<Value>> {
        let parts: Vec<Traverser> = match &t.value {
            Value::Map(entries) => {
                entries.iter().map(|e| Traverser { is_entry: true, ..t.holding(Value::map(vec![e.clone()])) }).collect()
            }
            value => match super::local::members(value) {
                Some(members) => members.into_iter().map(|m| t.holding(m)).collect(),
                None => return Ok(Some(t.value.clone())),
            },
        };
        let sorted = self.order(step, parts)?.into_iter().map(|part| part.value);
        Ok(Some(match &t.value {
            Value::Map(_) => Value::map(
                sorted
                    .flat_map(|entry| match entry {
                        Value::Map(one) => one.to_vec(),
                        _ => Vec::new(),
                    })
                    .collect(),
            ),
            _ => Value::list(sorted.collect()),
        }))
    }

    fn order_key(&mut self, step: &Step<'_>, t: &Traverser) -> Outcome<Option<Vec<(Value, bool)>>> {
        let identity: [&[Argument]; 1] = [&[]];
        let by = if step.by.is_empty() { &identity[..] } else { &step.by };
        let mut key = Vec::new();
        for arguments in by {
            let descending = match arguments.last() {
                Some(Argument::Order(Order::Shuffle)) => return unsupported("Order.shuffle"),
                Some(Argument::Order(direction)) => *direction == Order::Desc,
                _ => false,
            };
            match self.by(arguments, t)? {
                Some(value) => key.push((value, descending)),
                None => return Ok(None),
            }
        }
        Ok(Some(key))
    }
}

fn compare_keys(a: &[(Value, bool)], b: &[(Value, bool)]) -> Ordering {
    let one = |((a, descending), (b, _)): (&(Value, bool), &(Value, bool))| {
        if *descending { order(b, a) } else { order(a, b) }
    };
    a.iter().zip(b).map(one).find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
}

/// `limit`, `range`, `skip` and `tail` over the whole stream.
pub(crate) fn range(step: &Step<'_>, input: Stream) -> Outcome<Stream> {
    let kept = bounds(step, input.len())?;
    Ok(input.into_iter().skip(kept.start).take(kept.len()).collect())
}

/// The range of items, out of this many, that the step keeps.
pub(crate) fn bounds(step: &Step<'_>, length: usize) -> Outcome<std::ops::Range<usize>> {
    let numbers = step.numbers()?;
    let at = |n: i64| if n < 0 { length } else { usize::try_from(n).unwrap_or(length).min(length) };
    let (low, high) = match (step.name, numbers.as_slice()) {
        ("limit", [n]) => (0, at(*n)),
        ("skip", [n]) => (at(*n), length),
        ("range", [low, high]) => (at(*low), at(*high)),
        ("tail", []) => (length.saturating_sub(1), length),
        ("tail", [n]) => (length - at(*n), length),
        (name, _) => return unsupported(format!("{name}() with these arguments")),
    };
    Ok(low..high.max(low))
}

/// `sample(n)`: any n are right, so it keeps the first.
pub(crate) fn sample(step: &Step<'_>, input: Stream) -> Outcome<Stream> {
    let count = usize::try_from(super::step::number(step.argument(0)?)?).unwrap_or(0);
    Ok(input.into_iter().take(count).collect())
}

/// `coin(1.0)` and `coin(0.0)`; any other probability makes the answer random.
pub(crate) fn coin(step: &Step<'_>, input: Stream) -> Outcome<Stream> {
    match step.value(0)? {
        Value::F64(1.0) => Ok(input),
        Value::F64(0.0) => Ok(Vec::new()),
        other => unsupported(format!("coin({other:?})")),
    }
}
