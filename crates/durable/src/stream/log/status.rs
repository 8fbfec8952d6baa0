//! The state and numbers of a log in a home, as metrics and `/health` show them.

use std::time::Duration;

use super::super::writer::{Refusal, StreamFloor, WriterCounts};

/// Says whether the log accepts commits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ObjectLogState {
    /// The log accepts commits.
    Running,
    /// Commits are refused, because the home does not confirm them. The log goes on by itself.
    Stalled {
        /// How long it has refused them.
        since: Duration,
        /// Why.
        cause: String,
    },
    /// Another process has opened the graph. This log has stopped.
    Fenced {
        /// The incarnation of the successor, if known.
        by: Option<u64>,
    },
    /// The log is being closed, or is closed.
    Closed,
}

impl ObjectLogState {
    /// The name in metrics and `/health`.
    pub fn name(&self) -> &'static str {
        match self {
            ObjectLogState::Running => "running",
            ObjectLogState::Stalled { .. } => "stalled",
            ObjectLogState::Fenced { .. } => "fenced",
            ObjectLogState::Closed => "closed",
        }
    }

    pub(super) fn of(refusal: Option<Refusal>, stalled: Option<Duration>, is_over: bool) -> Self {
        match refusal {
            None if is_over => ObjectLogState::Closed,
            None => ObjectLogState::Running,
            Some(Refusal::Fenced { by }) => ObjectLogState::Fenced { by },
            Some(Refusal::Finishing) => ObjectLogState::Closed,
            Some(refusal @ (Refusal::Unsettled { .. } | Refusal::Backlog { .. })) => {
                ObjectLogState::Stalled { since: stalled.unwrap_or_default(), cause: refusal.to_string() }
            }
        }
    }
}

/// The state and numbers of a log in a home. Counts are since it was opened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ObjectLogStatus {
    /// Says whether the log accepts commits.
    pub state: ObjectLogState,
    /// The incarnation of the owner.
    pub incarnation: u64,
    /// Every commit up to this timestamp is durable.
    pub durable_ts: u64,
    /// Objects, commits and bytes that were put. Some of them may not be confirmed.
    pub counts: WriterCounts,
    /// Requests that were sent to the home: puts with their retries, and reads.
    pub requests: u64,
    /// Puts whose outcome is not known.
    pub in_flight: u64,
    /// How long the oldest of them has had no outcome.
    pub oldest_unsettled: Option<Duration>,
    /// The usual time of a put, once one was confirmed.
    pub usual_put: Option<Duration>,
    /// Commits that are in no object.
    pub waiting_commits: u64,
    /// Bytes of records that are in no object.
    pub waiting_bytes: u64,
    /// Reads that were served without a proof that no other process has opened the graph.
    pub unproved_reads: u64,
    /// The position from which a checkpoint would need the stream.
    pub floor: StreamFloor,
}

impl ObjectLogStatus {
    /// Commits a put on average; 0 if none was put.
    pub fn commits_per_put(&self) -> f64 {
        match self.counts.objects {
            0 => 0.0,
            objects => self.counts.commits as f64 / objects as f64,
        }
    }
}
