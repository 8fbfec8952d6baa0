//! Lanes: inboxes of single groups, for scopes with a policy.
//!
//! Groups share the inboxes of their operators, unless their scope has a [`Policy`] that orders them in another way.
//! Each group of such a scope has a *lane*: inboxes for the operators inside, also for groups nested in it whose scopes
//! have no such policy. Lanes nest as their groups do.
//!
//! ```text
//!  root: inboxes of all operators          the way to the next message:
//!    ├─ lane 1 of scope 4                    1. what has come back to a scope's operator here
//!    │    └─ lane 3 of scope 6               2. an operator here, or a scope with lanes: by `inside`
//!    └─ lane 2 of scope 4                    3. one of the lanes of that scope: by `between`; from 1. on
//! ```
//!
//! - **FLOW-42.** Messages of a group to an operator wait in one inbox, in the order in which they came: in the lane of
//!   the group around the operator that is nearest and has one, or in the shared inbox. A policy never changes the
//!   order of messages to an operator for a group, so FLOW-3 and FLOW-11 hold under each. A message that comes back,
//!   because work is left or after it has waited for a read, goes before the others of its inbox.
//! - **FLOW-43.** Of two messages, the one that goes first is decided by the policy of the innermost scope around both.
//!   That is Banyan's rule of priority by ancestors (§3.1). What has come back to the operator of a scope goes before
//!   all else in its lane (FLOW-14).

use std::collections::BTreeSet;

use mangrove_graph::FastMap;

use crate::batch::Batch;
use crate::group::GroupId;
use crate::message::Message;
use crate::policy::{Between, Inside, Policy};
use crate::queues::Queues;
use crate::topology::OpId;

/// The number of a lane, in the order of opening; 0 stands for the inboxes that all groups share.
pub(crate) type LaneNumber = u64;

/// An operator with a message, in a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub lane: LaneNumber,
    pub operator: OpId,
}

/// The lanes with work that are nested directly in a lane. Those of a scope are together, in the order of their ranks
/// if they have any, then of their numbers.
type Working<B> = BTreeSet<(OpId, Option<<B as Batch>::Rank>, LaneNumber)>;

struct Lane<B: Batch> {
    group: GroupId,
    /// The operator of its scope.
    scope: OpId,
    rank: Option<B::Rank>,
    /// The lane around it.
    around: LaneNumber,
    policy: Policy,
    queues: Queues<B>,
    /// The messages that wait in it and in lanes nested in it.
    waiting: usize,
    working: Working<B>,
}

/// The lanes of a run.
pub(crate) struct Lanes<B: Batch> {
    lanes: FastMap<LaneNumber, Lane<B>>,
    /// By group: its lane, if that is not the shared one.
    of: FastMap<GroupId, LaneNumber>,
    opened: LaneNumber,
    working: Working<B>,
    arrivals: u64,
}

impl<B: Batch> Default for Lanes<B> {
    fn default() -> Self {
        Lanes { lanes: FastMap::default(), of: FastMap::default(), opened: 0, working: BTreeSet::new(), arrivals: 0 }
    }
}

impl<B: Batch> Lanes<B> {
    /// Returns true if every group uses the shared inboxes.
    pub fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    /// Returns the number of lanes.
    pub fn len(&self) -> u64 {
        self.lanes.len() as u64
    }

    /// Forgets a complete run. Returns false if a lane is left.
    pub fn reset(&mut self) -> bool {
        let is_clean = self.lanes.is_empty() && self.of.is_empty();
        *self = Lanes::default();
        is_clean
    }

    /// Returns the lane of a group.
    pub fn of(&self, group: GroupId) -> LaneNumber {
        self.of.get(&group).copied().unwrap_or(0)
    }

    /// A group is opened inside `parent`: it gets a lane, or that of the parent. `inside` are the number of the first
    /// operator inside its scope, and how many there are.
    pub fn open(
        &mut self,
        group: GroupId,
        parent: GroupId,
        scope: OpId,
        inside: (OpId, usize),
        policy: Policy,
        rank: Option<B::Rank>,
    ) {
        let around = self.of(parent);
        let number = if policy.needs_lanes() {
            self.opened += 1;
            let queues = Queues::new(inside.0, inside.1);
            let rank = rank.filter(|_| policy.between == Between::Rank);
            let lane = Lane { group, scope, rank, around, policy, queues, waiting: 0, working: BTreeSet::new() };
            self.lanes.insert(self.opened, lane);
            self.opened
        } else {
            around
        };
        if number > 0 {
            self.of.insert(group, number);
        }
    }

    /// A group has ended, so no message of it is left.
    pub fn close(&mut self, group: GroupId) {
        let Some(number) = self.of.remove(&group) else { return };
        // A lane with a message stays; then the instance of the plan is not used again.
        if self.lanes.get(&number).is_some_and(|lane| lane.group == group && lane.waiting == 0) {
            self.lanes.remove(&number);
        }
    }

    /// Adds a message to a lane.
    pub fn push_back(&mut self, lane: LaneNumber, mut message: Box<Message<B>>, returns: bool) {
        self.arrivals += 1;
        message.arrival = self.arrivals;
        if let Some(lane) = self.lanes.get_mut(&lane) {
            lane.queues.push_back(message, returns);
        }
        self.count(lane, 1, 0);
    }

