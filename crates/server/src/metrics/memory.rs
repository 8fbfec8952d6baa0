//! The memory budget of the process, for `/metrics`.

use mangrove_graph::MemoryBudget;

use super::exposition::{Exposition, MetricKind};

/// The metrics of the budget; empty for a process without one.
pub fn exposition(budget: &MemoryBudget) -> String {
    let mut text = Exposition::default();
    if let Some(limit) = budget.limit_bytes() {
        let meaning = "The memory budget of the process: work that would exceed it is refused.";
        text.single("mangrove_memory_budget_bytes", MetricKind::Gauge, meaning, limit);
        let meaning = "Bytes of the memory budget that are in use, by what for.";
        let mut family = text.family("mangrove_memory_budget_used_bytes", MetricKind::Gauge, meaning);
        for purpose in mangrove_graph::Purpose::ALL {
            family.sample(&[("purpose", purpose.name())], budget.used_for(purpose));
        }
        let meaning = "The most bytes of the memory budget that were in use at a time.";
        text.single("mangrove_memory_budget_peak_bytes", MetricKind::Gauge, meaning, budget.peak_bytes());
        let meaning = "How often work was refused because it would have exceeded the memory budget.";
        text.single("mangrove_memory_budget_refusals_total", MetricKind::Counter, meaning, budget.refusal_count());
    }
    text.into_text()
}
