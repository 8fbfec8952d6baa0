//! The pipelines nested in an operator (PLAN-5).
//!
//! One match, written as a macro, serves shared and exclusive references. It has no default arm, so a new operator must
//! say here which pipelines are nested in it.

use super::{Computation, LocalKind, LoopTest, Op, Pipeline, TargetAccess};
use crate::logical::ChooseOption;

/// The purpose for which an operator has a nested pipeline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Purpose<'a> {
    /// Its first result goes into a computed column.
    FirstResult,
    /// A computed column gets true if it has a result, else false.
    Existence,
    /// It runs for each row, in a scope instance of the row's own.
    Scope,
    /// It takes all rows.
    Branch,
    /// It takes the rows for which the option matches.
    Option(&'a ChooseOption),
    /// It takes the rows that each iteration of a loop passes to the next.
    Body,
    /// It decides when a row leaves a loop.
    Until,
    /// It decides when a loop emits a row.
    Emit,
    /// It takes the members of a group.
    Members,
    /// It takes all rows and keeps their order.
    Ordered,
    /// It runs instead of the operator on several nodes.
    Instead,
    /// It takes rows instead of the operator on several nodes, or if a run finds that the operator does not suit it.
    Otherwise,
}

impl Purpose<'_> {
    /// Returns true if the pipeline sees the operator's own stream: a barrier in it meets all rows.
    pub fn is_of_stream(self) -> bool {
        match self {
            Purpose::Branch
            | Purpose::Option(_)
            | Purpose::Body
            | Purpose::Ordered
            | Purpose::Instead
            | Purpose::Otherwise => true,
            Purpose::FirstResult
            | Purpose::Existence
            | Purpose::Scope
            | Purpose::Until
            | Purpose::Emit
            | Purpose::Members => false,
        }
    }
}

/// Defines a function that calls another one for every pipeline nested directly in an operator.
macro_rules! define_visitor {
    ($(#[$doc:meta])* $name:ident, $iter:ident, [$($mutability:tt)?]) => {
        $(#[$doc])*
        pub fn $name<'a>(&'a $($mutability)? self, visit: &mut dyn FnMut(Purpose<'a>, &'a $($mutability)? Pipeline)) {
            match self {
                Op::Modulate(modulate) => {
                    for by in modulate.by.$iter() {
                        match by {
                            Computation::First(pipeline) => visit(Purpose::FirstResult, pipeline),
                            Computation::Exists(pipeline) => visit(Purpose::Existence, pipeline),
                            Computation::Identity
                            | Computation::Key(_)
                            | Computation::Priority(_)
                            | Computation::Token(_)
                            | Computation::Column(_)
                            | Computation::Degree(_)
                            | Computation::Test(_) => {}
                        }
                    }
                }
                Op::Local(scope) => match &$($mutability)? scope.kind {
                    LocalKind::Filter(_, pipelines) | LocalKind::FlatMap { pipelines, .. } => {
                        pipelines.$iter().for_each(|pipeline| visit(Purpose::Scope, pipeline));
                    }
                    LocalKind::SideEffect(pipeline) => visit(Purpose::Scope, pipeline),
                },
                Op::Union(branches) => branches.$iter().for_each(|branch| visit(Purpose::Branch, branch)),
                Op::Join { walks, .. } => walks.$iter().for_each(|walk| visit(Purpose::Branch, walk)),
                Op::Switch { options, .. } => {
                    options.$iter().for_each(|(when, option)| visit(Purpose::Option(when), option));
                }
                Op::Repeat(repeat) => {
                    let repeat = &$($mutability)? **repeat;
                    visit(Purpose::Body, &$($mutability)? repeat.body);
                    for (purpose, test) in [
                        (Purpose::Until, &$($mutability)? repeat.until),
                        (Purpose::Emit, &$($mutability)? repeat.emit),
                    ] {
                        match test {
                            Some(LoopTest::Exists(pipeline)) => visit(purpose, pipeline),
                            Some(LoopTest::Always | LoopTest::Times(_) | LoopTest::Test(_)) | None => {}
                        }
                    }
                }
                Op::Group { value, .. } => visit(Purpose::Members, value),
                Op::CountPattern(count) => visit(Purpose::Instead, &$($mutability)? count.rows),
                Op::BothEnds(search) => {
                    let purpose = match search.found_by {
                        TargetAccess::Ids(_) => Purpose::Instead,
                        TargetAccess::Index(_) => Purpose::Otherwise,
                    };
                    visit(purpose, &$($mutability)? search.one_sided);
                }
                Op::Ordered { pipeline, .. } => visit(Purpose::Ordered, pipeline),
                Op::Vertices { .. }
                | Op::Edges { .. }
                | Op::Inject(_)
                | Op::Call { .. }
                | Op::VertexProgram(_)
                | Op::ShortestPath(_)
                | Op::CountAll { .. }
                | Op::Expand { .. }
                | Op::OptionalExpand { .. }
                | Op::FollowTo { .. }
                | Op::HasEdgeTo { .. }
                | Op::Intersect { .. }
                | Op::EdgeVertex(_)
                | Op::Filter(_)
                | Op::HasEdges { .. }
                | Op::TestDegrees { .. }
                | Op::Is(_)
                | Op::Members(..)
                | Op::CompareName { .. }
                | Op::MemberOfName { .. }
                | Op::CompareComputed(_)
                | Op::PathShape { .. }
                | Op::Discard
                | Op::Values(_)
                | Op::Properties(_)
                | Op::ValueMap { .. }
                | Op::ReplaceMapValues
                | Op::PropertyMap { .. }
                | Op::ElementMap { .. }
                | Op::Token(_)
                | Op::Constant(_)
                | Op::Identity
                | Op::OneByOne
                | Op::Unfold
                | Op::Loops(_)
                | Op::LocalReduce(_)
                | Op::LocalDedup(_)
                | Op::LocalRange { .. }
                | Op::LocalTail(_)
                | Op::LocalOrder(_)
                | Op::LocalSample(_)
                | Op::Path { .. }
                | Op::SelectName { .. }
                | Op::ComputedMap { .. }
                | Op::Function { .. }
                | Op::Math(_)
                | Op::Format(_)
                | Op::SelectColumn(_)
                | Op::SelectKey(_)
                | Op::Reduce(_)
                | Op::ReduceValues { .. }
                | Op::ReduceMany { .. }
                | Op::CountExpand(_)
                | Op::Order { .. }
                | Op::Dedup { .. }
                | Op::Range { .. }
                | Op::Tail(_)
                | Op::GroupCount { .. }
                | Op::Aggregate(_)
                | Op::Tree { .. }
                | Op::Subgraph(_)
                | Op::Cap(_)
                | Op::Barrier { .. }
                | Op::FoldInto(..)
                | Op::Sack
                | Op::FoldSack(_)
                | Op::Sample(_)
                | Op::TimeLimit(_)
                | Op::Coin(_)
                | Op::Fail(_)
                | Op::Merge
                | Op::AddVertex { .. }
                | Op::AddEdge { .. }
                | Op::Upsert(_)
                | Op::SetProperties(_)
                | Op::SetProperty(_)
                | Op::Drop
                | Op::File(_) => {}
            }
        }
    };
}

impl Op {
    define_visitor! {
        /// Calls `visit` for every pipeline nested directly in the operator.
        visit_nested, iter, []
    }
    define_visitor! {
        /// As [`Op::visit_nested`]; the pipelines may be changed.
        visit_nested_mut, iter_mut, [mut]
    }
}
