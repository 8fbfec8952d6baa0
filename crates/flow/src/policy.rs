//! Scheduling policies of scopes: which of the instances that have work is worked on next, and where inside it.
//!
//! ```text
//! scope ─┬─ group 1 (older)    3 [ ] ─► 4 [m] ─► 5 [m]      between: which group
//!        └─ group 2 (younger)  3 [m] ─► 4 [ ] ─► 5 [m]      inside:  which operator of it
//! ```
//!
//! The unit that a policy orders is the group: the instances that entered a scope with one message. With
//! [`Policy::instances_max`] a scope opens groups of few instances, down to one.

use std::num::NonZeroU32;

/// Which operator of a group is next. A scope inside counts as one operator, and goes before its own operator if
/// higher numbers go first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Inside {
    /// The one with the highest number: what has begun is brought to its end first (FLOW-14).
    #[default]
    Dfs,
    /// The one with the lowest number: a step of all rows comes before the next step of any.
    Bfs,
    /// The one whose first message has waited longest.
    Fifo,
}

/// Which group of a scope is next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Between {
    /// The one whose first message has waited longest.
    #[default]
    Fifo,
    /// The oldest one.
    Bfs,
    /// The youngest one.
    Dfs,
    /// The one with the least rank; of equal ones, the oldest. The scope's operator gives each group its rank
    /// ([`crate::Output::open_ranked`]).
    Rank,
    /// The one whose operators have worked for the least time (FLOW-47); of equal ones, the oldest. The time is that of
    /// [`crate::QueryControl::clock`], which the runtime reads twice for each message of such a group.
    Fair,
}

/// The policy of one scope. The default costs nothing: its groups share the inboxes of the groups around them, in which
/// messages wait in the order in which they came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// Which operator of a group is next.
    pub inside: Inside,
    /// Which group is next.
    pub between: Between,
    /// The most instances that the scope's operator has inside at a time, for each operator; `None` for no limit. The
    /// operator keeps it ([`crate::Output::policy`]).
    pub instances_max: Option<NonZeroU32>,
}

impl Policy {
    /// Returns true if the groups of the scope need inboxes of their own.
    pub(crate) fn needs_lanes(&self) -> bool {
        self.inside != Inside::Dfs || self.between != Between::Fifo
    }
}
