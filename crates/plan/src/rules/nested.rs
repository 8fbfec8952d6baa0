//! Applying a rule to every chain of a traversal.

use crate::logical::{Argument, By, ChooseOn, Emit, Endpoint, LocalFunction, PropertyArgument, Step, Traversal, Until};
use crate::physical::PathRequirement;
use crate::rules::Rule;
use crate::upsert::MergeFrom;

/// Applies a rule to a chain and all chains nested in it; true if one of them changed.
pub fn apply_everywhere(traversal: &mut Traversal, rule: &Rule, path: &PathRequirement) -> bool {
    let mut changed = (rule.apply)(traversal, path);
    for node in &mut traversal.steps {
        for child in children(&mut node.step) {
            changed |= apply_everywhere(child, rule, path);
        }
    }
    changed
}

/// Calls `f` for every traversal nested directly in the step.
pub fn for_each_child_mut(step: &mut Step, f: &mut dyn FnMut(&mut Traversal)) {
    children(step).into_iter().for_each(f);
}

fn children(step: &mut Step) -> Vec<&mut Traversal> {
    match step {
        Step::AddVertex { label, properties, id } => std::iter::once(label)
            .chain(id)
            .filter_map(argument)
            .chain(properties.iter_mut().flat_map(property))
            .collect(),
        Step::AddEdge { label, from, to, properties, id } => std::iter::once(label)
            .chain(id)
            .filter_map(argument)
            .chain([from, to].into_iter().flatten().filter_map(|end| match end {
                Endpoint::Traversal(t) => Some(&mut **t),
                _ => None,
            }))
            .chain(properties.iter_mut().flat_map(property))
            .collect(),
        Step::Upsert(upsert) => upsert
            .maps_mut()
            .filter_map(|map| match &mut map.from {
                MergeFrom::Whole(whole) => argument(whole),
                MergeFrom::Entries(_) => None,
            })
            .collect(),
        Step::Property(p) => property(p),
        Step::WherePredicate { by, .. }
        | Step::Dedup { by, .. }
        | Step::PathShape { by, .. }
        | Step::Path { by, .. }
        | Step::Tree { by, .. }
        | Step::Select { by, .. }
        | Step::Project { by, .. } => by.iter_mut().filter_map(modulator).collect(),
        Step::ValueMap { by, shown, .. } | Step::PropertyMap { by, shown, .. } => {
            by.iter_mut().filter_map(modulator).chain(shown.as_deref_mut()).collect()
        }
        Step::ElementMap { shown, .. } => shown.as_deref_mut().into_iter().collect(),
        Step::Math { by, .. } | Step::Format { by, .. } => by.iter_mut().filter_map(modulator).collect(),
        Step::Call { arguments, .. } => arguments.iter_mut().filter_map(|(_, given)| argument(given)).collect(),
        Step::Function { arguments, .. } => arguments.iter_mut().filter_map(argument).collect(),
        Step::Aggregate { by, .. } => modulator(by).into_iter().collect(),
        Step::Group { key, value, .. } => std::iter::once(key).chain(value).filter_map(modulator).collect(),
        Step::GroupCount { key, .. } => modulator(key).into_iter().collect(),
        Step::FoldSack(_, by) | Step::Sample(_, by) => modulator(by).into_iter().collect(),
        Step::SelectKey { key, by, .. } => {
            std::iter::once(&mut **key).chain(by.iter_mut().filter_map(modulator)).collect()
        }
        Step::Order(criteria) | Step::Local(LocalFunction::Order(criteria)) => {
            criteria.iter_mut().filter_map(|c| modulator(&mut c.by)).collect()
        }
        Step::FilterTraversal(_, ts) | Step::Union(ts) | Step::Coalesce(ts) => ts.iter_mut().collect(),
        Step::Map { traversal, .. } => vec![traversal],
        Step::LocalTraversal(t) | Step::SideEffect(t) | Step::Optional(t) => vec![t],
        Step::Choose(choose) => {
            let on = match &mut choose.on {
                ChooseOn::Exists(t) | ChooseOn::Value(t) => Some(t),
                ChooseOn::Test(_) => None,
            };
            on.into_iter().chain(choose.options.iter_mut().map(|(_, t)| t)).collect()
        }
        Step::Repeat(repeat) => {
            let until = match &mut repeat.until {
                Some(Until::Traversal(t)) => Some(t),
                _ => None,
            };
            let emit = match &mut repeat.emit {
                Some(Emit::Traversal(t)) => Some(t),
                _ => None,
            };
            std::iter::once(&mut repeat.body).chain(until).chain(emit).collect()
        }
        _ => Vec::new(),
    }
}

fn argument(argument: &mut Argument) -> Option<&mut Traversal> {
    match argument {
        Argument::Traversal(t) => Some(t),
        Argument::Operand(_) => None,
    }
}

fn property(property: &mut PropertyArgument) -> Vec<&mut Traversal> {
    let values = std::iter::once(&mut property.value).chain(property.meta.iter_mut().map(|(_, value)| value));
    property.key_from.as_deref_mut().into_iter().chain(values.filter_map(argument)).collect()
}

fn modulator(by: &mut By) -> Option<&mut Traversal> {
    match by {
        By::Traversal(t) => Some(t),
        _ => None,
    }
}
