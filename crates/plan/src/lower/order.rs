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

    /// Lets rows come one at a time to the operators from `at` on.
    pub fn insert_one_by_one(&mut self, at: usize) {
        self.stages.insert(at, Stage { operator: Op::OneByOne, labels: Vec::new() });
    }

    pub fn modulate(&mut self, over: Over, by: Vec<Computation>) {
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
