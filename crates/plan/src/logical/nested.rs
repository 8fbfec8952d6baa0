//! The traversals nested in a step (PLAN-2).
//!
//! One match, written as a macro, serves shared and exclusive references. It has no default arm, so a new step must say
//! here which traversals are nested in it.

use super::upsert::MergeFrom;
use super::{
    Argument, By, ChooseOn, Emit, Endpoint, LocalFunction, OrderBy, PropertyArgument, Step, StepNode, Traversal, Until,
};

/// The traversers for which a nested traversal runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enters {
    /// All that come to the step, together: a barrier in the nested traversal sees the whole stream.
    Stream,
    /// Each traverser by itself.
    EachTraverser,
    /// Each traverser by itself, and it only matters whether there is a result.
    EachAsked,
}

impl Enters {
    /// Returns true if all traversers enter together.
    pub fn is_stream(self) -> bool {
        self == Enters::Stream
    }

    /// Returns true if each traverser enters by itself.
    pub fn is_each(self) -> bool {
        !self.is_stream()
    }
}

/// Defines a function that calls another one for every traversal nested directly in a step.
macro_rules! define_visitor {
    ($(#[$doc:meta])* $name:ident, $iter:ident, $as_deref:ident, $maps:ident, [$($mutability:tt)?]) => {
        $(#[$doc])*
        pub fn $name<'a>(&'a $($mutability)? self, visit: &mut dyn FnMut(Enters, &'a $($mutability)? Traversal)) {
            use Enters::{EachAsked, EachTraverser, Stream};

            fn argument<'a>(
                argument: &'a $($mutability)? Argument,
                visit: &mut dyn FnMut(Enters, &'a $($mutability)? Traversal),
            ) {
                match argument {
                    Argument::Traversal(nested) => visit(EachTraverser, nested),
                    Argument::Operand(_) => {}
                }
            }

            fn modulator<'a>(by: &'a $($mutability)? By, visit: &mut dyn FnMut(Enters, &'a $($mutability)? Traversal)) {
                match by {
                    By::Traversal(nested) => visit(EachTraverser, nested),
                    By::Identity | By::Key(_) | By::Token(_) | By::Column(_) => {}
                }
            }

            fn property<'a>(
                property: &'a $($mutability)? PropertyArgument,
                visit: &mut dyn FnMut(Enters, &'a $($mutability)? Traversal),
            ) {
                property.key_from.$as_deref().into_iter().for_each(|key| visit(EachTraverser, key));
                argument(&$($mutability)? property.value, visit);
                property.meta.$iter().for_each(|(_, value)| argument(value, visit));
            }

            fn criterion<'a>(
                criterion: &'a $($mutability)? OrderBy,
                visit: &mut dyn FnMut(Enters, &'a $($mutability)? Traversal),
            ) {
                modulator(&$($mutability)? criterion.by, visit);
            }

            match self {
                Step::AddVertex { label, properties, id } => {
                    argument(label, visit);
                    properties.$iter().for_each(|given| property(given, visit));
                    id.$iter().for_each(|id| argument(id, visit));
                }
                Step::AddEdge { label, from, to, properties, id } => {
                    argument(label, visit);
                    for end in [from, to].into_iter().flatten() {
                        match end {
                            Endpoint::Traversal(nested) => visit(EachTraverser, nested),
                            Endpoint::Label(_) | Endpoint::Id(_) => {}
                        }
                    }
                    properties.$iter().for_each(|given| property(given, visit));
                    id.$iter().for_each(|id| argument(id, visit));
                }
                Step::Upsert(upsert) => {
                    for map in upsert.$maps() {
                        match &$($mutability)? map.from {
                            MergeFrom::Whole(whole) => argument(whole, visit),
                            MergeFrom::Entries(_) => {}
                        }
                    }
                }
                Step::Property(given) => property(given, visit),
                Step::WherePredicate { by, .. }
                | Step::Dedup { by, .. }
                | Step::PathShape { by, .. }
                | Step::Path { by, .. }
                | Step::Tree { by, .. }
                | Step::Select { by, .. }
                | Step::Project { by, .. }
                | Step::Math { by, .. }
                | Step::Format { by, .. } => by.$iter().for_each(|by| modulator(by, visit)),
                Step::ValueMap { by, shown, .. } | Step::PropertyMap { by, shown, .. } => {
                    by.$iter().for_each(|by| modulator(by, visit));
                    shown.$as_deref().into_iter().for_each(|shown| visit(EachTraverser, shown));
                }
                Step::ElementMap { shown, .. } => {
                    shown.$as_deref().into_iter().for_each(|shown| visit(EachTraverser, shown));
                }
                Step::Call { arguments, .. } => arguments.$iter().for_each(|(_, given)| argument(given, visit)),
                Step::Function { arguments, .. } => arguments.$iter().for_each(|given| argument(given, visit)),
                Step::Aggregate { by, .. } | Step::FoldSack(_, by) | Step::Sample(_, by) => modulator(by, visit),
                Step::Group { key, value, .. } => {
                    modulator(key, visit);
                    value.$iter().for_each(|by| modulator(by, visit));
                }
                Step::GroupCount { key, .. } => modulator(key, visit),
                Step::SelectKey { key, by, .. } => {
                    visit(EachTraverser, key);
                    by.$iter().for_each(|by| modulator(by, visit));
                }
                Step::Order(criteria) | Step::Local(LocalFunction::Order(criteria)) => {
                    criteria.$iter().for_each(|by| criterion(by, visit));
                }
                Step::FilterTraversal(_, operands) => {
                    operands.$iter().for_each(|operand| visit(EachAsked, operand));
                }
                Step::Coalesce(nested) => nested.$iter().for_each(|nested| visit(EachTraverser, nested)),
                Step::Map { traversal: nested, .. }
                | Step::LocalTraversal(nested)
                | Step::SideEffect(nested)
                | Step::Optional(nested) => visit(EachTraverser, nested),
                Step::Union(branches) => branches.$iter().for_each(|branch| visit(Stream, branch)),
                Step::Join { walks, .. } => walks.$iter().for_each(|walk| visit(Stream, walk)),
                Step::Choose(choose) => {
                    let choose = &$($mutability)? **choose;
                    match &$($mutability)? choose.on {
                        ChooseOn::Exists(nested) => visit(EachAsked, nested),
                        ChooseOn::Value(nested) => visit(EachTraverser, nested),
                        ChooseOn::Test(_) => {}
                    }
                    choose.options.$iter().for_each(|(_, option)| visit(Stream, option));
                }
                Step::Repeat(repeat) => {
                    let repeat = &$($mutability)? **repeat;
                    visit(Stream, &$($mutability)? repeat.body);
                    match &$($mutability)? repeat.until {
                        Some(Until::Traversal(nested)) => visit(EachAsked, nested),
                        Some(Until::Times(_) | Until::Test(_)) | None => {}
                    }
                    match &$($mutability)? repeat.emit {
                        Some(Emit::Traversal(nested)) => visit(EachAsked, nested),
                        Some(Emit::Always | Emit::Test(_)) | None => {}
                    }
                }
                Step::Vertices { .. }
                | Step::Edges { .. }
                | Step::Inject(_)
                | Step::VertexProgram(_)
                | Step::ShortestPath(_)
                | Step::File(_)
                | Step::Drop
                | Step::Expand { .. }
                | Step::EdgeVertex(_)
                | Step::Has(_)
                | Step::Is(_)
                | Step::Members { .. }
                | Step::Range { .. }
                | Step::Tail(_)
                | Step::Discard
                | Step::Values(_)
                | Step::Properties(_)
                | Step::Id
                | Step::Label
                | Step::Key
                | Step::PropertyValue
                | Step::Constant(_)
                | Step::Identity
                | Step::Unfold
                | Step::Loops(_)
                | Step::Local(_)
                | Step::SelectColumn(_)
                | Step::Reduce(_)
                | Step::Subgraph(_)
                | Step::Cap(_)
                | Step::Barrier { .. }
                | Step::FoldInto(..)
                | Step::Sack
                | Step::TimeLimit(_)
                | Step::Coin(_)
                | Step::Fail(_) => {}
            }
        }
    };
}

impl Step {
    define_visitor! {
        /// Calls `visit` for every traversal nested directly in the step.
        visit_nested, iter, as_deref, maps, []
    }
    define_visitor! {
        /// As [`Step::visit_nested`]; the traversals may be changed.
        visit_nested_mut, iter_mut, as_deref_mut, maps_mut, [mut]
    }

    /// The traversals nested directly in the step that run for these traversers.
    pub fn nested_for(&self, wanted: impl Fn(Enters) -> bool) -> Vec<&Traversal> {
        let mut found = Vec::new();
        self.visit_nested(&mut |enters, nested| {
            if wanted(enters) {
                found.push(nested);
            }
        });
        found
    }

    /// The traversals nested directly in the step of which only matters whether they have a result.
    pub fn only_asked_whether(&mut self) -> Vec<&mut Traversal> {
        let mut found = Vec::new();
        self.visit_nested_mut(&mut |enters, nested| {
            if enters == Enters::EachAsked {
                found.push(nested);
            }
        });
        found
    }
}

impl Traversal {
    /// Calls `f` for every step at any depth. A step comes before the steps nested in it.
    pub fn visit<'a>(&'a self, f: &mut dyn FnMut(&'a StepNode)) {
        for node in &self.steps {
            f(node);
            node.step.visit_nested(&mut |_, nested| nested.visit(f));
        }
    }

    /// Returns true if `f` holds for a step at any depth.
    pub fn any(&self, f: impl Fn(&Step) -> bool) -> bool {
        let mut found = false;
        self.visit(&mut |node| found = found || f(&node.step));
        found
    }
}
