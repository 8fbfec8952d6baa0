//! Steps that read the path: `path`, `simplePath`, `cyclicPath`, `select`; and `project`.

use std::sync::Arc;

use mangrove_graph::compare::equivalent;
use mangrove_graph::{PathValue, Value};
use mangrove_gremlin::{Argument, Bytecode, Pop};

use super::by::{column_of, round_robin};
use super::step::{Step, string};
use super::{Interpreter, Outcome, Traverser, first, unsupported};

impl Interpreter<'_> {
    pub(crate) fn path(&mut self, step: &Step<'_>, t: &Traverser) -> Outcome<Option<Value>> {
        let mut path = segment(step, &t.path)?;
        for (n, object) in path.objects.iter_mut().enumerate() {
            match self.by(round_robin(&step.by, n), &t.holding(object.clone()))? {
                Some(made) => *object = made,
                None => return Ok(None),
            }
        }
        Ok(Some(Value::Path(Arc::new(path))))
    }

    /// `simplePath` keeps paths without a repeated object, `cyclicPath` paths with one.
    pub(crate) fn path_repeats(&mut self, step: &Step<'_>, t: &Traverser) -> Outcome<bool> {
        let Some(Value::Path(path)) = self.path(step, t)? else { return Ok(false) };
        let objects = &path.objects;
        let repeats = (0..objects.len()).any(|i| objects[..i].iter().any(|o| equivalent(o, &objects[i])));
        Ok(repeats == (step.name == "cyclicPath"))
    }

    pub(crate) fn select(&mut self, step: &Step<'_>, t: &Traverser) -> Outcome<Option<Value>> {
        let (pop, rest) = match step.arguments.split_first() {
            Some((Argument::Pop(pop), rest)) => (Some(*pop), rest),
            _ => (None, step.arguments),
        };
        match rest {
            [Argument::Column(column)] => column_of(*column, &t.value, t.is_entry),
            [Argument::Traversal(child)] => self.select_key(pop, child, step, t),
            [one] => match self.selected(pop, &string(one)?, t)? {
                Some(value) => self.by(round_robin(&step.by, 0), &t.holding(value)),
                None => Ok(None),
            },
            several => {
                let mut entries = Vec::new();
                for (n, argument) in several.iter().enumerate() {
                    let name = string(argument)?;
                    let Some(value) = self.selected(pop, &name, t)? else { return Ok(None) };
                    let Some(value) = self.by(round_robin(&step.by, n), &t.holding(value))? else { return Ok(None) };
                    entries.push((Value::String(name), value));
                }
                Ok(Some(Value::map(entries)))
            }
        }
    }

    /// `select(traversal)`: the entry of a map under the key that a child returns.
    fn select_key(
        &mut self,
        pop: Option<Pop>,
        child: &Bytecode,
        step: &Step<'_>,
        t: &Traverser,
    ) -> Outcome<Option<Value>> {
        let Some(key) = first(self.local_child(child, t)?) else { return Ok(None) };
        let entry = match &t.value {
            Value::Map(entries) => entries.iter().find(|(known, _)| equivalent(known, &key)).map(|(_, v)| v.clone()),
            _ => None,
        };
        let found = match (entry, &key) {
            (Some(value), _) => Some(value),
            (None, Value::String(name)) => self.selected(pop, name, t)?,
            (None, _) => None,
        };
        match found {
            Some(value) => self.by(round_robin(&step.by, 0), &t.holding(value)),
            None => Ok(None),
        }
    }

    fn selected(&self, pop: Option<Pop>, name: &str, t: &Traverser) -> Outcome<Option<Value>> {
        let labeled: Vec<Value> = t.labeled(name).into_iter().cloned().collect();
        let is_map_key = matches!(&t.value, Value::Map(m) if m.iter().any(|(k, _)| *k == Value::string(name)));
        if is_map_key || self.side_effects.contains_key(name) || labeled.is_empty() {
            return Ok(self.scope(name, t));
        }
        Ok(match pop {
            None | Some(Pop::Last) => labeled.last().cloned(),
            Some(Pop::First) => labeled.first().cloned(),
            Some(Pop::All) => Some(Value::list(labeled)),
            Some(Pop::Mixed) if labeled.len() == 1 => labeled.first().cloned(),
            Some(Pop::Mixed) => Some(Value::list(labeled)),
        })
    }

    pub(crate) fn project(&mut self, step: &Step<'_>, t: &Traverser) -> Outcome<Option<Value>> {
        let mut entries = Vec::new();
        for (n, name) in step.names()?.into_iter().enumerate() {
            // A key whose modulator is unproductive is left out.
            let made = self.by(round_robin(&step.by, n), t)?;
            entries.extend(made.map(|value| (Value::String(name), value)));
        }
        Ok(Some(Value::map(entries)))
    }
}

/// The part of a path from one label to another, each where it stands last.
fn segment(step: &Step<'_>, path: &PathValue) -> Outcome<PathValue> {
    let place = |label: Option<&Argument>| {
        let Some(label) = label.map(string).transpose()? else { return Ok(None) };
        match path.labels.iter().rposition(|labels| labels.contains(&label)) {
            Some(at) => Ok(Some(at)),
            None => unsupported(format!("a way without the label {label}")),
        }
    };
    let from = place(step.from)?.unwrap_or(0);
    let to = place(step.to)?.map_or(path.objects.len(), |at| at + 1);
    let range = from..to.max(from);
    Ok(PathValue { objects: path.objects[range.clone()].to_vec(), labels: path.labels[range].to_vec() })
}
