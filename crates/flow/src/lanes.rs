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
//! The order of the lanes of a scope, and the times by which [`Between::Fair`] orders them, are in `lane_order`.
//!
//! - **FLOW-42.** Messages of a group to an operator wait in one inbox, in the order in which they came: in the lane of
//!   the group around the operator that is nearest and has one, or in the shared inbox. A policy never changes the
//!   order of messages to an operator for a group, so FLOW-3 and FLOW-11 hold under each. A message that comes back,
//!   because work is left or after it has waited for a read, goes before the others of its inbox.
//! - **FLOW-43.** Of two messages, the one that goes first is decided by the policy of the innermost scope around both.
//!   That is Banyan's rule of priority by ancestors (§3.1). What has come back to the operator of a scope goes before
//!   all else in its lane (FLOW-14).

use mangrove_graph::FastMap;

use crate::batch::Batch;
use crate::clock::Clock;
use crate::group::GroupId;
use crate::lane_order::{LaneNumber, Position, Siblings};
use crate::message::Message;
use crate::mutation::{self, Mutation};
use crate::policy::{Between, Inside, Policy};
use crate::queues::Queues;
use crate::topology::OpId;

/// An operator with a message, in a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub lane: LaneNumber,
    pub operator: OpId,
}

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
    nested: Siblings<B::Rank>,
    /// True if a policy reads `arrival`.
    keeps_arrival: bool,
    /// When the first of its messages arrived, while messages wait.
    arrival: u64,
    /// If its scope shares time: the nanoseconds that its operators have worked for, and what it was raised by
    /// (FLOW-47).
    time: u64,
    /// True if its scope shares time and the lane has had no call.
    is_new: bool,
}

impl<B: Batch> Lane<B> {
    /// Returns the part of its position that changes while messages wait in it.
    fn at(&self) -> (bool, u64) {
        match self.policy.between {
            Between::Fifo => (false, self.arrival),
            Between::Fair => (self.is_new, self.time),
            Between::Bfs | Between::Dfs | Between::Rank => (false, 0),
        }
    }

    fn position(&self, number: LaneNumber, (is_new, at): (bool, u64)) -> Position<B::Rank> {
        Position { scope: self.scope, rank: self.rank.clone(), is_new, at, number }
    }
}

/// A change of the messages that wait in a lane.
#[derive(Clone, Copy)]
enum Change {
    /// One with this arrival was added.
    Added(u64),
    /// So many were taken out.
    Taken(usize),
}

/// The lanes of a run.
pub(crate) struct Lanes<B: Batch> {
    lanes: FastMap<LaneNumber, Lane<B>>,
    /// By group: its lane, if that is not the shared one.
    of: FastMap<GroupId, LaneNumber>,
    opened: LaneNumber,
    nested: Siblings<B::Rank>,
    arrivals: u64,
    /// The lanes whose scopes share time.
    fair: usize,
    /// When the call at hand began, if there are such lanes.
    call_began: u64,
}

impl<B: Batch> Default for Lanes<B> {
    fn default() -> Self {
        Lanes {
            lanes: FastMap::default(),
            of: FastMap::default(),
            opened: 0,
            nested: Siblings::default(),
            arrivals: 0,
            fair: 0,
            call_began: 0,
        }
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
            let reads_arrival = |lane: &Lane<B>| lane.keeps_arrival || lane.policy.inside == Inside::Fifo;
            let is_read_around = self.lanes.get(&around).is_some_and(reads_arrival);
            let is_fair = policy.between == Between::Fair;
            self.fair += usize::from(is_fair);
            let lane = Lane {
                group,
                scope,
                rank,
                around,
                policy,
                queues,
                waiting: 0,
                nested: Siblings::default(),
                keeps_arrival: policy.between == Between::Fifo || is_read_around,
                arrival: 0,
                time: if is_fair { self.nested_in(around).start_of_new(scope) } else { 0 },
                is_new: is_fair,
            };
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
        if self.lanes.get(&number).is_some_and(|lane| lane.group == group && lane.waiting == 0)
            && let Some(lane) = self.lanes.remove(&number)
        {
            self.fair -= usize::from(lane.policy.between == Between::Fair);
        }
    }

    /// Adds a message to a lane.
    pub fn push_back(&mut self, lane: LaneNumber, mut message: Box<Message<B>>, returns: bool) {
        self.arrivals += 1;
        message.arrival = self.arrivals;
        if let Some(lane) = self.lanes.get_mut(&lane) {
            lane.queues.push_back(message, returns);
        }
        self.change(lane, Change::Added(self.arrivals));
    }

    /// Puts a message back: see [`Queues::push_front`].
    pub fn push_front(&mut self, lane: LaneNumber, message: Box<Message<B>>, returns: bool, enters: bool) {
        let arrival = message.arrival;
        if let Some(lane) = self.lanes.get_mut(&lane) {
            lane.queues.push_front(message, returns, enters);
        }
        self.change(lane, Change::Added(arrival));
    }

    /// Takes the next message of an operator, for a call. [`Lanes::end_call`] follows.
    pub fn begin_call(&mut self, place: Place, clock: &dyn Clock) -> Option<Box<Message<B>>> {
        if self.fair > 0 {
            self.call_began = clock.now_nanos();
        }
        let queues = &mut self.lanes.get_mut(&place.lane)?.queues;
        let message = queues.pop(place.operator)?;
        queues.update(place.operator);
        self.change(place.lane, Change::Taken(1));
        Some(message)
    }

