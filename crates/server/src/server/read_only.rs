//! Log lines for graphs that stop taking writes, and that take them again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use smol_str::SmolStr;

use crate::access::caller::Caller;
use crate::engine::contract::Engine;

/// The interval between two checks.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// Checks in a row that must find a graph writable before the log says so: a graph at a limit changes back and forth.
const WELL_COUNT_MIN: u32 = 2;

/// The graphs that the log last reported as read-only.
#[derive(Debug, Default)]
struct ReadOnly(BTreeMap<SmolStr, ReadOnlyReport>);

/// The last report on a graph.
#[derive(Debug)]
struct ReadOnlyReport {
    cause: String,
    /// Checks in a row that found it writable.
    well_count: u32,
}

/// A change to report.
#[derive(Debug, PartialEq, Eq)]
enum ReadOnlyChange {
    /// The graph takes no writes, for this cause.
    Stopped(SmolStr, String),
    /// The graph takes writes again.
    Resumed(SmolStr),
}

impl ReadOnly {
    /// Compares the current state with the last reports, and returns the changes to report. Causes that differ only in
    /// figures are the same.
    fn look(&mut self, now: Vec<(SmolStr, String)>) -> Vec<ReadOnlyChange> {
        let now: BTreeMap<SmolStr, String> = now.into_iter().collect();
        let mut changes = Vec::new();
        self.0.retain(|graph, told| {
            told.well_count = if now.contains_key(graph) { 0 } else { told.well_count + 1 };
            let is_well = told.well_count >= WELL_COUNT_MIN;
            if is_well {
                changes.push(ReadOnlyChange::Resumed(graph.clone()));
            }
            !is_well
        });
        for (graph, cause) in now {
            let is_told =
                self.0.get(&graph).is_some_and(|told| without_figures(&told.cause).eq(without_figures(&cause)));
            if !is_told {
                changes.push(ReadOnlyChange::Stopped(graph.clone(), cause.clone()));
                self.0.insert(graph, ReadOnlyReport { cause, well_count: 0 });
            }
        }
        changes
    }
}

fn without_figures(cause: &str) -> impl Iterator<Item = char> {
    cause.chars().filter(|c| !c.is_ascii_digit())
}

/// Logs changes for as long as it is polled.
pub async fn watch(engine: Arc<dyn Engine>) {
    let mut read_only = ReadOnly::default();
    loop {
        // The log is for operators, who may see all graphs.
        for change in read_only.look(engine.read_only(&Caller::anybody(""))) {
            match change {
                ReadOnlyChange::Stopped(graph, cause) => tracing::error!(%graph, cause, "the graph takes no writes"),
                ReadOnlyChange::Resumed(graph) => tracing::warn!(%graph, "the graph takes writes again"),
            }
        }
        tokio::time::sleep(LOOK_INTERVAL).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_tells_of_a_graph_that_stops_of_another_cause_and_of_one_that_goes_on() {
        let mut read_only = ReadOnly::default();
        let full = |free: u32| vec![("g".into(), format!("the disk is full, {free} bytes are free"))];
        assert_eq!(read_only.look(Vec::new()), []);
        assert_eq!(
            read_only.look(full(7)),
            [ReadOnlyChange::Stopped("g".into(), "the disk is full, 7 bytes are free".into())]
        );
        assert_eq!(read_only.look(full(1234)), [], "the same cause");
        // One good check does not end the report.
        assert_eq!(read_only.look(Vec::new()), []);
        assert_eq!(read_only.look(full(7)), []);
        let failed = || ("g".into(), "the disk failed".to_owned());
        let both = vec![failed(), ("h".into(), "the disk is full".to_owned())];
        assert_eq!(read_only.look(both).len(), 2);
        assert_eq!(read_only.look(vec![failed()]), []);
        assert_eq!(read_only.look(vec![failed()]), [ReadOnlyChange::Resumed("h".into())]);
        assert_eq!(read_only.look(Vec::new()), []);
        assert_eq!(read_only.look(Vec::new()), [ReadOnlyChange::Resumed("g".into())]);
    }
}
