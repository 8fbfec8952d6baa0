//! The traverser: an object, the way it came, and its loop counters.

use mangrove_graph::{PathValue, Value};
use smol_str::SmolStr;

use super::{Outcome, wrong};

/// One `repeat` a traverser is inside of.
#[derive(Clone, Debug)]
pub(crate) struct Loop {
    pub name: Option<SmolStr>,
    pub count: u32,
}

/// A traverser. See the module `interpreter`.
#[derive(Clone, Debug)]
pub(crate) struct Traverser {
    /// The object it stands on.
    pub value: Value,
    /// The objects it stood on, this one last, with the labels of their steps.
    pub path: PathValue,
    /// The repeats it is inside of, outermost first.
    pub loops: Vec<Loop>,
    /// What `sack()` reads; `None` until the step that made the traverser has given it the source's.
    pub sack: Option<Value>,
    /// Whether `value` is an entry of a map (a map of one key) rather than a map: `keys` and `values` then give
    /// the key and the value, not lists of them.
    pub is_entry: bool,
    /// Whether this only gives a start step something to start from: it stands on nothing.
    pub is_unborn: bool,
}

impl Traverser {
    pub fn unborn() -> Self {
        Traverser { is_unborn: true, ..Self::new(Value::Null, Vec::new()) }
    }

    /// A traverser whose way begins here.
    pub fn new(value: Value, loops: Vec<Loop>) -> Self {
        let path = PathValue { objects: vec![value.clone()], labels: vec![Vec::new()] };
        Traverser { value, path, loops, sack: None, is_entry: false, is_unborn: false }
    }

    /// The traverser one object further on its way.
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

    /// The same way and loops, another object in hand; for evaluating a child on something.
    pub fn holding(&self, value: Value) -> Self {
        Traverser { value, is_entry: false, ..self.clone() }
    }

    pub fn label(&mut self, labels: &[SmolStr]) {
        let Some(here) = self.path.labels.last_mut() else { return };
        for label in labels {
            if !here.contains(label) {
                here.push(label.clone());
            }
        }
    }

    /// The objects that bear the label, oldest first.
    pub fn labelled(&self, label: &str) -> Vec<&Value> {
        let bears = |labels: &Vec<SmolStr>| labels.iter().any(|l| l == label);
        self.path.objects.iter().zip(&self.path.labels).filter(|(_, labels)| bears(labels)).map(|(v, _)| v).collect()
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
