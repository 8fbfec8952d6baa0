//! Walking a logical traversal with everything nested in it.

use crate::expression::Part;
use crate::logical::{Argument, By, ChooseOn, Emit, Endpoint, PropertyArgument, Step, StepNode, Traversal, Until};
use crate::upsert::MergeFrom;

impl Traversal {
    /// Calls `f` for every step, those of nested traversals after their own.
    pub fn visit(&self, f: &mut dyn FnMut(&StepNode)) {
        for node in &self.steps {
            f(node);
            node.step.for_each_child(&mut |child| child.visit(f));
        }
    }

    /// Whether a step for which `f` holds stands in it at any depth.
    pub fn any(&self, f: impl Fn(&Step) -> bool) -> bool {
        let mut found = false;
        self.visit(&mut |node| found |= f(&node.step));
        found
    }

    /// Whether it writes, to the graph or to a file.
    pub fn is_mutating(&self) -> bool {
        self.any(|s| {
            matches!(
                s,
                Step::AddVertex { .. }
                    | Step::AddEdge { .. }
                    | Step::Upsert(_)
                    | Step::Property(_)
                    | Step::Drop
                    | Step::File(_)
            )
        })
    }

    /// Whether a step of it adds to a side effect.
    pub fn fills_side_effects(&self) -> bool {
        self.any(Step::fills_side_effect)
    }

    /// Whether it calls services.
    pub fn calls_services(&self) -> bool {
        self.any(|s| matches!(s, Step::Call { .. }))
    }

    /// Whether it reads or writes a file.
    pub fn uses_files(&self) -> bool {
        self.any(|s| matches!(s, Step::File(_)))
    }

    /// Whether its operators share side effects, inside the graph's process or beyond (services).
    pub fn uses_side_effects(&self) -> bool {
        self.fills_side_effects()
            || self.any(|s| match s {
                // A service is called once, not once a node.
                Step::Cap(_) | Step::Call { .. } => true,
                // A limit of time is one clock's, and nobody may ask twice.
                Step::TimeLimit(_) => true,
                // Chance is drawn in one order.
                Step::Sample(..) | Step::Coin(_) | Step::Local(crate::logical::LocalFunction::Sample(_)) => true,
                _ => false,
            })
    }
}

impl Step {
    /// Returns true if it adds to a side effect by itself.
    pub fn fills_side_effect(&self) -> bool {
        match self {
            Step::Aggregate { .. } | Step::Subgraph(_) => true,
            Step::Group { side_effect, .. } | Step::GroupCount { side_effect, .. } | Step::Tree { side_effect, .. } => {
                side_effect.is_some()
            }
            _ => false,
        }
    }

    /// Calls `f` for every traversal nested directly in the step.
    pub fn for_each_child<'a>(&'a self, f: &mut dyn FnMut(&'a Traversal)) {
        match self {
            Step::AddVertex { label, properties, id } => {
                argument(label, f);
                properties.iter().for_each(|p| property(p, f));
                id.iter().for_each(|a| argument(a, f));
            }
            Step::AddEdge { label, from, to, properties, id } => {
                argument(label, f);
                for end in [from, to].into_iter().flatten() {
                    if let Endpoint::Traversal(t) = end {
                        f(t);
                    }
                }
                properties.iter().for_each(|p| property(p, f));
                id.iter().for_each(|a| argument(a, f));
            }
            Step::Upsert(upsert) => {
                for map in upsert.maps() {
                    if let MergeFrom::Whole(whole) = &map.from {
                        argument(whole, f);
                    }
                }
            }
            Step::Property(p) => property(p, f),
            Step::WherePredicate { by, .. }
            | Step::Dedup { by, .. }
            | Step::PathShape { by, .. }
            | Step::Path { by, .. }
            | Step::Tree { by, .. }
            | Step::Select { by, .. }
            | Step::Project { by, .. } => by.iter().for_each(|b| modulator(b, f)),
            Step::ValueMap { by, shown, .. } | Step::PropertyMap { by, shown, .. } => {
                by.iter().for_each(|b| modulator(b, f));
                shown.iter().for_each(|shown| f(shown));
            }
            Step::ElementMap { shown, .. } => shown.iter().for_each(|shown| f(shown)),
            Step::Math { by, .. } | Step::Format { by, .. } => by.iter().for_each(|b| modulator(b, f)),
            Step::Call { arguments, .. } => arguments.iter().for_each(|(_, a)| argument(a, f)),
            Step::Function { arguments, .. } => arguments.iter().for_each(|a| argument(a, f)),
            Step::Aggregate { by, .. } => modulator(by, f),
            Step::Group { key, value, .. } => {
                modulator(key, f);
                value.iter().for_each(|b| modulator(b, f));
            }
            Step::GroupCount { key, .. } => modulator(key, f),
            Step::FoldSack(_, by) | Step::Sample(_, by) => modulator(by, f),
            Step::SelectKey { key, by, .. } => {
                f(key);
                by.iter().for_each(|b| modulator(b, f));
            }
            Step::Order(criteria) => criteria.iter().for_each(|c| modulator(&c.by, f)),
            Step::Local(crate::logical::LocalFunction::Order(criteria)) => {
                criteria.iter().for_each(|c| modulator(&c.by, f));
            }
            Step::FilterTraversal(_, ts) | Step::Union(ts) | Step::Coalesce(ts) => ts.iter().for_each(f),
            Step::Map { traversal, .. } => f(traversal),
            Step::LocalTraversal(t) | Step::SideEffect(t) | Step::Optional(t) => f(t),
            Step::Choose(choose) => {
                if let ChooseOn::Exists(t) | ChooseOn::Value(t) = &choose.on {
                    f(t);
                }
                choose.options.iter().for_each(|(_, t)| f(t));
            }
            Step::Repeat(repeat) => {
                f(&repeat.body);
                if let Some(Until::Traversal(t)) = &repeat.until {
                    f(t);
                }
                if let Some(Emit::Traversal(t)) = &repeat.emit {
                    f(t);
                }
            }
            _ => {}
        }
    }

    /// The step labels (or side effects) that the step reads.
    pub fn names_read(&self) -> Vec<&crate::logical::Name> {
        match self {
            Step::WherePredicate { start, test, .. } => start.iter().chain(test.names()).collect(),
            Step::Dedup { labels, .. } | Step::Select { labels, .. } => labels.iter().collect(),
            Step::Math { variables, .. } => variables.iter().filter(|name| *name != "_").collect(),
            Step::Format { parts, .. } => parts
                .iter()
                .filter_map(|part| match part {
                    Part::Name(name) => Some(name),
                    _ => None,
                })
                .collect(),
            Step::AddEdge { from, to, .. } => [from, to]
                .into_iter()
                .flatten()
                .filter_map(|end| match end {
                    Endpoint::Label(name) => Some(name),
                    _ => None,
                })
                .collect(),
            _ => Vec::new(),
        }
    }
}

fn argument<'a>(argument: &'a Argument, f: &mut dyn FnMut(&'a Traversal)) {
    if let Argument::Traversal(t) = argument {
        f(t);
    }
}

fn property<'a>(property: &'a PropertyArgument, f: &mut dyn FnMut(&'a Traversal)) {
    property.key_from.iter().for_each(|key| f(key));
    argument(&property.value, f);
    property.meta.iter().for_each(|(_, value)| argument(value, f));
}

fn modulator<'a>(by: &'a By, f: &mut dyn FnMut(&'a Traversal)) {
    if let By::Traversal(t) = by {
        f(t);
    }
}
