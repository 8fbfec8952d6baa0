//! The messages that a helper works off with its replicas. All others go home.
//!
//! - **FLOW-50.** A helper enters a scope itself if each batch that enters is worked off for itself
//!   ([`Operator::is_by_batch`](crate::Operator::is_by_batch)), and all operators inside keep state by group alone
//!   ([`Operator::is_by_group`](crate::Operator::is_by_group)). The groups that it opens are at home at the helper: their
//!   messages and ends stay there, and no other thread sees them. The parcel that led to them is worked off after they
//!   have ended, so the helper keeps it beyond the end of a turn. For that time its task counts as a query (FLOW-26).
//!
//! A batch with few rows goes home instead. If one of its instances is heavy, threads share the messages inside a group
//! of the home, but not those inside a group of a helper. A heavy instance in a group of a helper goes home, too. If another
//! thread of the run has nothing to do, so do instances that have not begun
//! ([`Operator::send_instances_home`](crate::Operator::send_instances_home)).

use std::sync::Arc;

use crate::batch::Batch;
use crate::message::{Body, Message};
use crate::policy::Policy;
use crate::topology::{OpId, Topology};

/// The fewest rows of a batch for which a helper enters a scope.
const ENTERING_ROWS_MIN: usize = 128;

/// What a helper works off, by operator.
#[derive(Clone)]
pub(crate) struct Local {
    /// The lowest port at which it uses its replica.
    ports: Arc<[Option<u8>]>,
    /// True for the operator of a scope that it may enter (FLOW-50).
    scopes: Arc<[bool]>,
    /// True for all operators that it may use.
    used: Arc<[bool]>,
    /// The fewest rows of a batch for which it enters a scope.
    rows_min: usize,
}

impl Local {
    /// What helpers work off of a run. `ports` has the lowest port of each operator at which they use their replica
    /// whatever the group. `by_batch` and `by_group` say what operators are ([`crate::Operator::is_by_batch`],
    /// [`crate::Operator::is_by_group`]); `shares_all` is for tests.
    pub fn new(
        ports: Arc<[Option<u8>]>,
        topology: &Topology,
        by_batch: impl Fn(usize) -> bool,
        by_group: impl Fn(usize) -> bool,
        shares_all: bool,
    ) -> Self {
        let may_enter = |scope: OpId| {
            let (first, count) = topology.inside(scope);
            let mut inside = usize::from(first)..usize::from(first) + count;
            let has_no_policy = |operator: usize| topology.policy(operator as OpId) == Policy::default();
            count > 0
                && by_batch(usize::from(scope))
                && has_no_policy(usize::from(scope))
                && inside.all(|operator| by_group(operator) && has_no_policy(operator))
        };
        let scopes: Arc<[bool]> = (0..ports.len() as OpId).map(may_enter).collect();
        let mut used: Vec<bool> = ports.iter().map(Option::is_some).collect();
        for scope in (0..ports.len()).filter(|operator| scopes[*operator]) {
            let (_, count) = topology.inside(scope as OpId);
            used[scope..=scope + count].fill(true);
        }
        let rows_min = if shares_all { 1 } else { ENTERING_ROWS_MIN };
        Local { ports, scopes, used: used.into(), rows_min }
    }

    /// Returns true if the helper may use its replica of an operator.
    pub fn uses(&self, operator: usize) -> bool {
        self.used[operator]
    }

    /// Returns true if the helper works off a message itself.
    pub fn is_here<B: Batch>(&self, message: &Message<B>) -> bool {
        let at = usize::from(message.operator);
        message.group.is_of_helper()
            || self.ports[at].is_some_and(|port| port <= message.port)
            || self.scopes[at] && message.port == 0 && self.enters(&message.body)
    }

    fn enters<B: Batch>(&self, body: &Body<B>) -> bool {
        matches!(body, Body::Data { batch: Some(batch), .. } if batch.rows() >= self.rows_min)
    }
}