    /// Adds the time of a call to the lane of its message and to the lanes around it, if their scopes share time
    /// (FLOW-47).
    pub fn end_call(&mut self, lane: LaneNumber, clock: &dyn Clock) {
        if self.fair == 0 || mutation::is_set(Mutation::TimeOfLaneIsIgnored) {
            return;
        }
        let nanos = clock.now_nanos().saturating_sub(self.call_began);
        let mut number = lane;
        while let Some(lane) = self.lanes.get_mut(&number) {
            let around = lane.around;
            if lane.policy.between == Between::Fair {
                let (scope, chosen_at, before) = (lane.scope, lane.time, lane.at());
                lane.time += nanos;
                lane.is_new = false;
                let is_working = lane.waiting > 0;
                self.nested_in_mut(around).raise_floor(scope, chosen_at);
                self.reorder(number, is_working.then_some(before), is_working);
            }
            number = around;
        }
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
        if removed > 0 {
            self.change(lane, Change::Taken(removed));
        }
    }

    /// Returns the lanes with work that are nested directly in a lane.
    fn nested_in(&self, number: LaneNumber) -> &Siblings<B::Rank> {
        self.lanes.get(&number).map_or(&self.nested, |lane| &lane.nested)
    }

    fn nested_in_mut(&mut self, number: LaneNumber) -> &mut Siblings<B::Rank> {
        match self.lanes.get_mut(&number) {
            Some(lane) => &mut lane.nested,
            None => &mut self.nested,
        }
    }

    /// Counts messages that were added to a lane or taken out of it, and gives this lane and those around it their
    /// places among their siblings.
    fn change(&mut self, mut number: LaneNumber, change: Change) {
        while let Some(lane) = self.lanes.get(&number) {
            let (around, was_working, before) = (lane.around, lane.waiting > 0, lane.at());
            let (waiting, arrival) = match change {
                Change::Added(arrival) if was_working => (lane.waiting + 1, arrival.min(lane.arrival)),
                Change::Added(arrival) => (1, arrival),
                Change::Taken(taken) => {
                    let first = if lane.keeps_arrival { self.first_arrival(lane) } else { None };
                    (lane.waiting - taken, first.unwrap_or(lane.arrival))
                }
            };
            let floor = self.nested_in(around).floor(lane.scope);
            let Some(lane) = self.lanes.get_mut(&number) else { return };
            (lane.waiting, lane.arrival) = (waiting, arrival);
            if !was_working && lane.policy.between == Between::Fair {
                lane.time = lane.time.max(floor);
            }
            self.reorder(number, was_working.then_some(before), waiting > 0);
            number = around;
        }
    }

    /// Gives a lane its place among its siblings. `before` is the changing part of its former position, if it had one.
    fn reorder(&mut self, number: LaneNumber, before: Option<(bool, u64)>, is_working: bool) {
        let Some(lane) = self.lanes.get(&number) else { return };
        let at = is_working.then(|| lane.at());
        if at == before {
            return;
        }
        let [before, at] = [before, at].map(|at| at.map(|at| lane.position(number, at)));
        let siblings = self.nested_in_mut(lane.around);
        before.iter().for_each(|before| siblings.remove(before));
        at.into_iter().for_each(|at| siblings.insert(at));
    }

    /// Returns when the first message of a lane arrived, or of the lanes nested in it.
    fn first_arrival(&self, lane: &Lane<B>) -> Option<u64> {
        let own = lane.queues.next(Inside::Fifo).and_then(|operator| lane.queues.arrival(operator));
        own.into_iter().chain(self.first_nested_arrival(lane).map(|(arrival, _)| arrival)).min()
    }

    /// Returns when the first message of the lanes that are nested in a lane arrived, and the scope of its lane.
    fn first_nested_arrival(&self, lane: &Lane<B>) -> Option<(u64, OpId)> {
        lane.nested.first_arrival(|inner| {
            let inner = self.lanes.get(&inner)?;
            Some((inner.policy.between, inner.arrival))
        })
    }

    /// Returns the place of the next message, if one of the shared inboxes' operators, `shared`, is not before it. The
    /// query itself is worked off with the highest number first.
    pub fn next(&self, shared: Option<OpId>) -> Option<Place> {
        let scope = self.nested.last_scope()?;
        if shared.is_some_and(|operator| operator > scope) { None } else { self.next_of(scope, &self.nested) }
    }

    /// Returns the place of the next message in the lanes of a scope (FLOW-43).
    fn next_of(&self, scope: OpId, siblings: &Siblings<B::Rank>) -> Option<Place> {
        let any = siblings.of_scope(scope).next()?;
        let between = self.lanes.get(&any)?.policy.between;
        self.next_in(siblings.next(scope, between)?)
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
            Inside::Dfs => lane.nested.last_scope(),
            Inside::Bfs => lane.nested.first_scope(),
            Inside::Fifo => {
                let own = operator.and_then(|operator| lane.queues.arrival(operator));
                let first = self.first_nested_arrival(lane);
                first.filter(|(inner, _)| own.is_none_or(|own| *inner < own)).map(|(_, scope)| scope)
            }
        };
        let goes_first = |operator: &OpId| match (lane.policy.inside, scope) {
            (_, None) => true,
            (Inside::Dfs, Some(scope)) => *operator > scope,
            (Inside::Bfs, Some(scope)) => *operator <= scope,
            // It is the scope whose message came first, if that message came before those here.
            (Inside::Fifo, Some(_)) => false,
        };
        match operator.filter(goes_first) {
            Some(operator) => Some(here(operator)),
            None => self.next_of(scope?, &lane.nested),
        }
    }
}
