//! Which part of a stream is ordered, and which scopes keep the order.
//!
//! - **PLAN-7.** A stream is ordered after `order()`, until a step loses the order or no later step can observe it.
//!   Every run of row-by-row operators in an ordered stream is closed as one scope that returns results in the order of
//!   its input rows ([`Op::Ordered`]). The run ends before an operator that reads the order. `physical/traits.rs` says
//!   which operators read, keep or change it.

use crate::logical::Reduction;
use crate::physical::*;

/// The stages of one pipeline that is being lowered.
pub(super) struct Chain {
    /// The stages so far.
    pub stages: Vec<Stage>,
    /// True if the stream is ordered where the open run begins.
    pub ordered: bool,
    /// The position at which the run of row-by-row stages since the last barrier begins.
    run_start: usize,
}

impl Chain {
    /// An empty chain. `ordered`: the rows that enter it are ordered.
    pub fn new(ordered: bool) -> Self {
        Chain { stages: Vec::new(), ordered, run_start: 0 }
    }

    /// Appends an operator without labels.
    pub fn push(&mut self, operator: Op) {
        self.stages.push(Stage::new(operator));
    }

    /// Inserts the operator after which rows come one at a time, before the stage at `at`.
    pub fn insert_one_by_one(&mut self, at: usize) {
        self.stages.insert(at, Stage::new(Op::OneByOne));
    }

    /// Appends an operator that fills computed columns. Objects without a result get no value, also under
    /// `ProductiveByStrategy`.
    pub fn modulate(&mut self, over: Over, by: Vec<Computation>) {
        let productive = vec![false; by.len()];
        self.push(Op::Modulate(Modulate { over, by, productive, scheduling: Scheduling::default() }));
    }

    /// Ends the run of row-by-row stages of an ordered stream: it becomes a scope that keeps the order (PLAN-7).
    pub fn close_run(&mut self) {
        let run = &self.stages[self.run_start..];
        if run.iter().any(|s| s.operator.is_branch() && s.operator.keeps_state()) {
            // A barrier in a branch sees all rows, so there cannot be an instance for each row. Its results have no
            // order to keep.
            self.ordered = false;
        }
        if self.ordered && run.iter().any(|s| s.operator.may_reorder()) {
            let stages = self.stages.split_off(self.run_start);
            let always = stages.iter().any(|s| s.operator.is_branch());
            self.push(Op::Ordered { pipeline: Pipeline { stages }, always });
        }
        self.run_start = self.stages.len();
    }

    /// Looks at the stages that a step has added, from `before` on. If one of them reads the order, ends the run before
    /// it, and works out whether the stream is ordered after them. Otherwise they belong to the open run.
    pub fn track_order(&mut self, before: usize) {
        let Some(at) = (before..self.stages.len()).find(|&i| self.stages[i].operator.reads_order()) else { return };
        let tail = self.stages.split_off(at);
        if tail
            .first()
            .is_some_and(|s| matches!(s.operator, Op::Reduce(Reduction::Count) | Op::GroupCount { side_effect: None }))
        {
            // A count is the same in any order, so the run before it needs no scope.
            self.run_start = self.stages.len();
        } else {
            self.close_run();
        }
        self.stages.extend(tail);
        let sorts = |s: &Stage| matches!(s.operator, Op::Order { .. });
        let keeps = self.stages[self.run_start..].iter().all(|s| s.operator.keeps_order());
        self.ordered = self.stages[self.run_start..].iter().any(sorts) || (self.ordered && keeps);
        self.run_start = self.stages.len();
    }
}
