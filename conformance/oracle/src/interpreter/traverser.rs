//! The traverser: an object, its path, its loop counters and its sack.

use mangrove_graph::{PathValue, Value};
use smol_str::SmolStr;

use super::{Outcome, wrong};

/// One `repeat` around a traverser.
#[derive(Clone, Debug)]
pub(crate) struct Loop {
    pub name: Option<SmolStr>,
    pub count: u32,
}

/// A traverser: an object on its way through the steps.
#[derive(Clone, Debug)]
pub(crate) struct Traverser {
    /// The current object.
    pub value: Value,
    /// The objects of the path, the current one last, with the labels of their steps.
    pub path: PathValue,
    /// The enclosing repeats, outermost first.
    pub loops: Vec<Loop>,
    /// The sack; `None` until the step that makes the traverser has set the source's initial value.
    pub sack: Option<Value>,
    /// True if `value` is an entry of a map, represented as a map of one key. `keys` and `values` of an entry are its
    /// key and its value, not lists.
    pub is_entry: bool,
    /// True for the traverser from which a start step begins; it has no object.
    pub is_unborn: bool,
}

impl Traverser {
    /// The traverser from which a start step begins.
    pub fn unborn() -> Self {
        Traverser { is_unborn: true, ..Self::new(Value::Null, Vec::new()) }
    }

    /// A traverser whose path begins here.
    pub fn new(value: Value, loops: Vec<Loop>) -> Self {
        let path = PathValue { objects: vec![value.clone()], labels: vec![Vec::new()] };
        Traverser { value, path, loops, sack: None, is_entry: false, is_unborn: false }
    }

    /// The traverser with one more object on its path. An unborn one begins its path there.
    pub fn moved_to(&self, value: Value) -> Self {
        if self.is_unborn {
            return Traverser { sack: self.sack.clone(), ..Self::new(value, self.loops.clone()) };
        }
        let mut next = self.clone();
        next.is_entry = false;
        next.path.objects.push(value.clone());
        next.path.labels.push(Vec::new());
        next.value = value;
        next
    }

    /// The same path and loops with another object, to evaluate a child on that object.
    pub fn holding(&self, value: Value) -> Self {
        Traverser { value, is_entry: false, ..self.clone() }
    }

    /// Adds labels to the last object of the path, each once.
    pub fn label(&mut self, labels: &[SmolStr]) {
        let Some(here) = self.path.labels.last_mut() else { return };
        for label in labels {
            if !here.contains(label) {
                here.push(label.clone());
            }
        }
    }

    /// The objects with this label, oldest first.
    pub fn labeled(&self, label: &str) -> Vec<&Value> {
        let has_label = |labels: &Vec<SmolStr>| labels.iter().any(|l| l == label);
        self.path
            .objects
            .iter()
            .zip(&self.path.labels)
            .filter(|(_, labels)| has_label(labels))
            .map(|(v, _)| v)
            .collect()
    }

    /// Completed iterations of the innermost repeat, or of the named one.
    pub fn loop_count(&self, name: Option<SmolStr>) -> Outcome<i32> {
        let found = match &name {
            None => self.loops.last(),
            Some(_) => self.loops.iter().rev().find(|l| l.name == name),
        };
        match (found, name) {
            (Some(l), _) => Ok(i32::try_from(l.count).unwrap_or(i32::MAX)),
            (None, None) => Ok(0),
            (None, Some(name)) => wrong(format!("there is no repeat() named {name} around loops()")),
        }
    }
}
