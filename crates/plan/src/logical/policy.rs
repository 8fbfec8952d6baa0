//! The policy that a client asks for: in which order scopes work on their instances, and how many may be inside.

use std::fmt;
use std::num::NonZeroU32;

use super::Name;

/// Which of several instances, or of several steps inside an instance, is next, by when work came.
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

/// The part of the traverser that opens an instance which says when the instance is next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PriorityOf {
    /// The value of its object under this key.
    Key(Name),
    /// Its sack.
    Sack,
}

/// An order of instances by a value. Instances without the value are last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Priority {
    /// The value.
    pub of: PriorityOf,
    /// True if the instance with the largest value is first; false for the smallest.
    pub descending: bool,
}

/// How a priority by the sack is written.
const SACK: &str = "sack()";

impl Priority {
    /// Reads what [`Priority`] displays. `asc` may be written, too. The order that follows is left out.
    fn of_text(text: &str) -> Option<Self> {
        let by = text.strip_prefix("by ")?.trim();
        let (by, descending) = match (by.strip_suffix(" desc"), by.strip_suffix(" asc")) {
            (Some(by), _) => (by, true),
            (_, Some(by)) => (by, false),
            (None, None) => (by, false),
        };
        let of = match by.trim() {
            "" => return None,
            SACK => PriorityOf::Sack,
            key => PriorityOf::Key(key.into()),
        };
        Some(Priority { of, descending })
    }
}

/// The priority as clients write it: `by age desc`.
impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = match &self.of {
            PriorityOf::Key(key) => key,
            PriorityOf::Sack => SACK,
        };
        write!(f, "by {of}{}", if self.descending { " desc" } else { "" })
    }
}

/// Which instance of a scope is next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InstanceOrder {
    /// By when its work came.
    Work(WorkOrder),
    /// By a value of the traverser that opens it.
    By(Priority),
    /// By the time that its steps have taken: the least first.
    Fair,
}

/// How [`InstanceOrder::Fair`] is written.
const FAIR: &str = "fair";

impl fmt::Display for InstanceOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InstanceOrder::Work(order) => f.write_str(order.name()),
            InstanceOrder::By(priority) => priority.fmt(f),
            InstanceOrder::Fair => f.write_str(FAIR),
        }
    }
}

/// The order of the work in a scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkOrders {
    /// Which instance is next.
    pub between: InstanceOrder,
    /// Which step of an instance is next.
    pub inside: WorkOrder,
}

impl WorkOrders {
    /// Reads the value of `with("policy", …)`: two orders with a slash between them, or one. One that a step inside can
    /// have stands for both; with any other one, steps inside are depth first.
    pub fn of_text(text: &str) -> Option<Self> {
        let (between, inside) = match text.rsplit_once('/') {
            Some((between, inside)) => (between, Some(WorkOrder::of_name(inside)?)),
            None => (text, None),
        };
        Some(match WorkOrder::of_name(between) {
            Some(order) => WorkOrders { between: InstanceOrder::Work(order), inside: inside.unwrap_or(order) },
            None => {
                let between = match between {
                    FAIR => InstanceOrder::Fair,
                    other => InstanceOrder::By(Priority::of_text(other)?),
                };
                WorkOrders { between, inside: inside.unwrap_or(WorkOrder::Dfs) }
            }
        })
    }

    /// The order of instances by a value, if they have one.
    pub fn priority(&self) -> Option<&Priority> {
        match &self.between {
            InstanceOrder::Work(_) | InstanceOrder::Fair => None,
            InstanceOrder::By(priority) => Some(priority),
        }
    }
}

/// Both orders as clients write them: `bfs/dfs`.
impl fmt::Display for WorkOrders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.between, self.inside.name())
    }
}

/// `with("policy", …)` and `with("maxInstances", n)`, of the source or of a step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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

    /// The order of instances by a value, if the policy has one.
    pub fn priority(&self) -> Option<&Priority> {
        self.orders.as_ref().and_then(WorkOrders::priority)
    }

    /// This policy, and where it leaves the choice, that of the scope's surroundings.
    pub fn or(&self, around: &ScopePolicy) -> Self {
        ScopePolicy {
            orders: self.orders.clone().or_else(|| around.orders.clone()),
            instances_max: self.instances_max.or(around.instances_max),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_read_as_they_are_shown() {
        let shown = |text: &str| WorkOrders::of_text(text).map(|orders| orders.to_string());
        for (text, expected) in [
            ("bfs", "bfs/bfs"),
            ("fifo/dfs", "fifo/dfs"),
            ("fair", "fair/dfs"),
            ("fair/fifo", "fair/fifo"),
            ("by age desc/bfs", "by age desc/bfs"),
            ("by sack()", "by sack()/dfs"),
        ] {
            assert_eq!(shown(text).as_deref(), Some(expected));
            assert_eq!(shown(expected).as_deref(), Some(expected));
        }
        for text in ["", "fair/", "fair/fair", "dfs/fair", "Fair", "fair desc", "by ", "random"] {
            assert_eq!(shown(text), None, "{text}");
        }
    }
}
