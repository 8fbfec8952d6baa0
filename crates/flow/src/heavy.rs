//! Heavy instances: those that work so long that the light ones of their group would wait for them.
//!
//! The instances of a group end together, so one with a hundred thousand rows keeps a hundred with ten rows waiting. A
//! heavy instance is found while it works, and leaves its group:
//!
//! ```text
//!  group 7   tags  0  1 [2] 3      16 steps more for tag 2 than for all others
//!                        │
//!                        ├─ has no result yet: canceled here, begins again as group 12 (FLOW-44)
//!                        └─ has results: rows of the others go before its own (FLOW-45)
//! ```
//!
//! To begin again costs an instance at most what it has done so far, a few steps. In return no operator needs to cut
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

/// The steps that an instance is ahead of all others of its group when it counts as heavy. A step makes about one
/// message, so light instances never come so far. They are less than a millisecond.
const HEAVY_STEPS: u32 = 16;

/// The instance of a group for which most steps were done, by the vote of Boyer and Moore.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MostSteps {
    tag: u32,
    /// The steps for it, less those for others.
    lead: u32,
}

impl MostSteps {
    /// Counts a step that has not finished its message.
    pub fn count(&mut self, tag: u32) {
        if self.lead == 0 {
            self.tag = tag;
        }
        self.lead = if self.tag == tag { self.lead + 1 } else { self.lead - 1 };
    }

    /// Returns the heavy instance, if there is one.
    pub fn heavy(&self) -> Option<u32> {
        (self.lead >= HEAVY_STEPS).then_some(self.tag)
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

    #[test]
    fn an_instance_is_heavy_if_it_is_ahead_of_all_others() {
        let mut steps = MostSteps::default();
        for tag in 0..100 {
            (0..HEAVY_STEPS / 2).for_each(|_| steps.count(tag));
            assert_eq!(steps.heavy(), None);
        }
        let mut steps = MostSteps::default();
        for _ in 1..HEAVY_STEPS {
            steps.count(7);
            assert_eq!(steps.heavy(), None);
        }
        steps.count(7);
        assert_eq!(steps.heavy(), Some(7));
        steps.count(8);
        assert_eq!(steps.heavy(), None);
    }
}
