//! The metrics of the executors of the process, on which the queries of all graphs take turns.

use mangrove::Executors;

use crate::metrics::exposition::Exposition;
use crate::metrics::exposition::MetricKind::{Counter, Gauge};

/// The load of the executors.
pub(crate) fn exposition() -> String {
    let load = Executors::shared_load();
    let mut text = Exposition::default();
    let meaning = "Executor threads of the process; 0 until the first query that takes long.";
    text.single("mangrove_executors", Gauge, meaning, load.threads);
    text.single("mangrove_executors_busy", Gauge, "Executor threads that run a query now.", load.busy);
    text.single("mangrove_executor_queue", Gauge, "Queries that wait for their turn on an executor.", load.queued);
    text.single("mangrove_executor_turns_total", Counter, "Turns of queries on executors.", load.turns);
    text.into_text()
}
