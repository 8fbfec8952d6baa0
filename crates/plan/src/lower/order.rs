//! Which part of a stream is ordered, and what keeps it so.
//!
//! A stream is ordered behind `order()` until a step loses the order or nobody can tell it any more. Runs of
//! row-by-row operators in an ordered stream become one scope that puts results back in the order of the
//! rows they come from ([`Op::Ordered`]); a run ends where an operator reads the order.

use crate::logical::Reduction;
use crate::physical::*;

/// The stages of one chain, and whether the stream at its end is ordered.
pub(super) struct Chain {
    pub stages: Vec<Stage>,
    pub ordered: bool,
    /// Where the run of row-by-row stages since the last ordering barrier begins.
    run: usize,
}

impl Chain {
    /// An empty chain; `ordered`: what enters it is.
    pub fn new(ordered: bool) -> Self {
        Chain { stages: Vec::new(), ordered, run: 0 }
    }

    pub fn push(&mut self, operator: Op) {
        self.stages.push(Stage { operator, labels: Vec::new() });
    }

    pub fn modulate(&mut self, over: Over, by: Vec<SlotBy>) {
        let productive = vec![false; by.len()];
        self.push(Op::Modulate(Modulate { over, by, productive }));
    }

    /// Closes the run of row-by-row stages of an ordered stream: it becomes a scope that keeps the order.
    pub fn close_run(&mut self) {
        let run = &self.stages[self.run..];
        if run.iter().any(|s| s.operator.is_branch() && s.operator.keeps_state()) {
            // A barrier in a branch sees the stream of all rows: they cannot be kept apart, and what comes out
            // has no order to keep.
            self.ordered = false;
        }
        if self.ordered && run.iter().any(|s| s.operator.may_reorder()) {
            let stages = self.stages.split_off(self.run);
            let always = stages.iter().any(|s| s.operator.is_branch());
            self.push(Op::Ordered { pipeline: Pipeline { stages }, always });
        }
        self.run = self.stages.len();
    }

    /// Takes note of the operators that a step added from `before` on.
    pub fn track_order(&mut self, before: usize) {
        let Some(at) = (before..self.stages.len()).find(|&i| self.stages[i].operator.reads_order()) else { return };
        let tail = self.stages.split_off(at);
        if tail
            .first()
            .is_some_and(|s| matches!(s.operator, Op::Reduce(Reduction::Count) | Op::GroupCount { side_effect: None }))
        {
            // Counts are the same in any order: the run before them needs no scope that keeps one.
            self.run = self.stages.len();
        } else {
            self.close_run();
        }
        self.stages.extend(tail);
        let sorts = |s: &Stage| matches!(s.operator, Op::Order { .. });
        let keeps = self.stages[self.run..].iter().all(|s| s.operator.keeps_order());
        self.ordered = self.stages[self.run..].iter().any(sorts) || (self.ordered && keeps);
        self.run = self.stages.len();
    }
}

impl Op {
    /// Whether rows take different ways through it.
    fn is_branch(&self) -> bool {
        matches!(self, Op::Union(_) | Op::Switch { .. } | Op::Repeat(_))
    }

    /// Whether rows may come out in another order than they went in, on several nodes at least.
    fn may_reorder(&self) -> bool {
        matches!(
            self,
            Op::Vertices { .. }
                | Op::Edges { .. }
                | Op::Expand { .. }
                | Op::EdgeVertex(_)
                | Op::Filter(_)
                | Op::HasEdges { .. }
                | Op::Modulate(_)
                | Op::Values(_)
                | Op::Properties(_)
                | Op::ValueMap { .. }
                | Op::PropertyMap { .. }
                | Op::ElementMap { .. }
                | Op::Token(_)
                | Op::Function { .. }
                | Op::Format(_)
                | Op::Local(_)
                | Op::Union(_)
                | Op::Switch { .. }
                | Op::Repeat(_)
        )
    }

    /// Whether its rows hold an object of their own, which belongs to the path; filters, barriers and
    /// branches pass on what came.
    pub(super) fn makes_objects(&self) -> bool {
        match self {
            Op::Local(scope) => matches!(scope.kind, LocalKind::FlatMap { inner_path: false, .. }),
            Op::Group { side_effect, .. } | Op::GroupCount { side_effect } | Op::Tree { side_effect, .. } => {
                side_effect.is_none()
            }
            Op::Identity
            | Op::Filter(_)
            | Op::HasEdges { .. }
            | Op::Is(_)
            | Op::Members(..)
            | Op::Modulate(_)
            | Op::CompareSlots(_)
            | Op::CompareName { .. }
            | Op::Merge
            | Op::PathShape { .. }
            | Op::Discard
            | Op::ReplaceMapValues
            | Op::Order { .. }
            | Op::Dedup { .. }
            | Op::Range { .. }
            | Op::Tail(_)
            | Op::Aggregate(_)
            | Op::Subgraph(_)
            | Op::Barrier { .. }
            | Op::FoldSack(_)
            | Op::Sample(_)
            | Op::Coin(_)
            | Op::TimeLimit(_)
            | Op::Fail(_)
            | Op::SetProperty(_)
            | Op::SetProperties(_)
            | Op::Drop
            | Op::File(_)
            | Op::Union(_)
            | Op::Switch { .. }
            | Op::Repeat(_)
            | Op::Ordered { .. } => false,
            _ => true,
        }
    }

    /// Whether it reads its input's order: the ordered run ends before it.
    fn reads_order(&self) -> bool {
        matches!(
            self,
            Op::Range { .. }
                | Op::Tail(_)
                | Op::Reduce(_)
                | Op::ReduceValues { .. }
                | Op::Dedup { .. }
                | Op::Aggregate(_)
                | Op::Tree { .. }
                | Op::Subgraph(_)
                | Op::Barrier { .. }
                | Op::FoldInto(..)
                | Op::Sample(_)
                | Op::Group { .. }
                | Op::GroupCount { .. }
                | Op::Cap(_)
                | Op::Order { .. }
                | Op::CountExpand { .. }
                | Op::AddVertex { .. }
                | Op::AddEdge { .. }
                | Op::SetProperty(_)
                | Op::SetProperties(_)
                | Op::Upsert(_)
                | Op::Drop
        )
    }

    /// Whether its output is ordered when its input was.
    fn keeps_order(&self) -> bool {
        !matches!(
            self,
            Op::Reduce(_)
                | Op::ReduceValues { .. }
                | Op::Group { .. }
                | Op::GroupCount { .. }
                | Op::Tree { .. }
                | Op::FoldInto(..)
                | Op::Cap(_)
                | Op::CountExpand { .. }
        )
    }
}