    /// Puts a message back: see [`Queues::push_front`].
    pub fn push_front(&mut self, lane: LaneNumber, message: Box<Message<B>>, returns: bool, enters: bool) {
        if let Some(lane) = self.lanes.get_mut(&lane) {
            lane.queues.push_front(message, returns, enters);
        }
        self.count(lane, 1, 0);
    }

    /// Takes the next message of an operator.
    pub fn pop(&mut self, place: Place) -> Option<Box<Message<B>>> {
        let queues = &mut self.lanes.get_mut(&place.lane)?.queues;
        let message = queues.pop(place.operator)?;
        queues.update(place.operator);
        self.count(place.lane, 0, 1);
        Some(message)
    }

    /// Returns true if a message that came back from the scope of an operator waits at it.
    pub fn has_returned(&self, place: Place) -> bool {
        self.lanes.get(&place.lane).is_some_and(|lane| lane.queues.has_returned(place.operator))
    }

    /// Makes a message with a hold the next one of its operator in its lane, and returns its place.
    pub fn bring_held_forward(&mut self) -> Option<Place> {
        self.lanes
            .iter_mut()
            .find_map(|(lane, Lane { queues, .. })| Some(Place { lane: *lane, operator: queues.bring_held_forward()? }))
    }

    /// Calls `change` with the messages of a lane that wait at an operator, and removes those for which it returns
    /// false.
    pub fn retain(&mut self, lane: LaneNumber, operator: OpId, change: impl FnMut(&mut Message<B>) -> bool) {
        let removed = self.lanes.get_mut(&lane).map_or(0, |lane| lane.queues.retain(operator, change));
        self.count(lane, 0, removed);
    }

    /// Counts messages that were added to a lane or taken out of it.
    fn count(&mut self, mut number: LaneNumber, added: usize, taken: usize) {
        while let Some(lane) = self.lanes.get_mut(&number) {
            let (was_idle, around) = (lane.waiting == 0, lane.around);
            lane.waiting = lane.waiting + added - taken;
            let is_idle = lane.waiting == 0;
            if was_idle != is_idle {
                let entry = (lane.scope, lane.rank.clone(), number);
                let working = match self.lanes.get_mut(&around) {
                    Some(around) => &mut around.working,
                    None => &mut self.working,
                };
                if is_idle {
                    working.remove(&entry);
                } else {
                    working.insert(entry);
                }
            }
            number = around;
        }
    }

    /// Returns the place of the next message, if one of the shared inboxes' operators, `shared`, is not before it. The
    /// query itself is worked off with the highest number first.
    pub fn next(&self, shared: Option<OpId>) -> Option<Place> {
        let scope = self.working.last()?.0;
        if shared.is_some_and(|operator| operator > scope) { None } else { self.next_of(scope, &self.working) }
    }

    /// Returns the place of the next message in the lanes of a scope (FLOW-43).
    fn next_of(&self, scope: OpId, working: &Working<B>) -> Option<Place> {
        let mut of_scope = of_scope(scope, working);
        let any = of_scope.clone().next()?;
        let number = match self.lanes.get(&any)?.policy.between {
            Between::Bfs | Between::Rank => Some(any),
            Between::Dfs => of_scope.next_back(),
            Between::Fifo => of_scope.min_by_key(|number| self.arrival(*number)),
        };
        self.next_in(number?)
    }

    /// Returns the place of the next message in a lane.
    fn next_in(&self, number: LaneNumber) -> Option<Place> {
        let lane = self.lanes.get(&number)?;
        let here = |operator| Place { lane: number, operator };
        if let Some(operator) = lane.queues.returned() {
            return Some(here(operator));
        }
        let operator = lane.queues.next(lane.policy.inside);
        let scope = match lane.policy.inside {
            Inside::Dfs => lane.working.last().map(|(scope, ..)| *scope),
            Inside::Bfs => lane.working.first().map(|(scope, ..)| *scope),
            Inside::Fifo => {
                lane.working.iter().min_by_key(|(.., inner)| self.arrival(*inner)).map(|(scope, ..)| *scope)
            }
        };
        match (operator, scope) {
            (Some(operator), None) => Some(here(operator)),
            (Some(operator), Some(scope)) => {
                let is_inner_first = match lane.policy.inside {
                    Inside::Dfs => operator <= scope,
                    Inside::Bfs => operator > scope,
                    Inside::Fifo => {
                        let inner = of_scope(scope, &lane.working);
                        inner.filter_map(|inner| self.arrival(inner)).min() < lane.queues.arrival(operator)
                    }
                };
                if is_inner_first { self.next_of(scope, &lane.working) } else { Some(here(operator)) }
            }
            (None, scope) => self.next_of(scope?, &lane.working),
        }
    }

    /// Returns when the first message of a lane with work arrived, or of the lanes nested in it.
    fn arrival(&self, number: LaneNumber) -> Option<u64> {
        let lane = self.lanes.get(&number)?;
        let own = lane.queues.next(Inside::Fifo).and_then(|operator| lane.queues.arrival(operator));
        own.into_iter().chain(lane.working.iter().filter_map(|(.., inner)| self.arrival(*inner))).min()
    }
}

/// Returns the lanes of a scope among lanes with work.
fn of_scope<R: Ord>(
    scope: OpId,
    working: &BTreeSet<(OpId, Option<R>, LaneNumber)>,
) -> impl DoubleEndedIterator<Item = LaneNumber> + Clone {
    working.range((scope, None, 0)..(scope + 1, None, 0)).map(|(.., number)| *number)
}
