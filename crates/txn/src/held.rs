//! What a transaction holds in memory itself, drawn from the memory budget: its read set, and its log of writes. (The
//! versions that it writes are the graph's.)

use mangrove_graph::{Draw, MemoryBudget, Purpose, Result};

/// Memory is drawn in steps of so many bytes. Most transactions hold less than one step, and draw nothing.
const STEP_BYTES: usize = 64 << 10;

/// What has been drawn for one of them. Dropping it gives it back.
#[derive(Debug, Default)]
pub(crate) struct Held(Option<Draw>);

impl Held {
    /// Draws what so many bytes need beyond what is drawn. If the budget has no room, this fails and draws nothing.
    #[inline]
    pub(crate) fn cover(&mut self, bytes: usize, budget: &MemoryBudget) -> Result<()> {
        let (needed, drawn) = (bytes as u64, self.0.as_ref().map_or(0, Draw::bytes));
        if budget.is_unlimited() || needed < drawn + STEP_BYTES as u64 {
            return Ok(());
        }
        self.0.get_or_insert_with(|| budget.account(Purpose::Transactions)).grow(needed - drawn)
    }
}

#[cfg(test)]
mod tests {
    use mangrove_graph::ErrorKind;

    use super::*;

    #[test]
    fn steps_are_drawn_and_come_back() {
        let budget = MemoryBudget::of(4 * STEP_BYTES as u64);
        let mut held = Held::default();
        held.cover(STEP_BYTES - 1, &budget).unwrap();
        assert_eq!(budget.used_bytes(), 0);
        held.cover(3 * STEP_BYTES, &budget).unwrap();
        held.cover(3 * STEP_BYTES + 1, &budget).unwrap();
        assert_eq!(budget.used_for(Purpose::Transactions), 3 * STEP_BYTES as u64);
        let refused = held.cover(5 * STEP_BYTES, &budget).unwrap_err();
        assert!(refused.kind() == ErrorKind::MemoryLimit && refused.message().starts_with("a transaction needs"));
        held.cover(4 * STEP_BYTES, &budget).unwrap();
        drop(held);
        assert_eq!(budget.used_bytes(), 0);
    }

    #[test]
    fn without_a_budget_nothing_is_drawn() {
        let mut held = Held::default();
        held.cover(usize::MAX, &MemoryBudget::unlimited()).unwrap();
        assert!(held.0.is_none());
    }
}
