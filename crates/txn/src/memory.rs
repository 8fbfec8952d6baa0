//! The memory of one transaction that is drawn from the process's memory budget: its read set and its log of writes.
//!
//! The versions that it writes belong to the graph and are counted there. Memory is drawn in steps, so that a small
//! transaction draws nothing and touches no shared counter.

use mangrove_graph::{Draw, MemoryBudget, Purpose, Result};

/// Memory is drawn in steps of this many bytes. Most transactions need less than one step.
const STEP_BYTES: usize = 64 << 10;

/// The part of the budget that one structure of a transaction has drawn. Dropping it gives everything back.
#[derive(Debug, Default)]
pub(crate) struct TransactionMemory(Option<Draw>);

impl TransactionMemory {
    /// Draws the difference between `bytes` and the bytes drawn so far, once it is a whole step. If the budget has no
    /// room, this fails and draws nothing.
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
        let mut memory = TransactionMemory::default();
        memory.cover(STEP_BYTES - 1, &budget).unwrap();
        assert_eq!(budget.used_bytes(), 0);
        memory.cover(3 * STEP_BYTES, &budget).unwrap();
        memory.cover(3 * STEP_BYTES + 1, &budget).unwrap();
        assert_eq!(budget.used_for(Purpose::Transactions), 3 * STEP_BYTES as u64);
        let refused = memory.cover(5 * STEP_BYTES, &budget).unwrap_err();
        assert!(refused.kind() == ErrorKind::MemoryLimit && refused.message().starts_with("a transaction needs"));
        memory.cover(4 * STEP_BYTES, &budget).unwrap();
        drop(memory);
        assert_eq!(budget.used_bytes(), 0);
    }

    #[test]
    fn without_a_budget_nothing_is_drawn() {
        let mut memory = TransactionMemory::default();
        memory.cover(usize::MAX, &MemoryBudget::unlimited()).unwrap();
        assert!(memory.0.is_none());
    }
}
