//! The policy that a client asks for: in which order scopes work on their instances, and how many may be inside.

use std::num::NonZeroU32;

/// Which of several instances, or of several steps inside an instance, is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkOrder {
    /// Depth first: the youngest instance; the last step.
    Dfs,
    /// Breadth first: the oldest instance; the first step.
    Bfs,
    /// First in, first out: the one whose work has waited longest.
    Fifo,
}

impl WorkOrder {
    /// The name, as clients write it.
    pub fn name(self) -> &'static str {
        match self {
            WorkOrder::Dfs => "dfs",
            WorkOrder::Bfs => "bfs",
            WorkOrder::Fifo => "fifo",
        }
    }

    /// The order of this name.
    pub fn of_name(name: &str) -> Option<Self> {
        [WorkOrder::Dfs, WorkOrder::Bfs, WorkOrder::Fifo].into_iter().find(|order| order.name() == name)
    }
}

/// The order of the work in a scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkOrders {
    /// Which instance is next.
    pub between: WorkOrder,
    /// Which step of an instance is next.
    pub inside: WorkOrder,
}

/// `with("policy", …)` and `with("maxInstances", n)`, of the source or of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScopePolicy {
    /// The order of the work; `None`: the planner chooses.
    pub orders: Option<WorkOrders>,
    /// The most instances that are inside at a time; `None`: the planner chooses.
    pub instances_max: Option<NonZeroU32>,
}

impl ScopePolicy {
    /// Returns true if the client asks for nothing.
    pub fn is_default(&self) -> bool {
        *self == ScopePolicy::default()
    }

    /// This policy, and where it leaves the choice, that of the scope's surroundings.
    pub fn or(self, around: ScopePolicy) -> Self {
        ScopePolicy {
            orders: self.orders.or(around.orders),
            instances_max: self.instances_max.or(around.instances_max),
        }
    }
}
