//! `group`, `groupCount`, `aggregate`, `cap`: steps that gather, into a result or into a side effect.

use mangrove_graph::Value;
use mangrove_graph::compare::equivalent;
use mangrove_gremlin::{Argument, Bytecode};
use smol_str::SmolStr;

use super::by::round_robin;
use super::step::Step;
use super::{Groups, Interpreter, Outcome, Stream, Traverser, first, unsupported, values, wrong};

impl Interpreter<'_> {
    pub(crate) fn group_step(&mut self, step: &Step<'_>, input: Stream) -> Outcome<Stream> {
        let arity = if step.name == "group" { 2 } else { 1 };
        if step.by.len() > arity {
            return wrong(format!("{}() takes at most {arity} by()", step.name));
        }
        let Some(name) = step.name_argument(0)? else {
            let groups = self.members_by_key(step, Groups::new(), &input)?;
            let entries = self.reduce_groups(step, groups)?;
            return Ok(vec![Traverser::new(Value::map(entries), Vec::new())]);
        };
        // A step that runs again adds to its groups.
        let known = self.groups.get(&name).cloned().unwrap_or_default();
        let groups = self.members_by_key(step, known, &input)?;
        self.groups.insert(name.clone(), groups.clone());
        let entries = self.reduce_groups(step, groups)?;
        self.side_effects.insert(name, Value::map(entries));
        Ok(input)
    }

    /// Adds the traversers to the known groups by key. A traverser without a key is left out.
    fn members_by_key(&mut self, step: &Step<'_>, mut groups: Groups, input: &Stream) -> Outcome<Groups> {
        for t in input {
            let Some(key) = self.by(step.by.first().copied().unwrap_or(&[]), t)? else { continue };
            match groups.iter_mut().find(|(k, _)| equivalent(k, &key)) {
                Some((_, members)) => members.push(t.clone()),
                None => groups.push((key, vec![t.clone()])),
            }
        }
        Ok(groups)
    }

    fn reduce_groups(&mut self, step: &Step<'_>, groups: Groups) -> Outcome<Vec<(Value, Value)>> {
        let mut entries = Vec::new();
        for (key, members) in groups {
            let value = match (step.name, step.by.get(1)) {
                ("groupCount", _) => Some(Value::I64(members.len() as i64)),
                (_, Some([Argument::Traversal(child)])) => {
                    if !ends_in_a_reduction(child) {
                        return unsupported("group().by(…).by(traversal) without a reduction at its end");
                    }
                    // Each group is a stream of its own.
                    let outer = std::mem::take(&mut self.met);
                    let made = self.child(child, members);
                    self.met = outer;
                    first(made?)
                }
                // Here a key stands for all its values, and `ProductiveByStrategy` does not replace a missing value by
                // null.
                (_, Some([Argument::Value(Value::String(key))])) => {
                    let mut made = Vec::new();
                    for t in &members {
                        made.extend(self.values_of_key(key, &t.value)?);
                    }
                    Some(Value::list(made))
                }
                (_, modulator) => {
                    let mut made = Vec::new();
                    for t in &members {
                        made.extend(self.productive_or_not(modulator.copied().unwrap_or(&[]), t)?);
                    }
                    Some(Value::list(made))
                }
            };
            entries.extend(value.map(|value| (key, value)));
        }
        Ok(entries)
    }

    pub(crate) fn aggregate(&mut self, step: &Step<'_>, input: Stream) -> Outcome<Stream> {
        let name = super::step::string(step.argument(0)?)?;
        let mut made = Vec::new();
        for t in &input {
            made.extend(self.by(round_robin(&step.by, 0), t)?);
        }
        let old = self.side_effects.get(&name).cloned();
        let reducer = self.source.reducers.iter().find(|(known, _)| *known == name).map(|(_, operator)| *operator);
        let gathered = match (old, reducer) {
            (Some(old), Some(operator)) => super::sack::fold_all(operator, old, made)?,
            (Some(Value::BulkSet(old)), None) => {
                let all = old.iter().cloned().chain(made.into_iter().map(|value| (value, 1)));
                Value::BulkSet(all.collect::<Vec<_>>().into())
            }
            (Some(old @ (Value::List(_) | Value::Set(_))), None) => {
                super::sack::fold(mangrove_gremlin::Operator::AddAll, &old, &Value::list(made))?
            }
            (None, _) => Value::BulkSet(made.into_iter().map(|value| (value, 1)).collect::<Vec<_>>().into()),
            (Some(other), None) => return wrong(format!("aggregate() into a {}", other.type_name())),
        };
        self.side_effects.insert(name, gathered);
        Ok(input)
    }

    pub(crate) fn cap(&mut self, step: &Step<'_>) -> Outcome<Stream> {
        let names = step.names()?;
        let mut found: Vec<(SmolStr, Value)> = Vec::new();
        for name in &names {
            match self.side_effects.get(name) {
                Some(value) => found.push((name.clone(), value.clone())),
                None => return wrong(format!("no step of this traversal has the side effect {name}")),
            }
        }
        let value = match found.len() {
            1 => found.swap_remove(0).1,
            _ => Value::map(found.into_iter().map(|(k, v)| (Value::String(k), v)).collect()),
        };
        Ok(vec![Traverser::new(value, Vec::new())])
    }

    /// The value of a name: a key of the current map, else a side effect, else the last object with that label on the
    /// path.
    pub(crate) fn scope(&self, name: &str, t: &Traverser) -> Option<Value> {
        if let Value::Map(entries) = &t.value
            && let Some((_, value)) = entries.iter().find(|(k, _)| matches!(k, Value::String(k) if k == name))
        {
            return Some(value.clone());
        }
        self.side_effects.get(name).cloned().or_else(|| t.labeled(name).last().map(|v| (*v).clone()))
    }

    pub(crate) fn coalesce(&mut self, step: &Step<'_>, t: &Traverser) -> Outcome<Vec<Value>> {
        for at in 0..step.arguments.len() {
            let out = self.local_child(step.traversal(at)?, t)?;
            if !out.is_empty() {
                return Ok(values(out));
            }
        }
        Ok(Vec::new())
    }
}

/// Without a reduction, it is unspecified which value a group keeps.
fn ends_in_a_reduction(child: &Bytecode) -> bool {
    let reduces =
        |name: &str| matches!(name, "count" | "sum" | "min" | "max" | "mean" | "fold" | "group" | "groupCount");
    child.steps.iter().any(|i| reduces(&i.name) && !matches!(i.arguments.first(), Some(Argument::Scope(_))))
}
