//! Steps that look back: `path`, `simplePath`, `cyclicPath`, `select`, and `project` beside them.

use std::sync::Arc;

use mangrove_graph::Value;
use mangrove_graph::compare::equivalent;
use mangrove_gremlin::{Argument, Pop};

use super::by::{column_of, round_robin};
use super::step::{Step, string};
use super::{Interpreter, Outcome, Traverser, unsupported};

impl Interpreter<'_> {
    pub(crate) fn path(&mut self, step: &Step<'_>, t: &Traverser) -> Outcome<Option<Value>> {
        let mut path = t.path.clone();
        for (n, object) in path.objects.iter_mut().enumerate() {
            match self.by(round_robin(&step.by, n), &t.holding(object.clone()))? {
                Some(made) => *object = made,
                None => return Ok(None),
            }
        }
        Ok(Some(Value::Path(Arc::new(path))))
    }

    /// `simplePath` keeps ways without, `cyclicPath` ways with a repeated object.
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
            [Argument::Traversal(_)] => unsupported("select(traversal)"),
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

    fn selected(&self, pop: Option<Pop>, name: &str, t: &Traverser) -> Outcome<Option<Value>> {
        let labelled: Vec<Value> = t.labelled(name).into_iter().cloned().collect();
        let is_map_key = matches!(&t.value, Value::Map(m) if m.iter().any(|(k, _)| *k == Value::string(name)));
        if is_map_key || self.side_effects.contains_key(name) || labelled.is_empty() {
            return Ok(self.scope(name, t));
        }
        Ok(match pop {
            None | Some(Pop::Last) => labelled.last().cloned(),
            Some(Pop::First) => labelled.first().cloned(),
            Some(Pop::All) => Some(Value::list(labelled)),
            Some(Pop::Mixed) if labelled.len() == 1 => labelled.first().cloned(),
            Some(Pop::Mixed) => Some(Value::list(labelled)),
        })
    }

    pub(crate) fn project(&mut self, step: &Step<'_>, t: &Traverser) -> Outcome<Option<Value>> {
        let mut entries = Vec::new();
        for (n, name) in step.names()?.into_iter().enumerate() {
            // A key whose modulator gives nothing is left out.
            let made = self.by(round_robin(&step.by, n), t)?;
            entries.extend(made.map(|value| (Value::String(name), value)));
        }
        Ok(Some(Value::map(entries)))
    }
}
