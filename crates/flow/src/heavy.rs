//! Heavy instances: those that work so long that the light ones of their group would wait for them.
//!
//! The instances of a group end together, so one with a hundred thousand rows keeps a hundred with ten rows waiting. A
//! heavy instance is found while it works, and leaves its group:
//!
//! ```text
//!  group 7   tags  0  1 [2] 3      a whole step worked for tag 2 alone, and its message is not finished
//!                        │
//!                        ├─ has no result yet: cancelled here, begins again as group 12 (FLOW-44)
//!                        └─ has results: rows of the others go before its own (FLOW-45)
//! ```
//!
//! To begin again costs an instance what it has done so far, a few steps (`LongSteps`). An expansion makes its first step
//! for an instance shorter until a heavy one is found ([`crate::Output::looks_for_heavy`]). In return no operator needs to cut
//! its state by instances: a cancellation drops it (FLOW-41). The new group comes into the inboxes after the messages
//! of the old one, so the light instances end first.
//!
//! - **FLOW-44.** An instance begins again only if its scope's operator agrees ([`crate::Operator::set_apart`]): no
//!   result of the instance has left, and the operator drops results that it still receives for the old instance.
//! - **FLOW-45.** Rows of a message go before the rest of a heavy row only before the end of their group. At an operator
//!   whose rows need no order, any rows do. At one where the rows of each instance must keep their order, only rows of
//!   other instances do.

use crate::group::GroupId;
use crate::topology::OpId;

/// The steps in a row after which an instance counts as heavy in any case. A step makes about one message, so light
/// instances never come so far. They are less than a millisecond.
const HEAVY_STEPS: u32 = 16;

/// The factor by which each further heavy instance of a group must have more steps than the one before.
const GROWTH: u32 = 4;

/// The steps of a group that worked for one instance only and did not finish their message.
///
/// The first heavy instance of a group is found at its first step, because light ones wait meanwhile. Further ones are
/// found later. Otherwise, if all instances were as heavy as the first, each would begin again in vain. And an instance
/// that begins again comes after those that have done so before it, so it should not be much lighter than they are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LongSteps {
    /// The instance of the last step, and its steps in a row.
    tag: u32,
    in_a_row: u32,
    /// The steps in a row after which an instance counts as heavy.
    enough: u32,
}

impl Default for LongSteps {
    fn default() -> Self {
        LongSteps { tag: 0, in_a_row: 0, enough: 1 }
    }
}

impl LongSteps {
    /// Counts a step for an instance. Returns true if it is heavy now.
    pub fn count(&mut self, tag: u32) -> bool {
        if self.tag != tag {
            (self.tag, self.in_a_row) = (tag, 0);
        }
        self.in_a_row += 1;
        self.in_a_row >= self.enough
    }

    /// Returns true if no heavy instance was found.
    pub fn are_new(&self) -> bool {
        self.enough == LongSteps::default().enough
    }

    /// Notes that the heavy instance was told to begin again.
    pub fn found(&mut self) {
        self.in_a_row = 0;
        self.enough = (self.enough * GROWTH).min(HEAVY_STEPS);
    }
}

/// A heavy instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HeavyInstance {
    pub group: GroupId,
    pub tag: u32,
    /// The operator of its scope.
    pub scope: OpId,
}

/// What the operator of a scope does with a heavy instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Apart {
    /// The instance has begun again, in a group of its own.
    BeginsAgain,
    /// It stays: it is alone in its group, its scope needs an order, or it may not run twice.
    Stays,
    /// It stays because results of it have left. The results of other instances may leave before its further ones.
    HasResults,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts steps for an instance until it is heavy, at most so many. Returns their number.
    fn steps_until_heavy(steps: &mut LongSteps, tag: u32, at_most: u32) -> Option<u32> {
        let found = (1..=at_most).find(|_| steps.count(tag));
        if found.is_some() {
            steps.found();
        }
        found
    }

    #[test]
    fn the_first_heavy_instance_is_found_at_once() {
        let mut steps = LongSteps::default();
        let found: Vec<_> = (0..5).map(|tag| steps_until_heavy(&mut steps, tag, 100)).collect();
        assert_eq!(found, [1, 4, 16, 16, 16].map(Some));
    }

    #[test]
    fn instances_that_are_all_alike_do_little_twice() {
        for steps_of_each in 1..HEAVY_STEPS {
            let mut steps = LongSteps::default();
            let twice: u32 = (0..1_000).filter_map(|tag| steps_until_heavy(&mut steps, tag, steps_of_each)).sum();
            assert!(twice <= 5, "{steps_of_each} steps: {twice}");
        }
    }

    #[test]
    fn steps_of_others_between_do_not_count() {
        let mut steps = LongSteps { enough: 2, ..LongSteps::default() };
        assert_eq!([7, 8, 7, 8, 8].map(|tag| steps.count(tag)), [false, false, false, false, true]);
    }
}
