//! The order of the lanes with work that are nested directly in one lane.
//!
//! ```text
//!  by scope, then by rank, then ─┬─ lanes that have had a call, by time ──┐  next: the one with the least time;
//!                                └─ lanes that have not, by time ─────────┘  of equal ones, one that has had a call
//! ```
//!
//! Lanes of one scope have one policy. Of their positions, the policy uses the rank, the arrival of the first message, or
//! the *time*, and the number in any case. So each policy finds the next lane at an end of a range.
//!
//! - **FLOW-47.** While two lanes of a scope with [`Between::Fair`] have work all the time, the times that they gain
//!   differ by at most the longest call of the one plus the longest call of the other. The time of a lane is that of
//!   the operators' calls with messages of the lane and of those nested in it. A lane gets no credit for its absence:
//!   its time is raised to the *floor*, the time of the lane that was chosen last. A new lane begins at the least time
//!   among those with work that have had a call, and goes after those of the same time. So a stream of new lanes keeps
//!   no lane waiting.

use std::collections::BTreeSet;

use crate::policy::Between;
use crate::topology::OpId;

/// The number of a lane, in the order of opening; 0 stands for the inboxes that all groups share.
pub(crate) type LaneNumber = u64;

/// The place of a lane among the lanes with work. The order of the fields is that of lanes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position<R> {
    /// The operator of its scope.
    pub scope: OpId,
    /// The rank of its group, if the policy orders by it.
    pub rank: Option<R>,
    /// True if the policy orders by time and the lane has had no call.
    pub is_new: bool,
    /// The arrival of its first message, or its time, if the policy orders by it.
    pub at: u64,
    pub number: LaneNumber,
}

impl<R> Position<R> {
    /// Before all lanes of a scope that are new, or are not.
    fn first_of(scope: OpId, is_new: bool) -> Self {
        Position { scope, rank: None, is_new, at: 0, number: 0 }
    }
}

/// The lanes with work that are nested directly in a lane.
pub(crate) struct Siblings<R> {
    all: BTreeSet<Position<R>>,
    /// The floors of the scopes that share time.
    floors: Vec<(OpId, u64)>,
}

impl<R> Default for Siblings<R> {
    fn default() -> Self {
        Siblings { all: BTreeSet::new(), floors: Vec::new() }
    }
}

impl<R: Ord> Siblings<R> {
    pub fn insert(&mut self, position: Position<R>) {
        self.all.insert(position);
    }

    pub fn remove(&mut self, position: &Position<R>) {
        self.all.remove(position);
    }

    /// Returns the first scope with a lane.
    pub fn first_scope(&self) -> Option<OpId> {
        self.all.first().map(|position| position.scope)
    }

    /// Returns the last scope with a lane.
    pub fn last_scope(&self) -> Option<OpId> {
        self.all.last().map(|position| position.scope)
    }

    /// Returns the lanes of a scope.
    pub fn of_scope(&self, scope: OpId) -> impl DoubleEndedIterator<Item = LaneNumber> + Clone {
        let all = Position::first_of(scope, false)..Position::first_of(scope + 1, false);
        self.all.range(all).map(|position| position.number)
    }

    /// Returns the lane of a scope that is next.
    pub fn next(&self, scope: OpId, between: Between) -> Option<LaneNumber> {
        match between {
            Between::Fifo | Between::Bfs | Between::Rank => self.of_scope(scope).next(),
            Between::Dfs => self.of_scope(scope).next_back(),
            Between::Fair => {
                let [known, new] = self.least(scope);
                let goes_first = |known: &&Position<R>| new.is_none_or(|new| known.at <= new.at);
                known.filter(goes_first).or(new).map(|position| position.number)
            }
        }
    }

    /// In a scope that shares time: the lane with the least time among those that have had a call, and among the new
    /// ones.
    fn least(&self, scope: OpId) -> [Option<&Position<R>>; 2] {
        [false, true].map(|is_new| {
            let mut from = self.all.range(Position::first_of(scope, is_new)..);
            from.next().filter(|position| position.scope == scope && position.is_new == is_new)
        })
    }

    /// Returns the time at which a new lane of a scope begins (FLOW-47).
    pub fn start_of_new(&self, scope: OpId) -> u64 {
        let [known, new] = self.least(scope);
        known.or(new).map_or(0, |position| position.at).max(self.floor(scope))
    }

    /// Returns the time of the lane of a scope that was chosen last.
    pub fn floor(&self, scope: OpId) -> u64 {
        self.floors.iter().find(|(of, _)| *of == scope).map_or(0, |(_, floor)| *floor)
    }

    /// A lane with this time was chosen.
    pub fn raise_floor(&mut self, scope: OpId, time: u64) {
        match self.floors.iter_mut().find(|(of, _)| *of == scope) {
            Some((_, floor)) => *floor = time.max(*floor),
            None => self.floors.push((scope, time)),
        }
    }

    /// Returns the earliest arrival in all lanes, and its scope. `of` tells the order of a lane's siblings, and its
    /// arrival.
    pub fn first_arrival(&self, of: impl Fn(LaneNumber) -> Option<(Between, u64)>) -> Option<(u64, OpId)> {
        let mut first: Option<(u64, OpId)> = None;
        let from = |scope| self.all.range(Position::first_of(scope, false)..);
        let mut positions = from(0);
        while let Some(position) = positions.next() {
            let Some((between, arrival)) = of(position.number) else { continue };
            let this = (arrival, position.scope);
            first = Some(first.map_or(this, |first| first.min(this)));
            // The first lane of such a scope has the earliest arrival of it.
            if between == Between::Fifo {
                positions = from(position.scope + 1);
            }
        }
        first
    }
}
