//! The operators that open scopes: an instance for each row, or for each iteration of a loop.

use std::num::NonZeroU32;

use super::Pipeline;
use crate::logical::{FilterKind, InstanceOrder, LoopSearch, Operand, ScopePolicy, Test, WorkOrder};

/// A branch scope: an instance for each row.
#[derive(Clone, Debug)]
pub struct LocalScope {
    /// The rows that the scope returns.
    pub kind: LocalKind,
    /// True: instances run one after the other, since an instance must see the writes of the instances before it.
    pub serial: bool,
    /// True: results come out in the order of the rows that went in.
    pub ordered: bool,
    /// Of a filter. True: its answer depends only on the row's object and on side effects, so it is worked out once for
    /// equal rows.
    pub by_object: bool,
    /// Of a filter. True: a row leaves at its first result, before the other rows of its message are decided.
    pub passes_early: bool,
    /// How a row enters that stands for several traversers.
    pub merged: Merged,
    /// The order of the work inside, and the most instances at a time.
    pub scheduling: Scheduling,
    /// `None` if a heavy instance may begin again in a group of its own; otherwise why it may not.
    pub stays_together: Option<&'static str>,
}

/// How a row that stands for several equal traversers enters a branch scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merged {
    /// As one traverser. Its results count for all of them.
    AsOne,
    /// Together, in one instance that knows their number.
    Together,
    /// One after the other, each traverser in an instance of its own.
    Apart,
}

/// The rows that a branch scope returns.
#[derive(Clone, Debug)]
pub enum LocalKind {
    /// The row itself, if the pipelines decide so. They run at the same time; a pipeline is cancelled at its first
    /// result.
    Filter(FilterKind, Vec<Pipeline>),
    /// The results of the first pipeline that has any. Pipelines are tried one after the other.
    FlatMap {
        /// The pipelines.
        pipelines: Vec<Pipeline>,
        /// True takes the first result alone.
        first: bool,
        /// True passes the row itself on if no pipeline has a result (`optional`).
        otherwise_row: bool,
        /// True if the inner steps belong to the path.
        inner_path: bool,
    },
    /// The row itself. Results are dropped.
    SideEffect(Pipeline),
}

/// A loop scope.
#[derive(Clone, Debug)]
pub struct RepeatScope {
    /// The body.
    pub body: Pipeline,
    /// When a row leaves the loop; `None`: when the body has no result.
    pub until: Option<LoopTest>,
    /// True tests `until` before the body.
    pub until_first: bool,
    /// When a row is emitted and goes on in the loop.
    pub emit: Option<LoopTest>,
    /// True tests `emit` before the body.
    pub emit_first: bool,
    /// True: each instance of the loop goes on from a vertex only the first time it comes there. The planner has
    /// checked that no result shows how often, or along which paths, a vertex is reached.
    pub once: bool,
    /// Whether a rule has made it a search for the first arrival. A search has `once`, and rows may keep paths.
    pub search: LoopSearch,
    /// The order of the work inside, and the most iterations at a time.
    pub scheduling: Scheduling,
    /// The number of newest objects of a path that may be collections which one iteration has made.
    pub collections_made: usize,
}

impl RepeatScope {
    /// Returns true if an iteration begins with the first rows that the one before it returns.
    pub fn overlaps(&self) -> bool {
        let orders = self.scheduling.policy.orders.as_ref();
        orders.is_some_and(|orders| orders.between != InstanceOrder::Work(WorkOrder::Bfs))
    }

    /// Returns the policy of the loop. If a value orders its traversers and the client names no limit, one of them is in
    /// the body at a time, so that the next one is chosen among all.
    pub fn policy(&self) -> ScopePolicy {
        let mut policy = self.scheduling.policy.clone();
        if policy.priority().is_some() {
            policy.instances_max = policy.instances_max.or(Some(NonZeroU32::MIN));
        }
        policy
    }
}

/// The policy of a scope, as far as the scope keeps it.
#[derive(Clone, Debug, Default)]
pub struct Scheduling {
    /// The policy.
    pub policy: ScopePolicy,
    /// True if the step itself names it. Then no rule removes the scope.
    pub is_of_step: bool,
    /// Why the scope keeps less of it than the source asks for; `None` if it keeps all.
    pub fixed_by: Option<&'static str>,
}

impl Scheduling {
    /// Takes the orders of work away.
    pub(crate) fn fix(&mut self, why: &'static str) {
        (self.policy.orders, self.fixed_by) = (None, Some(why));
    }
}

/// A test in a loop.
#[derive(Clone, Debug)]
pub enum LoopTest {
    /// Always.
    Always,
    /// After this many iterations.
    Times(Operand),
    /// A test of the object.
    Test(Test),
    /// A pipeline has a result.
    Exists(Pipeline),
}
